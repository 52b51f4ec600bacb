/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Back-projection: a job owns some voxels of one row across, and meets the pairs of modules in
 * order. Values are held in windows of pairs, block by block. */
#include "native/native.h"

#include "base/log.h"
#include "base/mem.h"
#include "model/lors/pair_window.h"

#include <stdlib.h>

/* Bytes of a window where no limit is given. */
#define WINDOW_BYTES ((int64_t)512 << 20)

/* Voxel columns of a job at most. */
enum { JOB_VOXELS = 32 };

/* Where the values of a pair's blocks are. */
struct source {
    const float *blocks; /* NULL: all are 1 */
    int64_t step;        /* from block to block; 0: all are the same */
    int64_t first;       /* in the window's memory and in the caller's values; -1: not held */
};

struct window {
    struct lr_native *native;
    const float *values;           /* the caller's; NULL: 1 */
    const lr_selection *list_part; /* which LORs of its pairs; NULL = all */
    struct lr_pair_window part;
    int64_t held;           /* values that need memory */
    struct source *sources; /* [list->num] */
    float *memory;
    double *sums; /* [across 1][across 0][along] */
    int jobs_per_row;
};

/* --- values --- */

/* Whether the pair's values need memory: given ones, and ones under a mask that has no pattern. */
static bool is_held(const struct window *window, int64_t pair)
{
    return window->values != NULL || lr_native_mask_is_full(&window->native->scene, pair);
}

/* The next pairs whose values fit; false when none is left. */
static bool next_window(struct window *window, int64_t most)
{
    struct lr_pair_window *part = &window->part;
    lr_pair_window_leave(part);
    window->held = 0;
    for (; part->end < part->num_pairs; lr_pair_window_take(part)) {
        const bool held = is_held(window, lr_pair_window_pair(part, part->end));
        const int64_t needed = held ? lr_pair_window_size(part, part->end) : 0;
        if (part->end > part->begin && window->held + needed > most) break;
        window->sources[part->end] = (struct source){.first = needed > 0 ? window->held : -1};
        window->held += needed;
    }
    return part->end > part->begin;
}

/* Values that a window holds at most: as many as the limit allows, if not all, and at least those of
 * any one pair. */
static int64_t max_held(const struct window *window, int64_t limit_bytes)
{
    const int64_t limit = limit_bytes / (int64_t)sizeof(float);
    int64_t all = 0, largest = 0;
    for (int64_t k = 0; k < window->part.num_pairs; k++) {
        const int64_t pair = lr_pair_window_pair(&window->part, k);
        const int64_t num = is_held(window, pair) ? lr_pair_window_size(&window->part, k) : 0;
        all += num;
        largest = num > largest ? num : largest;
    }
    const int64_t most = all < limit ? all : limit;
    return most > largest ? most : largest;
}

/* values: of the pair, NULL: 1. */
static void load(const struct window *window, int64_t index, const float *values, float *blocks)
{
    const struct lr_native_scene *scene = &window->native->scene;
    const struct lr_native_range range = lr_native_whole_pair(scene, index, window->list_part);
    const struct lr_native_pair *pair = &scene->pairs[index];
    const struct lr_native_module *i = &scene->modules[pair->i], *j = &scene->modules[pair->j];
    const int64_t crystals = (int64_t)j->num_columns * j->num_cells;
    const bool is_full = lr_native_mask_is_full(scene, index);
    for (int ci = 0; ci < i->num_columns; ci++) {
        for (int cj = 0; cj < j->num_columns; cj++) {
            if (!lr_native_takes(&range, ci, cj)) { /* nobody reads these */
                blocks += i->num_cells * j->num_cells;
                continue;
            }
            for (int q = 0; q < i->num_cells; q++) {
                const int64_t row = lr_native_crystal(i, ci, q) * crystals;
                for (int s = 0; s < j->num_cells; s++) {
                    const float value = values != NULL ? values[row + lr_native_crystal(j, cj, s)] : 1.0f;
                    const int cell = q * j->num_cells + s;
                    const bool allowed =
                        (pair->along == NULL || pair->along[cell] != 0.0f) &&
                        (!is_full || lr_native_allowed(scene, index, (const int[2]){ci, cj}, (const int[2]){q, s}));
                    *blocks++ = allowed ? value : 0.0f;
                }
            }
        }
    }
}

static lr_status load_job(void *user, int64_t job, struct lr_native_view *view)
{
    const struct window *window = user;
    const struct lr_native_scene *scene = &window->native->scene;
    const int64_t index = window->part.begin + job;
    const int64_t pair = lr_pair_window_pair(&window->part, index);
    struct source *source = &window->sources[index];
    (void)view;
    if (source->first < 0) {
        source->blocks = scene->pairs[pair].along;
        return LR_OK;
    }
    float *blocks = window->memory + source->first;
    /* Values are held for every pair of the window or, where they are 1, need not be found. */
    const float *values = window->values != NULL ? window->values + window->part.first_value + source->first : NULL;
    load(window, pair, values, blocks);
    source->blocks = blocks;
    source->step = lr_native_block_size(scene, pair);
    return LR_OK;
}

/* --- one job --- */

