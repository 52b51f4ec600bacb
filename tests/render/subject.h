/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Operators of several backends on one scanner, and differences of their elements and projections. */
#pragma once

#include "stage.h"

#include "model/lors/selection.h"

struct subject {
    const char *name;
    struct test_log log;
    lr_scanner *scanner;
    lr_lors *lors;
    lr_grid grid;              /* 2 x 2 x 2, unless the caller changes it before operators are made */
    lr_operator_params params; /* of the next operator */
    lr_operator *ops[4];
    int num_ops;
    const double (*points)[3]; /* points of the caller at which elements are compared */
    int num_points;
};

/* Takes over the scanner. The subject lives until destroy_kept. */
static inline struct subject *subject_open(const char *name, lr_scanner *scanner)
{
    struct subject *subject = kept(1, sizeof(*subject));
    *subject = (struct subject){.name = name, .scanner = keep(scanner)};
    test_log_init(&subject->log);
    subject->lors = keep(lr_lors_create(scanner, &subject->log.log));
    subject->grid = lr_grid_centred((const int[3]){2, 2, 2}, (const double[3]){2, 2, 2});
    subject->params = filled(lr_operator_params, .lors = subject->lors, .grid = &subject->grid, .mode = LR_MODE_SAMPLED,
                             .samples = {1, 1, 1}, .store = LR_STORE_NO, .threads = 2, .log = &subject->log.log);
    return subject;
}

/* The caller destroys it. */
static inline lr_operator *subject_open_operator(struct subject *subject, const char *backend)
{
    subject->params.backend = backend;
    lr_operator *op = lr_operator_create(&subject->params);
    if (op == NULL) fail_msg("%s, %s: %s", subject->name, backend, subject->log.error);
    return op;
}

/* Lives as long as the subject. */
static inline lr_operator *subject_operator(struct subject *subject, const char *backend)
{
    assert_true(subject->num_ops < 4);
    return subject->ops[subject->num_ops++] = keep(subject_open_operator(subject, backend));
}

/* --- elements --- */

struct row {
    int64_t count;
    int64_t *lor; /* ascending */
    double *value;
};

/* user: struct row [], indexed by row number. */
static inline lr_status take_row(void *user, const lr_row *row)
{
    struct row *taken = (struct row *)user + row->row;
    *taken = (struct row){row->count, kept(row->count, sizeof(int64_t)), kept(row->count, sizeof(double))};
    for (int64_t k = 0; k < row->count; k++) {
        taken->lor[k] = row->lor[k];
        taken->value[k] = row->probability[k];
    }
    return LR_OK;
}

/* Elements of the points by a backend. */
static inline struct row *subject_rows(struct subject *subject, const char *backend)
{
    const lr_row_sink sink = {take_row, kept(subject->num_points, sizeof(struct row))};
    lr_operator *op = subject_open_operator(subject, backend);
    stage_check(subject, lr_operator_point_rows(op, subject->points, subject->num_points, &sink) == LR_OK);
    lr_operator_destroy(op);
    return sink.user;
}

/* Elements of the grid's voxels. */
static inline struct row *voxel_rows(struct subject *subject, lr_operator *op)
{
    const int64_t count = lr_grid_num_voxels(&subject->grid);
    const lr_row_sink sink = {take_row, kept(count, sizeof(struct row))};
    stage_check(subject, lr_operator_rows(op, 0, count, &sink) == LR_OK);
    return sink.user;
}

/* Relative tolerance of an element of sampled lines, apart from lines near edges. */
#define ELEMENT_TOLERANCE 1e-5

/* Differences of numbers from the expected ones; `over`: the excess of a difference over ELEMENT_TOLERANCE of the
 * element. */
struct gap {
    double squared, worst;    /* of differences: sum of squares, and the largest */
    double sure;              /* sum of squares of differences without their excess */
    double over, over_in_all; /* excess: the largest, and the sum */
    double relative;          /* largest relative difference of an element */
    double norm, largest;     /* of expected numbers: sum of squares, and the largest */
};

static inline void gap_add(struct gap *gap, double found, double expected)
{
    const double error = fabs(found - expected), larger = fmax(fabs(found), fabs(expected));
    const double over = fmax(error - ELEMENT_TOLERANCE * larger, 0);
    gap->squared += error * error;
    gap->worst = error > gap->worst || isnan(error) ? error : gap->worst; /* NaN stays */
    gap->sure += (error - over) * (error - over);
    gap->over = fmax(gap->over, over);
    gap->over_in_all += over;
    gap->relative = fmax(gap->relative, larger > 0 ? error / larger : 0);
    gap->norm += expected * expected;
    gap->largest = fmax(gap->largest, fabs(expected));
}

static inline void gap_add_rows(struct gap *gap, const struct row *found, const struct row *expected)
{
    for (int64_t f = 0, e = 0; f < found->count || e < expected->count;) {
        const int64_t one = f < found->count ? found->lor[f] : INT64_MAX;
        const int64_t other = e < expected->count ? expected->lor[e] : INT64_MAX;
        gap_add(gap, one <= other ? found->value[f++] : 0, other <= one ? expected->value[e++] : 0);
    }
}

