/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "gl/shader_store.h"

#include "base/grow.h"
#include "base/log.h"
#include "base/mem.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- flattening ---- */

static const char what[] = "a shader's text", line_mark[] = "#line %d %d\n";

struct flattening {
    struct gl_shader_source *source;
    struct lr_text text;
    int num_files;
    const lr_log *log;
};

static char *read_file(const char *folder, const char *name, const lr_log *log)
{
    char path[4096], block[4096];
    if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path)) return NULL;
    FILE *file = fopen(path, "rb");
    if (file == NULL) return NULL;
    struct lr_text text = {.what = what, .log = log};
    lr_status status = lr_text_add(&text, "", 0);
    size_t count;
    while (status == LR_OK && (count = fread(block, 1, sizeof(block), file)) > 0)
        status = lr_text_add(&text, block, count);
    const bool is_read = status == LR_OK && !ferror(file) && strlen(text.chars) == (size_t)text.length;
    fclose(file);
    if (is_read) return text.chars;
    free(text.chars);
    return NULL;
}

/* True if a name stays below the shader folder. */
static bool is_inside(const char *name)
{
    return name[0] != '\0' && name[0] != '/' && strstr(name, "..") == NULL;
}

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t");
}

enum include { NO_INCLUDE, GOOD_INCLUDE, BAD_INCLUDE };

/* Reads a line `#include "name"`. Blanks and a // comment are allowed where C allows them. */
static enum include parse_include(const char *line, size_t length, char *name, size_t capacity)
{
    const char *end = line + length;
    const char *at = skip_blanks(line);
    if (*at != '#') return NO_INCLUDE;
    at = skip_blanks(at + 1);
    if (strncmp(at, "include", 7) != 0) return NO_INCLUDE;
    at = skip_blanks(at + 7);
    const char *open = at, *close = *open == '"' ? strchr(open + 1, '"') : NULL;
    if (close == NULL || close >= end || (size_t)(close - open) > capacity) return BAD_INCLUDE;
    memcpy(name, open + 1, (size_t)(close - open - 1));
    name[close - open - 1] = '\0';
    at = close + 1 + strspn(close + 1, " \t\r");
    const bool ends = at >= end || (at[0] == '/' && at[1] == '/');
    return ends && is_inside(name) ? GOOD_INCLUDE : BAD_INCLUDE;
}

/* Adds the text of the last listed file, in which each #include is replaced by that file's text. */
static lr_status add_file(struct flattening *flat, const char *text)
{
    struct gl_shader_source *source = flat->source;
    const int number = flat->num_files - 1;
    const char *from = source->files[number];
    int at = 1;
    for (const char *line = text; *line != '\0'; at++) {
        const size_t length = strcspn(line, "\n");
        char name[256];
        const enum include include = parse_include(line, length, name, sizeof(name));
        bool is_known = false;
        for (int k = 0; k < flat->num_files && include == GOOD_INCLUDE; k++)
            is_known = is_known || strcmp(source->files[k], name) == 0;
        if (include == BAD_INCLUDE) {
            return lr_error(flat->log, LR_BAD_INPUT,
                            "%s/%s:%d: write #include \"common/name.glsl\", alone on its line, with a "
                            "path that starts at the shader folder",
                            source->folder, from, at);
        }
        if (include == NO_INCLUDE || is_known) {
            if (include == NO_INCLUDE) LR_TRY(lr_text_add(&flat->text, line, length));
            LR_TRY(lr_text_add(&flat->text, "\n", 1));
        } else {
            if (flat->num_files == GL_SHADER_MAX_FILES) {
                return lr_error(flat->log, LR_BAD_INPUT, "%s/%s:%d: a shader includes at most %d files", source->folder,
                                from, at, GL_SHADER_MAX_FILES - 1);
            }
            char *included = read_file(source->folder, name, flat->log);
            if (included == NULL) {
                return lr_error(flat->log, LR_BAD_INPUT,
                                "%s/%s:%d: the included file %s/%s cannot be read: paths of includes "
                                "start at the shader folder",
                                source->folder, from, at, source->folder, name);
            }
            source->files[flat->num_files] = lr_copy_string(name, flat->log);
            lr_status status = source->files[flat->num_files] ? LR_OK : LR_FAILED;
            if (status == LR_OK) status = lr_text_print(&flat->text, line_mark, 1, flat->num_files++);
            if (status == LR_OK) status = add_file(flat, included);
            free(included);
            LR_TRY(status);
            LR_TRY(lr_text_print(&flat->text, line_mark, at + 1, number));
        }
        line += length + (line[length] == '\n');
    }
    return LR_OK;
}

