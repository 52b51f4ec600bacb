/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * correspondence/raster/correspondence.vert and .frag, alone, against the ray tracer in double: the same crystals except
 * within 1e-4 of a pitch of an edge, weights and path lengths to 1e-5. */
#include "stage.h"

#include "common/bindings.h"

#include <lr/io.h>

/* Of a weight or a path length, relative. */
static const double weight_tolerance = 1e-5;

/* What comparing pixels has found. */
struct tally {
    int64_t lines, hits, borderline, differing;
    int64_t wrong;   /* differing although no edge is near */
    double farthest; /* edge distance of a differing line, pitches */
    double worst_weight, worst_path;
    char first[256]; /* the first wrong pixel */
};

struct pixel_place {
    int primary, X, Y;
};

static double relative(double a, double b)
{
    return a == b ? 0 : fabs(a - b) / fmax(fabs(a), fabs(b));
}

static void note(struct tally *tally, const struct stage *stage, const struct pixel_place *at, const char *what)
{
    const double *w = stage->eye->point_mm;
    tally->wrong++;
    if (tally->first[0] == '\0') {
        snprintf(tally->first, sizeof(tally->first), "%s at point (%.17g, %.17g, %.17g) primary %d pixel (%d, %d)",
                 what, w[0], w[1], w[2], at->primary, at->X, at->Y);
    }
}

static void compare_pixel(struct tally *tally, const struct stage *stage, const struct pixel_place *at,
                          const lr_pixel pixels[2])
{
    const lr_pixel got = pixels[0], want = pixels[1];
    double ray[3], edge;
    char what[128];
    eye_line(stage->eye, at->primary, at->X, at->Y, ray);
    eye_first_hit(stage->eye, at->primary, ray, &edge);
    tally->lines++;
    tally->borderline += edge <= BORDERLINE_PITCHES;
    tally->hits += want.module >= 0;
    if (got.module != want.module || got.r != want.r || got.s != want.s) {
        tally->differing++;
        tally->farthest = fmax(tally->farthest, edge);
        if (edge > BORDERLINE_PITCHES) {
            snprintf(what, sizeof(what), "%g:(%g, %g) for %g:(%g, %g), %.3g pitches from an edge", got.module, got.r,
                     got.s, want.module, want.r, want.s, edge);
            note(tally, stage, at, what);
        }
        return;
    }
    const double weight = relative(got.weight, want.weight);
    const double path = relative(got.path_mm, want.path_mm);
    tally->worst_weight = fmax(tally->worst_weight, weight);
    tally->worst_path = fmax(tally->worst_path, path);
    if (!(weight <= weight_tolerance) || !(path <= weight_tolerance)) {
        snprintf(what, sizeof(what), "weight %.9g for %.9g, path %.9g for %.9g", got.weight, want.weight, got.path_mm,
                 want.path_mm);
        note(tally, stage, at, what);
    }
}

/* --- the batch, made by hand: every facing module once, every module nearer than it drawn; where
 * modules may hide each other all others too, on both sides --- */

struct hand_batch {
    struct lr_plan_image *images; /* [num_modules] */
    struct lr_plan_draw *draws;
    struct lr_batch batch;
};

static void fill_batch(const struct stage *stage, struct hand_batch *hand, uint64_t *state)
{
    const int modules = stage->scanner->num_modules;
    const int turn = (int)(modules * test_random(state)); /* so that tiles move about */
    hand->batch = (struct lr_batch){.images = hand->images, .draws = hand->draws};
    hand->batch.atlas_rows = stage->plan->rows;
    for (int i = 0; i < modules; i++) {
        if (stage->eye->modules[i].height <= 0) continue;
        for (int j = 0; j < modules; j++) {
            const bool pairs = eye_pairs(stage->eye, i, j), stops = stage->eye->hiding && i != j;
            const uint32_t image = (uint32_t)hand->batch.num_images, module = (uint32_t)j;
            if (stops) hand->draws[hand->batch.num_draws++] = (struct lr_plan_draw){image, module | LR_BEFORE_PRIMARY};
            if (pairs || stops) {
                hand->draws[hand->batch.num_draws++] =
                    (struct lr_plan_draw){image, pairs ? module : module | LR_ONLY_STOPS};
            }
        }
        hand->images[hand->batch.num_images++] = stage_image(stage, stage->eye->point_mm, i, (i + turn) % modules);
    }
}

