/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_LISTMODE_H
#define LR_LISTMODE_H

#include <lr/events.h>
#include <lr/grid.h>
#include <lr/lors.h>
#include <lr/operator.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- blobs --- */

/* Images as sums of blobs: round functions that overlap, on a body-centred cubic lattice, which is two
 * cubic grids of which the second is half a spacing farther along each axis. A blob is the window of
 * Kaiser and Bessel of order 2, after Lewitt (J. Opt. Soc. Am. A 7:1834, 1990), with w = sqrt(1 - (r/a)^2):
 *
 *     b(r) = scale w^2 I_2(alpha w) / I_2(alpha)
 *
 * where `scale` makes blobs with coefficients of 1 add up to 1 in the mean. docs/method/listmode.md,
 * "Blobs". Zero fields are defaults. */
typedef struct lr_blobs {
    double radius_mm;  /* a; 0 = 10 */
    double alpha;      /* 0 = 8.37; at most 50 */
    double spacing_mm; /* of either grid; 0 = where a constant image has the least ripple, 8.15 mm by
                          default */
} lr_blobs;

/* Fills in defaults. errors: LR_USAGE, logged, for numbers that are not positive and finite. */
LR_API lr_status lr_blobs_complete(lr_blobs *blobs, const lr_log *log);

/* b(r) of a complete lr_blobs, and its integral in mm along a line at that distance from its centre. */
LR_API double lr_blobs_value(const lr_blobs *blobs, double distance_mm);
LR_API double lr_blobs_footprint(const lr_blobs *blobs, double distance_mm);

/* The two grids of a complete lr_blobs, equal in size, that hold each blob which reaches the centre of a
 * voxel. Coefficients are those of the first, then those of the second, each in the order of voxels. */
LR_API void lr_blobs_grids(const lr_blobs *blobs, const lr_grid *voxels, lr_grid grids[2]);

/* The image at the centres of voxels. coefficients: [voxels of both grids of image->grid].
 * errors: LR_FAILED if memory runs out, logged. */
LR_API lr_status lr_blobs_evaluate(const lr_blobs *blobs, const float *coefficients, lr_image *image,
                                   const lr_log *log);

/* --- list mode --- */

/* List mode: a value for each event instead of one for each LOR, with time of flight where events have
 * it. The source is Cui, Pratx, Prevrhal, Levin: Fully 3D list-mode time-of-flight PET image
 * reconstruction on GPUs using CUDA (Med. Phys. 38, 2011), "the paper" below; equations and
 * deviations are in docs/method/listmode.md.
 *
 * The line of an event joins the middles of its crystals on the detection plane
 * (lr_scanner_hit_centre); nothing beyond them counts. It is followed slice by slice, slices being
 * orthogonal to the axis of the grid that it runs along most, its predominant direction. The element
 * of event e and voxel v is
 *
 *     A(e, v) = T(e, slice of v) * K(e, v)
 *
 * T: without time of flight the chord through the slice in mm; with it the integral over that chord of
 * a Gaussian of area 1 around the place that tof_mm gives, cut at three standard deviations and
 * divided by what they hold, 0.9973; where tof_mm is the middle of a bin (lr_events_info) the mean over the bin.
 * That is a density per millimetre of tof_mm: times the width of a bin, and added up over the bins, it is the value
 * without time of flight.
 * K: the share of the slice's voxels, which is the kernel's.
 *
 * The exact kernel has no slices: A(e, v) is the element of the event's LOR in exact mode of the family
 * correspondence, a probability, and with time of flight times the mean of that Gaussian over the
 * voxel's extent along the line. */
typedef enum lr_listmode_kernel {
    LR_LISTMODE_TUBE = 0, /* the paper's tube of response: voxels whose centres lie in a cylinder
                             around the line have shares by a function of their distance to it */
    LR_LISTMODE_LINE,     /* a thin ray (Joseph 1982): the four voxels around the point where the line
                             crosses the slice's middle share bilinearly */
    LR_LISTMODE_EXACT     /* the solid angle in which a voxel sees both crystals of the event, over 2 pi:
                             lr_operator's in LR_MODE_EXACT. Every backend has it; where modules may
                             hide each other, cpu alone */
} lr_listmode_kernel;

