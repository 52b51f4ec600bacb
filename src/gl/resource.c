/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "gl/resource.h"

#include "base/log.h"
#include "base/mem.h"
#include "gl/context_private.h"
#include "gl/pass.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

/* --- formats --- */

static const struct gl_format formats[] = {
    {GL_R8, GL_RED, GL_UNSIGNED_BYTE, 1, GL_FORMAT_FLOAT},
    {GL_RG8, GL_RG, GL_UNSIGNED_BYTE, 2, GL_FORMAT_FLOAT},
    {GL_RGBA8, GL_RGBA, GL_UNSIGNED_BYTE, 4, GL_FORMAT_FLOAT},
    {GL_R16UI, GL_RED_INTEGER, GL_UNSIGNED_SHORT, 2, GL_FORMAT_UINT},
    {GL_RG16UI, GL_RG_INTEGER, GL_UNSIGNED_SHORT, 4, GL_FORMAT_UINT},
    {GL_RGBA16UI, GL_RGBA_INTEGER, GL_UNSIGNED_SHORT, 8, GL_FORMAT_UINT},
    {GL_R16F, GL_RED, GL_HALF_FLOAT, 2, GL_FORMAT_FLOAT},
    {GL_RG16F, GL_RG, GL_HALF_FLOAT, 4, GL_FORMAT_FLOAT},
    {GL_RGBA16F, GL_RGBA, GL_HALF_FLOAT, 8, GL_FORMAT_FLOAT},
    {GL_R32F, GL_RED, GL_FLOAT, 4, GL_FORMAT_FLOAT},
    {GL_RG32F, GL_RG, GL_FLOAT, 8, GL_FORMAT_FLOAT},
    {GL_RGBA32F, GL_RGBA, GL_FLOAT, 16, GL_FORMAT_FLOAT},
    {GL_R32UI, GL_RED_INTEGER, GL_UNSIGNED_INT, 4, GL_FORMAT_UINT},
    {GL_RG32UI, GL_RG_INTEGER, GL_UNSIGNED_INT, 8, GL_FORMAT_UINT},
    {GL_RGBA32UI, GL_RGBA_INTEGER, GL_UNSIGNED_INT, 16, GL_FORMAT_UINT},
    {GL_R32I, GL_RED_INTEGER, GL_INT, 4, GL_FORMAT_INT},
    {GL_RG32I, GL_RG_INTEGER, GL_INT, 8, GL_FORMAT_INT},
    {GL_RGBA32I, GL_RGBA_INTEGER, GL_INT, 16, GL_FORMAT_INT},
    {GL_DEPTH_COMPONENT32F, GL_DEPTH_COMPONENT, GL_FLOAT, 4, GL_FORMAT_DEPTH},
};

const struct gl_format *gl_format_find(GLenum internal)
{
    for (size_t k = 0; k < sizeof(formats) / sizeof(formats[0]); k++)
        if (formats[k].internal == internal) return &formats[k];
    return NULL;
}

/* --- pool for storage of destroyed buffers --- */

/* The smallest buffer that the pool keeps, bytes. The limit is low, because each projection makes several small
 * tables. */
enum { LEAST_BYTES = 1 << 6 };

static void leave_out(struct gl_pool *pool, int which)
{
    pool->bytes -= pool->held[which].bytes;
    pool->count--;
    for (int k = which; k < pool->count; k++) pool->held[k] = pool->held[k + 1];
}

static void delete_oldest(struct gl_pool *pool)
{
    glDeleteBuffers(1, &pool->held[0].name);
    leave_out(pool, 0);
}

void gl_pool_empty(struct gl_pool *pool)
{
    while (pool->count > 0) delete_oldest(pool);
}

/* Drivers store the size of a transfer as an int. */
static const int64_t max_read_bytes = (int64_t)1 << 30;

/* Reports a pending error of earlier work, so that the next object is not blamed for this error. */
static lr_status check_before(struct gl_context *ctx, const char *label)
{
    char what[128];
    snprintf(what, sizeof(what), "the work before %s is made", label);
    return gl_context_check_errors(ctx, what);
}

/* ---- textures: creating ---- */

