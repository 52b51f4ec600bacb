/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/files/notes.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The folder, or false when nothing is to be kept. */
static bool find_folder(char folder[PATH_MAX])
{
    const char *own = getenv("LORASTER_CACHE");
    const char *cache = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    int length = 0;
    if (own != NULL && own[0] != '\0')
        length = strcmp(own, "off") == 0 ? PATH_MAX : snprintf(folder, PATH_MAX, "%s", own);
    else if (cache != NULL && cache[0] == '/')
        length = snprintf(folder, PATH_MAX, "%s/loraster", cache);
    else if (home != NULL && home[0] == '/')
        length = snprintf(folder, PATH_MAX, "%s/.cache/loraster", home);
    return length > 0 && length < PATH_MAX;
}

/* Makes a folder and those above it. What fails shows when the file is opened. */
static void make_folder(char folder[PATH_MAX])
{
    for (char *slash = strchr(folder + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(folder, 0777);
        *slash = '/';
    }
    mkdir(folder, 0777);
}

bool lr_notes_place(const char *name, char *path, size_t size)
{
    char folder[PATH_MAX];
    if (!find_folder(folder)) return false;
    make_folder(folder);
    const int length = snprintf(path, size, "%s/%s", folder, name);
    return length > 0 && (size_t)length < size;
}
