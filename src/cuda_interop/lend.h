/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Textures and buffers of OpenGL that CUDA works on in place. An object is OpenGL's until it is
 * taken, CUDA's until it is given back; whoever uses it in between is refused (gl/resource.h). */
#ifndef LR_CUDA_LEND_H
#define LR_CUDA_LEND_H

#include "gl/resource.h"

/* Makes the CUDA device current that renders the OpenGL context that is current on this thread.
 * name: [256], what it is called.
 * errors: LR_NO_DEVICE, logged, for no CUDA device or driver, or a context of another device. */
lr_status lr_cuda_open(const struct gl_context *ctx, char name[256]);

/* One of the two is set. */
struct lr_cuda_object {
    struct gl_texture *texture;
    struct gl_buffer *buffer;
};

/* Takes some objects, none twice; registers those that are taken for the first time, which they
 * stay until they are destroyed. What OpenGL was told to do with them before is done before CUDA
 * begins. The context is current, here and below.
 * errors: LR_USAGE for an object that is out already, or of another context; LR_FAILED; none is
 * taken then. */
lr_status lr_cuda_take(const struct lr_cuda_object *objects, int count,
                       const struct gl_context *ctx);

/* Gives them back; what CUDA was told to do is done before OpenGL goes on.
 * errors: LR_USAGE for an object that is not out. */
lr_status lr_cuda_give(const struct lr_cuda_object *objects, int count,
                       const struct gl_context *ctx);

/* What kernels get of an object that is out: a cudaArray_t, an address. errors: NULL, logged. */
void *lr_cuda_array(const struct lr_cuda_object *object, const lr_log *log);
void *lr_cuda_address(const struct lr_cuda_object *object, const lr_log *log);

/* LR_OK for cudaSuccess; else logs "WHAT: CUDA says REASON" and is LR_FAILED. */
lr_status lr_cuda_check(int error, const char *what, const lr_log *log);

#endif
