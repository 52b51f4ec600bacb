/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Matrix elements of the raster backend against those of the cpu backend, both through the
 * operator: equal to 1e-5, but for lines that pass within 1e-4 of a pitch of a crystal's edge. */
#include "stage.h"

static const double element_tolerance = 1e-5;

/* The rows of one operator. */
struct matrix {
    int64_t num_rows, num_elements, capacity;
    int64_t *starts; /* [num_rows + 1] */
    int64_t *lor;
    double *probability;
};

static lr_status take(void *user, const lr_row *row)
{
    struct matrix *matrix = user;
    if (matrix->num_elements + row->count > matrix->capacity) {
        matrix->capacity = 2 * (matrix->num_elements + row->count);
        const size_t capacity = (size_t)matrix->capacity;
        matrix->lor = realloc(matrix->lor, capacity * sizeof(int64_t));
        matrix->probability = realloc(matrix->probability, capacity * sizeof(double));
        assert_true(matrix->lor && matrix->probability);
    }
    for (int64_t k = 0; k < row->count; k++) {
        matrix->lor[matrix->num_elements] = row->lor[k];
        matrix->probability[matrix->num_elements++] = row->probability[k];
    }
    matrix->starts[++matrix->num_rows] = matrix->num_elements;
    return LR_OK;
}

static void matrix_init(struct matrix *matrix, lr_operator_params params, const char *backend, struct test_log *log)
{
    const int64_t num_voxels = lr_grid_num_voxels(params.grid);
    *matrix = (struct matrix){.starts = test_alloc(num_voxels + 1, sizeof(int64_t))};
    params.backend = backend;
    params.log = &log->log;
    lr_operator *op = lr_operator_create(&params);
    if (op == NULL || lr_operator_rows(op, 0, num_voxels, &(lr_row_sink){take, matrix}) != LR_OK)
        fail_msg("%s: %s", backend, log->error);
    assert_int_equal(matrix->num_rows, num_voxels);
    lr_operator_destroy(op);
}

static void matrix_finish(struct matrix *matrix)
{
    free(matrix->starts);
    free(matrix->lor);
    free(matrix->probability);
}

/* What the lines of one voxel that may fall on either side of an edge carry. */
static double borderline_weight(struct eye *eye, const struct lr_rows *rows, int64_t row, int *num_lines)
{
    double sum = 0;
    const int rays = eye->rays;
    for (int point = 0; point < lr_rows_per_row(rows); point++) {
        double point_mm[3];
        lr_rows_point(rows, row, point, point_mm);
        eye_place(eye, point_mm);
        for (int i = 0; i < eye->scanner->num_modules; i++) {
            const int *crystals = eye->scanner->modules[i].crystals;
            const int width = crystals[0] * rays, height = crystals[1] * rays;
            for (int pixel = 0; eye->modules[i].height > 0 && pixel < width * height; pixel++) {
                double ray[3], edge;
                eye_line(eye, i, pixel % width, pixel / width, ray);
                eye_first_hit(eye, i, ray, &edge);
                if (edge <= BORDERLINE_PITCHES) {
                    sum += eye_weight(eye, i, ray);
                    ++*num_lines;
                }
            }
        }
    }
    return sum / lr_rows_per_row(rows);
}

struct comparison {
    int64_t differing_rows;
    int borderline_lines;
    double worst; /* relative, of elements in rows without borderline lines */
};

/* Largest and summed difference of two rows beyond the tolerance. */
struct excess {
    double largest, sum, relative;
};

