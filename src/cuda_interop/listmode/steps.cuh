/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The paper's steps (II.B): the work of one thread, which has one line. The code also compiles for the processor. Rows
 * and columns of a slice include the margins. A tile is a type with
 *   float load(row, column)         a number; 0 outside the tile
 *   void add(row, column, number)   adds to a number; does nothing outside the tile */
#pragma once

#include "cuda_interop/listmode/project.cuh"

/* The threads of a block, whose lines cross slices together. */
constexpr int step_threads = 512;

/* --- lines --- */

/* A thread's line. If the thread has no line, slices[0] == slices[1]. */
struct step_line {
    int axis;
    int64_t place;
    line_walk walk;
    float value; /* the event's value, for back projection; 0 = the thread has no line */
    float sum;   /* the event's sum, for forward projection */

    __host__ __device__ step_line(const lr_cuda_list_step &step, int64_t k, bool is_back)
        : axis(step.axis), place(-1), walk(), value(0), sum(0)
    {
        const lr_cuda_list_events &events = step.pass.events;
        walk.chord = 1;
        if (k >= step.count) return;
        place = place_of_number(step.pass.places, step.records != nullptr ? step.records[k].number : events.number[k]);
        if (place < 0) return;
        value = !is_back || step.pass.values_are_one ? 1.0f : step.pass.values[place];
        if (value == 0.0f) return;

        list_event event;
        if (step.records != nullptr) {
            const lr_cuda_list_record &record = step.records[k];
            event = {record.a, record.b, record.tof_mm};
        } else {
            event = {events.crystals[0][k], events.crystals[1][k], events.tof_mm[k]};
        }
        const lr_cuda_list_hit &a = events.hits[event.a], &b = events.hits[event.b];
        if (step.axis < 0) { /* the same choice as lr_listmode_axis */
            const double run[3] = {fabs(b.mm[0] - a.mm[0]), fabs(b.mm[1] - a.mm[1]), fabs(b.mm[2] - a.mm[2])};
            axis = run[1] > run[0] ? 1 : 0;
            axis = run[2] > run[axis] ? 2 : axis;
        }
        const int of_a = (int)a.kind, of_b = (int)b.kind, kinds = events.num_kinds;
        const bool has_tof = of_a < kinds && of_b < kinds && events.sigma_mm[of_a * kinds + of_b] > 0;
        const lr_cuda_list_frame &frame = step.pass.frames[axis];
        const int32_t all[2] = {0, frame.slices};
        walk = walk_event(step.pass, frame, has_tof, event, all);
    }

    __host__ __device__ bool meets(int slice) const { return slice >= walk.slices[0] && slice < walk.slices[1]; }
};

/* The values of a line that all its slices share. */
struct step_way {
    slice_factors<true> factors;
    crossings first; /* crossings, beginning with the walk's first slice */

    __host__ __device__ step_way(const lr_cuda_list_step &step, const step_line &line)
        : factors(step.pass, line.walk), first(step.pass.frames[line.axis < 0 ? 0 : line.axis], line.walk)
    {
    }
};

/* --- footprints --- */

template <class Math> struct step_gaussian {
    __host__ __device__ static float of(const lr_cuda_list_tube &tube, float square)
    {
        return Math::power(-fminf(square, tube.half)) * between_0_and_1(tube.rim - tube.fall * square);
    }
};

/* Calls `each` with the shares of a slice's voxels, and with their rows and columns. */
template <class Share> struct tube_footprint {
    static constexpr bool is_tube = true;

    template <class Each>
    __host__ __device__ static void go(const lr_cuda_list_step &step, const lr_cuda_list_frame &frame,
                                       const line_walk &walk, const share_window &window, Each &&each)
    {
        const bool is_fixed = step.axis >= 0;
        const int own[2] = {(int)window.span[0] + 1, (int)window.span[1] + 1};
        const int rows = is_fixed || own[0] > frame.window[0] ? frame.window[0] : own[0];
        const int columns = is_fixed || own[1] > frame.window[1] ? frame.window[1] : own[1];
        for (int i = 0; i < rows; i++) {
            const float u = window.off[0] + (float)i;
            for (int j = 0; j < columns; j++) {
                const float v = window.off[1] + (float)j;
                const float square = v * (walk.vv * v + walk.uv * u) + walk.uu * u * u;
                each(Share::of(step.pass.tube, square), window.place[0] + i, window.place[1] + j);
            }
        }
    }
};

