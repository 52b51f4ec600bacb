/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Rows and pictures: checked here, computed by the backend. */
#include "operator/facade.h"

#include "base/log.h"
#include "base/mem.h"
#include "operator/scaling.h"

#include <math.h>
#include <stdlib.h>

/* Stands before the caller's sink and tells how far the rows are. */
struct counted_sink {
    const lr_row_sink *sink;
    const lr_progress *progress;
    int64_t begin, end;
};

static lr_status take_and_count(void *user, const lr_row *row)
{
    const struct counted_sink *counted = user;
    LR_TRY(counted->sink->take(counted->sink->user, row));
    return lr_progress_report(counted->progress, "computing matrix rows",
                              (double)(row->row + 1 - counted->begin),
                              (double)(counted->end - counted->begin));
}

/* Stands before a sink and multiplies each element by its LOR's factor. */
struct scaled_sink {
    const struct lr_operator *op;
    const lr_row_sink *sink;
    int64_t capacity;
    float *factors;      /* [capacity] */
    int64_t *lor;        /* [capacity] */
    double *probability; /* [capacity] */
};

static void scaled_sink_finish(struct scaled_sink *scaled)
{
    free(scaled->factors);
    free(scaled->lor);
    free(scaled->probability);
}

static lr_status make_room(struct scaled_sink *scaled, int64_t count)
{
    const lr_log *log = scaled->op->params.log;
    if (count <= scaled->capacity) {
        return LR_OK;
    }
    scaled_sink_finish(scaled);
    scaled->capacity = 2 * count;
    scaled->factors = lr_alloc(scaled->capacity, sizeof(*scaled->factors), "a matrix row", log);
    scaled->lor = lr_alloc(scaled->capacity, sizeof(*scaled->lor), "a matrix row", log);
    scaled->probability =
        lr_alloc(scaled->capacity, sizeof(*scaled->probability), "a matrix row", log);
    return scaled->factors && scaled->lor && scaled->probability ? LR_OK : LR_FAILED;
}

static lr_status take_and_scale(void *user, const lr_row *row)
{
    struct scaled_sink *scaled = user;
    LR_TRY(make_room(scaled, row->count));
    const lr_lor_span span = {.numbers = row->lor, .count = row->count};
    if (row->count > 0) {
        LR_TRY(lr_scaling_get(scaled->op, &span, scaled->factors));
    }
    lr_row out = {.row = row->row, .lor = scaled->lor, .probability = scaled->probability};
    for (int64_t k = 0; k < row->count; k++) {
        const double element = (double)scaled->factors[k] * row->probability[k];
        if (element > 0.0) {
            scaled->lor[out.count] = row->lor[k];
            scaled->probability[out.count++] = element;
        }
    }
    return scaled->sink->take(scaled->sink->user, &out);
}

static lr_status run_backend(lr_operator *op, const struct lr_rows *rows, const lr_row_sink *sink)
{
    const struct lr_backend *backend = &op->backend;
    if (!lr_has_factors(op)) {
        return backend->fns->rows(backend->self, rows, sink);
    }
    struct scaled_sink scaled = {.op = op, .sink = sink};
    const lr_row_sink outer = {take_and_scale, &scaled};
    const lr_status status = backend->fns->rows(backend->self, rows, &outer);
    scaled_sink_finish(&scaled);
    return status;
}

static lr_status run_rows(lr_operator *op, const struct lr_rows *rows, const lr_row_sink *sink)
{
    if (sink == NULL || sink->take == NULL) {
        return lr_error(op->params.log, LR_USAGE, "matrix rows need a sink that takes them");
    }
    if (rows->begin == rows->end) {
        return LR_OK;
    }
    struct counted_sink counted = {sink, op->hush.to, rows->begin, rows->end};
    const lr_row_sink outer = {take_and_count, &counted};
    op->hush.is_silent = true;
    const lr_status status = run_backend(op, rows, &outer);
    op->hush.is_silent = false;
    return status;
}

static bool is_finite_point(const double point_mm[3])
{
    return isfinite(point_mm[0]) && isfinite(point_mm[1]) && isfinite(point_mm[2]);
}

lr_status lr_operator_rows(lr_operator *op, int64_t begin, int64_t end, const lr_row_sink *sink)
{
    if (begin < 0 || end < begin || end > op->info.num_voxels) {
        return lr_error(op->params.log, LR_USAGE,
                        "rows %lld to %lld do not exist: the grid has rows 0 to %lld",
                        (long long)begin, (long long)end - 1, (long long)op->info.num_voxels - 1);
    }
    struct lr_rows rows = {.grid = &op->grid, .begin = begin, .end = end};
    for (int k = 0; k < 3; k++) {
        rows.samples[k] = op->params.samples[k];
    }
    return run_rows(op, &rows, sink);
}

lr_status lr_operator_point_rows(lr_operator *op, const double (*points_mm)[3], int64_t num_points,
                                 const lr_row_sink *sink)
{
    if (num_points < 0 || (num_points > 0 && points_mm == NULL)) {
        return lr_error(op->params.log, LR_USAGE, "there are no %lld points to compute rows for",
                        (long long)num_points);
    }
    for (int64_t k = 0; k < num_points; k++) {
        if (!is_finite_point(points_mm[k])) {
            return lr_error(op->params.log, LR_BAD_INPUT,
                            "point %lld at (%g, %g, %g) mm is not finite: correct its coordinates",
                            (long long)k, points_mm[k][0], points_mm[k][1], points_mm[k][2]);
        }
    }
    const struct lr_rows rows = {.points_mm = points_mm, .samples = {1, 1, 1}, .end = num_points};
    return run_rows(op, &rows, sink);
}

lr_status lr_operator_picture(lr_operator *op, const double point_mm[3], int module,
                              lr_pixel *pixels)
{
    const struct lr_backend *backend = &op->backend;
    if (op->params.mode == LR_MODE_EXACT) {
        return lr_error(op->params.log, LR_USAGE,
                        "exact mode has no correspondence images: use mode sampled");
    }
    if (backend->fns->picture == NULL) {
        return lr_error(op->params.log, LR_USAGE, "backend %s draws no correspondence images",
                        backend->fns->name);
    }
    if (module < 0 || module >= op->params.scanner->num_modules) {
        return lr_error(op->params.log, LR_USAGE,
                        "module %d does not exist: the scanner has modules 0 to %d", module,
                        op->params.scanner->num_modules - 1);
    }
    if (pixels == NULL || !is_finite_point(point_mm)) {
        return lr_error(op->params.log, LR_BAD_INPUT,
                        "a picture needs a finite point and an array of pixels");
    }
    return backend->fns->picture(backend->self, point_mm, module, pixels);
}
