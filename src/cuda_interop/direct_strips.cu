/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/direct_launch.h"

#include <cuda_pipeline.h>
#include <cuda_runtime.h>

/* A copy that goes on beside the thread's work; zero where nothing is there. */
__device__ inline void copy_quad(float4 *target, const float4 *source, bool is_there)
{
    __pipeline_memcpy_async(target, source, sizeof(float4), is_there ? 0 : sizeof(float4));
}

/* Whether it is true for a thread of the warp. */
__device__ inline bool any_lane(bool is_so)
{
    return __any_sync(0xffffffffu, is_so) != 0;
}

#include "cuda_interop/direct_strips.cuh"

namespace
{

constexpr int threads = LR_CUDA_STRIP_WARPS * LR_CUDA_STRIP_ROWS * LR_CUDA_STRIP_PIECES;

/* 24 slices take 96 registers for sums alone. slice: the first. */
template <bool Forward, int Slices>
__global__ void __launch_bounds__(threads, Slices == 24 ? 3 : 4)
    strips(lr_cuda_strips pass, int slice, const float4 *source, float4 *target)
{
    extern __shared__ float4 shared[];
    const int2 tile = pass.tiles[blockIdx.x];
    const strip_block block = {
        tile.x, tile.y, slice + (int)blockIdx.y * LR_CUDA_STRIP_PIECES * Slices, shared,
        reinterpret_cast<uint16_t *>(shared + (int64_t)pass.slots * pass.width * pass.pitch)};
    const int thread = (int)threadIdx.x, ahead = pass.slots - 1;
    strip_thread<Slices> own;
    begin_strip<Forward>(pass, block, thread, own);
    for (int c = 0; c < ahead; c++) {
        stage_slab<Forward>(pass, block, c, source, thread);
    }
    __pipeline_commit();
    for (int c = 0; c < pass.num_slabs; c++) {
        __pipeline_wait_prior(0);
        __syncthreads();
        if (c + 1 < pass.num_slabs) {
            stage_slab<Forward>(pass, block, c + ahead, source, thread);
        }
        __pipeline_commit();
        if (own.is_needed) {
            gather_slab<Forward>(pass, block, c, own);
        }
    }
    store_strip(pass, block, own, target);
}

template <bool Forward>
__global__ void strip_weights(lr_cuda_strips pass, lr_cuda_gather tables, const int4 *entries)
{
    fill_strip_weights<Forward>(pass, tables, entries,
                                (int64_t)blockIdx.x * blockDim.x + threadIdx.x);
}

/* `layers` of blocks above each other, from a slice on. */
template <bool Forward, int Slices>
cudaError_t launch(lr_cuda_strips pass, const lr_cuda_images &images, int slice, int layers)
{
    const cudaError_t error = cudaFuncSetAttribute(
        strips<Forward, Slices>, cudaFuncAttributeMaxDynamicSharedMemorySize, pass.bytes);
    if (error != cudaSuccess || layers == 0) {
        return error;
    }
    pass.quads -= LR_CUDA_STRIP_PIECES * (LR_CUDA_STRIP_SLICES - Slices) / 4;
    const auto stream = static_cast<cudaStream_t>(images.stream);
    const dim3 grid((unsigned)pass.num_tiles, (unsigned)layers);
    strips<Forward, Slices>
        <<<grid, threads, (size_t)pass.bytes, stream>>>(pass, slice, images.source, images.target);
    return cudaGetLastError();
}

/* Whole layers, and the slices that are left by the shortest threads that do. */
template <bool Forward>
cudaError_t launch_layers(const lr_cuda_strips &pass, const lr_cuda_images &images)
{
    constexpr int most = LR_CUDA_STRIP_PIECES * LR_CUDA_STRIP_SLICES;
    const int layers = pass.layout.size[2] / most, slice = layers * most;
    const int left = pass.layout.size[2] - slice;
    const cudaError_t error = launch<Forward, 24>(pass, images, 0, layers + (left > 32));
    if (error != cudaSuccess || left == 0 || left > 32) {
        return error;
    }
    return left > 16 ? launch<Forward, 16>(pass, images, slice, 1)
                     : launch<Forward, 8>(pass, images, slice, 1);
}

} // namespace

int lr_cuda_launch_strips(bool forward, const lr_cuda_strips *pass, const lr_cuda_images *images)
{
    return forward ? launch_layers<true>(*pass, *images) : launch_layers<false>(*pass, *images);
}

int lr_cuda_launch_strip_weights(bool forward, const lr_cuda_strips *pass,
                                 const lr_cuda_gather *tables, const int4 *entries)
{
    constexpr int group = 256;
    const int64_t count = (int64_t)(pass->num_entries + pass->num_singles) * pass->num_rows;
    const unsigned blocks = (unsigned)((count + group - 1) / group);
    if (forward) {
        strip_weights<true><<<blocks, group>>>(*pass, *tables, entries);
    } else {
        strip_weights<false><<<blocks, group>>>(*pass, *tables, entries);
    }
    return cudaGetLastError();
}
