/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The native backend: projections by columns on the processor's vector units, in single precision
 * (docs/method/correspondence.md, "Columns in native"). This file creates the backend and projects whole module pairs.
 * A job of a forward projection computes the values between some crystal columns of one module and all crystal columns
 * of the other one. The job visits the columns of the image in a fixed order and adds their terms to these values. A
 * job of a back-projection computes the sums of its own voxels. */
#include "base/log.h"
#include "base/mem.h"
#include "correspondence/native/native.h"
#include "model/lors/pair_window.h"

#include <stdlib.h>
#include <string.h>

/* Returns a window that is empty and stands before the first pair of the part. */
static struct lr_pair_window pairs_of(const struct lr_native *native, const lr_selection *part)
{
    return lr_pair_window_begin(native->scene.params.lors, part != NULL ? part->pairs : NULL,
                                part != NULL ? part->num_pairs : 0);
}

/* The arguments of copy_values. If `sums` is not NULL, values are copied from the order of blocks to the order of data
 * files, otherwise in the other direction. */
struct copy {
    const double *sums; /* sums of all blocks, which are copied to `values`; NULL = `given` is copied to `blocks` */
    float *values;      /* output in the order of files: `scale` times the sums */
    float scale;
    const float *given; /* input in the order of files; NULL = all values are 1 */
    float *blocks;
};

/* Copies the values between the crystal columns of a range, block by block. LORs out of coincidence get 0. Blocks
 * without LORs of the part are skipped. */
static void copy_values(const struct lr_native_scene *scene, int64_t index, const struct lr_native_range *range,
                        const struct copy *copy)
{
    const struct lr_native_pair *pair = &scene->pairs[index];
    const struct lr_native_module *i = &scene->modules[pair->i], *j = &scene->modules[pair->j];
    const int64_t crystals = (int64_t)j->num_columns * j->num_cells, size = lr_native_block_size(scene, index);
    const bool is_full = lr_native_mask_is_full(scene, index);
    int64_t first = 0;
    for (int ci = range->begin[0]; ci < range->end[0]; ci++) {
        for (int cj = 0; cj < j->num_columns; cj++, first += size) {
            if (!lr_native_takes(range, ci, cj)) continue;
            for (int q = 0, cell = 0; q < i->num_cells; q++) {
                const int64_t row = lr_native_crystal(i, ci, q) * crystals;
                for (int s = 0; s < j->num_cells; s++, cell++) {
                    const bool allowed =
                        (pair->along == NULL || pair->along[cell] != 0.0f) &&
                        (!is_full || lr_native_allowed(scene, index, (const int[2]){ci, cj}, (const int[2]){q, s}));
                    const int64_t at = row + lr_native_crystal(j, cj, s);
                    if (copy->sums != NULL)
                        copy->values[at] = allowed ? (float)copy->sums[first + cell] * copy->scale : 0.0f;
                    else
                        copy->blocks[first + cell] = !allowed ? 0.0f : copy->given != NULL ? copy->given[at] : 1.0f;
                }
            }
        }
    }
}

/* === forward projection === */

/* The approximate number of values of a job. They must fit into a processor's cache. */
#define JOB_VALUES ((int64_t)1 << 18)

enum { JOBS_PER_THREAD = 8 };

struct job {
    int64_t entry;       /* position in the list of pairs */
    int begin, end;      /* columns of the pair's module i */
    int64_t first_value; /* index of the pair's first value in the caller's array */
};

struct forward {
    struct lr_native *native;
    const lr_selection *part;    /* NULL = all LORs */
    struct lr_pair_window pairs; /* the part's list of pairs */
    const float *columns;        /* image */
    float *values;
    struct job *jobs;
    int64_t num_jobs;
};

/* --- jobs --- */

