/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_DIRECT_H
#define LR_DIRECT_H

#include <lr/events.h>
#include <lr/grid.h>
#include <lr/operator.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The family `direct`. Time of flight gives the position of an event on its line of response. The event is deposited at
 * this position, in the histo-image of its view. A projection is a convolution in image space; its kernel depends on
 * the position in the image.
 * Papers:
 *   1. Ha, Ispiryan, Matej, Mueller: GPU-Based spatially variant SR kernel modeling and projections
 *      in 3D DIRECT TOF PET Reconstruction
 *   2. Ha, Matej, Mueller: Efficiently GPU-Accelerating Long Kernel Convolutions in 3-D DIRECT TOF
 *      PET Reconstruction via Memory Cache Optimization
 * The equations, in the order the code computes them: docs/method/direct.md.
 *
 * Histo-images and images lie on the same grid (lr/grid.h): float, x fastest. */

/* --- views --- */

/* Direction of all lines of response of one view.
 *   tof    = (cos t cos f, cos t sin f, sin t)      f: azimuth, t: tilt
 *   radial = (-sin f, cos f, 0)
 *   axial  = tof x radial with its sign turned so that z >= 0: (-sin t cos f, -sin t sin f, cos t)
 * Any azimuth; -90 < tilt < 90. */
typedef struct lr_view {
    double azimuth_deg, tilt_deg;
} lr_view;

/* The three unit axes of a view, in the order tof, radial, axial. The axes are exact if the angles are multiples of 90
 * degrees. */
LR_API void lr_view_axes(const lr_view *view, double axes[3][3]);

/* Views that are spread evenly over 180 degrees of azimuth and over the axial acceptance. Zero fields are defaults.
 * View k has the azimuth 180 / azimuths * (k mod azimuths). The range from -acceptance to +acceptance is divided into
 * `tilts` equal intervals; view k has the middle of interval k / azimuths as its tilt. */
typedef struct lr_view_set {
    int azimuths;          /* number of azimuths; 0 = 40 */
    int tilts;             /* number of tilts (co-polar angles); 0 = 3 */
    double acceptance_deg; /* largest tilt of a line; 0 = 10 */
} lr_view_set;

/* Copies a set and fills in its defaults. errors: LR_USAGE for negative numbers, an acceptance of 90 degrees or
 * more, or more than 65,536 views. */
LR_API lr_status lr_view_set_complete(const lr_view_set *set, lr_view_set *complete, const lr_log *log);

/* For a complete set: the number of views, and the view with a given index, 0 <= index < count. */
LR_API int lr_view_set_count(const lr_view_set *set);
LR_API lr_view lr_view_set_at(const lr_view_set *set, int index);

/* Index of the view to which a direction belongs, by the view's intervals of azimuth and tilt in a complete set; -1 if
 * the direction is tilted beyond the acceptance. The direction may have any length and either sign. A direction on the
 * border of two intervals (within 1e-9 of an interval) belongs to the upper one. */
LR_API int lr_view_set_find(const lr_view_set *set, const double direction[3]);

/* order: [count], every view of a complete set once. Neighbours in the order have directions that are far apart. */
LR_API void lr_view_set_order(const lr_view_set *set, int *order);

/* --- resolution models --- */

/* Model of the kernel's FWHM across the line of response. The FWHM depends on the distance from the scanner's axis
 * along the view's radial direction, and is constant beyond the edge. */
typedef enum lr_radial_model {
    LR_RADIAL_INVARIANT = 0, /* the same everywhere: radial_mm */
    LR_RADIAL_VARIANT1,      /* paper 1: 4.8 mm at the centre, 5.8 mm at a distance of 75 mm, 10 mm at the edge; linear
                                in between */
    LR_RADIAL_VARIANT2,      /* paper 1: linear from 5.8 mm at the centre to 12 mm at the edge */
    LR_RADIAL_VARIANT3,      /* 5.8 mm at the centre, 11.17 mm at the edge. A width that grows with the distance is
                                added to 5.8 mm in quadrature (paper 1 gives only the value at the edge) */
    LR_RADIAL_LINEAR,        /* linear from radial_mm at the centre to radial_edge_mm at the edge */
    LR_RADIAL_MEASURED       /* the profiles in `measured` */
} lr_radial_model;

