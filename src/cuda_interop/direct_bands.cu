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

__device__ inline int bits_of(float number)
{
    return __float_as_int(number);
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

enum { LANES = 32, WARPS = LR_CUDA_BAND_ROWS, OCTETS = LR_CUDA_BAND_OCTETS };

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

/* A load that stays where it is: ahead of its use. */
__device__ inline uint32_t load_ahead(const int32_t *from)
{
    uint32_t number;
    asm volatile("ld.global.nc.b32 %0, [%1];" : "=r"(number) : "l"(from));
    return number;
}

/* sums += sources weights, the weights of 16 sources by 8 outputs. */
__device__ inline void add_product(float (&sums)[4], const band_sources &sources,
                                   const uint32_t (&weights)[2])
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(sources.parts[0]), "r"(sources.parts[1]), "r"(sources.parts[2]),
          "r"(sources.parts[3]), "r"(weights[0]), "r"(weights[1]));
}

/* A lane's part of a warp's products. Of an octet's outputs a lane has the weights of output lane / 4
 * and sources 2 (lane % 4) and the next one of both halves, and sums of outputs 2 (lane % 4) and the
 * next one for slices lane / 4 and that + 8. */
template <int Height> struct band_products {
    static constexpr bool LOADS_AHEAD = Height < LR_CUDA_BAND_HEIGHT; /* registers have the room */
    float sums[Height][OCTETS][4], slab_sums[Height][OCTETS][4];
    int lane;
    float weight_unit;
    int own_kernels[OCTETS];      /* of the lane's output, on the way back */
    float profiles[2][OCTETS][2]; /* of both halves */
    struct {
        band_sources high[Height], low[Height];
    } sources[LOADS_AHEAD ? 2 : 1];
    struct {
        uint32_t high[OCTETS][2], low[OCTETS][2];
    } weights
        [2]; /* where kernels vary, of the step at hand; and what weights are made of, of the next */
    uint32_t addresses[2]; /* of the row of sources that this lane tells */

    __device__ void clear(float (&all)[Height][OCTETS][4])
    {
#pragma unroll
        for (int m = 0; m < Height; m++) {
#pragma unroll
            for (int j = 0; j < OCTETS; j++) {
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    all[m][j][i] = 0;
                }
            }
        }
    }

    __device__ void begin()
    {
        clear(slab_sums);
    }

    __device__ void end(float unit)
    {
#pragma unroll
        for (int m = 0; m < Height; m++) {
#pragma unroll
            for (int j = 0; j < OCTETS; j++) {
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    sums[m][j][i] += unit * slab_sums[m][j][i];
                }
            }
        }
    }

    /* Those of the lane's two sources, for its output in each octet. */
    template <band_kernels Kernels>
    __device__ void load_profiles(const lr_cuda_bands &pass, const band_slab &slab, int octet,
                                  int half)
    {
        const int source = 2 * (lane % 4), place = LR_CUDA_OCTET * octet + source - lane / 4;
        const float *of[2] = {nullptr, nullptr};
        if (Kernels == BAND_FORWARD) {
            const int l =
                (slab.octet + octet - __ldg(pass.bases + slab.row).x) * LR_CUDA_OCTET + source;
            of[0] = band_profile(pass, slab.offset, sorted_kernel(pass, slab.row, l));
            of[1] = band_profile(pass, slab.offset, sorted_kernel(pass, slab.row, l + 1));
        }
#pragma unroll
        for (int j = 0; j < OCTETS; j++) {
            if (Kernels == BAND_BACK) {
                of[0] = of[1] = band_profile(pass, slab.offset, own_kernels[j]);
            }
            profiles[half][j][0] = __ldg(of[0] + place - LR_CUDA_OCTET * j);
            profiles[half][j][1] = __ldg(of[1] + place - LR_CUDA_OCTET * j + 1);
        }
    }

    template <int Buffer>
    __device__ void load_weights(const lr_cuda_bands &pass, const lr_cuda_band_step &step, int half)
    {
        const int32_t *first = pass.weights + (step.weights[half] * 2 * LR_CUDA_BAND_BLOCK + lane);
#pragma unroll
        for (int j = 0; j < OCTETS; j++) {
            weights[Buffer].high[j][half] = load_ahead(first - j * 2 * LR_CUDA_BAND_BLOCK);
            weights[Buffer].low[j][half] =
                load_ahead(first - j * 2 * LR_CUDA_BAND_BLOCK + LR_CUDA_BAND_BLOCK);
        }
    }

    template <int Buffer> __device__ void load_slices(const lr_cuda_bands &pass)
    {
        const uint32_t row_bytes = (uint32_t)pass.width * 2;
        const uint32_t plane_bytes = (uint32_t)pass.slices * row_bytes;
#pragma unroll
        for (int m = 0; m < Height; m++) {
            const uint32_t address = addresses[Buffer] + m * LR_CUDA_BAND_SLICES * row_bytes;
            load_sources(sources[Buffer].high[m], address);
            load_sources(sources[Buffer].low[m], address + plane_bytes);
        }
    }

    template <band_kernels Kernels, int Buffer>
    __device__ void prepare(const lr_cuda_bands &pass, const lr_cuda_band_step &step,
                            const band_slab &slab)
    {
        constexpr int to = Kernels == BAND_ONE ? Buffer : 1;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            if (Kernels != BAND_ONE && (step.fresh & (1 << half)) != 0) {
                load_profiles<Kernels>(pass, slab, step.octet[half], half);
            }
            load_weights<to>(pass, step, half);
        }
        addresses[Buffer] = (uint32_t)__cvta_generic_to_shared(slab.numbers) +
                            16 * (uint32_t)(lane < 16 ? step.source[0] : step.source[1]) +
                            (uint32_t)(lane % 16) * (uint32_t)pass.width * 2;
        if constexpr (LOADS_AHEAD) {
            load_slices<Buffer>(pass);
        }
    }

    template <band_kernels Kernels> __device__ void settle()
    {
        if constexpr (Kernels == BAND_ONE) {
            return;
        }
#pragma unroll
        for (int j = 0; j < OCTETS; j++) {
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const split_pair halves =
                    split(__uint_as_float(weights[1].high[j][half]) * profiles[half][j][0],
                          __uint_as_float(weights[1].low[j][half]) * profiles[half][j][1]);
                weights[0].high[j][half] = halves.high;
                weights[0].low[j][half] = halves.low;
            }
        }
    }

    /* sums of some octets += sources times weights. */
    template <int First, int Count>
    __device__ void add_products(const band_sources (&from)[Height],
                                 const uint32_t (&by)[OCTETS][2])
    {
#pragma unroll
        for (int j = First; j < First + Count; j++) {
#pragma unroll
            for (int m = 0; m < Height; m++) {
                add_product(slab_sums[m][j], from[m], by[j]);
            }
        }
    }

    template <int Sources, int Weights, int First, int Count> __device__ void multiply_octets()
    {
        add_products<First, Count>(sources[Sources].high, weights[Weights].high);
        add_products<First, Count>(sources[Sources].high, weights[Weights].low);
        add_products<First, Count>(sources[Sources].low, weights[Weights].high);
    }

    /* Octets that need none have weights of zero. */
    template <band_kernels Kernels, int Buffer>
    __device__ void multiply(const lr_cuda_bands &pass, int needed)
    {
        constexpr int sources = LOADS_AHEAD ? Buffer : 0,
                      weights = Kernels == BAND_ONE ? Buffer : 0;
        if constexpr (!LOADS_AHEAD) {
            addresses[0] = addresses[Buffer];
            load_slices<0>(pass);
        }
        switch (needed) {
        case 0:
            break;
        case 1:
            multiply_octets<sources, weights, 0, 1>();
            break;
        case 2:
            multiply_octets<sources, weights, 1, 1>();
            break;
        case 3:
            multiply_octets<sources, weights, 0, 2>();
            break;
        case 4:
            multiply_octets<sources, weights, 2, 1>();
            break;
        case 6:
            multiply_octets<sources, weights, 1, 2>();
            break;
        case 7:
            multiply_octets<sources, weights, 0, 3>();
            break;
        case 8:
            multiply_octets<sources, weights, 3, 1>();
            break;
        case 12:
            multiply_octets<sources, weights, 2, 2>();
            break;
        case 14:
            multiply_octets<sources, weights, 1, 3>();
            break;
        default:
            multiply_octets<sources, weights, 0, 4>();
        }
    }

    /* target: of the column's first texel. */
    __device__ void store_column(const lr_cuda_bands &pass, int slice, int j, int side,
                                 float4 *texels)
    {
        float *column = reinterpret_cast<float *>(texels);
#pragma unroll
        for (int m = 0; m < Height; m++) {
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const int z = slice + m * LR_CUDA_BAND_SLICES + lane / 4 + 8 * i;
                if (z < pass.layout.size[2]) {
                    column[z] = sums[m][j][2 * i + side];
                }
            }
        }
    }

    __device__ void store(const lr_cuda_bands &pass, const band_block &block, int warp,
                          float4 *target)
    {
#pragma unroll
        for (int j = 0; j < OCTETS; j++) {
#pragma unroll
            for (int side = 0; side < 2; side++) {
                const int l = (block.octet + j) * LR_CUDA_OCTET + 2 * (lane % 4) + side;
                const int column = band_column(pass, l, block.row + warp);
                if (column >= 0) {
                    store_column(pass, block.slice, j, side,
                                 target + pass.layout.margin[0] +
                                     (int64_t)pass.layout.extent[0] * column);
                }
            }
        }
    }
};

