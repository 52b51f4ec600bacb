/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Matrix rows as a CSR matrix in HDF5 (docs/formats/matrix.md). The layout is that of scipy and anndata. Links give the
 * arrays a second name, after the GraphBLAS binsparse draft (graphblas.org/binsparse-specification).
 *
 * The elements of a large matrix are not copied. These elements stay where the store has written them, and HDF5 records
 * their offsets as the chunks of two datasets. All other data come before or after them. */
#include "base/log.h"
#include "base/mem.h"
#include "io/matrix/writer.h"
#include "io/scanners/scanner_formats.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = lr_store_block_elements, PIECE = 1 << 16 };

struct csr {
    const struct lr_matrix_content *content;
    struct lr_hdf5_output out;
    struct lr_hdf5_layout layout;
    lr_hdf5_id group;
    bool wide;   /* indices and indptr are int64 */
    bool adopts; /* the elements stay at the offsets that the store gave them */
};

static bool put_text(const struct csr *csr, const char *name, const char *text)
{
    return csr->out.h5->put_string(csr->group, name, text != NULL ? text : "");
}

static bool put_int(const struct csr *csr, const char *name, int64_t number)
{
    return csr->out.h5->put_numbers(csr->group, name, LR_HDF5_INT64, 0, &number);
}

/* Writes everything except indptr and the elements. */
static bool put_head(struct csr *csr)
{
    const struct lr_matrix_content *content = csr->content;
    const lr_matrix_writer_params *params = content->params;
    const struct lr_matrix_totals *totals = &content->store->totals;
    const int64_t shape[2] = {content->num_rows, content->num_columns};
    const struct lr_hdf5_fns *h5 = csr->out.h5;
    if (!lr_hdf5_put_scanner(&csr->out, params->lors->scanner)) return false;
    const lr_hdf5_id lors = lr_hdf5_put_lors(&csr->out, params->lors);
    if (lors < 0 || !h5->group_close(lors)) return false;
    csr->group = h5->group_create(csr->out.file, "matrix");
    const lr_hdf5_id group = csr->group;
    if (group < 0 || !put_text(csr, "encoding-type", "csr_matrix") || !put_text(csr, "encoding-version", "0.1.0") ||
        !h5->put_numbers(group, "shape", LR_HDF5_INT64, 2, shape) ||
        !put_text(csr, "scanner", params->lors->scanner->name) ||
        !put_text(csr, "units",
                  "data: probability that a pair of photons emitted uniformly in the voxel, or at "
                  "the point, is detected by the LOR") ||
        !put_text(csr, "columns", params->by_lor ? "voxels, ix + nx * (iy + ny * iz)" : "LORs in the order of /lor") ||
        !put_text(csr, "description", params->description) ||
        !put_text(csr, "factors", params->factors != NULL ? params->factors : "none"))
        return false;

    /* The rows: points, LORs or voxels. LORs and module pairs are listed only if some of them are left out. */
    if (params->grid == NULL) {
        if (!put_text(csr, "rows", "points") ||
            !h5->put_array(group, "points_mm", LR_HDF5_DOUBLE, (int64_t[2]){params->num_points, 3}, params->points_mm))
            return false;
    } else {
        static const lr_selection all;
        const lr_selection *part = params->part != NULL ? params->part : &all;
        const int64_t num_lors[2] = {part->num_lors, 0}, num_pairs[2] = {part->num_pairs, 0};
        const lr_grid *grid = params->grid;
        if (!h5->put_numbers(group, "grid_size", LR_HDF5_INT32, 3, grid->size) ||
            !h5->put_numbers(group, "grid_voxel_mm", LR_HDF5_DOUBLE, 3, grid->voxel_mm) ||
            !h5->put_numbers(group, "grid_origin_mm", LR_HDF5_DOUBLE, 3, grid->origin_mm) ||
            (part->lors != NULL && !h5->put_array(group, "lors", LR_HDF5_INT64, num_lors, part->lors)) ||
            (part->lors == NULL && part->pairs != NULL &&
             !h5->put_array(group, "pairs", LR_HDF5_INT32, num_pairs, part->pairs)) ||
            !put_text(csr, "rows", params->by_lor ? "LORs" : "voxels"))
            return false;
        if (!params->by_lor &&
            !(params->voxels == NULL
                  ? put_int(csr, "row_begin", params->begin)
                  : h5->put_array(group, "voxels", LR_HDF5_INT64, (int64_t[2]){params->num_voxels, 0}, params->voxels)))
            return false;
    }

    const lr_operator_info *info = params->info;
    return (info == NULL || (put_text(csr, "backend", info->backend) &&
                             put_text(csr, "mode", info->mode == LR_MODE_EXACT ? "exact" : "sampled") &&
                             put_int(csr, "rays", info->rays) && put_int(csr, "mu_steps", info->mu_steps) &&
                             h5->put_numbers(group, "samples", LR_HDF5_INT32, 3, info->samples))) &&
           (content->share == NULL || put_text(csr, "part", content->share)) &&
           h5->put_numbers(group, "sum", LR_HDF5_DOUBLE, 0, &totals->sum) &&
           h5->put_numbers(group, "threshold", LR_HDF5_DOUBLE, 0, &params->threshold) &&
           put_int(csr, "dropped_elements", totals->dropped_elements) &&
           h5->put_numbers(group, "dropped_sum", LR_HDF5_DOUBLE, 0, &totals->dropped_sum);
}