/* Kernel profiles across the line of response, measured at some distances from the axis. Between these distances,
 * profiles are interpolated linearly. Beyond the first and last distance, profiles are constant. Profiles need not be
 * normalised. */
typedef struct lr_radial_profiles {
    int num_distances, num_offsets;
    double *distance_mm;    /* owned [num_distances], ascending from >= 0 */
    double first_offset_mm; /* offset of the first value; positive offsets lead away from the axis */
    double offset_step_mm;
    double *values; /* owned [num_distances][num_offsets], >= 0 */
} lr_radial_profiles;

/* Frees the arrays of profiles. A struct of zeros is allowed. */
LR_API void lr_radial_profiles_finish(lr_radial_profiles *profiles);

/* Reads profiles from YAML (docs/formats/histo-images.md). errors: LR_BAD_INPUT; the message has line and column. */
LR_API lr_status lr_radial_profiles_read(const char *path, lr_radial_profiles *profiles, const lr_log *log);

/* The system response; all widths are FWHM. Zero fields are defaults. */
typedef struct lr_resolution {
    double tof_ps; /* FWHM of the time difference; required */
    lr_radial_model model;
    double radial_mm;                   /* FWHM of the invariant model, and of the linear model at the centre; 0 =
                                           5.8 */
    double radial_edge_mm;              /* linear model: FWHM at the edge; required */
    double edge_mm;                     /* distance of the edge from the axis; 0 = 288 (half of 576 mm in paper 1) */
    double axial_mm;                    /* FWHM along the view's axial direction; 0 = 5.8 */
    bool asymmetric;                    /* true: the kernel across the line is the sum of two Gaussians of equal area.
                                           The second one is wider and shifted towards the axis. Not allowed with
                                           measured profiles */
    double second_width;                /* width of the second Gaussian divided by that of the first; 0 = default, 2, as
                                           in paper 1 */
    double second_shift;                /* shift in standard deviations of the first Gaussian; 0 = default, 1 */
    const lr_radial_profiles *measured; /* must outlive tables and operators made with this resolution */
} lr_resolution;

/* The FWHM along the line, in mm, of a time resolution: tof_ps * c / 2. */
LR_API double lr_tof_mm(double tof_ps);

/* FWHM in mm across the line at this distance from the axis; 0 for measured profiles. Arguments are not checked. */
LR_API double lr_resolution_radial_mm(const lr_resolution *resolution, double distance_mm);

/* --- look-up tables (paper 1, section 4.1) --- */

/* Resolution and extent of a kernel; zero fields are defaults. */
typedef struct lr_direct_kernel {
    lr_resolution resolution;
    double support;    /* k^2; the kernel is cut to the ellipsoid sum of d^2 / sigma^2 <= k^2. 0 = 9, because paper 1
                          says "three times sigma"; the paper's formula for V_cut has 27 instead */
    double epsilon_mm; /* distances within an interval of this length share one identifier; 0 = half of the smaller
                          transaxial voxel edge (paper 1: 2 mm for voxels of 4 mm) */
} lr_direct_kernel;

/* The tables LORmap, mSR and mSRval of one view, in double precision, built on the CPU. Immutable. */
typedef struct lr_direct_tables lr_direct_tables;

/* Parameters of lr_direct_tables_create. Zero fields are defaults. */
typedef struct lr_direct_tables_params {
    const lr_grid *grid; /* required; copied */
    lr_view view;
    lr_direct_kernel kernel;
    const lr_log *log;
} lr_direct_tables_params;

/* Facts about a set of look-up tables. */
typedef struct lr_direct_tables_info {
    lr_grid grid;
    lr_view view;
    int num_identifiers; /* identifier k: distances from the axis in [k, k + 1) times epsilon_mm */
    int num_kernels;     /* num_identifiers if kernels are symmetric, else twice as many: the second half has the
                            mirrored kernels, for voxels on the negative radial side */
    int64_t num_offsets; /* number of offsets in mSR */
    int half[3];         /* each offset is between -half and half, in voxels */
    double epsilon_mm, support;
    double sigma_mm[3]; /* standard deviations of the ellipsoid mSR: tof, radial, axial */
} lr_direct_tables_info;

