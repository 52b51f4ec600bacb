/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "recon/subsets.h"

#include "base/log.h"
#include "base/mem.h"
#include "model/lors/lor_check.h"
#include "recon/lor_cursor.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

/* LORs that a source is asked for at a time when all of it is summed. */
enum { CHUNK = 1 << 20 };

static const char *const what = "the subsets";

/* --- which pairs --- */

/* Lists the module pairs of each subset, in ascending order. */
static lr_status list_pairs(struct lr_subsets *subsets, const int32_t *subset_of)
{
    const int64_t num_pairs = subsets->lors->num_pairs;
    for (int64_t pair = 0; pair < num_pairs; pair++) {
        subsets->list[subset_of[pair]].pairs.num_pairs++;
    }
    for (int k = 0; k < subsets->count; k++) {
        struct lr_subset *subset = &subsets->list[k];
        subset->pair_list = lr_alloc(subset->pairs.num_pairs, sizeof(*subset->pair_list), what,
                                     subsets->params->log);
        if (subset->pair_list == NULL) {
            return LR_FAILED;
        }
        subset->pairs.pairs = subset->pair_list;
        subset->pairs.num_pairs = 0;
    }
    for (int64_t pair = 0; pair < num_pairs; pair++) {
        struct lr_subset *subset = &subsets->list[subset_of[pair]];
        subset->pair_list[subset->pairs.num_pairs++] = (int32_t)pair;
    }
    return LR_OK;
}

/* Numbers by their bits read backwards: each visit is far from the ones before. */
void lr_osem_visits(int count, int32_t *order)
{
    int bits = 0, filled = 0;
    while (1 << bits < count) {
        bits++;
    }
    for (int n = 0; n < 1 << bits; n++) {
        int backwards = 0;
        for (int k = 0; k < bits; k++) {
            backwards |= (n >> k & 1) << (bits - 1 - k);
        }
        if (backwards < count) {
            order[filled++] = backwards;
        }
    }
}

/* --- dense data: every LOR of the pairs --- */

static int64_t num_lors_of(const lr_lors *lors, int64_t pair)
{
    return lors->offsets[pair + 1] - lors->offsets[pair];
}

static void fill_runs(const lr_lors *lors, struct lr_subset *subset)
{
    for (int64_t k = 0; k < subset->num_runs; k++) {
        const int32_t pair = subset->pairs.pairs[k];
        const int64_t count = num_lors_of(lors, pair);
        subset->runs[k] = (struct lr_lor_run){lors->offsets[pair], subset->num_values, count};
        subset->num_values += count;
    }
}

static lr_status sum_dense(const lr_lor_data *data, const struct lr_subset *subset, double *sum)
{
    for (int64_t n = 0; n < subset->num_runs; n++) {
        const struct lr_lor_run *run = &subset->runs[n];
        const lr_vector values = lr_vector_of_floats(data->values + run->first, run->count);
        lr_vector_sums sums;
        LR_TRY(lr_vector_add_up(&values, NULL, &sums));
        *sum += sums.sum;
    }
    return LR_OK;
}

static lr_status cut_dense(struct lr_subsets *subsets, struct lr_subset *subset)
{
    const lr_lors *lors = subsets->lors;
    subset->projected = subset->pairs;
    subset->num_runs = subset->pairs.num_pairs;
    subset->runs = lr_alloc(subset->num_runs, sizeof(*subset->runs), what, subsets->params->log);
    if (subset->runs == NULL) {
        return LR_FAILED;
    }
    fill_runs(lors, subset);
    return sum_dense(subsets->params->data, subset, &subset->counts);
}

/* --- sparse data: LORs with counts --- */

/* Calls for each entry with counts, in order, with the subset it belongs to. */
static void for_each_count(const struct lr_subsets *subsets, const int32_t *subset_of,
                           void (*body)(struct lr_subset *subset, int64_t lor, float value))
{
    const lr_lor_data *data = subsets->params->data;
    int64_t pair = 0;
    for (int64_t k = 0; k < data->count; k++) {
        while (data->index[k] >= subsets->lors->offsets[pair + 1]) {
            pair++;
        }
        if (data->values[k] > 0.0f) {
            body(&subsets->list[subset_of[pair]], data->index[k], data->values[k]);
        }
    }
}

static void count_entry(struct lr_subset *subset, int64_t lor, float value)
{
    (void)lor;
    subset->num_values++;
    subset->counts += value;
}

static void take_entry(struct lr_subset *subset, int64_t lor, float value)
{
    subset->lor_list[subset->num_values] = lor;
    subset->measured[subset->num_values++] = value;
}

