/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cpu/rows.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "cpu/exact.h"
#include "cpu/penetration.h"
#include "cpu/trace.h"

#include <stdlib.h>

/* Enough rows a block that starting threads and uneven rows cost little. */
#define ROWS_PER_WORKER 16
#define MAX_BLOCK_ROWS 256

struct lr_cpu_worker {
    struct lr_cpu_view view;
    struct lr_cpu_tally tally; /* sampled mode */
    struct lr_cpu_exact exact; /* exact mode */
    struct lr_cpu_penetration penetration;
    struct lr_elements collected; /* of the row at hand, repeats and all */
    lr_status status;
};

struct job {
    struct lr_cpu *cpu;
    const struct lr_rows *rows;
    const double *image;
    int64_t first;
};

static lr_status init_worker(struct lr_cpu_worker *worker, const struct lr_cpu_scene *scene)
{
    LR_TRY(lr_cpu_view_init(&worker->view, scene));
    if (scene->params.penetration) return lr_cpu_penetration_init(&worker->penetration, scene);
    return scene->params.mode == LR_MODE_EXACT ? lr_cpu_exact_init(&worker->exact, scene)
                                               : lr_cpu_tally_init(&worker->tally, scene);
}

/* Every worker has a row, and a block's elements stay within memory. */
static int choose_block_rows(int threads)
{
    if (threads >= MAX_BLOCK_ROWS) return threads;
    const int rows = ROWS_PER_WORKER * threads;
    return rows < MAX_BLOCK_ROWS ? rows : MAX_BLOCK_ROWS;
}

lr_status lr_cpu_init(struct lr_cpu *cpu, const struct lr_backend_params *params)
{
    *cpu = (struct lr_cpu){.block_rows = choose_block_rows(params->threads)};
    LR_TRY(lr_cpu_scene_init(&cpu->scene, params));
    cpu->workers = lr_alloc(params->threads, sizeof(*cpu->workers), "threads", params->log);
    cpu->block = lr_alloc(cpu->block_rows, sizeof(*cpu->block), "matrix rows", params->log);
    lr_status status = cpu->workers != NULL && cpu->block != NULL ? LR_OK : LR_FAILED;
    for (int k = 0; k < params->threads && status == LR_OK; k++) {
        cpu->num_workers = k + 1;
        status = init_worker(&cpu->workers[k], &cpu->scene);
    }
    if (status != LR_OK) lr_cpu_finish(cpu);
    return status;
}

void lr_cpu_finish(struct lr_cpu *cpu)
{
    for (int k = 0; k < cpu->num_workers; k++) {
        lr_cpu_tally_finish(&cpu->workers[k].tally);
        lr_cpu_exact_finish(&cpu->workers[k].exact);
        lr_cpu_penetration_finish(&cpu->workers[k].penetration);
        lr_elements_finish(&cpu->workers[k].collected);
        lr_cpu_view_finish(&cpu->workers[k].view);
    }
    for (int k = 0; cpu->block != NULL && k < cpu->block_rows; k++) lr_elements_finish(&cpu->block[k]);
    free(cpu->workers);
    free(cpu->block);
    lr_cpu_scene_finish(&cpu->scene);
    *cpu = (struct lr_cpu){0};
}

struct lr_cpu_view *lr_cpu_first_view(struct lr_cpu *cpu)
{
    return &cpu->workers[0].view;
}

struct lr_rows lr_cpu_grid_rows(const struct lr_cpu *cpu)
{
    const struct lr_backend_params *params = &cpu->scene.params;
    struct lr_rows rows = {.grid = params->grid, .end = lr_grid_num_voxels(params->grid)};
    for (int k = 0; k < 3; k++) rows.samples[k] = params->samples[k];
    return rows;
}

static lr_status compute_row(struct lr_cpu_worker *worker, const struct lr_rows *rows, int64_t row,
                             struct lr_elements *out)
{
    const struct lr_cpu_scene *scene = worker->view.scene;
    const lr_log *log = scene->params.log;
    const int num_samples = lr_rows_per_row(rows);
    struct lr_elements *collected = &worker->collected;
    collected->count = 0;
    for (int k = 0; k < num_samples; k++) {
        double point[3];
        lr_rows_point(rows, row, k, point);
        lr_cpu_view_place(&worker->view, point);
        if (scene->params.penetration)
            LR_TRY(lr_cpu_penetration_elements(&worker->view, &worker->penetration, collected));
        else if (scene->params.mode == LR_MODE_EXACT)
            LR_TRY(lr_cpu_exact_elements(&worker->view, &worker->exact, collected));
        else
            LR_TRY(lr_cpu_trace(&worker->view, &worker->tally, collected));
    }
    LR_TRY(lr_elements_merge(collected, scene->params.lors->count, log));
    return lr_elements_assign(out, collected, 1.0 / num_samples, log);
}

static void compute_share(void *user, int64_t begin, int64_t end, int index)
{
    const struct job *job = user;
    struct lr_cpu_worker *worker = &job->cpu->workers[index];
    for (int64_t k = begin; k < end && worker->status == LR_OK; k++) {
        struct lr_elements *out = &job->cpu->block[k];
        const int64_t row = job->first + k;
        out->count = 0;
        if (job->image == NULL || job->image[row] != 0) worker->status = compute_row(worker, job->rows, row, out);
    }
}

static lr_status compute_block(struct lr_cpu *cpu, struct job *job, int num_rows)
{
    for (int k = 0; k < cpu->num_workers; k++) cpu->workers[k].status = LR_OK;
    lr_parallel_for(cpu->num_workers, num_rows, 1, compute_share, job);
    for (int k = 0; k < cpu->num_workers; k++) LR_TRY(cpu->workers[k].status);
    return LR_OK;
}

lr_status lr_cpu_each_block(struct lr_cpu *cpu, const struct lr_rows *rows, const struct lr_cpu_walk *walk)
{
    const lr_progress *progress = cpu->scene.params.progress;
    const double total = (double)(rows->end - rows->begin);
    struct job job = {cpu, rows, walk->image, rows->begin};
    while (job.first < rows->end) {
        LR_TRY(lr_progress_report(progress, walk->what, (double)(job.first - rows->begin), total));
        const int64_t left = rows->end - job.first;
        const int num_rows = left < cpu->block_rows ? (int)left : cpu->block_rows;
        LR_TRY(compute_block(cpu, &job, num_rows));
        LR_TRY(walk->take(walk->user, cpu, job.first, num_rows));
        job.first += num_rows;
    }
    return lr_progress_report(progress, walk->what, total, total);
}
