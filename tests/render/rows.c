/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Rows read from correspondence images: in order and complete, for any division into batches. */
#include "subject.h"

#include "correspondence/raster/raster.h"

/* Elements of float weights, added in double in another order. */
static const double order_tolerance = 1e-13;

struct received {
    const lr_lors *lors;
    int64_t next_row, stop_before; /* 0: never */
    struct row *rows;              /* by number */
};

static lr_status take(void *user, const lr_row *row)
{
    struct received *received = user;
    assert_int_equal(row->row, received->next_row++);
    for (int64_t k = 0; k < row->count; k++) {
        assert_true(row->lor[k] >= 0 && row->lor[k] < received->lors->count);
        assert_all(k == 0 || row->lor[k] > row->lor[k - 1], row->probability[k] > 0);
        assert_true(lr_lors_in_coincidence(received->lors, row->lor[k]));
    }
    take_row(received->rows, row);
    return received->next_row == received->stop_before ? LR_CANCELLED : LR_OK;
}

static struct row *read_rows(struct stage *stage, const struct lr_rows *rows, int threads, int64_t stop_before)
{
    struct received received = {stage->lors, rows->begin, stop_before, kept(rows->end, sizeof(struct row))};
    const struct lr_backend_params params = {.threads = threads, .log = &stage->log.log};
    const struct lr_row_reader reader = {.images = &stage->images, .plan = stage->plan, .params = &params};
    const lr_status status = lr_rows_read(&reader, rows, &(lr_row_sink){take, &received});
    if (stop_before == 0) stage_check(stage, status == LR_OK);
    if (stop_before != 0) assert_int_equal(status, LR_CANCELLED);
    assert_int_equal(received.next_row, stop_before != 0 ? stop_before : rows->end);
    return received.rows;
}

/* The samples of a row, divided over many batches, add up to the same row as in one batch. */
static void check_batches(struct gl_context *ctx, lr_scanner *(*create)(void), double reach_mm, const int samples[3])
{
    static const int tiles[] = {1, 23, 60, 3000};
    enum { BEGIN = 3, END = 51, COUNT = END - BEGIN };
    const double edge = reach_mm / 3;
    const lr_grid grid = lr_grid_centred((const int[3]){5, 4, 3}, (const double[3]){edge, edge, edge});
    const struct lr_rows rows = {
        .grid = &grid, .samples = {samples[0], samples[1], samples[2]}, .begin = BEGIN, .end = END};
    struct row *expected = NULL;
    for (int k = 0; k < 4; k++) {
        int64_t num_elements = 0;
        struct stage *stage =
            stage_open(&(struct stage_params){.ctx = ctx, .scanner = create(), .rays = 2, .min_tiles = tiles[k]});
        struct row *found = read_rows(stage, &rows, 1, 0);
        check_same_rows(found + BEGIN, read_rows(stage, &rows, 2, 0) + BEGIN, COUNT, 0); /* any threads */
        for (int64_t row = BEGIN; row < END; row++) num_elements += found[row].count;
        print_message("%d tiles: %lld elements\n", stage->plan->max_images, (long long)num_elements);
        assert_true(num_elements > 1000);
        if (k == 0) expected = found;
        check_same_rows(found + BEGIN, expected + BEGIN, COUNT, order_tolerance);
    }
    destroy_kept(NULL);
}

static void test_batches_make_no_difference(void **context)
{
    check_batches(*context, create_two_rings, 10, (const int[3]){2, 2, 2});
    check_batches(*context, create_ruled_tilted, 10, (const int[3]){3, 1, 2});
    check_batches(*context, create_unequal, 8, (const int[3]){1, 1, 1});
}

/* Points that see nothing give empty rows, in the right order. */
static void test_empty_rows(void **context)
{
    const double points[][3] = {{500, 0, 0}, {0, 0, 0}, {0, 0, 400}, {0, 0, -400}, {1, 2, 0.5}, {-700, 3, 2}};
    struct stage *stage = stage_open(&(struct stage_params){.ctx = *context, .scanner = create_ring_of_8(), .rays = 2});
    const struct row *rows = read_rows(stage, &(struct lr_rows){.points_mm = points, .end = 6}, 2, 0);
    for (int k = 0; k < 6; k++) assert_int_equal(rows[k].count > 0, k == 1 || k == 4);
    read_rows(stage, &(struct lr_rows){.points_mm = points, .begin = 2, .end = 2}, 1, 0); /* no row comes */
}

/* The sum of a row is the sum of the weights of its lines: no pixel is lost or counted twice. */
static void test_rows_add_up_to_their_lines(void **context)
{
    uint64_t state = test_seed();
    struct stage *stage = stage_open(&(struct stage_params){.ctx = *context, .scanner = create_ring_of_8(), .rays = 3});
    for (int point = 0; point < 5; point++) {
        double at[1][3], lines = 0;
        test_point(stage->scanner, 10, point, &state, at[0]);
        const struct lr_rows rows = {.points_mm = (const double(*)[3])at, .end = 1};
        const struct row *row = read_rows(stage, &rows, 1, 0);
        double sum = 0, slack = 0;
        for (int64_t k = 0; k < row->count; k++) sum += row->value[k];
        eye_place(stage->eye, at[0]);
        for (int i = 0; i < stage->scanner->num_modules; i++) {
            for (int pixel = 0; pixel < eye_num_pixels(stage->eye, i); pixel++) {
                double ray[3], edge, t, cell[2] = {0};
                eye_pixel_line(stage->eye, i, pixel, ray);
                const int j = eye_first_hit(stage->eye, i, ray, &edge);
                if (stage->eye->modules[i].height <= 0 || j < 0) continue;
                const lr_module *module = &stage->scanner->modules[j];
                eye_meet(stage->eye, j, ray, &t, cell);
                const bool on_face =
                    fabs(cell[0] - floor(cell[0]) - 0.5) <= 0.5 * module->face_mm[0] / module->pitch_mm[0] &&
                    fabs(cell[1] - floor(cell[1]) - 0.5) <= 0.5 * module->face_mm[1] / module->pitch_mm[1];
                const double weight = eye_weight(stage->eye, i, ray);
                lines += on_face ? weight : 0;
                slack += edge <= BORDERLINE_PITCHES ? weight : 0;
            }
        }
        assert_all(lines > 0, fabs(sum - lines) <= 1e-6 * lines + slack);
    }
}

static void test_sink_stops(void **context)
{
    const lr_grid grid = lr_grid_centred((const int[3]){4, 4, 2}, (const double[3]){2, 2, 2});
    struct stage *stage = stage_open(&(struct stage_params){.ctx = *context, .scanner = create_ring_of_8(), .rays = 1});
    read_rows(stage, &(struct lr_rows){.grid = &grid, .samples = {1, 1, 1}, .end = 32}, 1, 5);
}

stage_main("render_rows",
           CASES(test_batches_make_no_difference, test_empty_rows, test_rows_add_up_to_their_lines, test_sink_stops))
