/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/order.h"
#include "operator/facade.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "base/vec.h"
#include "model/scanner/scanner.h"

#include <lr/design.h>
#include <stdlib.h>
#include <string.h>

/* A sample point is outside a plane if it is more than this distance beyond the plane. */
#define TOLERANCE_MM 1e-9

/* The largest difference between two unit vectors that count as the same direction. */
#define SAME_DIRECTION 1e-6

/* Distance from a detection plane below which single precision is not enough. */
#define NEAR_MM 0.3

struct half_space { /* all modules are where the scalar product of direction and position is at most the limit */
    double direction[3];
    double limit_mm;
};

struct hull {
    struct half_space *sides;
    int64_t num_sides;
};

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
    double limit_mm = -HUGE_VAL;
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        double centre[3];
        lr_scanner_detection_centre(scanner, m, centre);
        const double half_u = 0.5 * module->crystals[0] * module->pitch_mm[0];
        const double half_v = 0.5 * module->crystals[1] * module->pitch_mm[1];
        limit_mm = fmax(limit_mm, vec_dot(direction, centre) + fabs(vec_dot(direction, module->u)) * half_u +
                                      fabs(vec_dot(direction, module->v)) * half_v);
    }
    side->limit_mm = limit_mm;
}

/* Counts the voxels of a row along x that are on the inner side of all planes. Each plane cuts an interval from the
 * row. *begin: index of the first of these voxels along x. */
static int64_t count_row(const struct hull *hull, const lr_grid *grid, const int samples[3], int64_t row,
                         int64_t *begin)
{
    double first = 0.0, last = grid->size[0] - 1.0, start_mm[3];
    lr_grid_voxel_centre(grid, row * grid->size[0], start_mm);
    for (int64_t k = 0; k < hull->num_sides && first <= last; k++) {
        const struct half_space *side = &hull->sides[k];
        double reach = 0.0; /* largest distance between a voxel's centre and its sample points, along the plane's
                             * normal */
        for (int n = 0; n < 3; n++) {
            const double half = 0.5 * grid->voxel_mm[n] * (samples[n] - 1) / samples[n];
            reach += fabs(side->direction[n]) * half;
        }
        const double room = side->limit_mm + TOLERANCE_MM + reach - vec_dot(side->direction, start_mm);
        const double step = side->direction[0] * grid->voxel_mm[0];
        if (fabs(step) * grid->size[0] < TOLERANCE_MM)
            last = room < 0.0 ? -1.0 : last;
        else if (step > 0.0)
            last = fmin(last, floor(room / step));
        else
            first = fmax(first, ceil(room / step));
    }
    *begin = last < first ? 0 : (int64_t)first;
    return last < first ? 0 : (int64_t)(last - first) + 1;
}

