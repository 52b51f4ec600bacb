/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Pairs of modules distributed to ranks: each pair goes to one rank, and the work is even, also within each subset.
 * The LORs of a part of the pairs are tested, too. */
#include "cases.h"

#include <lr/comm.h>
#include <stdlib.h>

enum { SUBSETS = 4 };

static void test_even(void **state)
{
    lr_lors *lors = lors_from(lr_scanner_read("penn-labr3", NULL));
    int32_t *subset_of = kept(lors->num_pairs, sizeof(*subset_of));
    int32_t *rank_of = kept(lors->num_pairs, sizeof(*rank_of));
    assert_ok(lr_osem_subsets(lors, SUBSETS, subset_of, NULL));
    for (int ranks = 1; ranks <= 7; ranks += 2) {
        const lr_partition_params params = {.lors = lors, .ranks = ranks, .subsets = SUBSETS, .subset_of = subset_of};
        double load[SUBSETS][7] = {{0}}, all[SUBSETS] = {0};
        assert_ok(lr_partition(&params, rank_of));
        for (int64_t pair = 0; pair < lors->num_pairs; pair++) {
            assert_in_range(rank_of[pair], 0, ranks - 1);
            const double cost = (double)(lors->offsets[pair + 1] - lors->offsets[pair]);
            load[subset_of[pair]][rank_of[pair]] += cost;
            all[subset_of[pair]] += cost;
        }
        for (int k = 0; k < SUBSETS; k++) {
            for (int r = 0; r < ranks; r++) {
                /* Ranks get pieces of an eighth of a share, or of one pair if that is more. */
                assert_all(load[k][r] * ranks / all[k] > 0.8, load[k][r] * ranks / all[k] < 1.2);
            }
        }
    }
}

static void test_too_many(void **state)
{
    lr_lors *lors = lors_from(lr_scanner_read("two-opposed-modules", NULL));
    int32_t subset_of[1] = {0}, rank_of[1] = {0};
    const lr_partition_params params = {.lors = lors, .ranks = 2, .subsets = 1, .subset_of = subset_of};
    assert_int_equal(lr_partition(&params, rank_of), LR_USAGE);
}

/* LORs of every second pair only: they have the same crystals and coincidences as in the whole, and the same data. */
static void test_part(void **state)
{
    lr_lors *all = lors_from(lr_scanner_read("ge-explore-vista-dr", NULL));
    const int64_t count = all->num_pairs / 2;
    int32_t *pairs = kept(count, sizeof(*pairs));
    for (int64_t k = 0; k < count; k++) pairs[k] = (int32_t)(2 * k + 1);
    lr_lors *part = keep(lr_lors_create_part(all, &(lr_selection){.pairs = pairs, .num_pairs = count}, NULL));
    assert_int_equal(part->num_pairs, count);
    lr_lor_data *data = keep(lr_lor_data_create(all, NULL));
    for (int64_t k = 0; k < all->count; k++) data->values[k] = (float)(k % 1009);
    lr_lor_data *taken = keep(lr_lor_data_take(data, all, part, NULL));
    for (int64_t k = 0; k < part->count; k += 997) {
        int32_t crystals[2];
        lr_lors_crystals(part, k, crystals);
        const int64_t number = lr_lors_number(all, crystals[0], crystals[1]);
        assert_true(number >= 0);
        assert_int_equal(lr_lors_number(part, crystals[0], crystals[1]), k);
        assert_int_equal(lr_lors_in_coincidence(part, k), lr_lors_in_coincidence(all, number));
        assert_true(taken->values[k] == data->values[number]);
    }
    /* The same test with sparse data: every 101st LOR. */
    int64_t *events = kept(all->count / 101 + 1, sizeof(*events)), num_events = 0;
    for (int64_t k = 0; k < all->count; k += 101) events[num_events++] = k;
    lr_lor_data *sparse = keep(lr_lor_data_bin(events, num_events, NULL));
    lr_lor_data *sparse_taken = keep(lr_lor_data_take(sparse, all, part, NULL));
    int64_t wanted = 0;
    for (int64_t k = 0; k < sparse_taken->count; k++) {
        int32_t crystals[2];
        lr_lors_crystals(part, sparse_taken->index[k], crystals);
        assert_int_equal(lr_lors_number(all, crystals[0], crystals[1]) % 101, 0);
        assert_true(k == 0 || sparse_taken->index[k] > sparse_taken->index[k - 1]);
    }
    for (int64_t k = 0; k < count; k++) {
        const int64_t begin = all->offsets[pairs[k]], end = all->offsets[pairs[k] + 1];
        wanted += (end + 100) / 101 - (begin + 100) / 101;
    }
    assert_int_equal(sparse_taken->count, wanted);
}

test_main("partition", CASE(test_even), CASE(test_too_many), CASE(test_part))
