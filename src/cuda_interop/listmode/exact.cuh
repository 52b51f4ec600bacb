/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The exact elements of an event (docs/method/listmode.md, "Exact elements"), for one thread. The event's line crosses
 * planes of sample points. For each point near the line that may see both faces, the solid angle is computed. Points
 * are described relative to the line, because these coordinates are small compared with the crystals. The code also
 * compiles for the processor. */
#pragma once

#include "common/bindings.h"
#include "cuda_interop/listmode/project.cuh"

#define MAX_CORNERS 8 /* four corners, and one more for each of four cuts */
#include "kernels/faces.glsl"

using path_points = lr_cuda_list_points;
#include "kernels/exact_path.glsl"
#include "kernels/exact_time.glsl"

/* --- the path of an event's line (lr_cuda_list_path) --- */

/* Returns a crystal's face in the coordinates of a frame. */
__host__ __device__ inline placed_face face_placed(const lr_cuda_list_pass &pass, const lr_cuda_list_frame &frame,
                                                   int crystal)
{
    const lr_cuda_list_hit &hit = pass.events.hits[crystal];
    placed_face face;
    face.module = pass.exact.module_of[crystal];
    const lr_cuda_list_module &of = pass.exact.modules[face.module];
    const int axes[3] = {frame.axis, frame.across[0], frame.across[1]};
    for (int c = 0; c < 3; c++) {
        face.centre[c] = hit.mm[axes[c]];
        face.across[c] = of.across[axes[c]];
        face.along[c] = of.along[axes[c]];
        face.normal[c] = of.normal[axes[c]];
    }
    face.half_mm[0] = of.across[3];
    face.half_mm[1] = of.along[3];
    return face;
}

/* Computes the path of arranged event k. */
__host__ __device__ inline lr_cuda_list_path find_path(const lr_cuda_list_pass &pass, const lr_cuda_list_frame &frame,
                                                       bool has_tof, int64_t k)
{
    const int32_t a = pass.events.crystals[0][k], b = pass.events.crystals[1][k];
    const lr_cuda_list_hit &hit_a = pass.events.hits[a], &hit_b = pass.events.hits[b];
    const bool is_turned = hit_b.mm[frame.axis] < hit_a.mm[frame.axis];
    const placed_face low = face_placed(pass, frame, is_turned ? b : a);
    const placed_face high = face_placed(pass, frame, is_turned ? a : b);
    const double tof[3] = {has_tof ? (is_turned ? -1.0 : 1.0) * (double)pass.events.tof_mm[k] : 0.0,
                           has_tof ? sigma_of(pass.events, hit_a, hit_b) : 0.0,
                           has_tof ? bin_of(pass.events, hit_a, hit_b) : 0.0};
    const face_line line = line_between(low, high);
    const face_lean low_lean = lean_of(low, line, -1.0), high_lean = lean_of(high, line, 1.0);
    const path_planes planes = planes_of(low, high, line, tof, frame.points, pass.exact.reach_mm);
    const double way_mm = way_to(low, line, frame.points, planes.first);
    lr_cuda_list_path path = {};
    path.planes[0] = planes.first;
    path.planes[1] = planes.last;
    for (int c = 0; c < 2; c++) {
        constexpr double parts = 4294967296.0;
        path.at[c] = (int64_t)floor(planes.at[c] * parts);
        path.step[c] = (int64_t)floor(planes.step[c] * parts + 0.5);
        path.reach[c] = (float)planes.reach[c];
        path.widening[c] = (float)planes.widening[c];
    }
    path.way_mm = (float)way_mm;
    path.way_step_mm = (float)(frame.points.step_mm[0] * line.per_along);
    path.length_mm = (float)line.length_mm;
    for (int c = 0; c < 3; c++) {
        path.low_lean[c] = low_lean.lean[c];
        path.high_lean[c] = high_lean.lean[c];
    }
    path.modules[0] = low.module;
    path.modules[1] = high.module;
    if (tof[1] > 0) {
        const path_time time = time_along(line, way_mm, tof, frame.points);
        const double per_sigma = 1.0 / tof[1];
        path.place = (float)time.place;
        path.place_step = (float)time.step;
        for (int c = 0; c < 3; c++) path.gain[c] = (float)time.gain[c];
        path.half = (float)(0.5 * time.extent * per_sigma);
        path.half_bin = (float)(0.5 * tof[2] * per_sigma);
    }
    return path;
}

