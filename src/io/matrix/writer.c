/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/matrix/writer.h"

#include "base/log.h"
#include "base/mem.h"
#include "model/lors/selection.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As much of an estimate of elements is surely there. */
#define SURE_SHARE 0.8

struct lr_matrix_writer {
    lr_matrix_writer_params params; /* its grid and points are the writer's own copies */
    lr_grid grid;
    double (*points_mm)[3];
    int64_t num_rows, num_columns, index_limit;
    char *share;                     /* as lr_matrix_share_text makes it, or NULL */
    void *stream;                    /* what is written as it comes; or NULL and a store */
    const struct lr_matrix_fns *fns; /* of the stream */
    struct lr_matrix_store store;
    struct lr_row_entry entry; /* of both ways to hand over rows */
    lr_matrix_written written;
    int64_t next_row;                  /* rows before this have been taken, or were left out and are empty */
    int64_t next_place;                /* the same, counted from the first */
    struct lr_selection_finder finder; /* of places of LORs */
    int64_t capacity;                  /* of the arrays of a row without what is dropped */
    int64_t *kept;
    double *kept_values;
};

/* --- parameters --- */

static lr_status check_voxels(const lr_matrix_writer_params *params)
{
    const int64_t num_voxels = lr_grid_num_voxels(params->grid);
    for (int64_t k = 0; k < params->num_voxels; k++) {
        const int64_t voxel = params->voxels[k], before = k > 0 ? params->voxels[k - 1] : -1;
        if (voxel <= before || voxel >= num_voxels) {
            return lr_error(params->log, LR_USAGE,
                            "voxel %lld of the matrix's rows comes after %lld: they must ascend and "
                            "stay below %lld",
                            (long long)voxel, (long long)before, (long long)num_voxels);
        }
    }
    return params->num_voxels > 0 ? LR_OK : lr_error(params->log, LR_USAGE, "a matrix file needs at least one voxel");
}

static lr_status check_grid_rows(const lr_matrix_writer_params *params)
{
    LR_TRY(lr_grid_check(params->grid, params->log));
    LR_TRY(lr_selection_check(params->lors, params->part, params->log));
    if (params->by_lor) return LR_OK;
    if (params->voxels != NULL) return check_voxels(params);
    const int64_t num_voxels = lr_grid_num_voxels(params->grid);
    if (params->begin < 0 || params->begin >= params->end || params->end > num_voxels) {
        return lr_error(params->log, LR_USAGE,
                        "rows %lld to %lld of the matrix make no sense: the grid has rows 0 to "
                        "%lld",
                        (long long)params->begin, (long long)params->end - 1, (long long)num_voxels - 1);
    }
    return LR_OK;
}

/* Written as it comes. */
static bool is_stream(lr_matrix_format format)
{
    return format == LR_MATRIX_TSV || format == LR_MATRIX_STIR;
}

static lr_status check_params(const lr_matrix_writer_params *params)
{
    const lr_log *log = params->log;
    if (params->lors == NULL || (params->grid == NULL) == (params->points_mm == NULL))
        return lr_error(log, LR_USAGE, "a matrix file needs a scanner's LORs and either a grid or points");
    if ((int)params->format < LR_MATRIX_TSV || params->format > LR_MATRIX_STIR)
        return lr_error(log, LR_USAGE, "there is no matrix format %d", (int)params->format);
    if (!(params->threshold >= 0.0 && params->threshold <= 1.0) || params->compress < 0 || params->compress > 9) {
        return lr_error(log, LR_USAGE,
                        "a threshold of %g or compression %d makes no sense: a share of the row's "
                        "largest element, 0 to 1, and a level, 0 to 9, are needed",
                        params->threshold, params->compress);
    }
    if (params->resumes && is_stream(params->format)) {
        return lr_error(log, LR_USAGE, "%s: tsv and STIR's files cannot be gone on with: use HDF5, npz or mtx",
                        params->path ? params->path : "a matrix");
    }
    if (params->share != NULL && params->format != LR_MATRIX_HDF5 && params->format != LR_MATRIX_NPZ) {
        return lr_error(log, LR_USAGE, "%s: parts of a matrix are joined from HDF5 (.h5) and npz only",
                        params->path ? params->path : "a matrix");
    }
    if (params->grid != NULL) return check_grid_rows(params);
    return params->num_points > 0 ? LR_OK
                                  : lr_error(log, LR_USAGE,
                                             "a matrix file needs at least one "
                                             "point");
}

