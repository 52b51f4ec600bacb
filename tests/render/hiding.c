/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Modules that hide others, on either side of a point: the raster and compute backends against the
 * cpu backend, element by element and pixel by pixel; projections, parts and windows against their
 * own rows. */
#include "stage.h"

/* As in compute.c. Exact elements: relative L2, and worst over the largest. Sampled ones: relative,
 * but for what lines near edges carry. */
static const double exact_l2 = 1e-5, exact_worst = 1e-4, element_tolerance = 1e-5;

/* Sums of floats, relative to the largest. */
static const double sum_tolerance = 3e-6;

/* --- arrangements --- */

static lr_module panel(double x_mm, const double at_mm[2], const int crystals[2], double pitch_mm, double face_mm)
{
    lr_module module = shape_of(crystals[0], crystals[1], pitch_mm, face_mm);
    module.depth_mm = 1;
    module = place_module(&module, &(struct placement){.radius_mm = 1});
    module.centre_mm[0] = x_mm;
    module.centre_mm[1] = at_mm[0];
    module.centre_mm[2] = at_mm[1];
    return module;
}

/* The one in the middle is smaller, stands aside, and is more gap than face. */
static lr_scanner *create_parallel(void)
{
    const lr_module modules[3] = {
        panel(-70, (double[2]){0, 0}, (int[2]){9, 8}, 5, 4.6),
        panel(-40, (double[2]){4, -3}, (int[2]){5, 4}, 6, 4),
        panel(60, (double[2]){-2, 1}, (int[2]){8, 9}, 5.2, 5),
    };
    return scanner_of(modules, 3, 0);
}

static lr_scanner *create_ring_in_ring(void)
{
    lr_module modules[20];
    const lr_module inner = shape_of(4, 5, 3.1, 2.6), outer = shape_of(5, 6, 4, 3.7);
    for (int m = 0; m < 20; m++) {
        modules[m] = m < 8 ? place_module(&inner, &(struct placement){45.0 * m + 9, 24, 1, 0, 0, 0})
                           : place_module(&outer, &(struct placement){30.0 * m, 46, -1, 0, 0, 0});
    }
    return scanner_of(modules, 20, 70);
}

/* The centre of the tilted one is farther than all others, and it stands before the two. */
static lr_scanner *create_tilted_before(void)
{
    lr_module tilted = shape_of(12, 3, 6, 5);
    tilted.depth_mm = 1;
    const lr_module modules[4] = {
        panel(-60, (double[2]){24, 0}, (int[2]){5, 7}, 6, 5.5),
        panel(-60, (double[2]){-24, 2}, (int[2]){6, 4}, 6.5, 6),
        panel(55, (double[2]){0, -1}, (int[2]){9, 6}, 6, 5.7),
        place_module(&tilted, &(struct placement){127, 75, 3, 20, -40, 10}),
    };
    return scanner_of(modules, 4, 0);
}

/* Five layers of small modules that lean each their own way before large crystals, and two layers
 * on the other side: many overlap where one crystal sees another. */
static lr_scanner *create_layers(void)
{
    enum { LAYERS = 7, PER_LAYER = 6 };
    const double places[LAYERS] = {-64, -54, -44, -34, -24, 30, 42};
    lr_module modules[2 + LAYERS * PER_LAYER];
    modules[0] = panel(-75, (double[2]){0, 0}, (int[2]){2, 2}, 20, 19);
    modules[1] = panel(60, (double[2]){0, 0}, (int[2]){2, 2}, 22, 21);
    for (int k = 0; k < LAYERS * PER_LAYER; k++) {
        const int layer = k / PER_LAYER, within = k % PER_LAYER;
        lr_module small = shape_of(1 + k % 2, 2, 2.6, 2.2);
        small.depth_mm = 0.5;
        lr_module *module = &modules[2 + k];
        *module = place_module(&small, &(struct placement){0, 1, 0, 7.0 * (k % 5) - 14, 9.0 * (k % 3) - 8, 29.0 * k});
        module->centre_mm[0] = places[layer] + 0.3 * within;
        module->centre_mm[1] = 9.0 * (within % 3 - 1) + 1.7 * layer - 4;
        module->centre_mm[2] = 10.0 * (within / 3) - 5 + 1.1 * layer - 3;
    }
    return scanner_of(modules, 2 + LAYERS * PER_LAYER, 0);
}

