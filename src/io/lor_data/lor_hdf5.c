/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * LOR data as HDF5; layout: docs/formats/lor-data.md. */
#include "base/log.h"
#include "base/mem.h"
#include "io/lor_data/lor_formats.h"
#include "io/scanners/hdf5_scanner.h"

#include <stdlib.h>
#include <string.h>

/* --- writing --- */

static bool put_data(struct lr_hdf5_output *out, const lr_lors *lors, const lr_lor_data *data)
{
    if (!lr_hdf5_put_scanner(out->file, lors->scanner)) return false;
    const hid_t group = lr_hdf5_put_lors(out->file, lors);
    if (group < 0) return false;
    const bool sparse = data->index != NULL;
    const bool done =
        lr_hdf5_put_string(group, "layout", sparse ? "sparse" : "dense") &&
        lr_hdf5_put_string(group, "units", "values: counts per LOR during the acquisition") &&
        lr_hdf5_put_values(group, "values", data->values, data->count) &&
        (!sparse || lr_hdf5_put_array(group, "index", H5T_NATIVE_INT64, (int64_t[2]){data->count, 0}, data->index));
    return H5Gclose(group) >= 0 && done;
}

lr_status lr_lor_hdf5_write(const char *path, const lr_lors *lors, const lr_lor_data *data, const lr_log *log)
{
    struct lr_hdf5_output out;
    LR_TRY(lr_hdf5_output_open(&out, path, "LOR data", log));
    if (!put_data(&out, lors, data)) (void)lr_hdf5_output_fail(&out, "LOR data");
    return lr_hdf5_output_finish(&out);
}

/* --- reading --- */

static lr_status read_layout(const struct lr_hdf5_input *in, bool *sparse)
{
    char layout[16];
    if (!lr_hdf5_has(in, "/lor")) {
        return lr_error(in->log, LR_BAD_INPUT, "%s holds no LOR data (no group /lor; see docs/formats/lor-data.md)",
                        in->path);
    }
    if (lr_hdf5_has(in, "/matrix")) {
        return lr_error(in->log, LR_BAD_INPUT,
                        "%s holds a system matrix and no LOR data: give what was measured, or "
                        "projected from an image",
                        in->path);
    }
    if (!lr_hdf5_get_string(in, "/lor", "layout", layout, sizeof(layout)) ||
        (strcmp(layout, "dense") != 0 && strcmp(layout, "sparse") != 0)) {
        return lr_error(in->log, LR_BAD_INPUT, "the attribute layout of /lor in %s must be \"dense\" or \"sparse\"",
                        in->path);
    }
    *sparse = strcmp(layout, "sparse") == 0;
    return LR_OK;
}

/* How many values there are, checked against the scanner before memory is taken for them. */
static lr_status read_count(const struct lr_hdf5_input *in, const lr_lors *lors, bool sparse, int64_t *count)
{
    int64_t values[2], index[2];
    LR_TRY(lr_hdf5_shape(in, "/lor/values", false, values, 1));
    *count = values[0];
    if (!sparse) {
        return *count == lors->count
                   ? LR_OK
                   : lr_error(in->log, LR_BAD_INPUT, "/lor/values in %s has %lld values, the scanner has %lld LORs",
                              in->path, (long long)*count, (long long)lors->count);
    }
    LR_TRY(lr_hdf5_shape(in, "/lor/index", true, index, 1));
    if (index[0] != *count || *count > lors->count) {
        return lr_error(in->log, LR_BAD_INPUT, "%s has %lld LOR numbers for %lld values and %lld LORs in all", in->path,
                        (long long)index[0], (long long)*count, (long long)lors->count);
    }
    return LR_OK;
}