/* Copies what the caller may free before the writer is done. */
static lr_status copy_params(lr_matrix_writer *writer, const lr_matrix_writer_params *params)
{
    writer->params = *params;
    writer->num_columns = params->lors->count;
    if (params->grid != NULL) {
        writer->grid = *params->grid;
        writer->params.grid = &writer->grid;
    } else {
        writer->points_mm = lr_alloc(params->num_points, sizeof(*writer->points_mm), "points", params->log);
        if (writer->points_mm == NULL) return LR_FAILED;
        memcpy(writer->points_mm, params->points_mm, (size_t)params->num_points * sizeof(*writer->points_mm));
        writer->params.points_mm = (const double(*)[3])writer->points_mm;
        writer->params.begin = 0;
        writer->params.end = params->num_points;
    }
    writer->num_rows = lr_matrix_num_rows(params);
    if (params->by_lor) writer->num_columns = lr_grid_num_voxels(params->grid);
    if (params->share != NULL) {
        writer->share = lr_matrix_share_text(params);
        LR_TRY(writer->share != NULL ? LR_OK : LR_FAILED);
    }
    writer->finder = (struct lr_selection_finder){.lors = params->lors, .selection = params->part};
    return LR_OK;
}

/* --- making --- */

static void release(lr_matrix_writer *writer)
{
    free(writer->points_mm);
    free(writer->share);
    free(writer->kept);
    free(writer->kept_values);
    free(writer);
}

static struct lr_matrix_content content_of(lr_matrix_writer *writer)
{
    return (struct lr_matrix_content){.params = &writer->params,
                                      .store = &writer->store,
                                      .num_rows = writer->num_rows,
                                      .num_columns = writer->num_columns,
                                      .index_limit = writer->index_limit,
                                      .share = writer->share};
}

static lr_status check_npz(lr_matrix_writer *writer, int64_t elements)
{
    const struct lr_matrix_content content = content_of(writer);
    return writer->params.format == LR_MATRIX_NPZ ? lr_matrix_npz_check(&content, elements) : LR_OK;
}

static lr_status open_store(lr_matrix_writer *writer)
{
    const lr_matrix_writer_params *params = &writer->params;
    LR_TRY(check_npz(writer, (int64_t)(SURE_SHARE * fmin(params->expected_elements, 1e18))));
    char *key = lr_matrix_key(params, writer->num_rows);
    if (key == NULL) return LR_FAILED;
    const struct lr_matrix_store_params store = {
        .path = params->path,
        .key = key,
        .num_rows = writer->num_rows,
        .wide = writer->num_columns > writer->index_limit ||
                (params->format == LR_MATRIX_HDF5 && params->expected_elements > (double)writer->index_limit),
        .resumes = params->resumes,
        .log = params->log,
    };
    const lr_status status = lr_matrix_store_open(&writer->store, &store);
    free(key);
    writer->store.params.key = NULL; /* has been read */
    writer->next_place = status == LR_OK ? writer->store.totals.rows : 0;
    return status;
}

lr_matrix_writer *lr_matrix_writer_create_within(const lr_matrix_writer_params *params, int64_t index_limit)
{
    if (check_params(params) != LR_OK) return NULL;
    lr_matrix_writer *writer = lr_alloc(1, sizeof(*writer), "a matrix writer", params->log);
    if (writer == NULL) return NULL;
    writer->index_limit = index_limit;
    bool done = copy_params(writer, params) == LR_OK;
    if (done && is_stream(params->format)) {
        const bool stir = params->format == LR_MATRIX_STIR;
        writer->fns = stir ? &lr_matrix_stir_fns : &lr_matrix_tsv_fns;
        writer->stream = stir ? lr_matrix_stir_create(&writer->params) : lr_matrix_tsv_create(&writer->params);
        done = writer->stream != NULL;
    } else if (done) {
        done = open_store(writer) == LR_OK;
    }
    if (!done) {
        release(writer);
        return NULL;
    }
    return writer;
}

lr_matrix_writer *lr_matrix_writer_create(const lr_matrix_writer_params *params)
{
    return lr_matrix_writer_create_within(params, INT32_MAX);
}

