/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Images of the family `direct`: memory, transfers and bindings. */
#include "direct/compute/direct.h"

#include "base/log.h"
#include "base/mem.h"
#include "common/bindings.h"

#include <stdlib.h>

enum { FLOATS = 4 };

/* Finds the number of texels along q, x and y, with or without margins. */
static void find_extent(const struct lr_direct_layout *layout, bool has_margins, int extent[3])
{
    const int inner[3] = {layout->quads, layout->size[0], layout->size[1]};
    for (int k = 0; k < 3; k++) extent[k] = inner[k] + (has_margins ? 2 * layout->margin[k] : 0);
}

lr_status lr_direct_image_init(struct lr_direct_image *image, const struct lr_direct_layout *layout, const char *label,
                               bool has_margins)
{
    int extent[3];
    find_extent(layout, has_margins, extent);
    *image = (struct lr_direct_image){.has_margins = has_margins};
    if (has_margins ? layout->buffers : layout->data_buffers) {
        const struct gl_limits *limits = gl_context_limits(layout->ctx);
        const int64_t bytes = (int64_t)extent[0] * extent[1] * extent[2] * FLOATS * (int64_t)sizeof(float);
        if (bytes > limits->max_storage_bytes) {
            return lr_error(layout->log, LR_FAILED,
                            "%s: %lld MiB are more than the %lld that a buffer of %s may have: keep "
                            "images in textures or take a smaller grid",
                            label, (long long)(bytes >> 20), (long long)(limits->max_storage_bytes >> 20),
                            limits->renderer);
        }
        image->buffer = gl_buffer_create(layout->ctx, &(struct gl_buffer_params){.label = label, .size_bytes = bytes});
        return image->buffer ? LR_OK : LR_FAILED;
    }

    image->texture = gl_texture_create(layout->ctx, &(struct gl_texture_params){.label = label,
                                                                                .target = GL_TEXTURE_3D,
                                                                                .format = GL_RGBA32F,
                                                                                .width = extent[0],
                                                                                .height = extent[1],
                                                                                .depth = extent[2]});
    return image->texture ? LR_OK : LR_FAILED;
}

void lr_direct_image_finish(struct lr_direct_image *image)
{
    gl_texture_destroy(image->texture);
    gl_buffer_destroy(image->buffer);
    *image = (struct lr_direct_image){0};
}

bool lr_direct_image_exists(const struct lr_direct_image *image)
{
    return image->texture != NULL || image->buffer != NULL;
}

/* --- transfers --- */

/* Copies values between the grid's order and the order of texels. */
static void reorder(const struct lr_direct_layout *layout, float *values, bool has_margins, float *staging,
                    bool to_texels)
{
    const int *size = layout->size;
    const int64_t slice = (int64_t)size[0] * size[1];
    int extent[3], margin[3];
    find_extent(layout, has_margins, extent);
    for (int k = 0; k < 3; k++) margin[k] = has_margins ? layout->margin[k] : 0;
    for (int64_t column = 0; column < slice; column++) {
        const int x = (int)(column % size[0]), y = (int)(column / size[0]);
        const int64_t row = x + margin[1] + (int64_t)extent[1] * (y + margin[2]);
        float *texels = staging + FLOATS * (row * extent[0] + margin[0]);
        float *voxel = values + column;
        for (int z = 0; z < size[2]; z++, voxel += slice)
            if (to_texels)
                texels[z] = *voxel;
            else
                *voxel = texels[z];
    }
}

lr_status lr_direct_image_copy(const struct lr_direct_image *image, const struct lr_direct_layout *layout,
                               float *values, bool to_device)
{
    /* A buffer is copied with its margins, a texture without margins. */
    const bool has_margins = image->buffer != NULL && image->has_margins;
    int extent[3];
    find_extent(layout, has_margins, extent);
    const int64_t count = (int64_t)extent[0] * extent[1] * extent[2], bytes = count * FLOATS * (int64_t)sizeof(float);
    float *staging = lr_alloc(count, FLOATS * sizeof(float), "an image as texels", layout->log);
    if (staging == NULL) return LR_FAILED;
    *(to_device ? &layout->traffic->to_device : &layout->traffic->to_host) += bytes;
    if (to_device) reorder(layout, values, has_margins, staging, true);
    lr_status status;
    if (image->buffer != NULL) {
        status = to_device ? gl_buffer_upload(image->buffer, 0, bytes, staging)
                           : gl_buffer_read(image->buffer, 0, bytes, staging);
    } else {
        const int *all = image->texture->size;
        const struct gl_box box = {(all[0] - extent[0]) / 2,
                                   (all[1] - extent[1]) / 2,
                                   (all[2] - extent[2]) / 2,
                                   extent[0],
                                   extent[1],
                                   extent[2]};
        status = to_device ? gl_texture_upload_rect(image->texture, &box, staging)
                           : gl_texture_read(image->texture, &box, staging);
    }
    if (!to_device && status == LR_OK) reorder(layout, values, has_margins, staging, false);
    free(staging);
    return status;
}

/* --- passes --- */

void lr_direct_bind_source(struct gl_pass *pass, const struct lr_direct_image *image)
{
    pass->textures[LR_UNIT_DIRECT_SOURCE] = image->texture;
    pass->buffers[LR_BIND_DIRECT_SOURCE].buffer = image->buffer;
}

void lr_direct_bind_target(struct gl_pass *pass, const struct lr_direct_image *image)
{
    pass->images[LR_IMAGE_DIRECT_TARGET] = (struct gl_image){.texture = image->texture};
    pass->buffers[LR_BIND_DIRECT_TARGET].buffer = image->buffer;
}

GLbitfield lr_direct_barriers(void)
{
    return GL_TEXTURE_FETCH_BARRIER_BIT | GL_TEXTURE_UPDATE_BARRIER_BIT | GL_SHADER_IMAGE_ACCESS_BARRIER_BIT |
           GL_SHADER_STORAGE_BARRIER_BIT | GL_BUFFER_UPDATE_BARRIER_BIT;
}
