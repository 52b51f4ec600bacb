/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Rows of the matrix. One thread computes each row. The consecutive rows of a stretch are computed in parallel and then
 * passed to the sink in ascending order. */
#include "model/lors/rows.h"
#include "correspondence/native/native.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"

#include <stdatomic.h>
#include <stdlib.h>

/* The number of rows of a stretch. The first stretch has FIRST_ROWS rows per thread. Later stretches have about
 * STRETCH_ELEMENTS elements per thread, and at most MOST_ROWS rows per thread. */
enum { FIRST_ROWS = 8, MOST_ROWS = 512, STRETCH_ELEMENTS = 1 << 19 };

/* The largest number of LORs of a pair whose sums are kept in an array over all LORs. For larger pairs, the elements
 * are listed and sorted. */
#define MOST_DENSE ((int64_t)1 << 17)

/* The LOR numbers of a block, relative to the LOR of the block's first two cells. */
struct places {
    int cells[2];
    int64_t steps[2];
    int32_t *at; /* [cells[0] * cells[1]] */
};

/* Working memory of one thread. */
struct worker {
    double *sum;       /* [most_dense]: sums of the current pair; all are 0 between two pairs */
    uint64_t *touched; /* [most_dense / 64 + 1] one bit per LOR: set if the LOR has a sum */
    struct places places;
    struct lr_elements sparse;
    struct lr_native_column *columns; /* [num_columns]: sample points of the current row */
    double *along;                    /* coordinates along the axis, the same for all columns */
};

struct stretch {
    struct lr_native *native;
    const struct lr_rows *rows;
    int64_t first;
    struct worker *workers;   /* [num_views] */
    struct lr_owned_row *out; /* [rows of the stretch] finished rows */
    int64_t most_dense;       /* number of LORs of the largest pair whose sums are in an array */
    int num_columns;          /* number of columns of a row; a column is all sample points that differ only along the
                                 axis */
    atomic_int status;        /* first status that is not LR_OK */
};

/* --- one pair --- */

struct target {
    const struct lr_native_scene *scene;
    struct worker *worker;
    int64_t pair, crystals_j;
    bool is_dense, is_full;
    bool found; /* true if the pair has elements */
};

static lr_status add(void *user, const struct lr_native_part *part)
{
    struct target *target = user;
    struct worker *worker = target->worker;
    struct places *places = &worker->places;
    const struct lr_native_scene *scene = target->scene;
    const struct lr_native_pair *pair = &scene->pairs[target->pair];
    const struct lr_native_module *i = &scene->modules[pair->i], *j = &scene->modules[pair->j];
    const int64_t base = lr_native_crystal(i, part->ci, 0) * target->crystals_j + lr_native_crystal(j, part->cj, 0);
    const int64_t steps[2] = {i->step_along * target->crystals_j, j->step_along};
    if (!target->found && (places->at == NULL || places->cells[0] != i->num_cells || places->cells[1] != j->num_cells ||
                           places->steps[0] != steps[0] || places->steps[1] != steps[1])) {
        /* The offsets in memory are those of another pair, whose blocks differ. */
        free(places->at);
        *places = (struct places){{i->num_cells, j->num_cells}, {steps[0], steps[1]}, NULL};
        places->at = lr_alloc((int64_t)i->num_cells * j->num_cells, sizeof(*places->at), "cells", scene->params.log);
        if (places->at == NULL) return LR_FAILED;
        for (int q = 0; q < i->num_cells; q++)
            for (int s = 0; s < j->num_cells; s++)
                places->at[q * j->num_cells + s] = (int32_t)(q * steps[0] + s * steps[1]);
    }
    target->found = true;
    for (int n = 0; n < part->count; n++) {
        const int cell = part->offset[n];
        if (!(part->weight[n] > 0.0f) || (pair->along != NULL && pair->along[cell] == 0.0f)) continue;
        if (target->is_full && !lr_native_allowed(scene, target->pair, (const int[2]){part->ci, part->cj},
                                                  (const int[2]){cell / j->num_cells, cell % j->num_cells}))
            continue;
        const int64_t at = base + places->at[cell];
        if (target->is_dense) {
            worker->sum[at] += (double)part->weight[n];
            worker->touched[at >> 6] |= (uint64_t)1 << (at & 63);
        } else {
            LR_TRY(lr_elements_add(&worker->sparse, at, (double)part->weight[n], scene->params.log));
        }
    }
    return LR_OK;
}

