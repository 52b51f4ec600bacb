/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "model/scanner/scanner_check.h"

#include "base/log.h"
#include "base/vec.h"
#include "model/scanner/module_index.h"

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

/* Of one module with those numbered above it. */
static lr_status check_module(const char *title, const lr_module *modules, struct lr_module_index *index, int module,
                              const lr_log *log)
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
    for (int m = 0; m < num_modules && status == LR_OK; m++) status = check_module(title, modules, &index, m, log);
    lr_module_index_finish(&index);
    return status;
}
