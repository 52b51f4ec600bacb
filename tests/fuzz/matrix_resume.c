/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * libFuzzer target: any bytes behind the head of TARGET.part-rows are rows of an earlier run, or the
 * run begins with the first row. */
#include "files.h"
#include "io/matrix/store.h"

enum { NUM_ROWS = 64 };

/* What a run leaves that has taken two rows. */
static void leave_some(const struct lr_matrix_store_params *params)
{
    struct lr_matrix_store store;
    const lr_row row = {0, 3, (const int64_t[]){1, 5, 7}, (const double[]){0.25, 0.5, 0.125}};
    if (lr_matrix_store_open(&store, params) != LR_OK || lr_matrix_store_append(&store, &row, 0.0) != LR_OK ||
        lr_matrix_store_append(&store, &row, 0.0) != LR_OK || lr_matrix_store_checkpoint(&store) != LR_OK)
        abort();
    lr_matrix_store_leave(&store);
}

/* All counts; they are of rows that have been taken. */
static void read_counts(struct lr_matrix_store *store)
{
    struct lr_matrix_counts counts = {.store = store};
    int64_t numbers[8], num = 0, rows = 0;
    do {
        if (lr_matrix_counts_read(&counts, 8, numbers, &num) != LR_OK) return;
        rows += num;
    } while (num > 0);
    if (rows != store->totals.rows) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static long begin;
    char rows[96];
    const char *path = fuzz_file("a", bytes, 0);
    snprintf(rows, sizeof(rows), "%s.part", path);
    remove(rows);
    snprintf(rows, sizeof(rows), "%s.part-rows", path);
    remove(rows);
    struct lr_matrix_store_params params = {.path = path, .key = "a; b", .num_rows = NUM_ROWS, .log = &fuzz_log};
    leave_some(&params);
    struct lr_matrix_store store;
    params.resumes = true;
    if (begin == 0 && lr_matrix_store_open(&store, &params) == LR_OK) {
        begin = (long)store.segments_begin;
        lr_matrix_store_leave(&store);
    }
    FILE *file = fopen(rows, "r+b"); /* the bytes go over what follows the head */
    if (file == NULL || fseek(file, count > 0 && bytes[0] == 'h' ? 0 : begin, SEEK_SET) != 0 ||
        fwrite(bytes, 1, count, file) != count || fclose(file) != 0)
        abort();
    fuzz_status = LR_OK;
    const lr_status opened = lr_matrix_store_open(&store, &params);
    if (opened != fuzz_status || (opened == LR_OK && store.totals.rows > NUM_ROWS)) abort();
    if (opened == LR_OK) {
        read_counts(&store);
        lr_matrix_store_remove(&store);
    }
    return 0;
}
