/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/log.h"
#include "base/mem.h"
#include "gl/context_private.h"
#include "gl/resource.h"

#include <stdio.h>
#include <stdlib.h>

static struct gl_texture *make(const struct gl_target *target, const char *part, GLenum format, int layers)
{
    char label[96];
    snprintf(label, sizeof(label), "%s %s", target->label, part);
    const struct gl_texture_params params = {
        .label = label,
        .target = layers > 0 ? GL_TEXTURE_2D_ARRAY : GL_TEXTURE_2D,
        .format = format,
        .width = target->size[0],
        .height = target->size[1],
        .depth = layers,
    };
    return gl_texture_create(target->ctx, &params);
}

static lr_status attach(struct gl_target *target, const struct gl_target_params *params)
{
    GLenum points[GL_MAX_COLOURS] = {GL_NONE};
    for (int k = 0; k < GL_MAX_COLOURS; k++) {
        if (params->colours[k] == NULL && params->colour_formats[k] == 0) break;
        struct gl_texture *texture = params->colours[k];
        if (texture == NULL) {
            const char part[] = {'c', 'o', 'l', 'o', 'u', 'r', ' ', (char)('0' + k), '\0'};
            texture = make(target, part, params->colour_formats[k], params->layers);
            if (texture == NULL) return LR_FAILED;
            target->owns[k] = true;
        }
        target->colours[k] = texture;
        if (texture->size[0] < target->size[0] || texture->size[1] < target->size[1]) {
            return lr_error(target->ctx->log, LR_USAGE, "%s: %s is smaller than the target's %d x %d", target->label,
                            texture->label, target->size[0], target->size[1]);
        }
        const GLenum point = GL_COLOR_ATTACHMENT0 + (GLenum)k;
        if (texture->target == GL_TEXTURE_2D || params->layer < 0 || target->owns[k]) {
            glNamedFramebufferTexture(target->name, point, texture->name, 0);
        } else if (params->layer < texture->size[2]) {
            glNamedFramebufferTextureLayer(target->name, point, texture->name, 0, params->layer);
        } else {
            return lr_error(target->ctx->log, LR_USAGE, "%s: %s has no layer %d, only %d", target->label,
                            texture->label, params->layer, texture->size[2]);
        }

        points[target->num_colours++] = point;
    }
    if (params->depth) {
        /* If a pass draws into all layers of an array, made here or borrowed, the depth has as many layers. */
        const struct gl_texture *first = params->colours[0];
        const int layers = first == NULL                                         ? params->layers
                           : params->layer < 0 && first->target != GL_TEXTURE_2D ? first->size[2]
                                                                                 : 0;
        target->depth = make(target, "depth", GL_DEPTH_COMPONENT32F, layers);
        if (target->depth == NULL) return LR_FAILED;
        glNamedFramebufferTexture(target->name, GL_DEPTH_ATTACHMENT, target->depth->name, 0);
    }
    if (target->num_colours == 0 && !params->depth) {
        /* A framebuffer without attachments takes its size from parameters. */
        glNamedFramebufferParameteri(target->name, GL_FRAMEBUFFER_DEFAULT_WIDTH, target->size[0]);
        glNamedFramebufferParameteri(target->name, GL_FRAMEBUFFER_DEFAULT_HEIGHT, target->size[1]);
        glNamedFramebufferParameteri(target->name, GL_FRAMEBUFFER_DEFAULT_LAYERS, params->layers);
    }

    glNamedFramebufferDrawBuffers(target->name, target->num_colours, points);
    const GLenum status = glCheckNamedFramebufferStatus(target->name, GL_DRAW_FRAMEBUFFER);
    if (status == GL_FRAMEBUFFER_COMPLETE) return LR_OK;
    return lr_error(target->ctx->log, LR_FAILED, "%s: %s cannot draw into this combination of textures (status 0x%04x)",
                    target->label, gl_context_limits(target->ctx)->renderer, (unsigned)status);
}

struct gl_target *gl_target_create(struct gl_context *ctx, const struct gl_target_params *params)
{
    struct gl_target *target = lr_alloc(1, sizeof(*target), params->label, ctx->log);
    if (target == NULL) return NULL;
    target->ctx = ctx;
    gl_copy_text(target->label, sizeof(target->label), params->label);
    const struct gl_texture *first = params->colours[0];
    target->size[0] = params->width ? params->width : first ? first->size[0] : 0;
    target->size[1] = params->height ? params->height : first ? first->size[1] : 0;
    const int *size = target->size, *most = ctx->limits.max_viewport_size;
    const bool is_empty = size[0] < 1 || size[1] < 1;
    if (is_empty || size[0] > most[0] || size[1] > most[1]) {
        if (is_empty) {
            lr_error(ctx->log, LR_USAGE, "%s: a target cannot have %d x %d pixels", target->label, size[0], size[1]);
        } else {
            lr_error(ctx->log, LR_FAILED,
                     "%s: a target of %d x %d pixels is larger than %s allows (%d x %d): make "
                     "the work smaller or split it",
                     target->label, size[0], size[1], ctx->limits.renderer, most[0], most[1]);
        }
        free(target);
        return NULL;
    }
    glCreateFramebuffers(1, &target->name);
    glObjectLabel(GL_FRAMEBUFFER, target->name, -1, target->label);
    if (attach(target, params) != LR_OK) {
        gl_target_destroy(target);
        return NULL;
    }
    return target;
}

void gl_target_destroy(struct gl_target *target)
{
    if (target == NULL) return;
    glDeleteFramebuffers(1, &target->name);
    for (int k = 0; k < GL_MAX_COLOURS; k++)
        if (target->owns[k]) gl_texture_destroy(target->colours[k]);
    gl_texture_destroy(target->depth);
    free(target);
}

void gl_target_clear(struct gl_target *target, const struct gl_clear *asked)
{
    const struct gl_clear zero = {.depth = 1};
    const struct gl_clear *clear = asked ? asked : &zero;
    const int *rect = clear->rect;
    const bool part = rect[0] != 0 || rect[1] != 0 || rect[2] != 0 || rect[3] != 0;
    if (part) {
        glEnable(GL_SCISSOR_TEST);
        glScissor(rect[0], rect[1], rect[2], rect[3]);
    }
    for (int k = 0; k < target->num_colours; k++) {
        const union gl_texel *texel = &clear->colours[k];
        switch (gl_format_find(target->colours[k]->format)->kind) {
        case GL_FORMAT_UINT: glClearNamedFramebufferuiv(target->name, GL_COLOR, k, texel->u); break;
        case GL_FORMAT_INT: glClearNamedFramebufferiv(target->name, GL_COLOR, k, texel->i); break;
        default: glClearNamedFramebufferfv(target->name, GL_COLOR, k, texel->f); break;
        }
    }

    if (target->depth != NULL) glClearNamedFramebufferfv(target->name, GL_DEPTH, 0, &clear->depth);
    if (part) glDisable(GL_SCISSOR_TEST);
}

void gl_target_show(const struct gl_target *target, GLuint framebuffer)
{
    const int *size = target->size;
    glNamedFramebufferReadBuffer(target->name, GL_COLOR_ATTACHMENT0);
    glBlitNamedFramebuffer(target->name, framebuffer, 0, 0, size[0], size[1], 0, 0, size[0], size[1],
                           GL_COLOR_BUFFER_BIT, GL_NEAREST);
}