/* Returns false if reading from the store has failed. The store has logged this failure. Nothing more is then written,
 * and no message blames HDF5. */
static bool was_read(struct csr *csr, lr_status status)
{
    if (status != LR_OK && csr->out.output.error == 0) csr->out.output.error = ECANCELED;
    return status == LR_OK;
}

static bool put_starts(struct csr *csr)
{
    struct lr_matrix_store *store = csr->content->store;
    struct lr_matrix_counts counts = {.store = store};
    const struct lr_hdf5_fns *h5 = csr->out.h5;
    struct lr_hdf5_series series = {.number = csr->wide ? LR_HDF5_INT64 : LR_HDF5_INT32};
    int64_t *numbers = lr_alloc(PIECE, sizeof(*numbers), "row starts", store->params.log);
    int32_t *narrow = lr_alloc(PIECE, sizeof(*narrow), "row starts", store->params.log);
    int64_t start = 0, num = 1;
    bool done =
        numbers != NULL && narrow != NULL &&
        h5->series_open(&series, csr->group, "indptr", csr->content->num_rows + 1, csr->content->params->compress);
    const bool was_opened = done;
    done = done && h5->series_append(&series, &(int64_t){0}, 1); /* 0 is the same for int32 and int64 */
    while (done && num > 0) {
        done = was_read(csr, lr_matrix_counts_read(&counts, PIECE, numbers, &num));
        for (int64_t k = 0; done && k < num; k++) {
            start += numbers[k];
            numbers[k] = start;
            narrow[k] = (int32_t)start;
        }
        done = done && h5->series_append(&series, csr->wide ? (void *)numbers : (void *)narrow, num);
    }
    if (was_opened) done = h5->series_close(&series) && done;
    lr_free_all(numbers, narrow);
    return done && start == store->totals.elements;
}

/* Makes a dataset of chunks that the file already has, one in each block of the store. */
static bool adopt(struct csr *csr, const char *name, enum lr_hdf5_number number, int64_t offset)
{
    const struct lr_hdf5_placed placed = {number, csr->content->store->totals.elements, BLOCK};
    struct lr_hdf5_layout *layout = &csr->layout;
    layout->next = layout->begin + (uint64_t)offset;
    layout->chunk_bytes = (uint64_t)(BLOCK * lr_hdf5_number_bytes(number));
    return csr->out.h5->put_placed(csr->group, name, &placed, layout) && layout->next == layout->end + (uint64_t)offset;
}

/* Writes either the column numbers or the values from the store. */
static bool copy_array(struct csr *csr, bool columns, void *numbers)
{
    struct lr_matrix_store *store = csr->content->store;
    const int64_t total = store->totals.elements;
    const struct lr_hdf5_fns *h5 = csr->out.h5;
    struct lr_hdf5_series series = {.number = !columns ? LR_HDF5_FLOAT : csr->wide ? LR_HDF5_INT64 : LR_HDF5_INT32};
    bool done =
        h5->series_open(&series, csr->group, columns ? "indices" : "data", total, csr->content->params->compress);
    for (int64_t at = 0; done && at < total; at += BLOCK) {
        const struct lr_matrix_piece piece = {.begin = at,
                                              .count = total - at < BLOCK ? total - at : BLOCK,
                                              .is_wide = csr->wide,
                                              .columns = columns ? numbers : NULL,
                                              .values = columns ? NULL : numbers};
        done = was_read(csr, lr_matrix_store_read(store, &piece)) && h5->series_append(&series, numbers, piece.count);
    }
    return h5->series_close(&series) && done;
}

