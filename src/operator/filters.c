/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Sentences and progress on their way from a backend to the caller. */
#include "operator/facade.h"

#include "base/log.h"
#include "base/mem.h"
#include "operator/families.h"
#include "operator/settings.h"
#include "operator/stored.h"
#include "plugin/plugin.h"

#include <stdio.h>
#include <string.h>

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

void lr_log_filter_init(struct lr_log_filter *filter, const lr_log *to)
{
    *filter = (struct lr_log_filter){.log = {.write = log_filter_write, .user = filter}};
    if (to != NULL) filter->to = *to;
    pthread_mutex_init(&filter->mutex, NULL);
}

static bool progress_filter_report(void *user, const char *what, double done, double total)
{
    const struct lr_progress_filter *filter = user;
    if (filter->is_silent) {
        return filter->what == NULL ||
               lr_progress_report(filter->to, filter->what, filter->done, filter->total) == LR_OK;
    }
    if (filter->share > 0.0) {
        done = filter->from + filter->share * (total > 0.0 ? done / total : 0.0);
        total = 1.0;
    }
    return lr_progress_report(filter->to, what, done < total ? done : total, total) == LR_OK;
}

void lr_progress_filter_init(struct lr_progress_filter *filter, const lr_progress *to)
{
    *filter = (struct lr_progress_filter){.progress = {progress_filter_report, filter}, .to = to};
}

void lr_progress_filter_begin(struct lr_progress_filter *filter, const char *what, double total)
{
    filter->what = what;
    filter->done = 0.0;
    filter->total = total;
}

lr_status lr_progress_filter_say(struct lr_progress_filter *filter, const char *what, double done, double total)
{
    filter->what = what;
    filter->done = done;
    filter->total = total;
    return lr_progress_report(filter->to, what, done, total);
}
