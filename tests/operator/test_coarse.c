/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Crystals that are large compared with voxels, or close to them. A LOR then has up to a million terms, and a thread of
 * a shader makes more iterations than a software renderer allows. Values, single LORs, the sensitivity and rows are
 * compared with the backend cpu, which computes in double. Argument: the backend. */
#include "against_cpu.h"

struct arrangement {
    const char *name;
    int modules;
    double radius_mm;
    int crystals; /* along both edges */
    double pitch_mm;
    double tilt; /* degrees; tilt of every second module out of the axial direction */
    int size[3];
    double voxel_mm;
};

static const struct arrangement arrangements[] = {{"two of one crystal", 2, 60.0, 1, 64.0, 0.0, {36, 36, 36}, 0.87},
                                                  {"two of 2 x 2", 2, 60.0, 2, 32.0, 0.0, {36, 36, 36}, 0.87},
                                                  {"two of 40 x 40", 2, 50.0, 40, 3.0, 0.0, {5, 3, 2}, 8.9},
                                                  {"four of 20 x 20", 4, 55.0, 20, 5.0, 0.0, {4, 4, 2}, 8.9},
                                                  {"two of 2 x 2, tilted", 2, 60.0, 2, 32.0, 5.0, {28, 28, 28}, 1.12}};
enum { NUM_ARRANGEMENTS = sizeof(arrangements) / sizeof(arrangements[0]) };

/* Largest difference of two vectors, relative to the length of a vector. */
static const double agreement[] = {[LR_MODE_SAMPLED] = 1e-5, [LR_MODE_EXACT] = 4e-6};

static lr_module module_of(const struct arrangement *of, int number)
{
    const double angle = 6.283185307179586 * number / of->modules, c = cos(angle), s = sin(angle);
    const double tilt = number % 2 != 0 ? of->tilt * 3.14159265358979323846 / 180.0 : 0.0;
    return filled(lr_module, .centre_mm = {of->radius_mm * c, of->radius_mm * s, 0.0},
                  .u = {-s * cos(tilt), c * cos(tilt), sin(tilt)}, .v = {s * sin(tilt), -c * sin(tilt), cos(tilt)},
                  .crystals = {of->crystals, of->crystals}, .pitch_mm = {of->pitch_mm, of->pitch_mm},
                  .face_mm = {of->pitch_mm, of->pitch_mm}, .depth_mm = 10.0);
}

static void check(const struct arrangement *of, lr_mode mode)
{
    lr_module modules[4];
    for (int m = 0; m < of->modules; m++) modules[m] = module_of(of, m);
    struct fixture fixture = {.name = of->name};
    fixture.scanner =
        keep(lr_scanner_create(&(lr_scanner_params){.name = of->name, .modules = modules, .num_modules = of->modules}));
    fixture.lors = keep(lr_lors_create(fixture.scanner, NULL));
    fixture.grid = lr_grid_centred(of->size, (const double[3]){of->voxel_mm, of->voxel_mm, of->voxel_mm});
    for (int k = 0; k < 3; k++) fixture.grid.origin_mm[k] += (const double[]){0.113, -0.271, 0.197}[k];
    lr_operator_params params = fixture_params(&fixture, test_backend, NULL);
    params.mode = mode;
    double apart[3];
    compare_with_cpu(&fixture, &params, apart);
    print_message("%s, %s: values %.1e, single LORs %.1e, sensitivity %.1e apart\n", of->name,
                  mode == LR_MODE_EXACT ? "exact" : "sampled", apart[0], apart[1], apart[2]);
    for (int k = 0; k < 3; k++) assert_true(apart[k] < agreement[mode]);
}

/* Returns true if the backend has elements of this mode and can project with these modules. */
static bool takes(const struct arrangement *of, lr_mode mode)
{
    if (test_backend_is("raster")) return mode == LR_MODE_SAMPLED;
    return !test_backend_is("native") || of->tilt == 0.0;
}

static void test_coarse_crystals(void **state)
{
    static const lr_mode modes[2] = {LR_MODE_EXACT, LR_MODE_SAMPLED};
    for (int k = 0; k < 2 * NUM_ARRANGEMENTS; k++) {
        const struct arrangement *of = &arrangements[k / 2];
        if (takes(of, modes[k % 2])) check(of, modes[k % 2]);
    }
}

backend_main("compute", CASE(test_coarse_crystals))