/* Takes the shader from a folder, or else from the table that is built in. */
lr_status gl_shader_source_init(struct gl_shader_source *source, const char *name, const lr_log *log)
{
    const char *folder = getenv("LORASTER_SHADER_DIR");
    const bool from_folder = folder != NULL && folder[0] != '\0';
    *source = (struct gl_shader_source){0};
    source->folder = lr_copy_string(from_folder ? folder : "shaders", log);
    lr_status status = source->folder != NULL ? LR_OK : LR_FAILED;
    if (status == LR_OK && from_folder) {
        struct flattening flat = {.source = source, .log = log, .text = {.what = what, .log = log}, .num_files = 1};
        char *text = is_inside(name) ? read_file(folder, name, log) : NULL;
        if (text == NULL) {
            status = lr_error(log, LR_BAD_INPUT,
                              "the shader %s/%s cannot be read: LORASTER_SHADER_DIR names a folder with "
                              "all shaders, or is not set",
                              folder, name);
        } else {
            source->files[0] = lr_copy_string(name, log);
            status = source->files[0] ? lr_text_add(&flat.text, "", 0) : LR_FAILED;
        }
        if (status == LR_OK) status = add_file(&flat, text);
        source->text = flat.text.chars;
        free(text);
    } else if (status == LR_OK) {
        const struct gl_embedded_shader *shader = gl_embedded_shaders;
        while (shader->name != NULL && strcmp(shader->name, name) != 0) shader++;
        if (shader->name == NULL) {
            status = lr_error(log, LR_USAGE,
                              "there is no built-in shader %s: set LORASTER_SHADER_DIR to a folder that "
                              "has it, or build again",
                              name);
        } else {
            source->text = lr_copy_string(shader->text, log);
            status = source->text != NULL ? LR_OK : LR_FAILED;
        }
        for (int k = 0; k < GL_SHADER_MAX_FILES && status == LR_OK && shader->files[k] != NULL; k++) {
            source->files[k] = lr_copy_string(shader->files[k], log);
            status = source->files[k] != NULL ? LR_OK : LR_FAILED;
        }
    }
    if (status != LR_OK) gl_shader_source_finish(source);
    return status;
}

void gl_shader_source_finish(struct gl_shader_source *source)
{
    for (int k = 0; k < GL_SHADER_MAX_FILES; k++) free(source->files[k]);
    free(source->folder);
    free(source->text);
    *source = (struct gl_shader_source){0};
}

/* ---- finding places ---- */

bool gl_shader_source_place(const struct gl_shader_source *source, int flat_line, struct gl_shader_place *place)
{
    *place = (struct gl_shader_place){.file = 0, .line = 0};
    const char *at = source->text;
    for (int k = 1;; k++) {
        const size_t length = strcspn(at, "\n");
        const bool mark = strncmp(at, "#line ", 6) == 0;
        if (mark) {
            sscanf(at, "#line %d %d", &place->line, &place->file);
            place->line--;
        } else {
            place->line++;
        }
        if (k == flat_line || *at == '\0') {
            const size_t blanks = strspn(at, " \t");
            const size_t kept = blanks < length ? length - blanks : 0;
            snprintf(place->text, sizeof(place->text), "%.*s", (int)kept, at + blanks);
            return *at != '\0' && !mark;
        }
        at += length + (at[length] == '\n');
    }
}

char *gl_shader_source_unmarked(const struct gl_shader_source *source, const lr_log *log)
{
    char *text = lr_copy_string(source->text, log);
    for (char *at = text; at != NULL && *at != '\0';) {
        const size_t length = strcspn(at, "\n");
        if (strncmp(at, "#line ", 6) == 0) memset(at, ' ', length);
        at += length + (at[length] == '\n');
    }
    return text;
}

size_t gl_shader_source_after_version(const struct gl_shader_source *source, int *next_line)
{
    int line = 1;
    for (const char *at = source->text; *at != '\0'; line++) {
        const size_t length = strcspn(at, "\n");
        const char *next = at + length + (at[length] == '\n');
        if (strncmp(skip_blanks(at), "#version", 8) == 0) {
            *next_line = line + 1;
            return (size_t)(next - source->text);
        }
        if (strncmp(at, "#line", 5) == 0) break;
        at = next;
    }
    *next_line = 1;
    return 0;
}
