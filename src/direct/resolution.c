/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Resolution models of paper 1 (lr/direct.h): section 6.1 and figure 8; section 5.2 for asymmetric kernels. */
#include "base/mem.h"
#include "base/units.h"
#include "direct/tables.h"

#include "base/log.h"

#include <math.h>
#include <stdlib.h>

static const double usual_width_mm = 5.8, usual_edge_mm = 288.0;

/* Tolerance at the end of a profile, as a fraction of a step. A point that is beyond the end by at most this tolerance
 * counts as on the end. Rounding errors, on the host or on a device, must not decide if a voxel at the end counts. */
static const double profile_tie = 1e-4;

/* Paper 1, section 6.1 and table III. */
static const double variant1_mm[2] = {4.8, 5.8}, variant1_at_mm = 75.0, variant1_edge_mm = 10.0;
static const double variant2_mm = 5.8, variant2_edge_mm = 12.0;
static const double variant3_mm = 5.8, variant3_edge_mm = 11.17;

void lr_radial_profiles_finish(lr_radial_profiles *profiles)
{
    lr_free_all(profiles->distance_mm, profiles->values);
    *profiles = (lr_radial_profiles){0};
}

double lr_tof_mm(double tof_ps)
{
    return LR_MM_PER_PS * tof_ps;
}

double lr_sigma_of(double fwhm)
{
    return fwhm / LR_FWHM_PER_SIGMA;
}

static double between(double low, double high, double share)
{
    return low + share * (high - low);
}

double lr_resolution_radial_mm(const lr_resolution *resolution, double distance_mm)
{
    const double edge_mm = resolution->edge_mm > 0 ? resolution->edge_mm : usual_edge_mm;
    const double width_mm = resolution->radial_mm > 0 ? resolution->radial_mm : usual_width_mm;
    const double at_mm = fmin(fabs(distance_mm), edge_mm);
    switch (resolution->model) {
    case LR_RADIAL_VARIANT1: {
        if (at_mm <= variant1_at_mm) return between(variant1_mm[0], variant1_mm[1], at_mm / variant1_at_mm);
        return between(variant1_mm[1], variant1_edge_mm, (at_mm - variant1_at_mm) / (edge_mm - variant1_at_mm));
    }

    case LR_RADIAL_VARIANT2: return between(variant2_mm, variant2_edge_mm, at_mm / edge_mm);
    case LR_RADIAL_VARIANT3: {
        const double share = at_mm / edge_mm;
        const double grown = variant3_edge_mm * variant3_edge_mm - variant3_mm * variant3_mm;
        return sqrt(variant3_mm * variant3_mm + grown * share * share);
    }

    case LR_RADIAL_LINEAR: return between(width_mm, resolution->radial_edge_mm, at_mm / edge_mm);
    case LR_RADIAL_MEASURED: return 0;
    case LR_RADIAL_INVARIANT: break;
    }
    return width_mm;
}

/* --- checking --- */

static lr_status check_width(const char *what, double value, const char *unit, const lr_log *log)
{
    if (isfinite(value) && value > 0) return LR_OK;
    return lr_error(log, LR_USAGE, "%s is %g %s: it must be positive", what, value, unit);
}