enum { NUM_POINTS = 8, NUM_RANDOM = 6 };

struct arrangement {
    const char *name;
    lr_scanner *(*create)(void);
    double points_mm[NUM_POINTS][3]; /* before, between and behind the modules that hide */
};

static const struct arrangement arrangements[] = {
    {"parallel panels",
     create_parallel,
     {{0, 0.4, -0.3}, {-25, 6, -4}, {-54, 20, 2}, {28, -9, 5}, {-41.5, 3, 1}, {-69, 5, 5}, {-38.5, -9, 8}, {50, 0, 0}}},
    {"ring in ring",
     create_ring_in_ring,
     {{0.1, 0.2, 0}, {1, 0.5, 0}, {-9, 7, 3}, {31, 6, -2}, {-3, 35, 1}, {20, -10, -5}, {0, -33, 9}, {12, 12, 2}}},
    {"tilted before",
     create_tilted_before,
     {{-8, 1, 0}, {4, -6, 5}, {-45, -8, -3}, {-50, 20, 1}, {20, 10, 4}, {-20, 30, -6}, {-52, -25, 0}, {45, -3, 2}}},
    {"seven layers",
     create_layers,
     {{0, 0.3, -0.2}, {5, 2, 1}, {-5, -3, 2}, {12, 1, -4}, {-39, 2, 1}, {-59, 0, 0}, {36, -2, 3}, {20, 4, 4}}},
    {"stacked",
     create_stacked,
     {{0, 0, 0}, {5, 2, 1}, {-5, -3, 2}, {-30, 1, 1}, {-50, 3, 0}, {-62, 2, -4}, {40, -2, 3}, {70, 4, 4}}},
};
enum { NUM_ARRANGEMENTS = sizeof(arrangements) / sizeof(arrangements[0]) };

/* --- elements --- */

struct question {
    const char *name;
    lr_scanner *scanner;
    lr_lors *lors;
    double points_mm[NUM_POINTS][3];
    lr_grid grid;
    int rays;
    const lr_image *mu;
    struct test_log log;
};

static void question_open(struct question *question, const char *name, lr_scanner *scanner)
{
    *question = (struct question){.name = name, .scanner = scanner, .rays = 3};
    test_log_init(&question->log);
    question->lors = lr_lors_create(scanner, &question->log.log);
    stage_check(question, question->lors != NULL);
    assert_true(lr_modules_may_hide(scanner));
    question->grid = lr_grid_centred((const int[3]){7, 2, 2}, (const double[3]){17.3, 9.1, 6.3});
    question->grid.origin_mm[1] += 0.7;
}

static void question_close(struct question *question)
{
    lr_lors_destroy(question->lors);
    lr_scanner_destroy(question->scanner);
}

static void open_arrangement(struct question *question, int which)
{
    question_open(question, arrangements[which].name, arrangements[which].create());
    memcpy(question->points_mm, arrangements[which].points_mm, sizeof(question->points_mm));
}

/* Points half a millimetre or more from every module's plane. */
static void open_random(struct question *question, uint64_t *state)
{
    question_open(question, "random", create_crowded(state));
    struct eye *eye = eye_create(question->scanner, 1);
    for (int n = 0; n < NUM_POINTS; n++) {
        do {
            for (int k = 0; k < 3; k++) question->points_mm[n][k] = random_between(state, -1, 1) * (k == 2 ? 15 : 45);
            eye_place(eye, question->points_mm[n]);
        } while (eye_least_height(eye) < 0.5);
    }
    eye_destroy(eye);
}

