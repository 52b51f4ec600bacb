# SPDX-License-Identifier: Apache-2.0
# lr_has_cuda: whether the CUDA backends can be built; if so, the language CUDA is on and the target
# lr_cuda is what they link. Sanitized builds go without: the device's compiler knows no sanitizer.
set(lr_has_cuda FALSE)
if(LORASTER_CUDA AND NOT LORASTER_SANITIZE AND NOT LORASTER_FUZZ)
    include(CheckLanguage)
    find_package(CUDAToolkit 12.5 QUIET) # <cuda/ptx>, cudaGetDriverEntryPointByVersion
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
        set(CMAKE_CUDA_ARCHITECTURES 80-virtual 90 CACHE STRING "What CUDA is compiled for")
    endif()
    check_language(CUDA)
    if(CUDAToolkit_FOUND AND CMAKE_CUDA_COMPILER)
        set(lr_has_cuda TRUE)
        set(CMAKE_CUDA_STANDARD 17)
        enable_language(CUDA)
        add_library(lr_cuda INTERFACE)
        target_include_directories(lr_cuda SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
        target_link_libraries(lr_cuda INTERFACE CUDA::cudart_static)
        # Static variables of inline functions stay within the library: unique ones cannot be hidden.
        target_compile_options(lr_cuda INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fno-gnu-unique>)
    else()
        message(STATUS "no CUDA from 12.5 on: its backends are left out")
    endif()
endif()
