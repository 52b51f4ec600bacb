/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "operator/relay.h"

#include "base/log.h"

#include <stdio.h>

static void relay_write(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    struct lr_relay *relay = user;
    pthread_mutex_lock(&relay->mutex);
    const bool refuses = status == LR_NO_DEVICE || status == LR_USAGE;
    const bool drops = (relay->drops_remarks && level != LR_LOG_ERROR && level != LR_LOG_DEBUG) ||
                       (relay->holds_errors && level == LR_LOG_INFO);
    const bool is_held = relay->holds_errors || (relay->holds_refusals && refuses);
    const bool is_known = relay->holds_errors && relay->reason[0] != '\0';
    if (level == LR_LOG_ERROR && is_held) {
        if (!is_known) {
            snprintf(relay->reason, sizeof(relay->reason), "%s", sentence);
        }
    } else if (relay->to.write != NULL && !drops) {
        relay->to.write(relay->to.user, level, status, sentence);
    }
    pthread_mutex_unlock(&relay->mutex);
}

void lr_relay_init(struct lr_relay *relay, const lr_log *to)
{
    *relay = (struct lr_relay){.log = {.write = relay_write, .user = relay}};
    if (to != NULL) {
        relay->to = *to;
    }
    pthread_mutex_init(&relay->mutex, NULL);
}

void lr_relay_finish(struct lr_relay *relay)
{
    pthread_mutex_destroy(&relay->mutex);
}

static bool hush_report(void *user, const char *what, double done, double total)
{
    const struct lr_hush *hush = user;
    if (hush->is_silent) {
        return hush->what == NULL ||
               lr_progress_report(hush->to, hush->what, hush->done, hush->total) == LR_OK;
    }
    if (hush->share > 0.0) {
        done = hush->from + hush->share * (total > 0.0 ? done / total : 0.0);
        total = 1.0;
    }
    return lr_progress_report(hush->to, what, done < total ? done : total, total) == LR_OK;
}

void lr_hush_init(struct lr_hush *hush, const lr_progress *to)
{
    *hush = (struct lr_hush){.progress = {hush_report, hush}, .to = to};
}

void lr_hush_begin(struct lr_hush *hush, const char *what, double total)
{
    hush->what = what;
    hush->done = 0.0;
    hush->total = total;
}

lr_status lr_hush_say(struct lr_hush *hush, const char *what, double done, double total)
{
    hush->what = what;
    hush->done = done;
    hush->total = total;
    return lr_progress_report(hush->to, what, done, total);
}