static lr_status cut_sparse(struct lr_subsets *subsets, const int32_t *subset_of)
{
    const lr_log *log = subsets->params->log;
    for_each_count(subsets, subset_of, count_entry);
    for (int k = 0; k < subsets->count; k++) {
        struct lr_subset *subset = &subsets->list[k];
        subset->lor_list = lr_alloc(subset->num_values, sizeof(int64_t), what, log);
        subset->measured = lr_alloc(subset->num_values, sizeof(float), what, log);
        if (subset->lor_list == NULL || subset->measured == NULL) {
            return LR_FAILED;
        }
        subset->projected =
            (lr_selection){.lors = subset->lor_list, .num_lors = subset->num_values};
        subset->num_values = 0; /* counted again as they come */
    }
    for_each_count(subsets, subset_of, take_entry);
    return LR_OK;
}

/* --- additive term where data is sparse --- */

static lr_status check_values(const struct lr_subsets *subsets, const lr_lor_span *span,
                              const float *values)
{
    for (int64_t k = 0; k < span->count; k++) {
        if (!(values[k] >= 0.0f && values[k] <= FLT_MAX)) {
            const int64_t lor = span->numbers != NULL ? span->numbers[k] : span->first + k;
            return lr_lor_report_value(subsets->lors, lor, values[k], "additive term",
                                       subsets->params->log);
        }
    }
    return LR_OK;
}

static lr_status read_additive(const struct lr_subsets *subsets, struct lr_subset *subset)
{
    const lr_recon_params *params = subsets->params;
    const lr_lor_source *source = &params->additive_source;
    const lr_lor_span span = {.numbers = subset->lor_list, .count = subset->num_values};
    subset->additive = lr_alloc(span.count, sizeof(*subset->additive), what, params->log);
    if (subset->additive == NULL) {
        return LR_FAILED;
    }
    if (params->additive == NULL) {
        LR_TRY(source->get(source->user, &span, subset->additive));
        return check_values(subsets, &span, subset->additive);
    }
    struct lr_lor_cursor cursor = lr_lor_cursor_at(params->additive, 0);
    for (int64_t k = 0; k < span.count; k++) {
        subset->additive[k] = (float)lr_lor_cursor_read(&cursor, span.numbers[k]);
    }
    return LR_OK;
}

/* Visits every LOR. */
static lr_status sum_source(const struct lr_subsets *subsets, double *sum)
{
    const lr_lor_source *source = &subsets->params->additive_source;
    float *values = lr_alloc(CHUNK, sizeof(*values), "the additive term", subsets->params->log);
    lr_status status = values != NULL ? LR_OK : LR_FAILED;
    for (int64_t first = 0; status == LR_OK && first < subsets->lors->count; first += CHUNK) {
        const int64_t left = subsets->lors->count - first;
        const lr_lor_span span = {.first = first, .count = left < CHUNK ? left : CHUNK};
        status = source->get(source->user, &span, values);
        status = status == LR_OK ? check_values(subsets, &span, values) : status;
        for (int64_t k = 0; status == LR_OK && k < span.count; k++) {
            *sum += values[k];
        }
    }
    free(values);
    return status;
}

static lr_status add_additive(struct lr_subsets *subsets)
{
    const lr_recon_params *params = subsets->params;
    if (params->additive == NULL && params->additive_source.get == NULL) {
        return LR_OK;
    }
    for (int k = 0; k < subsets->count; k++) {
        LR_TRY(read_additive(subsets, &subsets->list[k]));
    }
    for (int64_t k = 0; params->additive != NULL && k < params->additive->count; k++) {
        subsets->additive_counts += params->additive->values[k];
    }
    if (params->additive != NULL) {
        return LR_OK;
    }
    subsets->additive_counts = params->additive_sum;
    return params->additive_sum > 0.0 ? LR_OK : sum_source(subsets, &subsets->additive_counts);
}

/* --- all of it --- */

/* The only subset has all LORs: operators and fits know these without lists. */
static void join_all(struct lr_subsets *subsets)
{
    struct lr_subset *subset = &subsets->list[0];
    if (subsets->count > 1) {
        return;
    }
    subset->pairs = (lr_selection){0};
    if (!subsets->is_sparse) {
        subset->projected = (lr_selection){0};
        free(subset->runs);
        subset->runs = NULL;
    }
}

/* The caller's, by their numbers. */
static lr_status take_subsets(struct lr_subsets *subsets, const int32_t *subset_of)
{
    const lr_log *log = subsets->params->log;
    for (int64_t pair = 0; pair < subsets->lors->num_pairs; pair++) {
        if (subset_of[pair] < 0 || subset_of[pair] >= subsets->count) {
            return lr_error(log, LR_USAGE, "pair %lld belongs to subset %d: give 0 to %d",
                            (long long)pair, (int)subset_of[pair], subsets->count - 1);
        }
    }
    const bool is_many = lr_comm_get_info(subsets->params->comm).size > 1;
    LR_TRY(list_pairs(subsets, subset_of));
    for (int k = 0; k < subsets->count; k++) {
        subsets->order[k] = k;
        if (subsets->list[k].pairs.num_pairs == 0 && !is_many) {
            return lr_error(log, LR_USAGE, "no pair belongs to subset %d of %d: leave it out", k,
                            subsets->count);
        }
    }
    return LR_OK;
}

