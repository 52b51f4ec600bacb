/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Kernels that gather by bands and sort the sources, and their launches. The device's tensor unit copies boxes of an
 * array into shared memory, where barriers count the copies. The unit needs compute capability 9.0. */
#include "cuda_interop/direct/bands_products.cuh"
#include "cuda_interop/direct/passes.h"
#include "cuda_interop/direct/sort.cuh"
#include "cuda_interop/overlap.cuh"

#include <cuda.h>
#include <cuda/ptx>
#include <cuda_runtime.h>

/* Tells the compiler that a number is the same in all lanes. */
__device__ inline int same_in_warp(int number)
{
    return __shfl_sync(0xffffffffu, number, 0);
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

/* True for exactly one lane of a warp, in a form that shows the compiler that only one lane is chosen. */
__device__ inline bool is_elected()
{
    uint32_t elected;
    asm volatile("{\n"
                 ".reg .pred chosen;\n"
                 "elect.sync _|chosen, 0xffffffff;\n"
                 "selp.u32 %0, 1, 0, chosen;\n"
                 "}"
                 : "=r"(elected));
    return elected != 0;
}

/* round: number of times that the barrier has completed so far. The waiting thread must have waited for each of these
 * completions. */
__device__ inline void wait_for(uint64_t *barrier, int round)
{
    while (!cuda::ptx::mbarrier_try_wait_parity(barrier, (uint32_t)(round & 1))) {
    }
}

#endif

/* A slot in a ring of slabs. round: how often the ring has been filled before. */
struct ring_place {
    int slot, round;
};

__device__ inline ring_place next_place(int depth, ring_place place)
{
    return place.slot + 1 < depth ? ring_place{place.slot + 1, place.round} : ring_place{0, place.round + 1};
}

/* --- gathers --- */

namespace
{

enum {
    LANES = 32,
    LONGS = 2 /* number of 64-bit words of an octet's slice; the tensor unit copies such words */
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

/* A block's shared memory. Slab c is in slot c % depth. */
struct band_room {
    uint64_t *is_there, *is_free; /* [depth] */
    band_slab *lists;             /* [warps][num_lists + 1]; the last entry's first step is the step after all lists */
    int2 *begins;                 /* [num_slabs]: first octet and row of each slab */
    unsigned char *slabs;
};

/* The slab that a block loads next, and its slot. */
struct ring_front {
    int coming;
    ring_place place;
};

/* Loads slabs below `end`. A slab is loaded once all warps have finished with the slab that it replaces. One warp
 * calls this. */
__device__ inline void bring_slabs(const lr_cuda_bands &pass, const band_block &block, const band_room &room,
                                   const CUtensorMap *source, int end, ring_front &front)
{
    namespace ptx = cuda::ptx;
    while (front.coming < min(pass.num_slabs, end)) {
        const int slot = front.place.slot;
        if (front.place.round > 0) wait_for(room.is_free + slot, front.place.round - 1);
        if (is_elected()) {
            uint64_t *barrier = room.is_there + slot;
            const int2 begin = room.begins[front.coming];
            const int32_t at[4] = {(block.slice + pass.low_slice) * LONGS, 0, begin.x, begin.y};
            const int bytes = pass.width * sorted_octet(pass.slices) * (int)sizeof(uint16_t);
            /* No other thread arrives at this barrier. From now on, the barrier waits for the bytes of the copy. */
            ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, barrier,
                                           (uint32_t)bytes);
            ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, room.slabs + slot * pass.slab_bytes,
                                      source, at, barrier);
        }
        front = {front.coming + 1, next_place(pass.depth, front.place)};
    }
}

__device__ inline void free_slot(const band_room &room, int slot)
{
    __syncwarp();
    if (is_elected()) cuda::ptx::mbarrier_arrive(room.is_free + slot);
}

/* Takes a warp through its slabs. The warp waits for each slab up to the last one for which it has a list, and
 * computes the products of slabs with a list. The warp need not free the slots of later slabs, because no slab replaces
 * these slabs. */
template <band_kernels Kernels, class Products>
__device__ inline void gather_bands(const lr_cuda_bands &pass, const band_block &block, const band_room &room,
                                    const CUtensorMap *source, ring_front &front, Products &products)
{
    const band_warp &warp = products.warp;
    const bool brings = warp.side == 0 && warp.pair == 0;
    const band_slab *lists = room.lists + (warp.pair * pass.sides + warp.side) * (pass.num_lists + 1);
    ring_place here = {0, 0};
    for (int c = 0; c < warp.pair * LR_CUDA_BAND_ROWS; c++, here = next_place(pass.depth, here)) {
        wait_for(room.is_there + here.slot, here.round); /* the slab may still be arriving, even if a later one has
                                                            arrived */
        free_slot(room, here.slot);
    }
    for (int d = 0; d < pass.num_lists; d++, here = next_place(pass.depth, here)) {
        if (brings) bring_slabs(pass, block, room, source, d + pass.depth, front);
        const band_slab slab = lists[d];
        const int after = lists[d + 1].first;
        wait_for(room.is_there + here.slot, here.round);
        if (slab.first < slab.end && slab.unit != 0) {
            gather_band<Kernels>(pass, slab,
                                 reinterpret_cast<const uint16_t *>(room.slabs + here.slot * pass.slab_bytes), after,
                                 products);
        }
        free_slot(room, here.slot);
    }
    if (brings) bring_slabs(pass, block, room, source, pass.num_slabs, front);
}

#endif

/* The largest number of threads of a block, and the smallest number of blocks for which a multiprocessor must have
 * registers. A crowded multiprocessor has more blocks, whose warps are slower. Blurring kernels that vary between
 * voxels need more registers. */
constexpr int most_threads(int height, bool crowded)
{
    return LANES * LR_CUDA_BAND_PAIRS *
           (height < LR_CUDA_BAND_HEIGHT && !crowded ? LR_CUDA_BAND_SIDES : LR_CUDA_BAND_FEW_SIDES);
}
constexpr int least_blocks(band_kernels kernels, int height, bool crowded)
{
    const bool is_low = height < LR_CUDA_BAND_HEIGHT;
    return crowded ? (is_low && kernels == BAND_ONE ? 5 : 4) : (is_low ? 2 : 3);
}

template <band_kernels Kernels, int Height, bool Crowded>
__global__ void __launch_bounds__(most_threads(Height, Crowded), least_blocks(Kernels, Height, Crowded))
    bands(const __grid_constant__ lr_cuda_bands pass, const __grid_constant__ CUtensorMap source,
          const __grid_constant__ lr_cuda_band_source sorted, float4 *target)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    extern __shared__ __align__(128) unsigned char shared[];
    const int thread = (int)threadIdx.x, threads = (int)blockDim.x, warp = same_in_warp(thread / LANES);
    const int2 tile = __ldg(pass.tiles + blockIdx.x);
    const band_block block = {same_in_warp(tile.x), same_in_warp(tile.y),
                              (int)blockIdx.y * Height * LR_CUDA_BAND_SLICES};
    const bool has_spots = pass.num_rows > 1;
    let_next_kernel_begin();

    /* Shared memory holds the lists of all warps. In a crowded block, it also holds the records of all steps, one more
     * record before the first step, and two more after the last step, because records are loaded ahead. */
    const int of_warp = pass.num_lists + 1, listed = pass.sides * LR_CUDA_BAND_PAIRS * of_warp;
    const int held = pass.held_steps > 0 ? pass.held_steps + 3 : 0;
    uint64_t *barriers = reinterpret_cast<uint64_t *>(shared);
    band_slab *lists = reinterpret_cast<band_slab *>(shared + LR_CUDA_BAND_BARRIERS);
    int4 *steps = reinterpret_cast<int4 *>(lists + listed), *spots = steps + held;
    int2 *begins = reinterpret_cast<int2 *>(has_spots ? spots + held : spots);
    const band_room room = {barriers, barriers + pass.depth, lists, begins, shared + pass.list_bytes};
    if (thread == 0) {
        for (int k = 0; k < pass.depth; k++) {
            cuda::ptx::mbarrier_init(room.is_there + k, 1u);
            cuda::ptx::mbarrier_init(room.is_free + k, (uint32_t)(threads / LANES));
        }
        cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster);
    }
    for (int k = thread; k < listed; k += threads) {
        const int d = k % of_warp;
        const int end = d == pass.num_lists ? __ldg(pass.lists + d - 1).y : 0;
        lists[k] = d == pass.num_lists ? band_slab{end, end, 0, 0}
                                       : band_slab_of(pass, block, band_warp_at(pass, block, k / of_warp), d);
    }
    for (int k = thread; k < held; k += threads) steps[k] = __ldg(reinterpret_cast<const int4 *>(pass.steps) + k);
    for (int k = thread; k < held - 1 && has_spots; k += threads) spots[k] = __ldg(pass.spots + k);
    for (int k = thread; k < pass.num_slabs; k += threads) {
        int32_t at[3];
        slab_begin(pass, block, k, at);
        begins[k] = make_int2(at[1], at[2]);
    }
    band_products<Height, Crowded> products;
    products.template start<Kernels>(pass, band_warp_at(pass, block, warp), thread % LANES);
    products.steps = Crowded ? steps : reinterpret_cast<const int4 *>(pass.steps);
    products.spots = Crowded ? spots : pass.spots;
    __syncthreads();
    wait_for_last_kernel(); /* the last kernel may have sorted the source, or read the target */

    ring_front front = {0, {0, 0}};
    if (warp == 0) bring_slabs(pass, block, room, &source, pass.depth - 1, front);
    for (int k = thread; k < listed; k += threads) {
        const int pair = band_warp_at(pass, block, k / of_warp).pair;
        lists[k].unit = slab_unit(pass, block, sorted, k % of_warp + pair * LR_CUDA_BAND_ROWS);
    }
    __syncthreads();
    gather_bands<Kernels>(pass, block, room, &source, front, products);
    products.flush();
    products.store(pass, block.slice, target);
