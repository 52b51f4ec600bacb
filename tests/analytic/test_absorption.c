/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Attenuation along lines: a constant box compared with its chord, and random images compared with the sum in
 * docs/method/common.md, "Attenuation", which is written out here. */
#include "analytic.h"

enum { SIDE = 5, NUM_CRYSTALS = SIDE * SIDE };

/* The primary's crystals are at y = 300. The secondary, which is nearer while y < 25, is one crystal that all lines
 * hit. */
static lr_scanner *funnel(void)
{
    const lr_module modules[2] = {upright_module(300, 90, 0, (int[2]){SIDE, SIDE}, 8, 6),
                                  upright_module(250, -90, 0, (int[2]){1, 1}, 200, 200)};
    return scanner_of(modules, 2);
}

/* Attenuation factor of the line from the centre of crystal `a` through the point: the row with mu divided by the row
 * without. In exact mode the centroid of the overlap is the face's centre, too. */
static void factors(lr_mode mode, const lr_image *mu, int mu_steps, const double point[3], double out[NUM_CRYSTALS])
{
    const double points[1][3] = {{point[0], point[1], point[2]}};
    double *rows[2];
    for (int with = 0; with < 2; with++) {
        struct setup setup = setup_of(
            funnel(), &(struct setup_options){.mode = mode, .rays = 1, .mu = with ? mu : NULL, .mu_steps = mu_steps});
        rows[with] = point_matrix(&setup, points, 1);
        assert_int_equal(setup.lors->count, NUM_CRYSTALS);
    }
    for (int a = 0; a < NUM_CRYSTALS; a++) {
        assert_true(rows[0][a] > 0);
        out[a] = rows[1][a] / rows[0][a];
    }
}

/* The two hits of the line from the centre of crystal `a` through the point. */
static void find_line(int a, const double point[3], double y1[3], double y2[3])
{
    lr_scanner *scanner = funnel();
    const lr_module *module = &scanner->modules[0];
    const int p = a % module->crystals[0], q = a / module->crystals[0];
    for (int k = 0; k < 3; k++) {
        y1[k] = module->centre_mm[k] + (p - 0.5 * (module->crystals[0] - 1)) * module->pitch_mm[0] * module->u[k] +
                (q - 0.5 * (module->crystals[1] - 1)) * module->pitch_mm[1] * module->v[k];
    }
    lr_scanner_destroy(scanner);
    const double t = (point[1] + 250) / (y1[1] - point[1]);
    for (int k = 0; k < 3; k++) y2[k] = point[k] - t * (y1[k] - point[k]);
}

static lr_image *box(const int size[3], const double voxel[3], double mu)
{
    const lr_grid grid = lr_grid_centred(size, voxel);
    return kept_image(&grid, (float)mu);
}

/* At the faces, the interpolated box falls to zero linearly over one voxel. For a line through two opposite faces this
 * leaves the same integral as a sharp box. The integrand is piecewise linear with four kinks of slope mu / voxel, so
 * midpoints of width h have an error of at most 4 (h^2 / 8) mu / voxel. */
static void test_constant_box(void **state)
{
    static const double points[3][3] = {{0, 0, 0}, {10, 20, -6}, {-7, -30, 11}};
    const double voxel[3] = {10, 4, 10}, mu = 0.0096f;
    lr_image *image = box((int[3]){20, 50, 20}, voxel, mu);
    const double extent = 50 * voxel[1];
    for (int trial = 0; trial < 6; trial++) {
        const double *point = points[trial / 2];
        const int num_steps = 137 + 500 * (trial / 2);
        double found[NUM_CRYSTALS];
        factors(trial % 2 ? LR_MODE_EXACT : LR_MODE_SAMPLED, image, num_steps, point, found);
        for (int a = 0; a < NUM_CRYSTALS; a++) {
            double y1[3], y2[3], length2 = 0;
            find_line(a, point, y1, y2);
            for (int k = 0; k < 3; k++) length2 += (y2[k] - y1[k]) * (y2[k] - y1[k]);
            const double slant = sqrt(length2) / fabs(y2[1] - y1[1]), h = sqrt(length2) / num_steps;
            const double bound = 4 * h * h / 8 * mu / (voxel[1] * slant);
            assert_true(fabs(-log(found[a]) - mu * extent * slant) <= bound + 1e-12);
        }
    }
}

