/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Rows read off correspondence images: in order, whole, whatever batches they came from. */
#include "stage.h"

#include "correspondence/raster/raster.h"

/* Elements of float weights, added in double in another order. */
static const double order_tolerance = 1e-13;

/* Rows as a sink receives them. */
struct received {
    const lr_lors *lors;
    int64_t next_row, num_elements, capacity;
    int64_t starts[256]; /* of row k; rows are counted from the first */
    int64_t first_row;
    int64_t *lor;
    double *probability;
    int64_t stop_after; /* rows; 0 = never */
};

static lr_status take(void *user, const lr_row *row)
{
    struct received *received = user;
    assert_int_equal(row->row, received->next_row);
    assert_true(received->next_row - received->first_row < 255);
    for (int64_t k = 0; k < row->count; k++) {
        assert_true(row->lor[k] >= 0 && row->lor[k] < received->lors->count);
        assert_true(k == 0 || row->lor[k] > row->lor[k - 1]);
        assert_true(row->probability[k] > 0);
        assert_true(lr_lors_in_coincidence(received->lors, row->lor[k]));
    }
    if (received->num_elements + row->count > received->capacity) {
        received->capacity = 2 * (received->num_elements + row->count);
        const size_t capacity = (size_t)received->capacity;
        received->lor = realloc(received->lor, capacity * sizeof(int64_t));
        received->probability = realloc(received->probability, capacity * sizeof(double));
        assert_true(received->lor && received->probability);
    }
    if (row->count > 0) {
        memcpy(received->lor + received->num_elements, row->lor, (size_t)row->count * sizeof(int64_t));
        memcpy(received->probability + received->num_elements, row->probability, (size_t)row->count * sizeof(double));
    }
    received->num_elements += row->count;
    received->next_row++;
    received->starts[received->next_row - received->first_row] = received->num_elements;
    return received->next_row - received->first_row == received->stop_after ? LR_CANCELLED : LR_OK;
}

static void received_finish(struct received *received)
{
    free(received->lor);
    free(received->probability);
}

/* Reads rows with an atlas of at least min_tiles tiles. */
static struct received read_rows(struct stage *stage, const struct lr_rows *rows, int threads)
{
    struct received received = {.lors = stage->lors, .next_row = rows->begin, .first_row = rows->begin};
    const struct lr_row_reader reader = {
        .images = &stage->images, .plan = stage->plan, .threads = threads, .log = &stage->log.log};
    stage_check(stage, lr_rows_read(&reader, rows, &(lr_row_sink){take, &received}) == LR_OK);
    assert_int_equal(received.next_row, rows->end);
    return received;
}

static void assert_same_rows(const struct received *a, const struct received *b, double tolerance)
{
    assert_int_equal(a->next_row, b->next_row);
    assert_int_equal(a->num_elements, b->num_elements);
    assert_memory_equal(a->starts, b->starts, sizeof(a->starts));
    for (int64_t k = 0; k < a->num_elements; k++) {
        assert_int_equal(a->lor[k], b->lor[k]);
        assert_close(a->probability[k], b->probability[k], tolerance);
    }
}

/* Samples of a row split over many batches add up to the same row as in one batch. */
static void check_batches(struct gl_context *ctx, lr_scanner *(*create)(void), double reach_mm, const int samples[3])
{
    static const int tiles[] = {1, 23, 60, 3000};
    const double edge = reach_mm / 3;
    const lr_grid grid = lr_grid_centred((const int[3]){5, 4, 3}, (const double[3]){edge, edge, edge});
    const struct lr_rows rows = {.grid = &grid, .samples = {samples[0], samples[1], samples[2]}, .begin = 3, .end = 51};
    struct received expected = {0};
    for (int k = 0; k < 4; k++) {
        struct stage stage;
        stage_open(&stage, &(struct stage_params){.ctx = ctx, .scanner = create(), .rays = 2, .min_tiles = tiles[k]});
        struct received received = read_rows(&stage, &rows, 1);
        struct received again = read_rows(&stage, &rows, 2);
        assert_same_rows(&received, &again, 0); /* whatever the number of threads */
        received_finish(&again);
        print_message("%d tiles: %lld elements\n", stage.plan->max_images, (long long)received.num_elements);
        if (k == 0) {
            expected = received;
            assert_true(expected.num_elements > 1000);
        } else {
            assert_same_rows(&received, &expected, order_tolerance);
            received_finish(&received);
        }
        stage_close(&stage);
    }
    received_finish(&expected);
}

static void test_batches_make_no_difference(void **context)
{
    check_batches(*context, create_two_rings, 10, (const int[3]){2, 2, 2});
    check_batches(*context, create_ruled_tilted, 10, (const int[3]){3, 1, 2});
    check_batches(*context, create_unequal, 8, (const int[3]){1, 1, 1});
}

