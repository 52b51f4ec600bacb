/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * raster/scatter.vert with raster/value.frag, and raster/scatter.comp, alone: hand-made correspondence
 * images against sums in double. */
#include "stage.h"

#include "render/raster/forward.h"

/* Float sums of a few dozen positive numbers: each addition rounds by 6e-8 of the sum. */
static const double sum_tolerance = 3e-6;

struct way {
    bool by_points;
    int times;
};

/* A batch whose images and atlas are made up. */
struct made_up {
    struct texel *atlas;
    struct lr_plan_image *images;
    struct lr_batch batch;
};

static void upload_made_up(struct stage *stage, const struct made_up *made)
{
    const int64_t bytes = made->batch.num_images * (int64_t)sizeof(*made->images);
    stage_check(stage, gl_texture_upload(stage->images.atlas->colours[0], made->atlas) == LR_OK);
    stage_check(stage, gl_buffer_upload(stage->images.images, 0, bytes, made->images) == LR_OK);
}

static void make_up(struct stage *stage, struct made_up *made, double density, uint64_t *state)
{
    const int modules = stage->scanner->num_modules;
    const int num_images = stage->plan->max_images;
    made->atlas = test_alloc(stage_atlas_texels(stage), sizeof(*made->atlas));
    made->images = test_alloc(num_images, sizeof(*made->images));
    for (int k = 0; k < num_images; k++) {
        const double origin[3] = {0};
        made->images[k] = stage_image(stage, origin, k % modules, k);
        made->images[k].scale = (float)random_between(state, 0.1, 3);
        stage_fill_tile(stage, &made->images[k], density, made->atlas, state);
    }
    made->batch = (struct lr_batch){
        .images = made->images, .num_images = num_images, .atlas_rows = stage->plan->rows};
    upload_made_up(stage, made);
}

static void made_up_finish(struct made_up *made)
{
    free(made->atlas);
    free(made->images);
}

/* values[window's LOR] += scale * weight over all pixels of all windows. */
static void sum_pixels(const struct stage *stage, const struct made_up *made,
                       const struct lr_lor_window *window, double *values)
{
    const int width = stage->images.atlas->size[0];
    for (int k = 0; k < made->batch.num_images; k++) {
        const struct lr_plan_image *image = &made->images[k];
        for (int y = 0; y < stage->plan->tile[1]; y++) {
            for (int x = 0; x < stage->plan->tile[0]; x++) {
                const struct texel *texel =
                    &made->atlas[(int64_t)(image->tile_y + y) * width + image->tile_x + x];
                const int64_t lor = stage_lor(stage, image, (const int[2]){x, y}, texel->crystal) -
                                    window->first_lor;
                if (stage_in_window(stage, image, x, y) && texel->crystal != 0 && lor >= 0 &&
                    lor < window->num_lors) {
                    values[lor] += (double)texel->weight * (double)image->scale;
                }
            }
        }
    }
}

static struct lr_scatter open_scatter(struct stage *stage, bool by_points)
{
    struct lr_scatter scatter = {
        .scene = &stage->scene, .plan = stage->plan, .by_points = by_points};
    stage_check(stage, lr_scatter_init(&scatter) == LR_OK);
    return scatter;
}

/* Scatters the made-up batch `times` times into the window and compares every LOR. */
static int check_way(struct stage *stage, const struct made_up *made,
                     const struct lr_lor_window *window, struct way way)
{
    struct lr_lor_texture lors = lr_lor_texture_create(stage->ctx, window->num_lors);
    float *got = test_alloc(window->num_lors, sizeof(*got));
    double *want = test_alloc(window->num_lors, sizeof(*want));
    int filled = 0;
    stage_check(stage, lors.target != NULL);
    stage_check(stage, lr_scene_set_window(&stage->scene, window) == LR_OK);
    struct lr_scatter scatter = open_scatter(stage, way.by_points);
    for (int k = 0; k < way.times; k++) {
        stage_check(stage, lr_scatter_run(&scatter, &stage->images, &made->batch, &lors) == LR_OK);
        sum_pixels(stage, made, window, want);
    }
    stage_check(stage, lr_lor_texture_read(&lors, got) == LR_OK);
    for (int64_t lor = 0; lor < window->num_lors; lor++) {
        filled += want[lor] > 0;
        assert_close((double)got[lor], want[lor], sum_tolerance);
    }
    lr_scatter_finish(&scatter);
    lr_lor_texture_destroy(&lors);
    free(got);
    free(want);
    return filled;
}

