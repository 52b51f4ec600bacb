/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/checkpoints/key.h"

#include "base/log.h"

#include <string.h>

enum { MOST_SHOWN = 300 };

/* Length of the part of a key that begins here, without its digest. */
static int part_length(const char *part)
{
    const int length = (int)strcspn(part, ";");
    const char *digest = strstr(part, LR_KEY_CONTENTS);
    const int named = digest != NULL && digest - part < length ? (int)(digest - part) : length;
    return named < MOST_SHOWN ? named : MOST_SHOWN;
}

void lr_key_compare(const char *const keys[2], struct lr_key_difference *difference)
{
    size_t k = 0;
    while (keys[0][k] != '\0' && keys[0][k] == keys[1][k]) k++;
    while (k > 0 && keys[0][k - 1] != ';') k--;
    for (int side = 0; side < 2; side++) {
        difference->part[side] = keys[side] + k + strspn(keys[side] + k, " ");
        difference->length[side] = part_length(difference->part[side]);
    }
    difference->contents = difference->length[0] == difference->length[1] &&
                           strncmp(difference->part[0], difference->part[1], (size_t)difference->length[0]) == 0;
}

lr_status lr_key_check(const char *path, const char *const keys[2], const lr_log *log)
{
    struct lr_key_difference differs;
    if (strcmp(keys[0], keys[1]) == 0) return LR_OK;
    lr_key_compare(keys, &differs);
    if (differs.contents) {
        return lr_error(log, LR_USAGE,
                        "cannot go on with %s: it was begun with other contents of: %.*s: give the "
                        "same files and options, or begin anew without resuming",
                        path, differs.length[0], differs.part[0]);
    }
    return lr_error(log, LR_USAGE,
                    "cannot go on with %s: it was begun with %.*s, and now it is %.*s: give the "
                    "same options, or begin anew without resuming",
                    path, differs.length[0], differs.part[0], differs.length[1], differs.part[1]);
}
