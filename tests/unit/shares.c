/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Rows in parts: each row is in exactly one part, and if the scanner's matrix is known, all parts have about the same
 * number of elements. */
#include "cases.h"

#include <lr/forecast.h>

enum { MOST_PARTS = 12, STEP = 4 };

/* Checks all parts: none is empty, and together they are 0 .. num - 1. */
static void check_parts(const struct fixture *f, lr_rows_share share, int64_t num, int64_t parts)
{
    int64_t range[2], end = 0;
    share.parts = parts;
    for (share.number = 1; share.number <= parts; share.number++) {
        assert_ints(lr_rows_share_range(f->lors, &f->grid, &share, range), LR_OK, range[0], end);
        assert_true(range[1] > range[0]);
        end = range[1];
    }
    assert_int_equal(end, num);
}

static void test_every_row_once(void **state)
{
    for (int kind = 0; kind < FIXTURE_COUNT; kind++) {
        struct fixture f = kept_fixture((enum fixture_kind)kind);
        const int64_t num = lr_grid_num_voxels(&f.grid);
        const int64_t voxels[5] = {1, 2, 5, num - 3, num - 1}, lors[4] = {0, 3, 4, 9};
        const int32_t pair = 0;
        const lr_selection some = {.lors = lors, .num_lors = 4}, one = {.pairs = &pair, .num_pairs = 1};
        const lr_rows_share all = {.work.choice.end = num}, range = {.work.choice = {.begin = 7, .end = 23}};
        const lr_rows_share list = {.work.choice = {.voxels = voxels, .num_voxels = 5}};
        const lr_rows_share pairs = {.work.by_lor = true};
        const lr_rows_share of_list = {.work = {.choice.part = &some, .by_lor = true}};
        const lr_rows_share of_pair = {.work = {.choice.part = &one, .by_lor = true}};
        for (int64_t parts = 1; parts <= MOST_PARTS; parts += STEP) {
            check_parts(&f, all, num, parts);
            check_parts(&f, range, 16, parts);
        }
        check_parts(&f, range, 16, 16);
        check_parts(&f, list, 5, 5);
        check_parts(&f, pairs, f.lors->num_pairs, f.lors->num_pairs);
        check_parts(&f, of_list, 4, 3);
        check_parts(&f, of_pair, 1, 1);
    }
}

static lr_status count_elements(void *user, const lr_row *row)
{
    int64_t *counts = user;
    counts[row->row] = row->count;
    return LR_OK;
}

/* The matrix itself gives the cost of rows. A ring sees most at its centre, and nothing far beyond its ends; parts with
 * equal numbers of rows would have very different costs. */
static void test_balance(void **state)
{
    struct fixture f = kept_fixture(FIXTURE_RING);
    f.grid = lr_grid_centred((int[3]){9, 9, 24}, (double[3]){1.0, 1.0, 1.2});
    lr_operator_params params = fixture_params(&f, "native", NULL);
    params.grid = &f.grid;
    lr_operator *op = keep(fixture_operator(&params));
    const int64_t num = lr_grid_num_voxels(&f.grid), parts = 4;
    int64_t *counts = kept(num, sizeof(*counts)), total = 0, largest = 0, equal = 0;
    const lr_row_choice rows = {.end = num};
    assert_ok(lr_operator_rows_part(op, &rows, &(lr_row_sink){count_elements, counts}));
    for (int64_t row = 0; row < num; row++) {
        total += counts[row];
        equal += row >= num / parts && row < 2 * num / parts ? counts[row] : 0;
    }
    lr_rows_share share = {.work.choice.end = num, .parts = parts};
    for (share.number = 1; share.number <= parts; share.number++) {
        int64_t range[2], sum = 0;
        assert_ok(lr_rows_share_range(f.lors, &f.grid, &share, range));
        for (int64_t row = range[0]; row < range[1]; row++) sum += counts[row];
        largest = sum > largest ? sum : largest;
    }
    print_message("largest part %.3f of its share, a part of equal rows %.3f\n",
                  (double)largest * (double)parts / (double)total, (double)equal * (double)parts / (double)total);
    assert_true((double)largest * (double)parts < 1.1 * (double)total);
}

static void test_refusals(void **state)
{
    struct test_log log = TEST_LOG(log);
    int64_t range[2];
    struct fixture f = kept_fixture(FIXTURE_OPPOSED);
    lr_rows_share share = {.work.choice.end = 3, .number = 1, .parts = 4, .log = &log.log};
    assert_fails(lr_rows_share_range(f.lors, &f.grid, &share, range), LR_USAGE, &log,
                 "3 rows cannot be cut into 4 parts");
    share.number = 5;
    assert_fails(lr_rows_share_range(f.lors, &f.grid, &share, range), LR_USAGE, &log, "part 5 of 4 makes no sense");
    share = (lr_rows_share){.work.by_lor = true, .number = 1, .parts = 2, .log = &log.log};
    assert_fails(lr_rows_share_range(f.lors, &f.grid, &share, range), LR_USAGE, &log, "1 module pairs cannot be cut");
}

test_main("unit: shares", CASE(test_every_row_once), CASE(test_balance), CASE(test_refusals))
