/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Values per LOR: functions to create them, to bin them from events, to extract them for a part of the scanner, and
 * to check them. */
#include "base/order.h"

#include "base/log.h"
#include "base/mem.h"
#include "model/lors/place.h"

#include <lr/factors.h>
#include <lr/lors.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static lr_lor_data *create(int64_t count, bool sparse, const lr_log *log)
{
    lr_lor_data *data = lr_alloc(1, sizeof(*data), "LOR data", log);
    if (data == NULL) return NULL;
    data->count = count;
    data->values = lr_alloc(count, sizeof(*data->values), "LOR data, a number for each LOR", log);
    data->index = sparse ? lr_alloc(count, sizeof(*data->index), "LOR data", log) : NULL;
    if (data->values == NULL || (sparse && data->index == NULL)) {
        lr_lor_data_destroy(data);
        return NULL;
    }
    return data;
}

lr_lor_data *lr_lor_data_create(const lr_lors *lors, const lr_log *log)
{
    return create(lors->count, false, log);
}

lr_lor_data *lr_lor_data_bin(const int64_t *events, int64_t num_events, const lr_log *log)
{
    int64_t *sorted = lr_alloc(num_events, sizeof(*sorted), "sorted events", log);
    if (sorted == NULL) return NULL;
    /* Events that belong to no LOR are skipped. */
    int64_t num_lors_hit = 0;
    for (int64_t k = 0; k < num_events; k++)
        if (events[k] >= 0) sorted[num_lors_hit++] = events[k];
    qsort(sorted, (size_t)num_lors_hit, sizeof(*sorted), lr_compare_int64s);

    int64_t num_lors = 0;
    for (int64_t k = 0; k < num_lors_hit; k++) num_lors += k == 0 || sorted[k] != sorted[k - 1];
    lr_lor_data *data = create(num_lors, true, log);
    if (data != NULL) {
        /* Counts are summed as integers, because a float stops counting at 2^24. */
        int64_t out = 0;
        for (int64_t begin = 0, end; begin < num_lors_hit; begin = end) {
            for (end = begin + 1; end < num_lors_hit && sorted[end] == sorted[begin]; end++) {
            }
            data->index[out] = sorted[begin];
            data->values[out++] = (float)(end - begin);
        }
    }

    free(sorted);
    return data;
}

lr_lor_data *lr_lor_data_expand(const lr_lor_data *data, const lr_lors *lors, const lr_log *log)
{
    const int64_t last = data->count > 0 ? data->count - 1 : 0;
    if (data->index == NULL ? data->count != lors->count
                            : data->count > 0 && (data->index[0] < 0 || data->index[last] >= lors->count)) {
        lr_log_write(log, LR_LOG_ERROR, LR_USAGE,
                     "LOR data of another scanner: %lld values, the last for LOR %lld, but %s has %lld LORs",
                     (long long)data->count, (long long)(data->index && data->count > 0 ? data->index[last] : last),
                     lors->scanner->name, (long long)lors->count);
        return NULL;
    }
    lr_lor_data *dense = lr_lor_data_create(lors, log);
    if (dense == NULL) return NULL;
    if (data->index == NULL) {
        memcpy(dense->values, data->values, (size_t)data->count * sizeof(*data->values));
        return dense;
    }
    for (int64_t k = 0; k < data->count; k++) dense->values[data->index[k]] = data->values[k];
    return dense;
}

void lr_lor_data_destroy(lr_lor_data *data)
{
    if (data != NULL) lr_free_all(data->index, data->values, data);
}

/* --- data as a source --- */

static lr_status get_data(void *user, const lr_lor_span *span, float *values)
{
    const lr_lor_data *data = user;
    int64_t entry = 0;
    for (int64_t k = 0; k < span->count; k++) {
        const int64_t lor = lr_span_lor(span, k);
        if (data->index == NULL) {
            if (lor < 0 || lor >= data->count) return LR_USAGE;
            values[k] = data->values[lor];
            continue;
        }
        entry = k == 0 ? lr_first_at_least(data->index, data->count, lor) : entry;
        while (entry < data->count && data->index[entry] < lor) entry++;
        const bool is_listed = entry < data->count && data->index[entry] == lor;
        values[k] = is_listed ? data->values[entry] : 0.0f;
    }
    return LR_OK;
}

