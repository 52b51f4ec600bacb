/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * As much of CUDA's header as look-up tables need, for a device that is the machine's memory (groups.c). */
#ifndef LR_TEST_FAKE_CUDA_H
#define LR_TEST_FAKE_CUDA_H

#include <stddef.h>

typedef enum cudaError { cudaSuccess = 0, cudaErrorMemoryAllocation = 2 } cudaError_t;
typedef struct fake_stream *cudaStream_t;
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1 };

cudaError_t cudaMalloc(void **memory, size_t bytes);
cudaError_t cudaFree(void *memory);
cudaError_t cudaMallocHost(void **memory, size_t bytes);
cudaError_t cudaFreeHost(void *memory);
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *all_bytes);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaDeviceSynchronize(void);

#endif
