/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "render/rows/host_merge.h"

#include "base/grow.h"
#include "base/log.h"
#include "base/parallel.h"

#include <stdlib.h>
#include <string.h>

/* A part that is being merged. */
struct merging {
    struct lr_host_merge *merge;
    const struct lr_merge *list;
    const struct lr_merge_part *part;
    int64_t num_elements;
};

void lr_host_merge_finish(struct lr_host_merge *merge)
{
    for (int64_t k = 0; k < merge->max_rows; k++) lr_elements_finish(&merge->rows[k]);
    free(merge->rows);
    free(merge->begin);
    free(merge->sorted);
    free(merge->listed);
}

static lr_status make_room(struct lr_host_merge *merge, int64_t elements, int points)
{
    const lr_log *log = merge->log;
    const struct lr_items items = {sizeof(*merge->listed), "matrix elements", log};
    const int64_t max_rows = merge->max_rows;
    LR_TRY(lr_grow(&merge->listed, &merge->max_listed, elements, &items));
    LR_TRY(lr_grow(&merge->sorted, &merge->max_sorted, elements, &items));
    LR_TRY(lr_grow(&merge->begin, &merge->max_points, points + 1,
                   &(struct lr_items){sizeof(*merge->begin), "points", log}));
    LR_TRY(
        lr_grow(&merge->rows, &merge->max_rows, points, &(struct lr_items){sizeof(*merge->rows), "matrix rows", log}));
    for (int64_t k = max_rows; k < merge->max_rows; k++) merge->rows[k] = (struct lr_elements){0};
    return LR_OK;
}

/* Keeps the order of what a point has. */
static void sort_by_point(const struct merging *merging)
{
    struct lr_host_merge *merge = merging->merge;
    const struct lr_merge_part *part = merging->part;
    int64_t *begin = merge->begin;
    const uint32_t first = (uint32_t)part->first_point;
    memset(begin, 0, ((size_t)part->num_points + 1) * sizeof(*begin));
    for (int64_t k = 0; k < merging->num_elements; k++) begin[merge->listed[k].point - first + 1]++;
    for (int point = 0; point < part->num_points; point++) begin[point + 1] += begin[point];
    for (int64_t k = 0; k < merging->num_elements; k++)
        merge->sorted[begin[merge->listed[k].point - first]++] = merge->listed[k];
    memmove(begin + 1, begin, (size_t)part->num_points * sizeof(*begin));
    begin[0] = 0;
}

/* Repeats of a LOR in a point came in the order of their thread, and points are added up in theirs: the sum
 * is always the same. */
static lr_status merge_row(const struct merging *merging, int64_t row)
{
    const struct lr_host_merge *merge = merging->merge;
    const int64_t per_row = merging->list->per_row, first = row * per_row;
    const int64_t num_points = merging->part->num_points;
    const int64_t end = first + per_row < num_points ? first + per_row : num_points;
    const double factor = 1.0 / (double)per_row;
    struct lr_elements *elements = &merge->rows[row];
    elements->count = 0;
    for (int64_t k = merge->begin[first]; k < merge->begin[end]; k++) {
        const struct lr_listed *listed = &merge->sorted[k];
        LR_TRY(lr_elements_add(elements, listed->lor, factor * (double)listed->weight, merge->log));
    }
    return end - first == per_row ? lr_elements_merge(elements, merging->list->num_lors, merge->log) : LR_OK;
}

static void merge_rows(void *user, int64_t begin, int64_t end, int worker)
{
    const struct merging *merging = user;
    (void)worker;
    for (int64_t row = begin; row < end; row++)
        if (merge_row(merging, row) != LR_OK) merging->merge->rows[row].count = -1; /* its sentence is in the log */
}

lr_status lr_host_merge_run(struct lr_host_merge *merge, const struct lr_merge *list, const struct lr_merge_part *part,
                            uint32_t *listed)
{
    const int num_rows = lr_merge_num_rows(list, part->num_points);
    LR_TRY(gl_buffer_read(list->list, 0, sizeof(*listed), listed));
    if (*listed > list->capacity) return LR_OK;
    struct merging merging = {merge, list, part, *listed};
    LR_TRY(make_room(merge, merging.num_elements, part->num_points));
    LR_TRY(gl_buffer_read(list->list, LR_LIST_HEAD_BYTES, merging.num_elements * LR_LIST_ELEMENT_BYTES, merge->listed));
    sort_by_point(&merging);
    lr_parallel_for(merge->threads, num_rows, 1, merge_rows, &merging);
    for (int row = 0; row < num_rows; row++) LR_TRY(merge->rows[row].count >= 0 ? LR_OK : LR_FAILED);
    return LR_OK;
}
