/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * LOR data and histo-images in HDF5; also the checks of LOR data, and the choice of their format. Layouts:
 * docs/formats/lor-data.md and histo-images.md. */
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "io/files/hdf5_file.h"
#include "io/files/hdf5_input.h"
#include "io/lor_data/lor_data.h"
#include "io/scanners/scanner_formats.h"
#include "model/lors/place.h"

#include <limits.h>
#include <lr/direct.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- checks --- */

/* Position of a piece of the data: the number of values before the piece, and the last LOR before the piece (-1 =
 * none). what: name of the data, for messages. */
struct place {
    const char *what;
    int64_t first, before;
};

/* Checks that a piece's LORs are in range and in order, and that values are finite. */
static lr_status check_piece(const struct place *place, const lr_lors *lors, const lr_lor_data *some, const lr_log *log)
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
                            "%s lists LOR %lld after %lld at place %lld: LORs must be sorted and listed once",
                            place->what, (long long)lor, (long long)before, (long long)(place->first + n));
        }
        if (!isfinite(some->values[n])) {
            char name[160];
            return lr_error(log, LR_BAD_INPUT, "%s holds %g for %s: values must be finite", place->what,
                            isnan(some->values[n]) ? (double)NAN : (double)some->values[n],
                            lr_lor_name(lors, lor, name));
        }
        before = lor;
    }
    return LR_OK;
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
                        "%s holds a system matrix and no LOR data: give what was measured, or projected from an image",
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
        return lr_error(in->log, LR_BAD_INPUT,
                        "/lor/values in %s has %lld values, the scanner has %lld LORs: is it "
                        "of this scanner, with the same coincidence rules?",
                        in->path, (long long)*count, (long long)lors->count);
    }
    return LR_OK;
}

/* VALUES_PER_REPORT: values that are read between two reports of progress. AT_ONCE: values that a sink gets in one
 * call. */
enum { VALUES_PER_REPORT = 1 << 22, AT_ONCE = 1 << 18 };

/* Reads `count` values piece by piece into `data`, which has room for all values or, with a sink, for AT_ONCE
 * values. */
static lr_status read_pieces(const struct lr_hdf5_input *in, const lr_lors *lors, const lr_progress *progress,
                             const lr_lor_data_sink *sink, int64_t count, const lr_lor_data *data)
{
    const int64_t most = sink != NULL ? AT_ONCE : VALUES_PER_REPORT;
    struct place place = {.what = in->path, .before = -1};
    lr_lor_data some = *data;
    for (; place.first < count; place.first += some.count) {
        const int64_t left = count - place.first, at = sink != NULL ? 0 : place.first;
        some.count = left < most ? left : most;
        some.values = data->values + at;
        some.index = data->index != NULL ? data->index + at : NULL;
        const int64_t range[2] = {place.first, some.count};
        LR_TRY(lr_progress_report(progress, LR_READING_LOR_DATA, (double)place.first, (double)count));
        LR_TRY(lr_hdf5_get_part(in, "/lor/values", LR_HDF5_FLOAT, range, 1, some.values));
        if (some.index != NULL) LR_TRY(lr_hdf5_get_part(in, "/lor/index", LR_HDF5_INT64, range, 1, some.index));
        LR_TRY(check_piece(&place, lors, &some, in->log));
        if (sink != NULL) LR_TRY(sink->take(sink->user, &some, place.first));
        place.before = some.index != NULL ? some.index[some.count - 1] : place.before;
    }
    return LR_OK;
}

static lr_lor_data *read_hdf5(const char *path, const lr_lors *lors, const lr_progress *progress, const lr_log *log)
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
        if (data->values == NULL || (sparse && data->index == NULL) ||
            read_pieces(&in, lors, progress, NULL, count, data) != LR_OK) {
            lr_lor_data_destroy(data);
            data = NULL;
        }
    }
    lr_hdf5_input_close(&in);
    return data;
}

static lr_status scan_hdf5(const char *path, const lr_lors *lors, const lr_lor_data_sink *sink, const lr_log *log)
{
    struct lr_hdf5_input in;
    lr_lor_data some = {.count = 0};
    bool sparse = false;
    int64_t count = 0;
    LR_TRY(lr_hdf5_input_open(&in, path, log));
    lr_status status = read_head(&in, lors, &sparse, &count);
    if (status == LR_OK) {
        some.values = lr_alloc(AT_ONCE, sizeof(*some.values), "LOR data", in.log);
        some.index = sparse ? lr_alloc(AT_ONCE, sizeof(*some.index), "LOR data", in.log) : NULL;
        const bool has_room = some.values != NULL && (!sparse || some.index != NULL);
        status = has_room ? read_pieces(&in, lors, sink->progress, sink, count, &some) : LR_FAILED;
    }
    lr_free_all(some.values, some.index);
    lr_hdf5_input_close(&in);
    return status;
}

/* --- the choice of a format --- */

/* The ending of the name alone decides the format. */
static bool is_projdata(const char *path)
{
    return path != NULL && lr_path_ends(path, ".hs");
}

