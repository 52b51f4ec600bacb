/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A block works on the events of a chunk in a slab of slices, which is in shared memory if it fits. In a forward
 * projection, the slab has numbers of the image. In a back-projection, it has integer sums, because shared memory adds
 * integers about six times as fast as floats. */
#include "cuda_interop/listmode/frames.cuh"
#include "cuda_interop/listmode/slabs.cuh"
#include "cuda_interop/overlap.cuh"

#include <type_traits>

namespace
{

/* --- tiles --- */

struct shared_image {
    unsigned base;

    __device__ float load(int at) const
    {
        float number;
        asm("ld.shared.f32 %0, [%1];" : "=f"(number) : "r"(base + 4u * (unsigned)at));
        return number;
    }
};

struct global_image {
    const float *numbers;

    __device__ float load(int at) const { return __ldg(numbers + at); }
};

enum sharer { GAUSSIAN, TABLE, LINE, NUM_SHARERS };

template <enum sharer Kind, class Taker>
using sharer_for =
    std::conditional_t<Kind == GAUSSIAN, tube_sharer<gaussian_share, Taker>,
                       std::conditional_t<Kind == TABLE, tube_sharer<table_share<false>, Taker>, line_sharer<Taker>>>;

/* --- forward --- */

template <enum sharer Kind, list_lines Lines, class Tile>
__device__ void read_events(const lr_cuda_list_pass &pass, const list_block &block, const Tile &tile)
{
    const int lane = (int)(threadIdx.x % 32), count = block.chunk.count;
    for (int first = next_events(); first < count; first = next_events())
        if (first + lane < count)
            project_forward<sharer_for<Kind, line_reader<Tile>>, Lines>(pass, block, first + lane, tile);
}

template <enum sharer Kind, list_lines Lines>
__global__ void __launch_bounds__(most_threads, 1) forward(const __grid_constant__ lr_cuda_list_pass pass)
{
    const list_block block(pass, (int)blockIdx.x);
    const global_image global = {block.numbers(pass)};
    begin_events();
    if (block.frame.is_tiled) {
        const float4 *from = reinterpret_cast<const float4 *>(block.numbers(pass));
        const int quads = (block.cells() + 3) / 4;
        for (int k = (int)threadIdx.x; k < quads; k += (int)blockDim.x) shared_numbers[k] = __ldg(from + k);
        __syncthreads();
    }
    block.frame.is_tiled ? read_events<Kind, Lines>(pass, block, shared_image{shared_begin()})
                         : read_events<Kind, Lines>(pass, block, global);
}

/* --- back --- */

template <enum sharer Kind, list_lines Lines, class Tile>
__device__ void write_events(const lr_cuda_list_pass &pass, const list_block &block, const list_taking &taking,
                             const Tile &tile)
{
    const int lane = (int)(threadIdx.x % 32), count = block.chunk.count;
    for (int first = next_events(); first < count; first = next_events())
        if (first + lane < count)
            project_back<sharer_for<Kind, line_writer<Tile>>, Lines>(pass, block, first + lane, taking, tile);
}

template <enum sharer Kind, list_lines Lines>
__global__ void __launch_bounds__(most_threads, 1) back(const __grid_constant__ lr_cuda_list_pass pass)
{
    const list_block block(pass, (int)blockIdx.x);
    begin_events();
    if (!block.frame.is_tiled) {
        write_events<Kind, Lines>(pass, block, take_all(), global_sums{block.numbers(pass)});
        return;
    }
    const slab_sums held = open_slab(pass, block);
    if (held.are_floats) {
        write_events<Kind, Lines>(pass, block, held.taking, shared_floats{shared_begin()});
    } else {
        /* Events whose values are too small or too large for the slab's integers are added directly to the image. */
        const global_sums image = {block.numbers(pass)};
        for (int k = (int)threadIdx.x; k < num_others; k += (int)blockDim.x)
            project_back<sharer_for<Kind, line_writer<global_sums>>, Lines>(pass, block, others[k], take_all(), image);
        if (held.taking.scale == 0.0f) return;
        write_events<Kind, Lines>(pass, block, held.taking, shared_sums{shared_begin()});
    }
    close_slab(pass, block, held);
}

/* --- launches --- */

using kernel = void (*)(const lr_cuda_list_pass);

/* Returns the index of the kernel for a pass, in a list with all sharers for each kind of lines. */
int number_for(const lr_cuda_list_pass &pass)
{
    return (pass.is_line ? LINE : pass.tube.table != nullptr ? TABLE : GAUSSIAN) + lines_of(pass.events) * NUM_SHARERS;
}

int launch(kernel of, std::atomic<uint64_t> &devices, const lr_cuda_list_pass &pass)
{
    if (pass.shared_bytes > 0) {
        const cudaError_t error = allow_shared_room(of, pass.shared_room, devices);
        if (error != cudaSuccess) return error;
    }
    of<<<(unsigned)pass.num_jobs, (unsigned)pass.threads, (size_t)pass.shared_bytes,
         static_cast<cudaStream_t>(pass.stream)>>>(pass);
    return cudaGetLastError();
}

} // namespace

