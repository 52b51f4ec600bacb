/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/helper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The folder of the running program, "" where the system does not say. */
static void get_own_folder(char folder[PATH_MAX])
{
    const ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX - 1);
    folder[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(folder, '/');
    *(slash != NULL ? slash : folder) = '\0';
}

static bool is_there(char path[PATH_MAX], const char *folder, const char *below, const char *name)
{
    const int length = snprintf(path, PATH_MAX, "%s%s/%s", folder, below, name);
    return folder[0] != '\0' && length < PATH_MAX && access(path, X_OK) == 0;
}

bool lr_helper_find(const char *name, char path[PATH_MAX])
{
    char own[PATH_MAX];
    const char *named = getenv("LORASTER_LIBEXEC");
    get_own_folder(own);
    if (named != NULL
            ? is_there(path, named, "", name)
            : is_there(path, own, "", name) || is_there(path, own, "/../libexec/loraster", name) ||
                  is_there(path, LR_LIBEXEC_DIR, "", name)) {
        return true;
    }
    snprintf(path, PATH_MAX, "%s", named != NULL ? named : LR_LIBEXEC_DIR);
    return false;
}
