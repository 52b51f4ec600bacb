/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Boxes of an array that the device's tensor unit copies into shared memory, and the barriers there
 * that count them: from compute capability 9.0 on. And what warps that make such copies agree on. */
#ifndef LR_CUDA_COPIES_CUH
#define LR_CUDA_COPIES_CUH

#include <cuda.h>
#include <cuda/ptx>
#include <cuda_runtime.h>

/* What is the same in all lanes: the compiler then knows. */
__device__ inline int same_in_warp(int number)
{
    return __shfl_sync(0xffffffffu, number, 0);
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

/* For one lane of a warp: the compiler knows then that it is one. */
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

/* round: how often the barrier has completed before, which whoever waits must have seen. */
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

/* After barriers were made, before copies count on them. */
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

/* The driver's, which no library has to be linked for. NULL: there is none. */
inline encode_tiled find_encode_tiled()
{
    void *found = nullptr;
    cudaDriverEntryPointQueryResult result;
    const cudaError_t error =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result);
    return error == cudaSuccess && result == cudaDriverEntryPointSuccess ? reinterpret_cast<encode_tiled>(found)
                                                                         : nullptr;
}

/* An array, as the tensor unit takes it: fastest axis first. What a box has beyond it is zero. */
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

#endif
