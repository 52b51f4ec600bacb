/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/matrix/writer.h"

#include "base/log.h"
#include "base/mem.h"
#include "io/files/output.h"
#include "io/files/regular_file.h"
#include "model/lors/selection.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Numbers that are read together. */
enum { PIECE = 1 << 17 };

struct lr_matrix_file {
    char *path;
    struct lr_matrix_source source;
};

lr_matrix_file *lr_matrix_file_open(const char *path, const lr_log *log)
{
    lr_matrix_file *file = lr_alloc(1, sizeof(*file), "a matrix file", log);
    if (file == NULL) return NULL;
    file->path = lr_copy_string(path != NULL ? path : "", log);
    file->source = (struct lr_matrix_source){.path = file->path, .log = log};
    /* A file that begins like a zip archive is npz; any other is HDF5. Only regular files are opened here, since
     * opening a pipe would block until it has a writer. The HDF5 reader reports a missing file, or a path that is
     * not a regular file. */
    char bytes[4] = "", text[128];
    struct stat facts;
    bool is_zip = false;
    lr_status status = file->path != NULL ? LR_OK : LR_FAILED;
    if (status == LR_OK && stat(file->path, &facts) == 0 && S_ISREG(facts.st_mode)) {
        FILE *stream = fopen(file->path, "rb");
        is_zip = stream != NULL && fread(bytes, 1, 4, stream) == 4 && memcmp(bytes, "PK\3\4", 4) == 0;
        if (stream == NULL || ferror(stream))
            status = lr_error(log, LR_BAD_INPUT, "cannot read %s: %s", file->path, lr_error_text(errno, text));
        if (stream != NULL) fclose(stream);
    }
    if (status == LR_OK) status = is_zip ? lr_matrix_npz_open(&file->source) : lr_matrix_hdf5_open(&file->source);
    if (status != LR_OK) {
        free(file->path);
        free(file);
        return NULL;
    }
    return file;
}

const lr_matrix_file_info *lr_matrix_file_get_info(const lr_matrix_file *file)
{
    return &file->source.info;
}

void lr_matrix_file_close(lr_matrix_file *file)
{
    if (file != NULL) {
        file->source.close(file->source.self);
        free(file->path);
        free(file);
    }
}

/* --- against a scanner --- */

/* Two counts that must agree. */
struct claim {
    const char *what;
    int64_t found, expected;
};

static lr_status check_claims(const lr_matrix_file *file, const struct claim *claims, int num)
{
    for (int k = 0; k < num; k++) {
        if (claims[k].found != claims[k].expected) {
            return lr_error(file->source.log, LR_BAD_INPUT, "%s has %lld %s: there must be %lld", file->path,
                            (long long)claims[k].found, claims[k].what, (long long)claims[k].expected);
        }
    }
    return LR_OK;
}

/* Checks the numbers of rows that are voxels. */
static lr_status check_voxels(const lr_matrix_file *file, int64_t num_voxels)
{
    const lr_matrix_file_info *info = &file->source.info;
    const lr_log *log = file->source.log;
    if (info->voxels == NULL) {
        return info->row_begin >= 0 && info->num_rows <= num_voxels - info->row_begin
                   ? LR_OK
                   : lr_error(log, LR_BAD_INPUT,
                              "%s says that its %lld rows are voxels from %lld on, and its grid "
                              "has %lld",
                              file->path, (long long)info->num_rows, (long long)info->row_begin, (long long)num_voxels);
    }
    for (int64_t k = 0; k < info->num_rows; k++) {
        const int64_t before = k > 0 ? info->voxels[k - 1] : -1;
        if (info->voxels[k] <= before || info->voxels[k] >= num_voxels) {
            return lr_error(log, LR_BAD_INPUT,
                            "%s says that its row %lld is voxel %lld, after %lld: they must ascend "
                            "and stay below %lld",
                            file->path, (long long)k, (long long)info->voxels[k], (long long)before,
                            (long long)num_voxels);
        }
    }
    return LR_OK;
}

