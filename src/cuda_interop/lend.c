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

enum { MOST_OBJECTS = 16, MOST_DEVICES = 16 };

struct cuda_loan {
    struct gl_loan loan; /* must be the first member, because gl/ knows only this part */
    struct cudaGraphicsResource *resource;
    int device;      /* CUDA device with which the object is registered */
    uint64_t taking; /* number of the last loan */
    void *address;   /* NULL until it is requested; valid while the object is lent, like the two handles below */
    cudaTextureObject_t texture;
    cudaSurfaceObject_t surface;
};

lr_status lr_cuda_check(int code, const char *what, const lr_log *log)
{
    const cudaError_t error = (cudaError_t)code;
    if (error == cudaSuccess) return LR_OK;
    (void)cudaGetLastError(); /* otherwise, the next launch would report this error again */
    switch (error) {
    /* After these errors, a device does no more work or has lost its memory. */
    case cudaErrorNoDevice:
    case cudaErrorDevicesUnavailable:
    case cudaErrorECCUncorrectable:
    case cudaErrorHardwareStackError:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
        return lr_error(log, LR_NO_DEVICE,
                        "%s: CUDA says %s, and what was on the device is lost: run again, on "
                        "another device if it happens each time",
                        what, cudaGetErrorString(error));
    default: return lr_error(log, LR_FAILED, "%s: CUDA says %s", what, cudaGetErrorString(error));
    }
}

/* --- the device --- */

static lr_status no_device(const struct gl_context *ctx, const char *why, cudaError_t error)
{
    (void)cudaGetLastError();
    return lr_error(gl_context_log(ctx), LR_NO_DEVICE,
                    "no CUDA: %s (%s): install NVIDIA's driver, or leave the choice to the library: OpenGL or the "
                    "processor do it",
                    why, cudaGetErrorString(error));
}

lr_status lr_cuda_open(const struct gl_context *ctx, char name[256])
{
    unsigned int found = 0;
    int count = 0, device = 0;
    struct cudaDeviceProp properties;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess || count == 0) return no_device(ctx, "there is no device or its driver is too old", error);
    error = cudaGLGetDevices(&found, &device, 1, cudaGLDeviceListAll);
    if (error != cudaSuccess || found == 0) {
        (void)cudaGetLastError();
        return lr_error(gl_context_log(ctx), LR_NO_DEVICE,
                        "no CUDA: OpenGL draws on %s, which is none of the %d CUDA devices: make "
                        "an OpenGL context on another device",
                        gl_context_limits(ctx)->renderer, count);
    }
    error = cudaSetDevice(device);
    error = error == cudaSuccess ? cudaGetDeviceProperties(&properties, device) : error;
    if (error != cudaSuccess) return no_device(ctx, "the device of the OpenGL context cannot be used", error);
    snprintf(name, 256, "%s", properties.name);
    return LR_OK;
}