/* What the atlas holds, read once. */
struct atlas {
    struct texel *hits;
    float *path_mm;
};

static void read_atlas(const struct stage *stage, struct atlas *atlas)
{
    const struct gl_target *target = stage->images.atlas;
    stage_check(stage, gl_texture_read(target->colours[0], NULL, atlas->hits) == LR_OK);
    stage_check(stage, gl_texture_read(target->colours[1], NULL, atlas->path_mm) == LR_OK);
}

static lr_pixel pixel_of(const struct stage *stage, const struct atlas *atlas, int64_t texel)
{
    const struct texel *hit = &atlas->hits[texel];
    if (hit->crystal == 0) return (lr_pixel){.module = -1, .r = -1, .s = -1};
    const int crystal = (int)hit->crystal - 1;
    const int module = lr_scanner_module_of(stage->scanner, crystal);
    const int within = crystal - stage->scanner->first_crystal[module];
    const int nu = stage->scanner->modules[module].crystals[0];
    return (lr_pixel){.module = (float)module,
                      .r = (float)(within % nu),
                      .s = (float)(within / nu),
                      .weight = hit->weight,
                      .path_mm = atlas->path_mm[texel]};
}

static void compare_image(struct tally *tally, const struct stage *stage, const struct lr_backend *cpu,
                          const struct lr_plan_image *image, const struct atlas *atlas)
{
    const int *crystals = stage->scanner->modules[image->primary].crystals;
    const int width = crystals[0] * stage->plan->rays, height = crystals[1] * stage->plan->rays;
    lr_pixel *want = test_alloc((int64_t)width * height, sizeof(*want));
    stage_check(stage, cpu->fns->picture(cpu->self, stage->eye->point_mm, image->primary, want) == LR_OK);
    for (int y = 0; y < stage->plan->tile[1]; y++) {
        for (int x = 0; x < stage->plan->tile[0]; x++) {
            const int64_t texel = (int64_t)(image->tile_y + y) * stage->images.atlas->size[0] + image->tile_x + x;
            const struct pixel_place at = {image->primary, x, y};
            if (stage_in_window(stage, image, x, y)) {
                const lr_pixel got = pixel_of(stage, atlas, texel);
                compare_pixel(tally, stage, &at, (const lr_pixel[2]){got, want[y * width + x]});
            } else if (atlas->hits[texel].crystal != 0) {
                note(tally, stage, &at, "a texel beyond the window is drawn");
            }
        }
    }
    free(want);
}

static void compare_point(struct tally *tally, struct stage *stage, const struct lr_backend *cpu,
                          struct hand_batch *hand, uint64_t *state)
{
    const int64_t texels = stage_atlas_texels(stage);
    struct atlas atlas = {.hits = test_alloc(texels, sizeof(*atlas.hits)),
                          .path_mm = test_alloc(texels, sizeof(*atlas.path_mm))};
    fill_batch(stage, hand, state);
    stage_check(stage, lr_correspondence_render(&stage->images, &hand->batch) == LR_OK);
    read_atlas(stage, &atlas);
    for (int k = 0; k < hand->batch.num_images; k++) compare_image(tally, stage, cpu, &hand->images[k], &atlas);
    free(atlas.hits);
    free(atlas.path_mm);
}

static void report(const struct tally *tally, const char *name, int rays)
{
    print_message("%-14s R = %d: %8lld lines, %7lld hits, %3lld borderline, %3lld differ (at most "
                  "%.1e pitches from an edge), weights to %.1e, paths to %.1e\n",
                  name, rays, (long long)tally->lines, (long long)tally->hits, (long long)tally->borderline,
                  (long long)tally->differing, tally->farthest, tally->worst_weight, tally->worst_path);
    if (tally->wrong > 0)
        print_error("%s, R = %d: %lld wrong, first %s\n", name, rays, (long long)tally->wrong, tally->first);
}

