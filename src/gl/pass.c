/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "gl/pass.h"

#include "base/log.h"
#include "gl/context_private.h"

enum { UNIFORM_BINDING = 0 };

struct gl_range gl_range_of(const struct gl_buffer *buffer, const int64_t ends[2], int64_t size, int64_t *first)
{
    const int64_t aligned = ends[0] / buffer->ctx->limits.storage_alignment * buffer->ctx->limits.storage_alignment;
    *first = (ends[0] - aligned) / size;
    return (struct gl_range){buffer, aligned, ends[1] - aligned};
}

void gl_pass_baseline(struct gl_context *ctx)
{
    static const GLenum off[] = {GL_BLEND,
                                 GL_DEPTH_TEST,
                                 GL_CULL_FACE,
                                 GL_SCISSOR_TEST,
                                 GL_STENCIL_TEST,
                                 GL_MULTISAMPLE,
                                 GL_DITHER,
                                 GL_FRAMEBUFFER_SRGB,
                                 GL_COLOR_LOGIC_OP,
                                 GL_DEPTH_CLAMP,
                                 GL_RASTERIZER_DISCARD,
                                 GL_PRIMITIVE_RESTART,
                                 GL_POLYGON_SMOOTH,
                                 GL_LINE_SMOOTH,
                                 GL_SAMPLE_MASK,
                                 GL_POLYGON_OFFSET_FILL,
                                 GL_PROGRAM_POINT_SIZE};
    for (size_t k = 0; k < sizeof(off) / sizeof(off[0]); k++) glDisable(off[k]);
    for (int k = 0; k < ctx->limits.max_clip_distances; k++) glDisable(GL_CLIP_DISTANCE0 + (GLenum)k);
    glColorMask(GL_TRUE, GL_TRUE, GL_TRUE, GL_TRUE);
    glDepthMask(GL_TRUE);
    glDepthFunc(GL_LESS);
    glDepthRange(0, 1);
    glPolygonMode(GL_FRONT_AND_BACK, GL_FILL);
    glPointSize(1);
    glClipControl(GL_LOWER_LEFT, GL_NEGATIVE_ONE_TO_ONE);
    glUseProgram(0);
    glBindVertexArray(0);
    glBindFramebuffer(GL_FRAMEBUFFER, 0);
    glBindBuffer(GL_PIXEL_PACK_BUFFER, 0);
    glBindBuffer(GL_PIXEL_UNPACK_BUFFER, 0);
}

/* ---- checks ---- */

static bool is_zero(const int *numbers, int count)
{
    for (int k = 0; k < count; k++)
        if (numbers[k] != 0) return false;
    return true;
}

static int64_t range_bytes(const struct gl_range *range)
{
    return range->size_bytes > 0 ? range->size_bytes : range->buffer->size_bytes - range->offset;
}

