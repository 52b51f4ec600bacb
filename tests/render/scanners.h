/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Scanners for the tests of rendering; each of them tests something that can go wrong. */
#pragma once

#include "fixtures.h"

#include "base/vec.h"

#define TEST_PI 3.14159265358979323846

struct scanner_case {
    const char *name;
    lr_scanner *(*create)(void);
    double reach_mm; /* random points are drawn from -reach .. reach along each axis */
};

/* Place of a module: on a circle around the axis, then rotated about its own axes, in degrees. */
struct placement {
    double angle, radius_mm, z_mm;
    double tilt, yaw, spin; /* about u, v and the normal */
};

/* Rodrigues' rotation of `a` about a unit vector. */
static inline void rotate(double a[3], const double axis[3], double degrees)
{
    const double c = cos(degrees * TEST_PI / 180), s = sin(degrees * TEST_PI / 180);
    const double along = vec_dot(axis, a) * (1 - c);
    double across[3];
    vec_cross(axis, a, across);
    for (int k = 0; k < 3; k++) a[k] = a[k] * c + across[k] * s + axis[k] * along;
}

/* shape: a module without its place. */
static inline lr_module place_module(const lr_module *shape, const struct placement *at)
{
    lr_module module = *shape;
    const double c = cos(at->angle * TEST_PI / 180), s = sin(at->angle * TEST_PI / 180);
    const double u[3] = {-s, c, 0}, v[3] = {0, 0, 1};
    module.centre_mm[0] = at->radius_mm * c;
    module.centre_mm[1] = at->radius_mm * s;
    module.centre_mm[2] = at->z_mm;
    for (int k = 0; k < 3; k++) {
        module.u[k] = u[k];
        module.v[k] = v[k];
    }
    double normal[3];
    rotate(module.v, module.u, at->tilt);
    rotate(module.u, module.v, at->yaw);
    vec_cross(module.u, module.v, normal);
    rotate(module.u, normal, at->spin);
    rotate(module.v, normal, at->spin);
    return module;
}

static inline lr_module shape_of(int nu, int nv, double pitch_mm, double face_mm)
{
    return (lr_module){
        .crystals = {nu, nv}, .pitch_mm = {pitch_mm, pitch_mm}, .face_mm = {face_mm, face_mm}, .depth_mm = 10};
}

static inline lr_scanner *scanner_of(const lr_module *modules, int num_modules, double fov_mm)
{
    lr_scanner *scanner = lr_scanner_create(&(lr_scanner_params){
        .modules = modules, .num_modules = num_modules, .coincidence = {.field_of_view_mm = fov_mm}});
    if (scanner == NULL) fail_msg("the test's scanner is refused: %s", lr_last_error(NULL));
    return scanner;
}

/* Modules of one shape at several places. */
static inline lr_scanner *placed(const lr_module *shape, const struct placement *at, int num_modules)
{
    lr_module modules[4];
    for (int m = 0; m < num_modules; m++) modules[m] = place_module(shape, &at[m]);
    return scanner_of(modules, num_modules, 0);
}

static inline lr_scanner *create_opposed(void)
{
    const lr_module shape = shape_of(9, 9, 4.3, 4.0);
    return placed(&shape, (const struct placement[]){{90, 465, 0, 0, 0, 0}, {270, 465, 0, 0, 0, 0}}, 2);
}

static inline lr_scanner *create_oblique(void)
{
    const lr_module shape = shape_of(13, 13, 1.55, 1.45);
    return placed(&shape, (const struct placement[]){{10, 59, 0, 0, 0, 0}, {160, 59, 5, 0, 0, 0}}, 2);
}

static inline lr_scanner *create_tilted(void)
{
    const lr_module shape = shape_of(8, 10, 2.2, 2.1);
    return placed(
        &shape, (const struct placement[]){{0, 60, 3, 20, 5, 0}, {185, 55, -4, -15, 8, 30}, {120, 62, 0, 30, -12, 45}},
        3);
}

