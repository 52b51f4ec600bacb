/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#define _GNU_SOURCE /* dladdr1, secure_getenv */
#include "base/path.h"

#include "base/mem.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

const char *lr_path_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

bool lr_path_ends(const char *path, const char *ending)
{
    const size_t length = strlen(path), tail = strlen(ending);
    return length > tail && strcasecmp(path + length - tail, ending) == 0;
}

bool lr_path_ends_in(const char *path, const char *const *endings)
{
    while (*endings != NULL && !lr_path_ends(path, *endings)) endings++;
    return *endings != NULL;
}

const char *lr_path_stem(const char *path, char text[128])
{
    snprintf(text, 128, "%.100s", lr_path_name(path));
    char *dot = strrchr(text, '.');
    if (dot != NULL && dot != text) *dot = '\0';
    return text;
}

int lr_path_cut_frame(char *path)
{
    enum { MOST_FRAMES = 32767 }; /* of a NIfTI file */
    char *colon = strrchr(path, ':'), *end = NULL;
    const long frame = colon != NULL ? strtol(colon + 1, &end, 10) : 0;
    /* A file may also have the name "pet.nii:3". */
    if (!(frame > 0 && frame <= MOST_FRAMES && *end == '\0' && access(path, F_OK) != 0)) return 0;
    *colon = '\0';
    return (int)frame;
}

/* Returns the first `length` bytes of a path, followed by a name. */
static char *join(const char *path, size_t length, const char *name, const lr_log *log)
{
    const size_t bytes = length + strlen(name) + 1;
    char *joined = lr_alloc((int64_t)bytes, 1, "a path", log);
    if (joined != NULL) snprintf(joined, bytes, "%.*s%s", (int)length, path, name);
    return joined;
}

char *lr_path_with_ending(const char *path, const char *ending, const lr_log *log)
{
    const char *dot = strrchr(lr_path_name(path), '.');
    return join(path, dot != NULL ? (size_t)(dot - path) : strlen(path), ending, log);
}

char *lr_path_beside(const char *path, const char *name, const lr_log *log)
{
    return join(path, *name == '/' ? 0 : (size_t)(lr_path_name(path) - path), name, log);
}

static bool is_there(char path[PATH_MAX], const char *folder, const char *file)
{
    const int length = snprintf(path, PATH_MAX, "%s/%s", folder, file);
    return length < PATH_MAX && access(path, R_OK) == 0;
}

bool lr_part_find(const struct lr_part_places *places, const char *file, char path[PATH_MAX])
{
    const char *named = secure_getenv(places->variable);
    if (named != NULL && named[0] != '\0') {
        if (named[0] == '/' && is_there(path, named, file)) return true;
        snprintf(path, PATH_MAX,
                 named[0] == '/' ? "is not in %s" : "is not looked for in %s, which is no whole path, beginning with /",
                 named);
        return false;
    }
    /* The path of the library or program that contains this function. The loader has no path for the program itself. A
     * relative path of a library is not used, since the working folder may have changed. */
    Dl_info info;
    struct link_map *map = NULL;
    struct stat own, facts;
    const bool is_known = dladdr1((const void *)(uintptr_t)&lr_part_find, &info, (void **)&map, RTLD_DL_LINKMAP) != 0;
    const char *name = !is_known ? "" : map->l_name[0] != '\0' ? map->l_name : "/proc/self/exe";
    char *whole = name[0] == '/' ? realpath(name, NULL) : NULL;
    const bool has_folder = whole != NULL && stat(whole, &own) == 0;
    char folder[PATH_MAX];
    snprintf(folder, sizeof(folder), "%s", has_folder ? whole : "");
    char *slash = strrchr(folder, '/');
    *(slash != NULL ? slash : folder) = '\0';
    free(whole);

    /* A file below the folder must belong to the owner of the library or program, or to root. */
    for (size_t k = 0; k < sizeof(places->below) / sizeof(places->below[0]) && folder[0] != '\0'; k++) {
        const char *below = places->below[k];
        if (below == NULL) continue;
        const int length = snprintf(path, PATH_MAX, "%s/%s%s%s", folder, below, below[0] != '\0' ? "/" : "", file);
        if (length < PATH_MAX && access(path, R_OK) == 0 && lstat(path, &facts) == 0 &&
            (facts.st_uid == 0 || facts.st_uid == own.st_uid))
            return true;
    }
    if (places->installed[0] == '\0') {
        snprintf(path, PATH_MAX, "is not beside what asks for it, in %.1500s", folder);
        return false;
    }
    if (is_there(path, places->installed, file)) return true;
    snprintf(path, PATH_MAX, "is neither beside what asks for it, in %.1500s, nor in %.1500s", folder,
             places->installed);
    return false;
}

bool lr_helper_find(const char *name, char path[PATH_MAX])
{
    static const struct lr_part_places places = {
        .variable = "LORASTER_LIBEXEC",
        .below = {"", LR_LIBEXEC_FROM_PROGRAM, LR_LIBEXEC_FROM_LIBRARY, LR_LIBEXEC_FROM_PLUGIN},
        .installed = LR_LIBEXEC_DIR,
    };
    return lr_part_find(&places, name, path);
}
