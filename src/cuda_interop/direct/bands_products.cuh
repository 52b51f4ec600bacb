/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The products of bands.cuh, computed by tensor cores. The code is for the device only: a thread is a lane here. */
#pragma once

#include "cuda_interop/direct/passes.h"

#include <cuda_fp16.h>
#include <cuda_runtime.h>

/* Two numbers, each split into two 16-bit floats. high: the high parts of both numbers. low: the remainders of both. */
struct split_pair {
    uint32_t high, low;
};

__device__ inline uint32_t bits_of(__half2 pair)
{
    return *reinterpret_cast<uint32_t *>(&pair);
}

__device__ inline split_pair split(float a, float b)
{
    const __half2 high = __floats2half2_rn(a, b);
    const float2 there = __half22float2(high);
    return {bits_of(high), bits_of(__floats2half2_rn(a - there.x, b - there.y))};
}

/* Loads from the cache that all multiprocessors share, because a kernel that has just ended may have written the
 * number. */
__device__ inline float load_unit(const float *unit)
{
    return __ldcg(unit);
}

/* Loads a number that is not read again soon, without filling the caches. */
__device__ inline float load_once(const float *number)
{
    return __ldcs(number);
}

#include "cuda_interop/direct/bands.cuh"

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

enum { ROWS = LR_CUDA_BAND_ROWS };

/* A lane's part of a matrix of 16 slices by 16 sources. */
struct band_sources {
    uint32_t parts[4];
};

/* address: address in shared memory of the matrix row that this lane provides. */
__device__ inline void load_sources(band_sources &sources, uint32_t address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(sources.parts[0]), "=r"(sources.parts[1]), "=r"(sources.parts[2]), "=r"(sources.parts[3])
                 : "r"(address)
                 : "memory");
}

/* sums += sources * weights. weights: weights for the sources of both halves. */
__device__ inline void add_product(float (&sums)[4], const band_sources &sources, uint64_t weights)
{
    asm("{\n"
        ".reg .b32 first, second;\n"
        "mov.b64 {first, second}, %8;\n"
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {first, second}, {%0, %1, %2, %3};\n"
        "}"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(sources.parts[0]), "r"(sources.parts[1]), "r"(sources.parts[2]), "r"(sources.parts[3]), "l"(weights));
}

__device__ inline uint64_t pair_of(uint32_t first, uint32_t second)
{
    uint64_t pair;
    asm("mov.b64 %0, {%1, %2};" : "=l"(pair) : "r"(first), "r"(second));
    return pair;
}

/* Prevents the compiler from splitting an address into its terms again. */
template <class T> __device__ inline const T *fixed(const T *address)
{
    asm volatile("" : "+l"(address));
    return address;
}

/* A lane's part of the weights of a step. */
struct band_weights_of_row {
    uint64_t high, low;
};

/* A lane's part of a warp's products. In each row, a lane has the weights for output lane / 4, from two sources of each
 * half: sources 2 (lane % 4) and 2 (lane % 4) + 1. A lane has the sums of outputs 2 (lane % 4) and 2 (lane % 4) + 1,
 * for slices lane / 4 and lane / 4 + 8. */
