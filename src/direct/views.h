/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Functions of operator/backend.h that backends of the family `direct` share: parts of the data by views, and rows from
 * the look-up tables. Each backend adds the projection of one view. */
#ifndef LR_DIRECT_VIEWS_H
#define LR_DIRECT_VIEWS_H

#include "direct/backend.h"

/* A projection of one view; in and out are [num_voxels], float, or double if in_double. */
struct lr_direct_projection {
    bool is_forward;
    bool is_same; /* true if `in` has not changed since the last projection */
    int view;
    const void *in;
    void *out;
};

struct lr_direct_views {
    const struct lr_direct_backend_params *params;
    bool in_double;
    int64_t num_voxels;
    lr_status (*project)(void *self, const struct lr_direct_projection *projection);
    void *self;
    void *one;                 /* owned: a histo-image or image, in the backend's precision */
    double *sum;               /* owned: sum of back-projections */
    lr_direct_tables **tables; /* owned [num_views], for rows; NULL until the first rows */
};

/* Initialises members other than params, in_double, project and self, which the caller has set. The caller calls the
 * finish function even after an error. errors: LR_FAILED. */
lr_status lr_direct_views_init(struct lr_direct_views *views);
void lr_direct_views_finish(struct lr_direct_views *views);

/* Functions of struct lr_backend_fns, for vectors on the host. self: a struct lr_direct_views. */
lr_status lr_direct_views_project(void *self, bool is_forward, const lr_selection *part, const lr_vector *in,
                                  lr_vector *out);
lr_status lr_direct_views_rows(void *self, const struct lr_rows *wanted, const lr_row_sink *sink);

#endif