/* Lists the jobs, and returns their number. jobs: NULL = only their number is found. */
static int64_t list_jobs(const struct forward *forward, struct job *jobs)
{
    const struct lr_native_scene *scene = &forward->native->scene;
    int64_t num = 0, first_value = 0;
    for (int64_t k = 0; k < forward->pairs.num_pairs; k++) {
        const int64_t pair = lr_pair_window_pair(&forward->pairs, k);
        const int columns = scene->modules[scene->pairs[pair].i].num_columns;
        const int64_t size = lr_pair_size(scene->params.lors, pair);
        const int64_t parts = ((int64_t)JOBS_PER_THREAD * forward->native->num_views + forward->pairs.num_pairs - 1) /
                              forward->pairs.num_pairs;
        const int64_t by_jobs = columns / parts, by_values = JOB_VALUES / (size / columns);
        const int64_t chosen = by_jobs < by_values ? by_jobs : by_values;
        const int step = chosen > 1 ? (int)chosen : 1; /* crystal columns of module i in each job */
        for (int begin = 0; begin < columns; begin += step, num++) {
            if (jobs != NULL) {
                const int end = begin + step < columns ? begin + step : columns;
                jobs[num] = (struct job){k, begin, end, first_value};
            }
        }
        first_value += size;
    }
    return num;
}

/* --- one job --- */

struct scatter_target {
    float *values; /* values of the job, block by block */
    double *sums;  /* totals of the values */
    bool *are_new; /* [blocks] true if values of the block have changed since they were added to `sums` */
    int64_t num_blocks;
    int64_t first_block, block_size;
    float *points; /* values of the image at the points of the current column */
};

static lr_status scatter(void *user, const struct lr_native_part *part)
{
    const struct scatter_target *target = user;
    const int64_t number = part->block - target->first_block;
    float *block = target->values + number * target->block_size;
    const float value = target->points[part->k];
    target->are_new[number] = true;
    for (int n = 0; n < part->count; n++) block[part->offset[n]] += part->weight[n] * value;
    return LR_OK;
}

/* Adds the float sums of the blocks to the sums in double, and clears the floats. */
static void add_to_sums(const struct scatter_target *target)
{
    for (int64_t number = 0; number < target->num_blocks; number++)
        if (target->are_new[number]) {
            float *values = target->values + number * target->block_size;
            double *sums = target->sums + number * target->block_size;
            for (int64_t k = 0; k < target->block_size; k++) {
                sums[k] += (double)values[k];
                values[k] = 0.0f;
            }
            target->are_new[number] = false;
        }
}

/* Visits every column of the image that may have elements with the LORs of a job, and adds these elements to the job's
 * values. */
static lr_status visit_columns(const struct forward *forward, struct lr_native_view *view,
                               const struct lr_native_visit *visit)
{
    const struct lr_native_scene *scene = &forward->native->scene;
    const struct lr_native_hull hull = lr_native_make_hull(scene, visit->pair, &visit->range);
    const int samples = scene->num_samples[2], num_along = scene->num_voxels[2];
    const bool sums_each_column = lr_native_block_size(scene, visit->pair) <= LR_NATIVE_FEW_CELLS;
    struct scatter_target *target = visit->user;
    int rows[2], columns[2];
    lr_native_hull_rows(scene, &hull, rows);
    for (int y = rows[0]; y < rows[1]; y++) {
        lr_native_hull_columns(scene, &hull, y, columns);
        for (int x = columns[0]; x < columns[1]; x++) {
            LR_TRY(lr_native_ask(view));
            const int64_t voxel =
                (int64_t)(y / scene->num_samples[1]) * scene->num_voxels[0] + x / scene->num_samples[0];
            const float *voxels = forward->columns + voxel * num_along;
            bool any = false;
            for (int k = 0; k < num_along; k++) {
                any = any || voxels[k] != 0.0f;
                for (int n = 0; n < samples; n++) target->points[k * samples + n] = voxels[k];
            }
            if (!any) continue;
            const struct lr_native_column column = {.point = {scene->points[0][x], scene->points[1][y]},
                                                    .along = scene->points[2],
                                                    .count = scene->num_points[2],
                                                    .wanted = target->points};
            LR_TRY(lr_native_visit_column(view, visit, &column));
            if (sums_each_column) add_to_sums(target);
        }
        if ((y + 1) % LR_NATIVE_ROWS_OF_SUMS == 0) add_to_sums(target);
    }
    add_to_sums(target);
    return LR_OK;
}

