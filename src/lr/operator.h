/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_OPERATOR_H
#define LR_OPERATOR_H

#include <lr/device.h>
#include <lr/grid.h>
#include <lr/lors.h>
#include <lr/vector.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The pair (A, A^T) that maps an image to a data vector and back. Reconstruction, matrix export and pictures all use
 * it.
 *
 * Family `correspondence`: data is one value per LOR, in the order of lr_lors;
 * A(l, v) = probability that a photon pair emitted uniformly in voxel v is detected by LOR l
 * (Toth, Magdics, Szirmay-Kalos: Fast System Matrix Generation on a GPU Cluster, equation 4).
 * docs/method/README.md lists the equations in the order in which the code computes them. */
typedef struct lr_operator lr_operator;

/* The way in which elements of the matrix are computed. */
typedef enum lr_mode {
    /* exact if the requested backend supports it and photons do not penetrate crystals or layers; else sampled */
    LR_MODE_AUTO = 0,
    LR_MODE_SAMPLED, /* rays x rays lines over each primary crystal's face */
    LR_MODE_EXACT    /* solid angle in which a sample point sees both crystals, computed exactly */
} lr_mode;

/* The choice between a matrix that is computed once and kept, and elements that are computed in each projection. */
typedef enum lr_store {
    /* keep the matrix if that saves time (`projections` below) and it is estimated to fit max_memory_bytes. A kept
     * element is a float32, with a relative error of 6e-8 */
    LR_STORE_AUTO = 0,
    LR_STORE_YES, /* keep the matrix; an error if it does not fit */
    LR_STORE_NO   /* compute the elements in every projection */
} lr_store;

/* Zero fields are defaults. Pointers need to live as long as the operator, except log strings. */
typedef struct lr_operator_params {
    const lr_lors *lors; /* required; the scanner's LORs */
    const lr_grid *grid; /* required; copied */
    /* "cpu", "raster", "compute", "native", NULL or "auto". Auto takes the first of these that supports the params and
     * finds a device: `compute` on a graphics processor, `native`, `cpu`, `compute` on a software renderer. A list such
     * as "raster,cpu" takes the first entry that can be created; a backend with pictures must also be able to draw. */
    const char *backend;
    lr_mode mode;
    int rays;                     /* R, lines per crystal and axis; 0 = 4. Not used in exact mode */
    int samples[3];               /* points per voxel along each axis; 0 = lr_operator_default_samples */
    const lr_image *mu;           /* attenuation in 1/mm; NULL = none */
    int mu_steps;                 /* K, samples of mu along a line; 0 = steps of at most one mu voxel */
    const lr_lor_source *factors; /* factors (efficiencies, attenuation) that multiply the rows of LORs; NULL = 1. The
                                     struct is copied; its `user` must outlive the operator */
    bool deterministic;           /* gives the same bits in every run, even where backend compute would otherwise add in
                                     any order */
    /* true: crystals stop photons along their depth, not on the detection plane. Needs sampled mode and a backend other
     * than raster. Uses the scanner's attenuation, or that of LYSO with a warning. Always on for scanners with layers,
     * except if layers_alone is set */
    bool penetration;
    /* true: each layer detects photons on its detection plane as if it were the only layer, without penetration.
     * Correspondence images show this case. The sum over layers then exceeds the emitted photons */
    bool layers_alone;
    lr_store store;
    /* expected number of projections of all LORs, forward and back; 0 = not known. A projection of all interleaved
     * subsets counts as lr_osem_cost projections. LR_STORE_AUTO keeps a matrix that fits if it is usually quicker: for
     * at least 3 projections on processors, for at least 2 with backend cpu, and never on a software renderer, on a
     * graphics processor or for raster. If the number is not known, or with `deterministic`, LR_STORE_AUTO keeps every
     * matrix that fits */
    double projections;
    /* limit for each of three kinds of memory: a stored matrix on the host (0 = half of the machine's memory); buffers
     * on the device (0 = all device memory); the data that a reconstruction keeps on the device (lr/recon.h; 0 = half
     * of the device memory). Working memory of a call is not included: images, copies of the caller's data (in another
     * precision, or times factors), and up to 128 MiB (cpu with factors: 512 MiB) of buffers */
    int64_t max_memory_bytes;
    int threads;                     /* 0 = all processors */
    int device;                      /* index in lr_device_list; 0 = the first */
    const lr_shared_context *shared; /* backend compute uses the device of this context and shares objects with it; NULL
                                        = none */
    const lr_log *log;
    const lr_progress *progress;
} lr_operator_params;

