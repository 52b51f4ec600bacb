/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Kernels of vectors. They are compiled without fused multiply-adds (CMakeLists.txt), so that operations element by
 * element give the same bits as on the host. */
#include "cuda_interop/vectors.cuh"

#include <cuda_runtime.h>

namespace
{

constexpr int group = LR_VECTOR_GROUP;

/* Adds the sums of the upper half of the group's threads to those of the lower half, and repeats this with the lower
 * half. The order of additions is always the same. */
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

template <class Pass> int launch(void (*kernel)(Pass), const Pass &pass, int64_t count, void *stream)
{
    void *arguments[] = {const_cast<Pass *>(&pass)};
    return cudaLaunchKernel(reinterpret_cast<const void *>(kernel), dim3((unsigned)lr_cuda_vector_groups(count)),
                            dim3(group), arguments, 0, static_cast<cudaStream_t>(stream));
}

} // namespace

int lr_cuda_try_vectors(void)
{
    cudaFuncAttributes attributes;
    return cudaFuncGetAttributes(&attributes, divide);
}

int lr_cuda_launch_vector(enum lr_cuda_vector_work work, const lr_cuda_vector_pass *pass, void *stream)
{
    static void (*const kernels[LR_CUDA_NUM_VECTOR_WORKS][2][2])(lr_cuda_vector_pass) = {
        {{fill<float>, fill<float>}, {fill<double>, fill<double>}},
        {{apply<float, float>, apply<float, double>}, {apply<double, float>, apply<double, double>}},
        {{add_up<float>, add_up<float>}, {add_up<double>, add_up<double>}},
        {{divide, divide}, {divide, divide}}};
    return launch(kernels[work][pass->precision][pass->other], *pass, pass->count, stream);
}

int lr_cuda_launch_vector_join(const lr_cuda_join_pass *pass, void *stream)
{
    return launch(join, *pass, 1, stream);
}

int lr_cuda_launch_differences(const lr_cuda_differences_pass *pass, void *stream)
{
    const int64_t count = (int64_t)pass->size[0] * pass->size[1] * pass->size[2];
    return launch(pass->precision == LR_FLOAT64 ? differences<double> : differences<float>, *pass, count, stream);
}

int lr_cuda_launch_convolve(const lr_cuda_convolve_pass *pass, void *stream)
{
    const int64_t count = (int64_t)pass->size[0] * pass->size[1] * pass->size[2];
    return launch(pass->precision == LR_FLOAT64 ? convolve<double> : convolve<float>, *pass, count, stream);
}

int lr_cuda_launch_terms(const lr_cuda_terms_pass *pass, void *stream)
{
    return launch(pass->precision == LR_FLOAT64 ? add_terms<double> : add_terms<float>, *pass, pass->count, stream);
}
