/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Exact rows of the backend compute. A device merges its rows itself; for a software renderer the host merges them.
 * Both give the same LORs, and values that differ by one rounding to float. The device gives the same bits in every
 * run, for any size of batches. */
#include "batches.h"
#include "fixtures.h"

#include "model/lors/rows.h"

#include <time.h>

/* A rounding to float on either side. */
static const double rounding = 0x1p-23;

/* Rows that a sink has received, one after the other. */
struct received {
    int64_t num_rows, num_elements, room;
    int64_t *end; /* [num_rows] end of each row */
    int64_t *lor;
    double *probability;
    int64_t num_blocks;
    bool is_slow; /* at first, so that batches shrink to less than a row if they can */
};

static lr_status take(void *user, const lr_row *row)
{
    struct received *received = user;
    assert_int_equal(row->row, received->num_rows);
    if (received->is_slow && received->num_rows < 12) nanosleep(&(struct timespec){.tv_nsec = 260000000}, NULL);
    if (received->num_elements + row->count > received->room) {
        received->room = 2 * (received->num_elements + row->count);
        const size_t room = (size_t)received->room;
        received->lor = realloc(received->lor, room * sizeof(*received->lor));
        received->probability = realloc(received->probability, room * sizeof(double));
    }
    received->end = realloc(received->end, (size_t)(received->num_rows + 1) * sizeof(*received->end));
    assert_true(received->end && (row->count == 0 || (received->lor && received->probability)));
    for (int64_t k = 0; k < row->count; k++) {
        assert_all(k == 0 || row->lor[k] > row->lor[k - 1], row->probability[k] > 0.0);
        received->lor[received->num_elements] = row->lor[k];
        received->probability[received->num_elements++] = row->probability[k];
    }
    received->end[received->num_rows++] = received->num_elements;
    return LR_OK;
}

static lr_status take_block(void *user, const struct lr_row_block *block)
{
    struct received *received = user;
    const lr_row_sink sink = {take, received};
    received->num_blocks++;
    return lr_row_block_unpack(block, &sink, NULL);
}

static void received_finish(struct received *received)
{
    free(received->end);
    free(received->lor);
    free(received->probability);
    *received = (struct received){0};
}

/* One way to get rows: merged by the device or the host, with these numbers of samples and this memory limit (0 =
 * none). */
struct way {
    const char *batches; /* value of LR_TEST_BATCHES: small = the host merges */
    int samples[3];
    int64_t memory;
    bool is_slow;   /* the sink is slow */
    bool by_blocks; /* the sink takes blocks of rows, too */
};

/* Rows of all voxels, then of points. */
static struct received run(const struct fixture *fixture, const struct way *way)
{
    static const double points[][3] = {{0.3, 0.2, 0.1}, {5000, 0, 0}, {1.1, -0.7, 0.4}};
    struct test_log *log = kept_log();
    lr_operator_params params = fixture_params(fixture, "compute", &log->log);
    memcpy(params.samples, way->samples, sizeof(params.samples));
    params.mode = LR_MODE_EXACT;
    params.rays = 0;
    params.max_memory_bytes = way->memory;
    setenv("LR_TEST_BATCHES", way->batches, 1);
    lr_operator *op = keep(lr_operator_create(&params));
    unsetenv("LR_TEST_BATCHES");
    struct received received = {.is_slow = way->is_slow};
    struct lr_row_entry entry = {{take, &received}, {take_block, &received}};
    const lr_row_sink sink = way->by_blocks ? lr_row_entry_sink(&entry) : entry.rows;
    const int64_t num_voxels = lr_grid_num_voxels(&fixture->grid);
    if (lr_operator_rows(op, 0, num_voxels, &sink) != LR_OK) fail_msg("%s", log->error);
    assert_int_equal(received.num_rows, num_voxels);
    received.num_rows = 0; /* points start at 0 again; elements are appended */
    assert_ok(lr_operator_point_rows(op, points, 3, &sink));
    assert_int_equal(received.num_rows, 3);
    return received;
}

/* tolerance 0: the same bits. */
static void assert_same(const struct received *a, const struct received *b, double tolerance)
{
    assert_int_equal(a->num_elements, b->num_elements);
    assert_memory_equal(a->end, b->end, (size_t)a->num_rows * sizeof(*a->end));
    for (int64_t k = 0; k < a->num_elements; k++) {
        assert_int_equal(a->lor[k], b->lor[k]);
        assert_close(a->probability[k], b->probability[k], tolerance);
    }
}

static void check(const struct fixture *fixture, const int samples[3])
{
    struct way way = {.batches = "small", .samples = {samples[0], samples[1], samples[2]}};
    struct received by_host = run(fixture, &way);
    way.batches = "large";
    struct received by_device = run(fixture, &way);
    way.is_slow = samples[0] == 3;
    way.by_blocks = true;
    struct received again = run(fixture, &way);
    way.memory = 300000; /* splits rows into batches; lists and tables too small */
    struct received in_parts = run(fixture, &way);
    print_message("%s, %d samples: %lld elements\n", fixture->name, samples[0] * samples[1] * samples[2],
                  (long long)by_host.num_elements);
    assert_all(by_host.num_elements > 100, by_device.num_blocks == 0 && again.num_blocks > 0);
    assert_same(&by_device, &by_host, rounding);
    assert_same(&again, &by_device, 0.0);
    assert_same(&in_parts, &by_device, rounding);
    received_finish(&by_host);
    received_finish(&by_device);
    received_finish(&again);
    received_finish(&in_parts);
}

static void check_fixture(enum fixture_kind kind, const int samples[3])
{
    struct fixture fixture = kept_fixture(kind);
    const bool many = samples[0] * samples[1] * samples[2] > 8; /* many points in a row: use fewer rows */
    fixture.grid =
        lr_grid_centred(many ? (const int[3]){5, 4, 2} : (const int[3]){7, 6, 5}, (const double[3]){2.7, 3.1, 2.9});
    check(&fixture, samples);
}

static void check_preset(const char *name, const int voxels[3], const int samples[3])
{
    struct test_log log = TEST_LOG(log);
    struct fixture fixture = {.name = name, .scanner = keep(lr_scanner_read(name, &log.log))};
    fixture.lors = keep(lr_lors_create(fixture.scanner, &log.log));
    fixture.grid = lr_grid_centred(voxels, (const double[3]){9.0, 8.0, 7.0});
    check(&fixture, samples);
}

/* A point of a whole scanner has more elements than the list first has room for, if there is little memory. */
static void test_long_lists(void **state)
{
    check_preset("siemens-mmr", (const int[3]){2, 1, 1}, (const int[3]){1, 2, 1});
}

/* The points of large voxels have many different LORs: their rows need longer tables, which leaves room for fewer
 * points. */
static void test_long_rows(void **state)
{
    check_preset("ge-explore-vista-dr", (const int[3]){2, 2, 1}, (const int[3]){3, 3, 1});
}

static void test_point_rows(void **state)
{
    check_fixture(FIXTURE_TWO_RINGS, (const int[3]){1, 1, 1});
    check_fixture(FIXTURE_TILTED, (const int[3]){1, 1, 1});
}

static void test_sampled_rows(void **state)
{
    check_fixture(FIXTURE_UNEQUAL, (const int[3]){2, 1, 3});
    check_fixture(FIXTURE_RING, (const int[3]){3, 3, 3});
    check_fixture(FIXTURE_TILTED, (const int[3]){2, 2, 1});
}

usable_main(fixture_backend_is_usable("compute"),
            CASES(test_point_rows, test_sampled_rows, test_long_lists, test_long_rows))
