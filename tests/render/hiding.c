/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Modules that hide other modules, on either side of a point. The raster and compute backends are compared with the cpu
 * backend, element by element and pixel by pixel; projections, parts and windows are compared with the backend's own
 * rows. */
#include "subject.h"

/* Tolerances as in compute.c: relative L2, and the worst difference relative to the largest element. */
static const double exact_l2 = 1e-5, exact_worst = 1e-4;

/* Products of floats that are added up in any order, relative to the sum. */
static const double sum_tolerance = 3e-6;

/* --- arrangements --- */

static lr_module panel(double x_mm, const double at_mm[2], const int crystals[2], double pitch_mm, double face_mm)
{
    lr_module module = shape_of(crystals[0], crystals[1], pitch_mm, face_mm);
    module.depth_mm = 1;
    module = place_module(&module, &(struct placement){.radius_mm = 1});
    module.centre_mm[0] = x_mm;
    module.centre_mm[1] = at_mm[0];
    module.centre_mm[2] = at_mm[1];
    return module;
}

/* The middle module is smaller than the first, is placed to one side, and has more gap than face. */
static lr_scanner *create_parallel(void)
{
    const lr_module modules[3] = {panel(-70, (double[2]){0, 0}, (int[2]){9, 8}, 5, 4.6),
                                  panel(-40, (double[2]){4, -3}, (int[2]){5, 4}, 6, 4),
                                  panel(60, (double[2]){-2, 1}, (int[2]){8, 9}, 5.2, 5)};
    return scanner_of(modules, 3, 0);
}

static lr_scanner *create_ring_in_ring(void)
{
    lr_module modules[20];
    const lr_module inner = shape_of(4, 5, 3.1, 2.6), outer = shape_of(5, 6, 4, 3.7);
    for (int m = 0; m < 20; m++) {
        modules[m] = m < 8 ? place_module(&inner, &(struct placement){45.0 * m + 9, 24, 1, 0, 0, 0})
                           : place_module(&outer, &(struct placement){30.0 * m, 46, -1, 0, 0, 0});
    }
    return scanner_of(modules, 20, 70);
}

/* The centre of the tilted module is farther away than all others, and yet the module stands in front of the two
 * others. */
static lr_scanner *create_tilted_before(void)
{
    lr_module tilted = shape_of(12, 3, 6, 5);
    tilted.depth_mm = 1;
    const lr_module modules[4] = {panel(-60, (double[2]){24, 0}, (int[2]){5, 7}, 6, 5.5),
                                  panel(-60, (double[2]){-24, 2}, (int[2]){6, 4}, 6.5, 6),
                                  panel(55, (double[2]){0, -1}, (int[2]){9, 6}, 6, 5.7),
                                  place_module(&tilted, &(struct placement){127, 75, 3, 20, -40, 10})};
    return scanner_of(modules, 4, 0);
}

/* Five layers of small modules, each with another tilt, in front of large crystals, and two layers on the other side:
 * many modules overlap in the view of one crystal from another. */
static lr_scanner *create_layers(void)
{
    enum { LAYERS = 7, PER_LAYER = 6 };
    const double places[LAYERS] = {-64, -54, -44, -34, -24, 30, 42};
    lr_module modules[2 + LAYERS * PER_LAYER];
    modules[0] = panel(-75, (double[2]){0, 0}, (int[2]){2, 2}, 20, 19);
    modules[1] = panel(60, (double[2]){0, 0}, (int[2]){2, 2}, 22, 21);
    for (int k = 0; k < LAYERS * PER_LAYER; k++) {
        const int layer = k / PER_LAYER, within = k % PER_LAYER;
        lr_module small = shape_of(1 + k % 2, 2, 2.6, 2.2);
        small.depth_mm = 0.5;
        lr_module *module = &modules[2 + k];
        *module = place_module(&small, &(struct placement){0, 1, 0, 7.0 * (k % 5) - 14, 9.0 * (k % 3) - 8, 29.0 * k});
        module->centre_mm[0] = places[layer] + 0.3 * within;
        module->centre_mm[1] = 9.0 * (within % 3 - 1) + 1.7 * layer - 4;
        module->centre_mm[2] = 10.0 * (within / 3) - 5 + 1.1 * layer - 3;
    }
    return scanner_of(modules, 2 + LAYERS * PER_LAYER, 0);
}

