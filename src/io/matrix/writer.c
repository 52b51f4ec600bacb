/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Writing of matrix files. The key of a matrix names everything that the rows depend on, in words and digests. Further
 * functions estimate the size that a file will have. The writer checks rows and passes them to a format or to the
 * store. */
#include "io/matrix/writer.h"

#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "io/checkpoints/key.h"
#include "io/files/number_type.h"
#include "model/lors/selection.h"
#include "plugin/plugin.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the key --- */

/* Adds a list and its length. Without the length, two lists would have the same digest as one longer list. */
static void add_list(struct lr_sha256 *sha, const void *items, int64_t count, size_t bytes)
{
    const int64_t num = items != NULL ? count : -1;
    lr_sha256_add(sha, &num, sizeof(num));
    if (num > 0) lr_sha256_add(sha, items, (size_t)num * bytes);
}

/* Returns a line, owned by the caller, that names everything the rows depend on. "; " separates the parts of the line.
 * Some parts end in LR_KEY_CONTENTS and a digest of values. errors: NULL, logged, if memory runs out. */
static char *matrix_key(const lr_matrix_writer_params *params, int64_t num_rows)
{
    /* The scanner and its LORs. */
    const lr_scanner *scanner = params->lors->scanner;
    const lr_coincidence *rules = &scanner->coincidence;
    const int whole[5] = {scanner->num_modules, scanner->num_positions, rules->min_module_difference,
                          rules->limits_ring_difference, rules->max_ring_difference};
    const double lengths[4] = {rules->field_of_view_mm, scanner->detection_depth_mm, scanner->tof_resolution_ps,
                               scanner->crystal_mu_per_mm};
    char digest[lr_sha256_chars];
    struct lr_sha256 sha;
    lr_sha256_begin(&sha);
    lr_sha256_add(&sha, whole, sizeof(whole));
    lr_sha256_add(&sha, lengths, sizeof(lengths));
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        const int places[3] = {module->position, module->ring, module->first_crystal_ring};
        lr_sha256_add(&sha, module->centre_mm, sizeof(module->centre_mm));
        lr_sha256_add(&sha, module->u, sizeof(module->u));
        lr_sha256_add(&sha, module->v, sizeof(module->v));
        lr_sha256_add(&sha, module->normal, sizeof(module->normal));
        lr_sha256_add(&sha, module->crystals, sizeof(module->crystals));
        lr_sha256_add(&sha, module->pitch_mm, sizeof(module->pitch_mm));
        lr_sha256_add(&sha, module->face_mm, sizeof(module->face_mm));
        lr_sha256_add(&sha, &module->depth_mm, sizeof(module->depth_mm));
        lr_sha256_add(&sha, places, sizeof(places));
        if (module->layer > 0) /* scanners without layers thus have the keys of earlier versions */
            lr_sha256_add(&sha, &module->layer, sizeof(module->layer));
        if (module->mu_per_mm > 0) lr_sha256_add(&sha, &module->mu_per_mm, sizeof(module->mu_per_mm));
    }
    lr_sha256_add(&sha, params->lors->pairs, (size_t)params->lors->num_pairs * sizeof(*params->lors->pairs));
    lr_sha256_add(&sha, params->lors->offsets, (size_t)(params->lors->num_pairs + 1) * sizeof(*params->lors->offsets));
    struct lr_text text = {.what = "a file's head", .log = params->log};
    const struct lr_c_locale locale = lr_c_locale_enter();
    (void)lr_text_print(&text, "version %s; scanner %s%s%s", lr_version(), scanner->name != NULL ? scanner->name : "",
                        LR_KEY_CONTENTS, lr_sha256_end(&sha, digest));

    const lr_grid none = {{0}, {0}, {0}}, *grid = params->grid != NULL ? params->grid : &none;
    (void)lr_text_print(&text, "; grid %d,%d,%d of %.17g,%.17g,%.17g mm at %.17g,%.17g,%.17g", grid->size[0],
                        grid->size[1], grid->size[2], grid->voxel_mm[0], grid->voxel_mm[1], grid->voxel_mm[2],
                        grid->origin_mm[0], grid->origin_mm[1], grid->origin_mm[2]);
    (void)lr_text_print(&text, "; %s; factors %s", params->description != NULL ? params->description : "",
                        params->factors != NULL ? params->factors : "none");
    const lr_operator_info *info = params->info;
    if (info != NULL) {
        (void)lr_text_print(&text, "; backend %s, mode %s, rays %d, samples %d,%d,%d, steps of attenuation %d",
                            info->backend, info->mode == LR_MODE_EXACT ? "exact" : "sampled", info->rays,
                            info->samples[0], info->samples[1], info->samples[2], info->mu_steps);
    }
    for (int k = 0; k < params->num_inputs; k++) {
        const lr_matrix_input *input = &params->inputs[k];
        lr_sha256_begin(&sha);
        lr_sha256_add(&sha, input->bytes, (size_t)input->num_bytes);
        (void)lr_text_print(&text, "; %s%s%s", input->name, LR_KEY_CONTENTS, lr_sha256_end(&sha, digest));
    }

    static const lr_selection all;
    const lr_selection *part = params->part != NULL ? params->part : &all;
    const int64_t range[2] = {params->begin, num_rows};
    lr_sha256_begin(&sha);
    lr_sha256_add(&sha, range, sizeof(range));
    add_list(&sha, params->voxels, params->num_voxels, sizeof(*params->voxels));
    add_list(&sha, params->points_mm, params->num_points, sizeof(*params->points_mm));
    add_list(&sha, part->lors, part->num_lors, sizeof(*part->lors));
    add_list(&sha, part->pairs, part->num_pairs, sizeof(*part->pairs));
    (void)lr_text_print(&text, "; rows of %s%s%s; threshold %.17g",
                        params->by_lor         ? "LORs"
                        : params->grid != NULL ? "voxels"
                                               : "points",
                        LR_KEY_CONTENTS, lr_sha256_end(&sha, digest), params->threshold);
    if (params->share != NULL) {
        (void)lr_text_print(&text, "; part %lld of %lld", (long long)params->share->number,
                            (long long)params->share->parts);
    }
    lr_c_locale_leave(locale);
    if (text.failed) {
        free(text.chars);
        return NULL;
    }
    return text.chars;
}

