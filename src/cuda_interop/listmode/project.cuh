/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A block's part of a projection, thread by thread, and the passes around it. Written for the
 * processor, too. */
#ifndef LR_CUDA_LISTMODE_PROJECT_CUH
#define LR_CUDA_LISTMODE_PROJECT_CUH

#include "cuda_interop/listmode/shares.cuh"

/* lr_cuda_list_cells. */
__host__ __device__ inline int64_t cells_of(const lr_cuda_list_frame &frame, int64_t slices)
{
    return slices * frame.plane + frame.tail;
}

/* Slices that an event's line meets, how large its windows are, from 0 on, and how many steps it takes, where that
 * is known. */
struct list_extent {
    int32_t slices[2];
    uint32_t wide, steps;
};

/* A block's work, and what it refers to. */
struct list_block {
    const lr_cuda_list_job &job;
    const lr_cuda_list_chunk &chunk;
    const lr_cuda_list_frame &frame;

    __host__ __device__ list_block(const lr_cuda_list_pass &pass, int number)
        : job(pass.jobs[number]), chunk(pass.chunks[job.chunk]), frame(pass.frames[chunk.axis])
    {
    }

    /* Numbers of the slab, margins included, and where they begin. */
    __host__ __device__ int cells() const { return (int)cells_of(frame, job.slices[1] - job.slices[0]); }
    __host__ __device__ float *numbers(const lr_cuda_list_pass &pass) const
    {
        return pass.numbers + frame.begin + (int64_t)job.slices[0] * frame.plane;
    }
};

/* Place of the value of arranged event k; -1: it is not selected. */
__host__ __device__ inline int64_t place_of(const lr_cuda_list_pass &pass, int64_t k)
{
    const lr_cuda_list_places &places = pass.places;
    const int32_t number = pass.events.number[k];
    const int64_t at = places.map != nullptr ? places.map[number] : number - places.first;
    return at >= 0 && at < places.count ? places.position + at : -1;
}

/* --- forward --- */

/* Lines that each block finds, or that are kept; without bins of time of flight, and with them. */
enum list_lines { FOUND, FOUND_IN_BINS, KEPT, KEPT_IN_BINS, NUM_LINES };

__host__ __device__ inline enum list_lines lines_of(const lr_cuda_list_events &events)
{
    const bool in_bins = events.bin_mm != nullptr;
    return events.lines == nullptr ? (in_bins ? FOUND_IN_BINS : FOUND) : (in_bins ? KEPT_IN_BINS : KEPT);
}

/* The slices of an event's line in a block's slab, from lines that are kept where there are any. */
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

__host__ __device__ inline void put_value(const lr_cuda_list_pass &pass, const lr_cuda_list_chunk &chunk, int event)
{
    const int64_t place = place_of(pass, chunk.begin + event);
    double sum = 0;
    for (int slab = 0; slab < chunk.slabs; slab++)
        sum += (double)pass.partial[chunk.partial + (int64_t)slab * chunk.count + event];
    if (place >= 0) pass.values[place] = (float)sum;
}

/* --- back --- */

/* Value of arranged event k; 0: it is not selected. */
__host__ __device__ inline float value_at(const lr_cuda_list_pass &pass, int64_t k)
{
    const int64_t place = place_of(pass, k);
    return place < 0 ? 0.0f : pass.values_are_one ? 1.0f : pass.values[place];
}

__host__ __device__ inline float value_of(const lr_cuda_list_pass &pass, const list_block &block, int event)
{
    return value_at(pass, block.chunk.begin + event);
}

/* Size of an event among those of a block: its value. */
struct list_sizes {
    __host__ __device__ static float of(const lr_cuda_list_pass &pass, const list_block &block, int event)
    {
        return fabsf(value_of(pass, block, event));
    }
};

/* The values that are taken, by their sizes, and their factor on the way to the tile. */
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
    const float value = value_of(pass, block, event);
    if (value != 0.0f && taking.takes(value)) {
        line_writer<Tile> writer = {tile, value * taking.scale};
        share_event<Sharer, Lines>(pass, block, block.chunk.begin + event, writer);
    }
}

/* Sums of whole numbers of this size at most fit 32 bits, with what rounding adds. */
constexpr double largest_fixed = 2.14e9;

/* Factor by which values are added as whole numbers; total: of their magnitudes. */
__host__ __device__ inline float fixed_scale(const list_block &block, double total)
{
    const double most = total * (double)block.frame.most[block.chunk.has_tof];
    return most > 0 ? (float)fmin(largest_fixed / most, 8e37) : 0.0f;
}

/* Events of a chunk by which its values are judged: of `samples` of them the one with this number. */
__host__ __device__ inline int sample_event(const list_block &block, int number, int samples)
{
    return (int)((int64_t)number * block.chunk.count / samples);
}

/* Values that whole numbers of one unit hold, of events whose sizes have this logarithm in the mean: an
 * event that sees next to nothing has a ratio by which all others would be rounded to 0, and voxels
 * would die. */
__host__ __device__ inline list_taking take_usual(double mean_log2)
{
    constexpr double spread_log2 = 4;
    return {(float)exp2(mean_log2 - spread_log2), (float)exp2(mean_log2 + spread_log2), 1.0f};
}

/* Takes all values as they are. */
__host__ __device__ inline list_taking take_all()
{
    return {0.0f, INFINITY, 1.0f};
}

/* Events of other sizes that a block adds to the image one by one; where there are more, it adds up
 * all of them in floats. */
constexpr int most_others = 160;

/* --- images and frames --- */

/* The voxel of a frame's number in the grid's order; -1: the number is of a margin. */
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

/* Number k of a frame. */
__host__ __device__ inline void fill_number(const lr_cuda_list_framing &framing, const lr_cuda_list_frame &frame,
                                            int64_t k)
{
    const int64_t voxel = voxel_of(framing, frame, k);
    framing.numbers[frame.begin + k] = voxel >= 0 ? framing.image[voxel] : 0.0f;
}

/* Voxel k of the image. */
__host__ __device__ inline void add_frames(const lr_cuda_list_framing &framing, int64_t k)
{
    const int64_t line = k / framing.size[0];
    const int at[3] = {(int)(k - line * framing.size[0]), (int)(line % framing.size[1]), (int)(line / framing.size[1])};
    double sum = 0;
    for (int axis = 0; axis < LR_CUDA_LIST_AXES; axis++) {
        const lr_cuda_list_frame &frame = framing.frames[axis];
        if (frame.has_events) {
            const int u = at[frame.across[0]] + frame.window[0] - 1;
            const int v = at[frame.across[1]] + frame.window[1] - 1;
            sum +=
                (double)framing.numbers[frame.begin + (int64_t)at[axis] * frame.plane + (int64_t)u * frame.pitch + v];
        }
    }
    framing.image[k] = (float)sum;
}

#endif
