/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Phantoms: areas, volumes, places. */
#include "cases.h"

#include "model/simulate/derenzo.h"

#include <float.h>

static const double pi = 3.14159265358979323846;

static lr_image *draw(const char *name, const lr_grid *grid, double radius_mm, int subsamples)
{
    return keep(
        lr_phantom_create(&(lr_phantom_params){.name = name, .radius_mm = radius_mm, .subsamples = subsamples}, grid));
}

/* Sum of values times the voxel's volume. */
static double integral(const lr_image *image)
{
    double sum = 0.0;
    for (int64_t k = 0; k < lr_grid_num_voxels(&image->grid); k++) sum += image->values[k];
    return sum * image->grid.voxel_mm[0] * image->grid.voxel_mm[1] * image->grid.voxel_mm[2];
}

/* In a sector, rods are at least twice their diameter apart, and each has a neighbour at exactly this distance. Rods of
 * different sectors do not touch; all rods lie in their wedge and in the circle. */
static void rods_keep_their_distances(void **state)
{
    const double radius = 40.0;
    int num_rods = 0;
    struct lr_rod *rods = keep_object(lr_derenzo_rods(radius, &num_rods, NULL), free);
    for (int a = 0; a < num_rods; a++) {
        const struct lr_rod *rod = &rods[a];
        const double diameter = lr_derenzo_diameters_mm[rod->sector];
        const double x = rod->centre_mm[0], y = rod->centre_mm[1];
        double nearest = INFINITY;
        assert_all(2 * rod->radius_mm == diameter, hypot(x, y) + diameter / 2 <= radius + 1e-9);
        const double low = rod->sector * pi / 3, high = low + pi / 3; /* distances from the wedge's sides */
        assert_true(y * cos(low) - x * sin(low) >= 0.75 * diameter - 1e-9);
        assert_true(x * sin(high) - y * cos(high) >= 0.75 * diameter - 1e-9);
        for (int b = 0; b < num_rods; b++) {
            const double apart = hypot(x - rods[b].centre_mm[0], y - rods[b].centre_mm[1]);
            if (b != a && rods[b].sector == rod->sector)
                nearest = fmin(nearest, apart);
            else if (b != a)
                assert_true(apart > rod->radius_mm + rods[b].radius_mm);
        }
        assert_close(nearest, 2 * diameter, 1e-9);
    }
}

/* Number of points of the lattice through the innermost rod that keep the distance from the wedge's sides and whose
 * rods lie inside the circle, counted over the whole plane in the wedge's own coordinates. */
static int count_lattice_points(double diameter, double radius)
{
    const int reach = (int)(radius / diameter) + 2;
    int count = 0;
    for (int i = -reach; i <= reach; i++) {
        for (int j = -reach; j <= reach; j++) {
            const double x = diameter * (1.5 + sqrt(3.0) * i), y = diameter * (2 * j + (i % 2 != 0));
            const double to_side = 0.5 * x - sqrt(0.75) * fabs(y);
            count += to_side >= 0.75 * diameter - 1e-9 && hypot(x, y) + diameter / 2 <= radius;
        }
    }
    return count;
}

/* Every lattice point with room for a rod has one; so, for larger circles, the rods' share of the circle approaches the
 * lattice's, pi / (8 sqrt(3)). */
static void rods_fill_their_wedge(void **state)
{
    const double radii[] = {9.6, 19.872, 57.0, 400.0};
    for (int k = 0; k < 4; k++) {
        int num_rods = 0, in_sector[LR_DERENZO_SECTORS] = {0};
        struct lr_rod *rods = keep_object(lr_derenzo_rods(radii[k], &num_rods, NULL), free);
        double area = 0.0;
        for (int n = 0; n < num_rods; n++) {
            in_sector[rods[n].sector]++;
            area += pi * rods[n].radius_mm * rods[n].radius_mm;
        }
        for (int sector = 0; sector < LR_DERENZO_SECTORS; sector++)
            assert_int_equal(in_sector[sector], count_lattice_points(lr_derenzo_diameters_mm[sector], radii[k]));
        const double share = area / (pi * radii[k] * radii[k]) / (pi / (8 * sqrt(3.0)));
        assert_true(k < 3 || fabs(share - 1.0) < 0.01); /* effects of rim and sides are some d / R */
    }
}

