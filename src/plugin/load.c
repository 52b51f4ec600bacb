/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#define _GNU_SOURCE /* dladdr1 */
#include "plugin/load.h"

#include "base/log.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The folder of the library or program that this function is in, "" where the system does not say. The
 * program has no name among what is loaded. */
static void get_own_folder(char folder[PATH_MAX])
{
    Dl_info info;
    struct link_map *map = NULL;
    char *path = NULL;
    if (dladdr1((const void *)(uintptr_t)&lr_plugin_load, &info, (void **)&map, RTLD_DL_LINKMAP) !=
        0) {
        path = realpath(map->l_name[0] != '\0' ? map->l_name : "/proc/self/exe", NULL);
    }
    snprintf(folder, PATH_MAX, "%s", path != NULL ? path : "");
    free(path);
    char *slash = strrchr(folder, '/');
    *(slash != NULL ? slash : folder) = '\0';
}

static bool is_there(char path[PATH_MAX], const char *folder, const char *below, const char *file)
{
    const int length = snprintf(path, PATH_MAX, "%s%s/%s", folder, below, file);
    return folder[0] != '\0' && length < PATH_MAX && access(path, R_OK) == 0;
}

/* Where it is not, `path` is the folder that it should be in. */
static bool find(const char *file, char path[PATH_MAX])
{
    char own[PATH_MAX];
    const char *named = getenv("LORASTER_PLUGINS");
    get_own_folder(own);
    if (named != NULL ? is_there(path, named, "", file)
                      : is_there(path, own, "", file) || is_there(path, own, "/loraster", file) ||
                            is_there(path, own, "/" LR_PLUGINS_FROM_PROGRAM, file) ||
                            is_there(path, LR_PLUGINS_DIR, "", file)) {
        return true;
    }
    snprintf(path, PATH_MAX, "%s", named != NULL ? named : LR_PLUGINS_DIR);
    return false;
}

void *lr_plugin_load(const struct lr_plugin_name *name, const lr_log *log)
{
    char path[PATH_MAX];
    if (!find(name->file, path)) {
        lr_error(log, LR_NO_DEVICE,
                 "no %s: the plugin %s is not in %s: install LORaster's part for it, or set "
                 "LORASTER_PLUGINS to the folder that has it",
                 name->what, name->file, path);
        return NULL;
    }
    void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    void *found = plugin != NULL ? dlsym(plugin, name->symbol) : NULL;
    if (found == NULL) {
        const char *why = dlerror();
        lr_error(log, LR_NO_DEVICE, "no %s: %s: install %s", name->what,
                 why != NULL ? why : "its plugin is empty", name->packages);
    }
    return found;
}

bool lr_plugin_is_ours(const struct lr_plugin_name *name, const char *version, const lr_log *log)
{
    if (strcmp(version, LR_VERSION_STRING) == 0) {
        return true;
    }
    lr_error(log, LR_NO_DEVICE,
             "no %s: the plugin %s is that of LORaster %s, and this is " LR_VERSION_STRING
             ": install both of one version",
             name->what, name->file, version);
    return false;
}
