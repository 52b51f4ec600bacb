/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Files of which only the events before a damage are wanted: what a reader says of the damage becomes a
 * warning, and the events that it has handed on are what there is. */
#ifndef LR_IO_EVENT_DAMAGE_H
#define LR_IO_EVENT_DAMAGE_H

#include "io/events/event_stream.h"

/* A log that keeps back errors of the kind LR_BAD_INPUT. Must not move. */
struct lr_event_damage {
    lr_log log;
    const lr_log *to;
    bool is_found;
    char sentence[1024]; /* the last one */
};

void lr_event_damage_init(struct lr_event_damage *damage, const lr_log *to);

/* What becomes of a reader's status: LR_OK, with a warning, where it is the file's fault and there were
 * events before; else as it was, and what was kept back is said. */
lr_status lr_event_damage_settle(struct lr_event_damage *damage, struct lr_event_stream *stream, lr_status status);

#endif
