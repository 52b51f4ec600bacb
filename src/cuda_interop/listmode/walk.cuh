/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * An event's line on its way through the slices of a frame: listmode/line.h for one thread of a device.
 * Written for the processor, too. Places are in double where they begin, and in float from there on. */
#ifndef LR_CUDA_LISTMODE_WALK_CUH
#define LR_CUDA_LISTMODE_WALK_CUH

#include "cuda_interop/listmode/passes.h"

struct line_walk {
    double place, chord;         /* along the line: of slice 0, from slice to slice */
    double position[2], step[2]; /* of the crossing along across, in voxels */
    double begin, end;           /* places between which the line counts */
    double tof, per_sigma;       /* per_sigma 0: without time of flight */
    float uu, uv, vv; /* equation 3: in the tube's unit, the square of the distance of a voxel
                                    u and v voxels from the crossing is uu u^2 + uv u v + vv v^2 */
    float half[2];    /* how far from the crossing there are shares, in voxels */
    int slices[2];
};

__host__ __device__ inline double sigma_of(const lr_cuda_list_events &events,
                                           const lr_cuda_list_hit &a, const lr_cuda_list_hit &b)
{
    return events.sigma_mm[(int)a.kind * events.num_kinds + (int)b.kind];
}

/* Leaves out slices where position + s step is not within low .. high. */
__host__ __device__ inline void narrow_slices(int slices[2], double position, double step,
                                              double low, double high)
{
    if (fabs(step) < 1e-9) {
        slices[1] = position > low - 1.0 && position < high + 1.0 ? slices[1] : slices[0];
        return;
    }
    const double per_step = 1.0 / step;
    const double a = (low - position) * per_step, b = (high - position) * per_step;
    const double from = floor(fmin(a, b)), to = ceil(fmax(a, b)) + 1.0;
    slices[0] = (int)fmin(fmax(from, (double)slices[0]), (double)slices[1]);
    slices[1] = (int)fmax(fmin(to, (double)slices[1]), (double)slices[0]);
}

/* Between its ends, and where time of flight lets it. */
__host__ __device__ inline void limit_walk(double half_mm, double tof, double sigma,
                                           line_walk &walk)
{
    walk.begin = -half_mm;
    walk.end = half_mm;
    walk.tof = tof;
    walk.per_sigma = 0;
    if (sigma > 0) {
        walk.begin = fmax(walk.begin, tof - 3.0 * sigma);
        walk.end = fmin(walk.end, tof + 3.0 * sigma);
        walk.per_sigma = 1.0 / sigma;
    }
}

/* Slices of low .. high - 1 that it may meet. */
__host__ __device__ inline void find_slices(int low, int high, line_walk &walk)
{
    const double per_chord = 1.0 / walk.chord;
    const double first = floor((walk.begin - walk.place) * per_chord + 0.5);
    const double last = floor((walk.end - walk.place) * per_chord + 0.5);
    walk.slices[0] = (int)fmin(fmax(first, (double)low), (double)high);
    walk.slices[1] = (int)fmin(fmax(last + 1.0, (double)low), (double)high);
}

/* What runs across the axis. */
__host__ __device__ inline void go_across(const lr_cuda_list_frame &frame, const double middle[3],
                                          const double direction[3], line_walk &walk)
{
    for (int k = 0; k < 2; k++) {
        const int c = frame.across[k];
        const double per_voxel = direction[c] / frame.voxel_mm[1 + k];
        walk.step[k] = walk.chord * per_voxel;
        walk.position[k] =
            (middle[c] - frame.origin_mm[1 + k]) / frame.voxel_mm[1 + k] + walk.place * per_voxel;
    }
}

__host__ __device__ inline void find_shape(const lr_cuda_list_pass &pass,
                                           const lr_cuda_list_frame &frame,
                                           const double direction[3], line_walk &walk)
{
    const double u_mm = frame.voxel_mm[1], v_mm = frame.voxel_mm[2], unit = pass.tube.unit;
    const double u = direction[frame.across[0]], v = direction[frame.across[1]];
    const double radius = pass.tube.reach_mm / direction[frame.axis];
    walk.uu = (float)(unit * u_mm * u_mm * (1.0 - u * u));
    walk.vv = (float)(unit * v_mm * v_mm * (1.0 - v * v));
    walk.uv = (float)(-2.0 * unit * u_mm * v_mm * u * v);
    walk.half[0] = (float)(radius / u_mm) * sqrtf((float)(1.0 - v * v));
    walk.half[1] = (float)(radius / v_mm) * sqrtf((float)(1.0 - u * u));
}

