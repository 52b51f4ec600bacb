/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A block's part of a projection: the work of one thread. Tests also run it on the processor. */
#pragma once

#include "cuda_interop/listmode/shares.cuh"

/* The slices that an event's line crosses: first, and one after the last. wide: the size class of the line's windows,
 * from 0. steps: the line's number of steps; 0 = not known. */
struct list_extent {
    int32_t slices[2];
    uint32_t wide, steps;
};

/* A block's job, with the chunk and the frame that it belongs to. */
struct list_block {
    const lr_cuda_list_job &job;
    const lr_cuda_list_chunk &chunk;
    const lr_cuda_list_frame &frame;

    __host__ __device__ list_block(const lr_cuda_list_pass &pass, int number)
        : job(pass.jobs[number]), chunk(pass.chunks[job.chunk]), frame(pass.frames[chunk.axis])
    {
    }

    /* Returns how many floats the slices of the job take, with their margins. */
    __host__ __device__ int cells() const { return (int)lr_cuda_list_cells(&frame, job.slices[1] - job.slices[0]); }
    __host__ __device__ float *numbers(const lr_cuda_list_pass &pass) const
    {
        return pass.numbers + frame.begin + (int64_t)job.slices[0] * frame.plane;
    }
};

/* Returns the index of the value of the event with this number; -1 if the event is not selected. */
__host__ __device__ inline int64_t place_of_number(const lr_cuda_list_places &places, int32_t number)
{
    const int64_t at = places.map != nullptr ? places.map[number] : number - places.first;
    return at >= 0 && at < places.count ? places.position + at : -1;
}

/* Returns the index of the value of arranged event k. */
__host__ __device__ inline int64_t place_of(const lr_cuda_list_pass &pass, int64_t k)
{
    return place_of_number(pass.places, pass.events.number[k]);
}

/* --- forward --- */

/* Lines are computed now (FOUND), or read from memory (KEPT). Events have bins of time of flight (IN_BINS), or no
 * bins. */
enum list_lines { FOUND, FOUND_IN_BINS, KEPT, KEPT_IN_BINS, NUM_LINES };

__host__ __device__ inline enum list_lines lines_of(const lr_cuda_list_events &events)
{
    const bool in_bins = events.bin_mm != nullptr;
    return events.lines == nullptr ? (in_bins ? FOUND_IN_BINS : FOUND) : (in_bins ? KEPT_IN_BINS : KEPT);
}

/* Visits the slices of an event's line in a block's slab. */
template <class Sharer, list_lines Lines, class Taker>
__host__ __device__ void share_event(const lr_cuda_list_pass &pass, const list_block &block, int64_t k, Taker &taker)
{
    if constexpr (Lines == KEPT || Lines == KEPT_IN_BINS) {
        const lr_cuda_list_line line = pass.events.lines[k];
        share_line<Sharer, Lines == KEPT_IN_BINS>(pass, block.frame, line, block.chunk.has_tof != 0, block.job.slices,
                                                  taker);
    } else {
        const line_walk walk = find_walk(pass, block.frame, block.chunk.has_tof, k, block.job.slices);
        share_walk<Sharer, Lines == FOUND_IN_BINS>(pass, block.frame, walk, block.job.slices[0], taker);
    }
}

template <class Sharer, list_lines Lines, class Tile>
__host__ __device__ void project_forward(const lr_cuda_list_pass &pass, const list_block &block, int event,
                                         const Tile &tile)
{
    const int64_t k = block.chunk.begin + event;
    line_reader<Tile> reader = {tile, 0.0f};
    if (pass.places.map == nullptr || place_of(pass, k) >= 0) share_event<Sharer, Lines>(pass, block, k, reader);
    pass.partial[block.chunk.partial + (int64_t)block.job.slab * block.chunk.count + event] = reader.sum;
}

/* --- back --- */

/* Returns the value of arranged event k; 0 if the event is not selected. */
__host__ __device__ inline float value_at(const lr_cuda_list_pass &pass, int64_t k)
{
    const int64_t place = place_of(pass, k);
    return place < 0 ? 0.0f : pass.values_are_one ? 1.0f : pass.values[place];
}

/* The size of an event, from which a block chooses the unit of its sums. Here it is the size of the event's value. */
struct list_sizes {
    __host__ __device__ static float of(const lr_cuda_list_pass &pass, const list_block &block, int event)
    {
        return fabsf(value_at(pass, block.chunk.begin + event));
    }
};

/* Limits for the size of the values that a block takes, and the factor by which these values are multiplied. */
struct list_taking {
    float low, high, scale;

    __host__ __device__ bool takes(float value) const
    {
        const float size = fabsf(value);
        return size >= low && size <= high;
    }
};

template <class Sharer, list_lines Lines, class Tile>
__host__ __device__ void project_back(const lr_cuda_list_pass &pass, const list_block &block, int event,
                                      const list_taking &taking, const Tile &tile)
{
    const float value = value_at(pass, block.chunk.begin + event);
    if (value != 0.0f && taking.takes(value)) {
        line_writer<Tile> writer = {tile, value * taking.scale};
        share_event<Sharer, Lines>(pass, block, block.chunk.begin + event, writer);
    }
}

/* The largest integer sum. It is below 2^31, to leave room for rounding errors. */
constexpr double largest_fixed = 2.14e9;

/* Returns the factor that turns values into whole numbers. total: the sum of the values' magnitudes. */
__host__ __device__ inline float fixed_scale(const list_block &block, double total)
{
    const double most = total * (double)block.frame.most[block.chunk.has_tof];
    return most > 0 ? (float)fmin(largest_fixed / most, 8e37) : 0.0f;
}

/* Returns the range of values that whole numbers of one unit can hold. mean_log2: the mean of log2 of the events'
 * sizes. An event with a tiny estimate has a huge ratio. A unit chosen for this ratio would round the other values to
 * 0. */
__host__ __device__ inline list_taking take_usual(double mean_log2)
{
    constexpr double spread_log2 = 4;
    return {(float)exp2(mean_log2 - spread_log2), (float)exp2(mean_log2 + spread_log2), 1.0f};
}

/* Returns a range that has all values, with a factor of 1. */
__host__ __device__ inline list_taking take_all()
{
    return {0.0f, INFINITY, 1.0f};
}

/* The largest number of events outside the range of take_usual that a block adds to the image one by one. If there are
 * more such events, the block adds up all its events as floats. */
constexpr int most_others = 160;

/* --- images and frames --- */

/* Returns the voxel, in the grid's order, of a number of a frame; -1 if the number is in a margin. */
__host__ __device__ inline int64_t voxel_of(const lr_cuda_list_framing &framing, const lr_cuda_list_frame &frame,
                                            int64_t number)
{
    const int64_t slice = number / frame.plane;
    const int within = (int)(number - slice * frame.plane);
    const int row = within / frame.pitch;
    const int u = row - (frame.window[0] - 1);
    const int v = within - row * frame.pitch - (frame.window[1] - 1);
    const bool is_voxel = slice < frame.slices && u >= 0 && u < frame.size[0] && v >= 0 && v < frame.size[1];
    const int64_t steps[3] = {1, framing.size[0], (int64_t)framing.size[0] * framing.size[1]};
    return is_voxel ? slice * steps[frame.axis] + u * steps[frame.across[0]] + v * steps[frame.across[1]] : -1;
}
