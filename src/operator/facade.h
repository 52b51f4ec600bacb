/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The inside of an operator, for the files of this folder and for tests that bring their own
 * backends. */
#ifndef LR_OPERATOR_FACADE_H
#define LR_OPERATOR_FACADE_H

#include "operator/backend.h"

#include <lr/grid.h>
#include <lr/log.h>
#include <lr/lors.h>
#include <lr/operator.h>
#include <lr/scanner.h>
#include <lr/vector.h>
#include <pthread.h>

/* --- factors per LOR --- */

/* Factors of the selections that were projected, stored at the place of the projections: attenuation is an integral
 * along each LOR, and a reconstruction needs the same factors in every iteration. */

struct lr_stored_factors;

/* Zero is an empty one. */
struct lr_factor_store {
    struct lr_stored_factors *list; /* owned [count] */
    int count;
    double bytes; /* of all factors and lists of LORs */
};

void lr_factor_store_finish(struct lr_factor_store *store);

/* --- resolution in image space --- */

/* A stationary Gaussian G between images and a backend, A G forward and G A^T back
 * (docs/method/common.md, "Resolution in image space"). */

struct lr_psf {
    bool is_on;
    int size[3];
    int reach[3];                            /* of each axis in voxels; 0 = it is left alone */
    double weights[3][LR_CONVOLUTION_REACH]; /* [axis][0 .. reach], which sum to 1 on both sides */
    lr_vector scratch[2];                    /* [num_voxels]; at the place of the images */
    const lr_log *log;
};

void lr_psf_finish(struct lr_psf *psf);

/* *blurred is G image: `image` itself without a resolution, else one of the scratch vectors, until the
 * next call. */
lr_status lr_psf_blur(struct lr_psf *psf, const lr_vector *image, const lr_vector **blurred);

/* image becomes G image. */
lr_status lr_psf_apply(struct lr_psf *psf, lr_vector *image);

/* --- the log and the progress that an operator hands to its backend --- */

/* Passes messages of all threads on, one after the other, and can hold back refusals while other backends are
 * tried. */

struct lr_log_filter {
    lr_log log; /* give out &filter.log; must not move in memory */
    lr_log to;
    pthread_mutex_t mutex;
    bool holds_refusals; /* errors of status LR_NO_DEVICE and LR_USAGE go to `reason` instead */
    bool holds_errors;   /* the first error of any status goes to `reason`, others nowhere, and so
                            does information, which goes with errors */
    char reason[1024];
};

/* The progress that an operator hands to its backend. Who counts rows as they come silences the
 * backend's own count meanwhile, so that a person sees one. */
struct lr_progress_filter {
    lr_progress progress;  /* give out &filter.progress; must not move in memory */
    const lr_progress *to; /* the caller's progress; NULL = none */
    bool is_silent;        /* reports of the backend repeat the last one, only to find out whether to stop */
    const char *what;      /* the last one of lr_progress_filter_report; NULL = none yet */
    double done, total;
    double from, share; /* share > 0: progress is scaled to this share of the whole, from `from` on */
};

/* Reports in place of the silent backend. LR_OK or LR_CANCELLED. what: lives as long as the filter. */
lr_status lr_progress_filter_report(struct lr_progress_filter *filter, const char *what, double done, double total);

struct lr_direct_family;
struct lr_listmode_family;

enum { LR_MAX_CHOICES = 8 };

/* A backend that can be asked for; "auto" chooses among them (lr_choose_backend). */
struct lr_backend_choice {
    const char *name;
    bool has_exact;       /* true if it computes LR_MODE_EXACT */
    bool has_penetration; /* true if it can let crystals stop photons along their depth */
    bool is_reference;    /* right rather than quick */
    lr_status (*create)(const struct lr_backend_params *params, struct lr_backend *backend);
};

struct lr_operator {
    lr_operator_info info;
    lr_grid grid;
    struct lr_log_filter log_filter;           /* params.log points into it */
    struct lr_progress_filter progress_filter; /* params.progress points into it */
    struct lr_backend_params params;           /* checked, defaults replaced */
    struct lr_backend backend;
    char passed_over[2048]; /* why backends before it were; "" = none was */
    lr_lor_source factors;  /* get == NULL: none */
    struct lr_factor_store factor_store;
    struct lr_direct_family *direct;     /* owned; NULL = another family */
    struct lr_listmode_family *listmode; /* owned; NULL = another family */
    struct lr_psf psf;
    float *sensitivity; /* [num_voxels] without the resolution; NULL until it is computed */
};

/* An operator with nothing but its filters; lr_operator_destroy frees it. log: copied; NULL drops all messages.
 * NULL if memory runs out, logged. */
struct lr_operator *lr_operator_alloc(const lr_log *log, const lr_progress *progress);

/* lr_operator_create over other backends than the built-in ones. choices: [num_choices], at most
 * LR_MAX_CHOICES; read during the call only. */
lr_operator *lr_operator_create_among(const lr_operator_params *params, const struct lr_backend_choice *choices,
                                      int num_choices);

/* --- choosing a backend --- */

struct lr_choices {
    const struct lr_backend_choice *list;
    int count;
};