/* The walk of arranged event k through slices low .. high - 1. */
__host__ __device__ inline line_walk find_walk(const lr_cuda_list_pass &pass,
                                               const lr_cuda_list_frame &frame,
                                               const lr_cuda_list_chunk &chunk, int64_t k,
                                               const int32_t limits[2])
{
    const lr_cuda_list_events &events = pass.events;
    const lr_cuda_list_hit a = events.hits[events.crystals[0][k]];
    const lr_cuda_list_hit b = events.hits[events.crystals[1][k]];
    const int p = frame.axis;
    double middle[3], direction[3], square = 0;
    line_walk walk;
    for (int c = 0; c < 3; c++) {
        middle[c] = 0.5 * (a.mm[c] + b.mm[c]);
        direction[c] = b.mm[c] - a.mm[c];
        square += direction[c] * direction[c];
    }
    const double length = sqrt(square), sign = b.mm[p] < a.mm[p] ? -1.0 : 1.0;
    for (int c = 0; c < 3; c++) {
        direction[c] *= sign / length;
    }
    const double along = 1.0 / direction[p];
    walk.chord = frame.voxel_mm[0] * along;
    walk.place = (frame.origin_mm[0] - middle[p]) * along;
    limit_walk(0.5 * length, chunk.has_tof ? sign * (double)events.tof_mm[k] : 0.0,
               chunk.has_tof ? sigma_of(events, a, b) : 0.0, walk);
    go_across(frame, middle, direction, walk);
    walk.half[0] = walk.half[1] = 1.0f;
    if (!pass.is_line) {
        find_shape(pass, frame, direction, walk);
    }
    find_slices(limits[0], limits[1], walk);
    for (int c = 0; c < 2; c++) {
        narrow_slices(walk.slices, walk.position[c], walk.step[c], -(double)walk.half[c],
                      frame.size[c] - 1 + (double)walk.half[c]);
    }
    return walk;
}

/* --- factors of slices --- */

/* Between 0 and 3 the integral of the normal distribution from 0 on is z times this of the square of z, to
 * 1.2e-9: interpolated at the roots of a Chebyshev polynomial. */
__host__ __device__ inline double normal_over_z(double y)
{
    double sum = 7.265240938010537e-13;
    sum = sum * y - 4.9351281427964255e-11;
    sum = sum * y + 1.646896334987382e-09;
    sum = sum * y - 3.7063257709655425e-08;
    sum = sum * y + 6.474043354947225e-07;
    sum = sum * y - 9.390115464063845e-06;
    sum = sum * y + 0.00011533315099385993;
    sum = sum * y - 0.0011872166848502176;
    sum = sum * y + 0.009973493641516347;
    sum = sum * y - 0.06649036592480707;
    return sum * y + 0.39894227987633807;
}

/* What of the Gaussian three standard deviations hold. */
constexpr double list_held = 0.99730020393673981;

/* Factors of a walk's slices, which come in turn: T of lr/listmode.h. */
struct slice_factors {
    double below; /* with time of flight: the normal distribution up to the slice at hand */

    __host__ __device__ static double bound(const line_walk &walk, int slice)
    {
        const double at = walk.place + (slice - 0.5) * walk.chord;
        return fmax(fmin(at, walk.end), walk.begin);
    }
    __host__ __device__ static double normal(const line_walk &walk, int slice)
    {
        const double z = (bound(walk, slice) - walk.tof) * walk.per_sigma;
        return z * normal_over_z(z * z);
    }
    __host__ __device__ void begin(const lr_cuda_list_pass &pass, const line_walk &walk)
    {
        below = walk.per_sigma > 0 && !pass.as_paper ? normal(walk, walk.slices[0]) : 0.0;
    }
    __host__ __device__ float next(const lr_cuda_list_pass &pass, const line_walk &walk, int slice)
    {
        if (pass.as_paper) {
            return of_paper(walk, slice);
        }
        if (walk.per_sigma > 0) {
            const double above = normal(walk, slice + 1), held = above - below;
            below = above;
            return fmaxf((float)(held * (1.0 / list_held)), 0.0f);
        }
        return fmaxf((float)(bound(walk, slice + 1) - bound(walk, slice)), 0.0f);
    }
    __host__ __device__ static float of_paper(const line_walk &walk, int slice)
    {
        const double middle = walk.place + slice * walk.chord;
        const double off = (middle - walk.tof) * walk.per_sigma;
        return middle >= walk.begin && middle <= walk.end ? expf((float)(-0.5 * off * off)) : 0.0f;
    }
};

#endif
