/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Where an output lies while it is written, and how it comes to lie where it belongs. For output.c
 * and files that runs leave for each other. */
#ifndef LR_IO_OUTPUT_PLACE_H
#define LR_IO_OUTPUT_PLACE_H

#include "io/files/output.h"

#include <sys/types.h>

/* --- files that runs leave for each other --- */

enum lr_hold {
    LR_HELD,
    LR_HOLD_REFUSED, /* by the system: errno */
    LR_HOLD_LINK,    /* a link, symbolic or hard, which may lead to anything of the user's */
    LR_HOLD_NO_FILE, /* a folder, a device or a pipe */
    LR_HOLD_BUSY     /* another program has it */
};

/* Opens, or with `mode` other than 0 makes, the regular file of exactly that name, which this program
 * alone may hold until it closes it. *file is -1 unless it is held. */
enum lr_hold lr_hold_open(const char *path, mode_t mode, int *file);

/* Says why it is not held; `path` is what the user wanted to write. Always LR_FAILED. */
lr_status lr_hold_complain(enum lr_hold hold, const char *name, const char *path, const lr_log *log);

/* --- aside, and into place --- */

/* Rights for a new file at the target: of what it replaces, or 0666, less the user's mask. */
mode_t lr_place_mode(const char *target);

/* Opens a new file in the target's folder; false leaves errno. */
bool lr_place_aside(struct lr_output *output);

/* Puts files into place that have been forced to the disk, all or none, and their folder's entries
 * on the disk; logs what fails. Outputs have no temporary any more where they are in place. */
lr_status lr_place_all(struct lr_output *const *outputs, int count);

/* Forces names in the target's folder to the disk, where that can be done; false leaves errno. */
bool lr_place_sync_folder(const char *target);

/* The folder part of a path, owned: "./" where it has none; NULL without memory. */
char *lr_place_folder(const char *path);

#endif
