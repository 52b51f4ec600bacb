/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Preloaded into the program; writes a line about each event of a shader program to the file TRACE_PROGRAMS: "link
 * LABEL HASH BYTES" with hash and length of the sources; "ask LABEL" when the program first asks whether linking has
 * worked; "use LABEL" when it first draws or dispatches with the shader program; and "threads N" when it sets the
 * number of the driver's compiler threads. With TRACE_SLOW=N the driver claims to compile in threads of its own
 * (GL_KHR_parallel_shader_compile), and reports a shader program as unfinished the first N times that it is asked. GLEW
 * loads its functions through the function replaced here. */
#include "../next.h"

#include <EGL/egl.h>
#include <GL/glew.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void (*function)(void);
typedef function (*getter)(const char *name);

enum { MOST = 512 };

/* One shader or program of a context. Names are used again after objects have been deleted. */
struct object {
    EGLContext context;
    GLuint name;
    char label[80];
    unsigned long hash, bytes;
    GLuint attached[2];
    int num_attached, is_asked, is_used;
    long polls;
};

static struct object shaders[MOST], programs[MOST];
static GLuint current;

static struct object *find(struct object *objects, GLuint name)
{
    const EGLContext context = eglGetCurrentContext();
    int k = 0;
    while (k < MOST - 1 && objects[k].name != 0 && (objects[k].name != name || objects[k].context != context)) k++;
    objects[k].context = context;
    objects[k].name = name;
    return &objects[k];
}

static void write_line(const char *what, const char *label, unsigned long hash, unsigned long bytes)
{
    const char *path = getenv("TRACE_PROGRAMS");
    FILE *file = path != NULL ? fopen(path, "a") : NULL;
    if (file != NULL) {
        fprintf(file, "%s\t%s\t%lx\t%lu\n", what, label, hash, bytes);
        fclose(file);
    }
}

static long slowness(void)
{
    const char *text = getenv("TRACE_SLOW");
    return text != NULL ? strtol(text, NULL, 10) : 0;
}

/* Functions that are replaced: name, type, replacement. */
#define EACH_FUNCTION(DO)                                                                                              \
    DO(glCreateShader, CREATESHADER, create_shader)                                                                    \
    DO(glCreateProgram, CREATEPROGRAM, create_program)                                                                 \
    DO(glShaderSource, SHADERSOURCE, shader_source)                                                                    \
    DO(glAttachShader, ATTACHSHADER, attach_shader)                                                                    \
    DO(glObjectLabel, OBJECTLABEL, object_label)                                                                       \
    DO(glLinkProgram, LINKPROGRAM, link_program)                                                                       \
    DO(glGetProgramiv, GETPROGRAMIV, get_program)                                                                      \
    DO(glUseProgram, USEPROGRAM, use_program)                                                                          \
    DO(glDispatchCompute, DISPATCHCOMPUTE, dispatch)                                                                   \
    DO(glDrawArraysInstanced, DRAWARRAYSINSTANCED, draw_arrays)                                                        \
    DO(glGetStringi, GETSTRINGI, get_string)

#define DECLARE_NEXT(name, type, stand_in) static PFNGL##type##PROC next_##type;
EACH_FUNCTION(DECLARE_NEXT)

static GLuint GLAPIENTRY create_shader(GLenum kind)
{
    const GLuint name = next_CREATESHADER(kind);
    struct object *shader = find(shaders, name);
    *shader = (struct object){.context = shader->context, .name = name};
    return name;
}

static GLuint GLAPIENTRY create_program(void)
{
    const GLuint name = next_CREATEPROGRAM();
    struct object *program = find(programs, name);
    *program = (struct object){.context = program->context, .name = name};
    return name;
}

