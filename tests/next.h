/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Access to the library functions that a preloaded library replaces. OpenGL's libraries are loaded by a plugin, in
 * which RTLD_NEXT does not search, so the plugin is searched as well. */
#pragma once

#include <dlfcn.h>
#include <stddef.h>

/* Returns NULL if no loaded library has the function. */
static inline void *find_next_symbol(const char *name)
{
    static const char *const libraries[] = {"lr_gl.so", "libEGL.so.1"};
    void *found = dlsym(RTLD_NEXT, name);
    for (size_t k = 0; found == NULL && k < sizeof(libraries) / sizeof(libraries[0]); k++) {
        void *library = dlopen(libraries[k], RTLD_LAZY | RTLD_NOLOAD);
        if (library != NULL) {
            found = dlsym(library, name);
            dlclose(library);
        }
    }
    return found;
}
