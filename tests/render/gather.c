/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * raster/tile.vert with raster/gather.frag, raster/tile.vert with raster/reduce.frag, and raster/collect.vert with raster/value.frag: each
 * alone, hand-made contents against sums in double. */
#include "stage.h"

#include "common/bindings.h"
#include "gl/pass.h"
#include "render/raster/back.h"

/* Float sums of four numbers of one sign round by at most 3 x 6e-8 of the sum, products by 6e-8. */
static const double step_tolerance = 3e-7;

/* --- gather: the first halving --- */

/* weight * value of one pixel of an image, in double. */
static double pixel_product(const struct stage *stage, const struct lr_plan_image *image,
                            const int at[2], const struct texel *atlas,
                            const struct lr_lor_window *window, const float *values)
{
    const struct texel *texel =
        &atlas[(int64_t)(image->tile_y + at[1]) * stage->images.atlas->size[0] + image->tile_x +
               at[0]];
    const int64_t lor = stage_lor(stage, image, at, texel->crystal) - window->first_lor;
    if (!stage_in_window(stage, image, at[0], at[1]) || texel->crystal == 0 || lor < 0 ||
        lor >= window->num_lors) {
        return 0;
    }
    return (double)texel->weight * (double)values[lor];
}

/* One gather of made-up images, compared texel by texel; then every halving and the voxel image
 * against sums of the texels they were made from. */
struct gathering {
    struct stage *stage;
    struct texel *atlas;
    struct lr_plan_image *images;
    struct lr_plan_row *rows;
    struct lr_batch batch;
    struct lr_lor_window window;
    float *values; /* [window.num_lors] */
};

static void gathering_init(struct gathering *gathering, struct stage *stage, uint64_t *state)
{
    const int num_images = stage->plan->max_images;
    *gathering = (struct gathering){.stage = stage, .window = lr_plan_all_lors(stage->lors)};
    gathering->atlas = test_alloc(stage_atlas_texels(stage), sizeof(*gathering->atlas));
    gathering->images = test_alloc(num_images, sizeof(*gathering->images));
    gathering->rows = test_alloc(num_images, sizeof(*gathering->rows));
    gathering->values = test_alloc(stage->lors->count, sizeof(float));
    for (int k = 0; k < num_images; k++) {
        gathering->images[k] =
            stage_image(stage, (const double[3]){0}, k % stage->scanner->num_modules, k);
        stage_fill_tile(stage, &gathering->images[k], 0.8, gathering->atlas, state);
        /* Rows of one, two, three images, in voxels far apart. */
        if (k == 0 || test_random(state) < 0.5) {
            gathering->rows[gathering->batch.num_rows++] =
                (struct lr_plan_row){.first_image = (uint32_t)k,
                                     .row = (uint32_t)(gathering->batch.num_rows * 1311),
                                     .factor = (float)random_between(state, 0.1, 1)};
        }
        gathering->rows[gathering->batch.num_rows - 1].end_image = (uint32_t)k + 1;
    }
    for (int64_t lor = 0; lor < stage->lors->count; lor++) {
        gathering->values[lor] = (float)random_between(state, 0.5, 2);
    }
    gathering->batch.images = gathering->images;
    gathering->batch.rows = gathering->rows;
    gathering->batch.num_images = num_images;
    gathering->batch.atlas_rows = stage->plan->rows;
}

static void gathering_finish(struct gathering *gathering)
{
    free(gathering->atlas);
    free(gathering->images);
    free(gathering->rows);
    free(gathering->values);
}

static float *read_target(const struct stage *stage, const struct gl_target *target)
{
    float *texels = test_alloc((int64_t)target->size[0] * target->size[1], sizeof(*texels));
    stage_check(stage, gl_texture_read(target->colours[0], NULL, texels) == LR_OK);
    return texels;
}

/* Texel of image `slot`'s tile in halving k. */
static int64_t sum_texel(const struct lr_gather *gather, int k, int slot, const int at[2])
{
    const int columns = gather->plan->columns;
    return ((int64_t)(slot / columns) * gather->tiles[k][1] + at[1]) * gather->sums[k]->size[0] +
           (int64_t)(slot % columns) * gather->tiles[k][0] + at[0];
}

