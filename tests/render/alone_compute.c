/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The passes correspondence/points/forward.comp, back.comp, rows.comp and collect.comp, each alone: sampled, exact,
 * with modules that hide others, attenuation along lines, and crystal penetration. */
#include "alone.h"

#include "correspondence/compute/points/points.h"

enum { NUM_VALUES = 16 };

/* Sums of up to a dozen floats of one sign: each addition rounds by 6e-8. */
static const double sum_tolerance = 1e-6;

static void end_points(void *points)
{
    lr_points_destroy(points);
}

static struct lr_points *points_open(struct alone *alone)
{
    const struct lr_method_params params = alone_method(alone);
    struct lr_points *points = lr_points_create(&params);
    alone_check(alone, points != NULL);
    keep_object(points, end_points);
    alone_check(alone, lr_scene_set_window(&points->scene, &alone->window) == LR_OK);
    return points;
}

/* Plans all images of the voxels with emission (NULL: all voxels) as one batch, and uploads the batch; voxel_of:
 * [image]. */
static struct lr_batch plan_batch(struct alone *alone, struct lr_points *points, const float *emission,
                                  int64_t **voxel_of)
{
    const struct lr_plan_work work = {.rows = &alone->rows, .window = alone->window, .emission = emission};
    struct lr_plan_cursor cursor = {0};
    struct lr_batch batch, none;
    assert_true(lr_plan_next(points->plan, &work, &cursor, &batch));
    alone_check(alone, lr_points_upload(points, &batch) == LR_OK);
    *voxel_of = kept(batch.num_images, sizeof(int64_t));
    for (int r = 0; r < batch.num_rows; r++)
        for (uint32_t k = batch.rows[r].first_image; k < batch.rows[r].end_image; k++)
            (*voxel_of)[k] = batch.rows[r].row;
    const struct lr_plan_cursor end = cursor;
    assert_false(lr_plan_next(points->plan, &work, &cursor, &none)); /* one batch holds all */
    assert_int_equal(end.row, cursor.row);
    batch.images = NULL; /* arrays of the plan, not valid any more */
    batch.draws = NULL;
    batch.rows = NULL;
    return batch;
}

/* --- rows --- */

static void check_rows(struct alone *alone, struct lr_points *points)
{
    int64_t *voxel_of;
    struct alone_elements elements = alone_elements_open(alone);
    const struct lr_batch batch = plan_batch(alone, points, NULL, &voxel_of);
    const struct lr_points_output output = {
        .buffer = elements.buffer, .num_lors = alone->num_values, .capacity = elements.capacity};
    alone_check(alone, lr_points_run(points, LR_POINTS_ROWS, &batch, &output) == LR_OK);
    alone_elements_compare(alone, "rows", &elements, voxel_of);
}

/* --- forward --- */

static void forward_voxel(struct alone *alone, void *device, int64_t voxel, double *found)
{
    struct lr_points *points = device;
    int64_t *voxel_of;
    struct gl_buffer *buffer = device_buffer(4 * alone->num_values, NULL);
    const struct lr_batch batch = plan_batch(alone, points, alone_one_voxel(alone, voxel), &voxel_of);
    const struct lr_points_output output = {.buffer = buffer, .num_lors = alone->num_values};
    alone_check(alone, lr_points_run(points, LR_POINTS_FORWARD, &batch, &output) == LR_OK);
    const float *values = device_read(buffer, alone->num_values, sizeof(float));
    for (int64_t k = 0; k < alone->num_values; k++) found[k] = (double)values[k];
}

static void check_forward(struct alone *alone, struct lr_points *points)
{
    alone_check_forward(alone, points, forward_voxel);
}

/* --- back --- */

/* The sums of the images are added up here for each voxel. */
static void back_alone(struct alone *alone, void *device, const float *values, double *image)
{
    struct lr_points *points = device;
    int64_t *voxel_of;
    struct gl_buffer *buffer = device_buffer(4 * alone->num_values, values);
    const struct lr_batch batch = plan_batch(alone, points, NULL, &voxel_of);
    const struct lr_points_output output = {.buffer = buffer, .num_lors = alone->num_values};
    alone_check(alone, lr_points_run(points, LR_POINTS_BACK, &batch, &output) == LR_OK);
    const float *sums = device_read(points->sums, batch.num_images, sizeof(float));
    memset(image, 0, (size_t)alone->num_voxels * sizeof(*image));
    for (int k = 0; k < batch.num_images; k++) image[voxel_of[k]] += (double)sums[k] / alone->per_row;
}

