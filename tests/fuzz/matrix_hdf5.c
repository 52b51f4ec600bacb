/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * libFuzzer target: any bytes are a matrix in HDF5 or one sentence about bad input. */
#include "files.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    double sum = 0.0;
    const lr_row_sink sink = {fuzz_take_row, &sum};
    if (count >= 4 && bytes[0] == 'P') return 0; /* matrix_npz.c */
    lr_matrix_file *file = lr_matrix_file_open(fuzz_file("a.h5", bytes, count), &fuzz_log);
    fuzz_expect(file != NULL);
    if (file != NULL) {
        fuzz_expect(lr_matrix_file_check_scanner(file, fuzz_lors()) == LR_OK);
        fuzz_status = LR_OK;
        fuzz_expect(lr_matrix_file_rows(file, &sink, NULL) == LR_OK);
    }
    lr_matrix_file_close(file);
    return 0;
}
