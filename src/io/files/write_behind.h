/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Bytes that a thread writes to a file while their owner goes on to fill others. */
#ifndef LR_IO_WRITE_BEHIND_H
#define LR_IO_WRITE_BEHIND_H

#include "base/background.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where bytes go; they stay as they are until they have been waited for. */
struct lr_written_piece {
    const void *from;
    size_t bytes;
    int64_t place; /* in the file */
};

enum { LR_MOST_WRITTEN_PIECES = 2 };

/* Zero is an empty one, which must not move while it is at it. */
struct lr_write_behind {
    bool by_maps; /* set by its owner, as below */
    int file;
    struct lr_written_piece pieces[LR_MOST_WRITTEN_PIECES];
    int error; /* errno, 0 = none */
    struct lr_background background;
};

/* Whether several threads write to the file faster through maps of it: where it is in memory, writes to one
 * file wait for each other, and there are processors enough, since a map costs one half as much again. */
bool lr_is_for_maps(int file);

/* Writes a piece now. errors: an errno, else 0. */
int lr_write_piece(int file, const struct lr_written_piece *piece);

/* Begins to write the pieces, or, where no thread can be started, writes them. Waited for before the next
 * ones are begun. */
void lr_write_behind_start(struct lr_write_behind *behind, int file,
                           const struct lr_written_piece pieces[LR_MOST_WRITTEN_PIECES]);

/* Waits for what was begun, if anything was. errors: an errno, else 0. */
int lr_write_behind_wait(struct lr_write_behind *behind);

#endif
