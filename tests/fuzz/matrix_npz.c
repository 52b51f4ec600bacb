/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * libFuzzer target: any bytes are a matrix in .npz or one sentence about bad input. Not part of CTest:
 *     clang -fsanitize=fuzzer,address,undefined tests/fuzz/matrix_npz.c, with the library's sources
 *     and src/ as include folder; then run it on what `loraster matrix -o small.npz` wrote. */
#include "io/matrix/writer.h"

#include "files.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    const char *path = fuzz_file("a.npz", bytes, count);
    struct lr_matrix_source source = {.path = path, .log = &fuzz_log};
    if (lr_matrix_npz_open(&source) != LR_OK) {
        if (fuzz_status != LR_BAD_INPUT) abort();
        return 0;
    }
    source.close(source.self);
    const bool is_archive = count > 4 && memcmp(bytes, "PK\3\4", 4) == 0;
    lr_matrix_file *file = is_archive ? lr_matrix_file_open(path, &fuzz_log) : NULL;
    double sum = 0.0;
    const lr_row_sink sink = {fuzz_take_row, &sum};
    if (file != NULL && lr_matrix_file_get_info(file)->num_rows < 100000) (void)lr_matrix_file_rows(file, &sink, NULL);
    lr_matrix_file_close(file);
    return 0;
}
