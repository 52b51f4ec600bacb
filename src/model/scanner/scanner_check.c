/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The checks of a scanner: numbers, axes, sizes, rules, and modules that overlap. */
#include "model/scanner/scanner.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"

#include <stdlib.h>

/* Largest deviation of given axes from unit and orthogonal. */
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

static lr_status check_module(const lr_scanner_params *params, int index)
{
    const lr_module *module = &params->modules[index];
    const char *const title = lr_scanner_title(params);
    LR_TRY(check_axes(title, index, module, params->log));
    LR_TRY(check_sizes_along(title, index, module, 0, params->log));
    LR_TRY(check_sizes_along(title, index, module, 1, params->log));
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

    for (int m = 0; m < params->num_modules; m++) LR_TRY(check_module(params, m));
    int64_t crystals = 0;
    for (int m = 0; m < params->num_modules && crystals <= INT32_MAX; m++)
        crystals += (int64_t)params->modules[m].crystals[0] * params->modules[m].crystals[1];
    if (crystals > INT32_MAX) {
        return lr_error(params->log, LR_BAD_INPUT,
                        "%s: more than %d crystals: reduce the number of crystals per module", lr_scanner_title(params),
                        INT32_MAX);
    }

    return check_rules(params);
}

/* --- modules near each other --- */

struct entry {
    double low;
    int module;
};

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    return x->low != y->low ? (x->low > y->low) - (x->low < y->low) : x->module - y->module;
}

