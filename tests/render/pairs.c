/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Projections by pairs of modules, exact, on scanners whose modules lean: against the cpu backend
 * row by row and as a whole, adjoint, in parts, and with the same bits where that is asked for. */
#include "stage.h"

#include "model/scanner/arrangement.h"

/* Of one row: relative L2, and the worst element over the row's largest. */
static const double row_l2 = 1e-5, row_worst = 1e-4;

/* A point that sees little more than rims has overlaps that are mostly rounding of coordinates: rows
 * count as no smaller than this share of the scanner's largest one. */
static const double least_row = 0.1;

/* Two modules of 32 x 32 as `loraster bench correspondence --workload tilted` has them, nearly. */
static lr_scanner *create_bench(void)
{
    const lr_module shape = shape_of(32, 32, 2.0, 2.0);
    const lr_module modules[2] = {place_module(&shape, &(struct placement){90, 200, 0, 0, 0, 0}),
                                  place_module(&shape, &(struct placement){270, 200, 0, 6, 16, 4})};
    return scanner_of(modules, 2, 0);
}

/* A ring whose modules lean out of the axis, like the staves of a barrel, with gaps. */
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

/* Modules that turn about their normals, four to a box: walls that others' heights run out along. */
static lr_scanner *create_box(void)
{
    const lr_module shape = shape_of(12, 10, 1.7, 1.6);
    lr_module modules[4];
    for (int m = 0; m < 4; m++) {
        modules[m] = place_module(&shape, &(struct placement){90 * m, 13, 0.4 * m, 0, 0, m % 2 ? 90 : 0});
        modules[m].centre_mm[2] += 0.1 * m;
    }
    lr_scanner *scanner = scanner_of(modules, 4, 0);
    return scanner;
}

static const struct scanner_case cases[] = {
    {"bench", create_bench, 30},   {"tilted", create_tilted, 12}, {"ruled tilted", create_ruled_tilted, 10},
    {"barrel", create_barrel, 10}, {"box", create_box, 9},
};
enum { NUM_CASES = sizeof(cases) / sizeof(cases[0]) };

struct question {
    const lr_lors *lors;
    const lr_grid *grid;
    const int *samples;
    bool deterministic;
    int64_t max_memory_bytes;
};

static lr_operator *open_operator(const struct question *question, const char *backend, struct test_log *log)
{
    test_log_init(log);
    lr_operator *op = lr_operator_create(
        &(lr_operator_params){.lors = question->lors,
                              .grid = question->grid,
                              .backend = backend,
                              .mode = LR_MODE_EXACT,
                              .samples = {question->samples[0], question->samples[1], question->samples[2]},
                              .deterministic = question->deterministic,
                              .max_memory_bytes = question->max_memory_bytes,
                              .store = LR_STORE_NO,
                              .log = &log->log});
    if (op == NULL) fail_msg("%s: %s", backend, log->error);
    return op;
}

static float *forward(const struct question *question, const char *backend, const float *image)
{
    struct test_log log;
    lr_operator *op = open_operator(question, backend, &log);
    float *data = test_alloc(question->lors->count, sizeof(*data));
    if (array_forward(op, image, data) != LR_OK) fail_msg("%s: %s", backend, log.error);
    lr_operator_destroy(op);
    return data;
}

static float *back(const struct question *question, const char *backend, const float *data)
{
    struct test_log log;
    lr_operator *op = open_operator(question, backend, &log);
    float *image = test_alloc(lr_grid_num_voxels(question->grid), sizeof(*image));
    if (array_back(op, data, image) != LR_OK) fail_msg("%s: %s", backend, log.error);
    lr_operator_destroy(op);
    return image;
}

struct size {
    double norm, largest;
};

/* b NULL: of a alone. */
static struct size distance_of(const float *a, const float *b, int64_t count)
{
    struct size size = {0};
    for (int64_t k = 0; k < count; k++) {
        const double x = (double)a[k] - (b != NULL ? (double)b[k] : 0);
        size.norm += x * x;
        size.largest = fmax(size.largest, fabs(x));
    }
    size.norm = sqrt(size.norm);
    return size;
}

