/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Lines through a sample point, in double, directly from docs/method/correspondence.md, "First hit": what tests must
 * know about a line without asking a backend. */
#pragma once

#include "cases.h"

#include "base/vec.h"
#include "model/scanner/scanner.h"

/* A line that passes this close to a crystal's edge, in pitches, may fall on either side of the edge in float. */
#define BORDERLINE_PITCHES 1e-4

/* A scanner and a sample point, and the position of each module relative to the point. */
struct eye {
    const lr_scanner *scanner;
    double point_mm[3];
    int rays;
    bool hiding; /* modules may hide each other: first hits count on both sides */
    struct eye_module {
        double offset[3]; /* detection-plane centre - point */
        double height;    /* n . (point - centre) */
        double distance_squared;
    } * modules; /* [num_modules] */
};

static inline struct eye *eye_create(const lr_scanner *scanner, int rays)
{
    struct eye *eye = kept(1, sizeof(*eye));
    *eye = (struct eye){.scanner = scanner, .rays = rays, .hiding = lr_modules_may_hide(scanner)};
    eye->modules = kept(scanner->num_modules, sizeof(*eye->modules));
    return eye;
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
    for (int k = 0; k < 3; k++) eye->point_mm[k] = point_mm[k];
}

/* True if module i is the primary of the pair (i, j). */
static inline bool eye_is_primary(const struct eye *eye, int i, int j)
{
    const double a = eye->modules[i].distance_squared, b = eye->modules[j].distance_squared;
    return fabs(a - b) <= 1e-9 * fmax(a, b) ? i < j : a > b;
}

/* True if module j can stop lines that start at primary i. */
static inline bool eye_pairs(const struct eye *eye, int i, int j)
{
    return i != j && eye->modules[i].height > 0 && eye->modules[j].height > 0 && eye_is_primary(eye, i, j);
}

/* The ray from the point to sample (X, Y) of the primary. */
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
    for (int k = 0; k < 3; k++) ray[k] = eye->modules[primary].offset[k] + at[0] * module->u[k] + at[1] * module->v[k];
}

static inline int eye_num_pixels(const struct eye *eye, int primary)
{
    const int *crystals = eye->scanner->modules[primary].crystals;
    return crystals[0] * crystals[1] * eye->rays * eye->rays;
}

/* The ray from the point to the sample of a pixel; pixels are counted row by row. */
static inline void eye_pixel_line(const struct eye *eye, int primary, int pixel, double ray[3])
{
    const int width = eye->scanner->modules[primary].crystals[0] * eye->rays;
    eye_line(eye, primary, pixel % width, pixel / width, ray);
}

/* Distance from the point to the nearest plane of a module. A float holds it to some 1e-6 mm, which limits the relative
 * accuracy of weights. */
static inline double eye_least_height(const struct eye *eye)
{
    double least = INFINITY;
    for (int m = 0; m < eye->scanner->num_modules; m++) least = fmin(least, fabs(eye->modules[m].height));
    return least;
}

/* The probability that belongs to the line, without attenuation. */
static inline double eye_weight(const struct eye *eye, int primary, const double ray[3])
{
    const lr_module *module = &eye->scanner->modules[primary];
    const double length = vec_length(ray);
    return module->face_mm[0] * module->face_mm[1] / eye->rays / eye->rays * (eye->modules[primary].height / length) /
           (length * length) / (2 * 3.14159265358979323846);
}

/* The place at which a line meets a module's plane, from either side: s for the point + s ray, and the coordinates in
 * cells from the module's lower left corner. */
static inline bool eye_cross(const struct eye *eye, int module, const double ray[3], double *s, double cell[2])
{
    const lr_module *m = &eye->scanner->modules[module];
    const double approach = vec_dot(m->normal, ray);
    double hit[3]; /* from the module's centre */
    *s = -eye->modules[module].height / approach;
    for (int k = 0; k < 3; k++) hit[k] = *s * ray[k] - eye->modules[module].offset[k];
    cell[0] = vec_dot(m->u, hit) / m->pitch_mm[0] + m->crystals[0] / 2.0;
    cell[1] = vec_dot(m->v, hit) / m->pitch_mm[1] + m->crystals[1] / 2.0;
    return approach != 0 && *s != 0;
}

/* The same for the point - t ray. False if the line does not meet the plane there, or not from the side that faces the
 * point. */
static inline bool eye_meet(const struct eye *eye, int module, const double ray[3], double *t, double cell[2])
{
    const bool meets = eye_cross(eye, module, ray, t, cell) && vec_dot(eye->scanner->modules[module].normal, ray) > 0;
    *t = -*t;
    return meets;
}

/* True if cell coordinates lie on the module, or outside it by at most `margin` cells. */
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
    const double index = fmin(fmax(floor(cell), 0), last), face = fabs(fabs(cell - index - 0.5) - half_face);
    return fmin(face, fmin(fabs(cell), fabs(last + 1 - cell)));
}

