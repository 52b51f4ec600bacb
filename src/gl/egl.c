/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "gl/egl.h"

#include "base/log.h"
#include "base/mem.h"
#include "gl/context_private.h"

#include <stdio.h>
#include <string.h>

/* Returns true if a word is in a list of words with blanks between them. */
static bool has_word(const char *list, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = list; at != NULL && (at = strstr(at, word)) != NULL; at += length) {
        const bool begins = at == list || at[-1] == ' ';
        if (begins && (at[length] == ' ' || at[length] == '\0')) return true;
    }
    return false;
}

static const char *client_extensions(void)
{
    const char *list = eglQueryString(EGL_NO_DISPLAY, EGL_EXTENSIONS);
    return list ? list : "";
}

static const char *error_name(EGLint error)
{
    switch (error) {
    case EGL_SUCCESS: return "no error code";
    case EGL_NOT_INITIALIZED: return "EGL_NOT_INITIALIZED";
    case EGL_BAD_ACCESS: return "EGL_BAD_ACCESS";
    case EGL_BAD_ALLOC: return "EGL_BAD_ALLOC";
    case EGL_BAD_ATTRIBUTE: return "EGL_BAD_ATTRIBUTE";
    case EGL_BAD_CONFIG: return "EGL_BAD_CONFIG";
    case EGL_BAD_CONTEXT: return "EGL_BAD_CONTEXT";
    case EGL_BAD_DISPLAY: return "EGL_BAD_DISPLAY";
    case EGL_BAD_MATCH: return "EGL_BAD_MATCH";
    case EGL_BAD_PARAMETER: return "EGL_BAD_PARAMETER";
    case EGL_CONTEXT_LOST: return "EGL_CONTEXT_LOST";
    default: return "an unknown EGL error";
    }
}

/* ---- ways ---- */

int egl_ways_find(struct egl_way ways[EGL_WAY_MAX])
{
    EGLDeviceEXT devices[EGL_WAY_MAX - 2];
    bool are_software[EGL_WAY_MAX - 2];
    int count = 0;
    EGLint num_devices = 0;
    const char *client = client_extensions(), *why = NULL;
    PFNEGLQUERYDEVICESEXTPROC list_devices = NULL;
    if (client[0] == '\0')
        why = "it names no client extensions";
    else if (!has_word(client, "EGL_EXT_platform_device"))
        why = "EGL_EXT_platform_device is not supported";
    else if (!has_word(client, "EGL_EXT_device_enumeration") && !has_word(client, "EGL_EXT_device_base"))
        why = "EGL_EXT_device_enumeration is not supported";
    else if ((list_devices = (PFNEGLQUERYDEVICESEXTPROC)eglGetProcAddress("eglQueryDevicesEXT")) == NULL)
        why = "it has no eglQueryDevicesEXT";
    else if (!list_devices(EGL_WAY_MAX - 2, devices, &num_devices)) {
        num_devices = 0;
        why = error_name(eglGetError());
    }
    if (why != NULL) {
        ways[count] = (struct egl_way){.kind = EGL_WAY_UNLISTED, .name = "egl devices"};
        snprintf(ways[count].reason, sizeof(ways->reason), "EGL does not list them: %s", why);
        count++;
    }

    /* Each device is asked only once whether it is software. Exactly one of the two loops below therefore lists the
     * device, even if its answer would change. */
    for (int k = 0; k < num_devices; k++) {
        const PFNEGLQUERYDEVICESTRINGEXTPROC query =
            (PFNEGLQUERYDEVICESTRINGEXTPROC)eglGetProcAddress("eglQueryDeviceStringEXT");
        const char *list = query ? query(devices[k], EGL_EXTENSIONS) : NULL;
        are_software[k] = has_word(list, "EGL_MESA_device_software");
    }

    for (int software = 0; software < 2; software++) {
        for (int k = 0; k < num_devices; k++) {
            if (are_software[k] != (software == 1)) continue;
            ways[count] = (struct egl_way){.kind = EGL_WAY_DEVICE, .device = devices[k], .software = software == 1};
            snprintf(ways[count++].name, sizeof(ways->name), "egl device %d", k);
        }
    }
    ways[count++] = (struct egl_way){.kind = EGL_WAY_SURFACELESS, .name = "egl surfaceless"};
    ways[count++] = (struct egl_way){.kind = EGL_WAY_PBUFFER, .name = "egl pbuffer"};
    return count;
}

