/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What all that is resumable has in common, matrices and reconstructions: a key, which is one line that
 * says everything the result depends on, and which a run that goes on must have too. Its parts stand
 * between "; "; of a part whose values would be too long for a line a digest follows LR_KEY_CONTENTS. */
#ifndef LR_IO_CHECKPOINTS_KEY_H
#define LR_IO_CHECKPOINTS_KEY_H

#include <lr/log.h>
#include <stdbool.h>

#define LR_KEY_CONTENTS ", contents "

/* First parts in which two keys differ, for "%.*s"; the parts are equal where only digests differ. */
struct lr_key_difference {
    const char *part[2];
    int length[2];
    bool contents; /* the words are equal, and the digests behind them are not */
};
void lr_key_compare(const char *const keys[2], struct lr_key_difference *difference);

/* Checks that a run may go on with what is kept at `path`: keys are that of what is kept, and that of this run.
 * errors: LR_USAGE, naming the first part that differs. */
lr_status lr_key_check(const char *path, const char *const keys[2], const lr_log *log);

#endif