static int compare_numbers(const void *a, const void *b)
{
    const int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static lr_status sort_modules(struct lr_module_index *index, const lr_log *log)
{
    struct entry *entries = lr_alloc(index->count, sizeof(*entries), "an index of modules", log);
    if (entries == NULL) return LR_FAILED;
    for (int m = 0; m < index->count; m++) entries[m] = (struct entry){index->bounds[m][2 * index->axis], m};
    qsort(entries, (size_t)index->count, sizeof(*entries), compare_entries);
    double reach = -INFINITY;
    for (int k = 0; k < index->count; k++) {
        index->order[k] = entries[k].module;
        reach = fmax(reach, index->bounds[entries[k].module][2 * index->axis + 1]);
        index->reach[k] = reach;
    }
    free(entries);
    return LR_OK;
}

lr_status lr_module_index_init(struct lr_module_index *index, const lr_module *modules, int count, const lr_log *log)
{
    static const char *const what = "an index of modules";
    *index = (struct lr_module_index){.count = count};
    index->bounds = lr_alloc(count, sizeof(*index->bounds), what, log);
    index->order = index->bounds ? lr_alloc(count, sizeof(*index->order), what, log) : NULL;
    index->reach = index->order ? lr_alloc(count, sizeof(*index->reach), what, log) : NULL;
    index->met = index->reach ? lr_alloc(count, sizeof(*index->met), what, log) : NULL;
    if (index->met == NULL) {
        lr_module_index_finish(index);
        return LR_FAILED;
    }
    for (int m = 0; m < count; m++) {
        const lr_module *module = &modules[m];
        double middle[3];
        vec_add_scaled(module->centre_mm, -0.5 * module->depth_mm, module->normal, middle);
        for (int k = 0; k < 3; k++) {
            const double half = 0.5 * (module->crystals[0] * module->pitch_mm[0] * fabs(module->u[k]) +
                                       module->crystals[1] * module->pitch_mm[1] * fabs(module->v[k]) +
                                       module->depth_mm * fabs(module->normal[k]));
            index->bounds[m][2 * k] = middle[k] - half;
            index->bounds[m][2 * k + 1] = middle[k] + half;
        }
    }

    /* The axis along which the modules cover least of what they span. */
    int best = 0;
    double least = INFINITY;
    for (int k = 0; k < 3; k++) {
        double low = INFINITY, high = -INFINITY, sum = 0;
        for (int m = 0; m < index->count; m++) {
            low = fmin(low, index->bounds[m][2 * k]);
            high = fmax(high, index->bounds[m][2 * k + 1]);
            sum += index->bounds[m][2 * k + 1] - index->bounds[m][2 * k];
        }
        if (sum / (high - low) < least) {
            least = sum / (high - low);
            best = k;
        }
    }
    index->axis = best;

    const lr_status status = sort_modules(index, log);
    if (status != LR_OK) lr_module_index_finish(index);
    return status;
}

void lr_module_index_finish(struct lr_module_index *index)
{
    free(index->bounds);
    free(index->order);
    free(index->reach);
    free(index->met);
    *index = (struct lr_module_index){0};
}

/* The first place in the order from which on something reaches up to `low`. */
static int first_reaching(const struct lr_module_index *index, double low)
{
    int begin = 0, end = index->count;
    while (begin < end) {
        const int middle = begin + (end - begin) / 2;
        if (index->reach[middle] < low)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

static bool meet(const double a[6], const double b[6])
{
    return a[0] <= b[1] && b[0] <= a[1] && a[2] <= b[3] && b[2] <= a[3] && a[4] <= b[5] && b[4] <= a[5];
}

int lr_module_index_meet(struct lr_module_index *index, int module)
{
    const double *bounds = index->bounds[module];
    const int low = 2 * index->axis;
    int count = 0;
    for (int k = first_reaching(index, bounds[low]); k < index->count; k++) {
        const int other = index->order[k];
        if (index->bounds[other][low] > bounds[low + 1]) break;
        if (other > module && meet(bounds, index->bounds[other])) index->met[count++] = other;
    }
    qsort(index->met, (size_t)count, sizeof(*index->met), compare_numbers);
    return count;
}

/* --- overlaps --- */

/* The space that a module's crystals fill. */
struct box {
    double centre[3];
    const double *axes[3]; /* u, v, normal */
    double half[3];        /* extents along them */
};

static struct box module_box(const lr_module *module)
{
    struct box box = {.axes = {module->u, module->v, module->normal}};
    for (int k = 0; k < 2; k++) box.half[k] = 0.5 * module->crystals[k] * module->pitch_mm[k];
    box.half[2] = 0.5 * module->depth_mm;
    vec_add_scaled(module->centre_mm, -box.half[2], module->normal, box.centre);
    return box;
}

static double half_shadow(const struct box *box, const double axis[3])
{
    double sum = 0.0;
    for (int k = 0; k < 3; k++) sum += box->half[k] * fabs(vec_dot(box->axes[k], axis));
    return sum;
}

/* Overlap of the shadows on an axis of any length; infinite for one that vanishes. */
static double shadow_overlap(const struct box *a, const struct box *b, const double between[3], const double axis[3])
{
    const double length = vec_length(axis);
    if (length < 1e-12) return INFINITY;
    return (half_shadow(a, axis) + half_shadow(b, axis) - fabs(vec_dot(between, axis))) / length;
}

static double box_overlap(const struct box *a, const struct box *b)
{
    double between[3];
    vec_sub(b->centre, a->centre, between);
    double least = INFINITY;
    for (int k = 0; k < 3; k++) {
        least = fmin(least, shadow_overlap(a, b, between, a->axes[k]));
        least = fmin(least, shadow_overlap(a, b, between, b->axes[k]));
    }
    for (int k = 0; k < 9 && least > 0.0; k++) {
        double axis[3];
        vec_cross(a->axes[k / 3], b->axes[k % 3], axis);
        least = fmin(least, shadow_overlap(a, b, between, axis));
    }
    return least;
}

double lr_module_overlap_mm(const lr_module *a, const lr_module *b)
{
    const struct box box_a = module_box(a);
    const struct box box_b = module_box(b);
    return box_overlap(&box_a, &box_b);
}

/* Refuses overlaps of one module with those numbered above it. */
static lr_status check_overlaps_of(const char *title, const lr_module *modules, struct lr_module_index *index,
                                   int module, const lr_log *log)
{
    const struct box box = module_box(&modules[module]);
    const int count = lr_module_index_meet(index, module);
    for (int k = 0; k < count; k++) {
        const struct box other = module_box(&modules[index->met[k]]);
        const double overlap = box_overlap(&box, &other);
        if (overlap > LR_OVERLAP_TOLERANCE_MM) {
            const bool is_much = overlap > 0.5 * modules[module].depth_mm;
            return lr_error(log, LR_BAD_INPUT,
                            "%s: modules %d and %d overlap by %.3g mm: reduce the pitch or the "
                            "number of modules, or move them apart%s",
                            title, module, index->met[k], overlap,
                            is_much ? "; a radius in cm does this, and a radius that is half of "
                                      "what it should be"
                                    : "");
        }
    }
    return LR_OK;
}

lr_status lr_scanner_check_overlaps(const char *title, const lr_module *modules, int num_modules, const lr_log *log)
{
    struct lr_module_index index;
    lr_status status = lr_module_index_init(&index, modules, num_modules, log);
    for (int m = 0; m < num_modules && status == LR_OK; m++) status = check_overlaps_of(title, modules, &index, m, log);
    lr_module_index_finish(&index);
    return status;
}
