/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Matrix rows as Matrix Market coordinates (math.nist.gov/MatrixMarket/formats.html). */
#include "base/log.h"
#include "base/mem.h"
#include "io/files/c_locale.h"
#include "io/matrix/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = lr_store_block_elements, PIECE = 1 << 16 };

/* Elements above which text is a poor choice. */
#define MANY_ELEMENTS 10000000

struct mtx {
    const struct lr_matrix_content *content;
    struct lr_output output;
    struct lr_matrix_counts counts;
    int64_t *numbers; /* [PIECE] counts of rows to come */
    int64_t num_numbers, next_number;
    int64_t row;      /* of the element at hand, from 0 */
    int64_t left;     /* elements of that row to come */
    int64_t *columns; /* [BLOCK] */
    float *values;
};

/* Goes on to the row of the next element. */
static lr_status find_row(struct mtx *mtx)
{
    while (mtx->left == 0) {
        if (mtx->next_number == mtx->num_numbers) {
            mtx->next_number = 0;
            LR_TRY(lr_matrix_counts_read(&mtx->counts, PIECE, mtx->numbers, &mtx->num_numbers));
            if (mtx->num_numbers == 0) {
                return lr_error(mtx->output.log, LR_FAILED, "%s has more elements than rows",
                                mtx->content->params->path);
            }
        }
        mtx->left = mtx->numbers[mtx->next_number++];
        mtx->row++;
    }
    return LR_OK;
}

static lr_status write_piece(struct mtx *mtx, int64_t count)
{
    char line[96];
    for (int64_t k = 0; k < count; k++) {
        LR_TRY(find_row(mtx));
        mtx->left--;
        const int length = snprintf(line, sizeof(line), "%lld %lld %.9g\n", (long long)mtx->row + 1,
                                    (long long)mtx->columns[k] + 1, (double)mtx->values[k]);
        LR_TRY(lr_output_write(&mtx->output, line, (size_t)length));
    }
    return LR_OK;
}

/* The description as a comment: one line, whatever is in it. */
static lr_status write_head(struct mtx *mtx)
{
    const struct lr_matrix_content *content = mtx->content;
    const lr_matrix_writer_params *params = content->params;
    char text[1024];
    snprintf(text, sizeof(text), "%s, %s: %s; rows are %s, columns %s",
             params->lors->scanner->name ? params->lors->scanner->name : "scanner", "LORaster system matrix",
             params->description ? params->description : "",
             params->by_lor         ? "LORs"
             : params->grid != NULL ? "voxels"
                                    : "points",
             params->by_lor ? "voxels" : "LORs");
    for (char *c = text; *c != '\0'; c++) *c = *c == '\n' || *c == '\r' ? ' ' : *c;
    char head[1400];
    const int length = snprintf(
        head, sizeof(head), "%%%%MatrixMarket matrix coordinate real general\n%% %s\n%lld %lld %lld\n", text,
        (long long)content->num_rows, (long long)content->num_columns, (long long)content->store->totals.elements);
    return lr_output_write(&mtx->output, head, (size_t)length);
}

static lr_status write_all(struct mtx *mtx)
{
    struct lr_matrix_store *store = mtx->content->store;
    const int64_t total = store->totals.elements;
    LR_TRY(write_head(mtx));
    for (int64_t at = 0; at < total; at += BLOCK) {
        const struct lr_matrix_piece piece = {.begin = at,
                                              .count = total - at < BLOCK ? total - at : BLOCK,
                                              .is_wide = true,
                                              .columns = mtx->columns,
                                              .values = mtx->values};
        LR_TRY(lr_matrix_store_read(store, &piece));
        LR_TRY(write_piece(mtx, piece.count));
    }
    return LR_OK;
}

static lr_status write_file(struct mtx *mtx)
{
    LR_TRY(lr_output_open(&mtx->output, mtx->content->params->path, mtx->content->params->log));
    mtx->output.source_stays = true;
    const struct lr_c_locale locale = lr_c_locale_enter();
    const lr_status status = write_all(mtx);
    lr_c_locale_leave(locale);
    if (status != LR_OK) {
        lr_output_abandon(&mtx->output);
        return status;
    }
    return lr_output_finish(&mtx->output);
}

lr_status lr_matrix_mtx_write(const struct lr_matrix_content *content)
{
    const lr_log *log = content->params->log;
    struct mtx mtx = {.content = content, .counts = {.store = content->store}, .row = -1};
    if (content->store->totals.elements > MANY_ELEMENTS) {
        lr_warn(log,
                "%s gets %lld lines: Matrix Market is text, slow to read and large: HDF5 (.h5) "
                "holds the same in a fraction",
                content->params->path, (long long)content->store->totals.elements);
    }
    mtx.numbers = lr_alloc(PIECE, sizeof(*mtx.numbers), "matrix rows", log);
    mtx.columns = lr_alloc(BLOCK, sizeof(*mtx.columns), "matrix elements", log);
    mtx.values = lr_alloc(BLOCK, sizeof(*mtx.values), "matrix elements", log);
    const bool has_memory = mtx.numbers != NULL && mtx.columns != NULL && mtx.values != NULL;
    const lr_status status = has_memory ? write_file(&mtx) : LR_FAILED;
    free(mtx.numbers);
    free(mtx.columns);
    free(mtx.values);
    return status;
}
