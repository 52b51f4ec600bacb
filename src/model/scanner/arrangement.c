/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "model/scanner/arrangement.h"

#include "base/vec.h"

/* How far a corner may stand behind another module's plane and still count as on it, mm. */
static const double plane_tolerance_mm = 1e-6;

/* How far a unit axis may lie from the grid's. */
static const double axis_tolerance = 1e-9;

static bool is_behind(const lr_scanner *scanner, int module, int other)
{
    const lr_module *plane = &scanner->modules[module], *box = &scanner->modules[other];
    double from[3], centre[3], offset[3];
    lr_scanner_detection_centre(scanner, module, from);
    lr_scanner_detection_centre(scanner, other, centre);
    vec_sub(centre, from, offset);
    const double reach = fabs(vec_dot(plane->normal, box->u)) * 0.5 * box->crystals[0] * box->pitch_mm[0] +
                         fabs(vec_dot(plane->normal, box->v)) * 0.5 * box->crystals[1] * box->pitch_mm[1];
    return vec_dot(plane->normal, offset) - reach < -plane_tolerance_mm;
}

bool lr_modules_may_hide(const lr_scanner *scanner)
{
    for (int i = 0; i < scanner->num_modules; i++) {
        for (int j = 0; j < scanner->num_modules; j++) {
            const bool same_layer = scanner->modules[i].layer == scanner->modules[j].layer;
            if (i != j && same_layer && is_behind(scanner, i, j)) return true;
        }
    }
    return false;
}

static bool lies_along(const double direction[3], int axis)
{
    return fabs(fabs(direction[axis]) - 1.0) <= axis_tolerance;
}

int lr_module_axial(const lr_module *module, int axis)
{
    return lies_along(module->v, axis) ? 1 : lies_along(module->u, axis) ? 0 : -1;
}

static bool pair_fits(const lr_lors *lors, int64_t pair, int axis)
{
    const lr_module *i = &lors->scanner->modules[lors->pairs[pair][0]];
    const lr_module *j = &lors->scanner->modules[lors->pairs[pair][1]];
    const int on_i = lr_module_axial(i, axis), on_j = lr_module_axial(j, axis);
    return on_i >= 0 && on_i == on_j;
}

int lr_lors_axial_axis(const lr_lors *lors)
{
    for (int axis = 2; axis >= 0; axis--) {
        int64_t pair = 0;
        while (pair < lors->num_pairs && pair_fits(lors, pair, axis)) pair++;
        if (pair == lors->num_pairs) return axis;
    }
    return -1;
}
