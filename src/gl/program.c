/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "gl/program.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "gl/context_private.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

/* Returns true if a name is inside the shader folder. */
static bool is_inside(const char *name)
{
    return name[0] != '\0' && name[0] != '/' && strstr(name, "..") == NULL;
}

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t");
}

enum include { NO_INCLUDE, GOOD_INCLUDE, BAD_INCLUDE };

/* Reads a line `#include "name"`. Blanks and a // comment may be wherever C allows them. */
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

/* Adds the text of the last file in the list. Included files replace their #include lines. */
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

/* Reads the shader from LORASTER_SHADER_DIR, or from the built-in table. */
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
    lr_free_all(source->folder, source->text);
    *source = (struct gl_shader_source){0};
}

/* ---- finding the original line ---- */

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

enum { MAX_STAGES = 2 };

/* A message tells the user if a compilation takes longer than this. */
#define LONG_SECONDS 0.5

/* A program that the driver may still be compiling. */
struct build {
    GLuint shaders[MAX_STAGES];
    struct gl_shader_source sources[MAX_STAGES]; /* sources to which the compiler's messages refer */
    bool is_compute;
    double start_s;
};

struct gl_program {
    struct gl_context *ctx;
    struct gl_program_info info;
    struct build *build; /* NULL once the driver has reported the outcome */
    bool has_failed;
};

/* --- the compiler's messages --- */

/* Returns the line number of a compiler's message, or 0 if it has none. *words becomes the text after the number.
 * Messages can also contain the number of a source string, which is always 0 here. */
static int parse(const char *text, const char **words)
{
    const char *number = strncmp(text, "ERROR: ", 7) == 0 ? text + 7 : text;
    int file, line, column, end = 0;
    if (sscanf(number, "%d:%d(%d): %n", &file, &line, &column, &end) < 3 || end == 0) {
        if (sscanf(number, "%d(%d) : %n", &file, &line, &end) < 2 || end == 0) {
            if (sscanf(number, "%d:%d: %n", &file, &line, &end) < 2 || end == 0) {
                *words = text;
                return 0;
            }
        }
    }
    *words = number + end;
    return line;
}

static bool is_error(const char *text)
{
    return strncmp(text, "error", 5) == 0 || strncmp(text, "ERROR: ", 7) == 0 || strncmp(text, "fatal", 5) == 0 ||
           strncmp(text, "preprocessor error", 18) == 0;
}

void gl_compile_log_report(const lr_log *log, const struct gl_shader_source *source, const char *label,
                           const char *text)
{
    char first[900] = "";
    bool found = false;
    for (const char *at = text; *at != '\0';) {
        const size_t length = strcspn(at, "\n");
        char line[400], message[900];
        snprintf(line, sizeof(line), "%.*s", (int)length, at);
        struct gl_shader_place place;
        const char *words;
        const int number = parse(line, &words);
        const bool error = is_error(line) || is_error(words);
        snprintf(message, sizeof(message), "%s", line); /* used if there is no line number */
        if (number >= 1 && gl_shader_source_place(source, number, &place)) {
            snprintf(message, sizeof(message), "%s/%s:%d: %s%s in `%s`", source->folder, source->files[place.file],
                     place.line, error && !is_error(words) ? "error: " : "", words, place.text);
        }
        if (error && !found) {
            found = true;
            memcpy(first, message, sizeof(first));
        } else if (line[0] != '\0') {
            lr_info(log, "%s", message);
        }
        at += length + (at[length] == '\n');
    }
    lr_error(log, LR_FAILED, "%s (program %s)",
             found ? first : "the driver cannot compile a shader and does not say why", label);
}

/* --- the outcome of a build --- */

