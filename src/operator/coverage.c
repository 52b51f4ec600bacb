/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "operator/coverage.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"

#include <stdlib.h>

/* How far a sample point must be outside to count as beyond. */
#define TOLERANCE_MM 1e-9

/* Two directions that differ by less are one. */
#define SAME_DIRECTION 1e-6

/* Nearer to a detection plane, single precision is not enough. */
#define NEAR_MM 0.3

struct half_space { /* direction . x <= limit holds for all modules */
    double direction[3];
    double limit_mm;
};

struct hull {
    struct half_space *sides;
    int64_t num_sides;
};

static double support_mm(const lr_scanner *scanner, const double direction[3])
{
    double largest = -HUGE_VAL;
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        double centre[3];
        lr_scanner_detection_centre(scanner, m, centre);
        const double half_u = 0.5 * module->crystals[0] * module->pitch_mm[0];
        const double half_v = 0.5 * module->crystals[1] * module->pitch_mm[1];
        largest = fmax(largest, vec_dot(direction, centre) + fabs(vec_dot(direction, module->u)) * half_u +
                                    fabs(vec_dot(direction, module->v)) * half_v);
    }
    return largest;
}

static void add_side(struct hull *hull, const lr_scanner *scanner, const double axis[3], double sign)
{
    const double direction[3] = {sign * axis[0], sign * axis[1], sign * axis[2]};
    for (int64_t k = 0; k < hull->num_sides; k++) {
        double difference[3];
        vec_sub(direction, hull->sides[k].direction, difference);
        if (vec_length(difference) < SAME_DIRECTION) return;
    }
    struct half_space *side = &hull->sides[hull->num_sides++];
    for (int k = 0; k < 3; k++) side->direction[k] = direction[k];
    side->limit_mm = support_mm(scanner, direction);
}

static lr_status hull_init(struct hull *hull, const lr_scanner *scanner, const lr_log *log)
{
    static const double axes[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    hull->num_sides = 0;
    hull->sides =
        lr_alloc(6 + 5 * (int64_t)scanner->num_modules, sizeof(*hull->sides), "the outline of the scanner", log);
    if (hull->sides == NULL) return LR_FAILED;
    for (int k = 0; k < 3; k++) {
        add_side(hull, scanner, axes[k], 1.0);
        add_side(hull, scanner, axes[k], -1.0);
    }
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        add_side(hull, scanner, module->normal, -1.0);
        add_side(hull, scanner, module->u, 1.0);
        add_side(hull, scanner, module->u, -1.0);
        add_side(hull, scanner, module->v, 1.0);
        add_side(hull, scanner, module->v, -1.0);
    }
    return LR_OK;
}

/* How far a voxel's sample points reach from its centre against `direction`. */
static double reach_mm(const lr_grid *grid, const int samples[3], const double direction[3])
{
    double reach = 0.0;
    for (int k = 0; k < 3; k++) {
        const double half = 0.5 * grid->voxel_mm[k] * (samples[k] - 1) / samples[k];
        reach += fabs(direction[k]) * half;
    }
    return reach;
}

/* Voxels of the line along x through `start_mm` that are on the inner side of every plane. Each
 * plane leaves an interval of the line. */
static int64_t count_line(const struct hull *hull, const lr_grid *grid, const int samples[3], const double start_mm[3])
{
    double first = 0.0, last = grid->size[0] - 1.0;
    for (int64_t k = 0; k < hull->num_sides && first <= last; k++) {
        const struct half_space *side = &hull->sides[k];
        const double room = side->limit_mm + TOLERANCE_MM + reach_mm(grid, samples, side->direction) -
                            vec_dot(side->direction, start_mm);
        const double step = side->direction[0] * grid->voxel_mm[0];
        if (fabs(step) * grid->size[0] < TOLERANCE_MM)
            last = room < 0.0 ? -1.0 : last;
        else if (step > 0.0)
            last = fmin(last, floor(room / step));
        else
            first = fmax(first, ceil(room / step));
    }
    return last < first ? 0 : (int64_t)(last - first) + 1;
}

static int64_t count_inside(const struct hull *hull, const lr_grid *grid, const int samples[3])
{
    int64_t inside = 0;
    for (int iz = 0; iz < grid->size[2]; iz++) {
        for (int iy = 0; iy < grid->size[1]; iy++) {
            const double start_mm[3] = {grid->origin_mm[0], grid->origin_mm[1] + iy * grid->voxel_mm[1],
                                        grid->origin_mm[2] + iz * grid->voxel_mm[2]};
            inside += count_line(hull, grid, samples, start_mm);
        }
    }
    return inside;
}

/* The first six sides are those across +x, -x, +y, -y, +z, -z. */
static lr_status report_miss(const struct hull *hull, const lr_grid *grid, const lr_log *log)
{
    double end[3];
    for (int k = 0; k < 3; k++) end[k] = grid->origin_mm[k] + (grid->size[k] - 1) * grid->voxel_mm[k];
    const struct half_space *sides = hull->sides;
    return lr_error(log, LR_BAD_INPUT,
                    "the grid misses the scanner: its voxel centres span x %g to %g, y %g to %g, "
                    "z %g to %g mm, the detectors x %g to %g, y %g to %g, z %g to %g mm: change "
                    "the grid's origin or leave it out to centre the grid",
                    grid->origin_mm[0], end[0], grid->origin_mm[1], end[1], grid->origin_mm[2], end[2],
                    -sides[1].limit_mm, sides[0].limit_mm, -sides[3].limit_mm, sides[2].limit_mm, -sides[5].limit_mm,
                    sides[4].limit_mm);
}

