/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "operator/stored.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"
#include "operator/matrix.h"

#include <stdio.h>
#include <stdlib.h>

enum { SAMPLE_ROWS = 48 };

/* Least number of projections for which LR_STORE_AUTO keeps a matrix on processors (lr_stored_pays). */
#define LEAST_BY_ROWS 2.0
#define LEAST_BY_COLUMNS 8.0

struct stored {
    struct lr_backend inner;
    const struct lr_backend_params *params;
    struct lr_matrix matrix;
    struct lr_backend_fns fns; /* functions of this file, with the inner backend's name */
};

static lr_status stored_forward(void *self, const lr_selection *part, const lr_vector *image, lr_vector *values)
{
    const struct stored *stored = self;
    const struct lr_stored_lors lors = {stored->params->lors, part};
    LR_TRY(lr_progress_report(stored->params->progress, "projecting", 0.0, 1.0));
    return lr_matrix_forward(&stored->matrix, part != NULL ? &lors : NULL, image, values);
}

static lr_status stored_back(void *self, const lr_selection *part, const lr_vector *values, lr_vector *image)
{
    const struct stored *stored = self;
    const struct lr_stored_lors lors = {stored->params->lors, part};
    LR_TRY(lr_progress_report(stored->params->progress, "back-projecting", 0.0, 1.0));
    return lr_matrix_back(&stored->matrix, part != NULL ? &lors : NULL, values, image);
}

static lr_status stored_rows(void *self, const struct lr_rows *rows, const lr_row_sink *sink)
{
    const struct stored *stored = self;
    if (rows->grid == NULL) return stored->inner.fns->rows(stored->inner.self, rows, sink);
    struct lr_owned_row copy = {0};
    lr_status status = LR_OK;
    for (int64_t row = rows->begin; status == LR_OK && row < rows->end; row++) {
        status = lr_matrix_row(&stored->matrix, row, &copy);
        const lr_row view = lr_owned_row_view(&copy, row);
        status = status == LR_OK ? sink->take(sink->user, &view) : status;
    }
    lr_owned_row_finish(&copy);
    return status;
}

static lr_status stored_picture(void *self, const double point_mm[3], int module, lr_pixel *pixels)
{
    const struct stored *stored = self;
    return stored->inner.fns->picture(stored->inner.self, point_mm, module, pixels);
}

static void stored_destroy(void *self)
{
    struct stored *stored = self;
    stored->inner.fns->destroy(stored->inner.self);
    lr_matrix_finish(&stored->matrix);
    free(stored);
}

int64_t lr_stored_memory_limit(const struct lr_backend_params *params)
{
    return params->max_memory_bytes > 0 ? params->max_memory_bytes : lr_physical_memory() / 2;
}

static const char *bytes_in_words(int64_t bytes, char words[32])
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double amount = (double)bytes;
    int unit = 0;
    while (amount >= 1024.0 && unit < 4) {
        amount /= 1024.0;
        unit++;
    }
    snprintf(words, 32, unit > 0 ? "%.1f %s" : "%.0f %s", amount, units[unit]);
    return words;
}

/* --- the sample --- */

struct sampling {
    struct lr_matrix_sample sample;
    const lr_log *log;
};

static lr_status take_sample(void *user, const lr_row *row)
{
    struct sampling *sampling = user;
    struct lr_matrix_sample *sample = &sampling->sample;
    uint32_t *lor = lr_resize(sample->lor, sample->num_elements + row->count + 1, sizeof(*lor),
                              "a sample of the matrix", sampling->log);
    if (lor == NULL) return LR_FAILED;
    sample->lor = lor;
    for (int64_t k = 0; k < row->count; k++) lor[sample->num_elements++] = (uint32_t)row->lor[k];
    sample->num_rows++;
    return LR_OK;
}

/* --- the matrix --- */

struct generation {
    struct lr_matrix *matrix;
    const struct lr_backend_params *params;
    struct lr_progress_filter *progress_filter;
    int64_t num_rows;
    bool too_large;
};

/* Stops once the matrix has grown beyond the limit. It is called after rows up to `last_row`. */
static lr_status judge(struct generation *generation, int64_t last_row)
{
    if (generation->matrix->memory_bytes > lr_stored_memory_limit(generation->params)) {
        generation->too_large = true;
        return LR_FAILED;
    }
    return lr_progress_filter_report(generation->progress_filter, "rendering the matrix", (double)(last_row + 1),
                                     (double)generation->num_rows);
}

static lr_status take_row(void *user, const lr_row *row)
{
    struct generation *generation = user;
    LR_TRY(lr_matrix_append(generation->matrix, row));
    return judge(generation, row->row);
}

static lr_status take_block(void *user, const struct lr_row_block *block)
{
    struct generation *generation = user;
    LR_TRY(lr_matrix_append_block(generation->matrix, block));
    return judge(generation, block->rows[block->num_rows - 1].row);
}

/* Reports that the matrix is not stored. This is an error if it was required, else information. `what` ends with
 * "... needs". */
