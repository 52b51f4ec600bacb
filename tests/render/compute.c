/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The compute backend against the cpu backend, element by element: sampled lines, and exact
 * overlaps in float against the double oracle. */
#include "stage.h"

/* Exact mode, over all elements of a scanner: relative L2 and worst over the largest. */
static const double exact_l2 = 1e-5, exact_worst = 1e-4;

/* Sampled mode, over all elements but what lines within 1e-4 of a pitch of an edge carry: they may
 * fall on either side of it (sure_distance). */
static const double sampled_l2 = 1e-5;

enum { NUM_POINTS = 12, MOST_RAYS = 4 };

/* Sets of points drawn for a scanner, until in each mode some point sees something. */
enum { MOST_DRAWS = 20 };

struct dense {
    double *values; /* [NUM_POINTS][num_lors] */
    int64_t num_lors;
};

static lr_status take(void *user, const lr_row *row)
{
    struct dense *dense = user;
    for (int64_t k = 0; k < row->count; k++)
        dense->values[row->row * dense->num_lors + row->lor[k]] = row->probability[k];
    return LR_OK;
}

struct question {
    const lr_lors *lors;
    const double (*points)[3];
    lr_mode mode;
    int rays;
    const lr_image *mu;
};

/* False when the backend has no device. */
static bool ask(const struct question *question, const char *backend, struct dense *dense)
{
    struct test_log log;
    test_log_init(&log);
    const lr_grid grid = lr_grid_centred((const int[3]){2, 2, 2}, (const double[3]){2, 2, 2});
    lr_operator *op = lr_operator_create(&(lr_operator_params){.lors = question->lors,
                                                               .grid = &grid,
                                                               .backend = backend,
                                                               .mode = question->mode,
                                                               .rays = question->rays,
                                                               .samples = {1, 1, 1},
                                                               .mu = question->mu,
                                                               .mu_steps = 40,
                                                               .store = LR_STORE_NO,
                                                               .log = &log.log});
    if (op == NULL && log.status == LR_NO_DEVICE) return false;
    if (op == NULL) fail_msg("%s", log.error);
    dense->num_lors = question->lors->count;
    dense->values = test_alloc(NUM_POINTS * dense->num_lors, sizeof(double));
    assert_int_equal(lr_operator_point_rows(op, question->points, NUM_POINTS, &(lr_row_sink){take, dense}), LR_OK);
    lr_operator_destroy(op);
    return true;
}

struct distance {
    double squared, worst;
};

static struct distance distance_of(const struct dense *a, const struct dense *b)
{
    struct distance distance = {0};
    for (int64_t k = 0; k < NUM_POINTS * a->num_lors; k++) {
        const double error = fabs(a->values[k] - b->values[k]);
        distance.squared += error * error;
        distance.worst = fmax(distance.worst, error);
    }
    return distance;
}

static double sampled_distance(const struct question *question, const struct dense *a, const struct dense *b)
{
    struct eye *eye = eye_create(question->lors->scanner, question->rays);
    const int64_t num_lors = a->num_lors;
    double squared = 0;
    for (int n = 0; n < NUM_POINTS; n++) {
        const double weight = eye_borderline_weight(eye, question->points[n]);
        squared += sure_distance(a->values + n * num_lors, b->values + n * num_lors, num_lors, weight);
    }
    eye_destroy(eye);
    return squared;
}

/* Sum of squares. */
static double squared_norm(const struct dense *dense)
{
    double sum = 0;
    for (int64_t k = 0; k < NUM_POINTS * dense->num_lors; k++) sum += dense->values[k] * dense->values[k];
    return sum;
}

static double largest_of(const struct dense *dense)
{
    double largest = 0;
    for (int64_t k = 0; k < NUM_POINTS * dense->num_lors; k++) largest = fmax(largest, dense->values[k]);
    return largest;
}

static void compare(const char *name, const struct question *question, const struct dense *expected)
{
    struct dense found;
    const bool exact = question->mode == LR_MODE_EXACT;
    if (!ask(question, "compute", &found)) skip();
    const double norm = squared_norm(expected), largest = largest_of(expected);
    const struct distance distance = distance_of(expected, &found);
    double l2 = sqrt(distance.squared / norm);
    print_message("%-14s %s R = %d: L2 %.1e, worst %.1e of the largest\n", name, exact ? "exact" : "sampled",
                  question->rays, l2, distance.worst / largest);
    assert_true(norm > 0);
    if (!exact && l2 > sampled_l2) {
        l2 = sqrt(sampled_distance(question, expected, &found) / norm);
        print_message("%-14s without lines near edges: L2 %.1e\n", name, l2);
    }
    assert_true(l2 <= (exact ? exact_l2 : sampled_l2));
    assert_true(!exact || distance.worst <= exact_worst * largest);
    free(found.values);
}

