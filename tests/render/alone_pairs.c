/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * correspondence/pairs/forward.comp, correspondence/pairs/back.comp and correspondence/pairs/rows.comp, each alone: every element of forward and
 * of the rows; of back some LORs' elements one by one, and all of them in sums. */
#include "alone_elements.h"

#include "common/bindings.h"
#include "correspondence/compute/pairs/pairs.h"

enum { NUM_VALUES = 24, BLOCK = 4 };

/* A pass by pairs, and what it reads and writes. */
struct run {
    struct alone *alone;
    struct lr_pairs *pairs;
    enum lr_pairs_program which;
    const struct gl_buffer *list; /* of module pairs */
    const struct gl_buffer *points, *output;
    struct lr_pairs_pass uniforms;
    int groups[3];
};

static struct gl_buffer *upload_list(struct alone *alone, const struct lr_pairs *pairs)
{
    const int64_t range[2] = {0, alone->list.num_pairs};
    struct gl_buffer *buffer = lr_pairs_upload_list(pairs, &alone->list, range);
    alone_check(alone, buffer != NULL);
    return buffer;
}

static void run_once(const struct run *run)
{
    struct gl_program *program = lr_pairs_program(run->pairs, run->which);
    alone_check(run->alone, program != NULL);
    struct gl_pass pass = {.label = "pairs alone",
                           .program = program,
                           .uniforms = &run->uniforms,
                           .uniform_bytes = sizeof(run->uniforms),
                           .groups = {run->groups[0], run->groups[1], run->groups[2]},
                           .barriers = GL_SHADER_STORAGE_BARRIER_BIT | GL_BUFFER_UPDATE_BARRIER_BIT};
    lr_pairs_bind_scene(run->pairs, &pass);
    pass.buffers[LR_BIND_PAIR_LIST].buffer = run->list;
    pass.buffers[LR_BIND_PAIR_IMAGE].buffer = run->pairs->image;
    pass.buffers[LR_BIND_PAIR_POINTS].buffer = run->points;
    pass.buffers[LR_BIND_OUTPUT].buffer = run->output;
    alone_check(run->alone, gl_pass_run(run->alone->ctx, &pass) == LR_OK);
}

/* All pairs, one by one. */
static void run_pairs(struct run *run)
{
    for (int64_t k = 0; k < run->alone->list.num_pairs; k++) {
        run->uniforms.range[0] = (int32_t)k;
        run->uniforms.range[1] = (int32_t)k + 1;
        run_once(run);
    }
}

/* Every sample point of the voxels. */
static void run_points(struct run *run)
{
    const int *size = run->alone->grid.size, *samples = run->alone->at->samples;
    run->uniforms = lr_pairs_uniforms(run->pairs);
    run->uniforms.scale[1] = 1;
    for (int k = 0; k < 3; k++) run->groups[k] = gl_divide_up(size[k], BLOCK);
    for (int point = 0; point < samples[0] * samples[1] * samples[2]; point++) {
        run->uniforms.num_samples[3] = point;
        run_pairs(run);
    }
    alone_check(run->alone, lr_pairs_check_finished(run->pairs) == LR_OK);
}

static void put_voxel(struct alone *alone, struct lr_pairs *pairs, int64_t voxel)
{
    float *image = test_alloc(alone->num_voxels, sizeof(*image));
    image[voxel] = 1;
    alone_check(alone, gl_buffer_upload(pairs->image, 0, alone->num_voxels * 4, image) == LR_OK);
    free(image);
}

/* --- forward --- */

static void read_values(struct alone *alone, const struct gl_buffer *buffer, double *found)
{
    if (alone->at->deterministic) {
        alone_read_fixed(alone, buffer, alone->num_values, found);
        return;
    }
    float *values = test_alloc(alone->num_values, sizeof(*values));
    alone_check(alone, gl_buffer_read(buffer, 0, alone->num_values * 4, values) == LR_OK);
    for (int64_t k = 0; k < alone->num_values; k++) found[k] = (double)values[k];
    free(values);
}

static void check_forward(struct alone *alone, struct lr_pairs *pairs)
{
    double *found = test_alloc(alone->num_voxels * alone->num_values, sizeof(*found));
    struct gl_buffer *list = upload_list(alone, pairs);
    struct gl_buffer *values = gl_buffer_create(
        alone->ctx, &(struct gl_buffer_params){.label = "values", .size_bytes = 8 * (alone->num_values + 1)});
    alone_check(alone, values != NULL);
    for (int64_t voxel = 0; voxel < alone->num_voxels; voxel++) {
        struct run run = {alone, pairs, LR_PAIRS_FORWARD, .list = list, .output = values};
        gl_buffer_clear(values, 0);
        put_voxel(alone, pairs, voxel);
        run_points(&run);
        read_values(alone, values, found + voxel * alone->num_values);
    }
    alone_compare(alone, alone->at->deterministic ? "forward in fixed point" : "forward", found);
    gl_buffer_destroy(values);
    gl_buffer_destroy(list);
    free(found);
}

/* --- back --- */

