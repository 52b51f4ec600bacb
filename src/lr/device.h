/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_DEVICE_H
#define LR_DEVICE_H

#include <lr/log.h>

#ifdef __cplusplus
extern "C" {
#endif

/* fork(): if a process has opened OpenGL or CUDA, its child lacks the threads of the driver. All calls in the child
 * that need this driver fail with LR_NO_DEVICE, for old and new operators, places and vectors. The child can use a
 * driver that the parent has not opened, and the backends native and cpu. */

/* The caller's OpenGL context, given by its EGL handles (EGLDisplay, EGLContext). The library's own context shares
 * textures, buffers and fences with it. The caller keeps ownership. */
typedef struct lr_shared_context {
    void *display, *context;
} lr_shared_context;

/* Result of an attempt to open OpenGL on a device. */
typedef struct lr_device {
    char way[32];       /* "egl device 0", "egl surfaceless", "egl pbuffer" */
    char renderer[128]; /* "NVIDIA H200/PCIe/SSE2"; "" = no OpenGL */
    char vendor[64], version[64];
    bool usable;
    bool software; /* a software renderer */
    bool float_atomics, viewport_layers;
    int64_t max_texture_size, max_storage_bytes, memory_bytes; /* memory_bytes: 0 = not reported */
    char reason[256];                                          /* why the device cannot be used; "" = the device is
                                                                  usable */
} lr_device;

/* Lists devices: first EGL's device enumeration, then surfaceless, then pbuffer. lr_operator_params.device counts the
 * usable devices in this order. Fills at most `capacity` entries and returns the number of devices. The call creates
 * and destroys contexts; the thread's current context is restored. */
LR_API int lr_device_list(lr_device *devices, int capacity, const lr_log *log);

#ifdef __cplusplus
}
#endif

#endif
