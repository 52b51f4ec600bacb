/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Search for the parts of LORaster that are files of their own: plugins, and the programs that it starts (the reader of
 * HDF5 files, and `loraster bench`). */
#ifndef LR_BASE_HELPER_H
#define LR_BASE_HELPER_H

#include <limits.h>
#include <stdbool.h>

#define LR_HDF5_READER "loraster-hdf5-reader" /* reads HDF5 files for the library */

/* Folders in which parts of a kind are looked for. An installation may be moved: folders are known from that of the
 * library or program that asks. Files there are taken only if they belong to its owner, or to root:
 * others may write to its folder. */
struct lr_part_places {
    const char *variable;  /* environment variable with the absolute path of a folder; if it is set, only that folder
                            * is searched */
    const char *below[4];  /* folders from that of the library or program; NULL = no more */
    const char *installed; /* the folder of the installation */
};

/* Fills in the path of that file, and returns true; or the end of a message about it: "is neither beside
 * this program, in /home/me, nor in /usr/lib/loraster". */
bool lr_part_find(const struct lr_part_places *places, const char *file, char path[PATH_MAX]);

/* lr_part_find for a program that LORaster starts; its variable is LORASTER_LIBEXEC. */
bool lr_helper_find(const char *name, char path[PATH_MAX]);

#endif
