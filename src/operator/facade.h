/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The members of an operator, for the files of this folder and for tests that have their own backends. */
#pragma once

#include "device/vector.h"
#include "direct/backend.h"
#include "listmode/backend.h"
#include "listmode/solid_angle.h"
#include "operator/backend.h"
#include "plugin/plugin.h"

#include <lr/grid.h>
#include <lr/log.h>
#include <lr/lors.h>
#include <lr/operator.h>
#include <lr/scanner.h>
#include <lr/vector.h>
#include <pthread.h>

/* --- factors per LOR --- */

/* Stored factors of earlier selections, at the place of the projections. A reconstruction needs the same factors in
 * every iteration. Computing them takes long, because attenuation is an integral along each LOR. */

struct lr_stored_factors;

/* A store that is all zero is empty. */
struct lr_factor_store {
    struct lr_stored_factors *list; /* owned [count] */
    int count;
    double bytes; /* memory of all factors and lists of LORs */
};

void lr_factor_store_finish(struct lr_factor_store *store);

/* --- resolution in image space --- */

/* A stationary Gaussian G between images and a backend. The forward projection is A G, the back-projection G A^T
 * (docs/method/common.md, "Resolution in image space"). */

struct lr_psf {
    bool is_on;
    int size[3];
    int reach[3];                            /* half-width along each axis, voxels; 0 = no blur along the axis */
    double weights[3][LR_CONVOLUTION_REACH]; /* [axis][0 .. reach]; the weights of both sides sum to 1 */
    lr_vector scratch[2];                    /* [num_voxels]; at the place of the images */
    const lr_log *log;
};

void lr_psf_finish(struct lr_psf *psf);

/* Makes *blurred = G image. Without a resolution, *blurred is `image` itself. Otherwise *blurred is a scratch vector
 * that is valid until the next call. */
lr_status lr_psf_blur(struct lr_psf *psf, const lr_vector *image, const lr_vector **blurred);

/* Replaces an image by G image. */
lr_status lr_psf_apply(struct lr_psf *psf, lr_vector *image);

/* --- the log and the progress that an operator hands to its backend --- */

/* A log that passes on the messages of all threads, one at a time. While several backends are tried, errors that say
 * why a backend cannot be used are kept instead of passed on. */

struct lr_log_filter {
    lr_log log; /* backends get &filter.log; the filter must not move in memory */
    lr_log to;
    pthread_mutex_t mutex;
    bool holds_refusals; /* errors of status LR_NO_DEVICE and LR_USAGE go to `reason`, not to the caller */
    bool holds_errors;   /* the first error goes to `reason`; other errors and information are dropped */
    char reason[1024];
};

/* The progress that an operator gives to its backend. If the operator counts rows itself, the reports of the backend
 * are not passed on, so that the user sees one count only. */
struct lr_progress_filter {
    lr_progress progress; /* backends get &filter.progress; the filter must not move in memory */
    lr_progress to;       /* the caller's progress; report NULL = none */
    bool is_silent;       /* if true, a report of the backend only repeats the operator's last report, to find out if
                           * the user wants to stop */
    const char *what;     /* the last text passed to lr_progress_filter_report; NULL = none yet */
    double done, total;
    double from, share; /* if share > 0, progress 0 .. 1 of the backend becomes from .. from + share */
};

/* Reports progress while the backend's reports are silenced. Returns LR_OK or LR_CANCELLED. what: must live as long as
 * the filter. */
lr_status lr_progress_filter_report(struct lr_progress_filter *filter, const char *what, double done, double total);

struct lr_direct_family;
struct lr_listmode_family;

enum lr_family { LR_CORRESPONDENCE = 0, LR_DIRECT, LR_LISTMODE };

/* A backend of a family. The caller gives its name, or "auto" (lr_choose_backend). */
struct lr_backend_choice {
    enum lr_family family;
    const char *name;
    lr_place_kind place;  /* place where the backend computes */
    bool needs_hardware;  /* "auto" takes this backend only if OpenGL has a graphics processor; a software renderer is
                             slower than loops on the processor */
    bool has_exact;       /* true if the backend computes LR_MODE_EXACT */
    bool has_penetration; /* true if the backend can compute how deep photons penetrate crystals */
    bool has_hiding;      /* listmode: true if the backend computes exact elements even if a module may hide another */
    bool is_reference;    /* true if the backend is a reference, made to be correct rather than fast */
    union {               /* the constructor of each family */
        lr_backend_create *create;
        lr_direct_backend_create *create_direct;
        lr_listmode_backend_create *create_listmode;
    };
    lr_listmode_events_arranger *arrange; /* listmode: arranges events on the device; NULL = the host arranges them */
};

