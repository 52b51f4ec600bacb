/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Laws of block RAMLA, OSEM and ML-EM, for the backend that argv[1] names. */
#include "direct/cases.h"
#include "fixtures.h"

enum { VIEWS = 12, VOXELS = 24 * 22 * 11 };

static const char *backend;
static lr_direct_storage storage;

/* Projectors of a set of views, with what is true of an activity and its measurement. */
struct scene {
    lr_grid grid;
    lr_view views[VIEWS];
    int order[VIEWS];
    lr_direct *direct;
    float truth[VOXELS], initial[VOXELS], image[VOXELS];
    float counts[VIEWS][VOXELS], additive[VIEWS][VOXELS], factors[VIEWS][VOXELS];
    bool corrected;
};

static lr_direct *make(const struct scene *scene, const char *name)
{
    static struct test_log log; /* projectors keep it */
    test_log_init(&log);
    lr_direct *direct =
        lr_direct_create(&(lr_direct_params){.grid = &scene->grid,
                                             .views = scene->views,
                                             .num_views = VIEWS,
                                             .kernel = {.resolution = case_resolution(4)},
                                             .backend = name,
                                             .storage = storage,
                                             .log = &log.log});
    if (direct == NULL) {
        fail_msg("%s", log.error);
    }
    return direct;
}

/* n K x + b of the truth, without noise. */
static void measure(struct scene *scene)
{
    lr_direct *reference = make(scene, "cpu");
    for (int v = 0; v < VIEWS; v++) {
        assert_int_equal(lr_direct_forward(reference, v, scene->truth, scene->counts[v]), LR_OK);
        for (int k = 0; k < VOXELS && scene->corrected; k++) {
            scene->counts[v][k] =
                scene->factors[v][k] * scene->counts[v][k] + scene->additive[v][k];
        }
    }
    lr_direct_destroy(reference);
}

static void load(const struct scene *scene, lr_direct *direct)
{
    for (int v = 0; v < VIEWS; v++) {
        assert_int_equal(
            lr_direct_load(
                direct, v,
                &(lr_direct_data){
                    .counts = scene->counts[v],
                    .additive = scene->corrected && v % 3 != 0 ? scene->additive[v] : NULL,
                    .factors = scene->corrected && v % 2 != 0 ? scene->factors[v] : NULL,
                }),
            LR_OK);
    }
}

static struct scene *make_scene(bool corrected)
{
    uint64_t seed = test_seed();
    lr_view_set set;
    struct scene *scene = calloc(1, sizeof(*scene));
    scene->grid = case_grid();
    scene->corrected = corrected;
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
    measure(scene);
    scene->direct = make(scene, backend);
    load(scene, scene->direct);
    return scene;
}

static void destroy_scene(struct scene *scene)
{
    lr_direct_destroy(scene->direct);
    free(scene);
}

static double difference(const float *a, const float *b)
{
    double square = 0, norm = 0;
    for (int k = 0; k < VOXELS; k++) {
        square += ((double)a[k] - (double)b[k]) * ((double)a[k] - (double)b[k]);
        norm += (double)b[k] * (double)b[k];
    }
    return sqrt(square / norm);
}

static const lr_direct_rule rules[2] = {LR_DIRECT_RAMLA, LR_DIRECT_EM};

static lr_direct_recon_params recon_params(const struct scene *scene, int rule, int views_per_block)
{
    return (lr_direct_recon_params){.direct = scene->direct,
                                    .rule = rules[rule],
                                    .order = scene->order,
                                    .views_per_block = views_per_block,
                                    .initial = scene->initial};
}

/* The truth explains the data, so no update changes it, with all corrections. */
static void the_truth_stays(void **state)
{
    (void)state;
    for (int n = 0; n < 8; n++) {
        static const int blocks[4] = {1, 2, 5, VIEWS};
        struct scene *scene = make_scene(n % 2 == 0);
        lr_direct_recon_params params = recon_params(scene, n % 2, blocks[n / 2]);
        params.initial = scene->truth;
        assert_int_equal(lr_direct_recon(&params, scene->image), LR_OK);
        assert_true(difference(scene->image, scene->truth) < 3e-6); /* 24 updates in float */
        destroy_scene(scene);
    }
}

/* From ones the image comes nearer to the truth, iteration by iteration. */
static lr_status remember(void *user, const lr_direct_iteration *done)
{
    double(*found)[2] = user;
    (*found)[0] = (*found)[1];
    (*found)[1] = (double)done->number;
    return done->image != NULL && done->seconds >= 0 ? LR_OK : LR_FAILED;
}

