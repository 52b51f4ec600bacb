/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The matrix formats of lr_matrix_writer and lr_matrix_file. */
#pragma once

#include "io/matrix/store.h"

#include <lr/io.h>

/* Functions of a format that is written row by row. `create` gets parameters that lr_matrix_writer has checked, with
 * begin and end set also for points; the data to which they point stay until `self` is freed. `create` returns `self`,
 * or NULL, logged, on failure. `take` gets rows that lr_matrix_writer has checked: rows ascend and
 * were announced, columns ascend and are in range. finish and abandon free `self`. */
struct lr_matrix_fns {
    void *(*create)(const lr_matrix_writer_params *params);
    lr_status (*take)(void *self, const lr_row *row);
    lr_status (*finish)(void *self);
    void (*abandon)(void *self);
};

/* Tab-separated text, and STIR's files. */
extern const struct lr_matrix_fns lr_matrix_tsv_fns, lr_matrix_stir_fns;

/* All rows of a matrix. HDF5, npz and Matrix Market files are made from them. */
struct lr_matrix_content {
    const lr_matrix_writer_params *params;
    struct lr_matrix_store *store; /* the store, in its state after a checkpoint */
    int64_t num_rows, num_columns;
    int64_t index_limit; /* largest number of columns or elements for which indices and indptr are int32;
                            INT32_MAX except in tests */
    const char *share;   /* line that identifies a part, or NULL */
};

/* True if indices and indptr are int64. */
static inline bool lr_matrix_is_wide(int64_t num_columns, int64_t num_elements, int64_t index_limit)
{
    return num_columns > index_limit || num_elements > index_limit;
}

/* Each function writes the target in one format. lr_matrix_hdf5_write may turn the store's TARGET.part into the target.
 * errors: LR_FAILED, logged; all files that the function began are removed. npz also: LR_USAGE if a plain zip cannot
 * hold the matrix. */
lr_status lr_matrix_hdf5_write(const struct lr_matrix_content *content);
lr_status lr_matrix_npz_write(const struct lr_matrix_content *content);
lr_status lr_matrix_mtx_write(const struct lr_matrix_content *content);

/* Writes the target in the format that content->params name. */
lr_status lr_matrix_format_write(const struct lr_matrix_content *content);

/* Checks that a plain zip archive can hold `elements` elements. content->store is not read. errors: LR_USAGE,
 * logged. */
lr_status lr_matrix_npz_check(const struct lr_matrix_content *content, int64_t elements);

/* Does the same as lr_matrix_writer_create, with another index_limit. */
lr_matrix_writer *lr_matrix_writer_create_within(const lr_matrix_writer_params *params, int64_t index_limit);

/* --- reading --- */

enum lr_matrix_array { LR_ARRAY_STARTS, LR_ARRAY_COLUMNS, LR_ARRAY_VALUES };

/* A file open for reading: its description, and the functions of its format. The functions get `self`. */
struct lr_matrix_source {
    const char *path;
    const lr_log *log;
    lr_matrix_file_info info; /* agrees with the sizes of the arrays */
    void *self;
    /* Reads numbers range[0] .. range[0] + range[1] - 1 of an array: int64, or double for values. errors:
     * LR_BAD_INPUT, logged. */
    lr_status (*read)(void *self, enum lr_matrix_array array, const int64_t range[2], void *numbers);
    lr_status (*check_scanner)(void *self, const lr_lors *lors); /* NULL = the format describes no scanner */
    void (*close)(void *self);
};

/* Each function sets all fields but path and log, which the caller has set. After a failure, the caller calls
 * `close` if `self` is set. */
lr_status lr_matrix_hdf5_open(struct lr_matrix_source *source);
lr_status lr_matrix_npz_open(struct lr_matrix_source *source);
