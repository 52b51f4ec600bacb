/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Keys of resumable files (matrices and reconstructions). A key is one line that names everything on which the result
 * depends. A run can resume a file only if the file's key equals the run's key. "; " separates the parts of a key. If
 * the values of a part are too long for a line, LR_KEY_CONTENTS and a digest stand for the values. */
#pragma once

#include <lr/log.h>
#include <stdbool.h>

#define LR_KEY_CONTENTS ", contents "

/* The first part that differs between two keys, without its digest, for printing with "%.*s". */
struct lr_key_difference {
    const char *part[2];
    int length[2];
    bool contents; /* only the digests differ */
};
void lr_key_compare(const char *const keys[2], struct lr_key_difference *difference);

/* Checks that a run may resume the file at `path`. keys: the file's key and the run's key. errors: LR_USAGE, which
 * names the first part that differs. */
lr_status lr_key_check(const char *path, const char *const keys[2], const lr_log *log);
