/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * correspondence/points/forward.comp, correspondence/points/back.comp, correspondence/points/rows.comp and correspondence/points/collect.comp, each alone:
 * sampled, exact, with modules that hide others, absorption along lines, and crystal penetration. */
#include "alone_elements.h"

#include "correspondence/compute/points/points.h"

enum { NUM_VALUES = 16 };

/* Sums of up to a dozen floats of one sign: each addition rounds by 6e-8. */
static const double sum_tolerance = 1e-6;

static struct lr_points *points_open(struct alone *alone)
{
    const struct lr_method_params params = alone_method(alone);
    struct lr_points *points = lr_points_create(&params);
    alone_check(alone, points != NULL);
    alone_check(alone, lr_scene_set_window(&points->scene, &alone->window) == LR_OK);
    return points;
}

/* What a batch's images are of: voxel_of[image]. */
struct images {
    int64_t *voxel_of;
    int count;
};

/* Plans all images of the voxels that `emission` has (NULL: all) as one batch, and uploads it. */
static struct lr_batch plan_batch(struct alone *alone, struct lr_points *points, const float *emission,
                                  struct images *images)
{
    const struct lr_rows rows = alone_rows(alone);
    const struct lr_plan_work work = {.rows = &rows, .window = alone->window, .emission = emission};
    struct lr_plan_cursor cursor = {0};
    struct lr_batch batch, none;
    assert_true(lr_plan_next(points->plan, &work, &cursor, &batch));
    alone_check(alone, lr_points_upload(points, &batch) == LR_OK);
    *images = (struct images){test_alloc(batch.num_images, sizeof(int64_t)), batch.num_images};
    for (int r = 0; r < batch.num_rows; r++)
        for (uint32_t k = batch.rows[r].first_image; k < batch.rows[r].end_image; k++)
            images->voxel_of[k] = batch.rows[r].row;
    const struct lr_plan_cursor end = cursor;
    assert_false(lr_plan_next(points->plan, &work, &cursor, &none)); /* one batch holds all */
    assert_int_equal(end.row, cursor.row);
    return (struct lr_batch){.num_images = images->count,
                             .num_draws = batch.num_draws,
                             .num_rows = batch.num_rows,
                             .most_draws = batch.most_draws};
}

static struct gl_buffer *make_buffer(struct alone *alone, int64_t bytes, const void *data)
{
    struct gl_buffer *buffer =
        gl_buffer_create(alone->ctx, &(struct gl_buffer_params){.label = "values", .size_bytes = bytes, .data = data});
    alone_check(alone, buffer != NULL);
    return buffer;
}

/* --- rows --- */

static void check_rows(struct alone *alone, struct lr_points *points)
{
    struct images images;
    struct alone_elements elements = alone_elements_open(alone);
    const struct lr_batch batch = plan_batch(alone, points, NULL, &images);
    const struct lr_points_output output = {
        .buffer = elements.buffer, .num_lors = alone->num_values, .capacity = elements.capacity};
    double *found = test_alloc(alone->num_voxels * alone->num_values, sizeof(*found));
    alone_check(alone, lr_points_run(points, LR_POINTS_ROWS, &batch, &output) == LR_OK);
    alone_elements_add(alone, &elements, images.voxel_of, found);
    alone_compare(alone, "rows", found);
    gl_buffer_destroy(elements.buffer);
    free(found);
    free(images.voxel_of);
}

/* --- forward --- */

static void forward_voxel(struct alone *alone, struct lr_points *points, int64_t voxel, double *found)
{
    struct images images;
    const int64_t count = alone->num_values;
    float *emission = test_alloc(alone->num_voxels, sizeof(*emission));
    float *values = test_alloc(count, sizeof(*values));
    emission[voxel] = 1;
    struct gl_buffer *buffer = make_buffer(alone, 4 * count, NULL);
    const struct lr_batch batch = plan_batch(alone, points, emission, &images);
    const struct lr_points_output output = {.buffer = buffer, .num_lors = count};
    alone_check(alone, lr_points_run(points, LR_POINTS_FORWARD, &batch, &output) == LR_OK);
    alone_check(alone, gl_buffer_read(buffer, 0, count * 4, values) == LR_OK);
    for (int64_t k = 0; k < count; k++) found[k] = (double)values[k];
    gl_buffer_destroy(buffer);
    free(images.voxel_of);
    free(values);
    free(emission);
}