lr_status lr_resolution_complete(const lr_resolution *resolution, lr_resolution *complete, const lr_log *log)
{
    *complete = *resolution;
    complete->radial_mm = resolution->radial_mm == 0 ? usual_width_mm : resolution->radial_mm;
    complete->axial_mm = resolution->axial_mm == 0 ? usual_width_mm : resolution->axial_mm;
    complete->edge_mm = resolution->edge_mm == 0 ? usual_edge_mm : resolution->edge_mm;
    complete->second_width = resolution->second_width == 0 ? 2.0 : resolution->second_width;
    complete->second_shift = resolution->second_shift == 0 ? 1.0 : resolution->second_shift;
    LR_TRY(check_width("the time resolution", complete->tof_ps, "ps", log));
    LR_TRY(check_width("the radial width", complete->radial_mm, "mm", log));
    LR_TRY(check_width("the axial width", complete->axial_mm, "mm", log));
    LR_TRY(check_width("the edge's distance", complete->edge_mm, "mm", log));
    LR_TRY(check_width("the second Gaussian's width", complete->second_width, "times the first", log));
    if (!(isfinite(complete->second_shift) && complete->second_shift >= 0)) {
        return lr_error(log, LR_USAGE, "the second Gaussian's shift is %g: it must not be negative",
                        complete->second_shift);
    }
    if (complete->model == LR_RADIAL_LINEAR)
        LR_TRY(check_width("the radial width at the edge", complete->radial_edge_mm, "mm", log));
    if (complete->model == LR_RADIAL_VARIANT1 && complete->edge_mm <= variant1_at_mm) {
        return lr_error(log, LR_USAGE, "an edge at %g mm: variant 1 needs one beyond %g mm", complete->edge_mm,
                        variant1_at_mm);
    }
    if (complete->model != LR_RADIAL_MEASURED) return LR_OK;
    if (complete->asymmetric)
        return lr_error(log, LR_USAGE, "measured profiles are what they are: leave out the asymmetric kernel");

    const lr_radial_profiles *profiles = complete->measured;
    if (profiles == NULL || profiles->num_distances < 1 || profiles->num_offsets < 2)
        return lr_error(log, LR_USAGE, "measured kernels need at least one profile of at least two values");
    for (int d = 0; d < profiles->num_distances; d++) {
        const double least = d == 0 ? 0.0 : nextafter(profiles->distance_mm[d - 1], HUGE_VAL);
        if (!(isfinite(profiles->distance_mm[d]) && profiles->distance_mm[d] >= least)) {
            return lr_error(log, LR_BAD_INPUT,
                            "distance %d of the measured profiles is %g mm: distances ascend from 0 or more", d + 1,
                            profiles->distance_mm[d]);
        }
    }
    const double last_mm = profiles->first_offset_mm + (profiles->num_offsets - 1) * profiles->offset_step_mm;
    if (!(profiles->offset_step_mm > 0 && profiles->first_offset_mm < 0 && last_mm > 0 && isfinite(last_mm))) {
        return lr_error(log, LR_BAD_INPUT, "the measured profiles go from %g to %g mm: they must lie around 0",
                        profiles->first_offset_mm, last_mm);
    }
    for (int d = 0; d < profiles->num_distances; d++) {
        double sum = 0;
        for (int k = 0; k < profiles->num_offsets; k++) {
            const double value = profiles->values[(int64_t)d * profiles->num_offsets + k];
            if (!(isfinite(value) && value >= 0)) {
                return lr_error(log, LR_BAD_INPUT,
                                "the profile at %g mm has the value %g at %g mm: values are finite and not negative",
                                profiles->distance_mm[d], value,
                                profiles->first_offset_mm + k * profiles->offset_step_mm);
            }
            sum += value;
        }
        if (!(sum > 0))
            return lr_error(log, LR_BAD_INPUT, "the profile at %g mm is zero everywhere", profiles->distance_mm[d]);
    }
    return LR_OK;
}

/* --- profiles --- */

double lr_radial_profiles_at(const lr_radial_profiles *profiles, double distance_mm, double outward_mm)
{
    const int last = profiles->num_distances - 1;
    int row = 0;
    while (row < last && profiles->distance_mm[row + 1] <= distance_mm) row++;
    const int next = row < last ? row + 1 : row;
    const double span_mm = profiles->distance_mm[next] - profiles->distance_mm[row];
    const double share = span_mm > 0 ? fmax(0, (distance_mm - profiles->distance_mm[row]) / span_mm) : 0;
    const double at = (outward_mm - profiles->first_offset_mm) / profiles->offset_step_mm;
    const int end = profiles->num_offsets - 1;
    if (!(at >= -profile_tie && at <= end + profile_tie)) return 0;
    const int left = (int)fmin(fmax(floor(at), 0), end - 1);
    const double *a = profiles->values + (int64_t)row * profiles->num_offsets + left;
    const double *b = profiles->values + (int64_t)next * profiles->num_offsets + left;
    return between(between(a[0], a[1], at - left), between(b[0], b[1], at - left), share);
}

static double gaussian(double x, double sigma)
{
    const double t = x / sigma;
    return exp(-0.5 * t * t) / sigma;
}

double lr_resolution_profile(const lr_resolution *resolution, double distance_mm, double outward_mm)
{
    if (resolution->model == LR_RADIAL_MEASURED)
        return lr_radial_profiles_at(resolution->measured, distance_mm, outward_mm);
    const double sigma = lr_sigma_of(lr_resolution_radial_mm(resolution, distance_mm));
    const double first = gaussian(outward_mm, sigma);
    if (!resolution->asymmetric) return first;
    return first + gaussian(outward_mm + resolution->second_shift * sigma, resolution->second_width * sigma);
}

bool lr_resolution_is_symmetric(const lr_resolution *resolution)
{
    return !resolution->asymmetric && resolution->model != LR_RADIAL_MEASURED;
}

double lr_resolution_widest_sigma(const lr_resolution *resolution, double most_distance_mm, double k)
{
    if (resolution->model == LR_RADIAL_MEASURED) {
        const lr_radial_profiles *measured = resolution->measured;
        const double last_mm = measured->first_offset_mm + (measured->num_offsets - 1) * measured->offset_step_mm;
        return fmax(-measured->first_offset_mm, last_mm) / k;
    }
    /* Widths are monotonic between the axis and the edge. */
    const double sigma = lr_sigma_of(
        fmax(lr_resolution_radial_mm(resolution, 0), lr_resolution_radial_mm(resolution, most_distance_mm)));
    if (!resolution->asymmetric) return sigma;
    return sigma * fmax(1, resolution->second_width + resolution->second_shift / k);
}
