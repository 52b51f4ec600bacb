/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Laws of block RAMLA, OSEM and ML-EM, for the backend in argv[1]. */
#include "direct/cases.h"

enum { VIEWS = 12, VOXELS = 24 * 22 * 11 };

/* Operators of a set of views, with a true activity and its measurement. */
struct scene {
    lr_grid grid;
    lr_view views[VIEWS];
    int order[VIEWS];
    int32_t subset_of[VIEWS];
    lr_operator *op;
    lr_vector counts_data, additive_data, truth_image, initial_image;
    float truth[VOXELS], initial[VOXELS], image[VOXELS];
    float counts[VIEWS][VOXELS], additive[VIEWS][VOXELS], factors[VIEWS][VOXELS];
    bool corrected;
};

static struct test_log said; /* in this file, because operators keep it */

/* Makes an operator of some views, starting with view `first`; with the views' factors if the scene has corrections. */
static lr_operator *make_some(struct scene *scene, const char *name, int first, int num_views)
{
    const lr_lor_source factors = source_of_values(scene->factors[first]);
    test_log_init(&said);
    return kept_direct(filled(lr_direct_params, .grid = &scene->grid, .views = scene->views + first,
                              .num_views = num_views, .kernel = {.resolution = case_resolution(4)}, .backend = name,
                              .factors = scene->corrected ? &factors : NULL, .log = &said.log));
}

static lr_operator *make(struct scene *scene, const char *name)
{
    return make_some(scene, name, 0, VIEWS);
}

static struct scene *make_scene(bool corrected)
{
    uint64_t seed = test_seed();
    lr_view_set set;
    struct scene *scene = kept(1, sizeof(*scene));
    scene->grid = case_grid();
    scene->corrected = corrected;
    scene->counts_data = lr_vector_of_floats(scene->counts[0], VIEWS * VOXELS);
    scene->additive_data = lr_vector_of_floats(scene->additive[0], VIEWS * VOXELS);
    scene->truth_image = lr_vector_of_floats(scene->truth, VOXELS);
    scene->initial_image = lr_vector_of_floats(scene->initial, VOXELS);
    lr_view_set_complete(&(lr_view_set){.azimuths = 6, .tilts = 2}, &set, NULL);
    lr_view_set_order(&set, scene->order);
    for (int v = 0; v < VIEWS; v++) {
        scene->views[v] = lr_view_set_at(&set, v);
        for (int k = 0; k < VOXELS; k++) {
            scene->additive[v][k] = v % 3 != 0 ? (float)test_random(&seed) : 0;
            scene->factors[v][k] = v % 2 != 0 ? (float)(0.2 + test_random(&seed)) : 1;
        }
    }
    for (int k = 0; k < VOXELS; k++) {
        const int x = k % 24 - 12, y = k / 24 % 22 - 11;
        scene->truth[k] = x * x + y * y < 81 ? (float)(1 + (x > 2 && y > 2 ? 3 : 0)) : 0;
        scene->initial[k] = 1;
    }
    /* n K x + b of the true activity, without noise */
    assert_ok(array_forward(make(scene, "cpu"), scene->truth, scene->counts[0]));
    for (int k = 0; k < VIEWS * VOXELS && corrected; k++)
        scene->counts[k / VOXELS][k % VOXELS] += scene->additive[k / VOXELS][k % VOXELS];
    scene->op = make(scene, test_backend);
    return scene;
}

static const lr_recon_algorithm rules[2] = {LR_ALGORITHM_RAMLA, LR_ALGORITHM_OSEM};

/* One iteration, in blocks of neighbouring views in the order; with whole updates if the backend has them. */
static lr_recon_params recon_params(struct scene *scene, int rule, int views_per_block)
{
    for (int k = 0; k < VIEWS; k++) scene->subset_of[scene->order[k]] = k / views_per_block;
    return filled(lr_recon_params, .op = scene->op, .data = &scene->counts_data,
                  .additive = scene->corrected ? &scene->additive_data : NULL, .algorithm = rules[rule],
                  .subsets = (VIEWS - 1) / views_per_block + 1, .subset_of = scene->subset_of,
                  .initial = &scene->initial_image, .iterations = 1, .without_fit = true, .log = &said.log);
}

