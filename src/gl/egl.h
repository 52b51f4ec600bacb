/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The EGL side of contexts: finding the ways to OpenGL, opening one of them, and the current context. These functions
 * do not call OpenGL and do not log. Errors are reported as short texts without a full stop.
 *
 * All users of a device in a process share one display. The display is terminated only if EGL counts its users
 * (EGL_KHR_display_reference). Otherwise it stays open until the process ends. */
#pragma once

#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <lr/device.h>
#include <stdbool.h>
#include <stddef.h>

enum { EGL_WAY_MAX = 34 };

/* EGL_WAY_UNLISTED stands for devices that EGL cannot list. This way cannot be opened. */
enum egl_way_kind { EGL_WAY_DEVICE = 0, EGL_WAY_UNLISTED, EGL_WAY_SURFACELESS, EGL_WAY_PBUFFER };

struct egl_way {
    enum egl_way_kind kind;
    EGLDeviceEXT device;
    bool software;   /* true if the device reports that it is a software renderer */
    char name[32];   /* "egl device 0", numbered in the order of EGL */
    char reason[96]; /* EGL_WAY_UNLISTED: reason why EGL cannot list devices */
};

struct egl_context {
    EGLDisplay display;
    EGLContext context;
    EGLSurface surface; /* EGL_NO_SURFACE, or a 1 x 1 pbuffer */
    bool counted;       /* true if EGL counts the display's users */
};

struct egl_current {
    EGLenum api, context_api;
    EGLDisplay display;
    EGLContext context;
    EGLSurface draw, read;
};

/* Lists the ways to try, best first: at least two, at most EGL_WAY_MAX. */
int egl_ways_find(struct egl_way ways[EGL_WAY_MAX]);

/* Makes an OpenGL 4.5 core context, without making it current. */
bool egl_context_open(struct egl_context *egl, const struct egl_way *way, bool debug, char *reason, size_t capacity);
void egl_context_close(struct egl_context *egl);

/* Makes a context on the display of another context, with shared objects. The other context still owns the display. */
bool egl_context_open_beside(struct egl_context *egl, const lr_shared_context *share, bool debug, char *reason,
                             size_t capacity);

/* Stores the current context in *before and makes this one current. After an error nothing has changed. */
bool egl_context_make_current(const struct egl_context *egl, struct egl_current *before, char *reason, size_t capacity);
bool egl_context_restore(const struct egl_context *egl, const struct egl_current *before);