/* ---- opening ---- */

static EGLDisplay platform_display(EGLenum platform, void *native, bool *counted)
{
    *counted = false;
    if (has_word(client_extensions(), "EGL_KHR_display_reference")) {
        const EGLAttrib counting[] = {EGL_TRACK_REFERENCES_KHR, EGL_TRUE, EGL_NONE};
        const EGLDisplay display = eglGetPlatformDisplay(platform, native, counting);
        if (display != EGL_NO_DISPLAY) {
            *counted = true;
            return display;
        }
    }
    return eglGetPlatformDisplay(platform, native, NULL);
}

/* Makes a context on the open display of *egl. */
static bool make_context(struct egl_context *egl, EGLContext share, bool wants_pbuffer, bool debug, char *reason,
                         size_t capacity)
{
    const char *has = eglQueryString(egl->display, EGL_EXTENSIONS);
    const bool pbuffer = wants_pbuffer || !has_word(has, "EGL_KHR_surfaceless_context");
    const EGLint kind[] = {EGL_SURFACE_TYPE, pbuffer ? EGL_PBUFFER_BIT : 0, EGL_RENDERABLE_TYPE, EGL_OPENGL_BIT,
                           EGL_NONE};
    EGLConfig config = EGL_NO_CONFIG_KHR;
    EGLint count = 0;
    if (!eglChooseConfig(egl->display, kind, &config, 1, &count) || count < 1) {
        config = EGL_NO_CONFIG_KHR;
        if (pbuffer || !has_word(has, "EGL_KHR_no_config_context")) {
            snprintf(reason, capacity, "no configuration renders OpenGL");
            return false;
        }
    }

    /* Drivers refuse the attribute for resets if they cannot report resets, or if the context that shares its objects
     * was made without this attribute. The second round omits the attribute. */
    for (int reports_resets = 1; reports_resets >= 0 && egl->context == EGL_NO_CONTEXT; reports_resets--) {
        const EGLint wanted[] = {EGL_CONTEXT_MAJOR_VERSION_KHR,
                                 4,
                                 EGL_CONTEXT_MINOR_VERSION_KHR,
                                 5,
                                 EGL_CONTEXT_OPENGL_PROFILE_MASK_KHR,
                                 EGL_CONTEXT_OPENGL_CORE_PROFILE_BIT_KHR,
                                 EGL_CONTEXT_FLAGS_KHR,
                                 debug ? EGL_CONTEXT_OPENGL_DEBUG_BIT_KHR : 0,
                                 reports_resets ? EGL_CONTEXT_OPENGL_RESET_NOTIFICATION_STRATEGY_KHR : EGL_NONE,
                                 EGL_LOSE_CONTEXT_ON_RESET_KHR,
                                 EGL_NONE};
        egl->context = eglCreateContext(egl->display, config, share, wanted);
    }
    if (egl->context == EGL_NO_CONTEXT) {
        snprintf(reason, capacity, "OpenGL 4.5 core is refused (%s)", error_name(eglGetError()));
        return false;
    }
    if (pbuffer) {
        const EGLint size[] = {EGL_WIDTH, 1, EGL_HEIGHT, 1, EGL_NONE};
        egl->surface = eglCreatePbufferSurface(egl->display, config, size);
        if (egl->surface == EGL_NO_SURFACE) {
            snprintf(reason, capacity, "a 1 x 1 pbuffer is refused (%s)", error_name(eglGetError()));
            return false;
        }
    }
    return true;
}

