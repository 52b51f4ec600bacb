/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Modules of any tilt and size: exact elements compared with sampled ones, both compared with counted lines, and a
 * module seen along its own plane, compared with a closed form. */
#include "analytic.h"

enum { NUM_TILTED = 8 };

/* Eight modules around the origin, each with its own size, tilted by up to some 50 degrees. */
static lr_scanner *tilted(uint64_t *seed)
{
    lr_module modules[NUM_TILTED];
    for (int m = 0; m < NUM_TILTED; m++) {
        const double angle = (m + 0.15 * test_random(seed)) * 2 * TEST_PI / NUM_TILTED;
        const double radius = 85 + 25 * test_random(seed), z = 30 * (test_random(seed) - 0.5);
        const double lean = 2.4 * (test_random(seed) - 0.5), nod = 2.4 * (test_random(seed) - 0.5);
        const double out[3] = {cos(angle), sin(angle), 0}, side[3] = {-sin(angle), cos(angle), 0};
        double u[3], v[3];
        for (int k = 0; k < 3; k++) u[k] = side[k] + lean * out[k];
        /* v = a side + b out + z, orthogonal to u. */
        for (int k = 0; k < 3; k++) v[k] = nod * (out[k] - lean * side[k]) + (k == 2);
        const int size[2] = {3 + (int)(3 * test_random(seed)), 3 + (int)(3 * test_random(seed))};
        const double pitch = 7 + 2 * test_random(seed);
        modules[m] = make_module((double[3]){radius * out[0], radius * out[1], z}, u, v, size, pitch,
                                 pitch * (0.8 + 0.2 * test_random(seed)));
        modules[m].pitch_mm[1] *= 1.3;
    }
    return scanner_of(modules, NUM_TILTED);
}

/* Points anywhere between the modules, so that planes of many modules cut the view. */
static void test_tilted(void **state)
{
    enum { NUM_POINTS = 30, RAYS = 32 };
    uint64_t seed = test_seed();
    for (int trial = 0; trial < 6; trial++) {
        double points[NUM_POINTS][3];
        for (int n = 0; n < NUM_POINTS; n++)
            for (int k = 0; k < 3; k++) points[n][k] = (k == 2 ? 60 : 100) * (test_random(&seed) - 0.5);
        const double error = mode_distance(tilted, seed, (const double(*)[3])points, NUM_POINTS, RAYS);
        print_message("scanner %d: %.5f\n", trial, error);
        assert_true(error > 0 && error <= 0.8 / RAYS);
        seed += 1000003;
    }
}

static double distance2(const double a[3], const double b[3])
{
    return pow(a[0] - b[0], 2) + pow(a[1] - b[1], 2) + pow(a[2] - b[2], 2);
}

/* Adds the module pairs that detect a line with one photon along `way`: counts[primary][other]. */
static void count_line(const lr_scanner *scanner, const double point[3], const double way[3], const double back[3],
                       int counts[NUM_TILTED][NUM_TILTED])
{
    for (int i = 0; i < NUM_TILTED; i++) {
        bool here = false, there = false, first_there = false;
        if (meet_module(&scanner->modules[i], point, way, &here) == INFINITY || !here) continue;
        double nearest = INFINITY;
        int other = -1;
        for (int j = 0; j < NUM_TILTED; j++) {
            if (j == i ||
                distance2(scanner->modules[j].centre_mm, point) > distance2(scanner->modules[i].centre_mm, point))
                continue;
            const double t = meet_module(&scanner->modules[j], point, back, &there);
            if (t < nearest) {
                nearest = t;
                other = j;
                first_there = there;
            }
        }
        if (other >= 0 && first_there) counts[i][other]++;
    }
}

/* Tolerance: five standard deviations, and as much again if few lines are expected. */
static void test_counted_lines(void **state)
{
    enum { NUM_POINTS = 8, NUM_LINES = 30000 };
    uint64_t seed = test_seed();
    int total = 0;
    for (int trial = 0; trial < 4; trial++) {
        struct setup setup = setup_of(tilted(&seed), &(struct setup_options){.mode = LR_MODE_EXACT});
        int counts[NUM_TILTED][NUM_TILTED] = {{0}};
        double points[NUM_POINTS][3], expected[NUM_TILTED][NUM_TILTED] = {{0}};
        for (int n = 0; n < NUM_POINTS; n++) {
            for (int k = 0; k < 3; k++) points[n][k] = (k == 2 ? 30 : 60) * (test_random(&seed) - 0.5);
            for (int line = 0; line < NUM_LINES; line++) {
                double ways[2][3];
                random_ways(&seed, ways);
                count_line(setup.scanner, points[n], ways[0], ways[1], counts);
                count_line(setup.scanner, points[n], ways[1], ways[0], counts);
            }
        }
        double *rows = point_matrix(&setup, (const double(*)[3])points, NUM_POINTS);
        for (int i = 0; i < NUM_TILTED; i++) {
            for (int j = i + 1; j < NUM_TILTED; j++) {
                for (int n = 0; n < NUM_POINTS; n++)
                    expected[i][j] += NUM_LINES * pair_sum(&setup, rows + n * setup.lors->count, i, j);
                const int count = counts[i][j] + counts[j][i];
                total += count;
                if (fabs(count - expected[i][j]) > 5 * sqrt(expected[i][j] + 1))
                    fail_msg("modules %d and %d: %d lines counted, %.2f expected", i, j, count, expected[i][j]);
            }
        }
    }
    print_message("%d lines detected\n", total);
    assert_true(total > 1000);
}

/* The eye is 1 mm above the plane of the secondary, which extends over x = -5 ... -55, z = -10 ... 10 and covers a
 * wedge of the primary's view. The primary's faces extend behind that plane. The secondary's column from x =
 * -b to x = -a appears on the primary's plane x = 100 from y = 100 / b to 100 / a, and for y >= 2 over all of the
 * primary's z = -20 ... 20. */
static void test_along_the_plane(void **state)
{
    const double origin[1][3] = {{0, 0, 0}};
    for (int size = 1; size <= 3; size++) {
        const lr_module modules[2] = {make_module((double[3]){100, 0, 0}, (double[3]){0, 1, 0}, (double[3]){0, 0, 1},
                                                  (int[2]){size, size}, 40.0 / size, 40.0 / size),
                                      level_module(-30, -1, 0, (int[2]){10, 4}, 5, 5)};
        struct setup setup = exact_setup(modules, 2);
        double *row = point_matrix(&setup, origin, 1);
        for (int r = 1; r < 10; r++) { /* r counts from x = -55 */
            double sum = 0;
            for (int a = 0; a < size * size; a++)
                for (int s = 0; s < 4; s++) sum += row[lr_lors_number(setup.lors, a, size * size + 10 * s + r)];
            const double far = 55 - 5 * r, near = far - 5;
            const double omega = rectangle_angle(100 / far, fmin(20, 100 / near), -20, 20, 100);
            assert_close(2 * TEST_PI * sum, omega, 1e-11);
        }
    }
}

test_main("tilted", CASE(test_tilted), CASE(test_counted_lines), CASE(test_along_the_plane))