lr_status lr_matrix_file_check_scanner(const lr_matrix_file *file, const lr_lors *lors)
{
    const lr_matrix_file_info *info = &file->source.info;
    if (!info->is_described) {
        const struct claim columns = {"columns (LORs)", info->num_columns, lors->count};
        return check_claims(file, &columns, 1);
    }
    if (file->source.check_scanner != NULL) LR_TRY(file->source.check_scanner(file->source.self, lors));
    LR_TRY(lr_selection_check(lors, &info->part, file->source.log) == LR_OK
               ? LR_OK
               : lr_error(file->source.log, LR_BAD_INPUT, "%s lists LORs that make no sense", file->path));
    if (info->points_mm != NULL) {
        const struct claim columns = {"columns (LORs)", info->num_columns, lors->count};
        return check_claims(file, &columns, 1);
    }
    LR_TRY(lr_grid_check(&info->grid, NULL) == LR_OK
               ? LR_OK
               : lr_error(file->source.log, LR_BAD_INPUT, "%s has a grid that makes no sense", file->path));
    const int64_t num_voxels = lr_grid_num_voxels(&info->grid);
    const struct claim by_lor[2] = {{"columns (voxels)", info->num_columns, num_voxels},
                                    {"rows (LORs)", info->num_rows, lr_selection_count(lors, &info->part)}};
    const struct claim by_voxel = {"columns (LORs)", info->num_columns, lors->count};
    LR_TRY(info->by_lor ? check_claims(file, by_lor, 2) : check_claims(file, &by_voxel, 1));
    return info->by_lor ? LR_OK : check_voxels(file, num_voxels);
}

/* --- rows --- */

struct reading {
    struct lr_matrix_source *source;
    int64_t *starts; /* [PIECE + 1] of rows first_start .. */
    int64_t first_start, num_starts;
    int64_t *columns; /* [PIECE] of elements first_element .. */
    double *values;
    int64_t first_element, num_elements;
    int64_t *row_columns; /* [capacity] */
    double *row_values;
    int64_t capacity;
};

/* Finds the range of a row's elements. */
static lr_status find_row(struct reading *reading, int64_t row, int64_t range[2])
{
    const struct lr_matrix_source *source = reading->source;
    const lr_matrix_file_info *info = &source->info;
    if (row + 1 >= reading->first_start + reading->num_starts) {
        const int64_t left = info->num_rows + 1 - row;
        reading->first_start = row;
        reading->num_starts = left < PIECE + 1 ? left : PIECE + 1;
        LR_TRY(source->read(source->self, LR_ARRAY_STARTS, (int64_t[2]){row, reading->num_starts}, reading->starts));
    }
    range[0] = reading->starts[row - reading->first_start];
    range[1] = reading->starts[row - reading->first_start + 1];
    if ((row == 0 && range[0] != 0) || range[1] < range[0] || range[1] > info->num_elements ||
        (row == info->num_rows - 1 && range[1] != info->num_elements)) {
        return lr_error(source->log, LR_BAD_INPUT,
                        "%s: row %lld goes from element %lld to %lld: indptr must begin at 0, "
                        "never fall, and end at the %lld elements there are",
                        source->path, (long long)row, (long long)range[0], (long long)range[1],
                        (long long)info->num_elements);
    }
    if (range[1] - range[0] > info->num_columns) {
        return lr_error(source->log, LR_BAD_INPUT, "%s: row %lld has %lld elements and the matrix only %lld columns",
                        source->path, (long long)row, (long long)(range[1] - range[0]), (long long)info->num_columns);
    }
    return LR_OK;
}

static lr_status make_room(struct reading *reading, int64_t count)
{
    if (count <= reading->capacity) return LR_OK;
    const lr_log *log = reading->source->log;
    free(reading->row_columns);
    free(reading->row_values);
    reading->row_columns = lr_alloc(count, sizeof(*reading->row_columns), "a matrix row", log);
    reading->row_values = lr_alloc(count, sizeof(*reading->row_values), "a matrix row", log);
    reading->capacity = reading->row_columns && reading->row_values ? count : 0;
    return reading->capacity > 0 ? LR_OK : LR_FAILED;
}

