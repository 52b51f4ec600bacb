/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Methods of the `compute` backend for projections and lists of elements: columns, pairs, points. Each method has a
 * folder here. The backend uses the first method that serves (backend.c). */
#ifndef LR_CORRESPONDENCE_COMPUTE_METHOD_H
#define LR_CORRESPONDENCE_COMPUTE_METHOD_H

#include "gl/context.h"
#include "operator/backend.h"

/* Module pairs [num_pairs] in ascending order, whose values follow each other; NULL = all pairs. If the LORs of several
 * parts are interleaved (lr_selection), a method may leave out the LORs of the other parts. The values of these LORs
 * are arbitrary finite numbers after a forward projection, and count as 0 in a back-projection. */
struct lr_pair_list {
    const int32_t *pairs;
    int64_t num_pairs;
    int interleave, turn;
};

/* LORs [count] in ascending order, each once. Such lists are for data in which nearly all LORs are empty. */
struct lr_lor_list {
    const int64_t *lors;
    int64_t count;
};

struct lr_method_params {
    struct gl_context *ctx;                  /* the backend's context; current in every call */
    const struct lr_backend_params *backend; /* copied */
    bool may_hide;                           /* true if a module can block lines to another */
    int64_t max_window;                      /* floats that a buffer may hold */
};

enum lr_method_work { LR_METHOD_PROJECTIONS = 0, LR_METHOD_ROWS };

struct lr_method {
    const char *name;
    /* True if the method can do the work; NULL = it can do all work. */
    bool (*serves)(const struct lr_method_params *params, enum lr_method_work work);
    /* errors: NULL, logged. */
    void *(*create)(const struct lr_method_params *params);
    void (*destroy)(void *self);
    /* Starts to build the programs of projections. lists: also those for lists of single LORs. */
    lr_status (*prepare)(void *self, bool lists);

    /* Project the pairs of a list. image: on the host; NULL = the image stays on the device (take_image, give_image).
     * values: of the list's pairs, on the host or at the backend's place; NULL = a back-projection of ones. */
    lr_status (*forward)(void *self, const struct lr_pair_list *list, const float *image, lr_vector *values);
    lr_status (*back)(void *self, const struct lr_pair_list *list, const lr_vector *values, float *image);

    /* Project single LORs. values: [count], on the host. A NULL function means that the method cannot project parts and
     * that its vectors are on the host. */
    lr_status (*forward_lors)(void *self, const struct lr_lor_list *list, const float *image, float *values);
    lr_status (*back_lors)(void *self, const struct lr_lor_list *list, const float *values, float *image);

    /* Copy an image from the backend's place to the method's own image, and back. */
    lr_status (*take_image)(void *self, const lr_vector *image);
    lr_status (*give_image)(void *self, lr_vector *image);

    /* Passes every element of the rows to the sink, in order. */
    lr_status (*rows)(void *self, const struct lr_rows *rows, const lr_row_sink *sink);

    /* True if back-projections leave out interleaved LORs of other parts; NULL = they never do. */
    bool (*leaves_out)(const void *self);

    /* Device time of the last projection, s; may wait for the device. NULL = not measured. */
    double (*device_seconds)(const void *self);
    /* Device time of all projections so far, s; NULL = not measured. */
    double (*device_clock)(const void *self);
};

extern const struct lr_method lr_columns_method, lr_pairs_method, lr_points_method;

#endif
