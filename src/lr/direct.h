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

/* The family `direct`. Time of flight tells where on its line an event happened, and the event is deposited there, in
 * one histo-image per view. Projections are convolutions in image space with a kernel that varies with the place.
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

/* The three unit axes of a view, in the order tof, radial, axial. Exact where the angles are
 * multiples of 90 degrees. */
LR_API void lr_view_axes(const lr_view *view, double axes[3][3]);

/* Views spread evenly over half a turn and the scanner's axial acceptance; zero fields are defaults.
 * View k has azimuth 180 / azimuths * (k mod azimuths), and tilt interval
 * k / azimuths of `tilts` equal ones between -acceptance and +acceptance, at its middle. */
typedef struct lr_view_set {
    int azimuths;          /* 0 = 40 */
    int tilts;             /* co-polar; 0 = 3 */
    double acceptance_deg; /* largest tilt of a line; 0 = 10 */
} lr_view_set;

/* Copies a set and fills in its defaults. errors: LR_USAGE for negative numbers, an acceptance of 90 degrees or
 * more, or more than 65,536 views. */
LR_API lr_status lr_view_set_complete(const lr_view_set *set, lr_view_set *complete, const lr_log *log);

/* Number of views of a complete set, and view 0 <= index < count. */
LR_API int lr_view_set_count(const lr_view_set *set);
LR_API lr_view lr_view_set_at(const lr_view_set *set, int index);

/* Index of the view of a complete set whose intervals contain the direction; -1 if it is tilted beyond the acceptance.
 * The direction may have any length and either sign. A direction on a border (to 1e-9 of an interval) belongs to the
 * view above it.
 */
LR_API int lr_view_set_find(const lr_view_set *set, const double direction[3]);

/* order: [count], every view of a complete set once. Neighbours in the order have directions that are far apart. */
LR_API void lr_view_set_order(const lr_view_set *set, int *order);

/* --- resolution models --- */

/* Width (FWHM) of the kernel across the line of response, as a function of the distance from the scanner's axis along
 * the view's radial direction. It is constant beyond the edge. */
typedef enum lr_radial_model {
    LR_RADIAL_INVARIANT = 0, /* the same everywhere: radial_mm */
    LR_RADIAL_VARIANT1,      /* paper 1: 4.8 mm at the centre, 5.8 at 75 mm, 10 at the edge; linear in
                           between */
    LR_RADIAL_VARIANT2,      /* paper 1: linear from 5.8 mm at the centre to 12 at the edge */
    LR_RADIAL_VARIANT3,      /* 5.8 mm, with a part added in quadrature that grows with the distance, to 11.17 at
                           the edge (paper 1 gives only the value at the edge) */
    LR_RADIAL_LINEAR,        /* from radial_mm at the centre to radial_edge_mm at the edge */
    LR_RADIAL_MEASURED       /* `measured` is the profile itself */
} lr_radial_model;

/* Profiles across the line of response, measured at some distances from the axis, interpolated linearly in between
 * and constant beyond the ends. They need not be normalised. */
typedef struct lr_radial_profiles {
    int num_distances, num_offsets;
    double *distance_mm;    /* owned [num_distances], ascending from >= 0 */
    double first_offset_mm; /* offset of the first value; positive offsets lead away from the axis */
    double offset_step_mm;
    double *values; /* owned [num_distances][num_offsets], >= 0 */
} lr_radial_profiles;

/* Frees the arrays of profiles; zero is allowed. */
LR_API void lr_radial_profiles_finish(lr_radial_profiles *profiles);

/* Reads profiles from YAML (docs/formats/histo-images.md). errors: LR_BAD_INPUT; the message has line and column. */
LR_API lr_status lr_radial_profiles_read(const char *path, lr_radial_profiles *profiles, const lr_log *log);

