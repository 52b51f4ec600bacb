/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Textures, buffers and render targets. Each has immutable storage, one mip level and a label. Callers may read the
 * structs, but not change them.
 *
 * Formats: GL_R8 RG8 RGBA8, R16UI RG16UI RGBA16UI, R16F RG16F RGBA16F, R32F RG32F RGBA32F, R32UI RG32UI RGBA32UI, R32I
 * RG32I RGBA32I, DEPTH_COMPONENT32F. In memory, texels are tightly packed, in the type of the format (R32F: float,
 * RG16UI: 2 x uint16_t, R8: uint8_t), x fastest, row 0 first. Uploads, clears and passes happen in the order of their
 * calls.
 *
 * errors: functions that create an object return NULL. LR_FAILED if the device has no memory, or for sizes beyond
 * gl_limits; LR_USAGE for boxes and ranges outside the object, and for other formats. */
#pragma once

#include "gl/context.h"

#include <stddef.h>

enum { GL_MAX_COLOURS = 4 };

/* Part of a texture, in texels; z counts slices or array layers. A depth of 0 counts as 1. */
struct gl_box {
    int x, y, z;
    int width, height, depth;
};

struct gl_texture_params {
    const char *label; /* required */
    GLenum target;     /* GL_TEXTURE_2D, _2D_ARRAY or _3D; 0 = GL_TEXTURE_2D */
    GLenum format;
    int width, height, depth; /* depth: slices or layers; 0 = 1 */
    bool linear;              /* samplers interpolate; if false, they take the nearest texel */
    bool is_unset;            /* contents are undefined until an upload */
    bool zero_outside;        /* samplers read 0 outside; if false, they read the nearest texel at the edge */
};

struct gl_texture {
    struct gl_context *ctx;
    GLuint name;
    GLenum target, format;
    int size[3];
    int texel_bytes;
    bool is_borrowed;
    char label[64];
    struct gl_loan *loan; /* NULL = none; the lender sets it */
};

/* Borrows a texture of another context that shares objects with this one. params: the parameters with which the texture
 * was made. If the borrowed texture is destroyed, the original stays. */
struct gl_texture *gl_texture_borrow(struct gl_context *ctx, GLuint name, const struct gl_texture_params *params);

/* Creates a texture of zeros, or with undefined contents if is_unset is true. */
struct gl_texture *gl_texture_create(struct gl_context *ctx, const struct gl_texture_params *params);
void gl_texture_destroy(struct gl_texture *texture); /* NULL is allowed */

/* Returns the bytes of all texels. */
int64_t gl_texture_bytes(const struct gl_texture *texture);

/* Copy all texels, or the texels of a box (NULL = all), to or from the host. `texels` can be reused as soon as an
 * upload returns. A read waits for the texels, and checks if the context was lost. */
lr_status gl_texture_upload(struct gl_texture *texture, const struct gl_box *box, const void *texels);
lr_status gl_texture_read(const struct gl_texture *texture, const struct gl_box *box, void *texels);

/* Sets every texel to `texel`, which is in the type of the format; texel NULL = zero. */
void gl_texture_clear(struct gl_texture *texture, const void *texel);

struct gl_buffer_params {
    const char *label; /* required */
    int64_t size_bytes;
    const void *data;  /* [size_bytes]; NULL = zeros */
    bool is_undefined; /* with data NULL: true if contents are undefined, and the caller writes all of them */
};

struct gl_buffer {
    struct gl_context *ctx;
    GLuint name;
    int64_t size_bytes;
    bool is_borrowed;
    char label[64];
    struct gl_loan *loan; /* NULL = none; the lender sets it */
};

/* Borrows the first size_bytes of a buffer of another context that shares objects with this one. params->data is not
 * read. If the borrowed buffer is destroyed, the original stays. errors: *buffer is NULL; LR_USAGE if no buffer has
 * this name, or if it is too short; LR_FAILED. */
lr_status gl_buffer_borrow(struct gl_context *ctx, GLuint name, const struct gl_buffer_params *params,
                           struct gl_buffer **buffer);