/* Creates op->backend from op->params and settles op->params.mode.
 *
 * name: a backend's, which is taken or refused with the names of those that could; or some, parted
 * by commas, of which the first that can be created is taken, and op->passed_over says why those
 * before it cannot; or NULL or "auto": of those that have what is asked for and find a device, the
 * first in the order of the list of those on graphics processors or on the processor's vector units;
 * then of those on a renderer in software; then the reference. Exact mode comes before sampled, unless
 * that is asked for. Nothing is timed: a graphics processor was 10 to 100 times as fast as
 * `native` on every scanner tried (docs/performance.md), and `native` faster than a renderer in
 * software.
 * Where "auto" takes the processor though a graphics processor was found, which
 * cannot do this, a warning and op->passed_over say why.
 * errors: LR_USAGE for a name or a wish that no backend has; LR_NO_DEVICE; what the backend says. */
lr_status lr_choose_backend(struct lr_operator *op, const char *name, const struct lr_choices *choices);

/* --- applying factors: with them the matrix is diag(n) A --- */

static inline bool lr_has_factors(const struct lr_operator *op)
{
    return op->factors.get != NULL;
}

/* The factors of some LORs. values: [span->count]. errors: those of the source; LR_BAD_INPUT, with the LOR's name,
 * for a factor that is negative or not finite. */
lr_status lr_scaling_get(const struct lr_operator *op, const lr_lor_span *span, float *values);

/* Multiplies LOR values, which stand in the selection's order, by their factors; without factors leaves them alone.
 * Factors are stored for the next time if there is room (lr_factor_store). If not, they take a few MB on the host,
 * or on a device as much memory as the values. */
lr_status lr_scaling_apply(struct lr_operator *op, const lr_selection *selection, lr_vector *values);

/* The same without storing factors, for a single call. */
lr_status lr_scaling_apply_once(const struct lr_operator *op, const lr_selection *selection, lr_vector *values);

/* --- numbers of vectors on the host, in either precision --- */

static inline double lr_number_get(const lr_vector *vector, int64_t at)
{
    return vector->precision == LR_FLOAT64 ? ((const double *)vector->values)[at]
                                           : (double)((const float *)vector->values)[at];
}

static inline void lr_number_put(const lr_vector *vector, int64_t at, double value)
{
    if (vector->precision == LR_FLOAT64)
        ((double *)vector->values)[at] = value;
    else
        ((float *)vector->values)[at] = (float)value;
}

static inline lr_precision lr_precision_of(const struct lr_operator *op)
{
    return op->backend.fns->computes_in_double ? LR_FLOAT64 : LR_FLOAT32;
}

/* Zeros on the host, in the backend's precision.
 * errors: LR_FAILED, logged. */
lr_status lr_make_numbers(const struct lr_operator *op, const char *name, int64_t count, lr_vector *vector);

/* Bytes that a projection needs in addition to the caller's arrays. */
double lr_project_bytes(const struct lr_operator *op);

/* errors: LR_FAILED, logged, if a large grid needs more memory than is free: the system would end the program
 * during the projection. */
lr_status lr_project_check_room(const struct lr_operator *op);

/* --- settings: a caller's parameters become those of a backend --- */

/* --- the grid against the scanner --- */

/* Refuses a grid that misses the scanner, and warns once of voxels beyond the detectors, and of a
 * grid so small that its unit must be another.
 *
 * A voxel lies beyond the detectors when one plane has all its sample points on one side and all
 * modules (their rectangles on the detection plane) on the other: no line between two modules can
 * then pass a sample point, and A = 0. The planes tried are those across the three axes and across
 * the axes and normals of every module, so for a ring the voxels counted are those outside its
 * polygon or its length; some in the wedges between two neighbouring panels are not counted.
 *
 * samples: points per voxel along each axis. The work grows with ny nz times the number of
 * distinct directions, not with the number of voxels.
 * errors: LR_BAD_INPUT when every voxel lies beyond; LR_FAILED if memory runs out. */
lr_status lr_coverage_check(const lr_grid *grid, const int samples[3], const lr_scanner *scanner, const lr_log *log);

/* Warns, with the place, of a sample point of the grid, or of single points (points_mm, then grid is NULL), that
 * lies so near a module's detection plane, on either side of its rectangle, that single precision on a device is
 * not enough: within 0.3 mm elements of compute are up to 1e-3 off, and within micrometres most are lost. */
void lr_coverage_warn_near(const lr_grid *grid, const int samples[3], const lr_scanner *scanner, const lr_log *log);
void lr_coverage_warn_near_points(const double (*points_mm)[3], int64_t num_points, const lr_scanner *scanner,
                                  const lr_log *log);

/* Checks everything that does not depend on the backend and replaces every default.
 * grid: receives the copy of params->grid that settings->grid then points to; must live as long.
 * log: receives all messages, here and later (params->log is not used).
 * errors: LR_USAGE, LR_BAD_INPUT (grid, mu), LR_FAILED. */
lr_status lr_settings_complete(const lr_operator_params *params, const lr_log *log, lr_grid *grid,
                               struct lr_backend_params *settings);

#endif
