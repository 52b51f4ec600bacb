// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The threads of the CUDA kernels of exact elements, one after the other.
#include "../cuda_interop/stand_ins.h"

#include "cuda_interop/listmode/exact.cuh"

extern "C" {
#include <cuda_runtime_api.h>
}

namespace
{

void add(float *to, float number)
{
    *to += number;
}

template <class Each> void each_event(const lr_cuda_list_pass &pass, Each &&each)
{
    cudaStreamSynchronize(static_cast<cudaStream_t>(pass.stream));
    for (int k = 0; k < pass.num_chunks; k++) {
        const lr_cuda_list_chunk &chunk = pass.chunks[k];
        if (chunk.count > pass.longest_chunk) {
            throw "a chunk that is longer than the longest one";
        }
        for (int event = 0; event < chunk.count; event++) {
            each(pass.frames[chunk.axis], chunk.has_tof != 0, chunk.begin + event);
        }
    }
}

template <bool Leaning> void forward(const lr_cuda_list_pass &pass)
{
    each_event(pass, [&](const lr_cuda_list_frame &frame, bool has_tof, int64_t k) {
        has_tof ? exact_forward<Leaning, true>(pass, frame, k)
                : exact_forward<Leaning, false>(pass, frame, k);
    });
}

template <bool Leaning> void back(const lr_cuda_list_pass &pass)
{
    each_event(pass, [&](const lr_cuda_list_frame &frame, bool has_tof, int64_t k) {
        has_tof ? exact_back<Leaning, true>(pass, frame, k, add)
                : exact_back<Leaning, false>(pass, frame, k, add);
    });
}

} // namespace

int lr_cuda_launch_exact_forward(const lr_cuda_list_pass *pass)
{
    pass->exact.is_leaning ? forward<true>(*pass) : forward<false>(*pass);
    return 0;
}

int lr_cuda_launch_exact_back(const lr_cuda_list_pass *pass)
{
    pass->exact.is_leaning ? back<true>(*pass) : back<false>(*pass);
    return 0;
}
