/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The plan says which images are rendered and to which places. The test uses no OpenGL, only brute force over lines in
 * double. */
#include "lines.h"
#include "scanners.h"

#include "common/bindings.h"
#include "correspondence/plan.h"

struct setting {
    lr_scanner *scanner;
    lr_lors *lors;
    struct lr_plan *plan;
    struct eye *eye;
};

static void setting_close(void *self)
{
    struct setting *setting = self;
    lr_plan_destroy(setting->plan);
}

/* The setting is there until destroy_kept. */
static struct setting *setting_open(lr_scanner *scanner, int rays, int atlas_size)
{
    struct setting *setting = kept(1, sizeof(*setting));
    struct test_log log = TEST_LOG(log);
    setting->scanner = keep(scanner);
    setting->lors = keep(lr_lors_create(scanner, NULL));
    setting->plan = lr_plan_create(
        &(struct lr_plan_params){.lors = setting->lors, .rays = rays, .atlas_size = atlas_size, .log = &log.log});
    if (setting->plan == NULL) fail_msg("no plan: %s", log.error);
    setting->eye = eye_create(scanner, rays);
    return keep_object(setting, setting_close);
}

/* The secondary of a draw that may have LORs with the primary; -1: the drawn module only stops lines. */
static int pairs_with(const struct lr_plan_draw *draw)
{
    const bool stops = draw->secondary & (LR_ONLY_STOPS | LR_BEFORE_PRIMARY);
    return stops ? -1 : (int)(draw->secondary & LR_DRAW_MODULE);
}

static bool draws(const struct lr_batch *batch, int image, int secondary)
{
    for (int k = 0; k < batch->num_draws; k++)
        if ((int)batch->draws[k].image == image && pairs_with(&batch->draws[k]) == secondary) return true;
    return false;
}

static int image_of(const struct lr_batch *batch, int primary)
{
    for (int k = 0; k < batch->num_images; k++)
        if (batch->images[k].primary == primary) return k;
    return -1;
}

/* Plans a single point, and moves the eye to it. */
static struct lr_batch plan_point(struct setting *setting, const double point_mm[1][3])
{
    const struct lr_rows rows = {.points_mm = point_mm, .end = 1};
    const struct lr_plan_work work = {.rows = &rows, .window = lr_pair_window_all(setting->lors)};
    struct lr_plan_cursor cursor = {0};
    struct lr_batch batch;
    assert_true(lr_plan_next(setting->plan, &work, &cursor, &batch));
    assert_int_equal(cursor.row, 1);
    eye_place(setting->eye, point_mm[0]);
    return batch;
}

/* --- roles --- */

static void test_roles(void **unused)
{
    uint64_t state = test_seed();
    int num_ties = 0;
    for (int k = 0; k < length_of(scanner_cases); k++) {
        struct setting *setting = setting_open(scanner_cases[k].create(), 1, 512);
        for (int point = 0; point < NUM_TEST_POINTS; point++) {
            double at[1][3];
            test_point(setting->scanner, scanner_cases[k].reach_mm, point, &state, at[0]);
            /* A pair is drawn in at most one of its two directions, with the primary that the rules give. */
            const struct lr_batch batch = plan_point(setting, (const double(*)[3])at);
            for (int n = 0; n < batch.num_draws; n++) {
                const int i = batch.images[batch.draws[n].image].primary, j = pairs_with(&batch.draws[n]);
                assert_true(setting->plan->hiding || batch.draws[n].secondary == (uint32_t)j);
                if (j < 0) continue;
                const double a = setting->eye->modules[i].distance_squared,
                             b = setting->eye->modules[j].distance_squared;
                const int other = image_of(&batch, j);
                assert_all(i != j, setting->eye->modules[i].height > 0, setting->eye->modules[j].height > 0);
                assert_true(a > b || fabs(a - b) <= 1e-9 * a);
                if (fabs(a - b) <= 1e-9 * fmax(a, b)) {
                    assert_true(i < j);
                    ++num_ties;
                }
                assert_false(other >= 0 && draws(&batch, other, i));
                /* Draws come in ascending order of index: of two equal hits the depth test keeps the first, so the
                 * lower index. */
                assert_true(n == 0 || batch.draws[n - 1].image < batch.draws[n].image ||
                            (batch.draws[n - 1].secondary & LR_BEFORE_PRIMARY) != 0 ||
                            (batch.draws[n - 1].secondary & LR_DRAW_MODULE) < (uint32_t)j);
            }
        }
        destroy_kept(NULL);
    }
    print_message("%d draws between equally far modules\n", num_ties);
    assert_true(num_ties > 50);
}

