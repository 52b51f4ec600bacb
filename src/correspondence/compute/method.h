/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Methods of the `compute` backend for projections and lists of elements: columns, pairs, points. Each method has a
 * folder here. The backend uses the first method that serves (backend.c). */
#ifndef LR_CORRESPONDENCE_COMPUTE_METHOD_H
#define LR_CORRESPONDENCE_COMPUTE_METHOD_H

#include "gl/context.h"
#include "gl/timer.h"
#include "operator/backend.h"

struct lr_method_params {
    struct gl_context *ctx;                  /* the backend's context; current in every call */
    const struct lr_backend_params *backend; /* copied */
    bool may_hide;                           /* true if a module can block lines to another */
    int64_t max_window;                      /* floats that a buffer may hold */
    struct gl_stopwatch *watch;              /* times the projections of the method; NULL = they are not timed */
};

enum lr_method_work { LR_METHOD_PROJECTIONS = 0, LR_METHOD_ROWS };

struct lr_method {
    /* True if the method can do the work; NULL = it can do all work. */
    bool (*serves)(const struct lr_method_params *params, enum lr_method_work work);
    /* errors: NULL, logged. */
    void *(*create)(const struct lr_method_params *params);
    void (*destroy)(void *self);
    /* Starts to build the programs of projections. lists: also those for lists of single LORs. */
    lr_status (*prepare)(void *self, bool lists);

    /* Projects the pairs of a selection forward to their values, or back from them. Vectors are on the host or at the
     * backend's place. values: NULL = a back-projection of ones. If the LORs of several parts are interleaved, a method
     * may leave out the LORs of the other parts. The values of these LORs are arbitrary finite numbers after a forward
     * projection, and count as 0 in a back-projection. */
    lr_status (*project)(void *self, bool is_forward, const lr_selection *part, lr_vector *image, lr_vector *values);
    /* Does the same for a selection of single LORs. Such selections are for data in which nearly all LORs are empty.
     * values: [num_lors], on the host. NULL = the method cannot project parts, and its vectors are on the host. */
    lr_status (*project_lors)(void *self, bool is_forward, const lr_selection *part, lr_vector *image, float *values);

    /* Passes every element of the rows to the sink, in order. */
    lr_status (*rows)(void *self, const struct lr_rows *rows, const lr_row_sink *sink);

    /* True if back-projections leave out interleaved LORs of other parts; NULL = they never do. */
    bool (*leaves_out)(const void *self);

    const char *watch; /* label of the stopwatch of projections; NULL = they are not timed */
    bool has_clock;    /* the device time of all projections is known, too */
};

extern const struct lr_method lr_columns_method, lr_pairs_method, lr_points_method;

#endif