static lr_status decline(const struct lr_backend_params *params, const struct lr_stored_wish *wish, const char *what,
                         int64_t bytes)
{
    char needed[32], limit[32];
    bytes_in_words(bytes, needed);
    bytes_in_words(lr_stored_memory_limit(params), limit);
    if (wish->required) {
        return lr_error(params->log, LR_FAILED,
                        "%s %s of memory, more than the limit of %s: raise the memory limit, take "
                        "a coarser grid, or do not store the matrix",
                        what, needed, limit);
    }
    lr_info(params->log,
            "the matrix is computed anew in every projection: %s %s of memory, more than the "
            "limit of %s",
            what, needed, limit);
    return LR_OK;
}

/* Makes a matrix whose ranges balance the sample, and replaces the backend by it. */
static lr_status fill(struct lr_backend *backend, const struct lr_backend_params *params,
                      const struct lr_stored_wish *wish, struct lr_matrix_sample *sample, struct lr_stored_size *size)
{
    struct lr_matrix matrix;
    LR_TRY(lr_matrix_init(&matrix, params->lors->count, sample, params->log));
    matrix.threads = params->threads;

    struct generation generation = {.matrix = &matrix,
                                    .params = params,
                                    .progress_filter = wish->progress_filter,
                                    .num_rows = lr_grid_num_voxels(params->grid)};
    lr_status status;
    const int64_t estimate = lr_matrix_estimate(&matrix, sample, generation.num_rows);
    if (estimate > lr_stored_memory_limit(params)) {
        status = decline(params, wish, "storing it needs an estimated", estimate);
        goto done;
    }

    struct lr_rows rows = lr_rows_of_voxels(params, 0, generation.num_rows);
    const struct lr_row_block_sink blocks = {take_block, &generation};
    const lr_row_sink sink = {take_row, &generation};
    rows.blocks = &blocks;
    status = backend->fns->rows(backend->self, &rows, &sink);
    if (status == LR_OK) status = lr_matrix_complete(&matrix);
    if (generation.too_large)
        status = decline(params, wish, "storing only a part of it already takes", matrix.memory_bytes);
    if (status != LR_OK || generation.too_large) goto done;

    struct stored *stored = lr_alloc(1, sizeof(*stored), "a stored matrix", params->log);
    status = stored != NULL ? LR_OK : LR_FAILED;
    if (stored == NULL) goto done;
    stored->inner = *backend;
    stored->params = params;
    stored->matrix = matrix;
    stored->fns = (struct lr_backend_fns){
        .name = backend->fns->name,
        .computes_in_double = backend->fns->computes_in_double,
        .voxel_bytes = backend->fns->voxel_bytes,
        .forward = stored_forward,
        .back = stored_back,
        .rows = stored_rows,
        .picture = backend->fns->picture != NULL ? stored_picture : NULL,
        .has_parts = true,
        .destroy = stored_destroy,
    };
    backend->fns = &stored->fns;
    backend->place = NULL; /* the matrix is on the host */
    backend->self = stored;
    *size = (struct lr_stored_size){true, matrix.num_elements, matrix.memory_bytes};
    return LR_OK;

done:
    lr_matrix_finish(&matrix);
    return status;
}

bool lr_stored_pays(const struct lr_backend *backend, double projections)
{
    if (backend->is_gpu || backend->fns->is_never_kept) return false;
    if (projections == 0.0) return true;
    if (backend->is_emulated) return false;
    return projections >= (backend->fns->projects_by_rows ? LEAST_BY_ROWS : LEAST_BY_COLUMNS);
}

lr_status lr_stored_wrap(struct lr_backend *backend, const struct lr_backend_params *params,
                         const struct lr_stored_wish *wish, struct lr_stored_size *size)
{
    *size = (struct lr_stored_size){0};
    if (params->lors->count >= LR_STORED_MOST_LORS) {
        const long long count = (long long)params->lors->count;
        if (wish->required) {
            return lr_error(params->log, LR_FAILED,
                            "a matrix over %lld LORs cannot be stored, the most is 4294967296: tighten "
                            "the coincidence rules, or do not store the matrix",
                            count);
        }
        lr_info(params->log,
                "the matrix is computed anew in every projection: it has %lld LORs, and at most "
                "4294967296 can be stored",
                count);
        return LR_OK;
    }

    struct sampling sampling = {.log = params->log};
    wish->progress_filter->is_silent = true;
    /* All rows of a small grid, and some of a larger one, spread evenly. */
    const int64_t num_rows = lr_grid_num_voxels(params->grid);
    const int64_t count = num_rows < SAMPLE_ROWS ? num_rows : SAMPLE_ROWS;
    const lr_row_sink sink = {take_sample, &sampling};
    lr_status status = LR_OK;
    for (int64_t k = 0; status == LR_OK && k < count; k++) {
        const double turns = ((double)k + 0.5) * LR_GOLDEN_SHARE;
        const double share = turns - (double)(int64_t)turns;
        const int64_t row = count == num_rows ? k : (int64_t)(share * (double)num_rows);
        const struct lr_rows rows = lr_rows_of_voxels(params, row, row + 1);
        status = lr_progress_filter_report(wish->progress_filter, "estimating the matrix", (double)k, (double)count);
        if (status == LR_OK) status = backend->fns->rows(backend->self, &rows, &sink);
    }
    if (status == LR_OK) status = fill(backend, params, wish, &sampling.sample, size);
    wish->progress_filter->is_silent = false;
    free(sampling.sample.lor);
    return status;
}
