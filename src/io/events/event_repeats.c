/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/log.h"
#include "io/events/events_writers.h"

#include <math.h>

lr_status lr_event_repeats(const lr_event *event, const char *path, int64_t *repeats, const lr_log *log)
{
    const double weight = event->weight;
    *repeats = 0;
    if (!(weight >= 0 && weight <= 1e9) || weight != floor(weight)) {
        return lr_error(log, LR_USAGE,
                        "%s: list mode holds whole events, and one of weight %g was to be written: "
                        "write a CASToR histogram instead",
                        path, weight);
    }
    *repeats = (int64_t)weight;
    return LR_OK;
}