struct lr_operator {
    lr_operator_info info;
    lr_grid grid;
    struct lr_log_filter log_filter;           /* params.log is &log_filter.log */
    struct lr_progress_filter progress_filter; /* params.progress is &progress_filter.progress */
    struct lr_backend_params params;           /* checked, with defaults replaced */
    struct lr_backend backend;
    char passed_over[2048]; /* reasons why earlier backends were not taken; "" = no other backend was tried */
    lr_lor_source factors;  /* get NULL = there are no factors */
    struct lr_factor_store factor_store;
    lr_vector scaled;                    /* LOR values times factors, kept for the next back-projection */
    struct lr_direct_family *direct;     /* owned; NULL for other families */
    struct lr_listmode_family *listmode; /* owned; NULL for other families */
    struct lr_psf psf;
    lr_vector sensitivity; /* [num_voxels] sensitivity of all LORs, without the resolution in image space; empty until
                            * it is computed */
};

/* Allocates an operator that has only its filters. lr_operator_destroy frees it. log and progress are copied; NULL =
 * messages or reports are dropped. Returns NULL, and logs an error, if memory runs out. */
struct lr_operator *lr_operator_alloc(const lr_log *log, const lr_progress *progress);

/* Sets op->info, except for the members that only some families have. begin_s: when the creation began, by
 * lr_clock_seconds. */
void lr_operator_describe(struct lr_operator *op, double begin_s);

/* Creates an operator like lr_operator_create, but with these backends instead of the built-in ones. choices:
 * [num_choices], read only during the call. */
lr_operator *lr_operator_create_among(const lr_operator_params *params, const struct lr_backend_choice *choices,
                                      int num_choices);

/* --- choosing a backend --- */

struct lr_choices {
    const struct lr_backend_choice *list; /* [count]; backends of other families are skipped */
    int count;
    enum lr_family family;
    bool needs_hiding;    /* true = only backends with has_hiding can be taken */
    bool stops_at_errors; /* after an error, the next backend that the caller has named is tried only if a device was
                           * missing */
    /* Creates the backend of a choice, with the log op->log_filter.log. `user` is passed to `open`. If `open` is NULL,
     * choice->create is called with op->params. */
    lr_status (*open)(struct lr_operator *op, const void *user, const struct lr_backend_choice *choice,
                      struct lr_backend *backend);
    const void *user;
};

/* Returns the list of all backends, for a choice among those of one family. */
struct lr_choices lr_all_choices(enum lr_family family);

/* Returns true if the OpenGL device exists and is a graphics processor. If not, the log says why hardware that EGL
 * lists cannot be used. */
bool lr_gl_is_hardware(int device, const lr_log *log);

/* Creates op->backend from op->params, and sets op->params.mode.
 *
 * name is one of:
 * - the name of a backend. If it cannot be used, the error names the backends that can be used.
 * - several names with commas between them. The first backend that can be created is taken, and op->passed_over says
 *   why the earlier ones cannot be used.
 * - NULL or "auto". Backends without a required property are not tried. Backends on graphics processors or on the
 *   processor's vector units are tried first, in the order of the list; then the reference, and then a backend on a
 *   software renderer. Exact mode is tried before sampled mode, unless the caller asks for sampled mode.
 *
 * The choice uses no timing. On all scanners that we tried, a graphics processor was 10 to 100 times as fast as
 * `native` (docs/performance.md), and `native` and the reference were faster than a software renderer. If "auto" takes the processor
 * because a graphics processor cannot do the work, a warning and op->passed_over say why.
 *
 * errors: LR_USAGE for an unknown name, or for properties that no backend has; LR_NO_DEVICE; errors of the backend. */
lr_status lr_choose_backend(struct lr_operator *op, const char *name, const struct lr_choices *choices);

/* --- applying factors n: with factors, the matrix is diag(n) A --- */

static inline bool lr_has_factors(const struct lr_operator *op)
{
    return op->factors.get != NULL;
}

/* Gets the factors of the LORs in a span. values: [span->count]. errors: LR_BAD_INPUT, with the LOR's name, for a
 * factor that is negative or not finite; errors of the source. */
lr_status lr_scaling_get(const struct lr_operator *op, const lr_lor_span *span, float *values);

/* Sets `scaled` to the product of LOR values and their factors. If there are no factors, changes nothing. Both vectors
 * are in the selection's order and at one place, in one precision; they may be the same vector. If memory has room,
 * the factors are stored for the next call (lr_factor_store). Otherwise the factors need temporary memory: a few MB on
 * the host, or on a device as much as the values. */
lr_status lr_scaling_apply(struct lr_operator *op, const lr_selection *selection, const lr_vector *values,
                           lr_vector *scaled);

/* Does the same as lr_scaling_apply, but stores no factors. */
lr_status lr_scaling_apply_once(const struct lr_operator *op, const lr_selection *selection, const lr_vector *values,
                                lr_vector *scaled);

static inline lr_precision lr_precision_of(const struct lr_operator *op)
{
    return op->backend.fns->computes_in_double ? LR_FLOAT64 : LR_FLOAT32;
}

/* Makes a vector of zeros on the host, in the backend's precision. errors: LR_FAILED, logged. */
lr_status lr_make_numbers(const struct lr_operator *op, const char *name, int64_t count, lr_vector *vector);

/* Makes a vector of zeros for op->sensitivity, in single precision, at the place where the operator computes. A
 * reconstruction at this place then need not copy the sensitivity. errors: LR_FAILED, logged. */
lr_status lr_make_sensitivity(const struct lr_operator *op, lr_vector *vector);

