/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What the host prepares of a view for gathers by bands: tables hold all that is looked up, plans fit. */
#include "fixtures.h"

#include "cuda_interop/direct/plans.h"
#include "layouts.h"

/* rows: 1 where there is one kernel. */
static void plan_bands(const lr_direct_tables_params *params, int rows, struct lr_cuda_band_plan *plan)
{
    struct lr_direct_shape shape;
    assert_int_equal(lr_direct_shape_init(&shape, params), LR_OK);
    const lr_cuda_layout layout = layout_of(&shape);
    assert_int_equal(lr_cuda_band_plan_init(plan, &shape, &layout, rows, NULL), LR_OK);
    lr_direct_shape_finish(&shape);
}

/* Checks the places at which a device looks up the kernels of an octet of sources. */
static void assert_kernels_are_there(const struct lr_cuda_band_plan *plan, int pair, int d, int32_t kernel)
{
    const lr_cuda_bands *pass = &plan->passes[LR_CUDA_BANDS_ALONE];
    const int row = pass->least_offset + d, place = kernel - row * pass->kernel_pitch;
    for (int32_t k = 0; k < pass->num_tiles; k++) {
        const int first = LR_CUDA_OCTET * plan->tiles[k][0] + place - pass->first_kernel[0];
        assert_in_range(first, 0, pass->kernel_pitch - LR_CUDA_OCTET * pass->sides);
        assert_in_range(plan->tiles[k][1] + pair * LR_CUDA_BAND_ROWS + row - pass->first_kernel[1], 0,
                        pass->num_kernel_rows - 1);
    }
}

/* Long and thin kernels, which lean: no step, nor the one after a list, reaches beyond the tables. */
static void long_kernels_stay_within_their_tables(void **state)
{
    static const struct {
        int size;
        double voxel_mm, azimuth, tof_ps;
    } cases[] = {{300, 2, 13, 1451}, {440, 1.65, 8, 1500}, {120, 4, 71, 900}};
    for (int k = 0; k < 3; k++) {
        const double mm = cases[k].voxel_mm;
        const lr_grid grid =
            lr_grid_centred((const int[3]){cases[k].size, cases[k].size, 3}, (const double[3]){mm, mm, mm});
        struct lr_cuda_band_plan plan;
        plan_bands(
            &(lr_direct_tables_params){
                .grid = &grid,
                .view = {cases[k].azimuth, 0},
                .kernel.resolution = {.tof_ps = cases[k].tof_ps, .radial_mm = 2 * mm, .axial_mm = 0.7 * mm}},
            5, &plan);
        assert_true(lr_cuda_band_plan_fits(&plan, 227 * 1024));
        for (int d = 0; d < plan.passes[0].num_lists; d++) {
            for (int step = plan.lists[d][0]; step < plan.lists[d][1]; step++)
                for (int half = 0; half < 4; half++)
                    assert_kernels_are_there(&plan, half / 2, d, plan.steps[step].kernel[half % 2]);
        }
        lr_cuda_band_plan_finish(&plan);
    }
}

static void plan_view(const lr_grid *grid, const lr_view *view, double axial_mm, struct lr_cuda_band_plan *plan)
{
    const lr_resolution resolution = {.tof_ps = 400, .radial_mm = 6, .axial_mm = axial_mm};
    plan_bands(&(lr_direct_tables_params){.grid = grid, .view = *view, .kernel.resolution = resolution}, 1, plan);
}

static bool has_lattice_of(const lr_cuda_bands *a, const lr_cuda_bands *b)
{
    return memcmp(a->next, b->next, sizeof(a->next)) == 0 && memcmp(a->across, b->across, sizeof(a->across)) == 0;
}

