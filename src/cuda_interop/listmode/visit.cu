/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Finds the elements of an event one by one on the host, by the functions that kernels use. */
#include "cuda_interop/listmode/exact.cuh"
#include "cuda_interop/listmode/passes.h"
#include "cuda_interop/listmode/project.cuh"

extern "C" {
#include "listmode/rows.h"
}

namespace
{

/* A receiver of elements that passes them to the caller's function. */
struct visiting {
    static constexpr bool reads = false;
    const lr_cuda_list_frame &frame;
    lr_cuda_list_framing framing;
    const struct lr_listmode_visitor *visitor;

    template <int U, int V> __host__ __device__ void take(const float (&shares)[U][V], float scale, int at, int pitch)
    {
        for (int i = 0; i < U; i++)
            for (int j = 0; j < V; j++) take_one(scale * shares[i][j], at + i * pitch + j);
    }
    __host__ __device__ void take_one(float element, int at)
    {
        const int64_t voxel = voxel_of(framing, frame, at);
        if (voxel >= 0 && element > 0.0f) visitor->take(visitor->user, voxel, (double)element);
    }
};

struct taking {
    visiting *taker;

    __host__ __device__ void operator()(int at, float element) const { taker->take_one(element, at); }
};

template <bool Leaning, list_times Times>
void visit_exact(const lr_cuda_list_pass &pass, const lr_cuda_list_frame &frame, int64_t k, visiting &taker)
{
    const int32_t all[2] = {0, frame.slices};
    exact_event<Leaning, Times> event(pass, frame, path_of(pass, frame, Times != NO_TIMES, k), all);
    event.each_element(frame, whole_warp(), taking{&taker});
}

} // namespace

void lr_cuda_list_visit(const lr_cuda_list_pass *pass, const int32_t size[3], const lr_cuda_list_chunk *event,
                        const struct lr_listmode_visitor *visitor)
{
    const lr_cuda_list_frame &frame = pass->frames[event->axis];
    const int32_t all[2] = {0, frame.slices};
    const line_walk walk = find_walk(*pass, frame, event->has_tof, event->begin, all);
    visiting taker = {frame, {}, visitor};
    for (int k = 0; k < 3; k++) taker.framing.size[k] = size[k];
    if (pass->exact.modules != nullptr && pass->exact.is_leaning)
        event->has_tof ? visit_exact<true, TIMES_IN_BINS>(*pass, frame, event->begin, taker)
                       : visit_exact<true, NO_TIMES>(*pass, frame, event->begin, taker);
    else if (pass->exact.modules != nullptr)
        event->has_tof ? visit_exact<false, TIMES_IN_BINS>(*pass, frame, event->begin, taker)
                       : visit_exact<false, NO_TIMES>(*pass, frame, event->begin, taker);
    else if (pass->is_line)
        share_walk<line_sharer<visiting>, true>(*pass, frame, walk, 0, taker);
    else if (pass->tube.table != nullptr)
        share_walk<tube_sharer<table_share<false>, visiting>, true>(*pass, frame, walk, 0, taker);
    else
        share_walk<tube_sharer<gaussian_share, visiting>, true>(*pass, frame, walk, 0, taker);
}