static void derenzo_has_the_rods_area(void **state)
{
    const lr_grid grid = lr_grid_centred((const int[3]){96, 96, 3}, (const double[3]){0.45, 0.45, 2});
    int num_rods = 0;
    double area = 0.0;
    struct lr_rod *rods = keep_object(lr_derenzo_rods(0.46 * 96 * 0.45, &num_rods, NULL), free);
    for (int k = 0; k < num_rods; k++) area += pi * rods[k].radius_mm * rods[k].radius_mm;
    lr_image *image = draw("derenzo", &grid, 0, 0);
    /* The area of a disc, counted with points at spacing h, has an error of about h^2 sqrt(r / h); over some 60 rods
     * this is below 1 %. */
    assert_close(integral(image) / 6.0, area, 0.01);
    float most = 0;
    for (int64_t k = 0; k < 96 * 96; k++) {
        most = fmaxf(most, image->values[k]);
        assert_true(image->values[k] >= 0.0f);
        assert_true(image->values[k] == image->values[k + 2 * 96 * 96]); /* along the whole grid */
    }
    assert_true(most == 1.0f);
    for (int k = 0; k < num_rods; k++) { /* a rod's middle is hot */
        const int ix = (int)lround((rods[k].centre_mm[0] - grid.origin_mm[0]) / 0.45);
        const int iy = (int)lround((rods[k].centre_mm[1] - grid.origin_mm[1]) / 0.45);
        assert_true(image->values[ix + 96 * iy] > 0.85f);
    }
}

/* The volumes of the background cylinder and the spheres are right; the contrast is 4 to 1. */
static void spheres_have_their_volumes(void **state)
{
    const lr_grid grid = lr_grid_centred((const int[3]){120, 120, 60}, (const double[3]){1, 1, 1});
    const double radius = 57.2; /* half the reference size */
    const double diameters[6] = {5, 6.5, 8.5, 11, 14, 18.5};
    double expected = 0.25 * pi * radius * radius * 60;
    for (int k = 0; k < 6; k++) expected += 0.75 * pi / 6 * diameters[k] * diameters[k] * diameters[k];
    lr_image *image = draw("spheres", &grid, radius, 6);
    assert_close(integral(image), expected, 1e-3);
    for (int k = 0; k < 6; k++) {
        const double x = radius / 2 * cos(k * pi / 3), y = radius / 2 * sin(k * pi / 3);
        const int ix = (int)floor(x + 60), iy = (int)floor(y + 60);
        assert_close(image->values[ix + 120 * (iy + 120 * 29)], 1.0, 1e-6);
        assert_close(image->values[ix + 120 * (iy + 120 * 5)], 0.25, 1e-6);
    }
    assert_true(image->values[0] == 0.0f);
}

/* The phantom at half its size: spheres of 5 mm at a radius of 37.5 mm, 6 to 1, or with other values if wanted. */
static void six_spheres_are_equal(void **state)
{
    const lr_grid grid = lr_grid_centred((const int[3]){180, 180, 21}, (const double[3]){1, 1, 1});
    const double contrasts[2] = {6, 3};
    for (int n = 0; n < 2; n++) {
        const double background = 1 / contrasts[n];
        const double expected = background * pi * 87.5 * 87.5 * 21 + 6 * (1 - background) * pi / 6 * 125;
        lr_image *image = keep(lr_phantom_create(
            &(lr_phantom_params){.name = "six-spheres", .radius_mm = 87.5, .subsamples = 6, .contrast = n == 0 ? 0 : 3},
            &grid));
        assert_close(integral(image), expected, 1e-3);
        double above = 0; /* spheres alone, which are 1e-4 of the total */
        for (int64_t k = 0; k < lr_grid_num_voxels(&grid); k++) {
            const double more = (double)image->values[k] - background;
            above += more > 1e-6 ? more : 0;
        }
        assert_close(above, 6 * (1 - background) * pi / 6 * 125, 0.02);
        for (int k = 0; k < 6; k++) {
            const double x = 37.5 * cos(k * pi / 3), y = 37.5 * sin(k * pi / 3);
            const int row = (int)floor(x + 90) + 180 * (int)floor(y + 90);
            assert_close(image->values[row + 180 * 180 * 10], 1.0, 1e-6);
            assert_close(image->values[row + 180 * 180 * 6], background, 1e-6);
        }
    }
}

static int64_t only_voxel(lr_image *image)
{
    int64_t at = -1;
    for (int64_t k = 0; k < lr_grid_num_voxels(&image->grid); k++) {
        if (image->values[k] != 0.0f) {
            assert_true(at < 0 && image->values[k] == 1.0f);
            at = k;
        }
    }
    return at;
}

