/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Matrix rows as text: Matrix Market coordinates (math.nist.gov/MatrixMarket/formats.html), and tab-separated lines. */
#include "base/log.h"
#include "base/mem.h"
#include "io/files/number_type.h"
#include "io/files/output.h"
#include "io/matrix/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = lr_store_block_elements, PIECE = 1 << 16 };

/* A text file with more elements than this is slow to read, and causes a warning. */
#define MANY_ELEMENTS 10000000

struct mtx {
    const struct lr_matrix_content *content;
    struct lr_output output;
    struct lr_matrix_counts counts;
    int64_t *numbers; /* [PIECE], number of elements of each of the next rows */
    int64_t num_numbers, next_number;
    int64_t row;      /* row of the current element, from 0 */
    int64_t left;     /* elements of that row not yet written */
    int64_t *columns; /* [BLOCK] */
    float *values;
};

static lr_status write_all(struct mtx *mtx)
{
    const struct lr_matrix_content *content = mtx->content;
    struct lr_matrix_store *store = content->store;
    const int64_t total = store->totals.elements;
    /* The description becomes a comment of one line. Blanks replace line breaks. */
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
    char head[1400], line[96];
    const int length =
        snprintf(head, sizeof(head), "%%%%MatrixMarket matrix coordinate real general\n%% %s\n%lld %lld %lld\n", text,
                 (long long)content->num_rows, (long long)content->num_columns, (long long)total);
    LR_TRY(lr_output_write(&mtx->output, head, (size_t)length));

    for (int64_t at = 0; at < total; at += BLOCK) {
        const struct lr_matrix_piece piece = {.begin = at,
                                              .count = total - at < BLOCK ? total - at : BLOCK,
                                              .is_wide = true,
                                              .columns = mtx->columns,
                                              .values = mtx->values};
        LR_TRY(lr_matrix_store_read(store, &piece));
        for (int64_t k = 0; k < piece.count; k++) {
            /* The row of the element. Rows without elements are skipped. */
            while (mtx->left == 0) {
                if (mtx->next_number == mtx->num_numbers) {
                    mtx->next_number = 0;
                    LR_TRY(lr_matrix_counts_read(&mtx->counts, PIECE, mtx->numbers, &mtx->num_numbers));
                    if (mtx->num_numbers == 0)
                        return lr_error(mtx->output.log, LR_FAILED, "%s has more elements than rows", params->path);
                }
                mtx->left = mtx->numbers[mtx->next_number++];
                mtx->row++;
            }
            mtx->left--;
            const int line_bytes = snprintf(line, sizeof(line), "%lld %lld %.9g\n", (long long)mtx->row + 1,
                                            (long long)mtx->columns[k] + 1, (double)mtx->values[k]);
            LR_TRY(lr_output_write(&mtx->output, line, (size_t)line_bytes));
        }
    }
    return LR_OK;
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
    lr_status status = has_memory ? lr_output_open(&mtx.output, content->params->path, log) : LR_FAILED;
    if (status == LR_OK) {
        mtx.output.source_stays = true;
        const struct lr_c_locale locale = lr_c_locale_enter();
        status = write_all(&mtx);
        lr_c_locale_leave(locale);
        if (status == LR_OK)
            status = lr_output_finish(&mtx.output);
        else
            lr_output_abandon(&mtx.output);
    }
    lr_free_all(mtx.numbers, mtx.columns, mtx.values);
    return status;
}

/* --- tab-separated --- */

struct tsv {
    const lr_matrix_writer_params *params;
    struct lr_output output;
};

static const char header[] = "row\tx_mm\ty_mm\tz_mm\tmodule_i\tp\tq\tmodule_j\tr\ts\tprobability\n";

static void *create(const lr_matrix_writer_params *params)
{
    struct tsv *tsv = lr_alloc(1, sizeof(*tsv), "a matrix writer", params->log);
    if (tsv == NULL) return NULL;
    tsv->params = params;
    if (lr_output_open(&tsv->output, params->path, params->log) != LR_OK) {
        free(tsv);
        return NULL;
    }
    (void)lr_output_write(&tsv->output, header, strlen(header)); /* a failure is reported by finish */
    return tsv;
}

/* Formats "row x y z" of a voxel or point. */
static void format_start(const struct tsv *tsv, int64_t row, char start[128])
{
    double centre[3];
    if (tsv->params->grid != NULL)
        lr_grid_voxel_centre(tsv->params->grid, row, centre);
    else
        memcpy(centre, tsv->params->points_mm[row], sizeof(centre));
    snprintf(start, 128, "%lld\t%.9g\t%.9g\t%.9g", (long long)row, centre[0], centre[1], centre[2]);
}

static lr_status take(void *self, const lr_row *row)
{
    struct tsv *tsv = self;
    const bool by_lor = tsv->params->by_lor;
    const struct lr_c_locale locale = lr_c_locale_enter();
    lr_status status = LR_OK;
    char start[128];
    if (!by_lor) format_start(tsv, row->row, start);
    for (int64_t n = 0; n < row->count && status == LR_OK; n++) {
        if (by_lor) format_start(tsv, row->lor[n], start);
        const int64_t number = by_lor ? row->row : row->lor[n];
        char line[320];
        const lr_lor lor = lr_lors_describe(tsv->params->lors, number);
        const int length = snprintf(line, sizeof(line), "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%.9g\n", start, lor.module_i,
                                    lor.p, lor.q, lor.module_j, lor.r, lor.s, row->probability[n]);
        status = lr_output_write(&tsv->output, line, (size_t)length);
    }
    lr_c_locale_leave(locale);
    return status;
}

static lr_status finish(void *self)
{
    struct tsv *tsv = self;
    const lr_status status = lr_output_finish(&tsv->output);
    free(tsv);
    return status;
}

static void abandon(void *self)
{
    struct tsv *tsv = self;
    lr_output_abandon(&tsv->output);
    free(tsv);
}

const struct lr_matrix_fns lr_matrix_tsv_fns = {create, take, finish, abandon};
