/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/listmode/draw.cuh"

#include <cuda_runtime.h>

namespace
{

constexpr unsigned group = 256;

__global__ void __launch_bounds__(group) draw_lines(const __grid_constant__ lr_cuda_list_drawing drawing)
{
    const int64_t k = (int64_t)blockIdx.x * group + threadIdx.x;
    if (k < drawing.count) draw_line(drawing, k);
}

} // namespace

int lr_cuda_launch_list_draw(const lr_cuda_list_drawing *drawing)
{
    const unsigned groups = (unsigned)((drawing->count + group - 1) / group);
    draw_lines<<<groups, group, 0, static_cast<cudaStream_t>(drawing->stream)>>>(*drawing);
    return cudaGetLastError();
}
