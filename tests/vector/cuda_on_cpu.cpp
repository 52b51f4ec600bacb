// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The threads of kernels on vectors, one after the other.
#include "../cuda_interop/stand_ins.h"

#include "cuda_interop/vectors.cuh"
#include "fake_cuda.h"

namespace
{

template <class Work> void for_each_thread(const lr_cuda_vector_pass &pass, const Work &work)
{
    const int64_t threads = (int64_t)lr_cuda_vector_groups(pass.count) * LR_VECTOR_GROUP;
    for (int64_t k = 0; k < threads; k++) {
        work(vector_thread{k, threads});
    }
}

// Sums of a group, halves of it being added as on the device.
void write_sums(double (&sums)[LR_VECTOR_NUM_SUMS], std::vector<vector_sums> &parts,
                bool has_largest)
{
    for (int half = LR_VECTOR_GROUP / 2; half > 0; half /= 2) {
        for (int lane = 0; lane < half; lane++) {
            join_sums(parts[lane], parts[lane + half], has_largest);
        }
    }
    std::copy(parts[0].values, parts[0].values + LR_VECTOR_NUM_SUMS, sums);
}

template <class Work>
void add_groups(const lr_cuda_vector_pass &pass, bool has_largest, const Work &work)
{
    std::vector<vector_sums> parts;
    for_each_thread(pass, [&](const vector_thread &thread) {
        parts.push_back(work(thread));
        if ((int)parts.size() == LR_VECTOR_GROUP) {
            write_sums(pass.sums[thread.number / LR_VECTOR_GROUP], parts, has_largest);
            parts.clear();
        }
    });
}

void run_join(const void *queued)
{
    const auto *pass = static_cast<const lr_cuda_join_pass *>(queued);
    std::vector<vector_sums> parts;
    for (int64_t k = 0; k < LR_VECTOR_GROUP; k++) {
        parts.push_back(join_groups(*pass, vector_thread{k, LR_VECTOR_GROUP}));
    }
    write_sums(*pass->sums, parts, pass->has_largest);
}

template <void (*Kernel)(lr_cuda_vector_pass)> void run(const void *queued)
{
    const auto *pass = static_cast<const lr_cuda_vector_pass *>(queued);
    run_kernel(Kernel, (unsigned)lr_cuda_vector_groups(pass->count), LR_VECTOR_GROUP, *pass);
}

template <class Real> void run_sums(const void *queued)
{
    const auto *pass = static_cast<const lr_cuda_vector_pass *>(queued);
    add_groups(*pass, true,
               [&](const vector_thread &thread) { return add_up_numbers<Real>(*pass, thread); });
}

void run_divide(const void *queued)
{
    const auto *pass = static_cast<const lr_cuda_vector_pass *>(queued);
    add_groups(*pass, false,
               [&](const vector_thread &thread) { return divide_numbers(*pass, thread); });
}

template <class Real> void run_differences(const void *queued)
{
    const auto *pass = static_cast<const lr_cuda_differences_pass *>(queued);
    const int64_t count = (int64_t)pass->size[0] * pass->size[1] * pass->size[2];
    run_kernel(differences<Real>, (unsigned)lr_cuda_vector_groups(count), LR_VECTOR_GROUP, *pass);
}

template <class Real> void run_convolve(const void *queued)
{
    const auto *pass = static_cast<const lr_cuda_convolve_pass *>(queued);
    const int64_t count = (int64_t)pass->size[0] * pass->size[1] * pass->size[2];
    run_kernel(convolve<Real>, (unsigned)lr_cuda_vector_groups(count), LR_VECTOR_GROUP, *pass);
}

template <class Real> void run_terms(const void *queued)
{
    const auto *pass = static_cast<const lr_cuda_terms_pass *>(queued);
    run_kernel(add_terms<Real>, (unsigned)lr_cuda_vector_groups(pass->count), LR_VECTOR_GROUP, *pass);
}

template <class Pass>
int launch(void (*of_double)(const void *), void (*of_float)(const void *), const Pass *pass, void *stream)
{
    return fake_launch(pass->precision == LR_FLOAT64 ? of_double : of_float, pass, sizeof(*pass), stream);
}

} // namespace

int lr_cuda_launch_vector(enum lr_cuda_vector_work work, const lr_cuda_vector_pass *pass, void *stream)
{
    static void (*const runs[LR_CUDA_NUM_VECTOR_WORKS][2][2])(const void *) = {
        {{run<fill<float>>, run<fill<float>>}, {run<fill<double>>, run<fill<double>>}},
        {{run<apply<float, float>>, run<apply<float, double>>},
         {run<apply<double, float>>, run<apply<double, double>>}},
        {{run_sums<float>, run_sums<float>}, {run_sums<double>, run_sums<double>}},
        {{run_divide, run_divide}, {run_divide, run_divide}}};
    return fake_launch(runs[work][pass->precision][pass->other], pass, sizeof(*pass), stream);
}

int lr_cuda_launch_vector_join(const lr_cuda_join_pass *pass, void *stream)
{
    return fake_launch(run_join, pass, sizeof(*pass), stream);
}

int lr_cuda_launch_differences(const lr_cuda_differences_pass *pass, void *stream)
{
    return launch(run_differences<double>, run_differences<float>, pass, stream);
}

int lr_cuda_launch_convolve(const lr_cuda_convolve_pass *pass, void *stream)
{
    return launch(run_convolve<double>, run_convolve<float>, pass, stream);
}

int lr_cuda_launch_terms(const lr_cuda_terms_pass *pass, void *stream)
{
    return launch(run_terms<double>, run_terms<float>, pass, stream);
}
