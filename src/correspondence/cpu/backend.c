/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The cpu backend: the reference in double, written from the paper (docs/method/correspondence.md).
 *
 * Rows of the matrix are computed block by block. Within a block, each row is computed by one worker. Finished rows are
 * used in ascending order, so the result does not depend on the number of threads. Forward and back-projections use the
 * same rows, so they are adjoint up to rounding. A projection of some LORs computes whole rows and takes as long as a
 * projection of all LORs, but needs memory only for the selected LORs. */
#include "operator/backend.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "correspondence/cpu/elements.h"
#include "model/lors/selection.h"

#include <stdlib.h>
#include <string.h>

/* The number of rows of a block per worker. Blocks are large, so that starting threads takes little of the time, and
 * workers with short rows do not wait long for the others. */
#define ROWS_PER_WORKER 16
#define MAX_BLOCK_ROWS 256

/* Working memory of one thread. */
struct worker {
    struct lr_cpu_view view;
    struct lr_cpu_tally tally; /* sampled mode */
    struct lr_cpu_exact exact; /* exact mode */
    struct lr_cpu_penetration penetration;
    struct lr_elements collected; /* elements of the current row; a LOR can be repeated */
    lr_status status;
};

/* The state of the backend: the argument `self` of its functions. */
struct cpu {
    struct lr_cpu_scene scene;
    int num_workers;
    struct worker *workers; /* [num_workers] */
    int block_rows;
    struct lr_elements *block; /* [block_rows] elements of the current block's rows */
};

/* A pass over rows, in blocks. */
struct walk {
    const char *what;    /* for the progress report */
    const double *image; /* rows of voxels whose value is 0 in this image stay empty; NULL = all rows are computed */

    /* Receives the finished rows first .. first + num_rows - 1, which are cpu->block[0 .. num_rows - 1]. Each row is
     * sorted by LOR and has one positive element per LOR. */
    lr_status (*take)(void *user, struct cpu *cpu, int64_t first, int num_rows);
    void *user;
};

/* --- creation --- */

static void destroy(void *self)
{
    struct cpu *cpu = self;
    for (int k = 0; k < cpu->num_workers; k++) {
        free(cpu->workers[k].tally.entries);
        lr_cpu_exact_finish(&cpu->workers[k].exact);
        lr_cpu_penetration_finish(&cpu->workers[k].penetration);
        lr_elements_finish(&cpu->workers[k].collected);
        lr_cpu_view_finish(&cpu->workers[k].view);
    }
    for (int k = 0; cpu->block != NULL && k < cpu->block_rows; k++) lr_elements_finish(&cpu->block[k]);
    lr_free_all(cpu->workers, cpu->block);
    lr_cpu_scene_finish(&cpu->scene);
    free(cpu);
}

/* --- rows --- */

struct job {
    struct cpu *cpu;
    const struct lr_rows *rows;
    const double *image;
    int64_t first;
};

static void compute_share(void *user, int64_t begin, int64_t end, int index)
{
    const struct job *job = user;
    struct worker *worker = &job->cpu->workers[index];
    const struct lr_backend_params *params = &job->cpu->scene.params;
    const int num_samples = lr_rows_per_row(job->rows);
    struct lr_elements *collected = &worker->collected;
    for (int64_t k = begin; k < end && worker->status == LR_OK; k++) {
        struct lr_elements *out = &job->cpu->block[k];
        const int64_t row = job->first + k;
        out->count = collected->count = 0;
        if (job->image != NULL && job->image[row] == 0) continue;
        lr_status status = LR_OK;
        for (int sample = 0; sample < num_samples && status == LR_OK; sample++) {
            double point[3];
            lr_rows_point(job->rows, row, sample, point);
            lr_cpu_view_place(&worker->view, point, NULL);
            if (params->penetration)
                status = lr_cpu_penetration_elements(&worker->view, &worker->penetration, collected);
            else if (params->mode == LR_MODE_EXACT)
                status = lr_cpu_exact_elements(&worker->view, &worker->exact, collected);
            else
                status = lr_cpu_trace(&worker->view, &worker->tally, collected);
        }
        if (status == LR_OK) status = lr_elements_merge(collected, params->lors->count, params->log);
        if (status == LR_OK) status = lr_elements_assign(out, collected, 1.0 / num_samples, params->log);
        worker->status = status;
    }
}