/* Returns the memory of the device, or of the machine if the driver does not report it, bytes. */
static int64_t memory_of(struct gl_context *ctx)
{
    const int64_t reported = gl_context_limits(ctx)->memory_bytes;
    if (reported == 0 && ctx->machine_bytes == 0) ctx->machine_bytes = lr_physical_memory();
    return reported > 0 ? reported : ctx->machine_bytes;
}

/* Checks that the device's memory has room for an object. Drivers also accept larger objects, but put them into the
 * machine's memory, where work on them is very slow. */
static lr_status check_memory(struct gl_context *ctx, const char *label, int64_t bytes)
{
    const int64_t most = memory_of(ctx);
    if (bytes <= most) return LR_OK;
    return lr_error(ctx->log, LR_FAILED, "%s: %s do not fit into the %s of %s: make the work smaller or split it",
                    label, lr_bytes_text((double)bytes, (char[32]){0}), lr_bytes_text((double)most, (char[32]){0}),
                    gl_context_limits(ctx)->renderer);
}

static lr_status report_allocation(struct gl_context *ctx, const char *label, int64_t bytes, GLenum error)
{
    gl_context_drop_errors(ctx);
    if (error == GL_CONTEXT_LOST) return gl_context_report_loss(ctx, label);
    const char *renderer = gl_context_limits(ctx)->renderer;
    if (error == GL_OUT_OF_MEMORY) {
        return lr_error(ctx->log, LR_FAILED,
                        "%s: no memory for %s on %s: close other programs that use it, or make "
                        "the work smaller or split it",
                        label, lr_bytes_text((double)bytes, (char[32]){0}), renderer);
    }
    return lr_error(ctx->log, LR_FAILED, "%s: %s refuses storage of %s (%s)", label, renderer,
                    lr_bytes_text((double)bytes, (char[32]){0}), gl_error_name(error));
}

static struct gl_texture *make_texture(struct gl_context *ctx, const struct gl_texture_params *params)
{
    struct gl_texture *texture = lr_alloc(1, sizeof(*texture), params->label, ctx->log);
    if (texture == NULL) return NULL;
    texture->ctx = ctx;
    gl_copy_text(texture->label, sizeof(texture->label), params->label);
    const struct gl_format *format = gl_format_find(params->format);
    const struct gl_limits *limits = &ctx->limits;
    const GLenum target = params->target ? params->target : GL_TEXTURE_2D;
    texture->target = target;
    texture->format = params->format;
    texture->size[0] = params->width;
    texture->size[1] = params->height;
    texture->size[2] = params->depth ? params->depth : 1;
    const int *size = texture->size;
    const int side = target == GL_TEXTURE_3D ? limits->max_3d_texture_size : limits->max_texture_size;
    const int depth = target == GL_TEXTURE_3D ? side : target == GL_TEXTURE_2D_ARRAY ? limits->max_array_layers : 1;
    if (format == NULL || size[0] < 1 || size[1] < 1 || size[2] < 1 ||
        (target != GL_TEXTURE_2D && target != GL_TEXTURE_2D_ARRAY && target != GL_TEXTURE_3D)) {
        lr_error(ctx->log, LR_USAGE,
                 "%s: no texture of %d x %d x %d texels, format 0x%04x and target 0x%04x can be "
                 "made: sizes are positive, formats and targets those of resource.h",
                 texture->label, size[0], size[1], size[2], (unsigned)params->format, (unsigned)target);
    } else if (size[0] > side || size[1] > side || size[2] > depth) {
        lr_error(ctx->log, LR_FAILED,
                 "%s: a texture of %d x %d x %d texels is larger than %s allows (%d x %d x %d): make "
                 "the work smaller or split it",
                 texture->label, size[0], size[1], size[2], limits->renderer, side, side, depth);
    } else {
        texture->texel_bytes = format->bytes;
        return texture;
    }
    free(texture);
    return NULL;
}

struct gl_texture *gl_texture_borrow(struct gl_context *ctx, GLuint name, const struct gl_texture_params *params)
{
    struct gl_texture *texture = make_texture(ctx, params);
    if (texture != NULL) {
        texture->name = name;
        texture->is_borrowed = true;
    }
    return texture;
}

