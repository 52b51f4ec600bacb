/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/log.h"
#include "base/mem.h"
#include "io/matrix/reader.h"
#include "io/scanners/hdf5_scanner.h"

#include <stdlib.h>
#include <string.h>

/* Bytes that deflate may make of one. */

static const char *const names[] = {"/matrix/indptr", "/matrix/indices", "/matrix/data"};

struct csr {
    struct lr_hdf5_input in;
    int64_t sizes[3];
    int64_t *voxels, *lors;
    int32_t *pairs;
    double (*points_mm)[3];
    char backend[64], description[1024], factors[1 << 14], share[1 << 15];
};

static lr_status refuse(const struct csr *csr, const char *what)
{
    return lr_error(csr->in.log, LR_BAD_INPUT, "%s: %s: see docs/formats/matrix.md", csr->in.path, what);
}

static lr_status read_numbers(void *self, enum lr_matrix_array array, const int64_t range[2], void *numbers)
{
    const struct csr *csr = self;
    LR_TRY(lr_hdf5_input_need(&csr->in));
    return lr_hdf5_get_part(&csr->in, names[array], array == LR_ARRAY_VALUES ? LR_HDF5_DOUBLE : LR_HDF5_INT64, range,
                            numbers);
}

static lr_status check_scanner(void *self, const lr_lors *lors)
{
    const struct csr *csr = self;
    return lr_hdf5_check_scanner(&csr->in, lors);
}

static void close_file(void *self)
{
    struct csr *csr = self;
    lr_hdf5_input_close(&csr->in);
    free(csr->voxels);
    free(csr->lors);
    free(csr->pairs);
    free(csr->points_mm);
    free(csr);
}

/* --- attributes --- */

static int get_int(const struct csr *csr, const char *name)
{
    int number = 0;
    return lr_hdf5_get_int(&csr->in, "/matrix", name, 1, &number) && number > 0 ? number : 0;
}

static double get_number(const struct csr *csr, const char *name)
{
    double number = 0.0;
    return lr_hdf5_get_double(&csr->in, "/matrix", name, 1, &number) ? number : 0.0;
}

/* A list that the file has of itself, or NULL. width: numbers of an entry. Lists are not compressed,
 * so that no more memory is taken than the file has bytes. */
static lr_status get_list(struct csr *csr, const char *name, enum lr_hdf5_number number, int width, void **list,
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

static lr_status read_part(struct csr *csr, lr_matrix_file_info *info)
{
    void *lors, *pairs;
    lr_status status = get_list(csr, "/matrix/lors", LR_HDF5_INT64, 1, &lors, &info->part.num_lors);
    csr->lors = lors;
    LR_TRY(status);
    status = get_list(csr, "/matrix/pairs", LR_HDF5_INT32, 1, &pairs, &info->part.num_pairs);
    csr->pairs = pairs;
    info->part.lors = csr->lors;
    info->part.pairs = csr->pairs;
    return status;
}

static lr_status read_rows(struct csr *csr, lr_matrix_file_info *info)
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
        info->is_described = false; /* of another program */
        return LR_OK;
    }
    if (!lr_hdf5_get_int(&csr->in, "/matrix", "grid_size", 3, info->grid.size) ||
        !lr_hdf5_get_double(&csr->in, "/matrix", "grid_voxel_mm", 3, info->grid.voxel_mm) ||
        !lr_hdf5_get_double(&csr->in, "/matrix", "grid_origin_mm", 3, info->grid.origin_mm))
        return refuse(csr, "the attributes of its grid are missing");
    (void)lr_hdf5_get_int64(&csr->in, "/matrix", "row_begin", 1, &info->row_begin);
    const lr_status status = get_list(csr, "/matrix/voxels", LR_HDF5_INT64, 1, &list, &count);
    csr->voxels = list;
    info->voxels = csr->voxels;
    LR_TRY(status);
    return count == info->num_rows ? read_part(csr, info) : refuse(csr, "it must list one voxel for each row");
}

static void read_model(struct csr *csr, lr_matrix_file_info *info)
{
    char mode[16] = "";
    (void)lr_hdf5_get_string(&csr->in, "/matrix", "mode", mode, sizeof(mode));
    (void)lr_hdf5_get_string(&csr->in, "/matrix", "backend", csr->backend, sizeof(csr->backend));
    (void)lr_hdf5_get_string(&csr->in, "/matrix", "description", csr->description, sizeof(csr->description));
    strcpy(csr->factors, "none");
    (void)lr_hdf5_get_string(&csr->in, "/matrix", "factors", csr->factors, sizeof(csr->factors));
    info->mode = strcmp(mode, "exact") == 0     ? LR_MODE_EXACT
                 : strcmp(mode, "sampled") == 0 ? LR_MODE_SAMPLED
                                                : LR_MODE_AUTO;
    info->rays = get_int(csr, "rays");
    info->mu_steps = get_int(csr, "mu_steps");
    if (!lr_hdf5_get_int(&csr->in, "/matrix", "samples", 3, info->samples))
        memset(info->samples, 0, sizeof(info->samples));
    info->threshold = get_number(csr, "threshold");
    info->dropped_sum = get_number(csr, "dropped_sum");
    info->sum = get_number(csr, "sum");
    (void)lr_hdf5_get_int64(&csr->in, "/matrix", "dropped_elements", 1, &info->dropped_elements);
    (void)lr_hdf5_get_string(&csr->in, "/matrix", "part", csr->share, sizeof(csr->share));
    info->share = csr->share;
    info->backend = csr->backend;
    info->description = csr->description;
    info->factors = csr->factors;
}

/* --- arrays --- */

static lr_status open_array(struct csr *csr, int k)
{
    int64_t shape[2];
    LR_TRY(lr_hdf5_shape(&csr->in, names[k], k != LR_ARRAY_VALUES, shape, 1));
    csr->sizes[k] = shape[0];
    return lr_hdf5_need_stored(&csr->in, names[k], shape);
}

static lr_status open_arrays(struct csr *csr, lr_matrix_file_info *info)
{
    char encoding[32] = "";
    int64_t shape[2];
    (void)lr_hdf5_get_string(&csr->in, "/matrix", "encoding-type", encoding, sizeof(encoding));
    if (strcmp(encoding, "csr_matrix") != 0 || !lr_hdf5_get_int64(&csr->in, "/matrix", "shape", 2, shape))
        return refuse(csr, "/matrix must be a CSR matrix with a shape");
    for (int k = 0; k < 3; k++) LR_TRY(open_array(csr, k));
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
    return LR_OK;
}

static lr_status open_matrix(struct csr *csr, lr_matrix_file_info *info)
{
    if (!lr_hdf5_has(&csr->in, "/matrix")) return refuse(csr, "there is no group /matrix");
    LR_TRY(open_arrays(csr, info));
    info->is_described = true;
    read_model(csr, info);
    LR_TRY(read_rows(csr, info));
    return lr_hdf5_input_check(&csr->in);
}

lr_status lr_matrix_hdf5_open(struct lr_matrix_source *source)
{
    struct csr *csr = lr_alloc(1, sizeof(*csr), "a matrix file", source->log);
    if (csr == NULL) return LR_FAILED;
    const lr_status opened = lr_hdf5_input_open(&csr->in, source->path, source->log);
    if (opened != LR_OK) {
        free(csr);
        return opened;
    }
    const lr_status found = open_matrix(csr, &source->info);
    if (found != LR_OK) {
        close_file(csr);
        return found;
    }
    source->self = csr;
    source->read = read_numbers;
    source->check_scanner = check_scanner;
    source->close = close_file;
    return LR_OK;
}