static void check_back(struct alone *alone, struct lr_points *points)
{
    alone_check_back(alone, points, back_alone, NUM_VALUES);
}

/* --- cases --- */

static const struct alone_case plain_cases[] = {
    {.scanner = "tilted", .rays = 2, .samples = {1, 2, 1}},
    {.scanner = "ruled tilted", .off_centre = true},
    {.scanner = "ge-explore-vista-dr", .off_centre = true, .size = {2, 2, 3}, .pairs = 3},
    {.scanner = "tilted", .size = {2, 2, 2}},
    {0}};

/* Modules stop lines to others. */
static const struct alone_case hidden_cases[] = {{.scanner = "stacked", .rays = 2}, {.scanner = "stacked"}, {0}};

/* Matter attenuates along lines, and photons penetrate crystals. */
static const struct alone_case absorbed_cases[] = {
    {.scanner = "oblique", .rays = 2, .off_centre = true, .absorption = true},
    {.scanner = "oblique", .absorption = true},
    {.scanner = "flipped", .rays = 2, .penetration = true, .size = {2, 2, 2}},
    {0}};

/* A test: a check on some cases. */
struct check {
    const struct alone_case *cases;
    void (*run)(struct alone *alone, struct lr_points *points);
};

static void check_cases(void **state)
{
    const struct check *check = *state;
    for (const struct alone_case *at = check->cases; at->scanner != NULL; at++) {
        struct alone *alone = alone_open(at);
        struct lr_points *points = points_open(alone);
        assert_true(points->plan->hiding == (strcmp(at->scanner, "stacked") == 0));
        check->run(alone, points);
        destroy_kept(NULL);
    }
}

/* Rows with one, many and no images, in voxels far apart; collecting adds to a voxel's earlier value. */
static void test_collect(void **context)
{
    enum { NUM_SUMS = 20, NUM_VOXELS = 70, NUM_ROWS = 4 };
    const struct alone_case at = {.scanner = "oblique", .rays = 1};
    const struct lr_plan_row rows[NUM_ROWS] = {{0, 1, 3, 1.0f}, {1, 7, 0, 0.5f}, {7, 7, 33, 2.0f}, {7, 20, 69, 0.125f}};
    struct alone *alone = alone_open(&at);
    struct lr_points *points = points_open(alone);
    double want[NUM_VOXELS];
    const float *sums = kept_random_floats(NUM_SUMS, 1, 2, &alone->state);
    const float *before = kept_random_floats(NUM_VOXELS, 1, 2, &alone->state);
    for (int k = 0; k < NUM_VOXELS; k++) want[k] = (double)before[k];
    for (int r = 0; r < NUM_ROWS; r++)
        for (uint32_t k = rows[r].first_image; k < rows[r].end_image; k++)
            want[rows[r].row] += (double)sums[k] * (double)rows[r].factor;
    const struct lr_batch batch = {.rows = rows, .num_rows = NUM_ROWS};
    struct gl_buffer *voxels = device_buffer(NUM_VOXELS * 4, before);
    alone_check(alone, lr_points_upload(points, &batch) == LR_OK);
    alone_check(alone, gl_buffer_upload(points->sums, 0, NUM_SUMS * 4, sums) == LR_OK);
    alone_check(alone, lr_points_collect(points, &batch, voxels) == LR_OK);
    const float *after = device_read(voxels, NUM_VOXELS, sizeof(float));
    for (int k = 0; k < NUM_VOXELS; k++) assert_close((double)after[k], want[k], sum_tolerance);
}

stage_main("render_alone_compute",
           {"test_forward", check_cases, NULL, NULL, &(struct check){plain_cases, check_forward}},
           {"test_forward_hidden", check_cases, NULL, NULL, &(struct check){hidden_cases, check_forward}},
           {"test_forward_absorbed", check_cases, NULL, NULL, &(struct check){absorbed_cases, check_forward}},
           {"test_back", check_cases, NULL, NULL, &(struct check){plain_cases, check_back}},
           {"test_back_hidden", check_cases, NULL, NULL, &(struct check){hidden_cases, check_back}},
           {"test_back_absorbed", check_cases, NULL, NULL, &(struct check){absorbed_cases, check_back}},
           {"test_rows", check_cases, NULL, NULL, &(struct check){plain_cases, check_rows}},
           {"test_rows_hidden", check_cases, NULL, NULL, &(struct check){hidden_cases, check_rows}},
           {"test_rows_absorbed", check_cases, NULL, NULL, &(struct check){absorbed_cases, check_rows}},
           CASE(test_collect))
