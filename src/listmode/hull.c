/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "listmode/hull.h"

#include "base/mem.h"
#include "model/scanner/arrangement.h"

#include <math.h>
#include <string.h>

/* The grid axis along which every module has one of its own; -1: there is none. */
static int shared_axis(const lr_scanner *scanner)
{
    for (int axis = 2; axis >= 0; axis--) {
        int count = 0;
        while (count < scanner->num_modules && lr_module_axial(&scanner->modules[count], axis) >= 0) count++;
        if (count == scanner->num_modules) return axis;
    }
    return -1;
}

bool lr_listmode_is_leaning(const lr_scanner *scanner)
{
    return shared_axis(scanner) < 0;
}

static struct lr_listmode_module module_of(const lr_module *module, int axis)
{
    struct lr_listmode_module out = {{0}, {0}, {0}};
    const bool is_u = axis >= 0 && lr_module_axial(module, axis) == 0;
    memcpy(out.across, is_u ? module->v : module->u, sizeof(module->u));
    memcpy(out.along, is_u ? module->u : module->v, sizeof(module->u));
    memcpy(out.normal, module->normal, sizeof(module->normal));
    out.across[3] = 0.5 * module->face_mm[is_u ? 1 : 0];
    out.along[3] = 0.5 * module->face_mm[is_u ? 0 : 1];
    return out;
}

struct lr_listmode_module *lr_listmode_modules(const lr_scanner *scanner, const lr_log *log)
{
    const int axis = shared_axis(scanner);
    struct lr_listmode_module *modules = lr_alloc(scanner->num_modules, sizeof(*modules), "modules", log);
    for (int m = 0; modules != NULL && m < scanner->num_modules; m++)
        modules[m] = module_of(&scanner->modules[m], axis);
    return modules;
}

/* --- hulls of events --- */

/* Room for rounding, in sample points. */
#define SLACK 1e-6

static void find_face(const lr_scanner *scanner, int32_t crystal, const double centre[3], struct lr_listmode_face *face)
{
    const int m = lr_scanner_module_of(scanner, crystal);
    const lr_module *module = &scanner->modules[m];
    const int place = crystal - scanner->first_crystal[m];
    *face = (struct lr_listmode_face){
        .module = m,
        .at = {place % module->crystals[0], place / module->crystals[0]},
        .centre = {centre[0], centre[1], centre[2]},
        .axis = {module->u, module->v, module->normal},
        .half_mm = {0.5 * module->face_mm[0], 0.5 * module->face_mm[1]},
    };
}

static void find_corner(const struct lr_listmode_face *face, int corner, double point[3])
{
    const double u = corner & 1 ? face->half_mm[0] : -face->half_mm[0];
    const double v = corner & 2 ? face->half_mm[1] : -face->half_mm[1];
    vec_add_scaled(face->centre, u, face->axis[0], point);
    vec_add_scaled(point, v, face->axis[1], point);
}

static void find_lines(struct lr_listmode_hull *hull, double corners[2][4][3])
{
    const int axis = hull->line.axis;
    for (int n = 0; n < LR_LISTMODE_HULL_LINES; n++) {
        const double *a = corners[0][n % 4], *b = corners[1][n / 4];
        for (int k = 0; k < 2; k++) {
            const int c = k == 0 ? (axis == 0 ? 1 : 0) : (axis == 2 ? 1 : 2);
            const double slope = (b[c] - a[c]) / (b[axis] - a[axis]);
            hull->slope[k][n] = slope;
            hull->place[k][n] = a[c] - slope * a[axis];
        }
    }
}

void lr_listmode_hull_of(struct lr_listmode_hull *hull, const struct lr_listmode_model *model,
                         const struct lr_listmode_events *events, const int64_t at[2])
{
    double corners[2][4][3];
    const int axis = (int)at[1];
    hull->model = model;
    lr_listmode_line_of(events, at[0], axis, &hull->line);
    for (int f = 0; f < 2; f++) {
        const int32_t crystal = events->crystals[f][at[0]];
        find_face(model->scanner, crystal, events->hits[crystal], &hull->faces[f]);
    }
    hull->extent_mm = lr_listmode_extent(&hull->line, &model->grid);
    for (int n = 0; n < 2; n++) {
        for (int k = 0; k < 3; k++) {
            hull->low[n][k] = INFINITY;
            hull->high[n][k] = -INFINITY;
        }
        for (int c = 0; c < 4; c++) {
            find_corner(&hull->faces[n], c, corners[n][c]);
            for (int k = 0; k < 3; k++) {
                hull->low[n][k] = fmin(hull->low[n][k], corners[n][c][k]);
                hull->high[n][k] = fmax(hull->high[n][k], corners[n][c][k]);
            }
        }
    }

    hull->are_apart = hull->high[0][axis] < hull->low[1][axis] || hull->high[1][axis] < hull->low[0][axis];
    if (hull->are_apart) find_lines(hull, corners);
}

/* Whole numbers from `low` to `high`, both included where they are whole to rounding, of 0 .. size - 1. */
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

/* The part of the hull between the two planes of a slice across the axis: along across axis k. */
static void find_between(const struct lr_listmode_hull *hull, int k, const double planes[2], double between[2])
{
    const int axis = hull->line.axis, c = k == 0 ? (axis == 0 ? 1 : 0) : (axis == 2 ? 1 : 2);
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
    between[0] = low;
    between[1] = high;
}

/* Sample points across the axis that the hull holds between two planes. */
static void find_samples(const struct lr_listmode_hull *hull, const double planes[2], int samples[3][2])
{
    const struct lr_listmode_model *model = hull->model;
    const int axis = hull->line.axis;
    for (int k = 0; k < 2; k++) {
        const int c = k == 0 ? (axis == 0 ? 1 : 0) : (axis == 2 ? 1 : 2);
        const double first = lr_listmode_sample(model, c, 0);
        const double spacing = model->grid.voxel_mm[c] / model->samples[c];
        double between[2];
        find_between(hull, k, planes, between);
        cut((between[0] - first) / spacing, (between[1] - first) / spacing, model->grid.size[c] * model->samples[c],
            samples[c]);
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

double lr_listmode_hull_reach(const lr_scanner *scanner, const lr_grid *grid)
{
    double diagonal = 0;
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        diagonal = fmax(diagonal, hypot(module->face_mm[0], module->face_mm[1]));
    }
    return 0.5 * diagonal + vec_length(grid->voxel_mm);
}