/* --- parts --- */

/* Returns how many rows the caller has announced. */
static int64_t matrix_num_rows(const lr_matrix_writer_params *params)
{
    if (params->by_lor) return lr_selection_count(params->lors, params->part);
    if (params->grid == NULL) return params->num_points;
    return params->voxels != NULL ? params->num_voxels : params->end - params->begin;
}

/* --- size --- */

/* Average lengths of items in a text file, in characters. */
#define VALUE_CHARS 13.5  /* a value with 9 significant digits */
#define PLACE_CHARS 3.5   /* a coordinate in mm */
#define CRYSTAL_CHARS 1.5 /* a module's number, or a crystal's row or column */

/* Size of column numbers and values after deflate, divided by their size before. Matrices of presets have 0.45 to
 * 0.48. */
#define DEFLATED 0.5

/* Sizes in bytes: of an element and of a LOR in STIR's files, and of a row's number of elements in the store. */
enum { STIR_ELEMENT_BYTES = 10, STIR_LOR_BYTES = 20, COUNT_BYTES = 8 };

/* Returns the number of digits that most whole numbers below `end` have. */
static double digits(double end)
{
    return end > 1.0 ? ceil(log10(end)) : 1.0;
}

lr_matrix_size lr_matrix_expect_size_sized(size_t given_bytes, const lr_matrix_writer_params *given, double rows,
                                           double elements)
{
    LR_TAKE(lr_matrix_writer_params, params, given, given_bytes);
    const double columns =
        params->by_lor && params->grid != NULL ? (double)lr_grid_num_voxels(params->grid) : (double)params->lors->count;
    const bool is_wide = fmax(columns, elements) > (double)INT32_MAX;
    const double width = is_wide ? 8.0 : 4.0, value = sizeof(float);
    const double part = elements * (width + value) + rows * COUNT_BYTES;
    const double plain = elements * (width + value) + rows * width;
    switch (params->format) {
    case LR_MATRIX_TSV: {
        const double separators = 11.0;
        const double bytes =
            elements * (digits(rows) + 3.0 * PLACE_CHARS + 6.0 * CRYSTAL_CHARS + VALUE_CHARS + separators);

        return (lr_matrix_size){bytes, bytes};
    }
    case LR_MATRIX_STIR: {
        const double bytes = elements * STIR_ELEMENT_BYTES + rows * STIR_LOR_BYTES;
        return (lr_matrix_size){bytes, bytes};
    }
    case LR_MATRIX_MTX: {
        const double separators = 3.0;
        const double bytes = elements * (digits(rows) + digits(columns) + VALUE_CHARS + separators);
        return (lr_matrix_size){bytes, bytes + part};
    }
    case LR_MATRIX_NPZ: return (lr_matrix_size){plain, plain + part};
    default:
        return params->compress > 0 ? (lr_matrix_size){DEFLATED * plain, DEFLATED * plain + part}
                                    : (lr_matrix_size){plain, part + rows * width};
    }
}

