/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The native backend: projections by columns on the processor's vector units, in single precision
 * (docs/method/correspondence.md, "Columns in native"). */
#include "base/log.h"
#include "base/mem.h"
#include "correspondence/native/native.h"

#include <stdlib.h>

/* The module pairs of a part. The part is not a list of single LORs. */
static struct lr_native_pairs pairs_of(const struct lr_native *native, const lr_selection *part)
{
    if (part == NULL) return (struct lr_native_pairs){.num = native->scene.params.lors->num_pairs};
    return (struct lr_native_pairs){part->pairs, part->num_pairs, part};
}

static lr_status forward(void *self, const lr_selection *part, const lr_vector *image, lr_vector *values)
{
    if (part != NULL && part->lors != NULL) {
        const struct lr_native_lors lors = {part->lors, part->num_lors};
        return lr_native_forward_lors(self, &lors, image->values, values->values);
    }
    const struct lr_native_pairs pairs = pairs_of(self, part);
    return lr_native_forward(self, &pairs, image->values, values->values);
}

static lr_status back(void *self, const lr_selection *part, const lr_vector *values, lr_vector *image)
{
    const float *numbers = values != NULL ? values->values : NULL;
    if (part != NULL && part->lors != NULL) {
        const struct lr_native_lors lors = {part->lors, part->num_lors};
        return lr_native_back_lors(self, &lors, numbers, image->values);
    }
    const struct lr_native_pairs pairs = pairs_of(self, part);
    return lr_native_back(self, &pairs, numbers, image->values);
}

static lr_status rows(void *self, const struct lr_rows *wanted, const lr_row_sink *sink)
{
    return lr_native_rows(self, wanted, sink);
}

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
        .forward = forward,
        .back = back,
        .rows = rows,
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