static lr_status run(const lr_recon_params *params, float *image)
{
    return lr_recon(params, vector_of(image, VOXELS));
}

/* The truth explains the data, so no update changes it, with all corrections. */
static void the_truth_stays(void **state)
{
    for (int n = 0; n < 8; n++) {
        static const int blocks[4] = {1, 2, 5, VIEWS};
        struct scene *scene = make_scene(n % 2 == 0);
        lr_recon_params params = recon_params(scene, n % 2, blocks[n / 2]);
        params.initial = &scene->truth_image;
        assert_ok(run(&params, scene->image));
        assert_true(l2_apart(scene->image, scene->truth, VOXELS) < 3e-6); /* 24 updates in float */
        destroy_kept_since(0);
    }
}

/* Notes the numbers of the last two iterations. It checks the image that each iteration reports. */
static lr_status remember(void *user, const lr_iteration *done)
{
    double(*found)[2] = user;
    (*found)[0] = (*found)[1];
    (*found)[1] = (double)done->number;
    return done->image->count == VOXELS && done->seconds >= 0 ? LR_OK : LR_FAILED;
}

static void images_come_nearer_to_the_truth(void **state)
{
    for (int rule = 0; rule < 2; rule++) {
        struct scene *scene = make_scene(true);
        double found[2] = {0}, last = HUGE_VAL;
        for (int iterations = 1; iterations <= 4; iterations *= 2) {
            lr_recon_params params = recon_params(scene, rule, rule == 0 ? 1 : 3);
            params.iterations = iterations;
            params.iteration = remember;
            params.user = &found;
            assert_ok(run(&params, scene->image));
            assert_true(found[1] == iterations);
            const double now = l2_apart(scene->image, scene->truth, VOXELS);
            assert_true(now < last);
            last = now;
        }
        assert_true(last < 0.35);
        destroy_kept_since(0);
    }
}

/* --- ML-EM --- */

static double log_likelihood(struct scene *scene, lr_operator *reference)
{
    static float histo[VIEWS][VOXELS];
    double sum = 0;
    assert_ok(array_forward(reference, scene->image, histo[0]));
    for (int k = 0; k < VIEWS * VOXELS; k++) {
        const int v = k / VOXELS, n = k % VOXELS;
        const double more = scene->corrected ? (double)scene->additive[v][n] : 0;
        const double expected = (double)histo[v][n] + more;
        sum += expected > 0 ? (double)scene->counts[v][n] * log(expected) - expected : 0;
    }
    return sum;
}

static void ml_em_never_lowers_the_likelihood(void **state)
{
    struct scene *scene = make_scene(true);
    lr_operator *reference = make(scene, "cpu");
    double last = -HUGE_VAL;
    for (int iterations = 1; iterations <= 5; iterations++) {
        lr_recon_params params = recon_params(scene, 1, VIEWS);
        params.iterations = iterations;
        assert_ok(run(&params, scene->image));
        const double now = log_likelihood(scene, reference);
        assert_true(now > last);
        last = now;
    }
}

/* Without an additive term, the expected counts equal the measured counts after every iteration. */
static void ml_em_keeps_the_counts(void **state)
{
    static float histo[VIEWS][VOXELS];
    struct scene *scene = make_scene(false);
    lr_recon_params params = recon_params(scene, 1, VIEWS);
    params.iterations = 2;
    assert_ok(run(&params, scene->image));
    double measured = 0, expected = 0;
    assert_ok(array_forward(scene->op, scene->image, histo[0]));
    for (int k = 0; k < VIEWS * VOXELS; k++) {
        measured += (double)scene->counts[k / VOXELS][k % VOXELS];
        expected += (double)histo[k / VOXELS][k % VOXELS];
    }
    assert_close(measured, expected, 1e-6);
}

/* --- RAMLA --- */

/* RAMLA with one block of one view, in whole updates and in single steps, compared with its formula, with projections
 * by the reference. */