/* Returns the path of arranged event k: the stored one, or one that is computed now. */
__host__ __device__ inline lr_cuda_list_path path_of(const lr_cuda_list_pass &pass, const lr_cuda_list_frame &frame,
                                                     bool has_tof, int64_t k)
{
    return pass.events.paths != nullptr ? pass.events.paths[k] : find_path(pass, frame, has_tof, k);
}

/* --- faces --- */

/* Returns the size and the orientation of the module's crystal faces, in the frame's coordinates. */
__host__ __device__ inline angle_face face_seen(const lr_cuda_list_module &module, const lr_cuda_list_frame &frame,
                                                const float lean[3], float per_piece)
{
    angle_face seen;
#pragma unroll
    for (int c = 0; c < 2; c++) {
        const int axis = frame.across[c];
        const double step_mm = frame.points.step_mm[1 + c];
        seen.across[c] = (float)(module.across[axis] * step_mm);
        seen.along[c] = (float)(module.along[axis] * step_mm);
        seen.normal[c] = (float)(module.normal[axis] * step_mm);
        seen.half_mm[c] = (float)(c == 0 ? module.across[3] : module.along[3]);
        const float pieces = ceilf(seen.half_mm[c] * per_piece);
        seen.pieces[c] = (int)fminf(fmaxf(pieces, 1.0f), (float)LR_EVENTS_EXACT_PIECES);
        seen.piece_mm[c] = seen.half_mm[c] / (float)seen.pieces[c];
    }
#pragma unroll
    for (int c = 0; c < 3; c++) seen.lean[c] = lean[c];
    return seen;
}

/* --- the walk of a line through planes --- */

struct exact_walk {
    int64_t at[2], step[2];      /* as in lr_cuda_list_path, for the next plane */
    float reach[2], widening[2]; /* as in lr_cuda_list_path, for the first plane of the walk */
    float way, way_step;         /* way_mm at the walk's first plane, and its increase per plane */
    int first, plane, last;      /* first plane of the walk, current plane, and one after the last */
    int whole[2], low[2], high[2], point[2];
    float part[2], way_mm;
    bool is_turned; /* true if the face at the upper end is the near face */

    /* Walks through planes begin .. end - 1 of the path's planes. */
    __host__ __device__ exact_walk(const lr_cuda_list_path &path, int begin, int end)
        : first(path.planes[0] > begin ? path.planes[0] : begin), last(path.planes[1] < end ? path.planes[1] : end),
          is_turned(false)
    {
        const int skipped = first - path.planes[0];
        for (int c = 0; c < 2; c++) {
            at[c] = path.at[c] + skipped * path.step[c];
            step[c] = path.step[c];
            reach[c] = path.reach[c] + (float)skipped * path.widening[c];
            widening[c] = path.widening[c];
            point[c] = low[c] = high[c] = 0;
        }
        way = path.way_mm + (float)skipped * path.way_step_mm;
        way_step = path.way_step_mm;
        plane = first - 1;
    }
};

/* Finds the points of plane walk.plane that may have elements, and moves `at` on to the plane after it. planes: number
 * of planes from the walk's first plane to this one. */