static void point_is_nearest_the_centre(void **state)
{
    lr_grid grid = lr_grid_centred((const int[3]){5, 4, 3}, (const double[3]){1, 0.1, 3});
    assert_int_equal(only_voxel(draw("point", &grid, 0, 0)), 2 + 5 * (1 + 4 * 1));
    grid.origin_mm[0] = -0.6; /* voxel 1 at 0.4 */
    assert_int_equal(only_voxel(draw("point", &grid, 0, 0)), 1 + 5 * (1 + 4 * 1));
    grid.origin_mm[2] = 100.0; /* outside: the grid's own centre is used */
    assert_int_equal(only_voxel(draw("point", &grid, 0, 0)), 2 + 5 * (1 + 4 * 1));
}

/* Each slice shows a disc centred in the grid; `value` scales the image. */
static void a_cylinder_has_its_area(void **state)
{
    lr_grid grid = lr_grid_centred((const int[3]){60, 50, 3}, (const double[3]){1, 1.2, 2});
    grid.origin_mm[0] += 17.3; /* the scanner's centre does not matter */
    const double values[2] = {0, 0.0096};
    for (int n = 0; n < 2; n++) {
        const double value = n == 0 ? 1 : values[n];
        lr_image *image = keep(
            lr_phantom_create(&(lr_phantom_params){.name = "cylinder", .radius_mm = 21.7, .value = values[n]}, &grid));
        assert_close(integral(image) / (value * 3 * 2), pi * 21.7 * 21.7, 0.01);
        for (int z = 0; z < 3; z++) {
            assert_close(image->values[30 + 60 * (25 + 50 * z)], value, 1e-6);
            assert_true(image->values[60 * 50 * z] == 0.0f);
        }
    }
}

/* Voxels along z through a given place, for any z of the place, and no others. */
static void a_line_runs_along_z(void **state)
{
    const lr_grid grid = lr_grid_centred((const int[3]){9, 8, 5}, (const double[3]){2, 3, 4});
    const double at_mm[3] = {4.9, -7, 1e4}; /* nearest: 4 mm, which is voxel 6, and -7.5 mm, which is voxel 1 */
    lr_image *image = keep(lr_phantom_create(&(lr_phantom_params){.name = "line", .at_mm = at_mm}, &grid));
    for (int64_t k = 0; k < lr_grid_num_voxels(&grid); k++)
        assert_true(image->values[k] == (k % 72 == 6 + 9 * 1 ? 1.0f : 0.0f));
}

static void a_point_is_where_it_is_asked_for(void **state)
{
    const lr_grid grid = lr_grid_centred((const int[3]){9, 8, 5}, (const double[3]){2, 3, 4});
    const double at_mm[3] = {-8.9, 9.1, 5.9}; /* voxels 0 at -8 mm, 7 at 10.5 mm and 3 at 4 mm */
    lr_phantom_params params = {.name = "point", .at_mm = at_mm};
    assert_int_equal(only_voxel(keep(lr_phantom_create(&params, &grid))), 0 + 9 * (7 + 8 * 3));
    params.value = 2.5;
    assert_true(keep(lr_phantom_create(&params, &grid))->values[9 * (7 + 8 * 3)] == 2.5f);
}

static void assert_refused(lr_phantom_params params, const lr_grid *grid, const char *words)
{
    struct test_log log = TEST_LOG(log);
    params.log = &log.log;
    assert_null(lr_phantom_create(&params, grid));
    assert_error(&log, LR_USAGE, words);
}