/* Facts about an operator. Strings live as long as the operator. */
typedef struct lr_operator_info {
    const char *backend; /* "cpu", "raster", "compute" or "native" */
    const char *device;  /* "CPU, 2 threads"; "llvmpipe (LLVM 15.0.6, 256 bits)" */
    bool is_gpu;         /* the device is a graphics processor */
    /* reason why backends were skipped; NULL = no backend was skipped. For a list of backends: the reasons why entries
     * before `backend` could not be created (not logged). For auto: the reason why an available graphics processor is
     * not used (also logged as a warning). */
    const char *passed_over;
    lr_mode mode;     /* sampled or exact */
    bool penetration; /* crystals stop photons along their depth */
    bool stored;      /* true if the matrix is kept */
    int64_t num_voxels, num_lors;
    bool of_events;       /* true for the family listmode: data is one value for each of num_lors events; the
                             sensitivity is that of all LORs */
    bool of_lines;        /* true if the events are lines (lr_lines), whose sensitivity is A^T 1; of_events is then
                             true, too */
    int64_t num_elements; /* non-zeros of the stored matrix; 0 if it is not stored */
    int64_t memory_bytes; /* memory of the stored matrix */
    int rays;
    int samples[3];
    int mu_steps;
    int threads;              /* largest number of threads that the operator uses */
    int64_t max_memory_bytes; /* limit that was requested; 0 = none */
    double build_seconds;     /* time of creation, including the stored matrix */
    const lr_lors *lors;      /* the caller's, as given in the params */
    const lr_grid *grid;      /* grid of images; the operator's copy */
} lr_operator_info;

/* Builds an operator. If the matrix is to be stored, generates it.
 * errors: NULL; the log has the reason, with its status. */
LR_SIZED(lr_operator_params, lr_operator *, lr_operator_create, (const lr_operator_params *params), (params));

/* Destroying NULL is allowed. */
LR_API void lr_operator_destroy(lr_operator *op);

/* The facts live as long as the operator. */
LR_API const lr_operator_info *lr_operator_get_info(const lr_operator *op);

/* Replaces the log and the progress of the params, so that each call can have its own. Messages of later calls of the
 * operator go to `log`, and their progress to `progress`, which can stop a call; NULL = none. Both structs are copied;
 * their `user` must outlive the calls. Must not be called during another call of the operator. */
LR_API void lr_operator_listen(lr_operator *op, const lr_log *log, const lr_progress *progress);

/* Starts building the GPU programs for forward and back projection and for the sensitivity, in parallel. The first time
 * on a machine, a graphics driver can take some seconds for each program. Without this call, each program is built when
 * it is first used. of_lists: true if projections select single LORs (lr_selection.lors).
 * errors: LR_FAILED for a program that the driver refuses immediately. */
LR_API lr_status lr_operator_prepare(lr_operator *op, bool of_lists);

