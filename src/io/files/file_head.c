/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/files/file_head.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

void lr_file_head_read(const char *path, struct lr_file_head *head)
{
    struct stat facts;
    head->path = path;
    head->count = 0;
    const bool regular = stat(path, &facts) == 0 && S_ISREG(facts.st_mode); /* a pipe would block */
    FILE *file = regular ? fopen(path, "rb") : NULL;
    if (file != NULL) {
        head->count = fread(head->bytes, 1, LR_FILE_HEAD_BYTES, file);
        if (head->count >= 3 && memcmp(head->bytes, "\xef\xbb\xbf", 3) == 0) {
            head->count -= 3;
            memmove(head->bytes, head->bytes + 3, head->count);
        }
        fclose(file);
    }
    head->bytes[head->count] = '\0';
}

bool lr_head_begins(const struct lr_file_head *head, const char *start, size_t count)
{
    return head->count >= count && memcmp(head->bytes, start, count) == 0;
}

bool lr_head_is_hdf5(const struct lr_file_head *head)
{
    return lr_head_begins(head, "\x89HDF\r\n\x1a\n", 8);
}

bool lr_head_holds(const struct lr_file_head *head, const char *part, size_t count)
{
    for (size_t at = 0; at + count <= head->count; at++)
        if (memcmp(head->bytes + at, part, count) == 0) return true;
    return false;
}