static lr_operator *make_operator(struct question *question, const char *backend, lr_mode mode)
{
    lr_operator *op = lr_operator_create(&(lr_operator_params){.lors = question->lors,
                                                               .grid = &question->grid,
                                                               .backend = backend,
                                                               .mode = mode,
                                                               .rays = question->rays,
                                                               .samples = {1, 1, 1},
                                                               .mu = question->mu,
                                                               .mu_steps = 20,
                                                               .store = LR_STORE_NO,
                                                               .threads = 1,
                                                               .log = &question->log.log});
    stage_check(question, op != NULL);
    return op;
}

static lr_status take(void *user, const lr_row *row)
{
    double *values = user;
    for (int64_t k = 0; k < row->count; k++) values[row->lor[k]] = row->probability[k];
    return LR_OK;
}

/* The elements of one point, [num_lors]. */
static double *point_row(const struct question *question, lr_operator *op, int point)
{
    double *row = test_alloc(question->lors->count, sizeof(*row));
    const lr_row_sink sink = {take, row};
    stage_check(question, lr_operator_point_rows(op, &question->points_mm[point], 1, &sink) == LR_OK);
    return row;
}

struct size {
    double squared, largest;
};

/* b NULL: of a alone. */
static void measure(const double *a, const double *b, int64_t count, struct size *size)
{
    for (int64_t k = 0; k < count; k++) {
        const double value = b != NULL ? a[k] - b[k] : a[k];
        size->squared += value * value;
        size->largest = fmax(size->largest, fabs(value));
    }
}

static void check_exact(struct question *question)
{
    lr_operator *ops[2] = {make_operator(question, "compute", LR_MODE_EXACT),
                           make_operator(question, "cpu", LR_MODE_EXACT)};
    struct size error = {0}, size = {0};
    for (int n = 0; n < NUM_POINTS; n++) {
        double *rows[2];
        for (int k = 0; k < 2; k++) rows[k] = point_row(question, ops[k], n);
        measure(rows[0], rows[1], question->lors->count, &error);
        measure(rows[1], NULL, question->lors->count, &size);
        free(rows[0]);
        free(rows[1]);
    }
    const double l2 = sqrt(error.squared / fmax(size.squared, 1e-300));
    const double worst = error.largest / fmax(size.largest, 1e-300);
    print_message("%-16s exact: L2 %.1e, worst %.1e of the largest\n", question->name, l2, worst);
    assert_true(l2 <= exact_l2 && worst <= exact_worst);
    lr_operator_destroy(ops[0]);
    lr_operator_destroy(ops[1]);
}

/* A line that changes sides leaves one element and joins another. */
static void compare_sampled(const struct question *question, int point, const double *got, const double *want,
                            double borderline)
{
    double largest = 0, sum = 0;
    for (int64_t lor = 0; lor < question->lors->count; lor++) {
        const double over = fabs(got[lor] - want[lor]) - element_tolerance * fmax(got[lor], want[lor]);
        largest = fmax(largest, over);
        sum += fmax(0, over);
    }
    if (largest > borderline || sum > 2 * borderline) {
        fail_msg("%s, point %d: an element differs by %.3g, all by %.3g, lines near edges carry "
                 "%.3g",
                 question->name, point, largest, sum, borderline);
    }
}

static void check_sampled(struct question *question, const char *backend)
{
    lr_operator *ops[2] = {make_operator(question, backend, LR_MODE_SAMPLED),
                           make_operator(question, "cpu", LR_MODE_SAMPLED)};
    struct eye *eye = eye_create(question->scanner, question->rays);
    struct size size = {0};
    for (int n = 0; n < NUM_POINTS; n++) {
        double *got = point_row(question, ops[0], n), *want = point_row(question, ops[1], n);
        const double borderline = eye_borderline_weight(eye, question->points_mm[n]);
        compare_sampled(question, n, got, want, borderline);
        measure(want, NULL, question->lors->count, &size);
        free(got);
        free(want);
    }
    assert_true(size.largest > 0 || strcmp(question->name, "random") == 0);
    eye_destroy(eye);
    lr_operator_destroy(ops[0]);
    lr_operator_destroy(ops[1]);
}

