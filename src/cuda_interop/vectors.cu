/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Compiled without fused multiply-adds (CMakeLists.txt), so that operations element by element give
 * the host's bits. */
#include "cuda_interop/vectors.cuh"

#include <cuda_runtime.h>

namespace
{

constexpr int group = LR_VECTOR_GROUP;

__device__ vector_thread this_thread()
{
    return {(int64_t)blockIdx.x * group + threadIdx.x, (int64_t)gridDim.x * group};
}

template <class Real> __global__ void __launch_bounds__(group) fill(lr_cuda_vector_pass pass)
{
    fill_numbers<Real>(pass, this_thread());
}

template <class Real, class Other> __global__ void __launch_bounds__(group) apply(lr_cuda_vector_pass pass)
{
    apply_operation<Real, Other>(pass, this_thread());
}

/* Halves of the group are added, in this order always. */
__device__ void write_sums(double (&sums)[LR_VECTOR_NUM_SUMS], const vector_sums &mine, bool has_largest)
{
    __shared__ vector_sums parts[group];
    const int lane = (int)threadIdx.x;
    parts[lane] = mine;
    for (int half = group / 2; half > 0; half /= 2) {
        __syncthreads();
        if (lane < half) join_sums(parts[lane], parts[lane + half], has_largest);
    }
    if (lane == 0)
        for (int k = 0; k < LR_VECTOR_NUM_SUMS; k++) sums[k] = parts[0].values[k];
}

template <class Real> __global__ void __launch_bounds__(group) add_up(lr_cuda_vector_pass pass)
{
    write_sums(pass.sums[blockIdx.x], add_up_numbers<Real>(pass, this_thread()), true);
}

__global__ void __launch_bounds__(group) divide(lr_cuda_vector_pass pass)
{
    write_sums(pass.sums[blockIdx.x], divide_numbers(pass, this_thread()), false);
}

__global__ void __launch_bounds__(group) join(lr_cuda_join_pass pass)
{
    write_sums(*pass.sums, join_groups(pass, this_thread()), pass.has_largest);
}

template <class Real> __global__ void __launch_bounds__(group) differences(lr_cuda_differences_pass pass)
{
    find_differences<Real>(pass, this_thread());
}

template <class Real> __global__ void __launch_bounds__(group) convolve(lr_cuda_convolve_pass pass)
{
    convolve_numbers<Real>(pass, this_thread());
}

template <class Real> __global__ void __launch_bounds__(group) terms(lr_cuda_terms_pass pass)
{
    add_terms<Real>(pass, this_thread());
}

using kernel = void (*)(lr_cuda_vector_pass);

int launch(kernel kernel, const lr_cuda_vector_pass &pass, void *stream)
{
    void *arguments[] = {const_cast<lr_cuda_vector_pass *>(&pass)};
    return cudaLaunchKernel(reinterpret_cast<const void *>(kernel), dim3((unsigned)lr_cuda_vector_groups(pass.count)),
                            dim3(group), arguments, 0, static_cast<cudaStream_t>(stream));
}

template <class Pass> int launch_volume(const void *kernel, const Pass &pass, void *stream)
{
    const int64_t count = (int64_t)pass.size[0] * pass.size[1] * pass.size[2];
    void *arguments[] = {const_cast<Pass *>(&pass)};
    return cudaLaunchKernel(kernel, dim3((unsigned)lr_cuda_vector_groups(count)), dim3(group), arguments, 0,
                            static_cast<cudaStream_t>(stream));
}

} // namespace

int lr_cuda_try_vectors(void)
{
    cudaFuncAttributes attributes;
    return cudaFuncGetAttributes(&attributes, divide);
}

int lr_cuda_launch_vector_fill(const lr_cuda_vector_pass *pass, void *stream)
{
    return launch(pass->precision == LR_FLOAT64 ? fill<double> : fill<float>, *pass, stream);
}

int lr_cuda_launch_vector_apply(const lr_cuda_vector_pass *pass, void *stream)
{
    static const kernel kernels[2][2] = {{apply<float, float>, apply<float, double>},
                                         {apply<double, float>, apply<double, double>}};
    return launch(kernels[pass->precision][pass->other], *pass, stream);
}

int lr_cuda_launch_vector_sums(const lr_cuda_vector_pass *pass, void *stream)
{
    return launch(pass->precision == LR_FLOAT64 ? add_up<double> : add_up<float>, *pass, stream);
}

int lr_cuda_launch_vector_divide(const lr_cuda_vector_pass *pass, void *stream)
{
    return launch(divide, *pass, stream);
}

int lr_cuda_launch_vector_join(const lr_cuda_join_pass *pass, void *stream)
{
    void *arguments[] = {const_cast<lr_cuda_join_pass *>(pass)};
    return cudaLaunchKernel(reinterpret_cast<const void *>(join), dim3(1), dim3(group), arguments, 0,
                            static_cast<cudaStream_t>(stream));
}

int lr_cuda_launch_differences(const lr_cuda_differences_pass *pass, void *stream)
{
    return launch_volume(pass->precision == LR_FLOAT64 ? reinterpret_cast<const void *>(differences<double>)
                                                       : reinterpret_cast<const void *>(differences<float>),
                         *pass, stream);
}

int lr_cuda_launch_convolve(const lr_cuda_convolve_pass *pass, void *stream)
{
    return launch_volume(pass->precision == LR_FLOAT64 ? reinterpret_cast<const void *>(convolve<double>)
                                                       : reinterpret_cast<const void *>(convolve<float>),
                         *pass, stream);
}

int lr_cuda_launch_terms(const lr_cuda_terms_pass *pass, void *stream)
{
    void *arguments[] = {const_cast<lr_cuda_terms_pass *>(pass)};
    return cudaLaunchKernel(pass->precision == LR_FLOAT64 ? reinterpret_cast<const void *>(terms<double>)
                                                          : reinterpret_cast<const void *>(terms<float>),
                            dim3((unsigned)lr_cuda_vector_groups(pass->count)), dim3(group), arguments, 0,
                            static_cast<cudaStream_t>(stream));
}