__host__ __device__ inline void open_window(exact_walk &walk, const lr_cuda_list_points &grid, float planes)
{
    for (int c = 0; c < 2; c++) {
        const float reach = walk.reach[c] + planes * walk.widening[c];
        walk.whole[c] = (int)(walk.at[c] >> 32);
        walk.part[c] = (float)((uint32_t)walk.at[c] >> 8) * (1.0f / 16777216);
        walk.at[c] += walk.step[c];
        const int low = walk.whole[c] + (int)ceilf(walk.part[c] - reach);
        const int high = walk.whole[c] + (int)floorf(walk.part[c] + reach) + 1;
        walk.low[c] = low > 0 ? low : 0;
        walk.high[c] = high < grid.points[1 + c] ? high : grid.points[1 + c];
        walk.point[c] = walk.low[c];
    }
    walk.high[1] = walk.low[0] < walk.high[0] ? walk.high[1] : walk.low[1];
}

/* Finds the slices that an event reaches, and how many steps of 2 x 2 points it needs. `wide`: 0 if one step has all
 * points of a plane; 1 if this is so along one axis only; otherwise 2. */
__host__ __device__ inline list_extent exact_extent(const lr_cuda_list_pass &pass, const lr_cuda_list_frame &frame,
                                                    bool has_tof, int64_t k)
{
    const lr_cuda_list_points &grid = frame.points;
    exact_walk walk(path_of(pass, frame, has_tof, k), 0, grid.points[0]);
    list_extent extent = {};
    extent.slices[0] = walk.first / grid.samples[0];
    extent.slices[1] = walk.first < walk.last ? (walk.last - 1) / grid.samples[0] + 1 : extent.slices[0];
    for (int c = 0; c < 2; c++) {
        const float last = (float)(walk.last - walk.first);
        const float most = fmaxf(walk.reach[c], walk.reach[c] + last * walk.widening[c]);
        extent.wide += most > 1.0f ? 1 : 0;
    }
    for (int plane = walk.first; plane < walk.last; plane++) {
        open_window(walk, grid, (float)(plane - walk.first));
        const int u = walk.high[0] - walk.low[0], v = walk.high[1] - walk.low[1];
        extent.steps += u > 0 && v > 0 ? (uint32_t)(u + 1) / 2 * ((uint32_t)(v + 1) / 2) : 0;
    }
    return extent;
}

/* Voxel numbers and elements of 2 x 2 points: point (i, j) has index 2 i + j. middles: distances of the voxels' middles
 * from the centre of the time of flight, in standard deviations. */
struct exact_four {
    int at[4];
    float elements[4], middles[4];

    __host__ __device__ void merge(int to, int from)
    {
        const bool is_same = at[to] == at[from];
        elements[to] += is_same ? elements[from] : 0.0f;
        elements[from] = is_same ? 0.0f : elements[from];
    }
};

/* The receiver of an event's elements is a type with the functions below. Elements are in units of
 * lr_cuda_list_points::share.
 *   void open(k, at): announces element k of the next four; at: its voxel; any voxel if it has no point
 *   void take_four(four): takes the four announced elements
 *   void take(at, element): takes a single element */
template <class Each> struct exact_each {
    Each &each;
    float share;

    __host__ __device__ void open(int, int) {}
    __host__ __device__ void take(int at, float element)
    {
        if (element > 0.0f) each(at, element * share);
    }
    /* Elements of the same voxel are merged first, because adding to memory is slow. */
    __host__ __device__ void take_four(exact_four four)
    {
        four.merge(0, 1);
        four.merge(2, 3);
        four.merge(0, 2);
        four.merge(1, 3);
#pragma unroll
        for (int k = 0; k < 4; k++) take(four.at[k], four.elements[k]);
    }
};

/* Loads numbers before their elements are known, so that loads and computation overlap. */
struct exact_reader {
    const float *numbers;
    float sum, held[4];

    __host__ __device__ void open(int k, int at) { held[k] = numbers[at]; }
    __host__ __device__ void take(int at, float element) { sum += element * numbers[at]; }
    __host__ __device__ void take_four(const exact_four &four)
    {
#pragma unroll
        for (int k = 0; k < 4; k++) sum += four.elements[k] * held[k];
    }
};

