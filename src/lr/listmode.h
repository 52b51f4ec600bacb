/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_LISTMODE_H
#define LR_LISTMODE_H

#include <lr/events.h>
#include <lr/grid.h>
#include <lr/lors.h>
#include <lr/operator.h>
#include <lr/vector.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- blobs --- */

/* Images as sums of blobs: spherical functions that overlap. Blobs lie on a body-centred cubic lattice, that is two
 * cubic grids; the second is shifted by half a spacing along each axis. A blob is the Kaiser-Bessel window of order
 * 2, after Lewitt (J. Opt. Soc. Am. A 7:1834, 1990), with w = sqrt(1 - (r/a)^2):
 *
 *     b(r) = scale w^2 I_2(alpha w) / I_2(alpha)
 *
 * The factor `scale` is chosen so that blobs with coefficients of 1 add up to a mean of 1. docs/method/listmode.md,
 * "Blobs". Zero fields are defaults. */
typedef struct lr_blobs {
    double radius_mm; /* a; 0 = 10 */
    double alpha;     /* 0 = 8.37; at most 50 */
    /* spacing of each grid; 0 = the spacing with the least ripple in a constant image, 8.15 mm by default */
    double spacing_mm;
} lr_blobs;

/* Fills in defaults. errors: LR_USAGE, logged, for numbers that are not positive and finite. */
LR_API lr_status lr_blobs_complete(lr_blobs *blobs, const lr_log *log);

/* b(r) of a complete lr_blobs at a distance r from the centre, and the integral of b in mm along a line at that
 * distance. */
LR_API double lr_blobs_value(const lr_blobs *blobs, double distance_mm);
LR_API double lr_blobs_footprint(const lr_blobs *blobs, double distance_mm);

/* The two grids of a complete lr_blobs, equal in size. They contain every blob that reaches the centre of a voxel.
 * Coefficients are ordered as voxels, first all of grids[0], then all of grids[1]. */
LR_API void lr_blobs_grids(const lr_blobs *blobs, const lr_grid *voxels, lr_grid grids[2]);

/* The image at the centres of voxels. coefficients: [voxels of both grids of image->grid].
 * errors: LR_FAILED if memory runs out, logged. */
LR_API lr_status lr_blobs_evaluate(const lr_blobs *blobs, const float *coefficients, lr_image *image,
                                   const lr_log *log);

/* --- list mode --- */

/* List mode: one value per event instead of one per LOR, with time of flight if the events have it. Source: Cui,
 * Pratx, Prevrhal, Levin: Fully 3D list-mode time-of-flight PET image reconstruction on GPUs using CUDA (Med. Phys.
 * 38, 2011), "the paper" below; equations and deviations are in docs/method/listmode.md.
 *
 * The line of an event is the segment between the centres of its crystals on the detection plane
 * (lr_scanner_hit_centre). It is followed slice by slice. Slices are orthogonal to the grid axis closest to the
 * line's direction, the predominant direction. The element of event e and voxel v is
 *
 *     A(e, v) = T(e, slice of v) * K(e, v)
 *
 * T without time of flight is the length of the line in the slice in mm. T with time of flight is the integral of a
 * Gaussian over that length. The Gaussian has area 1, is centred at the position given by tof_mm, is cut at three
 * standard deviations and divided by 0.9973, the area within them. If tof_mm is the middle of a bin
 * (lr_events_info), T is the mean over the bin. T is then a density per millimetre of tof_mm: the sum over all bins
 * of T times the bin width is the value without time of flight. K is the share of voxel v in its slice, given by the
 * kernel.
 *
 * The exact kernel has no slices. A(e, v) is the element of the event's LOR in exact mode of the family
 * correspondence, a probability. With time of flight it is multiplied by the mean of that Gaussian over the voxel's
 * extent along the line. */
typedef enum lr_listmode_kernel {
    /* the paper's tube of response: voxels with centres in a cylinder around the line; their share depends on their
     * distance to the line */
    LR_LISTMODE_TUBE = 0,
    LR_LISTMODE_LINE, /* a thin ray (Joseph 1982): the four voxels around the point where the line
                             crosses the slice's middle share bilinearly */
    /* the solid angle in which a voxel sees both crystals of the event, over 2 pi: the same as lr_operator with
     * LR_MODE_EXACT. Every backend supports it; if modules can hide each other, only cpu does */
    LR_LISTMODE_EXACT
} lr_listmode_kernel;

/* The tube of response. The shares of a slice add up to 1, voxels beyond the image included. Zero fields
 * are defaults. */
