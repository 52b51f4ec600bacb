/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Textures and buffers of OpenGL that CUDA works on in place. An object belongs to OpenGL until it is lent to CUDA, and
 * then to CUDA until it is given back. Only the current owner can use the object; OpenGL refuses an object that is lent
 * (gl/resource.h). Lending and giving back each cost more than a projection. A lent object therefore stays with CUDA
 * until OpenGL needs it. Destroying a lent object ends its loan. */
#pragma once

#include "gl/resource.h"

/* Finds the CUDA device that renders this thread's current OpenGL context, and makes this device current. name: [256],
 * the device's name. errors: LR_NO_DEVICE, logged, if there is no CUDA device or driver, or if another device renders
 * the context. */
lr_status lr_cuda_open(const struct gl_context *ctx, char name[256]);

/* Returns true if this CUDA device also renders the OpenGL context that is current on this thread. */
bool lr_cuda_renders(int device);

/* Exactly one of the two members is set. */
struct lr_cuda_object {
    struct gl_texture *texture;
    struct gl_buffer *buffer;
};

/* Takes the objects that are not lent yet. No object may be named twice. An object is registered when it is first
 * taken, and stays registered until it is destroyed. OpenGL's earlier work on the objects ends before the default
 * stream continues. This function and the next one make the context current only if they have to take or give an
 * object. errors: LR_USAGE for an object of another context; LR_FAILED. After an error, no object is taken. */
lr_status lr_cuda_take(const struct lr_cuda_object *objects, int count, struct gl_context *ctx);

/* Gives the lent objects back to OpenGL. Work queued on the default stream ends before OpenGL continues. */
lr_status lr_cuda_give(const struct lr_cuda_object *objects, int count, struct gl_context *ctx);

/* The handle of a lent object, valid until the object is given back. Kernels use a cudaTextureObject_t of plain texels,
 * a cudaSurfaceObject_t, or a buffer's address. Copies use a texture's cudaArray_t. errors: NULL or 0, logged. */
uint64_t lr_cuda_texture(const struct lr_cuda_object *object, const lr_log *log);
uint64_t lr_cuda_surface(const struct lr_cuda_object *object, const lr_log *log);
void *lr_cuda_address(const struct lr_cuda_object *object, const lr_log *log);
void *lr_cuda_array(const struct lr_cuda_object *object, const lr_log *log);

/* Returns the number of an object's current loan, unique in the object's context; 0 if the object is not lent. A caller
 * that has copied the object's content can check with this number whether the copy is still valid. The copy is valid
 * until CUDA writes to the object, or until the object is given back or destroyed. */
uint64_t lr_cuda_taking(const struct lr_cuda_object *object);

/* Returns LR_OK for cudaSuccess. Otherwise logs "WHAT: CUDA says REASON" and returns LR_FAILED. */
lr_status lr_cuda_check(int error, const char *what, const lr_log *log);