/* Points that see nothing give empty rows, in their place. */
static void test_empty_rows(void **context)
{
    const double points[][3] = {{500, 0, 0}, {0, 0, 0}, {0, 0, 400}, {0, 0, -400}, {1, 2, 0.5}, {-700, 3, 2}};
    const struct lr_rows rows = {.points_mm = points, .begin = 0, .end = 6};
    struct stage stage;
    stage_open(&stage, &(struct stage_params){.ctx = *context, .scanner = create_ring_of_8(), .rays = 2});
    struct received received = read_rows(&stage, &rows, 2);
    for (int k = 0; k < 6; k++) {
        const bool filled = received.starts[k + 1] > received.starts[k];
        assert_int_equal(filled, k == 1 || k == 4);
    }
    received_finish(&received);
    const struct lr_rows none = {.points_mm = points, .begin = 2, .end = 2};
    received = read_rows(&stage, &none, 1);
    assert_int_equal(received.num_elements, 0);
    received_finish(&received);
    stage_close(&stage);
}

/* The sum of a row is the sum of its lines' weights: no pixel is lost or counted twice. */
static void test_rows_add_up_to_their_lines(void **context)
{
    uint64_t state = test_seed();
    struct stage stage;
    stage_open(&stage, &(struct stage_params){.ctx = *context, .scanner = create_ring_of_8(), .rays = 3});
    for (int point = 0; point < 5; point++) {
        double at[1][3], lines = 0;
        test_point(stage.scanner, 10, point, &state, at[0]);
        const struct lr_rows rows = {.points_mm = (const double(*)[3])at, .end = 1};
        struct received received = read_rows(&stage, &rows, 1);
        double sum = 0, slack = 0;
        for (int64_t k = 0; k < received.num_elements; k++) sum += received.probability[k];
        eye_place(stage.eye, at[0]);
        for (int i = 0; i < stage.scanner->num_modules; i++) {
            const int *crystals = stage.scanner->modules[i].crystals;
            for (int pixel = 0; pixel < crystals[0] * crystals[1] * 9; pixel++) {
                double ray[3], edge, t, cell[2] = {0};
                eye_line(stage.eye, i, pixel % (3 * crystals[0]), pixel / (3 * crystals[0]), ray);
                const int j = eye_first_hit(stage.eye, i, ray, &edge);
                if (stage.eye->modules[i].height <= 0 || j < 0) continue;
                const lr_module *module = &stage.scanner->modules[j];
                eye_meet(stage.eye, j, ray, &t, cell);
                const bool on_face =
                    fabs(cell[0] - floor(cell[0]) - 0.5) <= 0.5 * module->face_mm[0] / module->pitch_mm[0] &&
                    fabs(cell[1] - floor(cell[1]) - 0.5) <= 0.5 * module->face_mm[1] / module->pitch_mm[1];
                const double weight = eye_weight(stage.eye, i, ray);
                lines += on_face ? weight : 0;
                slack += edge <= BORDERLINE_PITCHES ? weight : 0;
            }
        }
        assert_true(lines > 0);
        assert_true(fabs(sum - lines) <= 1e-6 * lines + slack);
        received_finish(&received);
    }
    stage_close(&stage);
}

static void test_sink_stops(void **context)
{
    const lr_grid grid = lr_grid_centred((const int[3]){4, 4, 2}, (const double[3]){2, 2, 2});
    const struct lr_rows rows = {.grid = &grid, .samples = {1, 1, 1}, .end = 32};
    struct stage stage;
    stage_open(&stage, &(struct stage_params){.ctx = *context, .scanner = create_ring_of_8(), .rays = 1});
    struct received received = {.lors = stage.lors, .stop_after = 5};
    const struct lr_row_reader reader = {
        .images = &stage.images, .plan = stage.plan, .threads = 1, .log = &stage.log.log};
    assert_int_equal(lr_rows_read(&reader, &rows, &(lr_row_sink){take, &received}), LR_CANCELLED);
    assert_int_equal(received.next_row, 5);
    received_finish(&received);
    stage_close(&stage);
}

int main(void)
{
    struct gl_context *ctx = stage_context();
    if (ctx == NULL) return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_batches_make_no_difference, ctx),
        cmocka_unit_test_prestate(test_empty_rows, ctx),
        cmocka_unit_test_prestate(test_rows_add_up_to_their_lines, ctx),
        cmocka_unit_test_prestate(test_sink_stops, ctx),
    };
    const int failed = cmocka_run_group_tests_name("render_rows", tests, NULL, NULL);
    stage_leave(ctx);
    return failed;
}