enum { NUM_POINTS = 8, NUM_RANDOM = 6 };

struct arrangement {
    const char *name;
    lr_scanner *(*create)(void);
    double points_mm[NUM_POINTS][3]; /* in front of, between and behind the modules that hide others */
};

static const struct arrangement arrangements[] = {
    {"parallel panels",
     create_parallel,
     {{0, 0.4, -0.3}, {-25, 6, -4}, {-54, 20, 2}, {28, -9, 5}, {-41.5, 3, 1}, {-69, 5, 5}, {-38.5, -9, 8}, {50, 0, 0}}},
    {"ring in ring",
     create_ring_in_ring,
     {{0.1, 0.2, 0}, {1, 0.5, 0}, {-9, 7, 3}, {31, 6, -2}, {-3, 35, 1}, {20, -10, -5}, {0, -33, 9}, {12, 12, 2}}},
    {"tilted before",
     create_tilted_before,
     {{-8, 1, 0}, {4, -6, 5}, {-45, -8, -3}, {-50, 20, 1}, {20, 10, 4}, {-20, 30, -6}, {-52, -25, 0}, {45, -3, 2}}},
    {"seven layers",
     create_layers,
     {{0, 0.3, -0.2}, {5, 2, 1}, {-5, -3, 2}, {12, 1, -4}, {-39, 2, 1}, {-59, 0, 0}, {36, -2, 3}, {20, 4, 4}}},
    {"stacked",
     create_stacked,
     {{0, 0, 0}, {5, 2, 1}, {-5, -3, 2}, {-30, 1, 1}, {-50, 3, 0}, {-62, 2, -4}, {40, -2, 3}, {70, 4, 4}}}};

/* --- elements --- */

/* Makes an arrangement, or a random one, with points at least half a millimetre from every module's plane. */
static struct subject *open_case(int which, uint64_t *state)
{
    const bool is_random = which >= length_of(arrangements);
    struct subject *subject = subject_open(is_random ? "random" : arrangements[which].name,
                                           is_random ? create_crowded(state) : arrangements[which].create());
    assert_true(lr_modules_may_hide(subject->scanner));
    subject->grid = lr_grid_centred((const int[3]){7, 2, 2}, (const double[3]){17.3, 9.1, 6.3});
    subject->grid.origin_mm[1] += 0.7;
    subject->params.rays = 3;
    subject->params.mu_steps = 20;
    subject->params.threads = 1;
    subject->num_points = NUM_POINTS;
    if (!is_random) {
        subject->points = arrangements[which].points_mm;
        return subject;
    }
    double(*points)[3] = kept(NUM_POINTS, sizeof(*points));
    struct eye *eye = eye_create(subject->scanner, 1);
    for (int n = 0; n < NUM_POINTS; n++) {
        do {
            for (int k = 0; k < 3; k++) points[n][k] = random_between(state, -1, 1) * (k == 2 ? 15 : 45);
            eye_place(eye, points[n]);
        } while (eye_least_height(eye) < 0.5);
    }
    subject->points = (const double(*)[3])points;
    return subject;
}

static void check_exact(struct subject *subject)
{
    struct gap gap = {0};
    subject->params.mode = LR_MODE_EXACT;
    const struct row *found = subject_rows(subject, "compute"), *expected = subject_rows(subject, "cpu");
    for (int n = 0; n < NUM_POINTS; n++) gap_add_rows(&gap, &found[n], &expected[n]);
    check_gap(subject->name, &gap, exact_l2, exact_worst);
}

static void check_sampled(struct subject *subject, const char *backend)
{
    struct eye *eye = eye_create(subject->scanner, subject->params.rays);
    double largest = 0;
    subject->params.mode = LR_MODE_SAMPLED;
    const struct row *found = subject_rows(subject, backend), *expected = subject_rows(subject, "cpu");
    for (int n = 0; n < subject->num_points; n++) {
        struct gap gap = {0};
        gap_add_rows(&gap, &found[n], &expected[n]);
        check_over(subject->name, n, &gap, eye_borderline_weight(eye, subject->points[n]));
        largest = fmax(largest, gap.largest);
    }
    assert_true(largest > 0 || strcmp(subject->name, "random") == 0);
}

static void test_exact(void **unused)
{
    uint64_t state = test_seed();
    for (int k = 0; k < length_of(arrangements) + NUM_RANDOM; k++) {
        check_exact(open_case(k, &state));
        destroy_kept(NULL);
    }
}