/* Computes the rows block by block, passes each block to walk->take, and reports progress. rows: NULL = all voxels of
 * the backend's grid. errors: LR_FAILED, logged, if memory runs out; LR_CANCELLED; the status of walk->take. */
static lr_status each_block(struct cpu *cpu, const struct lr_rows *rows, const struct walk *walk)
{
    const struct lr_backend_params *params = &cpu->scene.params;
    const struct lr_rows all = lr_rows_of_voxels(params, 0, lr_grid_num_voxels(params->grid));
    if (rows == NULL) rows = &all;
    const lr_progress *progress = params->progress;
    const double total = (double)(rows->end - rows->begin);
    struct job job = {cpu, rows, walk->image, rows->begin};
    while (job.first < rows->end) {
        LR_TRY(lr_progress_report(progress, walk->what, (double)(job.first - rows->begin), total));
        const int64_t left = rows->end - job.first;
        const int num_rows = left < cpu->block_rows ? (int)left : cpu->block_rows;

        for (int k = 0; k < cpu->num_workers; k++) cpu->workers[k].status = LR_OK;
        lr_parallel_workers(cpu->num_workers, num_rows, 1, compute_share, &job);
        for (int k = 0; k < cpu->num_workers; k++) LR_TRY(cpu->workers[k].status);

        LR_TRY(walk->take(walk->user, cpu, job.first, num_rows));
        job.first += num_rows;
    }
    return lr_progress_report(progress, walk->what, total, total);
}

static lr_status deliver(void *user, struct cpu *cpu, int64_t first, int num_rows)
{
    for (int k = 0; k < num_rows; k++) LR_TRY(lr_row_deliver(user, first + k, &cpu->block[k]));
    return LR_OK;
}

static lr_status rows(void *self, const struct lr_rows *wanted, const lr_row_sink *sink)
{
    const struct cpu *cpu = self;
    struct lr_row_delivery delivery = {.sink = sink, .log = cpu->scene.params.log};
    const struct walk walk = {.what = "computing matrix rows", .take = deliver, .user = &delivery};
    const lr_status status = each_block(self, wanted, &walk);
    lr_owned_row_finish(&delivery.row);
    return status;
}

/* --- projections --- */

/* A projection between an image and the values of a part's LORs, in the part's order. */
struct work {
    struct cpu *cpu;
    const lr_selection *part; /* NULL = all LORs */
    const double *from;       /* input of a back-projection; NULL = all values are 1 */
    double *to;
    bool is_forward;
    int64_t first;
    int num_rows;
};

/* Adds the products of all rows, in their order, to the values begin .. end - 1. Only this worker writes these
 * values. */
static void add_rows(void *user, int64_t begin, int64_t end)
{
    const struct work *work = user;
    const lr_lors *lors = work->cpu->scene.params.lors;
    const int64_t first = lr_selection_lor(lors, work->part, begin);
    const int64_t last = lr_selection_lor(lors, work->part, end - 1);
    for (int k = 0; k < work->num_rows; k++) {
        const struct lr_elements *row = &work->cpu->block[k];
        const double value = work->from[work->first + k];
        struct lr_selection_finder finder = {.lors = lors, .selection = work->part};
        for (int64_t n = lr_elements_find(row, first); n < row->count && row->list[n].lor <= last; n++) {
            const int64_t at = lr_selection_find(&finder, row->list[n].lor);
            if (at >= 0) work->to[at] += row->list[n].value * value;
        }
    }
}

static void sum_rows(void *user, int64_t begin, int64_t end)
{
    const struct work *work = user;
    for (int64_t k = begin; k < end; k++) {
        const struct lr_elements *row = &work->cpu->block[k];
        struct lr_selection_finder finder = {.lors = work->cpu->scene.params.lors, .selection = work->part};
        double sum = 0;
        for (int64_t n = 0; n < row->count; n++) {
            const int64_t at = lr_selection_find(&finder, row->list[n].lor);
            if (at >= 0) sum += row->list[n].value * (work->from != NULL ? work->from[at] : 1.0);
        }
        work->to[work->first + k] = sum;
    }
}

