// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The threads of list mode's CUDA kernels, one after the other, for a device that has as much shared memory
// as LR_TEST_SHARED_BYTES says. A launch runs when it is made, after all that its stream was told.
#include "../cuda_interop/stand_ins.h"

#include "cuda_interop/listmode/arrange.cuh"
#include "cuda_interop/listmode/order.cuh"
#include "cuda_interop/listmode/project.cuh"
#include "cuda_interop/listmode/visit.cu"

extern "C" {
#include <cuda_runtime_api.h>
}

namespace
{

// A block's memory; what is read or added beyond it ends the test.
std::vector<float> image;
std::vector<int32_t> sums;

struct shared_image {
    float load(int at) const
    {
        return image.at((size_t)at);
    }
};

struct shared_sums {
    void add(int at, float number) const
    {
        sums.at((size_t)at) += (int32_t)lrintf(number);
    }
};

struct global_image {
    const float *numbers;
    int count;

    float load(int at) const
    {
        return at >= 0 && at < count ? numbers[at] : throw "read outside of an image";
    }
};

struct global_sums {
    float *numbers;
    int count;

    void add(int at, float number) const
    {
        (at >= 0 && at < count ? numbers[at] : throw "added outside of an image") += number;
    }
};

void check_room(const lr_cuda_list_pass &pass, const list_block &block)
{
    if (block.frame.is_tiled && (int64_t)block.cells() * 4 > pass.shared_bytes) {
        throw "a slab that a block has no room for";
    }
}

template <class Sharer, class Tile>
void read_events(const lr_cuda_list_pass &pass, const list_block &block, const Tile &tile)
{
    for (int event = 0; event < block.chunk.count; event++) {
        project_forward<Sharer>(pass, block, event, tile);
    }
}

template <class Tile>
void forward(const lr_cuda_list_pass &pass, const list_block &block, const Tile &tile)
{
    if (pass.is_line) {
        read_events<line_sharer<line_reader<Tile>>>(pass, block, tile);
    } else if (pass.tube.table != nullptr) {
        read_events<tube_sharer<table_share, line_reader<Tile>>>(pass, block, tile);
    } else {
        read_events<tube_sharer<gaussian_share, line_reader<Tile>>>(pass, block, tile);
    }
}

template <class Sharer, class Tile>
void write_events(const lr_cuda_list_pass &pass, const list_block &block, float scale,
                  const Tile &tile)
{
    for (int event = 0; event < block.chunk.count; event++) {
        project_back<Sharer>(pass, block, event, scale, tile);
    }
}

template <class Tile>
void back(const lr_cuda_list_pass &pass, const list_block &block, float scale, const Tile &tile)
{
    if (pass.is_line) {
        write_events<line_sharer<line_writer<Tile>>>(pass, block, scale, tile);
    } else if (pass.tube.table != nullptr) {
        write_events<tube_sharer<table_share, line_writer<Tile>>>(pass, block, scale, tile);
    } else {
        write_events<tube_sharer<gaussian_share, line_writer<Tile>>>(pass, block, scale, tile);
    }
}

bool are_alike(const lr_cuda_list_pass &pass, const list_block &block, double total)
{
    for (int event = 0; event < block.chunk.count; event++) {
        if (!is_alike(value_of(pass, block, event), total / block.chunk.count)) {
            return false;
        }
    }
    return true;
}

void back_tiled(const lr_cuda_list_pass &pass, const list_block &block)
{
    double total = 0;
    for (int event = 0; event < block.chunk.count; event++) {
        total += fabs(value_of(pass, block, event));
    }
    const float scale = fixed_scale(block, total);
    if (scale == 0.0f) {
        return;
    }
    if (!are_alike(pass, block, total)) {
        back(pass, block, 1.0f, global_sums{block.numbers(pass), block.cells()});
        return;
    }
    sums.assign((size_t)block.cells(), 0);
    back(pass, block, scale, shared_sums());
    for (int k = 0; k < block.cells(); k++) {
        block.numbers(pass)[k] += (float)(sums[k] / (double)scale);
    }
}

} // namespace

int lr_cuda_launch_list_fill(const lr_cuda_list_framing *framing)
{
    cudaStreamSynchronize(static_cast<cudaStream_t>(framing->stream));
    for (const lr_cuda_list_frame &frame : framing->frames) {
        for (int64_t k = 0; frame.has_events && k < cells_of(frame, frame.slices); k++) {
            fill_number(*framing, frame, k);
        }
    }
    return 0;
}

