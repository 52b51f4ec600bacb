/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "operator/settings.h"

#include "base/log.h"
#include "base/parallel.h"
#include "base/vec.h"
#include "model/scanner/penetration.h"
#include "operator/coverage.h"

enum { DEFAULT_RAYS = 4, MAX_RAYS = 1024, MAX_THREADS = 4096, MAX_MU_STEPS = 1000000 };

#define MAX_SAMPLES 1000000

/* Taken off a ratio before it is rounded up, so that 10 mm / 2 mm gives 5. */
#define ROUNDING 1e-9

/* Bone has 0.017/mm at 511 keV and titanium 0.04/mm; water given in 1/cm would be 0.096. */
#define IMPLAUSIBLE_MU 0.05

static int round_up(double ratio)
{
    return (int)fmax(1.0, ceil(ratio - ROUNDING));
}

static lr_status check_presence(const lr_operator_params *params, const lr_log *log)
{
    if (params->lors == NULL || params->lors->scanner == NULL) {
        return lr_error(log, LR_USAGE, "an operator needs lors: make them with lr_lors_create");
    }
    if (params->grid == NULL) {
        return lr_error(log, LR_USAGE, "an operator needs a grid: see lr_grid_centred");
    }
    return LR_OK;
}

static lr_status check_numbers(const lr_operator_params *params, const lr_log *log)
{
    if (params->mode != LR_MODE_AUTO && params->mode != LR_MODE_SAMPLED &&
        params->mode != LR_MODE_EXACT) {
        return lr_error(log, LR_USAGE,
                        "mode %d does not exist: use auto (0), sampled (1) or exact (2)",
                        (int)params->mode);
    }
    if (params->store != LR_STORE_AUTO && params->store != LR_STORE_YES &&
        params->store != LR_STORE_NO) {
        return lr_error(log, LR_USAGE, "store %d does not exist: use auto (0), yes (1) or no (2)",
                        (int)params->store);
    }
    if (params->rays < 0 || params->rays > MAX_RAYS) {
        return lr_error(log, LR_USAGE, "rays = %d: give 1 to %d, or 0 for %d", params->rays,
                        MAX_RAYS, DEFAULT_RAYS);
    }
    if (params->mu_steps < 0 || params->mu_steps > MAX_MU_STEPS) {
        return lr_error(log, LR_USAGE,
                        "%d steps through the attenuation image: give 1 to %d, or 0 for steps of "
                        "at most one of its voxels",
                        params->mu_steps, MAX_MU_STEPS);
    }
    return LR_OK;
}

static lr_status check_resources(const lr_operator_params *params, const lr_log *log)
{
    if (params->threads < 0 || params->threads > MAX_THREADS) {
        return lr_error(log, LR_USAGE, "threads = %d: give 1 to %d, or 0 for all processors",
                        params->threads, MAX_THREADS);
    }
    if (params->device < 0) {
        return lr_error(log, LR_USAGE, "device = %d: devices are counted from 0", params->device);
    }
    if (params->max_memory_bytes < 0) {
        return lr_error(log, LR_USAGE,
                        "a memory limit of %lld bytes: give a positive number, or 0 for half of "
                        "the machine's memory",
                        (long long)params->max_memory_bytes);
    }
    return LR_OK;
}

static lr_status complete_samples(const lr_operator_params *params, const lr_log *log,
                                  struct lr_backend_params *settings)
{
    int defaults[3];
    lr_operator_default_samples(settings->scanner, settings->grid, defaults);
    double product = 1.0;
    for (int k = 0; k < 3; k++) {
        if (params->samples[k] < 0) {
            return lr_error(log, LR_USAGE,
                            "samples = %d along %c: give a positive number, or 0 for the default",
                            params->samples[k], "xyz"[k]);
        }
        settings->samples[k] = params->samples[k] > 0 ? params->samples[k] : defaults[k];
        product *= settings->samples[k];
    }
    if (product > MAX_SAMPLES) {
        return lr_error(log, LR_USAGE,
                        "%d x %d x %d sample points per voxel, more than %d: give fewer samples "
                        "or smaller voxels",
                        settings->samples[0], settings->samples[1], settings->samples[2],
                        MAX_SAMPLES);
    }
    return LR_OK;
}

