/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Rows of the system matrix: the events that see a voxel, found from the elements of all events. */
#ifndef LR_LISTMODE_ROWS_H
#define LR_LISTMODE_ROWS_H

#include "listmode/events.h"
#include "model/lors/rows.h"

#include <lr/operator.h>

/* --- values of a selection --- */

/* Indices of a range's selected events in the vector of values. In a zero struct, no event is selected. */
struct lr_listmode_places {
    int64_t count;      /* selected events of the range */
    int64_t position;   /* position of the first selected event */
    double share;       /* selected events / all events of the range */
    int64_t first;      /* number of the first selected event; without a map all are consecutive */
    const int32_t *map; /* [events of the range] index of the value from `position` on, -1: not selected; or NULL */
    int32_t *owned;     /* memory of `map`, which the next range uses again */
    int64_t room;
};

/* Finds the indices of range r's values under a checked selection; NULL = all events. errors: LR_FAILED if memory
 * runs out. */
lr_status lr_listmode_places_find(struct lr_listmode_places *places, const struct lr_listmode_events *events,
                                  const lr_selection *selection, int64_t r, const lr_log *log);
void lr_listmode_places_finish(struct lr_listmode_places *places);

/* Index of the value of an event; -1: the event is not selected. The event's number is counted from the begin of the
 * range. */
static inline int64_t lr_listmode_place(const struct lr_listmode_places *places, int32_t number)
{
    const int64_t k = places->map != NULL ? places->map[number] : number - places->first;
    return k >= 0 && k < places->count ? places->position + k : -1;
}

/* Takes the elements of an event one by one; each is positive. */
struct lr_listmode_visitor {
    void (*take)(void *user, int64_t voxel, double element);
    void *user;
};

struct lr_listmode_row_source {
    const struct lr_listmode_events *events;
    const uint32_t *order; /* for each position k to visit: index into the events' arrays; NULL = the index is k */
    /* Visits the elements of the event at index k of the events' arrays. axis: the axis of the event's group. */
    void (*visit)(const void *self, int64_t k, int axis, const struct lr_listmode_visitor *visitor);
    const void *self;
    const lr_log *log;
    const lr_progress *progress;
};

/* Visits all events once for every 1,024 rows. errors: LR_USAGE for points between voxels; LR_FAILED if memory runs
 * out; LR_CANCELLED; errors of the sink. */
lr_status lr_listmode_rows(const struct lr_listmode_row_source *source, const struct lr_rows *wanted,
                           const lr_row_sink *sink);

#endif