static struct excess compare_row(const struct matrix *a, const struct matrix *b, int64_t row)
{
    int64_t k = a->starts[row], n = b->starts[row];
    struct excess excess = {0};
    while (k < a->starts[row + 1] || n < b->starts[row + 1]) {
        const int64_t in_a = k < a->starts[row + 1] ? a->lor[k] : INT64_MAX;
        const int64_t in_b = n < b->starts[row + 1] ? b->lor[n] : INT64_MAX;
        const double x = in_a <= in_b ? a->probability[k] : 0;
        const double y = in_b <= in_a ? b->probability[n] : 0;
        const double over = fabs(x - y) - element_tolerance * fmax(x, y);
        excess.relative = fmax(excess.relative, fabs(x - y) / fmax(x, y));
        excess.largest = fmax(excess.largest, over);
        excess.sum += fmax(0, over);
        k += in_a <= in_b;
        n += in_b <= in_a;
    }
    return excess;
}

static void compare(const struct matrix *raster, const struct matrix *cpu, const struct lr_rows *rows, struct eye *eye,
                    struct comparison *comparison)
{
    for (int64_t row = 0; row < rows->end; row++) {
        const struct excess excess = compare_row(raster, cpu, row);
        if (excess.largest <= 0) {
            comparison->worst = fmax(comparison->worst, excess.relative);
            continue;
        }
        const double weight = borderline_weight(eye, rows, row, &comparison->borderline_lines);
        comparison->differing_rows++;
        if (excess.largest > weight * (1 + element_tolerance)) {
            fail_msg("row %lld: an element differs by %.3g, lines near edges carry %.3g", (long long)row,
                     excess.largest, weight);
        }
        /* A line that changes sides leaves one element and joins another. */
        if (excess.sum > 2 * weight * (1 + element_tolerance)) {
            fail_msg("row %lld: elements differ by %.3g in all, lines near edges carry %.3g", (long long)row,
                     excess.sum, weight);
        }
    }
}

/* edge_mm: of a voxel; returns how many lines were near an edge in rows that differ. */
static int check_elements(const struct scanner_case *at, int rays, int samples, double edge_mm)
{
    struct test_log log;
    test_log_init(&log);
    lr_scanner *scanner = at->create();
    lr_lors *lors = lr_lors_create(scanner, &log.log);
    const lr_grid grid = lr_grid_centred((const int[3]){5, 5, 3}, (const double[3]){edge_mm, edge_mm, 0.6 * edge_mm});
    lr_operator_params params = {
        .lors = lors, .grid = &grid, .mode = LR_MODE_SAMPLED, .rays = rays, .store = LR_STORE_NO};
    struct matrix raster, cpu;
    lr_grid_split_samples(&grid, samples, params.samples);
    matrix_init(&raster, params, "raster", &log);
    matrix_init(&cpu, params, "cpu", &log);
    const struct lr_rows rows = {.grid = &grid,
                                 .samples = {params.samples[0], params.samples[1], params.samples[2]},
                                 .end = lr_grid_num_voxels(&grid)};
    struct eye *eye = eye_create(scanner, rays);
    struct comparison comparison = {0};
    compare(&raster, &cpu, &rows, eye, &comparison);
    print_message("%-14s R = %d, N = %d: %7lld elements to %.1e; %lld rows differ, where %d lines "
                  "pass near an edge\n",
                  at->name, rays, samples, (long long)cpu.num_elements, comparison.worst,
                  (long long)comparison.differing_rows, comparison.borderline_lines);
    assert_true(cpu.num_elements > 100);
    eye_destroy(eye);
    matrix_finish(&raster);
    matrix_finish(&cpu);
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
    return comparison.borderline_lines;
}

static void test_single_samples(void **unused)
{
    (void)unused;
    for (int k = 0; k < NUM_SCANNER_CASES; k++) {
        const struct scanner_case *at = &scanner_cases[k];
        check_elements(at, k == NUM_SCANNER_CASES - 1 ? 1 : 2 + k % 3, 1, at->reach_mm / 3);
    }
}

static void test_eight_samples(void **unused)
{
    (void)unused;
    static const char *const names[] = {"oblique", "unequal", "gapped", "ring of 8", "ruled ring"};
    for (int k = 0; k < 5; k++) {
        const struct scanner_case *at = scanner_case_named(names[k]);
        check_elements(at, 2, 8, at->reach_mm / 3);
    }
}

