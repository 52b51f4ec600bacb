/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/log.h"
#include "base/mem.h"

#include <lr/lors.h>
#include <stdlib.h>
#include <string.h>

static lr_lor_data *create(int64_t count, bool sparse, const lr_log *log)
{
    lr_lor_data *data = lr_alloc(1, sizeof(*data), "LOR data", log);
    if (data == NULL) return NULL;
    data->count = count;
    data->values = lr_alloc(count, sizeof(*data->values), "LOR data", log);
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

static int compare_lors(const void *a, const void *b)
{
    const int64_t lor_a = *(const int64_t *)a, lor_b = *(const int64_t *)b;
    return (lor_a > lor_b) - (lor_a < lor_b);
}

/* Copies the events that are LORs, in order; returns how many there are. */
static int64_t sort_events(const int64_t *events, int64_t num_events, int64_t *sorted)
{
    int64_t kept = 0;
    for (int64_t k = 0; k < num_events; k++)
        if (events[k] >= 0) sorted[kept++] = events[k];
    qsort(sorted, (size_t)kept, sizeof(*sorted), compare_lors);
    return kept;
}

static int64_t count_different(const int64_t *sorted, int64_t count)
{
    int64_t different = 0;
    for (int64_t k = 0; k < count; k++) different += k == 0 || sorted[k] != sorted[k - 1];
    return different;
}

/* Counts are summed as integers: a float stops counting at 2^24. */
static void fill_counts(const int64_t *sorted, int64_t count, lr_lor_data *data)
{
    int64_t out = 0;
    for (int64_t begin = 0, end; begin < count; begin = end) {
        for (end = begin + 1; end < count && sorted[end] == sorted[begin]; end++) {
        }
        data->index[out] = sorted[begin];
        data->values[out++] = (float)(end - begin);
    }
}

lr_lor_data *lr_lor_data_bin(const int64_t *events, int64_t num_events, const lr_log *log)
{
    int64_t *sorted = lr_alloc(num_events, sizeof(*sorted), "sorted events", log);
    if (sorted == NULL) return NULL;
    const int64_t kept = sort_events(events, num_events, sorted);
    lr_lor_data *data = create(count_different(sorted, kept), true, log);
    if (data != NULL) fill_counts(sorted, kept, data);
    free(sorted);
    return data;
}

lr_lor_data *lr_lor_data_expand(const lr_lor_data *data, const lr_lors *lors, const lr_log *log)
{
    const int64_t last = data->count > 0 ? data->count - 1 : 0;
    if (data->index == NULL ? data->count != lors->count
                            : data->count > 0 && (data->index[0] < 0 || data->index[last] >= lors->count)) {
        lr_log_write(log, LR_LOG_ERROR, LR_USAGE,
                     "LOR data of another scanner: %lld values, the last for LOR %lld, but %s has "
                     "%lld LORs",
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
    if (data != NULL) {
        free(data->index);
        free(data->values);
        free(data);
    }
}
