/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "gl/program.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "gl/compile_log.h"
#include "gl/context_private.h"
#include "gl/shader_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_STAGES = 2 };

struct gl_program {
    struct gl_context *ctx;
    GLuint name;
    int group_size[3];
    char label[64];
};

/* The defines as text, and a mark that gives the lines after them their numbers back. */
static char *write_defines(const struct gl_define *defines, int next_line, const lr_log *log)
{
    size_t capacity = 48;
    for (const struct gl_define *d = defines; d != NULL && d->name != NULL; d++) {
        capacity += strlen(d->name) + (d->value ? strlen(d->value) : 1) + 16;
    }
    char *text = lr_alloc((int64_t)capacity, 1, "a shader's defines", log);
    if (text == NULL) {
        return NULL;
    }
    size_t length = 0;
    for (const struct gl_define *d = defines; d != NULL && d->name != NULL; d++) {
        length += (size_t)snprintf(text + length, capacity - length, "#define %s %s\n", d->name,
                                   d->value ? d->value : "1");
    }
    snprintf(text + length, capacity - length, "#line %d 0\n", next_line);
    return text;
}

static lr_status set_source(GLuint shader, const struct gl_shader_source *source,
                            const struct gl_define *defines, const lr_log *log)
{
    int next_line = 1;
    const size_t head = gl_shader_source_after_version(source, &next_line);
    if (head == 0) {
        return lr_error(log, LR_BAD_INPUT,
                        "%s/%s has no #version line before its first #include: start it with "
                        "#version 450 core",
                        source->folder, source->files[0]);
    }
    char *text = gl_shader_source_unmarked(source, log);
    char *inserted = write_defines(defines, next_line, log);
    const bool written = text != NULL && inserted != NULL;
    if (written) {
        const GLchar *const pieces[3] = {text, inserted, text + head};
        const GLint lengths[3] = {(GLint)head, -1, -1};
        glShaderSource(shader, 3, pieces, lengths);
    }
    free(inserted);
    free(text);
    return written ? LR_OK : LR_FAILED;
}

static lr_status report_compile(struct gl_context *ctx, GLuint shader,
                                const struct gl_shader_source *source, const char *label)
{
    GLint length = 0;
    LR_TRY(gl_context_check(ctx, label)); /* which may be why there is nothing compiled */
    glGetShaderiv(shader, GL_INFO_LOG_LENGTH, &length);
    char *text = lr_alloc((int64_t)length + 1, 1, "a compiler's messages", ctx->log);
    if (text != NULL) {
        glGetShaderInfoLog(shader, length + 1, NULL, text);
        gl_compile_log_report(ctx->log, source, label, text);
    }
    free(text);
    return LR_FAILED;
}

static lr_status compile(struct gl_context *ctx, GLuint shader, const char *name,
                         const struct gl_program_params *params)
{
    struct gl_shader_source source;
    LR_TRY(gl_shader_source_init(&source, name, ctx->log));
    glObjectLabel(GL_SHADER, shader, -1, name);
    lr_status status = set_source(shader, &source, params->defines, ctx->log);
    if (status == LR_OK) {
        GLint compiled = GL_FALSE;
        glCompileShader(shader);
        glGetShaderiv(shader, GL_COMPILE_STATUS, &compiled);
        if (!compiled) {
            status = report_compile(ctx, shader, &source, params->label);
        }
    }
    gl_shader_source_finish(&source);
    return status;
}

static lr_status report_link(const struct gl_program *program)
{
    char text[700] = "";
    LR_TRY(gl_context_check(program->ctx, program->label));
    glGetProgramInfoLog(program->name, sizeof(text), NULL, text);
    for (char *at = text; *at != '\0'; at++) {
        if (*at == '\n') {
            *at = at[1] != '\0' ? ';' : '\0';
        }
    }
    return lr_error(program->ctx->log, LR_FAILED, "the stages of program %s do not fit: %s",
                    program->label, text[0] ? text : "the driver does not say why");
}

static lr_status link_stages(struct gl_program *program, bool compute)
{
    GLint linked = GL_FALSE;
    glLinkProgram(program->name);
    glGetProgramiv(program->name, GL_LINK_STATUS, &linked);
    if (!linked) {
        return report_link(program);
    }
    if (compute) {
        glGetProgramiv(program->name, GL_COMPUTE_WORK_GROUP_SIZE, program->group_size);
    }
    return gl_context_check(program->ctx, program->label);
}

static lr_status build(struct gl_program *program, const struct gl_program_params *params)
{
    const bool compute = params->compute != NULL;
    const char *names[MAX_STAGES] = {compute ? params->compute : params->vertex,
                                     compute ? NULL : params->fragment};
    const GLenum stages[MAX_STAGES] = {compute ? GL_COMPUTE_SHADER : GL_VERTEX_SHADER,
                                       GL_FRAGMENT_SHADER};
    GLuint shaders[MAX_STAGES] = {0};
    lr_status status = LR_OK;
    for (int k = 0; k < MAX_STAGES && names[k] != NULL && status == LR_OK; k++) {
        shaders[k] = glCreateShader(stages[k]);
        glAttachShader(program->name, shaders[k]);
        status = compile(program->ctx, shaders[k], names[k], params);
    }
    if (status == LR_OK) {
        status = link_stages(program, compute);
    }
    for (int k = 0; k < MAX_STAGES; k++) {
        if (shaders[k] != 0) {
            glDetachShader(program->name, shaders[k]);
            glDeleteShader(shaders[k]);
        }
    }
    return status;
}

static bool stages_make_sense(const struct gl_program_params *params)
{
    const bool draws = params->vertex != NULL && params->fragment != NULL;
    const bool any = params->vertex != NULL || params->fragment != NULL;
    return params->compute != NULL ? !any : draws;
}

struct gl_program *gl_program_create(struct gl_context *ctx, const struct gl_program_params *params)
{
    if (!stages_make_sense(params)) {
        lr_error(ctx->log, LR_USAGE,
                 "program %s needs a vertex and a fragment shader, or a compute shader",
                 params->label);
        return NULL;
    }
    struct gl_program *program = lr_alloc(1, sizeof(*program), params->label, ctx->log);
    if (program == NULL) {
        return NULL;
    }
    program->ctx = ctx;
    gl_copy_text(program->label, sizeof(program->label), params->label);
    program->name = glCreateProgram();
    glObjectLabel(GL_PROGRAM, program->name, -1, program->label);
    const double start = lr_clock_seconds();
    if (build(program, params) != LR_OK) {
        gl_program_destroy(program);
        return NULL;
    }
    lr_debug(ctx->log, "program %s: built in %.3f s", program->label, lr_clock_seconds() - start);
    return program;
}

void gl_program_destroy(struct gl_program *program)
{
    if (program != NULL) {
        glDeleteProgram(program->name);
        free(program);
    }
}

GLuint gl_program_name(const struct gl_program *program)
{
    return program->name;
}

const char *gl_program_label(const struct gl_program *program)
{
    return program->label;
}

void gl_program_group_size(const struct gl_program *program, int size[3])
{
    memcpy(size, program->group_size, sizeof(program->group_size));
}
