/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The matrix by rows of LORs: voxel rows of a block of LORs are collected and turned over by a
 * counting sort. A block that turns out to need more memory than there is loses LORs at its end,
 * which then begin the next. */
#include "operator/rows.h"

#include "base/log.h"
#include "base/mem.h"
#include "model/lors/selection.h"

#include <math.h>
#include <stdlib.h>

/* Bytes of an element while it is collected and turned over, and of a LOR. */
enum { ELEMENT_BYTES = 20, LOR_BYTES = 8 };

/* Rows that the first block's size is guessed from. */
enum { SAMPLE_ROWS = 24 };

/* How much of the memory a block is planned to take. */
#define PLANNED_SHARE 0.7

/* Steps of this share of the rows, taken modulo one, spread evenly. */
#define GOLDEN_SHARE 0.6180339887498949

/* What LORs a block has: places begin .. end - 1 of the selection. */
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

/* --- turning over --- */

/* Elements in the order of their LORs. */
struct turned {
    int64_t *first; /* [LORs + 1] */
    uint32_t *voxel;
    float *value;
};

static void turned_finish(struct turned *turned)
{
    free(turned->first);
    free(turned->voxel);
    free(turned->value);
}

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

static lr_status hand_over(const struct turned *turned, int64_t n, int64_t lor, struct handed *handed,
                           const lr_row_sink *sink)
{
    const int64_t begin = turned->first[n], count = turned->first[n + 1] - begin;
    for (int64_t k = 0; k < count; k++) {
        handed->voxel[k] = turned->voxel[begin + k];
        handed->value[k] = (double)turned->value[begin + k];
    }
    const lr_row row = {lor, count, handed->voxel, handed->value};
    return sink->take(sink->user, &row);
}

static lr_status reserve_handed(const struct block *block, const struct turned *turned, struct handed *handed)
{
    const lr_log *log = block->op->params.log;
    int64_t most = 0;
    for (int64_t n = 0; n < block->end - block->begin; n++) {
        const int64_t count = turned->first[n + 1] - turned->first[n];
        most = count > most ? count : most;
    }
    handed->voxel = lr_alloc(most, sizeof(*handed->voxel), "a row of a LOR", log);
    handed->value = lr_alloc(most, sizeof(*handed->value), "a row of a LOR", log);
    return handed->voxel != NULL && handed->value != NULL ? LR_OK : LR_FAILED;
}

/* The block's elements are there; asks whether to stop. */
static lr_status report_delivery(const struct block *block)
{
    return lr_progress_filter_say(&block->op->progress_filter, "computing matrix rows of LORs", (double)block->end,
                                  (double)block->total);
}

static lr_status deliver(const struct block *block, const struct turned *turned, const lr_row_sink *sink)
{
    struct handed handed = {0};
    struct lr_selection_walk walk = {.lors = block->op->params.lors, .selection = block->part};
    lr_status status = reserve_handed(block, turned, &handed);
    while (status == LR_OK && lr_selection_next(&walk) && walk.position < block->end) {
        const int64_t skipped = block->begin > walk.position ? block->begin - walk.position : 0;
        for (int64_t k = skipped; k < walk.span.count && status == LR_OK; k++) {
            const int64_t place = walk.position + k;
            if (place >= block->end) break;
            const int64_t lor = walk.span.numbers ? walk.span.numbers[k] : walk.span.first + k;
            status = hand_over(turned, place - block->begin, lor, &handed, sink);
            if (status == LR_OK && k % 4096 == 0) status = report_delivery(block);
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
    const struct lr_rows rows = lr_rows_of_voxels(block->op, begin, end);
    int32_t *pairs = lr_alloc(block->op->params.lors->num_pairs, sizeof(*pairs), "module pairs", block->op->params.log);
    if (pairs == NULL) return LR_FAILED;
    const lr_selection window = window_of(block, pairs);
    const lr_status status = lr_rows_run(block->op, &rows, &window, sink);
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

struct lr_lor_rows_plan lr_lor_rows_forecast(const struct lr_operator *op, double lors, double elements)
{
    const double memory = (double)memory_limit(op);
    const double needed = ELEMENT_BYTES * elements + LOR_BYTES * lors;
    return (struct lr_lor_rows_plan){.passes = fmax(ceil(needed / (PLANNED_SHARE * memory)), 1.0),
                                     .memory_bytes = fmin(needed, memory)};
}

/* LORs that are planned to fit. */
static int64_t plan_length(const struct block *block, int64_t memory, double density)
{
    const double fitting = PLANNED_SHARE * (double)memory / (ELEMENT_BYTES * density + LOR_BYTES);
    const double most = fitting < 4e9 ? fitting : 4e9; /* places are 32 bits */
    const double left = (double)(block->total - block->begin);
    return most >= left ? block->total - block->begin : most > 1.0 ? (int64_t)most : 1;
}

static lr_status do_block(struct block *block, const lr_row_sink *sink)
{
    struct turned turned = {0};
    const lr_row_sink collector = {collect, block};
    LR_TRY(run_rows(block, 0, block->op->info.num_voxels, &collector));
    lr_status status = turn_over(block, &turned);
    if (status == LR_OK) status = deliver(block, &turned, sink);
    turned_finish(&turned);
    return status;
}

static lr_status do_blocks(struct block *block, const lr_row_sink *sink)
{
    const int64_t memory = memory_limit(block->op);
    double density;
    LR_TRY(guess_density(block, &density));
    while (block->begin < block->total) {
        const int64_t length = plan_length(block, memory, density);
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
    LR_TRY(lr_rows_check_sink(op, sink));
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
