/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The gathers of the family `direct` (lr/direct.h, figures 2 and 3 of paper 1) for one thread each.
 * Written for the device, and for the processor too, where tests run them thread by thread:
 * nothing here names a launch, and images and LORmap come as types with
 *   float4 load(q, x, y), void store(q, x, y, texel), void store_slice(q, x, y, slice, value)
 *   int    operator()(x, y)
 * A texel (q, x, y) has slices 4 q .. 4 q + 3 of a column; q, x, y count from the grid's first, and
 * images have zeros around it (render/direct/image.h). */
#ifndef LR_CUDA_DIRECT_KERNELS_CUH
#define LR_CUDA_DIRECT_KERNELS_CUH

#include "cuda_interop/direct/passes.h"

__device__ inline int floor_div(int number, int by)
{
    return number >= 0 ? number / by : -((by - 1 - number) / by);
}

__device__ inline float slice_of(const float4 &texel, int slice)
{
    return slice == 0 ? texel.x : slice == 1 ? texel.y : slice == 2 ? texel.z : texel.w;
}

/* Column (l, r) of the lattice that a pass has: its place in images, or -1 outside the grid. */
template <class Pass> __device__ inline int column_at(const Pass &pass, int l, int r)
{
    const lr_cuda_layout &layout = pass.layout;
    const int x = l * pass.next[0] + r * pass.across[0];
    const int y = l * pass.next[1] + r * pass.across[1];
    return x >= 0 && x < layout.size[0] && y >= 0 && y < layout.size[1]
               ? x + layout.margin[1] + layout.extent[1] * (y + layout.margin[2])
               : -1;
}

/* Row of mSRval: a kernel's own, or the only one. The kernel is that of the target on the way back, of
 * the source on the way forward. */
__device__ inline int row_of(int num_rows, int kernel)
{
    return kernel < num_rows ? kernel : num_rows - 1;
}

/* --- (a) thread level: a voxel a thread --- */

template <bool Forward, class Images, class Map>
__device__ void gather_voxel(const lr_cuda_gather &pass, const Images &images, const Map &map, int64_t thread)
{
    const int z = (int)(thread % pass.layout.size[2]);
    const int x = (int)(thread / pass.layout.size[2] % pass.layout.size[0]);
    const int y = (int)(thread / pass.layout.size[2] / pass.layout.size[0]);
    if (y >= pass.layout.size[1]) return;
    const int own_row = row_of(pass.num_rows, map(x, y));
    float sum = 0;
    for (int i = 0; i < pass.num_offsets; i++) {
        const int4 d = pass.offsets[i];
        const int slice = z + d.z, quad = floor_div(slice, 4);
        const int row = Forward ? row_of(pass.num_rows, map(x + d.x, y + d.y)) : own_row;
        const int offset = Forward ? pass.num_offsets - 1 - i : i;
        sum += pass.values[(int64_t)offset * pass.num_rows + row] *
               slice_of(images.load(quad, x + d.x, y + d.y), slice - 4 * quad);
    }
    images.store_slice(z / 4, x, y, z % 4, sum);
}

/* --- (b) instruction level: the four voxels of a texel a thread --- */

/* Slices shift .. shift + 3 of two texels that lie above each other. */
__device__ inline float4 shifted(const float4 &low, const float4 &high, int shift)
{
    return shift == 0   ? low
           : shift == 1 ? make_float4(low.y, low.z, low.w, high.x)
           : shift == 2 ? make_float4(low.z, low.w, high.x, high.y)
                        : make_float4(low.w, high.x, high.y, high.z);
}

__device__ inline void add(float4 &sum, float weight, const float4 &texel)
{
    sum.x += weight * texel.x;
    sum.y += weight * texel.y;
    sum.z += weight * texel.z;
    sum.w += weight * texel.w;
}

/* A texel without what lies beyond the last slice, where images stay zero. */
__device__ inline float4 within_grid(const lr_cuda_layout &layout, const float4 &texel, int quad)
{
    const int left = layout.size[2] - 4 * quad;
    return make_float4(left > 0 ? texel.x : 0, left > 1 ? texel.y : 0, left > 2 ? texel.z : 0, left > 3 ? texel.w : 0);
}

template <bool Forward, class Images, class Map>
__device__ void gather_texel(const lr_cuda_gather &pass, const Images &images, const Map &map, int64_t thread)
{
    const int q = (int)(thread % pass.layout.quads);
    const int x = (int)(thread / pass.layout.quads % pass.layout.size[0]);
    const int y = (int)(thread / pass.layout.quads / pass.layout.size[0]);
    if (y >= pass.layout.size[1]) return;
    const int own_row = row_of(pass.num_rows, map(x, y));
    float4 sum = make_float4(0, 0, 0, 0);
    for (int i = 0; i < pass.num_offsets; i++) {
        const int4 d = pass.offsets[i];
        const int quad = floor_div(d.z, 4), shift = d.z - 4 * quad;
        const float4 low = images.load(q + quad, x + d.x, y + d.y);
        const float4 high = shift == 0 ? low : images.load(q + quad + 1, x + d.x, y + d.y);
        const int row = Forward ? row_of(pass.num_rows, map(x + d.x, y + d.y)) : own_row;
        const int offset = Forward ? pass.num_offsets - 1 - i : i;
        add(sum, pass.values[(int64_t)offset * pass.num_rows + row], shifted(low, high, shift));
    }
    images.store(q, x, y, within_grid(pass.layout, sum, q));
}

#endif
