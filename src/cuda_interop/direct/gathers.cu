/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Gathers of the family `direct`: kernels over gathers.cuh, and their launches. */
#include "cuda_interop/direct/gathers.cuh"
#include "cuda_interop/direct/passes.h"

#include <cuda_runtime.h>

/* --- images and LORmap on the device, as the gathers take them --- */

struct texture_images {
    lr_cuda_layout layout;
    cudaTextureObject_t source;
    cudaSurfaceObject_t target;

    __device__ float4 load(int q, int x, int y) const
    {
        return tex3D<float4>(source, q + layout.margin[0], x + layout.margin[1], y + layout.margin[2]);
    }
    __device__ void store(int q, int x, int y, float4 texel) const
    {
        surf3Dwrite(texel, target, (q + layout.margin[0]) * (int)sizeof(float4), x + layout.margin[1],
                    y + layout.margin[2]);
    }
    __device__ void store_slice(int q, int x, int y, int slice, float value) const
    {
        surf3Dwrite(value, target, (q + layout.margin[0]) * (int)sizeof(float4) + slice * (int)sizeof(float),
                    x + layout.margin[1], y + layout.margin[2]);
    }
};

struct array_images {
    lr_cuda_layout layout;
    const float4 *source;
    float4 *target;

    __device__ int64_t place(int q, int x, int y) const
    {
        return q + layout.margin[0] +
               (int64_t)layout.extent[0] * (x + layout.margin[1] + (int64_t)layout.extent[1] * (y + layout.margin[2]));
    }
    __device__ float4 load(int q, int x, int y) const { return __ldg(source + place(q, x, y)); }
    __device__ void store(int q, int x, int y, float4 texel) const { target[place(q, x, y)] = texel; }
    __device__ void store_slice(int q, int x, int y, int slice, float value) const
    {
        reinterpret_cast<float *>(target + place(q, x, y))[slice] = value;
    }
};

struct lor_map {
    lr_cuda_layout layout;
    const uint16_t *entries;

    __device__ int operator()(int x, int y) const
    {
        return __ldg(entries + x + layout.margin[1] + layout.extent[1] * (y + layout.margin[2]));
    }
};

