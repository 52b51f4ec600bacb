/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Matrix rows as a CSR matrix in HDF5, as scipy and anndata lay it out; docs/formats.md. */
#include "base/log.h"
#include "base/mem.h"
#include "io/hdf5_scanner.h"
#include "io/matrix_writer.h"

#include <stdlib.h>
#include <string.h>

enum { piece = 4096 };

struct csr {
    const lr_matrix_writer_params *params;
    struct lr_hdf5_output out;
    hid_t group;
    struct lr_hdf5_stream indices, data;
    bool wide;           /* indices and indptr are int64 */
    int64_t index_limit; /* above it they have to be */
    int64_t *starts;     /* [rows + 1]: elements before each row, up to rows_begun */
    int64_t rows_begun, num_elements;
};

static bool open_streams(struct csr *csr)
{
    csr->wide = csr->params->lors->count > csr->index_limit;
    return lr_hdf5_stream_open(&csr->indices, csr->group, "indices",
                               csr->wide ? H5T_NATIVE_INT64 : H5T_NATIVE_INT32) &&
           lr_hdf5_stream_open(&csr->data, csr->group, "data", H5T_NATIVE_FLOAT);
}

static bool put_rows(struct csr *csr)
{
    const lr_matrix_writer_params *params = csr->params;
    const hid_t group = csr->group;
    bool done = lr_hdf5_put_string(group, "rows", params->grid ? "voxels" : "points") &&
                lr_hdf5_put_numbers(group, "row_begin", H5T_NATIVE_INT64, 0, &params->begin);
    if (params->grid != NULL) {
        return done &&
               lr_hdf5_put_numbers(group, "grid_size", H5T_NATIVE_INT, 3, params->grid->size) &&
               lr_hdf5_put_numbers(group, "grid_voxel_mm", H5T_NATIVE_DOUBLE, 3,
                                   params->grid->voxel_mm) &&
               lr_hdf5_put_numbers(group, "grid_origin_mm", H5T_NATIVE_DOUBLE, 3,
                                   params->grid->origin_mm);
    }
    return done && lr_hdf5_put_array(group, "points_mm", H5T_NATIVE_DOUBLE,
                                     (int64_t[2]){params->num_points, 3}, params->points_mm);
}

/* Everything but the elements. */
static bool put_head(struct csr *csr)
{
    const lr_matrix_writer_params *params = csr->params;
    const int64_t shape[2] = {params->end - params->begin, params->lors->count};
    const char *name = params->lors->scanner->name;
    if (!lr_hdf5_put_scanner(csr->out.file, params->lors->scanner)) {
        return false;
    }
    const hid_t lors = lr_hdf5_put_lors(csr->out.file, params->lors);
    if (lors < 0 || H5Gclose(lors) < 0) {
        return false;
    }
    csr->group = H5Gcreate2(csr->out.file, "matrix", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    return csr->group >= 0 && lr_hdf5_put_string(csr->group, "encoding-type", "csr_matrix") &&
           lr_hdf5_put_string(csr->group, "encoding-version", "0.1.0") &&
           lr_hdf5_put_numbers(csr->group, "shape", H5T_NATIVE_INT64, 2, shape) &&
           lr_hdf5_put_string(csr->group, "scanner", name ? name : "") &&
           lr_hdf5_put_string(csr->group, "units",
                              "data: probability that a pair of photons emitted uniformly in the "
                              "row's voxel, or at its point, is detected by the column's LOR") &&
           lr_hdf5_put_string(csr->group, "columns", "LORs in the order of /lor") &&
           lr_hdf5_put_string(csr->group, "description",
                              params->description ? params->description : "") &&
           put_rows(csr) && open_streams(csr);
}

static void close_parts(struct csr *csr)
{
    lr_hdf5_stream_close(&csr->indices);
    lr_hdf5_stream_close(&csr->data);
    if (csr->group >= 0) {
        H5Gclose(csr->group);
    }
    free(csr->starts);
    csr->starts = NULL;
    csr->group = -1;
}

static void abandon(void *self)
{
    struct csr *csr = self;
    lr_hdf5_output_cancel(&csr->out);
    close_parts(csr);
    lr_hdf5_output_abandon(&csr->out);
    free(csr);
}

void *lr_matrix_hdf5_create(const lr_matrix_writer_params *params, int64_t index_limit)
{
    struct csr *csr = lr_alloc(1, sizeof(*csr), "a matrix writer", params->log);
    if (csr == NULL) {
        return NULL;
    }
    csr->params = params;
    csr->index_limit = index_limit;
    csr->group = -1;
    const int64_t num_rows = params->end - params->begin;
    csr->starts = lr_alloc(num_rows + 1, sizeof(int64_t), "the rows of a matrix", params->log);
    if (csr->starts == NULL ||
        lr_hdf5_output_open(&csr->out, params->path, "system matrix", params->log) != LR_OK) {
        free(csr->starts);
        free(csr);
        return NULL;
    }
    if (!put_head(csr)) {
        (void)lr_hdf5_output_fail(&csr->out, "the head of the matrix");
        abandon(csr);
        return NULL;
    }
    return csr;
}

/* Copies the indices so far into an int64 stream. */
static bool copy_indices(struct csr *csr, struct lr_hdf5_stream *wide)
{
    int64_t numbers[piece];
    const int64_t total = csr->indices.written;
    const hid_t space = H5Dget_space(csr->indices.dataset);
    bool done = space >= 0;
    for (int64_t at = 0; at < total && done; at += piece) {
        const hsize_t start = (hsize_t)at;
        const hsize_t count = (hsize_t)(total - at < piece ? total - at : piece);
        const hid_t memory = H5Screate_simple(1, &count, NULL);
        done = H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &count, NULL) >= 0 &&
               H5Dread(csr->indices.dataset, H5T_NATIVE_INT64, memory, space, H5P_DEFAULT,
                       numbers) >= 0 &&
               lr_hdf5_stream_append(wide, numbers, (int64_t)count);
        H5Sclose(memory);
    }
    if (space >= 0) {
        H5Sclose(space);
    }
    return done;
}