template <int Height, bool Held> struct band_products {
    /* Number of steps after which sums are moved out of the tensor cores, because tensor cores truncate sums instead of
     * rounding them. This number is checked only between slabs. */
    enum { MOST_STEPS = 8 };

    band_warp warp;
    int lane;
    float weight_unit; /* the true value of a stored weight of 1 */
    /* `spans` and `kernels` are set only if kernels vary. spans: address of the weights of the lane's first source; a
     * step's entry of `spots` is added to this address. For back projection, the weights are for the kernel of the
     * lane's own output. kernels: address of the kernel of the lane's first source; a step's offset is added to this
     * address. */
    const uint32_t *spans[ROWS];
    const int32_t *kernels;
    const int4 *steps, *spots; /* as in the pass; in shared memory if Held */
    uint32_t numbers;          /* address in shared memory of the slab's row that this lane provides */
    float sums[Height][ROWS][4];
    float slab_sums[Height][ROWS][4]; /* sums of slabs with the same unit */
    float unit;                       /* factor from slab_sums to true sums */
    int num_steps;                    /* number of steps that slab_sums contains */
    int ahead;                        /* the step whose source and weights are already loaded */
    int2 source;
    uint4 weights[ROWS]; /* x, y: high parts of the two halves' weights; z, w: low parts. If kernels vary, each
                            component has both parts of one source's weight */
    int2 next_source;    /* if kernels vary: source of the step after `ahead` */
    int4 next_spots;
    int4 next_kernels; /* forward: kernels of the sources in next_source */
    int2 kernel;       /* forward: offsets in `kernels` for the step after the step of next_source */

    __device__ void clear(float (&all)[Height][ROWS][4])
    {
#pragma unroll
        for (int m = 0; m < Height; m++) {
#pragma unroll
            for (int i = 0; i < ROWS * 4; i++) all[m][i / 4][i % 4] = 0;
        }
    }

    template <band_kernels Kernels>
    __device__ void start(const lr_cuda_bands &pass, const band_warp &own_warp, int own_lane)
    {
        warp = own_warp;
        lane = own_lane;
        weight_unit = unit_of(__ldg(pass.peak));
        unit = 0;
        num_steps = 0;
        ahead = -2; /* no step has the number ahead + 1 */
        clear(sums);
        clear(slab_sums);
        if constexpr (Kernels != BAND_ONE) {
            const int l = warp.octet * LR_CUDA_OCTET;
            kernels = fixed(kernel_at(pass, l + 2 * (lane % 4), warp.row));
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                const int own = Kernels == BAND_BACK ? __ldg(kernel_at(pass, l + lane / 4, warp.row + i)) : 0;
                spans[i] = fixed(pass.spans + (2 * (lane % 4) - lane / 4 + own));
            }
        }
    }

    /* Adds a slab's sums to those of the warp. */
    __device__ void flush()
    {
#pragma unroll
        for (int m = 0; m < Height; m++) {
#pragma unroll
            for (int i = 0; i < ROWS * 4; i++) sums[m][i / 4][i % 4] += unit * slab_sums[m][i / 4][i % 4];
        }
        clear(slab_sums);
        num_steps = 0;
    }

    /* Returns the weights of row i for the lane's two sources of each half: first the high parts, and then the low
     * parts. */
    template <band_kernels Kernels> __device__ band_weights_of_row weights_of(int i) const
    {
        const uint4 &of = weights[i];
        if constexpr (Kernels == BAND_ONE) {
            return {pair_of(of.x, of.y), pair_of(of.z, of.w)};
        } else {
            return {pair_of(__byte_perm(of.x, of.y, 0x5410), __byte_perm(of.z, of.w, 0x5410)),
                    pair_of(__byte_perm(of.x, of.y, 0x7632), __byte_perm(of.z, of.w, 0x7632))};
        }
    }

    template <class T> __device__ T listed(const T *record) const
    {
        return Held ? *record : __ldg(record);
    }

    /* Loads step k except its weights. The data are in the records of steps k and k - 1. */
    template <band_kernels Kernels> __device__ void load_next(int k)
    {
        if (Kernels == BAND_FORWARD) {
            const int2 of[2] = {__ldg(reinterpret_cast<const int2 *>(kernels + kernel.x)),
                                __ldg(reinterpret_cast<const int2 *>(kernels + kernel.y))};
            next_kernels = make_int4(of[0].x, of[0].y, of[1].x, of[1].y);
        }
        const int4 record = listed(steps + k + 1);
        next_source = make_int2(record.x, record.y);
        kernel = make_int2(record.z, record.w);
        next_spots = listed(spots + k);
    }

    /* Loads a step except its weights. The step is not the one after the step that was loaded last. */
    template <band_kernels Kernels> __device__ void jump_to(int k)
    {
        if constexpr (Kernels != BAND_ONE) {
            const int4 before = listed(steps + k);
            kernel = make_int2(before.z, before.w);
            load_next<Kernels>(k);
        }
    }

    /* Loads the weights of step k, and all data of step k + 1 except its weights. Forward steps are consecutive
     * (gather_band). */
    template <band_kernels Kernels> __device__ void load_step(const lr_cuda_bands &pass, int k)
    {
        const bool follows = k == ahead + 1;
        ahead = k;
        if constexpr (Kernels == BAND_ONE) {
            source = listed(reinterpret_cast<const int2 *>(steps + k + 1));
            const int4 *entries = pass.weights + (k * ROWS * LR_CUDA_BAND_BLOCK + lane);
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                const int4 entry = __ldg(entries + i * LR_CUDA_BAND_BLOCK);
                weights[i] = make_uint4((uint32_t)entry.x, (uint32_t)entry.y, (uint32_t)entry.z, (uint32_t)entry.w);
            }
        } else {
            if (Kernels == BAND_BACK && !follows) jump_to<Kernels>(k);
#pragma unroll
            for (int i = 0; i < ROWS; i++) { /* weights from spans: for the target's kernel (back), or for the
                                              * sources' kernels (forward) */
                const int2 spot =
                    i == 0 ? make_int2(next_spots.x, next_spots.y) : make_int2(next_spots.z, next_spots.w);
                const int4 of = Kernels == BAND_FORWARD ? next_kernels : make_int4(0, 0, 0, 0);
                const uint32_t *from = spans[Kernels == BAND_FORWARD ? 0 : i];
                weights[i] = make_uint4(__ldg(from + (spot.x + of.x)), __ldg(from + (spot.x + of.y) + 1),
                                        __ldg(from + (spot.y + of.z)), __ldg(from + (spot.y + of.w) + 1));
            }
            source = next_source;
            load_next<Kernels>(k + 1);
        }
    }

    template <band_kernels Kernels>
    __device__ void begin(const lr_cuda_bands &pass, const band_slab &slab, const uint16_t *from)
    {
        if (slab.unit * weight_unit != unit || num_steps >= MOST_STEPS) {
            flush();
            unit = slab.unit * weight_unit;
        }
        num_steps += slab.end - slab.first;
        numbers = (uint32_t)__cvta_generic_to_shared(from) + (uint32_t)(lane % 16) * 16;
        if (ahead != slab.first) {
            if (Kernels == BAND_FORWARD) /* for back projection, load_step calls jump_to */
                jump_to<Kernels>(slab.first);
            load_step<Kernels>(pass, slab.first);
        }
    }

    /* Loads the next step during the products. */
    template <band_kernels Kernels> __device__ void multiply(const lr_cuda_bands &pass, int, int next)
    {
        const int2 here = source;
        const band_weights_of_row by[ROWS] = {weights_of<Kernels>(0), weights_of<Kernels>(1)};
        const uint32_t first = numbers + 16 * (uint32_t)(lane < 16 ? here.x : here.y);
        const uint32_t plane_bytes = (uint32_t)pass.slices * 16;
        band_sources high[Height], low[Height];
#pragma unroll
        for (int m = 0; m < Height; m++) {
            const uint32_t address = first + m * LR_CUDA_BAND_SLICES * 16;
            load_sources(high[m], address);
            load_sources(low[m], address + plane_bytes);
        }
        load_step<Kernels>(pass, next);
#pragma unroll
        for (int k = 0; k < Height * ROWS; k++)
            add_product(slab_sums[k / ROWS][k % ROWS], high[k / ROWS], by[k % ROWS].high);
#pragma unroll
        for (int k = 0; k < Height * ROWS; k++)
            add_product(slab_sums[k / ROWS][k % ROWS], high[k / ROWS], by[k % ROWS].low);
#pragma unroll
        for (int k = 0; k < Height * ROWS; k++)
            add_product(slab_sums[k / ROWS][k % ROWS], low[k / ROWS], by[k % ROWS].high);
    }

    __device__ void store(const lr_cuda_bands &pass, int slice, float4 *target)
    {
#pragma unroll
        for (int k = 0; k < 2 * ROWS; k++) {
            const int l = warp.octet * LR_CUDA_OCTET + 2 * (lane % 4) + k % 2;
            const int column = column_at(pass, l, warp.row + k / 2);
            if (column < 0) continue;
            float *texels =
                reinterpret_cast<float *>(target + pass.layout.margin[0] + (int64_t)pass.layout.extent[0] * column);
#pragma unroll
            for (int n = 0; n < 2 * Height; n++) {
                const int z = slice + n / 2 * LR_CUDA_BAND_SLICES + lane / 4 + 8 * (n % 2);
                if (z < pass.layout.size[2]) texels[z] = sums[n / 2][k / 2][2 * (n % 2) + k % 2];
            }
        }
    }
};

#endif