static lr_status check(struct gl_context *ctx, const struct gl_pass *pass)
{
    const struct gl_limits *limits = &ctx->limits;
    const struct gl_target *target = pass->target;
    for (int k = 0; k < GL_PASS_BUFFERS; k++) {
        const struct gl_buffer *buffer = pass->buffers[k].buffer;
        if (buffer != NULL) LR_TRY(gl_loan_check(ctx, buffer->loan, buffer->label));
    }
    for (int k = 0; k < GL_PASS_TEXTURES + GL_PASS_IMAGES; k++) {
        const struct gl_texture *texture =
            k < GL_PASS_TEXTURES ? pass->textures[k] : pass->images[k - GL_PASS_TEXTURES].texture;
        if (texture != NULL) LR_TRY(gl_loan_check(ctx, texture->loan, texture->label));
    }

    const bool computes = gl_program_get_info(pass->program)->group_size[0] > 0;
    for (int k = 0; k < 3 && computes; k++) {
        if (pass->groups[k] < 0 || pass->groups[k] > limits->max_compute_groups[k]) {
            return lr_error(ctx->log, LR_USAGE, "%s: %d work groups along axis %d are asked for and %s allows %d",
                            pass->label, pass->groups[k], k, limits->renderer, limits->max_compute_groups[k]);
        }
    }
    if (!computes) {
        if (target == NULL) return lr_error(ctx->log, LR_USAGE, "%s: a draw needs a target", pass->label);
        const int *size = target->size, *port = pass->viewport;
        if (!is_zero(port, 4) && (port[0] < 0 || port[1] < 0 || port[2] < 1 || port[3] < 1 ||
                                  port[2] > size[0] - port[0] || port[3] > size[1] - port[1])) {
            return lr_error(ctx->log, LR_USAGE,
                            "%s: the viewport of %d x %d pixels at %d, %d is not inside the target's %d x %d",
                            pass->label, port[2], port[3], port[0], port[1], size[0], size[1]);
        }
        if (pass->clip_distances < 0 || pass->clip_distances > limits->max_clip_distances) {
            return lr_error(ctx->log, LR_USAGE, "%s: %d clip distances are asked for and %s has %d", pass->label,
                            pass->clip_distances, limits->renderer, limits->max_clip_distances);
        }
        if (pass->depth_test && target->depth == NULL)
            return lr_error(ctx->log, LR_USAGE, "%s: %s has no depth to test against", pass->label, target->label);
    }

    for (int k = 0; k < GL_PASS_BUFFERS; k++) {
        const struct gl_range *range = &pass->buffers[k];
        if (range->buffer == NULL) continue;
        const int64_t size = range->buffer->size_bytes, bytes = range_bytes(range);
        if (k >= limits->max_storage_bindings || range->offset < 0 || range->offset >= size ||
            range->offset % limits->storage_alignment != 0 || range->size_bytes < 0 || bytes > size - range->offset) {
            return lr_error(ctx->log, LR_USAGE,
                            "%s: %lld bytes at %lld of %s (%lld bytes) cannot be bound at %d: ranges "
                            "lie inside, at multiples of %d, and there are %d bindings",
                            pass->label, (long long)bytes, (long long)range->offset, range->buffer->label,
                            (long long)size, k, limits->storage_alignment, limits->max_storage_bindings);
        }
    }
    if (pass->uniform_bytes > (size_t)limits->max_uniform_bytes || (int64_t)pass->uniform_bytes > gl_stream_most(ctx)) {
        return lr_error(ctx->log, LR_USAGE, "%s: %zu bytes of uniforms are more than the %d of %s", pass->label,
                        pass->uniform_bytes, limits->max_uniform_bytes, limits->renderer);
    }

    /* A pass must not read a texture into which it draws: the values would be undefined. */
    for (int k = 0; k < GL_PASS_TEXTURES && target != NULL; k++) {
        const struct gl_texture *texture = pass->textures[k];
        bool drawn = texture != NULL && texture == target->depth;
        for (int c = 0; c < target->num_colours && texture != NULL; c++)
            drawn = drawn || (texture == target->colours[c] && texture->size[2] == 1);
        if (drawn)
            return lr_error(ctx->log, LR_USAGE, "%s: %s is drawn into and read at once", pass->label, texture->label);
    }
    return LR_OK;
}

static void draw(struct gl_context *ctx, const struct gl_pass *pass)
{
    const int *port = pass->viewport, *size = pass->target->size;
    const bool whole = is_zero(port, 4);
    glBindVertexArray(ctx->vertex_array);
    glBindFramebuffer(GL_DRAW_FRAMEBUFFER, pass->target->name);
    glViewport(port[0], port[1], whole ? size[0] : port[2], whole ? size[1] : port[3]);
    if (pass->blending != GL_BLENDING_OFF) {
        glEnable(GL_BLEND);
        glBlendEquation(GL_FUNC_ADD);
    }
    if (pass->blending == GL_BLENDING_ADD) glBlendFunc(GL_ONE, GL_ONE);
    if (pass->blending == GL_BLENDING_OVER)
        glBlendFuncSeparate(GL_SRC_ALPHA, GL_ONE_MINUS_SRC_ALPHA, GL_ONE, GL_ONE_MINUS_SRC_ALPHA);
    if (!is_zero(pass->scissor, 4)) {
        glEnable(GL_SCISSOR_TEST);
        glScissor(pass->scissor[0], pass->scissor[1], pass->scissor[2], pass->scissor[3]);
    }
    if (pass->depth_test) glEnable(GL_DEPTH_TEST);
    if (pass->depth_zero_to_one) glClipControl(GL_LOWER_LEFT, GL_ZERO_TO_ONE);
    for (int k = 0; k < pass->clip_distances; k++) glEnable(GL_CLIP_DISTANCE0 + (GLenum)k);

    glDrawArraysInstanced(pass->primitive, 0, pass->vertices, pass->instances);
    for (int k = 0; k < pass->clip_distances; k++) glDisable(GL_CLIP_DISTANCE0 + (GLenum)k);
    if (pass->depth_zero_to_one) glClipControl(GL_LOWER_LEFT, GL_NEGATIVE_ONE_TO_ONE);
    glDisable(GL_DEPTH_TEST);
    glDisable(GL_BLEND);
    glDisable(GL_SCISSOR_TEST);
    glBindFramebuffer(GL_DRAW_FRAMEBUFFER, 0);
    glBindVertexArray(0);
}