/* Makes the tables of one view. The caller frees them with lr_direct_tables_destroy. errors: NULL, logged: LR_USAGE for
 * a resolution that is not positive, a view out of range, or a kernel longer than the grid; LR_BAD_INPUT for measured
 * profiles that give no kernel. */
LR_SIZED(lr_direct_tables_params, lr_direct_tables *, lr_direct_tables_create, (const lr_direct_tables_params *params),
         (params));
LR_API void lr_direct_tables_destroy(lr_direct_tables *tables); /* NULL is allowed */

/* The facts live as long as the tables. */
LR_API const lr_direct_tables_info *lr_direct_tables_get_info(const lr_direct_tables *tables);

/* LORmap: the kernel's index for each voxel of a slice, [ny][nx]. */
LR_API const int32_t *lr_direct_tables_map(const lr_direct_tables *tables);

/* mSR: offsets (x, y, z) in voxels, [num_offsets]. The offsets are ordered by y, then x, then z: offset num_offsets - 1
 * - i is the mirror image of offset i. */
LR_API const int32_t (*lr_direct_tables_offsets(const lr_direct_tables *tables))[3];

/* mSRval: the values of one kernel, [num_offsets]. Their sum is 1. */
LR_API const double *lr_direct_tables_values(const lr_direct_tables *tables, int kernel);

/* --- operators --- */

/* An operator between an image and the histo-images of some views, in the order of the views. All of lr/operator.h and
 * lr/recon.h applies to this operator. K_v is the kernel that the identifier of voxel v in the view selects. Images and
 * histo-images are 0 outside the grid. The projections of one view are
 *
 *   forward: histo(n) = sum over offsets d of K_{n+d}(-d) image(n + d) (each n gathers from its sources)
 *   back: image(v) = sum over offsets d of K_v(d) histo(v + d) (the exact transpose)
 *
 * (paper 1, figures 2 and 3). Backend "cpu" computes these sums in double precision. Backends "compute" (OpenGL compute
 * shaders) and "cuda" (CUDA on the same OpenGL textures or buffers) use single precision.
 *
 * In the operator's layout (lr_operator_info.lors) and in selections, a view replaces a pair of modules, and a voxel of
 * its histo-image replaces a LOR (lr/lors.h). Parts and subsets are therefore sets of views. The elements of a voxel
 * are its kernel values; their sum in a view is at most 1. There is no mode, no stored matrix and no rows of points.
 * The same input gives the same bits. Tables of a view are built when the view is first used, and kept.
 *
 * Backends compute and cuda have a place (lr_operator_place) in OpenGL buffers. Images and histo-images that are
 * vectors at this place do not pass through the host, except for parts that list single voxels. lr_recon keeps all its
 * vectors there. Without a fit, the backend does whole updates itself (lr_recon_params.without_fit). */

/* Storage that backends compute and cuda use for images on the device, and cuda for the look-up tables that the papers
 * keep in textures (docs/method/direct.md). Results do not depend on it. */
typedef enum lr_direct_storage {
    LR_DIRECT_BUFFERS = 0, /* storage buffers */
    LR_DIRECT_TEXTURES     /* 3-D textures: slower to read than buffers, but can be larger */
} lr_direct_storage;

/* Implementations of the projections in backend cuda. Results do not depend on the choice. */
typedef enum lr_direct_variant {
    LR_DIRECT_FASTEST = 0,   /* with buffers: bands. With textures: shared memory, or the texture cache if a kernel
                                needs more shared memory than the device has */
    LR_DIRECT_BANDS,         /* matrix products on tensor cores. Each number is accurate to 2^-22 of itself or 2^-39 of
                                the largest number on a line through the image. Columns are used instead on devices
                                before compute capability 9.0, and for kernels that are too wide. Buffers only */
    LR_DIRECT_COLUMNS,       /* whole columns of slices in registers; buffers only */
    LR_DIRECT_THREADS,       /* paper 1: one voxel per thread */
    LR_DIRECT_INSTRUCTIONS,  /* paper 1: several voxels per thread */
    LR_DIRECT_SHARED_MEMORY, /* paper 2: sources in shared memory; LR_USAGE if a kernel needs more than the device has
                              */
    LR_DIRECT_TEXTURE_CACHE  /* paper 2: sources fetched through the texture cache */
} lr_direct_variant;

