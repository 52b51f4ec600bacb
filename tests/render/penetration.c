/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Crystal penetration of the compute backend against the cpu backend: the same lines, in float. */
#include "backend_arrays.h"
#include "stage.h"

/* Lengths come from coordinates that are good to 6e-8 of the point's distance, divided by the
 * line's slope against the crystal: over all elements of a scanner, relative L2. */
static const double rows_l2 = 1e-5;

enum { NUM_POINTS = 6 };

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

/* A backend on a scanner; the caller destroys it. */
struct side {
    struct lr_backend backend;
    struct test_log log;
};

struct question {
    const lr_scanner *scanner;
    const lr_lors *lors;
    const lr_grid *grid;
    int rays;
    const lr_image *mu;
    const double (*points)[3];
    int64_t max_memory_bytes;
};

typedef lr_status create_backend(const struct lr_backend_params *params, struct lr_backend *backend);

static void side_open(struct side *side, create_backend *create, const struct question *question)
{
    test_log_init(&side->log);
    const lr_status status = create(&(struct lr_backend_params){.scanner = question->scanner,
                                                                .lors = question->lors,
                                                                .grid = question->grid,
                                                                .mode = LR_MODE_SAMPLED,
                                                                .rays = question->rays,
                                                                .samples = {1, 1, 1},
                                                                .mu = question->mu,
                                                                .mu_steps = 40,
                                                                .max_memory_bytes = question->max_memory_bytes,
                                                                .threads = 2,
                                                                .penetration = true,
                                                                .log = &side->log.log},
                                    &side->backend);
    if (status != LR_OK) fail_msg("%s", side->log.error);
}

static void side_close(struct side *side)
{
    side->backend.fns->destroy(side->backend.self);
}

static double *rows_of(struct side *side, const struct question *question)
{
    struct dense dense = {.num_lors = question->lors->count};
    dense.values = test_alloc(NUM_POINTS * dense.num_lors, sizeof(double));
    const struct lr_rows rows = {.points_mm = question->points, .end = NUM_POINTS};
    if (side->backend.fns->rows(side->backend.self, &rows, &(lr_row_sink){take, &dense}) != LR_OK)
        fail_msg("%s", side->log.error);
    return dense.values;
}

static void compare(const char *name, const struct question *question)
{
    struct side cpu, compute;
    side_open(&cpu, lr_cpu_backend_create, question);
    side_open(&compute, lr_compute_backend_create, question);
    double *expected = rows_of(&cpu, question), *found = rows_of(&compute, question);
    double *again = rows_of(&compute, question);
    const int64_t count = NUM_POINTS * question->lors->count;
    double difference = 0, norm = 0, largest = 0, worst = 0;
    for (int64_t k = 0; k < count; k++) {
        const double error = fabs(expected[k] - found[k]);
        difference += error * error;
        norm += expected[k] * expected[k];
        largest = fmax(largest, expected[k]);
        worst = fmax(worst, error);
    }
    const double l2 = sqrt(difference / norm);
    print_message("%-14s R = %d: L2 %.1e, worst %.1e of the largest\n", name, question->rays, l2, worst / largest);
    assert_true(norm > 0);
    /* With one line a crystal an element is one length. */
    assert_true(l2 <= (question->rays == 1 ? 3 : 1) * rows_l2);
    /* The device finds elements in any order; their sums do not show it. */
    assert_memory_equal(found, again, (size_t)count * sizeof(double));
    free(again);
    free(found);
    free(expected);
    side_close(&compute);
    side_close(&cpu);
}