/* A size of 0 is rounded up to 4 bytes. */
struct gl_buffer *gl_buffer_create(struct gl_context *ctx, const struct gl_buffer_params *params);
/* Creates a buffer with a copy of the data; data NULL = zeros. errors: NULL, logged. */
struct gl_buffer *gl_data_buffer(struct gl_context *ctx, const char *label, int64_t bytes, const void *data);
void gl_buffer_destroy(struct gl_buffer *buffer); /* NULL is allowed */
void gl_buffer_list_destroy(struct gl_buffer *const *buffers, size_t count);
#define gl_buffers_destroy(...)                                                                                        \
    gl_buffer_list_destroy((struct gl_buffer *const[]){__VA_ARGS__},                                                   \
                           sizeof((struct gl_buffer *const[]){__VA_ARGS__}) / sizeof(struct gl_buffer *))

lr_status gl_buffer_upload(struct gl_buffer *buffer, int64_t offset, int64_t bytes, const void *data);
lr_status gl_buffer_read(const struct gl_buffer *buffer, int64_t offset, int64_t bytes, void *data);

/* A copy between two buffers, or between two ranges of one buffer that do not overlap. */
struct gl_buffer_range {
    const struct gl_buffer *from;
    struct gl_buffer *to;
    int64_t from_offset, to_offset, bytes;
};
void gl_buffer_copy_range(const struct gl_buffer_range *range);

/* Copy the texels of a box (NULL = all) from or to a buffer on the device. offset: in the buffer, bytes. */
lr_status gl_texture_copy_buffer(struct gl_texture *texture, const struct gl_box *box, const struct gl_buffer *from,
                                 int64_t offset);
lr_status gl_buffer_copy_texture(struct gl_buffer *buffer, int64_t offset, const struct gl_texture *from,
                                 const struct gl_box *box);

/* Sets every 32-bit word to `word`. */
void gl_buffer_clear(struct gl_buffer *buffer, uint32_t word);

/* Fills a range of `to` with one 32-bit word, or with two words that alternate (count = 2). The members for `from` are
 * not read. */
lr_status gl_buffer_fill_range(const struct gl_buffer_range *range, const uint32_t *words, int count);

/* Colours are numbered from 0. The list ends at the first k for which neither colour_formats[k] nor colours[k] is set.
 * If colour_formats[k] is set, the target makes colour k itself; otherwise it borrows colours[k]. */
struct gl_target_params {
    const char *label; /* required; textures that the target makes are called "LABEL colour 0" */
    int width, height; /* 0 = the size of colours[0] */
    int layers;        /* layers of the textures that the target makes: 0 = plain 2D, else 2D arrays whose layers are
                        * chosen by gl_Layer */
    GLenum colour_formats[GL_MAX_COLOURS];
    struct gl_texture *colours[GL_MAX_COLOURS]; /* must outlive the target */
    int layer;                                  /* layer of the borrowed array or 3D texture that is drawn into; -1 =
                                                   all layers */
    bool depth;                                 /* true if the target makes a GL_DEPTH_COMPONENT32F */
};

struct gl_target {
    struct gl_context *ctx;
    GLuint name;
    int size[2];
    int num_colours;
    struct gl_texture *colours[GL_MAX_COLOURS]; /* made by the target or borrowed */
    struct gl_texture *depth;                   /* NULL = none */
    bool owns[GL_MAX_COLOURS];
    char label[64];
};

struct gl_target *gl_target_create(struct gl_context *ctx, const struct gl_target_params *params);
void gl_target_destroy(struct gl_target *target); /* NULL is allowed */

/* The value to which a colour is cleared. Only the member for the colour's format is read. */
union gl_texel {
    float f[4];
    uint32_t u[4];
    int32_t i[4];
};

struct gl_clear {
    union gl_texel colours[GL_MAX_COLOURS];
    float depth; /* 1 is the far plane */
    int rect[4]; /* x, y, width, height; all 0 = the whole target */
};

/* Clears all attachments and their layers. clear: NULL = colours 0, depth 1. */
void gl_target_clear(struct gl_target *target, const struct gl_clear *clear);

/* Copies colour 0 into a framebuffer of the same size. framebuffer: its OpenGL name; 0 = the window. */
void gl_target_show(const struct gl_target *target, GLuint framebuffer);

/* A loan of a texture or buffer to another interface, such as CUDA. Until the loan ends, passes and transfers refuse
 * the object with LR_USAGE. If the object is destroyed, the loan ends. */
struct gl_loan {
    bool is_out;
    void (*end)(struct gl_loan *loan);
};

/* Checks that an object is not on loan. loan: NULL = the object was never lent. errors: LR_USAGE, logged. */
lr_status gl_loan_check(const struct gl_context *ctx, const struct gl_loan *loan, const char *label);