/* An image is sorted once for all of these views. */
static void views_along_a_lattice_sort_alike(void **state)
{
    enum { VIEWS = 40 };
    static struct lr_cuda_band_plan plans[VIEWS];
    const lr_grid grid = lr_grid_centred((const int[3]){61, 44, 20}, (const double[3]){4, 4, 4});
    int alike = 0;
    for (int k = 0; k < VIEWS; k++) {
        plan_view(&grid, &(lr_view){4.5 * k, k % 3 * 10 - 10}, 6, &plans[k]);
        const lr_cuda_bands *pass = plans[k].passes;
        for (int other = 0; other < k; other++) {
            const lr_cuda_bands *of = plans[other].passes;
            if (!has_lattice_of(pass, of)) continue;
            alike++;
            assert_int_equal(pass->pitch, of->pitch);
            assert_int_equal(pass->least_row, of->least_row);
            assert_int_equal(pass->num_lattice_rows, of->num_lattice_rows);
            assert_memory_equal(plans[k].bases, plans[other].bases,
                                (size_t)pass->num_lattice_rows * sizeof(*plans[k].bases));
        }
    }
    assert_true(alike > VIEWS);
    for (int k = 0; k < VIEWS; k++) lr_cuda_band_plan_finish(&plans[k]);
}

/* Kernels that reach far along the axis: blocks are lower, so that one copy brings a slab. */
static void high_kernels_fit(void **state)
{
    static const double axial_mm[] = {28, 40};
    const lr_grid grid = lr_grid_centred((const int[3]){40, 40, 120}, (const double[3]){4, 4, 1});
    for (int k = 0; k < 2; k++) {
        struct lr_cuda_band_plan plan;
        plan_view(&grid, &(lr_view){36, 0}, axial_mm[k], &plan);
        assert_true(-2 * plan.passes[0].low_slice + LR_CUDA_BAND_SLICES * LR_CUDA_BAND_HEIGHT > LR_CUDA_BAND_MOST);
        assert_true(lr_cuda_band_plan_fits(&plan, 227 * 1024));
        lr_cuda_band_plan_finish(&plan);
    }
}

/* Blocks beside others hold their steps, too, and may need more room than those alone. */
static void blocks_of_both_shapes_fit(void **state)
{
    const lr_grid grid = lr_grid_centred((const int[3]){60, 60, 62}, (const double[3]){4, 4, 4});
    struct lr_cuda_band_plan plan;
    plan_view(&grid, &(lr_view){18, 10}, 5, &plan);
    const int32_t alone = plan.passes[LR_CUDA_BANDS_ALONE].bytes;
    const int32_t beside = plan.passes[LR_CUDA_BANDS_BESIDE].bytes;
    assert_true(beside > alone);
    assert_true(lr_cuda_band_plan_fits(&plan, beside));
    assert_false(lr_cuda_band_plan_fits(&plan, beside - 1));
    lr_cuda_band_plan_finish(&plan);
}

/* If kernels vary, a third slab must not leave room for fewer than four blocks. */
static void third_slabs_cost_no_block(void **state)
{
    static const double tof_ps[] = {200, 400, 600, 900, 1200};
    const lr_grid grid = lr_grid_centred((const int[3]){120, 120, 48}, (const double[3]){4, 4, 4});
    int depths[4] = {0};
    for (int k = 0; k < 5; k++) {
        const lr_resolution resolution = {.tof_ps = tof_ps[k], .radial_mm = 5, .axial_mm = 4};
        struct lr_cuda_band_plan plan;
        plan_bands(&(lr_direct_tables_params){.grid = &grid, .kernel.resolution = resolution}, 5, &plan);
        const lr_cuda_bands *beside = &plan.passes[LR_CUDA_BANDS_BESIDE];
        assert_true(beside->is_crowded);
        assert_true(beside->depth == 2 || 4 * (beside->bytes + 1024) <= 228 * 1024);
        depths[beside->depth]++;
        lr_cuda_band_plan_finish(&plan);
    }
    assert_true(depths[2] > 0 && depths[3] > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_kernels_stay_within_their_tables),
        cmocka_unit_test(views_along_a_lattice_sort_alike),
        cmocka_unit_test(high_kernels_fit),
        cmocka_unit_test(blocks_of_both_shapes_fit),
        cmocka_unit_test(third_slabs_cost_no_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