static inline lr_scanner *create_unequal(void)
{
    const lr_module a = {.crystals = {8, 5}, .pitch_mm = {2.0, 2.4}, .face_mm = {1.8, 2.2}, .depth_mm = 8};
    const lr_module b = {.crystals = {5, 11}, .pitch_mm = {3.1, 1.3}, .face_mm = {2.9, 1.2}, .depth_mm = 12};
    const lr_module c = {.crystals = {1, 1}, .pitch_mm = {9.0, 7.0}, .face_mm = {8.0, 7.0}, .depth_mm = 12};
    const lr_module modules[3] = {place_module(&a, &(struct placement){30, 50, 0, 0, 0, 0}),
                                  place_module(&b, &(struct placement){200, 65, 2, 0, 0, 0}),
                                  place_module(&c, &(struct placement){250, 40, -3, 0, 0, 0})};
    return scanner_of(modules, 3, 0);
}

/* Faces fill a quarter of their cells. */
static inline lr_scanner *create_gapped(void)
{
    const lr_module shape = shape_of(7, 7, 3.0, 1.5);
    return placed(&shape, (const struct placement[]){{0, 50, 0, 0, 0, 0}, {175, 45, 0, 0, 0, 0}}, 2);
}

/* Modules with u x v away from the axis; detection planes lie at 3 mm depth. */
static inline lr_scanner *create_flipped(void)
{
    struct test_log log = TEST_LOG(log);
    const lr_module shape = shape_of(9, 7, 2.0, 1.9);
    lr_module modules[4];
    for (int m = 0; m < 4; m++) {
        modules[m] = place_module(&shape, &(struct placement){90 * m, 40, 0, 0, 0, 0});
        for (int k = 0; k < 3; k++) modules[m].u[k] *= m == 1 ? 1 : -1;
    }
    return lr_scanner_create(
        &(lr_scanner_params){.modules = modules, .num_modules = 4, .detection_depth_mm = 3, .log = &log.log});
}

static inline lr_scanner *create_ring_of_8(void)
{
    return scanner_from("ring: {radius_mm: 20, modules: 8, first_angle_deg: 90}\nmodule: {crystals: [6, 6], pitch_mm: "
                        "[2.2, 2.2], face_mm: [2, 2], depth_mm: 10}");
}

static inline lr_scanner *create_two_rings(void)
{
    return scanner_from("ring: {radius_mm: 22, modules: 8, rings: 2, ring_pitch_mm: 12}\nmodule: {crystals: [6, 5], "
                        "pitch_mm: [2.2, 2.2], face_mm: [2, 2.1], depth_mm: 10}\ndetection_depth_mm: 1.5");
}

/* Panels of 2 x 2 unequal blocks in one plane, with gaps between them. */
static inline lr_scanner *create_blocks(void)
{
    return scanner_from("ring: {radius_mm: 40, modules: 6, first_angle_deg: 90}\nmodule: {crystals: [[7, 8], [8, 8]], "
                        "block_gap_mm: [0.5, 0.5], pitch_mm: [2.2, 2.2], face_mm: [2.12, 2.12], depth_mm: 13}");
}

/* Modules one behind the other, seen from the axis: the nearer module, with the higher index, hides part of the farther
 * one; its gaps hide, too. A third module overlaps both. */
static inline lr_scanner *create_stacked(void)
{
    const lr_module wide = shape_of(9, 9, 2.5, 2.4), sparse = shape_of(4, 4, 2.8, 1.4);
    const lr_module modules[4] = {place_module(&wide, &(struct placement){5, 90, 0, 0, 0, 0}),
                                  place_module(&wide, &(struct placement){180, 70, 0, 0, 0, 0}),
                                  place_module(&sparse, &(struct placement){184, 45, 2, 0, 10, 0}),
                                  place_module(&sparse, &(struct placement){172, 55, -3, 20, 0, 30})};
    return scanner_of(modules, 4, 0);
}

