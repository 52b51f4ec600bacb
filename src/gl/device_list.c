/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/log.h"
#include "gl/context_private.h"

/* Where no way works, that is said of each. */
static void warn_of_unlisted(const struct egl_way *first, int num_usable, const lr_log *log)
{
    if (first->kind == EGL_WAY_UNLISTED && num_usable > 0)
        lr_warn(log, "devices may be there that OpenGL is not tried on: %s", first->reason);
}

int gl_device_list(lr_device *devices, int capacity, const lr_log *log)
{
    const struct gl_context_params params = {.log = log};
    struct egl_way ways[EGL_WAY_MAX];
    const int count = egl_ways_find(ways);
    int num_usable = 0;
    for (int k = 0; k < count && k < capacity; k++) {
        struct gl_context *ctx;
        (void)gl_context_try(&ways[k], &params, &devices[k], &ctx);
        gl_context_destroy(ctx);
        num_usable += devices[k].usable;
    }
    warn_of_unlisted(&ways[0], num_usable, log);
    return count;
}