bool lr_cuda_renders(int device)
{
    unsigned int found = 0;
    int devices[MOST_DEVICES];
    if (cudaGLGetDevices(&found, devices, MOST_DEVICES, cudaGLDeviceListAll) != cudaSuccess) {
        (void)cudaGetLastError(); /* no CUDA device renders the context */
        return false;
    }
    for (unsigned k = 0; k < found && k < MOST_DEVICES; k++)
        if (devices[k] == device) return true;
    return false;
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

/* Closes the handles of a loan. Waits first, because kernels that use the handles may still be queued. */
static void close_handles(struct cuda_loan *loan)
{
    if (loan->texture != 0 || loan->surface != 0) cudaStreamSynchronize(NULL);
    if (loan->texture != 0) cudaDestroyTextureObject(loan->texture);
    if (loan->surface != 0) cudaDestroySurfaceObject(loan->surface);
    loan->texture = 0;
    loan->surface = 0;
    loan->address = NULL;
}

static void end_loan(struct gl_loan *base)
{
    struct cuda_loan *loan = (struct cuda_loan *)base;
    int before = loan->device;
    cudaGetDevice(&before); /* any thread can end a loan, so the thread's device is restored below */
    cudaSetDevice(loan->device);
    if (base->is_out) {
        cudaStreamSynchronize(NULL);
        close_handles(loan);
        cudaGraphicsUnmapResources(1, &loan->resource, NULL);
    }
    cudaGraphicsUnregisterResource(loan->resource);
    cudaSetDevice(before);
    free(loan);
}

/* Objects that are passed between OpenGL and CUDA. */
struct move {
    const struct lr_cuda_object *objects[MOST_OBJECTS];
    struct cudaGraphicsResource *resources[MOST_OBJECTS];
    int count;
};

static lr_status find_move(struct move *move, const struct lr_cuda_object *objects, int count,
                           const struct gl_context *ctx, bool are_out)
{
    if (count < 1 || count > MOST_OBJECTS)
        return lr_error(gl_context_log(ctx), LR_USAGE, "%d objects at once: 1 to %d can be lent", count, MOST_OBJECTS);
    move->count = 0;
    for (int k = 0; k < count; k++) {
        const struct gl_context *own = objects[k].texture != NULL ? objects[k].texture->ctx : objects[k].buffer->ctx;
        if (own != ctx)
            return lr_error(gl_context_log(ctx), LR_USAGE, "%s belongs to another OpenGL context",
                            label_of(&objects[k]));
        for (int other = 0; other < k; other++)
            if (slot_of(&objects[other]) == slot_of(&objects[k]))
                return lr_error(gl_context_log(ctx), LR_USAGE, "%s is named twice", label_of(&objects[k]));

        const struct cuda_loan *loan = loan_of(&objects[k]);
        const bool is_out = loan != NULL && loan->loan.is_out;
        if (is_out == are_out) move->objects[move->count++] = &objects[k];
    }
    return LR_OK;
}

uint64_t lr_cuda_taking(const struct lr_cuda_object *object)
{
    const struct cuda_loan *loan = loan_of(object);
    return loan != NULL && loan->loan.is_out ? loan->taking : 0;
}

lr_status lr_cuda_take(const struct lr_cuda_object *objects, int count, struct gl_context *ctx)
{
    const lr_log *log = gl_context_log(ctx);
    struct move move;
    LR_TRY(find_move(&move, objects, count, ctx, false));
    if (move.count == 0) return LR_OK;
    LR_TRY(gl_context_make_current(ctx));
    lr_status status = LR_OK;
    for (int k = 0; status == LR_OK && k < move.count; k++) {
        const struct lr_cuda_object *object = move.objects[k];
        struct cuda_loan *loan = loan_of(object);
        if (loan == NULL) { /* the object is registered when CUDA takes it for the first time */
            loan = lr_alloc(1, sizeof(*loan), "a loan to CUDA", log);
            status = loan != NULL ? lr_cuda_check((int)cudaGetDevice(&loan->device), label_of(object), log) : LR_FAILED;
            if (status == LR_OK) {
                const cudaError_t error =
                    object->buffer != NULL
                        ? cudaGraphicsGLRegisterBuffer(&loan->resource, object->buffer->name,
                                                       cudaGraphicsRegisterFlagsNone)
                        : cudaGraphicsGLRegisterImage(&loan->resource, object->texture->name, object->texture->target,
                                                      cudaGraphicsRegisterFlagsSurfaceLoadStore);
                status = lr_cuda_check((int)error, label_of(object), log);
            }
            if (status != LR_OK) {
                free(loan);
                break;
            }
            loan->loan.end = end_loan;
            *slot_of(object) = &loan->loan;
        }
        move.resources[k] = loan->resource;
    }
    if (status == LR_OK) {
        /* Without this barrier, CUDA would not see everything that shaders have written. */
        glMemoryBarrier(GL_ALL_BARRIER_BITS);
        const cudaError_t error = cudaGraphicsMapResources(move.count, move.resources, NULL);
        status = lr_cuda_check((int)error, "textures and buffers cannot be lent", log);
    }
    for (int k = 0; status == LR_OK && k < move.count; k++) {
        loan_of(move.objects[k])->loan.is_out = true;
        loan_of(move.objects[k])->taking = gl_context_new_number(ctx);
    }
    gl_context_release(ctx);
    return status;
}

lr_status lr_cuda_give(const struct lr_cuda_object *objects, int count, struct gl_context *ctx)
{
    struct move move;
    LR_TRY(find_move(&move, objects, count, ctx, true));
    if (move.count == 0) return LR_OK;
    LR_TRY(gl_context_make_current(ctx));
    for (int k = 0; k < move.count; k++) {
        struct cuda_loan *loan = loan_of(move.objects[k]);
        close_handles(loan);
        move.resources[k] = loan->resource;
    }
    const cudaError_t error = cudaGraphicsUnmapResources(move.count, move.resources, NULL);
    const lr_status status =
        lr_cuda_check((int)error, "textures and buffers cannot be given back", gl_context_log(ctx));
    for (int k = 0; status == LR_OK && k < move.count; k++) loan_of(move.objects[k])->loan.is_out = false;
    gl_context_release(ctx);
    return status;
}

/* --- handles for kernels --- */

void *lr_cuda_array(const struct lr_cuda_object *object, const lr_log *log)
{
    cudaArray_t array = NULL;
    const cudaError_t error = cudaGraphicsSubResourceGetMappedArray(&array, loan_of(object)->resource, 0, 0);
    return lr_cuda_check((int)error, label_of(object), log) == LR_OK ? (void *)array : NULL;
}

static struct cudaResourceDesc describe(const struct lr_cuda_object *object, const lr_log *log)
{
    struct cudaResourceDesc resource = {.resType = cudaResourceTypeArray};
    resource.res.array.array = lr_cuda_array(object, log);
    return resource;
}

uint64_t lr_cuda_texture(const struct lr_cuda_object *object, const lr_log *log)
{
    struct cuda_loan *loan = loan_of(object);
    if (loan->texture == 0) {
        const struct cudaResourceDesc resource = describe(object, log);
        const struct cudaTextureDesc description = {.readMode = cudaReadModeElementType};
        const cudaError_t error = cudaCreateTextureObject(&loan->texture, &resource, &description, NULL);
        (void)lr_cuda_check((int)error, label_of(object), log);
    }
    return loan->texture;
}

uint64_t lr_cuda_surface(const struct lr_cuda_object *object, const lr_log *log)
{
    struct cuda_loan *loan = loan_of(object);
    if (loan->surface == 0) {
        const struct cudaResourceDesc resource = describe(object, log);
        (void)lr_cuda_check((int)cudaCreateSurfaceObject(&loan->surface, &resource), label_of(object), log);
    }
    return loan->surface;
}

void *lr_cuda_address(const struct lr_cuda_object *object, const lr_log *log)
{
    struct cuda_loan *loan = loan_of(object);
    size_t bytes = 0;
    if (loan->address == NULL) {
        const cudaError_t error = cudaGraphicsResourceGetMappedPointer(&loan->address, &bytes, loan->resource);
        (void)lr_cuda_check((int)error, label_of(object), log);
    }
    return loan->address;
}