struct gl_texture *gl_texture_create(struct gl_context *ctx, const struct gl_texture_params *params)
{
    struct gl_texture *texture = make_texture(ctx, params);
    if (texture == NULL) return NULL;
    if (check_before(ctx, texture->label) != LR_OK) {
        free(texture);
        return NULL;
    }
    glCreateTextures(texture->target, 1, &texture->name);
    glObjectLabel(GL_TEXTURE, texture->name, -1, texture->label);
    const GLint filter = params->linear ? GL_LINEAR : GL_NEAREST;
    const GLint wrap = params->zero_outside ? GL_CLAMP_TO_BORDER : GL_CLAMP_TO_EDGE;
    glTextureParameteri(texture->name, GL_TEXTURE_MIN_FILTER, filter);
    glTextureParameteri(texture->name, GL_TEXTURE_MAG_FILTER, filter);
    glTextureParameteri(texture->name, GL_TEXTURE_WRAP_S, wrap);
    glTextureParameteri(texture->name, GL_TEXTURE_WRAP_T, wrap);
    glTextureParameteri(texture->name, GL_TEXTURE_WRAP_R, wrap);

    const int *size = texture->size;
    const int64_t bytes = gl_texture_bytes(texture);
    if (check_memory(ctx, texture->label, bytes) == LR_OK) {
        if (texture->target == GL_TEXTURE_2D)
            glTextureStorage2D(texture->name, 1, texture->format, size[0], size[1]);
        else
            glTextureStorage3D(texture->name, 1, texture->format, size[0], size[1], size[2]);
        GLenum error = glGetError();
        if (error == GL_NO_ERROR && !params->is_unset) {
            gl_texture_clear(texture, NULL);
            error = glGetError();
        }
        if (error == GL_NO_ERROR) return texture;
        (void)report_allocation(ctx, texture->label, bytes, error);
    }
    gl_texture_destroy(texture);
    return NULL;
}

void gl_texture_destroy(struct gl_texture *texture)
{
    if (texture != NULL) {
        if (texture->loan != NULL) texture->loan->end(texture->loan);
        if (!texture->is_borrowed) glDeleteTextures(1, &texture->name);
        free(texture);
    }
}

int64_t gl_texture_bytes(const struct gl_texture *texture)
{
    return (int64_t)texture->size[0] * texture->size[1] * texture->size[2] * texture->texel_bytes;
}

/* ---- textures: contents ---- */

/* Sets *box to the requested box. asked: NULL = the whole texture. A depth of 0 means one slice. */
static lr_status resolve(const struct gl_texture *texture, const struct gl_box *asked, struct gl_box *box)
{
    const int *size = texture->size;
    *box = asked ? *asked : (struct gl_box){0, 0, 0, size[0], size[1], size[2]};
    if (box->depth == 0) box->depth = 1;
    if (box->x < 0 || box->y < 0 || box->z < 0 || box->width < 0 || box->height < 0 || box->depth < 0 ||
        box->width > size[0] - box->x || box->height > size[1] - box->y || box->depth > size[2] - box->z) {
        return lr_error(texture->ctx->log, LR_USAGE,
                        "%s: the box of %d x %d x %d texels at %d, %d, %d is not inside %d x %d x %d", texture->label,
                        box->width, box->height, box->depth, box->x, box->y, box->z, size[0], size[1], size[2]);
    }
    return LR_OK;
}

/* Binds a buffer for transfers of texels: GL_PIXEL_UNPACK_BUFFER to read from it, GL_PIXEL_PACK_BUFFER to write to it.
 * Without a bound buffer, OpenGL would take offsets for addresses. */
static lr_status bind_texels(struct gl_context *ctx, GLenum target, GLuint buffer)
{
    GLint bound = 0;
    glBindBuffer(target, buffer);
    glGetIntegerv(target == GL_PIXEL_PACK_BUFFER ? GL_PIXEL_PACK_BUFFER_BINDING : GL_PIXEL_UNPACK_BUFFER_BINDING,
                  &bound);
    if ((GLuint)bound == buffer) return LR_OK;
    glBindBuffer(target, 0);
    LR_TRY(gl_context_check(ctx, "a transfer of texels"));
    return lr_error(ctx->log, LR_FAILED, "the driver refuses the buffer of a transfer of texels");
}

