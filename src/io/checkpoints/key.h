/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Keys of resumable files, which are matrices and reconstructions. A key is one line that names everything the result
 * depends on; a run that resumes a file must have the same key. Its parts are separated by "; ". A part whose values
 * would be too long for a line has LR_KEY_CONTENTS and a digest of the values instead. */
#ifndef LR_IO_CHECKPOINTS_KEY_H
#define LR_IO_CHECKPOINTS_KEY_H

#include <lr/log.h>
#include <stdbool.h>

#define LR_KEY_CONTENTS ", contents "

/* The first parts that differ between two keys, for "%.*s"; the parts are equal if only their digests differ. */
struct lr_key_difference {
    const char *part[2];
    int length[2];
    bool contents; /* only the digests differ */
};
void lr_key_compare(const char *const keys[2], struct lr_key_difference *difference);

/* Checks that a run may resume the file at `path`: keys are the key of the file, and the key of this run.
 * errors: LR_USAGE, which names the first part that differs. */
lr_status lr_key_check(const char *path, const char *const keys[2], const lr_log *log);

#endif