/* Checks that a projection has enough memory. errors: LR_FAILED, logged, if a large grid needs more memory than is
 * free; otherwise the system would kill the program during the projection. */
lr_status lr_project_check_room(const struct lr_operator *op);

/* --- the grid against the scanner --- */

/* Refuses a grid that misses the scanner. Warns once, by lr_grid_warn_slip, or else about voxels beyond the detectors.
 *
 * A voxel is beyond the detectors if a plane separates all its sample points from all modules (their rectangles on the
 * detection plane). No line between two modules then passes a sample point, so that A = 0. The planes that are tried
 * are perpendicular to the three axes, or to the axes and normals of a module. For a ring of panels, these planes find
 * all voxels outside the ring's polygon or length, except some in the wedges between neighbouring panels.
 *
 * samples: points per voxel along each axis. The work grows with ny nz times the number of different directions, not
 * with the number of voxels.
 *
 * values: [voxels of the grid] becomes 0 in voxels beyond the detectors; NULL = none.
 *
 * errors: LR_BAD_INPUT if every voxel is beyond the detectors; LR_FAILED if memory runs out. */
lr_status lr_coverage_check(const lr_grid *grid, const int samples[3], const lr_scanner *scanner, float *values,
                            const lr_log *log);

/* Warns about a sample point that is too near a module's detection plane for the single precision of a device, and
 * gives its position. Only points in front of or behind the module's rectangle count. Within 0.3 mm of the plane,
 * elements that backend `compute` finds are wrong by up to 1e-3. Within a few micrometres, most elements are lost. */
void lr_coverage_warn_near(const lr_grid *grid, const int samples[3], const lr_scanner *scanner, const lr_log *log);
void lr_coverage_warn_near_points(const double (*points_mm)[3], int64_t num_points, const lr_scanner *scanner,
                                  const lr_log *log);

/* Checks all settings that do not depend on the backend, and fills in all defaults. grid: becomes a copy of
 * params->grid, to which settings->grid points; *grid must live as long as settings. log: for all messages of this call
 * and of later calls, instead of params->log. errors: LR_USAGE, LR_BAD_INPUT (grid, mu), LR_FAILED. */
lr_status lr_settings_complete(const lr_operator_params *params, const lr_log *log, lr_grid *grid,
                               struct lr_backend_params *settings);

/* --- the parts of an operator that only one family has --- */

/* The members of an operator of the family direct. */
struct lr_direct_family {
    lr_direct_info info;
    lr_view *views;   /* [num_views] */
    int64_t *offsets; /* [num_views + 1], of the layout */
    lr_lors layout;   /* LORs without a scanner, where a pair of modules stands for a view */
    lr_direct_kernel kernel;
    lr_vector timed; /* the image that lr_direct_time projects; all zero until the first call */
};

/* --- family listmode --- */

struct lr_listmode_family {
    lr_listmode_info info;
    struct lr_listmode_model model;
    struct lr_listmode_model second; /* model of the second grid, if the image consists of blobs */
    lr_grid grid;                    /* the caller's voxels, even if the image consists of blobs */
    struct lr_listmode_events events;
    const struct lr_backend_choice *choice;  /* the backend, which also projects the lines of the sensitivity */
    lr_place *place;                         /* owned: the backend's place; NULL = the host */
    const lr_lors *lors;                     /* owned by the caller; NULL = events give the ends of their lines */
    lr_lor_source factors;                   /* factors of LORs; get NULL = all are 1 */
    struct lr_listmode_faces faces;          /* for the solid angles that multiply all elements */
    float *event_factors;                    /* owned: [count] factors of events, with solid angles; NULL = all are 1 */
    int64_t wanted_lines;                    /* number of lines for the sensitivity */
    bool lines_are_usual;                    /* true if wanted_lines is the default, because the caller gave no
                                                number */
    int sensitivity_part, sensitivity_parts; /* the part of the sensitivity's lines to compute; the number of parts */
    uint64_t seed;
    struct lr_operator *sensitivity_of; /* an operator of the caller whose sensitivity is copied; NULL = none */
};

/* Opens a backend of the family. If the image consists of blobs, the backend has a model for each of the two grids, and
 * params->model is not used. */
lr_status lr_listmode_open(const struct lr_listmode_family *family, const struct lr_listmode_backend_params *params,
                           struct lr_backend *backend);

/* Arranges events that have been opened. The backend's device does this if it can, otherwise the host. */
lr_status lr_listmode_arrange(const struct lr_listmode_family *family, struct lr_listmode_events *events,
                              const lr_listmode_params *params,
                              const struct lr_listmode_backend_params *backend_params);

/* Computes the sensitivity of all LORs from which events come. The standard errors of the mean voxel and of the worst
 * voxel are written into the info and the log. values: [num_voxels]. */
lr_status lr_listmode_sensitivity(struct lr_operator *op, float *values);

/* Calls lr_coverage_check for the operator's grid, unless the scanner is not known. A voxel is beyond the detectors if
 * no line between modules meets it, or with exact elements, none of its sample points. */
lr_status lr_listmode_cover(const struct lr_operator *op, float *values, const lr_log *log);