static double check_first_halving(const struct gathering *gathering, const struct lr_gather *gather)
{
    const struct stage *stage = gathering->stage;
    const int *full = stage->plan->tile, *tile = gather->tiles[0];
    float *sums = read_target(stage, gather->sums[0]);
    double total = 0;
    for (int slot = 0; slot < gathering->batch.num_images; slot++) {
        for (int texel = 0; texel < tile[0] * tile[1]; texel++) {
            const int to[2] = {texel % tile[0], texel / tile[0]};
            double want = 0;
            for (int k = 0; k < 4; k++) {
                const int from[2] = {2 * to[0] + k % 2, 2 * to[1] + k / 2};
                if (from[0] < full[0] && from[1] < full[1]) {
                    want += pixel_product(stage, &gathering->images[slot], from, gathering->atlas,
                                          &gathering->window,
                                          gathering->values + gathering->window.first_lor);
                }
            }
            assert_close((double)sums[sum_texel(gather, 0, slot, to)], want, step_tolerance);
            total += want;
        }
    }
    free(sums);
    return total;
}

static void check_halving(const struct gathering *gathering, const struct lr_gather *gather, int k)
{
    const int *source = gather->tiles[k - 1], *tile = gather->tiles[k];
    float *before = read_target(gathering->stage, gather->sums[k - 1]);
    float *after = read_target(gathering->stage, gather->sums[k]);
    for (int slot = 0; slot < gathering->batch.num_images; slot++) {
        for (int texel = 0; texel < tile[0] * tile[1]; texel++) {
            const int to[2] = {texel % tile[0], texel / tile[0]};
            double want = 0;
            for (int n = 0; n < 4; n++) {
                const int from[2] = {2 * to[0] + n % 2, 2 * to[1] + n / 2};
                if (from[0] < source[0] && from[1] < source[1]) {
                    want += (double)before[sum_texel(gather, k - 1, slot, from)];
                }
            }
            assert_close((double)after[sum_texel(gather, k, slot, to)], want, step_tolerance);
        }
    }
    free(before);
    free(after);
}

/* The voxel image after `times` runs of the same batch: rows collect their images. */
static void check_collected(const struct gathering *gathering, const struct lr_gather *gather,
                            int times)
{
    const int last = gather->num_halvings - 1;
    float *sums = read_target(gathering->stage, gather->sums[last]);
    float *voxels = test_alloc(gather->num_voxels, sizeof(*voxels));
    int next = 0;
    stage_check(gathering->stage, lr_gather_read(gather, voxels) == LR_OK);
    for (int64_t voxel = 0; voxel < gather->num_voxels; voxel++) {
        const struct lr_plan_row *row = &gathering->rows[next];
        double want = 0;
        if (next < gathering->batch.num_rows && row->row == voxel) {
            for (uint32_t slot = row->first_image; slot < row->end_image; slot++) {
                want += (double)sums[sum_texel(gather, last, (int)slot, (const int[]){0, 0})];
            }
            want *= times * (double)row->factor;
            next++;
        }
        assert_close((double)voxels[voxel], want, step_tolerance * (1 + times));
    }
    assert_int_equal(next, gathering->batch.num_rows);
    free(sums);
    free(voxels);
}

