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
    double radius_mm; /* radius a; 0 = 10 */
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

/* The two grids of a complete lr_blobs, equal in size. The grids contain every blob that reaches the centre of a voxel.
 * Coefficients are ordered as voxels, first all of grids[0], then all of grids[1]. */
LR_API void lr_blobs_grids(const lr_blobs *blobs, const lr_grid *voxels, lr_grid grids[2]);

/* The image at the centres of voxels. coefficients: [voxels of both grids of image->grid].
 * errors: LR_FAILED if memory runs out, logged. */
LR_API lr_status lr_blobs_evaluate(const lr_blobs *blobs, const float *coefficients, lr_image *image,
                                   const lr_log *log);

/* --- list mode --- */

/* List mode: one value per event instead of one per LOR, with time of flight if the events have it. Source: Cui, Pratx,
 * Prevrhal, Levin: Fully 3D list-mode time-of-flight PET image reconstruction on GPUs using CUDA (Med. Phys. 38, 2011),
 * called "the paper" below. Equations, and differences from the paper, are in docs/method/listmode.md.
 *
 * The line of an event is the segment between the centres of its crystals on the detection plane
 * (lr_scanner_hit_centre). The line is followed slice by slice. Slices are orthogonal to the grid axis closest to the
 * line's direction, the predominant direction. The element of event e and voxel v is
 *
 *     A(e, v) = G(e) * T(e, slice of v) * K(e, v)
 *
 * G is the solid angle of the event's LOR, in 1/mm, for the middle of the line and small faces:
 *
 *     G(e) = a cos(alpha) b cos(beta) / (2 pi L^2 V)
 *
 * The crystals' faces have the areas a and b, and their normals the angles alpha and beta to the line, whose length is
 * L; V is the volume of a voxel. So A(e, v) is a probability, as with the exact kernel. G is 1 with no_solid_angles,
 * for lines given by their ends, and for tubes as in the paper.
 *
 * Without time of flight, T is the length of the line in the slice, in mm. With time of flight, T is the integral of a
 * Gaussian over this length. The Gaussian has area 1 and is centred at the position given by tof_mm. It is cut at three
 * standard deviations and divided by 0.9973, the area between the cuts. If tof_mm is the middle of a bin
 * (lr_events_info), T is averaged over the bin. T is then a density per millimetre of tof_mm: T times the bin width,
 * summed over all bins, is the value without time of flight. K is the share of voxel v in its slice, given by the
 * kernel.
 *
 * The exact kernel has no slices. A(e, v) is a probability: the element of the event's LOR in exact mode of the family
 * correspondence. With time of flight, A(e, v) is multiplied by the mean of the Gaussian over the voxel's extent along
 * the line. */
typedef enum lr_listmode_kernel {
    /* the paper's tube of response: voxels with centres in a cylinder around the line; their share depends on their
     * distance to the line */
    LR_LISTMODE_TUBE = 0,
    LR_LISTMODE_LINE, /* a thin ray (Joseph 1982): bilinear shares of the four voxels around the point at which the line
                         crosses the middle of the slice */
    /* the solid angle in which a voxel sees both crystals of the event, divided by 2 pi, as in an lr_operator with
     * LR_MODE_EXACT. All backends support it; if modules can hide each other, only cpu does */
    LR_LISTMODE_EXACT
} lr_listmode_kernel;

/* The tube of response. The shares of all voxels of a slice, including voxels outside the image, add up to 1. Zero
 * fields are defaults. */
typedef struct lr_listmode_tube {
    /* diameter of the cylinder; 0 = the diameter at which the Gaussian has fallen to 1 %. LR_USAGE if the diameter is
     * above 1,000 times the smallest voxel edge. Without as_paper also LR_USAGE below the diagonal of a voxel's largest
     * face, because such a tube can miss all voxel centres of a slice */
    double width_mm;
    double fwhm_mm;      /* FWHM of the Gaussian of the distance to the line; 0 = the larger of half of the largest
                            crystal pitch and the largest voxel edge; if lines have no crystals, this edge */
    const double *table; /* [table_count] in place of the Gaussian: values at distances from 0 to
                            width_mm / 2, equally spaced, linear in between; >= 0, not all 0; copied.
                            Only their ratios matter, unless as_paper is set. NULL = Gaussian */
    int table_count;     /* number of values in `table`, at least 2; with a table, width_mm must be given */
    /* true: shares are not normalised, and K is the value of the Gaussian (1 at its centre) or of the table. T is 1
     * without time of flight. With time of flight, T is the value of the time-of-flight Gaussian (1 at its centre, cut
     * at three standard deviations) at the middle of the slice */
    bool as_paper;
} lr_listmode_tube;