/* Appends the pair's sums to the row in order, and clears the sums. */
static lr_status collect(const struct target *target, double scale, struct lr_owned_row *out)
{
    const lr_log *log = target->scene->params.log;
    const int64_t *offsets = target->scene->params.lors->offsets;
    const int64_t first = offsets[target->pair], count = offsets[target->pair + 1] - first;
    struct worker *worker = target->worker;
    if (!target->is_dense) {
        struct lr_elements *sparse = &worker->sparse;
        LR_TRY(lr_elements_merge(sparse, count, log));
        LR_TRY(lr_owned_row_reserve(out, out->count + sparse->count, log));
        for (int64_t k = 0; k < sparse->count; k++) {
            const double value = sparse->list[k].value * scale;
            if (value > 0.0) lr_owned_row_put(out, first + sparse->list[k].lor, value);
        }
        sparse->count = 0;
        return LR_OK;
    }
    for (int64_t word = 0; word <= (count - 1) >> 6; word++) {
        uint64_t bits = worker->touched[word];
        if (bits == 0) continue;
        LR_TRY(lr_owned_row_reserve(out, out->count + 64, log));
        worker->touched[word] = 0;
        for (; bits != 0; bits &= bits - 1) {
            const int64_t at = word * 64 + __builtin_ctzll(bits);
            const double value = worker->sum[at] * scale;
            if (value > 0.0) lr_owned_row_put(out, first + at, value);
            worker->sum[at] = 0.0;
        }
    }
    return LR_OK;
}

/* --- one row --- */

static lr_status compute_row(const struct stretch *stretch, int64_t row, int number, struct lr_owned_row *out)
{
    struct lr_native *native = stretch->native;
    struct lr_native_view *view = &native->views[number];
    const struct lr_native_scene *scene = &native->scene;
    const struct lr_rows *rows = stretch->rows;
    const int64_t *offsets = scene->params.lors->offsets;
    const int64_t num = rows->pairs != NULL ? rows->num_pairs : scene->params.lors->num_pairs;
    const double scale = 1.0 / lr_rows_per_row(rows);
    struct target target = {.scene = scene, .worker = &stretch->workers[number]};

    /* Makes the columns of sample points of this row. */
    const int one[3] = {1, 1, 1};
    const int *samples = rows->grid ? rows->samples : one;
    const int strides[3] = {1, samples[0], samples[0] * samples[1]};
    const int a = scene->across[0], b = scene->across[1], c = scene->axis;
    double point[3];
    for (int n = 0; n < stretch->num_columns; n++) {
        lr_rows_point(rows, row, n % samples[a] * strides[a] + n / samples[a] * strides[b], point);
        target.worker->columns[n] = (struct lr_native_column){
            .point = {point[a], point[b]}, .along = target.worker->along, .count = samples[c]};
    }
    for (int k = 0; k < samples[c]; k++) {
        lr_rows_point(rows, row, k * strides[c], point);
        target.worker->along[k] = point[c];
    }
    view->flat.key.pair = -1; /* the overlaps in `flat` belong to other points */
    out->count = 0;
    for (int64_t k = 0; k < num; k++) {
        target.pair = rows->pairs != NULL ? rows->pairs[k] : k;
        const struct lr_native_module *j = &scene->modules[scene->pairs[target.pair].j];
        const struct lr_native_visit visit = {target.pair, lr_native_whole_pair(scene, target.pair, NULL), add,
                                              &target};
        target.crystals_j = (int64_t)j->num_columns * j->num_cells;
        target.is_dense = offsets[target.pair + 1] - offsets[target.pair] <= stretch->most_dense;
        target.is_full = lr_native_mask_is_full(scene, target.pair);
        target.found = false;
        for (int n = 0; n < stretch->num_columns; n++)
            LR_TRY(lr_native_visit_column(view, &visit, &target.worker->columns[n]));
        if (target.found) LR_TRY(collect(&target, scale, out));
    }
    return LR_OK;
}

static void compute_share(void *user, int64_t begin, int64_t end, int number)
{
    struct stretch *stretch = user;
    for (int64_t k = begin; k < end && atomic_load(&stretch->status) == LR_OK; k++)
        lr_native_set_status(&stretch->status, compute_row(stretch, stretch->first + k, number, &stretch->out[k]));
}