lr_status lr_coverage_check(const lr_grid *grid, const int samples[3], const lr_scanner *scanner, float *values,
                            const lr_log *log)
{
    static const double axes[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    struct hull hull = {.num_sides = 0};
    hull.sides =
        lr_alloc(6 + 5 * (int64_t)scanner->num_modules, sizeof(*hull.sides), "the outline of the scanner", log);
    if (hull.sides == NULL) return LR_FAILED;
    for (int k = 0; k < 3; k++) {
        add_side(&hull, scanner, axes[k], 1.0);
        add_side(&hull, scanner, axes[k], -1.0);
    }
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        add_side(&hull, scanner, module->normal, -1.0);
        add_side(&hull, scanner, module->u, 1.0);
        add_side(&hull, scanner, module->u, -1.0);
        add_side(&hull, scanner, module->v, 1.0);
        add_side(&hull, scanner, module->v, -1.0);
    }

    const int64_t total = lr_grid_num_voxels(grid), width = grid->size[0];
    int64_t inside = 0;
    for (int64_t row = 0; row < total / width; row++) {
        int64_t begin;
        const int64_t count = count_row(&hull, grid, samples, row, &begin);
        inside += count;
        for (int64_t x = 0; values != NULL && x < width; x++)
            if (x < begin || x >= begin + count) values[row * width + x] = 0.0f;
    }

    lr_status status = LR_OK;
    if (inside == 0) {
        /* The first six planes are perpendicular to +x, -x, +y, -y, +z, -z. */
        double end[3];
        for (int k = 0; k < 3; k++) end[k] = grid->origin_mm[k] + (grid->size[k] - 1) * grid->voxel_mm[k];
        const struct half_space *sides = hull.sides;
        status = lr_error(
            log, LR_BAD_INPUT,
            "the grid misses the scanner: its voxel centres span x %g to %g, y %g to %g, z %g to %g mm, the detectors "
            "x %g to %g, y %g to %g, z %g to %g mm: change the grid's origin or leave it out to centre the grid",
            grid->origin_mm[0], end[0], grid->origin_mm[1], end[1], grid->origin_mm[2], end[2], -sides[1].limit_mm,
            sides[0].limit_mm, -sides[3].limit_mm, sides[2].limit_mm, -sides[5].limit_mm, sides[4].limit_mm);

    } else if (!lr_grid_warn_slip(grid, scanner, log) && inside < total) {
        lr_warn(log,
                "%lld of the grid's %lld voxels lie beyond the detectors, where nothing is measured: take a smaller "
                "grid, which saves their time and memory, too",
                (long long)(total - inside), (long long)total);
    }

    free(hull.sides);
    return status;
}

/* --- points on detection planes --- */

/* If the point is too near the module's rectangle, warns and returns true. */
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
        lr_warn(
            log,
            "the sample point at (%.6g, %.6g, %.6g) mm lies %.2g mm from the detection plane of module %d: single "
            "precision, which backend compute has, loses elements there; use backend native or cpu, or another grid",
            point_mm[0], point_mm[1], point_mm[2], fabs(height), index);
    }
    return is_near;
}

void lr_coverage_warn_near(const lr_grid *grid, const int samples[3], const lr_scanner *scanner, const lr_log *log)
{
    for (int m = 0; m < scanner->num_modules; m++) {
        int64_t range[3][2], at[3];
        double centre[3], point[3];
        lr_scanner_detection_centre(scanner, m, centre);
        for (int k = 0; k < 3; k++) {
            const lr_module *module = &scanner->modules[m];
            const double half = NEAR_MM + 0.5 * fabs(module->u[k]) * module->crystals[0] * module->pitch_mm[0] +
                                0.5 * fabs(module->v[k]) * module->crystals[1] * module->pitch_mm[1];
            /* Only these sample points along the axis can be near the module. */
            const double step = grid->voxel_mm[k] / samples[k];
            const double first = grid->origin_mm[k] - 0.5 * grid->voxel_mm[k] + 0.5 * step;
            const double last = (double)grid->size[k] * samples[k] - 1;
            range[k][0] = (int64_t)fmin(fmax(ceil((centre[k] - half - first) / step), 0), last + 1);
            range[k][1] = (int64_t)fmax(fmin(floor((centre[k] + half - first) / step), last), -1);
        }
        for (at[2] = range[2][0]; at[2] <= range[2][1]; at[2]++) {
            for (at[1] = range[1][0]; at[1] <= range[1][1]; at[1]++) {
                for (at[0] = range[0][0]; at[0] <= range[0][1]; at[0]++) {
                    for (int k = 0; k < 3; k++)
                        point[k] = grid->origin_mm[k] + (((double)at[k] + 0.5) / samples[k] - 0.5) * grid->voxel_mm[k];
                    if (warn_if_near(scanner, m, point, log)) return;
                }
            }
        }
    }
}

void lr_coverage_warn_near_points(const double (*points_mm)[3], int64_t num_points, const lr_scanner *scanner,
                                  const lr_log *log)
{
    for (int64_t n = 0; n < num_points; n++) {
        for (int m = 0; m < scanner->num_modules; m++)
            if (warn_if_near(scanner, m, points_mm[n], log)) return;
    }
}

