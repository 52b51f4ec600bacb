/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * libFuzzer target: any bytes are a matrix in HDF5 or one sentence about bad input. */
#include "files.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static lr_status take(void *user, const lr_row *row)
{
    *(double *)user += row->count > 0 ? row->probability[row->count - 1] : 0.0;
    return LR_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    char path[64];
    lr_status status = LR_OK;
    double sum = 0.0;
    const lr_log log = {fuzz_note, &status};
    const lr_row_sink sink = {take, &sum};
    if (count >= 4 && bytes[0] == 'P') return 0; /* matrix_npz.c */
    fuzz_write(path, "a.h5", bytes, count);
    lr_matrix_file *file = lr_matrix_file_open(path, &log);
    fuzz_expect(file != NULL, status);
    if (file != NULL) {
        const bool fits = lr_matrix_file_check_scanner(file, fuzz_lors()) == LR_OK;
        fuzz_expect(fits, status);
        status = LR_OK;
        fuzz_expect(lr_matrix_file_rows(file, &sink, NULL) == LR_OK, status);
    }
    lr_matrix_file_close(file);
    return 0;
}
