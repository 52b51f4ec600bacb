/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * gzip output. */
#ifndef LR_IO_DEFLATE_H
#define LR_IO_DEFLATE_H

#include "io/files/output.h"

/* Bytes to be written. */
struct lr_piece {
    const void *bytes;
    size_t count;
};

/* Writes the pieces one after the other as one gzip stream without a time stamp, so that equal
 * pieces give equal files. All processors compress, whatever threads a command has otherwise.
 * errors: as lr_output_write; LR_FAILED, logged, without memory. */
lr_status lr_output_deflate(struct lr_output *output, const struct lr_piece *pieces, int num_pieces);

#endif