/* Computes the elements of an event in some slices of its frame. */
template <bool Leaning, list_times Times> struct exact_event {
    const lr_cuda_list_points &grid;
    int origin; /* number of the frame's first voxel */
    angle_view view;
    exact_walk walk;
    exact_time time;

    __host__ __device__ exact_event(const lr_cuda_list_pass &pass, const lr_cuda_list_frame &frame,
                                    const lr_cuda_list_path &known, const int32_t slices[2])
        : grid(frame.points), origin((frame.window[0] - 1) * frame.pitch + frame.window[1] - 1),
          walk(known, slices[0] * grid.samples[0], slices[1] * grid.samples[0])
    {
        if (walk.first >= walk.last) return;
        const lr_cuda_list_module &low = pass.exact.modules[known.modules[0]];
        const lr_cuda_list_module &high = pass.exact.modules[known.modules[1]];
        const float per_piece = quotient_of((float)(2.0 / LR_EVENTS_EXACT_HALF), known.length_mm);
        view.near_face = face_seen(low, frame, known.low_lean, per_piece);
        view.far_face = face_seen(high, frame, known.high_lean, per_piece);
        view.length_mm = known.length_mm;
        view.across_across = (float)product_of(low.across, high.across);
        view.normal_across = (float)product_of(low.normal, high.across);
        view.across_normal = (float)product_of(low.across, high.normal);
        if constexpr (Leaning) {
            view.along_along = (float)product_of(low.along, high.along);
            view.across_along = (float)product_of(low.across, high.along);
            view.along_across = (float)product_of(low.along, high.across);
            view.normal_along = (float)product_of(low.normal, high.along);
            view.along_normal = (float)product_of(low.along, high.normal);
        }
        if constexpr (Times != NO_TIMES) {
            time.place = known.place + (float)(walk.first - known.planes[0]) * known.place_step;
            time.step = known.place_step;
            time.half_extent = known.half;
            time.half_bin = Times == TIMES_IN_BINS ? known.half_bin : 0.0f;
            time.per_mm = (float)(0.5 / LR_TIMES_HELD) * quotient_of(known.place_step, known.way_step_mm * known.half);
            for (int c = 0; c < 3; c++) time.gain[c] = known.gain[c];
            time = with_series(time);
        }
    }

    /* Moves to the next `step` by `step` points of a plane, whose lowest point is walk.point. Returns false if no
     * points are left. */
    __host__ __device__ bool walk_on(int step)
    {
        walk.point[0] += step;
        if (walk.point[0] >= walk.high[0]) {
            walk.point[0] = walk.low[0];
            walk.point[1] += step;
        }
        while (walk.point[1] >= walk.high[1]) {
            walk.plane++;
            if (walk.plane >= walk.last) return false;
            const float planes = (float)(walk.plane - walk.first);
            open_window(walk, grid, planes);
            walk.way_mm = walk.way + planes * walk.way_step;
            const bool turns = !walk.is_turned && walk.way_mm > 0.5f * view.length_mm;
            if (any_lane_of(turns) && turns) { /* a branch, because lines rarely turn and turning takes long */
                view = turned_round(view);
                walk.is_turned = true;
            }
        }
        return true;
    }

    /* Returns the number, along an axis, of the voxel that contains a point. The result is a whole number. */
    __host__ __device__ float voxel_along(int c, int point) const
    {
        return floorf(((float)point + 0.5f) * grid.per_sample[c]);
    }

    __host__ __device__ float off_along(int c, int point) const
    {
        return (float)(point - walk.whole[c]) - walk.part[c];
    }

    /* Returns the distance from the centre of the time of flight to a voxel's middle, in standard deviations. It is the
     * sum of three terms: one for the voxel's plane, one along u and one along v. off: offset of the point from the
     * line. */
    __host__ __device__ float middle_of_plane(float voxel) const
    {
        return time.place + (float)(walk.plane - walk.first) * time.step +
               to_middle(0, voxel, walk.plane) * time.gain[0];
    }
    __host__ __device__ float middle_along(int c, float voxel, int point, float off) const
    {
        return (to_middle(c, voxel, point) + off) * time.gain[c];
    }
    __host__ __device__ float to_middle(int c, float voxel, int point) const
    {
        return (voxel + 0.5f) * (float)grid.samples[c] - 0.5f - (float)point;
    }

    /* Returns the mean of the Gaussian over the extent of a voxel with this middle, per mm. */
    __host__ __device__ float time_weight(float middle) const
    {
        if (fabsf(middle) <= time.whole) return weight_of_whole(time, middle);
        if (Times == TIMES_IN_BINS && time.half_bin > 0.0f)
            return (float)LR_TIMES_HELD * held_of_bin(middle, time.half_extent, time.half_bin) * time.per_mm;
        return weight_of_part(time, middle);
    }

    /* Finds the distances along the line from the point to the near face and to the far face. */
    __host__ __device__ void find_ways(float ways[2]) const
    {
        const float rest = view.length_mm - walk.way_mm;
        ways[0] = walk.is_turned ? rest : walk.way_mm;
        ways[1] = walk.is_turned ? walk.way_mm : rest;
    }

    /* Calls each(number, element) for each point. number: number of the point's voxel in the frame. element: the
     * point's share of the voxel's element. */
    template <class Each>
    __host__ __device__ void each_element(const lr_cuda_list_frame &frame, lane_group lanes, Each &&each)
    {
        exact_each<Each> taker = {each, grid.share};
        give_elements(frame, lanes, taker);
    }

    /* Passes the event's elements to a receiver, including elements of 0. lanes: all lanes that call this function with
     * an event. */
    template <class Taker>
    __host__ __device__ void give_elements(const lr_cuda_list_frame &frame, lane_group lanes, Taker &taker)
    {
        bool has_columns = false;
        const bool is_empty = walk.first >= walk.last;
        if constexpr (!Leaning) has_columns = !is_empty && ::has_columns(view);
        const lane_group by_columns = lanes.where(has_columns);
        const lane_group by_points = lanes.where(!is_empty && !has_columns);
        if (has_columns) {
            by_columns.any(!are_small(view)) ? give_columns<false>(frame, by_columns, taker)
                                             : give_columns<true>(frame, by_columns, taker);
        } else if (!is_empty) {
            give_points(frame, by_points, taker);
        }
    }

    template <class Taker>
    __host__ __device__ void give_points(const lr_cuda_list_frame &frame, lane_group lanes, Taker &taker)
    {
        bool has_point = walk_on(1);
        while (lanes.any(has_point)) {
            if (has_point) {
                const float off[2] = {off_along(0, walk.point[0]), off_along(1, walk.point[1])};
                float ways[2];
                find_ways(ways);
                float element = Leaning ? leaning_angle(view, off, ways) : upright_angle(view, off, ways);
                if (element > 0.0f) {
                    const float plane = voxel_along(0, walk.plane);
                    const float u = voxel_along(1, walk.point[0]), v = voxel_along(2, walk.point[1]);
                    const int at = (int)plane * frame.plane + origin + (int)u * frame.pitch + (int)v;
                    if (Times != NO_TIMES) {
                        element *= time_weight(middle_of_plane(plane) + middle_along(1, u, walk.point[0], off[0]) +
                                               middle_along(2, v, walk.point[1], off[1]));
                    }
                    taker.take(at, element);
                }
                has_point = walk_on(1);
            }
        }
    }

    /* Passes the elements of 2 x 2 points at once. Lines of a warp are similar: they have about equally many planes
     * with elements, and one or two points along either axis of a plane. The lanes of a warp therefore have equal work.
     * If a second point is missing, its number is that of any voxel, or of the margin. */
    template <bool AreSmall, class Taker>
    __host__ __device__ void give_columns(const lr_cuda_list_frame &frame, lane_group lanes, Taker &taker)
    {
        bool has_points = walk_on(2);
        while (lanes.any(has_points)) {
            if (has_points) {
                give_four<AreSmall>(frame, taker);
                has_points = walk_on(2);
            }
        }
    }

    template <bool AreSmall, class Taker>
    __host__ __device__ void give_four(const lr_cuda_list_frame &frame, Taker &taker)
    {
        const float plane = voxel_along(0, walk.plane);

        /* The values of a row of points are the same in both columns. */
        const bool has_two = walk.point[1] + 1 < walk.high[1];
        float row_v[2], row_along[2], row_middles[2];
#pragma unroll
        for (int j = 0; j < 2; j++) {
            const int point = walk.point[1] + j;
            const float off = off_along(1, point);
            row_v[j] = voxel_along(2, point);
            row_along[j] = view.near_face.along[1] * off;
            row_middles[j] = Times != NO_TIMES ? middle_of_plane(plane) + middle_along(2, row_v[j], point, off) : 0.0f;
        }
        const int columns = walk.high[0] - walk.point[0];
        float ways[2];
        find_ways(ways);
        exact_four four = {};
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const float u = voxel_along(1, walk.point[0] + i);
            const int number = (int)plane * frame.plane + origin + (int)u * frame.pitch;
#pragma unroll
            for (int j = 0; j < 2; j++) {
                four.at[2 * i + j] = number + (int)row_v[j];
                taker.open(2 * i + j, four.at[2 * i + j]);
            }
            if (AreSmall || i < columns) { /* elements of missing points are 0 */
                const int point = walk.point[0] + i;
                const float off = off_along(0, point);
                const angle_column column = column_of(view, off, ways);
                const bool is_there = point < walk.high[0] && column.width > 0.0f;
                const float middle = Times != NO_TIMES ? middle_along(1, voxel_along(1, point), point, off) : 0.0f;
                float angles[2];
                find_angles<AreSmall>(column, row_along, angles);
#pragma unroll
                for (int j = 0; j < 2; j++) {
                    four.elements[2 * i + j] = is_there && (j == 0 || has_two) ? angles[j] : 0.0f;
                    four.middles[2 * i + j] = row_middles[j] + middle;
                }
            }
        }
        if constexpr (Times != NO_TIMES) weigh(four);
        taker.take_four(four);
    }

    /* Both solid angles are computed together. Otherwise, a thread would wait for each result. */
    template <bool AreSmall>
    __host__ __device__ void find_angles(const angle_column &column, const float along[2], float angles[2]) const
    {
        const float limit = view.far_face.half_mm[1];
        if constexpr (AreSmall)
            for (int j = 0; j < 2; j++) angles[j] = level_column_angle(column, along[j], limit);
        else if (is_steep(column, along[0], limit) || is_steep(column, along[1], limit))
            for (int j = 0; j < 2; j++) angles[j] = column_angle(column, along[j], limit, true);
        else
            for (int j = 0; j < 2; j++) angles[j] = column_angle(column, along[j], limit, false);
    }

    /* Multiplies elements by their time-of-flight weights. For most lines, the middles of all four voxels are nearer
     * than time.whole, so one branch decides for all four. */
    __host__ __device__ void weigh(exact_four &four) const
    {
        const float *middles = four.middles;
        const float most =
            fmaxf(fmaxf(fabsf(middles[0]), fabsf(middles[1])), fmaxf(fabsf(middles[2]), fabsf(middles[3])));
        if (most <= time.whole) {
#pragma unroll
            for (int k = 0; k < 4; k++) four.elements[k] *= weight_of_whole(time, middles[k]);
            return;
        }
#pragma unroll
        for (int k = 0; k < 4; k++) four.elements[k] *= four.elements[k] > 0.0f ? time_weight(middles[k]) : 0.0f;
    }
};