bool egl_context_open(struct egl_context *egl, const struct egl_way *way, bool debug, char *reason, size_t capacity)
{
    *egl = (struct egl_context){EGL_NO_DISPLAY, EGL_NO_CONTEXT, EGL_NO_SURFACE, false};
    if (way->kind == EGL_WAY_UNLISTED) {
        snprintf(reason, capacity, "%s", way->reason);
        return false;
    }
    const EGLenum api = eglQueryAPI();
    if (!eglBindAPI(EGL_OPENGL_API)) {
        snprintf(reason, capacity, "no EGL driver offers OpenGL");
        return false;
    }
    const bool can_be =
        way->kind != EGL_WAY_SURFACELESS || has_word(client_extensions(), "EGL_MESA_platform_surfaceless");
    if (way->kind == EGL_WAY_DEVICE)
        egl->display = platform_display(EGL_PLATFORM_DEVICE_EXT, way->device, &egl->counted);
    else if (way->kind == EGL_WAY_PBUFFER)
        egl->display = eglGetDisplay(EGL_DEFAULT_DISPLAY);
    else if (can_be)
        egl->display = platform_display(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, &egl->counted);

    bool is_open = false;
    if (!can_be) {
        snprintf(reason, capacity, "EGL_MESA_platform_surfaceless is not supported");
    } else if (egl->display == EGL_NO_DISPLAY) {
        snprintf(reason, capacity, "there is no such EGL display");
    } else if (!eglInitialize(egl->display, NULL, NULL)) {
        snprintf(reason, capacity, "the display cannot be opened (%s)", error_name(eglGetError()));
        egl->display = EGL_NO_DISPLAY;
    } else {
        is_open = make_context(egl, EGL_NO_CONTEXT, way->kind == EGL_WAY_PBUFFER, debug, reason, capacity);
    }
    if (api != EGL_NONE) eglBindAPI(api);
    if (!is_open) egl_context_close(egl);
    return is_open;
}

bool egl_context_open_beside(struct egl_context *egl, const lr_shared_context *share, bool debug, char *reason,
                             size_t capacity)
{
    *egl = (struct egl_context){share->display, EGL_NO_CONTEXT, EGL_NO_SURFACE, false};
    const EGLenum api = eglQueryAPI();
    const bool opened = eglBindAPI(EGL_OPENGL_API) && make_context(egl, share->context, false, debug, reason, capacity);
    if (api != EGL_NONE) eglBindAPI(api);
    if (!opened) egl_context_close(egl);
    return opened;
}

void egl_context_close(struct egl_context *egl)
{
    if (egl->surface != EGL_NO_SURFACE) eglDestroySurface(egl->display, egl->surface);
    if (egl->context != EGL_NO_CONTEXT) eglDestroyContext(egl->display, egl->context);
    if (egl->display != EGL_NO_DISPLAY && egl->counted) eglTerminate(egl->display);
    *egl = (struct egl_context){EGL_NO_DISPLAY, EGL_NO_CONTEXT, EGL_NO_SURFACE, false};
}

/* ---- the current context ---- */

static void note_current(struct egl_current *current)
{
    current->context_api = eglQueryAPI();
    current->display = eglGetCurrentDisplay();
    current->context = eglGetCurrentContext();
    current->draw = eglGetCurrentSurface(EGL_DRAW);
    current->read = eglGetCurrentSurface(EGL_READ);
}

bool gl_context_share(lr_shared_context *current)
{
    const EGLenum api = eglQueryAPI();
    if (!eglBindAPI(EGL_OPENGL_API)) return false;
    *current = (lr_shared_context){eglGetCurrentDisplay(), eglGetCurrentContext()};
    if (api != EGL_NONE) eglBindAPI(api);
    return current->context != EGL_NO_CONTEXT;
}

bool egl_context_make_current(const struct egl_context *egl, struct egl_current *before, char *reason, size_t capacity)
{
    struct egl_current was = {.api = eglQueryAPI()};
    note_current(&was);
    const bool found = was.context != EGL_NO_CONTEXT;
    if (eglBindAPI(EGL_OPENGL_API) && !found) note_current(&was);
    if (!eglMakeCurrent(egl->display, egl->surface, egl->surface, egl->context)) {
        const EGLint error = eglGetError();
        snprintf(reason, capacity, "%s%s", error_name(error),
                 error == EGL_BAD_ACCESS ? ": another thread has it, or a context made without "
                                           "EGL is current on this thread"
                                         : "");
        if (was.api != EGL_NONE) eglBindAPI(was.api);
        return false;
    }
    *before = was;
    return true;
}

bool egl_context_restore(const struct egl_context *egl, const struct egl_current *before)
{
    bool done = false;
    if (before->context != EGL_NO_CONTEXT) {
        if (before->context_api != EGL_OPENGL_API) {
            /* OpenGL and OpenGL ES have separate current contexts. The OpenGL context is therefore released before the
             * previous context is bound. */
            eglMakeCurrent(egl->display, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
        }
        eglBindAPI(before->context_api);
        done = eglMakeCurrent(before->display, before->draw, before->read, before->context);
    } else {
        done = eglMakeCurrent(egl->display, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
    }
    if (before->api != EGL_NONE) eglBindAPI(before->api);
    return done;
}
