/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Forward projection: a job owns the values of some crystal columns of one pair of modules with all
 * of the other's, and meets the columns of the image in order. */
#include "native/native.h"

#include "base/log.h"
#include "base/mem.h"
#include "model/lors/pair_window.h"

#include <stdlib.h>
#include <string.h>

/* Values of a job, about: they stay in a processor's cache. */
#define JOB_VALUES ((int64_t)1 << 18)

/* Jobs that every thread should have. */
enum { JOBS_PER_THREAD = 8 };

struct job {
    int64_t entry;       /* of the list of pairs */
    int begin, end;      /* columns of its module i */
    int64_t first_value; /* of the pair, in the caller's array */
};

struct forward {
    struct lr_native *native;
    const struct lr_native_pairs *list;
    const float *columns; /* image */
    float *values;
    struct job *jobs;
    int64_t num_jobs;
};

/* --- jobs --- */

/* Columns of module i that a job takes. */
static int choose_columns(const struct forward *forward, int64_t pair)
{
    const struct lr_native_scene *scene = &forward->native->scene;
    const int columns = scene->modules[scene->pairs[pair].i].num_columns;
    const int64_t values = lr_pair_size(forward->native->scene.params.lors, pair) / columns;
    const int64_t wanted = (int64_t)JOBS_PER_THREAD * forward->native->num_views;
    const int64_t parts = (wanted + forward->list->num - 1) / forward->list->num;
    const int64_t by_jobs = columns / parts, by_values = JOB_VALUES / values;
    const int64_t chosen = by_jobs < by_values ? by_jobs : by_values;
    return chosen > 1 ? (int)chosen : 1;
}

/* Lists the jobs; jobs NULL: counts them. */
static int64_t list_jobs(const struct forward *forward, struct job *jobs)
{
    const struct lr_native_scene *scene = &forward->native->scene;
    int64_t num = 0, first_value = 0;
    for (int64_t k = 0; k < forward->list->num; k++) {
        const int64_t pair = lr_native_pair_at(forward->list, k);
        const int columns = scene->modules[scene->pairs[pair].i].num_columns;
        const int step = choose_columns(forward, pair);
        for (int begin = 0; begin < columns; begin += step, num++) {
            if (jobs != NULL) {
                const int end = begin + step < columns ? begin + step : columns;
                jobs[num] = (struct job){k, begin, end, first_value};
            }
        }
        first_value += lr_pair_size(forward->native->scene.params.lors, pair);
    }
    return num;
}

/* --- one job --- */

struct target {
    float *values; /* of the job, block by block */
    double *sums;  /* where they go on to */
    bool *are_new; /* of each block: something was added to its values */
    int64_t num_blocks;
    int64_t first_block, block_size;
    const float *points; /* image at the points of the column */
    float *room;         /* for them */
};

static lr_status scatter(void *user, const struct lr_native_part *part)
{
    const struct target *target = user;
    const int64_t number = part->block - target->first_block;
    float *block = target->values + number * target->block_size;
    const float value = target->points[part->k];
    target->are_new[number] = true;
    for (int n = 0; n < part->count; n++) block[part->offset[n]] += part->weight[n] * value;
    return LR_OK;
}

static void add_block(const struct target *target, int64_t number)
{
    float *values = target->values + number * target->block_size;
    double *sums = target->sums + number * target->block_size;
    for (int64_t k = 0; k < target->block_size; k++) {
        sums[k] += (double)values[k];
        values[k] = 0.0f;
    }
    target->are_new[number] = false;
}

static void add_to_sums(const struct target *target)
{
    for (int64_t number = 0; number < target->num_blocks; number++)
        if (target->are_new[number]) add_block(target, number);
}

/* The image along one column of points; NULL where it is all 0. */
static const float *column_values(const struct forward *forward, int x, int y, float *room)
{
    const struct lr_native_scene *scene = &forward->native->scene;
    const int samples = scene->num_samples[2], num_along = scene->num_voxels[2];
    const int64_t voxel = (int64_t)(y / scene->num_samples[1]) * scene->num_voxels[0] + x / scene->num_samples[0];
    const float *voxels = forward->columns + voxel * num_along;
    bool any = false;
    for (int k = 0; k < num_along; k++) {
        any = any || voxels[k] != 0.0f;
        for (int n = 0; n < samples; n++) room[k * samples + n] = voxels[k];
    }
    return any ? room : NULL;
}

static lr_status visit_column(const struct forward *forward, struct lr_native_view *view,
                              const struct lr_native_visit *visit, const int at[2])
{
    const struct lr_native_scene *scene = &forward->native->scene;
    struct target *target = visit->user;
    LR_TRY(lr_native_ask(view));
    target->points = column_values(forward, at[0], at[1], target->room);
    if (target->points == NULL) return LR_OK;
    const struct lr_native_column column = {.point = {scene->points[0][at[0]], scene->points[1][at[1]]},
                                            .along = scene->points[2],
                                            .count = scene->num_points[2],
                                            .wanted = target->points};
    LR_TRY(lr_native_visit_column(view, visit, &column));
    if (lr_native_sums_each_column(scene, visit->pair)) add_to_sums(target);
    return LR_OK;
}