/* A matrix has at least this fraction of the estimated number of elements. */
#define SURE_SHARE 0.8

struct lr_matrix_writer {
    lr_matrix_writer_params params; /* grid and points_mm are the writer's copies */
    lr_grid grid;
    double (*points_mm)[3];
    struct lr_matrix_content content; /* the rows in the store; num_rows, num_columns and share also hold for streams */
    char *share;                      /* owned: content.share */
    void *stream;                     /* a format that writes row by row, or NULL if rows go to the store */
    const struct lr_matrix_fns *fns;  /* functions of the stream */
    struct lr_matrix_store store;
    struct lr_row_entry entry; /* accepts single rows and blocks of rows */
    lr_matrix_written written;
    int64_t next_row;                  /* rows with smaller numbers have been written, or were left out because they are
                                          empty */
    int64_t next_place;                /* index of next_row in the list of announced rows */
    struct lr_selection_finder finder; /* finds the indices of LORs in that list */
    int64_t capacity;                  /* room in `kept` and `kept_values` */
    int64_t *kept;                     /* columns of a row's elements that are not dropped */
    double *kept_values;
};

/* --- parameters --- */

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
    if (params->resumes && (params->format == LR_MATRIX_TSV || params->format == LR_MATRIX_STIR)) {
        return lr_error(log, LR_USAGE, "%s: tsv and STIR's files cannot be gone on with: use HDF5, npz or mtx",
                        params->path ? params->path : "a matrix");
    }
    if (params->share != NULL && params->format != LR_MATRIX_HDF5 && params->format != LR_MATRIX_NPZ) {
        return lr_error(log, LR_USAGE, "%s: parts of a matrix are joined from HDF5 (.h5) and npz only",
                        params->path ? params->path : "a matrix");
    }
    if (params->grid != NULL) {
        LR_TRY(lr_grid_check(params->grid, params->log));
        LR_TRY(lr_selection_check(params->lors, params->part, params->log));
        if (params->by_lor) return LR_OK;
        const int64_t num_voxels = lr_grid_num_voxels(params->grid);
        if (params->voxels != NULL) {
            for (int64_t k = 0; k < params->num_voxels; k++) {
                const int64_t voxel = params->voxels[k], before = k > 0 ? params->voxels[k - 1] : -1;
                if (voxel <= before || voxel >= num_voxels) {
                    return lr_error(log, LR_USAGE,
                                    "voxel %lld of the matrix's rows comes after %lld: they must ascend and "
                                    "stay below %lld",
                                    (long long)voxel, (long long)before, (long long)num_voxels);
                }
            }
            return params->num_voxels > 0 ? LR_OK : lr_error(log, LR_USAGE, "a matrix file needs at least one voxel");
        }
        if (params->begin < 0 || params->begin >= params->end || params->end > num_voxels) {
            return lr_error(params->log, LR_USAGE,
                            "rows %lld to %lld of the matrix make no sense: the grid has rows 0 to %lld",
                            (long long)params->begin, (long long)params->end - 1, (long long)num_voxels - 1);
        }
        return LR_OK;
    }

    return params->num_points > 0 ? LR_OK : lr_error(log, LR_USAGE, "a matrix file needs at least one point");
}

