/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/matrix_writer.h"

#include "base/log.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct lr_matrix_writer {
    lr_matrix_writer_params params; /* its grid and points are the writer's own copies */
    lr_grid grid;
    double (*points_mm)[3];
    const struct lr_matrix_fns *fns;
    void *self;
    int64_t next_row; /* rows before this have been taken, or were left out and are empty */
};

void lr_matrix_row_centre(const lr_matrix_writer_params *params, int64_t row, double centre_mm[3])
{
    if (params->grid != NULL) {
        lr_grid_voxel_centre(params->grid, row, centre_mm);
        return;
    }
    memcpy(centre_mm, params->points_mm[row], 3 * sizeof(double));
}

static lr_status check_params(const lr_matrix_writer_params *params)
{
    const lr_log *log = params->log;
    if (params->lors == NULL || (params->grid == NULL) == (params->points_mm == NULL)) {
        return lr_error(log, LR_USAGE,
                        "a matrix file needs a scanner's LORs and either a grid or points");
    }
    if (params->format != LR_MATRIX_TSV && params->format != LR_MATRIX_HDF5) {
        return lr_error(log, LR_USAGE, "there is no matrix format %d", (int)params->format);
    }
    if (params->grid == NULL) {
        return params->num_points > 0
                   ? LR_OK
                   : lr_error(log, LR_USAGE, "a matrix file needs at least one point");
    }
    LR_TRY(lr_grid_check(params->grid, log));
    const int64_t num_voxels = lr_grid_num_voxels(params->grid);
    if (params->begin < 0 || params->begin >= params->end || params->end > num_voxels) {
        return lr_error(log, LR_USAGE,
                        "rows %lld to %lld of the matrix make no sense: the grid has rows 0 to "
                        "%lld",
                        (long long)params->begin, (long long)params->end - 1,
                        (long long)num_voxels - 1);
    }
    return LR_OK;
}

/* Copies what the caller may free before the writer is done. */
static lr_status copy_params(lr_matrix_writer *writer, const lr_matrix_writer_params *params)
{
    writer->params = *params;
    if (params->grid != NULL) {
        writer->grid = *params->grid;
        writer->params.grid = &writer->grid;
    } else {
        writer->points_mm =
            lr_alloc(params->num_points, sizeof(*writer->points_mm), "points", params->log);
        if (writer->points_mm == NULL) {
            return LR_FAILED;
        }
        memcpy(writer->points_mm, params->points_mm,
               (size_t)params->num_points * sizeof(*writer->points_mm));
        writer->params.points_mm = (const double(*)[3])writer->points_mm;
        writer->params.begin = 0;
        writer->params.end = params->num_points;
    }
    writer->next_row = writer->params.begin;
    return LR_OK;
}

static void release(lr_matrix_writer *writer)
{
    free(writer->points_mm);
    free(writer);
}

lr_matrix_writer *lr_matrix_writer_create(const lr_matrix_writer_params *params)
{
    if (check_params(params) != LR_OK) {
        return NULL;
    }
    lr_matrix_writer *writer = lr_alloc(1, sizeof(*writer), "a matrix writer", params->log);
    if (writer == NULL) {
        return NULL;
    }
    if (copy_params(writer, params) == LR_OK) {
        const bool text = params->format == LR_MATRIX_TSV;
        writer->fns = text ? &lr_matrix_tsv_fns : &lr_matrix_hdf5_fns;
        writer->self = text ? lr_matrix_tsv_create(&writer->params)
                            : lr_matrix_hdf5_create(&writer->params, INT32_MAX);
    }
    if (writer->self == NULL) {
        release(writer);
        return NULL;
    }
    return writer;
}

/* A wrong row is an error of the program that makes them, but a silent one would spoil the file. */
static lr_status check_row(const lr_matrix_writer *writer, const lr_row *row)
{
    const lr_matrix_writer_params *params = &writer->params;
    if (row->row < writer->next_row || row->row >= params->end || row->count < 0) {
        return lr_error(params->log, LR_USAGE,
                        "row %lld came to %s out of order: expected %lld to %lld",
                        (long long)row->row, params->path, (long long)writer->next_row,
                        (long long)params->end - 1);
    }
    int64_t before = -1;
    for (int64_t n = 0; n < row->count; n++) {
        if (row->lor[n] <= before || row->lor[n] >= params->lors->count ||
            !isfinite(row->probability[n])) {
            return lr_error(params->log, LR_USAGE,
                            "row %lld for %s has LOR %lld with probability %g after LOR %lld",
                            (long long)row->row, params->path, (long long)row->lor[n],
                            row->probability[n], (long long)before);
        }
        before = row->lor[n];
    }
    return LR_OK;
}

static lr_status take(void *user, const lr_row *row)
{
    lr_matrix_writer *writer = user;
    LR_TRY(check_row(writer, row));
    writer->next_row = row->row + 1;
    return writer->fns->take(writer->self, row);
}

lr_row_sink lr_matrix_writer_sink(lr_matrix_writer *writer)
{
    return (lr_row_sink){.take = take, .user = writer};
}

lr_status lr_matrix_writer_finish(lr_matrix_writer *writer)
{
    const lr_status status = writer->fns->finish(writer->self);
    release(writer);
    return status;
}

void lr_matrix_writer_abandon(lr_matrix_writer *writer)
{
    if (writer != NULL) {
        writer->fns->abandon(writer->self);
        release(writer);
    }
}
