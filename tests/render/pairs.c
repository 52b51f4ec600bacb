/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Exact projections by pairs of modules, on scanners with tilted modules: compared with the cpu backend row by row and
 * as a whole; adjoint; in parts; and with the same bits in every run if wanted. */
#include "subject.h"

/* Two modules of 32 x 32 crystals, nearly as in `loraster bench correspondence --workload tilted`. */
static lr_scanner *create_bench(void)
{
    const lr_module shape = shape_of(32, 32, 2.0, 2.0);
    const lr_module modules[2] = {place_module(&shape, &(struct placement){90, 200, 0, 0, 0, 0}),
                                  place_module(&shape, &(struct placement){270, 200, 0, 6, 16, 4})};
    return scanner_of(modules, 2, 0);
}

/* A ring whose modules are tilted out of the axial direction, like the staves of a barrel, with gaps. */
static lr_scanner *create_barrel(void)
{
    const lr_module shape = {.crystals = {6, 7}, .pitch_mm = {2.2, 2.4}, .face_mm = {1.9, 2.1}, .depth_mm = 10};
    lr_module modules[12];
    for (int m = 0; m < 12; m++) {
        const bool upper = m >= 6;
        modules[m] = place_module(&shape, &(struct placement){60 * m + (upper ? 30 : 0), 24, upper ? 9.5 : -9.5,
                                                              upper ? -14 : 14, 0, upper ? 180 : 0});
    }
    return scanner_of(modules, 12, 0);
}

/* Four modules form a box, and are rotated about their normals, so that a module's u lies across or along the box. */
static lr_scanner *create_box(void)
{
    const lr_module shape = shape_of(12, 10, 1.7, 1.6);
    lr_module modules[4];
    for (int m = 0; m < 4; m++) {
        modules[m] = place_module(&shape, &(struct placement){90 * m, 13, 0.4 * m, 0, 0, m % 2 ? 90 : 0});
        modules[m].centre_mm[2] += 0.1 * m;
    }
    return scanner_of(modules, 4, 0);
}

static const struct scanner_case cases[] = {{"bench", create_bench, 30},
                                            {"tilted", create_tilted, 12},
                                            {"ruled tilted", create_ruled_tilted, 10},
                                            {"barrel", create_barrel, 10},
                                            {"box", create_box, 9}};

/* A grid with two voxels along each axis, one around the point, the other towards the centre, because grids must reach
 * into the scanner. Returns the point's voxel. */
static int grid_around(const double point_mm[3], lr_grid *grid)
{
    int voxel = 0;
    double edges[3];
    for (int a = 0; a < 3; a++) edges[a] = fmax(1, fabs(point_mm[a]));
    *grid = lr_grid_centred((const int[3]){2, 2, 2}, edges);
    for (int a = 0; a < 3; a++) {
        const int mine = point_mm[a] > 0 ? 1 : 0;
        grid->origin_mm[a] = point_mm[a] - mine * edges[a];
        voxel |= mine << a;
    }
    return voxel;
}

/* Projects forward or back. */
static float *project(struct subject *subject, const char *backend, bool is_forward, const float *in)
{
    const int64_t count = is_forward ? subject->lors->count : lr_grid_num_voxels(&subject->grid);
    lr_operator *op = subject_open_operator(subject, backend);
    float *out = kept_floats(count);
    stage_check(subject, (is_forward ? array_forward : array_back)(op, in, out) == LR_OK);
    lr_operator_destroy(op);
    return out;
}

/* A row is compared with the projection of an image of one voxel. Returns true if any point sees anything. */
static bool check_rows(const char *name, lr_scanner *scanner, double reach_mm, uint64_t *state)
{
    double points[NUM_TEST_POINTS][3];
    struct gap gaps[NUM_TEST_POINTS];
    struct subject *subject = subject_open(name, scanner);
    subject->params.mode = LR_MODE_EXACT;
    subject->points = (const double(*)[3])points;
    subject->num_points = NUM_TEST_POINTS;
    assert_all(!lr_modules_may_hide(scanner), lr_lors_axial_axis(subject->lors) < 0);
    for (int k = 0; k < NUM_TEST_POINTS; k++) test_point(scanner, reach_mm, k, state, points[k]);
    for (int k = 0; k < NUM_TEST_POINTS; k++) {
        float image[8] = {0};
        image[grid_around(points[k], &subject->grid)] = 1;
        const float *expected = project(subject, "cpu", true, image), *found = project(subject, "compute", true, image);
        gaps[k] = gap_of_floats(found, expected, subject->lors->count);
    }
    const bool sees = check_row_gaps(subject, gaps, 0, 0);
    destroy_kept(NULL);
    return sees;
}

