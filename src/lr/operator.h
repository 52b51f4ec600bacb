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

/* The pair (A, A^T) between an image and a data vector: the one abstraction that reconstruction,
 * export and pictures meet at.
 *
 * Family `correspondence`: data is one value per LOR, in the order of lr_lors;
 * A(l, v) = probability that a photon pair emitted uniformly in voxel v is detected by LOR l
 * (Toth, Magdics, Szirmay-Kalos: Fast System Matrix Generation on a GPU Cluster, equation 4).
 * The equations, in the order the code computes them: docs/method/README.md. */
typedef struct lr_operator lr_operator;

typedef enum lr_mode {
    LR_MODE_AUTO = 0, /* exact where the backend asked for has it and without penetration (of
                         layers, too), else sampled */
    LR_MODE_SAMPLED,  /* rays x rays lines over each primary crystal's face */
    LR_MODE_EXACT     /* solid angle of the clipped overlap */
} lr_mode;

typedef enum lr_store {
    LR_STORE_AUTO = 0, /* keep the matrix where it pays (`projections` below) and is estimated to
                          fit max_memory_bytes; a kept element is a float32, good to 6e-8 of
                          itself */
    LR_STORE_YES,      /* keep it; fail when it does not fit */
    LR_STORE_NO        /* compute it anew in every projection */
} lr_store;

/* Zero fields are defaults. Pointers need to live as long as the operator, except log strings. */
typedef struct lr_operator_params {
    const lr_lors *lors; /* required; names the scanner */
    const lr_grid *grid; /* required; copied */
    const char *backend; /* "cpu", "raster", "compute", "native"; NULL or "auto": compute on a graphics
                            processor, else native, else compute on a renderer in software, else
                            cpu: the first that has what is asked for here and finds a device; a
                            list such as "raster,cpu": the first of it that can be created here, and
                            draw pictures if it draws any */
    lr_mode mode;
    int rays;                     /* R; 0 = 4. Unused by exact mode */
    int samples[3];               /* points per voxel and axis; 0 = as many as its mean needs (see
                                  lr_operator_default_samples) */
    const lr_image *mu;           /* attenuation in 1/mm; NULL = none */
    int mu_steps;                 /* K samples along a line; 0 = steps of at most one mu voxel */
    const lr_lor_source *factors; /* multiplies the row of each LOR: efficiencies, attenuation
                                     factors; NULL = 1. Copied; its user outlives the operator */
    bool deterministic;           /* same bits in every run, also where compute would add in any order */
    bool penetration;             /* crystals stop photons along their depth, not on the detection plane; it is
                           always so where a scanner has layers, unless: */
    bool layers_alone;            /* each layer counts as if it were the only one, on its detection plane:
                           correspondence images show such, and a sum over layers exceeds what is
                           emitted. Penetration: sampled mode, no raster, 1/mm as the scanner has it,
                           else LYSO's, with a warning */
    lr_store store;
    double projections;              /* how often all LORs are going to be projected, forward or back, as far as
                           is known. By it LR_STORE_AUTO keeps the matrix where making it and projecting
                           from it is usually quicker than projecting anew: on processors from 8 on, of cpu
                           from 2 on, on a renderer in software never. 0 = not known: it is kept where it
                           fits; so it is by `deterministic`. On a graphics processor, and of raster,
                           LR_STORE_AUTO never keeps it */
    int64_t max_memory_bytes;        /* host memory for a stored matrix, that of buffers on the device,
                                  and of what a reconstruction keeps there (lr/recon.h); 0 = half of
                                  what the machine has, what the device reports, and half of that. What a
                                  call works with comes on top: images, the caller's data in another
                                  precision or times its factors, and up to 128 MiB (cpu with factors:
                                  512 MiB) of sums and windows */
    int threads;                     /* 0 = all processors */
    int device;                      /* index in lr_device_list; 0 = the first */
    const lr_shared_context *shared; /* compute shares objects with this context and is on its
                                        device; NULL = none */
    const lr_log *log;
    const lr_progress *progress;
} lr_operator_params;

