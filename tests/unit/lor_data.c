/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Values per LOR: binning and expanding. */
#include "scanners.h"

/* Two opposed modules of 2 x 2 crystals: 16 LORs. */
static lr_lors *sixteen_lors(lr_scanner **scanner)
{
    const lr_module modules[2] = {tilted_module(100, 0, 0, 0, 0, 2, 2), tilted_module(-100, 0, 0, 180, 0, 2, 2)};
    *scanner = lr_scanner_create(&(lr_scanner_params){.name = "sixteen", .modules = modules, .num_modules = 2});
    return lr_lors_create(*scanner, NULL);
}

static void events_are_counted(void **state)
{
    const int64_t events[] = {7, 3, -1, 7, 15, 0, 7, -5, 3};
    lr_lor_data *data = keep(lr_lor_data_bin(events, 9, NULL));
    const int64_t index[] = {0, 3, 7, 15};
    const float counts[] = {1, 2, 3, 1};
    assert_int_equal(data->count, 4);
    assert_memory_equal(data->index, index, sizeof(index));
    assert_memory_equal(data->values, counts, sizeof(counts));
}

/* The sum of counts is the number of events that name a LOR, and indices rise. */
static void many_events_are_counted(void **state)
{
    enum { EVENTS = 20000, LORS = 700 };
    uint64_t random = test_seed();
    int64_t *events = kept(EVENTS, sizeof(*events));
    int expected[LORS] = {0};
    int named = 0;
    for (int k = 0; k < EVENTS; k++) {
        const double draw = test_random(&random);
        events[k] = (int64_t)(draw * draw * (LORS + 50)) - 50;
        if (events[k] >= 0) {
            expected[events[k]]++;
            named++;
        }
    }
    lr_lor_data *data = keep(lr_lor_data_bin(events, EVENTS, NULL));
    double sum = 0;
    for (int64_t k = 0; k < data->count; k++) {
        assert_true(k == 0 || data->index[k] > data->index[k - 1]);
        assert_true(data->values[k] == (float)expected[data->index[k]]);
        sum += data->values[k];
    }
    assert_true(sum == named);
}

static void no_events_is_sparse_nothing(void **state)
{
    lr_scanner *scanner;
    lr_lors *lors = keep(sixteen_lors(&scanner));
    lr_lor_data *data = keep(lr_lor_data_bin(NULL, 0, NULL));
    assert_int_equal(data->count, 0);
    assert_non_null(data->index);
    lr_lor_data *dense = keep(lr_lor_data_expand(data, lors, NULL));
    assert_int_equal(dense->count, 16);
    for (int k = 0; k < 16; k++) assert_true(dense->values[k] == 0.0f);
    lr_lor_data_destroy(NULL);
    lr_scanner_destroy(scanner);
}

static void expanding_keeps_values(void **state)
{
    lr_scanner *scanner;
    lr_lors *lors = keep(sixteen_lors(&scanner));
    const int64_t events[] = {15, 15, 2};
    lr_lor_data *sparse = keep(lr_lor_data_bin(events, 3, NULL));
    lr_lor_data *dense = keep(lr_lor_data_expand(sparse, lors, NULL));
    lr_lor_data *copy = keep(lr_lor_data_expand(dense, lors, NULL));
    assert_null(dense->index);
    for (int k = 0; k < 16; k++) {
        const float expected = k == 15 ? 2.0f : k == 2 ? 1.0f : 0.0f;
        assert_true(dense->values[k] == expected && copy->values[k] == expected);
    }
    lr_scanner_destroy(scanner);
}

static void data_of_another_scanner_is_refused(void **state)
{
    struct test_log log = TEST_LOG(log);
    lr_scanner *scanner;
    lr_lors *lors = keep(sixteen_lors(&scanner));
    const int64_t events[] = {2, 16};
    lr_lor_data *sparse = keep(lr_lor_data_bin(events, 2, NULL));
    assert_null(lr_lor_data_expand(sparse, lors, &log.log));
    assert_error(&log, LR_USAGE, "sixteen has 16 LORs");
    lr_lor_data *dense = keep(lr_lor_data_create(lors, NULL));
    dense->count = 15;
    assert_null(lr_lor_data_expand(dense, lors, &log.log));
    lr_scanner_destroy(scanner);
}

test_main("unit: lor data", cmocka_unit_test(events_are_counted), cmocka_unit_test(many_events_are_counted),
          cmocka_unit_test(no_events_is_sparse_nothing), cmocka_unit_test(expanding_keeps_values),
          cmocka_unit_test(data_of_another_scanner_is_refused))
