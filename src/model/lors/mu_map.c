/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Attenuation maps in whichever unit, brought to 1/mm. */
#include <lr/factors.h>

#include "base/log.h"

#include <math.h>
#include <stdlib.h>

/* Nothing scanned reaches this in 1/mm (titanium has 0.04), and water in 1/cm exceeds it. */
static const double usual_per_mm = 0.05;
/* More than anything has at 511 keV: lead 0.18/mm, tungsten 0.25/mm. */
static const double most_per_mm = 0.3;
/* Half of water's: nothing that a person or phantom consists of stays below it everywhere. */
static const double least_per_mm = 0.0048;
/* Air and anything else differ by more Hounsfield units than this. */
static const double least_contrast = 50;

struct range {
    double low, high;
};

static struct range find_range(const lr_image *mu)
{
    const int64_t count = lr_grid_num_voxels(&mu->grid);
    struct range range = {INFINITY, -INFINITY};
    for (int64_t k = 0; k < count; k++) {
        range.low = fmin(range.low, (double)mu->values[k]);
        range.high = fmax(range.high, (double)mu->values[k]);
    }
    return range;
}

/* --- units --- */

/* Carney et al. 2006, 120 kVp; in 1/mm. */
static double of_hounsfield(double value)
{
    const double above_air = value + 1000;
    const double per_cm = value <= 47 ? 9.6e-5 * above_air : 5.10e-5 * above_air + 4.71e-2;
    return fmax(0.1 * per_cm, 0);
}

static void convert(lr_image *mu, lr_mu_unit unit)
{
    const int64_t count = lr_grid_num_voxels(&mu->grid);
    for (int64_t k = 0; k < count && unit != LR_MU_PER_MM; k++) {
        const double value = (double)mu->values[k];
        mu->values[k] = (float)(unit == LR_MU_HU ? of_hounsfield(value) : 0.1 * value);
    }
}

static lr_status check_hounsfield(const struct range *range, const lr_mu_map_params *params)
{
    if (range->high - range->low < least_contrast) {
        return lr_error(params->log, LR_BAD_INPUT,
                        "%s: values from %g to %g are no Hounsfield units, of which air has -1000 "
                        "and water 0: is the map in 1/cm or 1/mm?",
                        params->name, range->low, range->high);
    }
    if (range->low >= 0) {
        lr_warn(params->log,
                "%s: no value lies below 0 HU, while air has -1000: if the file holds CT numbers "
                "with an offset, subtract it first (often 1000 or 1024)",
                params->name);
    }
    return LR_OK;
}

static lr_status check_attenuation(const struct range *range, double factor, const lr_mu_map_params *params)
{
    if (range->high * factor > most_per_mm || range->low < -100) {
        return lr_error(params->log, LR_BAD_INPUT,
                        "%s: values from %g to %g are no attenuation at 511 keV, of which water "
                        "has 0.0096/mm and lead 0.18/mm: are they Hounsfield units? Then they "
                        "need that unit%s",
                        params->name, range->low, range->high,
                        range->low < 0 ? "" : "; or are they CT numbers with an offset, or an activity?");
    }
    return LR_OK;
}

static void warn_of_size(const struct range *range, double factor, lr_mu_unit unit, const lr_mu_map_params *params)
{
    if (range->high <= 0 && range->low >= 0) {
        lr_warn(params->log, "%s: the map is 0 everywhere: nothing is attenuated", params->name);
    } else if (range->high * factor < least_per_mm && unit == LR_MU_PER_CM) {
        lr_warn(params->log,
                "%s: reaches %g/cm, while water has 0.096/cm: it looks like 1/mm; if so, leave "
                "out the unit",
                params->name, range->high);
    }
}

/* --- place --- */

/* The box around the modules. */
static void find_box(const lr_scanner *scanner, double low[3], double high[3])
{
    for (int k = 0; k < 3; k++) {
        low[k] = INFINITY;
        high[k] = -INFINITY;
        for (int m = 0; m < scanner->num_modules; m++) {
            const lr_module *module = &scanner->modules[m];
            const double half = 0.5 * (module->crystals[0] * module->pitch_mm[0] * fabs(module->u[k]) +
                                       module->crystals[1] * module->pitch_mm[1] * fabs(module->v[k]));
            low[k] = fmin(low[k], module->centre_mm[k] - half);
            high[k] = fmax(high[k], module->centre_mm[k] + half);
        }
    }
}

