/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Checks of LOR data; LOR data and histo-images in HDF5. Layouts: docs/formats/lor-data.md and histo-images.md. */
#include "base/log.h"
#include "base/mem.h"
#include "io/files/hdf5_file.h"
#include "io/files/hdf5_input.h"
#include "io/lor_data/lor_data.h"
#include "io/scanners/hdf5_scanner.h"

#include <limits.h>
#include <lr/direct.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- checks --- */

lr_status lr_lor_file_check_some(const struct lr_lor_file_place *place, const lr_lors *lors, const lr_lor_data *some,
                                 const lr_log *log)
{
    int64_t before = place->before;
    for (int64_t n = 0; n < some->count; n++) {
        const int64_t lor = some->index == NULL ? place->first + n : some->index[n];
        if (some->index != NULL && (lor < 0 || lor >= lors->count)) {
            return lr_error(log, LR_BAD_INPUT, "%s names LOR %lld at place %lld, but they run from 0 to %lld",
                            place->what, (long long)lor, (long long)(place->first + n), (long long)lors->count - 1);
        }
        if (lor <= before) {
            return lr_error(log, LR_BAD_INPUT,
                            "%s lists LOR %lld after %lld at place %lld: LORs must be sorted and "
                            "listed once",
                            place->what, (long long)lor, (long long)before, (long long)(place->first + n));
        }
        if (!isfinite(some->values[n])) {
            return lr_error(log, LR_BAD_INPUT, "%s holds %g for LOR %lld: values must be finite", place->what,
                            (double)some->values[n], (long long)lor);
        }
        before = lor;
    }
    return LR_OK;
}

lr_status lr_lor_file_check(const char *what, const lr_lors *lors, const lr_lor_data *data, const lr_log *log)
{
    const struct lr_lor_file_place begin = {.what = what, .before = -1};
    if (data->index == NULL && data->count != lors->count) {
        return lr_error(log, LR_BAD_INPUT, "%s has %lld values, the scanner %s has %lld LORs", what,
                        (long long)data->count, lors->scanner->name, (long long)lors->count);
    }
    return lr_lor_file_check_some(&begin, lors, data, log);
}

/* --- writing --- */

lr_status lr_lor_hdf5_write(const char *path, const lr_lors *lors, const lr_lor_data *data, const lr_log *log)
{
    struct lr_hdf5_output out;
    LR_TRY(lr_hdf5_output_open(&out, path, "LOR data", log));
    const struct lr_hdf5_fns *h5 = out.h5;
    const bool sparse = data->index != NULL;
    const lr_hdf5_id group = lr_hdf5_put_scanner(&out, lors->scanner) ? lr_hdf5_put_lors(&out, lors) : -1;
    const bool done =
        group >= 0 && h5->put_string(group, "layout", sparse ? "sparse" : "dense") &&
        h5->put_string(group, "units", "values: counts per LOR during the acquisition") &&
        h5->put_values(group, "values", data->values, data->count) &&
        (!sparse || h5->put_array(group, "index", LR_HDF5_INT64, (int64_t[2]){data->count, 0}, data->index));
    const bool is_closed = group >= 0 && h5->group_close(group);
    if (!done || !is_closed) (void)lr_hdf5_output_fail(&out, "LOR data");
    return lr_hdf5_output_finish(&out);
}

/* --- reading --- */

/* Reads the layout and the number of values. The number is checked against the scanner before memory is allocated. */
static lr_status read_head(const struct lr_hdf5_input *in, const lr_lors *lors, bool *sparse, int64_t *count)
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
    LR_TRY(lr_hdf5_check_scanner(in, lors));

    int64_t values[2], index[2];
    LR_TRY(lr_hdf5_shape(in, "/lor/values", false, values, 1));
    *count = values[0];
    if (*sparse) {
        LR_TRY(lr_hdf5_shape(in, "/lor/index", true, index, 1));
        if (index[0] != *count || *count > lors->count) {
            return lr_error(in->log, LR_BAD_INPUT, "%s has %lld LOR numbers for %lld values and %lld LORs in all",
                            in->path, (long long)index[0], (long long)*count, (long long)lors->count);
        }
    } else if (*count != lors->count) {
        return lr_error(in->log, LR_BAD_INPUT, "/lor/values in %s has %lld values, the scanner has %lld LORs", in->path,
                        (long long)*count, (long long)lors->count);
    }
    return LR_OK;
}

/* --- whole --- */

