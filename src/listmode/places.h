/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Where in the values of a call those of a range's events stand. */
#ifndef LR_LISTMODE_PLACES_H
#define LR_LISTMODE_PLACES_H

#include "listmode/events.h"

/* Zero finds nothing. */
struct lr_listmode_places {
    int64_t count;      /* of the range's events that are selected */
    int64_t position;   /* of the first of them */
    double share;       /* count over all events of the range */
    int64_t first;      /* its number, from the range's begin; without map the rest follow it */
    const int32_t *map; /* [events of the range] places behind `position`, -1: not selected; or NULL */
    int32_t *owned;     /* what map points to, kept for the next range */
    int64_t room;
};

/* Looks at range r under a selection that is checked; NULL: all. errors: LR_FAILED without memory. */
lr_status lr_listmode_places_find(struct lr_listmode_places *places, const struct lr_listmode_events *events,
                                  const lr_selection *selection, int64_t r, const lr_log *log);
void lr_listmode_places_finish(struct lr_listmode_places *places);

/* Of the event with this number, from the range's begin; -1: it is not selected. */
static inline int64_t lr_listmode_place(const struct lr_listmode_places *places, int32_t number)
{
    const int64_t k = places->map != NULL ? places->map[number] : number - places->first;
    return k >= 0 && k < places->count ? places->position + k : -1;
}

#endif