/* The arrangements, then random ones. */
static void open_question(struct question *question, int which, uint64_t *state)
{
    if (which < NUM_ARRANGEMENTS)
        open_arrangement(question, which);
    else
        open_random(question, state);
}

static void test_exact(void **unused)
{
    (void)unused;
    uint64_t state = test_seed();
    for (int k = 0; k < NUM_ARRANGEMENTS + NUM_RANDOM; k++) {
        struct question question;
        open_question(&question, k, &state);
        check_exact(&question);
        question_close(&question);
    }
}

static void test_sampled(void **unused)
{
    (void)unused;
    uint64_t state = test_seed();
    for (int k = 0; k < NUM_ARRANGEMENTS + NUM_RANDOM; k++) {
        struct question question;
        open_question(&question, k, &state);
        question.rays = 1 + k % 5;
        check_sampled(&question, "raster");
        check_sampled(&question, "compute");
        question_close(&question);
    }
}

/* --- absorption: exact elements are weakened at the middle of what is seen --- */

static void test_absorption(void **unused)
{
    (void)unused;
    uint64_t state = test_seed();
    const lr_grid grid = lr_grid_centred((const int[3]){9, 8, 7}, (const double[3]){14, 8, 8});
    lr_image *mu = lr_image_create(&grid, NULL);
    for (int64_t k = 0; k < lr_grid_num_voxels(&grid); k++) mu->values[k] = (float)random_between(&state, 0, 0.02);
    for (int k = 0; k < 3; k++) {
        struct question question;
        open_arrangement(&question, k);
        question.mu = mu;
        check_sampled(&question, "raster");
        check_sampled(&question, "compute");
        check_exact(&question);
        question_close(&question);
    }
    lr_image_destroy(mu);
}

/* --- pictures --- */

static void compare_pictures(const struct question *question, lr_operator *const ops[2], struct eye *eye,
                             int64_t counts[3])
{
    for (int m = 0; m < question->scanner->num_modules; m++) {
        const int *crystals = question->scanner->modules[m].crystals;
        const int width = crystals[0] * eye->rays, count = width * crystals[1] * eye->rays;
        lr_pixel *got = test_alloc(count, sizeof(*got)), *want = test_alloc(count, sizeof(*want));
        stage_check(question, lr_operator_picture(ops[0], eye->point_mm, m, got) == LR_OK);
        stage_check(question, lr_operator_picture(ops[1], eye->point_mm, m, want) == LR_OK);
        for (int k = 0; k < count; k++) {
            double ray[3];
            eye_line(eye, m, k % width, k / width, ray);
            const struct eye_line line = eye_follow(eye, m, ray, NULL);
            if (line.borderline > BORDERLINE_PITCHES) {
                assert_true(got[k].module == want[k].module);
                assert_true(got[k].r == want[k].r && got[k].s == want[k].s);
                assert_close((double)got[k].weight, (double)want[k].weight, element_tolerance);
                assert_close((double)got[k].path_mm, (double)want[k].path_mm, element_tolerance);
                counts[0] += want[k].weight > 0;
                counts[1] += want[k].module >= 0 && want[k].weight == 0;
                counts[2] += line.stopped && line.first >= 0 && eye->modules[m].height > 0;
            }
        }
        free(got);
        free(want);
    }
}

