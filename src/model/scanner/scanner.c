/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Scanners: checks, modules and crystals, overlaps, layers and materials, and the relative positions of modules. */
#include "model/scanner/scanner.h"

#include "base/clean_text.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/vec.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* --- checks --- */

/* Largest difference between the length of a given axis and 1, and largest scalar product of two given axes. */
#define AXIS_TOLERANCE 1e-6

/* Largest excess of a crystal face over the pitch, mm. */
#define FACE_TOLERANCE_MM 1e-12

/* Attenuation in 1/mm that no crystal reaches. BGO has 0.096/mm at 511 keV, more than the other usual crystals, and
 * lead has 0.18/mm. */
#define IMPLAUSIBLE_MU 0.3

double lr_shortest_decimal(double value, int most, double off)
{
    double power = 1;
    for (int decimals = 0; decimals < most; decimals++, power *= 10) {
        const double rounded = round(value * power) / power;
        if (fabs(rounded - value) <= off) return rounded;
    }
    return value;
}

bool lr_module_is_mirrored(const lr_module *module)
{
    double product[3];
    vec_cross(module->u, module->v, product);
    return vec_dot(product, module->normal) > 0;
}

const char *lr_scanner_title(const lr_scanner_params *params)
{
    return params->name ? params->name : "unnamed scanner";
}

