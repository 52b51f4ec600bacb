/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What the passes of list mode read besides images and values, in the memory of the current device. */
#ifndef LR_CUDA_LISTMODE_TABLES_H
#define LR_CUDA_LISTMODE_TABLES_H

#include "cuda_interop/listmode/plan.h"

#include <cuda_runtime_api.h>

enum { LR_CUDA_LIST_BLOCKS = 24 };

/* Blocks of memory, all freed at once. Set stream and log, zero the rest. */
struct lr_cuda_list_memory {
    cudaStream_t stream; /* of copies */
    const lr_log *log;
    void *blocks[LR_CUDA_LIST_BLOCKS]; /* owned */
    int count;
    int64_t bytes; /* of all */
};

struct lr_cuda_list_block {
    const char *what;
    const void *from; /* what it is to hold, until the stream is done; NULL = anything */
    int64_t bytes;
};

/* The address of a new block. NULL: no memory on the device, or an error of CUDA's, logged. */
void *lr_cuda_list_allocate(struct lr_cuda_list_memory *memory, const struct lr_cuda_list_block *block);
void lr_cuda_list_free(struct lr_cuda_list_memory *memory);

/* What passes read of the events and the plan. hits: [num_crystals] of the host. */
struct lr_cuda_list_tables {
    lr_cuda_list_events events;
    const float *tube; /* its table; NULL = none */
    const lr_cuda_list_chunk *chunks;
    const lr_cuda_list_job *jobs;
};

/* Copies it to the device and waits; of the plan, when that is dealt out; events only where they are not
 * streamed, nor held there. errors: LR_FAILED without memory. */
lr_status lr_cuda_list_tables_init(struct lr_cuda_list_tables *tables, const struct lr_listmode_backend_params *params,
                                   bool are_streamed, struct lr_cuda_list_memory *memory);
lr_status lr_cuda_list_tables_plan(struct lr_cuda_list_tables *tables, const struct lr_cuda_list_plan *plan,
                                   struct lr_cuda_list_memory *memory);

/* Events that a device holds, with arrays of the host's own; all else is the same as in `from`, which outlives
 * it. Finish it in any case. errors: LR_FAILED. */
lr_status lr_cuda_list_fetch(const struct lr_listmode_events *from, struct lr_listmode_events *to, const lr_log *log);
void lr_cuda_list_fetch_finish(struct lr_listmode_events *fetched);

/* Bytes of the device that the family may take: as asked for, else half of what there is. */
int64_t lr_cuda_list_budget(const struct lr_listmode_backend_params *params);

/* How these are shared beside an image of so many numbers in slices: sums that a launch may have, and bytes that
 * are left for events. */
struct lr_cuda_list_shares {
    int64_t most_sums, for_events;
};

struct lr_cuda_list_shares lr_cuda_list_share_memory(const struct lr_listmode_backend_params *params, int64_t numbers);

/* The same on the host, where `tables` are those of the device but for what is owned. */
lr_cuda_list_hit *lr_cuda_list_hits(const struct lr_listmode_events *events, const lr_log *log);
float *lr_cuda_list_tube_table(const lr_listmode_tube *tube, const lr_log *log);

#endif