/* --- projections --- */

/* Computes the value of an event. lanes (also below): all lanes that call this function with an event. */
template <bool Leaning, list_times Times>
__host__ __device__ void exact_forward(const lr_cuda_list_pass &pass, const lr_cuda_list_frame &frame, int64_t k,
                                       lane_group lanes)
{
    const int32_t all[2] = {0, frame.slices};
    exact_reader reader = {held_address(pass.numbers + frame.begin), 0.0f, {0.0f, 0.0f}};
    exact_event<Leaning, Times> event(pass, frame, path_of(pass, frame, Times != NO_TIMES, k), all);
    event.give_elements(frame, lanes, reader);
    pass.values[place_of(pass, k)] = reader.sum * frame.points.share;
}

/* Adds the elements of an event whose value is not 0. Elements of consecutive points in one voxel are added up
 * first. */
template <bool Leaning, list_times Times, class Add>
__host__ __device__ void exact_back(const lr_cuda_list_pass &pass, const lr_cuda_list_frame &frame, int64_t k,
                                    lane_group lanes, Add &&add)
{
    const int32_t all[2] = {0, frame.slices};
    const float value = value_at(pass, k);
    float *numbers = pass.numbers + frame.begin, sum = 0.0f;
    int held = 0;
    exact_event<Leaning, Times> event(pass, frame, path_of(pass, frame, Times != NO_TIMES, k), all);
    event.each_element(frame, lanes, [&](int at, float element) {
        if (at != held) {
            if (sum != 0.0f) add(numbers + held, sum * value);
            held = at;
            sum = 0.0f;
        }
        sum += element;
    });
    if (sum != 0.0f) add(numbers + held, sum * value);
}

