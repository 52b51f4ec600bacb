/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Kernels that find the keys by which events are ordered, and that store lines in this order. Tests also run them on
 * the processor. */
#include "cuda_interop/listmode/exact.cuh"
#include "cuda_interop/listmode/shares.cuh"
#ifdef __CUDACC__
#include "cuda_interop/overlap.cuh"
#endif

/* The parts of a sort key, from the highest bits: the size class of windows, the first slice, the last slice, and the
 * number of steps of the event. Events with similar keys take about the same time in the lanes of a warp. */
struct list_keys {
    static constexpr int most_slice_bits = 15, wide_bits = 2, most_step_bits = 20;
    int slice_bits;

    __host__ __device__ explicit list_keys(int32_t slices) : slice_bits(1)
    {
        while (slice_bits < most_slice_bits && (slices + 1) >> slice_bits != 0) slice_bits++;
    }
    /* Returns the largest slice number that fits into a key. Higher numbers count as this one. */
    __host__ __device__ uint32_t last() const { return (1u << slice_bits) - 1; }
    __host__ __device__ int step_bits() const
    {
        const int left = 32 - wide_bits - 2 * slice_bits;
        return left < most_step_bits ? left : most_step_bits; /* limited, because the sum over a piece's events must fit
                                                                 into 32 bits */
    }
    __host__ __device__ uint32_t key_of(const list_extent &extent) const
    {
        const uint32_t most = (1u << step_bits()) - 1,
                       ends[2] = {(uint32_t)extent.slices[0], (uint32_t)extent.slices[1]};
        uint32_t key = extent.wide;
        for (int k = 0; k < 2; k++) key = key << slice_bits | (ends[k] < last() ? ends[k] : last());
        return key << step_bits() | (extent.steps < most ? extent.steps : most);
    }
    __host__ __device__ int32_t steps_of(uint32_t key) const { return (int32_t)(key & ((1u << step_bits()) - 1)); }
    /* Returns a slice of a key. which: 0 = the first slice, 1 = the last slice. */
    __host__ __device__ int32_t slice_of(uint32_t key, int which) const
    {
        return (int32_t)(key >> (step_bits() + (1 - which) * slice_bits) & last());
    }
};

[[maybe_unused]] static __global__ void __launch_bounds__(LR_CUDA_LIST_GROUP)
    find_keys(const __grid_constant__ lr_cuda_list_ordering ordering)
{
    const int64_t k = (int64_t)blockIdx.x * LR_CUDA_LIST_GROUP + threadIdx.x;
    if (k >= ordering.count) return;
    const lr_cuda_list_frame &frame = ordering.pass.frames[ordering.axis];
    const bool has_tof = ordering.has_tof != 0;
    list_extent extent = {};
    if (ordering.pass.exact.modules != nullptr) {
        extent = exact_extent(ordering.pass, frame, has_tof, (int)k);
    } else {
        const int32_t all[2] = {0, frame.slices};
        const line_walk walk = find_walk(ordering.pass, frame, has_tof, (int)k, all);
        const float half = fmaxf(walk.half[0], walk.half[1]);
        extent.slices[0] = walk.slices[0];
        extent.slices[1] = walk.slices[1];
        /* Lines with larger windows come last and so share warps. A warp takes as long as its largest window. */
        extent.wide = half <= 2.0f ? 0 : half <= 2.5f ? 1 : 2;
    }
    ordering.keys[k] = list_keys(frame.slices).key_of(extent);
    ordering.numbers[k] = (int32_t)k;
}

/* Finds the bounds of each piece. Keys must be sorted. */
[[maybe_unused]] static __global__ void __launch_bounds__(LR_CUDA_LIST_GROUP)
    bound_pieces(const __grid_constant__ lr_cuda_list_ordering ordering)
{
    const int piece = (int)(blockIdx.x * LR_CUDA_LIST_GROUP + threadIdx.x);
    const int64_t begin = (int64_t)piece * LR_CUDA_LIST_PIECE;
    if (begin >= ordering.count) return;
    const lr_cuda_list_frame &frame = ordering.pass.frames[ordering.axis];
    const list_keys keys(frame.slices);
    const int32_t beyond = (int32_t)keys.last();
    lr_listmode_extent found = {{frame.slices, 0}, 0};
    for (int64_t k = begin; k < begin + LR_CUDA_LIST_PIECE && k < ordering.count; k++) {
        const int32_t first = keys.slice_of(ordering.keys[k], 0);
        const int32_t last = keys.slice_of(ordering.keys[k], 1);
        const int32_t steps = keys.steps_of(ordering.keys[k]);
        if (first < last || last == beyond) {
            found.slices[0] = first < found.slices[0] ? first : found.slices[0];
            found.slices[1] = last > found.slices[1] ? last : found.slices[1];
            found.visits += steps > last - first ? steps : last - first;
        }
    }
    found.slices[1] = found.slices[1] == beyond ? frame.slices : found.slices[1];
    ordering.pieces[piece] = found;
}

/* Stores the lines of events that have been ordered. */
[[maybe_unused]] static __global__ void __launch_bounds__(LR_CUDA_LIST_GROUP)
    keep_lines(const __grid_constant__ lr_cuda_list_ordering ordering)
{
    const int64_t k = (int64_t)blockIdx.x * LR_CUDA_LIST_GROUP + threadIdx.x;
    if (k >= ordering.count) return;
    const lr_cuda_list_frame &frame = ordering.pass.frames[ordering.axis];
    const bool has_tof = ordering.has_tof != 0;
    if (ordering.paths != nullptr)
        ordering.paths[k] = path_of(ordering.pass, frame, has_tof, (int)k);
    else
        make_line(ordering.pass, frame, has_tof, (int)k, ordering.lines[k]);
}

/* --- launches --- */
#ifdef __CUDACC__

int lr_cuda_launch_list_order(const lr_cuda_list_ordering *ordering, enum lr_cuda_list_order_step step)
{
    static void (*const kernels[])(lr_cuda_list_ordering) = {find_keys, bound_pieces, keep_lines};
    const int64_t pieces = ((int64_t)ordering->count + LR_CUDA_LIST_PIECE - 1) / LR_CUDA_LIST_PIECE;
    const int64_t threads = step == LR_CUDA_LIST_BOUNDS ? pieces : ordering->count;
    return launch_threads(kernels[step], *ordering, threads, ordering->pass.stream);
}

#endif