static void ramla_is_its_formula(void **state)
{
    static double x[VOXELS], histo[VOXELS], back[VOXELS], sensitivity[VOXELS];
    static float expected[VOXELS], ones[VOXELS];
    struct scene *scene = make_scene(true);
    const int view = 5; /* this view has both corrections */
    lr_operator *reference = make_some(scene, "cpu", view, 1), *op = make_some(scene, test_backend, view, 1);
    double most = 0;
    for (int k = 0; k < VOXELS; k++) {
        x[k] = histo[k] = 1;
        ones[k] = 1;
    }
    assert_ok(array_back_f64(reference, histo, sensitivity), array_forward_f64(reference, x, histo));
    for (int k = 0; k < VOXELS; k++) {
        most = fmax(most, sensitivity[k]);
        histo[k] = (double)scene->counts[view][k] / (histo[k] + (double)scene->additive[view][k]);
    }
    assert_ok(array_back_f64(reference, histo, back));
    for (int k = 0; k < VOXELS; k++) expected[k] = (float)(1 + 0.7 / most * (back[k] - sensitivity[k]));
    const lr_vector additive = lr_vector_of_floats(scene->additive[view], VOXELS);
    lr_recon_params params = filled(lr_recon_params, .op = op, .data = vector_of(scene->counts[view], VOXELS),
                                    .additive = &additive, .initial = vector_of(ones, VOXELS), .iterations = 1,
                                    .algorithm = LR_ALGORITHM_RAMLA, .relaxation = 0.7, .log = &said.log);
    for (int whole = 0; whole < 2; whole++) {
        params.without_fit = whole != 0;
        assert_ok(run(&params, scene->image));
        assert_true(l2_apart(scene->image, expected, VOXELS) < 1e-6);
    }
}

/* Relaxation 1 takes no image below 0, even where nothing was counted. */
static void ramla_stays_positive(void **state)
{
    struct scene *scene = make_scene(true);
    for (int v = 0; v < VIEWS; v++) {
        memset(scene->counts[v], 0, sizeof(scene->counts[v]));
        scene->counts[v][100 + v] = 50;
    }
    for (int views_per_block = 1; views_per_block <= 4; views_per_block += 3) {
        lr_recon_params params = recon_params(scene, 0, views_per_block);
        params.iterations = 2;
        params.relaxation_fall = 0.5;
        assert_ok(run(&params, scene->image));
        for (int k = 0; k < VOXELS; k++) assert_true(scene->image[k] >= 0 && isfinite(scene->image[k]));
    }
}

enum { MANY_VIEWS = 60, FEW_VOXELS = 20 * 20 * 4 };

struct passes {
    double log_likelihood[4], left_out;
    int count;
};

static lr_status keep_pass(void *user, const lr_iteration *done)
{
    struct passes *passes = user;
    passes->log_likelihood[passes->count++] = done->log_likelihood;
    passes->left_out += done->left_out_counts;
    return LR_OK;
}

/* The default relaxation, with a subset for each view and about one count in ten bins. Each pass explains the counts
 * better, and loses none. With the largest steps that keep voxels positive (relaxation 1), the counts are explained
 * worse from the second pass on. */