/* --- settings --- */

enum { DEFAULT_RAYS = 4, MAX_RAYS = 1024, MAX_THREADS = 4096, MAX_MU_STEPS = 1000000 };

#define MAX_SAMPLES 1000000

/* A ratio is lowered by this amount before it is rounded up. Thus 10 mm / 2 mm gives 5 in spite of rounding errors. */
#define ROUNDING 1e-9

/* Attenuation in 1/mm. A larger value probably has another unit. At 511 keV bone has 0.017/mm and titanium 0.04/mm.
 * Water has 0.0096/mm, which is 0.096 if given in 1/cm. */
#define IMPLAUSIBLE_MU 0.05

static int round_up(double ratio)
{
    return (int)fmax(1.0, ceil(ratio - ROUNDING));
}

static lr_status complete_mu(const lr_operator_params *params, const lr_log *log, struct lr_backend_params *settings)
{
    const lr_image *mu = params->mu;
    if (mu == NULL) return LR_OK;
    if (mu->values == NULL) return lr_error(log, LR_USAGE, "the attenuation image has no values");
    LR_TRY(lr_grid_check(&mu->grid, log));

    const int64_t count = lr_grid_num_voxels(&mu->grid);
    float largest = 0.0f;
    for (int64_t k = 0; k < count; k++) {
        const float value = mu->values[k];
        if (!isfinite(value) || value < 0.0f) {
            const int64_t line = k / mu->grid.size[0];
            return lr_error(
                log, LR_BAD_INPUT,
                "voxel (%lld, %lld, %lld) of the attenuation image is %g: give finite values of at least 0, in 1/mm",
                (long long)(k % mu->grid.size[0]), (long long)(line % mu->grid.size[1]),
                (long long)(line / mu->grid.size[1]), (double)value);
        }
        largest = fmaxf(largest, value);
    }
    if (largest > IMPLAUSIBLE_MU) {
        lr_warn(log,
                "the attenuation image reaches %g/mm, while water has 0.0096/mm: it looks like 1/cm; if so, divide it "
                "by 10",
                (double)largest);
    }

    settings->mu = mu;
    const double edge = fmin(mu->grid.voxel_mm[0], fmin(mu->grid.voxel_mm[1], mu->grid.voxel_mm[2]));
    const lr_scanner *scanner = settings->scanner;
    double longest_mm = 0.0; /* longest distance between corners of two modules' rectangles on the detection plane */
    for (int i = 0; i < scanner->num_modules; i++) {
        double centre[3], other[3], difference[3];
        lr_scanner_detection_centre(scanner, i, centre);
        for (int j = i + 1; j < scanner->num_modules; j++) {
            lr_scanner_detection_centre(scanner, j, other);
            vec_sub(centre, other, difference);
            double at_most = vec_length(difference); /* a bound: the distance of the centres plus half of each module's
                                                      * diagonal */
            at_most += lr_module_radius_mm(&scanner->modules[i]);
            at_most += lr_module_radius_mm(&scanner->modules[j]);
            const bool may_be_longer = at_most > longest_mm;
            for (int a = 0; may_be_longer && a < 16; a++) {
                double one[3], far[3];
                lr_module_corner(&scanner->modules[i], centre, a & 3, one);
                lr_module_corner(&scanner->modules[j], other, a >> 2, far);
                vec_sub(one, far, difference);
                longest_mm = fmax(longest_mm, vec_length(difference));
            }
        }
    }
    const double steps = longest_mm / edge;
    settings->mu_steps = params->mu_steps > 0 ? params->mu_steps : round_up(fmin(steps, MAX_MU_STEPS));
    return LR_OK;
}

/* --- sample points by default: docs/method/correspondence.md, "Sample points" --- */

/* Fractions of the scanner's radius. most_spacing: largest spacing of sample points, unless half a crystal pitch is
 * larger. most_single: largest voxel edge for which one sample point is enough, provided that no voxel is on the
 * axis. */