/* The course of a line on both sides of the point, if modules may hide each other. */
struct eye_line {
    bool stopped;      /* by another module before the primary */
    int first;         /* module met first on the other side, or -1 */
    bool from_front;   /* hit on the side that faces the point */
    double borderline; /* pitches from the nearest edge that matters */
};

/* Distance of a coordinate from the nearest end of a module, in pitches. */
static inline double eye_end_distance(const lr_module *module, const double cell[2])
{
    return fmin(fmin(fabs(cell[0]), fabs(module->crystals[0] - cell[0])),
                fmin(fabs(cell[1]), fabs(module->crystals[1] - cell[1])));
}

enum { EYE_BEFORE = 1, EYE_ACROSS = 2 };

/* Follows the line from a primary in both directions. listed: for each module the sides on which it may count (NULL:
 * all modules on both sides). */
static inline struct eye_line eye_follow(const struct eye *eye, int primary, const double ray[3],
                                         const unsigned char *listed)
{
    struct eye_line line = {.first = -1, .borderline = INFINITY};
    double first_t = INFINITY;
    for (int pass = 0; pass < 2; pass++) {
        for (int k = 0; k < eye->scanner->num_modules; k++) {
            const lr_module *module = &eye->scanner->modules[k];
            double s, cell[2];
            if (k == primary || !eye_cross(eye, k, ray, &s, cell) || s >= 1 ||
                !eye_on_module(module, cell, 2 * BORDERLINE_PITCHES) ||
                (listed && !(listed[k] & (s > 0 ? EYE_BEFORE : EYE_ACROSS))))
                continue;
            const bool on = eye_on_module(module, cell, 0);
            if (s > 0) {
                line.stopped = line.stopped || on;
                line.borderline = fmin(line.borderline, eye_end_distance(module, cell));
            } else if (pass == 0 && on && -s < first_t) {
                first_t = -s;
                line.first = k;
                line.from_front = eye->modules[k].height > 0;
            } else if (pass == 1 && -s <= first_t * (1 + 1e-6)) {
                line.borderline = fmin(line.borderline, fmin(eye_edge_distance(module, 0, cell[0]),
                                                             eye_edge_distance(module, 1, cell[1])));
            }
        }
    }
    return line;
}

/* The module that the line from a primary meets first, or -1 if the line is stopped or meets a module from behind.
 * *borderline: distance from the nearest edge, in pitches, of this hit and of hits on modules that the line only just
 * misses. */
static inline int eye_first_hit(const struct eye *eye, int primary, const double ray[3], double *borderline)
{
    const double margin = 2 * BORDERLINE_PITCHES;
    double first_t = INFINITY;
    int first = -1;
    if (eye->hiding) {
        const struct eye_line line = eye_follow(eye, primary, ray, NULL);
        *borderline = line.borderline;
        return line.stopped || !line.from_front ? -1 : line.first;
    }
    *borderline = INFINITY;
    for (int pass = 0; pass < 2; pass++) {
        for (int j = 0; j < eye->scanner->num_modules; j++) {
            const lr_module *module = &eye->scanner->modules[j];
            double t, cell[2];
            if (!eye_pairs(eye, primary, j) || !eye_meet(eye, j, ray, &t, cell) || !eye_on_module(module, cell, margin))
                continue;
            if (pass == 0 && t < first_t && eye_on_module(module, cell, 0)) {
                first = j;
                first_t = t;
            }
            if (pass == 1 && t <= first_t * (1 + 1e-6)) {
                *borderline = fmin(*borderline,
                                   fmin(eye_edge_distance(module, 0, cell[0]), eye_edge_distance(module, 1, cell[1])));
            }
        }
    }
    return first;
}

/* Sum of the weights, without attenuation, of lines through one module that may fall on either side of an edge. */
static inline double eye_borderline_of_module(const struct eye *eye, int primary)
{
    double sum = 0;
    for (int pixel = 0; eye->modules[primary].height > 0 && pixel < eye_num_pixels(eye, primary); pixel++) {
        double ray[3], edge;
        eye_pixel_line(eye, primary, pixel, ray);
        eye_first_hit(eye, primary, ray, &edge);
        sum += edge <= BORDERLINE_PITCHES ? eye_weight(eye, primary, ray) : 0;
    }
    return sum;
}

/* The same sum for the lines through all modules. */
static inline double eye_borderline_weight(struct eye *eye, const double point_mm[3])
{
    double sum = 0;
    eye_place(eye, point_mm);
    for (int i = 0; i < eye->scanner->num_modules; i++) sum += eye_borderline_of_module(eye, i);
    return sum;
}

/* Relative tolerance of an element of sampled lines, apart from lines near edges. */
#define ELEMENT_TOLERANCE 1e-5
