/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "model/scanner/scanner_check.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"

#include <stdlib.h>

/* How far from unit and orthogonal given axes may be. */
#define AXIS_TOLERANCE 1e-6
#define FACE_TOLERANCE_MM 1e-12

/* BGO, which stops best of the usual crystals, has 0.096/mm at 511 keV, lead 0.18/mm. */
#define IMPLAUSIBLE_MU 0.3

const char *lr_scanner_title(const lr_scanner_params *params)
{
    return params->name ? params->name : "unnamed scanner";
}

static bool is_finite(const double *values, int count)
{
    for (int k = 0; k < count; k++)
        if (!isfinite(values[k])) return false;
    return true;
}

static bool is_positive(double value)
{
    return isfinite(value) && value > 0.0;
}

static lr_status check_axes(const char *title, int index, const lr_module *module, const lr_log *log)
{
    if (!is_finite(module->centre_mm, 3) || !is_finite(module->u, 3) || !is_finite(module->v, 3)) {
        return lr_error(log, LR_BAD_INPUT,
                        "%s: module %d has a number in its centre or axes that is not finite: "
                        "give three finite numbers each",
                        title, index);
    }
    const double length_u = vec_length(module->u);
    const double length_v = vec_length(module->v);
    if (fabs(length_u - 1.0) > AXIS_TOLERANCE || fabs(length_v - 1.0) > AXIS_TOLERANCE) {
        const bool is_u = fabs(length_u - 1.0) > AXIS_TOLERANCE;
        return lr_error(log, LR_BAD_INPUT, "%s: axis %s of module %d has the length %.9g: it must be 1 to within 1e-6",
                        title, is_u ? "u" : "v", index, is_u ? length_u : length_v);
    }
    const double cosine = vec_dot(module->u, module->v);
    if (fabs(cosine) > AXIS_TOLERANCE) {
        return lr_error(log, LR_BAD_INPUT,
                        "%s: axes u and v of module %d have the scalar product %.6g: they must be "
                        "orthogonal to within 1e-6",
                        title, index, cosine);
    }
    return LR_OK;
}

static lr_status check_sizes_along(const char *title, int index, const lr_module *module, int axis, const lr_log *log)
{
    const char *const name = axis == 0 ? "u" : "v";
    if (module->crystals[axis] < 1) {
        return lr_error(log, LR_BAD_INPUT, "%s: module %d has %d crystals along %s: it needs at least 1", title, index,
                        module->crystals[axis], name);
    }
    if (!is_positive(module->pitch_mm[axis])) {
        return lr_error(log, LR_BAD_INPUT, "%s: module %d has a pitch of %.6g mm along %s: it must be positive", title,
                        index, module->pitch_mm[axis], name);
    }
    if (!is_positive(module->face_mm[axis])) {
        return lr_error(log, LR_BAD_INPUT, "%s: module %d has a crystal face of %.6g mm along %s: it must be positive",
                        title, index, module->face_mm[axis], name);
    }
    if (module->face_mm[axis] > module->pitch_mm[axis] + FACE_TOLERANCE_MM) {
        return lr_error(log, LR_BAD_INPUT,
                        "%s: module %d has crystal faces of %.6g mm along %s, %.3g mm more than "
                        "the pitch of %.6g mm: reduce the face or raise the pitch",
                        title, index, module->face_mm[axis], name, module->face_mm[axis] - module->pitch_mm[axis],
                        module->pitch_mm[axis]);
    }
    return LR_OK;
}

static lr_status check_depths(const lr_scanner_params *params, int index)
{
    const lr_module *module = &params->modules[index];
    if (!is_positive(module->depth_mm)) {
        return lr_error(params->log, LR_BAD_INPUT, "%s: module %d has crystals of depth %.6g mm: it must be positive",
                        lr_scanner_title(params), index, module->depth_mm);
    }
    if (params->detection_depth_mm > module->depth_mm) {
        return lr_error(params->log, LR_BAD_INPUT,
                        "%s: the detection plane lies %.6g mm behind the front face, beyond the "
                        "%.6g mm long crystals of module %d: reduce the detection depth",
                        lr_scanner_title(params), params->detection_depth_mm, module->depth_mm, index);
    }
    return LR_OK;
}

static lr_status check_module(const lr_scanner_params *params, int index)
{
    const lr_module *module = &params->modules[index];
    const char *const title = lr_scanner_title(params);
    LR_TRY(check_axes(title, index, module, params->log));
    LR_TRY(check_sizes_along(title, index, module, 0, params->log));
    LR_TRY(check_sizes_along(title, index, module, 1, params->log));
    LR_TRY(check_depths(params, index));
    if (module->layer < 0 || module->layer >= LR_MAX_LAYERS || module->block < (module->layer > 0 ? 1 : 0)) {
        return lr_error(params->log, LR_BAD_INPUT,
                        "%s: module %d is layer %d of block %d: layers run from 0 to %d, and "
                        "blocks of them from 1",
                        title, index, module->layer, module->block, LR_MAX_LAYERS - 1);
    }
    const int num_positions = params->num_positions;
    if (num_positions > 0 && (module->position < 0 || module->position >= num_positions)) {
        return lr_error(params->log, LR_BAD_INPUT,
                        "%s: module %d stands at position %d around the ring: positions run from "
                        "0 to %d",
                        title, index, module->position, num_positions - 1);
    }
    return LR_OK;
}