/* The tube of response. The shares of a slice add up to 1, voxels beyond the image included. Zero fields
 * are defaults. */
typedef struct lr_listmode_tube {
    double width_mm;     /* diameter of the cylinder; 0 = where the Gaussian has fallen to 1 %. At
                            least the diagonal of a voxel's largest face, so that no slice is missed,
                            unless as_paper is set; at most 1,000 of its smallest edges */
    double fwhm_mm;      /* of the Gaussian over the distance; 0 = half of the largest crystal pitch,
                            or the largest voxel edge if that is more */
    const double *table; /* [table_count] in place of the Gaussian: values at distances from 0 to
                            width_mm / 2, equally spaced, linear in between; >= 0, not all 0; copied.
                            Only their ratios matter, unless as_paper is set. NULL = Gaussian */
    int table_count;     /* at least 2; width_mm is required */
    bool as_paper;       /* shares are the function's values themselves (the Gaussian's at its centre
                            is 1), and T is 1, or with time of flight the Gaussian's value where the
                            line crosses the slice's middle, 1 at its centre, cut at three standard
                            deviations */
} lr_listmode_tube;

/* Ways of cuda to project: the fastest way, or the paper's steps, each with those before it. Results are the same
 * except for rounding. Steps hold all events on the device: LR_USAGE where they do not fit. */
typedef enum lr_listmode_variant {
    LR_LISTMODE_FASTEST = 0,
    LR_LISTMODE_SIMPLE,      /* a thread a line; events as records, in the caller's order; the image where
                                it is */
    LR_LISTMODE_COALESCED,   /* events as structure of arrays (II.B.1) */
    LR_LISTMODE_CACHED,      /* slices, or parts of them, in shared memory one after the other (II.B.2) */
    LR_LISTMODE_PARTITIONED, /* events by predominant direction, and footprints of one size (II.B.3) */
    LR_LISTMODE_SORTED,      /* those with time of flight by their centre; slices that none of a block
                                reaches are skipped (II.B.7) */
    LR_LISTMODE_FASTMATH     /* arithmetic that is faster and less accurate (II.B.9) */
} lr_listmode_variant;