static double value_at(const lr_image *mu, int64_t x, int64_t y, int64_t z)
{
    const int *size = mu->grid.size;
    const bool inside = x >= 0 && y >= 0 && z >= 0 && x < size[0] && y < size[1] && z < size[2];
    return inside ? (double)mu->values[x + size[0] * (y + size[1] * z)] : 0;
}

static double mix(double a, double b, double t)
{
    return a + t * (b - a);
}

static double mu_at(const lr_image *mu, const double point[3])
{
    double t[3];
    int64_t n[3];
    for (int k = 0; k < 3; k++) {
        const double at = (point[k] - mu->grid.origin_mm[k]) / mu->grid.voxel_mm[k];
        n[k] = (int64_t)floor(at);
        t[k] = at - floor(at);
    }
    double planes[2];
    for (int c = 0; c < 2; c++) {
        double edges[2];
        for (int b = 0; b < 2; b++)
            edges[b] = mix(value_at(mu, n[0], n[1] + b, n[2] + c), value_at(mu, n[0] + 1, n[1] + b, n[2] + c), t[0]);
        planes[c] = mix(edges[0], edges[1], t[1]);
    }
    return mix(planes[0], planes[1], t[2]);
}

static double written_out(const lr_image *mu, int num_steps, const double y1[3], const double y2[3])
{
    double sum = 0, length2 = 0;
    for (int n = 0; n < num_steps; n++) {
        double point[3];
        for (int k = 0; k < 3; k++) point[k] = y1[k] + (n + 0.5) / num_steps * (y2[k] - y1[k]);
        sum += mu_at(mu, point);
    }
    for (int k = 0; k < 3; k++) length2 += (y2[k] - y1[k]) * (y2[k] - y1[k]);
    return exp(-sqrt(length2) / num_steps * sum);
}

/* There are few steps, so that each sample's place matters; 1e-11 is rounding. */
static void test_any_image(void **state)
{
    uint64_t seed = test_seed();
    lr_image *image = box((int[3]){7, 9, 5}, (double[3]){11, 13, 17}, 0);
    image->grid.origin_mm[0] += 9;
    image->grid.origin_mm[1] -= 31;
    for (int64_t n = 0; n < lr_grid_num_voxels(&image->grid); n++)
        image->values[n] = (float)(0.02 * test_random(&seed));
    for (int trial = 0; trial < 12; trial++) {
        const double point[3] = {20 * test_random(&seed) - 10, 60 * test_random(&seed) - 40,
                                 20 * test_random(&seed) - 10};
        const int num_steps = trial == 0 ? 1 : 3 + 11 * trial;
        double found[NUM_CRYSTALS];
        factors(trial % 2 ? LR_MODE_EXACT : LR_MODE_SAMPLED, image, num_steps, point, found);
        for (int a = 0; a < NUM_CRYSTALS; a++) {
            double y1[3], y2[3];
            find_line(a, point, y1, y2);
            assert_close(found[a], written_out(image, num_steps, y1, y2), 1e-11);
        }
    }
}

/* No line of the scanner meets this image. */
static void test_image_elsewhere(void **state)
{
    lr_image *image = box((int[3]){3, 3, 3}, (double[3]){10, 10, 10}, 1);
    image->grid.origin_mm[2] = 500;
    double found[NUM_CRYSTALS];
    factors(LR_MODE_SAMPLED, image, 50, (double[3]){1, 2, 3}, found);
    for (int a = 0; a < NUM_CRYSTALS; a++) assert_true(found[a] == 1);
}

test_main("absorption", CASES(test_constant_box, test_any_image, test_image_elsewhere))