static lr_status check_rules(const lr_scanner_params *params)
{
    const lr_coincidence *rules = &params->coincidence;
    const char *const title = lr_scanner_title(params);
    if (!isfinite(rules->field_of_view_mm) || rules->field_of_view_mm < 0.0) {
        return lr_error(params->log, LR_BAD_INPUT, "%s: the field of view is %.6g mm: it must be positive, or absent",
                        title, rules->field_of_view_mm);
    }
    if (params->num_positions == 0 && (rules->min_module_difference != 0 || rules->limits_ring_difference)) {
        return lr_error(params->log, LR_BAD_INPUT,
                        "%s: an explicit list of modules has no rings to count module or ring "
                        "differences in: remove %s or describe the scanner as a ring",
                        title, rules->min_module_difference != 0 ? "min_module_difference" : "max_ring_difference");
    }
    const int largest = params->num_positions / 2;
    if (rules->min_module_difference < 0 || rules->min_module_difference > largest) {
        return lr_error(params->log, LR_BAD_INPUT,
                        "%s: min_module_difference is %d: with %d modules around the ring it must "
                        "lie between 0 and %d",
                        title, rules->min_module_difference, params->num_positions, largest);
    }
    if (rules->limits_ring_difference && rules->max_ring_difference < 0) {
        return lr_error(params->log, LR_BAD_INPUT, "%s: max_ring_difference is %d: it must not be negative", title,
                        rules->max_ring_difference);
    }
    return LR_OK;
}

static lr_status check_count(const lr_scanner_params *params)
{
    int64_t crystals = 0;
    for (int m = 0; m < params->num_modules && crystals <= INT32_MAX; m++)
        crystals += (int64_t)params->modules[m].crystals[0] * params->modules[m].crystals[1];
    if (crystals > INT32_MAX) {
        return lr_error(params->log, LR_BAD_INPUT,
                        "%s: more than %d crystals: reduce the number of crystals per module", lr_scanner_title(params),
                        INT32_MAX);
    }
    return LR_OK;
}

static lr_status check_mu(const lr_scanner_params *params)
{
    double mu = params->crystal_mu_per_mm; /* the largest, or one that is refused */
    for (int m = 0; m < params->num_modules && isfinite(mu) && mu >= 0.0; m++) {
        const double own = params->modules[m].mu_per_mm;
        mu = own <= mu && own >= 0.0 ? mu : own;
    }
    if (!isfinite(mu) || mu < 0.0) {
        return lr_error(params->log, LR_BAD_INPUT,
                        "%s: the crystals attenuate with %.6g/mm: it must be positive, or absent "
                        "when it is not known",
                        lr_scanner_title(params), mu);
    }
    if (mu > IMPLAUSIBLE_MU) {
        lr_warn(params->log,
                "%s: the crystals attenuate with %.6g/mm, while lead has 0.18/mm at 511 keV: it "
                "looks like 1/cm; if so, divide it by 10",
                lr_scanner_title(params), mu);
    }
    return LR_OK;
}

lr_status lr_scanner_check_params(const lr_scanner_params *params)
{
    const char *const title = lr_scanner_title(params);
    if (params->num_modules < 2 || params->modules == NULL) {
        return lr_error(params->log, LR_BAD_INPUT, "%s: %d modules: a coincidence needs at least two", title,
                        params->modules ? params->num_modules : 0);
    }
    if (params->num_positions < 0)
        return lr_error(params->log, LR_USAGE, "%s: %d modules around the ring", title, params->num_positions);
    if (!isfinite(params->detection_depth_mm) || params->detection_depth_mm < 0.0) {
        return lr_error(params->log, LR_BAD_INPUT, "%s: the detection depth is %.6g mm: it must be zero or positive",
                        title, params->detection_depth_mm);
    }
    if (!isfinite(params->tof_resolution_ps) || params->tof_resolution_ps < 0.0) {
        return lr_error(params->log, LR_BAD_INPUT,
                        "%s: the time-of-flight resolution is %.6g ps: it must be positive, or "
                        "absent",
                        title, params->tof_resolution_ps);
    }
    LR_TRY(check_mu(params));
    for (int m = 0; m < params->num_modules; m++) LR_TRY(check_module(params, m));
    LR_TRY(check_count(params));
    return check_rules(params);
}
