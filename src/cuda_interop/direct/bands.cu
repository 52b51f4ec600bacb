/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Gathers by bands, and the sorting of their sources: kernels over bands.cuh, and their launches. */
#include "cuda_interop/direct/bands_products.cuh"
#include "cuda_interop/direct/passes.h"
#include "cuda_interop/direct/sort.cuh"
#include "cuda_interop/overlap.cuh"

#include <cuda.h>
#include <cuda/ptx>
#include <cuda_runtime.h>

/* --- boxes of an array that the device's tensor unit copies into shared memory, and the barriers there that count
 * them: from compute capability 9.0 on. And what warps that make such copies agree on --- */

/* Tells the compiler that a number is the same in all lanes. */
__device__ inline int same_in_warp(int number)
{
    return __shfl_sync(0xffffffffu, number, 0);
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

/* True for one lane of a warp, in a way that the compiler knows it is one. */
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

/* round: completions of the barrier so far, all of which the waiting thread must have seen. */
__device__ inline void wait_for(uint64_t *barrier, int round)
{
    while (!cuda::ptx::mbarrier_try_wait_parity(barrier, (uint32_t)(round & 1))) {
    }
}

__device__ inline void arrive_at(uint64_t *barrier)
{
    cuda::ptx::mbarrier_arrive(barrier);
}

/* The barrier's only arrival, which the bytes of copies follow. */
__device__ inline void expect_bytes(uint64_t *barrier, int bytes)
{
    cuda::ptx::mbarrier_arrive_expect_tx(cuda::ptx::sem_release, cuda::ptx::scope_cta, cuda::ptx::space_shared, barrier,
                                         (uint32_t)bytes);
}

template <int Dimensions>
__device__ inline void copy_box(void *target, const CUtensorMap *source, const int32_t (&at)[Dimensions],
                                uint64_t *barrier)
{
    cuda::ptx::cp_async_bulk_tensor(cuda::ptx::space_cluster, cuda::ptx::space_global, target, source, at, barrier);
}

__device__ inline void init_barrier(uint64_t *barrier, int arrivals)
{
    cuda::ptx::mbarrier_init(barrier, (uint32_t)arrivals);
}

/* Called after barriers were made and before copies use them. */
__device__ inline void publish_barriers()
{
    cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster);
}

#endif

/* A place in a ring of slabs. */
struct ring_place {
    int slot, round;
};

__device__ inline ring_place next_place(int depth, ring_place place)
{
    return place.slot + 1 < depth ? ring_place{place.slot + 1, place.round} : ring_place{0, place.round + 1};
}

using encode_tiled = decltype(&cuTensorMapEncodeTiled);

/* The driver's function, found without linking its library. NULL: there is none. */
inline encode_tiled find_encode_tiled()
{
    void *found = nullptr;
    cudaDriverEntryPointQueryResult result;
    const cudaError_t error =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result);
    return error == cudaSuccess && result == cudaDriverEntryPointSuccess ? reinterpret_cast<encode_tiled>(found)
                                                                         : nullptr;
}

