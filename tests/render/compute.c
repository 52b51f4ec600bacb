/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The compute backend against the cpu backend, element by element: sampled lines, and exact
 * overlaps in float against the double oracle. */
#include "subject.h"

/* Exact mode, over all elements of a scanner: relative L2, and the worst difference relative to the largest element.
 * Sampled mode, over all elements: the same without lines within 1e-4 of a pitch of an edge, which may hit either side
 * of it. */
static const double most_l2 = 1e-5, exact_worst = 1e-4;

enum { NUM_POINTS = 12, MOST_RAYS = 4 };

/* Sets of points drawn for a scanner, until in each mode some point sees something. */
enum { MOST_DRAWS = 20 };

/* Sampled with 1 to MOST_RAYS rays, and exact. */
static void choose_mode(struct subject *subject, int k)
{
    subject->params.mode = k == MOST_RAYS ? LR_MODE_EXACT : LR_MODE_SAMPLED;
    subject->params.rays = k == MOST_RAYS ? 0 : k + 1;
}

static void check_scanner(const struct scanner_case *at, const lr_image *mu, uint64_t *state)
{
    double points[NUM_POINTS][3];
    struct row *expected[MOST_RAYS + 1];
    bool all_see;
    struct subject *subject = subject_open(at->name, at->create());
    subject->params.mu = mu;
    subject->params.mu_steps = 40;
    subject->params.threads = 0;
    subject->points = (const double(*)[3])points;
    subject->num_points = NUM_POINTS;
    int draws = 0;
    do {
        assert_true(draws++ < MOST_DRAWS);
        for (int n = 0; n < NUM_POINTS; n++)
            for (int k = 0; k < 3; k++)
                points[n][k] = n == 0 ? 0.0 : random_between(state, -at->reach_mm, at->reach_mm);
        all_see = true;
        for (int k = 0; k <= MOST_RAYS; k++) {
            bool sees = false;
            choose_mode(subject, k);
            expected[k] = subject_rows(subject, "cpu");
            for (int n = 0; n < NUM_POINTS; n++) sees = sees || expected[k][n].count > 0;
            all_see = all_see && sees;
        }
    } while (!all_see);
    for (int k = 0; k <= MOST_RAYS; k++) {
        choose_mode(subject, k);
        const bool exact = subject->params.mode == LR_MODE_EXACT;
        const struct row *found = subject_rows(subject, "compute");
        struct gap gap = {0};
        for (int n = 0; n < NUM_POINTS; n++) gap_add_rows(&gap, &found[n], &expected[k][n]);
        double l2 = sqrt(gap.squared / gap.norm);
        print_message("%-14s %s R = %d: L2 %.1e, worst %.1e of the largest\n", subject->name,
                      exact ? "exact" : "sampled", subject->params.rays, l2, gap.worst / gap.largest);
        assert_true(gap.norm > 0);
        if (!exact && l2 > most_l2) {
            struct eye *eye = eye_create(subject->scanner, subject->params.rays);
            double squared = 0;
            for (int n = 0; n < NUM_POINTS; n++) {
                struct gap of_point = {0};
                gap_add_rows(&of_point, &found[n], &expected[k][n]);
                squared += gap_sure(subject->name, n, &of_point, eye_borderline_weight(eye, subject->points[n]));
            }
            l2 = sqrt(squared / gap.norm);
            print_message("%-14s without lines near edges: L2 %.1e\n", subject->name, l2);
        }
        assert_all(l2 <= most_l2, !exact || gap.worst <= exact_worst * gap.largest);
    }
    destroy_kept(NULL);
}

static void test_every_kind_of_scanner(void **unused)
{
    uint64_t state = test_seed();
    for (int k = 0; k < length_of(scanner_cases); k++) check_scanner(&scanner_cases[k], NULL, &state);
}

static void test_absorption(void **unused)
{
    uint64_t state = test_seed();
    const lr_grid grid = lr_grid_centred((const int[3]){9, 8, 7}, (const double[3]){4, 5, 6});
    lr_image *mu = random_mu(&grid, 0.02, &state);
    check_scanner(&scanner_cases[1], mu, &state);
    check_scanner(&scanner_cases[2], mu, &state);
    lr_image_destroy(mu);
}

/* Attenuation is included, so that elements are added up by whichever threads work on their voxels. */
static void test_deterministic(void **unused)
{
    uint64_t state = test_seed();
    struct subject *subject = subject_open("oblique", create_oblique());
    subject->grid = lr_grid_centred((const int[3]){6, 5, 4}, (const double[3]){4, 5, 6});
    lr_image *mu = random_mu(&subject->grid, 0.02, &state);
    const float *image = kept_random_floats(lr_grid_num_voxels(&subject->grid), 0, 2, &state);
    subject->params.mu = mu;
    subject->params.mode = LR_MODE_AUTO;
    check_deterministic(subject, image, 2e-6, 0);
    lr_image_destroy(mu);
}

stage_main("render_compute", CASES(test_every_kind_of_scanner, test_absorption, test_deterministic))