static void misfits_are_refused(void **state)
{
    const lr_grid grid = lr_grid_centred((const int[3]){20, 20, 2}, (const double[3]){1, 1, 1});
    assert_refused((lr_phantom_params){.name = "derenzoo"}, &grid,
                   "there is no phantom \"derenzoo\": use one of derenzo, spheres, six-spheres, cylinder, line, point");
    assert_refused((lr_phantom_params){.name = "derenzo"}, &grid, "radius of at least 9.6 mm");
    assert_refused((lr_phantom_params){.name = "spheres", .radius_mm = 10.5}, &grid,
                   "a radius of 10.5 mm does not fit the grid: it must be positive and at most 10");
    assert_refused((lr_phantom_params){.name = "spheres", .radius_mm = NAN}, &grid, "does not fit");
    assert_refused((lr_phantom_params){.name = "spheres", .subsamples = -1}, &grid, "subsamples");
    assert_refused((lr_phantom_params){.name = "six-spheres", .contrast = 0.5}, &grid, "contrast of 0.5");
    for (int k = 0; k < 3; k++) { /* one voxel beyond an edge */
        double at_mm[3] = {0};
        at_mm[k] = k == 1 ? -10.6 : 10.6;
        assert_refused((lr_phantom_params){.name = "point", .at_mm = at_mm}, &grid,
                       "lies outside of the grid, which has x from -10 to 10, y from -10 to 10 and z from -1 to 1 mm");
        if (k < 2)
            assert_refused((lr_phantom_params){.name = "line", .at_mm = at_mm}, &grid, "lies outside of the grid");
    }
    const double values[] = {-1, 2.0 * (double)FLT_MAX, INFINITY, NAN};
    for (int k = 0; k < 4; k++)
        assert_refused((lr_phantom_params){.name = "cylinder", .value = values[k]}, &grid, "a value of ");
    for (int k = 0; lr_phantom_names()[k] != NULL; k++) draw(lr_phantom_names()[k], &grid, 10.0, 0);
}

static lr_image *random_labels(uint64_t *random)
{
    const lr_grid grid = {.size = {7, 6, 5}, .voxel_mm = {2, 2.5, 3}, .origin_mm = {90, -7, 3}};
    lr_image *labels = keep(lr_image_create(&grid, NULL));
    for (int k = 0; k < 210; k++) labels->values[k] = (float)floor(5 * test_random(random));
    return labels;
}

static double activity_of(float label)
{
    return label == 1 ? 0.1 : label == 2 ? 0.25 : label == 3 ? 1.0 : label == 4 ? 0.05 : 0.0;
}

/* On a centred grid like the label image's, each voxel has the activity of its label. */
static void labels_become_activity(void **state)
{
    uint64_t random = test_seed();
    lr_image *labels = random_labels(&random);
    const lr_grid grid = lr_grid_centred(labels->grid.size, labels->grid.voxel_mm);
    lr_image *image = keep(lr_phantom_from_labels(labels, &grid, NULL));
    for (int k = 0; k < 210; k++) assert_true(fabs(image->values[k] - activity_of(labels->values[k])) < 1e-6);
}

/* Any grid that contains the whole label image keeps the integral, fine or coarse, and for any shift. */
static void resampling_keeps_the_integral(void **state)
{
    uint64_t random = test_seed();
    lr_image *labels = random_labels(&random);
    double expected = 0.0;
    for (int k = 0; k < 210; k++) expected += activity_of(labels->values[k]) * 2 * 2.5 * 3;
    const double voxels[][3] = {{0.7, 0.9, 1.1}, {3, 2, 5}, {40, 40, 40}, {2, 2.5, 0.4}};
    for (int k = 0; k < 4; k++) {
        int size[3];
        for (int axis = 0; axis < 3; axis++) size[axis] = (int)ceil(25 / voxels[k][axis]) + 2;
        lr_grid grid = lr_grid_centred(size, voxels[k]);
        for (int axis = 0; axis < 3; axis++)
            grid.origin_mm[axis] += 0.9 * (test_random(&random) - 0.5) * voxels[k][axis];
        lr_image *image = keep(lr_phantom_from_labels(labels, &grid, NULL));
        assert_close(integral(image), expected, 1e-6); /* float values */
    }
}

static void other_labels_are_refused(void **state)
{
    uint64_t random = 1;
    const float bad[] = {5.0f, -1.0f, 1.5f, NAN};
    lr_image *labels = random_labels(&random);
    for (int k = 0; k < 4; k++) {
        struct test_log log = TEST_LOG(log);
        labels->values[17] = bad[k];
        assert_null(lr_phantom_from_labels(labels, &labels->grid, &log.log));
        assert_error(&log, LR_BAD_INPUT, "in voxel 17");
    }
}

test_main("unit: phantom", CASE(rods_keep_their_distances), CASE(rods_fill_their_wedge),
          CASE(derenzo_has_the_rods_area), CASE(spheres_have_their_volumes), CASE(six_spheres_are_equal),
          CASE(point_is_nearest_the_centre), CASE(a_cylinder_has_its_area), CASE(a_line_runs_along_z),
          CASE(a_point_is_where_it_is_asked_for), CASE(misfits_are_refused), CASE(labels_become_activity),
          CASE(resampling_keeps_the_integral), CASE(other_labels_are_refused))
