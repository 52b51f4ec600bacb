/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Creation and destruction of operators, filters for a backend's messages and progress, and vectors at an operator's
 * place. */
#include "operator/facade.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "device/place.h"

#include <stdio.h>
#include <stdlib.h>

/* --- the filters of messages and progress, from a backend to the caller --- */

static void log_filter_write(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    struct lr_log_filter *filter = user;
    pthread_mutex_lock(&filter->mutex);
    const bool refuses = status == LR_NO_DEVICE || status == LR_USAGE;
    const bool drops = filter->holds_errors && level == LR_LOG_INFO;
    const bool is_held = filter->holds_errors || (filter->holds_refusals && refuses);
    const bool is_known = filter->holds_errors && filter->reason[0] != '\0';
    if (level == LR_LOG_ERROR && is_held) {
        if (!is_known) snprintf(filter->reason, sizeof(filter->reason), "%s", sentence);
    } else if (filter->to.write != NULL && !drops) {
        filter->to.write(filter->to.user, level, status, sentence);
    }
    pthread_mutex_unlock(&filter->mutex);
}

static bool report_progress(void *user, const char *what, double done, double total)
{
    const struct lr_progress_filter *filter = user;
    if (filter->is_silent) {
        return filter->what == NULL ||
               lr_progress_report(&filter->to, filter->what, filter->done, filter->total) == LR_OK;
    }
    if (filter->share > 0.0) {
        done = filter->from + filter->share * (total > 0.0 ? done / total : 0.0);
        total = 1.0;
    }
    return lr_progress_report(&filter->to, what, done < total ? done : total, total) == LR_OK;
}

lr_status lr_progress_filter_report(struct lr_progress_filter *filter, const char *what, double done, double total)
{
    filter->what = what;
    filter->done = done;
    filter->total = total;
    return lr_progress_report(&filter->to, what, done, total);
}

/* --- life --- */

struct lr_operator *lr_operator_alloc(const lr_log *log, const lr_progress *progress)
{
    struct lr_operator *op = lr_alloc(1, sizeof(*op), "an operator", log);
    if (op == NULL) return NULL;
    op->log_filter = (struct lr_log_filter){.log = {.write = log_filter_write, .user = &op->log_filter}};
    pthread_mutex_init(&op->log_filter.mutex, NULL);
    op->progress_filter = (struct lr_progress_filter){.progress = {report_progress, &op->progress_filter}};
    lr_operator_listen(op, log, progress);
    return op;
}

void lr_operator_listen(lr_operator *op, const lr_log *log, const lr_progress *progress)
{
    pthread_mutex_lock(&op->log_filter.mutex);
    op->log_filter.to = log != NULL ? *log : (lr_log){0};
    pthread_mutex_unlock(&op->log_filter.mutex);
    op->progress_filter.to = progress != NULL ? *progress : (lr_progress){0};
}

void lr_operator_describe(struct lr_operator *op, double begin_s)
{
    op->info = (lr_operator_info){.backend = op->backend.fns->name,
                                  .device = op->backend.device,
                                  .is_gpu = op->backend.is_gpu,
                                  .passed_over = op->passed_over[0] != '\0' ? op->passed_over : NULL,
                                  .num_voxels = lr_grid_num_voxels(&op->grid),
                                  .num_lors = op->params.lors->count,
                                  .samples = {1, 1, 1},
                                  .threads = op->params.threads,
                                  .build_seconds = lr_clock_seconds() - begin_s,
                                  .lors = op->params.lors,
                                  .grid = &op->grid};
}

void lr_operator_destroy(lr_operator *op)
{
    if (op == NULL) return;
    struct lr_direct_family *direct = op->direct;
    struct lr_listmode_family *listmode = op->listmode;
    lr_psf_finish(&op->psf);
    /* Factors and the sensitivity are at the backend's place, so they are freed before the backend. */
    lr_factor_store_finish(&op->factor_store);
    lr_vector_destroy(&op->scaled);
    lr_vector_destroy(&op->sensitivity);
    if (op->backend.fns != NULL) op->backend.fns->destroy(op->backend.self);
    if (direct != NULL) {
        lr_vector_destroy(&direct->timed);
        lr_free_all(direct->offsets, direct->views, direct);
    }
    if (listmode != NULL) {
        lr_listmode_events_finish(&listmode->events);
        lr_listmode_model_finish(&listmode->model);
        lr_listmode_model_finish(&listmode->second);
        lr_free_all(listmode->event_factors, listmode->faces.areas_mm2);
        lr_place_silence(listmode->place);
        lr_place_close(listmode->place);
        free(listmode);
    }
    pthread_mutex_destroy(&op->log_filter.mutex);
    free(op);
}

lr_status lr_make_numbers(const struct lr_operator *op, const char *name, int64_t count, lr_vector *vector)
{
    return lr_vector_create(
        &(lr_vector_params){.count = count, .precision = lr_precision_of(op), .name = name, .log = op->params.log},
        vector);
}

lr_status lr_make_sensitivity(const struct lr_operator *op, lr_vector *vector)
{
    return lr_vector_create(
        &(lr_vector_params){
            .place = op->backend.place, .count = op->info.num_voxels, .name = "the sensitivity", .log = op->params.log},
        vector);
}
