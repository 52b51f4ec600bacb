/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/frame/ui_draw.h"

#include "base/log.h"
#include "base/mem.h"
#include "gl/pass.h"

#include <math.h>
#include <stdlib.h>

enum { CORNER_BYTES = 20, BINDING = 0 };

struct ui_draw {
    struct gl_context *ctx;
    struct gl_program *program;
    struct gl_texture *font;
    struct gl_buffer *corners, *indices; /* grow as needed */
};

/* std140 */
struct screen {
    float scale[2], origin[2];
    int32_t first, is_grey;
};

struct ui_draw *ui_draw_create(struct gl_context *ctx, const uint8_t *font, const int font_size[2])
{
    struct ui_draw *draw = lr_alloc(1, sizeof(*draw), "a drawer of panels", gl_context_log(ctx));
    if (draw == NULL) {
        return NULL;
    }
    draw->ctx = ctx;
    draw->program = gl_program_create(ctx, &(struct gl_program_params){.vertex = "viewer/ui.vert",
                                                                       .fragment = "viewer/ui.frag",
                                                                       .label = "panels"});
    draw->font = gl_texture_create(ctx, &(struct gl_texture_params){.label = "letters",
                                                                    .format = GL_R8,
                                                                    .width = font_size[0],
                                                                    .height = font_size[1],
                                                                    .linear = true});
    if (draw->program == NULL || draw->font == NULL ||
        gl_texture_upload(draw->font, font) != LR_OK) {
        ui_draw_destroy(draw);
        return NULL;
    }
    return draw;
}

void ui_draw_destroy(struct ui_draw *draw)
{
    if (draw != NULL) {
        gl_program_destroy(draw->program);
        gl_texture_destroy(draw->font);
        gl_buffer_destroy(draw->corners);
        gl_buffer_destroy(draw->indices);
        free(draw);
    }
}

const struct gl_texture *ui_draw_font(const struct ui_draw *draw)
{
    return draw->font;
}

/* Gives a buffer room for so many bytes, twice as much as before at least, and fills it. */
static lr_status fill(struct gl_context *ctx, struct gl_buffer **buffer, int64_t bytes,
                      const void *data)
{
    if (*buffer == NULL || (*buffer)->size_bytes < bytes) {
        int64_t room = *buffer != NULL ? 2 * (*buffer)->size_bytes : 1 << 16;
        gl_buffer_destroy(*buffer);
        *buffer = gl_buffer_create(
            ctx, &(struct gl_buffer_params){.label = "panels",
                                            .size_bytes = room > bytes ? room : bytes});
    }
    if (*buffer == NULL) {
        return LR_FAILED;
    }
    return bytes > 0 ? gl_buffer_upload(*buffer, 0, bytes, data) : LR_OK;
}

lr_status ui_draw_load(struct ui_draw *draw, const struct ui_batch *batch)
{
    LR_TRY(fill(draw->ctx, &draw->corners, (int64_t)batch->num_corners * CORNER_BYTES,
                batch->corners));
    return fill(draw->ctx, &draw->indices, (int64_t)batch->num_indices * 4, batch->indices);
}

/* Whether anything of the clip lies in the target; scissors count from below. */
static bool set_scissor(const struct ui_piece *piece, const int size[2], int scissor[4])
{
    const int left = (int)fmax(floor(piece->clip[0] - piece->origin[0]), 0.0);
    const int top = (int)fmax(floor(piece->clip[1] - piece->origin[1]), 0.0);
    const int right = (int)fmin(ceil(piece->clip[2] - piece->origin[0]), size[0]);
    const int bottom = (int)fmin(ceil(piece->clip[3] - piece->origin[1]), size[1]);
    scissor[0] = left;
    scissor[1] = size[1] - bottom;
    scissor[2] = right - left;
    scissor[3] = bottom - top;
    return right > left && bottom > top;
}

lr_status ui_draw_piece(struct ui_draw *draw, struct gl_target *target,
                        const struct ui_piece *piece)
{
    const struct screen screen = {
        .scale = {(float)(2.0 / piece->size[0]), (float)(2.0 / piece->size[1])},
        .origin = {(float)piece->origin[0], (float)piece->origin[1]},
        .first = piece->first_corner,
        .is_grey = piece->texture == draw->font,
    };
    struct gl_pass pass = {
        .label = "panels",
        .program = draw->program,
        .buffers = {[BINDING] = {.buffer = draw->corners}},
        .textures = {[BINDING] = piece->texture},
        .uniforms = &screen,
        .uniform_bytes = sizeof(screen),
        .target = target,
        .blending = GL_BLENDING_OVER,
        .primitive = GL_TRIANGLES,
        .vertices = piece->num_indices,
        .instances = 1,
        .indices = {.buffer = draw->indices, .offset = 4 * (int64_t)piece->first_index},
    };
    if (!set_scissor(piece, target->size, pass.scissor)) {
        return LR_OK;
    }
    return gl_pass_run(draw->ctx, &pass);
}
