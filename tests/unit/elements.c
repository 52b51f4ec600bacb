/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Rows of a matrix: lists of elements, errors of rows against sums over a dense copy, and the roles of modules. */
#include "cases.h"

#include "model/lors/rows.h"

static void check_merge(int64_t count, int64_t num_lors, uint64_t *state)
{
    struct lr_elements elements = {0};
    double total = 0, merged = 0;
    for (int64_t k = 0; k < count; k++) {
        const double value = test_random(state);
        const int64_t lor = (int64_t)((double)num_lors * test_random(state));
        assert_ok(lr_elements_add(&elements, lor, value, NULL));
        total += value;
    }
    assert_ok(lr_elements_merge(&elements, num_lors, NULL));
    for (int64_t k = 0; k < elements.count; k++) {
        assert_true(elements.list[k].lor >= 0 && elements.list[k].lor < num_lors);
        assert_true(k == 0 || elements.list[k].lor > elements.list[k - 1].lor);
        merged += elements.list[k].value;
    }
    assert_all(elements.count <= count && elements.count <= num_lors, fabs(total - merged) <= 1e-12 * total);
    lr_elements_finish(&elements);
}

static void test_merge_sorts_and_keeps_the_sum(void **state)
{
    static const int64_t sizes[] = {1, 2, 2047, 2048, 2049, 5000, 4194304, 4194305, 18000000, INT64_C(5000000000)};
    uint64_t random = test_seed();
    for (int k = 0; k < 10; k++) {
        check_merge(0, sizes[k], &random);
        check_merge(1, sizes[k], &random);
        check_merge(3000, sizes[k], &random);
    }
}

static void test_repeats_are_added_in_the_order_they_came(void **state)
{
    struct lr_elements elements = {0};
    static const int64_t lors[] = {9, 9, 2, 9};
    static const double values[] = {1e16, 1.0, 3.0, -1e16};
    for (int k = 0; k < 4; k++) assert_ok(lr_elements_add(&elements, lors[k], values[k], NULL));
    assert_ints(lr_elements_merge(&elements, 10, NULL), LR_OK, elements.count, 2);
    assert_true(elements.list[0].lor == 2 && elements.list[0].value == 3.0);
    assert_true(elements.list[1].lor == 9 && elements.list[1].value == 0.0);
    assert_ints(lr_elements_find(&elements, 0), 0, lr_elements_find(&elements, 2), 0);
    assert_ints(lr_elements_find(&elements, 3), 1, lr_elements_find(&elements, 10), 2);
    lr_elements_finish(&elements);
}

static void test_assign_scales_and_leaves_out_zeros(void **state)
{
    struct lr_elements from = {0}, to = {0};
    assert_ok(lr_elements_add(&from, 3, 2.0, NULL), lr_elements_add(&from, 5, 0.0, NULL));
    assert_ok(lr_elements_add(&from, 7, 4.0, NULL), lr_elements_assign(&to, &from, 0.5, NULL));
    assert_int_equal(to.count, 2);
    assert_all(to.list[0].lor == 3 && to.list[0].value == 1.0, to.list[1].lor == 7 && to.list[1].value == 2.0);
    lr_elements_finish(&from);
    lr_elements_finish(&to);
}

static void test_owned_rows_grow_copy_and_deliver(void **state)
{
    struct lr_owned_row row = {0}, copy = {0};
    for (int64_t k = 0; k < 1000; k++) {
        assert_ok(lr_owned_row_reserve(&row, row.count + 1, NULL));
        lr_owned_row_put(&row, 3 * k, 0.5 * (double)k);
    }
    const lr_row view = lr_owned_row_view(&row, 17);
    assert_true(view.row == 17 && view.count == 1000);
    assert_ok(lr_owned_row_copy(&copy, &view, NULL));
    lr_owned_row_finish(&row);
    assert_true(row.lor == NULL && row.probability == NULL && row.count == 0 && row.room == 0);
    for (int64_t k = 0; k < 1000; k++) assert_true(copy.lor[k] == 3 * k && copy.probability[k] == 0.5 * (double)k);
    assert_ints(lr_owned_row_copy(&copy, &(lr_row){0}, NULL), LR_OK, copy.count, 0);
    lr_owned_row_finish(&copy);
}

/* --- errors, and roles --- */

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
        int64_t lor[2][num_lors], num_missed = 0, num_unexpected = 0;
        double probability[2][num_lors], a[num_lors], b[num_lors];
        const lr_row row = make_row(&seed, lor[0], probability[0], a);
        const lr_row exact = make_row(&seed, lor[1], probability[1], b);
        double sum[2] = {0}, norm[2] = {0}, largest = 0, off = 0, missed = 0;
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
        assert_ints(error.num_elements, exact.count, error.num_missed, num_missed);
        assert_int_equal(error.num_unexpected, num_unexpected);
        assert_close(error.sum, sum[1], 1e-14);
        assert_close(error.largest, largest, 0);
        assert_close(error.relative_l2, sqrt(norm[0] / norm[1]), 1e-13);
        assert_true(fabs(error.sum_error - (sum[0] / sum[1] - 1)) < 1e-13);
        assert_close(error.largest_error, off / largest, 1e-13);
        assert_close(error.missed_weight, missed / sum[1], 1e-13);
    }
}

/* A row has no error relative to itself; an empty row misses everything; an empty reference has no ratios. */
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

/* Two modules at y = +-(100 + 5 mm of detection depth): the farther one is the primary. In a tie it is the module with
 * the lower index; a difference of 1e-9 of the squared distance is still a tie. */
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
    lr_lors *lors = lors_from(
        lr_scanner_create(&(lr_scanner_params){.modules = modules, .num_modules = 2, .detection_depth_mm = 5}));
    const double y_mm[] = {-1, -1e-3, -1e-9, 0, 1e-9, 1e-3, 1};
    const int primary[] = {0, 0, 0, 0, 0, 1, 1};
    for (int n = 0; n < 7; n++) {
        const double point_mm[3] = {2, y_mm[n], -3};
        for (int64_t lor = 0; lor < lors->count; lor++)
            assert_int_equal(lr_lors_primary(lors, lor, point_mm), primary[n]);
    }
}

test_main("unit: elements", CASE(test_merge_sorts_and_keeps_the_sum),
          CASE(test_repeats_are_added_in_the_order_they_came), CASE(test_owned_rows_grow_copy_and_deliver),
          CASE(test_assign_scales_and_leaves_out_zeros), CASE(test_figures), CASE(test_ends), CASE(test_primary))