static void check_gather(struct gathering *gathering, int times)
{
    struct stage *stage = gathering->stage;
    struct lr_gather gather;
    const struct lr_lor_window *window = &gathering->window;
    struct lr_lor_texture lors = lr_lor_texture_create(stage->ctx, window->num_lors);
    const int64_t image_bytes = gathering->batch.num_images * (int64_t)sizeof(struct lr_plan_image);
    const int64_t num_voxels = gathering->rows[gathering->batch.num_rows - 1].row + 7;
    stage_check(stage, lors.target != NULL);
    stage_check(stage, lr_scene_set_window(&stage->scene, window) == LR_OK);
    stage_check(stage,
                lr_lor_texture_upload(&lors, gathering->values + window->first_lor) == LR_OK);
    stage_check(stage,
                gl_texture_upload(stage->images.atlas->colours[0], gathering->atlas) == LR_OK);
    stage_check(stage,
                gl_buffer_upload(stage->images.images, 0, image_bytes, gathering->images) == LR_OK);
    stage_check(stage, lr_gather_init(&gather, &stage->scene, stage->plan, num_voxels) == LR_OK);
    lr_gather_clear(&gather);
    for (int k = 0; k < times; k++) {
        stage_check(stage,
                    lr_gather_run(&gather, &stage->images, &gathering->batch, &lors) == LR_OK);
    }
    assert_true(check_first_halving(gathering, &gather) > 0);
    for (int k = 1; k < gather.num_halvings; k++) {
        check_halving(gathering, &gather, k);
    }
    assert_int_equal(gather.tiles[gather.num_halvings - 1][0], 1);
    assert_int_equal(gather.tiles[gather.num_halvings - 1][1], 1);
    check_collected(gathering, &gather, times);
    lr_gather_clear(&gather);
    float first;
    stage_check(stage, gl_texture_read(gather.image->colours[0],
                                       &(struct gl_box){.width = 1, .height = 1}, &first) == LR_OK);
    assert_true(first == 0.0f);
    lr_gather_finish(&gather);
    lr_lor_texture_destroy(&lors);
}

static void test_gather_all_scanners(void **context)
{
    uint64_t state = test_seed();
    for (int k = 0; k < NUM_SCANNER_CASES; k++) {
        struct stage stage;
        struct gathering gathering;
        stage_open(&stage, &(struct stage_params){.ctx = *context,
                                                  .scanner = scanner_cases[k].create(),
                                                  .rays = 1 + k % 5,
                                                  .min_tiles = 11});
        gathering_init(&gathering, &stage, &state);
        check_gather(&gathering, 1 + k % 3);
        gathering_finish(&gathering);
        stage_close(&stage);
    }
}

/* LORs outside the window count nothing; those inside find their value. */
static void test_gather_windows(void **context)
{
    uint64_t state = test_seed();
    struct stage stage;
    struct gathering gathering;
    stage_open(&stage,
               &(struct stage_params){.ctx = *context, .scanner = create_two_rings(), .rays = 3});
    gathering_init(&gathering, &stage, &state);
    struct lr_lor_window window = {0};
    while (lr_plan_next_window(stage.lors, stage.lors->count / 4, &window)) {
        gathering.window = window;
        check_gather(&gathering, 1);
    }
    gathering_finish(&gathering);
    stage_close(&stage);
}

/* Windows of a single pixel: one halving from 1 x 1 to 1 x 1. */
static void test_gather_single_pixels(void **context)
{
    uint64_t state = test_seed();
    struct stage stage;
    struct gathering gathering;
    const lr_module shape = shape_of(1, 1, 4, 3.5);
    lr_module modules[5];
    for (int m = 0; m < 5; m++) {
        modules[m] = place_module(&shape, &(struct placement){72 * m, 30, 0, 0, 0, 0});
    }
    stage_open(&stage, &(struct stage_params){
                           .ctx = *context, .scanner = scanner_of(modules, 5, 0), .rays = 1});
    assert_int_equal(stage.plan->tile[0] * stage.plan->tile[1], 1);
    gathering_init(&gathering, &stage, &state);
    for (int k = 0; k < gathering.batch.num_images; k++) {
        const uint32_t other = (uint32_t)(gathering.images[k].primary + 1) % 5;
        gathering.atlas[k] = (struct texel){.crystal = other + 1, .weight = 0.25f + (float)k};
    }
    check_gather(&gathering, 2);
    gathering_finish(&gathering);
    stage_close(&stage);
}

/* --- reduce, run by its own pass over tiles of any size --- */

/* The block of shaders/raster/tile_pass.glsl, as its std140 layout has it. */
struct tile_block {
    int32_t full_tile[2], source_tile[2], target_tile[2], target_size[2], lors_size[2];
    uint32_t num_lors, unused;
};

enum { REDUCE_COLUMNS = 3, REDUCE_ROWS = 2, REDUCE_IMAGES = 5 };

static struct gl_target *make_sums(struct gl_context *ctx, const int tile[2])
{
    struct gl_target *target =
        gl_target_create(ctx, &(struct gl_target_params){.label = "sums",
                                                         .width = REDUCE_COLUMNS * tile[0],
                                                         .height = REDUCE_ROWS * tile[1],
                                                         .colour_formats = {GL_R32F}});
    assert_non_null(target);
    return target;
}

