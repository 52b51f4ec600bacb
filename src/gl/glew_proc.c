/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Functions of GLX that GLEW calls, answered by EGL: GLX would bring libGL and X11. EGL's entry points serve contexts
 * of GLX, too, because both are called through libGLdispatch. */
#include <EGL/egl.h>
#include <string.h>

typedef void any_function(void);

any_function *glXGetProcAddressARB(const unsigned char *name);
unsigned glXQueryVersion(void);
const char *glXGetClientString(void);

/* GLX's own functions are missing, which GLEW reports as a GLX of version 1.1. */
any_function *glXGetProcAddressARB(const unsigned char *name)
{
    const char *text = (const char *)name;
    return strncmp(text, "glX", 3) == 0 ? NULL : (any_function *)eglGetProcAddress(text);
}

/* These are called with a display only. */
unsigned glXQueryVersion(void)
{
    return 0;
}

const char *glXGetClientString(void)
{
    return NULL;
}
