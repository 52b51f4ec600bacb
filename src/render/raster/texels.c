/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "render/raster/texels.h"

#include "base/log.h"
#include "vector/place.h"

/* Rows are short enough that the last one wastes little. */
enum { WIDTH = 4096 };

struct lr_texels lr_texels_create(struct gl_context *ctx, const char *label, int64_t count)
{
    const int64_t height = (count + WIDTH - 1) / WIDTH;
    const int64_t most = gl_context_limits(ctx)->max_texture_size;
    struct gl_target *target = NULL;
    if (height > most) {
        lr_error(gl_context_log(ctx), LR_FAILED,
                 "%s: %lld numbers are more than a texture of %s can hold (%lld): use backend "
                 "compute or native",
                 label, (long long)count, gl_context_limits(ctx)->renderer, (long long)(most * WIDTH));
    } else {
        target = gl_target_create(ctx, &(struct gl_target_params){.label = label,
                                                                  .width = WIDTH,
                                                                  .height = height > 0 ? (int)height : 1,
                                                                  .colour_formats = {GL_R32F}});
    }
    return (struct lr_texels){.target = target, .count = count};
}

lr_status lr_texels_renew(struct lr_texels *texels, struct gl_context *ctx, const char *label, int64_t count)
{
    if (texels->target != NULL && texels->count == count) {
        gl_target_clear(texels->target, NULL);
        return LR_OK;
    }
    lr_texels_destroy(texels);
    *texels = lr_texels_create(ctx, label, count);
    return texels->target != NULL ? LR_OK : LR_FAILED;
}

void lr_texels_destroy(struct lr_texels *texels)
{
    gl_target_destroy(texels->target);
    *texels = (struct lr_texels){0};
}

int64_t lr_texels_capacity(const struct gl_context *ctx, int64_t bytes)
{
    int64_t rows = gl_context_limits(ctx)->max_texture_size;
    const int64_t row_bytes = WIDTH * (int64_t)sizeof(float);
    if (bytes > 0 && bytes / row_bytes < rows) rows = bytes / row_bytes;
    return (rows > 0 ? rows : 1) * WIDTH;
}

/* The full rows, and the part row after them; either may be empty. */
static void find_boxes(const struct lr_texels *texels, struct gl_box boxes[2])
{
    const int rows = (int)(texels->count / WIDTH);
    boxes[0] = (struct gl_box){.width = WIDTH, .height = rows};
    boxes[1] = (struct gl_box){.y = rows, .width = (int)(texels->count % WIDTH), .height = 1};
}

lr_status lr_texels_put(struct lr_texels *texels, const lr_vector *from)
{
    struct gl_texture *texture = texels->target->colours[0];
    struct gl_box boxes[2];
    find_boxes(texels, boxes);
    int64_t done = 0;
    for (int k = 0; k < 2; k++) {
        const int64_t count = (int64_t)boxes[k].width * boxes[k].height;
        if (count > 0 && from->values != NULL) {
            LR_TRY(gl_texture_upload_rect(texture, &boxes[k], (const float *)from->values + done));
        } else if (count > 0) {
            const struct lr_vector_range range = lr_vector_gl_range(from);
            LR_TRY(
                gl_texture_copy_buffer(texture, &boxes[k], range.buffer, range.offset + done * (int64_t)sizeof(float)));
        }
        done += count;
    }
    return LR_OK;
}

lr_status lr_texels_get(const struct lr_texels *texels, lr_vector *to)
{
    const struct gl_texture *texture = texels->target->colours[0];
    struct gl_box boxes[2];
    find_boxes(texels, boxes);
    int64_t done = 0;
    for (int k = 0; k < 2; k++) {
        const int64_t count = (int64_t)boxes[k].width * boxes[k].height;
        if (count > 0 && to->values != NULL) {
            LR_TRY(gl_texture_read(texture, &boxes[k], (float *)to->values + done));
        } else if (count > 0) {
            const struct lr_vector_range range = lr_vector_gl_range(to);
            LR_TRY(
                gl_buffer_copy_texture(range.buffer, range.offset + done * (int64_t)sizeof(float), texture, &boxes[k]));
        }
        done += count;
    }
    return LR_OK;
}