static void GLAPIENTRY shader_source(GLuint name, GLsizei count, const GLchar *const *text, const GLint *lengths)
{
    struct object *shader = find(shaders, name);
    shader->hash = 5381;
    for (GLsizei k = 0; k < count; k++) {
        const size_t length = lengths != NULL && lengths[k] >= 0 ? (size_t)lengths[k] : strlen(text[k]);
        shader->bytes += length;
        for (size_t at = 0; at < length; at++) shader->hash = shader->hash * 33 + (unsigned char)text[k][at];
    }
    next_SHADERSOURCE(name, count, text, lengths);
}

static void GLAPIENTRY attach_shader(GLuint name, GLuint shader)
{
    struct object *program = find(programs, name);
    if (program->num_attached < 2) program->attached[program->num_attached++] = shader;
    next_ATTACHSHADER(name, shader);
}

static void GLAPIENTRY object_label(GLenum kind, GLuint name, GLsizei length, const GLchar *label)
{
    if (kind == GL_PROGRAM) {
        struct object *program = find(programs, name);
        snprintf(program->label, sizeof(program->label), "%s", label);
    }
    next_OBJECTLABEL(kind, name, length, label);
}

static void GLAPIENTRY link_program(GLuint name)
{
    struct object *program = find(programs, name);
    for (int k = 0; k < program->num_attached; k++) {
        const struct object *shader = find(shaders, program->attached[k]);
        program->hash = program->hash * 31 + shader->hash;
        program->bytes += shader->bytes;
    }
    write_line("link", program->label, program->hash, program->bytes);
    next_LINKPROGRAM(name);
}

static void GLAPIENTRY get_program(GLuint name, GLenum what, GLint *value)
{
    struct object *program = find(programs, name);
    if (what == GL_COMPLETION_STATUS_KHR && slowness() > 0) {
        *value = program->polls++ >= slowness();
        return;
    }
    if (what == GL_LINK_STATUS && !program->is_asked) {
        program->is_asked = 1;
        write_line("ask", program->label, program->hash, program->bytes);
    }
    next_GETPROGRAMIV(name, what, value);
}

static void GLAPIENTRY use_program(GLuint name)
{
    current = name;
    next_USEPROGRAM(name);
}

static void note_use(void)
{
    struct object *program = find(programs, current);
    if (!program->is_used) {
        program->is_used = 1;
        write_line("use", program->label, program->hash, program->bytes);
    }
}

static void GLAPIENTRY dispatch(GLuint x, GLuint y, GLuint z)
{
    note_use();
    next_DISPATCHCOMPUTE(x, y, z);
}

static void GLAPIENTRY draw_arrays(GLenum mode, GLint first, GLsizei count, GLsizei instances)
{
    note_use();
    next_DRAWARRAYSINSTANCED(mode, first, count, instances);
}

/* The first extension in the list is replaced by the claimed one. */
static const GLubyte *GLAPIENTRY get_string(GLenum what, GLuint index)
{
    static const char claimed[] = "GL_KHR_parallel_shader_compile";
    return what == GL_EXTENSIONS && index == 0 && slowness() > 0 ? (const GLubyte *)claimed
                                                                 : next_GETSTRINGI(what, index);
}

static void GLAPIENTRY max_threads(GLuint count)
{
    write_line("threads", count == 0xFFFFFFFFu ? "all" : "some", 0, count);
}

static function replaced(const char *name, function found)
{
#define TAKE(own, type, stand_in)                                                                                      \
    if (strcmp(name, #own) == 0 && found != NULL) {                                                                    \
        memcpy(&next_##type, &found, sizeof(found));                                                                   \
        return (function)stand_in;                                                                                     \
    }
    EACH_FUNCTION(TAKE)
    return strcmp(name, "glMaxShaderCompilerThreadsKHR") == 0 && slowness() > 0 ? (function)max_threads : found;
}

function EGLAPIENTRY eglGetProcAddress(const char *name)
{
    getter next;
    *(void **)&next = find_next_symbol("eglGetProcAddress");
    return replaced(name, next != NULL ? next(name) : NULL);
}