static lr_status project_job(void *user, int64_t number, struct lr_native_view *view)
{
    const struct forward *forward = user;
    const struct lr_native_scene *scene = &forward->native->scene;
    const struct job *job = &forward->jobs[number];
    const int64_t pair = lr_pair_window_pair(&forward->pairs, job->entry);
    const int num_j = scene->modules[scene->pairs[pair].j].num_columns;
    struct scatter_target target = {.num_blocks = (int64_t)(job->end - job->begin) * num_j,
                                    .first_block = (int64_t)job->begin * num_j,
                                    .block_size = lr_native_block_size(scene, pair)};
    struct lr_native_visit visit = {
        .pair = pair,
        .range = lr_native_whole_pair(scene, pair, forward->part),
        .take = scatter,
        .user = &target,
    };
    visit.range.begin[0] = job->begin;
    visit.range.end[0] = job->end;
    const lr_log *log = scene->params.log;
    const int64_t values = target.num_blocks * target.block_size;
    target.values = lr_alloc(values, sizeof(*target.values), "LOR values", log);
    target.sums = lr_alloc(values, sizeof(*target.sums), "LOR values", log);
    target.are_new = lr_alloc(target.num_blocks, sizeof(*target.are_new), "LOR values", log);
    target.points = lr_alloc(scene->num_points[2], sizeof(*target.points), "LOR values", log);
    const bool has_all = target.values && target.sums && target.are_new && target.points;
    const lr_status status = has_all ? visit_columns(forward, view, &visit) : LR_FAILED;

    if (status == LR_OK)
        copy_values(scene, pair, &visit.range,
                    &(struct copy){.sums = target.sums,
                                   .values = forward->values + job->first_value,
                                   .scale = 1.0f / (float)scene->num_all_samples});
    lr_free_all(target.values, target.sums, target.are_new, target.points);
    return status;
}

/* --- the projection --- */

static lr_status forward(struct lr_native *native, const lr_selection *part, const lr_vector *image, lr_vector *values)
{
    const struct lr_backend_params *params = &native->scene.params;
    struct forward forward = {
        .native = native, .part = part, .pairs = pairs_of(native, part), .values = values->values};
    forward.num_jobs = list_jobs(&forward, NULL);
    float *columns = lr_alloc(lr_grid_num_voxels(params->grid), sizeof(*columns), "an image in columns", params->log);
    forward.jobs = lr_alloc(forward.num_jobs, sizeof(*forward.jobs), "a list of work", params->log);
    lr_status status = columns != NULL && forward.jobs != NULL ? LR_OK : LR_FAILED;
    if (status == LR_OK) {
        lr_native_to_columns(&native->scene, image->values, columns);
        list_jobs(&forward, forward.jobs);
        forward.columns = columns;
        const struct lr_native_work work = {"projecting forward", 0.0, 1.0, project_job, &forward};
        status = lr_native_run(native, &work, forward.num_jobs);
    }
    lr_free_all(forward.jobs, columns);
    return status;
}

/* === back-projection: each job has some voxels of one row across the axis, and visits the pairs of modules in order.
 * Only one window of pairs has its values in memory at a time, block by block === */

/* The size of a window's memory if the caller sets no limit, bytes. */
#define WINDOW_BYTES ((int64_t)512 << 20)

/* The largest number of voxel columns of a job. */
enum { JOB_VOXELS = 32 };

/* The place of a pair's values, block by block. */
struct source {
    const float *blocks; /* NULL = all values are 1 */
    int64_t step;        /* step from one block to the next; 0 = all blocks of the pair are equal */
    int64_t first; /* index of the pair's first value in the window's memory, and also in the caller's values, counted
                      from the window's first value; -1 = the pair is not in memory */
};

struct window {
    struct lr_native *native;
    const float *values;           /* the caller's values; NULL = all 1 */
    const lr_selection *selection; /* NULL = all LORs */
    struct lr_pair_window part;
    struct source *sources; /* [part.num_pairs] */
    float *memory;
    double *sums; /* [across 1][across 0][along] */
    int jobs_per_row;
};

/* --- values --- */

/* Returns true if the values of a pair must be in memory: because the caller gives values, or because the mask has one
 * bit per LOR, so that the pair's blocks differ. */
static bool is_held(const struct window *window, int64_t pair)
{
    return window->values != NULL || lr_native_mask_is_full(&window->native->scene, pair);
}

