/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Passes. Only this part of the program binds objects, draws and dispatches.
 *
 * Between passes, the state of OpenGL is the baseline: no program, vertex array, framebuffer, texture, image or buffer
 * is bound; blending, depth test and clip distances are off; culling, scissor, stencil, multisampling, dithering and
 * sRGB are off; all colour channels and depth can be written; points have one pixel; z is -1 .. 1 in clip space, with
 * the origin at the lower left. */
#pragma once

#include "gl/program.h"
#include "gl/resource.h"

enum { GL_PASS_BUFFERS = 12, GL_PASS_TEXTURES = 12, GL_PASS_IMAGES = 4 };

enum gl_blending {
    GL_BLENDING_OFF = 0,
    GL_BLENDING_ADD, /* destination + source, in every channel */
    GL_BLENDING_OVER /* source over destination by the source's alpha, which is not premultiplied */
};

/* A buffer, or a range of one. Offsets must be multiples of gl_limits.storage_alignment. */
struct gl_range {
    const struct gl_buffer *buffer; /* NULL = nothing bound */
    int64_t offset, size_bytes;     /* size 0 = up to the end */
};

/* Returns a range with the bytes ends[0] .. ends[1] - 1 of a buffer. The range begins at the last aligned offset before
 * these bytes. first: receives the index in the range of the first requested number. size: bytes of a number. */
struct gl_range gl_range_of(const struct gl_buffer *buffer, const int64_t ends[2], int64_t size, int64_t *first);

/* Level 0 of a texture for imageLoad, imageStore, imageAtomic. */
struct gl_image {
    const struct gl_texture *texture; /* NULL = nothing bound */
    GLenum access;                    /* 0 = GL_READ_WRITE */
    GLenum format;                    /* 0 = the format of the texture */
};

/* Returns how many groups of `size` items are needed for `count` items. */
static inline int gl_divide_up(int64_t count, int64_t size)
{
    return (int)((count + size - 1) / size);
}

/* Like gl_divide_up, for a pass whose threads loop over several items. The result is at most the number of groups that
 * OpenGL guarantees along an axis. */
static inline int gl_groups_in_turn(int64_t count, int64_t size)
{
    enum { ALLOWED_GROUPS = 65535 };
    const int64_t groups = (count + size - 1) / size;
    return groups < ALLOWED_GROUPS ? (int)groups : ALLOWED_GROUPS;
}

/* Everything that one draw or dispatch depends on. Fields that are zero have defaults. The caller owns all pointers. */
struct gl_pass {
    const char *label; /* required */
    struct gl_program *program;

    struct gl_range buffers[GL_PASS_BUFFERS];            /* storage binding k */
    const struct gl_texture *textures[GL_PASS_TEXTURES]; /* sampler binding k */
    struct gl_image images[GL_PASS_IMAGES];              /* image binding k */
    const void *uniforms;                                /* copied into the uniform block at binding 0 (std140) */
    size_t uniform_bytes;

    struct gl_target *target; /* required for drawing; NULL for compute */
    int viewport[4];          /* x, y, width, height; all 0 = the whole target */
    int scissor[4];           /* area outside which nothing is drawn; cut to the target; all 0 = no limit */
    enum gl_blending blending;
    bool depth_test;         /* the nearer fragment wins (GL_LESS), and depth is written */
    bool depth_zero_to_one;  /* z is 0 .. 1 in clip space; a float depth then resolves better */
    int clip_distances;      /* number of clip distances that are enabled, from gl_ClipDistance[0] on; the program must
                                write no others, because llvmpipe clips by all that are written */
    GLenum primitive;        /* 0 = GL_POINTS; there are no vertex attributes: shaders read vertices from buffers */
    int vertices, instances; /* nothing is drawn if either is 0 */

    int groups[3];       /* for compute only; nothing runs if any is 0 */
    GLbitfield barriers; /* glMemoryBarrier after the pass, so that later work can read its results */
};

/* Binds whole buffers: gl_pass_bind(&pass, {LR_BIND_ROWS, rows}, {LR_BIND_SUMS, sums}). */
struct gl_binding {
    int binding; /* storage binding */
    const struct gl_buffer *buffer;
};
static inline void gl_pass_bind_list(struct gl_pass *pass, const struct gl_binding *list, size_t count)
{
    for (size_t k = 0; k < count; k++) pass->buffers[list[k].binding].buffer = list[k].buffer;
}
#define gl_pass_bind(pass, ...)                                                                                        \
    gl_pass_bind_list(pass, (const struct gl_binding[]){__VA_ARGS__},                                                  \
                      sizeof((const struct gl_binding[]){__VA_ARGS__}) / sizeof(struct gl_binding))

/* Returns a compute pass with the label of its program, and with barriers that let shaders and copies read its
 * results. */
static inline struct gl_pass gl_pass_compute(struct gl_program *program, const void *uniforms, size_t bytes,
                                             const int groups[3])
{
    return (struct gl_pass){.label = gl_program_get_info(program)->label,
                            .program = program,
                            .uniforms = uniforms,
                            .uniform_bytes = bytes,
                            .groups = {groups[0], groups[1], groups[2]},
                            .barriers = GL_SHADER_STORAGE_BARRIER_BIT | GL_BUFFER_UPDATE_BARRIER_BIT};
}

/* Runs a pass and restores the baseline. Debug contexts are checked for errors after each pass. In other contexts, the
 * next read or gl_context_check reports them. errors: LR_USAGE for a program without its target or groups, for ranges
 * or viewports outside their objects, and for more clip distances or groups than the driver allows; LR_NO_DEVICE if the
 * context was lost; LR_FAILED if the driver reports an error. */
lr_status gl_pass_run(struct gl_context *ctx, const struct gl_pass *pass);