/* --- the file --- */

lr_status lr_matrix_hdf5_write(const struct lr_matrix_content *content)
{
    struct lr_matrix_store *store = content->store;
    const int64_t elements = store->totals.elements;
    struct csr csr = {.content = content, .group = -1};
    csr.wide = lr_matrix_is_wide(content->num_columns, elements, content->index_limit);
    const uint16_t one = 1;
    const bool is_little_endian = *(const unsigned char *)&one == 1;
    csr.adopts =
        content->params->compress == 0 && csr.wide == store->params.wide && elements > BLOCK && is_little_endian;
    const lr_matrix_writer_params *params = content->params;
    if (csr.adopts) {
        LR_TRY(lr_matrix_store_trim(store));
        const int64_t blocks = (elements + BLOCK - 1) / BLOCK;
        csr.layout.begin = lr_store_head_bytes;
        csr.layout.stride = BLOCK * ((store->params.wide ? 8 : 4) + sizeof(float));
        csr.layout.end = csr.layout.begin + (uint64_t)blocks * csr.layout.stride;
        csr.out.output = store->output;
        store->output = (struct lr_output){.file = -1, .log = params->log};
        LR_TRY(lr_hdf5_output_begin(&csr.out, "system matrix", &csr.layout));
    } else {
        LR_TRY(lr_hdf5_output_open(&csr.out, params->path, "system matrix", params->log));
        csr.out.output.source_stays = true;
    }
    bool done = put_head(&csr);
    if (done && csr.adopts) {
        const enum lr_hdf5_number index_type = csr.wide ? LR_HDF5_INT64 : LR_HDF5_INT32;
        done = adopt(&csr, "indices", index_type, 0) &&
               adopt(&csr, "data", LR_HDF5_FLOAT, BLOCK * lr_hdf5_number_bytes(index_type));
    } else if (done) {
        void *numbers = lr_alloc(BLOCK, sizeof(int64_t), "matrix elements", csr.out.output.log);
        done = numbers != NULL && copy_array(&csr, true, numbers) && copy_array(&csr, false, numbers);
        free(numbers);
    }
    done = done && put_starts(&csr);
    if (done) {
        /* The same arrays under the names of binsparse. */
        static const char *const links[3][2] = {
            {"indptr", "pointers_to_1"}, {"indices", "indices_1"}, {"data", "values"}};
        const char *width = csr.wide ? "int64" : "int32";
        char text[512];
        snprintf(text, sizeof(text),
                 "{\"binsparse\": {\"version\": \"0.1\", \"format\": \"CSR\", \"shape\": [%lld, %lld], "
                 "\"number_of_stored_values\": %lld, \"data_types\": {\"pointers_to_1\": \"%s\", "
                 "\"indices_1\": \"%s\", \"values\": \"float32\"}}}",
                 (long long)content->num_rows, (long long)content->num_columns, (long long)elements, width, width);
        const struct lr_hdf5_fns *h5 = csr.out.h5;
        const lr_hdf5_id group = h5->group_create(csr.out.file, "binsparse");
        done = group >= 0 && h5->put_string(group, "binsparse", text);
        for (int k = 0; k < 3 && done; k++) done = h5->link(csr.group, group, links[k]);
        done = group >= 0 && h5->group_close(group) && done;
    }
    if (csr.group >= 0) csr.out.h5->group_close(csr.group);
    if (!done) {
        (void)lr_hdf5_output_fail(&csr.out, "the matrix");
        lr_hdf5_output_abandon(&csr.out);
        return LR_FAILED;
    }
    return lr_hdf5_output_finish(&csr.out);
}

/* --- reading --- */

static const char *const names[] = {"/matrix/indptr", "/matrix/indices", "/matrix/data"};

struct csr_source {
    struct lr_hdf5_input in;
    int64_t sizes[3];
    int64_t *voxels, *lors;
    int32_t *pairs;
    double (*points_mm)[3];
    char backend[64], description[1024], factors[1 << 14], share[1 << 15];
};

static lr_status refuse(const struct csr_source *csr, const char *what)
{
    return lr_error(csr->in.log, LR_BAD_INPUT, "%s: %s: see docs/formats/matrix.md", csr->in.path, what);
}

