/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Lists of names in sentences. */
#ifndef LR_BASE_NAMES_H
#define LR_BASE_NAMES_H

#include <stdio.h>
#include <string.h>

/* Adds a name to the list "a, b, c" in `list`, which has room for `size` bytes. */
static inline void lr_names_add(char *list, size_t size, const char *name)
{
    const size_t used = strlen(list);
    snprintf(list + used, size - used, "%s%s", used > 0 ? ", " : "", name);
}

#endif