static void module_corner(const lr_scanner *scanner, int index, int corner, double corner_mm[3])
{
    const lr_module *module = &scanner->modules[index];
    const double half_u = 0.5 * module->crystals[0] * module->pitch_mm[0];
    const double half_v = 0.5 * module->crystals[1] * module->pitch_mm[1];
    lr_scanner_detection_centre(scanner, index, corner_mm);
    vec_add_scaled(corner_mm, corner & 1 ? half_u : -half_u, module->u, corner_mm);
    vec_add_scaled(corner_mm, corner & 2 ? half_v : -half_v, module->v, corner_mm);
}

static double longest_between_mm(const lr_scanner *scanner, int i, int j)
{
    double longest = 0.0;
    for (int a = 0; a < 16; a++) {
        double one[3], other[3], difference[3];
        module_corner(scanner, i, a & 3, one);
        module_corner(scanner, j, a >> 2, other);
        vec_sub(one, other, difference);
        longest = fmax(longest, vec_length(difference));
    }
    return longest;
}

static double half_diagonal_mm(const lr_module *module)
{
    return 0.5 * hypot(module->crystals[0] * module->pitch_mm[0],
                       module->crystals[1] * module->pitch_mm[1]);
}

/* Longest distance between corners of two modules on the detection plane. */
static double longest_line_mm(const lr_scanner *scanner)
{
    double longest = 0.0;
    for (int i = 0; i < scanner->num_modules; i++) {
        double centre[3], other[3], difference[3];
        lr_scanner_detection_centre(scanner, i, centre);
        for (int j = i + 1; j < scanner->num_modules; j++) {
            lr_scanner_detection_centre(scanner, j, other);
            vec_sub(centre, other, difference);
            const double at_most = vec_length(difference) + half_diagonal_mm(&scanner->modules[i]) +
                                   half_diagonal_mm(&scanner->modules[j]);
            if (at_most > longest) {
                longest = fmax(longest, longest_between_mm(scanner, i, j));
            }
        }
    }
    return longest;
}

static lr_status check_mu_values(const lr_image *mu, const lr_log *log)
{
    const int64_t count = lr_grid_num_voxels(&mu->grid);
    float largest = 0.0f;
    for (int64_t k = 0; k < count; k++) {
        const float value = mu->values[k];
        if (!isfinite(value) || value < 0.0f) {
            const int64_t line = k / mu->grid.size[0];
            return lr_error(log, LR_BAD_INPUT,
                            "voxel (%lld, %lld, %lld) of the attenuation image is %g: give finite "
                            "values of at least 0, in 1/mm",
                            (long long)(k % mu->grid.size[0]), (long long)(line % mu->grid.size[1]),
                            (long long)(line / mu->grid.size[1]), (double)value);
        }
        largest = fmaxf(largest, value);
    }
    if (largest > IMPLAUSIBLE_MU) {
        lr_warn(log,
                "the attenuation image reaches %g/mm, while water has 0.0096/mm: it looks like "
                "1/cm; if so, divide it by 10",
                (double)largest);
    }
    return LR_OK;
}

static lr_status complete_mu(const lr_operator_params *params, const lr_log *log,
                             struct lr_backend_params *settings)
{
    const lr_image *mu = params->mu;
    if (mu == NULL) {
        return LR_OK;
    }
    if (mu->values == NULL) {
        return lr_error(log, LR_USAGE, "the attenuation image has no values");
    }
    LR_TRY(lr_grid_check(&mu->grid, log));
    LR_TRY(check_mu_values(mu, log));
    settings->mu = mu;
    const double edge =
        fmin(mu->grid.voxel_mm[0], fmin(mu->grid.voxel_mm[1], mu->grid.voxel_mm[2]));
    const double steps = longest_line_mm(settings->scanner) / edge;
    settings->mu_steps =
        params->mu_steps > 0 ? params->mu_steps : round_up(fmin(steps, MAX_MU_STEPS));
    return LR_OK;
}

/* --- sample points by default: docs/method/correspondence.md, "Sample points" --- */

/* Largest spacing of sample points that keeps a voxel's mean right, if half a pitch is not more, and the
 * largest voxel that needs one point alone away from the axis: over the scanner's radius. */
