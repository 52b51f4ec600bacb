/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Rows of the matrix: one voxel or point, one thread; a stretch of rows in parallel, then handed
 * over in ascending order. */
#include "native/native.h"

#include "base/log.h"
#include "base/mem.h"
#include "model/elements.h"

#include <stdlib.h>

/* Rows of a stretch for each thread. */
enum { ROWS_PER_THREAD = 16, MOST_ROWS = 256 };

struct stretch {
    struct lr_native *native;
    const struct lr_rows *rows;
    int64_t first;
    struct lr_elements *out; /* [rows of the stretch] */
};

/* --- one row --- */

struct target {
    const struct lr_native_scene *scene;
    int64_t pair;
    struct lr_elements *elements;
};

static lr_status add(void *user, const struct lr_native_part *part)
{
    const struct target *target = user;
    const struct lr_native_scene *scene = target->scene;
    const struct lr_native_pair *pair = &scene->pairs[target->pair];
    const struct lr_native_module *i = &scene->modules[pair->i], *j = &scene->modules[pair->j];
    const int64_t first = scene->params.lors->offsets[target->pair];
    const int64_t crystals = (int64_t)j->num_columns * j->num_cells;
    const bool is_full = lr_native_mask_is_full(scene, target->pair);
    for (int n = 0; n < part->count; n++) {
        const int cell = part->offset[n], q = cell / j->num_cells, s = cell % j->num_cells;
        if (!(part->weight[n] > 0.0f) || (pair->along != NULL && pair->along[cell] == 0.0f) ||
            (is_full && !lr_native_allowed(scene, target->pair, (const int[2]){part->ci, part->cj},
                                           (const int[2]){q, s}))) {
            continue;
        }
        const int64_t lor = first + lr_native_crystal(i, part->ci, q) * crystals +
                            lr_native_crystal(j, part->cj, s);
        LR_TRY(lr_elements_add(target->elements, lor, (double)part->weight[n], scene->params.log));
    }
    return LR_OK;
}

static lr_status add_column(struct lr_native_view *view, const struct lr_native_column *column,
                            struct lr_elements *elements)
{
    const struct lr_native_scene *scene = view->scene;
    struct target target = {.scene = scene, .elements = elements};
    struct lr_native_visit visit = {.take = add, .user = &target};
    for (int64_t pair = 0; pair < scene->params.lors->num_pairs; pair++) {
        target.pair = visit.pair = pair;
        visit.range = lr_native_whole_pair(scene, pair);
        LR_TRY(lr_native_visit_column(view, &visit, column));
    }
    return LR_OK;
}

/* Sample points of a row that lie above each other are one column. */
static lr_status add_row(struct lr_native_view *view, const struct lr_rows *rows, int64_t row,
                         struct lr_elements *elements, double *along)
{
    const struct lr_native_scene *scene = view->scene;
    const int one[3] = {1, 1, 1};
    const int *num = rows->grid ? rows->samples : one;
    const int strides[3] = {1, num[0], num[0] * num[1]};
    const int a = scene->across[0], b = scene->across[1], c = scene->axis;
    for (int n = 0; n < num[a] * num[b]; n++) {
        struct lr_native_column column = {.along = along, .count = num[c]};
        const int first = n % num[a] * strides[a] + n / num[a] * strides[b];
        for (int k = 0; k < num[c]; k++) {
            double point[3];
            lr_rows_point(rows, row, first + k * strides[c], point);
            column.point[0] = point[a];
            column.point[1] = point[b];
            along[k] = point[c];
        }
        view->flat.key.pair = -1; /* the points are others now */
        LR_TRY(add_column(view, &column, elements));
    }
    return LR_OK;
}

static lr_status row_job(void *user, int64_t job, struct lr_native_view *view)
{
    const struct stretch *stretch = user;
    const struct lr_native_scene *scene = view->scene;
    const lr_log *log = scene->params.log;
    const int num_points = lr_rows_per_row(stretch->rows);
    struct lr_elements collected = {0};
    double *along = lr_alloc(num_points, sizeof(*along), "points", log);
    lr_status status = along != NULL ? LR_OK : LR_FAILED;
    if (status == LR_OK) {
        status = add_row(view, stretch->rows, stretch->first + job, &collected, along);
    }
    if (status == LR_OK) {
        status = lr_elements_merge(&collected, scene->params.lors->count, log);
    }
    if (status == LR_OK) {
        status = lr_elements_assign(&stretch->out[job], &collected, 1.0 / num_points, log);
    }
    free(along);
    lr_elements_finish(&collected);
    return status;
}

/* --- all of them --- */

static lr_status deliver(struct stretch *stretch, struct lr_row_delivery *delivery, int64_t length)
{
    const struct lr_rows *rows = stretch->rows;
    const double total = (double)(rows->end - rows->begin);
    for (stretch->first = rows->begin; stretch->first < rows->end; stretch->first += length) {
        const int64_t left = rows->end - stretch->first;
        const int64_t num = left < length ? left : length;
        const struct lr_native_work work = {"computing matrix rows",
                                            (double)(stretch->first - rows->begin) / total,
                                            (double)num / total, row_job, stretch};
        LR_TRY(lr_native_run(stretch->native, &work, num));
        for (int64_t k = 0; k < num; k++) {
            LR_TRY(lr_row_deliver(delivery, stretch->first + k, &stretch->out[k]));
        }
    }
    return LR_OK;
}

lr_status lr_native_rows(struct lr_native *native, const struct lr_rows *rows,
                         const lr_row_sink *sink)
{
    const lr_log *log = native->scene.params.log;
    const int64_t wanted = (int64_t)ROWS_PER_THREAD * native->num_views;
    const int64_t length = wanted < MOST_ROWS ? wanted : MOST_ROWS;
    struct lr_row_delivery delivery = {.sink = sink, .log = log};
    struct stretch stretch = {.native = native, .rows = rows};
    stretch.out = lr_alloc(length, sizeof(*stretch.out), "matrix rows", log);
    const lr_status status = stretch.out != NULL ? deliver(&stretch, &delivery, length) : LR_FAILED;
    for (int64_t k = 0; stretch.out != NULL && k < length; k++) {
        lr_elements_finish(&stretch.out[k]);
    }
    free(stretch.out);
    lr_row_delivery_finish(&delivery);
    return status;
}