/* Values that are read between two reports of progress. */
enum { VALUES_PER_REPORT = 1 << 22 };

static lr_status read_values(const struct lr_hdf5_input *in, const lr_progress *progress, lr_lor_data *data)
{
    for (int64_t first = 0; first < data->count; first += VALUES_PER_REPORT) {
        const int64_t left = data->count - first;
        const int64_t range[2] = {first, left < VALUES_PER_REPORT ? left : VALUES_PER_REPORT};
        LR_TRY(lr_progress_report(progress, LR_READING_LOR_DATA, (double)first, (double)data->count));
        LR_TRY(lr_hdf5_get_part(in, "/lor/values", LR_HDF5_FLOAT, range, data->values + first));
        if (data->index != NULL) LR_TRY(lr_hdf5_get_part(in, "/lor/index", LR_HDF5_INT64, range, data->index + first));
    }
    return LR_OK;
}

lr_lor_data *lr_lor_hdf5_read(const char *path, const lr_lors *lors, const lr_progress *progress, const lr_log *log)
{
    struct lr_hdf5_input in;
    if (lr_hdf5_input_open(&in, path, log) != LR_OK) return NULL;
    bool sparse = false;
    int64_t count = 0;
    lr_lor_data *data = NULL;
    if (read_head(&in, lors, &sparse, &count) == LR_OK) data = lr_alloc(1, sizeof(*data), "LOR data", in.log);
    if (data != NULL) {
        data->count = count;
        data->values = lr_alloc(count, sizeof(float), "LOR data", in.log);
        data->index = sparse ? lr_alloc(count, sizeof(int64_t), "LOR data", in.log) : NULL;
        if (data->values == NULL || (sparse && data->index == NULL) || read_values(&in, progress, data) != LR_OK ||
            lr_lor_file_check(in.path, lors, data, in.log) != LR_OK) {
            lr_lor_data_destroy(data);
            data = NULL;
        }
    }
    lr_hdf5_input_close(&in);
    return data;
}

/* --- in pieces --- */

enum { AT_ONCE = 1 << 18 };

/* Reads some->count values in pieces. some: has room for AT_ONCE values. */
static lr_status scan_pieces(const struct lr_hdf5_input *in, const lr_lors *lors, const lr_lor_data_sink *sink,
                             lr_lor_data *some)
{
    const int64_t count = some->count;
    struct lr_lor_file_place place = {.what = in->path, .before = -1};
    for (; place.first < count; place.first += some->count) {
        const int64_t left = count - place.first;
        some->count = left < AT_ONCE ? left : AT_ONCE;
        const int64_t range[2] = {place.first, some->count};
        LR_TRY(lr_progress_report(sink->progress, LR_READING_LOR_DATA, (double)place.first, (double)count));
        LR_TRY(lr_hdf5_get_part(in, "/lor/values", LR_HDF5_FLOAT, range, some->values));
        if (some->index != NULL) LR_TRY(lr_hdf5_get_part(in, "/lor/index", LR_HDF5_INT64, range, some->index));
        LR_TRY(lr_lor_file_check_some(&place, lors, some, in->log));
        LR_TRY(sink->take(sink->user, some, place.first));
        place.before = some->index != NULL ? some->index[some->count - 1] : place.before;
    }
    return LR_OK;
}

lr_status lr_lor_hdf5_scan(const char *path, const lr_lors *lors, const lr_lor_data_sink *sink, const lr_log *log)
{
    struct lr_hdf5_input in;
    lr_lor_data some = {.count = 0};
    bool sparse = false;
    LR_TRY(lr_hdf5_input_open(&in, path, log));
    lr_status status = read_head(&in, lors, &sparse, &some.count);
    if (status == LR_OK) {
        some.values = lr_alloc(AT_ONCE, sizeof(*some.values), "LOR data", in.log);
        some.index = sparse ? lr_alloc(AT_ONCE, sizeof(*some.index), "LOR data", in.log) : NULL;
        const bool has_room = some.values != NULL && (!sparse || some.index != NULL);
        status = has_room ? scan_pieces(&in, lors, sink, &some) : LR_FAILED;
    }
    free(some.values);
    free(some.index);
    lr_hdf5_input_close(&in);
    return status;
}

/* === histo-images; layout: docs/formats/histo-images.md === */

/* --- writing --- */

