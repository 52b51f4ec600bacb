/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Keys by which events are ordered, for one thread. Written for the processor, too. */
#include "cuda_interop/listmode/exact.cuh"
#include "cuda_interop/listmode/shares.cuh"

/* The parts of a key, from its top: the size of windows, the first and the last slice, and in what is left how many
 * steps an event takes, so that lanes of a warp are done at about the same time. */
struct list_keys {
    static constexpr int most_slice_bits = 15, wide_bits = 2, most_step_bits = 20;
    int slice_bits;

    __host__ __device__ explicit list_keys(int32_t slices) : slice_bits(1)
    {
        while (slice_bits < most_slice_bits && (slices + 1) >> slice_bits != 0) slice_bits++;
    }
    /* Slices beyond it count as that one. */
    __host__ __device__ uint32_t last() const { return (1u << slice_bits) - 1; }
    __host__ __device__ int step_bits() const
    {
        const int left = 32 - wide_bits - 2 * slice_bits;
        return left < most_step_bits ? left : most_step_bits; /* pieces add them up in 32 bits */
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
    /* which = 0: the first slice, 1: the last one. */
    __host__ __device__ int32_t slice_of(uint32_t key, int which) const
    {
        return (int32_t)(key >> (step_bits() + (1 - which) * slice_bits) & last());
    }
};

/* Lines whose windows are larger come behind the others: a warp takes that of its largest. */
__host__ __device__ inline uint32_t window_class(const line_walk &walk)
{
    const float half = fmaxf(walk.half[0], walk.half[1]);
    return half <= 2.0f ? 0 : half <= 2.5f ? 1 : 2;
}

__host__ __device__ inline list_extent find_extent(const lr_cuda_list_ordering &ordering, int event)
{
    const lr_cuda_list_frame &frame = ordering.pass.frames[ordering.axis];
    const bool has_tof = ordering.has_tof != 0;
    if (ordering.pass.exact.modules != nullptr) return exact_extent(ordering.pass, frame, has_tof, event);
    const int32_t all[2] = {0, frame.slices};
    const line_walk walk = find_walk(ordering.pass, frame, has_tof, event, all);
    return {{walk.slices[0], walk.slices[1]}, window_class(walk), 0};
}

__host__ __device__ inline void find_key(const lr_cuda_list_ordering &ordering, int event)
{
    const list_keys keys(ordering.pass.frames[ordering.axis].slices);
    ordering.keys[event] = keys.key_of(find_extent(ordering, event));
    ordering.numbers[event] = event;
}

/* Bounds of a piece whose keys are in order. */
__host__ __device__ inline void bound_piece(const lr_cuda_list_ordering &ordering, int piece)
{
    const lr_cuda_list_frame &frame = ordering.pass.frames[ordering.axis];
    const list_keys keys(frame.slices);
    const int32_t beyond = (int32_t)keys.last();
    const int64_t begin = (int64_t)piece * LR_CUDA_LIST_PIECE;
    lr_cuda_list_piece found = {{frame.slices, 0}, 0};
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

/* Stores the line of an event that has its place. */
__host__ __device__ inline void keep_line(const lr_cuda_list_ordering &ordering, int event)
{
    const lr_cuda_list_frame &frame = ordering.pass.frames[ordering.axis];
    const bool has_tof = ordering.has_tof != 0;
    if (ordering.paths != nullptr)
        ordering.paths[event] = path_of(ordering.pass, frame, has_tof, event);
    else
        make_line(ordering.pass, frame, has_tof, event, ordering.lines[event]);
}

/* --- launches: tests take the functions above, on the processor --- */
#ifdef __CUDACC__

namespace
{

constexpr unsigned group = 256;

__global__ void __launch_bounds__(group) find_keys(const __grid_constant__ lr_cuda_list_ordering ordering)
{
    const int64_t k = (int64_t)blockIdx.x * group + threadIdx.x;
    if (k < ordering.count) find_key(ordering, (int)k);
}

__global__ void __launch_bounds__(group) bound_pieces(const __grid_constant__ lr_cuda_list_ordering ordering)
{
    const int64_t k = (int64_t)blockIdx.x * group + threadIdx.x;
    if (k * LR_CUDA_LIST_PIECE < ordering.count) bound_piece(ordering, (int)k);
}

__global__ void __launch_bounds__(group) keep_lines(const __grid_constant__ lr_cuda_list_ordering ordering)
{
    const int64_t k = (int64_t)blockIdx.x * group + threadIdx.x;
    if (k < ordering.count) keep_line(ordering, (int)k);
}

unsigned groups_of(int64_t count)
{
    return (unsigned)((count + group - 1) / group);
}

} // namespace

int lr_cuda_launch_list_keys(const lr_cuda_list_ordering *ordering)
{
    find_keys<<<groups_of(ordering->count), group, 0, static_cast<cudaStream_t>(ordering->pass.stream)>>>(*ordering);
    return cudaGetLastError();
}

int lr_cuda_launch_list_bounds(const lr_cuda_list_ordering *ordering)
{
    const int64_t pieces = (ordering->count + LR_CUDA_LIST_PIECE - 1) / LR_CUDA_LIST_PIECE;
    bound_pieces<<<groups_of(pieces), group, 0, static_cast<cudaStream_t>(ordering->pass.stream)>>>(*ordering);
    return cudaGetLastError();
}

int lr_cuda_launch_list_lines(const lr_cuda_list_ordering *ordering)
{
    keep_lines<<<groups_of(ordering->count), group, 0, static_cast<cudaStream_t>(ordering->pass.stream)>>>(*ordering);
    return cudaGetLastError();
}

#endif
