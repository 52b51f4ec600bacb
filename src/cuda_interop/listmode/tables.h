/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The tables that the passes of list mode read besides images and values, in the memory of the current device. */
#ifndef LR_CUDA_LISTMODE_TABLES_H
#define LR_CUDA_LISTMODE_TABLES_H

#include "cuda_interop/listmode/plan.h"
#include "listmode/backend.h"

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

/* Tables of the events and the plan that passes read. hits: [num_crystals] of the host. */
struct lr_cuda_list_tables {
    lr_cuda_list_events events;
    const float *tube; /* its table; NULL = none */
    const lr_cuda_list_chunk *chunks;
    const lr_cuda_list_job *jobs;
};

/* Copies it to the device and waits; of the plan, when that is dealt out; events only where they are not
 * streamed, and not on the device already. errors: LR_FAILED if memory runs out. */
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

/* Shares of the budget beside an image of so many numbers in slices: sums that a launch may have, and bytes that are
 * left for events. */
struct lr_cuda_list_shares {
    int64_t most_sums, for_events;
};

struct lr_cuda_list_shares lr_cuda_list_share_memory(const struct lr_listmode_backend_params *params, int64_t numbers);

/* The same on the host, where `tables` are those of the device except for what is owned. */
lr_cuda_list_hit *lr_cuda_list_hits(const struct lr_listmode_events *events, const lr_log *log);
float *lr_cuda_list_tube_table(const lr_listmode_tube *tube, const lr_log *log);

/* The way of events from the host to the device: by two pieces of page-locked memory in turn, of which processors
 * fill one while the other is on its way. */

enum { LR_CUDA_LIST_PIECES = 2, LR_CUDA_LIST_SENT = 3 }; /* arrays: crystals a and b, tof_mm */

/* Zero is valid: there are none yet. */
struct lr_cuda_list_pieces {
    int64_t room; /* events of a piece */
    struct {
        int32_t *arrays[LR_CUDA_LIST_SENT]; /* [room] of one allocation, owned */
        cudaEvent_t sent;
    } list[LR_CUDA_LIST_PIECES];
    int next;
};

/* Makes the pieces larger for `most` events in all, up to the largest size of pieces. False: no memory. */
bool lr_cuda_list_pieces_ensure(struct lr_cuda_list_pieces *pieces, int64_t most);
void lr_cuda_list_pieces_finish(struct lr_cuda_list_pieces *pieces);

/* Target of events begin .. end - 1 of the caller's order. */
struct lr_cuda_list_sending {
    const struct lr_listmode_events *events;
    int64_t begin, end;
    int32_t *to[LR_CUDA_LIST_SENT]; /* of the device, from `begin` on */
    cudaStream_t stream;
    int threads;
    const lr_log *log;
};

/* Checks them on the way; the last ones may still be in progress when it returns.
 * errors: LR_BAD_INPUT for an event, LR_FAILED. */
lr_status lr_cuda_list_pieces_send(struct lr_cuda_list_pieces *pieces, const struct lr_cuda_list_sending *sending);

/* The pieces that a backend of this kind has for the events of its sensitivity; NULL = it is of another kind. */
struct lr_cuda_list_pieces *lr_cuda_list_pieces_of(const struct lr_backend *backend);

/* The order in which the device has the events of each group: by the size of their windows, then the first
 * slice that their lines meet, then the last one, then the steps that they take. Lines of a warp then are as
 * long as each other, and blocks go through few slices. */

/* Pieces of LR_CUDA_LIST_PIECE events, a group's last one shorter. Zero is none. */
struct lr_cuda_list_order {
    int64_t *first;             /* owned [num_ranges * LR_LISTMODE_GROUPS + 1] piece of each group */
    lr_cuda_list_piece *pieces; /* owned */
};

struct lr_cuda_list_order_params {
    const struct lr_listmode_backend_params *backend;
    const lr_cuda_list_pass *pass; /* frames, tube and all events */
    void *stream;                  /* a cudaStream_t */
    lr_cuda_list_line *lines;      /* [count] of the device, which are made; NULL = none */
    lr_cuda_list_path *paths;      /* of exact elements */
};

/* Bytes that ordering takes for a while, beside the events. */
int64_t lr_cuda_list_order_bytes(const struct lr_listmode_events *events);

/* Orders the events that the pass names, in place, and waits. Finish it in any case. errors: LR_FAILED
 * if memory runs out; the events are then in some order within their groups. */
lr_status lr_cuda_list_order_init(struct lr_cuda_list_order *order, const struct lr_cuda_list_order_params *params);
void lr_cuda_list_order_finish(struct lr_cuda_list_order *order);

/* The paper's steps (lr_listmode_variant): the events as each of them has them, and their launches. */

/* Zero is none. */
struct lr_cuda_list_steps {
    const struct lr_listmode_backend_params *params;
    const lr_cuda_list_pass *pass;      /* frames, hits and resolutions */
    lr_cuda_list_events events;         /* of all ranges; owned by the memory */
    const lr_cuda_list_record *records; /* in place of their arrays; NULL = none */
    int32_t tile_bytes;
};

/* Set params, pass and tile_bytes, below 48 KiB. Copies the events to the device and waits. errors:
 * LR_FAILED if memory runs out; LR_USAGE where events do not fit in the budget, or rows of slices in a tile. */
lr_status lr_cuda_list_steps_init(struct lr_cuda_list_steps *steps, struct lr_cuda_list_memory *memory);

static inline bool lr_cuda_list_steps_are_cached(lr_listmode_variant variant)
{
    return variant >= LR_LISTMODE_CACHED;
}

/* Projects the events of range r. image: in the grid's order, for steps that are not cached. */
lr_status lr_cuda_list_steps_project(const struct lr_cuda_list_steps *steps, const lr_cuda_list_pass *pass, int64_t r,
                                     float *image, bool is_back);

#endif