static void test_sampled(void **unused)
{
    uint64_t state = test_seed();
    for (int k = 0; k < length_of(arrangements) + NUM_RANDOM; k++) {
        struct subject *subject = open_case(k, &state);
        subject->params.rays = 1 + k % 5;
        check_sampled(subject, "raster");
        check_sampled(subject, "compute");
        destroy_kept(NULL);
    }
}

/* --- attenuation: exact elements are weakened by the line through the middle of the visible area --- */

static void test_absorption(void **unused)
{
    uint64_t state = test_seed();
    const lr_grid grid = lr_grid_centred((const int[3]){9, 8, 7}, (const double[3]){14, 8, 8});
    lr_image *mu = random_mu(&grid, 0.02, &state);
    for (int k = 0; k < 3; k++) {
        struct subject *subject = open_case(k, &state);
        subject->params.mu = mu;
        check_sampled(subject, "raster");
        check_sampled(subject, "compute");
        check_exact(subject);
        destroy_kept(NULL);
    }
    lr_image_destroy(mu);
}

static void test_pictures(void **unused)
{
    int64_t counts[3] = {0};
    for (int which = 0; which < length_of(arrangements); which++) {
        struct subject *subject = open_case(which, NULL);
        subject_operator(subject, "raster");
        subject_operator(subject, "cpu");
        struct eye *eye = eye_create(subject->scanner, subject->params.rays);
        for (int n = 0; n < NUM_POINTS; n++) {
            eye_place(eye, subject->points[n]);
            compare_pictures(subject, eye, counts);
        }
        destroy_kept(NULL);
    }
    print_message("%lld lines with a weight, %lld that name a module without, %lld stopped before the primary\n",
                  (long long)counts[0], (long long)counts[1], (long long)counts[2]);
    assert_true(counts[0] > 5000 && counts[1] > 1000 && counts[2] > 1000);
}

/* --- projections --- */

static const struct way {
    const char *backend;
    lr_mode mode;
    bool deterministic;
    double rounding; /* of sums of floats, relative to the largest */
} ways[] = {{"raster", LR_MODE_SAMPLED, false, 2e-6}, {"compute", LR_MODE_SAMPLED, false, 2e-6},
            {"compute", LR_MODE_EXACT, false, 2e-6},  {"compute", LR_MODE_EXACT, true, 3e-6},
            {"cpu", LR_MODE_SAMPLED, false, 2e-7},    {"cpu", LR_MODE_EXACT, false, 2e-7}};

struct bench {
    struct subject *subject;
    double rounding;
    int64_t num_voxels, num_lors;
    float *image, *values;      /* inputs */
    double *forward, *backward; /* from rows */
};

static void check_near(const struct bench *bench, const char *what, const float *got, const double *want, int64_t count)
{
    struct gap gap = {0};
    for (int64_t k = 0; k < count; k++) gap_add(&gap, (double)got[k], want[k]);
    if (!(gap.largest > 0) || !(gap.worst <= bench->rounding * gap.largest))
        fail_msg("%s, %s: off by %.3g of the largest", bench->subject->name, what, gap.worst / gap.largest);
}

static void check_whole(struct bench *bench, lr_operator *op, const char *what)
{
    float *data = kept(bench->num_lors, sizeof(*data)), *image = kept(bench->num_voxels, sizeof(*image));
    stage_check(bench->subject, array_forward(op, bench->image, data) == LR_OK);
    stage_check(bench->subject, array_back(op, bench->values, image) == LR_OK);
    check_near(bench, what, data, bench->forward, bench->num_lors);
    check_near(bench, what, image, bench->backward, bench->num_voxels);
    assert_close(dot_product(data, bench->values, bench->num_lors), dot_product(image, bench->image, bench->num_voxels),
                 sum_tolerance);
}