static lr_status project_block(void *user, struct cpu *cpu, int64_t first, int num_rows)
{
    struct work *work = user;
    const int64_t count = work->is_forward ? lr_selection_count(cpu->scene.params.lors, work->part) : num_rows;
    work->first = first;
    work->num_rows = num_rows;
    lr_parallel_for(cpu->num_workers, count, count / cpu->num_workers + 1, work->is_forward ? add_rows : sum_rows,
                    work);
    return LR_OK;
}

/* The terms of a LOR are added in ascending order of the voxels, and the terms of a voxel in ascending order of the
   LORs. */
static lr_status project(void *self, bool is_forward, const lr_selection *part, const lr_vector *in, lr_vector *out)
{
    struct cpu *cpu = self;
    struct work work = {
        .cpu = cpu, .part = part, .from = in != NULL ? in->values : NULL, .to = out->values, .is_forward = is_forward};
    const struct walk walk = {is_forward ? "projecting" : "back-projecting", is_forward ? in->values : NULL,
                              project_block, &work};
    if (is_forward) memset(work.to, 0, (size_t)lr_selection_count(cpu->scene.params.lors, part) * sizeof(*work.to));
    return each_block(cpu, NULL, &walk);
}

/* --- correspondence images --- */

static lr_status picture(void *self, const double point_mm[3], int module, lr_pixel *pixels)
{
    struct cpu *cpu = self;
    if (cpu->scene.params.penetration) {
        return lr_error(cpu->scene.params.log, LR_USAGE,
                        "with crystal penetration a line ends in several crystals and has no "
                        "pixel: draw correspondence images without it");
    }
    if (cpu->scene.params.mode != LR_MODE_SAMPLED) {
        return lr_error(cpu->scene.params.log, LR_USAGE,
                        "exact mode traces no lines and so has no correspondence image: use sampled mode");
    }
    struct lr_cpu_view *view = &cpu->workers[0].view;
    lr_cpu_view_place(view, point_mm, NULL);
    lr_cpu_trace_picture(view, module, pixels);
    return LR_OK;
}

lr_status lr_cpu_backend_create(const struct lr_backend_params *params, struct lr_backend *backend)
{
    static const struct lr_backend_fns fns = {
        .name = "cpu",
        .voxel_bytes = 16,
        .computes_in_double = true,
        .has_parts = true,
        .projects_by_rows = true,
        .project = project,
        .rows = rows,
        .picture = picture,
        .destroy = destroy,
    };
    struct cpu *cpu = lr_alloc(1, sizeof(*cpu), "the cpu backend", params->log);
    if (cpu == NULL) return LR_FAILED;

    /* A block has ROWS_PER_WORKER rows per worker, at most MAX_BLOCK_ROWS, but at least one row per worker. */
    const int threads = params->threads;
    const int rows_per_block = ROWS_PER_WORKER * threads < MAX_BLOCK_ROWS ? ROWS_PER_WORKER * threads : MAX_BLOCK_ROWS;
    cpu->block_rows = rows_per_block > threads ? rows_per_block : threads;
    lr_status status = lr_cpu_scene_init(&cpu->scene, params);
    if (status == LR_OK) {
        cpu->workers = lr_alloc(threads, sizeof(*cpu->workers), "threads", params->log);
        cpu->block = lr_alloc(cpu->block_rows, sizeof(*cpu->block), "matrix rows", params->log);
        status = cpu->workers != NULL && cpu->block != NULL ? LR_OK : LR_FAILED;
    }
    for (int k = 0; k < threads && status == LR_OK; k++) {
        cpu->num_workers = k + 1;
        struct worker *worker = &cpu->workers[k];
        status = lr_cpu_view_init(&worker->view, &cpu->scene);
        if (status != LR_OK) break;
        if (params->penetration) {
            status = lr_cpu_penetration_init(&worker->penetration, &cpu->scene);
        } else if (params->mode == LR_MODE_EXACT) {
            status = lr_cpu_exact_init(&worker->exact, &cpu->scene);
        } else {
            const int64_t most = (int64_t)params->rays * params->rays * cpu->scene.num_layers;
            worker->tally.entries = lr_alloc(most, sizeof(*worker->tally.entries), "a crystal's lines", params->log);
            status = worker->tally.entries != NULL ? LR_OK : LR_FAILED;
        }
    }
    if (status != LR_OK) {
        destroy(cpu);
        return status;
    }
    lr_backend_on_host(backend, &fns, cpu, params->threads, NULL);
    return LR_OK;
}
