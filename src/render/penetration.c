/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "render/penetration.h"

#include "base/log.h"
#include "base/mem.h"
#include "model/scanner/scanner.h"

#include <math.h>
#include <stdlib.h>

/* Gaps of less than this part of the pitch are rounding; taken off before rounding up. */
static const double rounding = 1e-9;

static uint32_t gap_strata(const lr_module *module, int axis, int rays)
{
    const double gap = module->pitch_mm[axis] - module->face_mm[axis];
    if (gap <= rounding * module->pitch_mm[axis]) return 0;
    return (uint32_t)ceil(rays * gap / module->face_mm[axis] - rounding);
}

static struct lr_penetration_box box_of(const lr_module *module, int rays)
{
    const double pitch = fmax(module->pitch_mm[0], module->pitch_mm[1]);
    return (struct lr_penetration_box){
        .gap_strata = {gap_strata(module, 0, rays), gap_strata(module, 1, rays)},
        .depth_strata = (uint32_t)fmax(1, ceil(rays * module->depth_mm / pitch - rounding)),
        .depth_mm = (float)module->depth_mm,
    };
}

struct gl_buffer *lr_penetration_boxes(struct gl_context *ctx, const lr_scanner *scanner, int rays)
{
    struct lr_penetration_box *boxes =
        lr_alloc(scanner->num_modules, sizeof(*boxes), "the modules' boxes", gl_context_log(ctx));
    if (boxes == NULL) return NULL;
    for (int m = 0; m < scanner->num_modules; m++) {
        boxes[m] = box_of(&scanner->modules[m], rays);
        boxes[m].mu_per_mm = (float)lr_module_mu_per_mm(scanner, m);
    }
    struct gl_buffer *buffer =
        gl_buffer_create(ctx, &(struct gl_buffer_params){.label = "boxes of modules",
                                                         .size_bytes = scanner->num_modules * (int64_t)sizeof(*boxes),
                                                         .data = boxes});
    free(boxes);
    return buffer;
}

static int64_t lines_of(const lr_module *module, int rays)
{
    const struct lr_penetration_box box = box_of(module, rays);
    int64_t count[3] = {0, 0, box.depth_strata};
    for (int axis = 0; axis < 2; axis++) {
        const int64_t gap = box.gap_strata[axis];
        count[axis] = module->crystals[axis] * (rays + gap) - gap;
    }
    return count[0] * count[1] + count[1] * count[2] + count[2] * count[0];
}

int64_t lr_penetration_most_lines(const lr_scanner *scanner, int rays)
{
    int64_t most = 1;
    for (int m = 0; m < scanner->num_modules; m++) {
        const int64_t lines = lines_of(&scanner->modules[m], rays);
        most = lines > most ? lines : most;
    }
    return most;
}
