/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/hdf5_file.h"

#include "base/log.h"
#include "base/mem.h"
#include "io/hdf5_driver.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lr_hdf5_quiet lr_hdf5_hush(void)
{
    struct lr_hdf5_quiet quiet = {0};
    H5Eget_auto2(H5E_DEFAULT, &quiet.print, &quiet.user);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    return quiet;
}

void lr_hdf5_restore(struct lr_hdf5_quiet quiet)
{
    H5Eset_auto2(H5E_DEFAULT, quiet.print, quiet.user);
}

static herr_t take_first(unsigned number, const H5E_error2_t *error, void *user)
{
    if (number == 0 && error->desc != NULL) {
        snprintf(user, 200, "%s", error->desc);
    }
    return 0;
}

const char *lr_hdf5_reason(char text[200])
{
    text[0] = '\0';
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_first, text);
    for (char *c = text; *c != '\0'; c++) {
        if (*c == '\n') {
            *c = ' ';
        }
    }
    return text;
}

/* --- writing --- */

lr_status lr_hdf5_output_fail(struct lr_hdf5_output *out, const char *what)
{
    if (out->output.error == 0 && !out->broken) {
        char text[200];
        out->broken = true;
        lr_hdf5_reason(text);
        lr_log_write(out->output.log, LR_LOG_ERROR, LR_FAILED, "cannot write %s to %s: %s%s", what,
                     out->output.path, text[0] != '\0' ? "HDF5 says: " : "no memory", text);
    }
    return LR_FAILED;
}

lr_status lr_hdf5_output_check(const struct lr_hdf5_output *out)
{
    return out->output.error == 0 && !out->broken ? LR_OK : LR_FAILED;
}

static bool put_root(hid_t file, const char *content)
{
    return lr_hdf5_put_string(file, "program", "LORaster") &&
           lr_hdf5_put_string(file, "version", lr_version()) &&
           lr_hdf5_put_string(file, "content", content) &&
           lr_hdf5_put_string(file, "frame",
                              "right-handed, millimetres, z along the scanner's axis, origin at "
                              "the scanner's centre");
}

/* Makes the HDF5 file on an open output. */
static bool create_file(struct lr_hdf5_output *out, struct lr_hdf5_layout *layout)
{
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    out->driver = access < 0 ? -1 : lr_hdf5_driver_set(access, &out->output, layout);
    if (out->driver >= 0) {
        out->file = H5Fcreate(out->output.temporary, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    }
    if (access >= 0) {
        H5Pclose(access);
    }
    return out->file >= 0;
}

lr_status lr_hdf5_output_open(struct lr_hdf5_output *out, const char *path, const char *content,
                              const lr_log *log)
{
    *out = (struct lr_hdf5_output){.driver = -1, .file = -1};
    LR_TRY(lr_output_open(&out->output, path, log));
    if (out->output.temporary == NULL) {
        lr_output_abandon(&out->output);
        return lr_error(
            log, LR_USAGE,
            "cannot write HDF5 to %s: it is a device or a pipe: give the name of a file", path);
    }
    return lr_hdf5_output_begin(out, content, NULL);
}

lr_status lr_hdf5_output_begin(struct lr_hdf5_output *out, const char *content,
                               struct lr_hdf5_layout *layout)
{
    out->driver = out->file = -1;
    out->broken = false;
    out->quiet = lr_hdf5_hush();
    if (!create_file(out, layout) || !put_root(out->file, content)) {
        (void)lr_hdf5_output_fail(out, "the file");
        lr_hdf5_output_abandon(out);
        return LR_FAILED;
    }
    return LR_OK;
}

static void close_file(struct lr_hdf5_output *out)
{
    if (out->file >= 0 && H5Fclose(out->file) < 0) {
        (void)lr_hdf5_output_fail(out, "the end of the file");
    }
    if (out->driver >= 0) {
        H5FDunregister(out->driver);
    }
    out->file = out->driver = -1;
    lr_hdf5_restore(out->quiet);
}

lr_status lr_hdf5_output_finish(struct lr_hdf5_output *out)
{
    close_file(out);
    if (out->broken) {
        lr_output_abandon(&out->output);
        return LR_FAILED;
    }
    return lr_output_finish(&out->output);
}

void lr_hdf5_output_cancel(struct lr_hdf5_output *out)
{
    if (out->output.error == 0) {
        out->output.error = ECANCELED;
    }
}

void lr_hdf5_output_abandon(struct lr_hdf5_output *out)
{
    lr_hdf5_output_cancel(out); /* what HDF5 still holds need not reach the disk */
    close_file(out);
    lr_output_abandon(&out->output);
}

hid_t lr_hdf5_file_type(hid_t native)
{
    const hid_t type = H5Tcopy(native);
    if (type >= 0) {
        H5Tset_order(type, H5T_ORDER_LE);
    }
    return type;
}

bool lr_hdf5_put_string(hid_t object, const char *name, const char *text)
{
    const hid_t type = H5Tcopy(H5T_C_S1);
    const hid_t space = H5Screate(H5S_SCALAR);
    H5Tset_size(type, H5T_VARIABLE);
    H5Tset_cset(type, H5T_CSET_UTF8);
    const hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    const bool done = attribute >= 0 && H5Awrite(attribute, type, &text) >= 0;
    if (attribute >= 0) {
        H5Aclose(attribute);
    }
    H5Sclose(space);
    H5Tclose(type);
    return done;
}

bool lr_hdf5_put_numbers(hid_t object, const char *name, hid_t native, int count,
                         const void *numbers)
{
    const hsize_t extent = (hsize_t)count;
    const hid_t type = lr_hdf5_file_type(native);
    const hid_t space = count == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &extent, NULL);
    const hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    const bool done = attribute >= 0 && H5Awrite(attribute, native, numbers) >= 0;
    if (attribute >= 0) {
        H5Aclose(attribute);
    }
    H5Sclose(space);
    H5Tclose(type);
    return done;
}

