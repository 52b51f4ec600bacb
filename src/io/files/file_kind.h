/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Names in a folder. lr_file_kind_of is declared in lr/io.h. */
#ifndef LR_IO_FILE_KIND_H
#define LR_IO_FILE_KIND_H

#include <lr/io.h>

enum { LR_FILE_NAME = 256 };

/* Lists at most `most` names in a folder, in the order of their bytes. Returns their number; 0 if the folder cannot be
 * read. */
int lr_file_names(const char *folder, char names[][LR_FILE_NAME], int most);

#endif