lr_status gl_pass_run(struct gl_context *ctx, const struct gl_pass *pass)
{
    if (pass->program != NULL) LR_TRY(gl_program_wait(pass->program));
    LR_TRY(check(ctx, pass));
    const bool computes = gl_program_get_info(pass->program)->group_size[0] > 0;
    const bool is_empty = computes ? pass->groups[0] == 0 || pass->groups[1] == 0 || pass->groups[2] == 0
                                   : pass->vertices == 0 || pass->instances == 0;
    if (is_empty) return LR_OK;

    if (ctx->vertex_array == 0) { /* not made with the context, because contexts that only read limits need none */
        glCreateVertexArrays(1, &ctx->vertex_array);
        glObjectLabel(GL_VERTEX_ARRAY, ctx->vertex_array, -1, "no attributes");
        LR_TRY(gl_context_check(ctx, "an empty vertex array"));
    }
    if (pass->uniform_bytes > 0) {
        int64_t offset;
        LR_TRY(gl_stream_write(ctx, pass->uniforms, (int64_t)pass->uniform_bytes, &offset));
        /* A std140 block may end with padding that the caller's struct does not have. */
        glBindBufferRange(GL_UNIFORM_BUFFER, UNIFORM_BINDING, ctx->stream.name, (GLintptr)offset,
                          (GLsizeiptr)((pass->uniform_bytes + 15) / 16 * 16));
    }
    glPushDebugGroup(GL_DEBUG_SOURCE_APPLICATION, 0, -1, pass->label);
    glUseProgram(gl_program_get_info(pass->program)->name);
    for (GLuint k = 0; k < GL_PASS_BUFFERS; k++) {
        const struct gl_range *range = &pass->buffers[k];
        if (range->buffer != NULL) {
            glBindBufferRange(GL_SHADER_STORAGE_BUFFER, k, range->buffer->name, (GLintptr)range->offset,
                              (GLsizeiptr)range_bytes(range));
        }
    }
    for (GLuint k = 0; k < GL_PASS_TEXTURES; k++)
        if (pass->textures[k] != NULL) glBindTextureUnit(k, pass->textures[k]->name);
    for (GLuint k = 0; k < GL_PASS_IMAGES; k++) {
        const struct gl_image *image = &pass->images[k];
        if (image->texture != NULL) {
            glBindImageTexture(k, image->texture->name, 0, GL_TRUE, 0, image->access ? image->access : GL_READ_WRITE,
                               image->format ? image->format : image->texture->format);
        }
    }
    if (computes)
        glDispatchCompute((GLuint)pass->groups[0], (GLuint)pass->groups[1], (GLuint)pass->groups[2]);
    else
        draw(ctx, pass);
    if (pass->barriers != 0) glMemoryBarrier(pass->barriers);

    for (GLuint k = 0; k < GL_PASS_IMAGES; k++)
        if (pass->images[k].texture != NULL) glBindImageTexture(k, 0, 0, GL_FALSE, 0, GL_READ_ONLY, GL_R32F);
    for (GLuint k = 0; k < GL_PASS_TEXTURES; k++)
        if (pass->textures[k] != NULL) glBindTextureUnit(k, 0);
    for (GLuint k = 0; k < GL_PASS_BUFFERS; k++)
        if (pass->buffers[k].buffer != NULL) glBindBufferBase(GL_SHADER_STORAGE_BUFFER, k, 0);
    if (pass->uniform_bytes > 0) glBindBufferBase(GL_UNIFORM_BUFFER, UNIFORM_BINDING, 0);
    glUseProgram(0);
    glPopDebugGroup();
    return ctx->debug ? gl_context_check(ctx, pass->label) : LR_OK;
}