static lr_status find_outcome(struct gl_program *program)
{
    const struct build *build = program->build;
    for (int k = 0; k < MAX_STAGES && build->shaders[k] != 0; k++) {
        GLint compiled = GL_FALSE;
        glGetShaderiv(build->shaders[k], GL_COMPILE_STATUS, &compiled);
        if (!compiled) {
            const struct gl_shader_source *source = &build->sources[k];
            struct gl_context *ctx = program->ctx;
            GLint length = 0;
            LR_TRY(gl_context_check(ctx, program->info.label)); /* reports a lost context, which would be the cause */
            glGetShaderiv(build->shaders[k], GL_INFO_LOG_LENGTH, &length);
            char *text = lr_alloc((int64_t)length + 1, 1, "a compiler's messages", ctx->log);
            if (text != NULL) {
                glGetShaderInfoLog(build->shaders[k], length + 1, NULL, text);
                gl_compile_log_report(ctx->log, source, program->info.label, text);
            }
            free(text);
            return LR_FAILED;
        }
    }
    GLint linked = GL_FALSE;
    glGetProgramiv(program->info.name, GL_LINK_STATUS, &linked);
    if (!linked) {
        char text[700] = "";
        LR_TRY(gl_context_check(program->ctx, program->info.label));
        glGetProgramInfoLog(program->info.name, sizeof(text), NULL, text);
        for (char *at = text; *at != '\0'; at++)
            if (*at == '\n') *at = at[1] != '\0' ? ';' : '\0';
        return lr_error(program->ctx->log, LR_FAILED, "the stages of program %s do not fit: %s", program->info.label,
                        text[0] ? text : "the driver does not say why");
    }
    if (build->is_compute) glGetProgramiv(program->info.name, GL_COMPUTE_WORK_GROUP_SIZE, program->info.group_size);
    return gl_context_check(program->ctx, program->info.label);
}

static void end_build(struct gl_program *program)
{
    struct build *build = program->build;
    for (int k = 0; build != NULL && k < MAX_STAGES; k++) {
        if (build->shaders[k] != 0) {
            glDetachShader(program->info.name, build->shaders[k]);
            glDeleteShader(build->shaders[k]);
            gl_shader_source_finish(&build->sources[k]);
        }
    }
    free(build);
    program->build = NULL;
}

lr_status gl_program_wait(struct gl_program *program)
{
    struct gl_context *ctx = program->ctx;
    if (program->build == NULL && !program->has_failed) return LR_OK;
    if (program->build == NULL) { /* every call after a failed build reports the failure again */
        LR_TRY(gl_context_check(ctx, program->info.label));
        return lr_error(ctx->log, LR_FAILED, "program %s could not be built before", program->info.label);
    }

    /* Drivers with GL_KHR_parallel_shader_compile tell if they are still compiling. */
    const struct timespec pause = {.tv_nsec = 2000000};
    const double start_s = lr_clock_seconds();
    GLint done = GL_TRUE;
    if (ctx->limits.parallel_compile) glGetProgramiv(program->info.name, GL_COMPLETION_STATUS_KHR, &done);
    while (!done && lr_clock_seconds() - start_s < LONG_SECONDS) {
        nanosleep(&pause, NULL);
        glGetProgramiv(program->info.name, GL_COMPLETION_STATUS_KHR, &done);
    }
    if (!done) {
        lr_info(ctx->log,
                "the driver of %s compiles the shader of \"%s\": the first time on a machine this takes some seconds",
                ctx->limits.renderer, program->info.label);
    }

    const lr_status status = find_outcome(program);
    program->has_failed = status != LR_OK;
    if (status == LR_OK)
        lr_debug(ctx->log, "program %s: built in %.3f s", program->info.label,
                 lr_clock_seconds() - program->build->start_s);
    end_build(program);
    return status;
}

/* --- starting --- */