/* Without the hour of writing, so that the same numbers give the same bytes. */
static hid_t plain_layout(void)
{
    const hid_t layout = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_obj_track_times(layout, false);
    return layout;
}

static bool put_dataset(hid_t group, const char *name, hid_t native, hid_t space, hid_t layout,
                        const void *numbers)
{
    const hid_t type = lr_hdf5_file_type(native);
    const hid_t dataset = H5Dcreate2(group, name, type, space, H5P_DEFAULT, layout, H5P_DEFAULT);
    bool done = dataset >= 0;
    if (done && H5Sget_simple_extent_npoints(space) > 0) {
        done = H5Dwrite(dataset, native, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0;
    }
    if (dataset >= 0) {
        done = H5Dclose(dataset) >= 0 && done;
    }
    H5Tclose(type);
    return done;
}

bool lr_hdf5_put_array(hid_t group, const char *name, hid_t native, const int64_t shape[2],
                       const void *numbers)
{
    const hsize_t extent[2] = {(hsize_t)shape[0], (hsize_t)shape[1]};
    const hid_t space = H5Screate_simple(shape[1] == 0 ? 1 : 2, extent, NULL);
    const hid_t layout = plain_layout();
    const bool done = put_dataset(group, name, native, space, layout, numbers);
    H5Pclose(layout);
    H5Sclose(space);
    return done;
}

/* A layout of chunks of shuffled and compressed bytes; a chunk is no longer than the dataset. */
static hid_t compressed_layout(int64_t count, int level)
{
    const hsize_t chunk = count < lr_hdf5_chunk ? (hsize_t)count : (hsize_t)lr_hdf5_chunk;
    const hid_t layout = plain_layout();
    H5Pset_chunk(layout, 1, &chunk);
    H5Pset_shuffle(layout);
    H5Pset_deflate(layout, (unsigned)level);
    return layout;
}

/* Counts compress to a few percent within a second; the digits of expected values do not, and
 * trying would take most of the time of writing them. */
static bool worth_compressing(const float *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (values[i] != floorf(values[i])) {
            return false;
        }
    }
    return count > lr_hdf5_chunk;
}

bool lr_hdf5_put_values(hid_t group, const char *name, const float *values, int64_t count)
{
    if (!worth_compressing(values, count)) {
        return lr_hdf5_put_array(group, name, H5T_NATIVE_FLOAT, (int64_t[2]){count, 0}, values);
    }
    const hsize_t extent = (hsize_t)count;
    const hid_t space = H5Screate_simple(1, &extent, NULL);
    const hid_t layout = compressed_layout(count, 1);
    const bool done = put_dataset(group, name, H5T_NATIVE_FLOAT, space, layout, values);
    H5Pclose(layout);
    H5Sclose(space);
    return done;
}

