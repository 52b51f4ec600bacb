/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Scanners of blocks with two layers of crystals, and the scanners that remain if some of their modules are removed. */
#pragma once

#include "fixtures.h"

#include <lr/lr.h>

#define LAYERED_MU_PER_MM 0.08

/* Eight blocks that touch in front, with two layers of crystals that are apart from each other, the second off the
 * middle. Oblique lines leave a block through its back and enter the rear layer of the next block, which the front
 * layer would hide. */
static inline lr_scanner *layered_ring(void)
{
    return keep(scanner_from(
        "name: layered ring\nring: {radius_mm: 30, modules: 8, first_angle_deg: 90}\nmodule: {crystals: [6, 4], "
        "pitch_mm: [4, 4], face_mm: [3.7, 3.8], depth_mm: 14, layers: [{depth_mm: 5}, {depth_mm: 7, front_mm: 6, "
        "crystals: [5, 3], pitch_mm: [4.6, 4.6], face_mm: [4.2, 4.4], offset_mm: [0.4, -0.3]}]}\ncoincidence: "
        "{min_module_difference: 2}\ndetection_depth_mm: 1\ntof: {resolution_ps: 300}\ncrystal_mu_per_mm: 0.08"));
}

/* Three rings with every symmetry that projections by columns use. */
static inline lr_scanner *layered_rings(void)
{
    return keep(
        scanner_from("name: layered rings\nring: {radius_mm: 25, modules: 6, first_angle_deg: 90, rings: 3, "
                     "ring_pitch_mm: 13}\nmodule: {crystals: [4, 3], pitch_mm: [5, 4], face_mm: [4.6, 3.8], depth_mm: "
                     "9, layers: [{depth_mm: 4}, {depth_mm: 5, crystals: [3, 3], pitch_mm: [6, 4], face_mm: [5.5, "
                     "3.8]}]}\ncoincidence: {min_module_difference: 2}\ncrystal_mu_per_mm: 0.08"));
}

/* Place of a block of layers: its front layer is at radius_mm, and the block is rotated by tilt_deg about its u
 * axis. */
struct layered_stand {
    double radius_mm, angle_deg, tilt_deg;
    int crystals;
};

static inline lr_module layered_module(const struct layered_stand *stand, int layer, int block)
{
    const double degree = acos(-1.0) / 180, a = stand->angle_deg * degree, t = stand->tilt_deg * degree;
    const double outward[3] = {cos(t) * cos(a), cos(t) * sin(a), sin(t)};
    const double pitch = layer == 0 ? 3 : 3.2, back = layer == 0 ? 0 : 5;
    lr_module module =
        filled(lr_module, .u = {-sin(a), cos(a), 0}, .v = {-sin(t) * cos(a), -sin(t) * sin(a), cos(t)},
               .crystals = {stand->crystals - layer, stand->crystals - layer}, .pitch_mm = {pitch, pitch},
               .face_mm = {0.9 * pitch, 0.95 * pitch}, .depth_mm = layer == 0 ? 5 : 8, .layer = layer, .block = block);
    for (int k = 0; k < 3; k++)
        module.centre_mm[k] = (k < 2 ? stand->radius_mm * (k == 0 ? cos(a) : sin(a)) : 0) + back * outward[k];
    return module;
}

static inline lr_scanner *layered_list(const struct layered_stand *stands, int num)
{
    enum { MOST = 16 };
    lr_module modules[2 * MOST];
    assert_true(num <= MOST);
    for (int m = 0; m < 2 * num; m++) modules[m] = layered_module(&stands[m / 2], m % 2, m / 2 + 1);
    return keep(lr_scanner_create(&(lr_scanner_params){
        .name = "layered list", .modules = modules, .num_modules = 2 * num, .crystal_mu_per_mm = LAYERED_MU_PER_MM}));
}

/* Blocks that are tilted. */
static inline lr_scanner *layered_tilted(void)
{
    static const struct layered_stand stands[4] = {{30, 90, 12, 5}, {32, 268, -9, 5}, {31, 2, 15, 4}, {30, 179, 6, 5}};
    return layered_list(stands, 4);
}

/* Blocks in front of other blocks, as inserts are. */
static inline lr_scanner *layered_insert(void)
{
    static const struct layered_stand stands[6] = {{45, 90, 0, 7}, {45, 210, 0, 7}, {46, 330, 0, 6},
                                                   {20, 85, 0, 3}, {21, 205, 5, 3}, {44, 30, 0, 6}};
    return layered_list(stands, 6);
}

/* A scanner without some of its modules. */
struct layered_rest {
    lr_scanner *scanner;
    int *crystal_of; /* [scanner->num_crystals] crystal numbers in the whole scanner */
};

/* Keeps the modules for which keep[m] is set; they are not layers of a block any more. */
static inline struct layered_rest layered_keep(const lr_scanner *whole, const bool *keep)
{
    struct layered_rest rest = {0};
    lr_module *modules = kept(whole->num_modules, sizeof(*modules));
    rest.crystal_of = kept(whole->num_crystals, sizeof(int));
    int count = 0, crystals = 0;
    for (int m = 0; m < whole->num_modules; m++) {
        if (keep[m]) {
            modules[count] = whole->modules[m];
            modules[count].layer = modules[count].block = 0;
            count++;
            for (int c = whole->first_crystal[m]; c < whole->first_crystal[m + 1]; c++) rest.crystal_of[crystals++] = c;
        }
    }
    const lr_scanner_params params =
        filled(lr_scanner_params, .name = "a part", .modules = modules, .num_modules = count,
               .num_positions = whole->num_positions, .coincidence = whole->coincidence,
               .detection_depth_mm = whole->detection_depth_mm, .tof_resolution_ps = whole->tof_resolution_ps,
               .crystal_mu_per_mm = whole->crystal_mu_per_mm);
    rest.scanner = keep(lr_scanner_create(&params));
    return rest;
}

static inline struct layered_rest layered_alone(const lr_scanner *whole, int layer)
{
    bool keep[256] = {false};
    assert_true(whole->num_modules <= 256);
    for (int m = 0; m < whole->num_modules; m++) keep[m] = whole->modules[m].layer == layer;
    return layered_keep(whole, keep);
}
