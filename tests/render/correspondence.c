/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The shaders correspondence/raster/correspondence.vert and .frag, alone, compared with the ray tracer in double.
 * Crystals are the same except within 1e-4 of a pitch of an edge; weights and path lengths agree to 1e-5. */
#include "stage.h"

#include "common/bindings.h"

/* Relative tolerance of a weight or a path length. */
static const double weight_tolerance = 1e-5;

/* Results of comparing pixels. */
struct tally {
    int64_t lines, hits, borderline, differing;
    int64_t wrong;   /* pixels that differ although no edge is near */
    double farthest; /* largest edge distance of a line that differs, pitches */
    double worst_weight, worst_path;
    char first[256]; /* the first wrong pixel */
};

static double relative(double a, double b)
{
    return a == b ? 0 : fabs(a - b) / fmax(fabs(a), fabs(b));
}

static void note(struct tally *tally, const struct stage *stage, int primary, const int at[2], const char *what)
{
    const double *w = stage->eye->point_mm;
    if (tally->wrong++ == 0)
        snprintf(tally->first, sizeof(tally->first), "%s at point (%.17g, %.17g, %.17g) primary %d pixel (%d, %d)",
                 what, w[0], w[1], w[2], primary, at[0], at[1]);
}

static void compare_pixel(struct tally *tally, const struct stage *stage, int primary, const int at[2], lr_pixel got,
                          lr_pixel want)
{
    double ray[3], edge;
    char what[128];
    eye_line(stage->eye, primary, at[0], at[1], ray);
    eye_first_hit(stage->eye, primary, ray, &edge);
    tally->lines++;
    tally->borderline += edge <= BORDERLINE_PITCHES;
    tally->hits += want.module >= 0;
    if (got.module != want.module || got.r != want.r || got.s != want.s) {
        tally->differing++;
        tally->farthest = fmax(tally->farthest, edge);
        snprintf(what, sizeof(what), "%g:(%g, %g) for %g:(%g, %g), %.3g pitches from an edge", got.module, got.r, got.s,
                 want.module, want.r, want.s, edge);
        if (edge > BORDERLINE_PITCHES) note(tally, stage, primary, at, what);
        return;
    }
    const double weight = relative(got.weight, want.weight), path = relative(got.path_mm, want.path_mm);
    tally->worst_weight = fmax(tally->worst_weight, weight);
    tally->worst_path = fmax(tally->worst_path, path);
    snprintf(what, sizeof(what), "weight %.9g for %.9g, path %.9g for %.9g", got.weight, want.weight, got.path_mm,
             want.path_mm);
    if (!(weight <= weight_tolerance) || !(path <= weight_tolerance)) note(tally, stage, primary, at, what);
}

/* --- a batch that the test makes: one image for each module that faces the point, with all modules nearer than it; if
 * modules may hide each other also all others, on both sides --- */

/* Plans the point of the eye in this way and renders it. */
static struct lr_batch render_by_hand(struct stage *stage, uint64_t *state, bool with_draws)
{
    const int modules = stage->scanner->num_modules;
    const int turn = (int)(modules * test_random(state)); /* changes the places of tiles */
    struct lr_plan_image *images = kept(modules, sizeof(*images));
    struct lr_plan_draw *draws = kept(2 * modules * modules, sizeof(*draws));
    struct lr_batch batch = {.images = images, .draws = draws, .atlas_rows = stage->plan->rows};
    for (int i = 0; i < modules; i++) {
        if (stage->eye->modules[i].height <= 0) continue;
        for (int j = 0; j < modules; j++) {
            const bool pairs = eye_pairs(stage->eye, i, j), stops = stage->eye->hiding && i != j;
            const uint32_t image = (uint32_t)batch.num_images, module = (uint32_t)j;
            if (stops) draws[batch.num_draws++] = (struct lr_plan_draw){image, module | LR_BEFORE_PRIMARY};
            if (pairs || stops)
                draws[batch.num_draws++] = (struct lr_plan_draw){image, pairs ? module : module | LR_ONLY_STOPS};
        }
        images[batch.num_images++] = stage_image(stage, stage->eye->point_mm, i, (i + turn) % modules);
    }
    if (!with_draws) batch.num_draws = 0;
    stage_check(stage, lr_correspondence_render(&stage->images, &batch) == LR_OK);
    return batch;
}

