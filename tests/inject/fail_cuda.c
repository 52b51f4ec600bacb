/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Linked in place of CUDA's runtime functions in our own objects (--wrap): lets one call fail (inject.h). The failing
 * call has no effect and reports that there is no memory; where all later calls fail, too, it reports that a kernel
 * has destroyed the context. The next cudaGetLastError reports the same. */
#include "inject.h"

#include <GL/glew.h>

#include <cuda_gl_interop.h>
#include <cuda_runtime_api.h>

static _Thread_local cudaError_t last_error = cudaSuccess;

static bool fails(const char *name)
{
    const bool failed = inject_fails("cuda", name);
    if (failed) last_error = inject.is_ever ? cudaErrorLaunchFailure : cudaErrorMemoryAllocation;
    return failed;
}

/* The name is expanded first: some names are macros for a version of a function. */
#define CALL(name, parameters, arguments) CALL_(name, parameters, arguments)
#define CALL_(name, parameters, arguments)                                                                             \
    cudaError_t __real_##name parameters;                                                                              \
    cudaError_t __wrap_##name parameters;                                                                              \
    cudaError_t __wrap_##name parameters                                                                               \
    {                                                                                                                  \
        return fails(#name) ? last_error : __real_##name arguments;                                                    \
    }

CALL(cudaCreateSurfaceObject, (cudaSurfaceObject_t * a, const struct cudaResourceDesc *b), (a, b))
CALL(cudaCreateTextureObject,
     (cudaTextureObject_t * a, const struct cudaResourceDesc *b, const struct cudaTextureDesc *c,
      const struct cudaResourceViewDesc *d),
     (a, b, c, d))
CALL(cudaDestroySurfaceObject, (cudaSurfaceObject_t a), (a))
CALL(cudaDestroyTextureObject, (cudaTextureObject_t a), (a))
CALL(cudaDeviceGetAttribute, (int *a, enum cudaDeviceAttr b, int c), (a, b, c))
CALL(cudaDeviceGetPCIBusId, (char *a, int b, int c), (a, b, c))
CALL(cudaDeviceGetStreamPriorityRange, (int *a, int *b), (a, b))
CALL(cudaDeviceSynchronize, (void), ())
CALL(cudaEventCreate, (cudaEvent_t * a), (a))
CALL(cudaEventCreateWithFlags, (cudaEvent_t * a, unsigned int b), (a, b))
CALL(cudaEventDestroy, (cudaEvent_t a), (a))
CALL(cudaEventElapsedTime, (float *a, cudaEvent_t b, cudaEvent_t c), (a, b, c))
CALL(cudaEventRecord, (cudaEvent_t a, cudaStream_t b), (a, b))
CALL(cudaEventSynchronize, (cudaEvent_t a), (a))
CALL(cudaFree, (void *a), (a))
CALL(cudaFreeHost, (void *a), (a))
CALL(cudaFuncGetAttributes, (struct cudaFuncAttributes * a, const void *b), (a, b))
CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor, (int *a, const void *b, int c, size_t d), (a, b, c, d))
CALL(cudaFuncSetAttribute, (const void *a, enum cudaFuncAttribute b, int c), (a, b, c))
CALL(cudaGLGetDevices, (unsigned int *a, int *b, unsigned int c, enum cudaGLDeviceList d), (a, b, c, d))
CALL(cudaGetDevice, (int *a), (a))
CALL(cudaGetDeviceCount, (int *a), (a))
CALL(cudaGetDeviceProperties, (struct cudaDeviceProp * a, int b), (a, b))
CALL(cudaGetDriverEntryPointByVersion,
     (const char *a, void **b, unsigned int c, unsigned long long d, enum cudaDriverEntryPointQueryResult *e),
     (a, b, c, d, e))
CALL(cudaGraphicsGLRegisterBuffer, (struct cudaGraphicsResource * *a, GLuint b, unsigned int c), (a, b, c))
CALL(cudaGraphicsGLRegisterImage, (struct cudaGraphicsResource * *a, GLuint b, GLenum c, unsigned int d), (a, b, c, d))
CALL(cudaGraphicsMapResources, (int a, cudaGraphicsResource_t *b, cudaStream_t c), (a, b, c))
CALL(cudaGraphicsResourceGetMappedPointer, (void **a, size_t *b, cudaGraphicsResource_t c), (a, b, c))
CALL(cudaGraphicsSubResourceGetMappedArray, (cudaArray_t * a, cudaGraphicsResource_t b, unsigned int c, unsigned int d),
     (a, b, c, d))
CALL(cudaGraphicsUnmapResources, (int a, cudaGraphicsResource_t *b, cudaStream_t c), (a, b, c))
CALL(cudaGraphicsUnregisterResource, (cudaGraphicsResource_t a), (a))
CALL(cudaLaunchKernel, (const void *a, dim3 b, dim3 c, void **d, size_t e, cudaStream_t f), (a, b, c, d, e, f))
CALL(cudaLaunchKernelExC, (const cudaLaunchConfig_t *a, const void *b, void **c), (a, b, c))
CALL(__cudaLaunchKernel, (void *a, dim3 b, dim3 c, void **d, size_t e, cudaStream_t f),
     (a, b, c, d, e, f)) /* the function that starts kernels from CUDA 13 on */
CALL(cudaHostRegister, (void *a, size_t b, unsigned int c), (a, b, c))
CALL(cudaHostUnregister, (void *a), (a))
CALL(cudaMalloc, (void **a, size_t b), (a, b))
CALL(cudaMallocHost, (void **a, size_t b), (a, b))
CALL(cudaMemGetInfo, (size_t * a, size_t *b), (a, b))
CALL(cudaMemcpy, (void *a, const void *b, size_t c, enum cudaMemcpyKind d), (a, b, c, d))
CALL(cudaMemcpy3DAsync, (const struct cudaMemcpy3DParms *a, cudaStream_t b), (a, b))
CALL(cudaMemcpyAsync, (void *a, const void *b, size_t c, enum cudaMemcpyKind d, cudaStream_t e), (a, b, c, d, e))
CALL(cudaMemsetAsync, (void *a, int b, size_t c, cudaStream_t d), (a, b, c, d))
CALL(cudaPointerGetAttributes, (struct cudaPointerAttributes * a, const void *b), (a, b))
CALL(cudaSetDevice, (int a), (a))
CALL(cudaStreamCreateWithFlags, (cudaStream_t * a, unsigned int b), (a, b))
CALL(cudaStreamDestroy, (cudaStream_t a), (a))
CALL(cudaStreamSynchronize, (cudaStream_t a), (a))
CALL(cudaStreamWaitEvent, (cudaStream_t a, cudaEvent_t b, unsigned int c), (a, b, c))

cudaError_t __real_cudaGetLastError(void);
cudaError_t __wrap_cudaGetLastError(void);

cudaError_t __wrap_cudaGetLastError(void)
{
    const cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error != cudaSuccess ? error : __real_cudaGetLastError();
}