static const double most_spacing = 1.0 / 60.0, most_single = 1.0 / 120.0;

/* The largest spacing of sample points in units of the crystal pitch: two values across the axis, one along it. */
static const double most_pitches[3] = {0.85, 0.85, 1.0};

/* --- sample points along z: gaps between crystal rings are opposite to gaps, so the sensitivity on the axis changes
 * from plane to plane --- */

/* Largest relative errors on the axis. most_slice_error: with several points per slice. most_single_error: with one
 * point. Away from the axis, errors are smaller: at most half as large (Vista), or a tenth with many rings (mMR). */
static const double most_slice_error = 0.012, most_single_error = 0.045;

/* MOST_SLICES: number of slices around the middle that are compared. MEAN_POINTS: number of points for the mean of a
 * slice. TRIED: number of candidates for the number of points. */
enum { MOST_SLICES = 64, MEAN_POINTS = 48, TRIED = 4 };

/* Intervals of z that are filled by crystals, in ascending order. */
struct row_edges {
    double (*list)[2];
    int count;
};

/* The mean sensitivity of a slice on the axis, up to a constant factor. The sensitivity at (0, 0, z) is proportional to
 * the total length of the intervals of t for which crystals exist both at z + t and at z - t. */
static double mean_of_slice(const struct row_edges *rows, double middle, double size_mm, int points)
{
    double mean = 0.0;
    for (int k = 0; k < points; k++) {
        const double z = middle + ((k + 0.5) / points - 0.5) * size_mm;
        double sum = 0.0;
        for (int a = 0, b = rows->count - 1; a < rows->count && b >= 0;) {
            const double *up = rows->list[a], *down = rows->list[b];
            const double begin = fmax(up[0] - z, z - down[1]), end = fmin(up[1] - z, z - down[0]);
            sum += fmax(0.0, end - begin);
            if (up[1] - z < z - down[0])
                a++;
            else
                b--;
        }
        mean += sum;
    }
    return mean / points;
}

/* Finds the number of points along z. The candidates are `fewest` and the even numbers above it. The first one with a
 * small enough error is taken; if there is none, the candidate with the smallest error is taken. */
static int settle_slices(const lr_scanner *scanner, const lr_grid *grid, int fewest)
{
    /* The list has the crystal rings of upright modules in the front layer. The list is empty if memory runs out. */
    struct row_edges rows = {NULL, 0};
    int most = 0;
    for (int m = 0; m < scanner->num_modules; m++) most += scanner->modules[m].crystals[1];
    rows.list = lr_alloc(most, sizeof(*rows.list), "crystal rings", NULL);
    for (int m = 0; rows.list != NULL && m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        if (module->layer > 0 || !(fabs(module->v[2]) > 1.0 - 1e-6)) continue;
        for (int q = 0; q < module->crystals[1]; q++) {
            const double at = module->centre_mm[2] + (q - 0.5 * (module->crystals[1] - 1)) * module->pitch_mm[1];
            rows.list[rows.count][0] = at - 0.5 * module->face_mm[1];
            rows.list[rows.count++][1] = at + 0.5 * module->face_mm[1];
        }
    }
    if (rows.count > 0) qsort(rows.list, (size_t)rows.count, sizeof(*rows.list), lr_compare_doubles);
    const int num_listed = rows.count;
    rows.count = num_listed > 0;
    for (int k = 1; k < num_listed; k++) { /* intervals that touch are joined */
        double *last = rows.list[rows.count - 1];
        if (rows.list[k][0] > last[1])
            memcpy(rows.list[rows.count++], rows.list[k], sizeof(*rows.list));
        else
            last[1] = fmax(last[1], rows.list[k][1]);
    }

    int best = fewest;
    double least = HUGE_VAL;
    for (int k = 0, points = fewest; k < TRIED && least > most_slice_error && rows.count > 0; k++) {
        /* The largest relative error of slices on the axis, for this number of points along z. */
        const double size_mm = grid->voxel_mm[2];
        const double middle = -grid->origin_mm[2] / size_mm;
        const int last = grid->size[2] - 1;
        const int nearest = (int)fmin(fmax(round(middle), 0.0), last);
        const int begin = nearest > MOST_SLICES / 2 ? nearest - MOST_SLICES / 2 : 0;
        double error = 0.0, largest = 0.0;
        for (int n = begin; n <= last && n < begin + MOST_SLICES; n++) {
            const double z = grid->origin_mm[2] + n * size_mm;
            const double mean = mean_of_slice(&rows, z, size_mm, MEAN_POINTS);
            largest = fmax(largest, mean);
            if (mean > 0.2 * largest) error = fmax(error, fabs(mean_of_slice(&rows, z, size_mm, points) / mean - 1.0));
        }

        if (points == 1 && error <= most_single_error) break;
        if (error < least) {
            least = error;
            best = points;
        }
        points += points == 1 ? 1 : 2;
    }
    free(rows.list);
    return best;
}

