/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Rows and pictures: checked here, computed by the backend. */
#include "operator/rows.h"
#include "operator/coverage.h"

#include "base/grow.h"
#include "base/log.h"
#include "base/mem.h"
#include "model/lors/elements.h"
#include "model/lors/rows.h"
#include "model/lors/selection.h"
#include "operator/scaling.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const what = "computing matrix rows";

/* Stands before the caller's sink and tells how far the rows are. */
struct counted_sink {
    const lr_row_sink *sink;
    const struct lr_row_block_sink *blocks; /* of the sink; or NULL */
    struct lr_progress_filter *progress_filter;
    int64_t done, total;
    struct lr_row_block_sink counted_blocks; /* stands before `blocks` */
};

static lr_status take_and_count_block(void *user, const struct lr_row_block *block)
{
    struct counted_sink *counted = user;
    LR_TRY(counted->blocks->take(counted->blocks->user, block));
    counted->done += block->num_rows;
    return lr_progress_filter_say(counted->progress_filter, what, (double)counted->done, (double)counted->total);
}

static lr_status take_and_count(void *user, const lr_row *row)
{
    struct counted_sink *counted = user;
    LR_TRY(counted->sink->take(counted->sink->user, row));
    counted->done++;
    return lr_progress_filter_say(counted->progress_filter, what, (double)counted->done, (double)counted->total);
}

/* Stands before a sink and hands on some elements of each row, multiplied by their factors. */
struct altered_sink {
    const struct lr_operator *op;
    const lr_selection *part; /* NULL: all LORs */
    const lr_row_sink *sink;
    struct lr_owned_row out;
    float *factors; /* [room] */
    int64_t room;
};

static lr_status pick(struct altered_sink *altered, const lr_row *row)
{
    struct lr_selection_finder finder = {.lors = altered->op->params.lors, .selection = altered->part};
    LR_TRY(lr_owned_row_reserve(&altered->out, row->count, altered->op->params.log));
    altered->out.count = 0;
    for (int64_t k = 0; k < row->count; k++)
        if (lr_selection_find(&finder, row->lor[k]) >= 0)
            lr_owned_row_put(&altered->out, row->lor[k], row->probability[k]);
    return LR_OK;
}

/* Multiplies the elements by their factors, and drops those that are then 0. */
static lr_status scale(struct altered_sink *altered)
{
    struct lr_owned_row *out = &altered->out;
    const lr_log *log = altered->op->params.log;
    const lr_lor_span span = {.numbers = out->lor, .count = out->count};
    if (!lr_has_factors(altered->op) || span.count == 0) return LR_OK;
    LR_TRY(lr_grow(&altered->factors, &altered->room, span.count,
                   &(struct lr_items){sizeof(*altered->factors), "a matrix row", log}));
    LR_TRY(lr_scaling_get(altered->op, &span, altered->factors));
    out->count = 0;
    for (int64_t k = 0; k < span.count; k++) {
        const double element = (double)altered->factors[k] * out->probability[k];
        if (element > 0.0) lr_owned_row_put(out, out->lor[k], element);
    }
    return LR_OK;
}

static lr_status take_and_alter(void *user, const lr_row *row)
{
    struct altered_sink *altered = user;
    LR_TRY(pick(altered, row));
    LR_TRY(scale(altered));
    const lr_row out = lr_owned_row_view(&altered->out, row->row);
    return altered->sink->take(altered->sink->user, &out);
}

static lr_status run_backend(struct lr_operator *op, const struct lr_rows *rows, const lr_selection *part,
                             const lr_row_sink *sink)
{
    const struct lr_backend *backend = &op->backend;
    const bool is_whole = part == NULL || (part->pairs != NULL && backend->fns->heeds_pairs);
    if (is_whole && !lr_has_factors(op)) return backend->fns->rows(backend->self, rows, sink);
    struct altered_sink altered = {.op = op, .part = is_whole ? NULL : part, .sink = sink};
    const lr_row_sink outer = {take_and_alter, &altered};
    struct lr_rows one_by_one = *rows;
    one_by_one.blocks = NULL;
    const lr_status status = backend->fns->rows(backend->self, &one_by_one, &outer);
    lr_owned_row_finish(&altered.out);
    free(altered.factors);
    return status;
}

