/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "render/columns/image.h"

#include "base/log.h"
#include "base/mem.h"
#include "common/bindings.h"
#include "render/columns/programs.h"
#include "render/columns/scene.h"
#include "vector/place.h"

#include <stdlib.h>

/* Copies between the grid's order and the columns' one. */
static void reorder_image(const struct lr_columns *columns, float *grid_order, float *column_order, bool to_columns)
{
    const int *size = columns->params.grid->size;
    const int64_t strides[3] = {1, size[0], (int64_t)size[0] * size[1]};
    const int a = columns->across[0], b = columns->across[1], c = columns->axis;
    float *next = column_order;
    for (int y = 0; y < size[b]; y++) {
        for (int x = 0; x < size[a]; x++) {
            float *voxel = grid_order + x * strides[a] + y * strides[b];
            for (int z = 0; z < size[c]; z++, next++, voxel += strides[c])
                if (to_columns)
                    *next = *voxel;
                else
                    *voxel = *next;
        }
    }
}

static float *make_staging(const struct lr_columns *columns)
{
    return lr_alloc(lr_grid_num_voxels(columns->params.grid), sizeof(float), "an image in columns",
                    columns->params.log);
}

int64_t lr_columns_image_bytes(const struct lr_columns *columns)
{
    return lr_grid_num_voxels(columns->params.grid) * (int64_t)sizeof(float);
}

lr_status lr_columns_upload_image(struct lr_columns *columns, const float *image)
{
    float *staging = make_staging(columns);
    if (staging == NULL) return LR_FAILED;
    reorder_image(columns, (float *)(uintptr_t)image, staging, true);
    const lr_status status = gl_buffer_upload(columns->image, 0, lr_columns_image_bytes(columns), staging);
    free(staging);
    return status;
}

lr_status lr_columns_read_image(const struct lr_columns *columns, float *image)
{
    float *staging = make_staging(columns);
    if (staging == NULL) return LR_FAILED;
    const lr_status status = gl_buffer_read(columns->image, 0, lr_columns_image_bytes(columns), staging);
    if (status == LR_OK) reorder_image(columns, image, staging, false);
    free(staging);
    return status;
}

lr_status lr_columns_read_sums(const struct lr_columns *columns, const struct lr_fixed *sums, float *image)
{
    float *staging = make_staging(columns);
    if (staging == NULL) return LR_FAILED;
    const lr_status status = lr_fixed_read(sums, staging);
    if (status == LR_OK) reorder_image(columns, image, staging, false);
    free(staging);
    return status;
}

lr_status lr_columns_take_sums(struct lr_columns *columns, const struct lr_fixed *sums)
{
    struct gl_program *program = lr_columns_program(columns, LR_COLUMNS_TAKE_SUMS);
    struct lr_columns_pass uniforms = lr_columns_uniforms(columns);
    uniforms.count[3] = (int32_t)sums->count;
    uniforms.origin[3] = (float)lr_fixed_unit(sums);
    if (program == NULL) return LR_FAILED;
    struct gl_pass pass = {.label = gl_program_label(program),
                           .program = program,
                           .uniforms = &uniforms,
                           .uniform_bytes = sizeof(uniforms),
                           .groups = {gl_groups_in_turn(sums->count, LR_GROUP_SIZE), 1, 1},
                           .barriers = GL_SHADER_STORAGE_BARRIER_BIT | GL_BUFFER_UPDATE_BARRIER_BIT};
    pass.buffers[LR_BIND_COLUMN_LIST].buffer = sums->buffer;
    pass.buffers[LR_BIND_COLUMN_IMAGE].buffer = columns->image;
    return gl_pass_run(columns->ctx, &pass);
}

/* --- images at the backend's place --- */

enum { MOST_GROUPS = 1024 };

/* The block of shaders/columns/image_order.comp. */
struct order_pass {
    uint32_t extent[4], strides[4];
};
_Static_assert(sizeof(struct order_pass) == 32, "the shaders' layout");

static struct order_pass describe_order(const struct lr_columns *columns)
{
    const int *size = columns->params.grid->size;
    const int order[3] = {columns->axis, columns->across[0], columns->across[1]}; /* fastest first */
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

static lr_status reorder_at_place(struct lr_columns *columns, const lr_vector *image, enum lr_columns_program which)
{
    const struct lr_vector_range range = lr_vector_gl_range(image);
    const int64_t alignment = gl_context_limits(columns->ctx)->storage_alignment;
    const int64_t aligned = range.offset / alignment * alignment;
    struct order_pass uniforms = describe_order(columns);
    struct gl_program *program = lr_columns_program(columns, which);
    if (program == NULL) return LR_FAILED;
    uniforms.strides[3] = (uint32_t)((range.offset - aligned) / (int64_t)sizeof(float));
    const int groups = gl_divide_up(uniforms.extent[3], LR_GROUP_SIZE);
    struct gl_pass pass = {.label = gl_program_label(program),
                           .program = program,
                           .uniforms = &uniforms,
                           .uniform_bytes = sizeof(uniforms),
                           .groups = {groups < MOST_GROUPS ? groups : MOST_GROUPS, 1, 1},
                           .barriers = GL_SHADER_STORAGE_BARRIER_BIT | GL_BUFFER_UPDATE_BARRIER_BIT};
    pass.buffers[LR_BIND_ORDER_GRID] = (struct gl_range){range.buffer, aligned, range.offset - aligned + range.bytes};
    pass.buffers[LR_BIND_ORDER_PROJECTOR].buffer = columns->image;
    return gl_pass_run(columns->ctx, &pass);
}

lr_status lr_columns_take_image(struct lr_columns *columns, const lr_vector *image)
{
    return reorder_at_place(columns, image, LR_COLUMNS_TAKE_IMAGE);
}

lr_status lr_columns_give_image(struct lr_columns *columns, lr_vector *image)
{
    return reorder_at_place(columns, image, LR_COLUMNS_GIVE_IMAGE);
}