/* --- back, in slabs --- */

/* Approximate upper bound of the number that an event adds to a voxel. Every point is at least half of the line's
 * length, minus the face's radius, away from one of the two faces. If the faces are too near to each other, there is no
 * bound, and the result is 0. */
struct exact_sizes {
    __host__ __device__ static float of(const lr_cuda_list_pass &pass, const list_block &block, int event)
    {
        const int64_t k = block.chunk.begin + event;
        const bool has_tof = block.chunk.has_tof != 0;
        float length_mm, per_sigma;
        if (pass.events.paths != nullptr) {
            const lr_cuda_list_path &known = pass.events.paths[k];
            length_mm = known.length_mm;
            per_sigma = known.place_step / known.way_step_mm;
        } else {
            const lr_cuda_list_events &events = pass.events;
            const lr_cuda_list_hit &a = events.hits[events.crystals[0][k]];
            const lr_cuda_list_hit &b = events.hits[events.crystals[1][k]];
            float square = 0.0f;
            for (int c = 0; c < 3; c++) {
                const float along = (float)(b.mm[c] - a.mm[c]);
                square += along * along;
            }
            length_mm = sqrtf(square);
            per_sigma = 1.0f / (float)sigma_of(events, a, b); /* infinite if there is no time of flight */
        }
        const float way = 0.5f * length_mm - pass.exact.radius_mm;
        const float density = has_tof ? fminf(0.4f * per_sigma, pass.exact.per_edge) : 1.0f;
        const float most = pass.exact.face / (way * way) * density;
        return way > 0.0f ? fabsf(value_at(pass, k)) * most : 0.0f;
    }
};

