/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/events/event_damage.h"

#include "base/log.h"

#include <stdio.h>

static void keep(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    struct lr_event_damage *damage = user;
    if (level == LR_LOG_ERROR && status == LR_BAD_INPUT) {
        damage->is_found = true;
        snprintf(damage->sentence, sizeof(damage->sentence), "%s", sentence);
    } else if (damage->to != NULL) {
        damage->to->write(damage->to->user, level, status, sentence);
    }
}

void lr_event_damage_init(struct lr_event_damage *damage, const lr_log *to)
{
    *damage = (struct lr_event_damage){.log = {keep, damage}, .to = to};
}

lr_status lr_event_damage_settle(struct lr_event_damage *damage, struct lr_event_stream *stream, lr_status status)
{
    const lr_event_counts *counts = &stream->info->counts;
    if (!damage->is_found) return status;
    if (status != LR_BAD_INPUT || stream->is_refused || stream->num_added == 0)
        return lr_error(damage->to, status, "%s", damage->sentence);
    LR_TRY(lr_event_stream_flush(stream));
    char unknown[96] = "";
    if (counts->unknown_crystals > 0) {
        snprintf(unknown, sizeof(unknown), ", and %lld of crystals that the scanner lacks left out",
                 (long long)counts->unknown_crystals);
    }
    lr_warn(damage->to, "%s: the %lld events before that are taken%s", damage->sentence, (long long)stream->num_added,
            unknown);
    return LR_OK;
}
