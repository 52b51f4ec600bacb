/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/copies.cuh"
#include "cuda_interop/direct_launch.h"
#include "cuda_interop/overlap.cuh"

#include <cuda_fp16.h>

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

/* From where all multiprocessors see the same: the kernel before wrote it. */
__device__ inline float load_unit(const float *unit)
{
    return __ldcg(unit);
}

/* What is the same in all lanes: the compiler then knows. */
__device__ inline int same_in_warp(int number)
{
    return __shfl_sync(0xffffffffu, number, 0);
}

#include "cuda_interop/direct_bands.cuh"

namespace
{

enum { LANES = 32, WARPS = LR_CUDA_BAND_SIDES * LR_CUDA_BAND_PAIRS, ROWS = LR_CUDA_BAND_ROWS };

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

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

/* Weights of 16 sources by 8 outputs, a lane's part: both halves' high numbers, and their low ones; or
 * what they are made of, for both halves. */
struct band_weights {
    uint32_t parts[4];
};

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
    enum {
        MOST_STEPS = 4
    }; /* about, that slabs' sums may be of: tensor cores do not round, they cut */

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
        numbers = (uint32_t)__cvta_generic_to_shared(from) +
                  (uint32_t)(lane % 16) * (uint32_t)pass.width * 2;
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

    __device__ void end()
    {
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
        const uint32_t row_bytes = (uint32_t)pass.width * 2;
        const uint32_t plane_bytes = (uint32_t)pass.slices * row_bytes;
#pragma unroll
        for (int m = 0; m < Height; m++) {
            const uint32_t address = first + m * LR_CUDA_BAND_SLICES * row_bytes;
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
            const int column = band_column(pass, l, warp.row + k / 2);
            if (column >= 0) {
                store_column(pass, slice, k / 2, k % 2,
                             target + pass.layout.margin[0] +
                                 (int64_t)pass.layout.extent[0] * column);
            }
        }
    }
};

/* A block's shared memory. Slab c is in slot c % depth. */
struct band_room {
    uint64_t *is_there, *is_free; /* [depth] */
    int4 *lists;                  /* [num_lists]: as the pass's */
    float *units;                 /* [num_slabs] */
    unsigned char *slabs;
};

__device__ inline band_room band_room_at(const lr_cuda_bands &pass, unsigned char *shared)
{
    uint64_t *barriers = reinterpret_cast<uint64_t *>(shared);
    int4 *lists = reinterpret_cast<int4 *>(shared + LR_CUDA_BAND_BARRIERS);
    return {barriers, barriers + pass.depth, lists,
            reinterpret_cast<float *>(lists + pass.num_lists), shared + pass.list_bytes};
}

/* For one thread. */
__device__ inline void init_barriers(const lr_cuda_bands &pass, const band_room &room)
{
    for (int k = 0; k < pass.depth; k++) {
        init_barrier(room.is_there + k, 1);
        init_barrier(room.is_free + k, WARPS);
    }
    publish_barriers();
}

__device__ inline void bring_slab(const lr_cuda_bands &pass, const band_block &block,
                                  const band_room &room, const CUtensorMap *source, int c, int slot)
{
    int32_t begin[3];
    slab_begin(pass, block, c, begin);
    const int32_t at[4] = {begin[0], begin[1], begin[2], 0};
    expect_bytes(room.is_there + slot, 2 * pass.slices * pass.width * (int)sizeof(uint16_t));
    copy_box(room.slabs + slot * pass.slab_bytes, source, at, room.is_there + slot);
}

/* What a block brings next, and where. */
struct ring_front {
    int coming;
    ring_place place;
};

/* Slabs below `end`, each once all warps are through with the one that it replaces. For one warp. */
__device__ inline void bring_slabs(const lr_cuda_bands &pass, const band_block &block,
                                   const band_room &room, const CUtensorMap *source, int end,
                                   ring_front &front)
{
    while (front.coming < min(pass.num_slabs, end)) {
        if (front.place.round > 0) {
            wait_for(room.is_free + front.place.slot, front.place.round - 1);
        }
        if (is_elected()) {
            bring_slab(pass, block, room, source, front.coming, front.place.slot);
        }
        front = {front.coming + 1, next_place(pass.depth, front.place)};
    }
}

__device__ inline void free_slot(const band_room &room, int slot)
{
    __syncwarp();
    if (is_elected()) {
        arrive_at(room.is_free + slot);
    }
}

