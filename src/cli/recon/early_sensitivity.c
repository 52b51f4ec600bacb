/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cli/recon/early_sensitivity.h"

#include <errno.h>
#include <lr/vector.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { SHOWN_EVERY_NS = 50 * 1000 * 1000, VOXEL_BYTES = 64, LINES_BYTES = 768 << 20 };

/* --- the thread that computes the sensitivity --- */

/* Receives the messages of the operator. Until a caller waits for the sensitivity, warnings are kept, and the last
 * message of level LR_LOG_INFO. Later, all messages are passed on. */
static void hear(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    struct early_sensitivity *early = user;
    const bool is_info = level == LR_LOG_INFO;
    char *kept = early->sentences[is_info];
    const size_t used = is_info ? 0 : strlen(kept);
    if (early->to != NULL)
        early->to->write(early->to->user, level, status, sentence);
    else if (level == LR_LOG_WARNING || is_info)
        snprintf(kept + used, sizeof(early->sentences[0]) - used, "%s%s", used > 0 ? "; " : "", sentence);
}

static bool note(void *user, const char *what, double done, double total)
{
    struct early_sensitivity *early = user;
    if (early->shown != NULL) return early->shown->report(early->shown->user, what, done, total);
    atomic_store(&early->done, (long long)done);
    atomic_store(&early->total, (long long)total);
    return !atomic_load(&early->is_unwanted);
}

static void work(void *user)
{
    struct early_sensitivity *early = user;
    const lr_listmode_params *params = &early->params;

    /* Opening a place initialises CUDA. CUDA remains initialised when the place is closed. */
    lr_place *place = lr_place_open(&(lr_place_params){.kind = LR_PLACE_CUDA, .device = params->device});
    const int64_t memory_bytes = place != NULL ? lr_place_get_info(place).memory_bytes : 0;
    lr_place_close(place);

    /* Operators of events take half of the device's memory. This operator takes at most an eighth of the memory, for
     * images, their sums and the current lines. If the user has set a memory limit, this operator is not made, because
     * the limit is meant for operators of events. */
    const int64_t bytes = VOXEL_BYTES * lr_grid_num_voxels(params->grid) + LINES_BYTES;
    if (!early->only_wakes && params->max_memory_bytes == 0 && params->lors->count > 0 && bytes <= memory_bytes / 8 &&
        !atomic_load(&early->is_unwanted))
        early->op = lr_listmode_create(params);
    sem_post(&early->is_made);
    if (early->op != NULL) {
        const int64_t count = lr_operator_get_info(early->op)->num_voxels;
        float *values = malloc((size_t)count * sizeof(*values));
        if (values != NULL) { /* the operator keeps the sensitivity, and these values are not needed */
            lr_vector image = lr_vector_of_floats(values, count);
            (void)lr_operator_sensitivity(early->op, NULL, &image);
        }
        free(values);
    }

    sem_post(&early->is_over);
}

/* --- the calling thread --- */

void early_sensitivity_begin(struct early_sensitivity *early, const lr_listmode_params *params, bool only_wakes)
{
    if (early->has_begun || !(params->backend == NULL || strcasecmp(params->backend, "auto") == 0 ||
                              strcasecmp(params->backend, "cuda") == 0))
        return;
    early->params = *params;
    early->only_wakes = only_wakes;
    early->log = (lr_log){hear, early};
    early->progress = (lr_progress){note, early};
    early->params.backend = "cuda";
    early->params.events = &early->line;
    early->params.count = 1;
    early->params.log = &early->log;
    early->params.progress = &early->progress;
    if (params->lors->count > 0) lr_lors_crystals(params->lors, 0, early->line.crystals);
    if (sem_init(&early->is_made, 0, 0) != 0 || sem_init(&early->is_over, 0, 0) != 0) return;
    early->has_begun = true;
    lr_background_start(&early->working, work, early);
}

lr_operator *early_sensitivity_of(struct early_sensitivity *early)
{
    if (!early->has_begun) return NULL;
    while (sem_wait(&early->is_made) != 0 && errno == EINTR) {
    }
    sem_post(&early->is_made); /* posted again, so that the next caller need not wait */
    return early->op;
}

lr_status early_sensitivity_wait(struct early_sensitivity *early, const lr_progress *progress, const lr_log *log)
{
    lr_status status = LR_OK;
    struct timespec until; /* time when progress is shown next */
    if (!early->has_begun || early->is_waited_for) return LR_OK;
    do {
        const double done = (double)atomic_load(&early->done), total = (double)atomic_load(&early->total);
        if (status == LR_OK && progress != NULL && !progress->report(progress->user, "sensitivity", done, total)) {
            status = LR_CANCELLED;
            atomic_store(&early->is_unwanted, true);
        }
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += SHOWN_EVERY_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
    } while (sem_timedwait(&early->is_over, &until) != 0);
    lr_background_wait(&early->working);
    early->is_waited_for = true;
    early->to = log;
    early->shown = progress;
    for (int k = 0; k < 2 && early->op != NULL && log != NULL; k++)
        if (early->sentences[k][0] != '\0')
            log->write(log->user, k == 0 ? LR_LOG_WARNING : LR_LOG_INFO, LR_OK, early->sentences[k]);
    return status;
}

void early_sensitivity_give_up(struct early_sensitivity *early)
{
    atomic_store(&early->is_unwanted, true);
    lr_background_wait(&early->working);
}

void early_sensitivity_finish(struct early_sensitivity *early)
{
    if (early->has_begun) {
        early_sensitivity_give_up(early);
        lr_operator_destroy(early->op);
        sem_destroy(&early->is_made);
        sem_destroy(&early->is_over);
        *early = (struct early_sensitivity){.has_begun = false};
    }
}
