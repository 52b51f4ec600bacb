/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/direct/columns.cuh"
#include "cuda_interop/direct/launch.h"

#include <cuda_runtime.h>

namespace
{

/* A warp has neighbouring rows of the lattice and all their slices; a block's warps follow each
 * other along the line, where they share sources and weights. */
constexpr int lanes = 32, warps = 4;

template <bool Forward>
__global__ void __launch_bounds__(lanes *warps, 4) columns(lr_cuda_columns pass, const float4 *source, float4 *target)
{
    const int pieces = (pass.layout.size[2] + LR_CUDA_SLICES - 1) / LR_CUDA_SLICES;
    const int thread = (int)(blockIdx.y * lanes + threadIdx.x);
    const int place[3] = {(int)(blockIdx.x * warps + threadIdx.y), thread / pieces, thread % pieces * LR_CUDA_SLICES};
    if (place[0] < pass.num_places[0] && place[1] < pass.num_places[1])
        gather_columns<Forward>(pass, place, source, target);
}

template <bool Forward> __global__ void weights(lr_cuda_columns pass, lr_cuda_gather tables, const int32_t *indices)
{
    fill_weights<Forward>(pass, tables, indices, (int64_t)blockIdx.x * blockDim.x + threadIdx.x);
}

} // namespace

int lr_cuda_launch_columns(bool forward, const lr_cuda_columns *pass, const lr_cuda_images *images)
{
    const int pieces = (pass->layout.size[2] + LR_CUDA_SLICES - 1) / LR_CUDA_SLICES;
    const dim3 block(lanes, warps);
    const dim3 grid((unsigned)((pass->num_places[0] + warps - 1) / warps),
                    (unsigned)((pass->num_places[1] * pieces + lanes - 1) / lanes));
    const auto stream = static_cast<cudaStream_t>(images->stream);
    const auto kernel = forward ? columns<true> : columns<false>;
    lr_cuda_note_kernel(reinterpret_cast<const void *>(kernel), lanes * warps, 0);
    if (forward)
        columns<true><<<grid, block, 0, stream>>>(*pass, images->source, images->target);
    else
        columns<false><<<grid, block, 0, stream>>>(*pass, images->source, images->target);
    return cudaGetLastError();
}

int lr_cuda_launch_column_weights(bool forward, const lr_cuda_columns *pass, const lr_cuda_gather *tables,
                                  const int32_t *indices)
{
    constexpr int group = 256;
    const int64_t threads = (int64_t)pass->first[LR_CUDA_CLASSES] * LR_CUDA_OUTPUTS * pass->num_rows;
    const unsigned blocks = (unsigned)((threads + group - 1) / group);
    if (forward)
        weights<true><<<blocks, group>>>(*pass, *tables, indices);
    else
        weights<false><<<blocks, group>>>(*pass, *tables, indices);
    return cudaGetLastError();
}