/* Opposed modules equally far from the voxels: a line from y ends at 2 w - y. With R = 2 the lines
 * start a quarter face beside crystal centres, so that voxels an eighth of a face apart send some
 * of them right onto an edge. */
static void test_lines_onto_edges(void **unused)
{
    (void)unused;
    const struct scanner_case *opposed = scanner_case_named("opposed");
    assert_true(check_elements(opposed, 2, 1, 0.5) + check_elements(opposed, 2, 8, 0.5) > 0);
}

/* --- pictures: the same lines one by one, those that carry nothing too --- */

static lr_operator *make_operator(const lr_operator_params *params, const char *backend, struct test_log *log)
{
    lr_operator_params own = *params;
    own.backend = backend;
    own.log = &log->log;
    lr_operator *op = lr_operator_create(&own);
    if (op == NULL) fail_msg("%s: %s", backend, log->error);
    return op;
}

static void compare_pictures(lr_operator *ops[2], struct eye *eye, int module, int *shown)
{
    const int *crystals = eye->scanner->modules[module].crystals;
    const int width = crystals[0] * eye->rays, count = width * crystals[1] * eye->rays;
    lr_pixel *got = test_alloc(count, sizeof(*got)), *want = test_alloc(count, sizeof(*want));
    assert_int_equal(lr_operator_picture(ops[0], eye->point_mm, module, got), LR_OK);
    assert_int_equal(lr_operator_picture(ops[1], eye->point_mm, module, want), LR_OK);
    for (int k = 0; k < count; k++) {
        double ray[3], edge;
        eye_line(eye, module, k % width, k / width, ray);
        eye_first_hit(eye, module, ray, &edge);
        if (edge > BORDERLINE_PITCHES) {
            assert_true(got[k].module == want[k].module);
            assert_true(got[k].r == want[k].r && got[k].s == want[k].s);
            assert_close((double)got[k].weight, (double)want[k].weight, element_tolerance);
            assert_close((double)got[k].path_mm, (double)want[k].path_mm, element_tolerance);
            shown[0] += want[k].weight > 0;
            shown[1] += want[k].module >= 0 && want[k].weight == 0; /* out of coincidence */
        }
    }
    free(got);
    free(want);
}

static void test_pictures(void **unused)
{
    (void)unused;
    struct test_log log;
    test_log_init(&log);
    lr_scanner *scanner = create_ruled_ring();
    lr_lors *lors = lr_lors_create(scanner, &log.log);
    const lr_grid grid = lr_grid_centred((const int[3]){4, 4, 2}, (const double[3]){3, 3, 3});
    const lr_operator_params params = {
        .lors = lors, .grid = &grid, .mode = LR_MODE_SAMPLED, .rays = 3, .store = LR_STORE_NO};
    lr_operator *ops[2] = {make_operator(&params, "raster", &log), make_operator(&params, "cpu", &log)};
    struct eye *eye = eye_create(scanner, 3);
    int shown[2] = {0};
    eye_place(eye, (const double[3]){3.1, -1.7, 2.2});
    for (int module = 0; module < scanner->num_modules; module++) compare_pictures(ops, eye, module, shown);
    assert_true(shown[0] > 100 && shown[1] > 100);
    eye_destroy(eye);
    lr_operator_destroy(ops[0]);
    lr_operator_destroy(ops[1]);
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
}

int main(void)
{
    struct gl_context *ctx = stage_context();
    if (ctx == NULL) return 77;
    stage_leave(ctx);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_single_samples),
        cmocka_unit_test(test_eight_samples),
        cmocka_unit_test(test_lines_onto_edges),
        cmocka_unit_test(test_pictures),
    };
    return cmocka_run_group_tests_name("render_elements", tests, NULL, NULL);
}
