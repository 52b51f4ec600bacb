// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The path of an event's line through planes of sample points, for exact elements (docs/method/listmode.md, "Exact
// elements"), in double. All stored numbers are relative to the line and therefore small, so that single precision is
// enough for the elements. Arrays have the order of a frame's axes: the frame's axis first, then the two axes across.
// The including file defines the struct path_points, with the sample points along these axes: int points[3] (of all
// voxels), samples[3] (of one voxel); double first_mm[3], step_mm[3], per_step[3].
#ifndef LR_KERNELS_EXACT_PATH
#define LR_KERNELS_EXACT_PATH
#include "kernels/numbers.glsl"

// A crystal's face, in the coordinates of a frame.
struct placed_face {
    int module;
    double centre[3], across[3], along[3], normal[3], half_mm[2];
};

// The line between two faces. It runs from the face at the lower end of the frame's axis to the face at the upper end.
struct face_line {
    double direction[3], per_along, length_mm; // direction: unit vector; per_along: 1 / this vector's component along
                                               // the frame's axis
    double slopes[2];
};

// The planes that the line crosses are first .. last - 1; first = last if there are none. at: where the line crosses
// the first plane, in points; step: increase of this position per plane. reach: distance from the crossing up to which
// points of the first plane may have elements; widening: increase of this distance per plane.
struct path_planes {
    int first, last;
    double at[2], step[2], reach[2], widening[2];
};

// Time of flight along the path, in standard deviations, as in exact_time.
struct path_time {
    double place, step, extent, gain[3];
};

