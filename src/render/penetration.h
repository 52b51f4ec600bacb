/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What the compute passes need to know of modules as boxes of crystals:
 * docs/method/correspondence.md, "Penetration". */
#ifndef LR_RENDER_PENETRATION_H
#define LR_RENDER_PENETRATION_H

#include "gl/resource.h"

#include <lr/scanner.h>

/* One module of the buffer `Boxes` of shaders/common/target_penetration.glsl. */
struct lr_penetration_box {
    uint32_t gap_strata[2]; /* in the gap between two faces along u and v */
    uint32_t depth_strata;
    float depth_mm, mu_per_mm;
};

/* The boxes of all modules on the device. errors: NULL, logged. */
struct gl_buffer *lr_penetration_boxes(struct gl_context *ctx, const lr_scanner *scanner, int rays);

/* Most lines that one image can have: through three sides of the module that has most. */
int64_t lr_penetration_most_lines(const lr_scanner *scanner, int rays);

#endif
