/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What exact elements need to know of an event's line (lr_cuda_list_sight): found in double, for one thread, from
 * then on in single precision and whole numbers. It is kept where memory holds it. Written for the processor,
 * too. Axes are the frame's: along it, and two across. */
#ifndef LR_CUDA_LISTMODE_SIGHT_CUH
#define LR_CUDA_LISTMODE_SIGHT_CUH

#include "cuda_interop/listmode/project.cuh"

/* --- faces --- */

/* A crystal's face in a frame. */
struct placed_face {
    int module;
    double centre[3], across[3], along[3], normal[3], half_mm[2];

    __host__ __device__ placed_face(const lr_cuda_list_pass &pass, const lr_cuda_list_frame &frame, int crystal)
        : module(pass.exact.module_of[crystal])
    {
        const lr_cuda_list_hit &hit = pass.events.hits[crystal];
        const lr_cuda_list_module &of = pass.exact.modules[module];
        const int axes[3] = {frame.axis, frame.across[0], frame.across[1]};
        for (int c = 0; c < 3; c++) {
            centre[c] = hit.mm[axes[c]];
            across[c] = of.across[axes[c]];
            along[c] = of.along[axes[c]];
            normal[c] = of.normal[axes[c]];
        }
        half_mm[0] = of.across[3];
        half_mm[1] = of.along[3];
    }

    /* How far it reaches along the frame's axis, and beside the line as its direction throws it onto a plane:
     * by these slopes. */
    __host__ __device__ void reach(const double slopes[2], double mm[3]) const
    {
        mm[0] = half_mm[0] * fabs(across[0]) + half_mm[1] * fabs(along[0]);
        for (int c = 1; c < 3; c++) {
            mm[c] = half_mm[0] * fabs(across[c] - slopes[c - 1] * across[0]) +
                    half_mm[1] * fabs(along[c] - slopes[c - 1] * along[0]);
        }
    }
};