bool lr_hdf5_series_open(struct lr_hdf5_series *series, hid_t group, const char *name, hid_t native,
                         int64_t count, int level)
{
    const hsize_t extent = (hsize_t)count;
    const hid_t space = H5Screate_simple(1, &extent, NULL);
    const hid_t layout = level > 0 && count > 0 ? compressed_layout(count, level) : plain_layout();
    const hid_t type = lr_hdf5_file_type(native);
    *series = (struct lr_hdf5_series){.native = native};
    series->dataset = H5Dcreate2(group, name, type, space, H5P_DEFAULT, layout, H5P_DEFAULT);
    H5Tclose(type);
    H5Pclose(layout);
    H5Sclose(space);
    return series->dataset >= 0;
}

bool lr_hdf5_series_append(struct lr_hdf5_series *series, const void *numbers, int64_t count)
{
    const hsize_t start = (hsize_t)series->written, extent = (hsize_t)count;
    if (count == 0) {
        return true;
    }
    const hid_t file_space = H5Dget_space(series->dataset);
    const hid_t memory_space = H5Screate_simple(1, &extent, NULL);
    const bool done =
        H5Sselect_hyperslab(file_space, H5S_SELECT_SET, &start, NULL, &extent, NULL) >= 0 &&
        H5Dwrite(series->dataset, series->native, memory_space, file_space, H5P_DEFAULT, numbers) >=
            0;
    H5Sclose(memory_space);
    H5Sclose(file_space);
    series->written += count;
    return done;
}

bool lr_hdf5_series_close(struct lr_hdf5_series *series)
{
    const bool done = series->dataset < 0 || H5Dclose(series->dataset) >= 0;
    series->dataset = -1;
    return done;
}

/* --- reading --- */

static lr_status complain_open(const char *path, const lr_log *log)
{
    FILE *file = fopen(path, "rb");
    char text[200];
    if (file == NULL) {
        return lr_error(log, LR_BAD_INPUT, "cannot open %s: %s", path, lr_error_text(errno, text));
    }
    fclose(file);
    if (H5Fis_hdf5(path) <= 0) {
        return lr_error(log, LR_BAD_INPUT, "%s is not an HDF5 file, or its beginning is damaged",
                        path);
    }
    return lr_error(log, LR_BAD_INPUT, "%s is truncated or damaged: HDF5 says \"%s\": get it again",
                    path, lr_hdf5_reason(text));
}

lr_status lr_hdf5_input_open(struct lr_hdf5_input *in, const char *path, const lr_log *log)
{
    *in = (struct lr_hdf5_input){.log = log, .path = path, .file = -1};
    if (path == NULL || path[0] == '\0') {
        return lr_error(log, LR_USAGE, "an input file needs a name");
    }
    in->quiet = lr_hdf5_hush();
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
    in->file = H5Fopen(path, H5F_ACC_RDONLY, access);
    H5Pclose(access);
    if (in->file >= 0) {
        return LR_OK;
    }
    const lr_status status = complain_open(path, log);
    lr_hdf5_restore(in->quiet);
    return status;
}

void lr_hdf5_input_close(struct lr_hdf5_input *in)
{
    H5Fclose(in->file);
    in->file = -1;
    lr_hdf5_restore(in->quiet);
}

bool lr_hdf5_has(const struct lr_hdf5_input *in, const char *name)
{
    return H5Oexists_by_name(in->file, name, H5P_DEFAULT) > 0;
}

