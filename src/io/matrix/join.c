/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Joins the parts of a matrix; each part is a file. The rows of the parts are appended in order to one store, and the
 * target is made from the store. */
#include "base/log.h"
#include "base/mem.h"
#include "base/order.h"
#include "io/checkpoints/key.h"
#include "io/matrix/writer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The line by which a file identifies itself as a part of a matrix. */
struct share {
    int64_t number, parts, rows_before, whole_rows;
    const char *key; /* points into the file's line */
};

/* A part's file before its rows are read. */
struct piece {
    const char *path;
    struct share share;
    int64_t num_rows, elements;
};

struct join {
    const lr_matrix_join_params *params;
    struct piece *pieces;  /* owned [params->num_parts], in the order of their rows */
    lr_matrix_file *first; /* one of the parts, open until the end; it describes the properties that all parts share */
    const char *first_path;
    struct share first_share; /* share of the first file, which owns the share's key */
    int64_t num_rows, elements;
    lr_scanner *scanner; /* NULL = the parts do not describe a scanner */
    lr_lors *lors;
    lr_operator_info info;
    lr_matrix_writer_params out; /* describes the joined matrix */
    lr_selection part;           /* LORs or pairs of the joined matrix, if rows are LORs */
    /* Lists of the rows of all parts, owned. At most one is not NULL. */
    int64_t *numbers; /* voxels or LORs */
    int32_t *pairs;   /* module pairs */
    double (*points_mm)[3];
    int64_t num_pairs;
    struct lr_matrix_store store;
    struct lr_matrix_totals totals; /* sums over the parts */
    int64_t done;                   /* elements joined so far */
};

/* --- the parts --- */

static lr_status check_piece(const struct join *join, const struct piece *piece, const lr_matrix_file_info *info)
{
    const struct share *share = &piece->share, *first = &join->first_share;
    const lr_log *log = join->params->log;
    if (share->parts != first->parts) {
        return lr_error(log, LR_BAD_INPUT, "%s is one of %lld parts, and %s one of %lld", join->first_path,
                        (long long)first->parts, piece->path, (long long)share->parts);
    }
    if (strcmp(share->key, first->key) != 0) {
        const char *const keys[2] = {first->key, share->key};
        struct lr_key_difference differs;
        lr_key_compare(keys, &differs);
        if (differs.contents) {
            return lr_error(log, LR_BAD_INPUT,
                            "%s and %s are parts of different matrices: they have other contents of: %.*s",
                            join->first_path, piece->path, differs.length[0], differs.part[0]);
        }
        return lr_error(log, LR_BAD_INPUT, "%s and %s are parts of different matrices: one has %.*s, the other %.*s",
                        join->first_path, piece->path, differs.length[0], differs.part[0], differs.length[1],
                        differs.part[1]);
    }
    const lr_matrix_file_info *model = lr_matrix_file_get_info(join->first);
    if (info->num_columns != model->num_columns || info->is_described != model->is_described) {
        return lr_error(log, LR_BAD_INPUT,
                        "%s and %s do not go together: they have %lld and %lld columns, and must "
                        "both be HDF5 or both npz",
                        join->first_path, piece->path, (long long)model->num_columns, (long long)info->num_columns);
    }
    return LR_OK;
}

static int compare_pieces(const void *a, const void *b)
{
    return lr_order_whole(((const struct piece *)a)->share.number, ((const struct piece *)b)->share.number);
}

/* --- the joined matrix --- */

