/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The state of the native backend, and its projections. Images are in the order of the grid, values in the order of the
 * selection. All projections give the same bits for any number of threads. */
#pragma once

#include "correspondence/native/kernels.h"
#include "operator/backend.h"

#include <stdatomic.h>

struct lr_native {
    struct lr_native_scene scene;
    int num_views;
    struct lr_native_view *views; /* [num_views], one per thread */
};

/* Computes rows of the matrix: a function of struct lr_backend_fns. errors: LR_FAILED, logged, if memory runs out;
 * LR_CANCELLED. */
lr_status lr_native_rows(void *self, const struct lr_rows *rows, const lr_row_sink *sink);

/* Projects single LORs: forward from the image to the values, or back. values NULL = a back-projection of ones. */
lr_status lr_native_project_lors(struct lr_native *native, bool is_forward, const lr_selection *list, float *image,
                                 float *values);

/* --- shared --- */

/* Copies an image from the grid's order to the order of columns, [across 1][across 0][along]. */
void lr_native_to_columns(const struct lr_native_scene *scene, const float *image, float *columns);

/* Copies an image from the order of columns back to the grid's order, and divides it by the number of sample points per
 * voxel. */
void lr_native_from_columns(const struct lr_native_scene *scene, const double *columns, float *image);

/* A job of a stage of work. It runs in the thread that `view` belongs to. */
typedef lr_status lr_native_job(void *user, int64_t job, struct lr_native_view *view);

/* A stage of work, and its fraction of all work. */
struct lr_native_work {
    const char *what;
    double from, share; /* the part of the progress report that belongs to this stage: its start and length, within 0 ..
                           1 */
    lr_native_job *job;
    void *user;
};

/* Runs jobs 0 .. num_jobs - 1 on all threads, in any order. The calling thread also runs jobs. This thread reports
 * progress between its jobs, and whenever one of its jobs calls lr_native_ask. */
lr_status lr_native_run(struct lr_native *native, const struct lr_native_work *work, int64_t num_jobs);

/* --- visits of the elements of a pair of modules and a column of sample points. Forward projections, back-projections
 * and rows get the elements in the same order and with the same bits --- */

/* A column of sample points. */
struct lr_native_column {
    double point[2];     /* coordinates across the axis */
    const double *along; /* [count] coordinates along the axis */
    int count;
    const float *wanted; /* [count] points with the value 0 are skipped; NULL = all points are visited */
};

/* The elements of point k for the crystal columns of one block (kernels.h): weight[n] belongs to the value at offset[n]
 * of the block. Some weights are 0. count is a multiple of LR_NATIVE_LANES. */
struct lr_native_part {
    int64_t block;
    int ci, cj;
    int k;
    int count;
    const float *weight;
    const int32_t *offset;
};

struct lr_native_visit {
    int64_t pair;
    struct lr_native_range range;
    lr_status (*take)(void *user, const struct lr_native_part *part);
    void *user;
};

/* The arguments that determine the overlaps of a column of points with parallel modules. */
struct lr_native_flat_key {
    int64_t pair; /* -1 = no pair */
    bool i_is_primary;
    double tau;
    int parts;
    const double *along; /* [count] points */
    int count;
    double starts[2];
};

/* The overlaps of parallel modules for all points of a column. All strips of the column have these overlaps. */
struct lr_native_flat {
    struct lr_native_flat_key key;
    int64_t capacity, num_points;
    float *y, *height;
    int32_t *offset;
    int32_t *begin; /* [key.count + 1] */
};

/* Stores the first status that is not LR_OK. Later ones are ignored. */
static inline void lr_native_set_status(atomic_int *status, lr_status found)
{
    int good = LR_OK;
    atomic_compare_exchange_strong(status, &good, (int)found);
}

/* Working memory of one thread. */
struct lr_native_view {
    struct lr_native_run_state *run; /* jobs that are running; NULL = none */
    bool reports;                    /* true in the thread that started the work; this thread reports progress */
    const struct lr_native_scene *scene;
    const struct lr_native_kernels *kernels;
    struct lr_native_strip *strips;
    struct lr_native_slots slots;
    void *memory; /* memory of the slots */
    struct lr_native_flat flat;
};

lr_status lr_native_view_init(struct lr_native_view *view, const struct lr_native_scene *scene);
void lr_native_view_finish(struct lr_native_view *view);

/* Called during a long job. Returns LR_OK if the job should continue, otherwise the status that stops it. */
lr_status lr_native_ask(struct lr_native_view *view);

/* Visits the elements of a column of points and passes them to visit->take. errors: LR_FAILED, logged, if memory runs
 * out; the status of `take`. */
lr_status lr_native_visit_column(struct lr_native_view *view, const struct lr_native_visit *visit,
                                 const struct lr_native_column *column);

/* Returns all crystal columns of a pair that have LORs of the part. part: NULL = all columns. */
struct lr_native_range lr_native_whole_pair(const struct lr_native_scene *scene, int64_t pair,
                                            const lr_selection *part);

/* Forward sums are made in float, because vectors of floats are fast. A float loses precision as its sum grows, so the
 * sums are added to doubles after each LR_NATIVE_ROWS_OF_SUMS rows of points. A pair with few cells has many terms per
 * cell, so the sums of a block of at most LR_NATIVE_FEW_CELLS values are added after every column of points.
 * Projections of whole pairs and of single LORs both follow this rule, so their results have the same bits. */
enum { LR_NATIVE_FEW_CELLS = 256, LR_NATIVE_ROWS_OF_SUMS = 8 };

/* Returns the cells of a pair's primary and secondary along the axis. */
struct lr_native_axial lr_native_make_axial(const struct lr_native_scene *scene, int64_t pair, bool i_is_primary);

/* Returns true if module i is the primary for a point in sampled mode. The centre of module i is then at least as far
 * from the point as the centre of module j. */
bool lr_native_farther_is_i(const struct lr_native_scene *scene, int64_t pair, const double point[2], double along);

/* --- columns of points that may see a pair --- */

/* The convex hull of two segments. */
struct lr_native_hull {
    double corner[4][2];
};

struct lr_native_hull lr_native_make_hull(const struct lr_native_scene *scene, int64_t pair,
                                          const struct lr_native_range *range);

/* Finds the rows of sample points (begin, end) that the hull may intersect. Rows are numbered along axis across[1]. */
void lr_native_hull_rows(const struct lr_native_scene *scene, const struct lr_native_hull *hull, int rows[2]);

/* Finds the columns of sample points (begin, end) in one row that the hull may intersect. */
void lr_native_hull_columns(const struct lr_native_scene *scene, const struct lr_native_hull *hull, int row,
                            int columns[2]);

/* --- crystal penetration: lines through the sides of the primary's box, in single precision
 * (docs/method/correspondence.md, "Penetration"). Modules may have any position --- */

/* Creates the backend for params->penetration. errors, logged: LR_USAGE if there is an attenuation image; LR_FAILED. */
lr_status lr_native_penetration_create(const struct lr_backend_params *params, struct lr_backend *backend);
