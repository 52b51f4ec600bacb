/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/study/row_copy.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One element on its way through qsort, which takes no pointer of ours. */
struct entry {
    double probability;
    int64_t place;
};

static int compare(const void *a, const void *b)
{
    const struct entry *left = a, *right = b;
    if (left->probability != right->probability) {
        return left->probability > right->probability ? -1 : 1;
    }
    return left->place < right->place ? -1 : left->place > right->place;
}

static lr_status sort(struct row_copy *copy, const lr_log *log)
{
    struct entry *entries = lr_alloc(copy->count, sizeof(*entries), "a matrix row", log);
    if (entries == NULL) {
        return LR_FAILED;
    }
    for (int64_t k = 0; k < copy->count; k++) {
        entries[k] = (struct entry){copy->probability[k], k};
    }
    qsort(entries, (size_t)copy->count, sizeof(*entries), compare);
    for (int64_t k = 0; k < copy->count; k++) {
        copy->order[k] = entries[k].place;
    }
    free(entries);
    return LR_OK;
}

static lr_status take(void *user, const lr_row *row)
{
    const struct row_copier *copier = user;
    struct row_copy *copy = copier->copy;
    row_copy_finish(copy);
    copy->lor = lr_alloc(row->count, sizeof(*copy->lor), "a matrix row", copier->log);
    copy->order = lr_alloc(row->count, sizeof(*copy->order), "a matrix row", copier->log);
    copy->probability =
        lr_alloc(row->count, sizeof(*copy->probability), "a matrix row", copier->log);
    if (copy->lor == NULL || copy->order == NULL || copy->probability == NULL) {
        return LR_FAILED;
    }
    copy->row = row->row;
    copy->count = row->count;
    for (int64_t k = 0; k < row->count; k++) {
        copy->lor[k] = row->lor[k];
        copy->probability[k] = row->probability[k];
        copy->sum += row->probability[k];
        copy->largest = fmax(copy->largest, row->probability[k]);
    }
    return sort(copy, copier->log);
}

lr_row_sink row_copier_sink(struct row_copier *copier)
{
    return (lr_row_sink){take, copier};
}

void row_copy_finish(struct row_copy *copy)
{
    free(copy->lor);
    free(copy->probability);
    free(copy->order);
    *copy = (struct row_copy){0};
}

lr_row row_copy_as_row(const struct row_copy *copy)
{
    return (lr_row){copy->row, copy->count, copy->lor, copy->probability};
}