struct target {
    const struct lr_native_kernels *kernels;
    const struct source *source;
    double *sums; /* of the column's voxels */
    int samples;
};

static lr_status gather(void *user, const struct lr_native_part *part)
{
    const struct target *target = user;
    const struct source *source = target->source;
    const float found = source->blocks == NULL ? target->kernels->sum(part->weight, part->count)
                                               : target->kernels->dot(part->weight, part->offset, part->count,
                                                                      source->blocks + part->block * source->step);
    target->sums[part->k / target->samples] += (double)found;
    return LR_OK;
}

/* Columns x0 .. x1-1 of points and one row of them. */
static lr_status visit_row(const struct window *window, struct lr_native_view *view,
                           const struct lr_native_visit *visit, const int at[3])
{
    const struct lr_native_scene *scene = view->scene;
    const struct lr_native_hull hull = lr_native_make_hull(scene, visit->pair, &visit->range);
    struct target *target = visit->user;
    const int y = at[2];
    int rows[2], columns[2];
    lr_native_hull_rows(scene, &hull, rows);
    if (y < rows[0] || y >= rows[1]) return LR_OK;
    lr_native_hull_columns(scene, &hull, y, columns);
    const int begin = columns[0] > at[0] ? columns[0] : at[0];
    const int end = columns[1] < at[1] ? columns[1] : at[1];
    for (int x = begin; x < end; x++) {
        LR_TRY(lr_native_ask(view));
        const int64_t voxel = (int64_t)(y / scene->num_samples[1]) * scene->num_voxels[0] + x / scene->num_samples[0];
        target->sums = window->sums + voxel * scene->num_voxels[2];
        const struct lr_native_column column = {.point = {scene->points[0][x], scene->points[1][y]},
                                                .along = scene->points[2],
                                                .count = scene->num_points[2]};
        LR_TRY(lr_native_visit_column(view, visit, &column));
    }
    return LR_OK;
}

static lr_status gather_job(void *user, int64_t job, struct lr_native_view *view)
{
    const struct window *window = user;
    const struct lr_native_scene *scene = view->scene;
    const int row = (int)(job / window->jobs_per_row);
    const int first = (int)(job % window->jobs_per_row) * JOB_VOXELS;
    const int last = first + JOB_VOXELS < scene->num_voxels[0] ? first + JOB_VOXELS : scene->num_voxels[0];
    struct target target = {.kernels = view->kernels, .samples = scene->num_samples[2]};
    for (int64_t k = window->part.begin; k < window->part.end; k++) {
        const int64_t pair = lr_pair_window_pair(&window->part, k);
        const struct lr_native_visit visit = {
            .pair = pair,
            .range = lr_native_whole_pair(scene, pair, window->list_part),
            .take = gather,
            .user = &target,
        };
        target.source = &window->sources[k];
        for (int n = 0; n < scene->num_samples[1]; n++) {
            const int at[3] = {first * scene->num_samples[0], last * scene->num_samples[0],
                               row * scene->num_samples[1] + n};
            LR_TRY(visit_row(window, view, &visit, at));
        }
    }
    return LR_OK;
}

/* --- all of it --- */

static lr_status project_window(struct window *window)
{
    const struct lr_native_scene *scene = &window->native->scene;
    const double num = (double)window->part.num_pairs;
    struct lr_native_work work = {"back-projecting", (double)window->part.begin / num, 0.0, load_job, window};
    LR_TRY(lr_native_run(window->native, &work, window->part.end - window->part.begin));
    work.job = gather_job;
    work.share = (double)(window->part.end - window->part.begin) / num;
    return lr_native_run(window->native, &work, (int64_t)scene->num_voxels[1] * window->jobs_per_row);
}

static lr_status project(struct window *window, float *image)
{
    const struct lr_native_scene *scene = &window->native->scene;
    const int64_t limit = scene->params.max_memory_bytes > 0 && scene->params.max_memory_bytes < WINDOW_BYTES
                              ? scene->params.max_memory_bytes
                              : WINDOW_BYTES;
    const int64_t most = max_held(window, limit);
    window->memory = lr_alloc(most, sizeof(*window->memory), "LOR values", scene->params.log);
    if (window->memory == NULL) return LR_FAILED;
    while (next_window(window, most)) LR_TRY(project_window(window));
    lr_native_from_columns(scene, window->sums, image);
    return LR_OK;
}

lr_status lr_native_back(struct lr_native *native, const struct lr_native_pairs *list, const float *values,
                         float *image)
{
    const lr_log *log = native->scene.params.log;
    struct window window = {.native = native,
                            .part = lr_pair_window_begin(native->scene.params.lors, list->pairs, list->num),
                            .list_part = list->part,
                            .values = values};
    window.jobs_per_row = (native->scene.num_voxels[0] + JOB_VOXELS - 1) / JOB_VOXELS;
    window.sources = lr_alloc(list->num, sizeof(*window.sources), "pairs of modules", log);
    window.sums =
        lr_alloc(lr_grid_num_voxels(native->scene.params.grid), sizeof(*window.sums), "an image in columns", log);
    const lr_status status = window.sources != NULL && window.sums != NULL ? project(&window, image) : LR_FAILED;
    free(window.memory);
    free(window.sums);
    free(window.sources);
    return status;
}
