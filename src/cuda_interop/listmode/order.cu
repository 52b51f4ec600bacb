/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/listmode/order.cuh"

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
