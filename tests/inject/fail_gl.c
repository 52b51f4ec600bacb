/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Preloaded into the program, lets one of its calls of OpenGL or EGL fail (inject.h). The failing call has no effect
 * and returns nothing valid, and the next glGetError returns GL_OUT_OF_MEMORY. GLEW looks up its functions by a
 * function that is replaced here; functions of OpenGL 1.1 and EGL are replaced by name. test_lists.py compares this
 * list with the sources. */
#include "../next.h"
#include "inject.h"

#include <EGL/egl.h>
#include <GL/glew.h>

typedef void (*function)(void);

static GLenum pending = GL_NO_ERROR;
static bool is_loading; /* GLEW's own calls, whose results it does not check */

static bool fails(const char *name)
{
    const bool failed = !is_loading && inject_fails("gl", name);
    if (failed && strncmp(name, "gl", 2) == 0) pending = GL_OUT_OF_MEMORY;
    return failed;
}

static function find_next(const char *name)
{
    function found = NULL;
    *(void **)&found = find_next_symbol(name);
    return found;
}

/* --- functions that GLEW loads --- */

#define LOADED(CALL, VALUE)                                                                                            \
    CALL(AttachShader, (GLuint a, GLuint b), (a, b))                                                                   \
    CALL(BindBuffer, (GLenum a, GLuint b), (a, b))                                                                     \
    CALL(BindBufferBase, (GLenum a, GLuint b, GLuint c), (a, b, c))                                                    \
    CALL(BindBufferRange, (GLenum a, GLuint b, GLuint c, GLintptr d, GLsizeiptr e), (a, b, c, d, e))                   \
    CALL(BindFramebuffer, (GLenum a, GLuint b), (a, b))                                                                \
    CALL(BindImageTexture, (GLuint a, GLuint b, GLint c, GLboolean d, GLint e, GLenum f, GLenum g),                    \
         (a, b, c, d, e, f, g))                                                                                        \
    CALL(BindTextureUnit, (GLuint a, GLuint b), (a, b))                                                                \
    CALL(BindVertexArray, (GLuint a), (a))                                                                             \
    CALL(BlendEquation, (GLenum a), (a))                                                                               \
    CALL(BlendFuncSeparate, (GLenum a, GLenum b, GLenum c, GLenum d), (a, b, c, d))                                    \
    CALL(BlitNamedFramebuffer,                                                                                         \
         (GLuint a, GLuint b, GLint c, GLint d, GLint e, GLint f, GLint g, GLint h, GLint i, GLint j, GLbitfield k,    \
          GLenum l),                                                                                                   \
         (a, b, c, d, e, f, g, h, i, j, k, l))                                                                         \
    VALUE(GLenum, CheckNamedFramebufferStatus, 0, (GLuint a, GLenum b), (a, b))                                        \
    CALL(ClearNamedBufferSubData, (GLuint a, GLenum b, GLintptr c, GLsizeiptr d, GLenum e, GLenum f, const void *g),   \
         (a, b, c, d, e, f, g))                                                                                        \
    CALL(ClearNamedFramebufferfv, (GLuint a, GLenum b, GLint c, const GLfloat *d), (a, b, c, d))                       \
    CALL(ClearNamedFramebufferiv, (GLuint a, GLenum b, GLint c, const GLint *d), (a, b, c, d))                         \
    CALL(ClearNamedFramebufferuiv, (GLuint a, GLenum b, GLint c, const GLuint *d), (a, b, c, d))                       \
    CALL(ClearTexImage, (GLuint a, GLint b, GLenum c, GLenum d, const void *e), (a, b, c, d, e))                       \
    VALUE(GLenum, ClientWaitSync, GL_WAIT_FAILED, (GLsync a, GLbitfield b, GLuint64 c), (a, b, c))                     \
    CALL(ClipControl, (GLenum a, GLenum b), (a, b))                                                                    \
    CALL(CompileShader, (GLuint a), (a))                                                                               \
    CALL(CopyNamedBufferSubData, (GLuint a, GLuint b, GLintptr c, GLintptr d, GLsizeiptr e), (a, b, c, d, e))          \
    CALL(CreateBuffers, (GLsizei a, GLuint * b), (a, b))                                                               \
    CALL(CreateFramebuffers, (GLsizei a, GLuint * b), (a, b))                                                          \
    VALUE(GLuint, CreateProgram, 0, (void), ())                                                                        \
    CALL(CreateQueries, (GLenum a, GLsizei b, GLuint * c), (a, b, c))                                                  \
    VALUE(GLuint, CreateShader, 0, (GLenum a), (a))                                                                    \
    CALL(CreateTextures, (GLenum a, GLsizei b, GLuint * c), (a, b, c))                                                 \
    CALL(CreateVertexArrays, (GLsizei a, GLuint * b), (a, b))                                                          \
    CALL(DebugMessageCallback, (GLDEBUGPROC a, const void *b), (a, b))                                                 \
    CALL(DebugMessageControl, (GLenum a, GLenum b, GLenum c, GLsizei d, const GLuint *e, GLboolean f),                 \
         (a, b, c, d, e, f))                                                                                           \
    CALL(DeleteBuffers, (GLsizei a, const GLuint *b), (a, b))                                                          \
    CALL(DeleteFramebuffers, (GLsizei a, const GLuint *b), (a, b))                                                     \
    CALL(DeleteProgram, (GLuint a), (a))                                                                               \
    CALL(DeleteQueries, (GLsizei a, const GLuint *b), (a, b))                                                          \
    CALL(DeleteShader, (GLuint a), (a))                                                                                \
    CALL(DeleteSync, (GLsync a), (a))                                                                                  \
    CALL(DeleteVertexArrays, (GLsizei a, const GLuint *b), (a, b))                                                     \
    CALL(DetachShader, (GLuint a, GLuint b), (a, b))                                                                   \
    CALL(DispatchCompute, (GLuint a, GLuint b, GLuint c), (a, b, c))                                                   \
    CALL(DrawArraysInstanced, (GLenum a, GLint b, GLsizei c, GLsizei d), (a, b, c, d))                                 \
    VALUE(GLsync, FenceSync, NULL, (GLenum a, GLbitfield b), (a, b))                                                   \
    CALL(GetInteger64v, (GLenum a, GLint64 * b), (a, b))                                                               \
    CALL(GetIntegeri_v, (GLenum a, GLuint b, GLint * c), (a, b, c))                                                    \
    CALL(GetNamedBufferParameteri64v, (GLuint a, GLenum b, GLint64 * c), (a, b, c))                                    \
    CALL(GetNamedBufferSubData, (GLuint a, GLintptr b, GLsizeiptr c, void *d), (a, b, c, d))                           \
    CALL(GetProgramInfoLog, (GLuint a, GLsizei b, GLsizei * c, GLchar * d), (a, b, c, d))                              \
    CALL(GetProgramiv, (GLuint a, GLenum b, GLint * c), (a, b, c))                                                     \
    CALL(GetQueryObjectui64v, (GLuint a, GLenum b, GLuint64 * c), (a, b, c))                                           \
    CALL(GetShaderInfoLog, (GLuint a, GLsizei b, GLsizei * c, GLchar * d), (a, b, c, d))                               \
    CALL(GetShaderiv, (GLuint a, GLenum b, GLint * c), (a, b, c))                                                      \
    VALUE(const GLubyte *, GetStringi, NULL, (GLenum a, GLuint b), (a, b))                                             \
    CALL(GetTextureSubImage,                                                                                           \
         (GLuint a, GLint b, GLint c, GLint d, GLint e, GLsizei f, GLsizei g, GLsizei h, GLenum i, GLenum j,           \
          GLsizei k, void *l),                                                                                         \
         (a, b, c, d, e, f, g, h, i, j, k, l))                                                                         \
    VALUE(GLboolean, IsBuffer, GL_FALSE, (GLuint a), (a))                                                              \
    CALL(LinkProgram, (GLuint a), (a))                                                                                 \
    VALUE(void *, MapNamedBufferRange, NULL, (GLuint a, GLintptr b, GLsizeiptr c, GLbitfield d), (a, b, c, d))         \
    CALL(MaxShaderCompilerThreadsKHR, (GLuint a), (a))                                                                 \
    CALL(MemoryBarrier, (GLbitfield a), (a))                                                                           \
    CALL(NamedBufferStorage, (GLuint a, GLsizeiptr b, const void *c, GLbitfield d), (a, b, c, d))                      \
    CALL(NamedFramebufferDrawBuffers, (GLuint a, GLsizei b, const GLenum *c), (a, b, c))                               \
    CALL(NamedFramebufferParameteri, (GLuint a, GLenum b, GLint c), (a, b, c))                                         \
    CALL(NamedFramebufferReadBuffer, (GLuint a, GLenum b), (a, b))                                                     \
    CALL(NamedFramebufferTexture, (GLuint a, GLenum b, GLuint c, GLint d), (a, b, c, d))                               \
    CALL(NamedFramebufferTextureLayer, (GLuint a, GLenum b, GLuint c, GLint d, GLint e), (a, b, c, d, e))              \
    CALL(ObjectLabel, (GLenum a, GLuint b, GLsizei c, const GLchar *d), (a, b, c, d))                                  \
    CALL(PopDebugGroup, (void), ())                                                                                    \
    CALL(PushDebugGroup, (GLenum a, GLuint b, GLsizei c, const GLchar *d), (a, b, c, d))                               \
    CALL(QueryCounter, (GLuint a, GLenum b), (a, b))                                                                   \
    CALL(ShaderSource, (GLuint a, GLsizei b, const GLchar *const *c, const GLint *d), (a, b, c, d))                    \
    CALL(TextureParameteri, (GLuint a, GLenum b, GLint c), (a, b, c))                                                  \
    CALL(TextureStorage2D, (GLuint a, GLsizei b, GLenum c, GLsizei d, GLsizei e), (a, b, c, d, e))                     \
    CALL(TextureStorage3D, (GLuint a, GLsizei b, GLenum c, GLsizei d, GLsizei e, GLsizei f), (a, b, c, d, e, f))       \
    CALL(TextureSubImage2D,                                                                                            \
         (GLuint a, GLint b, GLint c, GLint d, GLsizei e, GLsizei f, GLenum g, GLenum h, const void *i),               \
         (a, b, c, d, e, f, g, h, i))                                                                                  \
    CALL(TextureSubImage3D,                                                                                            \
         (GLuint a, GLint b, GLint c, GLint d, GLint e, GLsizei f, GLsizei g, GLsizei h, GLenum i, GLenum j,           \
          const void *k),                                                                                              \
         (a, b, c, d, e, f, g, h, i, j, k))                                                                            \
    CALL(UseProgram, (GLuint a), (a))                                                                                  \
    CALL(WaitSync, (GLsync a, GLbitfield b, GLuint64 c), (a, b, c))

