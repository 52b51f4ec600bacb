/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Rows and pictures: checked here, computed by the backend. */
#include "operator/facade.h"

#include "base/clock.h"
#include "base/grow.h"
#include "base/log.h"
#include "base/mem.h"
#include "model/lors/elements.h"
#include "model/lors/rows.h"
#include "model/lors/selection.h"
#include "operator/settings.h"
#include "operator/stored.h"

#include <lr/forecast.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const what = "computing matrix rows";

/* Stands before the caller's sink and reports how far the rows are. */
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
    struct lr_selection_finder finder = {.lors = altered->op->params.lors, .selection = altered->part};
    LR_TRY(lr_owned_row_reserve(&altered->out, row->count, altered->op->params.log));
    altered->out.count = 0;
    for (int64_t k = 0; k < row->count; k++)
        if (lr_selection_find(&finder, row->lor[k]) >= 0)
            lr_owned_row_put(&altered->out, row->lor[k], row->probability[k]);

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

/* Hands the rows to the sink, elements of the part only (NULL: all LORs), factors applied. Reports
 * no progress. rows: checked, not empty, without pairs; part: checked. */
static lr_status rows_run(struct lr_operator *op, const struct lr_rows *rows, const lr_selection *part,
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
        /* The module pairs of single LORs. pairs: [num_lors] */
        const lr_lors *lors = op->params.lors;
        int64_t num_pairs = 0;
        int32_t pair = 0;
        for (int64_t k = 0; k < part->num_lors; k++) {
            while (part->lors[k] >= lors->offsets[pair + 1]) pair++;
            if (num_pairs == 0 || pairs[num_pairs - 1] != pair) pairs[num_pairs++] = pair;
        }
        wanted.num_pairs = num_pairs;
    }
    op->progress_filter.is_silent = true;
    const lr_status status = run_backend(op, &wanted, part, sink);
    op->progress_filter.is_silent = false;
    free(pairs);
    return status;
}

/* All voxels begin <= row < end, with the operator's sample points. */
static struct lr_rows rows_of_voxels(const struct lr_operator *op, int64_t begin, int64_t end)
{
    struct lr_rows rows = {.grid = &op->grid, .begin = begin, .end = end};
    for (int k = 0; k < 3; k++) rows.samples[k] = op->params.samples[k];
    return rows;
}

/* errors: LR_USAGE, logged, for a sink that takes nothing. */
static lr_status rows_check_sink(const struct lr_operator *op, const lr_row_sink *sink)
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

/* errors: LR_USAGE, logged, for lists that are not ascending or leave the range. */
static lr_status rows_check_choice(const struct lr_operator *op, const lr_row_choice *choice)
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

/* Begins to report how far `total` rows are. */
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
    return rows->begin < rows->end ? rows_run(op, rows, part, &outer) : LR_OK;
}

lr_status lr_operator_rows_part(lr_operator *op, const lr_row_choice *choice, const lr_row_sink *sink)
{
    LR_TRY(rows_check_sink(op, sink));
    LR_TRY(rows_check_choice(op, choice));
    const bool is_listed = choice->voxels != NULL;
    struct counted_sink counted = count_rows(op, sink, is_listed ? choice->num_voxels : choice->end - choice->begin);
    if (is_listed) {
        /* Voxels that follow each other are computed together. */
        const int64_t *voxels = choice->voxels;
        for (int64_t k = 0, end; k < choice->num_voxels; k = end) {
            for (end = k + 1; end < choice->num_voxels && voxels[end] == voxels[end - 1] + 1; end++) {
            }
            struct lr_rows rows = rows_of_voxels(op, voxels[k], voxels[end - 1] + 1);
            LR_TRY(run_counted(op, &rows, choice->part, &counted));
        }
        return LR_OK;
    }

    struct lr_rows rows = rows_of_voxels(op, choice->begin, choice->end);
    return run_counted(op, &rows, choice->part, &counted);
}