/* At the centre of a ring all modules are equally far away except for rounding: each opposite pair is drawn once, with
 * the lower index as primary. A module sees only modules opposite to it: culling removes most draws. */
static void test_ties_and_culling_at_the_centre(void **unused)
{
    struct setting *setting = setting_open(create_ring_of_8(), 2, 512);
    const struct lr_batch batch = plan_point(setting, (const double[1][3]){{0, 0, 0}});
    for (int i = 0; i < 4; i++) {
        const int image = image_of(&batch, i);
        assert_all(image >= 0, draws(&batch, image, i + 4));
        const int opposite = image_of(&batch, i + 4);
        assert_false(opposite >= 0 && draws(&batch, opposite, i));
    }
    assert_true(batch.num_draws >= 4 && batch.num_draws <= 12);
}

/* --- culling --- */

static void test_nothing_visible_is_culled(void **unused)
{
    uint64_t state = test_seed();
    int met = 0;
    for (int k = 0; k < length_of(scanner_cases) + 20; k++) {
        const bool random = k >= length_of(scanner_cases);
        struct setting *setting = setting_open(random ? create_random(&state) : scanner_cases[k].create(), 1, 512);
        for (int point = 0; point < NUM_TEST_POINTS + (random ? 10 : 0); point++) {
            double at[1][3];
            test_point(setting->scanner, random ? 30 : scanner_cases[k].reach_mm, point, &state, at[0]);
            /* Every module that some line of the primary meets first is among the primary's draws. */
            const struct lr_batch batch = plan_point(setting, (const double(*)[3])at);
            for (int i = 0; i < setting->scanner->num_modules; i++) {
                const int image = image_of(&batch, i);
                if (setting->eye->modules[i].height <= 0) continue;
                for (int pixel = 0; pixel < eye_num_pixels(setting->eye, i); pixel++) {
                    double ray[3], edge;
                    eye_pixel_line(setting->eye, i, pixel, ray);
                    const int j = eye_first_hit(setting->eye, i, ray, &edge);
                    if (j >= 0 && eye_pairs(setting->eye, i, j) && lr_lors_pair(setting->lors, i, j) >= 0) {
                        assert_all(image >= 0, draws(&batch, image, j));
                        met++;
                    }
                }
            }
            met += met;
        }
        destroy_kept(NULL);
    }
    print_message("%d lines met a module\n", met);
    assert_true(met > 10000);
}

/* --- modules that hide others --- */

/* The secondary whose LOR the line belongs to, even if the line ends in a gap; -1: none. */
static int counted(const struct setting *setting, int primary, const struct eye_line *line)
{
    const int j = line->first;
    const bool counts = j >= 0 && !line->stopped && line->from_front && eye_pairs(setting->eye, primary, j) &&
                        lr_lors_pair(setting->lors, primary, j) >= 0;
    return counts ? j : -1;
}

