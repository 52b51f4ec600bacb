/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The shaders correspondence/raster/gather.frag, reduce.frag, and collect.vert with value.frag. The test makes the
 * contents, and compares the result of each pass with sums in double of the result of the pass before. */
#include "stage.h"

#include "common/bindings.h"
#include "correspondence/raster/raster.h"
#include "gl/pass.h"

/* Float sums of four numbers of one sign round by at most 3 x 6e-8 of the sum, products by 6e-8. */
static const double step_tolerance = 3e-7;

/* --- gather, halvings --- */

/* One gather of made-up images, compared image by image; then the voxel image, compared with sums of the texels that it
 * was made from. */
struct gathering {
    struct stage *stage;
    struct made_up made;
    struct lr_plan_row *rows;
    struct lr_batch batch;
    struct lr_pair_window window;
    float *values; /* of all LORs */
};

enum { APART = 1311 }; /* voxels of two rows */

static struct gathering gathering_of(struct stage *stage, uint64_t *state)
{
    const int num_images = stage->plan->max_images;
    struct gathering gathering = {.stage = stage,
                                  .window = lr_pair_window_all(stage->lors),
                                  .made = stage_make_up(stage, num_images, 0.8, state),
                                  .rows = kept(num_images, sizeof(*gathering.rows)),
                                  .values = kept_random_floats(stage->lors->count, 0.5, 2, state)};
    /* Rows with one, two, three images, from the first voxel to the last, far apart. The third row is of the first
     * voxel again, as if two batches shared it. */
    int num_rows = 0;
    for (int k = 0; k < num_images; k++) {
        if (k == 0 || test_random(state) < 0.5) {
            const float factor = (float)random_between(state, 0.1, 1);
            const uint32_t voxel = num_rows == 2 ? 0 : (uint32_t)num_rows * APART;
            gathering.rows[num_rows++] = (struct lr_plan_row){(uint32_t)k, 0, voxel, factor};
        }
        gathering.rows[num_rows - 1].end_image = (uint32_t)k + 1;
    }
    gathering.batch = gathering.made.batch;
    gathering.batch.rows = gathering.rows;
    gathering.batch.num_rows = num_rows;
    return gathering;
}

/* weight * value of one pixel of an image, in double. */
static double pixel_product(const struct gathering *gathering, int slot, const int at[2])
{
    const struct lr_plan_image *image = &gathering->made.images[slot];
    const struct texel *texel = &gathering->made.atlas[stage_texel(gathering->stage, image, at[0], at[1])];
    const int64_t lor = stage_lor(gathering->stage, image, at, texel->crystal);
    const int64_t within = lor - gathering->window.first_value;
    if (!stage_in_window(gathering->stage, image, at[0], at[1]) || texel->crystal == 0 || within < 0 ||
        within >= gathering->window.num_values)
        return 0;
    return (double)texel->weight * (double)gathering->values[lor];
}

static float *read_target(const struct stage *stage, const struct gl_target *target)
{
    float *texels = kept((int64_t)target->size[0] * target->size[1], sizeof(*texels));
    stage_check(stage, gl_texture_read(target->colours[0], NULL, texels) == LR_OK);
    return texels;
}

/* Up to four texels of a tile in the pass before: products of pixels, or sums of them. */
static double four(const struct gathering *gathering, const struct lr_gather *gather, int k, const float *before,
                   const int slot_at[3])
{
    const int columns = gathering->stage->plan->columns, slot = slot_at[0];
    const int *tile = k == 0 ? gathering->stage->plan->tile : gather->tiles[k - 1];
    double sum = 0;
    for (int y = 2 * slot_at[2]; y < 2 * slot_at[2] + 2 && y < tile[1]; y++) {
        for (int x = 2 * slot_at[1]; x < 2 * slot_at[1] + 2 && x < tile[0]; x++) {
            sum += k == 0 ? pixel_product(gathering, slot, (const int[2]){x, y})
                          : (double)before[(int64_t)(slot / columns * tile[1] + y) * columns * tile[0] +
                                           slot % columns * tile[0] + x];
        }
    }
    return sum;
}

/* Each halving halves the size of a tile; after the last one an image has one texel. Returns the sum of all. */
static double check_halvings(const struct gathering *gathering, const struct lr_gather *gather)
{
    const int columns = gathering->stage->plan->columns;
    int edge[2] = {gathering->stage->plan->tile[0], gathering->stage->plan->tile[1]};
    float *before = NULL;
    double total = 0;
    for (int k = 0; k < gather->num_halvings; k++) {
        const int *tile = gather->tiles[k];
        float *sums = read_target(gathering->stage, gather->sums[k]);
        for (int axis = 0; axis < 2; axis++) {
            edge[axis] = (edge[axis] + 1) / 2;
            assert_int_equal(tile[axis], edge[axis]);
        }
        for (int slot = 0; slot < gathering->batch.num_images; slot++) {
            for (int pixel = 0; pixel < tile[0] * tile[1]; pixel++) {
                const int x = pixel % tile[0], y = pixel / tile[0];
                const float got =
                    sums[(int64_t)(slot / columns * tile[1] + y) * columns * tile[0] + slot % columns * tile[0] + x];
                assert_close((double)got, four(gathering, gather, k, before, (const int[3]){slot, x, y}),
                             step_tolerance);
                total += k + 1 == gather->num_halvings ? (double)got : 0;
            }
        }
        before = sums;
    }
    assert_int_equal(edge[0] * edge[1], 1);
    return total;
}

