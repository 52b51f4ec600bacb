/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/log.h"
#include "gl/context_private.h"

#include <string.h>

static const char *type_name(GLenum type)
{
    switch (type) {
    case GL_DEBUG_TYPE_ERROR: return "error";
    case GL_DEBUG_TYPE_DEPRECATED_BEHAVIOR: return "deprecated use";
    case GL_DEBUG_TYPE_UNDEFINED_BEHAVIOR: return "undefined behaviour";
    case GL_DEBUG_TYPE_PORTABILITY: return "portability";
    case GL_DEBUG_TYPE_PERFORMANCE: return "performance";
    default: return "message";
    }
}

static int length_of_sentence(const GLchar *text, GLsizei length)
{
    int end = length < 0 ? (int)strlen(text) : (int)length;
    while (end > 0 && (text[end - 1] == '\n' || text[end - 1] == '\0')) end--;
    return end;
}

/* Nobody but a developer can act on performance hints, whatever severity drivers give them. */
static void GLAPIENTRY receive(GLenum source, GLenum type, GLuint id, GLenum severity, GLsizei length,
                               const GLchar *text, const void *user)
{
    (void)source;
    struct gl_context *ctx = (struct gl_context *)user;
    const int end = length_of_sentence(text, length);
    const char *kind = type_name(type);
    if (type == GL_DEBUG_TYPE_ERROR || severity == GL_DEBUG_SEVERITY_HIGH) {
        ctx->saw_error = true;
        lr_error(ctx->log, LR_FAILED, "OpenGL %s %u: %.*s", kind, id, end, text);
    } else if (severity == GL_DEBUG_SEVERITY_MEDIUM && type != GL_DEBUG_TYPE_PERFORMANCE) {
        lr_warn(ctx->log, "OpenGL %s %u: %.*s", kind, id, end, text);
    } else {
        lr_debug(ctx->log, "OpenGL %s %u: %.*s", kind, id, end, text);
    }
}

void gl_debug_install(struct gl_context *ctx)
{
    glEnable(GL_DEBUG_OUTPUT);
    /* The log may be called by the thread that works only. */
    glEnable(GL_DEBUG_OUTPUT_SYNCHRONOUS);
    glDebugMessageControl(GL_DONT_CARE, GL_DONT_CARE, GL_DONT_CARE, 0, NULL, GL_TRUE);
    glDebugMessageControl(GL_DONT_CARE, GL_DONT_CARE, GL_DEBUG_SEVERITY_NOTIFICATION, 0, NULL, GL_FALSE);
    /* program.c reports compile errors, with file and line. */
    glDebugMessageControl(GL_DEBUG_SOURCE_SHADER_COMPILER, GL_DONT_CARE, GL_DONT_CARE, 0, NULL, GL_FALSE);
    glDebugMessageCallback(receive, ctx);
}

void gl_debug_remove(struct gl_context *ctx)
{
    (void)ctx;
    glDebugMessageCallback(NULL, NULL);
}