/* Copies texels from a buffer, at an offset, into a box of a texture. */
static lr_status take_texels(const struct gl_texture *texture, const struct gl_box *box, GLuint buffer, int64_t offset)
{
    const struct gl_format *format = gl_format_find(texture->format);
    const void *source = (const void *)(uintptr_t)offset;
    LR_TRY(bind_texels(texture->ctx, GL_PIXEL_UNPACK_BUFFER, buffer));
    if (texture->target == GL_TEXTURE_2D) {
        glTextureSubImage2D(texture->name, 0, box->x, box->y, box->width, box->height, format->pixel, format->type,
                            source);
    } else {
        glTextureSubImage3D(texture->name, 0, box->x, box->y, box->z, box->width, box->height, box->depth,
                            format->pixel, format->type, source);
    }
    glBindBuffer(GL_PIXEL_UNPACK_BUFFER, 0);
    return LR_OK;
}

/* Returns the next piece of a box that one call can transfer: the whole box if possible, otherwise some rows of one
 * slice. done: number of rows transferred so far, over all slices. */
static struct gl_box piece_at(const struct gl_box *box, int64_t done, int64_t row_bytes, int64_t most_bytes)
{
    if (row_bytes * box->height * box->depth <= most_bytes) return *box;
    const int z = (int)(done / box->height), y = (int)(done % box->height);
    const int64_t fitting = most_bytes / row_bytes;
    struct gl_box piece = {box->x, box->y + y, box->z + z, box->width, box->height - y, 1};
    if (piece.height > fitting) piece.height = (int)fitting;
    return piece;
}

lr_status gl_texture_upload(struct gl_texture *texture, const struct gl_box *asked, const void *texels)
{
    struct gl_box box;
    LR_TRY(gl_loan_check(texture->ctx, texture->loan, texture->label));
    LR_TRY(resolve(texture, asked, &box));
    const int64_t row_bytes = (int64_t)box.width * texture->texel_bytes;
    const int64_t rows = (int64_t)box.height * box.depth;
    glPixelStorei(GL_UNPACK_ALIGNMENT, 1);
    glMemoryBarrier(GL_TEXTURE_UPDATE_BARRIER_BIT);
    for (int64_t done = 0; row_bytes > 0 && done < rows;) {
        const struct gl_box piece = piece_at(&box, done, row_bytes, gl_stream_most(texture->ctx));
        const int64_t piece_bytes = (int64_t)piece.width * piece.height * piece.depth * texture->texel_bytes;
        int64_t offset; /* within the ring */
        LR_TRY(gl_stream_write(texture->ctx, (const char *)texels + done * row_bytes, piece_bytes, &offset));
        LR_TRY(take_texels(texture, &piece, texture->ctx->stream.name, offset));
        done += (int64_t)piece.height * piece.depth;
    }
    return texture->ctx->debug ? gl_context_check(texture->ctx, texture->label) : LR_OK;
}

/* Reads texels to memory. If a pack buffer is bound, `texels` is an offset in it. */
static void read_pieces(const struct gl_texture *texture, const struct gl_box *box, char *texels)
{
    const struct gl_format *format = gl_format_find(texture->format);
    const int64_t row_bytes = (int64_t)box->width * texture->texel_bytes;
    const int64_t rows = (int64_t)box->height * box->depth;
    glPixelStorei(GL_PACK_ALIGNMENT, 1);
    for (int64_t done = 0; row_bytes > 0 && done < rows;) {
        const struct gl_box piece = piece_at(box, done, row_bytes, max_read_bytes);
        const int64_t piece_bytes = (int64_t)piece.width * piece.height * piece.depth * format->bytes;
        glGetTextureSubImage(texture->name, 0, piece.x, piece.y, piece.z, piece.width, piece.height, piece.depth,
                             format->pixel, format->type, (GLsizei)piece_bytes, texels + done * row_bytes);
        done += (int64_t)piece.height * piece.depth;
    }
}

lr_status gl_texture_read(const struct gl_texture *texture, const struct gl_box *asked, void *texels)
{
    struct gl_box box;
    LR_TRY(gl_loan_check(texture->ctx, texture->loan, texture->label));
    LR_TRY(resolve(texture, asked, &box));
    glMemoryBarrier(GL_TEXTURE_UPDATE_BARRIER_BIT);
    read_pieces(texture, &box, texels);
    return gl_context_check(texture->ctx, texture->label);
}

