/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Rows of the matrix, the events that see a voxel, from what events see. */
#ifndef LR_LISTMODE_ROWS_H
#define LR_LISTMODE_ROWS_H

#include "listmode/events.h"
#include "model/lors/rows.h"

#include <lr/operator.h>

/* Takes the elements of an event one by one; each is positive. */
struct lr_listmode_visitor {
    void (*take)(void *user, int64_t voxel, double element);
    void *user;
};

struct lr_listmode_row_source {
    const struct lr_listmode_events *events;
    const uint32_t *order; /* the visitor's place k is this one of the arrays; NULL = place k */
    /* Visits the elements of the event at place k of the arrays, in a group of this axis. */
    void (*visit)(const void *self, int64_t k, int axis, const struct lr_listmode_visitor *visitor);
    const void *self;
    const lr_log *log;
    const lr_progress *progress;
};

/* All events are gone through for each 1,024 rows.
 * errors: LR_USAGE for points between voxels; LR_FAILED without memory; LR_CANCELLED; what the sink
 * returns. */
lr_status lr_listmode_rows(const struct lr_listmode_row_source *source, const struct lr_rows *wanted,
                           const lr_row_sink *sink);

#endif
