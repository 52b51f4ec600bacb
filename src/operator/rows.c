/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Rows and pictures. This file checks the arguments, and the backend computes. */
#include "base/units.h"
#include "base/vec.h"
#include "operator/facade.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "model/lors/place.h"
#include "model/lors/rows.h"
#include "model/lors/selection.h"
#include "operator/matrix.h"

#include <lr/forecast.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const what = "computing matrix rows";

/* A sink that counts rows for the progress report, then passes them to the caller's sink. */
struct counted_sink {
    const lr_row_sink *sink;
    const struct lr_row_block_sink *blocks; /* the caller's function for blocks; NULL = none */
    struct lr_progress_filter *progress_filter;
    int64_t done, total;
    struct lr_row_block_sink counted_blocks; /* counts rows, then calls `blocks` */
};

static lr_status take_and_count_block(void *user, const struct lr_row_block *block)
{
    struct counted_sink *counted = user;
    LR_TRY(counted->blocks->take(counted->blocks->user, block));
    counted->done += block->num_rows;
    return lr_progress_filter_report(counted->progress_filter, what, (double)counted->done, (double)counted->total);
}

static lr_status take_and_count(void *user, const lr_row *row)
{
    struct counted_sink *counted = user;
    LR_TRY(counted->sink->take(counted->sink->user, row));
    counted->done++;
    return lr_progress_filter_report(counted->progress_filter, what, (double)counted->done, (double)counted->total);
}

/* A sink that drops some elements of each row, multiplies the others by their factors, and passes the row to another
 * sink. */
struct altered_sink {
    const struct lr_operator *op;
    const lr_selection *part; /* NULL: all LORs */
    const lr_row_sink *sink;
    struct lr_owned_row out;
    float *factors; /* [room] */
    int64_t room;
};

static lr_status take_and_alter(void *user, const lr_row *row)
{
    struct altered_sink *altered = user;
    struct lr_owned_row *out = &altered->out;
    struct lr_selection_finder finder = {.lors = altered->op->params.lors, .selection = altered->part};
    const lr_log *log = altered->op->params.log;
    LR_TRY(lr_owned_row_reserve(out, row->count, log));
    out->count = 0;
    for (int64_t k = 0; k < row->count; k++)
        if (lr_selection_find(&finder, row->lor[k]) >= 0) lr_owned_row_put(out, row->lor[k], row->probability[k]);

    /* Elements are dropped if a factor has made them 0. */
    const lr_lor_span span = {.numbers = out->lor, .count = out->count};
    if (lr_has_factors(altered->op) && span.count > 0) {
        LR_TRY(lr_grow(&altered->factors, &altered->room, span.count,
                       &(struct lr_items){sizeof(*altered->factors), "a matrix row", log}));
        LR_TRY(lr_scaling_get(altered->op, &span, altered->factors));
        out->count = 0;
        for (int64_t k = 0; k < span.count; k++) {
            const double element = (double)altered->factors[k] * out->probability[k];
            if (element > 0.0) lr_owned_row_put(out, out->lor[k], element);
        }
    }
    const lr_row view = lr_owned_row_view(out, row->row);
    return altered->sink->take(altered->sink->user, &view);
}

/* Passes rows to the sink, with only the elements of the part (NULL = all LORs), multiplied by their factors. Progress
 * is not reported. rows: checked, not empty, without pairs. part: checked. */
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
        /* The backend needs the module pairs of single LORs. */
        pairs = lr_alloc(part->num_lors + 1, sizeof(*pairs), "module pairs", op->params.log);
        if (pairs == NULL) return LR_FAILED;
        const lr_lors *lors = op->params.lors;
        int64_t num_pairs = 0;
        int32_t pair = 0;
        for (int64_t k = 0; k < part->num_lors; k++) {
            while (part->lors[k] >= lors->offsets[pair + 1]) pair++;
            if (num_pairs == 0 || pairs[num_pairs - 1] != pair) pairs[num_pairs++] = pair;
        }
        wanted.pairs = pairs;
        wanted.num_pairs = num_pairs;
    }

    /* If no element is dropped or multiplied, the backend's rows go directly to the sink. */
    const struct lr_backend *backend = &op->backend;
    const bool is_whole = part == NULL || (part->pairs != NULL && backend->fns->heeds_pairs);
    struct altered_sink altered = {.op = op, .part = is_whole ? NULL : part, .sink = sink};
    const lr_row_sink altering = {take_and_alter, &altered};
    const bool is_altered = !is_whole || lr_has_factors(op);
    if (is_altered) wanted.blocks = NULL;
    op->progress_filter.is_silent = true;
    const lr_status status = backend->fns->rows(backend->self, &wanted, is_altered ? &altering : sink);
    op->progress_filter.is_silent = false;
    lr_owned_row_finish(&altered.out);
    lr_free_all(altered.factors, pairs);
    return status;
}