#define LOADED_CALL(name, parameters, arguments)                                                                       \
    static void(GLAPIENTRY * next_##name) parameters;                                                                  \
    static void GLAPIENTRY call_##name parameters                                                                      \
    {                                                                                                                  \
        if (!fails("gl" #name)) next_##name arguments;                                                                 \
    }

#define LOADED_VALUE(type, name, nothing, parameters, arguments)                                                       \
    static type(GLAPIENTRY *next_##name) parameters;                                                                   \
    static type GLAPIENTRY call_##name parameters                                                                      \
    {                                                                                                                  \
        return fails("gl" #name) ? nothing : next_##name arguments;                                                    \
    }

LOADED(LOADED_CALL, LOADED_VALUE)

/* Checks whether `name` is this function; if so, stores its address in `next` and replaces it by ours. */
static bool replace(const char *name, const char *own, void *next, function call, function *found)
{
    if (strcmp(name, own) != 0 || *found == NULL) return false;
    memcpy(next, found, sizeof(*found));
    *found = call;
    return true;
}

#define TRY_CALL(own, parameters, arguments) || replace(name, "gl" #own, &next_##own, (function)call_##own, &found)
#define TRY_VALUE(type, own, nothing, parameters, arguments) TRY_CALL(own, parameters, arguments)

static function loaded(const char *name, function found)
{
    (void)(false LOADED(TRY_CALL, TRY_VALUE));
    return found;
}

/* --- functions that the linker finds --- */

#define LINKED_CALL(name, parameters, arguments)                                                                       \
    void GLAPIENTRY name parameters                                                                                    \
    {                                                                                                                  \
        void(GLAPIENTRY * next) parameters;                                                                            \
        if (!fails(#name)) {                                                                                           \
            *(function *)&next = find_next(#name);                                                                     \
            next arguments;                                                                                            \
        }                                                                                                              \
    }

#define LINKED_VALUE(type, name, nothing, parameters, arguments)                                                       \
    type EGLAPIENTRY name parameters                                                                                   \
    {                                                                                                                  \
        type(EGLAPIENTRY *next) parameters;                                                                            \
        *(function *)&next = find_next(#name);                                                                         \
        return fails(#name) ? nothing : next arguments;                                                                \
    }

LINKED_CALL(glBlendFunc, (GLenum a, GLenum b), (a, b))
LINKED_CALL(glColorMask, (GLboolean a, GLboolean b, GLboolean c, GLboolean d), (a, b, c, d))
LINKED_CALL(glDeleteTextures, (GLsizei a, const GLuint *b), (a, b))
LINKED_CALL(glDepthFunc, (GLenum a), (a))
LINKED_CALL(glDepthMask, (GLboolean a), (a))
LINKED_CALL(glDepthRange, (GLclampd a, GLclampd b), (a, b))
LINKED_CALL(glDisable, (GLenum a), (a))
LINKED_CALL(glEnable, (GLenum a), (a))
LINKED_CALL(glFinish, (void), ())
LINKED_CALL(glFlush, (void), ())
LINKED_CALL(glGetIntegerv, (GLenum a, GLint *b), (a, b))
LINKED_CALL(glPixelStorei, (GLenum a, GLint b), (a, b))
LINKED_CALL(glPointSize, (GLfloat a), (a))
LINKED_CALL(glPolygonMode, (GLenum a, GLenum b), (a, b))
LINKED_CALL(glScissor, (GLint a, GLint b, GLsizei c, GLsizei d), (a, b, c, d))
LINKED_CALL(glViewport, (GLint a, GLint b, GLsizei c, GLsizei d), (a, b, c, d))

LINKED_VALUE(EGLBoolean, eglBindAPI, EGL_FALSE, (EGLenum a), (a))
LINKED_VALUE(EGLBoolean, eglChooseConfig, EGL_FALSE, (EGLDisplay a, const EGLint *b, EGLConfig *c, EGLint d, EGLint *e),
             (a, b, c, d, e))
LINKED_VALUE(EGLContext, eglCreateContext, EGL_NO_CONTEXT, (EGLDisplay a, EGLConfig b, EGLContext c, const EGLint *d),
             (a, b, c, d))
LINKED_VALUE(EGLSurface, eglCreatePbufferSurface, EGL_NO_SURFACE, (EGLDisplay a, EGLConfig b, const EGLint *c),
             (a, b, c))
LINKED_VALUE(EGLBoolean, eglDestroyContext, EGL_FALSE, (EGLDisplay a, EGLContext b), (a, b))
LINKED_VALUE(EGLBoolean, eglDestroySurface, EGL_FALSE, (EGLDisplay a, EGLSurface b), (a, b))
LINKED_VALUE(EGLContext, eglGetCurrentContext, EGL_NO_CONTEXT, (void), ())
LINKED_VALUE(EGLDisplay, eglGetCurrentDisplay, EGL_NO_DISPLAY, (void), ())
LINKED_VALUE(EGLSurface, eglGetCurrentSurface, EGL_NO_SURFACE, (EGLint a), (a))
LINKED_VALUE(EGLDisplay, eglGetDisplay, EGL_NO_DISPLAY, (EGLNativeDisplayType a), (a))
LINKED_VALUE(EGLDisplay, eglGetPlatformDisplay, EGL_NO_DISPLAY, (EGLenum a, void *b, const EGLAttrib *c), (a, b, c))
LINKED_VALUE(EGLBoolean, eglInitialize, EGL_FALSE, (EGLDisplay a, EGLint *b, EGLint *c), (a, b, c))
LINKED_VALUE(EGLBoolean, eglMakeCurrent, EGL_FALSE, (EGLDisplay a, EGLSurface b, EGLSurface c, EGLContext d),
             (a, b, c, d))
LINKED_VALUE(EGLenum, eglQueryAPI, EGL_NONE, (void), ())
LINKED_VALUE(const char *, eglQueryString, NULL, (EGLDisplay a, EGLint b), (a, b))
LINKED_VALUE(EGLBoolean, eglTerminate, EGL_FALSE, (EGLDisplay a), (a))

/* --- with INJECT_HARDWARE the software renderer pretends to be a graphics processor, which is preferred --- */

static bool is_hardware(void)
{
    return getenv("INJECT_HARDWARE") != NULL;
}

const GLubyte *GLAPIENTRY glGetString(GLenum what)
{
    const GLubyte *(GLAPIENTRY * next)(GLenum);
    *(function *)&next = find_next("glGetString");
    if (fails("glGetString")) return NULL;
    return what == GL_RENDERER && is_hardware() ? (const GLubyte *)"a graphics processor" : next(what);
}

/* GLEW asks for functions of OpenGL, and LORaster for functions of EGL. A device would say by
 * eglQueryDeviceStringEXT that it is a software renderer, so this function is hidden. */
function EGLAPIENTRY eglGetProcAddress(const char *name)
{
    function(EGLAPIENTRY * next)(const char *);
    *(function *)&next = find_next("eglGetProcAddress");
    const bool is_out = is_hardware() && strcmp(name, "eglQueryDeviceStringEXT") == 0;
    if (strncmp(name, "egl", 3) == 0) return fails("eglGetProcAddress") || is_out ? NULL : next(name);
    is_loading = true;
    return loaded(name, next(name));
}

/* LORaster calls glGetError as soon as GLEW has finished. */
GLenum GLAPIENTRY glGetError(void)
{
    is_loading = false;
    GLenum(GLAPIENTRY * next)(void);
    const GLenum error = pending;
    pending = GL_NO_ERROR;
    *(function *)&next = find_next("glGetError");
    return error != GL_NO_ERROR ? error : next();
}
