/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "viewer/study/maps.h"
#include "viewer/study/operators.h"

#include <math.h>
#include <stdlib.h>

struct sensitivity {
    struct newest newest;
};

struct task {
    struct study_view study; /* held */
    struct sensitivity_result result;
    const char *backend;
    lr_image *image;
};

static void destroy(void *object)
{
    struct task *task = object;
    lr_image_destroy(task->image);
    study_view_release(&task->study);
    free(task);
}

static lr_status create_operator(struct task *task, lr_operator_params params, lr_operator **op)
{
    struct sensitivity_request *request = &task->result.request;
    params.lors = task->study.lors;
    params.grid = &task->study.grid;
    params.backend = task->backend;
    params.mode = request->mode;
    params.rays = request->mode == LR_MODE_SAMPLED ? request->rays : 0;
    params.mu = task->result.has_mu ? task->study.mu : NULL;
    params.mu_steps = task->result.has_mu ? request->mu_steps : 0;
    params.store = LR_STORE_NO;
    if (request->samples > 0) lr_grid_split_samples(&task->study.grid, request->samples, params.samples);
    LR_TRY(operator_create(&params, op));
    const lr_operator_info *info = lr_operator_get_info(*op);
    request->mode = info->mode;
    request->rays = info->rays;
    request->samples = info->samples[0] * info->samples[1] * info->samples[2];
    request->mu_steps = task->result.has_mu ? info->mu_steps : 0;
    return LR_OK;
}

static void summarise(struct task *task)
{
    const int64_t count = lr_grid_num_voxels(&task->image->grid);
    double sum = 0;
    for (int64_t v = 0; v < count; v++) {
        sum += task->image->values[v];
        task->result.largest = fmax(task->result.largest, task->image->values[v]);
    }
    task->result.mean = sum / (double)count;
}

static lr_status run(void *object, const lr_log *log, const lr_progress *progress)
{
    struct task *task = object;
    const lr_operator_params params = {.log = log, .progress = progress};
    const double start = lr_clock_seconds();
    lr_operator *op = NULL;
    task->image = lr_image_create(&task->study.grid, log);
    if (task->image == NULL) return LR_FAILED;
    task->result.image = task->image;
    LR_TRY(create_operator(task, params, &op));
    lr_vector image = lr_image_vector(task->image);
    const lr_status status = lr_operator_sensitivity(op, NULL, &image);
    lr_operator_destroy(op);
    LR_TRY(status);
    summarise(task);
    task->result.seconds = lr_clock_seconds() - start;
    return LR_OK;
}

static const struct newest_kind kind = {"computing the sensitivity", run, destroy};

struct sensitivity *sensitivity_create(const lr_log *log)
{
    struct sensitivity *sensitivity = lr_alloc(1, sizeof(*sensitivity), "sensitivity", log);
    if (sensitivity != NULL) newest_init(&sensitivity->newest, &kind);
    return sensitivity;
}

void sensitivity_destroy(struct sensitivity *sensitivity)
{
    if (sensitivity != NULL) {
        newest_finish(&sensitivity->newest);
        free(sensitivity);
    }
}

lr_status sensitivity_ask(struct sensitivity *sensitivity, const struct study_view *study,
                          const struct sensitivity_request *request, const lr_log *log)
{
    if (study->scanner == NULL) return lr_error(log, LR_USAGE, "there is no scanner: open one first");
    struct task *task = lr_alloc(1, sizeof(*task), "a sensitivity image", log);
    if (task == NULL) return LR_FAILED;
    task->study = study_view_hold(study);
    task->result.request = *request;
    task->result.request.backend = NULL; /* may be gone before the job ends */
    task->backend = backend_name(request->backend, "auto");
    task->result.has_mu = study->mu != NULL && !request->without_mu;
    newest_ask(&sensitivity->newest, task);
    return LR_OK;
}

enum job_state sensitivity_poll(struct sensitivity *sensitivity, struct job_report *report)
{
    return newest_poll(&sensitivity->newest, report);
}

enum job_state sensitivity_wait(struct sensitivity *sensitivity, struct job_report *report)
{
    return newest_wait(&sensitivity->newest, report);
}

void sensitivity_cancel(struct sensitivity *sensitivity)
{
    newest_cancel(&sensitivity->newest);
}

const struct sensitivity_result *sensitivity_result(const struct sensitivity *sensitivity, int64_t *serial)
{
    const struct task *task = newest_current(&sensitivity->newest);
    if (serial != NULL) *serial = newest_serial(&sensitivity->newest);
    return task != NULL ? &task->result : NULL;
}
