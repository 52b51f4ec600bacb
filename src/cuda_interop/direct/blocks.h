/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Blocks of the device's memory, and what is copied into them. Asking CUDA for memory takes longer than
 * filling it, so that the last block that was returned waits for the next one who wants as much. */
#ifndef LR_CUDA_BLOCKS_H
#define LR_CUDA_BLOCKS_H

#include <lr/log.h>

/* Zero is none. */
struct lr_cuda_block {
    void *memory; /* owned */
    int64_t bytes;
};

/* Zero is one without any. */
struct lr_cuda_blocks {
    struct lr_cuda_block spare;   /* of the device */
    struct lr_cuda_block staging; /* of the host, for copies to the device */
};
void lr_cuda_blocks_finish(struct lr_cuda_blocks *blocks);

/* A block of so many bytes, or of up to twice as many. errors: LR_FAILED, here and below. */
lr_status lr_cuda_blocks_take(struct lr_cuda_blocks *blocks, int64_t bytes, struct lr_cuda_block *block,
                              const lr_log *log);

/* Waits for what was launched, which may still read it. A block that is none may be returned. */
void lr_cuda_blocks_return(struct lr_cuda_blocks *blocks, struct lr_cuda_block *block);

/* Room in the host's memory for so many bytes. Nothing is copied from it at the moment. */
lr_status lr_cuda_blocks_make_staging(struct lr_cuda_blocks *blocks, int64_t bytes, const lr_log *log);

#endif