static lr_status start_build(struct gl_program *program, const struct gl_program_params *params)
{
    const bool compute = params->compute != NULL;
    const char *names[MAX_STAGES] = {compute ? params->compute : params->vertex, compute ? NULL : params->fragment};
    program->build = lr_alloc(1, sizeof(*program->build), params->label, program->ctx->log);
    if (program->build == NULL) return LR_FAILED;
    struct build *build = program->build;
    const lr_log *log = program->ctx->log;
    build->is_compute = compute;
    build->start_s = lr_clock_seconds();
    for (int k = 0; k < MAX_STAGES && names[k] != NULL; k++) {
        const struct gl_shader_source *source = &build->sources[k];
        const GLenum kind = build->is_compute ? GL_COMPUTE_SHADER : k == 0 ? GL_VERTEX_SHADER : GL_FRAGMENT_SHADER;
        LR_TRY(gl_shader_source_init(&build->sources[k], names[k], log));
        const GLuint shader = build->shaders[k] = glCreateShader(kind);
        if (shader == 0) {
            gl_shader_source_finish(&build->sources[k]);
            LR_TRY(gl_context_check(program->ctx, program->info.label));
            return lr_error(log, LR_FAILED, "the driver makes no shader for program %s", program->info.label);
        }
        glAttachShader(program->info.name, shader);
        glObjectLabel(GL_SHADER, shader, -1, names[k]);

        /* The driver gets three pieces: the source up to #version, the defines, and the rest of the source. A #line
         * after the defines preserves the line numbers of the rest. */
        int next_line = 1;
        const size_t head = gl_shader_source_after_version(source, &next_line);
        if (head == 0) {
            return lr_error(log, LR_BAD_INPUT,
                            "%s/%s has no #version line before its first #include: start it with #version 450 core",
                            source->folder, source->files[0]);
        }
        /* Blanks replace every `#line` mark. Compilers then report numbers of flattened lines, and
         * gl_shader_source_place finds the original line. Mesa loses the file number of most errors if the marks are
         * kept. */
        char *text = lr_copy_string(source->text, log);
        for (char *at = text; at != NULL && *at != '\0';) {
            const size_t length = strcspn(at, "\n");
            if (strncmp(at, "#line ", 6) == 0) memset(at, ' ', length);
            at += length + (at[length] == '\n');
        }
        struct lr_text defined = {.what = "a shader's defines", .log = log};
        for (const struct gl_define *d = params->defines; d != NULL && d->name != NULL; d++)
            (void)lr_text_print(&defined, "#define %s %s\n", d->name, d->value ? d->value : "1");
        (void)lr_text_print(&defined, "#line %d 0\n", next_line);
        const bool is_written = text != NULL && !defined.failed;
        if (is_written) {
            const GLchar *const pieces[3] = {text, defined.chars, text + head};
            const GLint lengths[3] = {(GLint)head, -1, -1};
            glShaderSource(shader, 3, pieces, lengths);
            glCompileShader(shader);
        }
        lr_free_all(defined.chars, text);
        if (!is_written) return LR_FAILED;
    }
    glLinkProgram(program->info.name);
    return gl_context_check(program->ctx, program->info.label);
}

struct gl_program *gl_program_start(struct gl_context *ctx, const struct gl_program_params *params)
{
    const bool draws = params->vertex != NULL && params->fragment != NULL;
    const bool any = params->vertex != NULL || params->fragment != NULL;
    if (!(params->compute != NULL ? !any : draws)) {
        lr_error(ctx->log, LR_USAGE, "program %s needs a vertex and a fragment shader, or a compute shader",
                 params->label);
        return NULL;
    }
    struct gl_program *program = lr_alloc(1, sizeof(*program), params->label, ctx->log);
    if (program == NULL) return NULL;
    program->ctx = ctx;
    gl_copy_text(program->info.label, sizeof(program->info.label), params->label);
    program->info.name = glCreateProgram();
    glObjectLabel(GL_PROGRAM, program->info.name, -1, program->info.label);
    if (start_build(program, params) != LR_OK) {
        gl_program_destroy(program);
        return NULL;
    }
    return program;
}

struct gl_program *gl_program_create(struct gl_context *ctx, const struct gl_program_params *params)
{
    struct gl_program *program = gl_program_start(ctx, params);
    if (program != NULL && gl_program_wait(program) != LR_OK) {
        gl_program_destroy(program);
        return NULL;
    }
    return program;
}

void gl_program_destroy(struct gl_program *program)
{
    if (program != NULL) {
        end_build(program);
        glDeleteProgram(program->info.name);
        free(program);
    }
}

const struct gl_program_info *gl_program_get_info(const struct gl_program *program)
{
    return &program->info;
}
