/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "listmode/hull.h"

#include "base/mem.h"
#include "model/scanner/scanner.h"

#include <math.h>
#include <string.h>

int lr_listmode_shared_axis(const lr_scanner *scanner)
{
    for (int axis = 2; axis >= 0; axis--) {
        int count = 0;
        while (count < scanner->num_modules && lr_module_axial(&scanner->modules[count], axis) >= 0) count++;
        if (count == scanner->num_modules) return axis;
    }
    return -1;
}

struct lr_listmode_module *lr_listmode_modules(const lr_scanner *scanner, const lr_log *log)
{
    const int axis = lr_listmode_shared_axis(scanner);
    struct lr_listmode_module *modules = lr_alloc(scanner->num_modules, sizeof(*modules), "modules", log);
    for (int m = 0; modules != NULL && m < scanner->num_modules; m++) {
        const lr_module *from = &scanner->modules[m];
        struct lr_listmode_module *to = &modules[m];
        const bool is_u = axis >= 0 && lr_module_axial(from, axis) == 0;
        memcpy(to->across, is_u ? from->v : from->u, sizeof(from->u));
        memcpy(to->along, is_u ? from->u : from->v, sizeof(from->u));
        memcpy(to->normal, from->normal, sizeof(from->normal));
        to->across[3] = 0.5 * from->face_mm[is_u ? 1 : 0];
        to->along[3] = 0.5 * from->face_mm[is_u ? 0 : 1];
    }
    return modules;
}

/* --- hulls of events --- */

/* The tolerance for rounding errors, in sample points. */
#define SLACK 1e-6

void lr_listmode_hull_of(struct lr_listmode_hull *hull, const struct lr_listmode_model *model,
                         const struct lr_listmode_events *events, const int64_t at[2])
{
    const lr_scanner *scanner = model->scanner;
    const int axis = (int)at[1];
    double corners[2][4][3];
    hull->model = model;
    lr_listmode_line_of(events, at[0], axis, &hull->line);
    double square = 0;
    for (int k = 0; k < 3; k++) {
        const double along = hull->line.direction[k] * model->grid.voxel_mm[k];
        square += along * along;
    }
    hull->extent_mm = sqrt(square);
    for (int f = 0; f < 2; f++) {
        const int32_t crystal = events->crystals[f][at[0]];
        const double *centre = events->hits[crystal];
        const int m = lr_scanner_module_of(scanner, crystal);
        const lr_module *module = &scanner->modules[m];
        const int place = crystal - scanner->first_crystal[m];
        struct lr_listmode_face *face = &hull->faces[f];
        *face = (struct lr_listmode_face){
            .module = m,
            .at = {place % module->crystals[0], place / module->crystals[0]},
            .centre = {centre[0], centre[1], centre[2]},
            .axis = {module->u, module->v, module->normal},
            .half_mm = {0.5 * module->face_mm[0], 0.5 * module->face_mm[1]},
        };

        for (int k = 0; k < 3; k++) {
            hull->low[f][k] = INFINITY;
            hull->high[f][k] = -INFINITY;
        }
        for (int c = 0; c < 4; c++) {
            double *corner = corners[f][c];
            vec_add_scaled(face->centre, c & 1 ? face->half_mm[0] : -face->half_mm[0], face->axis[0], corner);
            vec_add_scaled(corner, c & 2 ? face->half_mm[1] : -face->half_mm[1], face->axis[1], corner);
            for (int k = 0; k < 3; k++) {
                hull->low[f][k] = fmin(hull->low[f][k], corner[k]);
                hull->high[f][k] = fmax(hull->high[f][k], corner[k]);
            }
        }
    }

    hull->are_apart = hull->high[0][axis] < hull->low[1][axis] || hull->high[1][axis] < hull->low[0][axis];
    for (int n = 0; hull->are_apart && n < LR_LISTMODE_HULL_LINES; n++) {
        const double *a = corners[0][n % 4], *b = corners[1][n / 4];
        for (int k = 0; k < 2; k++) {
            const int c = k == 0 ? (axis == 0 ? 1 : 0) : (axis == 2 ? 1 : 2);
            const double slope = (b[c] - a[c]) / (b[axis] - a[axis]);
            hull->slope[k][n] = slope;
            hull->place[k][n] = a[c] - slope * a[axis];
        }
    }
}