static lr_lor_data *read_data(const struct lr_hdf5_input *in, const lr_lors *lors, bool sparse, int64_t count)
{
    lr_lor_data *data = lr_alloc(1, sizeof(*data), "LOR data", in->log);
    if (data == NULL) return NULL;
    const int64_t shape[2] = {count, 0};
    data->count = count;
    data->values = lr_alloc(count, sizeof(float), "LOR data", in->log);
    data->index = sparse ? lr_alloc(count, sizeof(int64_t), "LOR data", in->log) : NULL;
    if (data->values == NULL || (sparse && data->index == NULL) ||
        lr_hdf5_get(in, "/lor/values", LR_HDF5_FLOAT, shape, data->values) != LR_OK ||
        (sparse && lr_hdf5_get(in, "/lor/index", LR_HDF5_INT64, shape, data->index) != LR_OK) ||
        lr_lor_file_check(in->path, lors, data, in->log) != LR_OK) {
        lr_lor_data_destroy(data);
        return NULL;
    }
    return data;
}

/* What stands before the values. */
static lr_status read_head(const struct lr_hdf5_input *in, const lr_lors *lors, bool *sparse, int64_t *count)
{
    LR_TRY(read_layout(in, sparse));
    LR_TRY(lr_hdf5_check_scanner(in, lors));
    return read_count(in, lors, *sparse, count);
}

lr_lor_data *lr_lor_hdf5_read(const char *path, const lr_lors *lors, const lr_log *log)
{
    struct lr_hdf5_input in;
    if (lr_hdf5_input_open(&in, path, log) != LR_OK) return NULL;
    lr_lor_data *data = NULL;
    bool sparse = false;
    int64_t count = 0;
    if (read_head(&in, lors, &sparse, &count) == LR_OK) data = read_data(&in, lors, sparse, count);
    lr_hdf5_input_close(&in);
    return data;
}

/* --- in pieces --- */

enum { AT_ONCE = 1 << 18 };

/* some: room for AT_ONCE numbers. */
static lr_status scan_pieces(const struct lr_hdf5_input *in, const lr_lors *lors, const lr_lor_data_sink *sink,
                             lr_lor_data *some)
{
    const int64_t count = some->count;
    struct lr_lor_file_place place = {.what = in->path, .before = -1};
    for (; place.first < count; place.first += some->count) {
        const int64_t left = count - place.first;
        some->count = left < AT_ONCE ? left : AT_ONCE;
        const int64_t range[2] = {place.first, some->count};
        LR_TRY(lr_hdf5_get_part(in, "/lor/values", LR_HDF5_FLOAT, range, some->values));
        if (some->index != NULL) LR_TRY(lr_hdf5_get_part(in, "/lor/index", LR_HDF5_INT64, range, some->index));
        LR_TRY(lr_lor_file_check_some(&place, lors, some, in->log));
        LR_TRY(sink->take(sink->user, some, place.first));
        place.before = some->index != NULL ? some->index[some->count - 1] : place.before;
    }
    return LR_OK;
}

static lr_status scan(const struct lr_hdf5_input *in, const lr_lors *lors, const lr_lor_data_sink *sink)
{
    lr_lor_data some = {.count = 0};
    bool sparse = false;
    LR_TRY(read_head(in, lors, &sparse, &some.count));
    some.values = lr_alloc(AT_ONCE, sizeof(*some.values), "LOR data", in->log);
    some.index = sparse ? lr_alloc(AT_ONCE, sizeof(*some.index), "LOR data", in->log) : NULL;
    const bool has_room = some.values != NULL && (!sparse || some.index != NULL);
    const lr_status status = has_room ? scan_pieces(in, lors, sink, &some) : LR_FAILED;
    free(some.values);
    free(some.index);
    return status;
}

lr_status lr_lor_hdf5_scan(const char *path, const lr_lors *lors, const lr_lor_data_sink *sink, const lr_log *log)
{
    struct lr_hdf5_input in;
    LR_TRY(lr_hdf5_input_open(&in, path, log));
    const lr_status status = scan(&in, lors, sink);
    lr_hdf5_input_close(&in);
    return status;
}