void lr_operator_default_samples(const lr_scanner *scanner, const lr_grid *grid, int samples[3])
{
    /* The radius is the smallest distance of a module from the axis. A flat detector whose centre is on the axis counts
     * by its distance from the origin. */
    double radius_mm = HUGE_VAL;
    for (int m = 0; m < scanner->num_modules; m++) {
        const double *centre = scanner->modules[m].centre_mm;
        const double across = hypot(centre[0], centre[1]);
        radius_mm = fmin(radius_mm, across > 0.0 ? across : fabs(centre[2]));
    }

    double pitch_mm[3];
    pitch_mm[0] = pitch_mm[1] = pitch_mm[2] = HUGE_VAL;
    for (int i = 0; i < scanner->num_modules; i++)
        for (int n = 0; n < 3; n++) pitch_mm[n] = fmin(pitch_mm[n], scanner->modules[i].pitch_mm[n == 2]);

    /* One point is enough if voxels are so small that the sensitivity hardly changes within a voxel. On the axis, one
     * point is not enough, because gaps are opposite to gaps there. */
    bool single = true;
    for (int j = 0; j < 3; j++) {
        /* The distance from the axis to the nearest voxel centre, in voxels. */
        const double first = grid->origin_mm[j] / grid->voxel_mm[j];
        const double nearest = fmin(fmax(round(-first), 0.0), grid->size[j] - 1.0);
        single = single && grid->voxel_mm[j] <= most_single * radius_mm && (j == 2 || fabs(first + nearest) > 0.45);
    }

    for (int k = 0; k < 3; k++) {
        const double spacing_mm =
            fmin(most_pitches[k] * pitch_mm[k], fmax(most_spacing * radius_mm, 0.5 * pitch_mm[k]));
        const double ratio = fmin(0.5 * grid->voxel_mm[k] / spacing_mm, MAX_SAMPLES + 1.0);
        samples[k] = single ? 1 : 2 * round_up(ratio);
    }
    if (samples[2] < MEAN_POINTS / 4) /* with more points, the mean of a slice is accurate anyway */
        samples[2] = settle_slices(scanner, grid, samples[2]);
}

lr_status lr_settings_complete(const lr_operator_params *params, const lr_log *log, lr_grid *grid,
                               struct lr_backend_params *settings)
{
    if (params->lors == NULL || params->lors->scanner == NULL)
        return lr_error(log, LR_USAGE, "an operator needs lors: make them with lr_lors_create");
    if (params->grid == NULL) return lr_error(log, LR_USAGE, "an operator needs a grid: see lr_grid_centred");

