/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Lines through a sample point, in double, straight from docs/method.md, section 3: what the tests
 * need to know of a line without asking any backend. */
#ifndef LR_TESTS_RENDER_LINES_H
#define LR_TESTS_RENDER_LINES_H

#include "test.h"

#include "base/vec.h"

/* A line within this many pitches of a crystal's edge may fall on either side in float. */
#define BORDERLINE_PITCHES 1e-4

/* A scanner and a sample point, with what each module is to the point. */
struct eye {
    const lr_scanner *scanner;
    double point_mm[3];
    int rays;
    struct eye_module {
        double offset[3]; /* detection-plane centre - point */
        double height;    /* n . (point - centre) */
        double distance_squared;
    } * modules; /* [num_modules] */
};

static inline struct eye *eye_create(const lr_scanner *scanner, int rays)
{
    struct eye *eye = calloc(1, sizeof(*eye));
    assert_non_null(eye);
    eye->scanner = scanner;
    eye->rays = rays;
    eye->modules = calloc((size_t)scanner->num_modules, sizeof(*eye->modules));
    assert_non_null(eye->modules);
    return eye;
}

static inline void eye_destroy(struct eye *eye)
{
    free(eye->modules);
    free(eye);
}

static inline void eye_place(struct eye *eye, const double point_mm[3])
{
    for (int m = 0; m < eye->scanner->num_modules; m++) {
        struct eye_module *module = &eye->modules[m];
        double centre[3];
        lr_scanner_detection_centre(eye->scanner, m, centre);
        vec_sub(centre, point_mm, module->offset);
        module->height = -vec_dot(eye->scanner->modules[m].normal, module->offset);
        module->distance_squared = vec_dot(module->offset, module->offset);
    }
    for (int k = 0; k < 3; k++) {
        eye->point_mm[k] = point_mm[k];
    }
}

/* Whether module i is the primary of the pair (i, j). */
static inline bool eye_is_primary(const struct eye *eye, int i, int j)
{
    const double a = eye->modules[i].distance_squared, b = eye->modules[j].distance_squared;
    return fabs(a - b) <= 1e-9 * fmax(a, b) ? i < j : a > b;
}

/* Whether j can stop lines that start at primary i. */
static inline bool eye_pairs(const struct eye *eye, int i, int j)
{
    return i != j && eye->modules[i].height > 0 && eye->modules[j].height > 0 &&
           eye_is_primary(eye, i, j);
}

/* From the point to sample (X, Y) of the primary. */
static inline void eye_line(const struct eye *eye, int primary, int X, int Y, double ray[3])
{
    const lr_module *module = &eye->scanner->modules[primary];
    const int pixel[2] = {X, Y};
    double at[2];
    for (int k = 0; k < 2; k++) {
        const int cell = pixel[k] / eye->rays, within = pixel[k] % eye->rays;
        at[k] = (cell - (module->crystals[k] - 1) / 2.0) * module->pitch_mm[k] +
                ((within + 0.5) / eye->rays - 0.5) * module->face_mm[k];
    }
    for (int k = 0; k < 3; k++) {
        ray[k] = eye->modules[primary].offset[k] + at[0] * module->u[k] + at[1] * module->v[k];
    }
}

/* Probability that the line carries without absorption. */
static inline double eye_weight(const struct eye *eye, int primary, const double ray[3])
{
    const lr_module *module = &eye->scanner->modules[primary];
    const double length = vec_length(ray);
    return module->face_mm[0] * module->face_mm[1] / eye->rays / eye->rays *
           (eye->modules[primary].height / length) / (length * length) /
           (2 * 3.14159265358979323846);
}

/* Where a line meets a module's plane on the other side, in cells from its lower left corner;
 * false when it does not. */
static inline bool eye_meet(const struct eye *eye, int module, const double ray[3], double *t,
                            double cell[2])
{
    const lr_module *m = &eye->scanner->modules[module];
    const double approach = vec_dot(m->normal, ray);
    if (approach <= 0) {
        return false;
    }
    *t = eye->modules[module].height / approach;
    double hit[3]; /* from the module's centre */
    for (int k = 0; k < 3; k++) {
        hit[k] = -eye->modules[module].offset[k] - *t * ray[k];
    }
    cell[0] = vec_dot(m->u, hit) / m->pitch_mm[0] + m->crystals[0] / 2.0;
    cell[1] = vec_dot(m->v, hit) / m->pitch_mm[1] + m->crystals[1] / 2.0;
    return true;
}

/* Whether cell coordinates lie on the module, or miss it by at most `margin` cells. */
static inline bool eye_on_module(const lr_module *module, const double cell[2], double margin)
{
    return cell[0] >= -margin && cell[0] <= module->crystals[0] + margin && cell[1] >= -margin &&
           cell[1] <= module->crystals[1] + margin;
}

/* Distance of a coordinate from the nearest edge of a face or of the module, in pitches. */
static inline double eye_edge_distance(const lr_module *module, int axis, double cell)
{
    const double half_face = 0.5 * module->face_mm[axis] / module->pitch_mm[axis];
    const int last = module->crystals[axis] - 1;
    const double index = fmin(fmax(floor(cell), 0), last);
    const double face = fabs(fabs(cell - index - 0.5) - half_face);
    return fmin(face, fmin(fabs(cell), fabs(last + 1 - cell)));
}

/* The module that the line from a primary meets first, or -1; *borderline: distance in pitches of
 * that hit, and of those on modules that it misses by a hair, from the nearest edge. */
static inline int eye_first_hit(const struct eye *eye, int primary, const double ray[3],
                                double *borderline)
{
    const double margin = 2 * BORDERLINE_PITCHES;
    double first_t = INFINITY;
    int first = -1;
    *borderline = INFINITY;
    for (int pass = 0; pass < 2; pass++) {
        for (int j = 0; j < eye->scanner->num_modules; j++) {
            const lr_module *module = &eye->scanner->modules[j];
            double t, cell[2];
            if (!eye_pairs(eye, primary, j) || !eye_meet(eye, j, ray, &t, cell) ||
                !eye_on_module(module, cell, margin)) {
                continue;
            }
            if (pass == 0 && t < first_t && eye_on_module(module, cell, 0)) {
                first = j;
                first_t = t;
            }
            if (pass == 1 && t <= first_t * (1 + 1e-6)) {
                *borderline = fmin(*borderline, fmin(eye_edge_distance(module, 0, cell[0]),
                                                     eye_edge_distance(module, 1, cell[1])));
            }
        }
    }
    return first;
}

#endif