static void back_alone(struct alone *alone, void *device, const float *values, double *image)
{
    struct lr_pairs *pairs = device;
    float *sums = test_alloc(alone->num_voxels, sizeof(*sums));
    struct gl_buffer *list = upload_list(alone, pairs);
    struct gl_buffer *buffer = gl_buffer_create(
        alone->ctx, &(struct gl_buffer_params){.label = "values", .size_bytes = 4 * alone->num_values, .data = values});
    alone_check(alone, buffer != NULL);
    struct run run = {alone, pairs, LR_PAIRS_BACK, .list = list, .output = buffer};
    gl_buffer_clear(pairs->image, 0);
    run_points(&run);
    alone_check(alone, gl_buffer_read(pairs->image, 0, alone->num_voxels * 4, sums) == LR_OK);
    for (int64_t v = 0; v < alone->num_voxels; v++) image[v] = (double)sums[v];
    gl_buffer_destroy(buffer);
    gl_buffer_destroy(list);
    free(sums);
}

static void check_back(struct alone *alone, struct lr_pairs *pairs)
{
    alone_check_back(alone, pairs, back_alone, NUM_VALUES);
}

/* --- rows --- */

static struct gl_buffer *upload_points(struct alone *alone)
{
    const struct lr_rows rows = alone_rows(alone);
    const int per_row = lr_rows_per_row(&rows);
    const int64_t count = alone->num_voxels * per_row;
    double(*points)[4] = test_alloc(count, sizeof(*points));
    for (int64_t n = 0; n < count; n++) lr_rows_point(&rows, n / per_row, (int)(n % per_row), points[n]);
    struct gl_buffer *buffer = gl_buffer_create(
        alone->ctx, &(struct gl_buffer_params){.label = "points", .size_bytes = count * 32, .data = points});
    alone_check(alone, buffer != NULL);
    free(points);
    return buffer;
}

static void check_rows(struct alone *alone, struct lr_pairs *pairs)
{
    static const enum lr_pairs_program programs[] = {LR_PAIRS_ROWS, LR_PAIRS_POINT_ROWS};
    for (int k = 0; k < 2; k++) {
        struct alone_elements elements = alone_elements_open(alone);
        struct gl_buffer *list = upload_list(alone, pairs), *points = upload_points(alone);
        struct run run = {alone, pairs, programs[k], list, points, .output = elements.buffer};
        run.uniforms = lr_pairs_uniforms(pairs);
        run.groups[0] = gl_divide_up(elements.num_points, LR_GROUP_SIZE);
        run.groups[1] = run.groups[2] = 1;
        run.uniforms.list[1] = elements.num_points;
        run.uniforms.list[2] = (int32_t)elements.capacity;
        run_pairs(&run);
        gl_buffer_destroy(points);
        gl_buffer_destroy(list);
        alone_elements_compare(alone, k == 0 ? "rows of voxels" : "rows of points", &elements);
    }
}

/* --- cases --- */

/* Modules so far away that none is near, and that face each other. */
static lr_scanner *create_far(void)
{
    const lr_module shape = shape_of(9, 8, 2.0, 1.9);
    const lr_module modules[2] = {place_module(&shape, &(struct placement){90, 200, 0, 0, 0, 0}),
                                  place_module(&shape, &(struct placement){270, 200, 0, 6, 16, 4})};
    return scanner_of(modules, 2, 0);
}

static const struct scanner_case far_apart = {"far apart", create_far, 8};

static const struct alone_case cases[] = {
    {.scanner = "far apart", .own = &far_apart, .mode = LR_MODE_EXACT, .samples = {1, 1, 2}},
    {.scanner = "tilted", .mode = LR_MODE_EXACT, .samples = {1, 1, 1}, .off_centre = true},
    {.scanner = "ruled tilted", .mode = LR_MODE_EXACT, .samples = {2, 1, 2}},
    {.scanner = "flipped", .mode = LR_MODE_EXACT, .samples = {1, 1, 1}, .near = true},
    {.scanner = "ge-explore-vista-dr",
     .mode = LR_MODE_EXACT,
     .samples = {1, 1, 1},
     .is_preset = true,
     .off_centre = true,
     .size = {2, 2, 3},
     .pairs = 3},
    {.scanner = "tilted", .mode = LR_MODE_EXACT, .samples = {1, 1, 1}, .deterministic = true, .size = {2, 2, 2}},
};
enum { NUM_CASES = sizeof(cases) / sizeof(cases[0]) };

/* What programs were compiled for. */
struct variants {
    int masks, near, horizon, plain;
};

typedef void check_pairs(struct alone *alone, struct lr_pairs *pairs);

static void each_case(struct gl_context *ctx, check_pairs *check)
{
    struct variants variants = {0};
    for (int k = 0; k < NUM_CASES; k++) {
        struct alone alone;
        alone_open(&alone, ctx, &cases[k]);
        const struct lr_method_params params = alone_method(&alone);
        struct lr_pairs *pairs = lr_pairs_create(&params);
        alone_check(&alone, pairs != NULL);
        check(&alone, pairs);
        variants.masks += pairs->has_masks;
        variants.near += pairs->may_be_near;
        variants.horizon += pairs->meets_horizon;
        variants.plain += !pairs->may_be_near && !pairs->meets_horizon;
        lr_pairs_destroy(pairs);
        alone_close(&alone);
    }
    print_message("%d with masks, %d near, %d with a horizon, %d plain\n", variants.masks, variants.near,
                  variants.horizon, variants.plain);
    assert_true(variants.masks > 0 && variants.near > 0 && variants.horizon > 0);
    assert_true(variants.plain > 0);
}

static void test_forward(void **context)
{
    each_case(*context, check_forward);
}

static void test_back(void **context)
{
    each_case(*context, check_back);
}

static void test_rows(void **context)
{
    each_case(*context, check_rows);
}

alone_main("render_alone_pairs", cmocka_unit_test(test_forward), cmocka_unit_test(test_back),
           cmocka_unit_test(test_rows))
