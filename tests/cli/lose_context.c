/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Preloaded into the program, lets its OpenGL context be reset: from the question on whose number
 * is in LOSE_CONTEXT_AT, the driver says so. The number of questions asked goes to the file named
 * by LOSE_CONTEXT_COUNT. GLEW loads its functions by the one replaced here. */
#include "../next.h"

#include <GL/glew.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void (*function)(void);
typedef function (*getter)(const GLubyte *name);

function glXGetProcAddressARB(const GLubyte *name);

static long asked;

static GLenum GLAPIENTRY answer_reset(void)
{
    const char *at = getenv("LOSE_CONTEXT_AT");
    return at == NULL || asked++ < strtol(at, NULL, 10) ? GL_NO_ERROR : GL_UNKNOWN_CONTEXT_RESET;
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

function glXGetProcAddressARB(const GLubyte *name)
{
    if (strcmp((const char *)name, "glGetGraphicsResetStatus") == 0) {
        atexit(write_count);
        return (function)answer_reset;
    }
    getter next;
    *(void **)&next = find_next_symbol("glXGetProcAddressARB");
    return next != NULL ? next(name) : NULL;
}