/* A warp's slabs: those that it has lists for. The slabs after those nobody waits for. */
template <band_kernels Kernels, int Height>
__device__ inline void gather_bands(const lr_cuda_bands &pass, const band_block &block,
                                    const band_room &room, const CUtensorMap *source,
                                    ring_front &front, band_products<Height> &products)
{
    const band_warp &warp = products.warp;
    const bool brings = warp.side == 0 && warp.pair == 0;
    const bool is_needed = same_in_warp(is_in_grid(pass, warp)) != 0;
    const int first = warp.pair * LR_CUDA_BAND_ROWS;
    ring_place here = {0, 0};
    for (int c = 0; c < first; c++, here = next_place(pass.depth, here)) {
        free_slot(room, here.slot);
    }
    for (int d = 0; d < pass.num_lists; d++, here = next_place(pass.depth, here)) {
        if (brings) {
            bring_slabs(pass, block, room, source, d + pass.depth, front);
        }
        const band_slab slab = band_slab_of(pass, warp, d, room.lists[d], room.units[first + d]);
        wait_for(room.is_there + here.slot, here.round);
        if (is_needed && slab.unit != 0) {
            gather_band<Kernels>(
                pass, slab,
                reinterpret_cast<const uint16_t *>(room.slabs + here.slot * pass.slab_bytes),
                products);
        }
        free_slot(room, here.slot);
    }
    if (brings) {
        bring_slabs(pass, block, room, source, pass.num_slabs, front);
    }
}

#endif

template <band_kernels Kernels, int Height>
__global__ void __launch_bounds__(WARPS *LANES, 2)
    bands(const __grid_constant__ lr_cuda_bands pass, const __grid_constant__ CUtensorMap source,
          const __grid_constant__ lr_cuda_band_source sorted, float4 *target)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    extern __shared__ __align__(128) unsigned char shared[];
    const band_room room = band_room_at(pass, shared);
    const int thread = (int)threadIdx.x, warp = same_in_warp(thread / LANES);
    const int2 tile = __ldg(pass.tiles + blockIdx.x);
    const band_block block = {same_in_warp(tile.x), same_in_warp(tile.y),
                              (int)blockIdx.y * Height * LR_CUDA_BAND_SLICES};
    let_next_kernel_begin();
    if (thread == 0) {
        init_barriers(pass, room);
    }
    for (int k = thread; k < pass.num_lists; k += WARPS * LANES) {
        room.lists[k] = __ldg(pass.lists + k);
    }
    band_products<Height> products;
    products.start(pass, band_warp_at(block, warp), thread % LANES);
    if (Kernels == BAND_BACK) {
        products.find_own_kernels(pass);
    }
    wait_for_last_kernel(); /* it sorted the source */
    ring_front front = {0, {0, 0}};
    if (warp == 0) {
        __syncwarp(); /* barriers were made by a lane */
        bring_slabs(pass, block, room, &source, pass.depth - 1, front);
    }
    for (int k = thread; k < pass.num_slabs; k += WARPS * LANES) {
        room.units[k] = slab_unit(pass, block, sorted, k);
    }
    __syncthreads();
    gather_bands<Kernels>(pass, block, room, &source, front, products);
    products.flush();
    products.store(pass, block.slice, target);
#endif
}

/* --- sorting --- */

enum { MOST_SORT_THREADS = 512 };

/* The largest of a block's numbers, none of which is negative. */
__device__ inline float largest_in_block(float number)
{
    __shared__ unsigned largest[MOST_SORT_THREADS / LANES];
    const unsigned of_warp = __reduce_max_sync(0xffffffffu, __float_as_uint(number));
    if (threadIdx.x % LANES == 0) {
        largest[threadIdx.x / LANES] = of_warp;
    }
    __syncthreads();
    unsigned of_block = 0;
    for (unsigned k = 0; k < blockDim.x / LANES; k++) {
        of_block = max(of_block, largest[k]);
    }
    return __uint_as_float(of_block);
}

__global__ void __launch_bounds__(MOST_SORT_THREADS)
    sort_rows(const __grid_constant__ lr_cuda_bands pass, const float4 *source,
              const __grid_constant__ lr_cuda_band_source sorted)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    const int row = (int)blockIdx.x, threads[2] = {(int)threadIdx.x, (int)blockDim.x};
    sorting own;
    let_next_kernel_begin();
    begin_sorting(pass, row, threads[0], own);
    wait_for_last_kernel();
    const float peak = largest_in_block(find_peak(pass, source, row, threads, own));
    sort_row(pass, source, sorted, row, peak, threads, own);
#endif
}

/* --- tables --- */

__global__ void find_largest(const float *values, int64_t count, float *largest)
{
    const int64_t threads = (int64_t)gridDim.x * blockDim.x;
    float own = 0;
    for (int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; k < count; k += threads) {
        own = fmaxf(own, values[k]);
    }
    atomicMax(reinterpret_cast<int *>(largest),
              __float_as_int(own)); /* in order, if not negative */
}

__global__ void band_weights(const __grid_constant__ lr_cuda_bands pass,
                             const __grid_constant__ lr_cuda_band_fill fill, bool forward)
{
    fill_band_weights(pass, fill, forward, (int64_t)blockIdx.x * blockDim.x + threadIdx.x);
}

__global__ void band_spans(const __grid_constant__ lr_cuda_bands pass,
                           const __grid_constant__ lr_cuda_band_fill fill, bool forward)
{
    fill_band_span(pass, fill, forward, (int64_t)blockIdx.x * blockDim.x + threadIdx.x);
}

__global__ void band_kernel_map(const __grid_constant__ lr_cuda_bands pass,
                                const __grid_constant__ lr_cuda_band_fill fill)
{
    fill_band_kernel(pass, fill, (int64_t)blockIdx.x * blockDim.x + threadIdx.x);
}