/* Facts about an operator. Strings live as long as the operator. */
typedef struct lr_operator_info {
    const char *backend;     /* "cpu", "raster", "compute" or "native" */
    const char *device;      /* "CPU, 2 threads"; "llvmpipe (LLVM 15.0.6, 256 bits)" */
    bool is_gpu;             /* the device is a graphics processor */
    const char *passed_over; /* of a list of backends: why those before `backend` could not be
                                created, which is logged nowhere else, such as "raster cannot run here:
                                no OpenGL 4.5 device can be used"; of auto: why not a graphics
                                processor that is there, after a warning; NULL = neither */
    lr_mode mode;            /* sampled or exact */
    bool penetration;        /* crystals stop photons along their depth */
    bool stored;             /* whether the matrix is kept */
    int64_t num_voxels, num_lors;
    bool of_events;       /* family listmode: a value for each of num_lors events, and a sensitivity
                             of all LORs */
    int64_t num_elements; /* non-zeros of the stored matrix; 0 when not stored */
    int64_t memory_bytes; /* of the stored matrix */
    int rays;
    int samples[3];
    int mu_steps;
    int threads;              /* that it uses at most */
    int64_t max_memory_bytes; /* as it was asked for; 0 = nothing was */
    double build_seconds;     /* creation, the stored matrix included */
    const lr_lors *lors;      /* the caller's, as given in the params */
    const lr_grid *grid;      /* of images; the operator's copy */
} lr_operator_info;

/* Builds an operator; with store, generates the matrix.
 * errors: NULL; the reason has gone to the log, with its status. */
LR_API lr_operator *lr_operator_create(const lr_operator_params *params);

/* Destroying NULL is allowed. */
LR_API void lr_operator_destroy(lr_operator *op);

/* Facts about the operator; they live as long as it does. */
LR_API const lr_operator_info *lr_operator_get_info(const lr_operator *op);

/* Starts building the programs of projections forward and back and of a sensitivity, side by side: the
 * first time on a machine a graphics driver compiles each for up to some seconds. Without it each is
 * built when it is first run. of_lists: projections are of single LORs (lr_selection.lors).
 * errors: LR_FAILED for a program that the driver refuses as soon as it sees it. */
LR_API lr_status lr_operator_prepare(lr_operator *op, bool of_lists);

/* Points per axis that `samples` = 0 stands for, so that a voxel's sensitivity is that of its mean:
 * within 0.2 % rms over a grid, 2 % for any voxel (docs/method/correspondence.md, "Sample points").
 * The fewest even number whose spacing is at most 0.85 of the scanner's smallest transaxial pitch
 * (x, y) or its smallest axial one (z), and 1/60 of its radius or half of that pitch; 1 where no
 * voxel's edge exceeds 1/120 of the radius and no column of voxels stands on the axis; along z more
 * where crystal rings line up so that slices would be more than 1.2 % off on the axis, 4.5 % by a single point. */
LR_API void lr_operator_default_samples(const lr_scanner *scanner, const lr_grid *grid, int samples[3]);

/* The values of an image, and of LOR data that is not sparse or of the LORs that sparse data lists, as
 * vectors on the host. */
static inline lr_vector lr_image_vector(const lr_image *image)
{
    return lr_vector_of_floats(image->values, lr_grid_num_voxels(&image->grid));
}

static inline lr_vector lr_lor_data_vector(const lr_lor_data *data)
{
    return lr_vector_of_floats(data->values, data->count);
}

/* values = A image. image: [num_voxels]; values: [num_lors], or of `part` [lr_selection_count], in the
 * selection's order; part NULL: all LORs. Vectors may be at any place and in either precision, of
 * their own each; they are overwritten where they are outputs. Where they are at the operator's
 * place (lr_operator_place) and in the precision that it computes in (double by backend cpu, else
 * float), nothing is copied or converted.
 *
 * Of a part, what is not selected is neither computed nor held (native, stored matrices, and compute
 * where it goes by columns or by pairs of modules: docs/method/correspondence.md, "Columns" and
 * "Tilted pairs"), computed but not held (cpu), or computed, held and picked from all (compute
 * elsewhere, and single LORs by raster). By pairs of modules, single LORs are picked from all LORs of their
 * pairs. An
 * empty part gives nothing, or an image of 0.
 *
 * One call at a time per operator. With `factors` n the matrix is diag(n) A in all that follows,
 * pictures excepted. Same input, same bits, whatever the number of threads; only the compute backend
 * adds in any order here, and repeats to 2e-6 of each value, unless the matrix is stored,
 * `deterministic` is set, or all modules share an axial direction along an axis of the grid
 * (docs/method/correspondence.md, "Deterministic sums").
 * errors: LR_BAD_INPUT for a value that is not finite, or a factor that is negative or not finite;
 * LR_USAGE for vectors of other sizes, or a selection that is not ascending or leaves the range;
 * LR_FAILED if memory runs out, also where the grid needs more than nine tenths of what is free; LR_NO_DEVICE when the
 * device is lost; LR_CANCELLED. */
