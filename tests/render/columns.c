/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Exact rows by columns against the cpu backend, row by row: every test scanner at points off and on
 * its symmetry planes and close to modules, and two real scanners. */
#include "stage.h"

#include <lr/io.h>

/* Of one row: relative L2, and the worst element over the row's largest. */
static const double row_l2 = 1e-5, row_worst = 1e-4;

/* At 2 to 3 mm from a face of the mMR, crystals 650 mm behind the point are seen through parts of the
 * face that are 1/250 as large. Rounding of 1e-7 of a coordinate there is up to 3e-5 of an element. */
static const double near_row_l2 = 2e-5;

/* A point that sees little more than rims has overlaps that are mostly rounding of coordinates: rows
 * count as no smaller than this share of the scanner's largest one. */
static const double least_row = 0.1;

/* Sets of points drawn for a scanner, until some point sees something. */
enum { MOST_DRAWS = 20 };

/* Scanners that columns do not serve: modules that lean, or that hide each other. */
static const char *const others[] = {"tilted", "stacked", "ruled tilted", NULL};

/* At 1 mm from a module, crystals that stand 930 mm behind the point are seen through parts of it
 * that are 1/1000 as large: rounding of 1e-6 mm is 1e-3 mm there, 4e-5 of an element. */
static const char *const large[] = {"opposed", "oblique", "large ring", NULL};

static bool is_among(const char *const *names, const char *name)
{
    while (*names != NULL && strcmp(*names, name) != 0) names++;
    return *names != NULL;
}

static bool is_too_close(const char *name, int point)
{
    return is_among(large, name) && (point == 3 || point == 4);
}

struct sparse {
    int64_t count;
    int64_t *lor;
    double *value;
};

static lr_status take(void *user, const lr_row *row)
{
    struct sparse *list = (struct sparse *)user + row->row;
    *list = (struct sparse){.count = row->count,
                            .lor = test_alloc(row->count + 1, sizeof(int64_t)),
                            .value = test_alloc(row->count + 1, sizeof(double))};
    for (int64_t k = 0; k < row->count; k++) {
        list->lor[k] = row->lor[k];
        list->value[k] = row->probability[k];
    }
    return LR_OK;
}

struct question {
    const lr_lors *lors;
    const double (*points)[3];
    int num_points;
    int num_near; /* of the points, the last ones: close to a face of a large scanner */
};

/* False when the backend has no device. */
static bool ask(const struct question *question, const char *backend, struct sparse *rows)
{
    struct test_log log;
    test_log_init(&log);
    const lr_grid grid = lr_grid_centred((const int[3]){2, 2, 2}, (const double[3]){2, 2, 2});
    lr_operator *op = lr_operator_create(&(lr_operator_params){.lors = question->lors,
                                                               .grid = &grid,
                                                               .backend = backend,
                                                               .mode = LR_MODE_EXACT,
                                                               .samples = {1, 1, 1},
                                                               .store = LR_STORE_NO,
                                                               .log = &log.log});
    if (op == NULL && log.status == LR_NO_DEVICE) return false;
    if (op == NULL ||
        lr_operator_point_rows(op, question->points, question->num_points, &(lr_row_sink){take, rows}) != LR_OK)
        fail_msg("%s: %s", backend, log.error);
    lr_operator_destroy(op);
    return true;
}

struct size {
    double norm, largest;
};

static struct size size_of(const struct sparse *row)
{
    struct size size = {0};
    for (int64_t k = 0; k < row->count; k++) {
        size.norm += row->value[k] * row->value[k];
        size.largest = fmax(size.largest, row->value[k]);
    }
    size.norm = sqrt(size.norm);
    return size;
}

/* The same of the difference of two rows. */
static struct size distance_of(const struct sparse *a, const struct sparse *b)
{
    struct size size = {0};
    int64_t k = 0, n = 0;
    while (k < a->count || n < b->count) {
        const int64_t in_a = k < a->count ? a->lor[k] : INT64_MAX;
        const int64_t in_b = n < b->count ? b->lor[n] : INT64_MAX;
        const double x = in_a <= in_b ? a->value[k] : 0, y = in_b <= in_a ? b->value[n] : 0;
        size.norm += (x - y) * (x - y);
        size.largest = fmax(size.largest, fabs(x - y));
        k += in_a <= in_b;
        n += in_b <= in_a;
    }
    size.norm = sqrt(size.norm);
    return size;
}

static void finish(struct sparse *rows, int count)
{
    for (int k = 0; k < count; k++) {
        free(rows[k].lor);
        free(rows[k].value);
    }
}

static struct size largest_row(const struct sparse *rows, int count)
{
    struct size largest = {0};
    for (int k = 0; k < count; k++) {
        const struct size size = size_of(&rows[k]);
        largest.norm = fmax(largest.norm, size.norm);
        largest.largest = fmax(largest.largest, size.largest);
    }
    return largest;
}

static void check_row(const char *what, const struct size *size, const struct size *distance, double most_l2)
{
    const double l2 = distance->norm / size->norm, worst = distance->largest / size->largest;
    print_message("%s: L2 %.1e, worst %.1e of the largest\n", what, l2, worst);
    if (!(l2 <= most_l2 && worst <= row_worst))
        fail_msg("%s: L2 %.2g, an element %.2g of the largest", what, l2, worst);
}

