/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/order.h"
#include "io/lor_data/lor_data.h"

#include "base/grow.h"
#include "base/log.h"
#include "base/mem.h"

#include <stdlib.h>

enum { FIRST_ROOM = 8192, LEAST_FULL = 1 << 22 };

struct weighted {
    int64_t lor;
    float weight;
};

static lr_lor_data *create_sparse(int64_t room, const lr_log *log)
{
    lr_lor_data *data = lr_alloc(1, sizeof(*data), "sums per LOR", log);
    if (data != NULL) {
        data->index = lr_alloc(room, sizeof(*data->index), "sums per LOR", log);
        data->values = lr_alloc(room, sizeof(*data->values), "sums per LOR", log);
        if (data->index == NULL || data->values == NULL) {
            lr_lor_data_destroy(data);
            return NULL;
        }
    }
    return data;
}

/* Sorts the waiting LORs and adds up repeats. */
static lr_lor_data *bin_weighted(const struct lr_lor_sums *sums, const lr_log *log)
{
    struct weighted *items = lr_alloc(sums->waiting, sizeof(*items), "weights per LOR", log);
    lr_lor_data *data = items != NULL ? create_sparse(sums->waiting, log) : NULL;
    if (data != NULL) {
        for (int64_t k = 0; k < sums->waiting; k++) items[k] = (struct weighted){sums->lors[k], sums->weights[k]};
        qsort(items, (size_t)sums->waiting, sizeof(*items), lr_compare_int64s);
        data->count = 0;
        for (int64_t k = 0; k < sums->waiting; k++) {
            if (data->count > 0 && data->index[data->count - 1] == items[k].lor) {
                data->values[data->count - 1] += items[k].weight;
            } else {
                data->index[data->count] = items[k].lor;
                data->values[data->count++] = items[k].weight;
            }
        }
    }
    free(items);
    return data;
}

/* Merges the waiting LORs into the sums. */
static lr_status take_in(struct lr_lor_sums *sums, const lr_log *log)
{
    lr_lor_data *fresh =
        sums->weights != NULL ? bin_weighted(sums, log) : lr_lor_data_bin(sums->lors, sums->waiting, log);
    sums->waiting = 0;
    if (fresh == NULL || sums->sums == NULL) {
        sums->sums = fresh != NULL ? fresh : sums->sums;
        return fresh != NULL ? LR_OK : LR_FAILED;
    }
    lr_lor_data *merged = create_sparse(sums->sums->count + fresh->count, log);
    if (merged != NULL) {
        const lr_lor_data *a = sums->sums;
        int64_t i = 0, j = 0;
        merged->count = 0;
        while (i < a->count || j < fresh->count) {
            const bool from_a = j == fresh->count || (i < a->count && a->index[i] <= fresh->index[j]);
            const bool from_b = i == a->count || (j < fresh->count && fresh->index[j] <= a->index[i]);
            merged->index[merged->count] = from_a ? a->index[i] : fresh->index[j];
            merged->values[merged->count++] = (from_a ? a->values[i] : 0) + (from_b ? fresh->values[j] : 0);
            i += from_a;
            j += from_b;
        }

        lr_lor_data_destroy(sums->sums);
        sums->sums = merged;
    }
    lr_lor_data_destroy(fresh);
    return merged != NULL ? LR_OK : LR_FAILED;
}

lr_status lr_lor_sums_add(struct lr_lor_sums *sums, int64_t lor, float weight, const lr_log *log)
{
    const int64_t summed = sums->sums != NULL ? sums->sums->count : 0;
    if (sums->waiting == sums->room && sums->room >= LEAST_FULL && sums->room >= summed) {
        LR_TRY(take_in(sums, log));
    } else if (sums->waiting == sums->room) {
        int64_t room = sums->room;
        const int64_t needed = room + 1 > FIRST_ROOM ? room + 1 : FIRST_ROOM;
        if (sums->weights != NULL)
            LR_TRY(lr_grow(&sums->weights, &room, needed, &(struct lr_items){sizeof(*sums->weights), "events", log}));
        LR_TRY(lr_grow(&sums->lors, &sums->room, needed, &(struct lr_items){sizeof(*sums->lors), "events", log}));
    }
    if (weight != 1 && sums->weights == NULL) {
        sums->weights = lr_alloc(sums->room, sizeof(*sums->weights), "weights of events", log);
        for (int64_t k = 0; sums->weights != NULL && k < sums->waiting; k++) sums->weights[k] = 1;
        LR_TRY(sums->weights != NULL ? LR_OK : LR_FAILED);
    }

    if (sums->weights != NULL) sums->weights[sums->waiting] = weight;
    sums->lors[sums->waiting++] = lor;
    return LR_OK;
}

lr_lor_data *lr_lor_sums_finish(struct lr_lor_sums *sums, const lr_log *log)
{
    lr_lor_data *data = NULL;
    if (take_in(sums, log) == LR_OK) {
        data = sums->sums;
        sums->sums = NULL;
    }
    lr_lor_sums_destroy(sums);
    return data;
}

void lr_lor_sums_destroy(struct lr_lor_sums *sums)
{
    lr_lor_data_destroy(sums->sums);
    free(sums->lors);
    free(sums->weights);
    *sums = (struct lr_lor_sums){0};
}
