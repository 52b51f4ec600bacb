/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Crystal penetration of the compute backend against the cpu backend: the same lines, in float. */
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
    for (int64_t k = 0; k < row->count; k++) {
        dense->values[row->row * dense->num_lors + row->lor[k]] = row->probability[k];
    }
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
};

typedef lr_status create_backend(const struct lr_backend_params *params,
                                 struct lr_backend *backend);

static void side_open(struct side *side, create_backend *create, const struct question *question)
{
    test_log_init(&side->log);
    const lr_status status = create(&(struct lr_backend_params){.scanner = question->scanner,
                                                                .lors = question->lors,
                                                                .grid = question->grid,
                                                                .rays = question->rays,
                                                                .samples = {1, 1, 1},
                                                                .mu = question->mu,
                                                                .mu_steps = 40,
                                                                .threads = 2,
                                                                .penetration = true,
                                                                .log = &side->log.log},
                                    &side->backend);
    if (status != LR_OK) {
        fail_msg("%s", side->log.error);
    }
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
    if (side->backend.fns->rows(side->backend.self, &rows, &(lr_row_sink){take, &dense}) != LR_OK) {
        fail_msg("%s", side->log.error);
    }
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
    print_message("%-14s R = %d: L2 %.1e, worst %.1e of the largest\n", name, question->rays, l2,
                  worst / largest);
    assert_true(norm > 0);
    assert_true(l2 <= rows_l2);
    /* The device finds elements in any order; their sums do not show it. */
    assert_memory_equal(found, again, (size_t)count * sizeof(double));
    free(again);
    free(found);
    free(expected);
    side_close(&compute);
    side_close(&cpu);
}

static void check_scanner(const struct scanner_case *at, const lr_image *mu, uint64_t *state)
{
    double points[NUM_POINTS][3];
    const lr_grid grid = lr_grid_centred((const int[3]){2, 2, 2}, (const double[3]){2, 2, 2});
    lr_scanner *scanner = at->create();
    scanner->crystal_mu_per_mm = 0.08;
    lr_lors *lors = lr_lors_create(scanner, NULL);
    for (int n = 0; n < NUM_POINTS; n++) {
        test_point(scanner, at->reach_mm, n, state, points[n]);
    }
    for (int rays = 1; rays <= 3; rays++) {
        compare(at->name, &(struct question){scanner, lors, &grid, rays, mu,
                                             (const double(*)[3])points});
    }
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
}

static void test_every_kind_of_scanner(void **unused)
{
    (void)unused;
    uint64_t state = test_seed();
    for (int k = 0; k < NUM_SCANNER_CASES; k++) {
        check_scanner(&scanner_cases[k], NULL, &state);
    }
}

static void test_absorption(void **unused)
{
    (void)unused;
    uint64_t state = test_seed();
    const lr_grid grid = lr_grid_centred((const int[3]){9, 8, 7}, (const double[3]){4, 5, 6});
    lr_image *mu = lr_image_create(&grid, NULL);
    for (int64_t k = 0; k < lr_grid_num_voxels(&grid); k++) {
        mu->values[k] = (float)random_between(&state, 0, 0.02);
    }
    check_scanner(&scanner_cases[2], mu, &state);
    check_scanner(&scanner_cases[9], mu, &state);
    lr_image_destroy(mu);
}

int main(void)
{
    struct gl_context *ctx = stage_context();
    if (ctx == NULL) {
        return 77;
    }
    stage_leave(ctx);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind_of_scanner),
        cmocka_unit_test(test_absorption),
    };
    return cmocka_run_group_tests_name("render_penetration", tests, NULL, NULL);
}