/* False where no point sees anything. */
static bool compare(const char *name, const struct question *question)
{
    struct sparse expected[NUM_TEST_POINTS] = {{0}}, found[NUM_TEST_POINTS] = {{0}};
    assert_true(ask(question, "cpu", expected) && ask(question, "compute", found));
    const struct size largest = largest_row(expected, question->num_points);
    const bool sees = largest.norm > 0;
    for (int k = 0; !sees && k < question->num_points; k++) assert_int_equal(found[k].count, 0);
    for (int k = 0; sees && k < question->num_points; k++) {
        const double *at = question->points[k];
        struct size size = size_of(&expected[k]);
        const struct size distance = distance_of(&expected[k], &found[k]);
        char what[128];
        size.norm = fmax(size.norm, least_row * largest.norm);
        size.largest = fmax(size.largest, least_row * largest.largest);
        snprintf(what, sizeof(what), "%s at (%.4g, %.4g, %.4g), %lld elements", name, at[0], at[1], at[2],
                 (long long)expected[k].count);
        check_row(what, &size, &distance, k < question->num_points - question->num_near ? row_l2 : near_row_l2);
    }
    finish(expected, question->num_points);
    finish(found, question->num_points);
    return sees;
}

static void draw_points(const struct scanner_case *at, const lr_scanner *scanner, uint64_t *state, double (*points)[3])
{
    int num_points = 0;
    for (int k = 0; k < NUM_TEST_POINTS; k++) {
        double point[3];
        test_point(scanner, at->reach_mm, k, state, point);
        if (!is_too_close(at->name, k)) memcpy(points[num_points++], point, sizeof(point));
    }
}

static void test_every_kind_of_scanner(void **unused)
{
    (void)unused;
    uint64_t state = test_seed();
    for (int n = 0; n < NUM_SCANNER_CASES; n++) {
        if (is_among(others, scanner_cases[n].name)) continue;
        const struct scanner_case *at = &scanner_cases[n];
        double points[NUM_TEST_POINTS][3];
        int draws = 0;
        lr_scanner *scanner = at->create();
        lr_lors *lors = lr_lors_create(scanner, NULL);
        const struct question question = {lors, (const double(*)[3])points,
                                          NUM_TEST_POINTS - (is_among(large, at->name) ? 2 : 0), 0};
        do {
            assert_true(draws++ < MOST_DRAWS);
            draw_points(at, scanner, &state, points);
        } while (!compare(at->name, &question));
        lr_lors_destroy(lors);
        lr_scanner_destroy(scanner);
    }
}

/* Every crystal of one module is seen through every one of the other: far more elements than a point
 * is given room for, so that batches are halved and the list grows. */
static void test_more_elements_than_expected(void **unused)
{
    (void)unused;
    double points[NUM_TEST_POINTS][3];
    const lr_module wide = {.crystals = {24, 1}, .pitch_mm = {2, 48}, .face_mm = {1.9, 48}, .depth_mm = 10};
    const lr_module tall = {.crystals = {1, 24}, .pitch_mm = {48, 2}, .face_mm = {48, 1.9}, .depth_mm = 10};
    const lr_module modules[2] = {place_module(&wide, &(struct placement){0, 60, 0, 0, 0, 0}),
                                  place_module(&tall, &(struct placement){180, 60, 0, 0, 0, 0})};
    lr_scanner *scanner = scanner_of(modules, 2, 0);
    lr_lors *lors = lr_lors_create(scanner, NULL);
    for (int k = 0; k < NUM_TEST_POINTS; k++) {
        points[k][0] = 0.3 * k - 1.1;
        points[k][1] = 0.2 * k - 0.3;
        points[k][2] = 0.5 - 0.1 * k;
    }
    assert_true(compare("crossed", &(struct question){lors, (const double(*)[3])points, NUM_TEST_POINTS, 0}));
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
}

static void check_preset(const char *name, const struct question *wanted)
{
    struct test_log log;
    test_log_init(&log);
    lr_scanner *scanner = lr_scanner_read(name, &log.log);
    if (scanner == NULL) fail_msg("%s", log.error);
    lr_lors *lors = lr_lors_create(scanner, &log.log);
    assert_non_null(lors);
    struct question question = *wanted;
    question.lors = lors;
    assert_true(compare(name, &question));
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
}

static void test_real_scanners(void **unused)
{
    (void)unused;
    static const double whole_body[][3] = {{0, 0, 0},        {150, 0, 0},           {-83.1, 211.7, 47.3},
                                           {0, -260, 110},   {120.3, -77.7, -63.1}, {325.5, 3, 10},
                                           {228.5, 229, -60}}; /* the last ones close to faces */
    static const double small_animal[][3] = {
        {0, 0, 0}, {0, 17.3, 0}, {-21.3, 9.7, 13.1}, {30, 0, -18}, {11.1, -23.7, 7.9}};
    check_preset("siemens-mmr", &(struct question){.points = whole_body, .num_points = 7, .num_near = 2});
    check_preset("ge-explore-vista-dr", &(struct question){.points = small_animal, .num_points = 5});
}

int main(void)
{
    struct gl_context *ctx = stage_context();
    if (ctx == NULL) return 77;
    stage_leave(ctx);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind_of_scanner),
        cmocka_unit_test(test_more_elements_than_expected),
        cmocka_unit_test(test_real_scanners),
    };
    return cmocka_run_group_tests_name("render_columns", tests, NULL, NULL);
}
