/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The members of an operator, for the files of this folder and for tests that bring their own backends. */
#ifndef LR_OPERATOR_FACADE_H
#define LR_OPERATOR_FACADE_H

#include "device/vector.h"
#include "direct/backend.h"
#include "listmode/backend.h"
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

/* Stored factors of the selections that were projected, at the place of the projections. A reconstruction needs the
 * same factors in every iteration, and computing them takes long: attenuation is an integral along each LOR. */

struct lr_stored_factors;

/* A store that is all zero is empty. */
struct lr_factor_store {
    struct lr_stored_factors *list; /* owned [count] */
    int count;
    double bytes; /* memory of all factors and lists of LORs */
};

void lr_factor_store_finish(struct lr_factor_store *store);

/* --- resolution in image space --- */

/* A stationary Gaussian G between images and a backend. A forward projection is A G, a back-projection G A^T
 * (docs/method/common.md, "Resolution in image space"). */

struct lr_psf {
    bool is_on;
    int size[3];
    int reach[3];                            /* half-width along each axis, voxels; 0 = no blur along the axis */
    double weights[3][LR_CONVOLUTION_REACH]; /* [axis][0 .. reach]; their sum over both sides is 1 */
    lr_vector scratch[2];                    /* [num_voxels]; at the place of the images */
    const lr_log *log;
};

void lr_psf_finish(struct lr_psf *psf);

/* Makes *blurred = G image. Without a resolution, *blurred is `image` itself. Otherwise it is a scratch vector, which
 * is valid until the next call. */
lr_status lr_psf_blur(struct lr_psf *psf, const lr_vector *image, const lr_vector **blurred);

/* Replaces an image by G image. */
lr_status lr_psf_apply(struct lr_psf *psf, lr_vector *image);

/* --- the log and the progress that an operator hands to its backend --- */

/* A log that passes on the messages of all threads, one at a time. While several backends are tried, it can hold back
 * the reasons why a backend cannot be used. */

struct lr_log_filter {
    lr_log log; /* give out &filter.log; the filter must not move in memory */
    lr_log to;
    pthread_mutex_t mutex;
    bool holds_refusals; /* errors of status LR_NO_DEVICE and LR_USAGE go to `reason`, not to the caller */
    bool holds_errors;   /* the first error goes to `reason`; other errors and information are dropped */
    char reason[1024];
};

/* The progress that an operator gives to its backend. If a function of the operator counts rows itself, it silences the
 * backend's reports, so that the user sees one count. */
struct lr_progress_filter {
    lr_progress progress; /* give out &filter.progress; the filter must not move in memory */
    lr_progress to;       /* the caller's progress; report NULL = none */
    bool is_silent;       /* a report of the backend then repeats the operator's last report, only to find out if the
                       * user wants to stop */
    const char *what;     /* the last text passed to lr_progress_filter_report; NULL = none yet */
    double done, total;
    double from, share; /* if share > 0, the backend's progress 0 .. 1 is mapped to from .. from + share */
};

/* Reports in place of the silent backend. Returns LR_OK or LR_CANCELLED. what: must live as long as the filter. */
lr_status lr_progress_filter_report(struct lr_progress_filter *filter, const char *what, double done, double total);

struct lr_direct_family;
struct lr_listmode_family;

enum lr_family { LR_CORRESPONDENCE = 0, LR_DIRECT, LR_LISTMODE };

/* A backend of a family. The caller chooses it by its name, or by "auto" one of the family (lr_choose_backend). */
struct lr_backend_choice {
    enum lr_family family;
    const char *name;
    lr_place_kind place;  /* place of its computation */
    bool needs_hardware;  /* "auto" takes it only if OpenGL has a graphics processor, because loops on the processor
                           * are faster than a software renderer */
    bool has_exact;       /* true if it computes LR_MODE_EXACT */
    bool has_penetration; /* true if it can compute the absorption of photons along the depth of crystals */
    bool has_hiding;      /* listmode: true if it computes exact elements even if modules may block each other */
    bool is_reference;    /* true if it is made for correctness rather than speed */
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
    struct lr_log_filter log_filter;           /* params.log points into it */
    struct lr_progress_filter progress_filter; /* params.progress points into it */
    struct lr_backend_params params;           /* checked, with defaults replaced */
    struct lr_backend backend;
    char passed_over[2048]; /* reasons why earlier backends were not taken; "" = none was tried */
    lr_lor_source factors;  /* get == NULL: no factors */
    struct lr_factor_store factor_store;
    struct lr_direct_family *direct;     /* owned; NULL = another family */
    struct lr_listmode_family *listmode; /* owned; NULL = another family */
    struct lr_psf psf;
    lr_vector sensitivity; /* [num_voxels]: sensitivity of all LORs without the resolution in image space; empty
                            * until it is computed */
};

