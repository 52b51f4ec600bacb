/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "native/visit.h"

#include <math.h>

/* Room for rounding, in points of the grid. */
#define SLACK 1e-6

/* Both ends of the crystal columns begin .. end-1. */
static void segment_ends(const struct lr_native_module *module, int begin, int end, double (*ends)[2])
{
    const double from = (begin - 0.5 * module->num_columns) * module->pitch;
    const double to = (end - 0.5 * module->num_columns) * module->pitch;
    for (int k = 0; k < 2; k++) {
        ends[0][k] = module->centre[k] + from * module->tangent[k];
        ends[1][k] = module->centre[k] + to * module->tangent[k];
    }
}

struct lr_native_hull lr_native_make_hull(const struct lr_native_scene *scene, int64_t pair,
                                          const struct lr_native_range *range)
{
    const struct lr_native_pair *at = &scene->pairs[pair];
    struct lr_native_hull hull;
    segment_ends(&scene->modules[at->i], range->begin[0], range->end[0], &hull.corner[0]);
    segment_ends(&scene->modules[at->j], range->begin[1], range->end[1], &hull.corner[2]);
    return hull;
}

/* Points low .. high of an axis: begin, end. */
static void points_between(const struct lr_native_scene *scene, int axis, const double between[2], int points[2])
{
    const double first = scene->points[axis][0], num = scene->num_points[axis];
    const double low = ceil((between[0] - first) / scene->spacing[axis] - SLACK);
    const double high = floor((between[1] - first) / scene->spacing[axis] + SLACK);
    points[0] = (int)fmin(fmax(low, 0.0), num);
    points[1] = (int)fmin(fmax(high + 1.0, 0.0), num);
}

void lr_native_hull_rows(const struct lr_native_scene *scene, const struct lr_native_hull *hull, int rows[2])
{
    double between[2] = {HUGE_VAL, -HUGE_VAL};
    for (int k = 0; k < 4; k++) {
        between[0] = fmin(between[0], hull->corner[k][1]);
        between[1] = fmax(between[1], hull->corner[k][1]);
    }
    points_between(scene, 1, between, rows);
}

/* Widens `between` by where the line at height y meets the edge from a to b. */
static void meet_edge(const double a[2], const double b[2], double y, double between[2])
{
    const double rise = b[1] - a[1];
    if ((a[1] - y) * (b[1] - y) > 0.0) return;
    const double share = rise != 0.0 ? (y - a[1]) / rise : 0.0;
    const double x[2] = {a[0] + share * (b[0] - a[0]), rise != 0.0 ? a[0] : b[0]};
    const int num = rise != 0.0 ? 1 : 2;
    for (int k = 0; k < num; k++) {
        between[0] = fmin(between[0], x[k]);
        between[1] = fmax(between[1], x[k]);
    }
}

void lr_native_hull_columns(const struct lr_native_scene *scene, const struct lr_native_hull *hull, int row,
                            int columns[2])
{
    double between[2] = {HUGE_VAL, -HUGE_VAL}, low = HUGE_VAL, high = -HUGE_VAL;
    for (int k = 0; k < 4; k++) {
        low = fmin(low, hull->corner[k][1]);
        high = fmax(high, hull->corner[k][1]);
    }
    const double y = fmin(fmax(scene->points[1][row], low), high);
    for (int k = 0; k < 4; k++)
        for (int n = 0; n < k; n++) meet_edge(hull->corner[k], hull->corner[n], y, between);
    if (between[0] > between[1]) {
        columns[0] = columns[1] = 0;
        return;
    }
    points_between(scene, 0, between, columns);
}