/* Checks the voxel image after `times` runs of the same batch, in which rows collect their images. */
static void check_collected(const struct gathering *gathering, const struct lr_gather *gather, int times)
{
    float *sums = read_target(gathering->stage, gather->sums[gather->num_halvings - 1]);
    const int64_t num_voxels = gather->image.count;
    float *voxels = kept_floats(num_voxels);
    double *want = kept_doubles(num_voxels);
    lr_vector image = lr_vector_of_floats(voxels, num_voxels);
    stage_check(gathering->stage, lr_texels_copy(&gather->image, &image, false) == LR_OK);
    for (int r = 0; r < gathering->batch.num_rows; r++) {
        const struct lr_plan_row *row = &gathering->rows[r];
        for (uint32_t slot = row->first_image; slot < row->end_image; slot++)
            want[row->row] += times * (double)row->factor * (double)sums[slot];
    }
    for (int64_t voxel = 0; voxel < num_voxels; voxel++)
        assert_close((double)voxels[voxel], want[voxel], step_tolerance * (1 + times));
}

static void check_gather(struct gathering *gathering, int times)
{
    struct stage *stage = gathering->stage;
    struct lr_gather gather;
    const struct lr_pair_window *window = &gathering->window;
    struct lr_texels lors = lr_texels_create(stage->ctx, "LOR image", window->num_values);
    const int64_t num_voxels = (gathering->batch.num_rows - 1) * APART + 1;
    stage_check(stage, lors.target != NULL);
    stage_check(stage, lr_scene_set_window(&stage->scene, window) == LR_OK);
    stage_check(stage, lr_texels_copy(&lors, vector_of(gathering->values + window->first_value, window->num_values),
                                      true) == LR_OK);
    stage_upload(stage, &gathering->made);
    stage_check(stage, lr_gather_init(&gather, &stage->scene, stage->plan, num_voxels) == LR_OK);
    gl_target_clear(gather.image.target, NULL);
    for (int k = 0; k < times; k++)
        stage_check(stage, lr_gather_run(&gather, &stage->images, &gathering->batch, &lors) == LR_OK);
    assert_true(check_halvings(gathering, &gather) > 0);
    check_collected(gathering, &gather, times);
    gl_target_clear(gather.image.target, NULL);
    float first;
    stage_check(stage, gl_texture_read(gather.image.target->colours[0], &(struct gl_box){.width = 1, .height = 1},
                                       &first) == LR_OK);
    assert_true(first == 0.0f);
    lr_gather_finish(&gather);
    lr_texels_destroy(&lors);
}

static void test_gather_all_scanners(void **context)
{
    uint64_t state = test_seed();
    for (int k = 0; k < length_of(scanner_cases); k++) {
        struct stage *stage = stage_open(&(struct stage_params){
            .ctx = *context, .scanner = scanner_cases[k].create(), .rays = 1 + k % 5, .min_tiles = 11});
        struct gathering gathering = gathering_of(stage, &state);
        check_gather(&gathering, 1 + k % 3);
        destroy_kept(NULL);
    }
}

/* LORs outside the window do not count; LORs inside use their own values. */
static void test_gather_windows(void **context)
{
    uint64_t state = test_seed();
    struct stage *stage = stage_open(&(struct stage_params){.ctx = *context, .scanner = create_two_rings(), .rays = 3});
    struct gathering gathering = gathering_of(stage, &state);
    struct lr_pair_window window = lr_pair_window_begin(stage->lors, NULL, 0);
    while (lr_pair_window_next(&window, stage->lors->count / 4)) {
        gathering.window = window;
        check_gather(&gathering, 1);
    }
}

/* Windows of a single pixel. */
static void test_gather_single_pixels(void **context)
{
    uint64_t state = test_seed();
    struct stage *stage =
        stage_open(&(struct stage_params){.ctx = *context, .scanner = create_single_crystals(), .rays = 1});
    assert_int_equal(stage->plan->tile[0] * stage->plan->tile[1], 1);
    struct gathering gathering = gathering_of(stage, &state);
    for (int k = 0; k < gathering.batch.num_images; k++) {
        const uint32_t other = (uint32_t)(gathering.made.images[k].primary + 1) % 5;
        gathering.made.atlas[k] = (struct texel){.crystal = other + 1, .weight = 0.25f + (float)k};
    }
    check_gather(&gathering, 2);
}

stage_main("render_gather", CASES(test_gather_all_scanners, test_gather_windows, test_gather_single_pixels))
