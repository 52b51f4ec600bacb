/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Scanners that the unit tests share. */
#pragma once

#include "cases.h"

/* A ring of single blocks of crystals[0] x crystals[1]. `crystals` must exist as long as the ring. */
static inline lr_ring plain_ring(double radius_mm, int modules, const int crystals[2], double pitch_mm, double face_mm,
                                 double depth_mm)
{
    return filled(lr_ring, .radius_mm = radius_mm, .modules = modules, .block_crystals = {&crystals[0], &crystals[1]},
                  .pitch_mm = {pitch_mm, pitch_mm}, .face_mm = {face_mm, face_mm}, .depth_mm = depth_mm);
}

/* A module at a place, rotated by an angle about z (0: at x > 0 it faces along -x), and then tilted, so that v leans
 * from z towards the module's own normal. */
static inline lr_module tilted_module(double x, double y, double z, double turn_deg, double tilt_deg, int nu, int nv)
{
    const double degree = acos(-1.0) / 180.0, a = turn_deg * degree, b = tilt_deg * degree;
    return filled(lr_module, .centre_mm = {x, y, z}, .u = {-sin(a), cos(a), 0.0},
                  .v = {sin(b) * cos(a), sin(b) * sin(a), cos(b)}, .crystals = {nu, nv}, .pitch_mm = {4.0, 5.0},
                  .face_mm = {3.5, 4.5}, .depth_mm = 10.0);
}