void gl_texture_clear(struct gl_texture *texture, const void *texel)
{
    const struct gl_format *format = gl_format_find(texture->format);
    if (gl_loan_check(texture->ctx, texture->loan, texture->label) != LR_OK) return;
    glClearTexImage(texture->name, 0, format->pixel, format->type, texel);
}

/* Checks that the box is inside the texture, and that its texels are inside the buffer. */
static lr_status resolve_copy(const struct gl_texture *texture, const struct gl_box *asked,
                              const struct gl_buffer *buffer, int64_t offset, struct gl_box *box)
{
    LR_TRY(gl_loan_check(texture->ctx, texture->loan, texture->label));
    LR_TRY(gl_loan_check(texture->ctx, buffer->loan, buffer->label));
    LR_TRY(resolve(texture, asked, box));
    const int64_t bytes = (int64_t)box->width * box->height * box->depth * texture->texel_bytes;
    if (offset < 0 || bytes > buffer->size_bytes - offset) {
        return lr_error(texture->ctx->log, LR_USAGE, "%s: %lld bytes at %lld are outside %s, which has %lld",
                        texture->label, (long long)bytes, (long long)offset, buffer->label,
                        (long long)buffer->size_bytes);
    }
    glMemoryBarrier(GL_PIXEL_BUFFER_BARRIER_BIT | GL_TEXTURE_UPDATE_BARRIER_BIT);
    return LR_OK;
}

lr_status gl_texture_copy_buffer(struct gl_texture *texture, const struct gl_box *asked, const struct gl_buffer *from,
                                 int64_t offset)
{
    struct gl_box box;
    LR_TRY(resolve_copy(texture, asked, from, offset, &box));
    glPixelStorei(GL_UNPACK_ALIGNMENT, 1);
    return take_texels(texture, &box, from->name, offset);
}

lr_status gl_buffer_copy_texture(struct gl_buffer *buffer, int64_t offset, const struct gl_texture *from,
                                 const struct gl_box *asked)
{
    struct gl_box box;
    LR_TRY(resolve_copy(from, asked, buffer, offset, &box));
    LR_TRY(bind_texels(from->ctx, GL_PIXEL_PACK_BUFFER, buffer->name));
    read_pieces(from, &box, (char *)(uintptr_t)offset);
    glBindBuffer(GL_PIXEL_PACK_BUFFER, 0);
    return gl_context_check(from->ctx, from->label);
}

/* ---- buffers ---- */

/* STAGING_BYTES: largest number of bytes that are read through the staging buffer at once. CLEAR_BYTES: largest number
 * of bytes that one call clears. */
enum { STAGING_BYTES = 1 << 24, CLEAR_BYTES = 1 << 29 };

/* Returns the size of a buffer's storage, in whole words, so that gl_buffer_clear reaches every byte. */
static int64_t storage_bytes(int64_t size_bytes)
{
    return (size_bytes + 3) / 4 * 4;
}

static GLenum make_storage(struct gl_buffer *buffer, int64_t bytes)
{
    glCreateBuffers(1, &buffer->name);
    glNamedBufferStorage(buffer->name, (GLsizeiptr)bytes, NULL, 0);
    return glGetError();
}

struct gl_buffer *gl_buffer_create(struct gl_context *ctx, const struct gl_buffer_params *params)
{
    if (params->size_bytes < 0) {
        lr_error(ctx->log, LR_USAGE, "%s: a buffer cannot have %lld bytes", params->label,
                 (long long)params->size_bytes);
        return NULL;
    }
    struct gl_buffer *buffer = lr_alloc(1, sizeof(*buffer), params->label, ctx->log);
    if (buffer == NULL) return NULL;
    buffer->ctx = ctx;
    buffer->size_bytes = params->size_bytes > 0 ? params->size_bytes : 4;
    gl_copy_text(buffer->label, sizeof(buffer->label), params->label);
    if (check_before(ctx, buffer->label) != LR_OK) {
        free(buffer);
        return NULL;
    }

