/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#define _GNU_SOURCE /* dladdr1, secure_getenv */
#include "plugin/load.h"

#include "base/log.h"
#include "plugin/plugin.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- where it is --- */

/* The library or program that this function is in. */
struct own_file {
    char folder[PATH_MAX]; /* "" where the system does not say */
    uid_t owner;
};

/* The program has no name among what is loaded. A library that was found by a path which is not whole
 * could be meant of another folder by now. */
static char *find_own_file(void)
{
    Dl_info info;
    struct link_map *map = NULL;
    if (dladdr1((const void *)(uintptr_t)&lr_plugin_load, &info, (void **)&map, RTLD_DL_LINKMAP) ==
        0) {
        return NULL;
    }
    const char *name = map->l_name[0] != '\0' ? map->l_name : "/proc/self/exe";
    return name[0] == '/' ? realpath(name, NULL) : NULL;
}

static void get_own_file(struct own_file *own)
{
    char *path = find_own_file();
    struct stat facts;
    const bool is_known = path != NULL && stat(path, &facts) == 0;
    snprintf(own->folder, sizeof(own->folder), "%s", is_known ? path : "");
    own->owner = is_known ? facts.st_uid : 0;
    char *slash = strrchr(own->folder, '/');
    *(slash != NULL ? slash : own->folder) = '\0';
    free(path);
}

static bool is_there(char path[PATH_MAX], const char *folder, const char *file)
{
    const int length = snprintf(path, PATH_MAX, "%s/%s", folder, file);
    return length < PATH_MAX && access(path, R_OK) == 0;
}

static bool is_beside(char path[PATH_MAX], const struct own_file *own, const char *below)
{
    const int length = snprintf(path, PATH_MAX, "%s/%s", own->folder, below);
    struct stat facts;
    return own->folder[0] != '\0' && length < PATH_MAX && access(path, R_OK) == 0 &&
           lstat(path, &facts) == 0 && (facts.st_uid == 0 || facts.st_uid == own->owner);
}

static bool find_installed(char path[PATH_MAX], const char *file)
{
    static const char *const folders[] = {"", "loraster/", LR_PLUGINS_FROM_PROGRAM "/"};
    struct own_file own;
    get_own_file(&own);
    for (size_t k = 0; k < sizeof(folders) / sizeof(folders[0]); k++) {
        char below[PATH_MAX];
        snprintf(below, sizeof(below), "%s%s", folders[k], file);
        if (is_beside(path, &own, below)) {
            return true;
        }
    }
    return is_there(path, LR_PLUGINS_DIR, file);
}

static bool find(const struct lr_plugin_name *name, char path[PATH_MAX], const lr_log *log)
{
    const char *named = secure_getenv("LORASTER_PLUGINS");
    const bool is_named = named != NULL && named[0] != '\0';
    if (is_named && named[0] != '/') {
        lr_error(log, LR_NO_DEVICE,
                 "no %s: LORASTER_PLUGINS is %s: set it to the whole path, which begins with /, of "
                 "the folder that has %s",
                 name->what, named, name->file);
        return false;
    }
    if (is_named ? is_there(path, named, name->file) : find_installed(path, name->file)) {
        return true;
    }
    lr_error(log, LR_NO_DEVICE,
             "no %s: the plugin %s is not in %s: install LORaster's part for it, or set "
             "LORASTER_PLUGINS to the folder that has it",
             name->what, name->file, is_named ? named : LR_PLUGINS_DIR);
    return false;
}

/* --- whether it fits --- */

/* The table of that name in the plugin, or in another that it stands on. */
static bool is_ours(const struct lr_plugin_name *name, const void *table, const lr_log *log)
{
    const char *build = *(const char *const *)table; /* the first member of each */
    if (strcmp(build, lr_plugin_build) == 0) {
        return true;
    }
    lr_error(log, LR_NO_DEVICE,
             "no %s: the plugin %s, or another that it needs, is that of LORaster %s, and this is "
             "LORaster %s: install both of one build",
             name->what, name->file, build, lr_plugin_build);
    return false;
}

const void *lr_plugin_load(const struct lr_plugin_name *name, const lr_log *log)
{
    char path[PATH_MAX];
    if (!find(name, path, log)) {
        return NULL;
    }
    void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    const void *table = plugin != NULL ? dlsym(plugin, name->symbol) : NULL;
    if (table == NULL) {
        const char *why = dlerror();
        lr_error(log, LR_NO_DEVICE, "no %s: %s: install %s", name->what,
                 why != NULL ? why : "its plugin is empty", name->packages);
        return NULL;
    }
    const void *below = dlsym(plugin, "lr_gl_plugin"); /* CUDA and the viewer stand on it */
    return is_ours(name, table, log) && (below == NULL || is_ours(name, below, log)) ? table : NULL;
}