/* Takes over the scanner. */
static void check_rows(const char *name, lr_scanner *scanner, double reach_mm, const lr_image *mu, uint64_t *state)
{
    double points[NUM_TEST_POINTS][3]; /* NUM_POINTS of them */
    const lr_grid grid = lr_grid_centred((const int[3]){2, 2, 2}, (const double[3]){2, 2, 2});
    scanner->crystal_mu_per_mm = 0.08;
    lr_lors *lors = lr_lors_create(scanner, NULL);
    for (int n = 0; n < NUM_POINTS; n++) test_point(scanner, reach_mm, n, state, points[n]);
    for (int rays = 1; rays <= 3; rays++) {
        compare(name, &(struct question){.scanner = scanner,
                                         .lors = lors,
                                         .grid = &grid,
                                         .rays = rays,
                                         .mu = mu,
                                         .points = (const double(*)[3])points});
    }
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
}

static void check_scanner(const struct scanner_case *at, const lr_image *mu, uint64_t *state)
{
    check_rows(at->name, at->create(), at->reach_mm, mu, state);
}

static void test_every_kind_of_scanner(void **unused)
{
    (void)unused;
    uint64_t state = test_seed();
    for (int k = 0; k < NUM_SCANNER_CASES; k++) check_scanner(&scanner_cases[k], NULL, &state);
}

static void test_random_scanners(void **unused)
{
    (void)unused;
    uint64_t state = test_seed();
    for (int k = 0; k < 5; k++) check_rows("random", create_random(&state), 15, NULL, &state);
}

/* A wide module stands before the second one, and its centre is farther than the first one's: in
 * the first one's images it has no LORs, and stops photons all the same. */
static void test_role_of_a_wide_module(void **unused)
{
    (void)unused;
    uint64_t state = test_seed();
    lr_module wide = shape_of(40, 4, 3.0, 2.8), small = shape_of(4, 4, 3.0, 2.9);
    lr_module modules[3] = {place_module(&small, &(struct placement){90, 60, 0, 0, 0, 0}),
                            place_module(&small, &(struct placement){270, 45, 0, 0, 0, 0}),
                            place_module(&wide, &(struct placement){270, 30, 0, 0, 0, 0})};
    modules[2].centre_mm[0] = 55;
    check_rows("wide", scanner_of(modules, 3, 0), 2, NULL, &state);
}

static double distance(const float *found, const double *expected, int64_t count)
{
    double difference = 0, norm = 0;
    for (int64_t k = 0; k < count; k++) {
        difference += (found[k] - expected[k]) * (found[k] - expected[k]);
        norm += expected[k] * expected[k];
    }
    assert_true(norm > 0);
    return sqrt(difference / norm);
}

/* Both projections of both backends; in windows of a few pairs of modules too, where modules out of
 * the window still stop photons. Sums of floats are good to some 1e-6. */
static void check_projections(const struct question *question, int64_t max_memory_bytes, uint64_t *state)
{
    struct question limited = *question;
    limited.max_memory_bytes = max_memory_bytes;
    struct side cpu, compute;
    side_open(&cpu, lr_cpu_backend_create, question);
    side_open(&compute, lr_compute_backend_create, &limited);
    const int64_t num[2] = {lr_grid_num_voxels(question->grid), question->lors->count};
    double *in[2], *out[2];
    float *in_float[2], *out_float[2];
    for (int k = 0; k < 2; k++) {
        in[k] = test_alloc(num[k], sizeof(double));
        out[k] = test_alloc(num[k], sizeof(double));
        in_float[k] = test_alloc(num[k], sizeof(float));
        out_float[k] = test_alloc(num[k], sizeof(float));
        for (int64_t n = 0; n < num[k]; n++) {
            in_float[k][n] = (float)test_random(state);
            in[k][n] = (double)in_float[k][n];
        }
    }
    const struct lr_backend *a = &cpu.backend, *b = &compute.backend;
    lr_vector doubles[2][2], floats[2][2]; /* in, out */
    for (int k = 0; k < 2; k++) {
        doubles[0][k] = lr_vector_of_doubles(in[k], num[k]);
        doubles[1][k] = lr_vector_of_doubles(out[k], num[k]);
        floats[0][k] = lr_vector_of_floats(in_float[k], num[k]);
        floats[1][k] = lr_vector_of_floats(out_float[k], num[k]);
    }
    assert_int_equal(backend_forward(a, doubles[0][0], doubles[1][1]), LR_OK);
    assert_int_equal(backend_back(a, doubles[0][1], doubles[1][0]), LR_OK);
    assert_int_equal(backend_forward(b, floats[0][0], floats[1][1]), LR_OK);
    assert_int_equal(backend_back(b, floats[0][1], floats[1][0]), LR_OK);
    const double back = distance(out_float[0], out[0], num[0]);
    const double forward = distance(out_float[1], out[1], num[1]);
    print_message("limit %lld: forward %.1e, back %.1e\n", (long long)max_memory_bytes, forward, back);
    assert_true(forward <= rows_l2 && back <= rows_l2);
    for (int k = 0; k < 2; k++) {
        free(in[k]);
        free(out[k]);
        free(in_float[k]);
        free(out_float[k]);
    }
    side_close(&compute);
    side_close(&cpu);
}

