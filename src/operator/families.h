/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The parts of an operator that only one family has, for the files of this folder. */
#ifndef LR_OPERATOR_FAMILIES_H
#define LR_OPERATOR_FAMILIES_H

#include "direct/backend.h"
#include "listmode/backend.h"
#include "operator/facade.h"

/* The log of backend cuda. While the backend is being made, a missing device is no error, for compute takes its
 * place. */
struct lr_direct_cuda_log {
    lr_log log;
    const lr_log *to;
    bool is_made;
    bool is_named;    /* and not the first that is tried: the caller is warned */
    char reason[600]; /* why there is none; "" = there is */
};

/* The part of an operator that only the family direct has. */
struct lr_direct_family {
    lr_direct_info info;
    lr_view *views;   /* [num_views] */
    int64_t *offsets; /* [num_views + 1] of the layout */
    lr_lors layout;   /* without scanner: a view for each pair of modules */
    lr_direct_kernel kernel;
    struct lr_direct_backend backend; /* its `common` is the operator's backend */
    struct lr_direct_cuda_log cuda_log;
    lr_vector timed; /* what lr_direct_time projects; zero = nothing yet */
};

/* True if that device exists and is not a software renderer, which is slower than the processor's own loops. If
 * not, the log says why a device that EGL lists as hardware cannot be used. */
bool lr_direct_on_hardware(int device, const lr_log *log);

/* --- family listmode --- */

typedef lr_status lr_listmode_create_fn(const struct lr_listmode_backend_params *params, struct lr_backend *backend);

/* The log of a backend that "auto" tries: it stores the message that there is no device. */
struct lr_listmode_trial {
    lr_log log;
    const lr_log *to;
    bool is_made;
    char reason[512];
};

typedef lr_status lr_listmode_arrange_fn(struct lr_listmode_events *events,
                                         const struct lr_listmode_backend_params *params);

struct lr_listmode_family {
    struct lr_listmode_trial trial;
    lr_listmode_info info;
    struct lr_listmode_model model;
    struct lr_listmode_model second; /* of the second grid of blobs */
    lr_grid grid;                    /* the voxels of the caller, also with blobs */
    struct lr_listmode_events events;
    lr_listmode_create_fn *create;           /* the backend's function for the lines of the sensitivity */
    lr_listmode_arrange_fn *arrange;         /* the backend's function; NULL = the host arranges events */
    lr_place *place;                         /* owned, of the backend; NULL = it computes on the host */
    const lr_lors *lors;                     /* the caller's */
    lr_lor_source factors;                   /* factors of LORs; get == NULL: 1 */
    float *event_factors;                    /* owned [count] the same of the events; NULL = 1 */
    int64_t wanted_lines;                    /* of the sensitivity */
    bool lines_are_usual;                    /* the caller gave no number of lines */
    int sensitivity_part, sensitivity_parts; /* the part of its lines that is computed, and the number of parts */
    uint64_t seed;
    struct lr_operator *sensitivity_of; /* an operator of the caller; NULL = none */
};

/* Opens a backend of the family, for its model or for both grids of blobs. The model of params is not used with
 * blobs. */
lr_status lr_listmode_open(const struct lr_listmode_family *family, const struct lr_listmode_backend_params *params,
                           struct lr_backend *backend);

/* Arranges events that are open: on the backend's device if it can, else on the host. */
lr_status lr_listmode_arrange(const struct lr_listmode_family *family, struct lr_listmode_events *events,
                              const lr_listmode_params *params,
                              const struct lr_listmode_backend_params *backend_params);

/* The sensitivity of all LORs times the events' share in the part; part NULL: of all events.
 * image: [num_voxels]. */
lr_status lr_listmode_sensitivity(struct lr_operator *op, const lr_selection *part, lr_vector *image);

#endif
