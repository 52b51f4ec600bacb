/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The line of an event on its path through the slices of a frame. This is the version of listmode/line.h for a device's
 * threads, which also compiles for the processor. Axes are those of the frame: one along its axis, and two across it.
 * Positions are in double. */
#pragma once

#include "cuda_interop/listmode/lanes.cuh"
#include "cuda_interop/listmode/passes.h"

struct line_walk {
    double place, chord;         /* along the line: position of slice 0, and its increase per slice */
    double position[2], step[2]; /* crossing of slice 0 in voxels, and its increase per slice */
    double begin, end;           /* positions between which the line has elements */
    double tof, per_sigma;       /* per_sigma: 0 = without time of flight */
    float half_bin;              /* half of the bin around tof, in standard deviations; 0 = no bin */
    float uu, uv, vv;            /* equation 3: a voxel that is u and v voxels away from the crossing has the squared
                                    distance uu u^2 + uv u v + vv v^2 from the line, in the tube's unit */
    float half[2];               /* largest distance between the crossing and a share, in voxels */
    int slices[2];
};

__host__ __device__ inline double sigma_of(const lr_cuda_list_events &events, const lr_cuda_list_hit &a,
                                           const lr_cuda_list_hit &b)
{
    return events.sigma_mm[(int)a.kind * events.num_kinds + (int)b.kind];
}

__host__ __device__ inline double bin_of(const lr_cuda_list_events &events, const lr_cuda_list_hit &a,
                                         const lr_cuda_list_hit &b)
{
    return events.bin_mm != nullptr ? events.bin_mm[(int)a.kind * events.num_kinds + (int)b.kind] : 0.0;
}

/* An event in the form that walks need. */
struct list_event {
    int a, b; /* crystals */
    float tof_mm;
};

/* Returns the walk of an event through slices limits[0] .. limits[1] - 1. */
__host__ __device__ inline line_walk walk_event(const lr_cuda_list_pass &pass, const lr_cuda_list_frame &frame,
                                                bool has_tof, const list_event &event, const int32_t limits[2])
{
    const lr_cuda_list_events &events = pass.events;
    const lr_cuda_list_hit &a = events.hits[event.a];
    const lr_cuda_list_hit &b = events.hits[event.b];
    const int axes[3] = {frame.axis, frame.across[0], frame.across[1]};
    double middle[3], direction[3], square = 0;
    line_walk walk;
    for (int c = 0; c < 3; c++) {
        const double from = a.mm[axes[c]], to = b.mm[axes[c]];
        middle[c] = 0.5 * (from + to) - frame.origin_mm[c];
        direction[c] = to - from;
        square += direction[c] * direction[c];
    }
    const double sign = direction[0] < 0 ? -1.0 : 1.0, per_length = per_root(square);
    const double length = square * per_length, along = length / fabs(direction[0]);
    for (int c = 0; c < 3; c++) direction[c] *= sign * per_length;
    walk.chord = frame.voxel_mm[0] * along;
    walk.place = -middle[0] * along;

    /* The walk ends at the line's ends, or where the time of flight is cut off. */
    const double sigma = has_tof ? sigma_of(events, a, b) : 0.0, bin = has_tof ? bin_of(events, a, b) : 0.0;
    walk.begin = -0.5 * length;
    walk.end = 0.5 * length;
    walk.tof = has_tof ? sign * (double)event.tof_mm : 0.0;
    walk.per_sigma = 0;
    walk.half_bin = 0;
    if (sigma > 0) {
        const double reach = 3.0 * sigma + 0.5 * bin;
        walk.begin = fmax(walk.begin, walk.tof - reach);
        walk.end = fmin(walk.end, walk.tof + reach);
        walk.per_sigma = 1.0 / sigma;
        walk.half_bin = (float)(0.5 * bin * walk.per_sigma);
    }

    /* Finds the slices that the line may cross. */
    const double per_chord = direction[0] * frame.per_voxel[0], low = (double)limits[0], high = (double)limits[1];
    const double first = floor((walk.begin - walk.place) * per_chord + 0.5);
    const double last = floor((walk.end - walk.place) * per_chord + 0.5);
    walk.slices[0] = (int)fmin(fmax(first, low), high);
    walk.slices[1] = (int)fmin(fmax(last + 1.0, low), high);

    walk.half[0] = walk.half[1] = 1.0f;
    if (!pass.is_line) {
        const double u = direction[1], v = direction[2];
        const float radius = (float)(pass.tube.reach_mm * along);
        walk.uu = (float)(frame.uu * (1.0 - u * u));
        walk.vv = (float)(frame.vv * (1.0 - v * v));
        walk.uv = (float)(frame.uv * u * v);
        walk.half[0] = radius * (float)frame.per_voxel[1] * sqrtf((float)(1.0 - v * v));
        walk.half[1] = radius * (float)frame.per_voxel[2] * sqrtf((float)(1.0 - u * u));
    }

    for (int c = 0; c < 2; c++) {
        const double lean = direction[1 + c] * frame.per_voxel[1 + c];
        walk.step[c] = walk.chord * lean;
        walk.position[c] = middle[1 + c] * frame.per_voxel[1 + c] + walk.place * lean;

        /* Drops slices that the line crosses outside the image. A margin for rounding is kept: one slice, or one voxel
         * if the line is nearly parallel to the axis. */
        const float position = (float)walk.position[c], step = (float)walk.step[c];
        const float least = -walk.half[c], most = (float)(frame.size[c] - 1) + walk.half[c];
        if (fabsf(step) < 1e-5f) {
            const bool is_inside = position > least - 1.0f && position < most + 1.0f;
            walk.slices[1] = is_inside ? walk.slices[1] : walk.slices[0];
        } else {
            const float per_step = 1.0f / step;
            const float from_least = (least - position) * per_step, from_most = (most - position) * per_step;
            const float from = floorf(fminf(from_least, from_most)) - 1.0f;
            const float to = ceilf(fmaxf(from_least, from_most)) + 2.0f;
            walk.slices[0] = (int)fminf(fmaxf(from, (float)walk.slices[0]), (float)walk.slices[1]);
            walk.slices[1] = (int)fmaxf(fminf(to, (float)walk.slices[1]), (float)walk.slices[0]);
        }
    }
    return walk;
}

/* Returns the walk of arranged event k. */
__host__ __device__ inline line_walk find_walk(const lr_cuda_list_pass &pass, const lr_cuda_list_frame &frame,
                                               bool has_tof, int64_t k, const int32_t limits[2])
{
    const lr_cuda_list_events &events = pass.events;
    const list_event event = {events.crystals[0][k], events.crystals[1][k], has_tof ? events.tof_mm[k] : 0.0f};
    return walk_event(pass, frame, has_tof, event, limits);
}
