/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The tables that list-mode passes read, in the memory of the current device. Images and values are not tables. */
#pragma once

#include "cuda_interop/listmode/plan.h"
#include "listmode/backend.h"

#include <cuda_runtime_api.h>

enum { LR_CUDA_LIST_BLOCKS = 24 };

/* Blocks of memory that are freed together. The caller sets stream and log, and zeroes the rest. */
struct lr_cuda_list_memory {
    cudaStream_t stream; /* stream on which blocks are filled */
    const lr_log *log;
    void *blocks[LR_CUDA_LIST_BLOCKS]; /* owned */
    int count;
    cudaTextureObject_t texture; /* owned: of one of the blocks; 0 = none */
    int64_t bytes;               /* bytes of all blocks */
    bool failed;                 /* true if a block could not be allocated; no further blocks are then allocated */
};

/* Allocates a block and returns its address. from: initial content, which must exist until the stream's work is done;
 * NULL = none. errors: NULL, logged, if device memory runs out or CUDA reports an error, for this block or an earlier
 * one. */
void *lr_cuda_list_allocate(struct lr_cuda_list_memory *memory, const char *what, const void *from, int64_t bytes);

/* Frees all blocks. The struct keeps its stream and log, and can be used again. */
void lr_cuda_list_free(struct lr_cuda_list_memory *memory);

/* Sets the pass's events and the table of its tube. Copies both to the device, and waits. Events are not copied if they
 * are streamed or already on the device. errors: LR_FAILED if memory runs out. */
lr_status lr_cuda_list_tables_init(lr_cuda_list_pass *pass, const struct lr_listmode_backend_params *params,
                                   bool are_streamed, struct lr_cuda_list_memory *memory);

/* Returns the events from event `begin` on. */
lr_cuda_list_events lr_cuda_list_events_from(const lr_cuda_list_events *events, int64_t begin);

/* Returns how many bytes of device memory the family may use: the requested budget, or half of the device's memory. If
 * lines are given by their ends, the bytes of these ends are subtracted. The bytes of a scanner's crystals are too few
 * to matter. */
int64_t lr_cuda_list_budget(const struct lr_listmode_backend_params *params);

/* Divides the part of lr_cuda_list_budget() that the image leaves: some bytes for the sums of a launch, and the rest
 * for events. numbers: count of numbers of the image in slices. */
struct lr_cuda_list_shares {
    int64_t most_sums, for_events;
};

struct lr_cuda_list_shares lr_cuda_list_share_memory(const struct lr_listmode_backend_params *params, int64_t numbers);

/* Makes the table of crystals in the host's memory. The caller frees the table. */
lr_cuda_list_hit *lr_cuda_list_hits(const struct lr_listmode_events *events, const lr_log *log);

/* Transfers events from the host to the device through two pieces of page-locked memory. The host fills one piece while
 * the other one is copied. */

enum {
    LR_CUDA_LIST_PIECES = 2,
    LR_CUDA_LIST_SENT = 3
}; /* LR_CUDA_LIST_SENT: number of arrays, which are crystal a,
                                                            crystal b and tof_mm */

/* A struct of zeros has no pieces. */
struct lr_cuda_list_pieces {
    int64_t room; /* number of events of a piece */
    struct {
        int32_t *arrays[LR_CUDA_LIST_SENT]; /* [room] each, in one allocation, owned */
        cudaEvent_t sent;
    } list[LR_CUDA_LIST_PIECES];
    int next;
};

/* Makes the pieces large enough for `most` events in all, or as large as a piece may be. Returns false if memory runs
 * out. */
bool lr_cuda_list_pieces_ensure(struct lr_cuda_list_pieces *pieces, int64_t most);
void lr_cuda_list_pieces_finish(struct lr_cuda_list_pieces *pieces);

/* Events begin .. end - 1, which are in the caller's order, and the device arrays that receive them. */
struct lr_cuda_list_sending {
    const struct lr_listmode_events *events;
    int64_t begin, end;
    int32_t *to[LR_CUDA_LIST_SENT]; /* device arrays; element 0 is event `begin` */
    cudaStream_t stream;
    int threads;
    const lr_log *log;
};

/* Checks the events and sends them. On return, the last transfers may still be in progress. errors: LR_BAD_INPUT for an
 * invalid event, LR_FAILED. */
lr_status lr_cuda_list_pieces_send(struct lr_cuda_list_pieces *pieces, const struct lr_cuda_list_sending *sending);

/* Returns the pieces that `backend` keeps; NULL if the backend is of another kind. Events that are arranged for the
 * sensitivity of this backend are sent through the same pieces. */
struct lr_cuda_list_pieces *lr_cuda_list_pieces_of(const struct lr_backend *backend);

struct lr_cuda_list_order_params {
    const struct lr_listmode_backend_params *backend;
    const lr_cuda_list_pass *pass; /* its frames, tube, stream and events are used */
    lr_cuda_list_line *lines;      /* [count] on the device: receives the lines; NULL = no lines are made */
    lr_cuda_list_path *paths;      /* like `lines`, for exact elements */
};

/* Returns the bytes of the events plus the bytes of temporary memory for ordering them. */
int64_t lr_cuda_list_order_bytes(const struct lr_listmode_events *events);

/* Orders the events of the pass in place, and waits. Call the pieces' finish function even after an error. errors:
 * LR_FAILED if memory runs out; the events are then in any order within their groups. */
lr_status lr_cuda_list_order_init(struct lr_listmode_pieces *order, const struct lr_cuda_list_order_params *params);

/* --- events and launches of the paper's steps (lr_listmode_variant) --- */

/* A struct of zeros has no steps. */
struct lr_cuda_list_steps {
    const struct lr_listmode_backend_params *params;
    const lr_cuda_list_pass *pass;      /* its frames, hits and resolutions are used */
    lr_cuda_list_events events;         /* events of all ranges, in the memory that was given to
                                           lr_cuda_list_steps_init */
    const lr_cuda_list_record *records; /* the events, if this step reads records; NULL = they are in arrays */
    int32_t tile_bytes;
};

/* Copies the events to the device and waits. The caller sets params, pass and tile_bytes (below 48 KiB) first.
 * errors: LR_FAILED if memory runs out; LR_USAGE if the events do not fit into lr_cuda_list_budget(), or if one row of
 * a slice is larger than tile_bytes (only variants from LR_LISTMODE_CACHED on). */
lr_status lr_cuda_list_steps_init(struct lr_cuda_list_steps *steps, struct lr_cuda_list_memory *memory);

static inline bool lr_cuda_list_steps_are_cached(lr_listmode_variant variant)
{
    return variant >= LR_LISTMODE_CACHED;
}

/* Projects the events of range r. image: in the grid's order; used by steps that do not have slices in shared
 * memory. */
lr_status lr_cuda_list_steps_project(const struct lr_cuda_list_steps *steps, const lr_cuda_list_pass *pass, int64_t r,
                                     float *image, bool is_back);