/* Coincidence rules that exclude some crystal pairs of two modules: separable masks. */
static inline lr_scanner *create_ruled_ring(void)
{
    return scanner_from("ring: {radius_mm: 22, modules: 8, first_angle_deg: 10, rings: 2, ring_pitch_mm: 12}\nmodule: "
                        "{crystals: [6, 5], pitch_mm: [2.2, 2.2], face_mm: [2, 2.1], depth_mm: 10}\ncoincidence: "
                        "{field_of_view_mm: 15, min_module_difference: 3, max_ring_difference: 6}");
}

/* A field of view, and modules that do not stand upright: the mask has one bit for each crystal pair. */
static inline lr_scanner *create_ruled_tilted(void)
{
    const lr_module shape = shape_of(7, 6, 2.2, 2.0);
    lr_module modules[4];
    for (int m = 0; m < 4; m++)
        modules[m] = place_module(&shape, &(struct placement){90 * m + 7, 30 + m, m - 1.5, 10 * m - 15, 0, 20 * m});
    return scanner_of(modules, 4, 12);
}

/* A ring of modules with u along the axis and v across, whose masks have one bit per
 * LOR. */
static inline lr_scanner *create_turned(void)
{
    const lr_module shape = {.crystals = {5, 7}, .pitch_mm = {2.4, 2.1}, .face_mm = {2.2, 2.1}, .depth_mm = 8};
    lr_module modules[6];
    for (int m = 0; m < 6; m++) {
        modules[m] = place_module(&shape, &(struct placement){60 * m + 8, 30, m % 2, 0, 0, m % 3 ? 90 : 270});
        for (int k = 0; k < 3; k++) /* rounding errors of the rotations */
            modules[m].u[k] = k == 2 ? (modules[m].u[k] > 0 ? 1 : -1) : 0;
        modules[m].v[2] = 0;
    }
    return scanner_of(modules, 6, 9);
}

/* Large distances: the precision that floats still have on a whole-body scanner. */
static inline lr_scanner *create_large_ring(void)
{
    return scanner_from("ring: {radius_mm: 465, modules: 12}\nmodule: {crystals: [27, 12], pitch_mm: [4.3, 4.3], "
                        "face_mm: [4, 4], depth_mm: 30}\ncoincidence: {field_of_view_mm: 576}");
}

static const struct scanner_case scanner_cases[] = {
    {"opposed", create_opposed, 15},       {"oblique", create_oblique, 20},
    {"tilted", create_tilted, 12},         {"unequal", create_unequal, 8},
    {"gapped", create_gapped, 8},          {"flipped", create_flipped, 10},
    {"ring of 8", create_ring_of_8, 10},   {"two rings", create_two_rings, 10},
    {"blocks", create_blocks, 14},         {"stacked", create_stacked, 8},
    {"ruled ring", create_ruled_ring, 8},  {"ruled tilted", create_ruled_tilted, 10},
    {"large ring", create_large_ring, 200}};

static inline const struct scanner_case *scanner_case_named(const char *name)
{
    for (int k = 0; k < length_of(scanner_cases); k++)
        if (strcmp(scanner_cases[k].name, name) == 0) return &scanner_cases[k];
    fail_msg("no test scanner is called %s", name);
    return NULL;
}

/* A module of any size at this angle, or in a crowd at any place and with any tilt. */
static inline lr_module random_module(uint64_t *state, bool is_crowded, double angle)
{
    lr_module shape = {.depth_mm = is_crowded ? 2 : 5};
    for (int k = 0; k < 2; k++) {
        shape.crystals[k] = 1 + (int)((is_crowded ? 7 : 9) * test_random(state));
        shape.pitch_mm[k] = is_crowded ? random_between(state, 1.5, 7) : random_between(state, 1.2, 3.5);
        shape.face_mm[k] = shape.pitch_mm[k] * random_between(state, 0.6, 1.0);
    }
    const double around = is_crowded ? 180 : 15, nearest = is_crowded ? 25 : 35, off = is_crowded ? 20 : 8;
    const double tilt = is_crowded ? 60 : 25, yaw = is_crowded ? 40 : 20;
    return place_module(
        &shape, &(struct placement){angle + random_between(state, -around, around), random_between(state, nearest, 80),
                                    random_between(state, -off, off), random_between(state, -tilt, tilt),
                                    random_between(state, -yaw, yaw), random_between(state, 0, 360)});
}