typedef struct lr_listmode_tube {
    /* diameter of the cylinder; 0 = the diameter at which the Gaussian has fallen to 1 %. At least the diagonal of a
     * voxel's largest face, so that no slice is missed, unless as_paper is set; at most 1,000 of its smallest edges */
    double width_mm;
    double fwhm_mm;      /* FWHM of the Gaussian over the distance; 0 = half of the largest crystal pitch, or the
                          * largest voxel edge if that is more or lines have no crystals */
    const double *table; /* [table_count] in place of the Gaussian: values at distances from 0 to
                            width_mm / 2, equally spaced, linear in between; >= 0, not all 0; copied.
                            Only their ratios matter, unless as_paper is set. NULL = Gaussian */
    int table_count;     /* at least 2; width_mm is required */
    /* true: a share is the value of the function itself (the Gaussian is 1 at its centre), and T is 1. With time of
     * flight, T is the value of the time-of-flight Gaussian at the middle of the slice; it is 1 at its centre and cut
     * at three standard deviations */
    bool as_paper;
} lr_listmode_tube;

/* Implementations of the projections in cuda: the fastest, or one of the paper's optimisation steps, each including
 * all earlier steps. Results agree except for rounding. The steps hold all events on the device; LR_USAGE if these
 * do not fit. */
typedef enum lr_listmode_variant {
    LR_LISTMODE_FASTEST = 0,
    LR_LISTMODE_SIMPLE,      /* one thread per line; events as records, in the caller's order; the image where it is */
    LR_LISTMODE_COALESCED,   /* events as structure of arrays (II.B.1) */
    LR_LISTMODE_CACHED,      /* slices, or parts of them, in shared memory one after the other (II.B.2) */
    LR_LISTMODE_PARTITIONED, /* events by predominant direction, and footprints of one size (II.B.3) */
    /* events with time of flight sorted by their centre; slices without events of a block are skipped (II.B.7) */
    LR_LISTMODE_SORTED,
    LR_LISTMODE_FASTMATH /* arithmetic that is faster and less accurate (II.B.9) */
} lr_listmode_variant;

/* Lines that are given by their ends, in place of events of a scanner: any geometry, moving gantries, mean depths of
 * interaction. Vectors may be at any place and of either precision; they are read during creation. A device's numbers
 * are then copied to the host once, which the traffic of its place counts. Zero fields are defaults. */
typedef struct lr_lines {
    const lr_vector *start_mm, *end_mm; /* required [count][3] x, y, z; fewer than 2^30 lines */
    /* [count] position of the annihilation on the line, measured from its middle, positive towards the end: the tof_mm
     * of an lr_event whose crystal a is at the start and b at the end. Rounded to float. NULL = no time of flight */
    const lr_vector *tof_mm;
    double tof_resolution_ps; /* FWHM of the difference of arrival times; required with tof_mm */
    double tof_bin_mm;        /* width of the bins whose middles are tof_mm; 0 = not binned */
    /* [count] in place of tof_resolution_ps: that of each line, kept as the nearest of 64516 numbers in equal ratios
     * from the least to the largest, which is within 2e-5 of it if these differ tenfold. NULL = all have one */
    const lr_vector *tof_resolutions_ps;
} lr_lines;

/* Zero fields are defaults. Pointers must live as long as the operator unless stated otherwise. One of events, columns
 * and lines is required. */