static void images_come_nearer_to_the_truth(void **state)
{
    (void)state;
    for (int rule = 0; rule < 2; rule++) {
        struct scene *scene = make_scene(true);
        double found[2] = {0}, last = HUGE_VAL;
        for (int iterations = 1; iterations <= 4; iterations *= 2) {
            lr_direct_recon_params params = recon_params(scene, rule, rule == 0 ? 1 : 3);
            params.iterations = iterations;
            params.iteration = remember;
            params.user = &found;
            assert_int_equal(lr_direct_recon(&params, scene->image), LR_OK);
            assert_true(found[1] == iterations);
            const double now = difference(scene->image, scene->truth);
            assert_true(now < last);
            last = now;
        }
        assert_true(last < 0.35);
        destroy_scene(scene);
    }
}

/* --- ML-EM --- */

static double log_likelihood(struct scene *scene, lr_direct *reference)
{
    static float histo[VOXELS];
    double sum = 0;
    for (int v = 0; v < VIEWS; v++) {
        assert_int_equal(lr_direct_forward(reference, v, scene->image, histo), LR_OK);
        for (int k = 0; k < VOXELS; k++) {
            double expected = (double)histo[k];
            if (scene->corrected) {
                expected = (double)scene->factors[v][k] * expected + (double)scene->additive[v][k];
            }
            sum += expected > 0 ? (double)scene->counts[v][k] * log(expected) - expected : 0;
        }
    }
    return sum;
}

static void ml_em_never_lowers_the_likelihood(void **state)
{
    (void)state;
    struct scene *scene = make_scene(true);
    lr_direct *reference = make(scene, "cpu");
    double last = -HUGE_VAL;
    for (int iterations = 1; iterations <= 5; iterations++) {
        lr_direct_recon_params params = recon_params(scene, 1, VIEWS);
        params.iterations = iterations;
        assert_int_equal(lr_direct_recon(&params, scene->image), LR_OK);
        const double now = log_likelihood(scene, reference);
        assert_true(now > last);
        last = now;
    }
    lr_direct_destroy(reference);
    destroy_scene(scene);
}

/* Without an additive term every iteration ends with as many expected as measured counts. */
static void ml_em_keeps_the_counts(void **state)
{
    (void)state;
    static float histo[VOXELS];
    struct scene *scene = make_scene(false);
    lr_direct_recon_params params = recon_params(scene, 1, VIEWS);
    params.iterations = 2;
    assert_int_equal(lr_direct_recon(&params, scene->image), LR_OK);
    double measured = 0, expected = 0;
    for (int v = 0; v < VIEWS; v++) {
        assert_int_equal(lr_direct_forward(scene->direct, v, scene->image, histo), LR_OK);
        for (int k = 0; k < VOXELS; k++) {
            measured += (double)scene->counts[v][k];
            expected += (double)histo[k];
        }
    }
    assert_close(measured, expected, 1e-6);
    destroy_scene(scene);
}

/* --- RAMLA --- */

/* One block of one view, against its formula with the reference's projections. */
static void ramla_is_its_formula(void **state)
{
    (void)state;
    static double x[VOXELS], histo[VOXELS], back[VOXELS];
    static float expected[VOXELS];
    struct scene *scene = make_scene(true);
    lr_direct *reference = make(scene, "cpu");
    const int view = 5; /* with both corrections */
    double most = 0;
    for (int k = 0; k < VOXELS; k++) {
        x[k] = 1;
        most = fmax(most, (double)scene->factors[view][k]);
    }
    assert_int_equal(lr_direct_forward_f64(reference, view, x, histo), LR_OK);
    for (int k = 0; k < VOXELS; k++) {
        const double n = (double)scene->factors[view][k];
        histo[k] = n * ((double)scene->counts[view][k] /
                            (n * histo[k] + (double)scene->additive[view][k]) -
                        1);
    }
    assert_int_equal(lr_direct_back_f64(reference, view, histo, back), LR_OK);
    for (int k = 0; k < VOXELS; k++) {
        expected[k] = (float)(1 + 0.7 / most * back[k]);
    }
    assert_int_equal(lr_direct_set_image(scene->direct, scene->initial), LR_OK);
    assert_int_equal(
        lr_direct_update(scene->direct,
                         &(lr_direct_block){.views = &view, .num_views = 1, .relaxation = 0.7}),
        LR_OK);
    assert_int_equal(lr_direct_get_image(scene->direct, scene->image), LR_OK);
    assert_true(difference(scene->image, expected) < 1e-6);
    lr_direct_destroy(reference);
    destroy_scene(scene);
}

