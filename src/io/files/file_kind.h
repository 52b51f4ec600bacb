/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Names in a folder, and the folder of files that are kept from one run to the next. lr_file_kind_of is declared in
 * lr/io.h. */
#pragma once

#include <lr/io.h>
#include <stdbool.h>
#include <stddef.h>

enum { LR_FILE_NAME = 256 };

/* Lists at most `most` names in a folder, in the order of their bytes. Returns their number; 0 if the folder cannot be
 * read. */
int lr_file_names(const char *folder, char names[][LR_FILE_NAME], int most);

/* Gives the path of a file in the cache folder, and makes the folder. The folder is $LORASTER_CACHE,
 * $XDG_CACHE_HOME/loraster or $HOME/.cache/loraster, in this order. Returns false if there is no cache: with
 * LORASTER_CACHE=off, or if none of these variables is set. */
bool lr_notes_place(const char *name, char *path, size_t size);
