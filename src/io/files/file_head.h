/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * How a file begins, by which its format is told. */
#ifndef LR_IO_FILE_HEAD_H
#define LR_IO_FILE_HEAD_H

#include <stdbool.h>
#include <stddef.h>

enum { LR_FILE_HEAD_BYTES = 4096 };

struct lr_file_head {
    const char *path;
    char bytes[LR_FILE_HEAD_BYTES + 1]; /* with a zero behind the last */
    size_t count;
};

/* A mark of UTF-8 at the beginning is passed over. What cannot be read, or is no regular file, has an empty head. */
void lr_file_head_read(const char *path, struct lr_file_head *head);

/* Whether the file begins with these bytes. */
bool lr_head_begins(const struct lr_file_head *head, const char *start, size_t count);

/* Whether the file begins so as HDF5 does. */
bool lr_head_is_hdf5(const struct lr_file_head *head);

/* Whether these bytes stand anywhere in the head. */
bool lr_head_holds(const struct lr_file_head *head, const char *part, size_t count);

/* Each folder tells its own formats: by the name's ending or by how the file begins, as its readers
 * do. */
bool lr_image_recognises(const struct lr_file_head *head);
bool lr_scanner_recognises(const struct lr_file_head *head);

#endif