/* A block's shared memory. Slab c is in slot c % depth. */
struct band_room {
    uint64_t *is_there, *is_free; /* [depth] */
    unsigned char *slabs;
};

__device__ inline void bring_slab(const lr_cuda_bands &pass, const band_block &block,
                                  const band_room &room, const CUtensorMap *source, int c, int slot)
{
    int32_t begin[3];
    slab_begin(pass, block, c, begin);
    const int32_t at[4] = {begin[0], begin[1], begin[2], 0};
    expect_bytes(room.is_there + slot, 2 * pass.slices * pass.width * (int)sizeof(uint16_t));
    copy_box(room.slabs + slot * pass.slab_bytes, source, at, room.is_there + slot);
}

/* Slabs below `end`, each once all warps are through with the one that it replaces. For one warp. */
__device__ inline void bring_slabs(const lr_cuda_bands &pass, const band_block &block,
                                   const band_room &room, const CUtensorMap *source, int end,
                                   int &coming, ring_place &front)
{
    for (; coming < min(pass.num_slabs, end); coming++, front = next_place(pass.depth, front)) {
        if (front.round > 0) {
            wait_for(room.is_free + front.slot, front.round - 1);
        }
        if (is_elected()) {
            bring_slab(pass, block, room, source, coming, front.slot);
        }
    }
}