namespace
{

constexpr int group = 256;

__device__ int64_t thread_number()
{
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

unsigned groups(int64_t threads)
{
    return (unsigned)((threads + group - 1) / group);
}

template <class Kernel> void note(Kernel *kernel, int threads, int64_t shared_bytes)
{
    lr_cuda_note_kernel(reinterpret_cast<const void *>(kernel), threads, shared_bytes);
}

/* --- paper 1 --- */

template <bool Forward, class Images>
__global__ void __launch_bounds__(group) voxels(lr_cuda_gather pass, Images images, lor_map map)
{
    gather_voxel<Forward>(pass, images, map, thread_number());
}

template <bool Forward, class Images>
__global__ void __launch_bounds__(group) texels(lr_cuda_gather pass, Images images, lor_map map)
{
    gather_texel<Forward>(pass, images, map, thread_number());
}

template <bool Forward, class Images>
void start(lr_cuda_gather_kind kind, const lr_cuda_gather &pass, const Images &images, const lor_map &map,
           cudaStream_t stream)
{
    const lr_cuda_layout &layout = pass.layout;
    const int64_t slice = (int64_t)layout.size[0] * layout.size[1];
    if (kind == LR_CUDA_VOXELS) {
        note(voxels<Forward, Images>, group, 0);
        voxels<Forward><<<groups(slice * layout.size[2]), group, 0, stream>>>(pass, images, map);
    } else {
        note(texels<Forward, Images>, group, 0);
        texels<Forward><<<groups(slice * layout.quads), group, 0, stream>>>(pass, images, map);
    }
}

template <class Images>
cudaError_t start_gather(lr_cuda_gather_kind kind, bool forward, const lr_cuda_gather &pass, const Images &images,
                         const lor_map &map, cudaStream_t stream)
{
    if (forward)
        start<true>(kind, pass, images, map, stream);
    else
        start<false>(kind, pass, images, map, stream);
    return cudaGetLastError();
}

/* --- paper 2 --- */

template <bool Forward, class Images>
__global__ void __launch_bounds__(group) cloud(lr_cuda_cloud pass, Images images, lor_map map)
{
    gather_cloud<Forward>(pass, images, map, thread_number());
}

constexpr int tile_threads = LR_CUDA_TILE_PLACES * LR_CUDA_TILE_LISTS * LR_CUDA_TILE_QUADS;

template <bool Forward, class Images>
__global__ void __launch_bounds__(tile_threads) tiles(lr_cuda_cloud pass, Images images, lor_map map)
{
    extern __shared__ float4 shared[];
    const cloud_tile tile = {{(int)blockIdx.y * LR_CUDA_TILE_PLACES,
                              pass.least_list + (int)blockIdx.z * LR_CUDA_TILE_LISTS,
                              (int)blockIdx.x * LR_CUDA_TILE_QUADS}};
    stage_tile(pass, images, tile, shared, (int)threadIdx.x, tile_threads);
    __syncthreads();
    gather_tile<Forward>(pass, images, map, tile, shared, (int)threadIdx.x);
}

template <bool Forward, class Images>
cudaError_t start_tiles(const lr_cuda_cloud &pass, const Images &images, const lor_map &map, cudaStream_t stream)
{
    const auto blocks = [](int count, int each) { return (unsigned)((count + each - 1) / each); };
    const dim3 grid(blocks(pass.layout.quads, LR_CUDA_TILE_QUADS),
                    blocks(pass.layout.size[pass.along], LR_CUDA_TILE_PLACES),
                    blocks(pass.num_lists, LR_CUDA_TILE_LISTS));
    const int bytes = (int)lr_cuda_shared_bytes(&pass);
    /* always the most: other threads launch the same kernel with more or less */
    const cudaError_t error = cudaFuncSetAttribute(tiles<Forward, Images>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                   (int)lr_cuda_shared_room());
    if (error != cudaSuccess) return error;
    note(tiles<Forward, Images>, tile_threads, bytes);
    tiles<Forward><<<grid, tile_threads, bytes, stream>>>(pass, images, map);
    return cudaGetLastError();
}

template <bool Forward, class Images>
cudaError_t start_cloud(bool shared, const lr_cuda_cloud &pass, const Images &images, const lor_map &map,
                        cudaStream_t stream)
{
    if (shared) return start_tiles<Forward>(pass, images, map, stream);
    const int64_t threads = (int64_t)pass.num_lists * pass.layout.size[pass.along] * pass.layout.quads;
    note(cloud<Forward, Images>, group, 0);
    cloud<Forward><<<groups(threads), group, 0, stream>>>(pass, images, map);
    return cudaGetLastError();
}

} // namespace

int lr_cuda_launch_gather(enum lr_cuda_gather_kind kind, bool forward, const lr_cuda_gather *pass,
                          const lr_cuda_images *images)
{
    const lor_map map = {pass->layout, images->map};
    const auto stream = static_cast<cudaStream_t>(images->stream);
    if (images->source_texture == 0) {
        const array_images arrays = {pass->layout, images->source, images->target};
        return start_gather(kind, forward, *pass, arrays, map, stream);
    }
    const texture_images textures = {pass->layout, images->source_texture, images->target_surface};
    return start_gather(kind, forward, *pass, textures, map, stream);
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

template <class Images>
static cudaError_t start_either(bool shared, bool forward, const lr_cuda_cloud &pass, const Images &images,
                                const lr_cuda_images &from)
{
    const lor_map map = {pass.layout, from.map};
    const auto stream = static_cast<cudaStream_t>(from.stream);
    return forward ? start_cloud<true>(shared, pass, images, map, stream)
                   : start_cloud<false>(shared, pass, images, map, stream);
}

int lr_cuda_launch_cloud(bool shared, bool forward, const lr_cuda_cloud *pass, const lr_cuda_images *images)
{
    if (images->source_texture == 0) {
        const array_images arrays = {pass->layout, images->source, images->target};
        return start_either(shared, forward, *pass, arrays, *images);
    }
    const texture_images textures = {pass->layout, images->source_texture, images->target_surface};
    return start_either(shared, forward, *pass, textures, *images);
}

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