static bool put_triple(const struct lr_hdf5_fns *h5, lr_hdf5_id group, const char *name, enum lr_hdf5_number number,
                       const void *values)
{
    return h5->put_array(group, name, number, (int64_t[2]){3, 0}, values);
}

lr_status lr_histo_images_write(const char *path, const lr_histo_images *histo, const lr_log *log)
{
    struct lr_hdf5_output out;
    LR_TRY(lr_hdf5_output_open(&out, path, "histo-images", log));
    const struct lr_hdf5_fns *h5 = out.h5;
    const int64_t views_shape[2] = {histo->num_views, 2};
    const int64_t shape[2] = {histo->num_views, lr_grid_num_voxels(&histo->grid)};
    double(*views)[2] = malloc((size_t)histo->num_views * sizeof(*views));
    for (int k = 0; views != NULL && k < histo->num_views; k++) {
        views[k][0] = histo->views[k].azimuth_deg;
        views[k][1] = histo->views[k].tilt_deg;
    }

    const lr_hdf5_id group = h5->group_create(out.file, "histo");
    const bool done = group >= 0 &&
                      h5->put_string(group, "units", "values: counts per voxel; views_deg: azimuth, tilt; *_mm: mm") &&
                      put_triple(h5, group, "grid_size", LR_HDF5_INT32, histo->grid.size) &&
                      put_triple(h5, group, "grid_voxel_mm", LR_HDF5_DOUBLE, histo->grid.voxel_mm) &&
                      put_triple(h5, group, "grid_origin_mm", LR_HDF5_DOUBLE, histo->grid.origin_mm) && views != NULL &&
                      h5->put_array(group, "views_deg", LR_HDF5_DOUBLE, views_shape, views) &&
                      h5->put_array(group, "values", LR_HDF5_FLOAT, shape, histo->values);
    const bool is_closed = group >= 0 && h5->group_close(group);
    free(views);
    if (!done || !is_closed) (void)lr_hdf5_output_fail(&out, "histo-images");
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

lr_status lr_histo_images_scan(const char *path, const lr_histo_sink *sink, const lr_log *log)
{
    struct lr_hdf5_input in;
    lr_histo_images histo = {.values = NULL};
    float *values = NULL;
    LR_TRY(lr_hdf5_input_open(&in, path, log));
    lr_status status = read_histo_head(&in, &histo.grid, &histo.num_views);
    if (status != LR_OK) goto end;
    const int64_t num_voxels = lr_grid_num_voxels(&histo.grid);
    histo.views = lr_alloc(histo.num_views, sizeof(*histo.views), "views", in.log);
    values = lr_alloc(num_voxels, sizeof(*values), "a histo-image", in.log);
    status = histo.views != NULL && values != NULL ? read_views(&in, histo.views, histo.num_views) : LR_FAILED;
    for (int view = 0; status == LR_OK && view < histo.num_views; view++) {
        const struct lr_hdf5_rows row = {view, 1, num_voxels};
        status = lr_hdf5_get_rows(&in, "/histo/values", &row, LR_HDF5_FLOAT, values);
        if (status == LR_OK) status = check_values(&in, values, view * num_voxels, num_voxels);
        if (status == LR_OK) status = sink->take(sink->user, &histo, view, values);
    }

end:
    free(histo.views);
    free(values);
    lr_hdf5_input_close(&in);
    return status;
}

lr_histo_images *lr_histo_images_read(const char *path, const lr_log *log)
{
    struct lr_hdf5_input in;
    lr_grid grid;
    int num_views = 0;
    lr_histo_images *histo = NULL;
    if (lr_hdf5_input_open(&in, path, log) != LR_OK) return NULL;
    if (read_histo_head(&in, &grid, &num_views) == LR_OK) {
        lr_view *views = lr_alloc(num_views, sizeof(*views), "views", in.log);
        histo = views ? lr_histo_images_create(&grid, views, num_views, in.log) : NULL;
        free(views);
    }
    if (histo != NULL) {
        const int64_t shape[2] = {num_views, lr_grid_num_voxels(&histo->grid)};
        if (read_views(&in, histo->views, num_views) != LR_OK ||
            lr_hdf5_get(&in, "/histo/values", LR_HDF5_FLOAT, shape, histo->values) != LR_OK ||
            check_values(&in, histo->values, 0, shape[0] * shape[1]) != LR_OK) {
            lr_histo_images_destroy(histo);
            histo = NULL;
        }
    }
    lr_hdf5_input_close(&in);
    return histo;
}