/* Finds the integers from `low` to `high` that are in 0 .. size - 1. A bound that is an integer up to rounding is
 * included. */
static void cut(double low, double high, int size, int range[2])
{
    range[0] = (int)fmin(fmax(ceil(low - SLACK), 0.0), size);
    range[1] = (int)fmin(fmax(floor(high + SLACK) + 1.0, range[0]), size);
}

void lr_listmode_hull_slices(const struct lr_listmode_hull *hull, int slices[2])
{
    const int axis = hull->line.axis;
    const lr_grid *grid = &hull->model->grid;
    double low = fmin(hull->low[0][axis], hull->low[1][axis]);
    double high = fmax(hull->high[0][axis], hull->high[1][axis]);
    if (hull->line.sigma_mm > 0) {
        const double centre = hull->line.middle[axis] + hull->line.tof_mm * hull->line.direction[axis];
        const double reach = LR_LISTMODE_CUT * hull->line.sigma_mm + 0.5 * hull->line.bin_mm + hull->model->reach_mm;
        low = fmax(low, centre - reach);
        high = fmin(high, centre + reach);
    }
    const double first = grid->origin_mm[axis], edge = grid->voxel_mm[axis];
    cut((low - first) / edge - 0.5, (high - first) / edge + 0.5, grid->size[axis], slices);
    if (low > high || hull->faces[0].module == hull->faces[1].module) slices[1] = slices[0];
}

/* Finds the sample points across the axis that lie in the hull between two planes. */
static void find_samples(const struct lr_listmode_hull *hull, const double planes[2], int samples[3][2])
{
    const struct lr_listmode_model *model = hull->model;
    const int axis = hull->line.axis;
    for (int k = 0; k < 2; k++) {
        const int c = k == 0 ? (axis == 0 ? 1 : 0) : (axis == 2 ? 1 : 2);
        double low = INFINITY, high = -INFINITY;
        for (int n = 0; hull->are_apart && n < LR_LISTMODE_HULL_LINES; n++) {
            const double at = hull->place[k][n] + hull->slope[k][n] * planes[0];
            const double there = hull->place[k][n] + hull->slope[k][n] * planes[1];
            const double least = at < there ? at : there, most = at < there ? there : at;
            low = least < low ? least : low;
            high = most > high ? most : high;
        }
        for (int f = 0; f < 2; f++) {
            if (!hull->are_apart || (planes[1] >= hull->low[f][axis] && planes[0] <= hull->high[f][axis])) {
                low = fmin(low, hull->low[f][c]);
                high = fmax(high, hull->high[f][c]);
            }
        }
        const double first = lr_listmode_sample(model, c, 0);
        const double spacing = model->grid.voxel_mm[c] / model->samples[c];
        cut((low - first) / spacing, (high - first) / spacing, model->grid.size[c] * model->samples[c], samples[c]);
    }
}

void lr_listmode_hull_samples(const struct lr_listmode_hull *hull, int slice, int samples[3][2])
{
    const struct lr_listmode_model *model = hull->model;
    const int axis = hull->line.axis;
    const double edge = model->grid.voxel_mm[axis];
    const double middle = model->grid.origin_mm[axis] + slice * edge;
    const double planes[2] = {fmax(middle - 0.5 * edge, fmin(hull->low[0][axis], hull->low[1][axis])),
                              fmin(middle + 0.5 * edge, fmax(hull->high[0][axis], hull->high[1][axis]))};
    samples[axis][0] = slice * model->samples[axis];
    samples[axis][1] = (slice + 1) * model->samples[axis];
    find_samples(hull, planes, samples);
}

void lr_listmode_hull_plane(const struct lr_listmode_hull *hull, int plane, int samples[3][2])
{
    const int axis = hull->line.axis;
    const double at = lr_listmode_sample(hull->model, axis, plane);
    samples[axis][0] = plane;
    samples[axis][1] = plane + 1;
    find_samples(hull, (const double[2]){at, at}, samples);
}