static void test_projections(void **unused)
{
    (void)unused;
    uint64_t state = test_seed();
    lr_grid grid = lr_grid_centred((const int[3]){4, 3, 2}, (const double[3]){3, 3, 3});
    grid.origin_mm[0] += 4;
    lr_scanner *scanner = create_two_rings();
    scanner->crystal_mu_per_mm = 0.08;
    lr_lors *lors = lr_lors_create(scanner, NULL);
    const struct question question = {.scanner = scanner, .lors = lors, .grid = &grid, .rays = 2};
    check_projections(&question, 0, &state);
    /* 120 pairs of 900 LORs: windows of 11 pairs */
    check_projections(&question, 40000, &state);
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
}

static void test_refusals(void **unused)
{
    (void)unused;
    lr_scanner *scanner = create_opposed();
    lr_lors *lors = lr_lors_create(scanner, NULL);
    const lr_grid grid = lr_grid_centred((const int[3]){2, 2, 2}, (const double[3]){2, 2, 2});
    struct test_log log;
    struct lr_backend backend;
    struct lr_backend_params params = {.scanner = scanner,
                                       .lors = lors,
                                       .grid = &grid,
                                       .mode = LR_MODE_SAMPLED,
                                       .rays = 2,
                                       .samples = {1, 1, 1},
                                       .threads = 1,
                                       .penetration = true,
                                       .log = &log.log};
    test_log_init(&log);
    assert_int_equal(lr_raster_backend_create(&params, &backend), LR_USAGE);
    assert_non_null(strstr(log.error, "use backend cpu or compute"));
    params.mode = LR_MODE_EXACT;
    assert_int_equal(lr_compute_backend_create(&params, &backend), LR_USAGE);
    assert_non_null(strstr(log.error, "no exact mode"));
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
}

static void test_absorption(void **unused)
{
    (void)unused;
    uint64_t state = test_seed();
    const lr_grid grid = lr_grid_centred((const int[3]){9, 8, 7}, (const double[3]){4, 5, 6});
    lr_image *mu = lr_image_create(&grid, NULL);
    for (int64_t k = 0; k < lr_grid_num_voxels(&grid); k++) mu->values[k] = (float)random_between(&state, 0, 0.02);
    check_scanner(&scanner_cases[2], mu, &state);
    check_scanner(&scanner_cases[9], mu, &state);
    lr_image_destroy(mu);
}

int main(void)
{
    struct gl_context *ctx = stage_context();
    if (ctx == NULL) return 77;
    stage_leave(ctx);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind_of_scanner),
        cmocka_unit_test(test_random_scanners),
        cmocka_unit_test(test_absorption),
        cmocka_unit_test(test_role_of_a_wide_module),
        cmocka_unit_test(test_projections),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests_name("render_penetration", tests, NULL, NULL);
}