static lr_status read_numbers(void *self, enum lr_matrix_array array, const int64_t range[2], void *numbers)
{
    const struct csr_source *csr = self;
    LR_TRY(lr_hdf5_input_need(&csr->in));
    const enum lr_hdf5_number number = array == LR_ARRAY_VALUES ? LR_HDF5_DOUBLE : LR_HDF5_INT64;
    return lr_hdf5_get_part(&csr->in, names[array], number, range, 1, numbers);
}

static lr_status check_scanner(void *self, const lr_lors *lors)
{
    const struct csr_source *csr = self;
    return lr_hdf5_check_scanner(&csr->in, lors);
}

static void close_file(void *self)
{
    struct csr_source *csr = self;
    lr_hdf5_input_close(&csr->in);
    lr_free_all(csr->voxels, csr->lors, csr->pairs, csr->points_mm, csr);
}

/* Reads a list of rows, LORs or pairs. *list: NULL if the file lacks it. width: numbers per entry. A list that would
 * take more memory than the file has bytes is refused, because this program does not compress lists. */
static lr_status get_list(struct csr_source *csr, const char *name, enum lr_hdf5_number number, int width, void **list,
                          int64_t *count)
{
    int64_t shape[2];
    *list = NULL;
    if (!lr_hdf5_has(&csr->in, name)) return LR_OK;
    const bool whole = number != LR_HDF5_DOUBLE;
    LR_TRY(lr_hdf5_shape(&csr->in, name, whole, shape, width > 1 ? 2 : 1));
    const int64_t bytes = number == LR_HDF5_INT32 ? 4 : 8;
    if ((width > 1 && shape[1] != width) || shape[0] > csr->in.file_bytes / (width * bytes))
        return refuse(csr, "a list of its rows or LORs is larger than the file");
    *count = shape[0];
    *list = lr_alloc(shape[0] * width, (size_t)bytes, "a list of rows", csr->in.log);
    return *list != NULL ? lr_hdf5_get(&csr->in, name, number, shape, *list) : LR_FAILED;
}

static lr_status read_rows(struct csr_source *csr, lr_matrix_file_info *info)
{
    char rows[32] = "";
    void *list;
    int64_t count = info->num_rows;
    (void)lr_hdf5_get_string(&csr->in, "/matrix", "rows", rows, sizeof(rows));
    info->by_lor = strcmp(rows, "LORs") == 0;
    if (strcmp(rows, "points") == 0) {
        const lr_status status = get_list(csr, "/matrix/points_mm", LR_HDF5_DOUBLE, 3, &list, &count);
        csr->points_mm = list;
        info->points_mm = (const double(*)[3])csr->points_mm;
        LR_TRY(status);
        return list != NULL && count == info->num_rows ? LR_OK : refuse(csr, "it must list one point for each row");
    }
    if (!info->by_lor && strcmp(rows, "voxels") != 0) {
        info->is_described = false; /* another program has written the file */
        return LR_OK;
    }
    if (!lr_hdf5_get_numbers(&csr->in, "/matrix", "grid_size", LR_HDF5_INT32, 3, info->grid.size) ||
        !lr_hdf5_get_numbers(&csr->in, "/matrix", "grid_voxel_mm", LR_HDF5_DOUBLE, 3, info->grid.voxel_mm) ||
        !lr_hdf5_get_numbers(&csr->in, "/matrix", "grid_origin_mm", LR_HDF5_DOUBLE, 3, info->grid.origin_mm))
        return refuse(csr, "the attributes of its grid are missing");
    (void)lr_hdf5_get_numbers(&csr->in, "/matrix", "row_begin", LR_HDF5_INT64, 1, &info->row_begin);
    lr_status status = get_list(csr, "/matrix/voxels", LR_HDF5_INT64, 1, &list, &count);
    info->voxels = csr->voxels = list;
    LR_TRY(status);
    if (count != info->num_rows) return refuse(csr, "it must list one voxel for each row");
    status = get_list(csr, "/matrix/lors", LR_HDF5_INT64, 1, &list, &info->part.num_lors);
    info->part.lors = csr->lors = list;
    LR_TRY(status);
    status = get_list(csr, "/matrix/pairs", LR_HDF5_INT32, 1, &list, &info->part.num_pairs);
    info->part.pairs = csr->pairs = list;
    return status;
}