static struct gl_buffer *make_images(struct gl_context *ctx, const int full[2])
{
    struct lr_plan_image images[REDUCE_IMAGES] = {{.primary = 0}};
    for (int k = 0; k < REDUCE_IMAGES; k++) {
        images[k].tile_x = k % REDUCE_COLUMNS * full[0];
        images[k].tile_y = k / REDUCE_COLUMNS * full[1];
    }
    struct gl_buffer *buffer =
        gl_buffer_create(ctx, &(struct gl_buffer_params){
                                  .label = "images", .size_bytes = sizeof(images), .data = images});
    assert_non_null(buffer);
    return buffer;
}

static void run_reduce(struct gl_context *ctx, const struct tile_block *block,
                       const struct gl_target *source, struct gl_target *target)
{
    struct gl_program *program =
        gl_program_create(ctx, &(struct gl_program_params){.vertex = "raster/tile.vert",
                                                           .fragment = "raster/reduce.frag",
                                                           .label = "reduce alone"});
    struct gl_buffer *images = make_images(ctx, block->full_tile);
    assert_non_null(program);
    struct gl_pass pass = {.label = "reduce alone",
                           .program = program,
                           .uniforms = block,
                           .uniform_bytes = sizeof(*block),
                           .target = target,
                           .primitive = GL_TRIANGLE_STRIP,
                           .vertices = 4,
                           .instances = REDUCE_IMAGES};
    pass.buffers[LR_BIND_IMAGES].buffer = images;
    pass.textures[LR_UNIT_SUMS] = source->colours[0];
    assert_int_equal(gl_pass_run(ctx, &pass), LR_OK);
    gl_buffer_destroy(images);
    gl_program_destroy(program);
}

static void check_reduce(struct gl_context *ctx, const int full[2], const int source_tile[2],
                         uint64_t *state)
{
    struct tile_block block = {.full_tile = {full[0], full[1]},
                               .source_tile = {source_tile[0], source_tile[1]}};
    for (int k = 0; k < 2; k++) {
        block.target_tile[k] = (source_tile[k] + 1) / 2;
    }
    struct gl_target *source = make_sums(ctx, source_tile);
    struct gl_target *target = make_sums(ctx, block.target_tile);
    const int width = source->size[0], target_width = target->size[0];
    float *from = test_alloc((int64_t)width * source->size[1], sizeof(*from));
    float *to = test_alloc((int64_t)target_width * target->size[1], sizeof(*to));
    block.target_size[0] = target->size[0];
    block.target_size[1] = target->size[1];
    for (int k = 0; k < width * source->size[1]; k++) {
        from[k] = (float)random_between(state, 1, 2);
    }
    assert_int_equal(gl_texture_upload(source->colours[0], from), LR_OK);
    run_reduce(ctx, &block, source, target);
    assert_int_equal(gl_texture_read(target->colours[0], NULL, to), LR_OK);
    for (int texel = 0; texel < target_width * target->size[1]; texel++) {
        const int x = texel % target_width, y = texel / target_width;
        const int column = x / block.target_tile[0], row = y / block.target_tile[1];
        double want = 0;
        for (int k = 0; k < 4; k++) {
            const int sx = 2 * (x % block.target_tile[0]) + k % 2;
            const int sy = 2 * (y % block.target_tile[1]) + k / 2;
            if (sx < source_tile[0] && sy < source_tile[1]) {
                want += (double)
                    from[(row * source_tile[1] + sy) * width + column * source_tile[0] + sx];
            }
        }
        /* The tile without an image stays as it was. */
        want = row * REDUCE_COLUMNS + column < REDUCE_IMAGES ? want : 0;
        assert_close((double)to[texel], want, step_tolerance);
    }
    free(from);
    free(to);
    gl_target_destroy(target);
    gl_target_destroy(source);
}