int lr_cuda_launch_list_fill(const lr_cuda_list_framing *framing)
{
    int64_t most = 1;
    for (const lr_cuda_list_frame &frame : framing->frames)
        most = std::max(most, frame.has_events ? lr_cuda_list_cells(&frame, frame.slices) : 0);
    fill_frames<<<dim3(groups_of(most), LR_CUDA_LIST_AXES), LR_CUDA_LIST_GROUP, 0,
                  static_cast<cudaStream_t>(framing->stream)>>>(*framing);
    return cudaGetLastError();
}

int lr_cuda_launch_list_add(const lr_cuda_list_framing *framing)
{
    const int64_t count = (int64_t)framing->size[0] * framing->size[1] * framing->size[2];
    return launch_threads(add_up_frames, *framing, count, framing->stream);
}

int lr_cuda_launch_list_forward(const lr_cuda_list_pass *pass)
{
    static const kernel kernels[] = {
        forward<GAUSSIAN, FOUND>,         forward<TABLE, FOUND>,         forward<LINE, FOUND>,
        forward<GAUSSIAN, FOUND_IN_BINS>, forward<TABLE, FOUND_IN_BINS>, forward<LINE, FOUND_IN_BINS>,
        forward<GAUSSIAN, KEPT>,          forward<TABLE, KEPT>,          forward<LINE, KEPT>,
        forward<GAUSSIAN, KEPT_IN_BINS>,  forward<TABLE, KEPT_IN_BINS>,  forward<LINE, KEPT_IN_BINS>};
    static std::atomic<uint64_t> devices[NUM_LINES * NUM_SHARERS];
    const int number = number_for(*pass), error = launch(kernels[number], devices[number], *pass);
    if (error != cudaSuccess) return error;
    constexpr unsigned most = 64;
    const unsigned across = std::min(groups_of(pass->longest_chunk), most);
    put_values<<<dim3(across, (unsigned)pass->num_chunks), LR_CUDA_LIST_GROUP, 0,
                 static_cast<cudaStream_t>(pass->stream)>>>(*pass);
    return cudaGetLastError();
}

int lr_cuda_launch_list_back(const lr_cuda_list_pass *pass)
{
    static const kernel kernels[] = {
        back<GAUSSIAN, FOUND>,         back<TABLE, FOUND>,         back<LINE, FOUND>,
        back<GAUSSIAN, FOUND_IN_BINS>, back<TABLE, FOUND_IN_BINS>, back<LINE, FOUND_IN_BINS>,
        back<GAUSSIAN, KEPT>,          back<TABLE, KEPT>,          back<LINE, KEPT>,
        back<GAUSSIAN, KEPT_IN_BINS>,  back<TABLE, KEPT_IN_BINS>,  back<LINE, KEPT_IN_BINS>};
    static std::atomic<uint64_t> devices[NUM_LINES * NUM_SHARERS];
    const int number = number_for(*pass);
    return launch(kernels[number], devices[number], *pass);
}
