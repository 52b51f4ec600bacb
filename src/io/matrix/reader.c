/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Reads matrix files. The description is checked against a scanner, and every row is checked. */
#include "io/matrix/writer.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "io/files/output.h"
#include "io/files/regular_file.h"
#include "model/lors/selection.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Number of values that are read at a time. */
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
    /* A file that begins like a zip archive is npz; any other is HDF5. Only regular files are opened here, because
     * opening a pipe would wait for a program that writes to the pipe. The HDF5 reader reports a path that is missing
     * or not a regular file. */
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
    /* A run that was killed leaves TARGET.part and TARGET.part-rows. */
    char rows[PATH_MAX] = "";
    const bool is_part = status == LR_OK && lr_path_ends(file->path, ".part");
    if (status == LR_OK) snprintf(rows, sizeof(rows), "%s%s", file->path, is_part ? "-rows" : ".part-rows");
    if (status == LR_OK && (is_part || access(file->path, F_OK) != 0) && access(rows, F_OK) == 0) {
        status = lr_error(log, LR_BAD_INPUT,
                          "%s is unfinished: if its run has ended, give the same command again: resuming goes on with "
                          "its rows",
                          file->path);
    }
    if (status == LR_OK) status = is_zip ? lr_matrix_npz_open(&file->source) : lr_matrix_hdf5_open(&file->source);
    if (status != LR_OK) {
        if (file->source.self != NULL) file->source.close(file->source.self);
        lr_free_all(file->path, file);
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
        lr_free_all(file->path, file);
    }
}

/* --- the description --- */

static lr_status check_count(const lr_matrix_file *file, const char *what, int64_t found, int64_t expected)
{
    return found == expected ? LR_OK
                             : lr_error(file->source.log, LR_BAD_INPUT, "%s has %lld %s: there must be %lld",
                                        file->path, (long long)found, what, (long long)expected);
}

lr_status lr_matrix_file_check_scanner(const lr_matrix_file *file, const lr_lors *lors)
{
    const lr_matrix_file_info *info = &file->source.info;
    const lr_log *log = file->source.log;
    if (!info->is_described) return check_count(file, "columns (LORs)", info->num_columns, lors->count);
    if (file->source.check_scanner != NULL) LR_TRY(file->source.check_scanner(file->source.self, lors));
    if (lr_selection_check(lors, &info->part, log) != LR_OK)
        return lr_error(log, LR_BAD_INPUT, "%s lists LORs that make no sense", file->path);
    if (info->points_mm != NULL) return check_count(file, "columns (LORs)", info->num_columns, lors->count);
    if (lr_grid_check(&info->grid, NULL) != LR_OK)
        return lr_error(log, LR_BAD_INPUT, "%s has a grid that makes no sense", file->path);
    const int64_t num_voxels = lr_grid_num_voxels(&info->grid);
    if (info->by_lor) {
        LR_TRY(check_count(file, "columns (voxels)", info->num_columns, num_voxels));
        return check_count(file, "rows (LORs)", info->num_rows, lr_selection_count(lors, &info->part));
    }
    LR_TRY(check_count(file, "columns (LORs)", info->num_columns, lors->count));

    /* Rows are voxels. */
    if (info->voxels == NULL && (info->row_begin < 0 || info->num_rows > num_voxels - info->row_begin)) {
        return lr_error(log, LR_BAD_INPUT, "%s says that its %lld rows are voxels from %lld on, and its grid has %lld",
                        file->path, (long long)info->num_rows, (long long)info->row_begin, (long long)num_voxels);
    }
    for (int64_t k = 0; info->voxels != NULL && k < info->num_rows; k++) {
        const int64_t before = k > 0 ? info->voxels[k - 1] : -1;
        if (info->voxels[k] <= before || info->voxels[k] >= num_voxels) {
            return lr_error(log, LR_BAD_INPUT,
                            "%s says that its row %lld is voxel %lld, after %lld: they must ascend and stay below %lld",
                            file->path, (long long)k, (long long)info->voxels[k], (long long)before,
                            (long long)num_voxels);
        }
    }
    return LR_OK;
}

/* --- rows --- */