static lr_status refuse_bins(const char *path, const lr_log *log)
{
    if (path == NULL) return LR_OK;
    if (lr_path_ends(path, ".s")) {
        return lr_error(log, LR_BAD_INPUT, "%s holds bins without saying which: name the header, which ends in .hs",
                        path);
    }
    struct lr_file_head head;
    lr_file_head_read(path, &head);
    return lr_siemens_sinogram_recognises(&head)
               ? lr_error(
                     log, LR_BAD_INPUT,
                     "%s heads a Siemens sinogram, which is not read: make STIR's projection data (.hs) of it with "
                     "STIR, or take the list mode (.l) of the same scan",
                     path)
               : LR_OK;
}

lr_lor_data *lr_lor_data_read_watched(const char *path, const lr_lors *lors, const lr_progress *progress,
                                      const lr_log *log)
{
    if (refuse_bins(path, log) != LR_OK) return NULL;
    return is_projdata(path) ? lr_lor_projdata_read(path, lors, progress, log) : read_hdf5(path, lors, progress, log);
}

lr_lor_data *lr_lor_data_read(const char *path, const lr_lors *lors, const lr_log *log)
{
    return lr_lor_data_read_watched(path, lors, NULL, log);
}

lr_status lr_lor_data_scan(const char *path, const lr_lors *lors, const lr_lor_data_sink *sink, const lr_log *log)
{
    LR_TRY(refuse_bins(path, log));
    if (!is_projdata(path)) return scan_hdf5(path, lors, sink, log);
    struct lr_watched_log watch;
    lr_log_watch(&watch, log);
    watch.status = LR_CANCELLED; /* LR_CANCELLED is the only status without a message */
    lr_lor_data *all = lr_lor_projdata_read(path, lors, sink->progress, &watch.log);
    const lr_status status = all != NULL ? sink->take(sink->user, all, 0) : watch.status;
    lr_lor_data_destroy(all);
    return status;
}

/* --- writing --- */