static lr_status load_job(void *user, int64_t job, struct lr_native_view *view)
{
    const struct window *window = user;
    const struct lr_native_scene *scene = &window->native->scene;
    const int64_t entry = window->part.begin + job;
    const int64_t index = lr_pair_window_pair(&window->part, entry);
    const struct lr_native_pair *pair = &scene->pairs[index];
    struct source *source = &window->sources[entry];
    (void)view;
    if (source->first < 0) {
        source->blocks = pair->along;
        return LR_OK;
    }
    float *blocks = window->memory + source->first;
    source->blocks = blocks;
    source->step = lr_native_block_size(scene, index);

    /* If the caller gives values, the memory has the values of all pairs of the window, in the caller's order. */
    const struct lr_native_range range = lr_native_whole_pair(scene, index, window->selection);
    struct copy copy = {.blocks = blocks};
    if (window->values != NULL) copy.given = window->values + window->part.first_value + source->first;
    copy_values(scene, index, &range, &copy);
    return LR_OK;
}

/* --- one job --- */

struct gather_target {
    const struct lr_native_kernels *kernels;
    const struct source *source;
    double *sums; /* sums of the column's voxels */
    int samples;
};

static lr_status gather(void *user, const struct lr_native_part *part)
{
    const struct gather_target *target = user;
    const struct source *source = target->source;
    const float found = source->blocks == NULL ? target->kernels->sum(part->weight, part->count)
                                               : target->kernels->dot(part->weight, part->offset, part->count,
                                                                      source->blocks + part->block * source->step);
    target->sums[part->k / target->samples] += (double)found;
    return LR_OK;
}

static lr_status gather_job(void *user, int64_t job, struct lr_native_view *view)
{
    const struct window *window = user;
    const struct lr_native_scene *scene = view->scene;
    const int row = (int)(job / window->jobs_per_row);
    const int first = (int)(job % window->jobs_per_row) * JOB_VOXELS;
    const int last = first + JOB_VOXELS < scene->num_voxels[0] ? first + JOB_VOXELS : scene->num_voxels[0];
    const int first_x = first * scene->num_samples[0], last_x = last * scene->num_samples[0];
    struct gather_target target = {.kernels = view->kernels, .samples = scene->num_samples[2]};
    for (int64_t k = window->part.begin; k < window->part.end; k++) {
        const int64_t pair = lr_pair_window_pair(&window->part, k);
        const struct lr_native_visit visit = {
            .pair = pair,
            .range = lr_native_whole_pair(scene, pair, window->selection),
            .take = gather,
            .user = &target,
        };
        const struct lr_native_hull hull = lr_native_make_hull(scene, pair, &visit.range);
        int rows[2], columns[2];
        lr_native_hull_rows(scene, &hull, rows);
        target.source = &window->sources[k];
        for (int n = 0; n < scene->num_samples[1]; n++) {
            const int y = row * scene->num_samples[1] + n;
            if (y < rows[0] || y >= rows[1]) continue;
            lr_native_hull_columns(scene, &hull, y, columns);
            const int begin = columns[0] > first_x ? columns[0] : first_x;
            const int end = columns[1] < last_x ? columns[1] : last_x;
            for (int x = begin; x < end; x++) {
                LR_TRY(lr_native_ask(view));
                const int64_t voxel = (int64_t)row * scene->num_voxels[0] + x / scene->num_samples[0];
                const struct lr_native_column column = {.point = {scene->points[0][x], scene->points[1][y]},
                                                        .along = scene->points[2],
                                                        .count = scene->num_points[2]};
                target.sums = window->sums + voxel * scene->num_voxels[2];
                LR_TRY(lr_native_visit_column(view, &visit, &column));
            }
        }
    }
    return LR_OK;
}

/* --- the projection --- */

