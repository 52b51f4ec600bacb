/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Preloaded into the program; resets its OpenGL context. The driver's answers to the program's queries for a reset are
 * replaced: from query number LOSE_CONTEXT_AT on, the driver reports a reset, and then, like some drivers, reports
 * nothing else and makes no context current. The number of queries is written to the file LOSE_CONTEXT_COUNT. GLEW
 * loads its functions through the function replaced here. */
#include "../next.h"

#include <EGL/egl.h>
#include <GL/glew.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void (*function)(void);
typedef function (*getter)(const char *name);

static long asked;
static bool is_lost;

static GLenum GLAPIENTRY answer_reset(void)
{
    const char *at = getenv("LOSE_CONTEXT_AT");
    is_lost = is_lost || (at != NULL && asked++ >= strtol(at, NULL, 10));
    return is_lost ? GL_UNKNOWN_CONTEXT_RESET : GL_NO_ERROR;
}

GLenum glGetError(void)
{
    GLenum (*next)(void);
    *(void **)&next = find_next_symbol("glGetError");
    return is_lost ? GL_CONTEXT_LOST : next();
}

EGLint eglGetError(void)
{
    EGLint (*next)(void);
    *(void **)&next = find_next_symbol("eglGetError");
    return is_lost ? EGL_CONTEXT_LOST : next();
}

EGLBoolean eglMakeCurrent(EGLDisplay display, EGLSurface draw, EGLSurface read, EGLContext context)
{
    EGLBoolean (*next)(EGLDisplay, EGLSurface, EGLSurface, EGLContext);
    *(void **)&next = find_next_symbol("eglMakeCurrent");
    return is_lost && context != EGL_NO_CONTEXT ? EGL_FALSE : next(display, draw, read, context);
}

static void write_count(void)
{
    const char *path = getenv("LOSE_CONTEXT_COUNT");
    FILE *file = path != NULL ? fopen(path, "w") : NULL;
    if (file != NULL) {
        fprintf(file, "%ld\n", asked);
        fclose(file);
    }
}

function EGLAPIENTRY eglGetProcAddress(const char *name)
{
    if (strcmp(name, "glGetGraphicsResetStatus") == 0) {
        atexit(write_count);
        return (function)answer_reset;
    }
    getter next;
    *(void **)&next = find_next_symbol("eglGetProcAddress");
    return next != NULL ? next(name) : NULL;
}
