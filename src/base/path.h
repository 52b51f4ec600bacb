/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Names of files: pure text, nothing is opened. */
#ifndef LR_BASE_PATH_H
#define LR_BASE_PATH_H

#include <lr/log.h>

/* Returns the part after the last '/'. */
const char *lr_path_name(const char *path);

/* True if the path has this ending after at least one other character. Capitals do not matter. */
bool lr_path_ends(const char *path, const char *ending);
/* True if the path has one of the endings of a list that ends with NULL. */
bool lr_path_ends_in(const char *path, const char *const *endings);

/* Puts the file's name without its last ending into `text`, cut to 100 bytes, and returns `text`. A dot at the
 * beginning of the name does not begin an ending. */
const char *lr_path_stem(const char *path, char text[128]);

/* The functions below return a path that the caller owns, or NULL, logged, if memory runs out. */

/* Replaces the last ending of the name in `path`, or adds one if there is none. */
char *lr_path_with_ending(const char *path, const char *ending, const lr_log *log);

/* Returns the path of `name` in the folder of `path`. An absolute `name` stays as it is. */
char *lr_path_beside(const char *path, const char *name, const lr_log *log);

#endif
