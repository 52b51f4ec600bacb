/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Projections with exact elements. Each thread works on one event. In a back-projection, a tiled frame is added up slab
 * by slab. Events with and without time of flight have separate kernels, because a common kernel would need too many
 * registers. */
#include "cuda_interop/listmode/exact.cuh"
#include "cuda_interop/listmode/slabs.cuh"
#include "cuda_interop/overlap.cuh"

namespace
{

/* Threads of a block, and blocks of a multiprocessor. On an H200, four blocks are 14 % faster than three, and 6 %
 * faster than five. Blocks of one or two warps are 1 % slower. */
constexpr unsigned threads = 128, blocks_at_once = 4;

/* The event of a thread. The last events of a group have the largest windows and take longest, so they are projected
 * first. Otherwise, processors would wait for them at the end. */
struct thread_event {
    bool is_there, has_tof;
    int axis;
    int64_t k;

    __device__ explicit thread_event(const lr_cuda_list_pass &pass)
    {
        const int number = (int)((blockIdx.x * threads + threadIdx.x) / LR_CUDA_LIST_WARP);
        const int warp = pass.num_warps - 1 - number;
        int low = 0, high = pass.num_chunks; /* a binary search for the warp's chunk */
        while (high - low > 1) {
            const int middle = (low + high) / 2;
            (pass.chunks[middle].warp <= warp ? low : high) = middle;
        }
        const lr_cuda_list_chunk &chunk = pass.chunks[low];
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
    const auto add = [](float *to, float number) { atomicAdd(to, number); };
    if (is_asked) exact_back<Leaning, Times>(pass, pass.frames[event.axis], event.k, lanes, add);
}

/* --- back, in slabs --- */

/* The part of a frame's numbers that is in shared memory. */
struct slab_of_frame {
    unsigned base; /* address that number 0 of the frame would have; it can be outside this memory */
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

/* kernels: one for each value of list_times. */
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

} // namespace

int lr_cuda_launch_exact_forward(const lr_cuda_list_pass *pass)
{
    static const kernel kernels[2][3] = {
        {forward<false, NO_TIMES>, forward<false, TIMES>, forward<false, TIMES_IN_BINS>},
        {forward<true, NO_TIMES>, forward<true, TIMES>, forward<true, TIMES_IN_BINS>}};
    return launch_by_warps(kernels[pass->exact.is_leaning], *pass);
}

int lr_cuda_launch_exact_back(const lr_cuda_list_pass *pass)
{
    static const kernel kernels[2][3] = {{back<false, NO_TIMES>, back<false, TIMES>, back<false, TIMES_IN_BINS>},
                                         {back<true, NO_TIMES>, back<true, TIMES>, back<true, TIMES_IN_BINS>}};
    static const kernel in_slabs[2][3] = {
        {back_in_slabs<false, NO_TIMES>, back_in_slabs<false, TIMES>, back_in_slabs<false, TIMES_IN_BINS>},
        {back_in_slabs<true, NO_TIMES>, back_in_slabs<true, TIMES>, back_in_slabs<true, TIMES_IN_BINS>}};
    static std::atomic<uint64_t> devices[2][3];
    const int leaning = pass->exact.is_leaning;
    if (pass->shared_bytes == 0) return launch_by_warps(kernels[leaning], *pass);
    for (int tof = 0; tof < 2; tof++) {
        const enum list_times times = times_of(pass->events, tof != 0);
        const kernel of = in_slabs[leaning][times];
        const cudaError_t error = allow_shared_room(of, pass->shared_room, devices[leaning][times]);
        if (error != cudaSuccess) return error;
        if (pass->has_events[tof]) {
            of<<<(unsigned)pass->num_jobs, (unsigned)pass->threads, (size_t)pass->shared_bytes,
                 static_cast<cudaStream_t>(pass->stream)>>>(*pass);
        }
    }
    return cudaGetLastError();
}