struct line_footprint {
    static constexpr bool is_tube = false;

    template <class Each>
    __host__ __device__ static void go(const lr_cuda_list_step &, const lr_cuda_list_frame &, const line_walk &,
                                       const share_window &window, Each &&each)
    {
        const float u = -window.off[0], v = -window.off[1];
        each((1.0f - u) * (1.0f - v), window.place[0], window.place[1]);
        each((1.0f - u) * v, window.place[0], window.place[1] + 1);
        each(u * (1.0f - v), window.place[0] + 1, window.place[1]);
        each(u * v, window.place[0] + 1, window.place[1] + 1);
    }
};

/* Projects a line in one slice, or in the part of the slice that is in a tile. */
template <class Footprint, class Math, class Tile>
__host__ __device__ void step_slice(const lr_cuda_list_step &step, step_line &line, const step_way &way, int slice,
                                    bool is_back, const Tile &tile)
{
    const lr_cuda_list_frame &frame = step.pass.frames[line.axis];
    const float factor = way.factors.template at<Math>(step.pass, line.walk, slice);
    crossings crossing = way.first;
    share_window window;
    crossing.go_on(slice - line.walk.slices[0]);
    if (!crossing.open(frame, line.walk, window) || !(factor > 0.0f)) return;
    float sum = 0, numbers = 0;
    Footprint::go(step, frame, line.walk, window, [&](float share, int row, int column) {
        sum += share;
        numbers += is_back ? 0.0f : share * tile.load(row, column);
    });
    const bool is_shared = Footprint::is_tube && !step.pass.as_paper;
    const float scale = !is_shared ? factor : sum > 0.0f ? Math::quotient(factor, sum) : 0.0f;
    line.sum += scale * numbers;
    if (is_back) {
        const float scaled = line.value * scale;
        Footprint::go(step, frame, line.walk, window, [&](float share, int row, int column) {
            if (share > 0.0f) tile.add(row, column, scaled * share);
        });
    }
}

/* --- the image in global memory --- */

/* Returns the index, in the grid's order, of voxel (row, column) of a frame's slice; -1 if the voxel is in a margin. */
__host__ __device__ inline int64_t voxel_at(const lr_cuda_list_step &step, const lr_cuda_list_frame &frame, int slice,
                                            int row, int column)
{
    const int u = row - (frame.window[0] - 1), v = column - (frame.window[1] - 1);
    const int64_t steps[3] = {1, step.size[0], (int64_t)step.size[0] * step.size[1]};
    return u >= 0 && u < frame.size[0] && v >= 0 && v < frame.size[1]
               ? slice * steps[frame.axis] + u * steps[frame.across[0]] + v * steps[frame.across[1]]
               : -1;
}

/* --- slices in tiles --- */

/* Returns the number of rows of a slice that a tile can hold. */
__host__ __device__ inline int tile_rows(const lr_cuda_list_step &step, const lr_cuda_list_frame &frame)
{
    const int rows = step.tile_bytes / (int)sizeof(float) / frame.pitch;
    const int all = frame.size[0] + frame.window[0] - 1;
    return rows < 1 ? 1 : rows < all ? rows : all;
}

/* The part of a slice that is in a tile: `count` numbers of the slice, from number `begin` on. */
struct tile_span {
    int begin, count;

    __host__ __device__ tile_span(const lr_cuda_list_step &step, const lr_cuda_list_frame &frame, int first)
        : begin(first * frame.pitch)
    {
        const int all = frame.size[0] + frame.window[0] - 1, rows = tile_rows(step, frame);
        count = (all - first < rows ? all - first : rows) * frame.pitch;
    }

    /* Returns the index in the tile of a number of the slice; -1 if the number is not in the tile. */
    __host__ __device__ int find(const lr_cuda_list_frame &frame, int row, int column) const
    {
        const int at = row * frame.pitch + column - begin;
        return (unsigned)at < (unsigned)count ? at : -1;
    }
};
