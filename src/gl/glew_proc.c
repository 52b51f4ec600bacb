/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The GLX functions that GLEW calls, implemented with EGL. GLX itself would need libGL and X11. Functions that EGL
 * finds also work in contexts of GLX, because both go through libGLdispatch. */
#include <EGL/egl.h>
#include <string.h>

typedef void any_function(void);

any_function *glXGetProcAddressARB(const unsigned char *name);
unsigned glXQueryVersion(void);
const char *glXGetClientString(void);

/* GLX's own functions are not found, so GLEW reports GLX 1.1. */
any_function *glXGetProcAddressARB(const unsigned char *name)
{
    const char *text = (const char *)name;
    return strncmp(text, "glX", 3) == 0 ? NULL : (any_function *)eglGetProcAddress(text);
}

/* GLEW calls the functions below only if GLX has a display. */
unsigned glXQueryVersion(void)
{
    return 0;
}

const char *glXGetClientString(void)
{
    return NULL;
}