static void test_what_hides_is_listed(void **unused)
{
    uint64_t state = test_seed();
    int counts[3] = {0};
    for (int k = 0; k < 600; k++) {
        lr_scanner *scanner = k == 0 ? create_stacked() : create_crowded(&state);
        struct setting *setting = setting_open(scanner, 2, 1024);
        assert_true(setting->plan->hiding);
        for (int point = 0; point < NUM_TEST_POINTS + 10; point++) {
            double at[1][3];
            test_point(scanner, 60, point, &state, at[0]);
            const struct lr_batch batch = plan_point(setting, (const double(*)[3])at);
            for (int image = 0; image < batch.num_images; image++) {
                /* A line of a primary has the same result among the modules that its image lists as among all
                 * modules. counts[0]: lines stopped on the primary's side, counts[1]: lines stopped by modules that
                 * only stop. */
                const int i = batch.images[image].primary;
                unsigned char listed[16] = {0}; /* for each module the sides on which the image lists it */
                for (int n = 0; n < batch.num_draws; n++) {
                    const struct lr_plan_draw *draw = &batch.draws[n];
                    if ((int)draw->image == image)
                        listed[draw->secondary & LR_DRAW_MODULE] |=
                            draw->secondary & LR_BEFORE_PRIMARY ? EYE_BEFORE : EYE_ACROSS;
                }
                for (int pixel = 0; pixel < eye_num_pixels(setting->eye, i); pixel++) {
                    double ray[3];
                    eye_pixel_line(setting->eye, i, pixel, ray);
                    const struct eye_line all = eye_follow(setting->eye, i, ray, NULL);
                    const struct eye_line some = eye_follow(setting->eye, i, ray, listed);
                    assert_int_equal(counted(setting, i, &all), counted(setting, i, &some));
                    counts[0] += all.stopped && all.first >= 0;
                    counts[1] += some.first >= 0 && !draws(&batch, image, some.first);
                    counts[2] += counted(setting, i, &all) >= 0;
                }
            }
        }
        destroy_kept(NULL);
    }
    print_message("%d lines stopped before the primary, %d by modules that only stop, %d counted\n", counts[0],
                  counts[1], counts[2]);
    assert_true(counts[0] > 10000 && counts[1] > 300 && counts[2] > 10000);
}

/* The blocks of a panel do not hide each other. One module stands in front of them, another one opposite. */
static void test_neighbours_hide_nothing(void **unused)
{
    enum { PANEL = 9, BEFORE = 9, OPPOSITE = 10, NUM_MODULES = 11 };
    const lr_module shape = shape_of(4, 4, 2, 2);
    lr_module modules[NUM_MODULES];
    for (int m = 0; m < PANEL; m++) {
        modules[m] = place_module(&shape, &(struct placement){.radius_mm = 50});
        modules[m].centre_mm[1] = 8 * (m % 3 - 1);
        modules[m].centre_mm[2] = 8 * (m / 3 - 1);
    }
    modules[BEFORE] = place_module(&shape, &(struct placement){.radius_mm = 20, .z_mm = 3});
    modules[OPPOSITE] = place_module(&shape, &(struct placement){.angle = 180, .radius_mm = 45});
    struct setting *setting = setting_open(scanner_of(modules, NUM_MODULES, 0), 1, 256);
    assert_true(setting->plan->hiding);
    int hidden = 0, pairs = 0;
    for (int point = 0; point < 90; point++) {
        const double at[1][3] = {{-42.5 + point, 1.5, -0.7}};
        const struct lr_batch batch = plan_point(setting, at);
        for (int k = 0; k < batch.num_draws; k++) {
            const uint32_t draw = batch.draws[k].secondary;
            const bool hides = draw & (LR_BEFORE_PRIMARY | LR_ONLY_STOPS | LR_HIDES);
            assert_true(!hides || (draw & LR_DRAW_MODULE) == BEFORE);
            hidden += hides;
            pairs += pairs_with(&batch.draws[k]) >= 0;
        }
    }
    assert_true(hidden > 50 && pairs > 100);
}

/* --- batches --- */

