/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_IO_LOR_SUMS_H
#define LR_IO_LOR_SUMS_H

#include <lr/lors.h>

/* Weights summed per LOR in the order of arrival. Memory: the LORs that occurred, and as many again that wait to be
 * merged, or 2^22. Zero is an empty sum; one thread. */
struct lr_lor_sums {
    int64_t waiting, room;
    int64_t *lors;     /* owned [room] */
    float *weights;    /* owned [room]; NULL while all are 1 */
    lr_lor_data *sums; /* owned; NULL while there are none */
};

/* errors: LR_FAILED when memory is short, logged. */
lr_status lr_lor_sums_add(struct lr_lor_sums *sums, int64_t lor, float weight, const lr_log *log);

/* The sparse sums, the caller's; NULL when memory is short. Frees the rest in any case. */
lr_lor_data *lr_lor_sums_finish(struct lr_lor_sums *sums, const lr_log *log);

void lr_lor_sums_destroy(struct lr_lor_sums *sums);

#endif