/* What of the map lies between the modules, and where its middle is. */
struct place {
    double sum, inside, middle_mm[3];
};

static struct place find_place(const lr_image *mu, const double low[3], const double high[3])
{
    const lr_grid *grid = &mu->grid;
    struct place place = {0};
    const int64_t count = lr_grid_num_voxels(grid);
    for (int64_t row = 0; row < count; row++) {
        const double value = (double)mu->values[row];
        const int64_t line = row / grid->size[0];
        const int64_t index[3] = {row % grid->size[0], line % grid->size[1], line / grid->size[1]};
        bool within = true;
        for (int k = 0; k < 3 && value > 0; k++) {
            const double at_mm = grid->origin_mm[k] + (double)index[k] * grid->voxel_mm[k];
            const double half = 0.5 * grid->voxel_mm[k];
            within = within && at_mm + half > low[k] && at_mm - half < high[k];
            place.middle_mm[k] += value * at_mm;
        }
        place.sum += value > 0 ? value : 0;
        place.inside += value > 0 && within ? value : 0;
    }
    for (int k = 0; k < 3 && place.sum > 0; k++) place.middle_mm[k] /= place.sum;
    return place;
}

static lr_status check_place(const lr_image *mu, const lr_mu_map_params *params)
{
    double low[3], high[3];
    find_box(params->scanner, low, high);
    const struct place place = find_place(mu, low, high);
    const double *middle = place.middle_mm;
    if (place.sum > 0 && !(place.inside > 0)) {
        return lr_error(params->log, LR_BAD_INPUT,
                        "%s: the map misses the scanner: its middle is at (%.4g, %.4g, %.4g) mm, the "
                        "scanner's at (%.4g, %.4g, %.4g) mm: set the origin in its file",
                        params->name, middle[0], middle[1], middle[2], 0.5 * (low[0] + high[0]),
                        0.5 * (low[1] + high[1]), 0.5 * (low[2] + high[2]));
    }
    const double off_mm = hypot(middle[0] - 0.5 * (low[0] + high[0]), middle[1] - 0.5 * (low[1] + high[1]));
    if (place.sum > 0 && off_mm > 0.25 * fmax(high[0] - low[0], high[1] - low[1])) {
        lr_warn(params->log,
                "%s: the middle of the map, (%.4g, %.4g, %.4g) mm, lies %.4g mm beside the "
                "scanner's axis: is the origin in its file right?",
                params->name, middle[0], middle[1], middle[2], off_mm);
    }
    return LR_OK;
}

/* --- both --- */

lr_status lr_mu_map_settle(lr_image *mu, const lr_mu_map_params *given)
{
    lr_mu_map_params params = *given;
    params.name = given->name != NULL ? given->name : "the mu-map";
    const struct range range = find_range(mu);
    const bool by_value = given->unit == LR_MU_BY_VALUE;
    const lr_mu_unit unit = !by_value ? given->unit : range.high > usual_per_mm ? LR_MU_PER_CM : LR_MU_PER_MM;
    const double factor = unit == LR_MU_PER_CM ? 0.1 : 1;
    LR_TRY(unit == LR_MU_HU ? check_hounsfield(&range, &params) : check_attenuation(&range, factor, &params));
    if (params.scanner != NULL && unit != LR_MU_HU) LR_TRY(check_place(mu, &params));
    static const char *const names[] = {"", "1/mm", "1/cm", "Hounsfield units"};
    static const char *const waters[] = {"", "0.0096", "0.096", "0"};
    lr_info(params.log, "%s: attenuation taken as %s, at most %g (water has %s)%s", params.name, names[unit],
            range.high, waters[unit], by_value ? "; the unit may be given instead" : "");
    if (unit != LR_MU_HU) warn_of_size(&range, factor, unit, &params);
    convert(mu, unit);
    return unit == LR_MU_HU && params.scanner != NULL ? check_place(mu, &params) : LR_OK;
}