/* The system response; zero fields are defaults. FWHM throughout. */
typedef struct lr_resolution {
    double tof_ps; /* FWHM of the time difference; required */
    lr_radial_model model;
    double radial_mm;                   /* FWHM of invariant and linear; 0 = 5.8 */
    double radial_edge_mm;              /* linear: required */
    double edge_mm;                     /* distance of the edge from the axis; 0 = 288, half of paper 1's 576 mm */
    double axial_mm;                    /* 0 = 5.8 */
    bool asymmetric;                    /* two Gaussians of equal area across the line. The second one is wider and
                        shifted towards the axis, so that the kernel is wider there. Not with measured profiles */
    double second_width;                /* width of the second Gaussian in widths of the first; 0 = 2, as in paper 1 */
    double second_shift;                /* shift in standard deviations of the first Gaussian; 0 = 1 */
    const lr_radial_profiles *measured; /* must outlive tables and operators made with this resolution */
} lr_resolution;

/* FWHM in mm along the line of a time resolution: c / 2 times it. */
LR_API double lr_tof_mm(double tof_ps);

/* FWHM in mm across the line at this distance from the axis; 0 for measured profiles. Arguments are not checked. */
LR_API double lr_resolution_radial_mm(const lr_resolution *resolution, double distance_mm);

/* --- look-up tables (paper 1, section 4.1) --- */

/* Resolution and extent of a kernel; zero fields are defaults. */
typedef struct lr_direct_kernel {
    lr_resolution resolution;
    double support;    /* k^2 of the ellipsoid sum of d^2 / sigma^2 <= k^2; 0 = 9. Paper 1 has "three
                       times sigma" in words (9) and 27 in its formula for V_cut */
    double epsilon_mm; /* width of an identifier's interval; 0 = half of the smaller transaxial
                          edge of a voxel: 2 mm for paper 1's 4 mm */
} lr_direct_kernel;

/* LORmap, mSR and mSRval of one view, in double, built on the CPU. Immutable. */
typedef struct lr_direct_tables lr_direct_tables;

typedef struct lr_direct_tables_params {
    const lr_grid *grid; /* required; copied */
    lr_view view;
    lr_direct_kernel kernel;
    const lr_log *log;
} lr_direct_tables_params;

typedef struct lr_direct_tables_info {
    lr_grid grid;
    lr_view view;
    int num_identifiers; /* identifier a: a epsilon <= distance from the axis < (a + 1) epsilon */
    int num_kernels;     /* num_identifiers; or, where kernels are not symmetric, twice as many: those
                            of voxels on the negative radial side come second, mirrored */
    int64_t num_offsets; /* in mSR */
    int half[3];         /* offsets lie within -half .. half, in voxels */
    double epsilon_mm, support;
    double sigma_mm[3]; /* tof, radial, axial, of the ellipsoid mSR */
} lr_direct_tables_info;

/* errors: NULL; LR_USAGE for a resolution that is not positive, a view out of range, a kernel longer
 * than the grid; LR_BAD_INPUT for measured profiles that make no kernel. */
LR_SIZED(lr_direct_tables_params, lr_direct_tables *, lr_direct_tables_create, (const lr_direct_tables_params *params),
         (params));
LR_API void lr_direct_tables_destroy(lr_direct_tables *tables); /* NULL is allowed */

LR_API const lr_direct_tables_info *lr_direct_tables_get_info(const lr_direct_tables *tables);

/* LORmap: kernel of each voxel of a slice, [ny][nx]. */
LR_API const int32_t *lr_direct_tables_map(const lr_direct_tables *tables);

/* mSR: (x, y, z) in voxels, [num_offsets]; ordered by y, then x, then z, so that offset
 * num_offsets - 1 - i is the mirror image of offset i. */
LR_API const int32_t (*lr_direct_tables_offsets(const lr_direct_tables *tables))[3];

/* mSRval of one kernel: [num_offsets], sum 1. */
LR_API const double *lr_direct_tables_values(const lr_direct_tables *tables, int kernel);

/* --- operators --- */

