/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The cpu backend: the reference in double, written from the paper
 * (docs/method/correspondence.md). */
#include "operator/backend.h"

#include "base/log.h"
#include "base/mem.h"
#include "cpu/back.h"
#include "cpu/forward.h"
#include "cpu/part.h"
#include "cpu/rows.h"
#include "cpu/trace.h"

#include <stdio.h>
#include <stdlib.h>

static lr_status forward(void *self, const lr_selection *part, const lr_vector *image, lr_vector *values)
{
    return part != NULL ? lr_cpu_forward_part(self, part, image->values, values->values)
                        : lr_cpu_forward(self, image->values, values->values);
}

static lr_status back(void *self, const lr_selection *part, const lr_vector *values, lr_vector *image)
{
    const double *numbers = values != NULL ? values->values : NULL;
    return part != NULL ? lr_cpu_back_part(self, part, numbers, image->values)
                        : lr_cpu_back(self, numbers, image->values);
}

static lr_status deliver(void *user, struct lr_cpu *cpu, int64_t first, int num_rows)
{
    for (int k = 0; k < num_rows; k++) LR_TRY(lr_row_deliver(user, first + k, &cpu->block[k]));
    return LR_OK;
}

static lr_status rows(void *self, const struct lr_rows *wanted, const lr_row_sink *sink)
{
    const struct lr_cpu *cpu = self;
    struct lr_row_delivery delivery = {.sink = sink, .log = cpu->scene.params.log};
    const struct lr_cpu_walk walk = {.what = "computing matrix rows", .take = deliver, .user = &delivery};
    const lr_status status = lr_cpu_each_block(self, wanted, &walk);
    lr_owned_row_finish(&delivery.row);
    return status;
}

static lr_status picture(void *self, const double point_mm[3], int module, lr_pixel *pixels)
{
    struct lr_cpu *cpu = self;
    if (cpu->scene.params.penetration) {
        return lr_error(cpu->scene.params.log, LR_USAGE,
                        "with crystal penetration a line ends in several crystals and has no "
                        "pixel: draw correspondence images without it");
    }
    if (cpu->scene.params.mode != LR_MODE_SAMPLED) {
        return lr_error(cpu->scene.params.log, LR_USAGE,
                        "exact mode traces no lines and so has no correspondence image: use "
                        "sampled mode");
    }
    struct lr_cpu_view *view = lr_cpu_first_view(cpu);
    lr_cpu_view_place(view, point_mm);
    lr_cpu_trace_picture(view, module, pixels);
    return LR_OK;
}

static void destroy(void *self)
{
    if (self != NULL) {
        lr_cpu_finish(self);
        free(self);
    }
}

lr_status lr_cpu_backend_create(const struct lr_backend_params *params, struct lr_backend *backend)
{
    static const struct lr_backend_fns fns = {
        .name = "cpu",
        .voxel_bytes = 16,
        .computes_in_double = true,
        .has_parts = true,
        .projects_by_rows = true,
        .forward = forward,
        .back = back,
        .rows = rows,
        .picture = picture,
        .destroy = destroy,
    };
    struct lr_cpu *cpu = lr_alloc(1, sizeof(*cpu), "the cpu backend", params->log);
    if (cpu == NULL) return LR_FAILED;
    const lr_status status = lr_cpu_init(cpu, params);
    if (status != LR_OK) {
        free(cpu);
        return status;
    }
    backend->fns = &fns;
    backend->self = cpu;
    snprintf(backend->device, sizeof(backend->device), "CPU, %d thread%s", params->threads,
             params->threads == 1 ? "" : "s");
    return LR_OK;
}