#endif
}

/* --- tables --- */

/* Parts of a view's tables. In the kernels below, a block has view blockIdx.y and part blockIdx.z. */
enum band_filling_part { FILL_BACK, FILL_FORWARD, FILL_BOTH };

__global__ void band_weights(const lr_cuda_view_fill *views)
{
    const lr_cuda_view_fill &view = views[blockIdx.y];
    const bool forward = blockIdx.z == FILL_FORWARD;
    const lr_cuda_bands &pass = view.bands[forward];
    if (pass.num_tiles > 0 && pass.num_rows == 1)
        fill_band_weights(pass, view.band_fills[forward], forward, thread_number());
}

__global__ void band_spans_and_kernels(const lr_cuda_view_fill *views)
{
    const lr_cuda_view_fill &view = views[blockIdx.y];
    const bool forward = blockIdx.z == FILL_FORWARD;
    const lr_cuda_bands &pass = view.bands[forward];
    const lr_cuda_band_fill &fill = view.band_fills[forward];
    if (pass.num_tiles == 0 || pass.num_rows == 1) return;
    if (blockIdx.z == FILL_BOTH)
        fill_band_kernel(pass, fill, thread_number());
    else
        fill_band_span(pass, fill, forward, thread_number());
}

/* --- launches --- */

} // namespace

