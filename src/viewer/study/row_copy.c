/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/study/row_copy.h"

#include "base/log.h"
#include "base/mem.h"

#include <stdlib.h>

/* One element on its way through qsort, which takes no pointer of ours. */
struct entry {
    double probability;
    int64_t place;
};

static int compare(const void *a, const void *b)
{
    const struct entry *left = a, *right = b;
    if (left->probability != right->probability) return left->probability > right->probability ? -1 : 1;
    return left->place < right->place ? -1 : left->place > right->place;
}

static lr_status sort(struct row_copy *copy, const lr_log *log)
{
    const int64_t count = copy->row.count;
    struct entry *entries = lr_alloc(count, sizeof(*entries), "a matrix row", log);
    copy->order = lr_alloc(count, sizeof(*copy->order), "a matrix row", log);
    if (entries == NULL || copy->order == NULL) {
        free(entries);
        return LR_FAILED;
    }
    for (int64_t k = 0; k < count; k++) entries[k] = (struct entry){copy->row.probability[k], k};
    qsort(entries, (size_t)count, sizeof(*entries), compare);
    for (int64_t k = 0; k < count; k++) copy->order[k] = entries[k].place;
    free(entries);
    return LR_OK;
}

static lr_status take(void *user, const lr_row *row)
{
    const struct row_copier *copier = user;
    struct row_copy *copy = copier->copy;
    row_copy_finish(copy);
    LR_TRY(lr_owned_row_copy(&copy->row, row, copier->log));
    for (int64_t k = 0; k < row->count; k++) copy->sum += row->probability[k];
    return copier->has_order ? sort(copy, copier->log) : LR_OK;
}

lr_row_sink row_copier_sink(struct row_copier *copier)
{
    return (lr_row_sink){take, copier};
}

void row_copy_finish(struct row_copy *copy)
{
    lr_owned_row_finish(&copy->row);
    free(copy->order);
    *copy = (struct row_copy){0};
}
