/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "native/native.h"

#include "base/log.h"
#include "base/parallel.h"

#include <stdatomic.h>

/* Batches that a long piece of work is reported in, and jobs that each thread does in one at
 * least. */
enum { BATCHES = 64, JOBS_PER_THREAD = 2 };

struct batch {
    struct lr_native *native;
    const struct lr_native_work *work;
    int64_t first;
    atomic_int status; /* the first that is not LR_OK */
};

static void do_jobs(void *user, int64_t begin, int64_t end, int worker)
{
    struct batch *batch = user;
    for (int64_t k = begin; k < end && atomic_load(&batch->status) == LR_OK; k++) {
        const lr_status status =
            batch->work->job(batch->work->user, batch->first + k, &batch->native->views[worker]);
        int good = LR_OK;
        if (status != LR_OK) {
            atomic_compare_exchange_strong(&batch->status, &good, (int)status);
        }
    }
}

lr_status lr_native_run(struct lr_native *native, const struct lr_native_work *work,
                        int64_t num_jobs)
{
    const lr_progress *progress = native->scene.params.progress;
    const int64_t least = (int64_t)JOBS_PER_THREAD * native->num_views;
    const int64_t even = (num_jobs + BATCHES - 1) / BATCHES;
    const int64_t in_batch = even > least ? even : least;
    struct batch batch = {.native = native, .work = work};
    atomic_init(&batch.status, LR_OK);
    for (; batch.first < num_jobs; batch.first += in_batch) {
        const double done = work->from + work->share * (double)batch.first / (double)num_jobs;
        LR_TRY(lr_progress_report(progress, work->what, done, 1.0));
        const int64_t left = num_jobs - batch.first;
        lr_parallel_for(native->num_views, left < in_batch ? left : in_batch, 1, do_jobs, &batch);
        LR_TRY((lr_status)atomic_load(&batch.status));
    }
    return lr_progress_report(progress, work->what, work->from + work->share, 1.0);
}

/* --- images --- */

/* Calls with the place of each voxel of the column order in that of the grid. */
static int64_t grid_place(const struct lr_native_scene *scene, const int at[3])
{
    const int *size = scene->params.grid->size;
    const int64_t strides[3] = {1, size[0], (int64_t)size[0] * size[1]};
    return at[0] * strides[scene->across[0]] + at[1] * strides[scene->across[1]] +
           at[2] * strides[scene->axis];
}

static int64_t stride_along(const struct lr_native_scene *scene)
{
    return grid_place(scene, (const int[3]){0, 0, 1});
}

void lr_native_to_columns(const struct lr_native_scene *scene, const float *image, float *columns)
{
    const int64_t stride = stride_along(scene);
    for (int y = 0; y < scene->num_voxels[1]; y++) {
        for (int x = 0; x < scene->num_voxels[0]; x++) {
            const float *from = image + grid_place(scene, (const int[3]){x, y, 0});
            for (int z = 0; z < scene->num_voxels[2]; z++) {
                *columns++ = from[z * stride];
            }
        }
    }
}

void lr_native_from_columns(const struct lr_native_scene *scene, const double *columns,
                            float *image)
{
    const int64_t stride = stride_along(scene);
    const double scale = 1.0 / scene->num_all_samples;
    for (int y = 0; y < scene->num_voxels[1]; y++) {
        for (int x = 0; x < scene->num_voxels[0]; x++) {
            float *to = image + grid_place(scene, (const int[3]){x, y, 0});
            for (int z = 0; z < scene->num_voxels[2]; z++) {
                to[z * stride] = (float)(*columns++ * scale);
            }
        }
    }
}