/* The module pairs of single LORs. pairs: [num_lors] */
static int64_t pairs_of_lors(const struct lr_operator *op, const lr_selection *part, int32_t *pairs)
{
    const lr_lors *lors = op->params.lors;
    int64_t count = 0;
    int32_t pair = 0;
    for (int64_t k = 0; k < part->num_lors; k++) {
        while (part->lors[k] >= lors->offsets[pair + 1]) pair++;
        if (count == 0 || pairs[count - 1] != pair) pairs[count++] = pair;
    }
    return count;
}

lr_status lr_rows_run(struct lr_operator *op, const struct lr_rows *rows, const lr_selection *part,
                      const lr_row_sink *sink)
{
    struct lr_rows wanted = *rows;
    int32_t *pairs = NULL;
    part = lr_selection_is_all(part) ? NULL : part;
    if (part != NULL && part->pairs != NULL) {
        wanted.pairs = part->pairs;
        wanted.num_pairs = part->num_pairs;
    } else if (part != NULL) {
        pairs = lr_alloc(part->num_lors + 1, sizeof(*pairs), "module pairs", op->params.log);
        if (pairs == NULL) return LR_FAILED;
        wanted.pairs = pairs;
        wanted.num_pairs = pairs_of_lors(op, part, pairs);
    }
    op->progress_filter.is_silent = true;
    const lr_status status = run_backend(op, &wanted, part, sink);
    op->progress_filter.is_silent = false;
    free(pairs);
    return status;
}

struct lr_rows lr_rows_of_voxels(const struct lr_operator *op, int64_t begin, int64_t end)
{
    struct lr_rows rows = {.grid = &op->grid, .begin = begin, .end = end};
    for (int k = 0; k < 3; k++) rows.samples[k] = op->params.samples[k];
    return rows;
}

lr_status lr_rows_check_sink(const struct lr_operator *op, const lr_row_sink *sink)
{
    LR_TRY(lr_psf_refuse(&op->psf, "matrix elements"));
    if (sink == NULL || sink->take == NULL)
        return lr_error(op->params.log, LR_USAGE, "matrix rows need a sink that takes them");
    return LR_OK;
}

static bool is_finite_point(const double point_mm[3])
{
    return isfinite(point_mm[0]) && isfinite(point_mm[1]) && isfinite(point_mm[2]);
}

static lr_status check_voxel(const struct lr_operator *op, int64_t begin, int64_t end)
{
    if (begin < 0 || end < begin || end > op->info.num_voxels) {
        return lr_error(op->params.log, LR_USAGE, "rows %lld to %lld do not exist: the grid has rows 0 to %lld",
                        (long long)begin, (long long)end - 1, (long long)op->info.num_voxels - 1);
    }
    return LR_OK;
}

lr_status lr_rows_check_choice(const struct lr_operator *op, const lr_row_choice *choice)
{
    LR_TRY(lr_selection_check(op->params.lors, choice->part, op->params.log));
    if (choice->voxels == NULL) return check_voxel(op, choice->begin, choice->end);
    for (int64_t k = 0; k < choice->num_voxels; k++) {
        LR_TRY(check_voxel(op, choice->voxels[k], choice->voxels[k] + 1));
        if (k > 0 && choice->voxels[k] <= choice->voxels[k - 1]) {
            return lr_error(op->params.log, LR_USAGE,
                            "voxel %lld is listed after %lld: list rows in ascending order, each "
                            "once",
                            (long long)choice->voxels[k], (long long)choice->voxels[k - 1]);
        }
    }
    return LR_OK;
}

/* Begins to tell how far `total` rows are. */
static struct counted_sink count_rows(struct lr_operator *op, const lr_row_sink *sink, int64_t total)
{
    lr_progress_filter_begin(&op->progress_filter, what, (double)total);
    return (struct counted_sink){
        .sink = sink, .blocks = lr_row_entry_of(sink), .progress_filter = &op->progress_filter, .total = total};
}

