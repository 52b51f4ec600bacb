/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "render/columns/image.h"

#include "base/log.h"
#include "base/mem.h"
#include "common/bindings.h"
#include "render/columns/scene.h"

#include <stdlib.h>

/* Copies between the grid's order and the columns' one. */
static void reorder_image(const struct lr_columns *columns, float *grid_order, float *column_order,
                          bool to_columns)
{
    const int *size = columns->params.grid->size;
    const int64_t strides[3] = {1, size[0], (int64_t)size[0] * size[1]};
    const int a = columns->across[0], b = columns->across[1], c = columns->axis;
    float *next = column_order;
    for (int y = 0; y < size[b]; y++) {
        for (int x = 0; x < size[a]; x++) {
            float *voxel = grid_order + x * strides[a] + y * strides[b];
            for (int z = 0; z < size[c]; z++, next++, voxel += strides[c]) {
                if (to_columns) {
                    *next = *voxel;
                } else {
                    *voxel = *next;
                }
            }
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
    if (staging == NULL) {
        return LR_FAILED;
    }
    reorder_image(columns, (float *)(uintptr_t)image, staging, true);
    const lr_status status =
        gl_buffer_upload(columns->image, 0, lr_columns_image_bytes(columns), staging);
    free(staging);
    return status;
}

lr_status lr_columns_read_image(const struct lr_columns *columns, float *image)
{
    float *staging = make_staging(columns);
    if (staging == NULL) {
        return LR_FAILED;
    }
    const lr_status status =
        gl_buffer_read(columns->image, 0, lr_columns_image_bytes(columns), staging);
    if (status == LR_OK) {
        reorder_image(columns, image, staging, false);
    }
    free(staging);
    return status;
}

lr_status lr_columns_read_sums(const struct lr_columns *columns, const struct lr_fixed *sums,
                               float *image)
{
    float *staging = make_staging(columns);
    if (staging == NULL) {
        return LR_FAILED;
    }
    const lr_status status = lr_fixed_read(sums, staging);
    if (status == LR_OK) {
        reorder_image(columns, image, staging, false);
    }
    free(staging);
    return status;
}

lr_status lr_columns_take_sums(struct lr_columns *columns, const struct lr_fixed *sums)
{
    struct gl_program *program = lr_columns_program(columns, LR_COLUMNS_TAKE_SUMS);
    struct lr_columns_pass uniforms = lr_columns_uniforms(columns);
    uniforms.count[3] = (int32_t)sums->count;
    uniforms.origin[3] = (float)lr_fixed_unit(sums);
    if (program == NULL) {
        return LR_FAILED;
    }
    struct gl_pass pass = {
        .label = gl_program_label(program),
        .program = program,
        .uniforms = &uniforms,
        .uniform_bytes = sizeof(uniforms),
        .groups = {(int)((sums->count + LR_GROUP_SIZE - 1) / LR_GROUP_SIZE), 1, 1},
        .barriers = GL_SHADER_STORAGE_BARRIER_BIT | GL_BUFFER_UPDATE_BARRIER_BIT};
    pass.buffers[LR_BIND_COLUMN_LIST].buffer = sums->buffer;
    pass.buffers[LR_BIND_COLUMN_IMAGE].buffer = columns->image;
    return gl_pass_run(columns->ctx, &pass);
}