static const double most_spacing = 1.0 / 60.0, most_single = 1.0 / 120.0;

/* The same spacing over the crystals' pitch, across the axis and along it. */
static const double most_pitches[3] = {0.85, 0.85, 1.0};

/* How near the axis the nearest module stands; flat detectors that stand on it: the origin. */
static double nearest_module_mm(const lr_scanner *scanner)
{
    double nearest = HUGE_VAL;
    for (int m = 0; m < scanner->num_modules; m++) {
        const double *centre = scanner->modules[m].centre_mm;
        const double across = hypot(centre[0], centre[1]);
        nearest = fmin(nearest, across > 0.0 ? across : fabs(centre[2]));
    }
    return nearest;
}

static void smallest_pitches(const lr_scanner *scanner, double pitch_mm[3])
{
    pitch_mm[0] = pitch_mm[1] = pitch_mm[2] = HUGE_VAL;
    for (int m = 0; m < scanner->num_modules; m++) {
        for (int k = 0; k < 3; k++) {
            pitch_mm[k] = fmin(pitch_mm[k], scanner->modules[m].pitch_mm[k == 2]);
        }
    }
}

/* How far the nearest voxel's centre lies from 0 along an axis, in voxels. */
static double voxels_from_middle(const lr_grid *grid, int axis)
{
    const double first = grid->origin_mm[axis] / grid->voxel_mm[axis];
    const double nearest = fmin(fmax(round(-first), 0.0), grid->size[axis] - 1.0);
    return fabs(first + nearest);
}

/* Voxels so small that the sensitivity hardly changes within one, none of them on the axis: there
 * gaps stand opposite to gaps. */
static bool one_point_serves(const lr_grid *grid, double radius_mm)
{
    bool serves = voxels_from_middle(grid, 0) > 0.45 && voxels_from_middle(grid, 1) > 0.45;
    for (int k = 0; k < 3; k++) {
        serves = serves && grid->voxel_mm[k] <= most_single * radius_mm;
    }
    return serves;
}

void lr_operator_default_samples(const lr_scanner *scanner, const lr_grid *grid, int samples[3])
{
    const double radius_mm = nearest_module_mm(scanner);
    double pitch_mm[3];
    smallest_pitches(scanner, pitch_mm);
    const bool single = one_point_serves(grid, radius_mm);
    for (int k = 0; k < 3; k++) {
        const double spacing_mm =
            fmin(most_pitches[k] * pitch_mm[k], fmax(most_spacing * radius_mm, 0.5 * pitch_mm[k]));
        const double ratio = fmin(0.5 * grid->voxel_mm[k] / spacing_mm, MAX_SAMPLES + 1.0);
        samples[k] = single ? 1 : 2 * round_up(ratio);
    }
}

/* Penetration goes along lines, on every backend. */
static lr_mode settle_mode(const lr_operator_params *params)
{
    return params->penetration && params->mode == LR_MODE_AUTO ? LR_MODE_SAMPLED : params->mode;
}

lr_status lr_settings_complete(const lr_operator_params *params, const lr_log *log, lr_grid *grid,
                               struct lr_backend_params *settings)
{
    LR_TRY(check_presence(params, log));
    LR_TRY(check_numbers(params, log));
    LR_TRY(check_resources(params, log));
    LR_TRY(lr_grid_check(params->grid, log));
    *grid = *params->grid;
    *settings = (struct lr_backend_params){
        .scanner = params->lors->scanner,
        .lors = params->lors,
        .grid = grid,
        .mode = settle_mode(params),
        .rays = params->rays > 0 ? params->rays : DEFAULT_RAYS,
        .threads = params->threads > 0 ? params->threads : lr_num_processors(),
        .device = params->device,
        .shared = params->shared,
        .deterministic = params->deterministic,
        .penetration = params->penetration,
        .max_memory_bytes = params->max_memory_bytes,
        .log = log,
        .progress = params->progress,
    };
    if (settings->penetration) {
        LR_TRY(lr_penetration_check(settings->scanner, settings->mode, log));
    }
    LR_TRY(complete_samples(params, log, settings));
    LR_TRY(complete_mu(params, log, settings));
    return lr_coverage_check(grid, settings->samples, settings->scanner, log);
}
