/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The shared memory of a block: a slab of the image, the sums that events add to it, and the number of events that
 * warps have taken. Sums are whole numbers, because shared memory adds whole numbers about six times as fast as floats.
 * Each file that includes this one has its own variables in shared memory. */
#pragma once

#include "cuda_interop/listmode/project.cuh"

namespace
{

constexpr int most_threads = LR_CUDA_LIST_THREADS;

extern __shared__ float4 shared_numbers[];

/* --- tiles --- */

/* Keeps the address of a block's numbers in shared memory in a register. Compilers tend to compute it again for each
 * use, which takes longer than the use. Call this function after the barrier that completes the numbers. */
__device__ unsigned shared_begin()
{
    unsigned begin;
    asm volatile("mov.u32 %0, %1;" : "=r"(begin) : "r"((unsigned)__cvta_generic_to_shared(shared_numbers)) : "memory");
    return begin;
}

/* Sums as whole numbers. Zeros are also added, because a branch around them takes longer. */
struct shared_sums {
    unsigned base; /* address of the sums in shared memory */

    __device__ void add(int at, float number) const
    {
        asm volatile("red.shared.add.s32 [%0], %1;"
                     :
                     : "r"(base + 4u * (unsigned)at), "r"(__float2int_rn(number))
                     : "memory");
    }
};

/* Sums as floats. They are six times slower than whole numbers, and are used only if the values differ too much in size
 * to be multiples of one unit. */
struct shared_floats {
    unsigned base;

    __device__ void add(int at, float number) const
    {
        if (number != 0.0f)
            asm volatile("red.shared.add.f32 [%0], %1;" : : "r"(base + 4u * (unsigned)at), "f"(number) : "memory");
    }
};

struct global_sums {
    float *numbers;

    __device__ void add(int at, float number) const
    {
        if (number != 0.0f) atomicAdd(numbers + at, number);
    }
};

/* --- the choice of the next events --- */

/* The number of events that the block's warps have taken so far. */
__shared__ int num_taken;

/* Returns the number of the first of the warp's next 32 events. Warps with short lines take more events. */
__device__ int next_events()
{
    constexpr unsigned all = 0xffffffffu;
    __syncwarp();
    const int first = threadIdx.x % 32 == 0 ? atomicAdd(&num_taken, 32) : 0;
    return __shfl_sync(all, first, 0);
}

__device__ void begin_events()
{
    if (threadIdx.x == 0) num_taken = 0;
    __syncthreads();
}

/* --- sums --- */

/* Returns the sum over the block's threads, to each thread. */
__device__ double sum_of_block(double mine)
{
    __shared__ double sums[most_threads / 32];
    for (int lanes = 16; lanes > 0; lanes /= 2) mine += __shfl_xor_sync(0xffffffffu, mine, lanes);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = mine;
    __syncthreads();
    double sum = 0;
    for (unsigned warp = 0; warp < blockDim.x / 32; warp++) sum += sums[warp];
    __syncthreads();
    return sum;
}

/* Events that are added one by one, because their values are too small or too large for whole numbers. */
__shared__ int num_others, others[most_others];

/* Returns the mean of log2 of the sizes of some of the events. */
template <class Sizes> __device__ double mean_log2_of(const lr_cuda_list_pass &pass, const list_block &block)
{
    const int samples = min((int)blockDim.x, block.chunk.count);
    float size = 0;
    if ((int)threadIdx.x < samples)
        size = Sizes::of(pass, block, (int)((int64_t)(int)threadIdx.x * block.chunk.count / samples));
    const bool is_any = size > 0.0f && size < INFINITY;
    const double logs = sum_of_block(is_any ? (double)log2f(size) : 0.0);
    const double count = sum_of_block(is_any ? 1.0 : 0.0);
    return count > 0 ? logs / count : 0.0;
}

/* The kind of a block's sums: whole numbers, or floats. */
struct slab_sums {
    list_taking taking;
    bool are_floats;
};

/* Clears a slab, which is clear after the next barrier. */
__device__ void clear_slab(const list_block &block)
{
    const int quads = (block.cells() + 3) / 4;
    for (int k = (int)threadIdx.x; k < quads; k += (int)blockDim.x) shared_numbers[k] = make_float4(0, 0, 0, 0);
}

/* Clears the slab, lists the events that must be added one by one, and finds the factor for the values of the other
 * events. */
__device__ slab_sums open_slab(const lr_cuda_list_pass &pass, const list_block &block)
{
    clear_slab(block);
    if (threadIdx.x == 0) num_others = 0;
    /* mean_log2_of contains the barriers after which the slab and the list are clear. */
    list_taking taking = take_usual(mean_log2_of<list_sizes>(pass, block));
    double total = 0;
    for (int event = (int)threadIdx.x; event < block.chunk.count; event += (int)blockDim.x) {
        const float value = value_at(pass, block.chunk.begin + event);
        if (taking.takes(value)) {
            total += (double)fabsf(value);
        } else if (value != 0.0f) {
            const int other = atomicAdd(&num_others, 1);
            others[min(other, most_others - 1)] = event;
        }
    }
    taking.scale = fixed_scale(block, sum_of_block(total));
    return num_others > most_others ? slab_sums{take_all(), true} : slab_sums{taking, false};
}

__device__ void close_slab(const lr_cuda_list_pass &pass, const list_block &block, const slab_sums &held)
{
    float4 *to = reinterpret_cast<float4 *>(block.numbers(pass));
    const int quads = (block.cells() + 3) / 4;
    __syncthreads();
    for (int k = (int)threadIdx.x; k < quads; k += (int)blockDim.x) {
        const int4 sum = reinterpret_cast<const int4 *>(shared_numbers)[k];
        const float unit = 1.0f / held.taking.scale;
        const float4 quad = held.are_floats ? shared_numbers[k]
                                            : make_float4((float)sum.x * unit, (float)sum.y * unit, (float)sum.z * unit,
                                                          (float)sum.w * unit);
        if (quad.x != 0 || quad.y != 0 || quad.z != 0 || quad.w != 0) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
            atomicAdd(to + k, quad);
#else
            float *numbers = reinterpret_cast<float *>(to + k);
            atomicAdd(numbers, quad.x);
            atomicAdd(numbers + 1, quad.y);
            atomicAdd(numbers + 2, quad.z);
            atomicAdd(numbers + 3, quad.w);
#endif
        }
    }
}

} // namespace