/* Makes sure that element `begin` is in memory, with those that follow it. */
static lr_status fetch(struct reading *reading, int64_t begin)
{
    const struct lr_matrix_source *source = reading->source;
    if (begin >= reading->first_element && begin < reading->first_element + reading->num_elements) return LR_OK;
    const int64_t left = source->info.num_elements - begin;
    const int64_t range[2] = {begin, left < PIECE ? left : PIECE};
    reading->num_elements = 0;
    LR_TRY(source->read(source->self, LR_ARRAY_COLUMNS, range, reading->columns));
    LR_TRY(source->read(source->self, LR_ARRAY_VALUES, range, reading->values));
    reading->first_element = begin;
    reading->num_elements = range[1];
    return LR_OK;
}

static lr_status read_row(struct reading *reading, int64_t row, const lr_row_sink *sink)
{
    int64_t range[2] = {0, 0};
    LR_TRY(find_row(reading, row, range));
    const int64_t count = range[1] - range[0];
    LR_TRY(make_room(reading, count));
    for (int64_t at = range[0]; at < range[1];) {
        LR_TRY(fetch(reading, at));
        const int64_t inside = at - reading->first_element;
        const int64_t there = reading->num_elements - inside, wanted = range[1] - at;
        const int64_t taken = there < wanted ? there : wanted;
        memcpy(reading->row_columns + (at - range[0]), reading->columns + inside,
               (size_t)taken * sizeof(*reading->columns));
        memcpy(reading->row_values + (at - range[0]), reading->values + inside,
               (size_t)taken * sizeof(*reading->values));
        at += taken;
    }
    const struct lr_matrix_source *source = reading->source;
    for (int64_t k = 0; k < count; k++) {
        const int64_t column = reading->row_columns[k], before = k > 0 ? reading->row_columns[k - 1] : -1;
        const double value = reading->row_values[k];
        if (column <= before || column >= source->info.num_columns) {
            return lr_error(source->log, LR_BAD_INPUT,
                            "%s: row %lld has column %lld after %lld: they must ascend and stay "
                            "below %lld",
                            source->path, (long long)row, (long long)column, (long long)before,
                            (long long)source->info.num_columns);
        }
        if (!(value >= 0.0 && isfinite(value))) {
            return lr_error(source->log, LR_BAD_INPUT, "%s: row %lld, column %lld is %g: a probability is needed",
                            source->path, (long long)row, (long long)column, value);
        }
    }
    const lr_row out = {row, count, reading->row_columns, reading->row_values};
    return sink->take(sink->user, &out);
}

lr_status lr_matrix_file_rows(lr_matrix_file *file, const lr_row_sink *sink, const lr_progress *progress)
{
    const lr_log *log = file->source.log;
    const int64_t num_rows = file->source.info.num_rows;
    struct reading reading = {.source = &file->source};
    reading.starts = lr_alloc(PIECE + 1, sizeof(*reading.starts), "row starts", log);
    reading.columns = lr_alloc(PIECE, sizeof(*reading.columns), "elements", log);
    reading.values = lr_alloc(PIECE, sizeof(*reading.values), "elements", log);
    const bool has_memory = reading.starts != NULL && reading.columns != NULL && reading.values != NULL;
    lr_status status = has_memory ? LR_OK : LR_FAILED;
    for (int64_t row = 0; row < num_rows && status == LR_OK; row++) {
        status = read_row(&reading, row, sink);
        if (status == LR_OK && row % 64 == 0)
            status = lr_progress_report(progress, "reading the matrix", (double)row, (double)num_rows);
    }
    free(reading.starts);
    free(reading.columns);
    free(reading.values);
    free(reading.row_columns);
    free(reading.row_values);
    return status;
}
