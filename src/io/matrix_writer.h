/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * One matrix format behind lr_matrix_writer. */
#ifndef LR_IO_MATRIX_WRITER_H
#define LR_IO_MATRIX_WRITER_H

#include <lr/io.h>

/* What a format is. `take` gets rows that the front has checked: ascending, within
 * begin <= row < end, LORs sorted and in range. Failures are logged where they happen.
 * finish and abandon free `self`. */
struct lr_matrix_fns {
    lr_status (*take)(void *self, const lr_row *row);
    lr_status (*finish)(void *self);
    void (*abandon)(void *self);
};

/* Where the centre of a row is, in mm. */
void lr_matrix_row_centre(const lr_matrix_writer_params *params, int64_t row, double centre_mm[3]);

/* Constructors; params are checked, begin and end are set for points too, and the arrays behind
 * them live as long as the writer. NULL, logged, on failure. */
void *lr_matrix_tsv_create(const lr_matrix_writer_params *params);
extern const struct lr_matrix_fns lr_matrix_tsv_fns;

/* index_limit: /matrix/indices and /matrix/indptr are int32 while the number of columns and of
 * elements stay within it, else int64; INT32_MAX but in tests. */
void *lr_matrix_hdf5_create(const lr_matrix_writer_params *params, int64_t index_limit);
extern const struct lr_matrix_fns lr_matrix_hdf5_fns;

#endif