/* Zero fields are defaults. */
typedef struct lr_direct_params {
    const lr_grid *grid;  /* required; copied */
    const lr_view *views; /* required [num_views]; copied */
    int num_views;
    lr_direct_kernel kernel;
    const char *backend;             /* "cpu", "compute", "cuda", NULL or "auto". Auto takes cuda on a graphics
                                        processor, compute if CUDA does not run on it, and cpu if there is no graphics
                                        processor; with `shared`, auto takes compute instead of cpu. "cuda,compute"
                                        takes the first of the two that runs here */
    int threads;                     /* 0 = all processors */
    int device;                      /* index in lr_device_list; 0 = the first */
    const lr_shared_context *shared; /* compute and cuda use the device of this context and share objects with it; NULL
                                        = none */
    lr_direct_storage storage;
    lr_direct_variant variant;    /* variant of backend cuda; bands and columns need buffers */
    int64_t max_memory_bytes;     /* limit for the look-up tables that are kept, in addition to those of one view; 0 = a
                                     quarter of the machine's memory, or of the device's free memory */
    const lr_lor_source *factors; /* factor of each voxel of the histo-images; NULL = 1. The struct is copied; its
                                     `user` must outlive the operator */
    const lr_log *log;            /* must outlive the operator; so must measured profiles */
    const lr_progress *progress;  /* progress of projections; must outlive the operator */
} lr_direct_params;

/* Creates an operator, which the caller frees with lr_operator_destroy. If the first backend of the list (or of auto)
 * cannot be used and a later one is taken, lr_operator_info.passed_over gives the reason. errors: NULL, logged: as
 * lr_direct_tables_create, for each view; LR_NO_DEVICE. */
LR_SIZED(lr_direct_params, lr_operator *, lr_direct_create, (const lr_direct_params *params), (params));

/* Facts about operators of the family, in addition to lr_operator_info. */
typedef struct lr_direct_info {
    lr_grid grid;
    int num_views;
    const lr_view *views; /* [num_views] */
} lr_direct_info;

/* The facts live as long as the operator. NULL for operators of other families. */
LR_API const lr_direct_info *lr_direct_get_info(const lr_operator *op);

/* Attributes of a CUDA kernel, from its driver. */
typedef struct lr_direct_attributes {
    int registers;          /* per thread */
    int threads;            /* per block */
    int64_t constant_bytes; /* constants declared by the program, without kernel arguments */
    int64_t local_bytes;    /* per thread */
    int64_t shared_bytes;   /* per block */
    int blocks;             /* blocks that a multiprocessor holds at once */
    double occupancy;       /* threads of these blocks divided by the largest number of threads that a multiprocessor
                               can hold */
} lr_direct_attributes;

/* Attributes of the last CUDA kernel that the last projection ran. Must be called in the thread that called the
 * projection.
 * errors: LR_USAGE for backends other than cuda, and before the first projection; LR_FAILED. */
LR_API lr_status lr_direct_device_attributes(const lr_operator *op, lr_direct_attributes *attributes);

/* --- histo-images --- */

/* Histo-images of some views, all on the same grid. */
typedef struct lr_histo_images {
    lr_grid grid;
    int num_views;
    lr_view *views;         /* owned [num_views] */
    float *values;          /* owned [num_views][nz][ny][nx] */
    double tof_ps;          /* counts: time resolution (FWHM) of the kernel that fits them; 0 = not known */
    bool are_probabilities; /* factors: true if a value is the probability that a photon pair emitted in the voxel is
                               detected in the view. Images reconstructed with them are in emissions per voxel */
} lr_histo_images;

/* Histo-images of zeros. errors: NULL, logged. Destroying NULL is allowed. */
LR_API lr_histo_images *lr_histo_images_create(const lr_grid *grid, const lr_view *views, int num_views,
                                               const lr_log *log);
LR_API void lr_histo_images_destroy(lr_histo_images *histo);