static lr_status check_module(const lr_scanner_params *params, int index)
{
    const lr_module *module = &params->modules[index];
    const char *const title = lr_scanner_title(params);
    const lr_log *log = params->log;
    bool is_finite = true;
    for (int k = 0; k < 3; k++)
        is_finite = is_finite && isfinite(module->centre_mm[k]) && isfinite(module->u[k]) && isfinite(module->v[k]);
    if (!is_finite) {
        return lr_error(
            log, LR_BAD_INPUT,
            "%s: module %d has a number in its centre or axes that is not finite: give three finite numbers each",
            title, index);
    }
    const double length_u = vec_length(module->u), length_v = vec_length(module->v);
    const bool is_u_unit = fabs(length_u - 1.0) <= AXIS_TOLERANCE, is_v_unit = fabs(length_v - 1.0) <= AXIS_TOLERANCE;
    if (!is_u_unit || !is_v_unit) {
        return lr_error(log, LR_BAD_INPUT, "%s: axis %s of module %d has the length %.9g: it must be 1 to within 1e-6",
                        title, is_u_unit ? "v" : "u", index, is_u_unit ? length_v : length_u);
    }
    const double cosine = vec_dot(module->u, module->v);
    if (fabs(cosine) > AXIS_TOLERANCE) {
        return lr_error(
            log, LR_BAD_INPUT,
            "%s: axes u and v of module %d have the scalar product %.6g: they must be orthogonal to within 1e-6", title,
            index, cosine);
    }
    for (int axis = 0; axis < 2; axis++) {
        const char *const name = axis == 0 ? "u" : "v";
        const double pitch = module->pitch_mm[axis], face = module->face_mm[axis];
        if (module->crystals[axis] < 1) {
            return lr_error(log, LR_BAD_INPUT, "%s: module %d has %d crystals along %s: it needs at least 1", title,
                            index, module->crystals[axis], name);
        }
        if (!(isfinite(pitch) && pitch > 0.0)) {
            return lr_error(log, LR_BAD_INPUT, "%s: module %d has a pitch of %.6g mm along %s: it must be positive",
                            title, index, pitch, name);
        }
        if (!(isfinite(face) && face > 0.0)) {
            return lr_error(log, LR_BAD_INPUT,
                            "%s: module %d has a crystal face of %.6g mm along %s: it must be positive", title, index,
                            face, name);
        }
        if (face > pitch + FACE_TOLERANCE_MM) {
            return lr_error(log, LR_BAD_INPUT,
                            "%s: module %d has crystal faces of %.6g mm along %s, %.3g mm more than the pitch of %.6g "
                            "mm: raise pitch_mm or reduce face_mm",
                            title, index, face, name, face - pitch, pitch);
        }
    }
    if (!(isfinite(module->depth_mm) && module->depth_mm > 0.0)) {
        return lr_error(params->log, LR_BAD_INPUT, "%s: module %d has crystals of depth %.6g mm: it must be positive",
                        lr_scanner_title(params), index, module->depth_mm);
    }
    if (params->detection_depth_mm > module->depth_mm) {
        return lr_error(params->log, LR_BAD_INPUT,
                        "%s: the detection plane lies %.6g mm behind the front face, beyond the %.6g mm long crystals "
                        "of module %d: reduce detection_depth_mm",
                        lr_scanner_title(params), params->detection_depth_mm, module->depth_mm, index);
    }

    if (module->layer < 0 || module->layer >= LR_MAX_LAYERS || module->block < (module->layer > 0 ? 1 : 0)) {
        return lr_error(params->log, LR_BAD_INPUT,
                        "%s: module %d is layer %d of block %d: layers run from 0 to %d, and blocks of them from 1",
                        title, index, module->layer, module->block, LR_MAX_LAYERS - 1);
    }
    const int num_positions = params->num_positions;
    if (num_positions > 0 && (module->position < 0 || module->position >= num_positions)) {
        return lr_error(params->log, LR_BAD_INPUT,
                        "%s: module %d stands at position %d around the ring: positions run from 0 to %d", title, index,
                        module->position, num_positions - 1);
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
                        "%s: the time-of-flight resolution is %.6g ps: it must be positive, or absent", title,
                        params->tof_resolution_ps);
    }
    double mu = params->crystal_mu_per_mm; /* the largest value, or an invalid one */
    for (int m = 0; m < params->num_modules && isfinite(mu) && mu >= 0.0; m++) {
        const double own = params->modules[m].mu_per_mm;
        mu = own <= mu && own >= 0.0 ? mu : own;
    }
    if (!isfinite(mu) || mu < 0.0) {
        return lr_error(params->log, LR_BAD_INPUT,
                        "%s: the crystals attenuate with %.6g/mm: it must be positive, or absent when it is not known",
                        lr_scanner_title(params), mu);
    }
    if (mu > IMPLAUSIBLE_MU) {
        lr_warn(params->log,
                "%s: the crystals attenuate with %.6g/mm, while lead has 0.18/mm at 511 keV: it looks like 1/cm; if "
                "so, divide it by 10",
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

    const lr_coincidence *rules = &params->coincidence;
    if (!isfinite(rules->field_of_view_mm) || rules->field_of_view_mm < 0.0) {
        return lr_error(params->log, LR_BAD_INPUT, "%s: the field of view is %.6g mm: it must be positive, or absent",
                        title, rules->field_of_view_mm);
    }
    if (params->num_positions == 0 && (rules->min_module_difference != 0 || rules->limits_ring_difference)) {
        return lr_error(params->log, LR_BAD_INPUT,
                        "%s: an explicit list of modules has no rings to count module or ring differences in: remove "
                        "%s or describe the scanner as a ring",
                        title, rules->min_module_difference != 0 ? "min_module_difference" : "max_ring_difference");
    }
    const int largest = params->num_positions / 2;
    if (rules->min_module_difference < 0 || rules->min_module_difference > largest) {
        return lr_error(
            params->log, LR_BAD_INPUT,
            "%s: min_module_difference is %d: with %d modules around the ring it must lie between 0 and %d, "
            "for it counts modules, not crystals",
            title, rules->min_module_difference, params->num_positions, largest);
    }
    if (rules->limits_ring_difference && rules->max_ring_difference < 0) {
        return lr_error(params->log, LR_BAD_INPUT, "%s: max_ring_difference is %d: it must not be negative", title,
                        rules->max_ring_difference);
    }
    return LR_OK;
}

/* --- modules near each other --- */

/* An entry of the index: the lower end of a module's bounding box along the axis by which the index is sorted. */
struct entry {
    double low;
    int module;
};

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    return lr_order_then(lr_order(x->low, y->low), x->module - y->module);
}