/* Texels of a target of the atlas. */
static void *read_atlas(const struct stage *stage, int colour, size_t texel_bytes)
{
    void *texels = kept(stage_atlas_texels(stage), texel_bytes);
    stage_check(stage, gl_texture_read(stage->images.atlas->colours[colour], NULL, texels) == LR_OK);
    return texels;
}

static lr_pixel pixel_of(const struct stage *stage, const struct texel *hit, float path_mm)
{
    if (hit->crystal == 0) return (lr_pixel){.module = -1, .r = -1, .s = -1};
    const int crystal = (int)hit->crystal - 1, module = lr_scanner_module_of(stage->scanner, crystal);
    const int within = crystal - stage->scanner->first_crystal[module];
    const int nu = stage->scanner->modules[module].crystals[0];
    return (lr_pixel){(float)module, (float)(within % nu), (float)(within / nu), hit->weight, path_mm};
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
    struct lr_backend cpu;
    struct tally tally = {0};
    struct stage *stage =
        stage_open(&filled(struct stage_params, .ctx = run->ctx, .scanner = scanner, .rays = run->rays, .mu = run->mu,
                           .mu_steps = run->mu_steps, .path_length = true));
    stage_check(stage, lr_cpu_backend_create(&stage->backend_params, &cpu) == LR_OK);
    for (int k = 0; k < run->num_points; k++) {
        double point_mm[3];
        test_point(scanner, run->reach_mm, k, state, point_mm);
        eye_place(stage->eye, point_mm);
        if (!stage->eye->hiding || eye_least_height(stage->eye) >= 0.5) {
            const struct lr_batch batch = render_by_hand(stage, state, true);
            const struct texel *hits = read_atlas(stage, 0, sizeof(*hits));
            const float *paths_mm = read_atlas(stage, 1, sizeof(*paths_mm));
            for (int i = 0; i < batch.num_images; i++) {
                const struct lr_plan_image *image = &batch.images[i];
                const int width = stage->scanner->modules[image->primary].crystals[0] * stage->plan->rays;
                lr_pixel *want = kept(eye_num_pixels(stage->eye, image->primary), sizeof(*want));
                stage_check(stage, cpu.fns->picture(cpu.self, stage->eye->point_mm, image->primary, want) == LR_OK);
                for (int n = 0; n < stage->plan->tile[0] * stage->plan->tile[1]; n++) {
                    const int at[2] = {n % stage->plan->tile[0], n / stage->plan->tile[0]};
                    const int64_t texel = stage_texel(stage, image, at[0], at[1]);
                    if (stage_in_window(stage, image, at[0], at[1])) {
                        const lr_pixel got = pixel_of(stage, &hits[texel], paths_mm[texel]);
                        compare_pixel(&tally, stage, image->primary, at, got, want[at[1] * width + at[0]]);
                    } else if (hits[texel].crystal != 0) {
                        note(&tally, stage, image->primary, at, "a texel beyond the window is drawn");
                    }
                }
            }
        }
    }
    print_message("%-14s R = %d: %8lld lines, %7lld hits, %3lld borderline, %3lld differ (at most %.1e pitches from an "
                  "edge), weights to %.1e, paths to %.1e\n",
                  run->name, run->rays, (long long)tally.lines, (long long)tally.hits, (long long)tally.borderline,
                  (long long)tally.differing, tally.farthest, tally.worst_weight, tally.worst_path);
    if (tally.wrong > 0)
        print_error("%s, R = %d: %lld wrong, first %s\n", run->name, run->rays, (long long)tally.wrong, tally.first);
    cpu.fns->destroy(cpu.self);
    destroy_kept(NULL);
    return tally.wrong;
}