static void check_forward(struct alone *alone, struct lr_points *points)
{
    double *found = test_alloc(alone->num_voxels * alone->num_values, sizeof(*found));
    for (int64_t voxel = 0; voxel < alone->num_voxels; voxel++)
        forward_voxel(alone, points, voxel, found + voxel * alone->num_values);
    alone_compare(alone, "forward", found);
    free(found);
}

/* --- back --- */

/* The sums of the images, added up for their voxels here. */
static void back_alone(struct alone *alone, void *device, const float *values, double *image)
{
    struct lr_points *points = device;
    struct images images;
    const struct lr_rows rows = alone_rows(alone);
    struct gl_buffer *buffer = make_buffer(alone, 4 * alone->num_values, values);
    const struct lr_batch batch = plan_batch(alone, points, NULL, &images);
    const struct lr_points_output output = {.buffer = buffer, .num_lors = alone->num_values};
    float *sums = test_alloc(images.count, sizeof(*sums));
    alone_check(alone, lr_points_run(points, LR_POINTS_BACK, &batch, &output) == LR_OK);
    alone_check(alone, gl_buffer_read(points->sums, 0, images.count * 4LL, sums) == LR_OK);
    memset(image, 0, (size_t)alone->num_voxels * sizeof(*image));
    for (int k = 0; k < images.count; k++) image[images.voxel_of[k]] += (double)sums[k] / lr_rows_per_row(&rows);
    gl_buffer_destroy(buffer);
    free(sums);
    free(images.voxel_of);
}

static void check_back(struct alone *alone, struct lr_points *points)
{
    alone_check_back(alone, points, back_alone, NUM_VALUES);
}

/* --- cases --- */

static const struct alone_case plain_cases[] = {
    {.scanner = "tilted", .mode = LR_MODE_SAMPLED, .rays = 2, .samples = {1, 2, 1}},
    {.scanner = "ruled tilted", .mode = LR_MODE_EXACT, .samples = {1, 1, 1}, .off_centre = true},
    {.scanner = "ge-explore-vista-dr",
     .mode = LR_MODE_EXACT,
     .samples = {1, 1, 1},
     .is_preset = true,
     .off_centre = true,
     .size = {2, 2, 3},
     .pairs = 3},
    {.scanner = "tilted", .mode = LR_MODE_EXACT, .samples = {1, 1, 1}, .size = {2, 2, 2}},
};

/* Modules stop lines to others. */
static const struct alone_case hidden_cases[] = {
    {.scanner = "stacked", .mode = LR_MODE_SAMPLED, .rays = 2, .samples = {1, 1, 1}},
    {.scanner = "stacked", .mode = LR_MODE_EXACT, .samples = {1, 1, 1}},
};

/* Matter absorbs along lines, and crystals let them through. */
static const struct alone_case absorbed_cases[] = {
    {.scanner = "oblique",
     .mode = LR_MODE_SAMPLED,
     .rays = 2,
     .samples = {1, 1, 1},
     .off_centre = true,
     .absorption = true},
    {.scanner = "oblique", .mode = LR_MODE_EXACT, .samples = {1, 1, 1}, .absorption = true},
    {.scanner = "flipped",
     .mode = LR_MODE_SAMPLED,
     .rays = 2,
     .samples = {1, 1, 1},
     .penetration = true,
     .size = {2, 2, 2}},
};

enum {
    NUM_PLAIN = sizeof(plain_cases) / sizeof(plain_cases[0]),
    NUM_HIDDEN = sizeof(hidden_cases) / sizeof(hidden_cases[0]),
    NUM_ABSORBED = sizeof(absorbed_cases) / sizeof(absorbed_cases[0])
};

typedef void check_compute(struct alone *alone, struct lr_points *points);

static void check_case(struct gl_context *ctx, const struct alone_case *at, check_compute *check)
{
    struct alone alone;
    struct lr_points *points;
    alone_open(&alone, ctx, at);
    points = points_open(&alone);
    assert_true(points->plan->hiding == (strcmp(at->scanner, "stacked") == 0));
    check(&alone, points);
    lr_points_destroy(points);
    alone_close(&alone);
}

