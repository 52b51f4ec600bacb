/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/direct/blocks.h"

#include "base/log.h"
#include "cuda_interop/lend.h"

#include <cuda_runtime_api.h>

static void free_block(struct lr_cuda_block *block)
{
    if (block->memory != NULL) /* there may be no device to ask */
        cudaFree(block->memory);
    *block = (struct lr_cuda_block){0};
}

static void free_staging(struct lr_cuda_block *staging)
{
    if (staging->memory != NULL) cudaFreeHost(staging->memory);
    *staging = (struct lr_cuda_block){0};
}

void lr_cuda_blocks_finish(struct lr_cuda_blocks *blocks)
{
    free_staging(&blocks->staging);
    free_block(&blocks->spare);
}

lr_status lr_cuda_blocks_take(struct lr_cuda_blocks *blocks, int64_t bytes, struct lr_cuda_block *block,
                              const lr_log *log)
{
    if (blocks->spare.bytes >= bytes && blocks->spare.bytes / 2 <= bytes) {
        *block = blocks->spare;
        blocks->spare = (struct lr_cuda_block){0};
        return LR_OK;
    }
    free_block(&blocks->spare);
    *block = (struct lr_cuda_block){0};
    LR_TRY(lr_cuda_check((int)cudaMalloc(&block->memory, (size_t)bytes), "look-up tables", log));
    block->bytes = bytes;
    return LR_OK;
}

void lr_cuda_blocks_return(struct lr_cuda_blocks *blocks, struct lr_cuda_block *block)
{
    if (block->memory != NULL) cudaDeviceSynchronize();
    if (block->bytes > blocks->spare.bytes) {
        const struct lr_cuda_block former = blocks->spare;
        blocks->spare = *block;
        *block = former;
    }
    free_block(block);
}

lr_status lr_cuda_blocks_make_staging(struct lr_cuda_blocks *blocks, int64_t bytes, const lr_log *log)
{
    struct lr_cuda_block *staging = &blocks->staging;
    const int64_t wanted = bytes + bytes / 4; /* not anew for every group that is a bit larger */
    if (staging->bytes >= bytes) return LR_OK;
    free_staging(staging);
    LR_TRY(lr_cuda_check((int)cudaMallocHost(&staging->memory, (size_t)wanted),
                         "look-up tables on their way to the device", log));
    staging->bytes = wanted;
    return LR_OK;
}