struct reading {
    struct lr_matrix_source *source;
    int64_t *starts; /* [PIECE + 1], starts of the rows from first_start on */
    int64_t first_start, num_starts;
    int64_t *columns; /* [PIECE], columns of the elements from first_element on */
    double *values;
    int64_t first_element, num_elements;
    int64_t *row_columns; /* [capacity] */
    double *row_values;
    int64_t capacity;
};

static lr_status read_row(struct reading *reading, int64_t row, const lr_row_sink *sink)
{
    const struct lr_matrix_source *source = reading->source;
    const lr_matrix_file_info *info = &source->info;
    const lr_log *log = source->log;
    /* The row's elements are begin .. end - 1. */
    if (row + 1 >= reading->first_start + reading->num_starts) {
        const int64_t left = info->num_rows + 1 - row;
        reading->first_start = row;
        reading->num_starts = left < PIECE + 1 ? left : PIECE + 1;
        LR_TRY(source->read(source->self, LR_ARRAY_STARTS, (int64_t[2]){row, reading->num_starts}, reading->starts));
    }
    const int64_t begin = reading->starts[row - reading->first_start];
    const int64_t end = reading->starts[row - reading->first_start + 1];
    if ((row == 0 && begin != 0) || end < begin || end > info->num_elements ||
        (row == info->num_rows - 1 && end != info->num_elements)) {
        return lr_error(log, LR_BAD_INPUT,
                        "%s: row %lld goes from element %lld to %lld: indptr must begin at 0, "
                        "never fall, and end at the %lld elements there are",
                        source->path, (long long)row, (long long)begin, (long long)end, (long long)info->num_elements);
    }
    const int64_t count = end - begin;
    if (count > info->num_columns) {
        return lr_error(log, LR_BAD_INPUT, "%s: row %lld has %lld elements and the matrix only %lld columns",
                        source->path, (long long)row, (long long)count, (long long)info->num_columns);
    }
    if (count > reading->capacity) {
        lr_free_all(reading->row_columns, reading->row_values);
        reading->row_columns = lr_alloc(count, sizeof(*reading->row_columns), "a matrix row", log);
        reading->row_values = lr_alloc(count, sizeof(*reading->row_values), "a matrix row", log);
        reading->capacity = reading->row_columns && reading->row_values ? count : 0;
        if (reading->capacity == 0) return LR_FAILED;
    }

    for (int64_t at = begin; at < end;) {
        if (at < reading->first_element || at >= reading->first_element + reading->num_elements) {
            const int64_t left = info->num_elements - at;
            const int64_t range[2] = {at, left < PIECE ? left : PIECE};
            reading->num_elements = 0;
            LR_TRY(source->read(source->self, LR_ARRAY_COLUMNS, range, reading->columns));
            LR_TRY(source->read(source->self, LR_ARRAY_VALUES, range, reading->values));
            reading->first_element = at;
            reading->num_elements = range[1];
        }
        const int64_t inside = at - reading->first_element;
        const int64_t there = reading->num_elements - inside, wanted = end - at;
        const int64_t taken = there < wanted ? there : wanted;
        memcpy(reading->row_columns + (at - begin), reading->columns + inside,
               (size_t)taken * sizeof(*reading->columns));
        memcpy(reading->row_values + (at - begin), reading->values + inside, (size_t)taken * sizeof(*reading->values));
        at += taken;
    }
    for (int64_t k = 0; k < count; k++) {
        const int64_t column = reading->row_columns[k], before = k > 0 ? reading->row_columns[k - 1] : -1;
        const double value = reading->row_values[k];
        if (column <= before || column >= info->num_columns) {
            return lr_error(
                log, LR_BAD_INPUT, "%s: row %lld has column %lld after %lld: they must ascend and stay below %lld",
                source->path, (long long)row, (long long)column, (long long)before, (long long)info->num_columns);
        }
        if (!(value >= 0.0 && isfinite(value))) {
            return lr_error(log, LR_BAD_INPUT, "%s: row %lld, column %lld is %g: a probability is needed", source->path,
                            (long long)row, (long long)column, value);
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
    lr_free_all(reading.starts, reading.columns, reading.values, reading.row_columns, reading.row_values);
    return status;
}
