/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "plugin/plugin.h"

#include "base/log.h"
#include "base/parallel.h"
#include "base/path.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static bool is_of_this_build(const struct lr_plugin_name *name, const struct lr_plugin *plugin, const lr_log *log)
{
    if (strcmp(plugin->build, lr_plugin_build) == 0) return true;
    lr_error(log, LR_NO_DEVICE,
             "no %s: the plugin %s, or another that it needs, is that of LORaster %s, and this is "
             "LORaster %s: install both of one build",
             name->what, name->file, plugin->build, lr_plugin_build);
    return false;
}

const void *lr_plugin_load(const struct lr_plugin_name *name, const lr_log *log)
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
    const struct lr_plugin *below = dlsym(library, "lr_gl_plugin");
    if (!is_of_this_build(name, plugin, log) || (below != NULL && !is_of_this_build(name, below, log))) return NULL;
    const struct lr_plugin *const loaded[] = {plugin, below};
    for (int k = 0; k < 2 && loaded[k] != NULL; k++) {
        loaded[k]->use_pool(lr_pool_in_use());
        loaded[k]->use_errors(lr_errors_in_use());
    }
    return plugin;
}