/* Copies parameters that the caller may free before the writer is done. */
static lr_status copy_params(lr_matrix_writer *writer, const lr_matrix_writer_params *params)
{
    writer->params = *params;
    writer->content.params = &writer->params;
    writer->content.store = &writer->store;
    writer->content.num_columns = params->lors->count;
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
    writer->content.num_rows = matrix_num_rows(params);
    if (params->by_lor) writer->content.num_columns = lr_grid_num_voxels(params->grid);
    if (params->share != NULL) {
        /* The line by which the file identifies itself as a part. The key of the whole matrix ends the line. */
        const lr_matrix_part *share = params->share;
        lr_matrix_writer_params whole = *share->whole;
        whole.begin = whole.grid != NULL ? whole.begin : 0;
        const int64_t rows = matrix_num_rows(&whole);
        char *key = matrix_key(&whole, rows);
        if (key == NULL) return LR_FAILED;
        struct lr_text text = {.what = "a file's head", .log = params->log};
        (void)lr_text_print(&text, "part %lld of %lld, from row %lld of %lld; ", (long long)share->number,
                            (long long)share->parts, (long long)share->rows_before, (long long)rows);
        (void)lr_text_add(&text, key, strlen(key));
        free(key);
        writer->share = text.chars;
        writer->content.share = text.chars;
        if (text.failed) return LR_FAILED;
    }
    writer->finder = (struct lr_selection_finder){.lors = params->lors, .selection = params->part};
    return LR_OK;
}

/* --- making --- */

static void release(lr_matrix_writer *writer)
{
    lr_free_all(writer->points_mm, writer->share, writer->kept, writer->kept_values, writer);
}

static lr_status check_npz(lr_matrix_writer *writer, int64_t elements)
{
    return writer->params.format == LR_MATRIX_NPZ ? lr_matrix_npz_check(&writer->content, elements) : LR_OK;
}

lr_matrix_writer *lr_matrix_writer_create_within(const lr_matrix_writer_params *params, int64_t index_limit)
{
    if (check_params(params) != LR_OK) return NULL;
    /* A missing HDF5 plugin is reported before the rows are computed, because the computation takes long. */
    if (params->format == LR_MATRIX_HDF5 && lr_plugin_hdf5(params->log) == NULL) return NULL;
    lr_matrix_writer *writer = lr_alloc(1, sizeof(*writer), "a matrix writer", params->log);
    if (writer == NULL) return NULL;
    writer->content.index_limit = index_limit;
    bool done = copy_params(writer, params) == LR_OK;
    const bool stir = params->format == LR_MATRIX_STIR;
    if (done && (stir || params->format == LR_MATRIX_TSV)) {
        writer->fns = stir ? &lr_matrix_stir_fns : &lr_matrix_tsv_fns;
        writer->stream = writer->fns->create(&writer->params);
        done = writer->stream != NULL;
    } else if (done) {
        done = check_npz(writer, (int64_t)(SURE_SHARE * fmin(params->expected_elements, 1e18))) == LR_OK;
        char *key = done ? matrix_key(&writer->params, writer->content.num_rows) : NULL;
        const struct lr_matrix_store_params store = {
            .path = params->path,
            .key = key,
            .num_rows = writer->content.num_rows,
            .wide =
                writer->content.num_columns > writer->content.index_limit ||
                (params->format == LR_MATRIX_HDF5 && params->expected_elements > (double)writer->content.index_limit),
            .resumes = params->resumes,
            .log = params->log,
        };
        done = key != NULL && lr_matrix_store_open(&writer->store, &store) == LR_OK;
        free(key);
        writer->store.params.key = NULL; /* the key was freed above; only lr_matrix_store_open reads it */
        writer->next_place = done ? writer->store.totals.rows : 0;
    }
    if (!done) {
        release(writer);
        return NULL;
    }
    return writer;
}

