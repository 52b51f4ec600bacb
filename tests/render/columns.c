/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Exact rows by columns compared with the cpu backend, row by row: each scanner of the tests at points on and off its
 * symmetry planes and close to modules, and two real scanners. */
#include "subject.h"

/* At 2 to 3 mm from a face of the mMR, crystals 650 mm behind the point are seen through parts of the
 * face that are 1/250 as large. Rounding of 1e-7 of a coordinate there is up to 3e-5 of an element. */
static const double near_row_l2 = 2e-5;

/* Sets of points drawn for a scanner, until some point sees something. */
enum { MOST_DRAWS = 20 };

/* Scanners that the column passes cannot handle: with tilted modules, or with modules that hide each other. */
static const char *const others[] = {"tilted", "stacked", "ruled tilted", NULL};

/* At 1 mm from a module, crystals 930 mm behind the point are seen through parts of the module that are 1/1000 as
 * large. A rounding of 1e-6 mm is then as large as 1e-3 mm there, 4e-5 of an element. */
static const char *const large[] = {"opposed", "oblique", "large ring", NULL};

static bool is_among(const char *const *names, const char *name)
{
    while (*names != NULL && strcmp(*names, name) != 0) names++;
    return *names != NULL;
}

/* Returns false if no point sees anything. The last `num_near` points are close to a face of a large scanner. */
static bool compare(struct subject *subject, const double (*points)[3], int num_points, int num_near)
{
    struct gap gaps[NUM_TEST_POINTS] = {{0}};
    subject->params.mode = LR_MODE_EXACT;
    subject->points = points;
    subject->num_points = num_points;
    const struct row *expected = subject_rows(subject, "cpu"), *found = subject_rows(subject, "compute");
    for (int k = 0; k < num_points; k++) gap_add_rows(&gaps[k], &found[k], &expected[k]);
    return check_row_gaps(subject, gaps, num_near, near_row_l2);
}

static void test_every_kind_of_scanner(void **unused)
{
    uint64_t state = test_seed();
    for (int n = 0; n < length_of(scanner_cases); n++) {
        const struct scanner_case *at = &scanner_cases[n];
        double points[NUM_TEST_POINTS][3];
        int draws = 0, num_points;
        if (is_among(others, at->name)) continue;
        struct subject *subject = subject_open(at->name, at->create());
        do {
            assert_true(draws++ < MOST_DRAWS);
            num_points = 0;
            for (int k = 0; k < NUM_TEST_POINTS; k++) {
                test_point(subject->scanner, at->reach_mm, k, &state, points[num_points]);
                num_points += !(is_among(large, at->name) && (k == 3 || k == 4));
            }
        } while (!compare(subject, (const double(*)[3])points, num_points, 0));
        destroy_kept(NULL);
    }
}

/* Every crystal of one module is seen through every crystal of the other: a point has far more elements than expected,
 * so that batches are halved and the list grows. */
static void test_more_elements_than_expected(void **unused)
{
    double points[NUM_TEST_POINTS][3];
    const lr_module wide = {.crystals = {24, 1}, .pitch_mm = {2, 48}, .face_mm = {1.9, 48}, .depth_mm = 10};
    const lr_module tall = {.crystals = {1, 24}, .pitch_mm = {48, 2}, .face_mm = {48, 1.9}, .depth_mm = 10};
    const lr_module modules[2] = {place_module(&wide, &(struct placement){0, 60, 0, 0, 0, 0}),
                                  place_module(&tall, &(struct placement){180, 60, 0, 0, 0, 0})};
    struct subject *subject = subject_open("crossed", scanner_of(modules, 2, 0));
    for (int k = 0; k < NUM_TEST_POINTS; k++) {
        points[k][0] = 0.3 * k - 1.1;
        points[k][1] = 0.2 * k - 0.3;
        points[k][2] = 0.5 - 0.1 * k;
    }
    assert_true(compare(subject, (const double(*)[3])points, NUM_TEST_POINTS, 0));
}

static void check_preset(const char *name, const double (*points)[3], int num_points, int num_near)
{
    assert_true(compare(subject_open(name, preset_scanner(name)), points, num_points, num_near));
}

static void test_real_scanners(void **unused)
{
    static const double whole_body[][3] = {{0, 0, 0},        {150, 0, 0},           {-83.1, 211.7, 47.3},
                                           {0, -260, 110},   {120.3, -77.7, -63.1}, {325.5, 3, 10},
                                           {228.5, 229, -60}}; /* the last points are close to faces */
    static const double small_animal[][3] = {
        {0, 0, 0}, {0, 17.3, 0}, {-21.3, 9.7, 13.1}, {30, 0, -18}, {11.1, -23.7, 7.9}};
    check_preset("siemens-mmr", whole_body, 7, 2);
    check_preset("ge-explore-vista-dr", small_animal, 5, 0);
}

stage_main("render_columns", CASES(test_every_kind_of_scanner, test_more_elements_than_expected, test_real_scanners))