static void check_distance(const char *what, const struct size *size, const struct size *distance)
{
    const double l2 = distance->norm / size->norm, worst = distance->largest / size->largest;
    print_message("%s: L2 %.1e, worst %.1e of the largest\n", what, l2, worst);
    if (!(l2 <= row_l2 && worst <= row_worst)) fail_msg("%s: L2 %.2g, an element %.2g of the largest", what, l2, worst);
}

/* Two voxels along each axis, one of them around the point, the other one towards the centre: grids
 * must reach into the scanner. The point's voxel. */
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

/* A row is the projection of an image of one voxel. Returns whether any point sees anything. */
static bool compare_rows(const char *name, const lr_lors *lors, const double (*points)[3], int num_points)
{
    static const int one_sample[3] = {1, 1, 1};
    float *expected[NUM_TEST_POINTS], *found[NUM_TEST_POINTS];
    struct size sizes[NUM_TEST_POINTS], largest = {0};
    for (int k = 0; k < num_points; k++) {
        lr_grid grid;
        float image[8] = {0};
        image[grid_around(points[k], &grid)] = 1;
        const struct question question = {lors, &grid, one_sample, false, 0};
        expected[k] = forward(&question, "cpu", image);
        found[k] = forward(&question, "compute", image);
        sizes[k] = distance_of(expected[k], NULL, lors->count);
        largest.norm = fmax(largest.norm, sizes[k].norm);
        largest.largest = fmax(largest.largest, sizes[k].largest);
    }
    for (int k = 0; k < num_points; k++) {
        const struct size distance = distance_of(found[k], expected[k], lors->count);
        const struct size size = {fmax(sizes[k].norm, least_row * largest.norm),
                                  fmax(sizes[k].largest, least_row * largest.largest)};
        char what[128];
        snprintf(what, sizeof(what), "%s at (%.4g, %.4g, %.4g)", name, points[k][0], points[k][1], points[k][2]);
        if (largest.norm > 0)
            check_distance(what, &size, &distance);
        else
            assert_true(distance.norm == 0);
        free(expected[k]);
        free(found[k]);
    }
    return largest.norm > 0;
}

static bool check_rows(const struct scanner_case *at, lr_scanner *scanner, uint64_t *state)
{
    double points[NUM_TEST_POINTS][3];
    lr_lors *lors = lr_lors_create(scanner, NULL);
    assert_false(lr_modules_may_hide(scanner));
    assert_true(lr_lors_axial_axis(lors) < 0);
    for (int k = 0; k < NUM_TEST_POINTS; k++) test_point(scanner, at->reach_mm, k, state, points[k]);
    const bool sees = compare_rows(at->name, lors, (const double(*)[3])points, NUM_TEST_POINTS);
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
    return sees;
}

static void test_rows(void **unused)
{
    (void)unused;
    uint64_t state = test_seed();
    for (int n = 0; n < NUM_CASES; n++) assert_true(check_rows(&cases[n], cases[n].create(), &state));
}

/* Random modules, none of which hides another. */
static lr_scanner *create_open(uint64_t *state)
{
    for (int attempt = 0; attempt < 10000; attempt++) {
        lr_scanner *scanner = create_random(state);
        if (!lr_modules_may_hide(scanner)) return scanner;
        lr_scanner_destroy(scanner);
    }
    fail_msg("every random scanner has modules that hide others");
    return NULL;
}

static void test_random_modules(void **unused)
{
    (void)unused;
    uint64_t state = test_seed();
    int seeing = 0;
    for (int n = 0; n < 12; n++) {
        const struct scanner_case at = {"random", NULL, 15};
        seeing += check_rows(&at, create_open(&state), &state);
    }
    assert_true(seeing >= 4);
}

static void fill(float *values, int64_t count, uint64_t *state)
{
    for (int64_t k = 0; k < count; k++) values[k] = (float)random_between(state, 0, 2);
}

static double inner_product(const float *a, const float *b, int64_t count)
{
    double sum = 0;
    for (int64_t k = 0; k < count; k++) sum += (double)a[k] * (double)b[k];
    return sum;
}