bool lr_cuda_bands_work(void)
{
    return is_for_hopper(bands<BAND_ONE, 3, false>);
}

int lr_cuda_launch_bands(bool forward, const lr_cuda_bands *pass, const lr_cuda_images *images)
{
    using band_kernel = void (*)(lr_cuda_bands, CUtensorMap, lr_cuda_band_source, float4 *);
    static const band_kernel kernels[3][2][LR_CUDA_BAND_HEIGHT] = {
        {{bands<BAND_ONE, 1, false>, bands<BAND_ONE, 2, false>, bands<BAND_ONE, 3, false>, bands<BAND_ONE, 4, false>},
         {bands<BAND_ONE, 1, true>, bands<BAND_ONE, 2, true>, bands<BAND_ONE, 3, true>, bands<BAND_ONE, 4, true>}},
        {{bands<BAND_BACK, 1, false>, bands<BAND_BACK, 2, false>, bands<BAND_BACK, 3, false>,
          bands<BAND_BACK, 4, false>},
         {bands<BAND_BACK, 1, true>, bands<BAND_BACK, 2, true>, bands<BAND_BACK, 3, true>, bands<BAND_BACK, 4, true>}},
        {{bands<BAND_FORWARD, 1, false>, bands<BAND_FORWARD, 2, false>, bands<BAND_FORWARD, 3, false>,
          bands<BAND_FORWARD, 4, false>},
         {bands<BAND_FORWARD, 1, true>, bands<BAND_FORWARD, 2, true>, bands<BAND_FORWARD, 3, true>,
          bands<BAND_FORWARD, 4, true>}}};
    static std::atomic<uint64_t> devices[3][2][LR_CUDA_BAND_HEIGHT];
    const int type = pass->num_rows == 1 ? BAND_ONE : forward ? BAND_FORWARD : BAND_BACK;
    const int crowded = pass->is_crowded != 0, height = pass->height;
    const band_kernel kernel = kernels[type][crowded][height - 1];
    const int slices = height * LR_CUDA_BAND_SLICES, layers = (pass->layout.size[2] + slices - 1) / slices;

    /* The driver's function, found without linking the driver's library; NULL if there is none. */
    using encode_tiled = decltype(&cuTensorMapEncodeTiled);
    static const encode_tiled encode = [] {
        void *found = nullptr;
        cudaDriverEntryPointQueryResult result;
        const cudaError_t error =
            cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result);
        const bool is_there = error == cudaSuccess && result == cudaDriverEntryPointSuccess;
        return is_there ? reinterpret_cast<encode_tiled>(found) : nullptr;
    }();
    /* Describes a sorted source to the tensor unit, fastest axis first. An octet has a run of longs with the high parts
     * of all slices, and then a run with the low parts. Elements of a box beyond the array are zero. */
    const cuuint64_t longs = (cuuint64_t)pass->layout.size[2] * LONGS, run = longs * sizeof(uint64_t);
    const cuuint64_t octets = (cuuint64_t)pass->pitch / LR_CUDA_OCTET;
    const cuuint64_t size[4] = {longs, 2, octets, (cuuint64_t)pass->num_lattice_rows};
    const cuuint64_t stride_bytes[3] = {run, 2 * run, 2 * run * octets};
    const cuuint32_t box[4] = {(cuuint32_t)pass->slices * LONGS, 2, (cuuint32_t)pass->width, 1},
                     steps[4] = {1, 1, 1, 1};
    CUtensorMap source;
    if (encode == nullptr) return cudaErrorNotSupported;
    if (encode(&source, CU_TENSOR_MAP_DATA_TYPE_UINT64, 4, images->sorted.numbers, size, stride_bytes, box, steps,
               CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
        return cudaErrorInvalidValue;

    const cudaError_t error = allow_shared_room(kernel, lr_cuda_shared_room(), devices[type][crowded][height - 1]);
    if (error != cudaSuccess) return error;
    overlapping_launch launch(kernel, {(unsigned)pass->num_tiles, (unsigned)layers},
                              (unsigned)(pass->sides * LR_CUDA_BAND_PAIRS * LANES));
    launch.config.dynamicSmemBytes = (size_t)pass->bytes;
    launch.go_beside(images->stream);
    lr_cuda_note_kernel(reinterpret_cast<const void *>(kernel), (int)launch.config.blockDim.x, pass->bytes);
    return cudaLaunchKernelEx(&launch.config, kernel, *pass, source, images->sorted, images->target);
}

int lr_cuda_launch_band_fills(const lr_cuda_view_fill *views, const lr_cuda_fill_sizes *sizes)
{
    const unsigned num_views = (unsigned)sizes->num_views;
    if (sizes->weights > 0)
        band_weights<<<dim3(groups_of(sizes->weights), num_views, FILL_BOTH), LR_CUDA_GROUP>>>(views);
    if (sizes->spans > 0) {
        const int64_t most = sizes->spans > sizes->kernels ? sizes->spans : sizes->kernels;
        band_spans_and_kernels<<<dim3(groups_of(most), num_views, FILL_BOTH + 1), LR_CUDA_GROUP>>>(views);
    }
    return cudaGetLastError();
}

/* --- sorting of sources --- */

namespace
{

enum {
    MOST_THREADS = 1024,
    FEW_THREADS = 128, /* for a stream next to other streams: small blocks fit between blocks of the other streams */
    MOST_SLICES = 128, /* largest number of slices that a group of threads takes at once */
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

/* The maximum of a block's numbers, which are not negative. */
__device__ inline float largest_in_block(float number)
{
    __shared__ unsigned largest[MOST_THREADS / LANES];
    const unsigned of_warp = __reduce_max_sync(0xffffffffu, __float_as_uint(number));
    if (threadIdx.x % LANES == 0) largest[threadIdx.x / LANES] = of_warp;
    __syncthreads();
    unsigned of_block = 0;
    for (unsigned k = 0; k < blockDim.x / LANES; k++) of_block = max(of_block, largest[k]);
    return __uint_as_float(of_block);
}

#endif

/* Each block sorts one row of the lattice. Kept: number of pieces (slices of an octet) that a thread holds in
   registers. */
template <int Kept, int Threads>
__global__ void __launch_bounds__(Threads, Threads == MOST_THREADS ? 2 : 8)
    sort_rows(const __grid_constant__ lr_cuda_bands pass, const float4 *source,
              const __grid_constant__ lr_cuda_band_source sorted, sort_threads threads)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    const int row = (int)blockIdx.x;
    const float *numbers = reinterpret_cast<const float *>(source);
    row_sorter<Kept> own;
    let_next_kernel_begin();
    own.start(pass, sorted, row, threads, (int)threadIdx.x);
    wait_for_last_kernel();
    float peak = largest_in_block(own.load(numbers));
    if (!(peak < INFINITY)) {
        __syncthreads();
        peak = largest_in_block(own.look_again(numbers));
    }
    own.store(pass, numbers, sorted, peak);
    if (threadIdx.x == 0) sorted.units[row] = unit_of(peak);
#endif
}

} // namespace

int lr_cuda_launch_sort(const lr_cuda_bands *pass, const lr_cuda_images *images)
{
    const bool is_beside = images->stream != nullptr;
    const auto kernel = is_beside ? sort_rows<4, FEW_THREADS> : sort_rows<1, MOST_THREADS>;
    const int most = is_beside ? FEW_THREADS : MOST_THREADS, pieces = is_beside ? 4 : 1;
    const int octets = pass->pitch / LR_CUDA_OCTET, slices = min(pass->layout.size[2], MOST_SLICES);
    const int groups = max(1, min((octets + pieces - 1) / pieces, most / slices));
    const int threads = (slices * groups + LANES - 1) / LANES * LANES;
    overlapping_launch launch(kernel, (unsigned)pass->num_lattice_rows, (unsigned)threads);
    launch.go_ahead_of(images->stream);
    return cudaLaunchKernelEx(&launch.config, kernel, *pass, images->source, images->sorted,
                              sort_threads{slices, groups});
}
