/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Sources of shader text: a table built into the library, or the folder in LORASTER_SHADER_DIR, which is read anew each
 * time.
 *
 * Text is flattened; tools/embed_shaders.py follows the same rules at build time:
 *  - a line `#include "common/x.glsl"`, its path relative to the shader folder, is replaced by that
 *    file, the first time it occurs in a shader, and by nothing after that;
 *  - `#line N F` before and after each include keeps line numbers right, F being the file's place
 *    in gl_shader_source.files; the shader itself is file 0;
 *  - the shader itself has its #version line before any include; the heads have none. */
#ifndef LR_GL_SHADER_STORE_H
#define LR_GL_SHADER_STORE_H

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

/* A flattened shader and the names of its files, all owned. */
struct gl_shader_source {
    char *text;
    char *folder; /* the folder of the files: "shaders" for the built-in table, else LORASTER_SHADER_DIR */
    char *files[GL_SHADER_MAX_FILES + 1]; /* NULL at the end */
};

/* Finds and flattens a shader. The struct is overwritten, and holds nothing after an error.
 * errors: LR_USAGE for an unknown name; LR_BAD_INPUT, with file and line, for an include that
 * cannot be read, leaves the folder or makes more than GL_SHADER_MAX_FILES. */
lr_status gl_shader_source_init(struct gl_shader_source *source, const char *name, const lr_log *log);
void gl_shader_source_finish(struct gl_shader_source *source);

/* Finds the file and line that a line of the flattened text comes from (counted from 1, marks included), and its
 * text without leading blanks. false if there is no such line or it is a mark. */
struct gl_shader_place {
    int file, line;
    char text[160];
};
bool gl_shader_source_place(const struct gl_shader_source *source, int flat_line, struct gl_shader_place *place);

/* Copies the text for compilers, with every `#line` mark blanked out. Compilers then count flattened lines, which
 * gl_shader_source_place translates; Mesa would lose the file number of most errors. The caller frees the copy; NULL if
 * memory runs out. */
char *gl_shader_source_unmarked(const struct gl_shader_source *source, const lr_log *log);

/* Returns the byte offset right after the #version line, and sets *next_line to the number of the line that starts
 * there. Returns 0 if there is no #version. */
size_t gl_shader_source_after_version(const struct gl_shader_source *source, int *next_line);

#endif
