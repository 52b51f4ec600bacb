# SPDX-License-Identifier: Apache-2.0
# The functions of CUDA's runtime that our objects call, by their names for the linker: fail_cuda.c
# stands in for each. test_lists.py holds this list against the objects.
set(cuda_calls
    __cudaLaunchKernel
    cudaCreateSurfaceObject cudaCreateTextureObject cudaDestroySurfaceObject
    cudaDestroyTextureObject cudaDeviceGetAttribute cudaDeviceGetPCIBusId cudaDeviceGetStreamPriorityRange
    cudaDeviceSynchronize cudaEventCreate cudaEventCreateWithFlags cudaEventDestroy
    cudaEventElapsedTime cudaEventElapsedTime_v2 cudaEventRecord cudaEventSynchronize cudaFree
    cudaFreeHost cudaFuncGetAttributes cudaFuncSetAttribute cudaGLGetDevices cudaGetDevice
    cudaGetDeviceCount cudaGetDeviceProperties cudaGetDeviceProperties_v2
    cudaGetDriverEntryPointByVersion cudaGetLastError cudaGraphicsGLRegisterBuffer
    cudaGraphicsGLRegisterImage cudaGraphicsMapResources cudaGraphicsResourceGetMappedPointer
    cudaGraphicsSubResourceGetMappedArray cudaGraphicsUnmapResources
    cudaGraphicsUnregisterResource cudaHostRegister cudaHostUnregister cudaLaunchKernel cudaLaunchKernelExC cudaMalloc cudaMallocHost
    cudaMemGetInfo cudaMemcpy cudaMemcpy3DAsync cudaMemcpyAsync cudaMemsetAsync
    cudaOccupancyMaxActiveBlocksPerMultiprocessor cudaPointerGetAttributes cudaSetDevice cudaStreamCreateWithFlags
    cudaStreamDestroy cudaStreamSynchronize cudaStreamWaitEvent)
