/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Matrix elements of the raster backend compared with those of the cpu backend, both computed by an operator: equal to
 * 1e-5, except for lines that pass within 1e-4 of a pitch of a crystal's edge. */
#include "subject.h"

/* edge_mm: edge length of a voxel. Returns the sum carried by lines near edges in the rows that differ. */
static double check_elements(const struct scanner_case *at, int rays, int samples, double edge_mm)
{
    struct subject *subject = subject_open(at->name, at->create());
    subject->grid = lr_grid_centred((const int[3]){5, 5, 3}, (const double[3]){edge_mm, edge_mm, 0.6 * edge_mm});
    subject->params.rays = rays;
    lr_grid_split_samples(&subject->grid, samples, subject->params.samples);
    const int *split = subject->params.samples;
    const struct lr_rows rows = {
        .grid = &subject->grid, .samples = {split[0], split[1], split[2]}, .end = lr_grid_num_voxels(&subject->grid)};
    const struct row *found = voxel_rows(subject, subject_operator(subject, "raster"));
    const struct row *expected = voxel_rows(subject, subject_operator(subject, "cpu"));
    struct eye *eye = eye_create(subject->scanner, rays);
    double worst = 0, carried = 0; /* worst relative difference in rows without lines near edges */
    int64_t num_elements = 0, differing = 0;
    for (int64_t row = 0; row < rows.end; row++) {
        struct gap gap = {0};
        gap_add_rows(&gap, &found[row], &expected[row]);
        num_elements += expected[row].count;
        if (gap.over <= 0) {
            worst = fmax(worst, gap.relative);
            continue;
        }
        double weight = 0;
        for (int point = 0; point < lr_rows_per_row(&rows); point++) {
            double point_mm[3];
            lr_rows_point(&rows, row, point, point_mm);
            weight += eye_borderline_weight(eye, point_mm) / lr_rows_per_row(&rows);
        }
        differing++;
        carried += weight;
        check_over(at->name, row, &gap, weight * (1 + ELEMENT_TOLERANCE));
    }
    print_message("%-14s R = %d, N = %d: %7lld elements to %.1e; %lld rows differ, where lines near edges carry %.1e\n",
                  at->name, rays, samples, (long long)num_elements, worst, (long long)differing, carried);
    assert_true(num_elements > 100);
    destroy_kept(NULL);
    return carried;
}

static void test_single_samples(void **unused)
{
    for (int k = 0; k < length_of(scanner_cases); k++) {
        const struct scanner_case *at = &scanner_cases[k];
        check_elements(at, k == length_of(scanner_cases) - 1 ? 1 : 2 + k % 3, 1, at->reach_mm / 3);
    }
}

static void test_eight_samples(void **unused)
{
    static const char *const names[] = {"oblique", "unequal", "gapped", "ring of 8", "ruled ring"};
    for (int k = 0; k < 5; k++) {
        const struct scanner_case *at = scanner_case_named(names[k]);
        check_elements(at, 2, 8, at->reach_mm / 3);
    }
}

/* The two modules are equally far from the voxels, so a line that starts at y and passes through the sample point w
 * ends at 2 w - y. With R = 2 lines start a quarter of a face away from the crystals' centres. Voxels are an eighth of
 * a face apart, so some lines end exactly on the edge of a crystal. */
static void test_lines_onto_edges(void **unused)
{
    const struct scanner_case *opposed = scanner_case_named("opposed");
    assert_true(check_elements(opposed, 2, 1, 0.5) + check_elements(opposed, 2, 8, 0.5) > 0);
}

/* The same lines are compared one by one, including lines that carry nothing. */
static void test_pictures(void **unused)
{
    int64_t counts[3] = {0};
    struct subject *subject = subject_open("ruled ring", create_ruled_ring());
    subject->params.rays = 3;
    subject_operator(subject, "raster");
    subject_operator(subject, "cpu");
    struct eye *eye = eye_create(subject->scanner, 3);
    eye_place(eye, (const double[3]){3.1, -1.7, 2.2});
    compare_pictures(subject, eye, counts);
    assert_true(counts[0] > 100 && counts[1] > 100);
}

stage_main("render_elements", CASES(test_single_samples, test_eight_samples, test_lines_onto_edges, test_pictures))
