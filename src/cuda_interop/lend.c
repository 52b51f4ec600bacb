/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/lend.h"

#include "base/log.h"
#include "base/mem.h"

#include <GL/glew.h>

#include <cuda_gl_interop.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_OBJECTS = 16 };

struct cuda_loan {
    struct gl_loan loan; /* first: what gl/ sees */
    struct cudaGraphicsResource *resource;
};

lr_status lr_cuda_check(int error, const char *what, const lr_log *log)
{
    return error == (int)cudaSuccess ? LR_OK
                                     : lr_error(log, LR_FAILED, "%s: CUDA says %s", what,
                                                cudaGetErrorString((enum cudaError)error));
}

/* --- the device --- */

static lr_status no_device(const struct gl_context *ctx, const char *why, cudaError_t error)
{
    return lr_error(gl_context_log(ctx), LR_NO_DEVICE, "no CUDA: %s (%s)", why,
                    cudaGetErrorString(error));
}

lr_status lr_cuda_open(const struct gl_context *ctx, char name[256])
{
    unsigned int found = 0;
    int count = 0, device = 0;
    struct cudaDeviceProp properties;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess || count == 0) {
        return no_device(ctx, "there is no device or its driver is too old", error);
    }
    error = cudaGLGetDevices(&found, &device, 1, cudaGLDeviceListAll);
    if (error != cudaSuccess || found == 0) {
        (void)cudaGetLastError();
        return lr_error(gl_context_log(ctx), LR_NO_DEVICE,
                        "no CUDA: OpenGL draws on %s, which is none of the %d CUDA devices: choose "
                        "another with --device",
                        gl_context_limits(ctx)->renderer, count);
    }
    error = cudaSetDevice(device);
    error = error == cudaSuccess ? cudaGetDeviceProperties(&properties, device) : error;
    if (error != cudaSuccess) {
        return no_device(ctx, "the device of the OpenGL context cannot be used", error);
    }
    snprintf(name, 256, "%s", properties.name);
    return LR_OK;
}

/* --- loans --- */

static struct gl_loan **slot_of(const struct lr_cuda_object *object)
{
    return object->texture != NULL ? &object->texture->loan : &object->buffer->loan;
}

static struct cuda_loan *loan_of(const struct lr_cuda_object *object)
{
    return (struct cuda_loan *)*slot_of(object);
}

static const char *label_of(const struct lr_cuda_object *object)
{
    return object->texture != NULL ? object->texture->label : object->buffer->label;
}

static const struct gl_context *context_of(const struct lr_cuda_object *object)
{
    return object->texture != NULL ? object->texture->ctx : object->buffer->ctx;
}

static void end_loan(struct gl_loan *base)
{
    struct cuda_loan *loan = (struct cuda_loan *)base;
    if (base->is_out) {
        cudaGraphicsUnmapResources(1, &loan->resource, NULL);
    }
    cudaGraphicsUnregisterResource(loan->resource);
    free(loan);
}

static cudaError_t register_object(const struct lr_cuda_object *object,
                                   struct cudaGraphicsResource **resource)
{
    if (object->buffer != NULL) {
        return cudaGraphicsGLRegisterBuffer(resource, object->buffer->name,
                                            cudaGraphicsRegisterFlagsNone);
    }
    return cudaGraphicsGLRegisterImage(resource, object->texture->name, object->texture->target,
                                       cudaGraphicsRegisterFlagsSurfaceLoadStore);
}

static lr_status ensure_loan(const struct lr_cuda_object *object, const lr_log *log)
{
    if (*slot_of(object) != NULL) {
        return LR_OK;
    }
    struct cuda_loan *loan = lr_alloc(1, sizeof(*loan), "a loan to CUDA", log);
    if (loan == NULL) {
        return LR_FAILED;
    }
    const cudaError_t error = register_object(object, &loan->resource);
    if (error != cudaSuccess) {
        free(loan);
        return lr_cuda_check((int)error, label_of(object), log);
    }
    loan->loan.end = end_loan;
    *slot_of(object) = &loan->loan;
    return LR_OK;
}