/* A grid off the centre, of voxels of several points; both directions against the oracle and against
 * each other. */
static void check_projections(const struct scanner_case *at, uint64_t *state)
{
    static const int samples[3] = {2, 1, 3};
    lr_scanner *scanner = at->create();
    lr_lors *lors = lr_lors_create(scanner, NULL);
    const double edge = at->reach_mm / 5;
    lr_grid grid = lr_grid_centred((const int[3]){6, 7, 5}, (const double[3]){edge, edge, edge});
    grid.origin_mm[0] += 0.7 * edge;
    grid.origin_mm[1] -= 0.4 * edge;
    grid.origin_mm[2] += 0.9 * edge;
    const struct question question = {lors, &grid, samples, false, 0};
    const int64_t num_voxels = lr_grid_num_voxels(&grid);
    float *image = test_alloc(num_voxels, sizeof(*image));
    float *data = test_alloc(lors->count, sizeof(*data));
    fill(image, num_voxels, state);
    fill(data, lors->count, state);
    float *sums[2] = {forward(&question, "cpu", image), forward(&question, "compute", image)};
    float *images[2] = {back(&question, "cpu", data), back(&question, "compute", data)};
    struct size size = distance_of(sums[0], NULL, lors->count);
    struct size distance = distance_of(sums[1], sums[0], lors->count);
    print_message("%s, ", at->name);
    check_distance("forward", &size, &distance);
    size = distance_of(images[0], NULL, num_voxels);
    distance = distance_of(images[1], images[0], num_voxels);
    print_message("%s, ", at->name);
    check_distance("back", &size, &distance);
    const double there = inner_product(sums[1], data, lors->count);
    const double here = inner_product(images[1], image, num_voxels);
    print_message("%s, adjoint: %.1e\n", at->name, fabs(there / here - 1));
    assert_true(fabs(there - here) <= 1e-6 * fabs(here));
    for (int k = 0; k < 2; k++) {
        free(sums[k]);
        free(images[k]);
    }
    free(image);
    free(data);
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
}

static void test_projections(void **unused)
{
    (void)unused;
    uint64_t state = test_seed();
    for (int n = 0; n < NUM_CASES; n++) check_projections(&cases[n], &state);
}

static void test_deterministic(void **unused)
{
    (void)unused;
    enum { ROUNDS = 3 };
    static const int samples[3] = {1, 2, 1};
    uint64_t state = test_seed();
    lr_scanner *scanner = create_tilted();
    lr_lors *lors = lr_lors_create(scanner, NULL);
    const lr_grid grid = lr_grid_centred((const int[3]){6, 5, 4}, (const double[3]){4, 5, 6});
    const int64_t num_voxels = lr_grid_num_voxels(&grid);
    float *image = test_alloc(num_voxels, sizeof(*image)), *sums[ROUNDS];
    fill(image, num_voxels, &state);
    for (int k = 0; k < ROUNDS; k++) {
        const struct question question = {lors, &grid, samples, k > 0, 0};
        sums[k] = forward(&question, "compute", image);
    }
    double largest = 0;
    for (int64_t l = 0; l < lors->count; l++) largest = fmax(largest, (double)sums[0][l]);
    for (int64_t l = 0; l < lors->count; l++) { /* 1e-7 of a face: overlaps of rounding */
        const double bound = 2e-6 * (double)sums[0][l] + 1e-7 * largest;
        assert_true(fabs((double)sums[1][l] - (double)sums[0][l]) <= bound);
    }
    assert_true(largest > 0);
    assert_memory_equal(sums[1], sums[2], (size_t)lors->count * sizeof(**sums));
    for (int k = 0; k < ROUNDS; k++) free(sums[k]);
    free(image);
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
}

/* --- parts --- */

/* A selection and its LORs. */
struct part {
    lr_selection selection;
    int64_t *lors; /* [count] */
    int32_t *pairs;
    int64_t count;
};

