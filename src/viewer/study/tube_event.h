/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The row of one event of list mode: what the family `listmode` makes of a LOR, with time of flight. */
#ifndef LR_VIEWER_TUBE_EVENT_H
#define LR_VIEWER_TUBE_EVENT_H

#include "viewer/study/tube.h"

/* What the row is asked of: crystals over the whole scanner, in the order of the request. */
struct tube_event {
    const struct study_view *study;
    const struct tube_request *request; /* of another kernel than TUBE_LOR */
    int32_t crystals[2];
};

/* The event's elements as an image on the study's grid, which is zero before; fills in the points of a
 * voxel. errors: LR_CANCELLED; as lr_listmode_create, logged. */
lr_status tube_event_row(const struct tube_event *event, lr_image *image, int *samples, const lr_log *log,
                         const lr_progress *progress);

#endif
