/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The paper's steps (lr_listmode_variant): the events as each of them has them, and their launches. */
#ifndef LR_CUDA_LISTMODE_STEPS_H
#define LR_CUDA_LISTMODE_STEPS_H

#include "cuda_interop/listmode/tables.h"

/* Zero is none. */
struct lr_cuda_list_steps {
    const struct lr_listmode_backend_params *params;
    const lr_cuda_list_pass *pass;      /* frames, hits and resolutions */
    lr_cuda_list_events events;         /* of all ranges; owned by the memory */
    const lr_cuda_list_record *records; /* in place of their arrays; NULL = none */
    int32_t tile_bytes;
};

/* Set params, pass and tile_bytes, below 48 KiB. Copies the events to the device and waits. errors:
 * LR_FAILED without memory; LR_USAGE where events do not fit in the budget, or rows of slices in a tile. */
lr_status lr_cuda_list_steps_init(struct lr_cuda_list_steps *steps, struct lr_cuda_list_memory *memory);

static inline bool lr_cuda_list_steps_are_cached(lr_listmode_variant variant)
{
    return variant >= LR_LISTMODE_CACHED;
}

/* Projects the events of range r. image: in the grid's order, for steps that are not cached. */
lr_status lr_cuda_list_steps_project(const struct lr_cuda_list_steps *steps, const lr_cuda_list_pass *pass, int64_t r,
                                     float *image, bool is_back);

#endif
