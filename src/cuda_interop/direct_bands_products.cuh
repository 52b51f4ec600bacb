/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The products of direct_bands.cuh by tensor cores. For the device alone: a thread is a lane here. */
#ifndef LR_CUDA_DIRECT_BANDS_PRODUCTS_CUH
#define LR_CUDA_DIRECT_BANDS_PRODUCTS_CUH

#include "cuda_interop/direct_passes.h"

#include <cuda_fp16.h>
#include <cuda_runtime.h>

/* Two numbers as halves: what is high of both, and what is left. */
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

/* From where all multiprocessors see the same: a kernel that has just ended may have written it. */
__device__ inline float load_unit(const float *unit)
{
    return __ldcg(unit);
}

/* What nobody reads again soon leaves the caches to others. */
__device__ inline float load_once(const float *number)
{
    return __ldcs(number);
}

#include "cuda_interop/direct_bands.cuh"

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

enum { ROWS = LR_CUDA_BAND_ROWS };

/* A matrix of 16 slices by 16 sources, a lane's part. */
struct band_sources {
    uint32_t parts[4];
};

/* address: of the row that this lane tells, in shared memory. */
__device__ inline void load_sources(band_sources &sources, uint32_t address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(sources.parts[0]), "=r"(sources.parts[1]), "=r"(sources.parts[2]),
                   "=r"(sources.parts[3])
                 : "r"(address)
                 : "memory");
}

/* sums += sources weights. */
__device__ inline void add_product(float (&sums)[4], const band_sources &sources, uint32_t first,
                                   uint32_t second)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(sources.parts[0]), "r"(sources.parts[1]), "r"(sources.parts[2]),
          "r"(sources.parts[3]), "r"(first), "r"(second));
}

/* A lane's part of a warp's products. Of a row's outputs a lane has the weights of output lane / 4 and
 * sources 2 (lane % 4) and the next one of both halves, and sums of outputs 2 (lane % 4) and the next
 * one for slices lane / 4 and that + 8. */