/* An array as the tensor unit reads it, fastest axis first. A box is zero beyond the array. */
template <int Dimensions> struct boxed_array {
    CUtensorMapDataType type;
    const void *first;
    cuuint64_t size[Dimensions];
    cuuint64_t stride_bytes[Dimensions - 1];
    cuuint32_t box[Dimensions];

    cudaError_t describe(CUtensorMap *map) const
    {
        static const encode_tiled encode = find_encode_tiled();
        cuuint32_t steps[Dimensions];
        for (cuuint32_t &step : steps) step = 1;
        if (encode == nullptr) return cudaErrorNotSupported;
        return encode(map, type, Dimensions, const_cast<void *>(first), size, stride_bytes, box, steps,
                      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS
                   ? cudaSuccess
                   : cudaErrorInvalidValue;
    }
};

/* --- gathers --- */

namespace
{

enum {
    LANES = 32,
    LONGS = 2 /* numbers of an octet's slice, as the tensor unit copies them */
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

/* A block's shared memory. Slab c is in slot c % depth. */
struct band_room {
    uint64_t *is_there, *is_free; /* [depth] */
    band_slab *lists;             /* [warps][num_lists + 1]: with the first step of what comes next */
    int4 *steps, *spots;          /* [count_held]: as the pass's */
    int2 *begins;                 /* [num_slabs]: octet and row that each begins with */
    unsigned char *slabs;
};

/* Records of steps: one comes before all, and two after them are looked ahead to. */
__device__ inline int count_held(const lr_cuda_bands &pass)
{
    return pass.held_steps > 0 ? pass.held_steps + 3 : 0;
}

/* List entries of all warps. */
__device__ inline int count_listed(const lr_cuda_bands &pass)
{
    return pass.sides * LR_CUDA_BAND_PAIRS * (pass.num_lists + 1);
}

__device__ inline band_room band_room_at(const lr_cuda_bands &pass, unsigned char *shared)
{
    uint64_t *barriers = reinterpret_cast<uint64_t *>(shared);
    band_slab *lists = reinterpret_cast<band_slab *>(shared + LR_CUDA_BAND_BARRIERS);
    int4 *steps = reinterpret_cast<int4 *>(lists + count_listed(pass));
    int4 *spots = steps + count_held(pass);
    int4 *end = pass.num_rows > 1 ? spots + count_held(pass) : spots;
    return {
        barriers, barriers + pass.depth, lists, steps, spots, reinterpret_cast<int2 *>(end), shared + pass.list_bytes};
}

/* The owner of a slab entry of a block's lists. */
struct list_entry {
    band_warp warp;
    int d; /* num_lists: what comes after its last list */
};

__device__ inline list_entry list_entry_at(const lr_cuda_bands &pass, const band_block &block, int k)
{
    const int of_warp = pass.num_lists + 1;
    return {band_warp_at(pass, block, k / of_warp), k % of_warp};
}

__device__ inline band_slab load_slab(const lr_cuda_bands &pass, const band_block &block, int k)
{
    const list_entry entry = list_entry_at(pass, block, k);
    if (entry.d == pass.num_lists) {
        const int end = __ldg(pass.lists + entry.d - 1).y;
        return {end, end, 0, 0};
    }
    return band_slab_of(pass, block, entry.warp, entry.d);
}

/* A thread's share of the lists, as far as tables go. */
__device__ inline void load_lists(const lr_cuda_bands &pass, const band_block &block, const band_room &room)
{
    const int thread = (int)threadIdx.x, threads = (int)blockDim.x, held = count_held(pass);
    for (int k = thread; k < count_listed(pass); k += threads) room.lists[k] = load_slab(pass, block, k);
    for (int k = thread; k < held; k += threads) room.steps[k] = __ldg(reinterpret_cast<const int4 *>(pass.steps) + k);
    for (int k = thread; k < held - 1 && pass.num_rows > 1; k += threads) room.spots[k] = __ldg(pass.spots + k);
    for (int k = thread; k < pass.num_slabs; k += threads) {
        int32_t at[3];
        slab_begin(pass, block, k, at);
        room.begins[k] = make_int2(at[1], at[2]);
    }
}

/* Called once a source may be read. */
__device__ inline void load_units(const lr_cuda_bands &pass, const band_block &block, const lr_cuda_band_source &sorted,
                                  const band_room &room)
{
    for (int k = (int)threadIdx.x; k < count_listed(pass); k += (int)blockDim.x) {
        const list_entry entry = list_entry_at(pass, block, k);
        room.lists[k].unit = slab_unit(pass, block, sorted, slab_of(entry.warp.pair, entry.d));
    }
}

/* Called by one thread. */
__device__ inline void init_barriers(const lr_cuda_bands &pass, const band_room &room)
{
    for (int k = 0; k < pass.depth; k++) {
        init_barrier(room.is_there + k, 1);
        init_barrier(room.is_free + k, (int)blockDim.x / LANES);
    }
    publish_barriers();
}

__device__ inline void bring_slab(const lr_cuda_bands &pass, const band_block &block, const band_room &room,
                                  const CUtensorMap *source, int c, int slot)
{
    const int2 begin = room.begins[c];
    const int32_t at[4] = {(block.slice + pass.low_slice) * LONGS, 0, begin.x, begin.y};
    expect_bytes(room.is_there + slot, pass.width * sorted_octet(pass.slices) * (int)sizeof(uint16_t));
    copy_box(room.slabs + slot * pass.slab_bytes, source, at, room.is_there + slot);
}

/* The slab that a block loads next, and its slot. */
struct ring_front {
    int coming;
    ring_place place;
};

/* Loads slabs below `end`, each once all warps are through with the slab that it replaces. Called by one warp. */
__device__ inline void bring_slabs(const lr_cuda_bands &pass, const band_block &block, const band_room &room,
                                   const CUtensorMap *source, int end, ring_front &front)
{
    while (front.coming < min(pass.num_slabs, end)) {
        if (front.place.round > 0) wait_for(room.is_free + front.place.slot, front.place.round - 1);
        if (is_elected()) bring_slab(pass, block, room, source, front.coming, front.place.slot);
        front = {front.coming + 1, next_place(pass.depth, front.place)};
    }
}

__device__ inline void free_slot(const band_room &room, int slot)
{
    __syncwarp();
    if (is_elected()) arrive_at(room.is_free + slot);
}

/* A warp's slabs: it waits for all up to the last that it has a list for, and has work in those that it
 * has lists for. The slots of those after that are not used again. */
template <band_kernels Kernels, class Products>
__device__ inline void gather_bands(const lr_cuda_bands &pass, const band_block &block, const band_room &room,
                                    const CUtensorMap *source, ring_front &front, Products &products)
{
    const band_warp &warp = products.warp;
    const bool brings = warp.side == 0 && warp.pair == 0;
    const band_slab *lists = room.lists + (warp.pair * pass.sides + warp.side) * (pass.num_lists + 1);
    ring_place here = {0, 0};
    for (int c = 0; c < slab_of(warp.pair, 0); c++, here = next_place(pass.depth, here)) {
        wait_for(room.is_there + here.slot, here.round); /* later ones may come before them */
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

/* Threads of a block, and blocks that a multiprocessor has registers for. Crowded: more blocks, each warp of which is
 * slower; kernels that vary need more registers. */
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
    const band_room room = band_room_at(pass, shared);
    const int thread = (int)threadIdx.x, warp = same_in_warp(thread / LANES);
    const int2 tile = __ldg(pass.tiles + blockIdx.x);
    const band_block block = {same_in_warp(tile.x), same_in_warp(tile.y),
                              (int)blockIdx.y * Height * LR_CUDA_BAND_SLICES};
    let_next_kernel_begin();
    if (thread == 0) init_barriers(pass, room);
    load_lists(pass, block, room);
    band_products<Height, Crowded> products;
    products.start(pass, band_warp_at(pass, block, warp), thread % LANES);
    products.steps = Crowded ? room.steps : reinterpret_cast<const int4 *>(pass.steps);
    products.spots = Crowded ? room.spots : pass.spots;
    if (Kernels != BAND_ONE) products.template find_kernels<Kernels>(pass);
    __syncthreads();
    wait_for_last_kernel(); /* it may have sorted the source, or read the target */
    ring_front front = {0, {0, 0}};
    if (warp == 0) bring_slabs(pass, block, room, &source, pass.depth - 1, front);
    load_units(pass, block, sorted, room);
    __syncthreads();
    gather_bands<Kernels>(pass, block, room, &source, front, products);
    products.flush();
    products.store(pass, block.slice, target);
#endif
}

/* --- tables --- */

/* Blocks: a view each along y; along z back, forward, and the part that both share. */
enum band_filling_part { FILL_BACK, FILL_FORWARD, FILL_BOTH };

struct band_filling {
    const lr_cuda_bands &pass;
    const lr_cuda_band_fill &fill;
    band_filling_part part;
    int64_t thread;
};

__device__ inline band_filling band_filling_of(const lr_cuda_view_fill *views)
{
    const lr_cuda_view_fill &view = views[blockIdx.y];
    const unsigned part = blockIdx.z, way = part == FILL_FORWARD ? 1 : 0;
    return {view.bands[way], view.band_fills[way], (band_filling_part)part,
            (int64_t)blockIdx.x * blockDim.x + threadIdx.x};
}

__device__ inline bool has_weights(const lr_cuda_bands &pass)
{
    return pass.num_tiles > 0 && pass.num_rows == 1;
}

__device__ inline bool has_spans(const lr_cuda_bands &pass)
{
    return pass.num_tiles > 0 && pass.num_rows > 1;
}

__global__ void band_weights(const lr_cuda_view_fill *views)
{
    const band_filling own = band_filling_of(views);
    if (has_weights(own.pass)) fill_band_weights(own.pass, own.fill, own.part == FILL_FORWARD, own.thread);
}

__global__ void band_spans_and_kernels(const lr_cuda_view_fill *views)
{
    const band_filling own = band_filling_of(views);
    if (!has_spans(own.pass)) return;
    if (own.part == FILL_BOTH)
        fill_band_kernel(own.pass, own.fill, own.thread);
    else
        fill_band_span(own.pass, own.fill, own.part == FILL_FORWARD, own.thread);
}

/* --- launches --- */

/* An octet's slices as one run of longs, of high halves and of low ones. */
cudaError_t describe_sorted(const lr_cuda_bands &pass, const lr_cuda_band_source &sorted, CUtensorMap *map)
{
    const cuuint64_t longs = (cuuint64_t)pass.layout.size[2] * LONGS;
    const cuuint64_t octets = (cuuint64_t)pass.pitch / LR_CUDA_OCTET;
    const cuuint64_t run = longs * sizeof(uint64_t);
    const boxed_array<4> array = {CU_TENSOR_MAP_DATA_TYPE_UINT64,
                                  sorted.numbers,
                                  {longs, 2, octets, (cuuint64_t)pass.num_lattice_rows},
                                  {run, 2 * run, 2 * run * octets},
                                  {(cuuint32_t)pass.slices * LONGS, 2, (cuuint32_t)pass.width, 1}};
    return array.describe(map);
}

template <band_kernels Kernels, int Height, bool Crowded>
cudaError_t launch_height(const lr_cuda_bands &pass, const lr_cuda_images &images)
{
    const auto kernel = bands<Kernels, Height, Crowded>;
    const int slices = Height * LR_CUDA_BAND_SLICES;
    const int layers = (pass.layout.size[2] + slices - 1) / slices;
    CUtensorMap source;
    cudaError_t error = describe_sorted(pass, images.sorted, &source);
    if (error == cudaSuccess) {
        static std::atomic<uint64_t> devices;
        error = allow_shared_room(kernel, lr_cuda_shared_room(), devices);
    }
    if (error != cudaSuccess) return error;
    overlapping_launch launch(kernel, {(unsigned)pass.num_tiles, (unsigned)layers},
                              (unsigned)(pass.sides * LR_CUDA_BAND_PAIRS * LANES));
    launch.config.dynamicSmemBytes = (size_t)pass.bytes;
    launch.go_beside(images.stream);
    lr_cuda_note_kernel(reinterpret_cast<const void *>(kernel), (int)launch.config.blockDim.x, pass.bytes);
    return cudaLaunchKernelEx(&launch.config, kernel, pass, source, images.sorted, images.target);
}

template <band_kernels Kernels, bool Crowded>
cudaError_t launch_shape(const lr_cuda_bands &pass, const lr_cuda_images &images)
{
    return pass.height == 1   ? launch_height<Kernels, 1, Crowded>(pass, images)
           : pass.height == 2 ? launch_height<Kernels, 2, Crowded>(pass, images)
           : pass.height == 3 ? launch_height<Kernels, 3, Crowded>(pass, images)
                              : launch_height<Kernels, 4, Crowded>(pass, images);
}

template <band_kernels Kernels> cudaError_t launch_bands(const lr_cuda_bands &pass, const lr_cuda_images &images)
{
    return pass.is_crowded ? launch_shape<Kernels, true>(pass, images) : launch_shape<Kernels, false>(pass, images);
}

} // namespace

bool lr_cuda_bands_work(void)
{
    return is_for_hopper(bands<BAND_ONE, 3, false>);
}

int lr_cuda_launch_bands(bool forward, const lr_cuda_bands *pass, const lr_cuda_images *images)
{
    return pass->num_rows == 1 ? launch_bands<BAND_ONE>(*pass, *images)
           : forward           ? launch_bands<BAND_FORWARD>(*pass, *images)
                               : launch_bands<BAND_BACK>(*pass, *images);
}

int lr_cuda_launch_band_fills(const lr_cuda_view_fill *views, const lr_cuda_fill_sizes *sizes)
{
    constexpr int group = 256;
    const auto blocks = [sizes](int64_t threads, unsigned parts) {
        return dim3((unsigned)((threads + group - 1) / group), (unsigned)sizes->num_views, parts);
    };
    if (sizes->weights > 0) band_weights<<<blocks(sizes->weights, FILL_BOTH), group>>>(views);
    if (sizes->spans > 0) {
        const int64_t most = sizes->spans > sizes->kernels ? sizes->spans : sizes->kernels;
        band_spans_and_kernels<<<blocks(most, FILL_BOTH + 1), group>>>(views);
    }
    return cudaGetLastError();
}

/* --- sorting of sources --- */

namespace
{

enum {
    MOST_THREADS = 1024,
    FEW_THREADS = 128, /* beside other streams' kernels, between whose blocks they find room */
    MOST_SLICES = 128, /* beside each other */
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

/* The largest of a block's numbers, none of which is negative. */
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

/* Kept: pieces that a thread has in registers. */
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
    own.start(pass, find_row(pass, sorted, row), threads, (int)threadIdx.x);
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

template <int Kept, int Threads> cudaError_t launch(const lr_cuda_bands &pass, const lr_cuda_images &images)
{
    const auto kernel = sort_rows<Kept, Threads>;
    const int octets = pass.pitch / LR_CUDA_OCTET, slices = min(pass.layout.size[2], MOST_SLICES);
    const int groups = max(1, min((octets + Kept - 1) / Kept, Threads / slices));
    const int threads = (slices * groups + LANES - 1) / LANES * LANES;
    overlapping_launch launch(kernel, (unsigned)pass.num_lattice_rows, (unsigned)threads);
    launch.go_ahead_of(images.stream);
    return cudaLaunchKernelEx(&launch.config, kernel, pass, images.source, images.sorted, sort_threads{slices, groups});
}

} // namespace

int lr_cuda_launch_sort(const lr_cuda_bands *pass, const lr_cuda_images *images)
{
    return images->stream != nullptr ? launch<4, FEW_THREADS>(*pass, *images) : launch<1, MOST_THREADS>(*pass, *images);
}