static inline struct gap gap_of_floats(const float *found, const float *expected, int64_t count)
{
    struct gap gap = {0};
    for (int64_t k = 0; k < count; k++) gap_add(&gap, (double)found[k], (double)expected[k]);
    return gap;
}

/* A line that falls on the other side of an edge leaves one element and joins another. So no element differs by more
 * than the sum of the lines near edges, and all elements together by no more than twice this sum. */
static inline void check_over(const char *what, int64_t number, const struct gap *gap, double carried)
{
    if (gap->over > carried || gap->over_in_all > 2 * carried)
        fail_msg("%s, point or row %lld: an element differs by %.3g and all by %.3g, lines near edges carry %.3g", what,
                 (long long)number, gap->over, gap->over_in_all, carried);
}

/* The sum of squared differences without those that lines near edges explain. */
static inline double gap_sure(const char *what, int64_t number, const struct gap *gap, double carried)
{
    if (carried <= 0) return gap->squared;
    check_over(what, number, gap, carried * (1 + ELEMENT_TOLERANCE));
    return gap->sure;
}

/* Checks the relative L2 difference, and the worst difference relative to the largest number. */
static inline void check_gap(const char *what, const struct gap *gap, double most_l2, double most_worst)
{
    const double l2 = sqrt(gap->squared / fmax(gap->norm, 1e-300));
    const double worst = gap->worst / fmax(gap->largest, 1e-300);
    print_message("%s: L2 %.1e, worst %.1e of the largest\n", what, l2, worst);
    if (!(l2 <= most_l2 && worst <= most_worst)) fail_msg("%s: L2 %.2g, worst %.2g of the largest", what, l2, worst);
}

static inline void check_same_rows(const struct row *a, const struct row *b, int64_t count, double tolerance)
{
    for (int64_t row = 0; row < count; row++) {
        assert_int_equal(a[row].count, b[row].count);
        assert_memory_equal(a[row].lor, b[row].lor, (size_t)a[row].count * sizeof(*a->lor));
        for (int64_t k = 0; k < a[row].count; k++) assert_close(a[row].value[k], b[row].value[k], tolerance);
    }
}

/* Tolerances of an exact row: relative L2, and the worst element relative to the row's largest element. */
#define ROW_L2 1e-5
#define ROW_WORST 1e-4

/* The overlaps of a point that sees little more than rims are mostly rounding of coordinates. Therefore differences are
 * compared with at least this share of the scanner's largest row. */
#define LEAST_ROW 0.1

/* Checks the rows of the points; the last `num_near` only have to agree to near_l2. Returns false if no point sees
 * anything. */
static inline bool check_row_gaps(const struct subject *subject, const struct gap *gaps, int num_near, double near_l2)
{
    double norm = 0, largest = 0;
    for (int n = 0; n < subject->num_points; n++) {
        norm = fmax(norm, gaps[n].norm);
        largest = fmax(largest, gaps[n].largest);
    }
    for (int n = 0; n < subject->num_points; n++) {
        const double *at = subject->points[n];
        struct gap gap = gaps[n];
        char what[128];
        gap.norm = fmax(gap.norm, LEAST_ROW * LEAST_ROW * norm);
        gap.largest = fmax(gap.largest, LEAST_ROW * largest);
        snprintf(what, sizeof(what), "%s at (%.4g, %.4g, %.4g)", subject->name, at[0], at[1], at[2]);
        if (norm > 0)
            check_gap(what, &gap, n < subject->num_points - num_near ? ROW_L2 : near_l2, ROW_WORST);
        else
            assert_true(gap.squared == 0);
    }
    return norm > 0;
}

/* --- pictures --- */

/* Compares the pixels of all modules, seen from the eye's point, between two operators, except pixels whose lines pass
 * near an edge. Counts lines with a weight, lines that meet a module but have weight 0, and lines that are stopped
 * before the primary. */
static inline void compare_pictures(struct subject *subject, struct eye *eye, int64_t counts[3])
{
    for (int m = 0; m < subject->scanner->num_modules; m++) {
        const int count = eye_num_pixels(eye, m);
        lr_pixel *got = kept(count, sizeof(*got)), *want = kept(count, sizeof(*want));
        stage_check(subject, lr_operator_picture(subject->ops[0], eye->point_mm, m, got) == LR_OK);
        stage_check(subject, lr_operator_picture(subject->ops[1], eye->point_mm, m, want) == LR_OK);
        for (int k = 0; k < count; k++) {
            double ray[3], edge;
            eye_pixel_line(eye, m, k, ray);
            eye_first_hit(eye, m, ray, &edge);
            if (edge <= BORDERLINE_PITCHES) continue;
            const struct eye_line line = eye_follow(eye, m, ray, NULL);
            assert_true(got[k].module == want[k].module && got[k].r == want[k].r && got[k].s == want[k].s);
            assert_close((double)got[k].weight, (double)want[k].weight, ELEMENT_TOLERANCE);
            assert_close((double)got[k].path_mm, (double)want[k].path_mm, ELEMENT_TOLERANCE);
            counts[0] += want[k].weight > 0;
            counts[1] += want[k].module >= 0 && want[k].weight == 0;
            counts[2] += line.stopped && line.first >= 0 && eye->modules[m].height > 0;
        }
    }
}

