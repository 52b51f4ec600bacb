/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The list of one row's matrix elements. */
#include "cases.h"

#include "model/lors/elements.h"

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
    assert_true(elements.count <= count && elements.count <= num_lors);
    assert_true(fabs(total - merged) <= 1e-12 * total);
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
    assert_ok(lr_elements_merge(&elements, 10, NULL));
    assert_int_equal(elements.count, 2);
    assert_true(elements.list[0].lor == 2 && elements.list[0].value == 3.0);
    assert_true(elements.list[1].lor == 9 && elements.list[1].value == 0.0);
    assert_int_equal(lr_elements_find(&elements, 0), 0);
    assert_int_equal(lr_elements_find(&elements, 2), 0);
    assert_int_equal(lr_elements_find(&elements, 3), 1);
    assert_int_equal(lr_elements_find(&elements, 10), 2);
    lr_elements_finish(&elements);
}

static void test_assign_scales_and_leaves_out_zeros(void **state)
{
    struct lr_elements from = {0}, to = {0};
    assert_ok(lr_elements_add(&from, 3, 2.0, NULL));
    assert_ok(lr_elements_add(&from, 5, 0.0, NULL));
    assert_ok(lr_elements_add(&from, 7, 4.0, NULL));
    assert_ok(lr_elements_assign(&to, &from, 0.5, NULL));
    assert_int_equal(to.count, 2);
    assert_true(to.list[0].lor == 3 && to.list[0].value == 1.0);
    assert_true(to.list[1].lor == 7 && to.list[1].value == 2.0);
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
    const lr_row none = {0};
    assert_ok(lr_owned_row_copy(&copy, &none, NULL));
    assert_int_equal(copy.count, 0);
    lr_owned_row_finish(&copy);
}

test_main("unit: elements", cmocka_unit_test(test_merge_sorts_and_keeps_the_sum),
          cmocka_unit_test(test_repeats_are_added_in_the_order_they_came),
          cmocka_unit_test(test_owned_rows_grow_copy_and_deliver),
          cmocka_unit_test(test_assign_scales_and_leaves_out_zeros))
