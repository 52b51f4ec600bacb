/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/copies.cuh"
#include "cuda_interop/direct/launch.h"
#include "cuda_interop/overlap.cuh"

/* Whether it is true for a thread of the warp. */
__device__ inline bool any_lane(bool is_so)
{
    return __any_sync(0xffffffffu, is_so) != 0;
}

/* sum += a b, after those that stand before it. */
__device__ inline void add_in_turn(float &sum, float a, float b)
{
    asm volatile("fma.rn.f32 %0, %1, %2, %0;" : "+f"(sum) : "f"(b), "f"(a));
}

#include "cuda_interop/direct/strips.cuh"

namespace
{

/* What boxes are copied from. */
struct strip_arrays {
    CUtensorMap source, steps;
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

/* The copies of a slab, which a barrier in shared memory counts. */
struct slab_copies {
    const strip_arrays *arrays;
    uint64_t *barrier;

    __device__ void expect(int bytes)
    {
        expect_bytes(barrier, bytes);
    }
    __device__ void slab(float4 *target, int z, int x, int y)
    {
        copy_box<3>(target, &arrays->source, {z, x, y}, barrier);
    }
    __device__ void steps(strip_step *target, int first)
    {
        copy_box<2>(target, &arrays->steps, {0, first}, barrier);
    }
};

/* For one thread of a block. */
__device__ inline void init_barriers(const lr_cuda_strips &pass, const strip_block &block)
{
    for (int k = 0; k < num_slots(pass); k++) {
        init_barrier(block.barriers + k, 1);
        init_barrier(block.barriers + num_slots(pass) + k, pass.sides);
    }
    init_barrier(block.barriers + 2 * num_slots(pass), 1);
    publish_barriers();
}

/* What a split brings next, and where. */
struct ring_front {
    int coming;
    ring_place place;
};

/* For the first warp of a split. */
__device__ inline void bring_slab(const lr_cuda_strips &pass, const strip_block &block,
                                  const strip_arrays &arrays, int c, int slot)
{
    slab_copies copies = {&arrays, block.barriers + slot};
    const lr_cuda_slab slab = slab_at(block, c);
    if (is_elected()) {
        stage_slab(pass, block, c, slot, slab, copies);
    }
}

/* Slabs below `end`, each once all are through with the one that it replaces. */
template <int Slices>
__device__ inline void bring_slabs(const lr_cuda_strips &pass, const strip_block &block,
                                   const strip_arrays &arrays, const strip_thread<Slices> &own,
                                   int end, ring_front &front)
{
    const int first_slot = own.split * pass.depth;
    uint64_t *const is_free = block.barriers + num_slots(pass) + first_slot;
    while (own.side == 0 && front.coming < min(pass.num_slabs, end)) {
        if (front.place.round > 0) {
            wait_for(is_free + front.place.slot, front.place.round - 1);
        }
        bring_slab(pass, block, arrays, front.coming, first_slot + front.place.slot);
        front = {front.coming + pass.splits, next_place(pass.depth, front.place)};
    }
}

/* A split's slabs, the next ones on their way while this one is worked on. */
template <strip_kernels Kernels, int Slices>
__device__ inline void gather_strip(const lr_cuda_strips &pass, const strip_block &block,
                                    const strip_arrays &arrays, strip_thread<Slices> &own)
{
    const int first_slot = own.split * pass.depth, ahead = pass.depth * pass.splits;
    uint64_t *const is_there = block.barriers + first_slot;
    uint64_t *const is_free = is_there + num_slots(pass);
    ring_place here = {0, 0};
    ring_front front = {own.split, here};
    bring_slabs(pass, block, arrays, own, own.split + ahead - pass.splits, front);
    if (pass.holds_steps) {
        wait_for(block.barriers + 2 * num_slots(pass), 0);
    }
    for (int c = own.split; c < pass.num_slabs;
         c += pass.splits, here = next_place(pass.depth, here)) {
        bring_slabs(pass, block, arrays, own, c + ahead, front);
        const strip_slab slab = open_slab<Kernels>(pass, block, c, first_slot + here.slot, own);
        wait_for(is_there + here.slot, here.round);
        if (own.is_needed) {
            gather_slab<Kernels>(pass, block, slab, own);
        }
        __syncwarp();
        if (is_elected()) {
            arrive_at(is_free + here.slot);
        }
    }
}

#endif

/* slice: the first. 24 slices take 96 registers for sums alone, so that three blocks have room. */
template <strip_kernels Kernels, int Slices>
__global__ void __launch_bounds__(LR_CUDA_STRIP_WARPS *LR_CUDA_STRIP_LANES, 3)
    strips(const __grid_constant__ lr_cuda_strips pass, const __grid_constant__ strip_arrays arrays,
           int slice, float4 *target)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    extern __shared__ __align__(128) float4 shared[];
    const int number = (int)threadIdx.x;
    const int2 tile = pass.tiles[blockIdx.x];
    const strip_block block =
        strip_block_at(pass, make_int2(same_in_warp(tile.x), same_in_warp(tile.y)),
                       slice + (int)blockIdx.y * LR_CUDA_STRIP_PIECES * Slices, shared);
    load_slabs(pass, block, number, (int)blockDim.x);
    let_next_kernel_begin();
    if (number == 0) {
        init_barriers(pass, block);
    }
    __syncthreads();
    if (number == 0 && pass.holds_steps) {
        slab_copies copies = {&arrays, block.barriers + 2 * num_slots(pass)};
        stage_steps(pass, block, copies);
    }
    strip_thread<Slices> own;
    begin_strip<Kernels>(pass, block, number, own);
    wait_for_last_kernel(); /* images may be its */
    gather_strip<Kernels>(pass, block, arrays, own);
    if (pass.splits > 1) {
        float *sums = reinterpret_cast<float *>(block.columns);
        __syncthreads();
        leave_sums(pass, sums, own);
        __syncthreads();
        add_sums(pass, sums, own);
    }
    store_strip(pass, block, own, target);
#endif
}

template <bool Forward>
__global__ void strip_steps(const __grid_constant__ lr_cuda_strips pass,
                            const __grid_constant__ lr_cuda_strip_fill fill)
{
    fill_strip_step<Forward>(pass, fill, (int)(blockIdx.x * blockDim.x + threadIdx.x));
}

__global__ void strip_profiles(const __grid_constant__ lr_cuda_strips pass,
                               const __grid_constant__ lr_cuda_strip_fill fill)
{
    fill_strip_profile(pass, fill, (int64_t)blockIdx.x * blockDim.x + threadIdx.x);
}

__global__ void strip_rows(const __grid_constant__ lr_cuda_strips pass,
                           const __grid_constant__ lr_cuda_strip_fill fill)
{
    fill_strip_row(pass, fill, (int)(blockIdx.x * blockDim.x + threadIdx.x));
}

/* --- launches --- */

/* The source image for copies of slabs: its grid alone, so that all around it is zero. */
cudaError_t describe_source(const lr_cuda_strips &pass, const float4 *source, CUtensorMap *map)
{
    const lr_cuda_layout &layout = pass.layout;
    const int64_t column = layout.extent[0], row = column * layout.extent[1];
    const float4 *first =
        source + layout.margin[0] + column * layout.margin[1] + row * layout.margin[2];
    const boxed_array<3> array = {
        CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
        first,
        {(cuuint64_t)layout.size[2], (cuuint64_t)layout.size[0], (cuuint64_t)layout.size[1]},
        {column * sizeof(float4), row * sizeof(float4)},
        {4 * (cuuint32_t)pass.pitch, (cuuint32_t)(pass.across[0] != 0 ? pass.width : 1),
         (cuuint32_t)(pass.across[0] != 0 ? 1 : pass.width)}};
    return array.describe(map);
}

cudaError_t describe_steps(const lr_cuda_strips &pass, CUtensorMap *map)
{
    constexpr int words = sizeof(*pass.steps) / sizeof(int32_t);
    const boxed_array<2> array = {CU_TENSOR_MAP_DATA_TYPE_INT32,
                                  pass.steps,
                                  {words, (cuuint64_t)pass.num_steps},
                                  {sizeof(*pass.steps)},
                                  {words, (cuuint32_t)pass.box_steps}};
    return array.describe(map);
}

cudaError_t describe_arrays(const lr_cuda_strips &pass, const float4 *source, strip_arrays *arrays)
{
    const cudaError_t error = describe_source(pass, source, &arrays->source);
    return error == cudaSuccess ? describe_steps(pass, &arrays->steps) : error;
}

/* `layers` of blocks above each other, from a slice on. */
template <strip_kernels Kernels, int Slices>
cudaError_t launch(const lr_cuda_strips &pass, const lr_cuda_images &images, int slice, int layers)
{
    const auto kernel = strips<Kernels, Slices>;
    strip_arrays arrays;
    cudaError_t error = layers == 0 ? cudaSuccess : describe_arrays(pass, images.source, &arrays);
    if (error == cudaSuccess && layers > 0) {
        static std::atomic<uint64_t> devices;
        error = allow_shared_room(kernel, lr_cuda_shared_room(), devices);
    }
    if (error != cudaSuccess || layers == 0) {
        return error;
    }
    const unsigned threads = (unsigned)(pass.sides * pass.splits * LR_CUDA_STRIP_LANES);
    overlapping_launch launch(kernel, {(unsigned)pass.num_tiles, (unsigned)layers}, threads);
    launch.config.dynamicSmemBytes = (size_t)pass.bytes;
    launch.config.stream = static_cast<cudaStream_t>(images.stream);
    lr_cuda_note_kernel(reinterpret_cast<const void *>(kernel), (int)threads, pass.bytes);
    return cudaLaunchKernelEx(&launch.config, kernel, pass, arrays, slice, images.target);
}

/* Whole layers, and the slices that are left by the shortest threads that do. */
template <strip_kernels Kernels>
cudaError_t launch_layers(const lr_cuda_strips &pass, const lr_cuda_images &images)
{
    constexpr int most = LR_CUDA_STRIP_PIECES * LR_CUDA_STRIP_SLICES;
    const int layers = pass.layout.size[2] / most, slice = layers * most;
    const int left = pass.layout.size[2] - slice;
    const cudaError_t error = launch<Kernels, 24>(pass, images, 0, layers + (left > 32));
    if (error != cudaSuccess || left == 0 || left > 32) {
        return error;
    }
    return left > 16 ? launch<Kernels, 16>(pass, images, slice, 1)
                     : launch<Kernels, 8>(pass, images, slice, 1);
}

} // namespace