/* int32 has become too narrow for indptr, and readers want both of one type: the indices are
 * written anew. HDF5 reuses the space of the old ones. */
static bool widen(struct csr *csr)
{
    struct lr_hdf5_stream wide = {0};
    if (!lr_hdf5_stream_flush(&csr->indices) ||
        !lr_hdf5_stream_open(&wide, csr->group, "indices64", H5T_NATIVE_INT64)) {
        lr_hdf5_stream_close(&wide);
        return false;
    }
    const bool done = copy_indices(csr, &wide);
    lr_hdf5_stream_close(&csr->indices);
    csr->indices = wide;
    csr->wide = true;
    return done && H5Ldelete(csr->group, "indices", H5P_DEFAULT) >= 0 &&
           H5Lmove(csr->group, "indices64", csr->group, "indices", H5P_DEFAULT, H5P_DEFAULT) >= 0;
}

static bool append(struct csr *csr, const lr_row *row)
{
    int32_t narrow[piece];
    float data[piece];
    for (int64_t at = 0; at < row->count; at += piece) {
        const int count = row->count - at < piece ? (int)(row->count - at) : piece;
        for (int n = 0; n < count; n++) {
            narrow[n] = csr->wide ? 0 : (int32_t)row->lor[at + n];
            data[n] = (float)row->probability[at + n];
        }
        const void *indices = csr->wide ? (const void *)(row->lor + at) : (const void *)narrow;
        if (!lr_hdf5_stream_append(&csr->indices, indices, count) ||
            !lr_hdf5_stream_append(&csr->data, data, count)) {
            return false;
        }
    }
    return true;
}

static lr_status take(void *self, const lr_row *row)
{
    struct csr *csr = self;
    const int64_t place = row->row - csr->params->begin;
    for (; csr->rows_begun <= place; csr->rows_begun++) {
        csr->starts[csr->rows_begun] = csr->num_elements;
    }
    csr->num_elements += row->count;
    if ((!csr->wide && csr->num_elements > csr->index_limit && !widen(csr)) || !append(csr, row)) {
        return lr_hdf5_output_fail(&csr->out, "rows");
    }
    return lr_hdf5_output_check(&csr->out);
}

static bool put_starts(struct csr *csr)
{
    const int64_t num_rows = csr->params->end - csr->params->begin;
    for (; csr->rows_begun <= num_rows; csr->rows_begun++) {
        csr->starts[csr->rows_begun] = csr->num_elements;
    }
    struct lr_hdf5_stream stream;
    if (!lr_hdf5_stream_open(&stream, csr->group, "indptr",
                             csr->wide ? H5T_NATIVE_INT64 : H5T_NATIVE_INT32)) {
        lr_hdf5_stream_close(&stream);
        return false;
    }
    bool done = true;
    for (int64_t row = 0; row <= num_rows && done; row++) {
        const int32_t narrow = csr->wide ? 0 : (int32_t)csr->starts[row];
        done = lr_hdf5_stream_append(
            &stream, csr->wide ? (const void *)&csr->starts[row] : (const void *)&narrow, 1);
    }
    done = done && lr_hdf5_stream_flush(&stream);
    lr_hdf5_stream_close(&stream);
    return done;
}

static lr_status finish(void *self)
{
    struct csr *csr = self;
    if (lr_hdf5_output_check(&csr->out) == LR_OK &&
        !(put_starts(csr) && lr_hdf5_stream_flush(&csr->indices) &&
          lr_hdf5_stream_flush(&csr->data))) {
        (void)lr_hdf5_output_fail(&csr->out, "the end of the matrix");
    }
    close_parts(csr);
    const lr_status status = lr_hdf5_output_finish(&csr->out);
    free(csr);
    return status;
}

const struct lr_matrix_fns lr_matrix_hdf5_fns = {take, finish, abandon};
