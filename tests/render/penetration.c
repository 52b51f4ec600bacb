/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Crystal penetration of the compute backend compared with the cpu backend: the same lines, in float. */
#include "subject.h"

/* Relative L2 over all elements of a scanner. Lengths are computed from coordinates accurate to 6e-8 of the point's
 * distance, divided by the line's slope against the crystal. */
static const double rows_l2 = 1e-5;

enum { NUM_POINTS = 6 };

static struct subject *open_penetrated(const char *name, lr_scanner *scanner)
{
    scanner->crystal_mu_per_mm = 0.08;
    struct subject *subject = subject_open(name, scanner);
    subject->params.penetration = true;
    subject->params.mu_steps = 40;
    return subject;
}

/* Takes over the scanner. */
static void check_rows(const char *name, lr_scanner *scanner, double reach_mm, const lr_image *mu, uint64_t *state)
{
    double points[NUM_TEST_POINTS][3]; /* NUM_POINTS of them */
    struct subject *subject = open_penetrated(name, scanner);
    subject->params.mu = mu;
    subject->points = (const double(*)[3])points;
    subject->num_points = NUM_POINTS;
    for (int n = 0; n < NUM_POINTS; n++) test_point(scanner, reach_mm, n, state, points[n]);
    for (int rays = 1; rays <= 3; rays++) {
        struct gap gap = {0};
        subject->params.rays = rays;
        const struct row *expected = subject_rows(subject, "cpu"), *found = subject_rows(subject, "compute");
        /* The device finds elements in any order; this does not change their sums. */
        check_same_rows(found, subject_rows(subject, "compute"), NUM_POINTS, 0);
        for (int n = 0; n < NUM_POINTS; n++) gap_add_rows(&gap, &found[n], &expected[n]);
        assert_true(gap.norm > 0);
        /* An element is a single length if each crystal has one line. */
        check_gap(name, &gap, (rays == 1 ? 3 : 1) * rows_l2, INFINITY);
    }
    destroy_kept(NULL);
}

static void test_every_kind_of_scanner(void **unused)
{
    uint64_t state = test_seed();
    for (int k = 0; k < length_of(scanner_cases); k++)
        check_rows(scanner_cases[k].name, scanner_cases[k].create(), scanner_cases[k].reach_mm, NULL, &state);
}

static void test_random_scanners(void **unused)
{
    uint64_t state = test_seed();
    for (int k = 0; k < 5; k++) check_rows("random", create_random(&state), 15, NULL, &state);
}

/* A wide module stands in front of the second one, and its centre is farther away than the first module's. In the
 * images of the first module the wide module has no LORs, but still stops photons. */
static void test_role_of_a_wide_module(void **unused)
{
    uint64_t state = test_seed();
    lr_module wide = shape_of(40, 4, 3.0, 2.8), small = shape_of(4, 4, 3.0, 2.9);
    lr_module modules[3] = {place_module(&small, &(struct placement){90, 60, 0, 0, 0, 0}),
                            place_module(&small, &(struct placement){270, 45, 0, 0, 0, 0}),
                            place_module(&wide, &(struct placement){270, 30, 0, 0, 0, 0})};
    modules[2].centre_mm[0] = 55;
    check_rows("wide", scanner_of(modules, 3, 0), 2, NULL, &state);
}

/* Forward and back-projections of both backends, also in windows of a few pairs of modules, where modules outside the
 * window still stop photons. Sums of floats are accurate to some 1e-6. */
static void check_projections(int64_t max_memory_bytes, uint64_t *state)
{
    struct subject *subject = open_penetrated("two rings", create_two_rings());
    subject->grid = lr_grid_centred((const int[3]){4, 3, 2}, (const double[3]){3, 3, 3});
    subject->grid.origin_mm[0] += 4;
    subject->params.rays = 2;
    const int64_t num[2] = {lr_grid_num_voxels(&subject->grid), subject->lors->count};
    double *in[2], *out[2];
    float *in_float[2], *out_float[2];
    for (int k = 0; k < 2; k++) {
        in_float[k] = kept_random_floats(num[k], 0, 1, state);
        out_float[k] = kept(num[k], sizeof(float));
        in[k] = kept(num[k], sizeof(double));
        out[k] = kept(num[k], sizeof(double));
        for (int64_t n = 0; n < num[k]; n++) in[k][n] = (double)in_float[k][n];
    }
    lr_operator *cpu = subject_operator(subject, "cpu");
    subject->params.max_memory_bytes = max_memory_bytes;
    lr_operator *compute = subject_operator(subject, "compute");
    stage_check(subject, array_forward_f64(cpu, in[0], out[1]) == LR_OK);
    stage_check(subject, array_back_f64(cpu, in[1], out[0]) == LR_OK);
    stage_check(subject, array_forward(compute, in_float[0], out_float[1]) == LR_OK);
    stage_check(subject, array_back(compute, in_float[1], out_float[0]) == LR_OK);
    for (int k = 0; k < 2; k++) {
        struct gap gap = {0};
        for (int64_t n = 0; n < num[k]; n++) gap_add(&gap, (double)out_float[k][n], out[k][n]);
        assert_true(gap.norm > 0);
        check_gap(k == 0 ? "back" : "forward", &gap, rows_l2, INFINITY);
    }
    destroy_kept(NULL);
}

static void test_projections(void **unused)
{
    uint64_t state = test_seed();
    check_projections(0, &state);
    check_projections(40000, &state); /* 120 pairs of 900 LORs: windows of 11 pairs */
}

static void test_refusals(void **unused)
{
    struct lr_backend backend;
    struct subject *subject = subject_open("opposed", create_opposed());
    struct lr_backend_params params =
        filled(struct lr_backend_params, .scanner = subject->scanner, .lors = subject->lors, .grid = &subject->grid,
               .mode = LR_MODE_SAMPLED, .rays = 2, .samples = {1, 1, 1}, .threads = 1, .penetration = true,
               .log = &subject->log.log);
    assert_int_equal(lr_raster_backend_create(&params, &backend), LR_USAGE);
    assert_says(subject->log.error, "use backend cpu or compute");
    params.mode = LR_MODE_EXACT;
    assert_int_equal(lr_compute_backend_create(&params, &backend), LR_USAGE);
    assert_says(subject->log.error, "no exact mode");
}

static void test_absorption(void **unused)
{
    uint64_t state = test_seed();
    const lr_grid grid = lr_grid_centred((const int[3]){9, 8, 7}, (const double[3]){4, 5, 6});
    lr_image *mu = random_mu(&grid, 0.02, &state);
    for (int k = 2; k <= 9; k += 7)
        check_rows(scanner_cases[k].name, scanner_cases[k].create(), scanner_cases[k].reach_mm, mu, &state);
    lr_image_destroy(mu);
}

stage_main("render_penetration", CASES(test_every_kind_of_scanner, test_random_scanners, test_absorption,
                                       test_role_of_a_wide_module, test_projections, test_refusals))
