/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The passes correspondence/pairs/forward.comp, back.comp and rows.comp, each alone. Forward and rows: every element.
 * Back: the elements of some LORs one by one, and all elements in sums. */
#include "alone.h"

#include "common/bindings.h"
#include "correspondence/compute/pairs/pairs.h"

enum { NUM_VALUES = 24, BLOCK = 4 };

/* A pass by pairs, with its inputs and outputs. */
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
    return keep_object(lr_pairs_upload_list(pairs, &alone->list, range), device_end_buffer);
}

/* Runs all pairs, one by one. */
static void run_pairs(struct run *run)
{
    for (int64_t k = 0; k < run->alone->list.num_pairs; k++) {
        run->uniforms.range[0] = (int32_t)k;
        run->uniforms.range[1] = (int32_t)k + 1;
        struct gl_pass pass = alone_pass(run->alone, lr_pairs_program(run->pairs, run->which), &run->uniforms,
                                         sizeof(run->uniforms), run->groups);
        lr_pairs_bind_scene(run->pairs, &pass);
        bind_buffers(&pass, LR_BIND_PAIR_LIST, run->list, LR_BIND_PAIR_IMAGE, run->pairs->image, LR_BIND_PAIR_POINTS,
                     run->points, LR_BIND_OUTPUT, run->output);
        alone_check(run->alone, gl_pass_run(run->alone->ctx, &pass) == LR_OK);
    }
}

/* Runs all sample points of the voxels. */
static void run_points(struct run *run)
{
    run->uniforms = lr_pairs_uniforms(run->pairs);
    run->uniforms.scale[1] = 1;
    for (int k = 0; k < 3; k++) run->groups[k] = gl_divide_up(run->alone->grid.size[k], BLOCK);
    for (int point = 0; point < run->alone->per_row; point++) {
        run->uniforms.num_samples[3] = point;
        run_pairs(run);
    }
    alone_check(run->alone, lr_pairs_check_finished(run->pairs) == LR_OK);
}

/* --- forward --- */

static void forward_voxel(struct alone *alone, void *device, int64_t voxel, double *found)
{
    struct lr_pairs *pairs = device;
    struct gl_buffer *list = upload_list(alone, pairs), *sums = device_buffer(8 * (alone->num_values + 1), NULL);
    struct run run = {alone, pairs, LR_PAIRS_FORWARD, .list = list, .output = sums};
    const float *image = alone_one_voxel(alone, voxel);
    gl_buffer_clear(sums, 0);
    alone_check(alone, gl_buffer_upload(pairs->image, 0, alone->num_voxels * 4, image) == LR_OK);
    run_points(&run);
    if (alone->at->deterministic) {
        alone_read_fixed(alone, sums, alone->num_values, found);
    } else {
        const float *values = device_read(sums, alone->num_values, sizeof(float));
        for (int64_t k = 0; k < alone->num_values; k++) found[k] = (double)values[k];
    }
}

/* --- back --- */

static void back_alone(struct alone *alone, void *device, const float *values, double *image)
{
    struct lr_pairs *pairs = device;
    struct gl_buffer *list = upload_list(alone, pairs), *buffer = device_buffer(4 * alone->num_values, values);
    struct run run = {alone, pairs, LR_PAIRS_BACK, .list = list, .output = buffer};
    gl_buffer_clear(pairs->image, 0);
    run_points(&run);
    const float *sums = device_read(pairs->image, alone->num_voxels, sizeof(float));
    for (int64_t v = 0; v < alone->num_voxels; v++) image[v] = (double)sums[v];
}

/* --- rows --- */

static struct gl_buffer *upload_points(struct alone *alone)
{
    const int64_t count = alone->num_voxels * alone->per_row;
    double(*points)[4] = kept(count, sizeof(*points));
    for (int64_t n = 0; n < count; n++)
        lr_rows_point(&alone->rows, n / alone->per_row, (int)(n % alone->per_row), points[n]);
    return device_buffer(count * 32, points);
}

static void test_rows(struct alone *alone, struct lr_pairs *pairs)
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
        alone_elements_compare(alone, k == 0 ? "rows of voxels" : "rows of points", &elements, NULL);
    }
}

static void test_forward(struct alone *alone, struct lr_pairs *pairs)
{
    alone_check_forward(alone, pairs, forward_voxel);
}

static void test_back(struct alone *alone, struct lr_pairs *pairs)
{
    alone_check_back(alone, pairs, back_alone, NUM_VALUES);
}

/* --- cases --- */

static const struct alone_case cases[] = {
    {.scanner = "far apart", .samples = {1, 1, 2}},
    {.scanner = "tilted", .off_centre = true},
    {.scanner = "ruled tilted", .samples = {2, 1, 2}},
    {.scanner = "flipped", .near = true},
    {.scanner = "ge-explore-vista-dr", .off_centre = true, .size = {2, 2, 3}, .pairs = 3},
    {.scanner = "tilted", .deterministic = true, .size = {2, 2, 2}}};

/* Properties for which programs are compiled. */
struct variants {
    int masks, near, horizon, plain;
};

typedef void check_pairs(struct alone *alone, struct lr_pairs *pairs);

static void end_pairs(void *pairs)
{
    lr_pairs_destroy(pairs);
}

static void each_case(void **state)
{
    check_pairs *check = (check_pairs *)given_check(state);
    struct variants variants = {0};
    for (int k = 0; k < length_of(cases); k++) {
        struct alone *alone = alone_open(&cases[k]);
        const struct lr_method_params params = alone_method(alone);
        struct lr_pairs *pairs = lr_pairs_create(&params);
        alone_check(alone, pairs != NULL);
        keep_object(pairs, end_pairs);
        check(alone, pairs);
        variants.masks += pairs->masks.any;
        variants.near += pairs->may_be_near;
        variants.horizon += pairs->meets_horizon;
        variants.plain += !pairs->may_be_near && !pairs->meets_horizon;
        destroy_kept(NULL);
    }
    print_message("%d with masks, %d near, %d with a horizon, %d plain\n", variants.masks, variants.near,
                  variants.horizon, variants.plain);
    assert_all(variants.masks > 0 && variants.near > 0 && variants.horizon > 0, variants.plain > 0);
}

stage_main("render_alone_pairs", CASE_OF(each_case, test_forward), CASE_OF(each_case, test_back),
           CASE_OF(each_case, test_rows))
