/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What merge.h does, by the host: where the device is the processor, its shaders take several times as long. */
#ifndef LR_RENDER_HOST_MERGE_H
#define LR_RENDER_HOST_MERGE_H

#include "model/lors/elements.h"
#include "render/rows/merge.h"

/* An element as it is listed. */
struct lr_listed {
    uint32_t point, lor;
    float weight;
    uint32_t unused;
};
_Static_assert(sizeof(struct lr_listed) == LR_LIST_ELEMENT_BYTES, "uvec4");

/* Set what comes first, zero the rest. */
struct lr_host_merge {
    int threads;
    const lr_log *log;
    struct lr_listed *listed, *sorted; /* owned: as they came, and by point */
    int64_t max_listed, max_sorted;
    int64_t *begin; /* owned [points + 1] */
    int64_t max_points;
    struct lr_elements *rows; /* owned */
    int64_t max_rows;
};
void lr_host_merge_finish(struct lr_host_merge *merge);

/* Waits for list->list. merge->rows then has its rows, merged, or, where the part is some points of one, what
 * each of them gives to it, in their order. Where more was listed than the list has room for, there are
 * none. errors: LR_FAILED, logged. */
lr_status lr_host_merge_run(struct lr_host_merge *merge, const struct lr_merge *list, const struct lr_merge_part *part,
                            uint32_t *listed);

#endif