lr_status lr_module_index_init(struct lr_module_index *index, const lr_module *modules, int count, const lr_log *log)
{
    static const char *const what = "an index of modules";
    *index = (struct lr_module_index){.count = count};
    index->bounds = lr_alloc(count, sizeof(*index->bounds), what, log);
    index->order = index->bounds ? lr_alloc(count, sizeof(*index->order), what, log) : NULL;
    index->reach = index->order ? lr_alloc(count, sizeof(*index->reach), what, log) : NULL;
    index->met = index->reach ? lr_alloc(count, sizeof(*index->met), what, log) : NULL;
    struct entry *entries = index->met ? lr_alloc(count, sizeof(*entries), what, log) : NULL;
    if (entries == NULL) {
        lr_module_index_finish(index);
        return LR_FAILED;
    }
    for (int m = 0; m < count; m++) {
        const lr_module *module = &modules[m];
        double middle[3];
        vec_add_scaled(module->centre_mm, -0.5 * module->depth_mm, module->normal, middle);
        for (int k = 0; k < 3; k++) {
            const double half = lr_module_half_mm(module, k) + 0.5 * (module->depth_mm * fabs(module->normal[k]));
            index->bounds[m][2 * k] = middle[k] - half;
            index->bounds[m][2 * k + 1] = middle[k] + half;
        }
    }

    /* The modules are sorted along one axis: the one for which the sum of the modules' extents, divided by the
     * scanner's extent, is smallest. */
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
            index->axis = k;
        }
    }
    for (int m = 0; m < count; m++) entries[m] = (struct entry){index->bounds[m][2 * index->axis], m};
    qsort(entries, (size_t)count, sizeof(*entries), compare_entries);
    double reach = -INFINITY;
    for (int k = 0; k < count; k++) {
        index->order[k] = entries[k].module;
        reach = fmax(reach, index->bounds[entries[k].module][2 * index->axis + 1]);
        index->reach[k] = reach;
    }
    free(entries);
    return LR_OK;
}

void lr_module_index_finish(struct lr_module_index *index)
{
    lr_free_all(index->bounds, index->order, index->reach, index->met);
    *index = (struct lr_module_index){0};
}

int lr_module_index_meet(struct lr_module_index *index, int module)
{
    const double *own = index->bounds[module];
    const int low = 2 * index->axis;
    /* The first index k for which one of the modules order[0 .. k] extends as far as this module. */
    const int first = (int)lr_first_double_at_least(index->reach, index->count, own[low]);
    int count = 0;
    for (int k = first; k < index->count; k++) {
        const int other = index->order[k];
        const double *bounds = index->bounds[other];
        if (bounds[low] > own[low + 1]) break;
        bool touches = true;
        for (int axis = 0; axis < 3; axis++)
            touches = touches && own[2 * axis] <= bounds[2 * axis + 1] && bounds[2 * axis] <= own[2 * axis + 1];
        if (other > module && touches) index->met[count++] = other;
    }
    qsort(index->met, (size_t)count, sizeof(*index->met), lr_compare_ints);
    return count;
}

/* --- overlaps --- */

/* The space that a module's crystals fill. */
struct box {
    double centre[3];
    const double *axes[3]; /* u, v, normal */
    double half[3];        /* half extents along the axes */
};

static struct box module_box(const lr_module *module)
{
    struct box box = {.axes = {module->u, module->v, module->normal}};
    for (int k = 0; k < 2; k++) box.half[k] = 0.5 * module->crystals[k] * module->pitch_mm[k];
    box.half[2] = 0.5 * module->depth_mm;
    vec_add_scaled(module->centre_mm, -box.half[2], module->normal, box.centre);
    return box;
}

/* Overlap of the projections of two boxes on an axis of any length; infinite for an axis of length 0. */
static double shadow_overlap(const struct box *a, const struct box *b, const double between[3], const double axis[3])
{
    const double length = vec_length(axis);
    if (length < 1e-12) return INFINITY;
    double half_a = 0.0, half_b = 0.0; /* half lengths of the projections */
    for (int k = 0; k < 3; k++) {
        half_a += a->half[k] * fabs(vec_dot(a->axes[k], axis));
        half_b += b->half[k] * fabs(vec_dot(b->axes[k], axis));
    }
    return (half_a + half_b - fabs(vec_dot(between, axis))) / length;
}

double lr_module_overlap_mm(const lr_module *module_a, const lr_module *module_b)
{
    const struct box a = module_box(module_a), b = module_box(module_b);
    double between[3];
    vec_sub(b.centre, a.centre, between);
    double least = INFINITY;
    for (int k = 0; k < 3; k++) {
        least = fmin(least, shadow_overlap(&a, &b, between, a.axes[k]));
        least = fmin(least, shadow_overlap(&a, &b, between, b.axes[k]));
    }
    for (int k = 0; k < 9 && least > 0.0; k++) {
        double axis[3];
        vec_cross(a.axes[k / 3], b.axes[k % 3], axis);
        least = fmin(least, shadow_overlap(&a, &b, between, axis));
    }
    return least;
}