/* Goes through all rows and counts each row's images. */
static void count_batches(struct setting *setting, const struct lr_plan_work *work, int atlas_size, int *images_of_row,
                          int *num_batches, int *num_split)
{
    struct lr_plan_cursor cursor = {0};
    struct lr_batch batch;
    *num_batches = *num_split = 0;
    while (lr_plan_next(setting->plan, work, &cursor, &batch)) {
        const struct lr_plan *plan = setting->plan;
        bool *taken = kept(plan->max_images, sizeof(*taken));
        for (int k = 0; k < batch.num_images; k++) {
            const struct lr_plan_image *image = &batch.images[k];
            const int column = image->tile_x / plan->tile[0], row = image->tile_y / plan->tile[1];
            assert_ints(image->tile_x % plan->tile[0], 0, image->tile_y % plan->tile[1], 0);
            assert_true(column >= 0 && column < plan->columns && row >= 0 && row < batch.atlas_rows);
            assert_all(image->tile_x + plan->tile[0] <= atlas_size, image->tile_y + plan->tile[1] <= atlas_size);
            assert_false(taken[row * plan->columns + column]);
            taken[row * plan->columns + column] = true;
        }
        assert_true(batch.num_images <= plan->max_images && batch.num_draws <= plan->max_draws);
        assert_true(batch.atlas_rows <= plan->rows);
        /* Rows ascend, and the images of the rows follow each other without gaps. */
        uint32_t next = 0;
        for (int k = 0; k < batch.num_rows; k++) {
            assert_true(k == 0 || batch.rows[k].row > batch.rows[k - 1].row);
            assert_int_equal(batch.rows[k].first_image, next);
            assert_true(batch.rows[k].end_image > next);
            assert_close((double)batch.rows[k].factor, 1.0 / lr_rows_per_row(work->rows), 1e-7);
            next = batch.rows[k].end_image;
        }
        assert_int_equal(next, batch.num_images);
        for (int k = 0; k < batch.num_draws; k++) assert_true(batch.draws[k].image < (uint32_t)batch.num_images);
        for (int k = 0; k < batch.num_rows; k++)
            images_of_row[batch.rows[k].row] += (int)(batch.rows[k].end_image - batch.rows[k].first_image);
        *num_split += cursor.point > 0;
        ++*num_batches;
        assert_true(*num_batches < 10000);
    }
    assert_ints(batch.num_images, 0, cursor.row, work->rows->end - work->rows->begin);
}

static void test_batches_cover_rows(void **unused)
{
    static const int sizes[] = {48, 60, 100, 333, 1024};
    const lr_grid grid = lr_grid_centred((const int[3]){3, 4, 2}, (const double[3]){4.1, 3.3, 2.7});
    for (int k = 0; k < 5; k++) {
        const struct lr_rows rows = {.grid = &grid, .samples = {2, 1, 3}, .begin = 2, .end = 23};
        int images_of_row[24] = {0}, num_batches, num_split;
        struct setting *setting = setting_open(create_two_rings(), 2, sizes[k]);
        struct setting *single = setting_open(create_two_rings(), 2, 512);
        const struct lr_plan_work work = {.rows = &rows, .window = lr_pair_window_all(setting->lors)};
        count_batches(setting, &work, sizes[k], images_of_row, &num_batches, &num_split);
        print_message("atlas %d: %d tiles, %d batches, %d end within a row\n", sizes[k], setting->plan->max_images,
                      num_batches, num_split);
        for (int row = 0; row < 21; row++) {
            int expected = 0;
            for (int k_point = 0; k_point < 6; k_point++) {
                double point[1][3];
                lr_rows_point(&rows, rows.begin + row, k_point, point[0]);
                expected += plan_point(single, (const double(*)[3])point).num_images;
            }
            assert_int_equal(images_of_row[row], expected);
        }
        assert_all(k > 0 || num_split > 5, k < 4 || num_batches < 5);
        destroy_kept(NULL);
    }
}

/* The point of an image is a float and the float's rounding error, together accurate to 1e-13 of the point. */
static void test_points_keep_their_precision(void **unused)
{
    const double point[1][3] = {{1.23456789012345, -7.65432109876543, 0.000123456789}};
    const struct lr_batch batch = plan_point(setting_open(create_ring_of_8(), 1, 512), point);
    assert_true(batch.num_images > 0);
    for (int k = 0; k < 3; k++)
        assert_close((double)batch.images[0].point[k] + (double)batch.images[0].rest[k], point[0][k], 1e-13);
}

