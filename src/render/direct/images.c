/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Images of the family `direct`: their memory, transfers and bindings. */
#include "render/direct/direct.h"

#include "base/log.h"
#include "base/mem.h"
#include "common/bindings.h"

#include <stdlib.h>

enum { FLOATS = 4 };

/* Texels along q, x and y, with margins or without. */
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

/* Texels in the machine's memory: all of a buffer, or what is within a texture's margins. */
struct staging {
    float *texels; /* owned */
    int extent[3], margin[3];
    int64_t bytes;
};

static lr_status open_staging(struct staging *staging, const struct lr_direct_image *image,
                              const struct lr_direct_layout *layout)
{
    const bool has_margins = image->buffer != NULL && image->has_margins;
    find_extent(layout, has_margins, staging->extent);
    for (int k = 0; k < 3; k++) staging->margin[k] = has_margins ? layout->margin[k] : 0;
    const int64_t count = (int64_t)staging->extent[0] * staging->extent[1] * staging->extent[2];
    staging->bytes = count * FLOATS * (int64_t)sizeof(float);
    staging->texels = lr_alloc(count, FLOATS * sizeof(float), "an image as texels", layout->log);
    return staging->texels ? LR_OK : LR_FAILED;
}

/* Copies between the grid's order and that of texels. */
static void reorder(const struct staging *staging, const struct lr_direct_layout *layout, float *values, bool to_texels)
{
    const int *size = layout->size, *extent = staging->extent, *margin = staging->margin;
    const int64_t slice = (int64_t)size[0] * size[1];
    for (int64_t column = 0; column < slice; column++) {
        const int x = (int)(column % size[0]), y = (int)(column / size[0]);
        const int64_t row = x + margin[1] + (int64_t)extent[1] * (y + margin[2]);
        float *texels = staging->texels + FLOATS * (row * extent[0] + margin[0]);
        float *voxel = values + column;
        for (int z = 0; z < size[2]; z++, voxel += slice)
            if (to_texels)
                texels[z] = *voxel;
            else
                *voxel = texels[z];
    }
}

/* The grid's box in a texture, between its margins if it has any. */
static struct gl_box inner_box(const struct lr_direct_layout *layout, const struct gl_texture *texture)
{
    const int *size = layout->size;
    return (struct gl_box){(texture->size[0] - layout->quads) / 2,
                           (texture->size[1] - size[0]) / 2,
                           (texture->size[2] - size[1]) / 2,
                           layout->quads,
                           size[0],
                           size[1]};
}

lr_status lr_direct_image_upload(const struct lr_direct_image *image, const struct lr_direct_layout *layout,
                                 const float *values)
{
    struct staging staging = {0};
    LR_TRY(open_staging(&staging, image, layout));
    reorder(&staging, layout, (float *)(uintptr_t)values, true);
    layout->traffic->to_device += staging.bytes;
    lr_status status;
    if (image->buffer != NULL) {
        status = gl_buffer_upload(image->buffer, 0, staging.bytes, staging.texels);
    } else {
        const struct gl_box box = inner_box(layout, image->texture);
        status = gl_texture_upload_rect(image->texture, &box, staging.texels);
    }
    free(staging.texels);
    return status;
}

lr_status lr_direct_image_read(const struct lr_direct_image *image, const struct lr_direct_layout *layout,
                               float *values)
{
    struct staging staging = {0};
    LR_TRY(open_staging(&staging, image, layout));
    layout->traffic->to_host += staging.bytes;
    lr_status status;
    if (image->buffer != NULL) {
        status = gl_buffer_read(image->buffer, 0, staging.bytes, staging.texels);
    } else {
        const struct gl_box box = inner_box(layout, image->texture);
        status = gl_texture_read(image->texture, &box, staging.texels);
    }
    if (status == LR_OK) reorder(&staging, layout, values, false);
    free(staging.texels);
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
