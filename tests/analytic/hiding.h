/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Scanners with modules that hide others, and lines through them by brute force. On each side of the point, the first
 * rectangle that a line meets stops the line, whether it shows its front or its back. Written from
 * docs/method/correspondence.md, "First hit", independently of every backend. Link lr_fixtures. */
#pragma once

#include "analytic.h"

#include "base/vec.h"
#include "render/lines.h"

#include <Random123/philox.h>

/* --- arrangements --- */

/* A panel is a set of modules whose pairs are summed. */
enum { MOST_PANELS = 4, MOST_POINTS = 4, MOST_MODULES = 24 };

struct arrangement {
    const char *name;
    void (*build)(lr_module *modules, int *panels, int *num_modules);
    int num_panels, num_points;
    double points_mm[MOST_POINTS][3], field_of_view_mm;
};

/* A module across the direction `towards`, rotated about it; the axes are made orthogonal here. */
static inline lr_module panel(const double centre[3], const double towards[3], const int crystals[2], double pitch_mm,
                              double face_mm)
{
    lr_module module = filled(lr_module, .crystals = {crystals[0], crystals[1]}, .pitch_mm = {pitch_mm, 0.9 * pitch_mm},
                              .face_mm = {face_mm, 0.9 * face_mm}, .depth_mm = 0.5);
    const double up[3] = {0, 0, 1};
    vec_cross(up, towards, module.u);
    vec_cross(towards, module.u, module.v);
    for (int k = 0; k < 3; k++) module.centre_mm[k] = centre[k];
    const double lu = vec_length(module.u), lv = vec_length(module.v);
    for (int k = 0; k < 3; k++) {
        module.u[k] /= lu;
        module.v[k] /= lv;
    }
    return module;
}

/* The middle module is smaller than the first, stands to one side, and has gaps. */
static inline void build_parallel(lr_module *modules, int *panels, int *num_modules)
{
    const double right[3] = {1, 0, 0};
    modules[0] = panel((double[3]){-70, 0, 0}, right, (int[2]){7, 6}, 9, 8);
    modules[1] = panel((double[3]){-40, 4, -3}, right, (int[2]){4, 4}, 7, 5);
    modules[2] = panel((double[3]){60, -2, 1}, right, (int[2]){6, 7}, 8, 7.5);
    for (int m = 0; m < 3; m++) panels[m] = m;
    *num_modules = 3;
}

/* The outer modules detect lines through the gaps between the inner ones. */
static inline void build_rings(lr_module *modules, int *panels, int *num_modules)
{
    *num_modules = 20;
    for (int m = 0; m < *num_modules; m++) {
        const bool is_inner = m < 8;
        const double angle = is_inner ? 2 * TEST_PI * (m + 0.2) / 8 : 2 * TEST_PI * (m - 8) / 12;
        const double radius = is_inner ? 24 : 46, out[3] = {cos(angle), sin(angle), 0};
        const double centre[3] = {radius * out[0], radius * out[1], is_inner ? 1 : -1};
        modules[m] =
            is_inner ? panel(centre, out, (int[2]){4, 5}, 3.1, 2.6) : panel(centre, out, (int[2]){5, 6}, 4, 3.7);
        panels[m] = is_inner ? 0 : 1;
    }
}

/* Seen from the points, the centre of the tilted module (3) is farther away than all others, and yet the visible part
 * of the module is in front of the two on the left. */
static inline void build_tilted(lr_module *modules, int *panels, int *num_modules)
{
    const double right[3] = {1, 0, 0};
    modules[0] = panel((double[3]){-60, 24, 0}, right, (int[2]){5, 7}, 8, 7);
    modules[1] = panel((double[3]){-60, -24, 2}, right, (int[2]){6, 4}, 7.5, 7);
    modules[2] = panel((double[3]){55, 0, -1}, right, (int[2]){9, 6}, 8, 7.6);
    modules[3] = panel((double[3]){-33, 62, 3}, (double[3]){0.95, 0.2, 0.25}, (int[2]){14, 2}, 9.5, 7);
    for (int m = 0; m < 4; m++) panels[m] = m;
    *num_modules = 4;
}

/* Points in front of, behind and between the modules that hide others. */
static const struct arrangement arrangements[] = {
    {"three parallel panels", build_parallel, 3, 4, {{0, 0.4, -0.3}, {-25, 6, -4}, {-54, 20, 2}, {28, -9, 5}}, 0},
    {"a ring within a ring", build_rings, 2, 3, {{1, 0.5, 0}, {-9, 7, 3}, {31, 6, -2}}, 64},
    {"a tilted panel before two", build_tilted, 4, 3, {{-8, 1, 0}, {4, -6, 5}, {-45, -8, -3}}, 0}};