static lr_status back(struct lr_native *native, const lr_selection *part, const lr_vector *values, lr_vector *image)
{
    const struct lr_native_scene *scene = &native->scene;
    const lr_log *log = scene->params.log;
    float *given = values != NULL ? values->values : NULL;
    struct window window = {.native = native, .part = pairs_of(native, part), .selection = part, .values = given};
    struct lr_pair_window *pairs = &window.part;
    window.jobs_per_row = (scene->num_voxels[0] + JOB_VOXELS - 1) / JOB_VOXELS;
    window.sources = lr_alloc(pairs->num_pairs, sizeof(*window.sources), "pairs of modules", log);
    window.sums = lr_alloc(lr_grid_num_voxels(scene->params.grid), sizeof(*window.sums), "an image in columns", log);
    lr_status status = window.sources != NULL && window.sums != NULL ? LR_OK : LR_FAILED;
    if (status != LR_OK) goto finish;

    /* A window holds at most `limit` values, but always has room for the largest pair. */
    const int64_t limit_bytes = scene->params.max_memory_bytes > 0 && scene->params.max_memory_bytes < WINDOW_BYTES
                                    ? scene->params.max_memory_bytes
                                    : WINDOW_BYTES;
    const int64_t limit = limit_bytes / (int64_t)sizeof(float);
    int64_t all = 0, largest = 0;
    for (int64_t k = 0; k < pairs->num_pairs; k++) {
        const int64_t pair = lr_pair_window_pair(pairs, k);
        const int64_t num = is_held(&window, pair) ? lr_pair_window_size(pairs, k) : 0;
        all += num;
        largest = num > largest ? num : largest;
    }
    const int64_t fitting = all < limit ? all : limit, most = fitting > largest ? fitting : largest;
    window.memory = lr_alloc(most, sizeof(*window.memory), "LOR values", log);
    status = window.memory != NULL ? LR_OK : LR_FAILED;

    const double num_pairs = (double)pairs->num_pairs;
    while (status == LR_OK && pairs->end < pairs->num_pairs) {
        /* The window gets as many of the next pairs as fit, and at least one. */
        lr_pair_window_leave(pairs);
        int64_t num_held = 0;
        for (; pairs->end < pairs->num_pairs; lr_pair_window_take(pairs)) {
            const bool held = is_held(&window, lr_pair_window_pair(pairs, pairs->end));
            const int64_t needed = held ? lr_pair_window_size(pairs, pairs->end) : 0;
            if (pairs->end > pairs->begin && num_held + needed > most) break;
            window.sources[pairs->end] = (struct source){.first = needed > 0 ? num_held : -1};
            num_held += needed;
        }
        const int64_t num = pairs->end - pairs->begin;
        struct lr_native_work work = {"back-projecting", (double)pairs->begin / num_pairs, 0.0, load_job, &window};
        status = lr_native_run(native, &work, num);
        if (status != LR_OK) break;
        work.job = gather_job;
        work.share = (double)num / num_pairs;
        status = lr_native_run(native, &work, (int64_t)scene->num_voxels[1] * window.jobs_per_row);
    }
    if (status == LR_OK) lr_native_from_columns(scene, window.sums, image->values);
finish:
    lr_free_all(window.memory, window.sums, window.sources);
    return status;
}

/* === the backend === */

static lr_status project(void *self, bool is_forward, const lr_selection *part, const lr_vector *in, lr_vector *out)
{
    struct lr_native *native = self;
    if (part != NULL && part->lors != NULL) {
        float *const given = in != NULL ? in->values : NULL;
        return is_forward ? lr_native_project_lors(native, true, part, given, out->values)
                          : lr_native_project_lors(native, false, part, out->values, given);
    }
    return (is_forward ? forward : back)(native, part, in, out);
}

static void destroy(void *self)
{
    struct lr_native *native = self;
    for (int k = 0; k < native->num_views; k++) lr_native_view_finish(&native->views[k]);
    free(native->views);
    lr_native_scene_finish(&native->scene);
    free(native);
}

lr_status lr_native_backend_create(const struct lr_backend_params *params, struct lr_backend *backend)
{
    static const struct lr_backend_fns fns = {
        .name = "native",
        .has_parts = true,
        .voxel_bytes = 12,
        .heeds_pairs = true,
        .project = project,
        .rows = lr_native_rows,
        .destroy = destroy,
    };
    if (params->penetration) return lr_native_penetration_create(params, backend);
    struct lr_native *native = lr_alloc(1, sizeof(*native), "the native backend", params->log);
    if (native == NULL) return LR_FAILED;
    lr_status status = lr_native_scene_init(&native->scene, params);
    if (status == LR_OK) {
        native->views = lr_alloc(params->threads, sizeof(*native->views), "threads", params->log);
        status = native->views != NULL ? LR_OK : LR_FAILED;
    }
    while (status == LR_OK && native->num_views < params->threads) {
        status = lr_native_view_init(&native->views[native->num_views], &native->scene);
        native->num_views += status == LR_OK;
    }
    if (status != LR_OK) {
        destroy(native);
        return status;
    }
    lr_backend_on_host(backend, &fns, native, params->threads, native->views[0].kernels->name);
    return LR_OK;
}