/* The factor for the values of a block, a power of two. With this factor, the largest elements of events of average
 * size become whole numbers of 26 bits. */
struct exact_unit {
    float scale, unit;

    __host__ __device__ explicit exact_unit(double mean_log2)
    {
        const int exponent = (int)fmin(fmax(26.0 - floor(mean_log2), -100.0), 120.0);
        scale = ldexpf(1.0f, exponent);
        unit = ldexpf(1.0f, -exponent);
    }
};

/* Sums of a slab as 32-bit integers, which shared memory adds faster than floats. Very small elements would lose
 * digits: an element of fewer than 14 bits is therefore added to the image as a float, so that a voxel loses at most
 * 3e-5 of its value. An element of more than 30 bits is also added as a float. If a sum overflows its word, 2^32 units
 * are added to the image. The type Slab has
 *   int32_t add_word(at, number)   returns the previous word
 *   void add_float(at, number)     adds to the image */
template <class Slab> struct exact_sums {
    Slab slab;
    float scale, unit; /* scale: factor from values to whole numbers; unit: 1 / scale */
    float least;       /* smallest number that is added as a word; infinite = all are added as floats */
    float scaled;      /* factor from the event's elements to the numbers that are added */

    __host__ __device__ void open(int, int) {}
    __host__ __device__ void take(int at, float element) const
    {
        const float number = element * scaled;
        const int32_t term = term_of(number);
        settle(at, number, term, term != 0 ? slab.add_word(at, term) : 0);
    }
    /* Adds the words of all four elements, even zeros, and only then uses the results. Otherwise a thread would wait
     * four times. A branch around zeros would take longer. */
    __host__ __device__ void take_four(const exact_four &four) const
    {
        int32_t terms[4], before[4] = {};
        float numbers[4];
#pragma unroll
        for (int k = 0; k < 4; k++) {
            numbers[k] = four.elements[k] * scaled;
            terms[k] = term_of(numbers[k]);
        }
        if (least < INFINITY) {
#pragma unroll
            for (int k = 0; k < 4; k++) before[k] = slab.add_word(four.at[k], terms[k]);
        }
        bool is_any_open = false;
#pragma unroll
        for (int k = 0; k < 4; k++) is_any_open |= is_open(numbers[k], terms[k], before[k]);
        if (is_any_open) {
#pragma unroll
            for (int k = 0; k < 4; k++) settle(four.at[k], numbers[k], terms[k], before[k]);
        }
    }

    /* Returns the word that is added for a number; 0 if the number has too few or too many bits for a word. */
    __host__ __device__ int32_t term_of(float number) const
    {
        const float size = fabsf(number);
        return size >= least && size < 1073741824.0f ? word_of(number) : 0;
    }
    __host__ __device__ static bool is_beyond(int32_t term, int32_t before)
    {
        const int32_t after = (int32_t)((uint32_t)before + (uint32_t)term);
        return ((before ^ after) & (term ^ after)) < 0;
    }
    /* Returns true if the number, or an overflow, still has to be added as a float. */
    __host__ __device__ static bool is_open(float number, int32_t term, int32_t before)
    {
        return (term == 0 && number != 0.0f) || is_beyond(term, before);
    }
    __host__ __device__ void settle(int at, float number, int32_t term, int32_t before) const
    {
        if (is_beyond(term, before))
            slab.add_float(at, copysignf(4294967296.0f, number) * unit);
        else if (term == 0 && number != 0.0f)
            slab.add_float(at, number * unit);
    }
};

constexpr float least_exact = 16384.0f;

/* Adds an event whose value is not 0, within the block's slices. Voxels are numbered from the frame's first voxel.
 * sums: `scaled` is not set yet. If the product of value and scale is too small or too large for a float with full
 * precision, the value is not scaled, and all elements are added as floats. */
template <bool Leaning, list_times Times, class Slab>
__host__ __device__ void exact_back_slab(const lr_cuda_list_pass &pass, const list_block &block, int64_t k,
                                         lane_group lanes, exact_sums<Slab> sums)
{
    const float value = value_at(pass, k), scaled = value * sums.scale, size = fabsf(scaled);
    if (size > 1e-20f && size < 1e30f) {
        sums.scaled = scaled * block.frame.points.share;
    } else {
        sums.scaled = value * block.frame.points.share;
        sums.unit = 1.0f;
        sums.least = INFINITY;
    }
    exact_event<Leaning, Times> event(pass, block.frame, path_of(pass, block.frame, Times != NO_TIMES, k),
                                      block.job.slices);
    event.give_elements(block.frame, lanes, sums);
}