/* An operator between an image and the histo-images of some views, one view after the other. lr/operator.h and
 * lr/recon.h apply to it. K_v is the kernel of voxel v, by its identifier in the view; images and histo-images are 0
 * beyond the grid:
 *   forward: histo(n) = sum over offsets d of K_{n+d}(-d) image(n + d)     gathers what spreads
 *   back:    image(v) = sum over offsets d of K_v(d) histo(v + d)          its exact transpose
 * (paper 1, figures 2 and 3). Backends: "cpu", double, straight from this; "compute", OpenGL compute
 * shaders, single precision; "cuda", CUDA on the same textures or buffers of OpenGL.
 *
 * In the layout that its info names, and in selections, a view stands where a scanner has a pair of
 * modules, and a voxel of its histo-image where that has a LOR (lr/lors.h): parts and subsets are sets of
 * views. Elements: what a voxel spreads, which is at most 1 in each view. There is no mode, no stored
 * matrix and no rows of points. Same input, same bits. Tables are built when a view is first used, and
 * kept.
 *
 * Backends compute and cuda have a place of their own (lr_operator_place), in buffers of OpenGL:
 * histo-images and images that are vectors there do not pass through the host, unless a part names
 * single voxels. lr_recon keeps all that it works on there; without a fit it leaves whole updates to
 * the backend (lr_recon_params.without_fit). */

/* Storage of images of compute and cuda on the device. Results are the same. */
typedef enum lr_direct_storage {
    LR_DIRECT_BUFFERS = 0, /* storage buffers */
    LR_DIRECT_TEXTURES     /* 3-D textures: slower to read, but they may be larger */
} lr_direct_storage;

/* Implementations of the projections in backend cuda. Their results are the same. */
typedef enum lr_direct_variant {
    LR_DIRECT_FASTEST = 0,   /* on buffers: bands. On textures: shared memory, or the texture cache if a kernel
                              needs more shared memory than the device has */
    LR_DIRECT_BANDS,         /* matrix products on tensor cores, accurate to 2^-22 of each number or 2^-39 of the
                                largest one on a line through the image. Devices before compute capability 9.0, and
                                kernels that are too wide, use columns instead. On buffers only */
    LR_DIRECT_COLUMNS,       /* whole columns of slices in registers; on buffers only */
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
    const char *backend;             /* "cpu", "compute", "cuda"; NULL or "auto": on a graphics processor cuda, or
                            compute if CUDA does not run there; else cpu. If cuda is named and there is no CUDA,
                            compute is used, with a warning. With `shared`, compute is used instead of cpu */
    int threads;                     /* 0 = all processors */
    int device;                      /* index in lr_device_list; 0 = the first */
    const lr_shared_context *shared; /* compute and cuda share objects with this context and are on its
                                        device; NULL = none */
    lr_direct_storage storage;
    lr_direct_variant variant;    /* of cuda; bands and columns need buffers */
    int64_t max_memory_bytes;     /* memory for look-up tables kept beyond those of one view; 0 = a quarter of the
                                 machine's memory, or of the device's free memory */
    const lr_lor_source *factors; /* factor of each voxel of a histo-image; NULL = 1. Copied; its user outlives the
                                   * operator */
    const lr_log *log;            /* outlives the operator, as measured profiles do */
    const lr_progress *progress;  /* progress of projections; outlives the operator */
} lr_direct_params;

/* errors: NULL, logged: those of lr_direct_tables_create for each view; LR_NO_DEVICE. lr_operator_info.passed_over
 * says why cuda is not used, if it was asked for or would have come first. */
LR_SIZED(lr_direct_params, lr_operator *, lr_direct_create, (const lr_direct_params *params), (params));

/* Facts about operators of the family, in addition to lr_operator_info. */
typedef struct lr_direct_info {
    lr_grid grid;
    int num_views;
    const lr_view *views; /* [num_views] */
} lr_direct_info;

/* Lives as long as the operator; NULL for those of other families. */
LR_API const lr_direct_info *lr_direct_get_info(const lr_operator *op);

/* Attributes of a CUDA kernel, from its driver. */
typedef struct lr_direct_attributes {
    int registers;          /* of a thread */
    int threads;            /* of a block */
    int64_t constant_bytes; /* constants declared by the program, without kernel arguments */
    int64_t local_bytes;    /* of a thread */
    int64_t shared_bytes;   /* of a block */
    int blocks;             /* blocks that a multiprocessor holds at once */
    double occupancy;       /* threads of these blocks, as a share of those that a multiprocessor can hold, 0 .. 1 */
} lr_direct_attributes;