lr_matrix_written lr_matrix_writer_get_written(const lr_matrix_writer *writer)
{
    lr_matrix_written written = writer->written;
    if (writer->stream == NULL) {
        const struct lr_matrix_totals *totals = &writer->store.totals;
        written.rows = totals->rows;
        written.elements = totals->elements;
        written.sum = totals->sum;
        written.dropped_elements = totals->dropped_elements;
        written.dropped_sum = totals->dropped_sum;
    }
    return written;
}

/* --- rows --- */

/* The row's place from the first, or -1. */
static int64_t find_place(lr_matrix_writer *writer, int64_t row)
{
    const lr_matrix_writer_params *params = &writer->params;
    if (params->by_lor) return row >= 0 && row < params->lors->count ? lr_selection_find(&writer->finder, row) : -1;
    if (params->voxels == NULL) return row - params->begin;
    int64_t place = writer->next_place;
    while (place < params->num_voxels && params->voxels[place] < row) place++;
    return place < params->num_voxels && params->voxels[place] == row ? place : -1;
}

static lr_status refuse_element(const lr_matrix_writer *writer, const lr_row *row, int64_t n)
{
    const char *what = writer->params.by_lor ? "voxel" : "LOR";
    return lr_error(writer->params.log, LR_USAGE, "row %lld for %s has %s %lld with probability %g after %s %lld",
                    (long long)row->row, writer->params.path, what, (long long)row->lor[n], row->probability[n], what,
                    n > 0 ? (long long)row->lor[n - 1] : -1LL);
}

/* A wrong row is an error of the program that makes them, but a silent one would spoil the file.
 * Gives the row's place, and its smallest and largest element, of which the latter is not below 0. */
static lr_status check_row(lr_matrix_writer *writer, const lr_row *row, int64_t *place, double extremes[2])
{
    *place = find_place(writer, row->row);
    if (row->row < writer->next_row || *place < writer->next_place || *place >= writer->num_rows || row->count < 0) {
        return lr_error(writer->params.log, LR_USAGE, "row %lld came to %s out of order: %lld of %lld rows are there",
                        (long long)row->row, writer->params.path, (long long)writer->next_place,
                        (long long)writer->num_rows);
    }
    int64_t before = -1;
    double smallest = INFINITY, largest = 0.0;
    for (int64_t n = 0; n < row->count; n++) {
        const double value = row->probability[n];
        if (row->lor[n] <= before || row->lor[n] >= writer->num_columns || !isfinite(value))
            return refuse_element(writer, row, n);
        before = row->lor[n];
        smallest = value < smallest ? value : smallest;
        largest = value > largest ? value : largest;
    }
    extremes[0] = smallest;
    extremes[1] = largest;
    return LR_OK;
}

static lr_status make_room(lr_matrix_writer *writer, int64_t count)
{
    if (count <= writer->capacity) return LR_OK;
    const lr_log *log = writer->params.log;
    free(writer->kept);
    free(writer->kept_values);
    writer->kept = lr_alloc(2 * count, sizeof(*writer->kept), "a matrix row", log);
    writer->kept_values = lr_alloc(2 * count, sizeof(*writer->kept_values), "a matrix row", log);
    writer->capacity = writer->kept != NULL && writer->kept_values != NULL ? 2 * count : 0;
    return writer->capacity > 0 ? LR_OK : LR_FAILED;
}

static lr_status take_text(lr_matrix_writer *writer, const lr_row *row, double least)
{
    lr_matrix_written *written = &writer->written;
    LR_TRY(make_room(writer, row->count));
    int64_t count = 0;
    for (int64_t n = 0; n < row->count; n++) {
        if (row->probability[n] < least) {
            written->dropped_elements++;
            written->dropped_sum += row->probability[n];
            continue;
        }
        writer->kept[count] = row->lor[n];
        writer->kept_values[count++] = row->probability[n];
        written->sum += row->probability[n];
    }
    written->rows++;
    written->elements += count;
    const lr_row kept = {row->row, count, writer->kept, writer->kept_values};
    return writer->fns->take(writer->stream, &kept);
}

