/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_GL_PROGRAM_H
#define LR_GL_PROGRAM_H

#include "gl/context.h"

struct gl_program;

/* One `#define name value`; a list ends with a NULL name. A NULL value counts as 1. */
struct gl_define {
    const char *name;
    const char *value;
};

/* Either vertex and fragment, or compute: names of shaders ("correspondence.vert") as
 * shader_store.h resolves them. The defines go to every stage, right after #version. */
struct gl_program_params {
    const char *vertex, *fragment, *compute;
    const struct gl_define *defines; /* NULL = none */
    const char *label;               /* shown by debuggers and in sentences; required */
};

/* Compiles and links.
 * errors: NULL; the log has file and line of the first compile error with its source line as an
 * error, the driver's other messages as information. */
struct gl_program *gl_program_create(struct gl_context *ctx,
                                     const struct gl_program_params *params);

/* NULL is allowed. */
void gl_program_destroy(struct gl_program *program);

/* The OpenGL name, for pass.c and tests. */
GLuint gl_program_name(const struct gl_program *program);
const char *gl_program_label(const struct gl_program *program);

/* A compute program's local size; 0 0 0 for others. */
void gl_program_group_size(const struct gl_program *program, int size[3]);

#endif