/* Allocates an operator that has only its filters. lr_operator_destroy frees it. log and progress: copied; NULL =
 * messages or reports are dropped. errors: NULL, logged, if memory runs out. */
struct lr_operator *lr_operator_alloc(const lr_log *log, const lr_progress *progress);

/* Does what lr_operator_create does, but with other backends than the built-in ones. choices: [num_choices], read only
 * during the call. */
lr_operator *lr_operator_create_among(const lr_operator_params *params, const struct lr_backend_choice *choices,
                                      int num_choices);

/* --- choosing a backend --- */

struct lr_choices {
    const struct lr_backend_choice *list; /* [count]; backends of other families are skipped */
    int count;
    enum lr_family family;
    bool needs_hiding;    /* true = only backends with has_hiding can be taken */
    bool stops_at_errors; /* if the caller names several backends, the next one is tried only if a device is missing */
    /* Creates the backend of a choice for the operator, with the log op->log_filter.log. `user` is the argument for
     * this function. NULL = calls choice->create with op->params. */
    lr_status (*open)(struct lr_operator *op, const void *user, const struct lr_backend_choice *choice,
                      struct lr_backend *backend);
    const void *user;
};

/* The backends of all families. */
struct lr_choices lr_all_choices(enum lr_family family);

/* Returns true if the OpenGL device exists and is a graphics processor. Otherwise the log says why a device that EGL
 * lists as hardware cannot be used. */
bool lr_gl_is_hardware(int device, const lr_log *log);

/* Creates op->backend from op->params and settles op->params.mode.
 *
 * name is one of:
 * - the name of a backend. If it cannot be used, the error names the backends that can be used.
 * - several names with commas between them. The first backend that can be created is taken. op->passed_over then says
 *   why the earlier ones cannot be used.
 * - NULL or "auto". Only backends with the required properties are tried. Backends on graphics processors or on the
 *   processor's vector units come first, in the order of the list. A backend on a software renderer comes next, and the
 *   reference last. Exact mode is tried before sampled mode, unless the caller asks for sampled mode.
 *
 * No backend is timed. On every scanner tried, a graphics processor was 10 to 100 times as fast as `native`
 * (docs/performance.md), and `native` was faster than a software renderer. If "auto" takes the processor because a
 * graphics processor cannot do the work, a warning and op->passed_over say why.
 *
 * errors: LR_USAGE for an unknown name, or for properties that no backend has; LR_NO_DEVICE; errors of the backend. */
lr_status lr_choose_backend(struct lr_operator *op, const char *name, const struct lr_choices *choices);

/* --- applying factors: with them the matrix is diag(n) A --- */

static inline bool lr_has_factors(const struct lr_operator *op)
{
    return op->factors.get != NULL;
}

/* Gets the factors of some LORs. values: [span->count]. errors: LR_BAD_INPUT, with the LOR's name, for a factor that is
 * negative or not finite; errors of the source. */
lr_status lr_scaling_get(const struct lr_operator *op, const lr_lor_span *span, float *values);

/* Multiplies LOR values by their factors, if there are factors. Values are in the selection's order. If there is room,
 * the factors are stored for the next call (lr_factor_store). If there is no room, they are in temporary memory: a few
 * MB on the host, or on a device as much memory as the values. */
lr_status lr_scaling_apply(struct lr_operator *op, const lr_selection *selection, lr_vector *values);

/* Multiplies LOR values by their factors like lr_scaling_apply, but stores no factors. */
lr_status lr_scaling_apply_once(const struct lr_operator *op, const lr_selection *selection, lr_vector *values);

static inline lr_precision lr_precision_of(const struct lr_operator *op)
{
    return op->backend.fns->computes_in_double ? LR_FLOAT64 : LR_FLOAT32;
}

/* Makes a vector of zeros on the host, in the backend's precision. errors: LR_FAILED, logged. */
lr_status lr_make_numbers(const struct lr_operator *op, const char *name, int64_t count, lr_vector *vector);

/* Makes a vector of zeros for op->sensitivity, in single precision, at the place of the operator's computation. A
 * reconstruction at this place then copies no sensitivity to or from the host. errors: LR_FAILED, logged. */
lr_status lr_make_sensitivity(const struct lr_operator *op, lr_vector *vector);

/* Checks the free memory for a projection. errors: LR_FAILED, logged, if a large grid needs more memory than is free;
 * the system would end the program during such a projection. */