lr_matrix_writer *lr_matrix_writer_create_sized(size_t given_bytes, const lr_matrix_writer_params *given)
{
    LR_TAKE(lr_matrix_writer_params, params, given, given_bytes);
    if (params->share == NULL) return lr_matrix_writer_create_within(params, INT32_MAX);
    LR_TAKE(lr_matrix_writer_params, whole, params->share->whole, given_bytes);
    lr_matrix_part share = *params->share;
    lr_matrix_writer_params with = *params;
    share.whole = whole;
    with.share = &share;
    lr_matrix_writer *writer = lr_matrix_writer_create_within(&with, INT32_MAX);
    if (writer != NULL) writer->params.share = NULL; /* share points to memory of this function */
    return writer;
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

static lr_status take(void *user, const lr_row *row)
{
    lr_matrix_writer *writer = user;
    const lr_matrix_writer_params *params = &writer->params;
    /* The row's index in the list of announced rows; -1 if it is not in the list. */
    int64_t place = row->row - params->begin;
    if (params->by_lor) {
        place = row->row >= 0 && row->row < params->lors->count ? lr_selection_find(&writer->finder, row->row) : -1;
    } else if (params->voxels != NULL) {
        place = writer->next_place;
        while (place < params->num_voxels && params->voxels[place] < row->row) place++;
        if (place == params->num_voxels || params->voxels[place] != row->row) place = -1;
    }

    /* A wrong row is an error of the program that computes rows. Without this check, the row would corrupt the file. */
    if (row->row < writer->next_row || place < writer->next_place || place >= writer->content.num_rows ||
        row->count < 0) {
        return lr_error(params->log, LR_USAGE, "row %lld came to %s out of order: %lld of %lld rows are there",
                        (long long)row->row, params->path, (long long)writer->next_place,
                        (long long)writer->content.num_rows);
    }
    int64_t before = -1;
    double smallest = INFINITY, largest = 0.0;
    for (int64_t n = 0; n < row->count; n++) {
        const double value = row->probability[n];
        if (row->lor[n] <= before || row->lor[n] >= writer->content.num_columns || !isfinite(value)) {
            const char *what = params->by_lor ? "voxel" : "LOR";
            return lr_error(params->log, LR_USAGE, "row %lld for %s has %s %lld with probability %g after %s %lld",
                            (long long)row->row, params->path, what, (long long)row->lor[n], value, what,
                            (long long)before);
        }
        before = row->lor[n];
        smallest = value < smallest ? value : smallest;
        largest = value > largest ? value : largest;
    }

    const double wanted = params->threshold * largest;
    const double least = smallest < wanted ? wanted : -INFINITY; /* -INFINITY: all elements are kept */
    writer->written.empty_rows += row->count == 0;
    writer->next_row = row->row + 1;
    writer->next_place = place + 1;
    if (writer->stream != NULL) {
        lr_matrix_written *written = &writer->written;
        if (row->count > writer->capacity) {
            lr_free_all(writer->kept, writer->kept_values);
            writer->kept = lr_alloc(2 * row->count, sizeof(*writer->kept), "a matrix row", params->log);
            writer->kept_values = lr_alloc(2 * row->count, sizeof(*writer->kept_values), "a matrix row", params->log);
            writer->capacity = writer->kept != NULL && writer->kept_values != NULL ? 2 * row->count : 0;
            if (writer->capacity == 0) return LR_FAILED;
        }
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

    LR_TRY(lr_matrix_store_pass(&writer->store, place));
    LR_TRY(lr_matrix_store_append(&writer->store, row, least));
    return check_npz(writer, writer->store.totals.elements);
}

/* If an element is wrong, `take` gets the rows one by one, because the message of `take` can name the element. */
static lr_status take_block(void *user, const struct lr_row_block *block)
{
    lr_matrix_writer *writer = user;
    const lr_matrix_writer_params *params = &writer->params;
    const int64_t num = block->num_rows;
    /* The store takes the whole block if its rows are consecutive and begin where the rows in the store end. */
    bool one_by_one = !(num > 0 && writer->stream == NULL && !params->by_lor && params->voxels == NULL &&
                        params->threshold == 0.0 && block->rows[0].row - params->begin == writer->next_place &&
                        writer->next_place + num <= writer->content.num_rows);
    for (int64_t k = 1; k < num && !one_by_one; k++) one_by_one = block->rows[k].row != block->rows[k - 1].row + 1;
    if (!one_by_one) {
        LR_TRY(lr_matrix_store_append_block(&writer->store, block, writer->content.num_columns, &one_by_one));
        for (int64_t k = 0; k < num && !one_by_one; k++) {
            writer->written.empty_rows += block->rows[k].count == 0;
            writer->next_row = block->rows[k].row + 1;
            writer->next_place++;
        }
        LR_TRY(check_npz(writer, writer->store.totals.elements));
    }

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

lr_status lr_matrix_writer_finish(lr_matrix_writer *writer)
{
    lr_status status = LR_OK;
    if (writer->stream != NULL) {
        status = writer->fns->finish(writer->stream);
    } else {
        status = writer->store.output.error == 0 ? LR_OK : LR_FAILED;
        if (status == LR_OK) status = lr_matrix_store_pass(&writer->store, writer->content.num_rows);
        if (status == LR_OK) status = lr_matrix_store_checkpoint(&writer->store);
        if (status == LR_OK) status = lr_matrix_format_write(&writer->content);
        if (status == LR_OK)
            lr_matrix_store_remove(&writer->store);
        else
            lr_matrix_store_abandon(&writer->store);
    }
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
