/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "plugin/load.h"

#include "base/helper.h"
#include "base/log.h"
#include "plugin/plugin.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static bool find(const struct lr_plugin_name *name, char path[PATH_MAX], const lr_log *log)
{
    static const struct lr_part_places places = {
        .variable = "LORASTER_PLUGINS",
        .below = {"", "loraster", LR_PLUGINS_FROM_PROGRAM},
        .installed = LR_PLUGINS_DIR,
    };
    if (lr_part_find(&places, name->file, path)) return true;
    lr_error(log, LR_NO_DEVICE,
             "no %s: the plugin %s %s: install LORaster's part for it, or set LORASTER_PLUGINS to "
             "the whole path of the folder that has it",
             name->what, name->file, path);
    return false;
}

/* The table of that name in the plugin, or in another that it stands on. */
static bool is_ours(const struct lr_plugin_name *name, const void *table, const lr_log *log)
{
    const char *build = *(const char *const *)table; /* the first member of each */
    if (strcmp(build, lr_plugin_build) == 0) return true;
    lr_error(log, LR_NO_DEVICE,
             "no %s: the plugin %s, or another that it needs, is that of LORaster %s, and this is "
             "LORaster %s: install both of one build",
             name->what, name->file, build, lr_plugin_build);
    return false;
}

const void *lr_plugin_load(const struct lr_plugin_name *name, const lr_log *log)
{
    char path[PATH_MAX];
    if (!find(name, path, log)) return NULL;
    void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    const void *table = plugin != NULL ? dlsym(plugin, name->symbol) : NULL;
    if (table == NULL) {
        const char *why = dlerror();
        lr_error(log, LR_NO_DEVICE, "no %s: %s: install %s", name->what, why != NULL ? why : "its plugin is empty",
                 name->packages);
        return NULL;
    }
    const void *below = dlsym(plugin, "lr_gl_plugin"); /* CUDA and the viewer stand on it */
    return is_ours(name, table, log) && (below == NULL || is_ours(name, below, log)) ? table : NULL;
}
