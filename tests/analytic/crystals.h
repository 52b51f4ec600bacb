/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Every crystal of a scanner as a box, and the part of a line inside each box, by brute force over all boxes. Written
 * independently of src/correspondence/cpu/penetration.c. */
#pragma once

#include "analytic.h"

struct crystal_box {
    double centre[3], axes[3][3], half[3];
};

/* [num_crystals], indexed by crystal number. Lives until destroy_kept. */
static inline struct crystal_box *crystal_boxes(const lr_scanner *scanner)
{
    struct crystal_box *boxes = kept(scanner->num_crystals, sizeof(*boxes)), *box = boxes;
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        for (int n = 0; n < module->crystals[0] * module->crystals[1]; n++, box++) {
            lr_module_crystal_centre(module, n % module->crystals[0], n / module->crystals[0], box->centre);
            memcpy(box->axes[0], module->u, sizeof(module->u));
            memcpy(box->axes[1], module->v, sizeof(module->v));
            memcpy(box->axes[2], module->normal, sizeof(module->normal));
            box->half[0] = 0.5 * module->face_mm[0];
            box->half[1] = 0.5 * module->face_mm[1];
            box->half[2] = 0.5 * module->depth_mm;
        }
    }
    return boxes;
}

/* Range of t > 0 for which origin + t direction lies in the box. Returns false if there is none. */
static inline bool crystal_chord(const struct crystal_box *box, const double origin[3], const double direction[3],
                                 double range[2])
{
    range[0] = 0;
    range[1] = INFINITY;
    for (int k = 0; k < 3; k++) {
        double from = 0, along = 0;
        for (int c = 0; c < 3; c++) {
            from += (origin[c] - box->centre[c]) * box->axes[k][c];
            along += direction[c] * box->axes[k][c];
        }
        if (fabs(along) < 1e-14) {
            if (fabs(from) > box->half[k]) return false;
            continue;
        }
        const double a = (-box->half[k] - from) / along, b = (box->half[k] - from) / along;
        range[0] = fmax(range[0], fmin(a, b));
        range[1] = fmin(range[1], fmax(a, b));
    }
    return range[1] > range[0];
}

/* Crystals on the way of one photon. */
struct chord {
    double begin, end; /* of t */
    int crystal;
};

static inline int chord_order(const void *a, const void *b)
{
    const struct chord *one = a, *other = b;
    return (one->begin > other->begin) - (one->begin < other->begin);
}

/* Fills chords[num_crystals] in the order in which the photon meets the crystals; returns their number. */
static inline int find_chords(const lr_scanner *scanner, const struct crystal_box *boxes, const double origin[3],
                              const double direction[3], struct chord *chords)
{
    int count = 0;
    for (int crystal = 0; crystal < scanner->num_crystals; crystal++) {
        double range[2];
        if (crystal_chord(&boxes[crystal], origin, direction, range))
            chords[count++] = (struct chord){range[0], range[1], crystal};
    }
    qsort(chords, (size_t)count, sizeof(*chords), chord_order);
    return count;
}

/* A scanner whose crystals attenuate. */
static inline lr_scanner *stopping_scanner(const lr_module *modules, int num_modules, double mu)
{
    return lr_scanner_create(
        &(lr_scanner_params){.modules = modules, .num_modules = num_modules, .crystal_mu_per_mm = mu});
}

static inline lr_scanner *stopping_ring(const lr_ring *ring, double mu, int min_module_difference)
{
    return lr_scanner_create_ring(
        &(lr_scanner_params){.crystal_mu_per_mm = mu, .coincidence = {.min_module_difference = min_module_difference}},
        ring);
}

static inline struct setup stopping_setup(const lr_module *modules, int num_modules, double mu, int rays)
{
    return setup_of(stopping_scanner(modules, num_modules, mu),
                    &(struct setup_options){.rays = rays, .penetration = true});
}

static inline lr_module deep(lr_module module, double depth_mm)
{
    module.depth_mm = depth_mm;
    return module;
}