static void check_cases(struct gl_context *ctx, const struct alone_case *cases, int num_cases, check_compute *check)
{
    for (int k = 0; k < num_cases; k++) check_case(ctx, &cases[k], check);
}

static void test_forward(void **context)
{
    check_cases(*context, plain_cases, NUM_PLAIN, check_forward);
}

static void test_forward_hidden(void **context)
{
    check_cases(*context, hidden_cases, NUM_HIDDEN, check_forward);
}

static void test_forward_absorbed(void **context)
{
    check_cases(*context, absorbed_cases, NUM_ABSORBED, check_forward);
}

static void test_back(void **context)
{
    check_cases(*context, plain_cases, NUM_PLAIN, check_back);
}

static void test_back_hidden(void **context)
{
    check_cases(*context, hidden_cases, NUM_HIDDEN, check_back);
}

static void test_back_absorbed(void **context)
{
    check_cases(*context, absorbed_cases, NUM_ABSORBED, check_back);
}

static void test_rows(void **context)
{
    check_cases(*context, plain_cases, NUM_PLAIN, check_rows);
}

static void test_rows_hidden(void **context)
{
    check_cases(*context, hidden_cases, NUM_HIDDEN, check_rows);
}

static void test_rows_absorbed(void **context)
{
    check_cases(*context, absorbed_cases, NUM_ABSORBED, check_rows);
}

/* Rows of one, many and no images, in voxels far apart; a voxel keeps what it had. */
static void test_collect(void **context)
{
    enum { NUM_SUMS = 20, NUM_VOXELS = 70, NUM_ROWS = 4 };
    const struct alone_case at = {.scanner = "oblique", .mode = LR_MODE_SAMPLED, .rays = 1, .samples = {1, 1, 1}};
    const struct lr_plan_row rows[NUM_ROWS] = {{0, 1, 3, 1.0f}, {1, 7, 0, 0.5f}, {7, 7, 33, 2.0f}, {7, 20, 69, 0.125f}};
    struct alone alone;
    struct lr_points *points;
    float sums[NUM_SUMS], before[NUM_VOXELS], after[NUM_VOXELS];
    alone_open(&alone, *context, &at);
    points = points_open(&alone);
    double want[NUM_VOXELS];
    for (int k = 0; k < NUM_SUMS; k++) sums[k] = (float)random_between(&alone.state, 1, 2);
    for (int k = 0; k < NUM_VOXELS; k++) {
        before[k] = (float)random_between(&alone.state, 1, 2);
        want[k] = (double)before[k];
    }
    for (int r = 0; r < NUM_ROWS; r++)
        for (uint32_t k = rows[r].first_image; k < rows[r].end_image; k++)
            want[rows[r].row] += (double)sums[k] * (double)rows[r].factor;
    const struct lr_batch batch = {.rows = rows, .num_rows = NUM_ROWS};
    struct gl_buffer *voxels = make_buffer(&alone, sizeof(before), before);
    alone_check(&alone, lr_points_upload(points, &batch) == LR_OK);
    alone_check(&alone, gl_buffer_upload(points->sums, 0, sizeof(sums), sums) == LR_OK);
    alone_check(&alone, lr_points_collect(points, &batch, voxels) == LR_OK);
    alone_check(&alone, gl_buffer_read(voxels, 0, sizeof(after), after) == LR_OK);
    for (int k = 0; k < NUM_VOXELS; k++) assert_close((double)after[k], want[k], sum_tolerance);
    gl_buffer_destroy(voxels);
    lr_points_destroy(points);
    alone_close(&alone);
}

alone_main("render_alone_compute", cmocka_unit_test(test_forward), cmocka_unit_test(test_forward_hidden),
           cmocka_unit_test(test_forward_absorbed), cmocka_unit_test(test_back), cmocka_unit_test(test_back_hidden),
           cmocka_unit_test(test_back_absorbed), cmocka_unit_test(test_rows), cmocka_unit_test(test_rows_hidden),
           cmocka_unit_test(test_rows_absorbed), cmocka_unit_test(test_collect))