/* One scanner at a number of points; returns how many pixels are wrong. */
struct run {
    struct gl_context *ctx;
    const char *name;
    double reach_mm;
    int rays, num_points;
    const lr_image *mu;
    int mu_steps;
};

static int64_t compare_scanner(const struct run *run, lr_scanner *scanner, uint64_t *state)
{
    struct stage stage;
    struct lr_backend cpu;
    struct tally tally = {0};
    stage_open(&stage, &(struct stage_params){.ctx = run->ctx,
                                              .scanner = scanner,
                                              .rays = run->rays,
                                              .mu = run->mu,
                                              .mu_steps = run->mu_steps,
                                              .path_length = true});
    stage_check(&stage, lr_cpu_backend_create(&stage.backend_params, &cpu) == LR_OK);
    const int64_t pairs = (int64_t)scanner->num_modules * scanner->num_modules;
    struct hand_batch hand = {.images = test_alloc(scanner->num_modules, sizeof(*hand.images)),
                              .draws = test_alloc(2 * pairs, sizeof(*hand.draws))};
    for (int k = 0; k < run->num_points; k++) {
        double point_mm[3];
        test_point(scanner, run->reach_mm, k, state, point_mm);
        eye_place(stage.eye, point_mm);
        if (!stage.eye->hiding || eye_least_height(stage.eye) >= 0.5) compare_point(&tally, &stage, &cpu, &hand, state);
    }
    report(&tally, run->name, run->rays);
    free(hand.images);
    free(hand.draws);
    cpu.fns->destroy(cpu.self);
    stage_close(&stage);
    return tally.wrong;
}

static void test_scanners(void **context)
{
    static const int rays[] = {4, 2, 3, 1, 8};
    uint64_t state = test_seed();
    int64_t wrong = 0;
    for (int k = 0; k < NUM_SCANNER_CASES; k++) {
        const struct scanner_case *at = &scanner_cases[k];
        for (int r = 0; r < 5; r++) {
            /* R = 4 on all scanners, the others on every other one; few large images. */
            if (r > 0 && (k + r) % 2 == 1) continue;
            const int num_points = rays[r] < 4 ? NUM_TEST_POINTS : rays[r] == 4 ? 8 : 4;
            const struct run run = {
                .ctx = *context, .name = at->name, .reach_mm = at->reach_mm, .rays = rays[r], .num_points = num_points};
            wrong += compare_scanner(&run, at->create(), &state);
        }
    }
    assert_int_equal(wrong, 0);
}

/* A real scanner, as the program has it. */
static void test_preset(void **context)
{
    struct test_log log;
    uint64_t state = test_seed();
    test_log_init(&log);
    lr_scanner *scanner = lr_scanner_read("ge-explore-vista-dr", &log.log);
    if (scanner == NULL) fail_msg("%s", log.error);
    const struct run run = {.ctx = *context, .name = "Vista DR", .reach_mm = 20, .rays = 2, .num_points = 3};
    assert_int_equal(compare_scanner(&run, scanner, &state), 0);
}

static void test_random_scanners(void **context)
{
    uint64_t state = test_seed();
    int64_t wrong = 0;
    for (int k = 0; k < 25; k++) {
        char name[32];
        snprintf(name, sizeof(name), "random %d", k);
        const struct run run = {
            .ctx = *context, .name = name, .reach_mm = 20, .rays = 1 + k % 5, .num_points = NUM_TEST_POINTS + 6};
        wrong += compare_scanner(&run, create_random(&state), &state);
    }
    assert_int_equal(wrong, 0);
}