/* A grid of several voxels within a tenth of a crystal is one in other units. */
static void warn_of_width(const lr_grid *grid, const lr_scanner *scanner, const lr_log *log)
{
    double widest_mm = 0.0, pitch_mm = HUGE_VAL;
    for (int k = 0; k < 3; k++) widest_mm = fmax(widest_mm, grid->size[k] * grid->voxel_mm[k]);
    for (int m = 0; m < scanner->num_modules; m++)
        pitch_mm = fmin(pitch_mm, fmin(scanner->modules[m].pitch_mm[0], scanner->modules[m].pitch_mm[1]));
    if (lr_grid_num_voxels(grid) > 1 && widest_mm < 0.1 * pitch_mm) {
        lr_warn(log,
                "the whole grid is %.4g mm wide, less than a tenth of a crystal (%.4g mm): voxel "
                "edges are given in mm",
                widest_mm, pitch_mm);
    }
}

lr_status lr_coverage_check(const lr_grid *grid, const int samples[3], const lr_scanner *scanner, const lr_log *log)
{
    struct hull hull;
    LR_TRY(hull_init(&hull, scanner, log));
    const int64_t total = lr_grid_num_voxels(grid);
    const int64_t inside = count_inside(&hull, grid, samples);
    lr_status status = LR_OK;
    if (inside == 0) {
        status = report_miss(&hull, grid, log);
    } else if (inside < total) {
        lr_warn(log,
                "%lld of the grid's %lld voxels lie beyond the detectors and stay zero: a smaller "
                "grid saves their time and memory",
                (long long)(total - inside), (long long)total);
    }
    warn_of_width(grid, scanner, log);
    free(hull.sides);
    return status;
}

/* --- points on detection planes --- */

/* True, and said, where the point is too near the module's rectangle, which is then said. */
static bool warn_if_near(const lr_scanner *scanner, int index, const double point_mm[3], const lr_log *log)
{
    const lr_module *module = &scanner->modules[index];
    double offset[3];
    lr_scanner_detection_centre(scanner, index, offset);
    vec_sub(point_mm, offset, offset);
    const double height = vec_dot(module->normal, offset);
    const double *axes[2] = {module->u, module->v};
    bool is_near = fabs(height) < NEAR_MM;
    for (int k = 0; k < 2; k++) {
        const double half = 0.5 * module->crystals[k] * module->pitch_mm[k];
        is_near = is_near && fabs(vec_dot(axes[k], offset)) < half + NEAR_MM;
    }
    if (is_near) {
        lr_warn(log,
                "the sample point at (%.6g, %.6g, %.6g) mm lies %.2g mm from the detection plane of "
                "module %d: single precision, which backend compute has, loses elements there; use "
                "backend native or cpu, or another grid",
                point_mm[0], point_mm[1], point_mm[2], fabs(height), index);
    }
    return is_near;
}

/* Sample points first .. last along an axis that may be near a module. */
static void find_range(const lr_grid *grid, int samples, int axis, const double around_mm[2], int64_t range[2])
{
    const double step = grid->voxel_mm[axis] / samples;
    const double first = grid->origin_mm[axis] - 0.5 * grid->voxel_mm[axis] + 0.5 * step;
    const double last = (double)grid->size[axis] * samples - 1;
    range[0] = (int64_t)fmin(fmax(ceil((around_mm[0] - first) / step), 0), last + 1);
    range[1] = (int64_t)fmax(fmin(floor((around_mm[1] - first) / step), last), -1);
}

static bool warn_of_module(const lr_grid *grid, const int samples[3], const lr_scanner *scanner, int index,
                           const lr_log *log)
{
    const lr_module *module = &scanner->modules[index];
    int64_t range[3][2], at[3];
    double centre[3], point[3];
    lr_scanner_detection_centre(scanner, index, centre);
    for (int k = 0; k < 3; k++) {
        const double half = NEAR_MM + 0.5 * fabs(module->u[k]) * module->crystals[0] * module->pitch_mm[0] +
                            0.5 * fabs(module->v[k]) * module->crystals[1] * module->pitch_mm[1];
        find_range(grid, samples[k], k, (const double[2]){centre[k] - half, centre[k] + half}, range[k]);
    }
    for (at[2] = range[2][0]; at[2] <= range[2][1]; at[2]++) {
        for (at[1] = range[1][0]; at[1] <= range[1][1]; at[1]++) {
            for (at[0] = range[0][0]; at[0] <= range[0][1]; at[0]++) {
                for (int k = 0; k < 3; k++)
                    point[k] = grid->origin_mm[k] + (((double)at[k] + 0.5) / samples[k] - 0.5) * grid->voxel_mm[k];
                if (warn_if_near(scanner, index, point, log)) return true;
            }
        }
    }
    return false;
}

void lr_coverage_warn_near(const lr_grid *grid, const int samples[3], const lr_scanner *scanner, const lr_log *log)
{
    bool found = false;
    for (int m = 0; m < scanner->num_modules && !found; m++) found = warn_of_module(grid, samples, scanner, m, log);
}

void lr_coverage_warn_near_points(const double (*points_mm)[3], int64_t num_points, const lr_scanner *scanner,
                                  const lr_log *log)
{
    for (int64_t n = 0; n < num_points; n++) {
        for (int m = 0; m < scanner->num_modules; m++)
            if (warn_if_near(scanner, m, points_mm[n], log)) return;
    }
}