/* Describes the joined matrix by the first part, and allocates memory for the list of rows. */
static lr_status describe(struct join *join)
{
    const lr_matrix_join_params *params = join->params;
    const lr_matrix_file_info *model = lr_matrix_file_get_info(join->first);
    join->out = (lr_matrix_writer_params){
        .path = params->path, .format = params->format, .compress = params->compress, .log = params->log};
    if (params->format == LR_MATRIX_TSV || params->format == LR_MATRIX_STIR)
        return lr_error(params->log, LR_USAGE, "%s: parts are joined to HDF5, npz or mtx", params->path);
    if (!model->is_described) {
        return params->format == LR_MATRIX_NPZ
                   ? LR_OK
                   : lr_error(params->log, LR_USAGE, "%s: parts in npz hold nothing but numbers, and become npz only",
                              params->path);
    }
    join->scanner = lr_scanner_read_hdf5(join->first_path, join->params->log);
    join->lors = join->scanner != NULL ? lr_lors_create(join->scanner, join->params->log) : NULL;
    LR_TRY(join->lors != NULL ? LR_OK : LR_BAD_INPUT);

    join->info = (lr_operator_info){
        .backend = model->backend, .mode = model->mode, .rays = model->rays, .mu_steps = model->mu_steps};
    memcpy(join->info.samples, model->samples, sizeof(model->samples));
    join->out.info = &join->info;

    join->out.lors = join->lors;
    join->out.by_lor = model->by_lor;
    join->out.description = model->description;
    join->out.factors = model->factors;
    join->out.threshold = model->threshold;
    if (model->points_mm == NULL) {
        join->out.grid = &model->grid;
        join->out.part = &model->part;
    }

    const lr_log *log = params->log;
    if (model->points_mm != NULL) {
        join->points_mm = lr_alloc(join->num_rows, sizeof(*join->points_mm), "points", log);
        return join->points_mm != NULL ? LR_OK : LR_FAILED;
    }
    if (model->voxels != NULL || (model->by_lor && model->part.lors != NULL)) {
        join->numbers = lr_alloc(join->num_rows, sizeof(*join->numbers), "a list of rows", log);
        return join->numbers != NULL ? LR_OK : LR_FAILED;
    }
    if (model->by_lor) {
        join->pairs = lr_alloc(join->lors->num_pairs, sizeof(*join->pairs), "module pairs", log);
        return join->pairs != NULL ? LR_OK : LR_FAILED;
    }
    return LR_OK;
}

/* --- rows --- */

static lr_status take(void *user, const lr_row *row)
{
    struct join *join = user;
    LR_TRY(lr_matrix_store_append(&join->store, row, -INFINITY));
    join->done += row->count;
    return join->store.totals.rows % 64 == 0
               ? lr_progress_report(join->params->progress, "joining", (double)join->done, (double)join->elements)
               : LR_OK;
}

static lr_status take_file(struct join *join, const struct piece *piece, lr_matrix_file *file)
{
    const lr_matrix_file_info *info = lr_matrix_file_get_info(file);
    const lr_row_sink sink = {take, join};
    if (info->num_rows != piece->num_rows || info->num_elements != piece->elements)
        return lr_error(join->params->log, LR_BAD_INPUT, "%s has changed while it was read", piece->path);
    if (join->lors != NULL) LR_TRY(lr_matrix_file_check_scanner(file, join->lors));
    /* Appends the part's list of rows to the lists of the parts before it. */
    const int64_t before = piece->share.rows_before;
    const int64_t *numbers = info->by_lor ? info->part.lors : info->voxels;
    const bool has_list = join->points_mm != NULL || join->numbers != NULL || join->pairs != NULL;
    const int64_t first_row = lr_matrix_file_get_info(join->first)->row_begin - join->first_share.rows_before;
    if ((join->points_mm != NULL && info->points_mm == NULL) || (join->numbers != NULL && numbers == NULL) ||
        (join->pairs != NULL &&
         (info->part.pairs == NULL || info->part.num_pairs > join->lors->num_pairs - join->num_pairs)) ||
        (!has_list && info->is_described && info->row_begin != first_row + before)) {
        return lr_error(join->params->log, LR_BAD_INPUT,
                        "%s lists its rows in another way than %s, or lists too many: is it damaged?", piece->path,
                        join->first_path);
    }
    if (join->points_mm != NULL) {
        memcpy(join->points_mm + before, info->points_mm, (size_t)info->num_rows * sizeof(*join->points_mm));
    } else if (join->numbers != NULL) {
        memcpy(join->numbers + before, numbers, (size_t)info->num_rows * sizeof(*numbers));
    } else if (join->pairs != NULL) {
        memcpy(join->pairs + join->num_pairs, info->part.pairs, (size_t)info->part.num_pairs * sizeof(*join->pairs));
        join->num_pairs += info->part.num_pairs;
    }

    join->totals.sum += info->sum;
    join->totals.dropped_sum += info->dropped_sum;
    join->totals.dropped_elements += info->dropped_elements;
    return lr_matrix_file_rows(file, &sink, NULL);
}

