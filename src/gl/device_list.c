/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "gl/context_private.h"

int gl_device_list(lr_device *devices, int capacity, const lr_log *log)
{
    const struct gl_context_params params = {.log = log};
    struct egl_way ways[EGL_WAY_MAX];
    const int count = egl_ways_find(ways);
    for (int k = 0; k < count && k < capacity; k++) {
        struct gl_context *ctx;
        (void)gl_context_try(&ways[k], &params, &devices[k], &ctx);
        gl_context_destroy(ctx);
    }
    return count;
}
