/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Projections by pairs of single LORs: of all LORs of the module pairs that they belong to, whose
 * values are held, and of these only those of the list are taken. */
#include "render/pairs/pairs.h"

#include "base/log.h"
#include "base/mem.h"

#include <stdlib.h>

/* The module pairs that LORs of a list belong to, and the values of all their LORs. */
struct hosts {
    const lr_lors *lors;
    const struct lr_lor_list *list;
    int32_t *pairs; /* [num_pairs], ascending */
    int64_t num_pairs, num_values;
    float *values; /* [num_values] */
};

/* Module pair of a LOR that is not before the LORs of `pair`. */
static int64_t pair_from(const lr_lors *lors, int64_t pair, int64_t lor)
{
    while (lors->offsets[pair + 1] <= lor) pair++;
    return pair;
}

static void find_pairs(struct hosts *hosts)
{
    const int64_t *offsets = hosts->lors->offsets;
    int64_t pair = 0;
    for (int64_t k = 0; k < hosts->list->count; k++) {
        pair = pair_from(hosts->lors, pair, hosts->list->lors[k]);
        if (hosts->num_pairs == 0 || hosts->pairs[hosts->num_pairs - 1] != pair) {
            hosts->pairs[hosts->num_pairs++] = (int32_t)pair;
            hosts->num_values += offsets[pair + 1] - offsets[pair];
        }
    }
}

static void close_hosts(struct hosts *hosts)
{
    free(hosts->pairs);
    free(hosts->values);
}

static lr_status open_hosts(struct hosts *hosts, const struct lr_pairs *pairs, const struct lr_lor_list *list)
{
    const lr_lors *lors = pairs->params.lors;
    const int64_t most = list->count < lors->num_pairs ? list->count : lors->num_pairs;
    const lr_log *log = pairs->params.log;
    *hosts = (struct hosts){.lors = lors, .list = list};
    hosts->pairs = lr_alloc(most, sizeof(*hosts->pairs), "module pairs of a list", log);
    if (hosts->pairs == NULL) return LR_FAILED;
    find_pairs(hosts);
    hosts->values = lr_alloc(hosts->num_values, sizeof(*hosts->values), "LOR values", log);
    if (hosts->values == NULL) {
        close_hosts(hosts);
        return LR_FAILED;
    }
    return LR_OK;
}

/* Puts values of the list among those of its pairs, NULL for 1 each. */
static void spread(struct hosts *hosts, const float *values)
{
    const int64_t *offsets = hosts->lors->offsets;
    int64_t k = 0, begin = 0;
    for (int64_t n = 0; n < hosts->num_pairs; n++) {
        const int64_t first = offsets[hosts->pairs[n]], end = offsets[hosts->pairs[n] + 1];
        for (; k < hosts->list->count && hosts->list->lors[k] < end; k++)
            hosts->values[begin + hosts->list->lors[k] - first] = values != NULL ? values[k] : 1.0f;
        begin += end - first;
    }
}

/* Takes values of the list from those of its pairs. */
static void pick(const struct hosts *hosts, float *values)
{
    const int64_t *offsets = hosts->lors->offsets;
    int64_t k = 0, begin = 0;
    for (int64_t n = 0; n < hosts->num_pairs; n++) {
        const int64_t first = offsets[hosts->pairs[n]], end = offsets[hosts->pairs[n] + 1];
        for (; k < hosts->list->count && hosts->list->lors[k] < end; k++)
            values[k] = hosts->values[begin + hosts->list->lors[k] - first];
        begin += end - first;
    }
}

lr_status lr_pairs_forward_lors(void *self, const struct lr_lor_list *list, const float *image, float *values)
{
    struct lr_pairs *pairs = self;
    struct hosts hosts;
    LR_TRY(open_hosts(&hosts, pairs, list));
    const struct lr_pair_list all = {.pairs = hosts.pairs, .num_pairs = hosts.num_pairs};
    lr_vector data = lr_vector_of_floats(hosts.values, hosts.num_values);
    const lr_status status = lr_pairs_forward(pairs, &all, image, &data);
    if (status == LR_OK) pick(&hosts, values);
    close_hosts(&hosts);
    return status;
}

lr_status lr_pairs_back_lors(void *self, const struct lr_lor_list *list, const float *values, float *image)
{
    struct lr_pairs *pairs = self;
    struct hosts hosts;
    LR_TRY(open_hosts(&hosts, pairs, list));
    const struct lr_pair_list all = {.pairs = hosts.pairs, .num_pairs = hosts.num_pairs};
    const lr_vector data = lr_vector_of_floats(hosts.values, hosts.num_values);
    spread(&hosts, values);
    const lr_status status = lr_pairs_back(pairs, &all, &data, image);
    close_hosts(&hosts);
    return status;
}