/* Attributes of the kernel that the last projection ran on the device; the last one if there were several. To be
 * called in the thread that projected.
 * errors: LR_USAGE for another backend than cuda, and before the first projection; LR_FAILED. */
LR_API lr_status lr_direct_device_attributes(const lr_operator *op, lr_direct_attributes *attributes);

/* --- histo-images --- */

/* Events of some views, each on the same grid. */
typedef struct lr_histo_images {
    lr_grid grid;
    int num_views;
    lr_view *views; /* owned [num_views] */
    float *values;  /* owned [num_views][nz][ny][nx] */
} lr_histo_images;

/* Histo-images of zeros. errors: NULL, logged. Destroying NULL is allowed. */
LR_API lr_histo_images *lr_histo_images_create(const lr_grid *grid, const lr_view *views, int num_views,
                                               const lr_log *log);
LR_API void lr_histo_images_destroy(lr_histo_images *histo);

/* HDF5 (docs/formats/histo-images.md). Files as in lr/io.h. */
LR_API lr_status lr_histo_images_write(const char *path, const lr_histo_images *histo, const lr_log *log);
LR_API lr_histo_images *lr_histo_images_read(const char *path, const lr_log *log);

/* Takes the views of a file in their order, one at a time. histo: grid and views of the file, without
 * values; values: [num_voxels]. Both live during the call. Another status than LR_OK ends the reading
 * with that status. */
typedef struct lr_histo_sink {
    lr_status (*take)(void *user, const lr_histo_images *histo, int view, const float *values);
    void *user;
} lr_histo_sink;

/* Reads the same file view by view; only one view is in memory. errors: as
 * lr_histo_images_read; what the sink returns. */
LR_API lr_status lr_histo_images_scan(const char *path, const lr_histo_sink *sink, const lr_log *log);

/* Checks that histo-images have the operator's grid, to a thousandth of a voxel, and its views, to 1e-6 degrees.
 * errors: LR_BAD_INPUT with the first difference. */
LR_API lr_status lr_histo_images_check(const lr_histo_images *histo, const lr_operator *op, const lr_log *log);

/* --- deposition --- */

typedef enum lr_deposit_rule {
    LR_DEPOSIT_NEAREST = 0, /* the whole event goes to the voxel that contains it */
    LR_DEPOSIT_TRILINEAR    /* shared among the eight voxels whose centres are around it; those
                               beyond the grid leave their share to the nearest ones in it */
} lr_deposit_rule;

/* Zero fields are defaults. */
typedef struct lr_deposit_params {
    const lr_scanner *scanner; /* required: where crystals are. Outlives the deposition */
    const lr_grid *grid;       /* required; copied */
    lr_view_set set;           /* views that are not complete are completed */
    lr_deposit_rule rule;
    bool delayeds;              /* delayed coincidences instead of prompts */
    const lr_events_info *info; /* required: info of the file; it says if events have TOF */
    const char *backend;        /* "cpu", "compute"; NULL or "auto": compute where there is a graphics
                                   processor, else cpu */
    int device;                 /* index in lr_device_list; 0 = the first */
    const lr_log *log;
} lr_deposit_params;

/* Counts of events by their fate. */
typedef struct lr_deposit_counts {
    int64_t deposited;
    int64_t too_tilted;   /* beyond the acceptance */
    int64_t outside_grid; /* events whose whole time-of-flight bin lies outside the grid */
    int64_t other_kind;   /* delayeds if prompts were asked for; prompts if delayeds were */
    double weight;        /* sum of the weights of deposited events */
} lr_deposit_counts;

/* Takes events and puts each, weighted, where time of flight says that it happened, evenly over its bin, on the line
 * between the middles of its crystals on the detection plane, into the histo-image of the view that has its direction.
 * Same events, same bits. On `compute` sums are kept as integers of 64 bits, up to 2^26 in a voxel, and differ from
 * those of `cpu` by the latter's rounding, and by events within rounding of a border. */
typedef struct lr_deposit lr_deposit;

/* errors: NULL; LR_BAD_INPUT for events without time of flight; LR_NO_DEVICE; as
 * lr_view_set_complete. */
