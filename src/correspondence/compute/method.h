/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The methods of the `compute` backend for projections and lists of elements: columns, pairs, points. Each has a folder
 * here. The backend uses the first one that can do the work (backend.c). */
#pragma once

#include "gl/context.h"
#include "gl/timer.h"
#include "operator/backend.h"

struct lr_method_params {
    struct gl_context *ctx;                  /* the backend's context; current in every call */
    const struct lr_backend_params *backend; /* copied */
    bool may_hide;                           /* true if a module can block lines to another one */
    int64_t max_window;                      /* number of floats that a buffer can hold */
    struct gl_stopwatch *watch;              /* times the projections of the method; NULL = projections are not timed */
};

enum lr_method_work { LR_METHOD_PROJECTIONS = 0, LR_METHOD_ROWS };

struct lr_method {
    /* Returns true if the method can do the work. NULL = it can do all work. */
    bool (*serves)(const struct lr_method_params *params, enum lr_method_work work);
    /* errors: NULL, logged. */
    void *(*create)(const struct lr_method_params *params);
    void (*destroy)(void *self);
    /* Starts to build the programs of projections and of the sensitivity. lists: true if the parts are lists of single
       LORs, while the sensitivity is computed for all LORs. */
    lr_status (*prepare)(void *self, bool lists);

    /* Projects the pairs of a selection forward to their values, or back from them. Vectors are on the host or at the
     * backend's place. values NULL = a back-projection of ones. The module pairs can also contain LORs of other parts.
     * A method is allowed to skip these LORs: a forward projection then writes arbitrary finite numbers to their
     * values, and a back-projection counts their values as 0. */
    lr_status (*project)(void *self, bool is_forward, const lr_selection *part, lr_vector *image, lr_vector *values);
    /* Projects single selected LORs, for data in which nearly all LORs are empty. values: [num_lors], on the host. A
     * method without this function projects all LORs instead, between vectors on the host. */
    lr_status (*project_lors)(void *self, bool is_forward, const lr_selection *part, lr_vector *image, float *values);

    /* Passes every element of the rows to the sink, in order. */
    lr_status (*rows)(void *self, const struct lr_rows *rows, const lr_row_sink *sink);

    /* Returns true if back-projections skip LORs of other parts within the module pairs; NULL = they never do. */
    bool (*leaves_out)(const void *self);

    const char *watch; /* label of the stopwatch for projections; NULL = they are not timed */
    bool has_clock;    /* true if the device time of all projections is known */
};

extern const struct lr_method lr_columns_method, lr_pairs_method, lr_points_method;