    /* The storage comes from the pool if the pool has storage of exactly this size, with its old contents. Otherwise
     * new storage is allocated. If there is no memory for new storage, the pool is emptied, and the allocation is tried
     * once more. */
    const void *data = params->size_bytes > 0 ? params->data : NULL;
    lr_status status = check_memory(ctx, buffer->label, buffer->size_bytes);
    if (status == LR_OK) {
        struct gl_pool *pool = &ctx->pool;
        const int64_t bytes = storage_bytes(buffer->size_bytes);
        for (int k = pool->count - 1; k >= 0 && buffer->name == 0; k--) {
            if (pool->held[k].bytes == bytes) {
                buffer->name = pool->held[k].name;
                leave_out(pool, k);
            }
        }
        GLenum error = buffer->name == 0 ? make_storage(buffer, bytes) : GL_NO_ERROR;
        if (error == GL_OUT_OF_MEMORY && pool->count > 0) {
            glDeleteBuffers(1, &buffer->name);
            gl_pool_empty(pool);
            error = make_storage(buffer, bytes);
        }
        if (error == GL_NO_ERROR) {
            glObjectLabel(GL_BUFFER, buffer->name, -1, buffer->label);
            if (data != NULL)
                status = gl_buffer_upload(buffer, 0, buffer->size_bytes, data);
            else if (!params->is_undefined)
                gl_buffer_clear(buffer, 0);
            error = status == LR_OK ? glGetError() : GL_NO_ERROR;
        }
        if (error != GL_NO_ERROR) status = report_allocation(ctx, buffer->label, buffer->size_bytes, error);
    }
    if (status == LR_OK) return buffer;
    glDeleteBuffers(1, &buffer->name); /* not put into the pool, because the buffer may have no storage */
    free(buffer);
    return NULL;
}

lr_status gl_buffer_borrow(struct gl_context *ctx, GLuint name, const struct gl_buffer_params *params,
                           struct gl_buffer **buffer)
{
    *buffer = NULL;
    GLint64 bytes = 0;
    if (!glIsBuffer(name)) {
        return lr_error(ctx->log, LR_USAGE,
                        "%s: %u names no buffer of the OpenGL context or of those that it shares objects with",
                        params->label, name);
    }
    glGetNamedBufferParameteri64v(name, GL_BUFFER_SIZE, &bytes);
    LR_TRY(params->size_bytes <= bytes
               ? LR_OK
               : lr_error(ctx->log, LR_USAGE, "%s: OpenGL buffer %u has %lld bytes, and %lld are needed", params->label,
                          name, (long long)bytes, (long long)params->size_bytes));

    struct gl_buffer *borrowed = lr_alloc(1, sizeof(*borrowed), params->label, ctx->log);
    if (borrowed == NULL) return LR_FAILED;
    *borrowed = (struct gl_buffer){.ctx = ctx, .name = name, .size_bytes = params->size_bytes, .is_borrowed = true};
    gl_copy_text(borrowed->label, sizeof(borrowed->label), params->label);
    *buffer = borrowed;
    return LR_OK;
}

struct gl_buffer *gl_data_buffer(struct gl_context *ctx, const char *label, int64_t bytes, const void *data)
{
    return gl_buffer_create(ctx, &(struct gl_buffer_params){.label = label, .size_bytes = bytes, .data = data});
}

void gl_buffer_destroy(struct gl_buffer *buffer)
{
    if (buffer == NULL) return;
    struct gl_pool *pool = &buffer->ctx->pool;
    const int64_t bytes = storage_bytes(buffer->size_bytes);
    const bool is_lent = buffer->loan != NULL; /* a lent buffer is deleted instead of pooled, because the other
                                                  interface may still use its name */
    if (is_lent) buffer->loan->end(buffer->loan);
    if (!buffer->is_borrowed) {
        if (!is_lent) pool->most_bytes = memory_of(buffer->ctx) / 8;
        if (is_lent || bytes < LEAST_BYTES || bytes > pool->most_bytes) {
            glDeleteBuffers(1, &buffer->name);
        } else {
            while (pool->count == GL_POOL_MOST || pool->bytes > pool->most_bytes - bytes) delete_oldest(pool);
            pool->held[pool->count++] = (struct gl_pooled){buffer->name, bytes};
            pool->bytes += bytes;
        }
    }
    free(buffer);
}

void gl_buffer_list_destroy(struct gl_buffer *const *buffers, size_t count)
{
    for (size_t k = 0; k < count; k++) gl_buffer_destroy(buffers[k]);
}