/* errors: LR_USAGE, logged, for a sink without functions, or if the operator has a resolution in image space. */
static lr_status rows_check_sink(const struct lr_operator *op, const lr_row_sink *sink)
{
    if (op->psf.is_on) {
        return lr_error(op->psf.log, LR_USAGE,
                        "matrix elements cannot be had with a resolution in image space, which is applied to images "
                        "and not to elements: make an operator without one");
    }
    if (sink == NULL || sink->take == NULL)
        return lr_error(op->params.log, LR_USAGE, "matrix rows need a sink that takes them");
    return LR_OK;
}

/* errors: LR_USAGE, logged, for lists that are not ascending or not within range. */
static lr_status rows_check_choice(const struct lr_operator *op, const lr_row_choice *choice)
{
    LR_TRY(lr_selection_check(op->params.lors, choice->part, op->params.log));
    const int64_t *voxels = choice->voxels, num = voxels != NULL ? choice->num_voxels : 1;
    for (int64_t k = 0; k < num; k++) {
        const int64_t begin = voxels != NULL ? voxels[k] : choice->begin;
        const int64_t end = voxels != NULL ? begin + 1 : choice->end;
        if (begin < 0 || end < begin || end > op->info.num_voxels) {
            return lr_error(op->params.log, LR_USAGE, "rows %lld to %lld do not exist: the grid has rows 0 to %lld",
                            (long long)begin, (long long)end - 1, (long long)op->info.num_voxels - 1);
        }
        if (k > 0 && voxels[k] <= voxels[k - 1]) {
            return lr_error(op->params.log, LR_USAGE,
                            "voxel %lld is listed after %lld: list rows in ascending order, each once",
                            (long long)voxels[k], (long long)voxels[k - 1]);
        }
    }
    return LR_OK;
}

/* Begins a progress report over `total` rows. */
static struct counted_sink count_rows(struct lr_operator *op, const lr_row_sink *sink, int64_t total)
{
    /* The report has this text until the first row is finished. */
    op->progress_filter.what = what;
    op->progress_filter.done = 0.0;
    op->progress_filter.total = (double)total;
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
    const int64_t *voxels = choice->voxels;
    const int64_t total = voxels != NULL ? choice->num_voxels : choice->end - choice->begin;
    struct counted_sink counted = count_rows(op, sink, total);
    for (int64_t k = 0, num; k < total; k += num) {
        /* Consecutive voxels are computed together. */
        const int64_t begin = voxels != NULL ? voxels[k] : choice->begin;
        for (num = voxels != NULL ? 1 : total; k + num < total && voxels[k + num] == begin + num;) num++;
        struct lr_rows rows = lr_rows_of_voxels(&op->params, begin, begin + num);
        LR_TRY(run_counted(op, &rows, choice->part, &counted));
    }
    return LR_OK;
}

static lr_status count_row(void *user, const lr_row *row)
{
    int64_t **next = user;
    *(*next)++ = row->count;
    return LR_OK;
}