static void test_scanners(void **context)
{
    static const int rays[] = {4, 2, 3, 1, 8};
    uint64_t state = test_seed();
    int64_t wrong = 0;
    for (int k = 0; k < length_of(scanner_cases); k++) {
        const struct scanner_case *at = &scanner_cases[k];
        for (int r = 0; r < 5; r++) {
            /* R = 4 with all scanners, other R with every second one; only few images are large. */
            if (r > 0 && (k + r) % 2 == 1) continue;
            const int num_points = rays[r] < 4 ? NUM_TEST_POINTS : rays[r] == 4 ? 8 : 4;
            const struct run run = {
                .ctx = *context, .name = at->name, .reach_mm = at->reach_mm, .rays = rays[r], .num_points = num_points};
            wrong += compare_scanner(&run, at->create(), &state);
        }
    }
    assert_int_equal(wrong, 0);
}

/* A real scanner, from the program's presets. */
static void test_preset(void **context)
{
    uint64_t state = test_seed();
    const struct run run = {.ctx = *context, .name = "Vista DR", .reach_mm = 20, .rays = 2, .num_points = 3};
    assert_int_equal(compare_scanner(&run, preset_scanner("ge-explore-vista-dr"), &state), 0);
}

/* Random scanners; a failure names the scanner. */
static void compare_drawn(struct gl_context *ctx, const char *kind, lr_scanner *(*create)(uint64_t *), double reach_mm,
                          int most_rays, int more_points)
{
    uint64_t state = test_seed();
    int64_t wrong = 0;
    for (int k = 0; k < 25; k++) {
        char name[32];
        snprintf(name, sizeof(name), "%s %d", kind, k);
        const struct run run = {ctx, name, reach_mm, 1 + k % most_rays, NUM_TEST_POINTS + more_points, NULL, 0};
        wrong += compare_scanner(&run, create(&state), &state);
    }
    assert_int_equal(wrong, 0);
}

static void test_random_scanners(void **context)
{
    compare_drawn(*context, "random", create_random, 20, 5, 6);
}

/* Modules in front of other modules, on both sides of the point. */
static void test_crowded_scanners(void **context)
{
    compare_drawn(*context, "crowded", create_crowded, 60, 4, 4);
}

static void test_absorption(void **context)
{
    static const char *const names[] = {"oblique", "tilted", "two rings", "ruled tilted", "large ring"};
    static const int steps[] = {1, 7, 40, 16, 25};
    uint64_t state = test_seed();
    int64_t wrong = 0;
    for (int k = 0; k < 5; k++) {
        const struct scanner_case *at = scanner_case_named(names[k]);
        lr_grid grid = {.size = {9, 7, 5}}; /* other sizes along each axis, off centre; lines enter and leave */
        for (int a = 0; a < 3; a++) {
            grid.voxel_mm[a] = 2 * at->reach_mm / grid.size[a];
            grid.origin_mm[a] = -at->reach_mm + 0.5 * grid.voxel_mm[a] + 0.1 * at->reach_mm * (a - 1);
        }
        lr_image *mu = random_mu(&grid, 0.3 / at->reach_mm, &state);
        const struct run run =
            filled(struct run, .ctx = *context, .name = at->name, .reach_mm = at->reach_mm, .rays = k % 2 == 0 ? 2 : 3,
                   .num_points = k == 4 ? 4 : 8, .mu = mu, .mu_steps = steps[k]);
        wrong += compare_scanner(&run, at->create(), &state);
        lr_image_destroy(mu);
    }
    assert_int_equal(wrong, 0);
}

