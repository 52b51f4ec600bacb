/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The matrices of ranks, each of some pairs of modules alone, are together the matrix of all: element by
 * element, and in projections and sensitivities. Argument: the backend. */
#include "fixtures.h"

#include <lr/comm.h>

enum { RANKS = 3 };

/* One rank's LORs, and where each is among all. */
struct part {
    lr_lors *lors;
    int64_t *number; /* [lors->count] */
};

static struct part make_part(const lr_lors *all, const int32_t *rank_of, int rank)
{
    struct part part;
    int32_t *pairs = kept(all->num_pairs, sizeof(*pairs));
    lr_selection own = {.pairs = pairs};
    for (int64_t pair = 0; pair < all->num_pairs; pair++)
        if (rank_of[pair] == rank) pairs[own.num_pairs++] = (int32_t)pair;
    part.lors = lr_lors_create_part(all, &own, NULL);
    assert_non_null(part.lors);
    part.number = kept(part.lors->count, sizeof(*part.number));
    for (int64_t k = 0; k < part.lors->count; k++) {
        int32_t crystals[2];
        lr_lors_crystals(part.lors, k, crystals);
        part.number[k] = lr_lors_number(all, crystals[0], crystals[1]);
        assert_true(part.number[k] >= 0);
    }
    return part;
}

/* Rows of voxels into a table [num_voxels][num_lors of all]. */
struct table {
    double *elements;
    int64_t num_lors;
    const int64_t *number; /* of the part's LORs; NULL = all */
    bool adds;             /* else each element is compared with what stands there */
    double largest;
};

static lr_status take_row(void *user, const lr_row *row)
{
    struct table *table = user;
    for (int64_t k = 0; k < row->count; k++) {
        const int64_t lor = table->number != NULL ? table->number[row->lor[k]] : row->lor[k];
        table->elements[row->row * table->num_lors + lor] += table->adds ? row->probability[k] : -row->probability[k];
        table->largest = fmax(table->largest, row->probability[k]);
    }
    return LR_OK;
}

static void project(lr_operator *op, const float *image, float *values, float *back)
{
    assert_ok(array_forward(op, image, values));
    assert_ok(array_back(op, values, back));
}

static void check(enum fixture_kind kind, const char *backend)
{
    struct fixture fixture;
    fixture_init(&fixture, kind);
    const lr_lors *all = fixture.lors;
    const int64_t num_voxels = lr_grid_num_voxels(&fixture.grid);
    int32_t *subset_of = kept(all->num_pairs, sizeof(*subset_of));
    int32_t *rank_of = kept(all->num_pairs, sizeof(*rank_of));
    const lr_partition_params deal = {.lors = all, .ranks = RANKS, .subsets = 1, .subset_of = subset_of};
    assert_ok(lr_partition(&deal, rank_of));
    lr_operator_params params = fixture_params(&fixture, backend, NULL);
    params.rays = 3;
    lr_operator *whole = keep(lr_operator_create(&params));
    struct table table = {.num_lors = all->count, .adds = true};
    table.elements = kept_doubles(num_voxels * all->count);
    const lr_row_sink sink = {take_row, &table};
    assert_ok(lr_operator_rows(whole, 0, num_voxels, &sink));
    float *image = kept_floats(num_voxels), *back = kept(num_voxels, 4);
    float *some = kept(num_voxels, 4), *values = kept(all->count, 4);
    float *own = kept(all->count, 4);
    double *sum = kept_doubles(num_voxels), most = 0, most_back = 0;
    for (int64_t v = 0; v < num_voxels; v++) image[v] = (float)(1 + v % 7);
    project(whole, image, values, back);
    for (int64_t k = 0; k < all->count; k++) most = fmax(most, values[k]);
    int64_t count = 0;
    table.adds = false;
    for (int rank = 0; rank < RANKS; rank++) {
        struct part part = make_part(all, rank_of, rank);
        params.lors = part.lors;
        lr_operator *op = keep(lr_operator_create(&params));
        table.number = part.number;
        assert_ok(lr_operator_rows(op, 0, num_voxels, &sink));
        project(op, image, own, some);
        for (int64_t k = 0; k < part.lors->count; k++) {
            /* Sums of floats in another order; 2e-6 of each value is what compute promises. */
            assert_true(fabs(own[k] - values[part.number[k]]) <= 5e-6 * most);
        }
        for (int64_t v = 0; v < num_voxels; v++) {
            sum[v] += some[v];
            most_back = fmax(most_back, back[v]);
        }
        count += part.lors->count;
        lr_lors_destroy(part.lors);
    }
    assert_int_equal(count, all->count);
    for (int64_t v = 0; v < num_voxels; v++) assert_true(fabs(sum[v] - back[v]) <= 1e-5 * most_back);
    for (int64_t n = 0; n < num_voxels * all->count; n++) assert_true(fabs(table.elements[n]) <= 2e-6 * table.largest);
    fixture_finish(&fixture);
}

static void test_ring(void **state)
{
    check(FIXTURE_RING, *state);
}

/* With a ring difference, and pairs that it leaves out. */
static void test_two_rings(void **state)
{
    check(FIXTURE_TWO_RINGS, *state);
}

int main(int argc, char **argv)
{
    const char *backend = argc > 1 ? argv[1] : "cpu";
    if (!fixture_backend_is_usable(backend)) return 77;
    void *given = (void *)(uintptr_t)backend;
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(test_ring, given),
                                       cmocka_unit_test_prestate(test_two_rings, given)};
    return cmocka_run_group_tests_name(backend, tests, NULL, NULL);
}