/* Default points per axis, used for `samples` = 0. With these points, a voxel's sensitivity differs from the true mean
 * over the voxel by 0.2 % rms over a grid, and by at most 2 % (docs/method/correspondence.md, "Sample points"). Along
 * an axis, the number of points is the smallest even number with a small enough spacing. Along x and y, the spacing
 * must be at most 0.85 times the smallest transaxial pitch; along z, at most the smallest axial pitch. Along each axis,
 * the spacing must also be at most the larger of 1/60 of the scanner's radius and half of the smallest pitch along the
 * axis. The number is 1 if no voxel edge exceeds 1/120 of the radius and no column of voxels lies on the axis. More
 * points along z are used if aligned crystal rings would give slices on the axis an error above 1.2 %, or 4.5 % with a
 * single point. */
LR_API void lr_operator_default_samples(const lr_scanner *scanner, const lr_grid *grid, int samples[3]);

/* Vectors on the host: the values of an image, and the values of LOR data (sparse data: of the listed LORs). */
static inline lr_vector lr_image_vector(const lr_image *image)
{
    return lr_vector_of_floats(image->values, lr_grid_num_voxels(&image->grid));
}

static inline lr_vector lr_lor_data_vector(const lr_lor_data *data)
{
    return lr_vector_of_floats(data->values, data->count);
}

/* Forward projection, values = A image. image: [num_voxels]; values: [num_lors], or [lr_selection_count] in the
 * selection's order. part NULL: all LORs. Each vector may be at any place and in either precision. Outputs are
 * overwritten. No copy or conversion is made for vectors at the operator's place (lr_operator_place) in the precision
 * of the computation (double for backend cpu, else float).
 *
 * Cost of LORs outside `part`. Backend native, stored matrices, and compute by columns or by pairs of modules
 * (docs/method/correspondence.md, "Columns" and "Tilted pairs") neither compute nor store these LORs. Backend cpu
 * computes these LORs but does not store them. In other cases backend compute, and for single LORs backend raster,
 * compute and store all LORs, and then pick the selected ones. If backend compute works by pairs of modules, it picks
 * single LORs from all LORs of their pairs. An empty part gives no values, or an image of 0.
 *
 * Threads: one call at a time per operator. With `factors` n the matrix is diag(n) A here and in all functions below,
 * except for pictures. The same input gives the same bits for any number of threads. Backend compute is the exception:
 * it adds in any order, and its results vary by 2e-6 of each value. Backend compute gives the same bits, too, if the
 * matrix is stored, if `deterministic` is set, or if all modules have a common axial direction along an axis of the
 * grid (docs/method/correspondence.md, "Deterministic sums").
 * errors: LR_BAD_INPUT for a value that is not finite, or a factor that is negative or not finite; LR_USAGE for vectors
 * of other sizes, or a selection that is not ascending or out of range; LR_FAILED if memory runs out, or if the grid
 * needs more than nine tenths of the free memory; LR_NO_DEVICE when the device is lost; LR_CANCELLED. */
LR_API lr_status lr_operator_forward(lr_operator *op, const lr_selection *part, const lr_vector *image,
                                     lr_vector *values);

/* Back-projection, image = A^T values. */
LR_API lr_status lr_operator_back(lr_operator *op, const lr_selection *part, const lr_vector *values, lr_vector *image);

/* Sensitivity, image = A^T 1. The sensitivity of all LORs is computed once and kept, at the operator's place if it has
 * one. OSEM divides by the sensitivity of a part in each subset. LORs out of coincidence have A = 0 and add nothing.
 * Backends that pick a part from all LORs (lr_operator_forward) allocate an array of all LORs. */
LR_API lr_status lr_operator_sensitivity(lr_operator *op, const lr_selection *part, lr_vector *image);