lr_status lr_operator_count_rows(lr_operator *op, const lr_row_choice *choice, int64_t *counts)
{
    return lr_operator_rows_part(op, choice, &(lr_row_sink){count_row, &counts});
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
        if (!vec_is_finite(points_mm[k])) {
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
    if (pixels == NULL || !vec_is_finite(point_mm))
        return lr_error(op->params.log, LR_BAD_INPUT, "a picture needs a finite point and an array of pixels");
    return backend->fns->picture(backend->self, point_mm, module, pixels);
}

/* --- the matrix by rows of LORs. For a block of LORs, the rows of all voxels are collected, then transposed by a
 * counting sort. If a block needs too much memory, its last LORs are moved to the next block --- */

/* ELEMENT_BYTES: memory of an element until it has been transposed. LOR_BYTES: memory of a LOR. */
enum { ELEMENT_BYTES = 20, LOR_BYTES = 8 };

/* The number of sampled rows that determines the size of the first block. */
enum { SAMPLE_ROWS = 24 };

/* The fraction of the memory that is planned for a block. */
#define PLANNED_SHARE 0.7

/* A block of LORs: positions begin .. end - 1 in the selection. */
struct block {
    struct lr_operator *op;
    const lr_selection *part;
    int64_t begin, end;
    int64_t count, capacity, most; /* count: number of elements; capacity: with memory; most: allowed */
    uint32_t *place;               /* [capacity]: positions in the selection, counted from `begin` */
    uint32_t *voxel;
    float *value;
    int64_t total;     /* LORs of the selection */
    double num_voxels; /* voxels of the grid */
};

/* --- collecting --- */

/* Doubles the arrays. If this would exceed the memory limit, drops LORs from the end of the block until there is enough
 * room. */
static lr_status make_room(struct block *block)
{
    const lr_log *log = block->op->params.log;
    if (block->capacity < block->most) {
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

    while (block->count > block->most * 3 / 4) {
        if (block->end - block->begin == 1) {
            return lr_error(
                log, LR_FAILED,
                "the elements of LOR %lld alone need more than the memory limit: raise it, or take a coarser grid",
                (long long)lr_selection_lor(block->op->params.lors, block->part, block->begin));
        }
        block->end = block->begin + (block->end - block->begin) / 2;
        int64_t count = 0;
        for (int64_t k = 0; k < block->count; k++) {
            if (block->place[k] < block->end - block->begin) {
                block->place[count] = block->place[k];
                block->voxel[count] = block->voxel[k];
                block->value[count++] = block->value[k];
            }
        }
        block->count = count;
    }
    return LR_OK;
}

static lr_status collect(void *user, const lr_row *row)
{
    struct block *block = user;
    struct lr_selection_finder finder = {.lors = block->op->params.lors, .selection = block->part};
    for (int64_t k = 0; k < row->count; k++) {
        const int64_t place = lr_selection_find(&finder, row->lor[k]);
        if (place < block->begin || place >= block->end) continue;
        if (block->count == block->capacity) LR_TRY(make_room(block));
        if (place < block->end) {
            block->place[block->count] = (uint32_t)(place - block->begin);
            block->voxel[block->count] = (uint32_t)row->row;
            block->value[block->count++] = (float)row->probability[k];
        }
    }
    const double done = (double)(row->row + 1) / block->num_voxels;
    return lr_progress_filter_report(&block->op->progress_filter, "computing matrix rows of LORs",
                                     (double)block->begin + done * (double)(block->end - block->begin),
                                     (double)block->total);
}

/* --- transposing --- */

/* Transposes the block by a counting sort and passes its rows to the sink. Voxels keep their ascending order. */
static lr_status deliver(const struct block *block, const lr_row_sink *sink)
{
    const lr_log *log = block->op->params.log;
    const int64_t num_lors = block->end - block->begin;
    int64_t *row_voxel = NULL;
    double *row_value = NULL;
    /* Index of each LOR's first element. */
    int64_t *first = lr_alloc(num_lors + 2, sizeof(*first), "rows of LORs", log);
    uint32_t *voxel = lr_alloc(block->count, sizeof(*voxel), "rows of LORs", log);
    float *value = lr_alloc(block->count, sizeof(*value), "rows of LORs", log);
    lr_status status = first != NULL && voxel != NULL && value != NULL ? LR_OK : LR_FAILED;
    if (status != LR_OK) goto done;
    for (int64_t k = 0; k < block->count; k++) first[block->place[k] + 2]++;
    for (int64_t n = 2; n <= num_lors; n++) first[n] += first[n - 1];
    for (int64_t k = 0; k < block->count; k++) {
        const int64_t to = first[block->place[k] + 1]++;
        voxel[to] = block->voxel[k];
        value[to] = block->value[k];
    }

    int64_t most = 0;
    for (int64_t n = 0; n < num_lors; n++) most = first[n + 1] - first[n] > most ? first[n + 1] - first[n] : most;
    row_voxel = lr_alloc(most, sizeof(*row_voxel), "a row of a LOR", log);
    row_value = lr_alloc(most, sizeof(*row_value), "a row of a LOR", log);
    status = row_voxel != NULL && row_value != NULL ? LR_OK : LR_FAILED;

    struct lr_selection_walk walk = {.lors = block->op->params.lors, .selection = block->part};
    while (status == LR_OK && lr_selection_next(&walk) && walk.position < block->end) {
        const int64_t skipped = block->begin > walk.position ? block->begin - walk.position : 0;
        for (int64_t k = skipped; k < walk.span.count && status == LR_OK; k++) {
            const int64_t place = walk.position + k;
            if (place >= block->end) break;
            const int64_t n = place - block->begin;
            const int64_t begin = first[n], count = first[n + 1] - begin;
            for (int64_t m = 0; m < count; m++) {
                row_voxel[m] = voxel[begin + m];
                row_value[m] = (double)value[begin + m];
            }
            const lr_row row = {lr_span_lor(&walk.span, k), count, row_voxel, row_value};
            status = sink->take(sink->user, &row);

            if (status == LR_OK && k % 4096 == 0)
                status = lr_progress_filter_report(&block->op->progress_filter, "computing matrix rows of LORs",
                                                   (double)block->end, (double)block->total);
        }
    }

done:
    lr_free_all(first, voxel, value, row_voxel, row_value);
    return status;
}

/* --- blocks --- */

/* Computes voxel rows for the module pairs, or single LORs, of the block. */
static lr_status run_rows(struct block *block, int64_t begin, int64_t end, const lr_row_sink *sink)
{
    const struct lr_rows rows = lr_rows_of_voxels(&block->op->params, begin, end);
    const lr_lors *lors = block->op->params.lors;
    const lr_selection *part = block->part;
    int32_t *pairs = lr_alloc(lors->num_pairs, sizeof(*pairs), "module pairs", block->op->params.log);
    if (pairs == NULL) return LR_FAILED;
    lr_selection window = {.pairs = pairs};
    if (part != NULL && part->lors != NULL) {
        window = (lr_selection){.lors = part->lors + block->begin, .num_lors = block->end - block->begin};
    } else {
        const int64_t first = lr_selection_lor(lors, part, block->begin);
        const int64_t last = lr_selection_lor(lors, part, block->end - 1);
        const bool is_all = lr_selection_is_all(part);
        const int64_t num = is_all ? lors->num_pairs : part->num_pairs;
        for (int64_t k = 0; k < num; k++) {
            const int32_t pair = is_all ? (int32_t)k : part->pairs[k];
            if (lors->offsets[pair + 1] > first && lors->offsets[pair] <= last) pairs[window.num_pairs++] = pair;
        }
    }
    const lr_status status = rows_run(block->op, &rows, &window, sink);
    free(pairs);
    return status;
}

static lr_status count_elements(void *user, const lr_row *row)
{
    *(int64_t *)user += row->count;
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
    const int64_t num_voxels = op->info.num_voxels, total = lr_selection_count(op->params.lors, part);
    struct block block = {.op = op, .part = part, .end = total, .total = total, .num_voxels = (double)num_voxels};
    if (total == 0) return LR_OK;

    /* The mean number of elements per LOR of the selection is found from a sample of rows. */
    const int64_t rows = num_voxels < SAMPLE_ROWS ? num_voxels : SAMPLE_ROWS;
    int64_t elements = 0;
    const lr_row_sink counter = {count_elements, &elements};
    for (int64_t k = 0; k < rows; k++) {
        const double turns = ((double)k + 0.5) * LR_GOLDEN_SHARE;
        const int64_t row = (int64_t)((turns - (double)(int64_t)turns) * (double)num_voxels);
        LR_TRY(lr_progress_filter_report(&op->progress_filter, "estimating the matrix", (double)k, (double)rows));
        LR_TRY(run_rows(&block, row, row + 1, &counter));
    }
    double density = (double)elements / (double)rows * block.num_voxels / (double)total;

    const int64_t memory = lr_stored_memory_limit(&op->params);
    const lr_row_sink collector = {collect, &block};
    for (; block.begin < total; block.begin = block.end) {
        /* The number of LORs that should fit into memory. */
        const double fitting = PLANNED_SHARE * (double)memory / (ELEMENT_BYTES * density + LOR_BYTES);
        const double most = fitting < 4e9 ? fitting : 4e9; /* positions are 32-bit numbers */
        const double left = (double)(total - block.begin);
        const int64_t length = most >= left ? total - block.begin : most > 1.0 ? (int64_t)most : 1;

        const int64_t room = memory - LOR_BYTES * length;
        block.end = block.begin + length;
        block.most = room > ELEMENT_BYTES * 1024 ? room / ELEMENT_BYTES : 1024;
        lr_status status = run_rows(&block, 0, num_voxels, &collector);
        if (status == LR_OK) status = deliver(&block, sink);
        density = 0.5 * (density + (double)block.count / (double)(block.end - block.begin));
        lr_free_all(block.place, block.voxel, block.value);
        block.place = block.voxel = NULL;
        block.value = NULL;
        block.count = block.capacity = 0;
        LR_TRY(status);
    }
    return LR_OK;
}

/* --- forecasts: memory and the number of elements, estimated from a sample of rows. The clock only limits the sample:
 * no time is forecast --- */

/* A sample is taken at places: positions in the choice at which some consecutive rows are computed. The sample ends
 * after ENOUGH_SECONDS if it has ENOUGH_PLACES places, or after MOST_SECONDS if it has SOME_PLACES. */
#define ENOUGH_SECONDS 0.5
#define MOST_SECONDS 2.0
enum { ENOUGH_PLACES = 24, SOME_PLACES = 4, MOST_PLACES = 4096 };

/* The number of rows at a place is chosen so that the rows take about PLACE_SECONDS. */
#define PLACE_SECONDS 0.04
enum { MOST_ROWS = 1024, LEAST_STRETCHES = 64 };

struct sample {
    struct lr_operator *op;
    const lr_rows_work *work;
    int64_t num_rows; /* rows of the choice */
    int64_t elements; /* elements of the rows at this place */
    int64_t above;    /* elements of these rows that reach the threshold */
    int places;
};

static lr_status count(void *user, const lr_row *row)
{
    struct sample *sample = user;
    double largest = 0.0;
    for (int64_t k = 0; k < row->count; k++) largest = row->probability[k] > largest ? row->probability[k] : largest;
    const double least = sample->work->threshold * largest;
    for (int64_t k = 0; k < row->count; k++) sample->above += row->probability[k] >= least;
    sample->elements += row->count;
    return LR_OK;
}

/* Computes at most `most` consecutive rows at a place. */
static lr_status run_place(struct sample *sample, int64_t place, int64_t most, int64_t *num)
{
    const lr_row_choice *choice = &sample->work->choice;
    const lr_row_sink sink = {count, sample};
    const int64_t left = sample->num_rows - place;
    const int64_t begin = choice->voxels != NULL ? choice->voxels[place] : choice->begin + place;
    *num = 1;
    while (*num < most && *num < left && (choice->voxels == NULL || choice->voxels[place + *num] == begin + *num))
        (*num)++;
    const struct lr_rows rows = lr_rows_of_voxels(&sample->op->params, begin, begin + *num);
    sample->elements = sample->above = 0;
    LR_TRY(
        lr_progress_filter_report(&sample->op->progress_filter, "estimating the matrix", sample->places, MOST_PLACES));
    return rows_run(sample->op, &rows, choice->part, &sink);
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
    const int64_t num_rows =
        whole.choice.voxels != NULL ? whole.choice.num_voxels : whole.choice.end - whole.choice.begin;
    struct sample sample = {.op = op, .work = &whole, .num_rows = num_rows};
    if (num_rows == 0) return LR_OK;

    /* The first row does not count, because its time includes compiling shaders and allocating memory. */
    int64_t num = 1, most = 1, taken = 0;
    const int64_t longest = num_rows / LEAST_STRETCHES + 1 < MOST_ROWS ? num_rows / LEAST_STRETCHES + 1 : MOST_ROWS;
    LR_TRY(run_place(&sample, num_rows / 2, 1, &num));

    /* A sample never has more rows than the caller wants, so that the forecast takes no longer than the rows. */
    double mean = 0.0, mean_above = 0.0; /* mean number of a row's elements, and of those that reach the threshold,
                                            summed over places */
    const double start_s = lr_clock_seconds();
    for (double now_s = start_s; sample.places < MOST_PLACES && taken < num_rows &&
                                 (sample.places < ENOUGH_PLACES || now_s - start_s < ENOUGH_SECONDS) &&
                                 (sample.places < SOME_PLACES || now_s - start_s < MOST_SECONDS);) {
        const double turns = ((double)sample.places + 0.5) * LR_GOLDEN_SHARE;
        const double share = turns - (double)(int64_t)turns;
        const double begun_s = now_s;
        LR_TRY(run_place(&sample, (int64_t)(share * (double)num_rows), most, &num));
        now_s = lr_clock_seconds();
        mean += (double)sample.elements / (double)num;
        mean_above += (double)sample.above / (double)num;
        sample.places++;
        taken += num;
        if (now_s - begun_s < 0.5 * PLACE_SECONDS) most = 2 * most < longest ? 2 * most : longest;
    }

    const double rows = (double)num_rows;
    forecast->rows = rows;
    forecast->elements = rows * mean / sample.places;
    forecast->kept_elements = rows * mean_above / sample.places;
    if (work->by_lor) { /* all voxels' rows are computed and transposed in memory */
        const double lors = (double)lr_selection_count(op->params.lors, work->choice.part);
        forecast->rows = lors;
        forecast->kept_elements = forecast->elements;
        forecast->memory_bytes =
            fmin(ELEMENT_BYTES * forecast->elements + LOR_BYTES * lors, (double)lr_stored_memory_limit(&op->params));
    }
    return LR_OK;
}

lr_status lr_operator_forecast_projections(lr_operator *op, double projections, lr_store store, lr_forecast *forecast)
{
    *forecast = (lr_forecast){0};
    if (op->info.lors->scanner == NULL)
        return lr_error(op->params.log, LR_USAGE, "projections of histo-images are not forecast");
    LR_TRY(lr_project_check_room(op));
    forecast->memory_bytes = (double)op->info.num_voxels * op->backend.fns->voxel_bytes;
    if (op->info.stored) {
        forecast->matrix_bytes = (double)op->info.memory_bytes;
        forecast->memory_bytes += forecast->matrix_bytes;
        return LR_OK;
    }

    /* If the matrix will be stored, its memory is included. */
    const double known = op->params.deterministic ? 0.0 : projections;
    const bool is_stored = store == LR_STORE_YES || (store == LR_STORE_AUTO && lr_stored_pays(&op->backend, known));
    if (!is_stored || op->params.lors->count >= LR_STORED_MOST_LORS) return LR_OK;
    const lr_rows_work all = {.choice = {.end = op->info.num_voxels}};
    lr_forecast rows;
    LR_TRY(lr_operator_forecast_rows(op, &all, &rows));
    const double bytes = LR_STORED_ELEMENT_BYTES * rows.elements;
    const bool has_room = bytes <= (double)lr_stored_memory_limit(&op->params);
    forecast->matrix_bytes = store == LR_STORE_YES || has_room ? bytes : 0.0;
    forecast->memory_bytes += forecast->matrix_bytes;
    return LR_OK;
}
