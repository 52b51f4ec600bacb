/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * For libraries that are preloaded: what they stand in front of. Libraries of OpenGL come with a plugin,
 * out of sight of RTLD_NEXT: what the plugin needs is found by the plugin. */
#ifndef LR_TEST_NEXT_H
#define LR_TEST_NEXT_H

#include <dlfcn.h>
#include <stddef.h>

/* NULL where no library has it, or none is loaded. */
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

#endif