/* --- parts --- */

/* A selection, and a list of its LORs. */
struct part {
    lr_selection selection;
    int64_t *lors, count;
};

/* Selects every `every_pair`th pair of modules, or every `every_lor`th LOR of these pairs. */
static inline struct part choose_part(const lr_lors *lors, int64_t first_pair, int every_pair, int first_lor,
                                      int every_lor)
{
    struct part part = {.lors = kept(lors->count, sizeof(*part.lors))};
    int32_t *pairs = kept(lors->num_pairs, sizeof(*pairs));
    int64_t num_pairs = 0;
    for (int64_t pair = first_pair; pair < lors->num_pairs; pair += every_pair) {
        pairs[num_pairs++] = (int32_t)pair;
        for (int64_t lor = lors->offsets[pair] + first_lor; lor < lors->offsets[pair + 1]; lor += every_lor)
            part.lors[part.count++] = lor;
    }
    part.selection = every_lor == 1 ? (lr_selection){.pairs = pairs, .num_pairs = num_pairs}
                                    : (lr_selection){.lors = part.lors, .num_lors = part.count};
    return part;
}

/* A part of the LORs, projected by the first operator, gives what all LORs give by the last one: the values at the
 * part's LORs, and the images of values among zeros, also of ones. Back is the transpose of forward. `repeats`: the
 * same bits in every call. */
static inline void check_part(struct subject *subject, const lr_selection *part, double of_forward, bool repeats,
                              uint64_t *state)
{
    lr_operator *op = subject->ops[0], *whole = subject->ops[subject->num_ops - 1];
    const int64_t num_voxels = lr_grid_num_voxels(&subject->grid), num_lors = subject->lors->count;
    const int64_t count = lr_selection_count(subject->lors, part);
    const float *values[2] = {kept_random_floats(count, -0.5, 1.5, state), kept_equal_floats(count, 1)};
    const float *image = kept_random_floats(num_voxels, -0.5, 1.5, state);
    float *all = kept_floats(num_lors), *picked = kept_floats(count), *expected = kept_floats(num_voxels);
    float *ax[2], *aty[2];
    stage_check(subject, array_forward(whole, image, all) == LR_OK);
    assert_true(largest_number(all, num_lors) > 0);
    for (int64_t k = 0; k < count; k++) picked[k] = all[lr_selection_lor(subject->lors, part, k)];
    for (int k = 0; k < 2; k++) {
        ax[k] = kept_random_floats(count, 1, 2, state); /* old values, to be overwritten */
        stage_check(subject, array_forward_part(op, part, image, ax[k]) == LR_OK);
    }
    assert_all_near(subject->name, ax[0], picked, count, of_forward);
    if (repeats) assert_memory_equal(ax[0], ax[1], (size_t)count * sizeof(float));
    for (int ones = 0; ones < 2; ones++) {
        memset(all, 0, (size_t)num_lors * sizeof(float));
        for (int64_t k = 0; k < count; k++) all[lr_selection_lor(subject->lors, part, k)] = values[ones][k];
        stage_check(subject, array_back(whole, all, expected) == LR_OK);
        for (int k = 0; k < 2; k++) {
            aty[k] = kept_random_floats(num_voxels, 1, 2, state);
            assert_ok(ones ? array_sensitivity_part(op, part, aty[k]) : array_back_part(op, part, values[0], aty[k]));
        }
        assert_all_near(subject->name, aty[0], expected, num_voxels, 2e-6);
        if (repeats) assert_memory_equal(aty[0], aty[1], (size_t)num_voxels * sizeof(float));
        if (!ones) assert_adjoint(subject->name, ax[0], values[0], count, image, aty[0], num_voxels, 1e-6);
    }
}

/* --- sums added in any order --- */

/* Two forward projections, one with sums added in any order and a deterministic one, differ at most by a share of the
 * value and a share of the largest value. Deterministic projections have the same bits, with the same operator and with
 * another one. */
static inline void check_deterministic(struct subject *subject, const float *image, double share, double of_largest)
{
    enum { ROUNDS = 4 };
    const int64_t count = subject->lors->count;
    float *data[ROUNDS];
    lr_operator *op = NULL;
    for (int k = 0; k < ROUNDS; k++) {
        subject->params.deterministic = k > 0;
        data[k] = kept(count, sizeof(**data));
        if (k < 3) op = subject_operator(subject, "compute");
        stage_check(subject, array_forward(op, image, data[k]) == LR_OK);
    }
    const double largest = largest_number(data[0], count);
    assert_true(largest > 0);
    for (int64_t l = 0; l < count; l++) {
        const double expected = (double)data[0][l], error = fabs((double)data[1][l] - expected);
        assert_true(error <= share * fabs(expected) + of_largest * largest);
    }
    for (int k = 2; k < ROUNDS; k++) assert_memory_equal(data[k], data[1], (size_t)count * sizeof(**data));
}
