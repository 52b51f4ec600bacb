/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The part of CUDA's header that look-up tables (groups.c), attributes and vectors (tests/vector/fake_cuda.c) need,
 * for a device whose memory is the host's. */
#ifndef LR_TEST_FAKE_CUDA_H
#define LR_TEST_FAKE_CUDA_H

#include <stddef.h>

typedef enum cudaError { cudaSuccess = 0, cudaErrorMemoryAllocation = 2, cudaErrorNoDevice = 100 } cudaError_t;
typedef struct fake_stream *cudaStream_t;
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToDevice = 3, cudaMemcpyDefault = 4 };

cudaError_t cudaMalloc(void **memory, size_t bytes);
cudaError_t cudaFree(void *memory);
cudaError_t cudaMallocHost(void **memory, size_t bytes);
cudaError_t cudaFreeHost(void *memory);
enum { cudaHostRegisterDefault = 0 };
cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned flags);
cudaError_t cudaHostUnregister(void *memory);
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *all_bytes);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream);
typedef struct cudaArray *cudaArray_t;
struct cudaPitchedPtr {
    void *ptr;
    size_t pitch, xsize, ysize;
};
struct cudaPos {
    size_t x, y, z;
};
struct cudaExtent {
    size_t width, height, depth;
};
struct cudaMemcpy3DParms {
    cudaArray_t srcArray;
    struct cudaPos srcPos;
    struct cudaPitchedPtr srcPtr;
    cudaArray_t dstArray;
    struct cudaPos dstPos;
    struct cudaPitchedPtr dstPtr;
    struct cudaExtent extent;
    enum cudaMemcpyKind kind;
};
cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *copy, cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaDeviceSynchronize(void);

/* Names that attributes.c needs. */
struct cudaFuncAttributes {
    size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
    int numRegs;
};
enum cudaDeviceAttr {
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrMaxThreadsPerMultiProcessor = 39,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97
};
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *function);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device);
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int threads,
                                                          size_t shared_bytes);

/* Names that list-mode tables need. */
typedef unsigned long long cudaTextureObject_t;
enum cudaTextureReadMode { cudaReadModeElementType };
enum cudaResourceType { cudaResourceTypeLinear = 2 };
enum cudaChannelFormatKind { cudaChannelFormatKindFloat = 2 };
struct cudaChannelFormatDesc {
    int x, y, z, w;
    enum cudaChannelFormatKind f;
};
struct cudaTextureDesc {
    enum cudaTextureReadMode readMode;
};
struct cudaResourceDesc {
    enum cudaResourceType resType;
    struct {
        struct {
            void *devPtr;
            struct cudaChannelFormatDesc desc;
            size_t sizeInBytes;
        } linear;
    } res;
};
struct cudaResourceViewDesc;
cudaError_t cudaCreateTextureObject(cudaTextureObject_t *texture, const struct cudaResourceDesc *resource,
                                    const struct cudaTextureDesc *texels, const struct cudaResourceViewDesc *view);
cudaError_t cudaDestroyTextureObject(cudaTextureObject_t texture);

/* Names that vectors need. */
typedef struct fake_event *cudaEvent_t;
enum { cudaStreamNonBlocking = 1, cudaEventDefault = 0, cudaEventDisableTiming = 2 };
struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem;
    int major, minor;
};
enum cudaMemoryType { cudaMemoryTypeUnregistered, cudaMemoryTypeDevice = 2, cudaMemoryTypeManaged };
struct cudaPointerAttributes {
    enum cudaMemoryType type;
    int device;
};
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError(void);
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device);
cudaError_t cudaDeviceGetPCIBusId(char *name, int size, int device);
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *memory);
cudaError_t cudaMemsetAsync(void *memory, int byte, size_t bytes, cudaStream_t stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t begin, cudaEvent_t end);

#endif
