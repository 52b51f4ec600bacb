/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * mSR as the steps that shaders/direct/gather.glsl goes through. */
#ifndef LR_RENDER_DIRECT_STEPS_H
#define LR_RENDER_DIRECT_STEPS_H

#include "direct/tables.h"

/* One step: two ivec4 of the shader. */
struct lr_direct_step {
    int32_t along, across, quads, mask;
    int32_t first[4]; /* LR_DIRECT_OUTPUTS */
};
_Static_assert(sizeof(struct lr_direct_step) == 32, "the shader's layout");

struct lr_direct_steps {
    struct lr_direct_step *steps; /* owned [count] */
    int count;
    int axis; /* along which a thread's outputs lie: 0 = x, 1 = y */
};

/* errors: LR_FAILED without memory. */
lr_status lr_direct_steps_init(struct lr_direct_steps *steps, const struct lr_direct_shape *shape, const lr_log *log);
void lr_direct_steps_finish(struct lr_direct_steps *steps);

#endif