static void check_projections(int which, const struct way *way, uint64_t *state)
{
    struct subject *subject = open_case(which, state);
    struct bench bench = {.subject = subject, .rounding = way->rounding};
    subject->params.mode = way->mode;
    subject->params.rays = subject->params.samples[0] = 2;
    subject->params.deterministic = way->deterministic;
    bench.num_voxels = lr_grid_num_voxels(&subject->grid);
    bench.num_lors = subject->lors->count;
    bench.image = kept_random_floats(bench.num_voxels, 0.5, 2, state);
    bench.values = kept_random_floats(bench.num_lors, 0.5, 2, state);
    bench.forward = kept(bench.num_lors, sizeof(double));
    bench.backward = kept(bench.num_voxels, sizeof(double));
    lr_operator *op = subject_operator(subject, way->backend);
    const struct row *rows = voxel_rows(subject, op);
    for (int64_t v = 0; v < bench.num_voxels; v++) {
        for (int64_t k = 0; k < rows[v].count; k++) {
            bench.forward[rows[v].lor[k]] += rows[v].value[k] * (double)bench.image[v];
            bench.backward[v] += rows[v].value[k] * (double)bench.values[rows[v].lor[k]];
        }
    }
    check_whole(&bench, op, "all at once");
    if (which == 0) {
        subject->params.max_memory_bytes = bench.num_lors * 8 / 3;
        check_whole(&bench, subject_operator(subject, way->backend), "window by window");
        for (int k = 0; k < 4; k++) { /* both halves of the pairs, and of the LORs */
            const struct part part =
                k < 2 ? choose_part(subject->lors, k, 2, 0, 1) : choose_part(subject->lors, 0, 1, k % 2, 2);
            check_part(subject, &part.selection, 2e-6, false, state);
        }
    }
    destroy_kept(NULL);
}

static void test_projections(void **unused)
{
    uint64_t state = test_seed();
    /* the programs of each arrangement and each way of projecting take seconds to compile */
    const bool is_full = test_takes_all("two of four ways of devices to project in three of four arrangements");
    for (int which = 0; which < 4; which++)
        for (int k = 0; k < length_of(ways); k++)
            if (is_full || which == 0 || k == 0 || k == which || k > 3) check_projections(which, &ways[k], &state);
}

/* --- what does not fit --- */

/* More small modules between a point and one primary than the compute backend has room for. */
static void test_too_many_are_refused(void **unused)
{
    enum { EDGE = 12, NUM_MODULES = 2 + EDGE * EDGE };
    static const double points[NUM_POINTS][3] = {{20, 0, 0}};
    lr_module modules[NUM_MODULES];
    modules[0] = panel(-60, (double[2]){0, 0}, (int[2]){4, 4}, 10, 9);
    modules[1] = panel(50, (double[2]){0, 0}, (int[2]){4, 4}, 10, 9);
    for (int k = 0; k < EDGE * EDGE; k++) {
        const double at[2] = {3.0 * (k % EDGE) - 16.5, 3.0 * (k / EDGE) - 16.5};
        modules[2 + k] = panel(-40, at, (int[2]){1, 1}, 2.5, 2);
    }
    struct subject *subject = subject_open("many", scanner_of(modules, NUM_MODULES, 0));
    assert_true(lr_modules_may_hide(subject->scanner));
    subject->params.rays = 3;
    struct row row;
    for (int exact = 0; exact < 2; exact++) {
        subject->params.mode = exact ? LR_MODE_EXACT : LR_MODE_SAMPLED;
        lr_operator *op = subject_operator(subject, "compute");
        assert_int_equal(lr_operator_point_rows(op, points, 1, &(lr_row_sink){take_row, &row}), LR_USAGE);
        assert_says(subject->log.error, "more than the 96");
    }
    subject->points = points;
    subject->num_points = NUM_POINTS;
    check_sampled(subject, "raster");
}

/* A crystal with this many rays requires more loop rounds than Mesa's software renderer allows. */
static void test_no_loop_ends_early(void **unused)
{
    static const double point[3] = {12, 1, -4};
    struct row row;
    struct subject *subject = open_case(3, NULL);
    subject->params.rays = 64;
    lr_operator *op = subject_operator(subject, "compute");
    const bool software = strstr(lr_operator_get_info(op)->device, "llvmpipe") != NULL;
    const lr_status status = lr_operator_point_rows(op, &point, 1, &(lr_row_sink){take_row, &row});
    assert_int_equal(status, software ? LR_USAGE : LR_OK);
    assert_true(!software || strstr(subject->log.error, "65,535 rounds") != NULL);
}

stage_main("render_hiding", CASES(test_exact, test_sampled, test_absorption, test_pictures, test_projections,
                                  test_too_many_are_refused, test_no_loop_ends_early))
