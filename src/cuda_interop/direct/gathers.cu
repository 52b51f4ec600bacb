/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Launches of the kernels of gathers.cuh. */
#include "cuda_interop/direct/gathers.cuh"
#include "cuda_interop/direct/passes.h"
#include "cuda_interop/overlap.cuh"

#include <cuda_runtime.h>

namespace
{

constexpr int tile_threads = LR_CUDA_TILE_PLACES * LR_CUDA_TILE_LISTS * LR_CUDA_TILE_QUADS;

template <bool Forward, class Images>
__global__ void __launch_bounds__(tile_threads) tiles(lr_cuda_cloud pass, Images images)
{
    extern __shared__ float4 shared[];
    const cloud_tile tile = {{(int)blockIdx.y * LR_CUDA_TILE_PLACES,
                              pass.least_list + (int)blockIdx.z * LR_CUDA_TILE_LISTS,
                              (int)blockIdx.x * LR_CUDA_TILE_QUADS}};
    stage_tile(pass, images, tile, shared, (int)threadIdx.x, tile_threads);
    __syncthreads();
    gather_tile<Forward>(pass, images, tile, shared, (int)threadIdx.x);
}

template <class Images>
cudaError_t start_gather(lr_cuda_gather_kind kind, bool forward, const lr_cuda_gather &pass, const Images &images,
                         void *stream)
{
    const lr_cuda_layout &layout = pass.layout;
    const int64_t threads =
        (int64_t)layout.size[0] * layout.size[1] * (kind == LR_CUDA_VOXELS ? layout.size[2] : layout.quads);
    const auto kernel = kind == LR_CUDA_VOXELS ? (forward ? voxels<true, Images> : voxels<false, Images>)
                                               : (forward ? texels<true, Images> : texels<false, Images>);
    lr_cuda_note_kernel(reinterpret_cast<const void *>(kernel), LR_CUDA_GROUP, 0);
    kernel<<<groups_of(threads), LR_CUDA_GROUP, 0, static_cast<cudaStream_t>(stream)>>>(pass, images);
    return cudaGetLastError();
}

template <class Images>
cudaError_t start_cloud(bool shared, bool forward, const lr_cuda_cloud &pass, const Images &images, void *stream)
{
    const lr_cuda_layout &layout = pass.layout;
    const auto kernel = shared ? (forward ? tiles<true, Images> : tiles<false, Images>)
                               : (forward ? cloud<true, Images> : cloud<false, Images>);
    dim3 grid(groups_of((int64_t)pass.num_lists * layout.size[pass.along] * layout.quads));
    int threads = LR_CUDA_GROUP, bytes = 0;
    if (shared) {
        const auto blocks = [](int count, int each) { return (unsigned)((count + each - 1) / each); };
        grid = dim3(blocks(layout.quads, LR_CUDA_TILE_QUADS), blocks(layout.size[pass.along], LR_CUDA_TILE_PLACES),
                    blocks(pass.num_lists, LR_CUDA_TILE_LISTS));
        threads = tile_threads;
        bytes = (int)lr_cuda_shared_bytes(&pass);
        /* set to the largest possible size, because other threads launch the same kernel with other sizes */
        const cudaError_t error =
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)lr_cuda_shared_room());
        if (error != cudaSuccess) return error;
    }
    lr_cuda_note_kernel(reinterpret_cast<const void *>(kernel), threads, bytes);
    kernel<<<grid, threads, bytes, static_cast<cudaStream_t>(stream)>>>(pass, images);
    return cudaGetLastError();
}

} // namespace

int lr_cuda_launch_gather(enum lr_cuda_gather_kind kind, bool forward, const lr_cuda_gather *pass,
                          const lr_cuda_images *images)
{
    return images->source_texture == 0
               ? start_gather(kind, forward, *pass, arrays_of(pass->layout, *images, nullptr), images->stream)
               : start_gather(kind, forward, *pass, textures_of(pass->layout, *images), images->stream);
}

int lr_cuda_launch_cloud(bool shared, bool forward, const lr_cuda_cloud *pass, const lr_cuda_images *images)
{
    return images->source_texture == 0
               ? start_cloud(shared, forward, *pass, arrays_of(pass->layout, *images, pass), images->stream)
               : start_cloud(shared, forward, *pass, textures_of(pass->layout, *images), images->stream);
}

int64_t lr_cuda_shared_room(void)
{
    int device = 0, most = 0;
    cudaError_t error = cudaGetDevice(&device);
    error =
        error == cudaSuccess ? cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) : error;
    if (error != cudaSuccess) {
        (void)cudaGetLastError();
        return -1;
    }
    return most;
}

int64_t lr_cuda_shared_bytes(const lr_cuda_cloud *pass)
{
    return tile_texels(*pass) * (int64_t)sizeof(float4);
}

int lr_cuda_launch_columns(bool forward, const lr_cuda_columns *pass, const lr_cuda_images *images)
{
    constexpr int lanes = LR_CUDA_COLUMN_LANES, warps = LR_CUDA_COLUMN_WARPS;
    const int pieces = (pass->layout.size[2] + LR_CUDA_SLICES - 1) / LR_CUDA_SLICES;
    const dim3 grid((unsigned)((pass->num_places[0] + warps - 1) / warps),
                    (unsigned)((pass->num_places[1] * pieces + lanes - 1) / lanes));
    const auto kernel = forward ? columns<true> : columns<false>;
    lr_cuda_note_kernel(reinterpret_cast<const void *>(kernel), lanes * warps, 0);
    kernel<<<grid, dim3(lanes, warps), 0, static_cast<cudaStream_t>(images->stream)>>>(*pass, images->source,
                                                                                       images->target);
    return cudaGetLastError();
}

int lr_cuda_launch_column_weights(bool forward, const lr_cuda_columns *pass, const lr_cuda_gather *tables,
                                  const int32_t *indices)
{
    const auto kernel = forward ? weights<true> : weights<false>;
    const int64_t threads = (int64_t)pass->first[LR_CUDA_CLASSES] * LR_CUDA_OUTPUTS * pass->num_rows;
    kernel<<<groups_of(threads), LR_CUDA_GROUP>>>(*pass, *tables, indices);
    return cudaGetLastError();
}