/* Relaxation 1 takes no image below 0, even where nothing was counted. */
static void ramla_stays_positive(void **state)
{
    (void)state;
    struct scene *scene = make_scene(true);
    for (int v = 0; v < VIEWS; v++) {
        memset(scene->counts[v], 0, sizeof(scene->counts[v]));
        scene->counts[v][100 + v] = 50;
    }
    load(scene, scene->direct);
    for (int views_per_block = 1; views_per_block <= 4; views_per_block += 3) {
        lr_direct_recon_params params = recon_params(scene, 0, views_per_block);
        params.iterations = 2;
        params.relaxation_fall = 0.5;
        assert_int_equal(lr_direct_recon(&params, scene->image), LR_OK);
        for (int k = 0; k < VOXELS; k++) {
            assert_true(scene->image[k] >= 0 && isfinite(scene->image[k]));
        }
    }
    destroy_scene(scene);
}

static void agrees_with_the_reference(void **state)
{
    (void)state;
    static float expected[VOXELS];
    for (int rule = 0; rule < 2; rule++) {
        struct scene *scene = make_scene(true);
        lr_direct *reference = make(scene, "cpu");
        load(scene, reference);
        lr_direct_recon_params params = recon_params(scene, rule, 1 + 2 * rule);
        params.iterations = 2;
        assert_int_equal(lr_direct_recon(&params, scene->image), LR_OK);
        params.direct = reference;
        assert_int_equal(lr_direct_recon(&params, expected), LR_OK);
        const double found = difference(scene->image, expected);
        print_message("rule %d: differs by %.2e\n", rule, found);
        assert_true(found < 1e-5);
        lr_direct_destroy(reference);
        destroy_scene(scene);
    }
}

/* --- calls --- */

static bool stop_later(void *user, const char *what, double done, double total)
{
    (void)what;
    return done / total < *(double *)user;
}

static void stopping_leaves_the_last_block(void **state)
{
    (void)state;
    struct scene *scene = make_scene(false);
    double share = 0.5;
    const lr_progress progress = {stop_later, &share};
    lr_direct_recon_params params = recon_params(scene, 0, 1);
    params.progress = &progress;
    assert_int_equal(lr_direct_recon(&params, scene->image), LR_CANCELLED);
    assert_true(difference(scene->image, scene->initial) > 1e-3);
    destroy_scene(scene);
}

static void bad_calls_are_refused(void **state)
{
    (void)state;
    struct scene *scene = make_scene(false);
    const int view = 3, wrong = VIEWS;
    lr_direct *empty = make(scene, backend);
    assert_int_equal(lr_direct_get_image(empty, scene->image), LR_USAGE);
    assert_int_equal(lr_direct_set_image(empty, scene->initial), LR_OK);
    assert_int_equal(lr_direct_update(empty, &(lr_direct_block){.views = &view, .num_views = 1}),
                     LR_USAGE);
    assert_int_equal(lr_direct_load(empty, VIEWS, &(lr_direct_data){.counts = scene->truth}),
                     LR_USAGE);
    assert_int_equal(lr_direct_load(empty, 0, &(lr_direct_data){0}), LR_USAGE);
    scene->image[5] = -1;
    assert_int_equal(lr_direct_load(empty, 0, &(lr_direct_data){.counts = scene->image}),
                     LR_BAD_INPUT);
    assert_int_equal(lr_direct_set_image(empty, scene->image), LR_BAD_INPUT);
    lr_direct_destroy(empty);
    assert_int_equal(
        lr_direct_update(scene->direct, &(lr_direct_block){.views = &wrong, .num_views = 1}),
        LR_USAGE);
    lr_direct_recon_params params = recon_params(scene, 0, VIEWS + 1);
    assert_int_equal(lr_direct_recon(&params, scene->image), LR_USAGE);
    params = recon_params(scene, 0, 1);
    scene->order[0] = scene->order[1];
    assert_int_equal(lr_direct_recon(&params, scene->image), LR_USAGE);
    params = recon_params(scene, 0, 1);
    params.order = NULL;
    params.relaxation = -1;
    assert_int_equal(lr_direct_recon(&params, scene->image), LR_USAGE);
    destroy_scene(scene);
}

int main(int argc, char **argv)
{
    backend = argc > 1 ? argv[1] : "cpu";
    if (strcmp(backend, "textures") == 0) {
        backend = "compute";
        storage = LR_DIRECT_TEXTURES;
    }
    if (!fixture_backend_is_usable(backend)) {
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_truth_stays),
        cmocka_unit_test(images_come_nearer_to_the_truth),
        cmocka_unit_test(ml_em_never_lowers_the_likelihood),
        cmocka_unit_test(ml_em_keeps_the_counts),
        cmocka_unit_test(ramla_is_its_formula),
        cmocka_unit_test(ramla_stays_positive),
        cmocka_unit_test(agrees_with_the_reference),
        cmocka_unit_test(stopping_leaves_the_last_block),
        cmocka_unit_test(bad_calls_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