/* Length along the axis of the space that a module's crystals fill. */
static double axial_mm(const lr_module *module)
{
    return 2 * lr_module_half_mm(module, 2) + module->depth_mm * fabs(module->normal[2]);
}

bool lr_module_say_overlap(const lr_module *a, const lr_module *b, char words[LR_OVERLAP_WORDS])
{
    double between[3]; /* from the middle of one module's crystals to that of the other's */
    for (int k = 0; k < 3; k++) {
        between[k] =
            b->centre_mm[k] - 0.5 * b->depth_mm * b->normal[k] - (a->centre_mm[k] - 0.5 * a->depth_mm * a->normal[k]);
    }
    const bool is_axial = fabs(between[2]) > hypot(between[0], between[1]);
    if (is_axial) {
        const double apart_mm = fabs(between[2]), length_mm = 0.5 * (axial_mm(a) + axial_mm(b));
        const bool is_cm = 10 * apart_mm > 0.99 * length_mm && 10 * apart_mm < 1.5 * length_mm;
        const int used = snprintf(words, LR_OVERLAP_WORDS, "%.3g mm along the axis", length_mm - apart_mm);
        if (is_cm) {
            snprintf(words + used, LR_OVERLAP_WORDS - (size_t)used, ", as with a distance in cm (%.4g mm)",
                     10 * apart_mm);
        }
    } else {
        const double overlap = lr_module_overlap_mm(a, b);
        snprintf(words, LR_OVERLAP_WORDS, "%.3g mm%s", overlap,
                 overlap > 0.5 * a->depth_mm ? ", the shortest way apart" : "");
    }
    return is_axial;
}

/* --- scanners --- */

/* The scalar product of a module's normal and its position counts as zero if it is below this number times the distance
 * from the origin (docs/method/common.md, "Frame and scanner"). */
#define NORMAL_TOLERANCE 1e-9

/* Sets a module's normal, which points inwards, from its centre and axes. */
static void module_set_normal(lr_module *module)
{
    const double *f = module->centre_mm;
    double n[3];
    vec_cross(module->u, module->v, n);
    const double zero = NORMAL_TOLERANCE * vec_length(f);
    const double radial = n[0] * f[0] + n[1] * f[1];
    const double outward = fabs(radial) > zero ? radial : vec_dot(n, f);
    const double sign = outward > zero ? -1.0 : 1.0;
    for (int k = 0; k < 3; k++) module->normal[k] = sign * n[k];
}

