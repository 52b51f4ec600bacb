/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The shaders correspondence/raster/scatter.vert with value.frag, and reduce.frag when it adds LOR images. The test
 * makes the correspondence images, and compares the results with sums in double. */
#include "stage.h"

#include "correspondence/raster/raster.h"
#include "device/place.h"

/* Float sums of a few dozen positive numbers: each addition rounds by 6e-8 of the sum. */
static const double sum_tolerance = 3e-6;

/* The voxels of a made-up batch. */
struct voxels {
    struct made_up made;
    float *values, factor;
    int64_t count;
};

static struct voxels make_up(struct stage *stage, double density, uint64_t *state)
{
    enum { COUNT = 20000 }; /* several rows of texels */
    struct voxels voxels = {.values = kept_random_floats(COUNT, 0.4, 12, state), .factor = 0.25f, .count = COUNT};
    voxels.made = stage_make_up(stage, stage->plan->max_images, density, state);
    for (int k = 0; k < stage->plan->max_images; k++) voxels.made.images[k].row = (uint32_t)(1311 * k % COUNT);
    stage_upload(stage, &voxels.made);
    return voxels;
}

/* Index of a LOR's value in the window; -1: the LOR is not in the window. */
static int64_t place_in(const struct lr_pair_window *window, int64_t lor)
{
    int64_t first = 0;
    for (int64_t k = window->begin; k < window->end; k++) {
        const int64_t pair = lr_pair_window_pair(window, k), within = lor - window->lors->offsets[pair];
        if (within >= 0 && within < lr_pair_size(window->lors, pair)) return first + within;
        first += lr_pair_size(window->lors, pair);
    }
    return -1;
}

static struct lr_scatter open_scatter(struct stage *stage, const struct voxels *voxels)
{
    struct lr_scatter scatter;
    stage_check(stage, lr_scatter_init(&scatter, &stage->scene, stage->plan, voxels->count) == LR_OK);
    scatter.factor = voxels->factor;
    stage_check(stage, lr_texels_copy(&scatter.voxels, vector_of(voxels->values, voxels->count), true) == LR_OK);
    return scatter;
}

/* Scatters the made-up batch `times` times into the window and compares every LOR. */
static int check_scatter(struct stage *stage, const struct voxels *voxels, const struct lr_pair_window *window,
                         int times)
{
    struct lr_texels lors = lr_texels_create(stage->ctx, "LOR image", window->num_values);
    float *got = kept(window->num_values, sizeof(*got));
    double *want = kept(window->num_values, sizeof(*want));
    int filled = 0;
    stage_check(stage, lors.target != NULL);
    stage_check(stage, lr_scene_set_window(&stage->scene, window) == LR_OK);
    struct lr_scatter scatter = open_scatter(stage, voxels);
    lr_scatter_begin(&scatter);
    for (int k = 0; k < times; k++) {
        stage_check(stage, lr_scatter_run(&scatter, &stage->images, &voxels->made.batch, &lors) == LR_OK);
        /* values[index of the LOR in the window] += weight * x_v / N, over all pixels of all images. */
        for (int i = 0; i < voxels->made.batch.num_images; i++) {
            const struct lr_plan_image *image = &voxels->made.images[i];
            const double factor = (double)voxels->values[image->row] * (double)voxels->factor;
            for (int n = 0; n < stage->plan->tile[0] * stage->plan->tile[1]; n++) {
                const int at[2] = {n % stage->plan->tile[0], n / stage->plan->tile[0]};
                const struct texel *texel = &voxels->made.atlas[stage_texel(stage, image, at[0], at[1])];
                const int64_t lor = place_in(window, stage_lor(stage, image, at, texel->crystal));
                if (stage_in_window(stage, image, at[0], at[1]) && lor >= 0)
                    want[lor] += (double)texel->weight * factor;
            }
        }
    }
    stage_check(stage, lr_scatter_end(&scatter, &lors, vector_of(got, window->num_values)) == LR_OK);
    for (int64_t lor = 0; lor < window->num_values; lor++) {
        filled += want[lor] > 0;
        assert_close((double)got[lor], want[lor], sum_tolerance);
    }
    lr_scatter_finish(&scatter);
    lr_texels_destroy(&lors);
    return filled;
}

