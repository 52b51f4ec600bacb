/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Rows of some voxels and some LORs, and rows by LOR, have the same elements as whole rows. Argument: the backend. */
#include "batches.h"
#include "fixtures.h"
#include "model/lors/selection.h"

enum { NUM_FIXTURES = 5 };
static const enum fixture_kind fixtures[NUM_FIXTURES] = {FIXTURE_OPPOSED, FIXTURE_UNEQUAL, FIXTURE_RING,
                                                         FIXTURE_TWO_RINGS,
                                                         FIXTURE_TILTED /* last: native allows upright modules only */};

/* A fixture with its matrix. */
static struct bench {
    struct fixture fixture;
    struct test_log *log;
    lr_operator *op;
    int64_t num_voxels, num_lors;
    double *whole; /* [num_voxels][num_lors] */
    double *found; /* the same, from the call under test */
    int64_t next;  /* no later row has a lower number */
    int64_t num_rows, stop_after;
    bool by_lor;
} bench;

static lr_status take(void *user, const lr_row *row)
{
    assert_true(row->row >= bench.next);
    bench.next = row->row + 1;
    bench.num_rows++;
    for (int64_t k = 0; k < row->count; k++) {
        const int64_t voxel = bench.by_lor ? row->lor[k] : row->row, lor = bench.by_lor ? row->row : row->lor[k];
        assert_true(k == 0 || row->lor[k] > row->lor[k - 1]);
        assert_true(voxel >= 0 && voxel < bench.num_voxels && lor >= 0 && lor < bench.num_lors);
        assert_true(row->probability[k] > 0.0);
        bench.found[voxel * bench.num_lors + lor] = row->probability[k];
    }
    return bench.num_rows == bench.stop_after ? LR_BAD_INPUT : LR_OK;
}

static lr_row_sink sink_of(bool by_lor)
{
    memset(bench.found, 0, (size_t)(bench.num_voxels * bench.num_lors) * sizeof(*bench.found));
    bench.next = bench.num_rows = bench.stop_after = 0;
    bench.by_lor = by_lor;
    return (lr_row_sink){take, NULL};
}

static void bench_init(enum fixture_kind kind, const lr_operator_params *more)
{
    bench = (struct bench){.fixture = kept_fixture(kind), .log = kept_log()};
    bench.fixture.grid = lr_grid_centred((const int[3]){4, 3, 3}, (const double[3]){2.7, 3.1, 2.9});
    lr_operator_params params = fixture_params(&bench.fixture, test_backend, &bench.log->log);
    params.factors = more->factors;
    params.store = more->store;
    params.max_memory_bytes = more->max_memory_bytes;
    memcpy(params.samples, (int[3]){2, 1, 2}, sizeof(params.samples));
    bench.op = keep(lr_operator_create(&params));
    bench.num_voxels = lr_grid_num_voxels(&bench.fixture.grid);
    bench.num_lors = bench.fixture.lors->count;
    bench.whole = kept_rows(bench.op, 0, bench.num_voxels);
    bench.found = kept_doubles(bench.num_voxels * bench.num_lors);
    int64_t num_elements = 0;
    for (int64_t k = 0; k < bench.num_voxels * bench.num_lors; k++) num_elements += bench.whole[k] > 0.0;
    assert_true(num_elements > 100);
}

/* Checks that elements of wanted rows and LORs equal those of whole rows, and that there are no other elements.
 * tolerance: relative; 0 = the same bits. */
static void assert_found(const lr_selection *part, const bool *wanted, double tolerance)
{
    struct lr_selection_finder finder = {.lors = bench.fixture.lors, .selection = part};
    for (int64_t lor = 0; lor < bench.num_lors; lor++) {
        const bool selected = lr_selection_find(&finder, lor) >= 0;
        for (int64_t v = 0; v < bench.num_voxels; v++) {
            const int64_t at = v * bench.num_lors + lor;
            const double expected = selected && (wanted == NULL || wanted[v]) ? bench.whole[at] : 0.0;
            if (!(fabs(bench.found[at] - expected) <= tolerance * expected)) {
                fail_msg("%s: voxel %lld, LOR %lld: %.17g, expected %.17g", bench.fixture.name, (long long)v,
                         (long long)lor, bench.found[at], expected);
            }
        }
    }
}

/* Lists of about every third pair and LOR. */
struct lists {
    int32_t pairs[64];
    int64_t lors[4096], voxels[64];
    int64_t num_pairs, num_lors, num_voxels;
    bool wanted[64];
};