lr_status lr_project_check_room(const struct lr_operator *op);

/* --- the grid against the scanner --- */

/* Refuses a grid that misses the scanner. Warns once of voxels beyond the detectors, and once of a grid so small that
 * its unit must be wrong.
 *
 * A voxel lies beyond the detectors if a plane separates all its sample points from all modules (their rectangles on
 * the detection plane). Then no line between two modules passes a sample point, and A = 0. The planes tried are
 * perpendicular to the three axes, or to the axes and normals of a module. For a ring of panels, these planes find the
 * voxels outside the ring's polygon or length, except some voxels in the wedges between neighbouring panels.
 *
 * samples: points per voxel along each axis. The work grows with ny nz times the number of distinct directions, not
 * with the number of voxels.
 *
 * errors: LR_BAD_INPUT if every voxel lies beyond the detectors; LR_FAILED if memory runs out. */
lr_status lr_coverage_check(const lr_grid *grid, const int samples[3], const lr_scanner *scanner, const lr_log *log);

/* Warns if a sample point is too near a module's detection plane for single precision on a device, and names its
 * position. Points in front of and behind the module's rectangle count. Within 0.3 mm of the plane, elements of the
 * backend compute are wrong by up to 1e-3. Within micrometres of it, most elements are lost. */
void lr_coverage_warn_near(const lr_grid *grid, const int samples[3], const lr_scanner *scanner, const lr_log *log);
void lr_coverage_warn_near_points(const double (*points_mm)[3], int64_t num_points, const lr_scanner *scanner,
                                  const lr_log *log);

/* Checks all settings that do not depend on the backend, and replaces all defaults.
 * grid: receives a copy of params->grid, to which settings->grid points. It must live as long as settings.
 * log: receives all messages of this call and later calls (params->log is not used).
 * errors: LR_USAGE, LR_BAD_INPUT (grid, mu), LR_FAILED. */
lr_status lr_settings_complete(const lr_operator_params *params, const lr_log *log, lr_grid *grid,
                               struct lr_backend_params *settings);

/* --- the parts of an operator that only one family has --- */

/* The members of an operator of the family direct. */
struct lr_direct_family {
    lr_direct_info info;
    lr_view *views;   /* [num_views] */
    int64_t *offsets; /* [num_views + 1], of the layout */
    lr_lors layout;   /* LORs without a scanner: each pair of modules stands for a view */
    lr_direct_kernel kernel;
    lr_vector timed; /* the image that lr_direct_time projects; zero until the first call */
};

/* --- family listmode --- */

struct lr_listmode_family {
    lr_listmode_info info;
    struct lr_listmode_model model;
    struct lr_listmode_model second; /* model of the second grid of blobs */
    lr_grid grid;                    /* the caller's voxels, even if the image consists of blobs */
    struct lr_listmode_events events;
    const struct lr_backend_choice *choice;  /* the backend; it also projects the lines of the sensitivity */
    lr_place *place;                         /* owned: the backend's place; NULL = it computes on the host */
    const lr_lors *lors;                     /* owned by the caller; NULL = events give the ends of their lines */
    lr_lor_source factors;                   /* factors of LORs; get == NULL: all are 1 */
    float *event_factors;                    /* owned: [count] factors of the events; NULL = all are 1 */
    int64_t wanted_lines;                    /* number of lines for the sensitivity */
    bool lines_are_usual;                    /* true if the caller gave no number of lines, so that the default is
                                              * used */
    int sensitivity_part, sensitivity_parts; /* the part of the sensitivity's lines that is computed; number of parts */
    uint64_t seed;
    struct lr_operator *sensitivity_of; /* the caller's operator, from which the sensitivity is copied; NULL = none */
};

/* Opens a backend of the family. For blobs, it has one model for each of the two grids of blobs, and params->model is
 * not used. */
lr_status lr_listmode_open(const struct lr_listmode_family *family, const struct lr_listmode_backend_params *params,
                           struct lr_backend *backend);

/* Arranges open events: on the backend's device if the backend can do so, otherwise on the host. */
lr_status lr_listmode_arrange(const struct lr_listmode_family *family, struct lr_listmode_events *events,
                              const lr_listmode_params *params,
                              const struct lr_listmode_backend_params *backend_params);

/* Computes the sensitivity of all LORs from which events come, and sets the standard errors of the mean voxel and of
 * the worst voxel in the info, and reports them to the log. values: [num_voxels]. */
lr_status lr_listmode_sensitivity(struct lr_operator *op, float *values);

#endif