/* Every third pair, or of every third pair each fifth LOR. */
static void choose(const lr_lors *lors, bool by_pairs, struct part *part)
{
    *part = (struct part){.lors = test_alloc(lors->count, sizeof(*part->lors)),
                          .pairs = test_alloc(lors->num_pairs, sizeof(*part->pairs))};
    int64_t num_pairs = 0;
    for (int64_t pair = 1; pair < lors->num_pairs; pair += 3) {
        part->pairs[num_pairs++] = (int32_t)pair;
        for (int64_t lor = lors->offsets[pair]; lor < lors->offsets[pair + 1]; lor += by_pairs ? 1 : 5)
            part->lors[part->count++] = lor;
    }
    part->selection = by_pairs ? (lr_selection){.pairs = part->pairs, .num_pairs = num_pairs}
                               : (lr_selection){.lors = part->lors, .num_lors = part->count};
}

static void check_near(const float *a, const float *b, int64_t count)
{
    const struct size size = distance_of(b, NULL, count), distance = distance_of(a, b, count);
    assert_true(size.largest > 0);
    assert_true(distance.largest <= 2e-6 * size.largest);
}

/* Forward of a part is that of all at its LORs; back is that of its values among zeros, also where
 * they are all 1. */
static void check_part(const struct question *question, const struct part *part, uint64_t *state)
{
    struct test_log log;
    const int64_t num_voxels = lr_grid_num_voxels(question->grid), count = part->count;
    const struct question whole = {question->lors, question->grid, question->samples, false, 0};
    lr_operator *op = open_operator(question, "compute", &log);
    float *image = test_alloc(num_voxels, sizeof(*image)), *values = test_alloc(count, sizeof(*values));
    float *picked = test_alloc(count, sizeof(*picked)), *sum = test_alloc(num_voxels, sizeof(*sum));
    float *among = test_alloc(question->lors->count, sizeof(*among));
    fill(image, num_voxels, state);
    float *all = forward(&whole, "compute", image);
    for (int64_t k = 0; k < count; k++) picked[k] = all[part->lors[k]];
    assert_int_equal(array_forward_part(op, &part->selection, image, values), LR_OK);
    check_near(values, picked, count);
    for (int ones = 0; ones < 2; ones++) {
        for (int64_t k = 0; k < count; k++) {
            values[k] = ones ? 1.0f : (float)test_random(state);
            among[part->lors[k]] = values[k];
        }
        float *expected = back(&whole, "compute", among);
        assert_int_equal(ones ? array_sensitivity_part(op, &part->selection, sum)
                              : array_back_part(op, &part->selection, values, sum),
                         LR_OK);
        check_near(sum, expected, num_voxels);
        free(expected);
    }
    float *owned[] = {image, values, picked, sum, among, all};
    for (int k = 0; k < 6; k++) free(owned[k]);
    lr_operator_destroy(op);
}

/* In one window, and in windows of three pairs of 42 x 42 LORs each. */
static void test_parts(void **unused)
{
    (void)unused;
    static const int samples[3] = {1, 1, 2};
    uint64_t state = test_seed();
    lr_scanner *scanner = create_barrel();
    lr_lors *lors = lr_lors_create(scanner, NULL);
    const lr_grid grid = lr_grid_centred((const int[3]){6, 5, 4}, (const double[3]){3, 3, 4});
    assert_true(lors->num_pairs > 30 && lors->offsets[1] == 42 * 42);
    for (int k = 0; k < 4; k++) {
        const struct question question = {lors, &grid, samples, false,
                                          k < 2 ? 0 : 3 * 42 * 42 * (int64_t)sizeof(float)};
        struct part part;
        choose(lors, k % 2 == 0, &part);
        check_part(&question, &part, &state);
        free(part.lors);
        free(part.pairs);
    }
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
}

int main(void)
{
    struct gl_context *ctx = stage_context();
    if (ctx == NULL) return 77;
    stage_leave(ctx);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),  cmocka_unit_test(test_projections),    cmocka_unit_test(test_deterministic),
        cmocka_unit_test(test_parts), cmocka_unit_test(test_random_modules),
    };
    return cmocka_run_group_tests_name("render_pairs", tests, NULL, NULL);
}