/* By points, and by atomic additions. */
static int check_scatter(struct stage *stage, const struct made_up *made,
                         const struct lr_lor_window *window, int times)
{
    const int filled = check_way(stage, made, window, (struct way){true, times});
    assert_int_equal(check_way(stage, made, window, (struct way){false, times}), filled);
    return filled;
}

static void test_random_contents(void **context)
{
    uint64_t state = test_seed();
    for (int k = 0; k < NUM_SCANNER_CASES; k++) {
        const int rays = 1 + k % 4;
        struct stage stage;
        struct made_up made;
        stage_open(&stage, &(struct stage_params){.ctx = *context,
                                                  .scanner = scanner_cases[k].create(),
                                                  .rays = rays,
                                                  .min_tiles = 13});
        make_up(&stage, &made, k % 2 == 0 ? 0.9 : 0.3, &state);
        const struct lr_lor_window all = lr_plan_all_lors(stage.lors);
        const int filled = check_scatter(&stage, &made, &all, 1 + k % 2);
        print_message("%-14s R = %d: %d images, %d LORs\n", scanner_cases[k].name, rays,
                      made.batch.num_images, filled);
        assert_true(filled > 10);
        made_up_finish(&made);
        stage_close(&stage);
    }
}

/* Each window holds its own LORs and no others. */
static void test_windows(void **context)
{
    uint64_t state = test_seed();
    struct stage stage;
    struct made_up made;
    int filled = 0, windows = 0;
    stage_open(&stage,
               &(struct stage_params){
                   .ctx = *context, .scanner = create_two_rings(), .rays = 3, .min_tiles = 25});
    make_up(&stage, &made, 0.8, &state);
    struct lr_lor_window window = {0};
    while (lr_plan_next_window(stage.lors, stage.lors->count / 4, &window)) {
        filled += check_scatter(&stage, &made, &window, 1);
        windows++;
    }
    const struct lr_lor_window all = lr_plan_all_lors(stage.lors);
    assert_true(windows > 3);
    assert_int_equal(filled, check_scatter(&stage, &made, &all, 1));
    made_up_finish(&made);
    stage_close(&stage);
}

/* Adds `made` to two LORs that hold 2^24 and 0.5. */
static void check_rounding(struct stage *stage, const struct made_up *made, int64_t lor,
                           bool by_points)
{
    const int64_t num_lors = stage->lors->count;
    struct lr_scatter scatter = open_scatter(stage, by_points);
    struct lr_lor_texture lors = lr_lor_texture_create(stage->ctx, num_lors);
    float *values = test_alloc(num_lors, sizeof(*values));
    values[lor] = 16777216.0f;
    values[lor + 1] = 0.5f;
    stage_check(stage, lr_lor_texture_upload(&lors, values) == LR_OK);
    stage_check(stage, lr_scatter_run(&scatter, &stage->images, &made->batch, &lors) == LR_OK);
    stage_check(stage, lr_lor_texture_read(&lors, values) == LR_OK);
    assert_true(values[lor] == 16777224.0f);
    assert_true(values[lor + 1] == 8.5f);
    free(values);
    lr_scatter_finish(&scatter);
    lr_lor_texture_destroy(&lors);
}

/* A macropixel of equal (r, s) emits one point: with weights 2^-24 .. 1 the float sum inside the
 * macropixel and the sum of single points in blending would round differently. */
