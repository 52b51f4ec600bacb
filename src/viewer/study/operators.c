/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/study/operators.h"

#include "base/log.h"

#include <string.h>

lr_status operator_create(const lr_operator_params *params, lr_operator **op)
{
    LR_TRY(lr_progress_report(params->progress, "preparing the projector", 0, 1));
    *op = lr_operator_create(params);
    if (*op != NULL) return LR_OK;
    LR_TRY(lr_progress_report(params->progress, "preparing the projector", 0, 1));
    return LR_FAILED;
}

const char *backend_name(const char *wished, const char *usual)
{
    static const char *const names[] = {"auto", "cpu", "raster", "compute", "native", "cuda"};
    for (size_t k = 0; wished != NULL && k < sizeof(names) / sizeof(names[0]); k++)
        if (strcmp(names[k], wished) == 0) return names[k];
    return usual;
}

/* --- cached operators --- */

static void pass_message(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    const struct cached_operator *cached = user;
    const bool is_loss = level == LR_LOG_ERROR && status == LR_NO_DEVICE;
    if (cached->job_log != NULL && !(is_loss && cached->is_second_hand))
        cached->job_log->write(cached->job_log->user, level, status, sentence);
}

static bool pass_progress(void *user, const char *what, double done, double total)
{
    const struct cached_operator *cached = user;
    return lr_progress_report(cached->job_progress, what, done, total) == LR_OK;
}

void cached_operator_init(struct cached_operator *cached)
{
    *cached = (struct cached_operator){.log = {pass_message, cached}, .progress = {pass_progress, cached}};
    pthread_mutex_init(&cached->mutex, NULL);
    atomic_init(&cached->num_made, 0);
}

/* Destroys the operator. The caller holds the mutex. */
static void discard(struct cached_operator *cached)
{
    lr_operator_destroy(cached->op);
    opened_release(cached->scanner);
    opened_release(cached->mu);
    cached->op = NULL;
    cached->scanner = cached->mu = NULL;
}

void cached_operator_finish(struct cached_operator *cached)
{
    discard(cached);
    pthread_mutex_destroy(&cached->mutex);
}

lr_status cached_operator_run(struct cached_operator *cached, const struct operator_work *work)
{
    pthread_mutex_lock(&cached->mutex);
    cached->job_log = work->params.log;
    cached->job_progress = work->params.progress;
    lr_status status = LR_OK;

    /* A cached operator is used if it was made with the same settings. The cache holds scanner and mu-map, so that
     * equal addresses mean equal contents. */
    const lr_operator_params *has = &cached->params;
    bool same = cached->op != NULL && has->lors == work->params.lors && has->mu == work->params.mu &&
                has->mode == work->params.mode && has->rays == work->params.rays &&
                has->mu_steps == work->params.mu_steps && has->store == work->params.store &&
                memcmp(has->samples, work->params.samples, sizeof(has->samples)) == 0 &&
                strcmp(has->backend, work->params.backend) == 0;
    for (int k = 0; k < 3; k++) {
        const lr_grid *a = &cached->grid, *b = work->params.grid;
        same =
            same && a->size[k] == b->size[k] && a->voxel_mm[k] == b->voxel_mm[k] && a->origin_mm[k] == b->origin_mm[k];
    }

    if (same) {
        cached->is_second_hand = true;
        status = work->run(work->user, cached->op);
        same = status != LR_NO_DEVICE;
        if (!same) {
            lr_warn(cached->job_log, "the graphics device was lost since the last picture: its projector is "
                                     "made again");
        }
    }
    if (!same) {
        discard(cached);
        cached->is_second_hand = false;
        cached->grid = *work->params.grid;
        cached->params = work->params;
        cached->params.grid = &cached->grid;
        cached->params.log = &cached->log;
        cached->params.progress = &cached->progress;
        status = operator_create(&cached->params, &cached->op);
        if (status == LR_OK) {
            cached->scanner = opened_hold(work->study->held[PART_SCANNER]);
            cached->mu = work->params.mu != NULL ? opened_hold(work->study->held[PART_MU]) : NULL;
            atomic_fetch_add(&cached->num_made, 1);
            status = work->run(work->user, cached->op);
        }
    }
    if ((status != LR_OK && status != LR_CANCELLED) ||
        (cached->op != NULL && strcmp(lr_operator_get_info(cached->op)->backend, "cpu") == 0))
        discard(cached);
    cached->job_log = NULL;
    cached->job_progress = NULL;
    pthread_mutex_unlock(&cached->mutex);
    return status;
}