static void the_default_suits_many_subsets(void **state)
{
    if (!test_backend_is("cpu")) skip();
    const lr_grid grid = lr_grid_centred((const int[3]){20, 20, 4}, (const double[3]){5, 5, 5});
    float *counts = kept_floats(MANY_VIEWS * FEW_VOXELS), image[FEW_VOXELS];
    lr_view views[MANY_VIEWS];
    lr_view_set set;
    struct passes passes[2] = {{.count = 0}};
    test_log_init(&said);
    lr_view_set_complete(&(lr_view_set){.azimuths = 20, .tilts = 3}, &set, NULL);
    for (int v = 0; v < MANY_VIEWS; v++) views[v] = lr_view_set_at(&set, v);
    lr_operator *op = kept_direct(filled(lr_direct_params, .grid = &grid, .views = views, .num_views = MANY_VIEWS,
                                         .kernel = {.resolution = {.tof_ps = 200, .radial_mm = 5, .axial_mm = 5}},
                                         .backend = "cpu", .log = &said.log));
    for (int k = 0; k < FEW_VOXELS; k++) {
        const int x = k % 20 - 10, y = k / 20 % 20 - 10;
        image[k] = x * x + y * y < 64 ? 0.1f : 0;
    }
    assert_ok(array_forward(op, image, counts), lr_poisson(counts, MANY_VIEWS * FEW_VOXELS, test_seed(), NULL));
    const lr_vector data = lr_vector_of_floats(counts, MANY_VIEWS * FEW_VOXELS);
    for (int k = 0; k < 2; k++) {
        assert_ok(lr_recon(&filled(lr_recon_params, .op = op, .data = &data, .iterations = 4, .subsets = MANY_VIEWS,
                                   .algorithm = LR_ALGORITHM_RAMLA, .relaxation = k, .iteration = keep_pass,
                                   .user = &passes[k], .log = &said.log),
                           vector_of(image, FEW_VOXELS)));
        for (int n = 0; n < 4; n++)
            print_message("relaxation %d, pass %d: %.8g\n", k, n + 1, passes[k].log_likelihood[n]);
    }
    for (int n = 1; n < 4; n++) {
        assert_true(passes[0].log_likelihood[n] > passes[0].log_likelihood[n - 1]);
        assert_true(passes[0].log_likelihood[n] > passes[1].log_likelihood[n]);
    }
    assert_true(passes[0].left_out == 0);
}

/* --- whole updates --- */

static lr_status see_fit(void *user, const lr_iteration *done)
{
    *(bool *)user = done->has_fit;
    assert_true(done->has_fit == (done->measured_counts > 0));
    return LR_OK;
}

/* The loop does the same in single steps, and then reports the fit; so does the reference. */
static void whole_updates_are_the_steps_of_the_loop(void **state)
{
    static float expected[VOXELS];
    for (int rule = 0; rule < 2; rule++) {
        struct scene *scene = make_scene(true);
        lr_recon_params params = recon_params(scene, rule, 1 + 2 * rule);
        bool has_fit = true;
        params.iterations = 2;
        params.iteration = see_fit;
        params.user = &has_fit;
        assert_ok(run(&params, scene->image));
        assert_true(has_fit == (test_backend_is("cpu")));
        for (int of_reference = 0; of_reference < 2; of_reference++) {
            params.without_fit = of_reference != 0;
            params.op = of_reference ? make(scene, "cpu") : scene->op;
            has_fit = false;
            assert_ok(run(&params, expected));
            assert_true(has_fit);
            const double found = l2_apart(scene->image, expected, VOXELS);
            print_message("rule %d: differs by %.2e\n", rule, found);
            assert_true(found < 1e-5);
        }
        destroy_kept_since(0);
    }
}

/* A view without counts changes nothing, and causes one warning. */
static void subsets_without_counts_are_passed_over(void **state)
{
    static float expected[VOXELS];
    struct scene *scene = make_scene(false);
    memset(scene->counts[3], 0, sizeof(scene->counts[3]));
    lr_recon_params params = recon_params(scene, 0, 1);
    assert_ok(run(&params, scene->image));
    params.without_fit = false;
    assert_ok(run(&params, expected));
    assert_true(l2_apart(scene->image, expected, VOXELS) < 2e-6);
    for (int k = 0; k < VOXELS; k++) assert_true(scene->truth[k] == 0 || scene->image[k] > 0);
}

/* --- calls --- */

/* Does not stop the sensitivities, which are computed first. */
static bool stop_later(void *user, const char *what, double done, double total)
{
    return strncmp(what, "iteration", 9) != 0 || done / total < *(double *)user;
}

static void stopping_leaves_the_last_block(void **state)
{
    struct scene *scene = make_scene(false);
    double share = 0.5;
    const lr_progress progress = {stop_later, &share};
    lr_recon_params params = recon_params(scene, 0, 1);
    params.progress = &progress;
    assert_int_equal(run(&params, scene->image), LR_CANCELLED);
    assert_true(l2_apart(scene->image, scene->initial, VOXELS) > 1e-3);
}

