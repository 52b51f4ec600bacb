/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What matrix_store.c, which writes the two files, and matrix_store_open.c, which opens them, share. */
#ifndef LR_IO_MATRIX_STORE_FILES_H
#define LR_IO_MATRIX_STORE_FILES_H

#include "io/matrix/store.h"

/* Rows between two checkpoints, at most. */
enum { lr_store_most_counts = 1 << 20, lr_store_magic_bytes = 16 };

/* TARGET.part-rows: a head, the key, then segments. A segment is what a checkpoint adds: totals, the
 * counts of its rows, and a checksum without which it does not count. */
struct lr_store_segment {
    int64_t num_counts; /* that follow */
    struct lr_matrix_totals totals;
    uint64_t check; /* of the fields above and the counts */
};
uint64_t lr_store_check(const struct lr_store_segment *segment, const int64_t *counts);

/* How many bytes there were; fewer leave errno, 0 where the file ends. */
size_t lr_store_read_at(int file, void *to, size_t bytes, int64_t place);

/* What fails is the output's failure. */
lr_status lr_store_write_at(struct lr_matrix_store *store, int file, const void *from, size_t bytes,
                            int64_t place);

#endif