lr_scanner *lr_scanner_create_sized(size_t given_bytes, const lr_scanner_params *given)
{
    LR_TAKE(lr_scanner_params, params, given, given_bytes);
    if (lr_scanner_check_params(params) != LR_OK) return NULL;
    lr_scanner *scanner = lr_alloc(1, sizeof(*scanner), "a scanner", params->log);
    if (scanner == NULL) return NULL;
    scanner->num_modules = params->num_modules;
    scanner->num_positions = params->num_positions;
    scanner->coincidence = params->coincidence;
    scanner->detection_depth_mm = params->detection_depth_mm;
    scanner->tof_resolution_ps = params->tof_resolution_ps;
    scanner->crystal_mu_per_mm = params->crystal_mu_per_mm;
    scanner->name = lr_copy_string(lr_scanner_title(params), params->log);
    scanner->source = lr_copy_string(params->source, params->log);
    if (scanner->name != NULL) lr_clean_text(scanner->name);
    if (scanner->source != NULL) lr_clean_text_but(scanner->source, "\n");
    scanner->modules = lr_alloc(params->num_modules, sizeof(*scanner->modules), "the modules", params->log);
    scanner->first_crystal =
        lr_alloc((int64_t)params->num_modules + 1, sizeof(*scanner->first_crystal), "the modules", params->log);
    if (scanner->name == NULL || (params->source != NULL && scanner->source == NULL) || scanner->modules == NULL ||
        scanner->first_crystal == NULL) {
        lr_scanner_destroy(scanner);
        return NULL;
    }
    for (int m = 0; m < scanner->num_modules; m++) {
        lr_module *module = &scanner->modules[m];
        *module = params->modules[m];
        /* Given axes may differ from orthogonal unit vectors by up to 1e-6. u keeps its direction, and v is
           corrected. */
        (void)vec_normalise(module->u);
        vec_add_scaled(module->v, -vec_dot(module->u, module->v), module->u, module->v);
        (void)vec_normalise(module->v);
        module_set_normal(module);

        scanner->first_crystal[m] = scanner->num_crystals;
        scanner->num_crystals += module->crystals[0] * module->crystals[1];
    }
    scanner->first_crystal[scanner->num_modules] = scanner->num_crystals;

    /* The boxes that two modules' crystals fill (pitch rectangle x depth, behind the front face) must not overlap. */
    struct lr_module_index index;
    lr_status status = lr_module_index_init(&index, scanner->modules, scanner->num_modules, params->log);
    for (int m = 0; m < scanner->num_modules && status == LR_OK; m++) {
        const int num_met = lr_module_index_meet(&index, m);
        for (int k = 0; k < num_met && status == LR_OK; k++) {
            const lr_module *module = &scanner->modules[m], *other = &scanner->modules[index.met[k]];
            const double overlap = lr_module_overlap_mm(module, other);
            if (!(overlap > LR_OVERLAP_TOLERANCE_MM)) continue;
            char words[LR_OVERLAP_WORDS];
            const bool is_axial = lr_module_say_overlap(module, other, words);
            status = is_axial
                         ? lr_error(params->log, LR_BAD_INPUT,
                                    "%s: modules %d and %d overlap by %s: their centres lie %.4g mm apart, and a "
                                    "module is %.4g mm long: give a larger distance from ring to ring (ring_pitch_mm)",
                                    scanner->name, m, index.met[k], words,
                                    fabs(other->centre_mm[2] - module->centre_mm[2]), axial_mm(module))
                         : lr_error(params->log, LR_BAD_INPUT,
                                    "%s: modules %d and %d overlap by %s: %sreduce the pitch or the number of modules, "
                                    "or move them apart (in a ring: a larger radius_mm)",
                                    scanner->name, m, index.met[k], words,
                                    overlap > 0.5 * module->depth_mm
                                        ? "a radius in cm, or half of the right one, may be the reason; else "
                                        : "");
        }
    }
    lr_module_index_finish(&index);
    if (status != LR_OK) {
        lr_scanner_destroy(scanner);
        return NULL;
    }
    return scanner;
}

void lr_scanner_destroy(lr_scanner *scanner)
{
    if (scanner == NULL) return;
    lr_free_all(scanner->name, scanner->source, scanner->modules, scanner->first_crystal, scanner->castor_order,
                scanner);
}

int lr_scanner_module_of(const lr_scanner *scanner, int crystal)
{
    /* The first guess assumes that all modules have the same number of crystals, which is usual. */
    if (crystal >= 0 && crystal < scanner->num_crystals) {
        const int guess = (int)((crystal + 0.5) * scanner->num_modules / scanner->num_crystals);
        if (scanner->first_crystal[guess] <= crystal && crystal < scanner->first_crystal[guess + 1]) return guess;
    }
    return (int)lr_first_int_at_least(scanner->first_crystal + 1, scanner->num_modules - 1, (int64_t)crystal + 1);
}

void lr_module_crystal_centre(const lr_module *module, int p, int q, double centre_mm[3])
{
    const double along_u = (p - 0.5 * (module->crystals[0] - 1)) * module->pitch_mm[0];
    const double along_v = (q - 0.5 * (module->crystals[1] - 1)) * module->pitch_mm[1];
    vec_add_scaled(module->centre_mm, -0.5 * module->depth_mm, module->normal, centre_mm);
    vec_add_scaled(centre_mm, along_u, module->u, centre_mm);
    vec_add_scaled(centre_mm, along_v, module->v, centre_mm);
}

void lr_scanner_crystal_centre(const lr_scanner *scanner, int crystal, double centre_mm[3])
{
    const int m = lr_scanner_module_of(scanner, crystal);
    const lr_module *module = &scanner->modules[m];
    const int place = crystal - scanner->first_crystal[m];
    lr_module_crystal_centre(module, place % module->crystals[0], place / module->crystals[0], centre_mm);
}

void lr_scanner_hit_centre(const lr_scanner *scanner, int crystal, double centre_mm[3])
{
    const lr_module *module = &scanner->modules[lr_scanner_module_of(scanner, crystal)];
    lr_scanner_crystal_centre(scanner, crystal, centre_mm);
    vec_add_scaled(centre_mm, 0.5 * module->depth_mm - scanner->detection_depth_mm, module->normal, centre_mm);
}

