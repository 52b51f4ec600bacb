/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/path.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

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
