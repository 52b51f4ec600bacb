/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Geometries that are timed. `pair` is the workload of Toth, Magdics, Szirmay-Kalos, Fast System
 * Matrix Generation on a GPU Cluster: two modules of 32 x 32 crystals and 128^3 voxels. The planes
 * lie across y and share the axial direction z, as the panels of a ring do, so the voxels' long
 * edge is along y. `angled` and `tilted` turn the second module in place rather than about the
 * scanner's centre: the same voxels see it then, and times compare element by element. */
#include "bench.h"

#include <math.h>
#include <string.h>

#define PAIR_GRID {128, 128, 128}, {0.45, 1, 0.45}, {8, 8, 8}, 12

const struct bench_workload bench_workloads[BENCH_NUM_WORKLOADS + 1] = {
    {"pair", "two parallel modules of 32 x 32 crystals of 2 mm, 400 mm apart", NULL, 0, 0, PAIR_GRID},
    {"angled", "the same, one module turned by 20 degrees about the axial direction", NULL, 20, 0, PAIR_GRID},
    {"tilted", "the same, then turned by 7 degrees about (1, 1, 1) out of the axial direction", NULL, 20, 7, PAIR_GRID},
    {"vista", "whole eXplore Vista DR", "ge-explore-vista-dr", 0, 0, {64, 64, 64}, {0.8, 0.8, 0.65}, {6, 6, 6}, 12},
    {"penn", "whole Penn LaBr3", "penn-labr3", 0, 0, {144, 144, 48}, {4, 4, 4}, {4, 4, 4}, 6},
    {"mmr", "whole Biograph mMR", "siemens-mmr", 0, 0, {172, 172, 127}, {2.086, 2.086, 2.031}, {2, 2, 2}, 3},
    {0},
};

static const double pi = 3.14159265358979323846;

static void cross(const double a[3], const double b[3], double product[3])
{
    for (int k = 0; k < 3; k++) {
        const int l = (k + 1) % 3, m = (k + 2) % 3;
        product[k] = a[l] * b[m] - a[m] * b[l];
    }
}

/* Rodrigues' formula. */
static void turn(double vector[3], const double axis[3], double angle_deg)
{
    const double angle = angle_deg * pi / 180, cosine = cos(angle), sine = sin(angle);
    const double along = axis[0] * vector[0] + axis[1] * vector[1] + axis[2] * vector[2];
    double side[3];
    cross(axis, vector, side);
    for (int k = 0; k < 3; k++) vector[k] = cosine * vector[k] + sine * side[k] + (1 - cosine) * along * axis[k];
}

static lr_scanner *make_pair(const struct bench_workload *workload, const lr_log *log)
{
    static const double axial[3] = {0, 0, 1};
    const double third = 1 / sqrt(3), diagonal[3] = {third, third, third};
    lr_module modules[2] = {{.centre_mm = {0, 200, 0},
                             .u = {1, 0, 0},
                             .v = {0, 0, 1},
                             .crystals = {32, 32},
                             .pitch_mm = {2, 2},
                             .face_mm = {2, 2},
                             .depth_mm = 20}}; /* behind the plane of detection: of no effect */
    modules[1] = modules[0];
    modules[1].centre_mm[1] = -200;
    double *const axes[2] = {modules[1].u, modules[1].v};
    for (int k = 0; k < 2; k++) {
        turn(axes[k], axial, workload->turn_deg);
        turn(axes[k], diagonal, workload->tilt_deg);
    }
    return lr_scanner_create(
        &(lr_scanner_params){.name = workload->description, .modules = modules, .num_modules = 2, .log = log});
}

lr_scanner *bench_scanner(const struct bench_workload *workload, const lr_log *log)
{
    return workload->preset != NULL ? lr_scanner_read(workload->preset, log) : make_pair(workload, log);
}
