/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Voxel grids and sample points. */
#include "cases.h"

static void rows_run_x_fastest(void **state)
{
    const lr_grid grid = {.size = {3, 4, 5}, .voxel_mm = {1, 2, 3}, .origin_mm = {10, 20, 30}};
    assert_int_equal(lr_grid_num_voxels(&grid), 60);
    for (int row = 0; row < 60; row++) {
        double centre[3];
        lr_grid_voxel_centre(&grid, row, centre);
        const int ix = (int)(centre[0] - 10), iy = (int)(centre[1] - 20) / 2, iz = (int)(centre[2] - 30) / 3;
        assert_int_equal(ix + 3 * (iy + 4 * iz), row);
        assert_true(centre[0] == 10 + ix && centre[1] == 20 + 2 * iy && centre[2] == 30 + 3 * iz);
    }
}

static void centred_grid_is_symmetric(void **state)
{
    const lr_grid grid = lr_grid_centred((const int[3]){96, 95, 8}, (const double[3]){.45, .7, 2});
    double first[3], last[3];
    lr_grid_voxel_centre(&grid, 0, first);
    lr_grid_voxel_centre(&grid, lr_grid_num_voxels(&grid) - 1, last);
    for (int k = 0; k < 3; k++) assert_true(fabs(first[k] + last[k]) < 1e-12);
    assert_close(last[0] - first[0], 95 * 0.45, 1e-14);
}

/* Sample points divide the voxel evenly: their mean is its centre, their spacing is the voxel's edge divided by their
 * number, and the outermost points are half a spacing from the faces. */
static void sample_points_tile_the_voxel(void **state)
{
    const lr_grid grid = {.size = {3, 4, 5}, .voxel_mm = {1, 2, 3}, .origin_mm = {-1, 7, 0.5}};
    const int samples[3] = {2, 3, 4};
    double centre[3], sum[3] = {0, 0, 0};
    lr_grid_voxel_centre(&grid, 37, centre);
    for (int index = 0; index < 24; index++) {
        const int part[3] = {index % 2, index / 2 % 3, index / 6};
        double point[3];
        lr_grid_sample_point(&grid, &(lr_sample){37, {samples[0], samples[1], samples[2]}, index}, point);
        for (int k = 0; k < 3; k++) {
            const double low = centre[k] - grid.voxel_mm[k] / 2, spacing = grid.voxel_mm[k] / samples[k];
            assert_true(fabs(point[k] - low - (part[k] + 0.5) * spacing) < 1e-14);
            sum[k] += point[k] / 24;
        }
    }
    for (int k = 0; k < 3; k++) assert_true(fabs(sum[k] - centre[k]) < 1e-13);
    double point[3];
    lr_grid_sample_point(&grid, &(lr_sample){37, {1, 1, 1}, 0}, point);
    assert_memory_equal(point, centre, sizeof(point)); /* N = 1 gives the centre, bit by bit */
}

static void assert_split(double x, double y, double z, int count, int nx, int ny, int nz)
{
    const lr_grid grid = {.size = {1, 1, 1}, .voxel_mm = {x, y, z}};
    int samples[3];
    lr_grid_split_samples(&grid, count, samples);
    if (samples[0] != nx || samples[1] != ny || samples[2] != nz)
        fail_msg("%d points in %g x %g x %g mm: %d x %d x %d", count, x, y, z, samples[0], samples[1], samples[2]);
}

static void samples_are_split(void **state)
{
    assert_split(1, 1, 1, 1, 1, 1, 1);
    assert_split(1, 1, 1, 8, 2, 2, 2);
    assert_split(0.3, 0.3, 0.3, 27, 3, 3, 3);
    assert_split(1, 1, 1, 2, 1, 1, 2); /* a tie: the largest spacing is 1 for any split of 2 */
    assert_split(1, 1, 1, 7, 1, 1, 7);
    assert_split(1, 1, 1, 4, 1, 1, 4);
    assert_split(1, 1, 1, 12, 2, 2, 3); /* 2, 2, 3 in any order gives 1/2: more points along z */
    assert_split(1, 1, 2, 2, 1, 1, 2);
    assert_split(2, 1, 1, 2, 2, 1, 1);
    assert_split(4, 2, 1, 8, 4, 2, 1);
    assert_split(1, 1, 0.6, 6, 2, 3, 1); /* 3, 2, 1 gives 0.6, too: more points along y */
    assert_split(1, 1, 4, 16, 1, 1, 16); /* 2, 2, 4 gives 1, too: more points along z */
}

