/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * OpenGL 4.5 core contexts without a window, through EGL.
 *
 * Threads: a context belongs to one thread at a time. Several threads may create contexts at the same time, because a
 * lock guards GLEW's table of functions, which all threads of the process share. Functions of this folder take a
 * context, or an object of a context. This context must be current in the calling thread. Exceptions are
 * gl_context_create, _destroy, _limits, _log and gl_shader_source_*. */
#pragma once

#include <GL/glew.h>
#include <lr/device.h>
#include <lr/log.h>
#include <stdbool.h>
#include <stdint.h>

struct gl_context;

/* Advice for machines without OpenGL 4.5; it is part of messages. */
#define GL_CONTEXT_REMEDY                                                                                              \
    "install a driver with EGL (software rendering on Debian: apt install libegl1 "                                    \
    "libgl1-mesa-dri; NVIDIA: the driver with its EGL library, libegl-nvidia0, and in a "                              \
    "container NVIDIA_DRIVER_CAPABILITIES=all)"

struct gl_context_params {
    int device;                      /* number of a usable way to OpenGL, in the order of lr_device_list; ignored if
                                      * `shared` is set */
    const lr_shared_context *shared; /* a context whose textures, buffers, programs and fences are shared; NULL =
                                      * none */
    const lr_log *log;               /* not copied; must outlive the context */
    bool debug;                      /* asks the driver for its messages and checks every pass for errors */
};

/* The largest number of loop rounds in one thread of a shader, summed over all its loops. llvmpipe ends a loop after
 * 65,535 rounds and does not report an error. */
enum { GL_MOST_ROUNDS_SOFTWARE = 60000 };

/* Limits and features of the driver. Sizes are in texels, or in bytes if the name says so. */
struct gl_limits {
    int max_texture_size, max_3d_texture_size, max_array_layers;
    int max_viewport_size[2];
    int64_t max_storage_bytes; /* largest size of one shader storage block */
    int max_uniform_bytes;     /* largest size of one uniform block */
    int storage_alignment;     /* offsets of ranges in storage buffers are multiples of this */
    int max_storage_bindings;
    int max_compute_storage_blocks;
    int max_clip_distances, max_colour_attachments;
    int max_compute_shared_bytes; /* for one work group */
    int max_compute_groups[3];
    bool nv_float_atomics;     /* GL_NV_shader_atomic_float: atomicAdd on float in storage blocks */
    bool parallel_compile;     /* GL_KHR_parallel_shader_compile: programs are compiled in parallel */
    bool viewport_layer_array; /* the vertex shader may write gl_Layer and gl_ViewportIndex */
    char renderer[128], vendor[64], version[64];
    bool software;
    /* True if the device gets work in small pieces. Software renderers need this, because they end long loops, and
     * because a thread that waits for the renderer cannot be interrupted. */
    bool small_batches;
    int64_t memory_bytes; /* memory of the device; 0 = not reported */
};

/* Opens one of the usable ways to OpenGL, by its number. The order is: EGL devices (hardware before software),
 * EGL_MESA_platform_surfaceless, the default display with a 1 x 1 pbuffer. The thread's current context stays current.
 * errors (returns NULL): LR_NO_DEVICE, with advice, if there is no OpenGL 4.5, if the context of `shared` refuses to
 * share, or in a child of a process that has opened OpenGL (base/driver.h); LR_USAGE, with a list of the devices, if
 * `device` is out of range; LR_FAILED if memory runs out. */
struct gl_context *gl_context_create(const struct gl_context_params *params);

/* Calls gl_context_create and then gl_context_make_current. Returns the status. *ctx is NULL after an error. */
lr_status gl_context_open(const struct gl_context_params *params, struct gl_context **ctx);

/* Makes a gl_context for the thread's current context, which belongs to a window. Functions of this folder do not
 * destroy that context, and do not make another one current. gl_context_make_current only sets its state to the
 * baseline of pass.h. params->device is ignored. errors (returns NULL): LR_NO_DEVICE if no context is current, or if it
 * is older than OpenGL 4.5. */
struct gl_context *gl_context_adopt(const struct gl_context_params *params);

/* Gets the handles that another context needs to share the objects of this thread's current context. Returns false if
 * EGL did not make the current context. */
bool gl_context_share(lr_shared_context *shared);

/* Frees the context. The caller must have destroyed all its objects. If the context is current, the previous context
 * becomes current again. NULL is allowed. */
void gl_context_destroy(struct gl_context *ctx);

/* Makes the context current and remembers the previous one. Can be called several times; each call needs its own
 * gl_context_release. */
lr_status gl_context_make_current(struct gl_context *ctx);

/* Makes the context current before one of its objects is freed or read. Returns false if the context was lost (the loss
 * has then been logged), or in a child of fork(), because objects belong to the parent. */
bool gl_context_make_current_to_free(struct gl_context *ctx);

/* Undoes one gl_context_make_current. After the last release, the previous context is current again. */
void gl_context_release(struct gl_context *ctx);

/* Makes the driver do large clears from now on. Otherwise, a compute shader does them, which is faster. Backends
 * without compute shaders call this function. */
void gl_context_clear_by_driver(struct gl_context *ctx);

const struct gl_limits *gl_context_limits(const struct gl_context *ctx);
const lr_log *gl_context_log(const struct gl_context *ctx);

/* Returns 1 at the first call, then 2, 3 and so on. The numbers identify states of the context's objects. */
uint64_t gl_context_new_number(struct gl_context *ctx);

/* Returns the status of some work. A failure becomes LR_NO_DEVICE if the context is lost. */
lr_status gl_context_status(const struct gl_context *ctx, lr_status status);

/* Releases the context, and returns the status of the work like gl_context_status. */
static inline lr_status gl_context_leave(struct gl_context *ctx, lr_status status)
{
    gl_context_release(ctx);
    return gl_context_status(ctx, status);
}

/* Asks the driver for errors. what: name of the work for the message. The call waits for the driver's worker thread,
 * but not for the device. It is too slow to be made for every draw. errors: LR_NO_DEVICE if the context was lost;
 * LR_FAILED if another error is pending. */
lr_status gl_context_check(struct gl_context *ctx, const char *what);

/* Lists the devices: the part of lr_device_list for OpenGL. */
int gl_device_list(lr_device *devices, int capacity, const lr_log *log);