/* --- launches --- */

/* Halves of all numbers in one array, high ones first. */
cudaError_t describe_sorted(const lr_cuda_bands &pass, const lr_cuda_band_source &sorted,
                            CUtensorMap *map)
{
    const cuuint64_t row = (cuuint64_t)pass.pitch * sizeof(uint16_t);
    const cuuint64_t slices = (cuuint64_t)pass.layout.size[2];
    const cuuint64_t rows = (cuuint64_t)pass.num_lattice_rows;
    const boxed_array<4> array = {CU_TENSOR_MAP_DATA_TYPE_UINT16,
                                  sorted.numbers,
                                  {(cuuint64_t)pass.pitch, slices, rows, 2},
                                  {row, row * slices, row * slices * rows},
                                  {(cuuint32_t)pass.width, (cuuint32_t)pass.slices, 1, 2}};
    return array.describe(map);
}

template <band_kernels Kernels, int Height>
cudaError_t launch_height(const lr_cuda_bands &pass, const lr_cuda_images &images)
{
    const auto kernel = bands<Kernels, Height>;
    const int slices = Height * LR_CUDA_BAND_SLICES;
    const int layers = (pass.layout.size[2] + slices - 1) / slices;
    CUtensorMap source;
    cudaError_t error = describe_sorted(pass, images.sorted, &source);
    if (error == cudaSuccess) {
        static std::atomic<uint64_t> devices;
        error = allow_shared_room(kernel, lr_cuda_shared_room(), devices);
    }
    if (error != cudaSuccess) {
        return error;
    }
    overlapping_launch launch(kernel, {(unsigned)pass.num_tiles, (unsigned)layers}, WARPS * LANES);
    launch.config.dynamicSmemBytes = (size_t)pass.bytes;
    launch.config.stream = static_cast<cudaStream_t>(images.stream);
    launch.config.numAttrs = images.stream != nullptr ? 0 : launch.config.numAttrs;
    return cudaLaunchKernelEx(&launch.config, kernel, pass, source, images.sorted, images.target);
}

template <band_kernels Kernels>
cudaError_t launch_bands(const lr_cuda_bands &pass, const lr_cuda_images &images)
{
    return pass.height == 1   ? launch_height<Kernels, 1>(pass, images)
           : pass.height == 2 ? launch_height<Kernels, 2>(pass, images)
                              : launch_height<Kernels, 3>(pass, images);
}

cudaError_t launch_sort(const lr_cuda_bands &pass, const lr_cuda_images &images)
{
    const int pieces = pass.pitch / LR_CUDA_OCTET * pass.layout.quads;
    const int threads = min((pieces + LANES - 1) / LANES * LANES, (int)MOST_SORT_THREADS);
    overlapping_launch launch(sort_rows, (unsigned)pass.num_lattice_rows, (unsigned)threads);
    launch.config.stream = static_cast<cudaStream_t>(images.stream);
    launch.config.numAttrs = images.stream != nullptr ? 0 : launch.config.numAttrs;
    return cudaLaunchKernelEx(&launch.config, sort_rows, pass, images.source, images.sorted);
}

} // namespace

bool lr_cuda_bands_work(void)
{
    return is_for_hopper(bands<BAND_ONE, 3>);
}

int lr_cuda_launch_bands(bool forward, const lr_cuda_bands *pass, const lr_cuda_images *images)
{
    const cudaError_t error = launch_sort(*pass, *images);
    return error != cudaSuccess  ? error
           : pass->num_rows == 1 ? launch_bands<BAND_ONE>(*pass, *images)
           : forward             ? launch_bands<BAND_FORWARD>(*pass, *images)
                                 : launch_bands<BAND_BACK>(*pass, *images);
}

int lr_cuda_launch_band_fill(bool forward, const lr_cuda_bands *pass, const lr_cuda_band_fill *fill)
{
    constexpr int group = 256;
    const auto blocks = [](int64_t count) { return (unsigned)((count + group - 1) / group); };
    const int64_t values = (int64_t)fill->num_offsets * pass->num_rows;
    const int64_t weights = (int64_t)(fill->num_steps + 1) * LR_CUDA_BAND_ROWS * LR_CUDA_BAND_BLOCK;
    const int64_t entries = (int64_t)pass->num_spans * pass->num_rows * pass->span_pitch;
    const int64_t kernels = (int64_t)pass->num_lattice_rows * pass->kernel_pitch;
    const cudaError_t error = cudaMemsetAsync(fill->peak, 0, sizeof(float), nullptr);
    if (error != cudaSuccess) {
        return error;
    }
    find_largest<<<blocks(values < 65536 ? values : 65536), group>>>(fill->values, values,
                                                                     fill->peak);
    if (pass->num_rows == 1) {
        band_weights<<<blocks(weights), group>>>(*pass, *fill, forward);
    } else {
        band_spans<<<blocks(entries), group>>>(*pass, *fill, forward);
        band_kernel_map<<<blocks(kernels), group>>>(*pass, *fill);
    }
    return cudaGetLastError();
}