static lr_status check_dataset(const struct lr_hdf5_input *in, const char *name, bool whole,
                               hid_t dataset, int64_t shape[2], int rank)
{
    const hid_t type = H5Dget_type(dataset);
    const hid_t space = H5Dget_space(dataset);
    const H5T_class_t class = H5Tget_class(type);
    hsize_t extent[H5S_MAX_RANK] = {0};
    const int dims = H5Sget_simple_extent_dims(space, extent, NULL);
    H5Sclose(space);
    H5Tclose(type);
    if (class != H5T_INTEGER && (whole || class != H5T_FLOAT)) {
        return lr_error(in->log, LR_BAD_INPUT, "%s in %s must hold %s", name, in->path,
                        whole ? "whole numbers" : "numbers");
    }
    if (dims != rank || extent[0] > INT64_MAX || extent[1] > INT64_MAX) {
        return lr_error(in->log, LR_BAD_INPUT, "%s in %s must have %d dimension%s, not %d", name,
                        in->path, rank, rank == 1 ? "" : "s", dims);
    }
    shape[0] = (int64_t)extent[0];
    shape[1] = rank > 1 ? (int64_t)extent[1] : 0;
    return LR_OK;
}

lr_status lr_hdf5_shape(const struct lr_hdf5_input *in, const char *name, bool whole,
                        int64_t shape[2], int rank)
{
    const hid_t dataset = H5Dopen2(in->file, name, H5P_DEFAULT);
    if (dataset < 0) {
        return lr_error(in->log, LR_BAD_INPUT, "%s has no dataset %s: see docs/formats.md",
                        in->path, name);
    }
    const lr_status status = check_dataset(in, name, whole, dataset, shape, rank);
    H5Dclose(dataset);
    return status;
}

lr_status lr_hdf5_get(const struct lr_hdf5_input *in, const char *name, hid_t native, void *numbers)
{
    const hid_t dataset = H5Dopen2(in->file, name, H5P_DEFAULT);
    const bool done =
        dataset >= 0 && H5Dread(dataset, native, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0;
    char text[200];
    const char *reason = done ? "" : lr_hdf5_reason(text);
    if (!done) {
        lr_log_write(in->log, LR_LOG_ERROR, LR_BAD_INPUT,
                     "%s in %s cannot be read: HDF5 says \"%s\": get the file again", name,
                     in->path, reason);
    }
    if (dataset >= 0) {
        H5Dclose(dataset);
    }
    return done ? LR_OK : LR_BAD_INPUT;
}

/* Reads a string of variable or fixed length. */
static bool read_string(hid_t attribute, hid_t type, char *text, size_t bytes)
{
    if (H5Tget_class(type) != H5T_STRING) {
        return false;
    }
    if (H5Tis_variable_str(type) > 0) {
        char *string = NULL;
        if (H5Aread(attribute, type, &string) < 0 || string == NULL) {
            return false;
        }
        snprintf(text, bytes, "%s", string);
        H5free_memory(string);
        return true;
    }
    const size_t size = H5Tget_size(type);
    char *string = calloc(size + 1, 1);
    const bool done = string != NULL && H5Aread(attribute, type, string) >= 0;
    if (done) {
        snprintf(text, bytes, "%s", string);
    }
    free(string);
    return done;
}

/* An attribute that holds one element, or a negative number. */
static hid_t open_scalar(const struct lr_hdf5_input *in, const char *name, const char *attribute)
{
    if (H5Aexists_by_name(in->file, name, attribute, H5P_DEFAULT) <= 0) {
        return -1;
    }
    const hid_t opened = H5Aopen_by_name(in->file, name, attribute, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t space = opened < 0 ? -1 : H5Aget_space(opened);
    const bool single = space >= 0 && H5Sget_simple_extent_npoints(space) == 1;
    if (space >= 0) {
        H5Sclose(space);
    }
    if (opened >= 0 && !single) {
        H5Aclose(opened);
        return -1;
    }
    return opened;
}

bool lr_hdf5_get_string(const struct lr_hdf5_input *in, const char *name, const char *attribute,
                        char *text, size_t bytes)
{
    const hid_t opened = open_scalar(in, name, attribute);
    if (opened < 0) {
        return false;
    }
    const hid_t type = H5Aget_type(opened);
    const bool done = read_string(opened, type, text, bytes);
    H5Tclose(type);
    H5Aclose(opened);
    return done;
}

bool lr_hdf5_get_number(const struct lr_hdf5_input *in, const char *name, const char *attribute,
                        double *number)
{
    const hid_t opened = open_scalar(in, name, attribute);
    if (opened < 0) {
        return false;
    }
    const bool done = H5Aread(opened, H5T_NATIVE_DOUBLE, number) >= 0;
    H5Aclose(opened);
    return done;
}