/* Three to six modules of any size and orientation around the axis. */
static inline lr_scanner *create_random(uint64_t *state)
{
    const int num_modules = 3 + (int)(4 * test_random(state));
    lr_module modules[6];
    lr_scanner *scanner = NULL;
    for (int attempt = 0; attempt < 100 && scanner == NULL; attempt++) {
        for (int m = 0; m < num_modules; m++) modules[m] = random_module(state, false, 360.0 * m / num_modules);
        scanner = lr_scanner_create(&(lr_scanner_params){.modules = modules, .num_modules = num_modules});
    }
    assert_non_null(scanner);
    return scanner;
}

/* Six to twelve modules of any size, tilt and place, many of them in front of others. */
static inline lr_scanner *create_crowded(uint64_t *state)
{
    enum { MOST = 12 };
    const int num_modules = 6 + (int)((MOST - 5) * test_random(state));
    lr_module modules[MOST];
    lr_scanner *scanner = NULL;
    modules[0] = random_module(state, true, 180);
    for (int placed = 1; placed < num_modules;) {
        modules[placed] = random_module(state, true, 180);
        lr_scanner *larger = lr_scanner_create(&(lr_scanner_params){.modules = modules, .num_modules = placed + 1});
        if (larger != NULL) {
            lr_scanner_destroy(scanner);
            scanner = larger;
            placed++;
        }
    }
    return scanner;
}

/* --- sample points --- */

enum { NUM_TEST_POINTS = 9 };

/* A point h mm in front of a module's detection plane, at (x, y) half edges from its middle. */
static inline void point_before(const lr_scanner *scanner, int module, const double at[3], double point_mm[3])
{
    const lr_module *m = &scanner->modules[module];
    lr_scanner_detection_centre(scanner, module, point_mm);
    vec_add_scaled(point_mm, 0.5 * at[0] * m->crystals[0] * m->pitch_mm[0], m->u, point_mm);
    vec_add_scaled(point_mm, 0.5 * at[1] * m->crystals[1] * m->pitch_mm[1], m->v, point_mm);
    vec_add_scaled(point_mm, at[2], m->normal, point_mm);
}

/* Point `index` < NUM_TEST_POINTS of a scanner: the centre, on symmetry planes, near modules,
 * outside the field of view, and random ones. */
static inline void test_point(const lr_scanner *scanner, double reach_mm, int index, uint64_t *state,
                              double point_mm[3])
{
    for (int k = 0; k < 3; k++) point_mm[k] = random_between(state, -reach_mm, reach_mm) * (k == 2 ? 0.3 : 1);
    const int last = scanner->num_modules - 1;
    switch (index) {
    case 0: /* the centre */ point_mm[0] = point_mm[1] = point_mm[2] = 0; break;
    case 1: /* the plane x = 0 */ point_mm[0] = 0; break;
    case 2: /* the planes y = 0 and z = 0 */ point_mm[1] = point_mm[2] = 0; break;
    case 3: /* 1 mm before the first module */
        point_before(scanner, 0, (const double[3]){0.1, 0.2, 1}, point_mm);
        break;
    case 4: /* 1 mm before a corner of the last one */
        point_before(scanner, last, (const double[3]){0.95, -0.9, 1}, point_mm);
        break;
    case 5: /* beyond the axial end */ point_mm[2] = 2.5 * reach_mm + 10; break;
    case 6: /* beside a module, outside the field of view */
        point_before(scanner, last, (const double[3]){1.4, 1.2, 6}, point_mm);
        break;
    default: break;
    }
}
