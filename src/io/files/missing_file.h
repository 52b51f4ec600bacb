/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Words for those who named a file that is not there. */
#ifndef LR_IO_MISSING_FILE_H
#define LR_IO_MISSING_FILE_H

enum { LR_OPEN_FAILURE = 800 };

/* What the name of another file follows in such a text. */
#define LR_OPEN_HINT "; did you mean"

/* Why `path` cannot be opened, for a sentence that has named it. error: errno. Where nothing has
 * that name, the text says which folder was looked at and the nearest name in it:
 * "No such file in scans; did you mean scans/head.petsird?". Returns `text`. */
const char *lr_open_failure(const char *path, int error, char text[LR_OPEN_FAILURE]);

#endif