/* Modules before others, on both sides of the point. */
static void test_crowded_scanners(void **context)
{
    uint64_t state = test_seed();
    int64_t wrong = 0;
    for (int k = 0; k < 25; k++) {
        char name[32];
        snprintf(name, sizeof(name), "crowded %d", k);
        const struct run run = {
            .ctx = *context, .name = name, .reach_mm = 60, .rays = 1 + k % 4, .num_points = NUM_TEST_POINTS + 4};
        wrong += compare_scanner(&run, create_crowded(&state), &state);
    }
    assert_int_equal(wrong, 0);
}

/* A map with other voxels along each axis, off centre, which lines enter and leave. */
static lr_image *random_mu(uint64_t *state, double reach_mm)
{
    lr_grid grid = {.size = {9, 7, 5}};
    for (int k = 0; k < 3; k++) {
        grid.voxel_mm[k] = 2 * reach_mm / grid.size[k];
        grid.origin_mm[k] = -reach_mm + 0.5 * grid.voxel_mm[k] + 0.1 * reach_mm * (k - 1);
    }
    lr_image *mu = lr_image_create(&grid, NULL);
    assert_non_null(mu);
    for (int64_t v = 0; v < lr_grid_num_voxels(&grid); v++)
        mu->values[v] = (float)(0.3 / reach_mm * test_random(state));
    return mu;
}

static void test_absorption(void **context)
{
    static const char *const names[] = {"oblique", "tilted", "two rings", "ruled tilted", "large ring"};
    static const int steps[] = {1, 7, 40, 16, 25};
    uint64_t state = test_seed();
    int64_t wrong = 0;
    for (int k = 0; k < 5; k++) {
        const struct scanner_case *at = scanner_case_named(names[k]);
        lr_image *mu = random_mu(&state, at->reach_mm);
        const struct run run = {.ctx = *context,
                                .name = at->name,
                                .reach_mm = at->reach_mm,
                                .rays = k % 2 == 0 ? 2 : 3,
                                .num_points = k == 4 ? 4 : 8,
                                .mu = mu,
                                .mu_steps = steps[k]};
        wrong += compare_scanner(&run, at->create(), &state);
        lr_image_destroy(mu);
    }
    assert_int_equal(wrong, 0);
}

/* A pair outside the window has no LOR, but its module still stops lines. */
static void test_window_of_lors(void **context)
{
    struct stage stage;
    struct lr_backend cpu;
    uint64_t state = test_seed();
    stage_open(&stage,
               &(struct stage_params){.ctx = *context, .scanner = create_two_rings(), .rays = 2, .path_length = true});
    struct lr_pair_window window = lr_pair_window_begin(stage.lors, NULL, 0);
    const int64_t third = stage.lors->count / 3;
    assert_true(lr_pair_window_next(&window, third));
    assert_true(lr_pair_window_next(&window, third));
    stage_check(&stage, lr_scene_set_window(&stage.scene, &window) == LR_OK);
    stage_check(&stage, lr_cpu_backend_create(&stage.backend_params, &cpu) == LR_OK);
    const int modules = stage.scanner->num_modules;
    struct hand_batch hand = {.images = test_alloc(modules, sizeof(*hand.images)),
                              .draws = test_alloc(modules * modules, sizeof(*hand.draws))};
    struct texel *atlas = test_alloc(stage_atlas_texels(&stage), sizeof(*atlas));
    eye_place(stage.eye, (const double[3]){1.3, -2.1, 0.7});
    fill_batch(&stage, &hand, &state);
    stage_check(&stage, lr_correspondence_render(&stage.images, &hand.batch) == LR_OK);
    stage_check(&stage, gl_texture_read(stage.images.atlas->colours[0], NULL, atlas) == LR_OK);
    int inside = 0, outside = 0;
    for (int k = 0; k < hand.batch.num_images; k++) {
        const struct lr_plan_image *image = &hand.images[k];
        const int *crystals = stage.scanner->modules[image->primary].crystals;
        lr_pixel want[64 * 64];
        stage_check(&stage, cpu.fns->picture(cpu.self, stage.eye->point_mm, image->primary, want) == LR_OK);
        for (int pixel = 0; pixel < crystals[0] * crystals[1] * 4; pixel++) {
            const int x = pixel % (2 * crystals[0]), y = pixel / (2 * crystals[0]);
            const struct texel *got =
                &atlas[(int64_t)(image->tile_y + y) * stage.images.atlas->size[0] + image->tile_x + x];
            const int module = (int)want[pixel].module;
            const int pair = module < 0 ? -1 : (int)lr_lors_pair(stage.lors, (int)image->primary, module);
            const bool wanted = pair >= window.begin && pair < window.end;
            inside += wanted;
            outside += module >= 0 && !wanted;
            /* Outside the window a pixel carries nothing; inside it is as ever. */
            if (!wanted)
                assert_true(got->weight == 0.0f);
            else
                assert_close(got->weight, want[pixel].weight, weight_tolerance);
        }
    }
    assert_true(inside > 100 && outside > 100);
    free(atlas);
    free(hand.images);
    free(hand.draws);
    cpu.fns->destroy(cpu.self);
    stage_close(&stage);
}

