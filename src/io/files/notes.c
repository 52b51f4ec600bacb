/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/files/notes.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool lr_notes_place(const char *name, char *path, size_t size)
{
    const char *own = getenv("LORASTER_CACHE"), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char folder[PATH_MAX];
    int length = 0;
    if (own != NULL && own[0] != '\0')
        length = strcmp(own, "off") == 0 ? 0 : snprintf(folder, PATH_MAX, "%s", own);
    else if (cache != NULL && cache[0] == '/')
        length = snprintf(folder, PATH_MAX, "%s/loraster", cache);
    else if (home != NULL && home[0] == '/')
        length = snprintf(folder, PATH_MAX, "%s/.cache/loraster", home);
    if (length <= 0 || length >= PATH_MAX) return false;

    /* Makes the folder and its parents. A failure shows when the file is opened. */
    for (char *slash = strchr(folder + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(folder, 0777);
        *slash = '/';
    }
    mkdir(folder, 0777);
    length = snprintf(path, size, "%s/%s", folder, name);
    return length > 0 && (size_t)length < size;
}
