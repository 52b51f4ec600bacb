/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Which events join crystals in coincidence, in tables of modules. */
#ifndef LR_IO_EVENT_JOINING_H
#define LR_IO_EVENT_JOINING_H

#include <lr/events.h>

/* Immutable; threads may share it. */
struct lr_joining {
    const lr_lors *lors;
    int32_t *module_of; /* owned [num_crystals]; NULL = there are no tables */
    int32_t *pairs;     /* owned [num_modules][num_modules] */
};

/* Without memory for tables, or with far too many modules, there are none, and LORs are looked up. */
void lr_joining_open(struct lr_joining *joining, const lr_lors *lors);
void lr_joining_finish(struct lr_joining *joining);

int64_t lr_joining_count(const struct lr_joining *joining, const lr_event *events, int64_t count);

#endif
