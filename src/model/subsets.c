/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Subsets of module pairs: docs/method.md, section 6. Pairs that are turned images of each other
 * form a class; each class is dealt out in the order of its directions, so that every subset has
 * its share of each kind of pair from directions all around. */
#include <lr/recon.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "model/fans.h"

#include <stdlib.h>

/* Places that differ by less belong to one class, mm. Turned modules differ by rounding only. */
#define SAME_PLACE_MM 0.01
/* Angles are told apart by this, radian. */
#define SAME_ANGLE 1e-6
#define PI 3.14159265358979323846

/* A module pair as the line between two centres. */
struct pair_line {
    int64_t from_axis; /* how far it passes the axis, ... */
    int64_t low, high; /* ... and the axial places of its ends, all in SAME_PLACE_MM */
    int64_t angle;     /* of the point next to the axis, in SAME_ANGLE */
    int64_t class_number;
    int64_t num_lors; /* in coincidence */
    int32_t pair;
};

static int64_t rounded(double value, double unit)
{
    return llround(value / unit);
}

/* Angles wrap, and the last rounding before a full turn is the first. */
static int64_t rounded_angle(double y, double x, double turn)
{
    const double angle = fmod(atan2(y, x) + 4.0 * PI, turn);
    return rounded(angle, SAME_ANGLE) % rounded(turn, SAME_ANGLE);
}

/* The line is followed so that the axis lies on its left, or upwards where it meets the axis, or
 * without direction where it then does not rise either. */
static void describe(const lr_lors *lors, int32_t pair, struct pair_line *line)
{
    double a[3], b[3];
    lr_scanner_detection_centre(lors->scanner, lors->pairs[pair][0], a);
    lr_scanner_detection_centre(lors->scanner, lors->pairs[pair][1], b);
    const double dx = b[0] - a[0], dy = b[1] - a[1], length = hypot(dx, dy);
    const double side = length > SAME_PLACE_MM ? (a[0] * dy - a[1] * dx) / length : 0.0;
    const int64_t z_a = rounded(a[2], SAME_PLACE_MM), z_b = rounded(b[2], SAME_PLACE_MM);
    const bool meets_axis = rounded(side, SAME_PLACE_MM) == 0;
    const bool turn_round = meets_axis ? z_a > z_b : side < 0.0;
    const double sign = turn_round ? -1.0 : 1.0;
    line->pair = pair;
    line->num_lors = lr_pair_num_coincidences(lors, pair);
    line->from_axis = rounded(fabs(side), SAME_PLACE_MM);
    line->low = turn_round ? z_b : z_a;
    line->high = turn_round ? z_a : z_b;
    line->angle = rounded_angle(-sign * dx, sign * dy, meets_axis && z_a == z_b ? PI : 2.0 * PI);
}

static int compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_classes(const struct pair_line *a, const struct pair_line *b)
{
    const int64_t keys[3][2] = {{a->from_axis, b->from_axis}, {a->low, b->low}, {a->high, b->high}};
    for (int k = 0; k < 3; k++) {
        const int order = compare(keys[k][0], keys[k][1]);
        if (order != 0) {
            return order;
        }
    }
    return 0;
}

static int by_place(const void *a, const void *b)
{
    const struct pair_line *line_a = a, *line_b = b;
    const int order = compare_classes(line_a, line_b);
    return order != 0 ? order : compare(line_a->pair, line_b->pair);
}

static int by_class_and_angle(const void *a, const void *b)
{
    const struct pair_line *line_a = a, *line_b = b;
    int order = compare(line_a->class_number, line_b->class_number);
    order = order != 0 ? order : compare(line_a->angle, line_b->angle);
    return order != 0 ? order : compare(line_a->pair, line_b->pair);
}

/* Scanners without a symmetry to speak of have classes of a pair or two. They get classes of like
 * distance from the axis instead, of four pairs for each subset. */
static void number_classes(struct pair_line *lines, int64_t num_pairs, int subsets)
{
    qsort(lines, (size_t)num_pairs, sizeof(*lines), by_place);
    int64_t num_classes = 0;
    for (int64_t k = 0; k < num_pairs; k++) {
        num_classes += k == 0 || compare_classes(&lines[k - 1], &lines[k]) != 0;
        lines[k].class_number = num_classes;
    }
    if (num_classes * 4 <= num_pairs) {
        return;
    }
    for (int64_t k = 0; k < num_pairs; k++) {
        lines[k].class_number = k / (4 * (int64_t)subsets);
    }
}

/* Subset to begin with, so that the pairs left over after whole rounds go to neighbouring subsets
 * that have fewest LORs together; the first of several. */
static int find_start(const int64_t *loads, int subsets, int64_t num_left_over)
{
    int64_t window = 0, fewest;
    for (int64_t k = 0; k < num_left_over; k++) {
        window += loads[k];
    }
    int start = 0;
    fewest = window;
    for (int k = 1; k < subsets && num_left_over > 0; k++) {
        window += loads[(k + num_left_over - 1) % subsets] - loads[k - 1];
        if (window < fewest) {
            fewest = window;
            start = k;
        }
    }
    return start;
}

static void deal_class(const struct pair_line *lines, int64_t count, int subsets, int64_t *loads,
                       int32_t *subset_of)
{
    const int start = find_start(loads, subsets, count % subsets);
    for (int64_t k = 0; k < count; k++) {
        const int subset = (int)((start + k) % subsets);
        subset_of[lines[k].pair] = subset;
        loads[subset] += lines[k].num_lors;
    }
}

static void deal(struct pair_line *lines, int64_t num_pairs, int subsets, int64_t *loads,
                 int32_t *subset_of)
{
    qsort(lines, (size_t)num_pairs, sizeof(*lines), by_class_and_angle);
    for (int64_t begin = 0, end; begin < num_pairs; begin = end) {
        end = begin + 1;
        while (end < num_pairs && lines[end].class_number == lines[begin].class_number) {
            end++;
        }
        deal_class(lines + begin, end - begin, subsets, loads, subset_of);
    }
}

lr_status lr_osem_subsets(const lr_lors *lors, int subsets, int32_t *subset_of)
{
    if (lors == NULL || subset_of == NULL || subsets < 1 || subsets > lors->num_pairs) {
        return LR_USAGE;
    }
    struct pair_line *lines = lr_alloc(lors->num_pairs, sizeof(*lines), "subsets", NULL);
    int64_t *loads = lr_alloc(subsets, sizeof(*loads), "subsets", NULL);
    const lr_status status = lines != NULL && loads != NULL ? LR_OK : LR_FAILED;
    if (status == LR_OK) {
        for (int64_t pair = 0; pair < lors->num_pairs; pair++) {
            describe(lors, (int32_t)pair, &lines[pair]);
        }
        number_classes(lines, lors->num_pairs, subsets);
        deal(lines, lors->num_pairs, subsets, loads, subset_of);
    }
    free(lines);
    free(loads);
    return status;
}