static void test_reduce_alone(void **context)
{
    static const int tiles[][2] = {{1, 1}, {2, 2}, {3, 3}, {5, 1}, {1, 6}, {7, 4}, {26, 13}};
    uint64_t state = test_seed();
    for (int k = 0; k < 7; k++) {
        /* From a full tile of the same size, and as a later halving of a larger one. */
        check_reduce(*context, tiles[k], tiles[k], &state);
        check_reduce(*context, (const int[2]){tiles[k][0] * 4 - 1, tiles[k][1] * 4 - 2}, tiles[k],
                     &state);
    }
}

/* --- collect, run by its own pass --- */

static void test_collect_alone(void **context)
{
    enum { COLUMNS = 5, ROWS = 4, WIDTH = 16, HEIGHT = 3 };
    /* Voxel 20 gets two rows, as when two batches share it; voxel 0 and the last are corners. */
    const struct lr_plan_row rows[] = {
        {0, 1, 0, 1.0f}, {1, 7, 20, 0.5f}, {7, 12, 47, 0.125f}, {12, 20, 20, 2.0f}};
    const struct {
        int32_t image_size[2], columns, unused;
    } block = {{WIDTH, HEIGHT}, COLUMNS, 0};
    struct gl_context *ctx = *context;
    uint64_t state = test_seed();
    float sums[COLUMNS * ROWS], voxels[WIDTH * HEIGHT];
    double want[WIDTH * HEIGHT] = {0};
    for (int k = 0; k < COLUMNS * ROWS; k++) {
        sums[k] = (float)random_between(&state, 1, 2);
    }
    for (int k = 0; k < 4; k++) {
        for (uint32_t image = rows[k].first_image; image < rows[k].end_image; image++) {
            want[rows[k].row] += (double)sums[image] * (double)rows[k].factor;
        }
    }
    struct gl_program *program =
        gl_program_create(ctx, &(struct gl_program_params){.vertex = "raster/collect.vert",
                                                           .fragment = "raster/value.frag",
                                                           .label = "collect alone"});
    struct gl_texture *source = gl_texture_create(
        ctx, &(struct gl_texture_params){
                 .label = "sums", .format = GL_R32F, .width = COLUMNS, .height = ROWS});
    struct gl_target *target = gl_target_create(
        ctx, &(struct gl_target_params){
                 .label = "voxels", .width = WIDTH, .height = HEIGHT, .colour_formats = {GL_R32F}});
    struct gl_buffer *buffer = gl_buffer_create(
        ctx, &(struct gl_buffer_params){.label = "rows", .size_bytes = sizeof(rows), .data = rows});
    assert_true(program && source && target && buffer);
    assert_int_equal(gl_texture_upload(source, sums), LR_OK);
    struct gl_pass pass = {.label = "collect alone",
                           .program = program,
                           .uniforms = &block,
                           .uniform_bytes = sizeof(block),
                           .target = target,
                           .blending = GL_BLENDING_ADD,
                           .primitive = GL_POINTS,
                           .vertices = 4,
                           .instances = 1};
    pass.buffers[LR_BIND_ROWS].buffer = buffer;
    pass.textures[LR_UNIT_SUMS] = source;
    assert_int_equal(gl_pass_run(ctx, &pass), LR_OK);
    assert_int_equal(gl_texture_read(target->colours[0], NULL, voxels), LR_OK);
    for (int k = 0; k < WIDTH * HEIGHT; k++) {
        /* At most 8 + 6 positive terms. */
        assert_close((double)voxels[k], want[k], 1e-6);
    }
    gl_buffer_destroy(buffer);
    gl_target_destroy(target);
    gl_texture_destroy(source);
    gl_program_destroy(program);
}

int main(int argc, char **argv)
{
    struct gl_context *ctx = stage_context();
    if (ctx == NULL) {
        return 77;
    }
    stage_choose_tests(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_gather_all_scanners, ctx),
        cmocka_unit_test_prestate(test_gather_windows, ctx),
        cmocka_unit_test_prestate(test_gather_single_pixels, ctx),
        cmocka_unit_test_prestate(test_reduce_alone, ctx),
        cmocka_unit_test_prestate(test_collect_alone, ctx),
    };
    const int failed = cmocka_run_group_tests_name("render_gather", tests, NULL, NULL);
    stage_leave(ctx);
    return failed;
}
