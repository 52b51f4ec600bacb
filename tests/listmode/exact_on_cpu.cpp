// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The threads of the CUDA kernels of exact elements, one after the other.
#include "../cuda_interop/stand_ins.h"

#include "cuda_interop/listmode/exact.cuh"
#include "slabs_on_cpu.h"

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
    int warps = 0;
    for (int k = 0; k < pass.num_chunks; k++) {
        const lr_cuda_list_chunk &chunk = pass.chunks[k];
        if (chunk.warp != warps) throw "a chunk whose warps do not follow those before it";
        warps += (chunk.count + LR_CUDA_LIST_WARP - 1) / LR_CUDA_LIST_WARP;
        for (int event = 0; event < chunk.count; event++)
            each(pass.frames[chunk.axis], chunk.has_tof != 0, chunk.begin + event);
    }
    if (warps != pass.num_warps) throw "warps without events, or events without warps";
}

template <bool Leaning> void forward(const lr_cuda_list_pass &pass)
{
    each_event(
        pass,
        [&](const lr_cuda_list_frame &frame, bool has_tof, int64_t k) {
            if (place_of(pass, k) >= 0) {
                const enum list_times times = times_of(pass.events, has_tof);
                times == NO_TIMES ? exact_forward<Leaning, NO_TIMES>(pass, frame, k, whole_warp())
                : times == TIMES  ? exact_forward<Leaning, TIMES>(pass, frame, k, whole_warp())
                                  : exact_forward<Leaning, TIMES_IN_BINS>(pass, frame, k, whole_warp());
            }
        });
}

template <bool Leaning> void back(const lr_cuda_list_pass &pass)
{
    each_event(
        pass,
        [&](const lr_cuda_list_frame &frame, bool has_tof, int64_t k) {
            if (value_at(pass, k) != 0.0f) {
                const enum list_times times = times_of(pass.events, has_tof);
                times == NO_TIMES ? exact_back<Leaning, NO_TIMES>(pass, frame, k, whole_warp(), add)
                : times == TIMES  ? exact_back<Leaning, TIMES>(pass, frame, k, whole_warp(), add)
                                  : exact_back<Leaning, TIMES_IN_BINS>(pass, frame, k, whole_warp(), add);
            }
        });
}

// --- in slabs ---

// Words and floats of a block; what is added beyond them ends the test.
struct block_sums {
    std::vector<int32_t> *words;
    int first;
    image_sums floats;

    int32_t add_word(int at, int32_t number) const
    {
        int32_t &word = words->at((size_t)(at - first));
        const int32_t before = word;
        word = (int32_t)((uint32_t)word + (uint32_t)number);
        return before;
    }
    void add_float(int at, float number) const { floats.add(at, number); }
};

template <bool Leaning> void back_in_slab(const lr_cuda_list_pass &pass, const list_block &block)
{
    const int first = block.job.slices[0] * block.frame.plane;
    const exact_unit unit(mean_log2_of<exact_sizes>(pass, block));
    std::vector<int32_t> words(block.frame.is_tiled ? (size_t)block.cells() : 0);
    const exact_sums<block_sums> sums = {{&words, first, {pass.numbers + block.frame.begin, first, block.cells()}},
                                         unit.scale,
                                         unit.unit,
                                         block.frame.is_tiled ? least_exact : INFINITY,
                                         0.0f};
    for (int event = 0; event < block.chunk.count; event++) {
        const int64_t k = block.chunk.begin + event;
        if (value_at(pass, k) != 0.0f) {
            const enum list_times times = times_of(pass.events, block.chunk.has_tof != 0);
            times == NO_TIMES ? exact_back_slab<Leaning, NO_TIMES>(pass, block, k, whole_warp(), sums)
            : times == TIMES  ? exact_back_slab<Leaning, TIMES>(pass, block, k, whole_warp(), sums)
                              : exact_back_slab<Leaning, TIMES_IN_BINS>(pass, block, k, whole_warp(), sums);
        }
    }
    if (block.frame.is_tiled) close_slab(pass, block, unit.scale, words);
}

template <bool Leaning> void back_in_slabs(const lr_cuda_list_pass &pass)
{
    cudaStreamSynchronize(static_cast<cudaStream_t>(pass.stream));
    for (int number = 0; number < pass.num_jobs; number++) {
        const list_block block(pass, number);
        check_room(pass, block);
        if (!pass.has_events[block.chunk.has_tof != 0]) throw "events that no kernel is for";
        back_in_slab<Leaning>(pass, block);
    }
}

} // namespace

int lr_cuda_launch_exact_forward(const lr_cuda_list_pass *pass)
{
    pass->exact.is_leaning ? forward<true>(*pass) : forward<false>(*pass);
    return 0;
}

int lr_cuda_launch_exact_back(const lr_cuda_list_pass *pass)
{
    if (pass->shared_bytes > 0) {
        pass->exact.is_leaning ? back_in_slabs<true>(*pass) : back_in_slabs<false>(*pass);
        return 0;
    }
    pass->exact.is_leaning ? back<true>(*pass) : back<false>(*pass);
    return 0;
}
