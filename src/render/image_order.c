/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "render/image_order.h"

#include "common/bindings.h"
#include "render/values.h"

enum { MOST_GROUPS = 1024 };

/* The block of shaders/image_order.comp. */
struct order_pass {
    uint32_t extent[4], strides[4];
};
_Static_assert(sizeof(struct order_pass) == 32, "the shaders' layout");

static struct order_pass describe(const struct lr_columns *columns)
{
    const int *size = columns->params.grid->size;
    const int order[3] = {columns->axis, columns->across[0],
                          columns->across[1]}; /* fastest first */
    struct order_pass uniforms = {0};
    uint32_t stride = 1;
    for (int k = 0; k < 3; k++) {
        uniforms.extent[k] = (uint32_t)size[k];
        uniforms.strides[order[k]] = stride;
        stride *= (uint32_t)size[order[k]];
    }
    uniforms.extent[3] = stride;
    return uniforms;
}

static struct gl_program *program_of(struct lr_compute *compute, bool to_grid)
{
    struct gl_program **program = &compute->order[to_grid];
    if (*program == NULL) {
        const struct gl_define defines[] = {{to_grid ? "TO_GRID" : NULL, "1"}, {0}};
        *program = gl_program_create(
            compute->ctx,
            &(struct gl_program_params){.compute = "image_order.comp",
                                        .defines = defines,
                                        .label = to_grid ? "image to the grid's order"
                                                         : "image to the projector's order"});
    }
    return *program;
}

static lr_status reorder(struct lr_compute *compute, const lr_vector *image, bool to_grid)
{
    const struct lr_vector_range range = lr_vector_gl_range(image);
    const int64_t alignment = gl_context_limits(compute->ctx)->storage_alignment;
    const int64_t aligned = range.offset / alignment * alignment;
    struct order_pass uniforms = describe(compute->columns);
    struct gl_program *program = program_of(compute, to_grid);
    if (program == NULL) {
        return LR_FAILED;
    }
    uniforms.strides[3] = (uint32_t)((range.offset - aligned) / (int64_t)sizeof(float));
    const uint32_t groups = (uniforms.extent[3] + LR_GROUP_SIZE - 1) / LR_GROUP_SIZE;
    struct gl_pass pass = {.label = gl_program_label(program),
                           .program = program,
                           .uniforms = &uniforms,
                           .uniform_bytes = sizeof(uniforms),
                           .groups = {(int)(groups < MOST_GROUPS ? groups : MOST_GROUPS), 1, 1},
                           .barriers =
                               GL_SHADER_STORAGE_BARRIER_BIT | GL_BUFFER_UPDATE_BARRIER_BIT};
    pass.buffers[LR_BIND_ORDER_GRID] =
        (struct gl_range){range.buffer, aligned, range.offset - aligned + range.bytes};
    pass.buffers[LR_BIND_ORDER_PROJECTOR].buffer = compute->columns->image;
    return gl_pass_run(compute->ctx, &pass);
}

/* By pairs the orders are the same. */
lr_status lr_image_to_projector(struct lr_compute *compute, const lr_vector *image)
{
    return compute->columns != NULL ? reorder(compute, image, false)
                                    : lr_values_put(image, compute->pairs->image, 0);
}

lr_status lr_image_from_projector(struct lr_compute *compute, lr_vector *image)
{
    return compute->columns != NULL ? reorder(compute, image, true)
                                    : lr_values_get(compute->pairs->image, 0, image);
}