static void test_macropixel_sums_once(void **context)
{
    struct stage stage;
    struct made_up made = {0};
    stage_open(&stage,
               &(struct stage_params){.ctx = *context, .scanner = create_opposed(), .rays = 4});
    made.atlas = test_alloc(stage_atlas_texels(&stage), sizeof(*made.atlas));
    made.images = test_alloc(1, sizeof(*made.images));
    made.images[0] = stage_image(&stage, (const double[3]){0}, 0, 0);
    made.batch = (struct lr_batch){.images = made.images, .num_images = 1, .atlas_rows = 1};
    const int width = stage.images.atlas->size[0];
    /* Crystal (2, 3) of module 0: half of its pixels see crystal 5 of module 1, half crystal 6. */
    for (int k = 0; k < 16; k++) {
        made.atlas[(int64_t)(3 * 4 + k / 4) * width + 2 * 4 + k % 4] =
            (struct texel){.crystal = (uint32_t)(81 + 5 + k % 2 + 1), .weight = 1.0f + (float)k};
    }
    upload_made_up(&stage, &made);
    const struct lr_lor_window all = lr_plan_all_lors(stage.lors);
    assert_int_equal(check_scatter(&stage, &made, &all, 1), 2);

    /* Added to 2^24, a point of 8 ones counts; eight points of 1 would each round away. */
    const int64_t lor = stage_lor(&stage, &made.images[0], (const int[2]){8, 12}, 81 + 5 + 1);
    for (int64_t k = 0; k < stage_atlas_texels(&stage); k++) {
        made.atlas[k].weight = made.atlas[k].crystal != 0 ? 1.0f : 0.0f;
    }
    upload_made_up(&stage, &made);
    check_rounding(&stage, &made, lor, true);
    check_rounding(&stage, &made, lor, false);
    made_up_finish(&made);
    stage_close(&stage);
}

/* The LOR texture gives back what was put into it, at sizes around its row length. */
static void test_lor_texture_round_trip(void **context)
{
    static const int64_t sizes[] = {1, 4095, 4096, 4097, 12288, 20000};
    uint64_t state = test_seed();
    for (int k = 0; k < 6; k++) {
        struct lr_lor_texture lors = lr_lor_texture_create(*context, sizes[k]);
        float *values = test_alloc(sizes[k], sizeof(*values));
        float *back = test_alloc(sizes[k], sizeof(*back));
        assert_non_null(lors.target);
        for (int64_t lor = 0; lor < sizes[k]; lor++) {
            values[lor] = (float)test_random(&state);
        }
        assert_int_equal(lr_lor_texture_read(&lors, back), LR_OK);
        assert_true(back[0] == 0.0f && back[sizes[k] - 1] == 0.0f);
        assert_int_equal(lr_lor_texture_upload(&lors, values), LR_OK);
        assert_int_equal(lr_lor_texture_read(&lors, back), LR_OK);
        assert_memory_equal(values, back, (size_t)sizes[k] * sizeof(*values));
        lr_lor_texture_destroy(&lors);
        free(values);
        free(back);
    }
    assert_true(lr_lor_texture_capacity(*context, 1) == 4096);
    assert_true(lr_lor_texture_capacity(*context, 3 * 16384 + 5) == 3 * 4096);
    assert_true(lr_lor_texture_capacity(*context, 0) >= (int64_t)4096 * 4096);
}

int main(int argc, char **argv)
{
    struct gl_context *ctx = stage_context();
    if (ctx == NULL) {
        return 77;
    }
    stage_choose_tests(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_random_contents, ctx),
        cmocka_unit_test_prestate(test_windows, ctx),
        cmocka_unit_test_prestate(test_macropixel_sums_once, ctx),
        cmocka_unit_test_prestate(test_lor_texture_round_trip, ctx),
    };
    const int failed = cmocka_run_group_tests_name("render_scatter", tests, NULL, NULL);
    stage_leave(ctx);
    return failed;
}