typedef struct lr_listmode_params {
    const lr_lors *lors; /* required unless there are lines; names the scanner */
    const lr_grid *grid; /* required; copied */
    /* [count]; crystals and, with time of flight, tof_mm are copied. Weights, times and is_delayed are
     * ignored, so prompts and delayeds are treated alike */
    const lr_event *events;
    int64_t count;                   /* number of events, positive; columns and lines have their own */
    const lr_event_columns *columns; /* in place of events; read and copied as they are */
    /* lines of response in place of events, for the kernels tube and line, or for blobs. With lines, lors,
     * sensitivity_lines and seed are not used, and info and factors must be NULL */
    const lr_lines *lines;
    /* gives the events with time of flight and the resolution for each kind of crystals; without a resolution here
     * the scanner's is used. Binned events are averaged over their bin. Read during creation. NULL = no time of
     * flight */
    const lr_events_info *info;
    /* [num_ranges + 1] ascending from 0 to count: range r has the events ranges[r] .. ranges[r + 1] - 1, fewer than
     * 2^31. Copied. NULL = ranges of nearly equal size */
    const int64_t *ranges;
    /* 0 = 1. Events are sorted within each range, so projections of whole ranges are quickest. Use one range for each
     * subset of each frame */
    int num_ranges;
    lr_listmode_kernel kernel;
    lr_listmode_tube tube;
    int samples[3]; /* points per voxel and axis of the exact kernel; 0 = lr_operator_default_samples */
    /* if set, the image has blob coefficients in the order of lr_blobs_grids, and elements are line integrals of
     * blobs in mm; kernel and tube are not read. With time of flight they are multiplied by the Gaussian's density at
     * the middle of the blob's slice. Every backend supports blobs. Copied. NULL = voxels of the grid */
    const lr_blobs *blobs;
    /* multiplies the row of each event and of the sensitivity: efficiencies, attenuation; NULL = 1. Copied; its user
     * outlives the operator */
    const lr_lor_source *factors;
    /* [count] multiplies the rows of events instead of `factors`, which then affect only the sensitivity; finite, >=
     * 0; copied. NULL = use `factors` */
    const float *event_factors;
    /* Number of LORs from which the sensitivity of each voxel is computed; voxels that few of these see get more. 0 =
     * 2^25, raised up to 2^30 if the mean voxel's error would exceed 1.2 % */
    int64_t sensitivity_lines;
    uint64_t seed;                           /* seed for choosing these LORs, if not all are used */
    lr_operator *sensitivity_of;             /* list-mode operator with the same LORs, grid, kernel, factors, lines and
                                              * seed, whose sensitivity is used here. It computes the sensitivity if it
                                              * has not done so. Outlives this one; NULL = none */
    int sensitivity_part, sensitivity_parts; /* share of the sensitivity, if several operators share it: every parts-th
                                              * line from the part-th on. The sum over parts 0 .. parts - 1 is the
                                              * whole. 0, 0 = all lines */
    const char *backend;                     /* "cuda", "compute", "native", "cpu"; NULL or "auto": the first
                                  that finds its device, compute on a graphics processor alone */
    lr_listmode_variant variant;             /* variant of cuda */
    int block_threads, blocks_each;          /* settings of cuda for measurements: threads per block, blocks per
                                              * multiprocessor (list-mode paper, figure 6); 0: the fastest */
    int threads;                             /* 0 = all processors */
    int device;                              /* index of the device in CUDA; 0 = the first */
    int64_t max_memory_bytes;                /* memory on the device; 0 = all that it reports */
    const lr_log *log;
    const lr_progress *progress;
} lr_listmode_params;

/* An operator (lr/operator.h) between an image and the values of events. All of lr/operator.h and lr/recon.h applies
 * to it. In its layout (lr_operator_info.lors) and in selections, a range of events replaces a pair of modules, and
 * an event replaces a LOR. Parts and subsets are therefore sets of ranges. There is no mode, no stored matrix and no
 * rows of points.
 *
 * lr_operator_sensitivity does not use the events. It is A^T n over all LORs in coincidence, without time of flight,
 * or an unbiased estimate from a sample of these LORs. Voxels with too uncertain an estimate are 0. The sensitivity
 * of a part is multiplied by the part's share of the events. lr_recon therefore takes a measured value of 1 for each
 * event. Images are in emissions for the exact kernel only; for other kernels the scale depends on the elements'
 * lengths in mm.
 *
 * For lines, lr_operator_sensitivity is A^T 1 over the very lines of the operator, or of the part: the back-projection
 * of ones, with their time of flight and event_factors. This suits values that are measured for all lines, such as
 * sinograms. Lines that are single events need the sensitivity of all lines that could have been measured:
 * sensitivity_of is then an operator of these, or of a scanner's events, on the same grid; its sensitivity is used as
 * for events. A line that misses the image has the value 0.
 * errors: NULL, logged: as stated at the params; LR_BAD_INPUT, with factors, for an event whose modules are not in
 * coincidence; LR_BAD_INPUT for a line whose ends are equal or not finite; LR_USAGE for lines with the exact kernel,
 * and for vectors whose counts do not agree. */
LR_SIZED(lr_listmode_params, lr_operator *, lr_listmode_create, (const lr_listmode_params *params), (params));

/* Facts about operators of the family, in addition to lr_operator_info. */
typedef struct lr_listmode_info {
    lr_listmode_kernel kernel;
    lr_listmode_tube tube; /* defaults filled in */
    lr_blobs blobs;        /* with defaults filled in; radius_mm 0 = voxels */
    int64_t count;         /* events */
    int num_ranges;
    double partition_seconds, sort_seconds; /* time that arranging the events took, by the device's clock if the
                                             * device did it */
    int64_t sensitivity_lines;              /* number of LORs in the sensitivity; 0 = not computed yet */
    /* root mean square over voxels of the standard error, relative to the mean sensitivity; 0 = all LORs were used */
    double sensitivity_error;
    double sensitivity_worst; /* largest standard error of a voxel, relative to the voxel's value */
    int64_t sensitivity_left; /* number of voxels set to 0 because too few of their LORs could be sampled */
} lr_listmode_info;

/* Lives as long as the operator; NULL for those of other families. */
LR_API const lr_listmode_info *lr_listmode_get_info(const lr_operator *op);

#ifdef __cplusplus
}
#endif

#endif
