/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Each rank has the matrix of some pairs of modules only. Together these are the matrix of all pairs: element by
 * element, in projections and in sensitivities. Argument: the backend. */
#include "cases.h"

#include <lr/comm.h>

enum { RANKS = 3 };

static void check(enum fixture_kind kind)
{
    const struct fixture fixture = kept_fixture(kind);
    const lr_lors *all = fixture.lors;
    const int64_t num_voxels = lr_grid_num_voxels(&fixture.grid);
    int32_t *subset_of = kept(all->num_pairs, sizeof(*subset_of)), *rank_of = kept(all->num_pairs, sizeof(*rank_of));
    const lr_partition_params deal = {.lors = all, .ranks = RANKS, .subsets = 1, .subset_of = subset_of};
    assert_ok(lr_partition(&deal, rank_of));
    lr_operator_params params = fixture_params(&fixture, test_backend, NULL);
    params.rays = 3;
    lr_operator *whole = keep(lr_operator_create(&params));
    double *elements = kept_rows(whole, 0, num_voxels), *sum = kept_doubles(num_voxels);
    const double largest = largest_number(elements, num_voxels * all->count);
    float *image = kept_floats(num_voxels), *back = kept_floats(num_voxels), *some = kept_floats(num_voxels);
    float *values = kept_floats(all->count), *own = kept_floats(all->count);
    for (int64_t v = 0; v < num_voxels; v++) image[v] = (float)(1 + v % 7);
    assert_ok(array_forward(whole, image, values), array_back(whole, values, back));
    const double most = largest_number(values, all->count), most_back = largest_number(back, num_voxels);
    int64_t count = 0;
    for (int rank = 0; rank < RANKS; rank++) {
        int32_t *pairs = kept(all->num_pairs, sizeof(*pairs));
        lr_selection selection = {.pairs = pairs};
        for (int64_t pair = 0; pair < all->num_pairs; pair++)
            if (rank_of[pair] == rank) pairs[selection.num_pairs++] = (int32_t)pair;
        const lr_lors *part = keep(lr_lors_create_part(all, &selection, NULL));
        params.lors = part;
        lr_operator *op = keep(lr_operator_create(&params));
        const double *own_elements = kept_rows(op, 0, num_voxels);
        assert_ok(array_forward(op, image, own), array_back(op, own, some));
        for (int64_t k = 0; k < part->count; k++) {
            int32_t crystals[2];
            lr_lors_crystals(part, k, crystals);
            const int64_t number = lr_lors_number(all, crystals[0], crystals[1]);
            assert_true(number >= 0);
            /* Sums of floats are added in another order; compute promises 2e-6 of each value. */
            assert_true(fabs(own[k] - values[number]) <= 5e-6 * most);
            for (int64_t v = 0; v < num_voxels; v++)
                elements[v * all->count + number] -= own_elements[v * part->count + k];
        }
        for (int64_t v = 0; v < num_voxels; v++) sum[v] += some[v];
        count += part->count;
    }
    assert_int_equal(count, all->count);
    for (int64_t v = 0; v < num_voxels; v++) assert_true(fabs(sum[v] - back[v]) <= 1e-5 * most_back);
    assert_true(largest_number(elements, num_voxels * all->count) <= 2e-6 * largest);
}

/* The scanner of two rings has a limit on the ring difference, which leaves out some pairs. */
static void parts_are_of_the_whole(void **state)
{
    check(FIXTURE_RING);
    check(FIXTURE_TWO_RINGS);
}

backend_main("cpu", CASE(parts_are_of_the_whole))