lr_lor_source lr_lor_data_source(const lr_lor_data *data)
{
    return (lr_lor_source){get_data, (void *)(uintptr_t)data};
}

/* --- data of some module pairs --- */

lr_lor_data *lr_lor_data_take(const lr_lor_data *data, const lr_lors *all, const lr_lors *part, const lr_log *log)
{
    const bool is_sparse = data->index != NULL;
    lr_lor_data *taken = is_sparse ? NULL : lr_lor_data_create(part, log);
    for (int64_t k = 0; taken != NULL && k < part->num_pairs; k++) {
        const int64_t pair = lr_lors_pair(all, part->pairs[k][0], part->pairs[k][1]);
        const int64_t count = part->offsets[k + 1] - part->offsets[k];
        memcpy(taken->values + part->offsets[k], data->values + all->offsets[pair],
               (size_t)count * sizeof(*taken->values));
    }
    if (!is_sparse) return taken;

    /* Entries are counted first, and then copied. */
    for (int pass = 0; pass < 2; pass++) {
        int64_t count = 0;
        for (int64_t k = 0; k < part->num_pairs; k++) {
            const int64_t pair = lr_lors_pair(all, part->pairs[k][0], part->pairs[k][1]);
            const int64_t begin = lr_first_at_least(data->index, data->count, all->offsets[pair]);
            const int64_t end = lr_first_at_least(data->index, data->count, all->offsets[pair + 1]);
            for (int64_t n = begin; taken != NULL && n < end; n++) {
                taken->index[count + n - begin] = data->index[n] - all->offsets[pair] + part->offsets[k];
                taken->values[count + n - begin] = data->values[n];
            }
            count += end - begin;
        }
        if (pass == 0) taken = create(count, true, log);
        if (taken == NULL) return NULL;
    }
    return taken;
}

/* --- checks --- */

const char *lr_lor_name(const lr_lors *lors, int64_t lor, char text[160])
{
    const lr_lor spelled = lr_lors_describe(lors, lor);
    if (lors->scanner == NULL) {
        snprintf(text, 160, "voxel %lld of view %d", (long long)(lor - lors->offsets[spelled.module_i]),
                 spelled.module_i);
    } else {
        snprintf(text, 160, "LOR %lld (crystal %d, %d of module %d with crystal %d, %d of module %d)", (long long)lor,
                 spelled.p, spelled.q, spelled.module_i, spelled.r, spelled.s, spelled.module_j);
    }
    return text;
}

lr_status lr_lor_report_value(const lr_lors *lors, int64_t lor, double value, const char *name, const lr_log *log)
{
    char text[160];
    return lr_error(log, LR_BAD_INPUT, "the %s of %s is %g: values must be finite and at least 0", name,
                    lr_lor_name(lors, lor, text), value);
}

lr_status lr_lor_index_check(const int64_t *index, int64_t count, const lr_lors *lors, const char *name,
                             const lr_log *log)
{
    for (int64_t k = 0; k < count; k++) {
        const int64_t lor = index[k];
        if (lor < 0 || lor >= lors->count) {
            return lr_error(log, LR_BAD_INPUT, "entry %lld of the %s names LOR %lld: LORs are numbered 0 to %lld",
                            (long long)k, name, (long long)lor, (long long)lors->count - 1);
        }
        if (k > 0 && lor <= index[k - 1]) {
            return lr_error(
                log, LR_BAD_INPUT,
                "entry %lld of the %s names LOR %lld after LOR %lld: sort the entries and join repeated ones",
                (long long)k, name, (long long)lor, (long long)index[k - 1]);
        }
    }
    return LR_OK;
}
