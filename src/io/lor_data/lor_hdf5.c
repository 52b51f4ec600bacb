/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * LOR data and histo-images as HDF5; layouts: docs/formats/lor-data.md and histo-images.md. */
#include "base/log.h"
#include "base/mem.h"
#include "io/files/hdf5_file.h"
#include "io/files/hdf5_input.h"
#include "io/lor_data/lor_formats.h"
#include "io/scanners/hdf5_scanner.h"

#include <limits.h>
#include <lr/direct.h>
#include <math.h>
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

/* Number of values, checked against the scanner before any are allocated. */
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

/* Writes everything that precedes the values. */
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

/* === histo-images; layout: docs/formats/histo-images.md === */

/* --- writing --- */

static bool put_triple(hid_t group, const char *name, hid_t native, const void *values)
{
    return lr_hdf5_put_array(group, name, native, (int64_t[2]){3, 0}, values);
}

static bool put_views(hid_t group, const lr_histo_images *histo)
{
    double(*views)[2] = malloc((size_t)histo->num_views * sizeof(*views));
    for (int k = 0; views != NULL && k < histo->num_views; k++) {
        views[k][0] = histo->views[k].azimuth_deg;
        views[k][1] = histo->views[k].tilt_deg;
    }
    const bool done = views != NULL && lr_hdf5_put_array(group, "views_deg", H5T_NATIVE_DOUBLE,
                                                         (int64_t[2]){histo->num_views, 2}, views);
    free(views);
    return done;
}