static void test_pictures(void **unused)
{
    (void)unused;
    int64_t counts[3] = {0};
    for (int which = 0; which < NUM_ARRANGEMENTS; which++) {
        struct question question;
        open_arrangement(&question, which);
        lr_operator *ops[2] = {make_operator(&question, "raster", LR_MODE_SAMPLED),
                               make_operator(&question, "cpu", LR_MODE_SAMPLED)};
        struct eye *eye = eye_create(question.scanner, question.rays);
        for (int n = 0; n < NUM_POINTS; n++) {
            eye_place(eye, question.points_mm[n]);
            compare_pictures(&question, ops, eye, counts);
        }
        eye_destroy(eye);
        lr_operator_destroy(ops[0]);
        lr_operator_destroy(ops[1]);
        question_close(&question);
    }
    print_message("%lld lines with a weight, %lld that name a module without, %lld stopped before "
                  "the primary\n",
                  (long long)counts[0], (long long)counts[1], (long long)counts[2]);
    assert_true(counts[0] > 5000 && counts[1] > 1000 && counts[2] > 1000);
}

/* --- projections --- */

/* Of the programs that each arrangement has for each way, compiling takes seconds. */
static bool is_left_out(int which, int way, bool is_full)
{
    return !is_full && which > 0 && way != 0 && way != which;
}

static const struct way {
    const char *backend;
    lr_mode mode;
    bool deterministic;
} ways[] = {{"raster", LR_MODE_SAMPLED, false},
            {"compute", LR_MODE_SAMPLED, false},
            {"compute", LR_MODE_EXACT, false},
            {"compute", LR_MODE_EXACT, true}};
enum { NUM_WAYS = sizeof(ways) / sizeof(ways[0]) };

struct bench {
    struct question question;
    lr_operator *op;
    int64_t num_voxels, num_lors;
    float *image, *values;      /* inputs */
    double *forward, *backward; /* from rows */
};

static lr_status add_row(void *user, const lr_row *row)
{
    struct bench *bench = user;
    for (int64_t k = 0; k < row->count; k++) {
        bench->forward[row->lor[k]] += row->probability[k] * (double)bench->image[row->row];
        bench->backward[row->row] += row->probability[k] * (double)bench->values[row->lor[k]];
    }
    return LR_OK;
}

/* memory: max_memory_bytes. */
static lr_operator *way_operator(struct question *question, const struct way *way, int64_t memory)
{
    lr_operator *op = lr_operator_create(&(lr_operator_params){.lors = question->lors,
                                                               .grid = &question->grid,
                                                               .backend = way->backend,
                                                               .mode = way->mode,
                                                               .rays = 2,
                                                               .samples = {2, 1, 1},
                                                               .store = LR_STORE_NO,
                                                               .deterministic = way->deterministic,
                                                               .max_memory_bytes = memory,
                                                               .threads = 1,
                                                               .log = &question->log.log});
    stage_check(question, op != NULL);
    return op;
}

static void bench_open(struct bench *bench, int which, const struct way *way, uint64_t *state)
{
    *bench = (struct bench){0};
    open_arrangement(&bench->question, which);
    bench->op = way_operator(&bench->question, way, 0);
    bench->num_voxels = lr_grid_num_voxels(&bench->question.grid);
    bench->num_lors = bench->question.lors->count;
    bench->image = test_alloc(bench->num_voxels, sizeof(float));
    bench->values = test_alloc(bench->num_lors, sizeof(float));
    bench->forward = test_alloc(bench->num_lors, sizeof(double));
    bench->backward = test_alloc(bench->num_voxels, sizeof(double));
    for (int64_t k = 0; k < bench->num_voxels; k++) bench->image[k] = (float)random_between(state, 0.5, 2);
    for (int64_t k = 0; k < bench->num_lors; k++) bench->values[k] = (float)random_between(state, 0.5, 2);
    stage_check(&bench->question,
                lr_operator_rows(bench->op, 0, bench->num_voxels, &(lr_row_sink){add_row, bench}) == LR_OK);
}

static void bench_close(struct bench *bench)
{
    lr_operator_destroy(bench->op);
    free(bench->image);
    free(bench->values);
    free(bench->forward);
    free(bench->backward);
    question_close(&bench->question);
}

