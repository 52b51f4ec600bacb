/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The native backend: projections by columns on the processor's vector units, in single precision
 * (docs/method/correspondence.md, "Columns in native"). */
#include "base/log.h"
#include "base/mem.h"
#include "correspondence/native/native.h"

#include <stdlib.h>

static void destroy(void *self)
{
    struct lr_native *native = self;
    for (int k = 0; k < native->num_views; k++) lr_native_view_finish(&native->views[k]);
    free(native->views);
    lr_native_scene_finish(&native->scene);
    free(native);
}

lr_status lr_native_backend_create(const struct lr_backend_params *params, struct lr_backend *backend)
{
    static const struct lr_backend_fns fns = {
        .name = "native",
        .has_parts = true,
        .voxel_bytes = 12,
        .heeds_pairs = true,
        .forward = lr_native_forward,
        .back = lr_native_back,
        .rows = lr_native_rows,
        .destroy = destroy,
    };
    if (params->penetration) return lr_native_penetration_create(params, backend);
    struct lr_native *native = lr_alloc(1, sizeof(*native), "the native backend", params->log);
    if (native == NULL) return LR_FAILED;
    lr_status status = lr_native_scene_init(&native->scene, params);
    if (status == LR_OK) {
        native->views = lr_alloc(params->threads, sizeof(*native->views), "threads", params->log);
        status = native->views != NULL ? LR_OK : LR_FAILED;
    }
    while (status == LR_OK && native->num_views < params->threads) {
        status = lr_native_view_init(&native->views[native->num_views], &native->scene);
        native->num_views += status == LR_OK;
    }
    if (status != LR_OK) {
        destroy(native);
        return status;
    }
    lr_backend_on_host(backend, &fns, native, params->threads, native->views[0].kernels->name);
    return LR_OK;
}