/* Read and write HDF5 files (docs/formats/histo-images.md). lr/io.h has the rules for all files. */
LR_API lr_status lr_histo_images_write(const char *path, const lr_histo_images *histo, const lr_log *log);
LR_API lr_histo_images *lr_histo_images_read(const char *path, const lr_log *log);

/* Receives the views of a file in order, one at a time. histo: grid and views of the file; its `values` is NULL.
 * values: [num_voxels]. `histo` and `values` exist only during the call. A status other than LR_OK ends the reading
 * with that status. */
typedef struct lr_histo_sink {
    lr_status (*take)(void *user, const lr_histo_images *histo, int view, const float *values);
    void *user;
} lr_histo_sink;

/* Reads a file of histo-images view by view; only one view is in memory. errors: as lr_histo_images_read; the status
 * that the sink returns. */
LR_API lr_status lr_histo_images_scan(const char *path, const lr_histo_sink *sink, const lr_log *log);

/* Checks that histo-images have the operator's grid, to a thousandth of a voxel, and its views, to 1e-6 degrees.
 * errors: LR_BAD_INPUT; the message names the first difference. */
LR_API lr_status lr_histo_images_check(const lr_histo_images *histo, const lr_operator *op, const lr_log *log);

/* --- deposition --- */

/* The rule by which an event is added to the voxels around its most likely place. */
typedef enum lr_deposit_rule {
    LR_DEPOSIT_NEAREST = 0, /* the whole event goes to the voxel that contains it */
    LR_DEPOSIT_TRILINEAR    /* the event is shared among the eight voxels whose centres surround it; the share of a
                               voxel outside the grid goes to the nearest voxel of the grid */
} lr_deposit_rule;

/* Zero fields are defaults. */
typedef struct lr_deposit_params {
    const lr_scanner *scanner; /* required: scanner of the events; must outlive the deposition */
    const lr_grid *grid;       /* required; copied */
    lr_view_set set;           /* set of views; its zero fields are filled in */
    lr_deposit_rule rule;
    bool delayeds;              /* delayed coincidences instead of prompts */
    const lr_events_info *info; /* required: info of the events' file; says if events have TOF */
    const char *backend;        /* "cpu", "compute"; NULL or "auto": compute if there is a graphics processor, else
                                   cpu */
    int device;                 /* index in lr_device_list; 0 = the first */
    const lr_log *log;
} lr_deposit_params;

/* Numbers of events that were deposited or left out. */
typedef struct lr_deposit_counts {
    int64_t deposited;
    int64_t too_tilted;   /* beyond the acceptance */
    int64_t outside_grid; /* events with their whole time-of-flight bin outside the grid */
    int64_t other_kind;   /* delayeds if prompts are deposited, prompts if delayeds are deposited */
    double weight;        /* sum of the weights of deposited events, without the parts of their time-of-flight bins
                             that lie outside the grid */
} lr_deposit_counts;

/* Deposits events in histo-images. The line of an event joins the centres of its crystals on the detection plane
 * (lr_scanner_hit_centre), and its direction selects the view. The event's weight is spread evenly over the
 * time-of-flight bin on this line. The same events give the same bits. Backend `compute` keeps sums as 64-bit integers,
 * up to 2^26 in a voxel. The results of `compute` and `cpu` differ only because `cpu` rounds sums, and because rounding
 * may move an event across a border between voxels. */
typedef struct lr_deposit lr_deposit;

/* Creates a deposition, which the caller frees with lr_deposit_destroy. errors: NULL, logged: LR_BAD_INPUT for events
   without time of flight; LR_NO_DEVICE; as lr_view_set_complete. */
LR_SIZED(lr_deposit_params, lr_deposit *, lr_deposit_create, (const lr_deposit_params *params), (params));
LR_API lr_event_sink lr_deposit_sink(lr_deposit *deposit); /* sink for lr_events_read */

/* Completes histo-images and counts with all events so far, and copies them from the device if necessary. More events
 * may follow. errors: LR_FAILED for sums that are too large; LR_NO_DEVICE. */
LR_API lr_status lr_deposit_finish(lr_deposit *deposit);