__host__ __device__ inline double product_of(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* --- planes --- */

/* Leaves out planes where no point of an axis is within reach of the crossing. */
__host__ __device__ inline void narrow_planes(lr_cuda_list_sight &sight, double at, double step, double points,
                                              double reach)
{
    const double first = (double)sight.planes[0], last = (double)sight.planes[1];
    const double low = -reach, high = points - 1.0 + reach;
    if (fabs(step) < 1e-9) {
        sight.planes[1] = at > low - 1.0 && at < high + 1.0 ? sight.planes[1] : sight.planes[0];
        return;
    }
    const double per_step = 1.0 / step, a = (low - at) * per_step, b = (high - at) * per_step;
    sight.planes[0] = (int32_t)fmin(fmax(floor(fmin(a, b)), first), last);
    sight.planes[1] = (int32_t)fmax(fmin(ceil(fmax(a, b)) + 1.0, last), (double)sight.planes[0]);
}

/* Planes that the faces and time of flight (as of exact_line) leave. */
__host__ __device__ inline void find_planes(const lr_cuda_list_pass &pass, const lr_cuda_list_points &grid,
                                            const placed_face faces[2], const double reaches[2][3],
                                            const double direction[3], const double tof[3], lr_cuda_list_sight &sight)
{
    double low = fmin(faces[0].centre[0] - reaches[0][0], faces[1].centre[0] - reaches[1][0]);
    double high = fmax(faces[0].centre[0] + reaches[0][0], faces[1].centre[0] + reaches[1][0]);
    if (tof[1] > 0) {
        const double centre = 0.5 * (faces[0].centre[0] + faces[1].centre[0]) + tof[0] * direction[0];
        const double most = (3.0 * tof[1] + 0.5 * tof[2]) * direction[0] + pass.exact.reach_mm;
        low = fmax(low, centre - most);
        high = fmin(high, centre + most);
    }
    const double first = ceil((low - grid.first_mm[0]) * grid.per_step[0] - 1e-6);
    const double last = floor((high - grid.first_mm[0]) * grid.per_step[0] + 1e-6) + 1.0;
    const double all = (double)grid.points[0];
    sight.planes[0] = (int32_t)fmin(fmax(first, 0.0), all);
    sight.planes[1] = (int32_t)fmin(fmax(last, (double)sight.planes[0]), all);
}

/* A line that meets both faces is, part of the way, as far beside this one as that part of the way from the
 * one reach to the other; which part it is in a plane is known up to `slack`. */
__host__ __device__ inline void find_crossings(const lr_cuda_list_points &grid, const placed_face faces[2],
                                               const double reaches[2][3], const double slopes[2],
                                               lr_cuda_list_sight &sight)
{
    const double per_apart = 1.0 / (faces[1].centre[0] - faces[0].centre[0]);
    const double slack = fmax(reaches[0][0], reaches[1][0]) * per_apart;
    const double to_first = grid.first_mm[0] - faces[0].centre[0];
    double at[2], step[2], from[2], most[2], more[2];
    for (int c = 0; c < 2; c++) {
        const double per_mm = grid.per_step[1 + c], slope = slopes[c];
        const double here = reaches[0][1 + c] * per_mm, there = reaches[1][1 + c] * per_mm;
        step[c] = grid.step_mm[0] * slope * per_mm;
        at[c] = (faces[0].centre[1 + c] + to_first * slope - grid.first_mm[1 + c]) * per_mm;
        most[c] = fmax(here, there);
        more[c] = slack > 0.25 ? 0.0 : (there - here) * grid.step_mm[0] * per_apart;
        from[c] = slack > 0.25 ? most[c] : here + (there - here) * to_first * per_apart + fabs(there - here) * slack;
        narrow_planes(sight, at[c], step[c], grid.points[1 + c], most[c]);
    }
    for (int c = 0; c < 2; c++) {
        constexpr double parts = 4294967296.0;
        sight.at[c] = (int64_t)floor((at[c] + sight.planes[0] * step[c]) * parts);
        sight.step[c] = (int64_t)floor(step[c] * parts + 0.5);
        sight.reach[c] = (float)(from[c] + sight.planes[0] * more[c]);
        sight.widening[c] = (float)more[c];
    }
}

/* --- the line --- */

/* The line of arranged event k between its faces, from the one at the lower end. */
struct exact_line {
    bool is_turned;
    placed_face faces[2];
    double direction[3], per_along, length_mm; /* per_along: of the direction, along the axis */
    double slopes[2], reaches[2][3];
    double tof[3]; /* centre, sigma (0 = none) and width of the bin */

    __host__ __device__ exact_line(const lr_cuda_list_pass &pass, const lr_cuda_list_frame &frame, bool has_tof,
                                   int64_t k)
        : is_turned(pass.events.hits[pass.events.crystals[1][k]].mm[frame.axis] <
                    pass.events.hits[pass.events.crystals[0][k]].mm[frame.axis]),
          faces{{pass, frame, pass.events.crystals[is_turned ? 1 : 0][k]},
                {pass, frame, pass.events.crystals[is_turned ? 0 : 1][k]}}
    {
        for (int c = 0; c < 3; c++) direction[c] = faces[1].centre[c] - faces[0].centre[c];
        const double per_length = per_root(product_of(direction, direction));
        for (int c = 0; c < 3; c++) direction[c] *= per_length;
        per_along = 1.0 / direction[0];
        slopes[0] = direction[1] * per_along;
        slopes[1] = direction[2] * per_along;
        length_mm = 1.0 / per_length;
        tof[0] = has_tof ? (is_turned ? -1.0 : 1.0) * (double)pass.events.tof_mm[k] : 0.0;
        tof[1] = has_tof ? sigma_of(pass.events, pass.events.hits[pass.events.crystals[0][k]],
                                    pass.events.hits[pass.events.crystals[1][k]])
                         : 0.0;
        tof[2] = has_tof ? bin_of(pass.events, pass.events.hits[pass.events.crystals[0][k]],
                                  pass.events.hits[pass.events.crystals[1][k]])
                         : 0.0;
        faces[0].reach(slopes, reaches[0]);
        faces[1].reach(slopes, reaches[1]);
    }

    /* Cosines of a face's axes with the line on its way to it: sign -1 where it comes from the other side. */
    __host__ __device__ void find_lean(const placed_face &face, double sign, float lean[3]) const
    {
        lean[0] = (float)(sign * product_of(face.across, direction));
        lean[1] = (float)(sign * product_of(face.along, direction));
        lean[2] = (float)(-sign * product_of(face.normal, direction));
    }

    __host__ __device__ lr_cuda_list_sight sight(const lr_cuda_list_pass &pass, const lr_cuda_list_points &grid) const
    {
        lr_cuda_list_sight sight = {};
        find_planes(pass, grid, faces, reaches, direction, tof, sight);
        find_crossings(grid, faces, reaches, slopes, sight);
        const double first_mm = grid.first_mm[0] + sight.planes[0] * grid.step_mm[0];
        const double way_mm = (first_mm - faces[0].centre[0]) * per_along;
        sight.way_mm = (float)way_mm;
        sight.way_step_mm = (float)(grid.step_mm[0] * per_along);
        sight.length_mm = (float)length_mm;
        find_lean(faces[0], -1.0, sight.low_lean);
        find_lean(faces[1], 1.0, sight.high_lean);
        for (int end = 0; end < 2; end++) sight.modules[end] = faces[end].module;
        if (faces[0].module == faces[1].module) sight.planes[1] = sight.planes[0];
        if (tof[1] > 0) find_time(grid, way_mm - 0.5 * length_mm - tof[0], sight);
        return sight;
    }

    /* place_mm: of the first plane, from the centre. */
    __host__ __device__ void find_time(const lr_cuda_list_points &grid, double place_mm,
                                       lr_cuda_list_sight &sight) const
    {
        const double per_sigma = 1.0 / tof[1];
        double square = 0;
        for (int c = 0; c < 3; c++) {
            const double gain = direction[c] * grid.step_mm[c];
            sight.gain[c] = (float)(gain * per_sigma);
            square += gain * grid.samples[c] * gain * grid.samples[c];
        }
        const double extent = square * per_root(square);
        sight.place = (float)(place_mm * per_sigma);
        sight.place_step = (float)(grid.step_mm[0] * per_along * per_sigma);
        sight.half = (float)(0.5 * extent * per_sigma);
        sight.half_bin = (float)(0.5 * tof[2] * per_sigma);
    }
};

/* Of arranged event k: kept, or found. */
__host__ __device__ inline lr_cuda_list_sight sight_of(const lr_cuda_list_pass &pass, const lr_cuda_list_frame &frame,
                                                       bool has_tof, int64_t k)
{
    return pass.events.sights != nullptr ? pass.events.sights[k]
                                         : exact_line(pass, frame, has_tof, k).sight(pass, frame.points);
}

#endif
