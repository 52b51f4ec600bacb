/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "native/native.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/parallel.h"

/* Seconds between two questions whether to go on, about: they cost little and are answered soon. */
#define ASK_SECONDS 0.02

struct lr_native_run_state {
    struct lr_native *native;
    const struct lr_native_work *work;
    int64_t num_jobs;
    struct lr_native_watch watch;
};

/* Jobs under way count half, once it is known that they come to an end. */
static double share_done(const struct lr_native_watch *watch, int64_t num_jobs)
{
    const double done = (double)atomic_load(&watch->num_done);
    const double begun = (double)atomic_load(&watch->num_begun);
    return done > 0.0 ? 0.5 * (done + begun) / (double)num_jobs : 0.0;
}

static void set_status(struct lr_native_watch *watch, lr_status status)
{
    int good = LR_OK;
    atomic_compare_exchange_strong(&watch->status, &good, (int)status);
}

/* On the thread that began the work. */
static void report(const struct lr_native_run_state *run, struct lr_native_watch *watch)
{
    const double done = run->work->share * share_done(watch, run->num_jobs);
    const lr_status status =
        lr_progress_report(run->native->scene.params.progress, run->work->what, run->work->from + done, 1.0);
    set_status(watch, status);
    watch->next_s = lr_clock_seconds() + ASK_SECONDS;
}

lr_status lr_native_ask(struct lr_native_view *view)
{
    struct lr_native_watch *watch = view->watch;
    if (watch == NULL) return LR_OK;
    if (view->reports && lr_clock_seconds() >= watch->next_s) report(watch->run, watch);
    return (lr_status)atomic_load_explicit(&watch->status, memory_order_relaxed);
}

static void do_jobs(void *user, int64_t begin, int64_t end, int worker)
{
    struct lr_native_run_state *run = user;
    struct lr_native_view *view = &run->native->views[worker];
    view->watch = &run->watch;
    view->reports = worker == 0;
    for (int64_t k = begin; k < end && lr_native_ask(view) == LR_OK; k++) {
        atomic_fetch_add(&run->watch.num_begun, 1);
        set_status(&run->watch, run->work->job(run->work->user, k, view));
        atomic_fetch_add(&run->watch.num_done, 1);
    }
}

lr_status lr_native_run(struct lr_native *native, const struct lr_native_work *work, int64_t num_jobs)
{
    struct lr_native_run_state run = {.native = native, .work = work, .num_jobs = num_jobs, .watch.run = &run};
    lr_parallel_for(native->num_views, num_jobs, 1, do_jobs, &run);
    for (int k = 0; k < native->num_views; k++) native->views[k].watch = NULL;
    LR_TRY((lr_status)atomic_load(&run.watch.status));
    return lr_progress_report(native->scene.params.progress, work->what, work->from + work->share, 1.0);
}

/* --- images --- */

/* Calls with the place of each voxel of the column order in that of the grid. */
static int64_t grid_place(const struct lr_native_scene *scene, const int at[3])
{
    const int *size = scene->params.grid->size;
    const int64_t strides[3] = {1, size[0], (int64_t)size[0] * size[1]};
    return at[0] * strides[scene->across[0]] + at[1] * strides[scene->across[1]] + at[2] * strides[scene->axis];
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
            for (int z = 0; z < scene->num_voxels[2]; z++) *columns++ = from[z * stride];
        }
    }
}

void lr_native_from_columns(const struct lr_native_scene *scene, const double *columns, float *image)
{
    const int64_t stride = stride_along(scene);
    const double scale = 1.0 / scene->num_all_samples;
    for (int y = 0; y < scene->num_voxels[1]; y++) {
        for (int x = 0; x < scene->num_voxels[0]; x++) {
            float *to = image + grid_place(scene, (const int[3]){x, y, 0});
            for (int z = 0; z < scene->num_voxels[2]; z++) to[z * stride] = (float)(*columns++ * scale);
        }
    }
}
