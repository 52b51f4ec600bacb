/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Programs, and sources of shader text: a table built into the library, or the folder in LORASTER_SHADER_DIR, which is
 * read anew each time.
 *
 * Text is flattened; tools/embed_shaders.py follows the same rules at build time:
 *  - a line `#include "common/x.glsl"`, its path relative to the shader folder, is replaced by that
 *    file, the first time it occurs in a shader, and by nothing after that;
 *  - `#line N F` before and after each include keeps line numbers right, F being the file's place
 *    in gl_shader_source.files; the shader itself is file 0;
 *  - the shader itself has its #version line before any include; the heads have none. */
#ifndef LR_GL_PROGRAM_H
#define LR_GL_PROGRAM_H

#include "gl/context.h"

#include <lr/log.h>
#include <stdbool.h>
#include <stddef.h>

enum { GL_SHADER_MAX_FILES = 32 };

/* One flattened shader of the built-in table. */
struct gl_embedded_shader {
    const char *name;         /* "correspondence/raster/correspondence.vert" */
    const char *text;         /* ends with a newline */
    const char *const *files; /* names relative to the shader folder, NULL at the end */
};

/* Written by tools/embed_shaders.py; sorted by name, a NULL name at the end. */
extern const struct gl_embedded_shader gl_embedded_shaders[];

/* A flattened shader and the names of its files; all owned. */
struct gl_shader_source {
    char *text;
    char *folder; /* folder of the files: "shaders" for the built-in table, else LORASTER_SHADER_DIR */
    char *files[GL_SHADER_MAX_FILES + 1]; /* NULL at the end */
};

/* Finds and flattens a shader. Overwrites the struct, which is empty after an error. errors: LR_USAGE for an unknown
 * name; LR_BAD_INPUT, with file and line, for an include that cannot be read, that is outside the folder, or that is
 * one more than GL_SHADER_MAX_FILES allows. */
lr_status gl_shader_source_init(struct gl_shader_source *source, const char *name, const lr_log *log);
void gl_shader_source_finish(struct gl_shader_source *source);

/* Finds the file and line of origin of a line of the flattened text, and its text without leading blanks. Flattened
 * lines are counted from 1, with marks. Returns false if there is no such line or if it is a mark. */
struct gl_shader_place {
    int file, line;
    char text[160];
};
bool gl_shader_source_place(const struct gl_shader_source *source, int flat_line, struct gl_shader_place *place);

/* Returns the byte offset just after the #version line, and sets *next_line to the number of the next line. Returns 0
 * if there is no #version. */
size_t gl_shader_source_after_version(const struct gl_shader_source *source, int *next_line);

struct gl_program;

/* One `#define name value`. A list ends with a NULL name. A NULL value stands for 1. */
struct gl_define {
    const char *name;
    const char *value;
};

/* A program has a vertex and a fragment shader, or one compute shader. Shaders have names such as
 * "correspondence/raster/correspondence.vert", which gl_shader_source_init finds. The defines are inserted in every
 * stage, just after #version. */
struct gl_program_params {
    const char *vertex, *fragment, *compute;
    const struct gl_define *defines; /* NULL = none */
    const char *label;               /* shown by debuggers and in messages; required */
};

/* Hands the source to the driver, which may compile and link in other threads. Callers start all their programs first,
 * so that the driver compiles them in parallel. gl_pass_run waits for the program that it runs. errors, NULL and
 * logged: no such shader, stages that make no program, or memory runs out. */
struct gl_program *gl_program_start(struct gl_context *ctx, const struct gl_program_params *params);

/* Waits until the program is built. Logs a message if the driver still compiles after half a second. errors: LR_FAILED.
 * The log then has the first compile error, with file, line and source line, and the driver's other messages as
 * information. Each message is logged once. */
lr_status gl_program_wait(struct gl_program *program);

/* Starts a program and waits for it. errors, NULL returned: those of gl_program_start and gl_program_wait. */
struct gl_program *gl_program_create(struct gl_context *ctx, const struct gl_program_params *params);

/* NULL is allowed. */
void gl_program_destroy(struct gl_program *program);

/* The program's OpenGL name, for pass.c and tests. */
GLuint gl_program_name(const struct gl_program *program);
const char *gl_program_label(const struct gl_program *program);

/* The local size of a compute program, once it is built; 0 0 0 for other programs. */
void gl_program_group_size(const struct gl_program *program, int size[3]);

/* Logs a compiler's messages about a source's text, whose marks were blanked out. In messages of the forms
 *     0:12(3): error: ...      0(12) : error C1234: ...      ERROR: 0:12: ...
 * the line number is replaced by the source's file and line. All lines but the first error are logged
 * first, as information; then that error, as one message of status LR_FAILED with its source line.
 * `label` is the program's. */
void gl_compile_log_report(const lr_log *log, const struct gl_shader_source *source, const char *label,
                           const char *text);

#endif