/* Counts of the last lr_deposit_finish. */
LR_API const lr_deposit_counts *lr_deposit_get_counts(const lr_deposit *deposit);

/* Histo-images of the last lr_deposit_finish. They live as long as the deposition. */
LR_API const lr_histo_images *lr_deposit_get_images(const lr_deposit *deposit);
LR_API const char *lr_deposit_get_backend(const lr_deposit *deposit); /* "cpu" or "compute" */
LR_API void lr_deposit_destroy(lr_deposit *deposit);                  /* NULL is allowed */

/* --- factors of a scanner --- */

/* Zero fields are defaults. */
typedef struct lr_direct_factors_params {
    const lr_lors *lors;       /* required: the scanner, and its LORs in coincidence */
    const lr_grid *grid;       /* required */
    lr_view_set set;           /* set of views; its zero fields are filled in */
    const float *efficiencies; /* [num_crystals] >= 0; NULL = 1 */
    const lr_image *mu;        /* attenuation in 1/mm, finite, at least 0; NULL = no attenuation */
    int directions;            /* sampled directions of lines in each view; 0 = 32 */
    int threads;               /* 0 = all processors; the result is the same for any number */
    const lr_log *log;
    const lr_progress *progress;
} lr_direct_factors_params;

/* Factors for the histo-images that lr_deposit makes from a scanner's events. These factors are for an operator of this
 * family (lr_direct_params.factors), whose projections do not contain the scanner. A voxel's factor in a view is the
 * probability that a photon pair emitted in the voxel is detected in the view (are_probabilities is true). It is an
 * integral over the directions of lines, divided by the integral over all directions. The lines are those through the
 * voxel's centre that the scanner measures. Lines are weighted by the efficiencies of both crystals and by survival. If
 * all lines within the acceptance are measured, the factors of the views add up to the sine of the acceptance.
 * A line is counted in the view of the LOR of its two crystals, as an event is, even if its own direction is in a
 * neighbouring view. A view can therefore get more lines than its solid angle has. The
 * point of a line nearest to the axis divides the line into two halves. Each half ends where it first hits a crystal or
 * a gap (as in lr_events_from_activity). A line counts in the same way for all voxels on it, also for a voxel that is
 * not between its two crystals. Voxels farther from the axis than any crystal have the factor 0. docs/method/direct.md,
 * "Factors of a scanner".
 * errors: NULL, logged: LR_USAGE as lr_view_set_complete and for negative numbers; LR_BAD_INPUT for efficiencies or a
 * map that are negative or not finite; LR_CANCELLED; LR_FAILED. */
LR_SIZED(lr_direct_factors_params, lr_histo_images *, lr_direct_factors_create,
         (const lr_direct_factors_params *params), (params));

/* --- timing --- */

/* Tasks that lr_direct_time measures. */
typedef enum lr_direct_work {
    LR_DIRECT_WORK_FORWARD = 0, /* forward projection of the image in each view */
    LR_DIRECT_WORK_BACK,        /* back-projection in each view, with the image as its histo-image */
    LR_DIRECT_WORK_TABLES,      /* building the look-up tables again */
    LR_DIRECT_WORK_READING      /* copying the image from the device to the host; does not depend on views */
} lr_direct_work;

/* Result of lr_direct_time. */
typedef struct lr_direct_timing {
    double wall_s;       /* time until the device has finished */
    double device_s;     /* time by the device's clock; 0 = not measured */
    int64_t num_offsets; /* sum over all views */
} lr_direct_timing;

/* Work to be timed, on several views one after another. */
typedef struct lr_direct_task {
    lr_direct_work work;
    const int *views; /* [num_views] */
    int num_views;
    const lr_vector *image; /* [num_voxels], copied to the device before the clock starts; NULL = the image that is on
                               the device, from the last task or from a later reconstruction without fit */
} lr_direct_task;

/* Times a task and discards its results. Only LR_DIRECT_WORK_READING includes a copy to the host. Tables are built
 * before projections are timed.
 * errors: LR_USAGE for views that do not exist, a first task without an image, or an operator of another family. */
LR_API lr_status lr_direct_time(lr_operator *op, const lr_direct_task *task, lr_direct_timing *timing);

#ifdef __cplusplus
}
#endif

#endif
