/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_GL_PROGRAM_H
#define LR_GL_PROGRAM_H

#include "gl/context.h"
#include "gl/shader_store.h"

struct gl_program;

/* One `#define name value`; a list ends with a NULL name. A NULL value counts as 1. */
struct gl_define {
    const char *name;
    const char *value;
};

/* A program has either a vertex and a fragment shader, or a compute shader, by names ("correspondence/raster/correspondence.vert")
 * that shader_store.h resolves. The defines are inserted in every stage, right after #version. */
struct gl_program_params {
    const char *vertex, *fragment, *compute;
    const struct gl_define *defines; /* NULL = none */
    const char *label;               /* shown by debuggers and in messages; required */
};

/* Hands the source to the driver, which may compile and link in other threads. Callers start all programs first, so
 * that the driver compiles them in parallel. gl_pass_run waits for the program that it runs. errors: NULL, logged:
 * there is no such shader, the stages make no program, or memory runs out. */
struct gl_program *gl_program_start(struct gl_context *ctx, const struct gl_program_params *params);

/* Waits until the program is built. If the driver still compiles after half a second, a message reports it.
 * errors: LR_FAILED; the log has file and line of the first compile error with its source line as an error, the
 * driver's other messages as information. Each is logged once. */
lr_status gl_program_wait(struct gl_program *program);

/* Starts a program and waits for it. errors: those of gl_program_start and gl_program_wait; NULL. */
struct gl_program *gl_program_create(struct gl_context *ctx, const struct gl_program_params *params);

/* NULL is allowed. */
void gl_program_destroy(struct gl_program *program);

/* The OpenGL name, for pass.c and tests. */
GLuint gl_program_name(const struct gl_program *program);
const char *gl_program_label(const struct gl_program *program);

/* A compute program's local size once it is built; 0 0 0 for others. */
void gl_program_group_size(const struct gl_program *program, int size[3]);

/* Logs a compiler's messages about the text of gl_shader_source_unmarked. In messages of the forms
 *     0:12(3): error: ...      0(12) : error C1234: ...      ERROR: 0:12: ...
 * the line number is replaced by the source's file and line. All lines but the first error are logged
 * first, as information; then that error, as one message of status LR_FAILED with its source line.
 * `label` is the program's. */
void gl_compile_log_report(const lr_log *log, const struct gl_shader_source *source, const char *label,
                           const char *text);

#endif
