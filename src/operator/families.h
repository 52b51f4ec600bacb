/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The parts of an operator that only one family has, for the files of this folder. */
#ifndef LR_OPERATOR_FAMILIES_H
#define LR_OPERATOR_FAMILIES_H

#include "direct/backend.h"
#include "listmode/backend.h"
#include "operator/facade.h"

/* The part of an operator that only the family direct has. */
struct lr_direct_family {
    lr_direct_info info;
    lr_view *views;   /* [num_views] */
    int64_t *offsets; /* [num_views + 1] of the layout */
    lr_lors layout;   /* LORs without a scanner: each pair of modules stands for a view */
    lr_direct_kernel kernel;
    lr_vector timed; /* image that lr_direct_time projects; zero until the first call */
};

/* --- family listmode --- */

struct lr_listmode_family {
    lr_listmode_info info;
    struct lr_listmode_model model;
    struct lr_listmode_model second; /* model of the second grid of blobs */
    lr_grid grid;                    /* the caller's voxels, also for blobs */
    struct lr_listmode_events events;
    const struct lr_backend_choice *choice;  /* the backend, which also projects the lines of the sensitivity */
    lr_place *place;                         /* the backend's place, owned; NULL = it computes on the host */
    const lr_lors *lors;                     /* owned by the caller; NULL = lines are given by their ends */
    lr_lor_source factors;                   /* factors of LORs; get == NULL: all are 1 */
    float *event_factors;                    /* owned [count] factors of the events; NULL = 1 */
    int64_t wanted_lines;                    /* number of lines for the sensitivity */
    bool lines_are_usual;                    /* the caller gave no number of lines */
    int sensitivity_part, sensitivity_parts; /* part of the sensitivity's lines to be computed; number of parts */
    uint64_t seed;
    struct lr_operator *sensitivity_of; /* the caller's operator from which the sensitivity is copied; NULL = none */
};

/* Opens a backend of the family. With blobs it has a model for each of their two grids, and params->model is not
 * used. */
lr_status lr_listmode_open(const struct lr_listmode_family *family, const struct lr_listmode_backend_params *params,
                           struct lr_backend *backend);

/* Arranges open events, on the backend's device if it can do so, else on the host. */
lr_status lr_listmode_arrange(const struct lr_listmode_family *family, struct lr_listmode_events *events,
                              const lr_listmode_params *params,
                              const struct lr_listmode_backend_params *backend_params);

/* Computes the sensitivity of all LORs, multiplied by the share of events that are in the part. part NULL: all
 * events. Lines given by their ends have the one that they name. image: [num_voxels]. */
lr_status lr_listmode_sensitivity(struct lr_operator *op, const lr_selection *part, lr_vector *image);

#endif