static void test_random_contents(void **context)
{
    uint64_t state = test_seed();
    for (int k = 0; k < length_of(scanner_cases); k++) {
        const int rays = 1 + k % 4;
        struct stage *stage = stage_open(&(struct stage_params){
            .ctx = *context, .scanner = scanner_cases[k].create(), .rays = rays, .min_tiles = 13});
        const struct voxels voxels = make_up(stage, k % 2 == 0 ? 0.9 : 0.3, &state);
        const struct lr_pair_window all = lr_pair_window_all(stage->lors);
        const int filled = check_scatter(stage, &voxels, &all, 1 + k % 2);
        print_message("%-14s R = %d: %d images, %d LORs\n", scanner_cases[k].name, rays, voxels.made.batch.num_images,
                      filled);
        assert_true(filled > 10);
        destroy_kept(NULL);
    }
}

/* Each window contains its own LORs and no others. */
static void test_windows(void **context)
{
    uint64_t state = test_seed();
    int filled = 0, windows = 0;
    struct stage *stage =
        stage_open(&(struct stage_params){.ctx = *context, .scanner = create_two_rings(), .rays = 3, .min_tiles = 25});
    const struct voxels voxels = make_up(stage, 0.8, &state);
    struct lr_pair_window window = lr_pair_window_begin(stage->lors, NULL, 0);
    while (lr_pair_window_next(&window, stage->lors->count / 4)) {
        filled += check_scatter(stage, &voxels, &window, 1);
        windows++;
    }
    const struct lr_pair_window all = lr_pair_window_all(stage->lors);
    assert_true(windows > 3);
    assert_int_equal(filled, check_scatter(stage, &voxels, &all, 1));

    /* a list of every third pair */
    int32_t *pairs = kept(stage->lors->num_pairs, sizeof(*pairs));
    int64_t num_pairs = 0;
    for (int64_t pair = 1; pair < stage->lors->num_pairs; pair += 3) pairs[num_pairs++] = (int32_t)pair;
    window = lr_pair_window_begin(stage->lors, pairs, num_pairs);
    windows = filled = 0;
    while (lr_pair_window_next(&window, stage->lors->count / 9)) {
        filled += check_scatter(stage, &voxels, &window, 1);
        windows++;
    }
    assert_true(windows > 2 && filled > 10);
}

/* More terms than the LOR image adds before it is added to others: images of single pixels, each of which shows one of
 * four crystals. */
static void test_many_terms(void **context)
{
    enum { TIMES = 4, TILES = 10000 };
    uint64_t state = test_seed();
    struct stage *stage = stage_open(
        &(struct stage_params){.ctx = *context, .scanner = create_single_crystals(), .rays = 1, .min_tiles = TILES});
    const struct voxels voxels = make_up(stage, 0.9, &state);
    const struct lr_pair_window all = lr_pair_window_all(stage->lors);
    assert_true((double)voxels.made.batch.num_images * TIMES > 2.5 * 1024 * (double)all.num_values);
    assert_int_equal(check_scatter(stage, &voxels, &all, TIMES), all.num_values);
}

/* A macropixel whose pixels show the same (r, s) emits one point. With weights 2^-24 .. 1, the float sum inside the
 * macropixel and the blended sum of single points would round differently. */