static void check_near(const struct bench *bench, const char *what, const float *got, const double *want, int64_t count)
{
    double worst = 0, largest = 0;
    for (int64_t k = 0; k < count; k++) {
        worst = fmax(worst, fabs((double)got[k] - want[k]));
        largest = fmax(largest, want[k]);
    }
    if (!(largest > 0) || worst > sum_tolerance * largest)
        fail_msg("%s, %s: off by %.3g of the largest", bench->question.name, what, worst / largest);
}

static void check_whole(struct bench *bench, lr_operator *op, const char *what)
{
    float *data = test_alloc(bench->num_lors, sizeof(*data));
    float *image = test_alloc(bench->num_voxels, sizeof(*image));
    stage_check(&bench->question, array_forward(op, bench->image, data) == LR_OK);
    stage_check(&bench->question, array_back(op, bench->values, image) == LR_OK);
    check_near(bench, what, data, bench->forward, bench->num_lors);
    check_near(bench, what, image, bench->backward, bench->num_voxels);
    double left = 0, right = 0;
    for (int64_t k = 0; k < bench->num_lors; k++) left += (double)data[k] * (double)bench->values[k];
    for (int64_t k = 0; k < bench->num_voxels; k++) right += (double)image[k] * (double)bench->image[k];
    assert_close(left, right, sum_tolerance);
    free(data);
    free(image);
}

static lr_selection part_of(struct bench *bench, bool by_pairs, int parity, void *list)
{
    const lr_lors *lors = bench->question.lors;
    const int64_t end = by_pairs ? lors->num_pairs : lors->count;
    int64_t count = 0;
    for (int64_t k = 0; k < end; k++) {
        if (k % 2 == parity) {
            if (by_pairs)
                ((int32_t *)list)[count++] = (int32_t)k;
            else
                ((int64_t *)list)[count++] = k;
        }
    }
    return by_pairs ? (lr_selection){.pairs = list, .num_pairs = count}
                    : (lr_selection){.lors = list, .num_lors = count};
}

static int64_t lor_at(const lr_lors *lors, const lr_selection *part, int64_t position)
{
    if (part->lors != NULL) return part->lors[position];
    for (int64_t k = 0;; k++) {
        const int64_t *offsets = &lors->offsets[part->pairs[k]];
        if (position < offsets[1] - offsets[0]) return offsets[0] + position;
        position -= offsets[1] - offsets[0];
    }
}

/* Both halves of the LORs give the whole. */
static void check_parts(struct bench *bench, bool by_pairs)
{
    const lr_lors *lors = bench->question.lors;
    int64_t *list = test_alloc(lors->count, sizeof(*list));
    float *data = test_alloc(lors->count, sizeof(*data));
    float *part_data = test_alloc(lors->count, sizeof(*part_data));
    float *image = test_alloc(bench->num_voxels, sizeof(*image));
    float *sum = test_alloc(bench->num_voxels, sizeof(*sum));
    for (int parity = 0; parity < 2; parity++) {
        const lr_selection part = part_of(bench, by_pairs, parity, list);
        const int64_t count = lr_selection_count(lors, &part);
        stage_check(&bench->question, array_forward_part(bench->op, &part, bench->image, part_data) == LR_OK);
        for (int64_t k = 0; k < count; k++) {
            data[lor_at(lors, &part, k)] = part_data[k];
            part_data[k] = bench->values[lor_at(lors, &part, k)];
        }
        stage_check(&bench->question, array_back_part(bench->op, &part, part_data, image) == LR_OK);
        for (int64_t k = 0; k < bench->num_voxels; k++) sum[k] += image[k];
    }
    check_near(bench, by_pairs ? "parts by pairs" : "parts by LORs", data, bench->forward, bench->num_lors);
    check_near(bench, by_pairs ? "parts by pairs" : "parts by LORs", sum, bench->backward, bench->num_voxels);
    free(list);
    free(data);
    free(part_data);
    free(image);
    free(sum);
}