static lr_status take(void *user, const lr_row *row)
{
    lr_matrix_writer *writer = user;
    int64_t place = 0;
    double extremes[2] = {0.0, 0.0};
    LR_TRY(check_row(writer, row, &place, extremes));
    const double wanted = writer->params.threshold * extremes[1];
    const double least = extremes[0] < wanted ? wanted : -INFINITY; /* of which all have more */
    writer->written.empty_rows += row->count == 0;
    writer->next_row = row->row + 1;
    writer->next_place = place + 1;
    if (writer->stream != NULL) return take_text(writer, row, least);
    LR_TRY(lr_matrix_store_pass(&writer->store, place));
    LR_TRY(lr_matrix_store_append(&writer->store, row, least));
    return check_npz(writer, writer->store.totals.elements);
}

/* Whether the store can take the rows together: all follow each other, next to what is there. */
static bool may_take_together(const lr_matrix_writer *writer, const struct lr_row_block *block)
{
    const lr_matrix_writer_params *params = &writer->params;
    const int64_t num = block->num_rows;
    bool may = num > 0 && writer->stream == NULL && !params->by_lor && params->voxels == NULL &&
               params->threshold == 0.0 && block->rows[0].row - params->begin == writer->next_place &&
               writer->next_place + num <= writer->num_rows;
    for (int64_t k = 1; k < num && may; k++) may = block->rows[k].row == block->rows[k - 1].row + 1;
    return may;
}

static lr_status take_together(lr_matrix_writer *writer, const struct lr_row_block *block, bool *is_wrong)
{
    LR_TRY(lr_matrix_store_append_block(&writer->store, block, writer->num_columns, is_wrong));
    for (int64_t k = 0; k < block->num_rows && !*is_wrong; k++) {
        writer->written.empty_rows += block->rows[k].count == 0;
        writer->next_row = block->rows[k].row + 1;
        writer->next_place++;
    }
    return check_npz(writer, writer->store.totals.elements);
}

/* Where something is wrong, taking row by row says what. */
static lr_status take_block(void *user, const struct lr_row_block *block)
{
    lr_matrix_writer *writer = user;
    bool one_by_one = !may_take_together(writer, block);
    if (!one_by_one) LR_TRY(take_together(writer, block, &one_by_one));
    return one_by_one ? lr_row_block_unpack(block, &writer->entry.rows, writer->params.log) : LR_OK;
}

lr_row_sink lr_matrix_writer_sink(lr_matrix_writer *writer)
{
    writer->entry = (struct lr_row_entry){{.take = take, .user = writer}, {take_block, writer}};
    return lr_row_entry_sink(&writer->entry);
}

/* --- ends --- */

lr_status lr_matrix_format_write(const struct lr_matrix_content *content)
{
    switch (content->params->format) {
    case LR_MATRIX_NPZ: return lr_matrix_npz_write(content);
    case LR_MATRIX_MTX: return lr_matrix_mtx_write(content);
    default: return lr_matrix_hdf5_write(content);
    }
}

static lr_status finish_store(lr_matrix_writer *writer)
{
    const struct lr_matrix_content content = content_of(writer);
    lr_status status = writer->store.output.error == 0 ? LR_OK : LR_FAILED;
    if (status == LR_OK) status = lr_matrix_store_pass(&writer->store, writer->num_rows);
    if (status == LR_OK) status = lr_matrix_store_checkpoint(&writer->store);
    if (status == LR_OK) status = lr_matrix_format_write(&content);
    if (status == LR_OK)
        lr_matrix_store_remove(&writer->store);
    else
        lr_matrix_store_abandon(&writer->store);
    return status;
}

lr_status lr_matrix_writer_finish(lr_matrix_writer *writer)
{
    const lr_status status = writer->stream != NULL ? writer->fns->finish(writer->stream) : finish_store(writer);
    release(writer);
    return status;
}

void lr_matrix_writer_abandon(lr_matrix_writer *writer)
{
    if (writer == NULL) return;
    if (writer->stream != NULL)
        writer->fns->abandon(writer->stream);
    else
        lr_matrix_store_abandon(&writer->store);
    release(writer);
}

lr_status lr_matrix_writer_leave(lr_matrix_writer *writer)
{
    lr_status status = LR_USAGE;
    if (writer->stream != NULL) {
        writer->fns->abandon(writer->stream);
    } else {
        status = writer->store.output.error == 0 ? lr_matrix_store_checkpoint(&writer->store) : LR_FAILED;
        if (status == LR_OK)
            lr_matrix_store_leave(&writer->store);
        else
            lr_matrix_store_abandon(&writer->store);
    }
    release(writer);
    return status;
}
