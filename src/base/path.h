/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Paths as texts, and the search for files that come with the library. */
#pragma once

#include <limits.h>
#include <lr/log.h>
#include <stdbool.h>

/* Returns the part after the last '/'. */
const char *lr_path_name(const char *path);

/* True if the path has this ending after at least one other character. Capitals do not matter. */
bool lr_path_ends(const char *path, const char *ending);
/* True if the path has one of the endings of a list that ends with NULL. */
bool lr_path_ends_in(const char *path, const char *const *endings);

/* Puts the file's name without its last ending into `text`, cut to 100 bytes, and returns `text`. A dot at the
 * beginning of the name does not begin an ending. */
const char *lr_path_stem(const char *path, char text[128]);

/* Cuts the frame number from the path of an image and returns the number. For example, "pet.nii:3", frame 3 of the file
 * "pet.nii", becomes "pet.nii". Returns 0 and keeps the path if it has no frame number or if a file has this name. */
int lr_path_cut_frame(char *path);

/* The functions below return a path that the caller owns, or NULL, logged, if memory runs out. */

/* Replaces the last ending of the name in `path`, or adds one if there is none. */
char *lr_path_with_ending(const char *path, const char *ending, const lr_log *log);

/* Returns the path of `name` in the folder of `path`. An absolute `name` stays as it is. */
char *lr_path_beside(const char *path, const char *name, const lr_log *log);

/* --- the search for plugins and for programs that LORaster starts (the reader of HDF5 files, and `loraster bench`)
 * --- */

#define LR_HDF5_READER "loraster-hdf5-reader" /* reads HDF5 files for the library */

/* Folders in which the library looks for files of one kind (plugins or programs). An installation may be moved, so most
 * folders are relative to the folder of the calling library or program. Other users may be able to write to these
 * folders, so a file is accepted only if it belongs to the owner of the calling library or program, or to root. */
struct lr_part_places {
    const char *variable;  /* environment variable with the absolute path of a folder; if it is set, only that folder
                            * is searched */
    const char *below[4];  /* folders relative to the folder of the calling library or program; NULL = no more */
    const char *installed; /* the folder of the installation; "" = none, as in a package for pip */
};

/* Finds a file. If the file is found, `path` receives its path. Otherwise `path` receives the rest of an error message
 * that begins with the file's name: "is neither beside what asks for it, in /home/me, nor in /usr/lib/loraster". */
bool lr_part_find(const struct lr_part_places *places, const char *file, char path[PATH_MAX]);

/* Finds a program that LORaster starts, as lr_part_find does. The environment variable is LORASTER_LIBEXEC. */
bool lr_helper_find(const char *name, char path[PATH_MAX]);