LR_API lr_status lr_operator_forward(lr_operator *op, const lr_selection *part, const lr_vector *image,
                                     lr_vector *values);

/* image = A^T values. */
LR_API lr_status lr_operator_back(lr_operator *op, const lr_selection *part, const lr_vector *values, lr_vector *image);

/* image = A^T 1, of all LORs computed once and kept; of some, what an OSEM subset divides by. LORs
 * out of coincidence have A = 0 and add nothing. Where parts are picked from all LORs it needs an array of these. */
LR_API lr_status lr_operator_sensitivity(lr_operator *op, const lr_selection *part, lr_vector *image);

/* Resolution in image space: from now on A stands for A G and A^T for G A^T, of every family, where G
 * is a stationary Gaussian of these FWHMs (0 = none along that axis), its integral over voxels, cut at
 * four standard deviations and made to sum to 1; what it moves out of the grid is lost, and G is its own
 * transpose. Images are blurred where they are. Sensitivities follow. Elements (rows, the matrix) are
 * refused then, and whole updates of a device are not done. All 0 takes it away. Source: Reader et
 * al., EM Algorithm System Modeling by Image-Space Techniques for PET Reconstruction, IEEE Trans. Nucl.
 * Sci. 50 (2003).
 * errors: LR_USAGE for widths that are negative, not finite or that reach over more than 127 voxels. */
LR_API lr_status lr_operator_set_psf(lr_operator *op, const double fwhm_mm[3]);

/* The place where the operator computes: vectors that are made there need not be copied. It lives as long as the
 * operator, or another holder of it; NULL = the host. Backend raster has a place of its own, and compute where it
 * goes by columns or by pairs of modules (docs/method/correspondence.md, "Columns" and "Tilted pairs"): no mu-map,
 * no module in front of another, not with `deterministic`. Neither with a stored matrix. So have compute and cuda
 * of the family direct. */
LR_API lr_place *lr_operator_place(const lr_operator *op);

/* Seconds that the device itself worked on the last projection, without transfers to the host;
 * 0 where that is not measured. It waits for the projection: what is at the operator's place may be in
 * progress when lr_operator_forward and lr_operator_back return. */
LR_API double lr_operator_device_seconds(const lr_operator *op);

/* Seconds of one kind of pass. */
typedef struct lr_device_pass {
    const char *name; /* "scatter to LORs"; lives as long as the program */
    double seconds;
} lr_device_pass;
enum { LR_MOST_DEVICE_PASSES = 4 };

/* The kinds of passes of the last projection. passes: [LR_MOST_DEVICE_PASSES]. Returns how many were written; 0
 * except for backend raster, which alone measures them. */
LR_API int lr_operator_device_passes(const lr_operator *op, lr_device_pass *passes);

/* One row of the matrix: what one voxel, or one point, gives to each LOR.
 * lor is sorted and without repeats, probability > 0. The arrays are the library's and live
 * during the call. */
typedef struct lr_row {
    int64_t row; /* voxel's row in the grid, or index of the point */
    int64_t count;
    const int64_t *lor;        /* [count] */
    const double *probability; /* [count] */
} lr_row;

/* Receives rows in ascending order, from the calling thread. Anything but LR_OK stops. */
typedef struct lr_row_sink {
    lr_status (*take)(void *user, const lr_row *row);
    void *user;
} lr_row_sink;

/* Rows of voxels begin <= row < end, each the mean over its sample points. */
LR_API lr_status lr_operator_rows(lr_operator *op, int64_t begin, int64_t end, const lr_row_sink *sink);

