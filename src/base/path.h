/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Names of files: pure text, nothing is opened. */
#ifndef LR_BASE_PATH_H
#define LR_BASE_PATH_H

#include <lr/log.h>

/* The part after the last '/'. */
const char *lr_path_name(const char *path);

/* True if the path has this ending, in either case, after at least one other character. */
bool lr_path_ends(const char *path, const char *ending);
/* The same for any of a list, NULL at its end. */
bool lr_path_ends_in(const char *path, const char *const *endings);

/* The name without its last ending, cut at 100 bytes; a dot at its beginning makes no ending.
 * `text` is returned. */
const char *lr_path_stem(const char *path, char text[128]);

/* All below are owned by the caller; NULL, logged, if memory runs out. */

/* `path` with its name's last ending replaced, or with one added if it has none. */
char *lr_path_with_ending(const char *path, const char *ending, const lr_log *log);

/* The path of `name` in the folder of `path`. */
char *lr_path_beside(const char *path, const char *name, const lr_log *log);

#endif
