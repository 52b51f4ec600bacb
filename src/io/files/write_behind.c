/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/files/write_behind.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int lr_write_piece(int file, const struct lr_written_piece *piece)
{
    const unsigned char *at = piece->from;
    size_t bytes = piece->bytes;
    int64_t place = piece->place;
    while (bytes > 0) {
        const ssize_t done = pwrite(file, at, bytes, (off_t)place);
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done <= 0) {
            return done < 0 ? errno : ENOSPC;
        }
        at += done;
        place += done;
        bytes -= (size_t)done;
    }
    return 0;
}

static void write_pieces(void *user)
{
    struct lr_write_behind *behind = user;
    for (int k = 0; k < LR_MOST_WRITTEN_PIECES && behind->error == 0; k++) {
        behind->error = lr_write_piece(behind->file, &behind->pieces[k]);
    }
}

void lr_write_behind_start(struct lr_write_behind *behind, int file,
                           const struct lr_written_piece pieces[LR_MOST_WRITTEN_PIECES])
{
    behind->file = file;
    behind->error = 0;
    memcpy(behind->pieces, pieces, sizeof(behind->pieces));
    lr_background_start(&behind->background, write_pieces, behind);
}

int lr_write_behind_wait(struct lr_write_behind *behind)
{
    lr_background_wait(&behind->background);
    const int error = behind->error;
    behind->error = 0;
    return error;
}