/* Zero fields are defaults. Pointers need to live as long as the operator where nothing else is said. */
typedef struct lr_listmode_params {
    const lr_lors *lors;        /* required; names the scanner */
    const lr_grid *grid;        /* required; copied */
    const lr_event *events;     /* required [count]; what matters of them is copied: crystals and, where
                                   there is time of flight, tof_mm. Weights, times and whether they are
                                   delayed are the caller's business. Prompts and delayeds count the same */
    int64_t count;              /* positive */
    const lr_events_info *info; /* where events have time of flight, and its resolution by kinds of
                                   crystals; where it does not say, that of the scanner; with bins
                                   events are as wide as these, on average over them. Read during
                                   creation. NULL = no time of flight */
    const int64_t *ranges;      /* [num_ranges + 1] ascending from 0 to count: range r has the events
                                   ranges[r] .. ranges[r + 1] - 1, of which there are fewer than 2^31.
                                   Copied. NULL = as equal as can be */
    int num_ranges;             /* 0 = 1. Events are sorted range by range, so that projections of whole
                                   ranges are the quickest parts: one for each subset of each frame */
    lr_listmode_kernel kernel;
    lr_listmode_tube tube;
    int samples[3];               /* points per voxel and axis of the exact kernel; 0 = lr_operator_default_samples */
    const lr_blobs *blobs;        /* the image is of coefficients of blobs that cover the grid, as
                                  lr_blobs_grids has them, and values are integrals of blobs in mm;
                                  kernel and tube are not read. With time of flight the Gaussian's
                                  density where the line crosses the middle of a blob's slice. NULL =
                                  voxels of the grid. Every backend has them. Copied */
    const lr_lor_source *factors; /* multiplies the row of each event, and counts in the sensitivity:
                                     efficiencies, attenuation; NULL = 1. Copied; its user outlives the
                                     operator */
    /* [count] multiplies the rows of events in place of `factors`, which then count in the sensitivity
     * alone; finite, >= 0; copied. NULL = those of the events' LORs */
    const float *event_factors;
    /* LORs that each voxel's sensitivity is from; a voxel that few of them see has more. 0 = 2^25, and up
     * to 2^30 where the mean voxel would not be known to 1.2 % */
    int64_t sensitivity_lines;
    uint64_t seed;                           /* of their choice where they are not all */
    lr_operator *sensitivity_of;             /* of this family, with the same LORs, grid, kernel, factors, lines
                                    and seed: its sensitivity is taken in place of one of its own, and
                                    computed there if it has not been. Outlives this one; NULL = none */
    int sensitivity_part, sensitivity_parts; /* where several operators share it: the sensitivity is of
                                  every parts-th of the lines alone, from the part-th on; the sum over
                                  parts 0 .. parts - 1 is whole. 0, 0 = all lines */
    const char *backend;                     /* "cuda", "compute", "native", "cpu"; NULL or "auto": the first
                                  that finds its device, compute on a graphics processor alone */
    lr_listmode_variant variant;             /* of cuda */
    int block_threads, blocks_each;          /* of cuda, for measurements: threads of a block, blocks for each
                                  multiprocessor (list-mode paper, figure 6); 0: the fastest */
    int threads;                             /* 0 = all processors */
    int device;                              /* as CUDA counts its devices; 0 = the first */
    int64_t max_memory_bytes;                /* on the device; 0 = what it reports */
    const lr_log *log;
    const lr_progress *progress;
} lr_listmode_params;

/* An operator (lr/operator.h) between an image and the values of events: what stands there, and in
 * lr/recon.h, holds for it. In the layout that its info names, and in selections, a range of events stands
 * where a scanner has a pair of modules, and an event where that has a LOR: parts and subsets are sets of
 * ranges. There is no mode, no stored matrix and no rows of points.
 *
 * lr_operator_sensitivity is not of the events but of what could have been measured: A^T n of all LORs in
 * coincidence, without time of flight, or of samples of them, which are as large on average, but 0
 * in voxels of which too little would be known; of a part, times its share of the events. So lr_recon
 * takes a measured value of 1 for each event. The scale of images is that of the kernel's chords in mm,
 * and not of emissions; of the exact kernel it is emissions.
 * errors: NULL, logged: as said of the params; LR_BAD_INPUT for an event of modules that are not in
 * coincidence, where there are factors. */
LR_API lr_operator *lr_listmode_create(const lr_listmode_params *params);

/* Facts about operators of the family, in addition to lr_operator_info. */
typedef struct lr_listmode_info {
    lr_listmode_kernel kernel;
    lr_listmode_tube tube; /* defaults filled in */
    lr_blobs blobs;        /* with defaults filled in; radius_mm 0 = voxels */
    int64_t count;         /* events */
    int num_ranges;
    double partition_seconds, sort_seconds; /* that it took to arrange the events, by the clock of the
                                               device where that did so */
    int64_t sensitivity_lines;              /* LORs that it has; 0 = it has not been asked for yet */
    double sensitivity_error;               /* standard error of a sampled one's mean voxel (root mean square), as
                                  a part of the mean over the voxels; 0 = all LORs */
    double sensitivity_worst;               /* of the voxel that has the largest, as a part of its value */
    int64_t sensitivity_left;               /* voxels that are 0 because too few of their LORs could be taken */
} lr_listmode_info;

/* Lives as long as the operator; NULL for those of other families. */
LR_API const lr_listmode_info *lr_listmode_get_info(const lr_operator *op);

#ifdef __cplusplus
}
#endif

#endif