    if (params->mode != LR_MODE_AUTO && params->mode != LR_MODE_SAMPLED && params->mode != LR_MODE_EXACT) {
        return lr_error(log, LR_USAGE, "mode %d does not exist: use auto (0), sampled (1) or exact (2)",
                        (int)params->mode);
    }
    if (params->store != LR_STORE_AUTO && params->store != LR_STORE_YES && params->store != LR_STORE_NO)
        return lr_error(log, LR_USAGE, "store %d does not exist: use auto (0), yes (1) or no (2)", (int)params->store);
    if (params->rays < 0 || params->rays > MAX_RAYS)
        return lr_error(log, LR_USAGE, "rays = %d: give 1 to %d, or 0 for %d", params->rays, MAX_RAYS, DEFAULT_RAYS);
    if (params->mu_steps < 0 || params->mu_steps > MAX_MU_STEPS) {
        return lr_error(
            log, LR_USAGE,
            "%d steps through the attenuation image: give 1 to %d, or 0 for steps of at most one of its voxels",
            params->mu_steps, MAX_MU_STEPS);
    }

    if (params->threads < 0 || params->threads > MAX_THREADS) {
        return lr_error(log, LR_USAGE, "threads = %d: give 1 to %d, or 0 for all processors", params->threads,
                        MAX_THREADS);
    }
    if (params->device < 0) return lr_error(log, LR_USAGE, "device = %d: devices are counted from 0", params->device);
    if (params->max_memory_bytes < 0) {
        return lr_error(log, LR_USAGE,
                        "a memory limit of %lld bytes: give a positive number, or 0 for half of the machine's memory",
                        (long long)params->max_memory_bytes);
    }

    LR_TRY(lr_grid_check(params->grid, log));
    if (params->penetration && params->layers_alone) {
        return lr_error(log, LR_USAGE,
                        "with penetration photons go through all layers, and none counts as if it were alone: ask for "
                        "one of the two");
    }
    *grid = *params->grid;
    const lr_scanner *scanner = params->lors->scanner;
    const bool penetration = params->penetration || (lr_scanner_num_layers(scanner) > 1 && !params->layers_alone);
    *settings = (struct lr_backend_params){
        .scanner = scanner,
        .lors = params->lors,
        .grid = grid,
        /* All backends compute penetration along lines, that is, in sampled mode. */
        .mode = penetration && params->mode == LR_MODE_AUTO ? LR_MODE_SAMPLED : params->mode,
        .rays = params->rays > 0 ? params->rays : DEFAULT_RAYS,
        .threads = params->threads > 0 ? params->threads : lr_num_processors(),
        .device = params->device,
        .shared = params->shared,
        .deterministic = params->deterministic,
        .penetration = penetration,
        .max_memory_bytes = params->max_memory_bytes,
        .log = log,
        .progress = params->progress,
    };
    if (settings->penetration) {
        LR_TRY(lr_penetration_check(scanner, settings->mode, log));
        lr_penetration_warn(scanner, log);
    }
    int defaults[3];
    lr_operator_default_samples(settings->scanner, settings->grid, defaults);
    double product = 1.0;
    for (int k = 0; k < 3; k++) {
        if (params->samples[k] < 0) {
            return lr_error(log, LR_USAGE, "samples = %d along %c: give a positive number, or 0 for the default",
                            params->samples[k], "xyz"[k]);
        }
        settings->samples[k] = params->samples[k] > 0 ? params->samples[k] : defaults[k];
        product *= settings->samples[k];
    }
    if (product > MAX_SAMPLES && params->samples[0] <= 0) {
        const double *voxel_mm = settings->grid->voxel_mm;
        return lr_error(log, LR_USAGE,
                        "voxels of %g x %g x %g mm are far larger than a crystal: edges are in mm: give smaller voxels",
                        voxel_mm[0], voxel_mm[1], voxel_mm[2]);
    }
    if (product > MAX_SAMPLES) {
        return lr_error(log, LR_USAGE,
                        "%d x %d x %d sample points per voxel, more than %d: give fewer samples or smaller voxels",
                        settings->samples[0], settings->samples[1], settings->samples[2], MAX_SAMPLES);
    }
    LR_TRY(complete_mu(params, log, settings));
    return lr_coverage_check(grid, settings->samples, settings->scanner, NULL, log);
}