/* The images come from fragments that were shaded: at least one for each pixel that has a hit, by
 * the device's own count, and none without draws. */
static void test_fragments_are_counted(void **context)
{
    if (!GLEW_ARB_pipeline_statistics_query && !GLEW_VERSION_4_6) skip();
    struct stage stage;
    uint64_t state = test_seed();
    stage_open(&stage,
               &(struct stage_params){.ctx = *context, .scanner = create_two_rings(), .rays = 4, .path_length = true});
    const int modules = stage.scanner->num_modules;
    struct hand_batch hand = {.images = test_alloc(modules, sizeof(*hand.images)),
                              .draws = test_alloc(modules * modules, sizeof(*hand.draws))};
    struct texel *atlas = test_alloc(stage_atlas_texels(&stage), sizeof(*atlas));
    eye_place(stage.eye, (const double[3]){1.3, -2.1, 0.7});
    for (int draws = 0; draws < 2; draws++) {
        GLuint query, shaded = 0;
        int64_t hits = 0;
        fill_batch(&stage, &hand, &state);
        hand.batch.num_draws *= draws;
        glGenQueries(1, &query);
        glBeginQuery(GL_FRAGMENT_SHADER_INVOCATIONS_ARB, query);
        stage_check(&stage, lr_correspondence_render(&stage.images, &hand.batch) == LR_OK);
        glEndQuery(GL_FRAGMENT_SHADER_INVOCATIONS_ARB);
        glGetQueryObjectuiv(query, GL_QUERY_RESULT, &shaded);
        glDeleteQueries(1, &query);
        stage_check(&stage, gl_texture_read(stage.images.atlas->colours[0], NULL, atlas) == LR_OK);
        for (int64_t k = 0; k < stage_atlas_texels(&stage); k++) hits += atlas[k].crystal != 0;
        print_message("%u fragments shaded, %lld pixels with a hit\n", shaded, (long long)hits);
        assert_true(draws == 0 ? shaded == 0 && hits == 0 : hits > 1000 && shaded >= hits);
    }
    free(atlas);
    free(hand.images);
    free(hand.draws);
    stage_close(&stage);
}

int main(int argc, char **argv)
{
    struct gl_context *ctx = stage_context();
    if (ctx == NULL) return 77;
    stage_choose_tests(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_scanners, ctx),
        cmocka_unit_test_prestate(test_preset, ctx),
        cmocka_unit_test_prestate(test_random_scanners, ctx),
        cmocka_unit_test_prestate(test_crowded_scanners, ctx),
        cmocka_unit_test_prestate(test_absorption, ctx),
        cmocka_unit_test_prestate(test_window_of_lors, ctx),
        cmocka_unit_test_prestate(test_fragments_are_counted, ctx),
    };
    const int failed = cmocka_run_group_tests_name("render_correspondence", tests, NULL, NULL);
    stage_leave(ctx);
    return failed;
}