/* --- emission --- */

static void test_zero_emission_is_left_out(void **unused)
{
    const lr_grid grid = lr_grid_centred((const int[3]){4, 3, 1}, (const double[3]){3, 3, 3});
    const struct lr_rows rows = {.grid = &grid, .samples = {1, 2, 1}, .end = 12};
    static const int emitting[3] = {3, 4, 10};
    float emission[12] = {[3] = 2.5f, [4] = 1.0f, [10] = 0.125f};
    struct setting *setting = setting_open(create_ring_of_8(), 1, 512);
    const struct lr_plan_work work = {.rows = &rows, .window = lr_pair_window_all(setting->lors), .emission = emission};
    struct lr_plan_cursor cursor = {0};
    struct lr_batch batch;
    int seen = 0;
    while (lr_plan_next(setting->plan, &work, &cursor, &batch)) {
        for (int k = 0; k < batch.num_rows; k++, seen++) {
            assert_true(seen < 3);
            assert_int_equal(batch.rows[k].row, emitting[seen]);
            for (uint32_t i = batch.rows[k].first_image; i < batch.rows[k].end_image; i++)
                assert_close((double)batch.images[i].scale, emission[batch.rows[k].row] / 2.0, 1e-7);
        }
    }
    assert_int_equal(seen, 3);
    emission[3] = emission[4] = emission[10] = 0;
    cursor = (struct lr_plan_cursor){0};
    while (lr_plan_next(setting->plan, &work, &cursor, &batch)) assert_int_equal(batch.num_images, 0);
}

/* --- windows of LORs --- */

/* The plan of a window renders the images of the window's pairs, and all modules in front of them. */
static void test_windows_plan_their_pairs(void **unused)
{
    const double points[2][3] = {{0, 0, 0}, {2.5, -1.5, 1}};
    const struct lr_rows rows = {.points_mm = points, .end = 2};
    struct setting *setting = setting_open(create_two_rings(), 1, 512);
    struct lr_plan_work work = {.rows = &rows, .window = lr_pair_window_begin(setting->lors, NULL, 0)};
    while (lr_pair_window_next(&work.window, setting->lors->count / 5)) {
        struct lr_plan_cursor cursor = {0};
        struct lr_batch batch;
        while (lr_plan_next(setting->plan, &work, &cursor, &batch)) {
            bool *shows = kept(batch.num_images, sizeof(*shows));
            for (int k = 0; k < batch.num_draws; k++) {
                const int i = batch.images[batch.draws[k].image].primary;
                const int64_t pair = lr_lors_pair(setting->lors, i, (int)batch.draws[k].secondary);
                shows[batch.draws[k].image] |= pair >= work.window.begin && pair < work.window.end;
            }
            for (int k = 0; k < batch.num_images; k++) assert_true(shows[k]);
        }
    }
}

/* --- refusals --- */

static void test_small_atlas_is_refused(void **unused)
{
    struct test_log log = TEST_LOG(log);
    /* 8 modules need 3 x 3 tiles of 12 */
    struct setting *setting = setting_open(create_ring_of_8(), 2, 36);
    assert_ints(setting->plan->tile[0], 12, setting->plan->max_images, 9);
    struct lr_plan_params params = {.lors = setting->lors, .rays = 2, .atlas_size = 35, .log = &log.log};
    assert_null(lr_plan_create(&params));
    assert_error(&log, LR_USAGE, "8 modules");
    params.rays = 100;
    params.atlas_size = 512;
    assert_null(lr_plan_create(&params));
    lr_plan_destroy(NULL);
}

test_main("render_plan", CASES(test_roles, test_ties_and_culling_at_the_centre, test_nothing_visible_is_culled,
                               test_what_hides_is_listed, test_neighbours_hide_nothing, test_batches_cover_rows,
                               test_points_keep_their_precision, test_zero_emission_is_left_out,
                               test_windows_plan_their_pairs, test_small_atlas_is_refused))