LR_SIZED(lr_deposit_params, lr_deposit *, lr_deposit_create, (const lr_deposit_params *params), (params));
LR_API lr_event_sink lr_deposit_sink(lr_deposit *deposit); /* give this to lr_events_read */

/* Brings histo-images and counts up to the last event, from the device where they are there; more
 * events may follow. errors: LR_FAILED for sums that are too large; LR_NO_DEVICE. */
LR_API lr_status lr_deposit_finish(lr_deposit *deposit);

/* Counts of the last lr_deposit_finish. */
LR_API const lr_deposit_counts *lr_deposit_get_counts(const lr_deposit *deposit);

/* Histo-images of the last lr_deposit_finish; they live as long as the deposition, and may be written to a file. */
LR_API const lr_histo_images *lr_deposit_get_images(const lr_deposit *deposit);
LR_API const char *lr_deposit_get_backend(const lr_deposit *deposit); /* "cpu" or "compute" */
LR_API void lr_deposit_destroy(lr_deposit *deposit);                  /* NULL is allowed */

/* --- factors of a scanner --- */

/* Zero fields are defaults. */
typedef struct lr_direct_factors_params {
    const lr_lors *lors;       /* required: where crystals are, and which are in coincidence */
    const lr_grid *grid;       /* required */
    lr_view_set set;           /* views that are not complete are completed */
    const float *efficiencies; /* [num_crystals] >= 0; NULL = 1 */
    const lr_image *mu;        /* 1/mm, finite, at least 0; NULL = nothing is absorbed */
    int directions;            /* directions of each view; 0 = 32 */
    int threads;               /* 0 = all processors; the same bits for any number */
    const lr_log *log;
    const lr_progress *progress;
} lr_direct_factors_params;

/* Factors for the data that a lr_deposit makes of the scanner's events: to be given to an operator whose
 * projections have no scanner in them. A voxel's factor in a view is the share of lines through its centre
 * that the scanner measures, weighted by both crystals' efficiencies and by survival, over the mean
 * solid angle of a view: 1 in the mean over views where all lines are measured. A line belongs to the
 * view of its two crystals' LOR, as events do, so a view's factor can exceed 1. The first hit counts, crystal
 * or gap, as in lr_events_from_activity, seen from the line's point nearest to the axis; all of the line is taken to
 * lie between the two crystals except for points farther from the axis than any crystal, which have 0.
 * docs/method/direct.md, "Factors of a scanner".
 * errors: NULL, logged: LR_USAGE as lr_view_set_complete and for negative numbers; LR_BAD_INPUT for
 * efficiencies or a map that are negative or not finite; LR_CANCELLED; LR_FAILED. */
LR_SIZED(lr_direct_factors_params, lr_histo_images *, lr_direct_factors_create,
         (const lr_direct_factors_params *params), (params));

/* --- timing --- */

typedef enum lr_direct_work {
    LR_DIRECT_WORK_FORWARD = 0, /* the image, through each view */
    LR_DIRECT_WORK_BACK,        /* the same as if it were a histo-image */
    LR_DIRECT_WORK_TABLES,      /* look-up tables, built anew */
    LR_DIRECT_WORK_READING      /* the image from the device to the host, whatever the views */
} lr_direct_work;

/* Result of a measurement. */
typedef struct lr_direct_timing {
    double wall_s;       /* until the device was done */
    double device_s;     /* by the device's clock; 0 = not measured */
    int64_t num_offsets; /* of all views together */
} lr_direct_timing;

/* Work to be timed, on some views in a row. */
typedef struct lr_direct_task {
    lr_direct_work work;
    const int *views; /* [num_views] */
    int num_views;
    const lr_vector *image; /* [num_voxels], copied to the device before the clock starts; NULL = the image of the
                               last task, or the one that a later reconstruction without fit left on the device */
} lr_direct_task;

/* Times a task and discards its results. Only LR_DIRECT_WORK_READING copies to the host while the clock runs.
 * Tables are built before projections are timed. errors: LR_USAGE for views that do not exist, the first task without
 * an image, or an operator of another family. */
LR_API lr_status lr_direct_time(lr_operator *op, const lr_direct_task *task, lr_direct_timing *timing);

#ifdef __cplusplus
}
#endif

#endif