/* --- joining --- */

/* Reads the descriptions of all parts, and puts the parts in the order of their rows. */
static lr_status find_parts(struct join *join)
{
    const lr_matrix_join_params *params = join->params;
    if (params->parts == NULL || params->num_parts < 1)
        return lr_error(params->log, LR_USAGE, "there are no parts of a matrix to join");
    join->pieces = lr_alloc(params->num_parts, sizeof(*join->pieces), "parts", params->log);
    if (join->pieces == NULL) return LR_FAILED;
    for (int64_t k = 0; k < params->num_parts; k++) {
        const char *path = params->parts[k];
        struct piece *piece = &join->pieces[k];
        lr_matrix_file *file = lr_matrix_file_open(path, params->log);
        if (file == NULL) return LR_BAD_INPUT;
        const lr_matrix_file_info *info = lr_matrix_file_get_info(file);
        *piece = (struct piece){path, {0}, info->num_rows, info->num_elements};
        /* The line that identifies a part, as written by writer.c. */
        long long numbers[4];
        const char *key = info->share != NULL ? strchr(info->share, ';') : NULL;
        bool is_part = key != NULL && sscanf(info->share, "part %lld of %lld, from row %lld of %lld;", &numbers[0],
                                             &numbers[1], &numbers[2], &numbers[3]) == 4;
        if (is_part) {
            key += 1 + strspn(key + 1, " ");
            piece->share = (struct share){numbers[0], numbers[1], numbers[2], numbers[3], key};
            is_part = numbers[0] >= 1 && numbers[0] <= numbers[1] && numbers[2] >= 0;
        }
        lr_status status = LR_OK;
        if (!is_part)
            status = lr_error(params->log, LR_BAD_INPUT, "%s is no part of a matrix: only parts can be joined", path);
        if (status == LR_OK && k == 0) { /* the first file stays open */
            join->first = file;
            join->first_path = path;
            join->first_share = piece->share;
        } else {
            status = status == LR_OK ? check_piece(join, piece, info) : status;
            piece->share.key = NULL; /* the key is in the memory of the file, which is closed here */
            lr_matrix_file_close(file);
        }
        LR_TRY(status);
        join->num_rows += join->pieces[k].num_rows;
        join->elements += join->pieces[k].elements;
    }
    qsort(join->pieces, (size_t)params->num_parts, sizeof(*join->pieces), compare_pieces);

    /* Each part must occur once. Each part must begin with the row after the last row of the preceding part. */
    const struct share *first = &join->first_share;
    int64_t rows = 0;
    for (int64_t k = 0; k < params->num_parts; k++) {
        const struct piece *piece = &join->pieces[k];
        if (k > 0 && piece->share.number == piece[-1].share.number) {
            return lr_error(params->log, LR_BAD_INPUT, "%s and %s are both part %lld of %lld: give it once",
                            piece[-1].path, piece->path, (long long)piece->share.number, (long long)first->parts);
        }
        if (piece->share.number != k + 1) {
            return lr_error(params->log, LR_BAD_INPUT, "part %lld of %lld is missing", (long long)k + 1,
                            (long long)first->parts);
        }
        if (piece->share.rows_before != rows) {
            return lr_error(params->log, LR_BAD_INPUT,
                            "%s begins with row %lld, and the parts before it end with row %lld: "
                            "its run did not cut the rows as theirs did",
                            piece->path, (long long)piece->share.rows_before, (long long)rows - 1);
        }
        rows += piece->num_rows;
    }
    if (params->num_parts != first->parts) {
        return lr_error(params->log, LR_BAD_INPUT, "part %lld of %lld is missing", (long long)params->num_parts + 1,
                        (long long)first->parts);
    }
    if (rows != first->whole_rows) {
        return lr_error(params->log, LR_BAD_INPUT, "the parts have %lld rows, and the matrix has %lld", (long long)rows,
                        (long long)first->whole_rows);
    }
    return LR_OK;
}