void lr_scanner_crystal_centres(const lr_scanner *scanner, double (*centres_mm)[3])
{
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        const int first = scanner->first_crystal[m], nu = module->crystals[0];
        for (int c = first; c < scanner->first_crystal[m + 1]; c++)
            lr_module_crystal_centre(module, (c - first) % nu, (c - first) / nu, centres_mm[c]);
    }
}

void lr_scanner_hit_centres(const lr_scanner *scanner, double (*centres_mm)[3])
{
    lr_scanner_crystal_centres(scanner, centres_mm);
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        const double towards_front_mm = 0.5 * module->depth_mm - scanner->detection_depth_mm;
        for (int c = scanner->first_crystal[m]; c < scanner->first_crystal[m + 1]; c++)
            vec_add_scaled(centres_mm[c], towards_front_mm, module->normal, centres_mm[c]);
    }
}

void lr_scanner_detection_centre(const lr_scanner *scanner, int module, double centre_mm[3])
{
    const lr_module *at = &scanner->modules[module];
    vec_add_scaled(at->centre_mm, -scanner->detection_depth_mm, at->normal, centre_mm);
}

/* --- layers --- */

double lr_layer_front_mm(const lr_layer *layers, int layer)
{
    double front = 0;
    for (int k = 0; k <= layer; k++) {
        front = layers[k].front_mm > 0 ? layers[k].front_mm : front;
        front += k < layer ? layers[k].depth_mm : 0;
    }
    return front;
}

struct lr_layer_fault lr_layers_find_fault(const lr_layer *layers, int num_layers, double depth_mm)
{
    double end = 0;
    for (int k = 0; k < num_layers; k++) {
        const double front = lr_layer_front_mm(layers, k);
        if (front < end - LR_OVERLAP_TOLERANCE_MM) return (struct lr_layer_fault){k, end - front, false};
        end = front + layers[k].depth_mm;
        if (end > depth_mm + LR_OVERLAP_TOLERANCE_MM) return (struct lr_layer_fault){k, end - depth_mm, true};
    }
    return (struct lr_layer_fault){-1, 0, false};
}

lr_module lr_layer_module(const lr_module *whole, const lr_layer *layers, int layer, const int block[2])
{
    const lr_layer *own = &layers[layer];
    lr_module module = *whole;
    module_set_normal(&module);
    vec_add_scaled(module.centre_mm, -lr_layer_front_mm(layers, layer), module.normal, module.centre_mm);
    vec_add_scaled(module.centre_mm, own->offset_mm[0], module.u, module.centre_mm);
    vec_add_scaled(module.centre_mm, own->offset_mm[1], module.v, module.centre_mm);
    for (int k = 0; k < 2; k++) {
        if (own->block_crystals[k] != NULL) module.crystals[k] = own->block_crystals[k][block[k]];
        module.pitch_mm[k] = own->pitch_mm[k] > 0 ? own->pitch_mm[k] : module.pitch_mm[k];
        module.face_mm[k] = own->face_mm[k] > 0 ? own->face_mm[k] : module.face_mm[k];
    }
    for (int k = 0; k < 3; k++) module.normal[k] = whole->normal[k];
    module.depth_mm = own->depth_mm;
    module.mu_per_mm = own->mu_per_mm > 0 ? own->mu_per_mm : module.mu_per_mm;
    module.layer = layer;
    return module;
}

int lr_scanner_num_layers(const lr_scanner *scanner)
{
    int most = 0;
    for (int m = 0; m < scanner->num_modules; m++)
        most = scanner->modules[m].layer > most ? scanner->modules[m].layer : most;
    return most + 1;
}

/* --- arrangement --- */

/* Largest distance behind another module's plane at which a corner counts as on the plane, mm. */
static const double plane_tolerance_mm = 1e-6;

/* Largest deviation of a unit axis from a grid axis. */
static const double axis_tolerance = 1e-9;