lr_status lr_operator_rows(lr_operator *op, int64_t begin, int64_t end, const lr_row_sink *sink)
{
    return lr_operator_rows_part(op, &(lr_row_choice){.begin = begin, .end = end}, sink);
}

lr_status lr_operator_point_rows(lr_operator *op, const double (*points_mm)[3], int64_t num_points,
                                 const lr_row_sink *sink)
{
    LR_TRY(rows_check_sink(op, sink));
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

/* The matrix by rows of LORs: voxel rows of a block of LORs are collected and turned over by a
 * counting sort. A block that turns out to need more memory than there is loses LORs at its end,
 * which then begin the next. */

/* Bytes of an element while it is collected and turned over, and of a LOR. */
enum { ELEMENT_BYTES = 20, LOR_BYTES = 8 };

/* Rows that the first block's size is guessed from. */
enum { SAMPLE_ROWS = 24 };

/* Share of the memory that a block is planned to take. */
#define PLANNED_SHARE 0.7

/* Steps of this share of the rows, taken modulo one, spread evenly. */
#define GOLDEN_SHARE 0.6180339887498949

/* The LORs of a block: places begin .. end - 1 of the selection. */
struct block {
    struct lr_operator *op;
    const lr_selection *part;
    int64_t begin, end;
    int64_t count, capacity, most; /* elements */
    uint32_t *place;               /* [capacity] after `begin` */
    uint32_t *voxel;
    float *value;
    int64_t total;     /* LORs of the selection */
    double num_voxels; /* of the grid */
};

static void empty_block(struct block *block)
{
    free(block->place);
    free(block->voxel);
    free(block->value);
    block->place = block->voxel = NULL;
    block->value = NULL;
    block->count = block->capacity = 0;
}

/* --- collecting --- */

/* Drops the block's last LORs until a good part of the memory is free again. */
static lr_status cut(struct block *block)
{
    while (block->count > block->most * 3 / 4) {
        if (block->end - block->begin == 1) {
            return lr_error(block->op->params.log, LR_FAILED,
                            "the elements of LOR %lld alone need more than the memory limit: raise "
                            "it, or take a coarser grid",
                            (long long)lr_selection_lor(block->op->params.lors, block->part, block->begin));
        }
        block->end = block->begin + (block->end - block->begin) / 2;
        int64_t kept = 0;
        for (int64_t k = 0; k < block->count; k++) {
            if (block->place[k] < block->end - block->begin) {
                block->place[kept] = block->place[k];
                block->voxel[kept] = block->voxel[k];
                block->value[kept++] = block->value[k];
            }
        }
        block->count = kept;
    }
    return LR_OK;
}

static lr_status grow(struct block *block)
{
    const lr_log *log = block->op->params.log;
    int64_t capacity = block->capacity > 0 ? 2 * block->capacity : 65536;
    capacity = capacity < block->most ? capacity : block->most;
    uint32_t *place = lr_resize(block->place, capacity, sizeof(*place), "matrix elements", log);
    block->place = place != NULL ? place : block->place;
    uint32_t *voxel = lr_resize(block->voxel, capacity, sizeof(*voxel), "matrix elements", log);
    block->voxel = voxel != NULL ? voxel : block->voxel;
    float *value = lr_resize(block->value, capacity, sizeof(*value), "matrix elements", log);
    block->value = value != NULL ? value : block->value;
    if (place == NULL || voxel == NULL || value == NULL) return LR_FAILED;
    block->capacity = capacity;
    return LR_OK;
}

static lr_status make_room(struct block *block)
{
    if (block->count < block->capacity) return LR_OK;
    return block->capacity < block->most ? grow(block) : cut(block);
}

static lr_status collect(void *user, const lr_row *row)
{
    struct block *block = user;
    struct lr_selection_finder finder = {.lors = block->op->params.lors, .selection = block->part};
    for (int64_t k = 0; k < row->count; k++) {
        const int64_t place = lr_selection_find(&finder, row->lor[k]);
        if (place < block->begin || place >= block->end) continue;
        LR_TRY(make_room(block));
        if (place < block->end) {
            block->place[block->count] = (uint32_t)(place - block->begin);
            block->voxel[block->count] = (uint32_t)row->row;
            block->value[block->count++] = (float)row->probability[k];
        }
    }
    const double done = (double)(row->row + 1) / block->num_voxels;
    return lr_progress_filter_say(&block->op->progress_filter, "computing matrix rows of LORs",
                                  (double)block->begin + done * (double)(block->end - block->begin),
                                  (double)block->total);
}

/* --- transposing --- */

/* Elements in the order of their LORs. */
struct turned {
    int64_t *first; /* [LORs + 1] */
    uint32_t *voxel;
    float *value;
};

/* The counting sort keeps voxels in the ascending order in which they came. */
static lr_status turn_over(const struct block *block, struct turned *turned)
{
    const lr_log *log = block->op->params.log;
    const int64_t num_lors = block->end - block->begin;
    turned->first = lr_alloc(num_lors + 2, sizeof(*turned->first), "rows of LORs", log);
    turned->voxel = lr_alloc(block->count, sizeof(*turned->voxel), "rows of LORs", log);
    turned->value = lr_alloc(block->count, sizeof(*turned->value), "rows of LORs", log);
    if (turned->first == NULL || turned->voxel == NULL || turned->value == NULL) return LR_FAILED;
    for (int64_t k = 0; k < block->count; k++) turned->first[block->place[k] + 2]++;
    for (int64_t n = 2; n <= num_lors; n++) turned->first[n] += turned->first[n - 1];
    for (int64_t k = 0; k < block->count; k++) {
        const int64_t to = turned->first[block->place[k] + 1]++;
        turned->voxel[to] = block->voxel[k];
        turned->value[to] = block->value[k];
    }
    return LR_OK;
}

/* The arrays of one row on its way. */
struct handed {
    int64_t capacity;
    int64_t *voxel;
    double *value;
};

static lr_status deliver(const struct block *block, const struct turned *turned, const lr_row_sink *sink)
{
    struct handed handed = {0};
    struct lr_selection_walk walk = {.lors = block->op->params.lors, .selection = block->part};
    const lr_log *log = block->op->params.log;
    int64_t most = 0;
    for (int64_t n = 0; n < block->end - block->begin; n++) {
        const int64_t count = turned->first[n + 1] - turned->first[n];
        most = count > most ? count : most;
    }
    handed.voxel = lr_alloc(most, sizeof(*handed.voxel), "a row of a LOR", log);
    handed.value = lr_alloc(most, sizeof(*handed.value), "a row of a LOR", log);
    lr_status status = handed.voxel != NULL && handed.value != NULL ? LR_OK : LR_FAILED;

    while (status == LR_OK && lr_selection_next(&walk) && walk.position < block->end) {
        const int64_t skipped = block->begin > walk.position ? block->begin - walk.position : 0;
        for (int64_t k = skipped; k < walk.span.count && status == LR_OK; k++) {
            const int64_t place = walk.position + k;
            if (place >= block->end) break;
            const int64_t lor = walk.span.numbers ? walk.span.numbers[k] : walk.span.first + k;
            const int64_t n = place - block->begin;
            const int64_t begin = turned->first[n], count = turned->first[n + 1] - begin;
            for (int64_t m = 0; m < count; m++) {
                handed.voxel[m] = turned->voxel[begin + m];
                handed.value[m] = (double)turned->value[begin + m];
            }
            const lr_row row = {lor, count, handed.voxel, handed.value};
            status = sink->take(sink->user, &row);

            if (status == LR_OK && k % 4096 == 0)
                status = lr_progress_filter_say(&block->op->progress_filter, "computing matrix rows of LORs",
                                                (double)block->end, (double)block->total);
        }
    }
    free(handed.voxel);
    free(handed.value);
    return status;
}

/* --- blocks --- */

/* The module pairs, or the LORs, that the block is in. pairs: room for all of them. */
static lr_selection window_of(const struct block *block, int32_t *pairs)
{
    const lr_lors *lors = block->op->params.lors;
    if (block->part != NULL && block->part->lors != NULL)
        return (lr_selection){.lors = block->part->lors + block->begin, .num_lors = block->end - block->begin};
    const int64_t first = lr_selection_lor(lors, block->part, block->begin);
    const int64_t last = lr_selection_lor(lors, block->part, block->end - 1);
    const bool is_all = lr_selection_is_all(block->part);
    const int64_t num = is_all ? lors->num_pairs : block->part->num_pairs;
    lr_selection window = {.pairs = pairs};
    for (int64_t k = 0; k < num; k++) {
        const int32_t pair = is_all ? (int32_t)k : block->part->pairs[k];
        if (lors->offsets[pair + 1] > first && lors->offsets[pair] <= last) pairs[window.num_pairs++] = pair;
    }
    return window;
}

static lr_status run_rows(struct block *block, int64_t begin, int64_t end, const lr_row_sink *sink)
{
    const struct lr_rows rows = rows_of_voxels(block->op, begin, end);
    int32_t *pairs = lr_alloc(block->op->params.lors->num_pairs, sizeof(*pairs), "module pairs", block->op->params.log);
    if (pairs == NULL) return LR_FAILED;
    const lr_selection window = window_of(block, pairs);
    const lr_status status = rows_run(block->op, &rows, &window, sink);
    free(pairs);
    return status;
}

static lr_status count_elements(void *user, const lr_row *row)
{
    *(int64_t *)user += row->count;
    return LR_OK;
}

/* Elements that a LOR of the selection has on average, by a sample of rows. */
static lr_status guess_density(struct block *block, double *density)
{
    const int64_t num_voxels = block->op->info.num_voxels;
    const int64_t rows = num_voxels < SAMPLE_ROWS ? num_voxels : SAMPLE_ROWS;
    int64_t elements = 0;
    const lr_row_sink sink = {count_elements, &elements};
    block->end = block->total;
    for (int64_t k = 0; k < rows; k++) {
        const double turns = ((double)k + 0.5) * GOLDEN_SHARE;
        const int64_t row = (int64_t)((turns - (double)(int64_t)turns) * (double)num_voxels);
        LR_TRY(lr_progress_filter_say(&block->op->progress_filter, "estimating the matrix", (double)k, (double)rows));
        LR_TRY(run_rows(block, row, row + 1, &sink));
    }
    *density = (double)elements / (double)rows * block->num_voxels / (double)block->total;
    return LR_OK;
}

static int64_t memory_limit(const struct lr_operator *op)
{
    const int64_t limit = op->params.max_memory_bytes;
    return limit > 0 ? limit : lr_physical_memory() / 2;
}

static struct lr_lor_rows_plan lor_rows_forecast(const struct lr_operator *op, double lors, double elements)
{
    const double memory = (double)memory_limit(op);
    const double needed = ELEMENT_BYTES * elements + LOR_BYTES * lors;
    return (struct lr_lor_rows_plan){.passes = fmax(ceil(needed / (PLANNED_SHARE * memory)), 1.0),
                                     .memory_bytes = fmin(needed, memory)};
}

static lr_status do_block(struct block *block, const lr_row_sink *sink)
{
    struct turned turned = {0};
    const lr_row_sink collector = {collect, block};
    LR_TRY(run_rows(block, 0, block->op->info.num_voxels, &collector));
    lr_status status = turn_over(block, &turned);
    if (status == LR_OK) status = deliver(block, &turned, sink);
    free(turned.first);
    free(turned.voxel);
    free(turned.value);

    return status;
}

static lr_status do_blocks(struct block *block, const lr_row_sink *sink)
{
    const int64_t memory = memory_limit(block->op);
    double density;
    LR_TRY(guess_density(block, &density));
    while (block->begin < block->total) {
        /* LORs that are planned to fit. */
        const double fitting = PLANNED_SHARE * (double)memory / (ELEMENT_BYTES * density + LOR_BYTES);
        const double most = fitting < 4e9 ? fitting : 4e9; /* places are 32 bits */
        const double left = (double)(block->total - block->begin);
        const int64_t length = most >= left ? block->total - block->begin : most > 1.0 ? (int64_t)most : 1;

        const int64_t room = memory - LOR_BYTES * length;
        block->end = block->begin + length;
        block->most = room > ELEMENT_BYTES * 1024 ? room / ELEMENT_BYTES : 1024;
        const lr_status status = do_block(block, sink);
        density = 0.5 * (density + (double)block->count / (double)(block->end - block->begin));
        empty_block(block);
        LR_TRY(status);
        block->begin = block->end;
    }
    return LR_OK;
}

lr_status lr_operator_lor_rows(lr_operator *op, const lr_selection *part, const lr_row_sink *sink)
{
    LR_TRY(rows_check_sink(op, sink));
    LR_TRY(lr_selection_check(op->params.lors, part, op->params.log));
    if (op->info.num_voxels > (int64_t)UINT32_MAX) {
        return lr_error(op->params.log, LR_USAGE,
                        "a grid of %lld voxels is too large for rows by LOR: the most is 2^32",
                        (long long)op->info.num_voxels);
    }
    struct block block = {.op = op,
                          .part = part,
                          .total = lr_selection_count(op->params.lors, part),
                          .num_voxels = (double)op->info.num_voxels};
    const lr_status status = block.total > 0 ? do_blocks(&block, sink) : LR_OK;
    empty_block(&block);
    return status;
}

/* The memory that work is going to take, and the elements of rows by a sample of them. The clock only says
 * how long the sample may go on: nobody is told a time. */

/* The sample goes on until it has taken this long and has been at enough places, and no longer than
 * that where it has been at some. */
#define ENOUGH_SECONDS 0.5
#define MOST_SECONDS 2.0
enum { ENOUGH_PLACES = 24, SOME_PLACES = 4, MOST_PLACES = 4096 };

/* Rows in a row are computed together; as many at a place as take about this long, and no more. */
#define PLACE_SECONDS 0.04
enum { MOST_ROWS = 1024, LEAST_STRETCHES = 64 };

struct sample {
    struct lr_operator *op;
    const lr_rows_work *work;
    int64_t num_rows;       /* of the choice */
    int64_t elements;       /* at this place */
    int64_t kept;           /* the same, of at least the threshold */
    double mean, kept_mean; /* of a row, sums over places */
    int places;
    int64_t taken; /* rows */
};

static lr_status count(void *user, const lr_row *row)
{
    struct sample *sample = user;
    double largest = 0.0;
    for (int64_t k = 0; k < row->count; k++) largest = row->probability[k] > largest ? row->probability[k] : largest;
    const double least = sample->work->threshold * largest;
    for (int64_t k = 0; k < row->count; k++) sample->kept += row->probability[k] >= least;
    sample->elements += row->count;
    return LR_OK;
}

/* Rows from the place on that follow each other in the grid, at most `most`. */
static lr_status run_place(struct sample *sample, int64_t place, int64_t most, int64_t *num)
{
    const lr_row_choice *choice = &sample->work->choice;
    const lr_row_sink sink = {count, sample};
    const int64_t left = sample->num_rows - place;
    const int64_t begin = choice->voxels != NULL ? choice->voxels[place] : choice->begin + place;
    *num = 1;
    while (*num < most && *num < left && (choice->voxels == NULL || choice->voxels[place + *num] == begin + *num))
        (*num)++;
    const struct lr_rows rows = rows_of_voxels(sample->op, begin, begin + *num);
    sample->elements = sample->kept = 0;
    LR_TRY(lr_progress_filter_say(&sample->op->progress_filter, "estimating the matrix", sample->places, MOST_PLACES));
    return rows_run(sample->op, &rows, choice->part, &sink);
}

/* Small work is not looked at for longer than it takes. */
static bool is_enough(const struct sample *sample, double taken_s)
{
    return sample->places >= MOST_PLACES || sample->taken >= sample->num_rows ||
           (sample->places >= ENOUGH_PLACES && taken_s >= ENOUGH_SECONDS) ||
           (sample->places >= SOME_PLACES && taken_s >= MOST_SECONDS);
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The first place is only to wake up: shaders are compiled, memory is allocated. */
static lr_status take_sample(struct sample *sample)
{
    int64_t num = 1, most = 1;
    const int64_t longest = smaller(MOST_ROWS, sample->num_rows / LEAST_STRETCHES + 1);
    LR_TRY(run_place(sample, sample->num_rows / 2, 1, &num));
    const double start_s = lr_clock_seconds();
    for (double now_s = start_s; !is_enough(sample, now_s - start_s);) {
        const double turns = ((double)sample->places + 0.5) * GOLDEN_SHARE;
        const double share = turns - (double)(int64_t)turns;
        const double begun_s = now_s;
        LR_TRY(run_place(sample, (int64_t)(share * (double)sample->num_rows), most, &num));
        now_s = lr_clock_seconds();
        sample->mean += (double)sample->elements / (double)num;
        sample->kept_mean += (double)sample->kept / (double)num;
        sample->places++;
        sample->taken += num;
        most = now_s - begun_s < 0.5 * PLACE_SECONDS ? smaller(2 * most, longest) : most;
    }
    return LR_OK;
}

lr_status lr_operator_forecast_rows(lr_operator *op, const lr_rows_work *work, lr_forecast *forecast)
{
    lr_rows_work whole = *work;
    *forecast = (lr_forecast){0};
    if (work->by_lor) {
        whole.choice = (lr_row_choice){.end = op->info.num_voxels, .part = work->choice.part};
        whole.threshold = 0.0;
    }
    LR_TRY(rows_check_choice(op, &whole.choice));
    struct sample sample = {.op = op, .work = &whole};
    sample.num_rows = whole.choice.voxels != NULL ? whole.choice.num_voxels : whole.choice.end - whole.choice.begin;
    if (sample.num_rows == 0) return LR_OK;
    LR_TRY(take_sample(&sample));
    const double rows = (double)sample.num_rows;
    forecast->rows = rows;
    forecast->elements = rows * sample.mean / sample.places;
    forecast->kept_elements = rows * sample.kept_mean / sample.places;
    if (work->by_lor) { /* made of all voxels' rows, which are transposed in memory */
        const double lors = (double)lr_selection_count(op->params.lors, work->choice.part);
        forecast->rows = lors;
        forecast->kept_elements = forecast->elements;
        forecast->memory_bytes = lor_rows_forecast(op, lors, forecast->elements).memory_bytes;
    }
    return LR_OK;
}

lr_status lr_operator_forecast_projections(lr_operator *op, double projections, lr_store store, lr_forecast *forecast)
{
    *forecast = (lr_forecast){0};
    if (op->info.lors->scanner == NULL)
        return lr_error(op->params.log, LR_USAGE, "projections of histo-images are not forecast");
    LR_TRY(lr_project_check_room(op));
    forecast->memory_bytes = lr_project_bytes(op);
    if (op->info.stored) {
        forecast->memory_bytes += (double)op->info.memory_bytes;
        return LR_OK;
    }

    /* The matrix, where one is going to be kept. */
    const double known = op->params.deterministic ? 0.0 : projections;
    const bool is_kept = store == LR_STORE_YES || (store == LR_STORE_AUTO && lr_stored_pays(&op->backend, known));
    if (!is_kept || op->params.lors->count >= LR_STORED_MOST_LORS) return LR_OK;
    const lr_rows_work all = {.choice = {.end = op->info.num_voxels}};
    lr_forecast rows;
    LR_TRY(lr_operator_forecast_rows(op, &all, &rows));
    const double bytes = LR_STORED_ELEMENT_BYTES * rows.elements;
    if (store == LR_STORE_YES || bytes <= (double)lr_stored_memory_limit(&op->params)) forecast->memory_bytes += bytes;
    return LR_OK;
}