/* Implementations of the projections in cuda: the fastest, or one of the paper's optimisation steps, each including all
 * earlier steps. Results agree except for rounding. The steps of the paper keep all events on the device; LR_USAGE if
 * the events do not fit. */
typedef enum lr_listmode_variant {
    LR_LISTMODE_FASTEST = 0,
    LR_LISTMODE_SIMPLE,      /* one thread per line; events as records, in the caller's order; the image in global
                                memory */
    LR_LISTMODE_COALESCED,   /* events as structure of arrays (II.B.1) */
    LR_LISTMODE_CACHED,      /* slices, or parts of them, in shared memory one after the other (II.B.2) */
    LR_LISTMODE_PARTITIONED, /* events by predominant direction, and footprints of one size (II.B.3) */
    /* events with time of flight, sorted by the centre of their Gaussian; slices without events of a block are skipped
       (II.B.7) */
    LR_LISTMODE_SORTED,
    LR_LISTMODE_FASTMATH /* arithmetic that is faster and less accurate (II.B.9) */
} lr_listmode_variant;

/* Lines of response given by their end points, instead of events of a scanner. Such lines allow any geometry, moving
 * gantries and mean depths of interaction. Vectors may be at any place and of either precision, and are read when the
 * operator is created. Numbers on a device are then copied to the host once, and are counted in the traffic of their
 * place. Zero fields are defaults. */
typedef struct lr_lines {
    const lr_vector *start_mm, *end_mm; /* required [count][3] x, y, z; fewer than 2^30 lines */
    /* [count] position of the annihilation on the line, measured from its middle, positive towards the end. This is the
     * tof_mm of an lr_event whose crystal a is at the start and b at the end. Rounded to float. NULL = no time of
     * flight */
    const lr_vector *tof_mm;
    double tof_resolution_ps; /* FWHM of the difference of arrival times; required with tof_mm */
    double tof_bin_mm;        /* width of the bins whose middles are tof_mm; 0 = not binned */
    /* [count] FWHM of each line, instead of tof_resolution_ps; NULL = all lines have tof_resolution_ps. Each value is
     * rounded to one of 64516 values, spaced logarithmically from the smallest to the largest resolution. If the
     * largest is ten times the smallest, the relative error is at most 2e-5 */
    const lr_vector *tof_resolutions_ps;
} lr_lines;

/* Zero fields are defaults. Pointers must live as long as the operator unless stated otherwise. One of events, columns
 * and lines is required. */
typedef struct lr_listmode_params {
    const lr_lors *lors; /* required if there are no lines; the operator uses its scanner */
    const lr_grid *grid; /* required; copied */
    /* [count]; crystals and, with time of flight, tof_mm are copied. Weights, times and is_delayed are ignored, so that
     * delayeds count like prompts */
    const lr_event *events;
    int64_t count;                   /* number of `events`, positive; columns and lines have other counts */
    const lr_event_columns *columns; /* columns of events, instead of `events`; copied */
    /* lines of response instead of events, for the kernels tube and line, or for blobs. With lines, lors,
     * sensitivity_lines and seed are not used, and info and factors must be NULL */
    const lr_lines *lines;
    /* says which events have time of flight, and gives the resolution for each kind of crystals; if info has no
     * resolution, the scanner's resolution is used. Binned events are averaged over their bin. Read during creation.
     * NULL = no time of flight */
    const lr_events_info *info;
    /* [num_ranges + 1] ascending from 0 to count: range r has the events ranges[r] .. ranges[r + 1] - 1, fewer than
     * 2^31. Copied. NULL = ranges of nearly equal size */
    const int64_t *ranges;
    /* 0 = 1. Events are sorted within each range, so projections of whole ranges are fastest. There should be one range
     * for each subset of each frame */
    int num_ranges;
    lr_listmode_kernel kernel;
    lr_listmode_tube tube;
    int samples[3]; /* points per voxel and axis of the exact kernel; 0 = lr_operator_default_samples */
    /* if set, the image has blob coefficients in the order of lr_blobs_grids, and elements are line integrals of blobs
     * in mm, times G; kernel and tube are not read. With time of flight the elements are multiplied by the Gaussian's
     * density at the middle of the blob's slice. Every backend supports blobs. Copied. NULL = voxels of the grid */
    const lr_blobs *blobs;
    /* factors (efficiencies, attenuation) that multiply the rows of events and the rows summed in the sensitivity; NULL
     * = 1. The struct is copied; its `user` must outlive the operator */
    const lr_lor_source *factors;
    /* [count], finite, >= 0; copied. Multiply the rows of events, besides G, instead of `factors`, which then affect
     * only the sensitivity. NULL = use `factors` */
    const float *event_factors;
    /* number of LORs from which the sensitivity is computed. More LORs are added for voxels that few of these LORs
     * cross. 0 = 2^25, or up to 2^30 if the error of the mean voxel would exceed 1.2 % */
    int64_t sensitivity_lines;
    uint64_t seed;                           /* seed of the sample of LORs, if not all are used */
    lr_operator *sensitivity_of;             /* a list-mode operator with the same LORs, grid, kernel, factors, lines,
                                                solid angles and seed. Its sensitivity is used here, and is computed
                                                first if necessary. That operator must outlive this one; NULL = none.
                                                LR_USAGE if only one of the two has solid angles */
    int sensitivity_part, sensitivity_parts; /* this operator's part of a sensitivity that several operators compute
                                                together: line number `sensitivity_part`, and every sensitivity_parts-th
                                                line after that. The sum over all parts, from 0 on, is the sensitivity.
                                                0, 0 = all lines */
    const char *backend;                     /* "cuda", "compute", "native", "cpu"; NULL or "auto": the first of these
                                                that finds its device; auto takes compute only on a graphics
                                                processor */
    lr_listmode_variant variant;             /* variant of cuda */
    int block_threads, blocks_each;          /* settings of backend cuda for measurements: threads per block, and blocks
                                                per multiprocessor (the paper, figure 6); 0 = the fastest */
    int threads;                             /* 0 = all processors */
    int device;                              /* index of the device in CUDA; 0 = the first */
    int64_t max_memory_bytes;                /* memory on the device; 0 = all memory that the device reports */
    const lr_log *log;
    const lr_progress *progress;
    /* true: G is 1, for factors that contain the solid angles already, such as a scanner's measured normalisation.
     * Elements are then lengths in mm, or with time of flight numbers without unit. Not read for the exact kernel */
    bool no_solid_angles;
} lr_listmode_params;