/* --- all rows --- */

/* Returns the number of rows of the next stretch. The previous stretch had `num` rows and `elements` elements. */
static int64_t choose_length(const struct stretch *stretch, int64_t num, int64_t elements)
{
    const int64_t most = (int64_t)MOST_ROWS * stretch->native->num_views;
    const int64_t least = (int64_t)FIRST_ROWS * stretch->native->num_views;
    const double fitting = (double)STRETCH_ELEMENTS * stretch->native->num_views * (double)num / (double)(elements + 1);
    const double wanted = fitting < (double)(4 * num) ? fitting : (double)(4 * num);
    return wanted >= (double)most ? most : wanted <= (double)least ? least : (int64_t)wanted;
}

lr_status lr_native_rows(void *self, const struct lr_rows *rows, const lr_row_sink *sink)
{
    struct lr_native *native = self;
    const struct lr_native_scene *scene = &native->scene;
    const lr_lors *lors = scene->params.lors;
    const lr_log *log = scene->params.log;
    const int num = native->num_views;
    struct stretch stretch = {.native = native, .rows = rows, .num_columns = 1};
    if (rows->grid != NULL) stretch.num_columns = rows->samples[scene->across[0]] * rows->samples[scene->across[1]];
    for (int64_t k = 0; k < lors->num_pairs; k++) {
        const int64_t count = lors->offsets[k + 1] - lors->offsets[k];
        if (count <= MOST_DENSE && count > stretch.most_dense) stretch.most_dense = count;
    }
    atomic_init(&stretch.status, LR_OK);

    stretch.workers = lr_alloc(num, sizeof(*stretch.workers), "threads", log);
    stretch.out = lr_alloc((int64_t)MOST_ROWS * num, sizeof(*stretch.out), "matrix rows", log);
    lr_status status = stretch.workers && stretch.out ? LR_OK : LR_FAILED;
    for (int k = 0; k < num && status == LR_OK; k++) {
        struct worker *worker = &stretch.workers[k];
        worker->sum = lr_alloc(stretch.most_dense, sizeof(*worker->sum), "sums", log);
        worker->touched = lr_alloc(stretch.most_dense / 64 + 1, sizeof(*worker->touched), "sums", log);
        worker->columns = lr_alloc(stretch.num_columns, sizeof(*worker->columns), "points", log);
        worker->along = lr_alloc(rows->grid ? rows->samples[scene->axis] : 1, sizeof(*worker->along), "points", log);
        status = worker->sum && worker->touched && worker->columns && worker->along ? LR_OK : LR_FAILED;
    }

    const double total = (double)(rows->end - rows->begin);
    int64_t length = choose_length(&stretch, 1, 0);
    stretch.first = rows->begin;
    while (status == LR_OK && stretch.first < rows->end) {
        status = lr_progress_report(scene->params.progress, "computing matrix rows",
                                    (double)(stretch.first - rows->begin), total);
        if (status != LR_OK) break;
        const int64_t left = rows->end - stretch.first, count = left < length ? left : length;
        const int64_t share = count / (4 * num);
        lr_parallel_workers(num, count, share > 0 ? share : 1, compute_share, &stretch);
        status = (lr_status)atomic_load(&stretch.status);
        int64_t elements = 0;
        for (int64_t k = 0; status == LR_OK && k < count; k++) {
            const struct lr_owned_row *out = &stretch.out[k];
            const lr_row row = lr_owned_row_view(out, stretch.first + k);
            elements += out->count;
            status = sink->take(sink->user, &row);
        }
        stretch.first += count;
        length = choose_length(&stretch, count, elements);
    }

    for (int k = 0; stretch.workers != NULL && k < num; k++) {
        struct worker *worker = &stretch.workers[k];
        lr_free_all(worker->sum, worker->touched, worker->places.at, worker->columns, worker->along);
        lr_elements_finish(&worker->sparse);
    }
    for (int64_t k = 0; stretch.out != NULL && k < (int64_t)MOST_ROWS * num; k++) lr_owned_row_finish(&stretch.out[k]);
    lr_free_all(stretch.workers, stretch.out);
    return status;
}