static void test_macropixel_sums_once(void **context)
{
    struct stage *stage = stage_open(&(struct stage_params){.ctx = *context, .scanner = create_opposed(), .rays = 4});
    float one = 1;
    const struct voxels voxels = {stage_make_up(stage, 1, 0, NULL), &one, 1, 1};
    const struct made_up made = voxels.made;
    const int width = stage->images.atlas->size[0];
    /* Crystal (2, 3) of module 0: half of its pixels see crystal 5 of module 1, half crystal 6. */
    for (int k = 0; k < 16; k++) {
        made.atlas[(int64_t)(3 * 4 + k / 4) * width + 2 * 4 + k % 4] =
            (struct texel){.crystal = (uint32_t)(81 + 5 + k % 2 + 1), .weight = 1.0f + (float)k};
    }
    stage_upload(stage, &made);
    const struct lr_pair_window all = lr_pair_window_all(stage->lors);
    assert_int_equal(check_scatter(stage, &voxels, &all, 1), 2);

    /* Added to 2^24, one point of weight 8 counts; eight points of weight 1 would each be lost in rounding. */
    const int64_t lor = stage_lor(stage, &made.images[0], (const int[2]){8, 12}, 81 + 5 + 1);
    for (int64_t k = 0; k < stage_atlas_texels(stage); k++)
        made.atlas[k].weight = made.atlas[k].crystal != 0 ? 1.0f : 0.0f;
    stage_upload(stage, &made);
    /* Adds `made` to two LORs that hold 2^24 and 0.5. */
    const int64_t num_lors = stage->lors->count;
    struct lr_scatter scatter = open_scatter(stage, &voxels);
    struct lr_texels lors = lr_texels_create(stage->ctx, "LOR image", num_lors);
    float *values = kept(num_lors, sizeof(*values));
    lr_vector vector = lr_vector_of_floats(values, num_lors);
    values[lor] = 16777216.0f;
    values[lor + 1] = 0.5f;
    stage_check(stage, lr_texels_copy(&lors, &vector, true) == LR_OK);
    stage_check(stage, lr_scatter_run(&scatter, &stage->images, &voxels.made.batch, &lors) == LR_OK);
    stage_check(stage, lr_texels_copy(&lors, &vector, false) == LR_OK);
    assert_all(values[lor] == 16777224.0f, values[lor + 1] == 8.5f);
    lr_scatter_finish(&scatter);
    lr_texels_destroy(&lors);
}

/* A texture returns the values that were copied into it, at sizes around its row length: from and to the host, and at
 * any position of a vector at a place. */
static void test_texels_round_trip(void **context)
{
    static const int64_t sizes[] = {1, 4095, 4096, 4097, 12288, 20000};
    enum { BEFORE = 5 };
    uint64_t state = test_seed();
    lr_place *place = non_null(lr_place_open(&(lr_place_params){.kind = LR_PLACE_GL}));
    assert_ok(gl_context_make_current(place->ctx));
    for (int k = 0; k < 6; k++) {
        const int64_t count = sizes[k];
        struct lr_texels texels = lr_texels_create(place->ctx, "texels", count);
        float *values = kept_random_floats(count, 0, 1, &state), *back = kept_floats(count);
        lr_vector to = lr_vector_of_floats(back, count), there;
        assert_non_null(texels.target);
        assert_ok(lr_vector_create(&(lr_vector_params){.place = place, .count = count + 2 * BEFORE}, &there));
        lr_vector part = lr_vector_part(&there, BEFORE, count);
        assert_ok(lr_texels_copy(&texels, &to, false));
        assert_true(back[0] == 0.0f && back[count - 1] == 0.0f);
        assert_ok(lr_texels_copy(&texels, vector_of(values, count), true), lr_texels_copy(&texels, &to, false));
        assert_memory_equal(values, back, (size_t)count * sizeof(*values));
        assert_ok(lr_texels_copy(&texels, &part, false), lr_texels_renew(&texels, place->ctx, "texels", count));
        assert_ok(lr_texels_copy(&texels, &part, true));
        memset(back, 0, (size_t)count * sizeof(*back));
        assert_ok(lr_texels_copy(&texels, &to, false));
        assert_memory_equal(values, back, (size_t)count * sizeof(*values));
        lr_vector_sums sums;
        lr_vector before = lr_vector_part(&there, 0, BEFORE);
        assert_ok(lr_vector_add_up(&before, NULL, &sums));
        assert_true(sums.sum == 0.0);
        lr_vector_destroy(&there);
        lr_texels_destroy(&texels);
    }
    assert_true(lr_texels_capacity(place->ctx, 1) == 4096);
    assert_true(lr_texels_capacity(place->ctx, 3 * 16384 + 5) == 3 * 4096);
    assert_true(lr_texels_capacity(place->ctx, 0) >= (int64_t)4096 * 4096);
    gl_context_release(place->ctx);
    lr_place_close(place);
}

stage_main("render_scatter", CASES(test_random_contents, test_windows, test_macropixel_sums_once, test_many_terms,
                                   test_texels_round_trip))