static lr_status check_object(const struct lr_cuda_object *object, const struct gl_context *ctx,
                              bool is_out)
{
    const struct gl_loan *loan = *slot_of(object);
    if (context_of(object) != ctx) {
        return lr_error(gl_context_log(ctx), LR_USAGE, "%s belongs to another OpenGL context",
                        label_of(object));
    }
    if ((loan != NULL && loan->is_out) != is_out) {
        return lr_error(gl_context_log(ctx), LR_USAGE, "%s %s", label_of(object),
                        is_out ? "is given back and was not taken" : "is taken by CUDA already");
    }
    return LR_OK;
}

static void mark(const struct lr_cuda_object *objects, int count, bool is_out)
{
    for (int k = 0; k < count; k++) {
        (*slot_of(&objects[k]))->is_out = is_out;
    }
}

static int list_resources(const struct lr_cuda_object *objects, int count,
                          struct cudaGraphicsResource *resources[MOST_OBJECTS])
{
    for (int k = 0; k < count; k++) {
        resources[k] = loan_of(&objects[k])->resource;
    }
    return count;
}

static lr_status check_list(const struct lr_cuda_object *objects, int count,
                            const struct gl_context *ctx, bool are_out)
{
    if (count < 1 || count > MOST_OBJECTS) {
        return lr_error(gl_context_log(ctx), LR_USAGE, "%d objects at once: 1 to %d can be lent",
                        count, MOST_OBJECTS);
    }
    for (int k = 0; k < count; k++) {
        LR_TRY(check_object(&objects[k], ctx, are_out));
        for (int other = 0; other < k; other++) {
            if (slot_of(&objects[other]) == slot_of(&objects[k])) {
                return lr_error(gl_context_log(ctx), LR_USAGE, "%s is named twice",
                                label_of(&objects[k]));
            }
        }
    }
    return LR_OK;
}

lr_status lr_cuda_take(const struct lr_cuda_object *objects, int count,
                       const struct gl_context *ctx)
{
    struct cudaGraphicsResource *resources[MOST_OBJECTS];
    LR_TRY(check_list(objects, count, ctx, false));
    for (int k = 0; k < count; k++) {
        LR_TRY(ensure_loan(&objects[k], gl_context_log(ctx)));
    }
    /* Images that shaders have written are not complete for CUDA before this. */
    glMemoryBarrier(GL_ALL_BARRIER_BITS);
    const cudaError_t error =
        cudaGraphicsMapResources(list_resources(objects, count, resources), resources, NULL);
    LR_TRY(lr_cuda_check((int)error, "textures and buffers cannot be lent", gl_context_log(ctx)));
    mark(objects, count, true);
    return LR_OK;
}

lr_status lr_cuda_give(const struct lr_cuda_object *objects, int count,
                       const struct gl_context *ctx)
{
    struct cudaGraphicsResource *resources[MOST_OBJECTS];
    LR_TRY(check_list(objects, count, ctx, true));
    mark(objects, count, false);
    const cudaError_t error =
        cudaGraphicsUnmapResources(list_resources(objects, count, resources), resources, NULL);
    return lr_cuda_check((int)error, "textures and buffers cannot be given back",
                         gl_context_log(ctx));
}

void *lr_cuda_array(const struct lr_cuda_object *object, const lr_log *log)
{
    cudaArray_t array = NULL;
    const cudaError_t error =
        cudaGraphicsSubResourceGetMappedArray(&array, loan_of(object)->resource, 0, 0);
    return lr_cuda_check((int)error, label_of(object), log) == LR_OK ? (void *)array : NULL;
}

void *lr_cuda_address(const struct lr_cuda_object *object, const lr_log *log)
{
    void *address = NULL;
    size_t bytes = 0;
    const cudaError_t error =
        cudaGraphicsResourceGetMappedPointer(&address, &bytes, loan_of(object)->resource);
    return lr_cuda_check((int)error, label_of(object), log) == LR_OK ? address : NULL;
}
