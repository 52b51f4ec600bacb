/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Errors of rows against sums over a dense copy, and the roles of modules. */
#include "cases.h"

enum { num_lors = 40 };

/* A random row, about half full; dense gets the same values. */
static lr_row make_row(uint64_t *seed, int64_t *lor, double *probability, double *dense)
{
    lr_row row = {.lor = lor, .probability = probability};
    for (int64_t n = 0; n < num_lors; n++) {
        const bool there = test_random(seed) < 0.5;
        dense[n] = there ? 0.01 + test_random(seed) : 0.0;
        if (there) {
            lor[row.count] = n;
            probability[row.count++] = dense[n];
        }
    }
    return row;
}

static void test_figures(void **state)
{
    uint64_t seed = test_seed();
    for (int round = 0; round < 50; round++) {
        int64_t lor[2][num_lors];
        double probability[2][num_lors], a[num_lors], b[num_lors];
        const lr_row row = make_row(&seed, lor[0], probability[0], a);
        const lr_row exact = make_row(&seed, lor[1], probability[1], b);
        double sum[2] = {0}, norm[2] = {0}, largest = 0, off = 0, missed = 0;
        int64_t num_missed = 0, num_unexpected = 0;
        for (int n = 0; n < num_lors; n++) {
            sum[0] += a[n];
            sum[1] += b[n];
            norm[0] += (a[n] - b[n]) * (a[n] - b[n]);
            norm[1] += b[n] * b[n];
            largest = fmax(largest, b[n]);
            off = fmax(off, fabs(a[n] - b[n]));
            num_missed += b[n] > 0 && a[n] == 0;
            num_unexpected += a[n] > 0 && b[n] == 0;
            missed += a[n] == 0 ? b[n] : 0;
        }
        const lr_row_error error = lr_row_compare(&row, &exact);
        assert_int_equal(error.num_elements, exact.count);
        assert_int_equal(error.num_missed, num_missed);
        assert_int_equal(error.num_unexpected, num_unexpected);
        assert_close(error.sum, sum[1], 1e-14);
        assert_close(error.largest, largest, 0);
        assert_close(error.relative_l2, sqrt(norm[0] / norm[1]), 1e-13);
        assert_true(fabs(error.sum_error - (sum[0] / sum[1] - 1)) < 1e-13);
        assert_close(error.largest_error, off / largest, 1e-13);
        assert_close(error.missed_weight, missed / sum[1], 1e-13);
    }
}

/* Against itself a row has no error; an empty one misses all; an empty reference has no ratios. */
static void test_ends(void **state)
{
    const int64_t lor[2] = {3, 8};
    const double probability[2] = {0.25, 0.5};
    const lr_row row = {.count = 2, .lor = lor, .probability = probability}, empty = {0};
    lr_row_error error = lr_row_compare(&row, &row);
    assert_true(error.relative_l2 == 0 && error.sum_error == 0 && error.largest_error == 0);
    assert_int_equal(error.num_missed + error.num_unexpected, 0);
    error = lr_row_compare(&empty, &row);
    assert_true(error.relative_l2 == 1 && error.sum_error == -1 && error.missed_weight == 1);
    assert_true(error.largest_error == 1 && error.num_missed == 2);
    error = lr_row_compare(&row, &empty);
    assert_int_equal(error.num_unexpected, 2);
    assert_true(!isfinite(error.relative_l2) && !isfinite(error.sum_error));
}

/* Two modules at y = +-(100 + 5 mm of detection depth): the farther one is the primary, on a tie
 * the lower, and 1e-9 of the squared distance is still a tie. */
static void test_primary(void **state)
{
    lr_module modules[2] = {{.centre_mm = {0, 100, 0},
                             .u = {1, 0, 0},
                             .v = {0, 0, 1},
                             .crystals = {2, 2},
                             .pitch_mm = {4, 4},
                             .face_mm = {4, 4},
                             .depth_mm = 10}};
    modules[1] = modules[0];
    modules[1].centre_mm[1] = -100;
    lr_scanner *scanner =
        lr_scanner_create(&(lr_scanner_params){.modules = modules, .num_modules = 2, .detection_depth_mm = 5});
    lr_lors *lors = keep(lr_lors_create(scanner, NULL));
    const double y_mm[] = {-1, -1e-3, -1e-9, 0, 1e-9, 1e-3, 1};
    const int primary[] = {0, 0, 0, 0, 0, 1, 1};
    for (int n = 0; n < 7; n++) {
        const double point_mm[3] = {2, y_mm[n], -3};
        for (int64_t lor = 0; lor < lors->count; lor++)
            assert_int_equal(lr_lors_primary(lors, lor, point_mm), primary[n]);
    }
    lr_scanner_destroy(scanner);
}

test_main("unit: compare", cmocka_unit_test(test_figures), cmocka_unit_test(test_ends), cmocka_unit_test(test_primary))