/* Resolution in image space: after this call A is replaced by A G and A^T by G A^T, for every family. G is a
 * stationary, symmetric Gaussian blur with these FWHMs in mm (0 = none along that axis). The kernel of G is integrated
 * over voxels, cut at four standard deviations and normalised to a sum of 1. Activity moved out of the grid is lost.
 * Images are blurred at their place. Sensitivities include the blur. With a blur, calls for rows and matrix elements
 * return an error, and devices do no whole updates (lr_recon_params.without_fit). All widths 0 remove the blur. Source:
 * Reader et al., EM Algorithm System Modeling by Image-Space Techniques for PET Reconstruction, IEEE Trans. Nucl. Sci.
 * 50 (2003).
 * errors: LR_USAGE for a width that is negative or not finite, that exceeds the image along an axis of several voxels,
 * or whose kernel reaches 127 voxels or more from its centre; LR_USAGE for an image of blobs. */
LR_API lr_status lr_operator_set_psf(lr_operator *op, const double fwhm_mm[3]);

/* Smooths an image in place by the same Gaussian. errors: as lr_operator_set_psf; LR_FAILED. */
LR_API lr_status lr_image_smooth(lr_image *image, const double fwhm_mm[3], const lr_log *log);

/* The place at which the operator computes; NULL = the host. Vectors created at this place need not be copied. The
 * place lives as long as the operator, or longer if it has other holders (lr_place_keep). The place is on the device
 * for these operators: raster; compute by columns or by pairs of modules (docs/method/correspondence.md, "Columns" and
 * "Tilted pairs"), that is without mu-map, without modules in front of others and without `deterministic`; compute and
 * cuda of the family direct; cuda of the family listmode. Operators with a stored matrix compute on the host. */
LR_API lr_place *lr_operator_place(const lr_operator *op);

/* Seconds of the last projection by the device's clock, without transfers to the host; 0 if not measured. The call
 * waits until this projection is finished, because lr_operator_forward and lr_operator_back may return before vectors
 * at the operator's place are complete. */
LR_API double lr_operator_device_seconds(const lr_operator *op);

/* Time of all passes of one kind in a projection. */
typedef struct lr_device_pass {
    const char *name; /* "scatter to LORs"; lives as long as the program */
    double seconds;
} lr_device_pass;
enum { LR_MOST_DEVICE_PASSES = 4 };

/* The kinds of passes of the last projection. passes: [LR_MOST_DEVICE_PASSES]. Returns how many were written. Only
 * backend raster measures passes; other backends return 0. */
LR_API int lr_operator_device_passes(const lr_operator *op, lr_device_pass *passes);

/* One row of the matrix: the probabilities of one voxel, or one point, for each LOR. lor is sorted and without repeats,
 * probability > 0. The library owns the arrays, which exist only during the call. */
typedef struct lr_row {
    int64_t row; /* voxel's row in the grid, or index of the point */
    int64_t count;
    const int64_t *lor;        /* [count] */
    const double *probability; /* [count] */
} lr_row;

/* Receives rows in ascending order, from the calling thread. A result other than LR_OK stops the computation. */
typedef struct lr_row_sink {
    lr_status (*take)(void *user, const lr_row *row);
    void *user;
} lr_row_sink;

/* Rows of voxels begin <= row < end, each the mean over its sample points. */
LR_API lr_status lr_operator_rows(lr_operator *op, int64_t begin, int64_t end, const lr_row_sink *sink);

/* A choice of rows and LORs. All fields zero: no rows, and all LORs. */
typedef struct lr_row_choice {
    int64_t begin, end;       /* voxels begin <= row < end; unused if `voxels` is set */
    const int64_t *voxels;    /* these voxels instead, ascending and without repeats */
    int64_t num_voxels;       /* length of the list */
    const lr_selection *part; /* only elements of these LORs; NULL = all LORs */
} lr_row_choice;

/* Computes rows like lr_operator_rows, for the chosen rows and LORs. Backend native computes chosen module pairs only.
 * Backends compute and raster compute the pairs from the first to the last chosen one, and often skip other pairs
 * between them. Backend cpu computes whole rows. errors: LR_USAGE for lists that are not ascending or out of range. */
LR_API lr_status lr_operator_rows_part(lr_operator *op, const lr_row_choice *choice, const lr_row_sink *sink);