static lr_status deal_subsets(struct lr_subsets *subsets, int32_t *subset_of)
{
    const lr_status dealt = lr_osem_subsets(subsets->lors, subsets->count, subset_of);
    if (dealt != LR_OK) {
        return lr_error(subsets->params->log, dealt,
                        "no memory to deal %lld module pairs into %d subsets",
                        (long long)subsets->lors->num_pairs, subsets->count);
    }
    lr_osem_visits(subsets->count, subsets->order);
    return list_pairs(subsets, subset_of);
}

static lr_status cut(struct lr_subsets *subsets, int32_t *subset_of)
{
    const int32_t *given = subsets->params->subset_of;
    if (given != NULL) {
        memcpy(subset_of, given, (size_t)subsets->lors->num_pairs * sizeof(*subset_of));
    }
    LR_TRY(given != NULL ? take_subsets(subsets, subset_of) : deal_subsets(subsets, subset_of));
    if (subsets->is_sparse) {
        LR_TRY(cut_sparse(subsets, subset_of));
        LR_TRY(add_additive(subsets));
    }
    for (int k = 0; k < subsets->count; k++) {
        struct lr_subset *subset = &subsets->list[k];
        if (!subsets->is_sparse) {
            LR_TRY(cut_dense(subsets, subset));
        }
        subsets->counts += subset->counts;
        subsets->most_values =
            subset->num_values > subsets->most_values ? subset->num_values : subsets->most_values;
    }
    join_all(subsets);
    return LR_OK;
}

/* Counts and shares of all ranks. An additive sum that was given is of all ranks already. */
static lr_status sum_ranks(struct lr_subsets *subsets)
{
    lr_comm *comm = subsets->params->comm;
    const bool is_given = subsets->params->additive_sum > 0.0;
    subsets->own_counts = subsets->counts;
    double sums[3] = {subsets->counts, is_given ? 0.0 : subsets->additive_counts, 0.0};
    for (int k = 0; k < subsets->count; k++) {
        struct lr_subset *subset = &subsets->list[k];
        subset->share = (double)subset->num_values;
        sums[2] += subset->share;
        double of_all[2] = {subset->share, subset->counts};
        LR_TRY(lr_comm_sum_numbers(comm, of_all, 2));
        subset->share = of_all[0];
        subset->counts = of_all[1];
    }
    LR_TRY(lr_comm_sum_numbers(comm, sums, 3));
    subsets->counts = sums[0];
    subsets->additive_counts = is_given ? subsets->additive_counts : sums[1];
    for (int k = 0; k < subsets->count; k++) {
        subsets->list[k].share /= sums[2] > 0.0 ? sums[2] : 1.0;
    }
    return LR_OK;
}

lr_status lr_subsets_init(struct lr_subsets *subsets, const lr_recon_params *params)
{
    const lr_operator_info *info = lr_operator_get_info(params->op);
    const lr_log *log = params->log;
    *subsets = (struct lr_subsets){.params = params,
                                   .lors = info->lors,
                                   .count = params->subsets > 0 ? params->subsets : 1,
                                   .is_sparse = params->data->index != NULL,
                                   .additive_counts = info->of_events ? params->additive_sum : 0.0};
    subsets->list = lr_alloc(subsets->count, sizeof(*subsets->list), what, log);
    subsets->order = lr_alloc(subsets->count, sizeof(*subsets->order), what, log);
    if (subsets->list == NULL || subsets->order == NULL) {
        return LR_FAILED;
    }
    int32_t *subset_of = lr_alloc(info->lors->num_pairs, sizeof(*subset_of), what, log);
    const lr_status status = subset_of != NULL ? cut(subsets, subset_of) : LR_FAILED;
    free(subset_of);
    return status == LR_OK ? sum_ranks(subsets) : status;
}

void lr_subsets_finish(struct lr_subsets *subsets)
{
    for (int k = 0; subsets->list != NULL && k < subsets->count; k++) {
        struct lr_subset *subset = &subsets->list[k];
        free(subset->measured);
        free(subset->additive);
        free(subset->runs);
        free(subset->pair_list);
        free(subset->lor_list);
    }
    free(subsets->list);
    free(subsets->order);
    *subsets = (struct lr_subsets){0};
}
