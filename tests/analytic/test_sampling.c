/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The sampled mode converges to the exact mode with first order in 1 / R. The bounds come from an independent
 * computation with three pairs of modules of 9 x 9 crystals: relative L2 error of an element at most 0.8 / R, reduced
 * by a factor of 1.6 ... 2.6 if R is doubled, and errors of row sums at most 0.3 / R in the mean over at least 12
 * points. */
#include "analytic.h"

enum { NUM_POINTS = 48, MAX_RAYS = 32 };

struct configuration {
    const char *name;
    double face, angle_deg;
};

static const struct configuration configurations[] = {
    {"opposed, 4.0 mm faces", 4.0, 180}, {"opposed, no gaps", 4.3, 180}, {"150 degrees apart", 4.0, 150}};

/* Per-element L2 error relative to the exact matrix, and mean relative error of the row sums. */
static void compare(const double *sampled, const double *exact, int64_t num_lors, double *l2, double *sums)
{
    *sums = 0;
    for (int n = 0; n < NUM_POINTS; n++) {
        double sum_sampled = 0, sum_exact = 0;
        for (int64_t k = n * num_lors; k < (n + 1) * num_lors; k++) {
            sum_sampled += sampled[k];
            sum_exact += exact[k];
        }
        assert_true(sum_exact > 0);
        *sums += fabs(sum_sampled - sum_exact) / sum_exact / NUM_POINTS;
    }
    *l2 = l2_apart(sampled, exact, NUM_POINTS * num_lors);
}

static double *render(const struct configuration *configuration, const double (*points)[3],
                      const struct setup_options *options, int64_t *num_lors)
{
    const int size[2] = {9, 9};
    const lr_module modules[2] = {
        upright_module(465, 90, 0, size, 4.3, configuration->face),
        upright_module(465, 90 + configuration->angle_deg, 0, size, 4.3, configuration->face)};
    struct setup setup = setup_of(scanner_of(modules, 2), options);
    double *matrix = point_matrix(&setup, points, NUM_POINTS);
    *num_lors = setup.lors->count;
    return matrix;
}

static void test_law(void **state)
{
    const uint64_t first = test_seed();
    for (int k = 0; k < length_of(configurations); k++) {
        const struct configuration *configuration = &configurations[k];
        double points[NUM_POINTS][3], before = 0;
        uint64_t seed = first;
        int64_t num_lors;
        /* Points around the middle of the line between the modules' centres, from which most of both modules is
         * seen. */
        const double half = configuration->angle_deg / 2 * TEST_PI / 180;
        const double to_middle = 465 * cos(half), direction = TEST_PI / 2 + half;
        for (int n = 0; n < NUM_POINTS; n++) {
            const double along = 200 * (test_random(&seed) - 0.5), across = 20 * (test_random(&seed) - 0.5) + to_middle;
            points[n][0] = across * cos(direction) - along * sin(direction);
            points[n][1] = across * sin(direction) + along * cos(direction);
            points[n][2] = 20 * (test_random(&seed) - 0.5);
        }
        const double(*at)[3] = (const double(*)[3])points;
        double *exact = render(configuration, at, &(struct setup_options){.mode = LR_MODE_EXACT}, &num_lors);
        for (int rays = 1; rays <= MAX_RAYS; rays *= 2) {
            double *sampled = render(configuration, at, &(struct setup_options){.rays = rays}, &num_lors), l2, sums;
            compare(sampled, exact, num_lors, &l2, &sums);
            print_message("%s, R = %d: elements %.4f, sums %.4f\n", configuration->name, rays, l2, sums);
            assert_all(l2 <= 0.8 / rays, sums <= 0.3 / rays, rays == 1 || (before / l2 >= 1.6 && before / l2 <= 2.6));
            before = l2;
        }
    }
}

/* A line's weight is A cos / r^2. For one crystal that is seen whole this is too large, because the integrand varies
 * over the face: by 1e-5 ... 2e-5 for 4 mm at 465 mm, by 4.4e-3 for 4 mm at 30 mm. */
static void test_one_line(void **state)
{
    static const double cases[][3] = {{465, 5e-6, 3e-5}, {30, 4.3e-3, 4.5e-3}};
    for (int k = 0; k < 2; k++) {
        const double d = cases[k][0];
        const lr_module modules[2] = {upright_module(d, 90, 0, (int[2]){1, 1}, 4, 4),
                                      upright_module(d / 2, -90, 0, (int[2]){1, 1}, 50, 50)};
        struct setup setup = setup_of(scanner_of(modules, 2), &(struct setup_options){.rays = 1});
        const double omega = 4 * atan(16 / (2 * d * sqrt(4 * d * d + 32)));
        const double excess = point_sum(&setup, 0, 0, 0) * 2 * TEST_PI / omega - 1;
        assert_close(point_sum(&setup, 0, 0, 0), 16 / (d * d) / (2 * TEST_PI), 1e-14);
        assert_true(excess >= cases[k][1] && excess <= cases[k][2]);
    }
}

test_main("sampling", CASE(test_law), CASE(test_one_line))
