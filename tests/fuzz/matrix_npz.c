/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * libFuzzer target: any bytes are a matrix in .npz or one sentence about bad input. Not part of CTest:
 *     clang -fsanitize=fuzzer,address,undefined tests/fuzz/matrix_npz.c, with the library's sources
 *     and src/ as include folder; then run it on what `loraster matrix -o small.npz` wrote. */
#include "io/matrix/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static void note_error(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    (void)sentence;
    if (level == LR_LOG_ERROR) *(lr_status *)user = status;
}

static lr_status take(void *user, const lr_row *row)
{
    *(double *)user += row->count > 0 ? row->probability[row->count - 1] : 0.0;
    return LR_OK;
}

/* The bytes in a file that begins as an archive does. */
static void write_file(const char *path, const uint8_t *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(bytes, 1, count, file) != count) abort();
    fclose(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    char path[] = "/tmp/fuzz_npz_XXXXXX";
    const int descriptor = mkstemp(path);
    if (descriptor < 0) abort();
    close(descriptor);
    write_file(path, bytes, count);
    lr_status status = LR_OK;
    const lr_log log = {note_error, &status};
    struct lr_matrix_source source = {.path = path, .log = &log};
    if (lr_matrix_npz_open(&source) != LR_OK) {
        if (status != LR_BAD_INPUT) abort();
    } else {
        source.close(source.self);
        lr_matrix_file *file = count > 4 && memcmp(bytes, "PK\3\4", 4) == 0 ? lr_matrix_file_open(path, &log) : NULL;
        double sum = 0.0;
        const lr_row_sink sink = {take, &sum};
        if (file != NULL && lr_matrix_file_get_info(file)->num_rows < 100000)
            (void)lr_matrix_file_rows(file, &sink, NULL);
        lr_matrix_file_close(file);
    }
    unlink(path);
    return 0;
}