/* One arrangement. */
struct hiding {
    const struct arrangement *arrangement;
    lr_scanner *scanner;
    lr_lors *lors;
    int panels[MOST_MODULES];
    struct eye *eye;
};

/* rays: number of rays of the eye along each edge of a crystal. */
static inline void hiding_init(struct hiding *hiding, const struct arrangement *arrangement, int rays)
{
    lr_module modules[MOST_MODULES];
    int num_modules = 0;
    *hiding = (struct hiding){.arrangement = arrangement};
    arrangement->build(modules, hiding->panels, &num_modules);
    hiding->scanner = keep(lr_scanner_create(&filled(lr_scanner_params, .modules = modules, .num_modules = num_modules,
                                                     .coincidence.field_of_view_mm = arrangement->field_of_view_mm)));
    hiding->lors = keep(lr_lors_create(hiding->scanner, NULL));
    hiding->eye = eye_create(hiding->scanner, rays);
}

/* --- the definition --- */

/* The first hit of a line on one side of its point. */
struct met {
    int module; /* -1: nothing */
    double distance;
    int crystal; /* of the scanner; -1 in a gap or from behind */
    int at[2];
};

/* The ends of a line through a point. */
struct line {
    struct met met[2]; /* along the direction, and against it */
};

/* Follows a line through the eye's point in both directions. Modules stop it with their front or back. */
static inline struct line follow(const struct eye *eye, const double direction[3])
{
    struct line line = {.met = {{-1, INFINITY, -1, {0}}, {-1, INFINITY, -1, {0}}}};
    for (int m = 0; m < eye->scanner->num_modules; m++) {
        const lr_module *module = &eye->scanner->modules[m];
        double s, cell[2];
        if (!eye_cross(eye, m, direction, &s, cell) || !eye_on_module(module, cell, 0)) continue;
        struct met *met = &line.met[s > 0 ? 0 : 1];
        bool is_face = eye->modules[m].height > 0;
        if (fabs(s) >= met->distance) continue;
        *met = (struct met){m, fabs(s), -1, {0}};
        for (int k = 0; k < 2; k++) {
            met->at[k] = (int)fmin(floor(cell[k]), module->crystals[k] - 1);
            is_face = is_face && fabs(cell[k] - met->at[k] - 0.5) <= 0.5 * module->face_mm[k] / module->pitch_mm[k];
        }
        if (is_face) met->crystal = eye->scanner->first_crystal[m] + met->at[1] * module->crystals[0] + met->at[0];
    }
    return line;
}

/* True if a line passes so close to an edge of a module or face that it may be on the other side in single
 * precision. */
static inline bool is_borderline(const struct eye *eye, const double direction[3])
{
    for (int m = 0; m < eye->scanner->num_modules; m++) {
        const lr_module *module = &eye->scanner->modules[m];
        double s, cell[2];
        if (eye_cross(eye, m, direction, &s, cell) && eye_on_module(module, cell, BORDERLINE_PITCHES) &&
            fmin(eye_edge_distance(module, 0, cell[0]), eye_edge_distance(module, 1, cell[1])) <= BORDERLINE_PITCHES)
            return true;
    }
    return false;
}

/* The LOR that a line belongs to, or -1. */
static inline int64_t line_lor(const struct hiding *hiding, const struct line *line)
{
    const int a = line->met[0].crystal, b = line->met[1].crystal;
    const int64_t lor = a >= 0 && b >= 0 ? lr_lors_number(hiding->lors, a, b) : -1;
    return lor >= 0 && lr_lors_in_coincidence(hiding->lors, lor) ? lor : -1;
}

static inline double to_unit(uint32_t low, uint32_t high)
{
    return ((double)((uint64_t)high << 32 | low) + 0.5) * 0x1p-64;
}

static inline void draw_direction(uint64_t seed, uint32_t number, double direction[3])
{
    const philox4x32_ctr_t counter = {{number, 0, 0, 17}};
    const philox4x32_key_t key = {{(uint32_t)seed, (uint32_t)(seed >> 32)}};
    const philox4x32_ctr_t bits = philox4x32(counter, key);
    const double up = 2 * to_unit(bits.v[0], bits.v[1]) - 1;
    const double angle = 2 * TEST_PI * to_unit(bits.v[2], bits.v[3]), across = sqrt(1 - up * up);
    direction[0] = across * cos(angle);
    direction[1] = across * sin(angle);
    direction[2] = up;
}
