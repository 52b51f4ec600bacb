/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The GLX functions that GLEW calls, implemented with EGL, because GLX itself would need libGL and X11. EGL's entry
 * points also serve contexts of GLX, because both are called through libGLdispatch. */
#include <EGL/egl.h>
#include <string.h>

typedef void any_function(void);

any_function *glXGetProcAddressARB(const unsigned char *name);
unsigned glXQueryVersion(void);
const char *glXGetClientString(void);

/* GLX's own functions are not found, so that GLEW reports GLX 1.1. */
any_function *glXGetProcAddressARB(const unsigned char *name)
{
    const char *text = (const char *)name;
    return strncmp(text, "glX", 3) == 0 ? NULL : (any_function *)eglGetProcAddress(text);
}

/* The functions below are only called if there is a display. */
unsigned glXQueryVersion(void)
{
    return 0;
}

const char *glXGetClientString(void)
{
    return NULL;
}