static void draw_points(double (*points)[3], double reach_mm, uint64_t *state)
{
    for (int n = 0; n < NUM_POINTS; n++)
        for (int k = 0; k < 3; k++) points[n][k] = n == 0 ? 0.0 : random_between(state, -reach_mm, reach_mm);
}

/* expected: the cpu backend's, sampled with 1 to MOST_RAYS rays and exact. */
static bool all_see(const struct question questions[], struct dense *expected)
{
    bool see = true;
    for (int k = 0; k <= MOST_RAYS; k++) {
        free(expected[k].values);
        assert_true(ask(&questions[k], "cpu", &expected[k]));
        see = see && squared_norm(&expected[k]) > 0;
    }
    return see;
}

static void check_scanner(const struct scanner_case *at, const lr_image *mu, uint64_t *state)
{
    double points[NUM_POINTS][3];
    struct question questions[MOST_RAYS + 1];
    struct dense expected[MOST_RAYS + 1] = {{0}};
    lr_scanner *scanner = at->create();
    lr_lors *lors = lr_lors_create(scanner, NULL);
    int draws = 0;
    for (int k = 0; k <= MOST_RAYS; k++) {
        const bool exact = k == MOST_RAYS;
        questions[k] = (struct question){lors, (const double(*)[3])points, exact ? LR_MODE_EXACT : LR_MODE_SAMPLED,
                                         exact ? 0 : k + 1, mu};
    }
    do {
        assert_true(draws++ < MOST_DRAWS);
        draw_points(points, at->reach_mm, state);
    } while (!all_see(questions, expected));
    for (int k = 0; k <= MOST_RAYS; k++) {
        compare(at->name, &questions[k], &expected[k]);
        free(expected[k].values);
    }
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
}

static void test_every_kind_of_scanner(void **unused)
{
    (void)unused;
    uint64_t state = test_seed();
    for (int k = 0; k < NUM_SCANNER_CASES; k++) check_scanner(&scanner_cases[k], NULL, &state);
}

static void test_absorption(void **unused)
{
    (void)unused;
    uint64_t state = test_seed();
    const lr_grid grid = lr_grid_centred((const int[3]){9, 8, 7}, (const double[3]){4, 5, 6});
    lr_image *mu = lr_image_create(&grid, NULL);
    for (int64_t k = 0; k < lr_grid_num_voxels(&grid); k++) mu->values[k] = (float)random_between(&state, 0, 0.02);
    check_scanner(&scanner_cases[1], mu, &state);
    check_scanner(&scanner_cases[2], mu, &state);
    lr_image_destroy(mu);
}

/* With absorption, so that elements are added up wherever their voxels are at work. */
static void test_deterministic(void **unused)
{
    (void)unused;
    enum { ROUNDS = 4 };
    uint64_t state = test_seed();
    const lr_grid grid = lr_grid_centred((const int[3]){6, 5, 4}, (const double[3]){4, 5, 6});
    lr_scanner *scanner = scanner_cases[1].create();
    lr_lors *lors = lr_lors_create(scanner, NULL);
    lr_image *mu = lr_image_create(&grid, NULL), *image = lr_image_create(&grid, NULL);
    for (int64_t k = 0; k < lr_grid_num_voxels(&grid); k++) {
        mu->values[k] = (float)random_between(&state, 0, 0.02);
        image->values[k] = (float)random_between(&state, 0, 2);
    }
    float *data[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        lr_operator *op =
            lr_operator_create(&(lr_operator_params){.lors = lors,
                                                     .grid = &grid,
                                                     .backend = "compute",
                                                     .mu = mu,
                                                     .samples = {1, 1, 1},
                                                     .deterministic = round > 0, /* the first in any order */
                                                     .store = LR_STORE_NO});
        assert_non_null(op);
        data[round] = test_alloc(lors->count, sizeof(**data));
        assert_int_equal(array_forward(op, image->values, data[round]), LR_OK);
        lr_operator_destroy(op);
    }
    double largest = 0;
    for (int64_t l = 0; l < lors->count; l++) {
        largest = fmax(largest, (double)data[0][l]);
        assert_true(fabs((double)data[1][l] - (double)data[0][l]) <= 2e-6 * (double)data[0][l]);
    }
    assert_true(largest > 0);
    for (int round = 2; round < ROUNDS; round++)
        assert_memory_equal(data[round], data[1], (size_t)lors->count * sizeof(**data));
    for (int round = 0; round < ROUNDS; round++) free(data[round]);
    lr_image_destroy(image);
    lr_image_destroy(mu);
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
}

int main(void)
{
    struct gl_context *ctx = stage_context();
    if (ctx == NULL) return 77;
    stage_leave(ctx);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind_of_scanner),
        cmocka_unit_test(test_absorption),
        cmocka_unit_test(test_deterministic),
    };
    return cmocka_run_group_tests_name("render_compute", tests, NULL, NULL);
}