/* Checks that the scene is refused, with a message that contains these words. */
static void check_refused(struct scene *scene, const lr_recon_params *params, lr_status status, const char *words)
{
    assert_fails(run(params, scene->image), status, &said, words);
}

static void bad_data_are_refused(void **state)
{
    struct scene *scene = make_scene(true);
    const lr_recon_params params = recon_params(scene, 0, 1);
    const struct {
        const char *name;
        float *number, bad, good;
        const char *words;
    } cases[] = {{"a factor", &scene->factors[2][7], -1, 1, "the factor of voxel 7 of view 2 is -1"},
                 {"an additive term", &scene->additive[1][8], -1, 0, ""},
                 {"negative counts", &scene->counts[0][5], -1, 1, ""},
                 {"counts that are no number", &scene->counts[0][5], NAN, 1, ""},
                 {"an initial image", &scene->initial[5], -1, 1, ""}};
    for (int k = 0; k < length_of(cases); k++) {
        print_message("%s\n", cases[k].name);
        spoilt(*cases[k].number = cases[k].bad, check_refused(scene, &params, LR_BAD_INPUT, cases[k].words));
        *cases[k].number = cases[k].good;
    }
    assert_ok(run(&params, scene->image));
}

/* Activity is in one corner, and all counts are in the opposite corner: EM finds no image that explains them. */
static void counts_out_of_reach_are_refused(void **state)
{
    struct scene *scene = make_scene(false);
    memset(scene->counts, 0, sizeof(scene->counts));
    memset(scene->initial, 0, sizeof(scene->initial));
    scene->initial[0] = 1;
    for (int v = 0; v < VIEWS; v++) scene->counts[v][VOXELS - 1] = 5;
    const lr_recon_params params = recon_params(scene, 1, VIEWS);
    check_refused(scene, &params, LR_BAD_INPUT, "grid and data belong together");
}

static void bad_calls_are_refused(void **state)
{
    struct scene *scene = make_scene(false);
    lr_recon_params params = recon_params(scene, 0, 1);
    spoilt(params.subsets = VIEWS + 1, check_refused(scene, &params, LR_USAGE, ""));
    params = recon_params(scene, 0, 1);
    spoilt(scene->subset_of[2] = VIEWS, check_refused(scene, &params, LR_USAGE, ""));
    scene->subset_of[2] = scene->subset_of[3]; /* now one subset is empty */
    check_refused(scene, &params, LR_USAGE, "no pair belongs to subset");
    params = recon_params(scene, 0, 1);
    spoilt(params.relaxation = -1, check_refused(scene, &params, LR_USAGE, ""));
}

static void what_cannot_be_timed_is_refused(void **state)
{
    struct scene *scene = make_scene(false);
    const int view = 3, wrong = VIEWS;
    lr_direct_timing timing;
    lr_direct_task task = {.views = &view, .num_views = 1};
    assert_fails(lr_direct_time(scene->op, &task, &timing), LR_USAGE, &said, "no image has been given");
    task.image = vector_of(scene->truth, VOXELS);
    for (int work = LR_DIRECT_WORK_FORWARD; work <= LR_DIRECT_WORK_READING; work++) {
        task.work = (lr_direct_work)work;
        assert_ok(lr_direct_time(scene->op, &task, &timing));
        assert_true(timing.wall_s > 0 && timing.num_offsets > 0);
        task.image = NULL;
    }
    task.views = &wrong;
    assert_int_equal(lr_direct_time(scene->op, &task, &timing), LR_USAGE);
}

usable_main(case_is_usable(argc, argv),
            CASES(the_truth_stays, images_come_nearer_to_the_truth, ml_em_never_lowers_the_likelihood,
                  ml_em_keeps_the_counts, ramla_is_its_formula, ramla_stays_positive, the_default_suits_many_subsets,
                  whole_updates_are_the_steps_of_the_loop, subsets_without_counts_are_passed_over,
                  stopping_leaves_the_last_block, bad_data_are_refused, counts_out_of_reach_are_refused,
                  bad_calls_are_refused, what_cannot_be_timed_is_refused))