/* Some rows, and of each the elements of some LORs. Zero fields: no row, every LOR. */
typedef struct lr_row_choice {
    int64_t begin, end;       /* voxels begin <= row < end; or, where voxels is set, */
    const int64_t *voxels;    /* these, ascending and without repeats */
    int64_t num_voxels;       /* of that list */
    const lr_selection *part; /* elements of other LORs are left out; NULL = none is */
} lr_row_choice;

/* The same for these rows and LORs. Where whole module pairs are left out, native does not compute
 * them, compute and raster leave out what lies before and behind those that are wanted, and often
 * what is between; cpu computes whole rows.
 * errors: LR_USAGE for lists that are not ascending or leave the range. */
LR_API lr_status lr_operator_rows_part(lr_operator *op, const lr_row_choice *choice, const lr_row_sink *sink);

/* The matrix by its other side: a row for each selected LOR (NULL: for all), in ascending order,
 * those without elements too. In each lr_row, `row` is the LOR, `lor` are voxels (rows of the grid,
 * sorted) and `probability` are the elements, which have passed single precision.
 * Voxel rows are computed for some LORs at a time and turned over in memory, within
 * max_memory_bytes of the operator: the more of it, the fewer times. A pass costs what rows of
 * the module pairs of the pass do (above). `factors` count.
 * errors: LR_USAGE for a selection that is not ascending or leaves the range, or a grid of 2^32
 * voxels or more; LR_FAILED when memory does not do for a single LOR; LR_CANCELLED. */
LR_API lr_status lr_operator_lor_rows(lr_operator *op, const lr_selection *part, const lr_row_sink *sink);

/* Rows of single points anywhere (one sample each). points_mm: [num_points][3]. */
LR_API lr_status lr_operator_point_rows(lr_operator *op, const double (*points_mm)[3], int64_t num_points,
                                        const lr_row_sink *sink);

/* One pixel of a correspondence image: one line through the point and the primary module. */
typedef struct lr_pixel {
    float module;  /* that the line meets first on the other side of the point, or -1 */
    float r, s;    /* crystal on it; -1 where module is -1 */
    float weight;  /* probability carried by the line; 0 in a gap, out of coincidence, and where
                      the other module is the primary of the two */
    float path_mm; /* distance between the two hits */
} lr_pixel;

/* The correspondence image of one point with one primary module, as the backend computes it.
 * pixels: [rays * nv][rays * nu], row = axial; pixel (X, Y) is sample X mod rays, Y mod rays of
 * crystal p = X / rays, q = Y / rays. A pixel whose line is stopped on its way to the primary, or
 * meets a module in a gap between faces or from behind, has module -1. Of blocks with layers, modules
 * of the primary's own layer count. Sampled mode only. */
LR_API lr_status lr_operator_picture(lr_operator *op, const double point_mm[3], int module, lr_pixel *pixels);

/* --- comparison of rows --- */

/* Differences between two computations of a matrix row, such as sampled and exact. Plain functions of their
 * arguments; any thread. */

/* Result of lr_row_compare. Ratios to a reference that is zero are NaN. */
typedef struct lr_row_error {
    int64_t num_elements;   /* non-zeros of the reference */
    double sum;             /* of the reference */
    double largest;         /* element of the reference */
    double relative_l2;     /* |row - reference| / |reference|, over elements */
    double sum_error;       /* (sum of row - sum) / sum: the error of the sensitivity */
    double largest_error;   /* largest |row - reference| of an element / largest */
    int64_t num_missed;     /* non-zeros of the reference that the row lacks */
    double missed_weight;   /* their part of `sum` */
    int64_t num_unexpected; /* non-zeros of the row that the reference lacks */
} lr_row_error;

/* Compares two rows of the same point or voxel; lr_row.row is ignored. */
LR_API lr_row_error lr_row_compare(const lr_row *row, const lr_row *reference);

/* The primary of a LOR's two modules for a point: the one whose centre on the detection plane is farther
 * (docs/method/correspondence.md, "Roles"). 0 <= lor < lors->count. */
LR_API int lr_lors_primary(const lr_lors *lors, int64_t lor, const double point_mm[3]);

#ifdef __cplusplus
}
#endif

#endif
