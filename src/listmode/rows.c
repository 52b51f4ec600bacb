/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "listmode/rows.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/order.h"
#include "model/lors/rows.h"
#include "model/lors/selection.h"

#include <stdlib.h>
#include <string.h>

lr_status lr_listmode_places_find(struct lr_listmode_places *places, const struct lr_listmode_events *events,
                                  const lr_selection *selection, int64_t r, const lr_log *log)
{
    const int64_t *range = &events->offsets[r];
    struct lr_selection_walk walk = {
        .lors = &events->layout, .selection = selection, .begin = range[0], .end = range[1]};
    places->map = NULL;
    places->count = 0;
    if (range[1] == range[0] || !lr_selection_next(&walk)) return LR_OK;
    places->count = walk.span.count;
    places->share = (double)walk.span.count / (double)(range[1] - range[0]);
    places->position = walk.position;
    places->first = walk.span.first - range[0];
    if (walk.span.numbers == NULL) return LR_OK;

    const int64_t size = range[1] - range[0];
    if (places->room < size) {
        int32_t *larger = lr_resize(places->owned, size, sizeof(*larger), "a part of the events", log);
        if (larger == NULL) return LR_FAILED;
        places->owned = larger;
        places->room = size;
    }
    memset(places->owned, -1, (size_t)size * sizeof(*places->owned));
    for (int64_t k = 0; k < walk.span.count; k++) places->owned[walk.span.numbers[k] - range[0]] = (int32_t)k;
    places->map = places->owned;
    return LR_OK;
}

void lr_listmode_places_finish(struct lr_listmode_places *places)
{
    free(places->owned);
    *places = (struct lr_listmode_places){0};
}

/* --- rows --- */

/* Every event is visited once for each block of rows. The first block has LEAST_ROWS rows. After a block with few
 * elements, the next block has four times as many rows; after a block with more than ELEMENTS, it has a quarter. CHUNK:
 * number of events between two progress reports. */
enum { LEAST_ROWS = 1024, MOST_ROWS = 1 << 16, ELEMENTS = 1 << 21, CHUNK = 1 << 13 };

struct block {
    const struct lr_listmode_row_source *source;
    int64_t begin, end;       /* rows of the block */
    struct lr_elements *rows; /* [MOST_ROWS], or as many as are wanted if that is less */
    int64_t number;           /* number of the current event */
    lr_status status;
};

static void take_element(void *user, int64_t voxel, double element)
{
    struct block *block = user;
    if (voxel >= block->begin && voxel < block->end && block->status == LR_OK)
        block->status = lr_elements_add(&block->rows[voxel - block->begin], block->number, element, block->source->log);
}

static lr_status each_block(struct block *block, const struct lr_rows *wanted, struct lr_row_delivery *delivery)
{
    const struct lr_listmode_row_source *source = block->source;
    const struct lr_listmode_events *events = source->events;
    const struct lr_listmode_visitor visitor = {take_element, block};
    const double wanted_rows = (double)(wanted->end - wanted->begin);
    int64_t rows = LEAST_ROWS;
    for (int64_t begin = wanted->begin; begin < wanted->end; begin = block->end) {
        block->begin = begin;
        block->end = lr_smaller(begin + rows, wanted->end);
        const double before = (double)(begin - wanted->begin), of_block = (double)(block->end - begin);
        int64_t done = 0, elements_found = 0;
        for (int64_t r = 0; r < events->layout.num_pairs; r++) {
            for (int group = 0; group < LR_LISTMODE_GROUPS; group++) {
                const int64_t *ends = &events->groups[r][group];
                for (int64_t k = ends[0]; k < ends[1] && block->status == LR_OK; k++) {
                    if (done++ % CHUNK == 0) {
                        const double share = (double)done / (double)events->layout.count;
                        LR_TRY(lr_progress_report(source->progress, "computing matrix rows", before + of_block * share,
                                                  wanted_rows));
                    }
                    const int64_t at = source->order != NULL ? (int64_t)source->order[k] : k;
                    block->number = events->offsets[r] + events->number[at];
                    source->visit(source->self, k, lr_listmode_group_axis(group), &visitor);
                }
                LR_TRY(block->status);
            }
        }
        for (int64_t row = block->begin; row < block->end; row++) {
            struct lr_elements *elements = &block->rows[row - block->begin];
            elements_found += elements->count;
            LR_TRY(lr_elements_merge(elements, events->layout.count, source->log));
            LR_TRY(lr_row_deliver(delivery, row, elements));
            elements->count = 0;
        }
        rows = elements_found < ELEMENTS / 4 ? 4 * rows : elements_found > ELEMENTS ? rows / 4 : rows;
        rows = lr_smaller(lr_larger(rows, LEAST_ROWS), MOST_ROWS);
    }
    return LR_OK;
}

lr_status lr_listmode_rows(const struct lr_listmode_row_source *source, const struct lr_rows *wanted,
                           const lr_row_sink *sink)
{
    if (wanted->grid == NULL) {
        return lr_error(source->log, LR_USAGE,
                        "list mode knows voxels of its grid, not points between them: ask for rows of voxels");
    }
    struct lr_row_delivery delivery = {.sink = sink, .log = source->log};
    const int64_t most = lr_smaller(wanted->end - wanted->begin, MOST_ROWS);
    struct block block = {.source = source, .rows = lr_alloc(most, sizeof(*block.rows), "matrix rows", source->log)};
    const lr_status status = block.rows != NULL ? each_block(&block, wanted, &delivery) : LR_FAILED;
    for (int64_t k = 0; block.rows != NULL && k < most; k++) lr_elements_finish(&block.rows[k]);
    free(block.rows);
    lr_owned_row_finish(&delivery.row);
    return status;
}