static void test_rows(void **unused)
{
    uint64_t state = test_seed();
    for (int n = 0; n < length_of(cases); n++)
        assert_true(check_rows(cases[n].name, cases[n].create(), cases[n].reach_mm, &state));
}

/* Random modules without hiding. */
static void test_random_modules(void **unused)
{
    uint64_t state = test_seed();
    int seeing = 0;
    for (int n = 0; n < 12; n++) {
        lr_scanner *scanner = create_random(&state);
        for (int attempt = 0; lr_modules_may_hide(scanner); attempt++) {
            assert_true(attempt < 10000);
            lr_scanner_destroy(scanner);
            scanner = create_random(&state);
        }
        seeing += check_rows("random", scanner, 15, &state);
    }
    assert_true(seeing >= 4);
}

/* A grid off the centre whose voxels have several points. Both directions are compared with the cpu backend and with
 * each other. */
static void test_projections(void **unused)
{
    uint64_t state = test_seed();
    for (int n = 0; n < length_of(cases); n++) {
        const double edge = cases[n].reach_mm / 5;
        struct subject *subject = subject_open(cases[n].name, cases[n].create());
        subject->grid = shifted_grid((const int[3]){4, 5, 3}, (const double[3]){edge, edge, edge},
                                     (const double[3]){0.7 * edge, -0.4 * edge, 0.9 * edge});
        subject->params.mode = LR_MODE_EXACT;
        memcpy(subject->params.samples, (const int[3]){2, 1, 3}, sizeof(subject->params.samples));
        const int64_t num_voxels = lr_grid_num_voxels(&subject->grid), num_lors = subject->lors->count;
        const float *image = kept_random_floats(num_voxels, 0, 2, &state),
                    *data = kept_random_floats(num_lors, 0, 2, &state);
        const float *sums = project(subject, "compute", true, image),
                    *sums_of_image = project(subject, "compute", false, data);
        const struct gap gaps[2] = {gap_of_floats(sums, project(subject, "cpu", true, image), num_lors),
                                    gap_of_floats(sums_of_image, project(subject, "cpu", false, data), num_voxels)};
        print_message("%s, ", subject->name);
        check_gap("forward", &gaps[0], ROW_L2, ROW_WORST);
        print_message("%s, ", subject->name);
        check_gap("back", &gaps[1], ROW_L2, ROW_WORST);
        const double there = dot_product(sums, data, num_lors), here = dot_product(sums_of_image, image, num_voxels);
        print_message("%s, adjoint: %.1e\n", subject->name, fabs(there / here - 1));
        assert_true(fabs(there - here) <= 1e-6 * fabs(here));
        destroy_kept(NULL);
    }
}

static void test_deterministic(void **unused)
{
    uint64_t state = test_seed();
    struct subject *subject = subject_open("tilted", create_tilted());
    subject->grid = lr_grid_centred((const int[3]){6, 5, 4}, (const double[3]){4, 5, 6});
    subject->params.mode = LR_MODE_EXACT;
    subject->params.samples[1] = 2;
    /* 1e-7 of a face: overlaps that are only rounding */
    check_deterministic(subject, kept_random_floats(lr_grid_num_voxels(&subject->grid), 0, 2, &state), 2e-6, 1e-7);
}

/* Parts of pairs and of LORs, in one window and in windows of three pairs of 42 x 42 LORs each. */
static void test_parts(void **unused)
{
    uint64_t state = test_seed();
    struct subject *subject = subject_open("barrel", create_barrel());
    subject->grid = lr_grid_centred((const int[3]){6, 5, 4}, (const double[3]){3, 3, 4});
    subject->params.mode = LR_MODE_EXACT;
    subject->params.samples[2] = 2;
    assert_true(subject->lors->num_pairs > 30 && subject->lors->offsets[1] == 42 * 42);
    for (int k = 0; k < 4; k++) {
        const struct part part = choose_part(subject->lors, 1, 3, 0, k % 2 == 0 ? 1 : 5);
        subject->num_ops = 0;
        subject->params.max_memory_bytes = k < 2 ? 0 : 3 * 42 * 42 * (int64_t)sizeof(float);
        subject_operator(subject, "compute");
        subject->params.max_memory_bytes = 0;
        subject_operator(subject, "compute");
        check_part(subject, &part.selection, 2e-6, false, &state);
    }
}

stage_main("render_pairs", CASES(test_rows, test_projections, test_deterministic, test_parts, test_random_modules))