lr_status lr_lor_data_write(const char *path, const lr_lors *lors, const lr_lor_data *data, const lr_log *log)
{
    const struct place whole = {.what = "the LOR data to be written", .before = -1};
    if (data->index == NULL && data->count != lors->count) {
        return lr_error(log, LR_BAD_INPUT, "%s has %lld values, the scanner %s has %lld LORs", whole.what,
                        (long long)data->count, lors->scanner->name, (long long)lors->count);
    }
    LR_TRY(check_piece(&whole, lors, data, log));
    if (is_projdata(path)) return lr_lor_projdata_write(path, lors, data, log);

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

/* === histo-images; layout: docs/formats/histo-images.md === */

/* The value of the attribute `quantity` of factors that are probabilities. Other histo-images have no such attribute. */
static const char probabilities[] = "probabilities";

/* --- writing --- */

lr_status lr_histo_images_write(const char *path, const lr_histo_images *histo, const lr_log *log)
{
    struct lr_hdf5_output out;
    LR_TRY(lr_hdf5_output_open(&out, path, "histo-images", log));
    const struct lr_hdf5_fns *h5 = out.h5;
    const int64_t views_shape[2] = {histo->num_views, 2}, three[2] = {3, 0};
    const int64_t shape[2] = {histo->num_views, lr_grid_num_voxels(&histo->grid)};
    double(*views)[2] = malloc((size_t)histo->num_views * sizeof(*views));
    for (int k = 0; views != NULL && k < histo->num_views; k++) {
        views[k][0] = histo->views[k].azimuth_deg;
        views[k][1] = histo->views[k].tilt_deg;
    }

    const lr_hdf5_id group = h5->group_create(out.file, "histo");
    const char *units = histo->are_probabilities ? "values: detections per emission; views_deg: azimuth, tilt; *_mm: mm"
                                                 : "values: counts per voxel; views_deg: azimuth, tilt; *_mm: mm";
    const bool done = group >= 0 && h5->put_string(group, "units", units) &&
                      (!histo->are_probabilities || h5->put_string(group, "quantity", probabilities)) &&
                      (!(histo->tof_ps > 0) || h5->put_numbers(group, "tof_ps", LR_HDF5_DOUBLE, 0, &histo->tof_ps)) &&
                      h5->put_array(group, "grid_size", LR_HDF5_INT32, three, histo->grid.size) &&
                      h5->put_array(group, "grid_voxel_mm", LR_HDF5_DOUBLE, three, histo->grid.voxel_mm) &&
                      h5->put_array(group, "grid_origin_mm", LR_HDF5_DOUBLE, three, histo->grid.origin_mm) &&
                      views != NULL && h5->put_array(group, "views_deg", LR_HDF5_DOUBLE, views_shape, views) &&
                      h5->put_array(group, "values", LR_HDF5_FLOAT, shape, histo->values);
    const bool is_closed = group >= 0 && h5->group_close(group);
    free(views);
    if (!done || !is_closed) (void)lr_hdf5_output_fail(&out, "histo-images");
    return lr_hdf5_output_finish(&out);
}

/* --- reading --- */

static lr_status read_histo_head(const struct lr_hdf5_input *in, lr_histo_images *head)
{
    lr_grid *grid = &head->grid;
    int64_t views[2], values[2];
    if (!lr_hdf5_has(in, "/histo")) {
        return lr_error(in->log, LR_BAD_INPUT,
                        "%s holds no histo-images (no group /histo; see docs/formats/histo-images.md)", in->path);
    }
    const struct {
        const char *name;
        enum lr_hdf5_number number;
        void *values;
    } triples[] = {{"/histo/grid_size", LR_HDF5_INT32, grid->size},
                   {"/histo/grid_voxel_mm", LR_HDF5_DOUBLE, grid->voxel_mm},
                   {"/histo/grid_origin_mm", LR_HDF5_DOUBLE, grid->origin_mm}};
    for (int k = 0; k < 3; k++) {
        const char *name = triples[k].name;
        int64_t shape[2];
        LR_TRY(lr_hdf5_shape(in, name, k == 0, shape, 1));
        if (shape[0] != 3) {
            return lr_error(in->log, LR_BAD_INPUT, "%s in %s has %lld numbers: it needs three", name, in->path,
                            (long long)shape[0]);
        }
        LR_TRY(lr_hdf5_get(in, name, triples[k].number, shape, triples[k].values));
    }
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
    head->num_views = (int)views[0];

    char quantity[sizeof(probabilities) + 1];
    head->are_probabilities = lr_hdf5_get_string(in, "/histo", "quantity", quantity, sizeof(quantity)) &&
                              strcmp(quantity, probabilities) == 0;
    if (lr_hdf5_get_numbers(in, "/histo", "tof_ps", LR_HDF5_DOUBLE, 1, &head->tof_ps) &&
        !(head->tof_ps > 0 && isfinite(head->tof_ps))) {
        return lr_error(in->log, LR_BAD_INPUT, "%s: the time resolution tof_ps of /histo is %g: it must be positive",
                        in->path, head->tof_ps);
    }
    return lr_hdf5_input_check(in);
}

lr_status lr_histo_images_scan(const char *path, const lr_histo_sink *sink, const lr_log *log)
{
    struct lr_hdf5_input in;
    lr_histo_images histo = {.values = NULL};
    double(*views)[2] = NULL;
    float *values = NULL;
    LR_TRY(lr_hdf5_input_open(&in, path, log));
    lr_status status = read_histo_head(&in, &histo);
    if (status != LR_OK) goto end;
    const int64_t num_voxels = lr_grid_num_voxels(&histo.grid), num_views = histo.num_views;
    histo.views = lr_alloc(num_views, sizeof(*histo.views), "views", in.log);
    values = lr_alloc(num_voxels, sizeof(*values), "a histo-image", in.log);
    views = lr_alloc(num_views, sizeof(*views), "views", in.log);
    status = histo.views != NULL && values != NULL && views != NULL
                 ? lr_hdf5_get(&in, "/histo/views_deg", LR_HDF5_DOUBLE, (int64_t[2]){num_views, 2}, views)
                 : LR_FAILED;
    for (int k = 0; status == LR_OK && k < num_views; k++) histo.views[k] = (lr_view){views[k][0], views[k][1]};
    for (int view = 0; status == LR_OK && view < num_views; view++) {
        status = lr_hdf5_get_part(&in, "/histo/values", LR_HDF5_FLOAT, (int64_t[2]){view, 1}, num_voxels, values);
        for (int64_t k = 0; status == LR_OK && k < num_voxels; k++) {
            if (!isfinite(values[k])) {
                status = lr_error(in.log, LR_BAD_INPUT, "%s: value %lld is not finite", path,
                                  (long long)(view * num_voxels + k));
            }
        }
        if (status == LR_OK) status = sink->take(sink->user, &histo, view, values);
    }

end:
    lr_free_all(histo.views, views, values);
    lr_hdf5_input_close(&in);
    return status;
}

/* All views of a file. */
struct gathered {
    lr_histo_images *histo;
    const lr_log *log;
};

static lr_status gather(void *user, const lr_histo_images *from, int view, const float *values)
{
    struct gathered *gathered = user;
    const int64_t num_voxels = lr_grid_num_voxels(&from->grid);
    if (view == 0) gathered->histo = lr_histo_images_create(&from->grid, from->views, from->num_views, gathered->log);
    if (gathered->histo == NULL) return LR_FAILED;
    gathered->histo->tof_ps = from->tof_ps;
    gathered->histo->are_probabilities = from->are_probabilities;
    memcpy(gathered->histo->values + view * num_voxels, values, (size_t)num_voxels * sizeof(*values));
    return LR_OK;
}

lr_histo_images *lr_histo_images_read(const char *path, const lr_log *log)
{
    struct gathered gathered = {.log = log};
    if (lr_histo_images_scan(path, &(lr_histo_sink){gather, &gathered}, log) == LR_OK) return gathered.histo;
    lr_histo_images_destroy(gathered.histo);
    return NULL;
}
