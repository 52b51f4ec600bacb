/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Events in the order of keys. */
#ifndef LR_LISTMODE_TICKETS_H
#define LR_LISTMODE_TICKETS_H

#include <stdint.h>

/* What an event is sorted by. */
struct lr_listmode_ticket {
    int32_t number; /* from where the sorter counts */
    uint32_t key;
};

/* Sorts in place, ascending by key; equals stay in their order, whatever the number of threads.
 * spare: [count]. */
void lr_listmode_sort_tickets(struct lr_listmode_ticket *tickets, struct lr_listmode_ticket *spare, int64_t count,
                              int threads);

#endif