static lr_status check_range(const struct gl_buffer *buffer, int64_t offset, int64_t bytes)
{
    if (offset < 0 || bytes < 0 || bytes > buffer->size_bytes - offset) {
        return lr_error(buffer->ctx->log, LR_USAGE, "%s: %lld bytes at %lld are not inside its %lld bytes",
                        buffer->label, (long long)bytes, (long long)offset, (long long)buffer->size_bytes);
    }
    return LR_OK;
}

lr_status gl_buffer_upload(struct gl_buffer *buffer, int64_t offset, int64_t bytes, const void *data)
{
    LR_TRY(gl_loan_check(buffer->ctx, buffer->loan, buffer->label));
    LR_TRY(check_range(buffer, offset, bytes));
    glMemoryBarrier(GL_BUFFER_UPDATE_BARRIER_BIT);
    const int64_t most = gl_stream_most(buffer->ctx);
    for (int64_t done = 0; done < bytes; done += most) {
        const int64_t piece = bytes - done < most ? bytes - done : most;
        int64_t from;
        LR_TRY(gl_stream_write(buffer->ctx, (const char *)data + done, piece, &from));
        glCopyNamedBufferSubData(buffer->ctx->stream.name, buffer->name, (GLintptr)from, (GLintptr)(offset + done),
                                 (GLsizeiptr)piece);
    }

    return buffer->ctx->debug ? gl_context_check(buffer->ctx, buffer->label) : LR_OK;
}

/* Reads through a staging buffer. If a buffer is read directly, some drivers move it permanently to the machine's
 * memory, where the device reads it slowly. */
lr_status gl_buffer_read(const struct gl_buffer *buffer, int64_t offset, int64_t bytes, void *data)
{
    LR_TRY(gl_loan_check(buffer->ctx, buffer->loan, buffer->label));
    LR_TRY(check_range(buffer, offset, bytes));
    struct gl_context *ctx = buffer->ctx;
    if (ctx->staging_buffer == 0) { /* memory of the machine to which the device can write; made once and kept */
        LR_TRY(check_before(ctx, "staging for reads"));
        glCreateBuffers(1, &ctx->staging_buffer);
        glObjectLabel(GL_BUFFER, ctx->staging_buffer, -1, "staging for reads");
        glNamedBufferStorage(ctx->staging_buffer, STAGING_BYTES, NULL, GL_MAP_READ_BIT | GL_CLIENT_STORAGE_BIT);
        const GLenum error = glGetError();
        if (error != GL_NO_ERROR) {
            glDeleteBuffers(1, &ctx->staging_buffer);
            ctx->staging_buffer = 0;
            return report_allocation(ctx, "staging for reads", STAGING_BYTES, error);
        }
    }
    const GLuint staging = ctx->staging_buffer;
    glMemoryBarrier(GL_BUFFER_UPDATE_BARRIER_BIT);
    for (int64_t done = 0; done < bytes; done += STAGING_BYTES) {
        const int64_t rest = bytes - done;
        const GLsizeiptr part = (GLsizeiptr)(rest < STAGING_BYTES ? rest : STAGING_BYTES);
        glCopyNamedBufferSubData(buffer->name, staging, (GLintptr)(offset + done), 0, part);
        glGetNamedBufferSubData(staging, 0, part, (char *)data + done);
    }
    return gl_context_check(ctx, buffer->label);
}

void gl_buffer_copy_range(const struct gl_buffer_range *range)
{
    glMemoryBarrier(GL_BUFFER_UPDATE_BARRIER_BIT);
    glCopyNamedBufferSubData(range->from->name, range->to->name, (GLintptr)range->from_offset,
                             (GLintptr)range->to_offset, (GLsizeiptr)range->bytes);
}

/* The uniform block of shaders/common/fill.comp. */
struct fill_block {
    uint32_t range[4], pair[4];
};

/* A shader fills whole pairs of words at the beginning of a range, which is faster if the range is large. The driver
 * clears the rest in pieces, because some drivers clear a large range on the processor. */