template <band_kernels Kernels, int Height>
__device__ inline void gather_bands(const lr_cuda_bands &pass, const band_block &block,
                                    const band_room &room, const CUtensorMap *source,
                                    const lr_cuda_band_source &sorted, int warp,
                                    band_products<Height> &products)
{
    const int needed = same_in_warp(octets_in_grid(pass, block, warp));
    ring_place here = {0, 0}, front = {0, 0};
    int coming = 0;
    if (warp == 0) {
        bring_slabs(pass, block, room, source, pass.depth - 1, coming, front);
    }
    for (int c = 0; c < pass.num_slabs; c++, here = next_place(pass.depth, here)) {
        if (warp == 0) {
            bring_slabs(pass, block, room, source, c + pass.depth, coming, front);
        }
        wait_for(room.is_there + here.slot, here.round);
        gather_band<Kernels>(
            pass, block, sorted, c, warp, needed,
            reinterpret_cast<const uint16_t *>(room.slabs + here.slot * pass.slab_bytes), products);
        __syncwarp();
        if (is_elected()) {
            arrive_at(room.is_free + here.slot);
        }
    }
}

/* The kernels of a lane's outputs. */
template <int Height>
__device__ inline void find_own_kernels(const lr_cuda_bands &pass, const band_block &block,
                                        int warp, band_products<Height> &products)
{
    const int row = sorted_row(pass, block.row + warp);
    const int base = row < 0 ? 0 : __ldg(pass.bases + row).x;
#pragma unroll
    for (int j = 0; j < OCTETS; j++) {
        products.own_kernels[j] =
            sorted_kernel(pass, row, (block.octet + j - base) * LR_CUDA_OCTET + products.lane / 4);
    }
}

#endif

enum { BARRIER_BYTES = 128 };

template <band_kernels Kernels, int Height>
__global__ void __launch_bounds__(WARPS *LANES, 2)
    bands(const __grid_constant__ lr_cuda_bands pass, const __grid_constant__ CUtensorMap source,
          const __grid_constant__ lr_cuda_band_source sorted, float4 *target)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    extern __shared__ __align__(128) unsigned char shared[];
    uint64_t *barriers = reinterpret_cast<uint64_t *>(shared);
    const band_room room = {barriers, barriers + pass.depth, shared + BARRIER_BYTES};
    const int2 tile = __ldg(pass.tiles + blockIdx.x);
    const band_block block = {same_in_warp(tile.x), same_in_warp(tile.y),
                              (int)blockIdx.y * Height * LR_CUDA_BAND_SLICES};
    const int warp = same_in_warp((int)threadIdx.x / LANES);
    let_next_kernel_begin();
    if (threadIdx.x == 0) {
        for (int k = 0; k < pass.depth; k++) {
            init_barrier(room.is_there + k, 1);
            init_barrier(room.is_free + k, WARPS);
        }
        publish_barriers();
    }
    __syncthreads();
    band_products<Height> products;
    products.lane = (int)threadIdx.x % LANES;
    products.weight_unit = unit_of(__ldg(pass.peak));
    products.clear(products.sums);
    if (Kernels == BAND_BACK) {
        find_own_kernels(pass, block, warp, products);
    }
    wait_for_last_kernel(); /* it sorted the source */
    gather_bands<Kernels>(pass, block, room, &source, sorted, warp, products);
    products.store(pass, block, warp, target);