bool lr_cuda_strips_work(void)
{
    return is_for_hopper(strips<STRIP_ONE, 24>);
}

int lr_cuda_launch_strips(bool forward, const lr_cuda_strips *pass, const lr_cuda_images *images)
{
    return pass->num_rows == 1 ? launch_layers<STRIP_ONE>(*pass, *images)
           : forward           ? launch_layers<STRIP_FORWARD>(*pass, *images)
                               : launch_layers<STRIP_BACK>(*pass, *images);
}

int lr_cuda_launch_strip_fill(bool forward, const lr_cuda_strips *pass,
                              const lr_cuda_strip_fill *fill)
{
    constexpr int group = 256;
    const int threads = fill->num_steps * LR_CUDA_OUTPUTS;
    const int64_t profiles = (int64_t)fill->num_columns * pass->num_rows;
    const int64_t columns = (int64_t)pass->layout.extent[1] * pass->layout.extent[2];
    const auto blocks = [](int64_t count) { return (unsigned)((count + group - 1) / group); };
    if (forward) {
        strip_steps<true><<<blocks(threads), group>>>(*pass, *fill);
    } else {
        strip_steps<false><<<blocks(threads), group>>>(*pass, *fill);
    }
    if (pass->num_rows > 1 && !forward) { /* the same for both ways */
        strip_profiles<<<blocks(profiles), group>>>(*pass, *fill);
        strip_rows<<<blocks(columns), group>>>(*pass, *fill);
    }
    return cudaGetLastError();
}