static bool put_histo(struct lr_hdf5_output *out, const lr_histo_images *histo)
{
    const hid_t group = H5Gcreate2(out->file, "histo", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    if (group < 0) return false;
    const int64_t shape[2] = {histo->num_views, lr_grid_num_voxels(&histo->grid)};
    const bool done =
        lr_hdf5_put_string(group, "units", "values: counts per voxel; views_deg: azimuth, tilt; *_mm: mm") &&
        put_triple(group, "grid_size", H5T_NATIVE_INT, histo->grid.size) &&
        put_triple(group, "grid_voxel_mm", H5T_NATIVE_DOUBLE, histo->grid.voxel_mm) &&
        put_triple(group, "grid_origin_mm", H5T_NATIVE_DOUBLE, histo->grid.origin_mm) && put_views(group, histo) &&
        lr_hdf5_put_array(group, "values", H5T_NATIVE_FLOAT, shape, histo->values);
    return H5Gclose(group) >= 0 && done;
}

lr_status lr_histo_images_write(const char *path, const lr_histo_images *histo, const lr_log *log)
{
    struct lr_hdf5_output out;
    LR_TRY(lr_hdf5_output_open(&out, path, "histo-images", log));
    if (!put_histo(&out, histo)) (void)lr_hdf5_output_fail(&out, "histo-images");
    return lr_hdf5_output_finish(&out);
}

/* --- reading --- */

static lr_status get_triple(const struct lr_hdf5_input *in, const char *name, enum lr_hdf5_number number, void *values)
{
    int64_t shape[2];
    LR_TRY(lr_hdf5_shape(in, name, number == LR_HDF5_INT32, shape, 1));
    if (shape[0] != 3) {
        return lr_error(in->log, LR_BAD_INPUT, "%s in %s has %lld numbers: it needs three", name, in->path,
                        (long long)shape[0]);
    }
    return lr_hdf5_get(in, name, number, shape, values);
}

static lr_status read_histo_head(const struct lr_hdf5_input *in, lr_grid *grid, int *num_views)
{
    int64_t views[2], values[2];
    if (!lr_hdf5_has(in, "/histo")) {
        return lr_error(in->log, LR_BAD_INPUT,
                        "%s holds no histo-images (no group /histo; see docs/formats/histo-images.md)", in->path);
    }
    LR_TRY(get_triple(in, "/histo/grid_size", LR_HDF5_INT32, grid->size));
    LR_TRY(get_triple(in, "/histo/grid_voxel_mm", LR_HDF5_DOUBLE, grid->voxel_mm));
    LR_TRY(get_triple(in, "/histo/grid_origin_mm", LR_HDF5_DOUBLE, grid->origin_mm));
    LR_TRY(lr_grid_check(grid, in->log));
    LR_TRY(lr_hdf5_shape(in, "/histo/views_deg", false, views, 2));
    LR_TRY(lr_hdf5_shape(in, "/histo/values", false, values, 2));
    if (views[0] < 1 || views[0] > INT_MAX || views[1] != 2 || values[0] != views[0] ||
        values[1] != lr_grid_num_voxels(grid)) {
        return lr_error(in->log, LR_BAD_INPUT, "%s has %lld x %lld values for %lld views of %lld voxels", in->path,
                        (long long)values[0], (long long)values[1], (long long)views[0],
                        (long long)lr_grid_num_voxels(grid));
    }
    LR_TRY(lr_hdf5_need_stored(in, "/histo/values", values));
    *num_views = (int)views[0];
    return LR_OK;
}

/* Values of one view. */
static lr_status check_values(const struct lr_hdf5_input *in, const float *values, int64_t first, int64_t count)
{
    for (int64_t k = 0; k < count; k++)
        if (!isfinite(values[k]))
            return lr_error(in->log, LR_BAD_INPUT, "%s: value %lld is not finite", in->path, (long long)(first + k));
    return LR_OK;
}

static lr_status read_views(const struct lr_hdf5_input *in, lr_view *to, int num_views)
{
    double(*views)[2] = lr_alloc(num_views, sizeof(*views), "views", in->log);
    const lr_status status =
        views ? lr_hdf5_get(in, "/histo/views_deg", LR_HDF5_DOUBLE, (int64_t[2]){num_views, 2}, views) : LR_FAILED;
    for (int k = 0; status == LR_OK && k < num_views; k++) to[k] = (lr_view){views[k][0], views[k][1]};
    free(views);
    return status;
}

static lr_status read_body(const struct lr_hdf5_input *in, lr_histo_images *histo)
{
    const int64_t shape[2] = {histo->num_views, lr_grid_num_voxels(&histo->grid)};
    LR_TRY(read_views(in, histo->views, histo->num_views));
    LR_TRY(lr_hdf5_get(in, "/histo/values", LR_HDF5_FLOAT, shape, histo->values));
    return check_values(in, histo->values, 0, shape[0] * shape[1]);
}

/* Reads histo's grid; views and values get memory. */
static lr_status scan_views(const struct lr_hdf5_input *in, const lr_histo_sink *sink, lr_histo_images *histo,
                            float *values)
{
    const int64_t num_voxels = lr_grid_num_voxels(&histo->grid);
    LR_TRY(read_views(in, histo->views, histo->num_views));
    for (int view = 0; view < histo->num_views; view++) {
        const struct lr_hdf5_rows row = {view, 1, num_voxels};
        LR_TRY(lr_hdf5_get_float_rows(in, "/histo/values", &row, values));
        LR_TRY(check_values(in, values, view * num_voxels, num_voxels));
        LR_TRY(sink->take(sink->user, histo, view, values));
    }
    return LR_OK;
}

static lr_status scan_histo(const struct lr_hdf5_input *in, const lr_histo_sink *sink)
{
    lr_histo_images histo = {.values = NULL};
    LR_TRY(read_histo_head(in, &histo.grid, &histo.num_views));
    histo.views = lr_alloc(histo.num_views, sizeof(*histo.views), "views", in->log);
    float *values = lr_alloc(lr_grid_num_voxels(&histo.grid), sizeof(*values), "a histo-image", in->log);
    const lr_status status = histo.views != NULL && values != NULL ? scan_views(in, sink, &histo, values) : LR_FAILED;
    free(histo.views);
    free(values);
    return status;
}

lr_status lr_histo_images_scan(const char *path, const lr_histo_sink *sink, const lr_log *log)
{
    struct lr_hdf5_input in;
    LR_TRY(lr_hdf5_input_open(&in, path, log));
    const lr_status status = scan_histo(&in, sink);
    lr_hdf5_input_close(&in);
    return status;
}

static lr_histo_images *read_histo(const struct lr_hdf5_input *in)
{
    lr_grid grid;
    int num_views = 0;
    if (read_histo_head(in, &grid, &num_views) != LR_OK) return NULL;
    lr_view *views = lr_alloc(num_views, sizeof(*views), "views", in->log);
    lr_histo_images *histo = views ? lr_histo_images_create(&grid, views, num_views, in->log) : NULL;
    free(views);
    if (histo != NULL && read_body(in, histo) != LR_OK) {
        lr_histo_images_destroy(histo);
        histo = NULL;
    }
    return histo;
}

lr_histo_images *lr_histo_images_read(const char *path, const lr_log *log)
{
    struct lr_hdf5_input in;
    if (lr_hdf5_input_open(&in, path, log) != LR_OK) return NULL;
    lr_histo_images *histo = read_histo(&in);
    lr_hdf5_input_close(&in);
    return histo;
}