bool lr_modules_may_hide(const lr_scanner *scanner)
{
    for (int i = 0; i < scanner->num_modules; i++) {
        for (int j = 0; j < scanner->num_modules; j++) {
            const lr_module *plane = &scanner->modules[i], *box = &scanner->modules[j];
            if (i == j || plane->layer != box->layer) continue;
            double from[3], centre[3], offset[3];
            lr_scanner_detection_centre(scanner, i, from);
            lr_scanner_detection_centre(scanner, j, centre);
            vec_sub(centre, from, offset);
            const double reach = fabs(vec_dot(plane->normal, box->u)) * 0.5 * box->crystals[0] * box->pitch_mm[0] +
                                 fabs(vec_dot(plane->normal, box->v)) * 0.5 * box->crystals[1] * box->pitch_mm[1];
            if (vec_dot(plane->normal, offset) - reach < -plane_tolerance_mm) return true;
        }
    }
    return false;
}

int lr_module_axial(const lr_module *module, int axis)
{
    const bool is_u = fabs(fabs(module->u[axis]) - 1.0) <= axis_tolerance;
    const bool is_v = fabs(fabs(module->v[axis]) - 1.0) <= axis_tolerance;
    return is_v ? 1 : is_u ? 0 : -1;
}

int lr_lors_axial_axis(const lr_lors *lors)
{
    const lr_module *modules = lors->scanner->modules;
    for (int axis = 2; axis >= 0; axis--) {
        bool fits = true;
        for (int64_t pair = 0; pair < lors->num_pairs && fits; pair++) {
            const int on_i = lr_module_axial(&modules[lors->pairs[pair][0]], axis);
            const int on_j = lr_module_axial(&modules[lors->pairs[pair][1]], axis);
            fits = on_i >= 0 && on_i == on_j;
        }
        if (fits) return axis;
    }
    return -1;
}

/* --- attenuation in crystals --- */

/* Mass attenuation coefficients at 511 keV after Elam et al. (lr/scanner.h), and densities. Values of Elam et al. for
 * water (0.0960 cm2/g) and for lead at 500 keV (0.1614 cm2/g) agree with NIST's tables. */
static const struct material {
    const char *name;
    double mass_cm2_per_g, density_g_per_cm3;
} materials[] = {{"LSO", 0.11733, 7.40},
                 {"LYSO", 0.11527, 7.10},
                 {"BGO", 0.13504, 7.13},
                 {"GSO", 0.10484, 6.71},
                 {"LaBr3", 0.08851, 5.08}};

static const char assumed_material[] = "LYSO";

double lr_crystal_material_mu_per_mm(const char *material)
{
    for (size_t k = 0; k < sizeof(materials) / sizeof(materials[0]); k++)
        if (strcasecmp(material, materials[k].name) == 0)
            return 0.1 * materials[k].mass_cm2_per_g * materials[k].density_g_per_cm3;
    return 0;
}

const char *lr_crystal_materials(void)
{
    return "LSO, LYSO, BGO, GSO or LaBr3";
}

double lr_module_mu_per_mm(const lr_scanner *scanner, int module)
{
    const double own = scanner->modules[module].mu_per_mm, known = own > 0 ? own : scanner->crystal_mu_per_mm;
    return known > 0 ? known : lr_crystal_material_mu_per_mm(assumed_material);
}

lr_status lr_penetration_check(const lr_scanner *scanner, lr_mode mode, const lr_log *log)
{
    if (mode == LR_MODE_EXACT) {
        const bool layered = lr_scanner_num_layers(scanner) > 1;
        return lr_error(
            log, LR_USAGE,
            "%s integrated along lines and has no exact mode: use mode sampled, with more rays for more accuracy%s",
            layered ? "crystals in layers stop photons along their depth, which is" : "crystal penetration is",
            layered ? ", or let each layer count as if it were alone" : "");
    }
    return LR_OK;
}

bool lr_scanner_knows_mu(const lr_scanner *scanner)
{
    bool is_known = true;
    for (int m = 0; m < scanner->num_modules; m++)
        is_known = is_known && (scanner->modules[m].mu_per_mm > 0 || scanner->crystal_mu_per_mm > 0);
    return is_known;
}

void lr_penetration_warn(const lr_scanner *scanner, const lr_log *log)
{
    if (!lr_scanner_knows_mu(scanner)) {
        lr_warn(log,
                "%s does not say how its crystals attenuate: %s is assumed, %.4g/mm; give crystal_material (%s) or "
                "crystal_mu_per_mm in its file",
                scanner->name, assumed_material, lr_crystal_material_mu_per_mm(assumed_material),
                lr_crystal_materials());
    }
}