/* An operator (lr/operator.h) between an image and the values of events. All of lr/operator.h and lr/recon.h applies to
 * this operator. In the operator's layout (lr_operator_info.lors) and in selections, a range of events replaces a pair
 * of modules, and an event replaces a LOR. Parts and subsets are therefore sets of ranges. There is no mode, no stored
 * matrix and no rows of points.
 *
 * lr_operator_sensitivity does not depend on the events. The sensitivity is A^T n over all LORs in coincidence, without
 * time of flight, with n = `factors`; or an unbiased estimate of this from a sample of LORs. Voxels whose estimate is
 * too uncertain are 0. The sensitivity of a part is the whole sensitivity times the part's share of the events. The
 * measured data for lr_recon are a value of 1 for each event. Images are in emissions, unless G is 1: the scale of the
 * image then depends on the kernel.
 *
 * For lines, lr_operator_sensitivity is A^T 1 over the lines of the operator or of the part, with their time of flight
 * and event_factors. This is correct if a value is measured for every line, as in sinograms. If each line is a single
 * event, the sensitivity of all lines that could have been measured is needed. sensitivity_of is then an operator of
 * all these lines, or of a scanner's events with no_solid_angles, on the same grid; its sensitivity is used as for
 * events. A line that misses the image has the value 0.
 * errors: NULL, logged: as stated at the params; LR_BAD_INPUT, with factors, for an event whose modules are not in
 * coincidence; LR_BAD_INPUT for a line whose ends are equal or not finite; LR_USAGE for lines with the exact kernel,
 * and for vectors whose counts do not agree. */
LR_SIZED(lr_listmode_params, lr_operator *, lr_listmode_create, (const lr_listmode_params *params), (params));

/* Facts about operators of the family, in addition to lr_operator_info. */
typedef struct lr_listmode_info {
    lr_listmode_kernel kernel;
    lr_listmode_tube tube; /* the tube, with defaults filled in */
    lr_blobs blobs;        /* with defaults filled in; radius_mm 0 = voxels */
    int64_t count;         /* number of events */
    int num_ranges;
    double partition_seconds, sort_seconds; /* times for partitioning and sorting the events, by the device's clock if
                                             * the device did this */
    int64_t sensitivity_lines;              /* number of LORs in the sensitivity; 0 = not computed yet */
    /* root mean square over voxels of the standard error, relative to the mean sensitivity; 0 = all LORs were used */
    double sensitivity_error;
    double sensitivity_worst; /* largest standard error of a voxel, relative to the voxel's value */
    int64_t sensitivity_left; /* number of voxels set to 0, because too few LORs that cross them could be sampled */
    bool has_solid_angles;    /* true if elements are probabilities, so that images are in emissions */
    bool has_tof;             /* true if elements depend on times of flight */
} lr_listmode_info;

/* The facts live as long as the operator. NULL for operators of other families. */
LR_API const lr_listmode_info *lr_listmode_get_info(const lr_operator *op);

#ifdef __cplusplus
}
#endif

#endif
