/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Access to the plugins. A plugin that is linked into the calling program or plugin is found by its weak symbol. All
 * other plugins are loaded. Tests that link the plugins define LR_LINKED. */
#include "plugin/plugin.h"

#include "base/log.h"
#include "base/parallel.h"
#include "base/path.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#if !defined(LR_LINKED)
#pragma weak lr_gl_plugin
#pragma weak lr_cuda_plugin
#pragma weak lr_hdf5_plugin
#endif
#pragma weak lr_viewer_plugin
#pragma weak lr_mpi_plugin

/* A plugin's file, and the texts for the error if it is missing. */
struct name {
    const char *file, *symbol;
    const char *what;     /* "OpenGL" */
    const char *packages; /* packages that may be missing */
};

/* Finds, loads and checks a plugin, and gives it the pool and the records of errors. */
static const void *load(const struct name *name, const lr_log *log)
{
    static const struct lr_part_places places = {
        .variable = "LORASTER_PLUGINS",
        .below = {"", "loraster", LR_PLUGINS_FROM_PROGRAM},
        .installed = LR_PLUGINS_DIR,
    };
    char path[PATH_MAX];
    if (!lr_part_find(&places, name->file, path)) {
        lr_error(log, LR_NO_DEVICE,
                 "no %s: the plugin %s %s: install LORaster's part for it, or set LORASTER_PLUGINS to "
                 "the whole path of the folder that has it",
                 name->what, name->file, path);
        return NULL;
    }
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    const struct lr_plugin *plugin = library != NULL ? dlsym(library, name->symbol) : NULL;
    if (plugin == NULL) {
        const char *why = dlerror();
        lr_error(log, LR_NO_DEVICE, "no %s: %s: install %s", name->what, why != NULL ? why : "its plugin is empty",
                 name->packages);
        return NULL;
    }
    /* The CUDA and viewer plugins link to the OpenGL plugin, which contains its own copy of the library code that it
     * uses. */
    const struct lr_plugin *const loaded[] = {plugin, dlsym(library, "lr_gl_plugin")};
    for (int k = 0; k < 2 && loaded[k] != NULL; k++) {
        if (strcmp(loaded[k]->build, lr_plugin_build) == 0) continue;
        lr_error(log, LR_NO_DEVICE,
                 "no %s: the plugin %s, or another that it needs, is that of LORaster %s, and this is LORaster %s: "
                 "install both of one build",
                 name->what, name->file, loaded[k]->build, lr_plugin_build);
        return NULL;
    }
    for (int k = 0; k < 2 && loaded[k] != NULL; k++) {
        loaded[k]->use_pool(lr_pool_in_use());
        loaded[k]->use_errors(lr_errors_in_use());
    }
    return plugin;
}

#define GET(table, ...) (&(table) != NULL ? &(table) : load(&(struct name){.symbol = #table, __VA_ARGS__}, log))

const struct lr_gl_plugin *lr_plugin_gl(const lr_log *log)
{
    return GET(lr_gl_plugin, .file = "lr_gl.so", .what = "OpenGL", .packages = "libegl1 and libopengl0");
}

const struct lr_cuda_plugin *lr_plugin_cuda(const lr_log *log)
{
    return GET(lr_cuda_plugin, .file = "lr_cuda.so", .what = "CUDA",
               .packages = "libegl1 and libopengl0, through which CUDA works here, and NVIDIA's driver");
}

const struct lr_hdf5_plugin *lr_plugin_hdf5(const lr_log *log)
{
    return GET(lr_hdf5_plugin, .file = "lr_hdf5.so", .what = "HDF5", .packages = "libhdf5-103-1");
}

const struct lr_viewer_plugin *lr_plugin_viewer(const lr_log *log)
{
    return GET(lr_viewer_plugin, .file = "lr_viewer.so", .what = "viewer",
               .packages = "libglfw3, libegl1 and libopengl0");
}

const struct lr_mpi_plugin *lr_plugin_mpi(const lr_log *log)
{
    return GET(lr_mpi_plugin, .file = "lr_mpi.so", .what = "MPI",
               .packages = "libopenmpi-dev, openmpi-bin and liblapacke-dev");
}