static lr_status run(struct join *join)
{
    LR_TRY(find_parts(join));
    LR_TRY(describe(join));
    const lr_matrix_join_params *params = join->params;
    const lr_matrix_file_info *model = lr_matrix_file_get_info(join->first);
    const struct lr_matrix_content content = {.params = &join->out,
                                              .store = &join->store,
                                              .num_rows = join->num_rows,
                                              .num_columns = model->num_columns,
                                              .index_limit = INT32_MAX};
    if (params->format == LR_MATRIX_NPZ) LR_TRY(lr_matrix_npz_check(&content, join->elements));
    const struct lr_matrix_store_params store = {
        .path = params->path,
        .key = join->first_share.key,
        .num_rows = join->num_rows,
        .wide = lr_matrix_is_wide(model->num_columns, params->format == LR_MATRIX_HDF5 ? join->elements : 0, INT32_MAX),
        .log = params->log,
    };
    LR_TRY(lr_matrix_store_open(&join->store, &store));
    lr_status status = LR_OK;
    for (int64_t k = 0; k < params->num_parts && status == LR_OK; k++) {
        const struct piece *piece = &join->pieces[k];
        lr_matrix_file *file = lr_matrix_file_open(piece->path, params->log);
        status = file != NULL ? take_file(join, piece, file) : LR_BAD_INPUT;
        lr_matrix_file_close(file);
    }
    if (status == LR_OK) status = lr_matrix_store_checkpoint(&join->store);
    if (status == LR_OK) {
        /* The list of rows is now complete, and describes the rows of the joined matrix. */
        lr_matrix_writer_params *out = &join->out;
        if (join->points_mm != NULL) {
            out->points_mm = (const double(*)[3])join->points_mm;
            out->num_points = join->num_rows;
        } else if (model->is_described && !model->by_lor) {
            out->voxels = join->numbers;
            out->num_voxels = join->numbers != NULL ? join->num_rows : 0;
            out->begin = model->row_begin - join->first_share.rows_before;
            out->end = out->begin + join->num_rows;
        } else if (join->numbers != NULL) {
            join->part = (lr_selection){.lors = join->numbers, .num_lors = join->num_rows};
        } else if (model->is_described && join->num_pairs < join->lors->num_pairs) {
            join->part = (lr_selection){.pairs = join->pairs, .num_pairs = join->num_pairs}; /* only some pairs */
        }
        if (model->is_described && model->by_lor) out->part = &join->part;

        join->totals.sum = join->lors != NULL ? join->totals.sum : join->store.totals.sum;
        join->store.totals.sum = join->totals.sum;
        join->store.totals.dropped_sum = join->totals.dropped_sum;
        join->store.totals.dropped_elements = join->totals.dropped_elements;
        status = lr_matrix_format_write(&content);
    }
    join->totals.rows = join->store.totals.rows;
    join->totals.elements = join->store.totals.elements;
    lr_matrix_store_remove(&join->store);
    return status;
}

lr_status lr_matrix_join_sized(size_t given_bytes, const lr_matrix_join_params *given, lr_matrix_written *written)
{
    LR_TAKE(lr_matrix_join_params, params, given, given_bytes);
    struct join join = {.params = params};
    const lr_status status = run(&join);
    if (status == LR_OK && written != NULL) {
        *written = (lr_matrix_written){.rows = join.totals.rows,
                                       .elements = join.totals.elements,
                                       .sum = join.totals.sum,
                                       .dropped_elements = join.totals.dropped_elements,
                                       .dropped_sum = join.totals.dropped_sum};
    }
    lr_lors_destroy(join.lors);
    lr_scanner_destroy(join.scanner);
    lr_matrix_file_close(join.first);
    lr_free_all(join.pieces, join.numbers, join.pairs, join.points_mm);
    return status;
}