static void repeat_words(const struct gl_buffer_range *range, const uint32_t *words, int count)
{
    enum { FEWEST_BYTES = 1 << 16, MOST_BYTES_OF_PASS = 1 << 30, WORDS_OF_GROUP = 1024, MOST_GROUPS = 65535 };
    struct gl_context *ctx = range->to->ctx;
    const struct gl_limits *limits = &ctx->limits;
    const int64_t inside = range->to->size_bytes - range->to_offset;
    const int64_t bytes = (range->bytes < inside ? range->bytes : inside) / 8 * 8;
    bool has_shader = bytes >= FEWEST_BYTES && !limits->small_batches && !ctx->clears_by_driver;
    if (has_shader && ctx->fill == NULL)
        ctx->fill = gl_program_create(ctx, &(struct gl_program_params){.compute = "common/fill.comp", .label = "fill"});
    has_shader = has_shader && ctx->fill != NULL;

    /* The driver limits the size of a bound range, and its offset must be a multiple of the alignment. */
    const int64_t most_binding = limits->max_storage_bytes - limits->storage_alignment;
    const int64_t most = (most_binding < MOST_BYTES_OF_PASS ? most_binding : MOST_BYTES_OF_PASS) / 8 * 8;
    if (has_shader) glMemoryBarrier(GL_SHADER_STORAGE_BARRIER_BIT);
    for (int64_t done = 0; has_shader && done < bytes; done += most) {
        const int64_t here = bytes - done < most ? bytes - done : most;
        const int64_t offset = range->to_offset + done;
        const int64_t aligned = offset / limits->storage_alignment * limits->storage_alignment;
        const int groups = gl_divide_up(here / 4, WORDS_OF_GROUP);
        const struct fill_block block = {.range = {(uint32_t)((offset - aligned) / 4), (uint32_t)(here / 4)},
                                         .pair = {words[0], words[count - 1]}};
        const struct gl_pass pass = {.label = "fill",
                                     .program = ctx->fill,
                                     .buffers = {{range->to, aligned, offset - aligned + here}},
                                     .uniforms = &block,
                                     .uniform_bytes = sizeof(block),
                                     .groups = {groups < MOST_GROUPS ? groups : MOST_GROUPS, 1, 1},
                                     .barriers = GL_ALL_BARRIER_BITS};
        has_shader = gl_pass_run(ctx, &pass) == LR_OK;
    }

    glMemoryBarrier(GL_BUFFER_UPDATE_BARRIER_BIT);
    for (int64_t done = has_shader ? bytes : 0; done < range->bytes; done += CLEAR_BYTES) {
        const int64_t rest = range->bytes - done;
        glClearNamedBufferSubData(range->to->name, count == 2 ? GL_RG32UI : GL_R32UI,
                                  (GLintptr)(range->to_offset + done),
                                  (GLsizeiptr)(rest < CLEAR_BYTES ? rest : CLEAR_BYTES),
                                  count == 2 ? GL_RG_INTEGER : GL_RED_INTEGER, GL_UNSIGNED_INT, words);
    }
}

void gl_buffer_clear(struct gl_buffer *buffer, uint32_t word)
{
    if (gl_loan_check(buffer->ctx, buffer->loan, buffer->label) == LR_OK)
        repeat_words(&(struct gl_buffer_range){.to = buffer, .bytes = storage_bytes(buffer->size_bytes)}, &word, 1);
}

lr_status gl_buffer_fill_range(const struct gl_buffer_range *range, const uint32_t *words, int count)
{
    LR_TRY(gl_loan_check(range->to->ctx, range->to->loan, range->to->label));
    repeat_words(range, words, count);
    return gl_context_check(range->to->ctx, range->to->label);
}

/* ---- render targets ---- */

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
        /* If a pass draws into all layers of an array, the depth buffer needs as many layers. The target has made the
         * array, or has borrowed it. */
        const struct gl_texture *first = params->colours[0];
        const int layers = first == NULL                                         ? params->layers
                           : params->layer < 0 && first->target != GL_TEXTURE_2D ? first->size[2]
                                                                                 : 0;
        target->depth = make(target, "depth", GL_DEPTH_COMPONENT32F, layers);
        if (target->depth == NULL) return LR_FAILED;
        glNamedFramebufferTexture(target->name, GL_DEPTH_ATTACHMENT, target->depth->name, 0);
    }
    if (target->num_colours == 0 && !params->depth) {
        /* Without attachments, a framebuffer takes its size from parameters. */
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