static void make_lists(struct lists *lists, uint64_t *state)
{
    *lists = (struct lists){.num_pairs = 0};
    for (int64_t k = 0; k < bench.fixture.lors->num_pairs && lists->num_pairs < 64; k++)
        if (k == 0 || test_random(state) < 0.4) lists->pairs[lists->num_pairs++] = (int32_t)k;
    for (int64_t k = 0; k < bench.num_lors && lists->num_lors < 4096; k++)
        if (test_random(state) < 0.3) lists->lors[lists->num_lors++] = k;
    for (int64_t k = 0; k < bench.num_voxels; k++) {
        lists->wanted[k] = test_random(state) < 0.5;
        if (lists->wanted[k]) lists->voxels[lists->num_voxels++] = k;
    }
}

static void for_all(const lr_operator_params *more)
{
    uint64_t state = test_seed();
    const int num = test_backend_is("native") ? NUM_FIXTURES - 1 : NUM_FIXTURES;
    for (int n = 0; n < num; n++) {
        struct lists *lists = kept(1, sizeof(*lists));
        bench_init(fixtures[n], more);
        make_lists(lists, &state);
        const lr_selection parts[4] = {{0},
                                       {.pairs = lists->pairs, .num_pairs = lists->num_pairs},
                                       {.lors = lists->lors, .num_lors = lists->num_lors},
                                       {.pairs = lists->pairs, .num_pairs = 0}};
        for (int k = 0; k < 4; k++) {
            lr_row_choice choice = {.end = bench.num_voxels, .part = &parts[k]};
            lr_row_sink sink = sink_of(false);
            assert_ok(lr_operator_rows_part(bench.op, &choice, &sink));
            assert_int_equal(bench.num_rows, bench.num_voxels);
            assert_found(&parts[k], NULL, 0.0);
            choice = (lr_row_choice){.voxels = lists->voxels, .num_voxels = lists->num_voxels, .part = &parts[k]};
            sink = sink_of(false);
            assert_ok(lr_operator_rows_part(bench.op, &choice, &sink));
            assert_int_equal(bench.num_rows, lists->num_voxels);
            assert_found(&parts[k], lists->wanted, 0.0);
            /* Checks the counts of the rows that were found last. */
            int64_t counts[64];
            assert_ok(lr_operator_count_rows(bench.op, &choice, counts));
            for (int64_t i = 0; i < choice.num_voxels; i++) {
                const double *row = bench.found + choice.voxels[i] * bench.num_lors;
                for (int64_t lor = 0; lor < bench.num_lors; lor++) counts[i] -= row[lor] > 0.0;
                assert_int_equal(counts[i], 0);
            }
            sink = sink_of(true);
            assert_ok(lr_operator_lor_rows(bench.op, &parts[k], &sink));
            assert_int_equal(bench.num_rows, lr_selection_count(bench.fixture.lors, &parts[k]));
            assert_found(&parts[k], NULL, 0x1p-24); /* a rounding to float */
        }
        destroy_kept(NULL);
    }
}

/* Four kinds of operators are tested: plain; with a stored matrix; with factors; and with so little memory that there
 * are many blocks of LORs, some of which drop their last LORs. */
static void test_parts(void **state)
{
    for_all(&(lr_operator_params){.store = LR_STORE_NO});
    for_all(&(lr_operator_params){.store = LR_STORE_YES});
    for_all(&(lr_operator_params){.store = LR_STORE_NO, .factors = &fixture_factors});
    for_all(&(lr_operator_params){.store = LR_STORE_NO, .max_memory_bytes = 40000});
}

static void test_faults(void **state)
{
    bench_init(FIXTURE_RING, &(lr_operator_params){.store = LR_STORE_NO});
    lr_row_sink sink = sink_of(false);
    const int64_t falling[2] = {3, 3}, beyond[1] = {bench.num_voxels};
    const lr_selection bad = {.lors = falling, .num_lors = 2};
    const lr_row_choice choices[4] = {{.end = bench.num_voxels + 1},
                                      {.voxels = falling, .num_voxels = 2},
                                      {.voxels = beyond, .num_voxels = 1},
                                      {.end = 1, .part = &bad}};
    for (int k = 0; k < 4; k++) {
        test_log_init(bench.log);
        assert_ints(lr_operator_rows_part(bench.op, &choices[k], &sink), LR_USAGE, bench.log->status, LR_USAGE);
    }
    assert_int_equal(lr_operator_lor_rows(bench.op, &bad, &sink), LR_USAGE);
    assert_ints(lr_operator_lor_rows(bench.op, NULL, NULL), LR_USAGE, bench.num_rows, 0);
    sink = sink_of(true);
    bench.stop_after = 3;
    assert_ints(lr_operator_lor_rows(bench.op, NULL, &sink), LR_BAD_INPUT, bench.num_rows, 3);
}

backend_main("cpu", CASE(test_parts), CASE(test_faults))
