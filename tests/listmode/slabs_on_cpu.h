// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Slabs of list mode's kernels (slabs.cuh) on the processor, thread by thread.
#pragma once

#include "cuda_interop/listmode/project.cuh"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

// Floats of an image; those before `first` and from first + count on are not the block's.
struct image_sums {
    float *numbers;
    int first, count;

    void add(int at, float number) const
    {
        (at >= first && at - first < count ? numbers[at] : throw "added outside of an image") += number;
    }
};

inline void check_room(const lr_cuda_list_pass &pass, const list_block &block)
{
    if (block.frame.is_tiled && (int64_t)block.cells() * 4 > pass.shared_bytes)
        throw "a slab that a block has no room for";
}

template <class Sizes> double mean_log2_of(const lr_cuda_list_pass &pass, const list_block &block)
{
    const int samples = std::min(pass.threads, block.chunk.count);
    double logs = 0, count = 0;
    for (int k = 0; k < samples; k++) {
        const float size = Sizes::of(pass, block, (int)((int64_t)k * block.chunk.count / samples));
        const bool is_any = size > 0.0f && size < INFINITY;
        logs += is_any ? (double)log2f(size) : 0.0;
        count += is_any ? 1 : 0;
    }
    return count > 0 ? logs / count : 0.0;
}

// A block's sums to the image.
inline void close_slab(const lr_cuda_list_pass &pass, const list_block &block, float scale,
                       const std::vector<int32_t> &sums)
{
    for (int k = 0; k < block.cells(); k++) block.numbers(pass)[k] += (float)(sums[(size_t)k] / (double)scale);
}
