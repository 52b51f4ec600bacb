/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Search for files of LORaster that are not the library: plugins, and programs that LORaster starts (the reader of
 * HDF5 files, and `loraster bench`). */
#ifndef LR_BASE_HELPER_H
#define LR_BASE_HELPER_H

#include <limits.h>
#include <stdbool.h>

#define LR_HDF5_READER "loraster-hdf5-reader" /* reads HDF5 files for the library */

/* Folders in which parts of one kind are looked for. An installation may be moved, so most folders are relative to the
 * folder of the calling library or program. Other users may be able to write there, so a file is accepted only if it
 * belongs to the owner of that library or program, or to root. */
struct lr_part_places {
    const char *variable;  /* environment variable with the absolute path of a folder; if it is set, only that folder
                            * is searched */
    const char *below[4];  /* folders relative to the caller's; NULL = no more */
    const char *installed; /* the folder of the installation */
};

/* Finds a file. If it is found, `path` gets its path. Otherwise `path` gets the end of a message that begins with the
 * file's name: "is neither beside what asks for it, in /home/me, nor in /usr/lib/loraster". */
bool lr_part_find(const struct lr_part_places *places, const char *file, char path[PATH_MAX]);

/* Finds a program that LORaster starts, as lr_part_find does. The environment variable is LORASTER_LIBEXEC. */
bool lr_helper_find(const char *name, char path[PATH_MAX]);

#endif
