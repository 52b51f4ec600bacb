/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Textures and buffers of OpenGL that CUDA works on in place. An object is OpenGL's until it is
 * taken, CUDA's until it is given back; whoever uses it in between is refused (gl/resource.h). Both
 * ways cost more than a projection does, so an object that is out stays so until OpenGL needs it.
 * Destroying an object that is out ends its loan. */
#ifndef LR_CUDA_LEND_H
#define LR_CUDA_LEND_H

#include "gl/resource.h"

/* Makes the CUDA device current that renders the OpenGL context that is current on this thread.
 * name: [256], what it is called.
 * errors: LR_NO_DEVICE, logged, for no CUDA device or driver, or a context of another device. */
lr_status lr_cuda_open(const struct gl_context *ctx, char name[256]);

/* True if that CUDA device renders the OpenGL context that is current on this thread. */
bool lr_cuda_renders(int device);

/* One of the two is set. */
struct lr_cuda_object {
    struct gl_texture *texture;
    struct gl_buffer *buffer;
};

/* Takes those of some objects, none named twice, that are not out yet; registers those that are
 * taken for the first time, which they stay until they are destroyed. What OpenGL was told to do
 * with them before is done before the default stream goes on. Here and below the context is made
 * current where that is needed: where nothing changes hands, OpenGL is left alone.
 * errors: LR_USAGE for an object of another context; LR_FAILED; nothing changes hands then. */
lr_status lr_cuda_take(const struct lr_cuda_object *objects, int count, struct gl_context *ctx);

/* Gives back the objects that are out. Work queued on the default stream is done before OpenGL goes on. */
lr_status lr_cuda_give(const struct lr_cuda_object *objects, int count, struct gl_context *ctx);

/* The handle by which kernels use an object that is out, until it is given back: a cudaTextureObject_t of plain texels,
 * a cudaSurfaceObject_t; of a buffer, an address. errors: NULL or 0, logged. */
uint64_t lr_cuda_texture(const struct lr_cuda_object *object, const lr_log *log);
uint64_t lr_cuda_surface(const struct lr_cuda_object *object, const lr_log *log);
void *lr_cuda_address(const struct lr_cuda_object *object, const lr_log *log);

/* The number of an object's current loan, one of its own in the object's context: facts about its content hold until it
 * is given back or destroyed, or CUDA writes it. 0: it is not out. */
uint64_t lr_cuda_taking(const struct lr_cuda_object *object);

/* LR_OK for cudaSuccess; else logs "WHAT: CUDA says REASON" and is LR_FAILED. */
lr_status lr_cuda_check(int error, const char *what, const lr_log *log);

#endif