static lr_status open_matrix(struct csr_source *csr, lr_matrix_file_info *info)
{
    if (!lr_hdf5_has(&csr->in, "/matrix")) return refuse(csr, "there is no group /matrix");
    char encoding[32] = "";
    int64_t shape[2];
    (void)lr_hdf5_get_string(&csr->in, "/matrix", "encoding-type", encoding, sizeof(encoding));
    if (strcmp(encoding, "csr_matrix") != 0 ||
        !lr_hdf5_get_numbers(&csr->in, "/matrix", "shape", LR_HDF5_INT64, 2, shape))
        return refuse(csr, "/matrix must be a CSR matrix with a shape");
    for (int k = 0; k < 3; k++) {
        int64_t size[2];
        LR_TRY(lr_hdf5_shape(&csr->in, names[k], k != LR_ARRAY_VALUES, size, 1));
        csr->sizes[k] = size[0];
        LR_TRY(lr_hdf5_need_stored(&csr->in, names[k], size));
    }
    info->num_rows = shape[0];
    info->num_columns = shape[1];
    info->num_elements = csr->sizes[LR_ARRAY_VALUES];
    if (shape[0] < 0 || shape[1] < 0 || csr->sizes[LR_ARRAY_STARTS] != shape[0] + 1 ||
        csr->sizes[LR_ARRAY_COLUMNS] != csr->sizes[LR_ARRAY_VALUES]) {
        return lr_error(csr->in.log, LR_BAD_INPUT,
                        "%s: a matrix of %lld rows needs %lld numbers in indptr, and as many in "
                        "indices as in data: they have %lld, %lld and %lld",
                        csr->in.path, (long long)shape[0], (long long)shape[0] + 1, (long long)csr->sizes[0],
                        (long long)csr->sizes[1], (long long)csr->sizes[2]);
    }

    info->is_described = true;
    char mode[16] = "";
    (void)lr_hdf5_get_string(&csr->in, "/matrix", "mode", mode, sizeof(mode));
    (void)lr_hdf5_get_string(&csr->in, "/matrix", "backend", csr->backend, sizeof(csr->backend));
    (void)lr_hdf5_get_string(&csr->in, "/matrix", "description", csr->description, sizeof(csr->description));
    strcpy(csr->factors, "none");
    (void)lr_hdf5_get_string(&csr->in, "/matrix", "factors", csr->factors, sizeof(csr->factors));
    info->mode = strcmp(mode, "exact") == 0     ? LR_MODE_EXACT
                 : strcmp(mode, "sampled") == 0 ? LR_MODE_SAMPLED
                                                : LR_MODE_AUTO;
    (void)lr_hdf5_get_numbers(&csr->in, "/matrix", "rays", LR_HDF5_INT32, 1, &info->rays);
    info->rays = info->rays > 0 ? info->rays : 0;
    (void)lr_hdf5_get_numbers(&csr->in, "/matrix", "mu_steps", LR_HDF5_INT32, 1, &info->mu_steps);
    info->mu_steps = info->mu_steps > 0 ? info->mu_steps : 0;
    if (!lr_hdf5_get_numbers(&csr->in, "/matrix", "samples", LR_HDF5_INT32, 3, info->samples))
        memset(info->samples, 0, sizeof(info->samples));
    (void)lr_hdf5_get_numbers(&csr->in, "/matrix", "threshold", LR_HDF5_DOUBLE, 1, &info->threshold);
    (void)lr_hdf5_get_numbers(&csr->in, "/matrix", "dropped_sum", LR_HDF5_DOUBLE, 1, &info->dropped_sum);
    (void)lr_hdf5_get_numbers(&csr->in, "/matrix", "sum", LR_HDF5_DOUBLE, 1, &info->sum);
    (void)lr_hdf5_get_numbers(&csr->in, "/matrix", "dropped_elements", LR_HDF5_INT64, 1, &info->dropped_elements);
    (void)lr_hdf5_get_string(&csr->in, "/matrix", "part", csr->share, sizeof(csr->share));
    info->share = csr->share;
    info->backend = csr->backend;
    info->description = csr->description;
    info->factors = csr->factors;
    LR_TRY(read_rows(csr, info));
    return lr_hdf5_input_check(&csr->in);
}

lr_status lr_matrix_hdf5_open(struct lr_matrix_source *source)
{
    struct csr_source *csr = lr_alloc(1, sizeof(*csr), "a matrix file", source->log);
    if (csr == NULL) return LR_FAILED;
    const lr_status opened = lr_hdf5_input_open(&csr->in, source->path, source->log);
    if (opened != LR_OK) {
        free(csr);
        return opened;
    }
    source->self = csr;
    source->read = read_numbers;
    source->check_scanner = check_scanner;
    source->close = close_file;
    return open_matrix(csr, &source->info);
}
