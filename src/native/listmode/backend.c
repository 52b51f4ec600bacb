/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The native backend of the family `listmode` (docs/method/listmode.md, "Backend native"): the same bits
 * for any number of threads. */
#include "base/log.h"
#include "base/mem.h"
#include "native/listmode/project.h"

#include <stdio.h>
#include <stdlib.h>

static lr_status forward(void *self, const lr_selection *part, const lr_vector *image, lr_vector *values)
{
    return lr_native_listmode_forward(self, part, image->values, values->values);
}

static lr_status back(void *self, const lr_selection *part, const lr_vector *values, lr_vector *image)
{
    return lr_native_listmode_back(self, part, values != NULL ? values->values : NULL, image->values);
}

static lr_status rows(void *self, const struct lr_rows *wanted, const lr_row_sink *sink)
{
    return lr_native_listmode_rows(self, wanted, sink);
}

static void destroy(void *self)
{
    struct lr_native_listmode *native = self;
    free(native->tube.table);
    free(native->memory);
    free(native);
}

static lr_status init(struct lr_native_listmode *native, const struct lr_listmode_backend_params *params)
{
    native->params = *params;
    native->kernels =
        params->model->kernel == LR_LISTMODE_EXACT ? &lr_native_listmode_exact : lr_native_listmode_kernels_at(0);
    LR_TRY(lr_native_tube_init(&native->tube, params->model, params->log));
    native->memory =
        lr_alloc(params->threads * 5 * native->tube.capacity, sizeof(*native->memory), "shares of tubes", params->log);
    return native->memory != NULL ? LR_OK : LR_FAILED;
}

lr_status lr_listmode_native_create(const struct lr_listmode_backend_params *params, struct lr_backend *backend)
{
    static const struct lr_backend_fns fns = {.name = "native",
                                              .has_parts = true,
                                              .voxel_bytes = 24,
                                              .forward = forward,
                                              .back = back,
                                              .rows = rows,
                                              .destroy = destroy};
    struct lr_native_listmode *native = lr_alloc(1, sizeof(*native), "the native backend", params->log);
    if (native == NULL) return LR_FAILED;
    const lr_status status = init(native, params);
    if (status != LR_OK) {
        destroy(native);
        return status;
    }
    backend->fns = &fns;
    backend->self = native;
    snprintf(backend->device, sizeof(backend->device), "CPU, %d thread%s, %s", params->threads,
             params->threads == 1 ? "" : "s", native->kernels->name);
    return LR_OK;
}