LR_KERNEL double product_of(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

LR_KERNEL face_line line_between(placed_face low, placed_face high)
{
    face_line line;
    LR_PRECISE double way[3] = {high.centre[0] - low.centre[0], high.centre[1] - low.centre[1],
                                high.centre[2] - low.centre[2]};
    LR_PRECISE double square = way[0] * way[0] + way[1] * way[1] + way[2] * way[2], per_length = per_root(square);
    for (int c = 0; c < 3; c++) line.direction[c] = way[c] * per_length;
    line.per_along = 1.0 / line.direction[0];
    line.slopes[0] = line.direction[1] * line.per_along;
    line.slopes[1] = line.direction[2] * line.per_along;
    line.length_mm = 1.0 / per_length;
    return line;
}

// Half of a face's extent: along the frame's axis, and along the two axes across. For the extent across, the face is
// projected along a line with these slopes onto a plane across the frame's axis.
struct face_reach {
    double mm[3];
};

LR_KERNEL face_reach reach_of(placed_face face, const double slopes[2])
{
    face_reach reach;
    reach.mm[0] = face.half_mm[0] * fabs(face.across[0]) + face.half_mm[1] * fabs(face.along[0]);
    for (int c = 1; c < 3; c++) {
        reach.mm[c] = face.half_mm[0] * fabs(face.across[c] - slopes[c - 1] * face.across[0]) +
                      face.half_mm[1] * fabs(face.along[c] - slopes[c - 1] * face.along[0]);
    }
    return reach;
}

// Cosines of the angles between a face's axes and the line towards the face, as in angle_face. sign: -1 if the line
// comes from the opposite side.
struct face_lean {
    float lean[3];
};

LR_KERNEL face_lean lean_of(placed_face face, face_line line, double sign)
{
    face_lean of;
    of.lean[0] = float(sign * product_of(face.across, line.direction));
    of.lean[1] = float(sign * product_of(face.along, line.direction));
    of.lean[2] = float(-sign * product_of(face.normal, line.direction));
    return of;
}

// tof: centre, standard deviation and bin of time of flight, mm; a standard deviation of 0 means no time of flight.
// reach_mm: the reach of lr_listmode_model. Any line through both faces is at most `reach` away from the line between
// the faces' centres. This distance changes linearly from one face to the other. Because faces are tilted, the relative
// position of a plane between the faces is uncertain by up to `slack`.
LR_KERNEL path_planes planes_of(placed_face low, placed_face high, face_line line, const double tof[3],
                                path_points grid, double reach_mm)
{
    face_reach low_reach = reach_of(low, line.slopes), high_reach = reach_of(high, line.slopes);

    // Planes between the faces, and within the cut of the time of flight.
    double begin = fmin(low.centre[0] - low_reach.mm[0], high.centre[0] - high_reach.mm[0]);
    double end = fmax(low.centre[0] + low_reach.mm[0], high.centre[0] + high_reach.mm[0]);
    if (tof[1] > 0.0) {
        double centre = 0.5 * (low.centre[0] + high.centre[0]) + tof[0] * line.direction[0];
        double most = (3.0 * tof[1] + 0.5 * tof[2]) * line.direction[0] + reach_mm;
        begin = fmax(begin, centre - most);
        end = fmin(end, centre + most);
    }
    double all = double(grid.points[0]);
    path_planes planes;
    planes.first = int(fmin(fmax(ceil((begin - grid.first_mm[0]) * grid.per_step[0] - 1e-6), 0.0), all));
    planes.last =
        int(fmin(fmax(floor((end - grid.first_mm[0]) * grid.per_step[0] + 1e-6) + 1.0, double(planes.first)), all));

    double per_apart = 1.0 / (high.centre[0] - low.centre[0]);
    double slack = fmax(low_reach.mm[0], high_reach.mm[0]) * per_apart;
    double to_first = grid.first_mm[0] - low.centre[0];
    for (int c = 0; c < 2; c++) {
        double per_mm = grid.per_step[1 + c], slope = line.slopes[c];
        double here = low_reach.mm[1 + c] * per_mm, there = high_reach.mm[1 + c] * per_mm;
        double step = grid.step_mm[0] * slope * per_mm, most = fmax(here, there);
        double at = (low.centre[1 + c] + to_first * slope - grid.first_mm[1 + c]) * per_mm;
        planes.at[c] = at;
        planes.step[c] = step;
        planes.widening[c] = slack > 0.25 ? 0.0 : (there - here) * grid.step_mm[0] * per_apart;
        planes.reach[c] =
            slack > 0.25 ? most : here + (there - here) * to_first * per_apart + fabs(there - here) * slack;
        // Drops planes in which the crossing is so far outside that no point is within reach.
        double first = double(planes.first), last = double(planes.last);
        double least = -most, largest = double(grid.points[1 + c]) - 1.0 + most;
        if (fabs(step) < 1e-9) {
            planes.last = at > least - 1.0 && at < largest + 1.0 ? planes.last : planes.first;
        } else {
            double per_plane = 1.0 / step, a = (least - at) * per_plane, b = (largest - at) * per_plane;
            planes.first = int(fmin(fmax(floor(fmin(a, b)), first), last));
            planes.last = int(fmax(fmin(ceil(fmax(a, b)) + 1.0, last), double(planes.first)));
        }
    }
    for (int c = 0; c < 2; c++) {
        planes.at[c] += double(planes.first) * planes.step[c];
        planes.reach[c] += double(planes.first) * planes.widening[c];
    }
    if (low.module == high.module) planes.last = planes.first;
    return planes;
}

// Distance in mm along the line from the face at the lower end to a plane.
LR_KERNEL double way_to(placed_face low, face_line line, path_points grid, int plane)
{
    return (grid.first_mm[0] + double(plane) * grid.step_mm[0] - low.centre[0]) * line.per_along;
}

LR_KERNEL path_time time_along(face_line line, double way_mm, const double tof[3], path_points grid)
{
    double per_sigma = 1.0 / tof[1], square = 0.0;
    path_time time;
    for (int c = 0; c < 3; c++) {
        double gain = line.direction[c] * grid.step_mm[c], extent = gain * double(grid.samples[c]);
        time.gain[c] = gain * per_sigma;
        square += extent * extent;
    }
    time.place = (way_mm - 0.5 * line.length_mm - tof[0]) * per_sigma;
    time.step = grid.step_mm[0] * line.per_along * per_sigma;
    time.extent = square * per_root(square);
    return time;
}
#endif