static lr_status visit_columns(const struct forward *forward, struct lr_native_view *view,
                               const struct lr_native_visit *visit)
{
    const struct lr_native_scene *scene = &forward->native->scene;
    const struct lr_native_hull hull = lr_native_make_hull(scene, visit->pair, &visit->range);
    int rows[2], columns[2];
    lr_native_hull_rows(scene, &hull, rows);
    for (int y = rows[0]; y < rows[1]; y++) {
        lr_native_hull_columns(scene, &hull, y, columns);
        for (int x = columns[0]; x < columns[1]; x++) LR_TRY(visit_column(forward, view, visit, (const int[2]){x, y}));
        if (lr_native_sums_row(y)) add_to_sums(visit->user);
    }
    add_to_sums(visit->user);
    return LR_OK;
}

/* From blocks to the order of files; LORs out of coincidence are 0. */
static void store(const struct forward *forward, const struct lr_native_visit *visit, const double *sums, float *values)
{
    const struct lr_native_scene *scene = &forward->native->scene;
    const struct lr_native_pair *pair = &scene->pairs[visit->pair];
    const struct lr_native_module *i = &scene->modules[pair->i], *j = &scene->modules[pair->j];
    const int64_t crystals = (int64_t)j->num_columns * j->num_cells;
    const float scale = 1.0f / (float)scene->num_all_samples;
    const bool is_full = lr_native_mask_is_full(scene, visit->pair);
    for (int ci = visit->range.begin[0]; ci < visit->range.end[0]; ci++) {
        for (int cj = 0; cj < j->num_columns; cj++) {
            if (!lr_native_takes(&visit->range, ci, cj)) {
                sums += i->num_cells * j->num_cells;
                continue;
            }
            for (int q = 0; q < i->num_cells; q++) {
                float *row = values + lr_native_crystal(i, ci, q) * crystals;
                for (int s = 0; s < j->num_cells; s++, sums++) {
                    const int cell = q * j->num_cells + s;
                    const bool allowed = (pair->along == NULL || pair->along[cell] != 0.0f) &&
                                         (!is_full || lr_native_allowed(scene, visit->pair, (const int[2]){ci, cj},
                                                                        (const int[2]){q, s}));
                    row[lr_native_crystal(j, cj, s)] = allowed ? (float)*sums * scale : 0.0f;
                }
            }
        }
    }
}

static bool open_target(struct target *target, const struct lr_native_scene *scene)
{
    const lr_log *log = scene->params.log;
    const int64_t values = target->num_blocks * target->block_size;
    target->values = lr_alloc(values, sizeof(*target->values), "LOR values", log);
    target->sums = lr_alloc(values, sizeof(*target->sums), "LOR values", log);
    target->are_new = lr_alloc(target->num_blocks, sizeof(*target->are_new), "LOR values", log);
    target->room = lr_alloc(scene->num_points[2], sizeof(*target->room), "LOR values", log);
    return target->values != NULL && target->sums != NULL && target->are_new != NULL && target->room != NULL;
}

static void close_target(struct target *target)
{
    free(target->values);
    free(target->sums);
    free(target->are_new);
    free(target->room);
}

static lr_status project_job(void *user, int64_t number, struct lr_native_view *view)
{
    const struct forward *forward = user;
    const struct lr_native_scene *scene = &forward->native->scene;
    const struct job *job = &forward->jobs[number];
    const int64_t pair = lr_native_pair_at(forward->list, job->entry);
    const int num_j = scene->modules[scene->pairs[pair].j].num_columns;
    struct target target = {.num_blocks = (int64_t)(job->end - job->begin) * num_j,
                            .first_block = (int64_t)job->begin * num_j,
                            .block_size = lr_native_block_size(scene, pair)};
    struct lr_native_visit visit = {
        .pair = pair,
        .range = lr_native_whole_pair(scene, pair, forward->list->part),
        .take = scatter,
        .user = &target,
    };
    visit.range.begin[0] = job->begin;
    visit.range.end[0] = job->end;
    lr_status status = open_target(&target, scene) ? LR_OK : LR_FAILED;
    status = status == LR_OK ? visit_columns(forward, view, &visit) : status;
    if (status == LR_OK) store(forward, &visit, target.sums, forward->values + job->first_value);
    close_target(&target);
    return status;
}

/* --- all of it --- */

static lr_status project(struct forward *forward, const float *image, float *columns)
{
    lr_native_to_columns(&forward->native->scene, image, columns);
    list_jobs(forward, forward->jobs);
    forward->columns = columns;
    const struct lr_native_work work = {"projecting forward", 0.0, 1.0, project_job, forward};
    return lr_native_run(forward->native, &work, forward->num_jobs);
}

lr_status lr_native_forward(struct lr_native *native, const struct lr_native_pairs *list, const float *image,
                            float *values)
{
    const lr_log *log = native->scene.params.log;
    struct forward forward = {.native = native, .list = list, .values = values};
    forward.num_jobs = list_jobs(&forward, NULL);
    float *columns =
        lr_alloc(lr_grid_num_voxels(native->scene.params.grid), sizeof(*columns), "an image in columns", log);
    forward.jobs = lr_alloc(forward.num_jobs, sizeof(*forward.jobs), "a list of work", log);
    const lr_status status = columns != NULL && forward.jobs != NULL ? project(&forward, image, columns) : LR_FAILED;
    free(forward.jobs);
    free(columns);
    return status;
}
