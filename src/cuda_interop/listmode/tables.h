/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Tables that list-mode passes read, in the memory of the current device. Images and values are not among them. */
#ifndef LR_CUDA_INTEROP_LISTMODE_TABLES_H
#define LR_CUDA_INTEROP_LISTMODE_TABLES_H

#include "cuda_interop/listmode/plan.h"
#include "listmode/backend.h"

#include <cuda_runtime_api.h>

enum { LR_CUDA_LIST_BLOCKS = 24 };

/* Blocks of memory, all freed at once. Set stream and log, zero the rest. */
struct lr_cuda_list_memory {
    cudaStream_t stream; /* stream of copies */
    const lr_log *log;
    void *blocks[LR_CUDA_LIST_BLOCKS]; /* owned */
    int count;
    cudaTextureObject_t texture; /* owned: of one of the blocks; 0 = none */
    int64_t bytes;               /* bytes of all blocks */
    bool failed;                 /* a block could not be allocated, so that no further blocks are allocated */
};

/* The address of a new block; NULL if device memory runs out or CUDA reports an error, logged, here or for an earlier
 * block. from: initial content, which must live until the stream is done; NULL = none. */
void *lr_cuda_list_allocate(struct lr_cuda_list_memory *memory, const char *what, const void *from, int64_t bytes);

/* Frees all blocks. The memory is then empty, keeps its stream and log, and can be used again. */
void lr_cuda_list_free(struct lr_cuda_list_memory *memory);

/* Sets the pass's events and the table of its tube: copies them to the device, and waits. Events are copied only if
 * they are neither streamed nor already on the device. errors: LR_FAILED if memory runs out. */
lr_status lr_cuda_list_tables_init(lr_cuda_list_pass *pass, const struct lr_listmode_backend_params *params,
                                   bool are_streamed, struct lr_cuda_list_memory *memory);

/* The events from event `begin` on. */
lr_cuda_list_events lr_cuda_list_events_from(const lr_cuda_list_events *events, int64_t begin);

/* Bytes of the device that the family may take: the requested budget, or half of the device's memory. If lines are
 * given by their ends, the bytes of the ends are subtracted; a scanner's crystals are too few to count. */
int64_t lr_cuda_list_budget(const struct lr_listmode_backend_params *params);

/* Divides the part of the budget that remains beside an image with this many numbers in slices: bytes for the sums of a
 * launch, and bytes for events. */
struct lr_cuda_list_shares {
    int64_t most_sums, for_events;
};

struct lr_cuda_list_shares lr_cuda_list_share_memory(const struct lr_listmode_backend_params *params, int64_t numbers);

/* Makes the table of crystals in host memory; the caller frees it. */
lr_cuda_list_hit *lr_cuda_list_hits(const struct lr_listmode_events *events, const lr_log *log);

/* Transfer of events from the host to the device through two pieces of page-locked memory. Processors fill one piece
 * while the other is copied. */

enum { LR_CUDA_LIST_PIECES = 2, LR_CUDA_LIST_SENT = 3 }; /* arrays: crystals a and b, tof_mm */

/* Zero is valid: no pieces yet. */
struct lr_cuda_list_pieces {
    int64_t room; /* events of a piece */
    struct {
        int32_t *arrays[LR_CUDA_LIST_SENT]; /* [room] each; all in one allocation, owned */
        cudaEvent_t sent;
    } list[LR_CUDA_LIST_PIECES];
    int next;
};

/* Enlarges the pieces for `most` events in all, up to the largest allowed piece. Returns false if memory runs out. */
bool lr_cuda_list_pieces_ensure(struct lr_cuda_list_pieces *pieces, int64_t most);
void lr_cuda_list_pieces_finish(struct lr_cuda_list_pieces *pieces);

/* Target of events begin .. end - 1, in the caller's order. */
struct lr_cuda_list_sending {
    const struct lr_listmode_events *events;
    int64_t begin, end;
    int32_t *to[LR_CUDA_LIST_SENT]; /* device arrays, from `begin` on */
    cudaStream_t stream;
    int threads;
    const lr_log *log;
};

/* Checks the events while sending them. The last transfers may still be in progress when it returns. errors:
 * LR_BAD_INPUT for an event, LR_FAILED. */
lr_status lr_cuda_list_pieces_send(struct lr_cuda_list_pieces *pieces, const struct lr_cuda_list_sending *sending);

/* The pieces that `backend` keeps for the events of its sensitivity; NULL if it is a backend of another kind. */
struct lr_cuda_list_pieces *lr_cuda_list_pieces_of(const struct lr_backend *backend);

struct lr_cuda_list_order_params {
    const struct lr_listmode_backend_params *backend;
    const lr_cuda_list_pass *pass; /* frames, tube, stream and all events */
    lr_cuda_list_line *lines;      /* [count] on the device: the lines to make; NULL = none */
    lr_cuda_list_path *paths;      /* the same for exact elements */
};

/* Bytes of the events, and of the temporary memory for ordering them. */
int64_t lr_cuda_list_order_bytes(const struct lr_listmode_events *events);

/* Orders the events that the pass names, in place, and waits. Finish the pieces in any case. errors: LR_FAILED
 * if memory runs out; the events are then in some order within their groups. */
lr_status lr_cuda_list_order_init(struct lr_listmode_pieces *order, const struct lr_cuda_list_order_params *params);

/* --- events and launches of the paper's steps (lr_listmode_variant) --- */

/* Zero is valid: no steps. */
struct lr_cuda_list_steps {
    const struct lr_listmode_backend_params *params;
    const lr_cuda_list_pass *pass;      /* frames, hits and resolutions */
    lr_cuda_list_events events;         /* events of all ranges; owned by the memory */
    const lr_cuda_list_record *records; /* the events, if the step has records; NULL = they are in arrays */
    int32_t tile_bytes;
};

/* Copies the events to the device and waits. The caller sets params, pass and tile_bytes (below 48 KiB) first.
 * errors: LR_FAILED if memory runs out; LR_USAGE if events exceed the budget or rows of slices exceed a tile. */
lr_status lr_cuda_list_steps_init(struct lr_cuda_list_steps *steps, struct lr_cuda_list_memory *memory);

static inline bool lr_cuda_list_steps_are_cached(lr_listmode_variant variant)
{
    return variant >= LR_LISTMODE_CACHED;
}

/* Projects the events of range r. image: in the grid's order, for steps that are not cached. */
lr_status lr_cuda_list_steps_project(const struct lr_cuda_list_steps *steps, const lr_cuda_list_pass *pass, int64_t r,
                                     float *image, bool is_back);

#endif
