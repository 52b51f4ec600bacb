/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Projections by exact elements: a thread has an event, back in a slab of slices where they are tiled. Events
 * with time of flight have kernels of their own: together with the others' they have too few registers. */
#include "cuda_interop/listmode/exact.cuh"
#include "cuda_interop/listmode/slabs.cuh"
#include "cuda_interop/overlap.cuh"

namespace
{

/* Threads per block. Four blocks per multiprocessor are 14 % faster than three on an H200 and 6 % faster than
 * five. Blocks of a warp or two are 1 % slower. */
constexpr unsigned threads = 128, blocks_at_once = 4;

/* --- where the image is --- */

struct atomic_add {
    __device__ void operator()(float *to, float number) const { atomicAdd(to, number); }
};

/* The chunk of a warp, among num_chunks that begin one after the other. */
__device__ int chunk_of_warp(const lr_cuda_list_pass &pass, int warp)
{
    int low = 0, high = pass.num_chunks;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        (pass.chunks[middle].warp <= warp ? low : high) = middle;
    }
    return low;
}

/* The event of a thread. A group's last events have the largest windows and take the longest: they go first, so
 * that nothing waits for them at the end. */
struct thread_event {
    bool is_there, has_tof;
    int axis;
    int64_t k;

    __device__ explicit thread_event(const lr_cuda_list_pass &pass)
    {
        const int number = (int)((blockIdx.x * threads + threadIdx.x) / LR_CUDA_LIST_WARP);
        const int warp = pass.num_warps - 1 - number;
        const lr_cuda_list_chunk &chunk = pass.chunks[chunk_of_warp(pass, warp)];
        const int event = (warp - chunk.warp) * LR_CUDA_LIST_WARP + (int)threadIdx.x % LR_CUDA_LIST_WARP;
        is_there = warp >= 0 && event < chunk.count;
        has_tof = chunk.has_tof != 0;
        axis = chunk.axis;
        k = chunk.begin + event;
    }
};

template <bool Leaning, list_times Times>
__global__ void __launch_bounds__(threads, blocks_at_once) forward(const __grid_constant__ lr_cuda_list_pass pass)
{
    const thread_event event(pass);
    const bool is_asked = event.is_there && event.has_tof == (Times != NO_TIMES) && place_of(pass, event.k) >= 0;
    const lane_group lanes = whole_warp().where(is_asked);
    if (is_asked) exact_forward<Leaning, Times>(pass, pass.frames[event.axis], event.k, lanes);
}

template <bool Leaning, list_times Times>
__global__ void __launch_bounds__(threads, blocks_at_once) back(const __grid_constant__ lr_cuda_list_pass pass)
{
    const thread_event event(pass);
    const bool is_asked = event.is_there && event.has_tof == (Times != NO_TIMES) && value_at(pass, event.k) != 0.0f;
    const lane_group lanes = whole_warp().where(is_asked);
    if (is_asked) exact_back<Leaning, Times>(pass, pass.frames[event.axis], event.k, lanes, atomic_add());
}

/* --- back, in slabs --- */

/* Part of the frame's numbers, in shared memory. */
struct slab_of_frame {
    unsigned base; /* where number 0 would be */
    float *image;

    __device__ int32_t add_word(int at, int32_t number) const
    {
        int32_t before;
        asm volatile("atom.shared.add.s32 %0, [%1], %2;"
                     : "=r"(before)
                     : "r"(base + 4u * (unsigned)at), "r"(number)
                     : "memory");
        return before;
    }
    __device__ void add_float(int at, float number) const { atomicAdd(image + at, number); }
};

