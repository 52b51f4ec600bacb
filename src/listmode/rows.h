/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Rows of the system matrix: the events that see a voxel, found from the elements of all events. */
#pragma once

#include "listmode/events.h"
#include "model/lors/rows.h"

#include <lr/operator.h>

/* --- values of a selection --- */

/* The indices of a range's selected events in the vector of values. A struct of zeros selects no event. */
struct lr_listmode_places {
    int64_t count;      /* number of selected events of the range */
    int64_t position;   /* index in the vector of the first selected event's value */
    double share;       /* number of selected events / number of all events of the range */
    int64_t first;      /* number of the first selected event; without a map, the selected events are consecutive */
    const int32_t *map; /* [events of the range] index of each event's value, counted from `position`; -1 = not
                           selected. NULL = no map */
    int32_t *owned;     /* memory of `map`, which is reused for the next range */
    int64_t room;
};

/* Finds the indices of the values of range r. The selection has been checked; NULL = all events. errors: LR_FAILED if
 * memory runs out. */
lr_status lr_listmode_places_find(struct lr_listmode_places *places, const struct lr_listmode_events *events,
                                  const lr_selection *selection, int64_t r, const lr_log *log);
void lr_listmode_places_finish(struct lr_listmode_places *places);

/* Returns the index of an event's value; -1 if the event is not selected. number: number of the event, counted from the
 * beginning of the range. */
static inline int64_t lr_listmode_place(const struct lr_listmode_places *places, int32_t number)
{
    const int64_t k = places->map != NULL ? places->map[number] : number - places->first;
    return k >= 0 && k < places->count ? places->position + k : -1;
}

/* A receiver of an event's elements, one by one. Each element is positive. */
struct lr_listmode_visitor {
    void (*take)(void *user, int64_t voxel, double element);
    void *user;
};

struct lr_listmode_row_source {
    const struct lr_listmode_events *events;
    const uint32_t *order; /* for each number k of an event to visit: its index in the events' arrays; NULL = the index
                              is k */
    /* Visits the elements of the event with number k. axis: the axis of the event's group. */
    void (*visit)(const void *self, int64_t k, int axis, const struct lr_listmode_visitor *visitor);
    const void *self;
    const lr_log *log;
    const lr_progress *progress;
};

/* Passes the rows to the sink. All events are visited once for each block of 1,024 to 65,536 rows. errors: LR_USAGE for
 * points between voxels; LR_FAILED if memory runs out; LR_CANCELLED; errors of the sink. */
lr_status lr_listmode_rows(const struct lr_listmode_row_source *source, const struct lr_rows *wanted,
                           const lr_row_sink *sink);
