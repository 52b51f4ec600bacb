/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_IO_EVENT_LIST_H
#define LR_IO_EVENT_LIST_H

#include <lr/log.h>

/* LOR numbers of events as a list-mode file gives them. Zero is an empty list; one thread. */
struct lr_event_list {
    int64_t *lors; /* owned [count] */
    int64_t count, room;
};

/* Appends one event. errors: LR_FAILED when memory is short, logged. */
lr_status lr_event_list_add(struct lr_event_list *list, int64_t lor, const lr_log *log);

void lr_event_list_finish(struct lr_event_list *list);

#endif
