/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Sums per LOR of more events than are held in memory at once. */
#include "io/files.h"

#include "io/lor_data/lor_data.h"

/* There are more events than the buffer of unsorted events holds: on few LORs, so that sums repeat, and on so many
 * that the sums are larger than the buffer. */
static void expect_sums(int64_t num_lors, int64_t num_events, bool whole)
{
    struct lr_lor_sums sums = {0};
    uint64_t seed = test_seed();
    float *dense = kept((size_t)num_lors, sizeof(*dense));
    for (int64_t k = 0; k < num_events; k++) {
        const int64_t lor = (int64_t)(test_random(&seed) * (double)num_lors);
        const float weight = whole || k < 100 ? 1 : (float)(int)(8 * test_random(&seed)) * 0.25f;
        dense[lor] += weight;
        assert_int_equal(lr_lor_sums_add(&sums, lor, weight, NULL), LR_OK);
    }
    lr_lor_data *data = keep(lr_lor_sums_finish(&sums, NULL));
    int64_t at = 0;
    for (int64_t lor = 0; lor < num_lors; lor++) {
        const bool listed = at < data->count && data->index[at] == lor;
        assert_true((listed ? data->values[at] : 0) == dense[lor]);
        at += listed;
    }
    assert_int_equal(at, data->count);
}

static void sums_are_those_of_all_events(void **state)
{
    expect_sums(1000, 0, true);
    expect_sums(1000, 100000, true);
    expect_sums(1000, 100000, false);
    expect_sums(5000, 11000000, true);
    expect_sums(6000000, 10000000, false);
}

group_main("io lor sums", NULL, destroy_kept, cmocka_unit_test(sums_are_those_of_all_events))