/* Counts the elements of the chosen rows, so that memory for them can be allocated once. counts: [rows of the choice],
 * in its order. The counts are exact. Counting takes as long as computing the rows, unless the matrix is stored.
 * lr_operator_forecast_rows (lr/forecast.h) estimates the sum of the counts from a sample. */
LR_API lr_status lr_operator_count_rows(lr_operator *op, const lr_row_choice *choice, int64_t *counts);

/* The transposed matrix: one row for each selected LOR (NULL: all LORs), in ascending order, empty rows included. In
 * each lr_row, `row` is the LOR, `lor` are voxels (rows of the grid, sorted) and `probability` are the elements,
 * rounded to single precision. Each pass computes voxel rows for a group of LORs and transposes them in memory,
 * within max_memory_bytes of the operator. More memory means fewer passes. A pass costs as much as
 * lr_operator_rows_part for its module pairs. `factors` are applied.
 * errors: LR_USAGE for a selection that is not ascending or out of range, or a grid of 2^32 voxels or more;
 * LR_FAILED if memory is too small for a single LOR; LR_CANCELLED. */
LR_API lr_status lr_operator_lor_rows(lr_operator *op, const lr_selection *part, const lr_row_sink *sink);

/* Rows of single points anywhere (one sample each). points_mm: [num_points][3]. */
LR_API lr_status lr_operator_point_rows(lr_operator *op, const double (*points_mm)[3], int64_t num_points,
                                        const lr_row_sink *sink);

/* One pixel of a correspondence image: one line through the point and the primary module. */
typedef struct lr_pixel {
    float module; /* first module that the line hits on the other side of the point, or -1 */
    float r, s;   /* the crystal that the line hits; -1 if `module` is -1 */
    /* probability carried by the line; 0 in a gap, out of coincidence, or if `module` is the primary of the two
     * modules */
    float weight;
    float path_mm; /* distance between the two hits */
} lr_pixel;

/* The correspondence image of one point with one primary module, computed by the backend. pixels: [rays * nv][rays *
 * nu], row = axial; pixel (X, Y) is sample X mod rays, Y mod rays of crystal p = X / rays, q = Y / rays. A pixel has
 * module -1 if its line is stopped on its way to the primary, or if it hits the module on the other side of the point
 * in a gap between faces or from the back. For blocks with layers, only modules of the primary's layer are used.
 * Sampled mode only. */
LR_API lr_status lr_operator_picture(lr_operator *op, const double point_mm[3], int module, lr_pixel *pixels);

/* --- comparison of rows --- */

/* Differences between two computations of a matrix row, such as sampled and exact. Any thread may call these
 * functions. */

/* Result of lr_row_compare. Ratios to a reference that is zero are NaN. */
typedef struct lr_row_error {
    int64_t num_elements;   /* non-zeros of the reference */
    double sum;             /* sum of the reference */
    double largest;         /* largest element of the reference */
    double relative_l2;     /* |row - reference| / |reference|, over elements */
    double sum_error;       /* (sum of row - sum) / sum: the error of the sensitivity */
    double largest_error;   /* largest |row - reference| of an element / largest */
    int64_t num_missed;     /* non-zeros of the reference that are not in the row */
    double missed_weight;   /* fraction of `sum` in these elements */
    int64_t num_unexpected; /* non-zeros of the row that are not in the reference */
} lr_row_error;

/* Compares two rows of the same point or voxel; lr_row.row is ignored. */
LR_API lr_row_error lr_row_compare(const lr_row *row, const lr_row *reference);

/* The primary module of a LOR for a point: of the LOR's two modules, the one whose centre on the detection plane is
 * farther from the point (docs/method/correspondence.md, "Roles"). 0 <= lor < lors->count. */
LR_API int lr_lors_primary(const lr_lors *lors, int64_t lor, const double point_mm[3]);

#ifdef __cplusplus
}
#endif

#endif