#endif
}

/* --- sorting --- */

enum { SORT_THREADS = 256 };

/* The largest of a block's numbers, none of which is negative. */
__device__ inline float largest_in_block(float number)
{
    __shared__ float largest[SORT_THREADS / LANES];
    for (int lanes = LANES / 2; lanes > 0; lanes /= 2) {
        number = fmaxf(number, __shfl_xor_sync(0xffffffffu, number, lanes));
    }
    if (threadIdx.x % LANES == 0) {
        largest[threadIdx.x / LANES] = number;
    }
    __syncthreads();
    for (int k = 0; k < SORT_THREADS / LANES; k++) {
        number = fmaxf(number, largest[k]);
    }
    return number;
}

__global__ void __launch_bounds__(SORT_THREADS)
    sort_rows(const __grid_constant__ lr_cuda_bands pass, const float4 *source,
              const __grid_constant__ lr_cuda_band_source sorted)
{
    const int row = (int)blockIdx.x, thread = (int)threadIdx.x;
    let_next_kernel_begin();
    wait_for_last_kernel();
    const float peak = largest_in_block(find_peak(pass, source, row, thread, SORT_THREADS));
    sort_row(pass, source, sorted, row, peak, thread, SORT_THREADS);
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

__global__ void band_profiles(const __grid_constant__ lr_cuda_bands pass,
                              const __grid_constant__ lr_cuda_band_fill fill, bool forward)
{
    fill_band_profile(pass, fill, forward, (int64_t)blockIdx.x * blockDim.x + threadIdx.x);
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
        /* always the most: other threads launch the same kernel with more or less */
        error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     (int)lr_cuda_shared_room());
    }
    if (error != cudaSuccess) {
        return error;
    }
    overlapping_launch launch(kernel, {(unsigned)pass.num_tiles, (unsigned)layers}, WARPS * LANES);
    launch.config.dynamicSmemBytes = (size_t)pass.bytes;
    launch.config.stream = static_cast<cudaStream_t>(images.stream);
    return cudaLaunchKernelEx(&launch.config, kernel, pass, source, images.sorted, images.target);
}

template <band_kernels Kernels>
cudaError_t launch_bands(const lr_cuda_bands &pass, const lr_cuda_images &images)
{
    return pass.height == 1   ? launch_height<Kernels, 1>(pass, images)
           : pass.height == 2 ? launch_height<Kernels, 2>(pass, images)
           : pass.height == 3 ? launch_height<Kernels, 3>(pass, images)
                              : launch_height<Kernels, 4>(pass, images);
}

cudaError_t launch_sort(const lr_cuda_bands &pass, const lr_cuda_images &images)
{
    overlapping_launch launch(sort_rows, (unsigned)pass.num_lattice_rows, SORT_THREADS);
    launch.config.stream = static_cast<cudaStream_t>(images.stream);
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
    const int64_t weights = (int64_t)fill->num_blocks * LR_CUDA_BAND_BLOCK;
    const int64_t profiles = (int64_t)pass->num_offsets * pass->num_rows * pass->profile_pitch;
    const int64_t kernels = (int64_t)pass->num_lattice_rows * pass->pitch;
    const cudaError_t error = cudaMemsetAsync(fill->peak, 0, sizeof(float), nullptr);
    if (error != cudaSuccess) {
        return error;
    }
    find_largest<<<blocks(values < 65536 ? values : 65536), group>>>(fill->values, values,
                                                                     fill->peak);
    band_weights<<<blocks(weights), group>>>(*pass, *fill, forward);
    if (pass->num_rows > 1) {
        band_profiles<<<blocks(profiles), group>>>(*pass, *fill, forward);
        band_kernel_map<<<blocks(kernels), group>>>(*pass, *fill);
    }
    return cudaGetLastError();
}