int lr_cuda_launch_list_add(const lr_cuda_list_framing *framing)
{
    cudaStreamSynchronize(static_cast<cudaStream_t>(framing->stream));
    const int32_t *size = framing->size;
    for (int64_t k = 0; k < (int64_t)size[0] * size[1] * size[2]; k++) {
        add_frames(*framing, k);
    }
    return 0;
}

int lr_cuda_launch_list_forward(const lr_cuda_list_pass *pass)
{
    cudaStreamSynchronize(static_cast<cudaStream_t>(pass->stream));
    for (int number = 0; number < pass->num_jobs; number++) {
        const list_block block(*pass, number);
        const float *numbers = block.numbers(*pass);
        check_room(*pass, block);
        if (block.frame.is_tiled) {
            image.assign(numbers, numbers + block.cells());
            forward(*pass, block, shared_image());
        } else {
            forward(*pass, block, global_image{numbers, block.cells()});
        }
    }
    return 0;
}

int lr_cuda_launch_list_values(const lr_cuda_list_pass *pass)
{
    for (int k = 0; k < pass->num_chunks; k++) {
        for (int event = 0; event < pass->chunks[k].count; event++) {
            put_value(*pass, pass->chunks[k], event);
        }
    }
    return 0;
}

int lr_cuda_launch_list_back(const lr_cuda_list_pass *pass)
{
    cudaStreamSynchronize(static_cast<cudaStream_t>(pass->stream));
    for (int number = 0; number < pass->num_jobs; number++) {
        const list_block block(*pass, number);
        check_room(*pass, block);
        if (block.frame.is_tiled) {
            back_tiled(*pass, block);
        } else {
            back(*pass, block, 1.0f, global_sums{block.numbers(*pass), block.cells()});
        }
    }
    return 0;
}

// --- sorting ---

int lr_cuda_list_sort_room(int64_t most, int64_t *bytes)
{
    (void)most;
    *bytes = 1;
    return 0;
}

int lr_cuda_launch_list_sort(const lr_cuda_list_sort *sort)
{
    const uint32_t mask = sort->bits < 32 ? (1u << sort->bits) - 1 : ~0u;
    std::vector<int> order((size_t)sort->count);
    cudaStreamSynchronize(static_cast<cudaStream_t>(sort->stream));
    for (int k = 0; k < sort->count; k++) {
        order[(size_t)k] = k;
    }
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
        return (sort->keys[0][a] & mask) < (sort->keys[0][b] & mask);
    });
    for (int k = 0; k < sort->count; k++) {
        sort->keys[1][k] = sort->keys[0][order[(size_t)k]];
        sort->numbers[1][k] = sort->numbers[0][order[(size_t)k]];
    }
    return 0;
}

int lr_cuda_launch_list_gather(const lr_cuda_list_gather *gather)
{
    cudaStreamSynchronize(static_cast<cudaStream_t>(gather->stream));
    for (int array = 0; array < gather->num_arrays; array++) {
        for (int k = 0; k < gather->count; k++) {
            gather->to[array][k] = gather->from[array][gather->numbers[k]];
        }
    }
    return 0;
}

int lr_cuda_launch_list_keys(const lr_cuda_list_ordering *ordering)
{
    cudaStreamSynchronize(static_cast<cudaStream_t>(ordering->pass.stream));
    for (int k = 0; k < ordering->count; k++) {
        find_key(*ordering, k);
    }
    return 0;
}

int lr_cuda_launch_list_bounds(const lr_cuda_list_ordering *ordering)
{
    for (int k = 0; k * LR_CUDA_LIST_PIECE < ordering->count; k++) {
        bound_piece(*ordering, k);
    }
    return 0;
}

int lr_cuda_launch_list_groups(const lr_cuda_list_arranging *arranging)
{
    cudaStreamSynchronize(static_cast<cudaStream_t>(arranging->stream));
    for (int k = 0; k < arranging->count; k++) {
        arranging->keys[k] = group_of_event(*arranging, k);
        arranging->numbers[k] = k;
        arranging->groups[arranging->keys[k]]++;
    }
    return 0;
}

int lr_cuda_launch_list_centres(const lr_cuda_list_arranging *arranging)
{
    cudaStreamSynchronize(static_cast<cudaStream_t>(arranging->stream));
    for (int k = arranging->begin; k < arranging->end; k++) {
        arranging->keys[k] = centre_key(*arranging, arranging->order[k]);
    }
    return 0;
}

extern "C" {

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    const char *const bytes = getenv("LR_TEST_SHARED_BYTES");
    (void)device;
    *value = attribute == cudaDevAttrMultiProcessorCount ? 2 : bytes != nullptr ? atoi(bytes) : 0;
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t begin, cudaEvent_t end)
{
    (void)begin;
    (void)end;
    *milliseconds = 1;
    return cudaSuccess;
}
}