template <bool Leaning, list_times Times>
__global__ void __launch_bounds__(LR_CUDA_EXACT_THREADS, 1)
    back_in_slabs(const __grid_constant__ lr_cuda_list_pass pass)
{
    const list_block block(pass, (int)blockIdx.x);
    const bool is_tiled = block.frame.is_tiled;
    if ((block.chunk.has_tof != 0) != (Times != NO_TIMES)) return;
    if (is_tiled) clear_slab(block);
    begin_events();
    const exact_unit unit(mean_log2_of<exact_sizes>(pass, block));
    const unsigned first = (unsigned)(block.job.slices[0] * block.frame.plane);
    const exact_sums<slab_of_frame> sums = {{shared_begin() - 4u * first, pass.numbers + block.frame.begin},
                                            unit.scale,
                                            unit.unit,
                                            is_tiled ? least_exact : INFINITY,
                                            0.0f};
    const int lane = (int)(threadIdx.x % 32), count = block.chunk.count;
    for (int event = next_events() + lane; event - lane < count; event = next_events() + lane) {
        const bool has_event = event < count && value_at(pass, block.chunk.begin + event) != 0.0f;
        const lane_group lanes = whole_warp().where(has_event);
        if (has_event) exact_back_slab<Leaning, Times>(pass, block, block.chunk.begin + event, lanes, sums);
    }
    if (is_tiled) close_slab(pass, block, {{0.0f, 0.0f, unit.scale}, false});
}

/* --- launches --- */

using kernel = void (*)(const lr_cuda_list_pass);

/* kernels: by list_times. */
int launch_by_warps(const kernel (&kernels)[3], const lr_cuda_list_pass &pass)
{
    constexpr unsigned warps = threads / LR_CUDA_LIST_WARP;
    const unsigned blocks = ((unsigned)pass.num_warps + warps - 1) / warps;
    for (int tof = 0; tof < 2; tof++) {
        if (pass.has_events[tof]) {
            kernels[times_of(pass.events, tof != 0)]<<<blocks, threads, 0, static_cast<cudaStream_t>(pass.stream)>>>(
                pass);
        }
    }
    return cudaGetLastError();
}

template <bool Leaning> int launch_forward(const lr_cuda_list_pass &pass)
{
    return launch_by_warps({forward<Leaning, NO_TIMES>, forward<Leaning, TIMES>, forward<Leaning, TIMES_IN_BINS>},
                           pass);
}

template <bool Leaning> int launch_back(const lr_cuda_list_pass &pass)
{
    return launch_by_warps({back<Leaning, NO_TIMES>, back<Leaning, TIMES>, back<Leaning, TIMES_IN_BINS>}, pass);
}

template <bool Leaning> int launch_back_in_slabs(const lr_cuda_list_pass &pass)
{
    static std::atomic<uint64_t> devices[3];
    static const kernel kernels[3] = {back_in_slabs<Leaning, NO_TIMES>, back_in_slabs<Leaning, TIMES>,
                                      back_in_slabs<Leaning, TIMES_IN_BINS>};
    for (int tof = 0; tof < 2; tof++) {
        const enum list_times times = times_of(pass.events, tof != 0);
        const cudaError_t error = allow_shared_room(kernels[times], pass.shared_room, devices[times]);
        if (error != cudaSuccess) return error;
        if (pass.has_events[tof]) {
            kernels[times]<<<(unsigned)pass.num_jobs, (unsigned)pass.threads, (size_t)pass.shared_bytes,
                             static_cast<cudaStream_t>(pass.stream)>>>(pass);
        }
    }
    return cudaGetLastError();
}

} // namespace

int lr_cuda_launch_exact_forward(const lr_cuda_list_pass *pass)
{
    return pass->exact.is_leaning ? launch_forward<true>(*pass) : launch_forward<false>(*pass);
}

int lr_cuda_launch_exact_back(const lr_cuda_list_pass *pass)
{
    if (pass->shared_bytes > 0)
        return pass->exact.is_leaning ? launch_back_in_slabs<true>(*pass) : launch_back_in_slabs<false>(*pass);
    return pass->exact.is_leaning ? launch_back<true>(*pass) : launch_back<false>(*pass);
}