static lr_status run_counted(struct lr_operator *op, struct lr_rows *rows, const lr_selection *part,
                             struct counted_sink *counted)
{
    const lr_row_sink outer = {take_and_count, counted};
    counted->counted_blocks = (struct lr_row_block_sink){take_and_count_block, counted};
    rows->blocks = counted->blocks != NULL ? &counted->counted_blocks : NULL;
    return rows->begin < rows->end ? lr_rows_run(op, rows, part, &outer) : LR_OK;
}

/* Voxels that follow each other are computed together. */
static lr_status run_listed(struct lr_operator *op, const lr_row_choice *choice, struct counted_sink *counted)
{
    const int64_t *voxels = choice->voxels;
    for (int64_t k = 0, end; k < choice->num_voxels; k = end) {
        for (end = k + 1; end < choice->num_voxels && voxels[end] == voxels[end - 1] + 1; end++) {
        }
        struct lr_rows rows = lr_rows_of_voxels(op, voxels[k], voxels[end - 1] + 1);
        LR_TRY(run_counted(op, &rows, choice->part, counted));
    }
    return LR_OK;
}

lr_status lr_operator_rows_part(lr_operator *op, const lr_row_choice *choice, const lr_row_sink *sink)
{
    LR_TRY(lr_rows_check_sink(op, sink));
    LR_TRY(lr_rows_check_choice(op, choice));
    const bool is_listed = choice->voxels != NULL;
    struct counted_sink counted = count_rows(op, sink, is_listed ? choice->num_voxels : choice->end - choice->begin);
    if (is_listed) return run_listed(op, choice, &counted);
    struct lr_rows rows = lr_rows_of_voxels(op, choice->begin, choice->end);
    return run_counted(op, &rows, choice->part, &counted);
}

lr_status lr_operator_rows(lr_operator *op, int64_t begin, int64_t end, const lr_row_sink *sink)
{
    return lr_operator_rows_part(op, &(lr_row_choice){.begin = begin, .end = end}, sink);
}

lr_status lr_operator_point_rows(lr_operator *op, const double (*points_mm)[3], int64_t num_points,
                                 const lr_row_sink *sink)
{
    LR_TRY(lr_rows_check_sink(op, sink));
    if (num_points < 0 || (num_points > 0 && points_mm == NULL)) {
        return lr_error(op->params.log, LR_USAGE, "there are no %lld points to compute rows for",
                        (long long)num_points);
    }
    for (int64_t k = 0; k < num_points; k++) {
        if (!is_finite_point(points_mm[k])) {
            return lr_error(op->params.log, LR_BAD_INPUT,
                            "point %lld at (%g, %g, %g) mm is not finite: correct its coordinates", (long long)k,
                            points_mm[k][0], points_mm[k][1], points_mm[k][2]);
        }
    }
    if (op->direct == NULL && strcmp(op->backend.fns->name, "compute") == 0 && !op->params.penetration)
        lr_coverage_warn_near_points(points_mm, num_points, op->params.scanner, op->params.log);
    struct lr_rows rows = {.points_mm = points_mm, .samples = {1, 1, 1}, .end = num_points};
    struct counted_sink counted = count_rows(op, sink, num_points);
    return run_counted(op, &rows, NULL, &counted);
}

lr_status lr_operator_picture(lr_operator *op, const double point_mm[3], int module, lr_pixel *pixels)
{
    const struct lr_backend *backend = &op->backend;
    if (op->params.mode == LR_MODE_EXACT)
        return lr_error(op->params.log, LR_USAGE, "exact mode has no correspondence images: use mode sampled");
    if (backend->fns->picture == NULL) {
        return lr_error(op->params.log, LR_USAGE,
                        "backend %s draws no correspondence images: use backend cpu or raster", backend->fns->name);
    }
    if (module < 0 || module >= op->params.scanner->num_modules) {
        return lr_error(op->params.log, LR_USAGE, "module %d does not exist: the scanner has modules 0 to %d", module,
                        op->params.scanner->num_modules - 1);
    }
    if (pixels == NULL || !is_finite_point(point_mm))
        return lr_error(op->params.log, LR_BAD_INPUT, "a picture needs a finite point and an array of pixels");
    return backend->fns->picture(backend->self, point_mm, module, pixels);
}