static void test_projections(void **unused)
{
    (void)unused;
    uint64_t state = test_seed();
    const bool is_full = test_takes_all("two of four ways to project in three of four arrangements");
    for (int which = 0; which < 4; which++) {
        for (int k = 0; k < NUM_WAYS; k++) {
            struct bench bench;
            if (is_left_out(which, k, is_full)) continue;
            bench_open(&bench, which, &ways[k], &state);
            check_whole(&bench, bench.op, "all at once");
            if (which == 0) {
                lr_operator *windows = way_operator(&bench.question, &ways[k], bench.num_lors * 8 / 3);
                check_whole(&bench, windows, "window by window");
                lr_operator_destroy(windows);
                check_parts(&bench, true);
                check_parts(&bench, false);
            }
            bench_close(&bench);
        }
    }
}

/* --- what does not fit --- */

/* As many small modules between a point and one primary as the compute backend has no room for. */
static void test_too_many_are_refused(void **unused)
{
    (void)unused;
    enum { EDGE = 12, NUM_MODULES = 2 + EDGE * EDGE };
    struct question question;
    lr_module modules[NUM_MODULES];
    modules[0] = panel(-60, (double[2]){0, 0}, (int[2]){4, 4}, 10, 9);
    modules[1] = panel(50, (double[2]){0, 0}, (int[2]){4, 4}, 10, 9);
    for (int k = 0; k < EDGE * EDGE; k++) {
        const double at[2] = {3.0 * (k % EDGE) - 16.5, 3.0 * (k / EDGE) - 16.5};
        modules[2 + k] = panel(-40, at, (int[2]){1, 1}, 2.5, 2);
    }
    question_open(&question, "many", scanner_of(modules, NUM_MODULES, 0));
    static const double point[3] = {20, 0, 0};
    question.points_mm[0][0] = 20;
    for (int exact = 0; exact < 2; exact++) {
        lr_operator *op = make_operator(&question, "compute", exact ? LR_MODE_EXACT : LR_MODE_SAMPLED);
        double *row = test_alloc(question.lors->count, sizeof(*row));
        const lr_row_sink sink = {take, row};
        assert_int_equal(lr_operator_point_rows(op, &point, 1, &sink), LR_USAGE);
        assert_non_null(strstr(question.log.error, "more than the 96"));
        free(row);
        lr_operator_destroy(op);
    }
    check_sampled(&question, "raster");
    question_close(&question);
}

/* Sampled with so many rays, a crystal needs more rounds of loops than Mesa's software renderer has. */
static void test_no_loop_ends_early(void **unused)
{
    (void)unused;
    static const double point[3] = {12, 1, -4};
    struct question question;
    open_arrangement(&question, 3);
    question.rays = 64;
    lr_operator *op = make_operator(&question, "compute", LR_MODE_SAMPLED);
    double *row = test_alloc(question.lors->count, sizeof(*row));
    const lr_row_sink sink = {take, row};
    const bool software = strstr(lr_operator_get_info(op)->device, "llvmpipe") != NULL;
    const lr_status status = lr_operator_point_rows(op, &point, 1, &sink);
    assert_int_equal(status, software ? LR_USAGE : LR_OK);
    assert_true(!software || strstr(question.log.error, "65,535 rounds") != NULL);
    free(row);
    lr_operator_destroy(op);
    question_close(&question);
}

int main(int argc, char **argv)
{
    struct gl_context *ctx = stage_context();
    if (ctx == NULL) return 77;
    stage_leave(ctx);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact),
        cmocka_unit_test(test_sampled),
        cmocka_unit_test(test_absorption),
        cmocka_unit_test(test_pictures),
        cmocka_unit_test(test_projections),
        cmocka_unit_test(test_too_many_are_refused),
        cmocka_unit_test(test_no_loop_ends_early),
    };
    stage_choose_tests(argc, argv);
    return cmocka_run_group_tests_name("render_hiding", tests, NULL, NULL);
}
