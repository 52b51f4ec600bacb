/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * One matrix format behind lr_matrix_file. */
#ifndef LR_IO_MATRIX_READER_H
#define LR_IO_MATRIX_READER_H

#include <lr/io.h>

enum lr_matrix_array { LR_ARRAY_STARTS, LR_ARRAY_COLUMNS, LR_ARRAY_VALUES };

/* What a format gives. `self` is the format's. */
struct lr_matrix_source {
    const char *path;
    const lr_log *log;
    lr_matrix_file_info info; /* sizes of the arrays are checked against it */
    void *self;
    /* Numbers begin .. begin + count - 1 of an array: int64, or double for values.
     * errors: LR_BAD_INPUT, logged. */
    lr_status (*read)(void *self, enum lr_matrix_array array, const int64_t range[2], void *numbers);
    lr_status (*check_scanner)(void *self, const lr_lors *lors); /* NULL = has none */
    void (*close)(void *self);
};

/* Each fills in all but path and log. On failure nothing is open. */
lr_status lr_matrix_hdf5_open(struct lr_matrix_source *source);
lr_status lr_matrix_npz_open(struct lr_matrix_source *source);

#endif