/* A pair outside the window has no LOR, but its modules still stop lines. */
static void test_window_of_lors(void **context)
{
    struct lr_backend cpu;
    uint64_t state = test_seed();
    struct stage *stage = stage_open(
        &(struct stage_params){.ctx = *context, .scanner = create_two_rings(), .rays = 2, .path_length = true});
    struct lr_pair_window window = lr_pair_window_begin(stage->lors, NULL, 0);
    const int64_t third = stage->lors->count / 3;
    assert_all(lr_pair_window_next(&window, third), lr_pair_window_next(&window, third));
    stage_check(stage, lr_scene_set_window(&stage->scene, &window) == LR_OK);
    stage_check(stage, lr_cpu_backend_create(&stage->backend_params, &cpu) == LR_OK);
    eye_place(stage->eye, (const double[3]){1.3, -2.1, 0.7});
    const struct lr_batch batch = render_by_hand(stage, &state, true);
    const struct texel *atlas = read_atlas(stage, 0, sizeof(*atlas));
    int inside = 0, outside = 0;
    for (int k = 0; k < batch.num_images; k++) {
        const struct lr_plan_image *image = &batch.images[k];
        const int *crystals = stage->scanner->modules[image->primary].crystals;
        lr_pixel want[64 * 64];
        stage_check(stage, cpu.fns->picture(cpu.self, stage->eye->point_mm, image->primary, want) == LR_OK);
        for (int pixel = 0; pixel < crystals[0] * crystals[1] * 4; pixel++) {
            const int x = pixel % (2 * crystals[0]), y = pixel / (2 * crystals[0]);
            const struct texel *got = &atlas[stage_texel(stage, image, x, y)];
            const int module = (int)want[pixel].module;
            const int pair = module < 0 ? -1 : (int)lr_lors_pair(stage->lors, (int)image->primary, module);
            const bool wanted = pair >= window.begin && pair < window.end;
            inside += wanted;
            outside += module >= 0 && !wanted;
            /* A pixel outside the window carries nothing; a pixel inside it is unchanged. */
            if (!wanted)
                assert_true(got->weight == 0.0f);
            else
                assert_close(got->weight, want[pixel].weight, weight_tolerance);
        }
    }
    assert_true(inside > 100 && outside > 100);
    cpu.fns->destroy(cpu.self);
}

/* Images are made by fragment shaders: the device counts at least one fragment for each pixel with a hit, and none if
 * nothing is drawn. */
static void test_fragments_are_counted(void **context)
{
    if (!GLEW_ARB_pipeline_statistics_query && !GLEW_VERSION_4_6) skip();
    uint64_t state = test_seed();
    struct stage *stage = stage_open(
        &(struct stage_params){.ctx = *context, .scanner = create_two_rings(), .rays = 4, .path_length = true});
    eye_place(stage->eye, (const double[3]){1.3, -2.1, 0.7});
    for (int draws = 0; draws < 2; draws++) {
        GLuint query, shaded = 0;
        int64_t hits = 0;
        glGenQueries(1, &query);
        glBeginQuery(GL_FRAGMENT_SHADER_INVOCATIONS_ARB, query);
        render_by_hand(stage, &state, draws == 1);
        glEndQuery(GL_FRAGMENT_SHADER_INVOCATIONS_ARB);
        glGetQueryObjectuiv(query, GL_QUERY_RESULT, &shaded);
        glDeleteQueries(1, &query);
        const struct texel *atlas = read_atlas(stage, 0, sizeof(*atlas));
        for (int64_t k = 0; k < stage_atlas_texels(stage); k++) hits += atlas[k].crystal != 0;
        print_message("%u fragments shaded, %lld pixels with a hit\n", shaded, (long long)hits);
        assert_true(draws == 0 ? shaded == 0 && hits == 0 : hits > 1000 && shaded >= hits);
    }
}

stage_main("render_correspondence", CASES(test_scanners, test_preset, test_random_scanners, test_crowded_scanners,
                                          test_absorption, test_window_of_lors, test_fragments_are_counted))
