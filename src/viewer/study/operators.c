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
    static const char *const names[] = {"auto", "cpu", "raster", "compute", "native"};
    for (size_t k = 0; wished != NULL && k < sizeof(names) / sizeof(names[0]); k++)
        if (strcmp(names[k], wished) == 0) return names[k];
    return usual;
}

/* --- kept operators --- */

static void pass_sentence(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    const struct kept_operator *kept = user;
    const bool is_loss = level == LR_LOG_ERROR && status == LR_NO_DEVICE;
    if (kept->job_log != NULL && !(is_loss && kept->is_second_hand))
        kept->job_log->write(kept->job_log->user, level, status, sentence);
}

static bool pass_progress(void *user, const char *what, double done, double total)
{
    const struct kept_operator *kept = user;
    return lr_progress_report(kept->job_progress, what, done, total) == LR_OK;
}

void kept_operator_init(struct kept_operator *kept)
{
    *kept = (struct kept_operator){.log = {pass_sentence, kept}, .progress = {pass_progress, kept}};
    pthread_mutex_init(&kept->mutex, NULL);
    atomic_init(&kept->num_made, 0);
}

/* The mutex is taken, here and below. */
static void discard(struct kept_operator *kept)
{
    lr_operator_destroy(kept->op);
    shared_release(kept->scanner);
    shared_release(kept->mu);
    kept->op = NULL;
    kept->scanner = kept->mu = NULL;
}

void kept_operator_finish(struct kept_operator *kept)
{
    discard(kept);
    pthread_mutex_destroy(&kept->mutex);
}

static bool same_grid(const lr_grid *a, const lr_grid *b)
{
    bool same = true;
    for (int k = 0; k < 3; k++) {
        same =
            same && a->size[k] == b->size[k] && a->voxel_mm[k] == b->voxel_mm[k] && a->origin_mm[k] == b->origin_mm[k];
    }
    return same;
}

/* The scanner and the mu-map are held, so that addresses tell them apart. */
static bool serves(const struct kept_operator *kept, const lr_operator_params *wanted)
{
    const lr_operator_params *has = &kept->params;
    return kept->op != NULL && has->lors == wanted->lors && has->mu == wanted->mu && has->mode == wanted->mode &&
           has->rays == wanted->rays && has->mu_steps == wanted->mu_steps && has->store == wanted->store &&
           memcmp(has->samples, wanted->samples, sizeof(has->samples)) == 0 &&
           strcmp(has->backend, wanted->backend) == 0 && same_grid(&kept->grid, wanted->grid);
}

static lr_status make(struct kept_operator *kept, const struct operator_work *work)
{
    discard(kept);
    kept->is_second_hand = false;
    kept->grid = *work->params.grid;
    kept->params = work->params;
    kept->params.grid = &kept->grid;
    kept->params.log = &kept->log;
    kept->params.progress = &kept->progress;
    LR_TRY(operator_create(&kept->params, &kept->op));
    kept->scanner = shared_hold(work->study->held[PART_SCANNER]);
    kept->mu = work->params.mu != NULL ? shared_hold(work->study->held[PART_MU]) : NULL;
    atomic_fetch_add(&kept->num_made, 1);
    return LR_OK;
}

static lr_status run_anew(struct kept_operator *kept, const struct operator_work *work)
{
    LR_TRY(make(kept, work));
    return work->run(work->user, kept->op);
}

static lr_status run_again(struct kept_operator *kept, const struct operator_work *work)
{
    kept->is_second_hand = true;
    const lr_status status = work->run(work->user, kept->op);
    if (status != LR_NO_DEVICE) return status;
    lr_warn(kept->job_log, "the graphics device was lost since the last picture: its projector is "
                           "made again");
    return run_anew(kept, work);
}

lr_status kept_operator_run(struct kept_operator *kept, const struct operator_work *work)
{
    pthread_mutex_lock(&kept->mutex);
    kept->job_log = work->params.log;
    kept->job_progress = work->params.progress;
    const lr_status status = serves(kept, &work->params) ? run_again(kept, work) : run_anew(kept, work);
    if ((status != LR_OK && status != LR_CANCELLED) ||
        (kept->op != NULL && strcmp(lr_operator_get_info(kept->op)->backend, "cpu") == 0))
        discard(kept);
    kept->job_log = NULL;
    kept->job_progress = NULL;
    pthread_mutex_unlock(&kept->mutex);
    return status;
}
