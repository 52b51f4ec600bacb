/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Programs and the text of shaders. The text comes from a table in the library. If LORASTER_SHADER_DIR is set, the text
 * comes from this folder instead, and files are read again each time.
 *
 * The text of a shader is flattened. tools/embed_shaders.py does the same at build time:
 * - A line `#include "common/x.glsl"` becomes the text of this file when it first occurs in a shader, and nothing when
 *   it occurs again. The path is relative to the shader folder.
 * - Before and after each included text, a line `#line N F` preserves line numbers. F is the index of the file in
 *   gl_shader_source.files. The shader itself is file 0.
 * - The shader has its #version line before any #include. Included files have none. */
#pragma once

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

/* A table that tools/embed_shaders.py writes. It is sorted by name and ends with a NULL name. */
extern const struct gl_embedded_shader gl_embedded_shaders[];

/* A flattened shader and the names of its files. It owns all its members. */
struct gl_shader_source {
    char *text;
    char *folder; /* folder of the files: "shaders" for the built-in table, else LORASTER_SHADER_DIR */
    char *files[GL_SHADER_MAX_FILES + 1]; /* NULL at the end */
};

/* Finds and flattens a shader. The struct is overwritten, and is empty after an error. errors: LR_USAGE for an unknown
 * name; LR_BAD_INPUT, with file and line, for an include that cannot be read, for one outside the folder, and for more
 * files than GL_SHADER_MAX_FILES. */
lr_status gl_shader_source_init(struct gl_shader_source *source, const char *name, const lr_log *log);
void gl_shader_source_finish(struct gl_shader_source *source);

/* Finds the original file and line of a line in the flattened text (gl_shader_source_place), and the text of the
 * original line without leading blanks. Flattened lines are counted from 1, including #line marks. Returns false if
 * there is no such line, or if it is a mark. */
struct gl_shader_place {
    int file, line;
    char text[160];
};
bool gl_shader_source_place(const struct gl_shader_source *source, int flat_line, struct gl_shader_place *place);

/* Returns the offset of the first byte after the #version line, and sets *next_line to the number of the next line.
 * Returns 0 if there is no #version. */
size_t gl_shader_source_after_version(const struct gl_shader_source *source, int *next_line);

struct gl_program;

/* One `#define name value`. At the end of a list, the name is NULL. value NULL = 1. */
struct gl_define {
    const char *name;
    const char *value;
};

/* A program has a vertex and a fragment shader, or one compute shader. gl_shader_source_init finds shaders by names
 * such as "correspondence/raster/correspondence.vert". The defines are inserted after the #version of each shader. */
struct gl_program_params {
    const char *vertex, *fragment, *compute;
    const struct gl_define *defines; /* NULL = none */
    const char *label;               /* required; debuggers and messages show it */
};

/* Gives the source to the driver, which may compile and link it in other threads. Callers start all their programs
 * first, so that the driver compiles them in parallel. gl_pass_run waits for the program that it needs. errors (returns
 * NULL, logged): there is no such shader; these shaders do not make a program; memory runs out. */
struct gl_program *gl_program_start(struct gl_context *ctx, const struct gl_program_params *params);

/* Waits until the program is built. After half a second of waiting, logs a message. errors: LR_FAILED. The log then has
 * the first compile error, with file, line and source line, and the driver's other messages as information. Each
 * message is logged only once. */
lr_status gl_program_wait(struct gl_program *program);

/* Starts a program and waits for it. errors (returns NULL): those of gl_program_start and gl_program_wait. */
struct gl_program *gl_program_create(struct gl_context *ctx, const struct gl_program_params *params);

/* NULL is allowed. */
void gl_program_destroy(struct gl_program *program);

struct gl_program_info {
    GLuint name;       /* the program's OpenGL name */
    int group_size[3]; /* local size of a compute program that has been built; 0 0 0 for other programs */
    char label[64];
};

/* The result is valid as long as the program. */
const struct gl_program_info *gl_program_get_info(const struct gl_program *program);

/* Logs a compiler's messages about the text of a source. Blanks have replaced the text's #line marks. Messages can have
 * these forms:
 *
 *     0:12(3): error: ...
 *     0(12) : error C1234: ...
 *     ERROR: 0:12: ...
 *
 * In the log, the file and line of the source replace the line number. The first error comes last, as one message of
 * status LR_FAILED with its source line. All other lines come before, as information. label: the label of the
 * program. */
void gl_compile_log_report(const lr_log *log, const struct gl_shader_source *source, const char *label,
                           const char *text);
