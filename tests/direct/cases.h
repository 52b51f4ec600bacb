/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Kernels and views for the tests of the family `direct`. */
#pragma once

#include "../cases.h"

#include "base/vec.h"

#include <lr/direct.h>

enum { NUM_MODELS = 8, NUM_ANGLES = 8 };

/* The azimuths and tilts named in the issue of this family. */
static const lr_view case_views[NUM_ANGLES] = {{0, 0},  {30, 0},  {45, 0},   {90, 0},
                                               {0, 10}, {30, 10}, {45, -10}, {90, 10}};

/* Model k of all models; the edge is that of a grid 96 mm wide. */
static inline lr_resolution case_resolution(int k)
{
    static const lr_radial_model models[NUM_MODELS] = {LR_RADIAL_INVARIANT, LR_RADIAL_VARIANT1, LR_RADIAL_VARIANT2,
                                                       LR_RADIAL_VARIANT3,  LR_RADIAL_LINEAR,   LR_RADIAL_MEASURED,
                                                       LR_RADIAL_VARIANT2,  LR_RADIAL_INVARIANT};
    /* Measured profiles are triangles that lean outwards and become wider with the distance. */
    static double distance_mm[2] = {0, 40}, values[2 * 5] = {0, 1, 2, 1, 0.5, 0.5, 1, 2, 2, 1};
    static const lr_radial_profiles measured = {2, 5, distance_mm, -8, 4, values};
    lr_resolution resolution =
        filled(lr_resolution, .tof_ps = 150, .model = models[k], .radial_mm = 6, .radial_edge_mm = 14,
               .edge_mm = models[k] == LR_RADIAL_VARIANT1 ? 80 : 48, .axial_mm = 5, .asymmetric = k >= 6);
    if (models[k] == LR_RADIAL_MEASURED) resolution.measured = &measured;
    return resolution;
}

/* The middle of a crystal on the detection plane, where hits are placed. */
static inline void end_of(const lr_scanner *scanner, int crystal, double centre_mm[3])
{
    const int m = lr_scanner_module_of(scanner, crystal);
    const lr_module *module = &scanner->modules[m];
    const int place = crystal - scanner->first_crystal[m], nu = module->crystals[0];
    lr_module_crystal_centre(module, place % nu, place / nu, centre_mm);
    vec_add_scaled(centre_mm, 0.5 * module->depth_mm - scanner->detection_depth_mm, module->normal, centre_mm);
}

/* A grid whose slices are not square, and whose number of slices is not a multiple of four. */
static inline lr_grid case_grid(void)
{
    return lr_grid_centred((const int[3]){24, 22, 11}, (const double[3]){4, 4, 4});
}

/* A grid with a voxel at the centre, so that columns lie on the borders between kernels. */
static inline lr_grid case_odd_grid(void)
{
    return lr_grid_centred((const int[3]){23, 25, 11}, (const double[3]){4, 4, 4});
}

/* The storage to test: the program's argument "textures" means the backend compute with textures. */
static lr_direct_storage case_storage;

/* Sets test_backend and case_storage; returns whether the backend runs on this machine. */
static inline bool case_is_usable(int argc, char **argv)
{
    const bool has_textures = argc > 1 && strcmp(argv[1], "textures") == 0;
    case_storage = has_textures ? LR_DIRECT_TEXTURES : LR_DIRECT_BUFFERS;
    return test_backend_is_usable(has_textures ? 0 : argc, argv, has_textures ? "compute" : "cpu");
}

static inline lr_operator *kept_direct(lr_direct_params params)
{
    params.storage = case_storage;
    return keep(lr_direct_create(&params));
}

static inline void end_tables(void *tables)
{
    lr_direct_tables_destroy(tables);
}

static inline lr_direct_tables *kept_tables(const lr_grid *grid, lr_view view, const lr_direct_kernel *kernel)
{
    const lr_direct_tables_params params = {.grid = grid, .view = view, .kernel = *kernel};
    return keep_object(lr_direct_tables_create(&params), end_tables);
}

/* Projections of one view, with arrays in either precision. */
static inline lr_status view_project(lr_operator *op, bool is_forward, int view, const lr_vector *in, lr_vector *out)
{
    const int32_t pair = view;
    const lr_selection part = {.pairs = &pair, .num_pairs = 1};
    return (is_forward ? lr_operator_forward : lr_operator_back)(op, &part, in, out);
}

static inline lr_status view_floats(lr_operator *op, bool is_forward, int view, const float *in, float *out)
{
    const int64_t count = lr_operator_get_info(op)->num_voxels;
    return view_project(op, is_forward, view, vector_of(in, count), vector_of(out, count));
}

static inline lr_status view_doubles(lr_operator *op, bool is_forward, int view, const double *in, double *out)
{
    const int64_t count = lr_operator_get_info(op)->num_voxels;
    return view_project(op, is_forward, view, vector_of(in, count), vector_of(out, count));
}