/* No other split has a smaller largest spacing, for every count up to 60. */
static void split_is_the_best(void **state)
{
    uint64_t random = test_seed();
    for (int count = 1; count <= 60; count++) {
        lr_grid grid = {.size = {1, 1, 1}};
        for (int k = 0; k < 3; k++) grid.voxel_mm[k] = 0.2 + test_random(&random);
        int samples[3];
        lr_grid_split_samples(&grid, count, samples);
        assert_int_equal(samples[0] * samples[1] * samples[2], count);
        double got = 0, best = INFINITY;
        for (int k = 0; k < 3; k++) got = fmax(got, grid.voxel_mm[k] / samples[k]);
        for (int a = 1; a <= count; a++) {
            for (int b = 1; b <= count; b++) {
                for (int c = 1; c <= count; c++) {
                    best =
                        a * b * c != count
                            ? best
                            : fmin(best, fmax(grid.voxel_mm[0] / a, fmax(grid.voxel_mm[1] / b, grid.voxel_mm[2] / c)));
                }
            }
        }
        assert_true(got == best);
    }
}

/* Checks that the grid is refused, and then makes it valid again. */
static void assert_refused(lr_grid *grid, const lr_grid *good, const char *words)
{
    struct test_log log = TEST_LOG(log);
    assert_int_equal(lr_grid_check(grid, &log.log), LR_BAD_INPUT);
    assert_says(log.error, words);
    assert_null(lr_image_create(grid, NULL));
    *grid = *good;
}

static void grids_are_checked(void **state)
{
    const lr_grid good = lr_grid_centred((const int[3]){2, 2, 2}, (const double[3]){1, 1, 1});
    assert_ok(lr_grid_check(&good, NULL));
    lr_grid grid = good;
    spoilt(grid.size[1] = 0, assert_refused(&grid, &good, "0 voxels along y"));
    spoilt(grid.voxel_mm[2] = -1, assert_refused(&grid, &good, "-1 mm long along z"));
    spoilt(grid.voxel_mm[0] = NAN, assert_refused(&grid, &good, "nan mm long along x"));
    spoilt(grid.origin_mm[0] = INFINITY, assert_refused(&grid, &good, "the x coordinate of the grid's origin"));
    grid.size[0] = grid.size[1] = 32768;
    assert_ok(lr_grid_check(&grid, NULL)); /* 2^31 voxels */
    spoilt(grid.size[2] = 3, assert_refused(&grid, &good, "more than 2147483648 voxels"));
    grid.size[0] = grid.size[1] = grid.size[2] = INT32_MAX;
    assert_refused(&grid, &good, "more than 2147483648 voxels");
}

static void images_start_at_zero(void **state)
{
    const lr_grid grid = lr_grid_centred((const int[3]){5, 6, 7}, (const double[3]){1, 1, 1});
    lr_image *image = keep(lr_image_create(&grid, NULL));
    for (int k = 0; k < 3; k++) {
        assert_int_equal(image->grid.size[k], grid.size[k]);
        assert_all(image->grid.voxel_mm[k] == grid.voxel_mm[k], image->grid.origin_mm[k] == grid.origin_mm[k]);
    }
    for (int k = 0; k < 210; k++) assert_true(image->values[k] == 0.0f);
    lr_image_destroy(NULL);
}

test_main("unit: grid", CASE(rows_run_x_fastest), CASE(centred_grid_is_symmetric), CASE(sample_points_tile_the_voxel),
          CASE(samples_are_split), CASE(split_is_the_best), CASE(grids_are_checked), CASE(images_start_at_zero))