template <int Height> struct band_products {
    /* About, that slabs' sums are of, which tensor cores make: these do not round, they cut. */
    enum { MOST_STEPS = 8 };

    band_warp warp;
    int lane;
    float weight_unit;      /* what a weight of 1 stands for */
    int own_kernels[ROWS];  /* of the lane's outputs, on the way back */
    int first;              /* of the weights of a span: that of the lane's first source */
    const int32_t *kernels; /* of the lane's first source in octet 0, on the way forward */
    uint32_t numbers;       /* of the slab, the row that this lane tells */
    float sums[Height][ROWS][4];
    float slab_sums[Height][ROWS][4]; /* of slabs alike */
    float unit;                       /* what 1 stands for in these */
    int num_steps;                    /* of these */
    int ahead;                        /* the next step: */
    int2 source;
    uint4 weights[ROWS]; /* both halves' high numbers, and their low ones */
    int4 record, spots;  /* of the step after that, where kernels vary */

    __device__ void clear(float (&all)[Height][ROWS][4])
    {
#pragma unroll
        for (int m = 0; m < Height; m++) {
#pragma unroll
            for (int i = 0; i < ROWS * 4; i++) {
                all[m][i / 4][i % 4] = 0;
            }
        }
    }

    __device__ void start(const lr_cuda_bands &pass, const band_warp &own, int own_lane)
    {
        warp = own;
        lane = own_lane;
        weight_unit = unit_of(__ldg(pass.peak));
        unit = 0;
        num_steps = 0;
        ahead = -1;
        first = 2 * (lane % 4) - lane / 4;
        clear(sums);
        clear(slab_sums);
    }

    __device__ void find_own_kernels(const lr_cuda_bands &pass)
    {
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            const int row = sorted_row(pass, warp.row + i);
            const int l = (warp.octet - __ldg(pass.bases + max(row, 0)).x) * LR_CUDA_OCTET;
            own_kernels[i] = row < 0 ? 0 : __ldg(sorted_kernel(pass, row, l + lane / 4));
        }
    }

    /* Slabs' sums, to those of the warp. */
    __device__ void flush()
    {
#pragma unroll
        for (int m = 0; m < Height; m++) {
#pragma unroll
            for (int i = 0; i < ROWS * 4; i++) {
                sums[m][i / 4][i % 4] += unit * slab_sums[m][i / 4][i % 4];
            }
        }
        clear(slab_sums);
        num_steps = 0;
    }

    __device__ void load_record(const lr_cuda_bands &pass, int k)
    {
        record = __ldg(reinterpret_cast<const int4 *>(pass.steps) + k);
        spots = __ldg(pass.spots + k);
    }

    /* Of row i, for the target's kernel. */
    __device__ void load_own_weights(const lr_cuda_bands &pass, int i, int2 spot)
    {
        const uint2 *spans = reinterpret_cast<const uint2 *>(pass.spans);
        const uint2 halves[2] = {__ldg(spans + (spot.x + first + own_kernels[i])),
                                 __ldg(spans + (spot.y + first + own_kernels[i]))};
        weights[i] = make_uint4(halves[0].x, halves[1].x, halves[0].y, halves[1].y);
    }

    /* Of row i, for the kernels of sources. */
    __device__ void load_source_weights(const lr_cuda_bands &pass, int i, int2 spot, int4 of)
    {
        const uint32_t halves[2][2] = {{__ldg(pass.spans + (spot.x + first + of.x)),
                                        __ldg(pass.spans + (spot.x + first + of.y) + 1)},
                                       {__ldg(pass.spans + (spot.y + first + of.z)),
                                        __ldg(pass.spans + (spot.y + first + of.w) + 1)}};
        weights[i] = make_uint4(__byte_perm(halves[0][0], halves[0][1], 0x5410),
                                __byte_perm(halves[1][0], halves[1][1], 0x5410),
                                __byte_perm(halves[0][0], halves[0][1], 0x7632),
                                __byte_perm(halves[1][0], halves[1][1], 0x7632));
    }

    __device__ int4 load_source_kernels() const
    {
        const int2 *of[2] = {reinterpret_cast<const int2 *>(kernels + LR_CUDA_OCTET * record.z),
                             reinterpret_cast<const int2 *>(kernels + LR_CUDA_OCTET * record.w)};
        const int2 pairs[2] = {__ldg(of[0]), __ldg(of[1])};
        return make_int4(pairs[0].x, pairs[0].y, pairs[1].x, pairs[1].y);
    }

    /* Step k, of which the record is there. */
    template <band_kernels Kernels> __device__ void load_step(const lr_cuda_bands &pass, int k)
    {
        ahead = k;
        if constexpr (Kernels == BAND_ONE) {
            const int4 *entries = pass.weights + (k * ROWS * LR_CUDA_BAND_BLOCK + lane);
            source = __ldg(reinterpret_cast<const int2 *>(pass.steps) + 2 * k);
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                const int4 entry = __ldg(entries + i * LR_CUDA_BAND_BLOCK);
                weights[i] = make_uint4((uint32_t)entry.x, (uint32_t)entry.y, (uint32_t)entry.z,
                                        (uint32_t)entry.w);
            }
        } else {
            const int4 of = Kernels == BAND_FORWARD ? load_source_kernels() : make_int4(0, 0, 0, 0);
            source = make_int2(record.x, record.y);
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                const int2 spot =
                    i == 0 ? make_int2(spots.x, spots.y) : make_int2(spots.z, spots.w);
                if constexpr (Kernels == BAND_BACK) {
                    load_own_weights(pass, i, spot);
                } else {
                    load_source_weights(pass, i, spot, of);
                }
            }
            load_record(pass, k + 1);
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
        if (Kernels == BAND_FORWARD) {
            const int l = (warp.octet - __ldg(pass.bases + slab.row).x) * LR_CUDA_OCTET;
            kernels = sorted_kernel(pass, slab.row, l + 2 * (lane % 4));
        }
        if (Kernels == BAND_FORWARD || ahead != slab.first) {
            if (Kernels != BAND_ONE) {
                load_record(pass, slab.first);
            }
            load_step<Kernels>(pass, slab.first);
        }
    }

    __device__ void multiply_rows(const band_sources (&high)[Height],
                                  const band_sources (&low)[Height], const uint4 (&by)[ROWS])
    {
#pragma unroll
        for (int k = 0; k < Height * ROWS; k++) {
            add_product(slab_sums[k / ROWS][k % ROWS], high[k / ROWS], by[k % ROWS].x,
                        by[k % ROWS].y);
        }
#pragma unroll
        for (int k = 0; k < Height * ROWS; k++) {
            add_product(slab_sums[k / ROWS][k % ROWS], high[k / ROWS], by[k % ROWS].z,
                        by[k % ROWS].w);
        }
#pragma unroll
        for (int k = 0; k < Height * ROWS; k++) {
            add_product(slab_sums[k / ROWS][k % ROWS], low[k / ROWS], by[k % ROWS].x,
                        by[k % ROWS].y);
        }
    }

    __device__ void load_slices(const lr_cuda_bands &pass, uint32_t first,
                                band_sources (&high)[Height], band_sources (&low)[Height])
    {
        const uint32_t plane_bytes = (uint32_t)pass.slices * 16;
#pragma unroll
        for (int m = 0; m < Height; m++) {
            const uint32_t address = first + m * LR_CUDA_BAND_SLICES * 16;
            load_sources(high[m], address);
            load_sources(low[m], address + plane_bytes);
        }
    }

    /* The next step is on its way meanwhile. */
    template <band_kernels Kernels> __device__ void multiply(const lr_cuda_bands &pass, int k)
    {
        const int2 here = source;
        const uint4 by[ROWS] = {weights[0], weights[1]};
        band_sources high[Height], low[Height];
        load_slices(pass, numbers + 16 * (uint32_t)(lane < 16 ? here.x : here.y), high, low);
        load_step<Kernels>(pass, k + 1);
        multiply_rows(high, low, by);
    }

    /* texels: from the column's first on. */
    __device__ void store_column(const lr_cuda_bands &pass, int slice, int i, int side,
                                 float4 *texels)
    {
        float *column = reinterpret_cast<float *>(texels);
#pragma unroll
        for (int k = 0; k < 2 * Height; k++) {
            const int z = slice + k / 2 * LR_CUDA_BAND_SLICES + lane / 4 + 8 * (k % 2);
            if (z < pass.layout.size[2]) {
                column[z] = sums[k / 2][i][2 * (k % 2) + side];
            }
        }
    }

    __device__ void store(const lr_cuda_bands &pass, int slice, float4 *target)
    {
#pragma unroll
        for (int k = 0; k < 2 * ROWS; k++) {
            const int l = warp.octet * LR_CUDA_OCTET + 2 * (lane % 4) + k % 2;
            const int column = column_at(pass, l, warp.row + k / 2);
            if (column >= 0) {
                store_column(pass, slice, k / 2, k % 2,
                             target + pass.layout.margin[0] +
                                 (int64_t)pass.layout.extent[0] * column);
            }
        }
    }
};

#endif

#endif
