/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The backend as a whole, and its projections. Images come and go in the grid's order, values in
 * that of the selection. All give the same bits for any number of threads. */
#ifndef LR_NATIVE_NATIVE_H
#define LR_NATIVE_NATIVE_H

#include "native/visit.h"

struct lr_native {
    struct lr_native_scene scene;
    int num_views;
    struct lr_native_view *views; /* [num_views], one per thread */
};

/* Module pairs in ascending order; pairs NULL: all num of them. Their values follow each other. */
struct lr_native_pairs {
    const int32_t *pairs;
    int64_t num;
    const lr_selection *part; /* which of their LORs are projected; NULL = all */
};

static inline int64_t lr_native_pair_at(const struct lr_native_pairs *list, int64_t k)
{
    return list->pairs != NULL ? list->pairs[k] : k;
}

/* errors of all: LR_FAILED, out of memory, logged; LR_CANCELLED. */
lr_status lr_native_forward(struct lr_native *native, const struct lr_native_pairs *list, const float *image,
                            float *values);

/* values NULL: every value is 1. */
lr_status lr_native_back(struct lr_native *native, const struct lr_native_pairs *list, const float *values,
                         float *image);

/* Single LORs, ascending, that each look for their own elements. */
struct lr_native_lors {
    const int64_t *numbers;
    int64_t num;
};
lr_status lr_native_forward_lors(struct lr_native *native, const struct lr_native_lors *list, const float *image,
                                 float *values);
lr_status lr_native_back_lors(struct lr_native *native, const struct lr_native_lors *list, const float *values,
                              float *image);

lr_status lr_native_rows(struct lr_native *native, const struct lr_rows *rows, const lr_row_sink *sink);

/* --- shared --- */

/* An image between the grid's order and that of columns, [across 1][across 0][along]. */
void lr_native_to_columns(const struct lr_native_scene *scene, const float *image, float *columns);

/* scale: multiplies. */
void lr_native_from_columns(const struct lr_native_scene *scene, const double *columns, float *image);

/* One share of work: jobs begin .. end-1 by the thread whose view it is. */
typedef lr_status lr_native_job(void *user, int64_t job, struct lr_native_view *view);

/* What is done, and how much of the whole it is. */
struct lr_native_work {
    const char *what;
    double from, share; /* of the progress that is reported, 0 .. 1 */
    lr_native_job *job;
    void *user;
};

/* Does jobs 0 .. num_jobs-1 on all threads, in any order. The calling thread, which does jobs too,
 * reports progress between them and where they ask (lr_native_ask). */
lr_status lr_native_run(struct lr_native *native, const struct lr_native_work *work, int64_t num_jobs);

#endif
