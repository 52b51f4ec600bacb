/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "recon/subsets.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "device/vector.h"
#include "model/lors/place.h"
#include "operator/updates.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MEASURED = 0, ADDITIVE };

static const char *const names[2] = {"the measured counts", "the additive term"};

/* --- ranks --- */

lr_status lr_ranks_init(struct lr_ranks *ranks, lr_comm *comm, int64_t num_voxels, const lr_log *log)
{
    const lr_comm_info info = lr_comm_get_info(comm);
    *ranks = (struct lr_ranks){.comm = comm, .size = info.size, .has_slabs = info.size > 1};
    ranks->offsets = lr_alloc((int64_t)info.size + 1, sizeof(*ranks->offsets), "shares of ranks", log);
    if (ranks->offsets == NULL) return LR_FAILED;
    lr_comm_shares(comm, num_voxels, ranks->offsets);
    ranks->begin = ranks->offsets[info.rank];
    ranks->end = ranks->offsets[info.rank + 1];
    return LR_OK;
}

lr_vector lr_ranks_slab(const struct lr_ranks *ranks, const lr_vector *image)
{
    return lr_vector_part(image, ranks->begin, ranks->end - ranks->begin);
}

lr_status lr_ranks_add_update(const struct lr_ranks *ranks, lr_poisson_fit *fit, lr_vector_sums *before,
                              lr_vector_sums *after)
{
    const bool has_sums = before != NULL && ranks->has_slabs;
    double numbers[9] = {fit->log_likelihood, fit->measured_counts, fit->estimated_counts, (double)fit->left_out_lors,
                         fit->left_out_counts};
    double *const sums = numbers + 5;
    if (has_sums) {
        sums[0] = before->product;
        sums[1] = after->sum;
        sums[2] = after->product;
        sums[3] = (double)after->not_finite;
    }
    LR_TRY(lr_comm_sum_numbers(ranks->comm, numbers, has_sums ? 9 : 5));
    *fit = lr_vector_name_fit(numbers);
    if (has_sums) {
        before->product = sums[0];
        after->sum = sums[1];
        after->product = sums[2];
        after->not_finite = (int64_t)sums[3];
    }
    return LR_OK;
}

/* --- vectors of the caller --- */

static bool is_at_device(const lr_vector *vector)
{
    return lr_place_get_info(vector->place).kind != LR_PLACE_HOST;
}

static const lr_vector *given(const lr_recon_params *params, int which)
{
    return which == MEASURED ? params->data : params->additive;
}

lr_status lr_find_invalid(const lr_vector *numbers, int64_t *at, double *value)
{
    enum { SOME = 1 << 13 };
    double some[SOME];
    lr_vector_sums sums;
    *at = -1;
    LR_TRY(lr_vector_add_up(numbers, NULL, &sums));
    if (sums.not_finite == 0 && sums.smallest >= 0.0 && sums.largest <= FLT_MAX) return LR_OK;
    for (int64_t begin = 0; *at < 0 && begin < numbers->count; begin += SOME) {
        const lr_vector from = lr_vector_part(numbers, begin, SOME);
        lr_vector to = lr_vector_of_doubles(some, from.count);
        LR_TRY(lr_vector_copy(&from, &to));
        for (int64_t k = 0; *at < 0 && k < to.count; k++) {
            if (some[k] >= 0.0 && some[k] <= FLT_MAX) continue;
            *at = begin + k;
            *value = some[k];
        }
    }
    return LR_OK;
}

lr_status lr_start_seen(lr_vector *sensitivity, lr_vector *scratch, double value)
{
    LR_TRY(lr_vector_copy(sensitivity, scratch));
    LR_TRY(lr_vector_divide(sensitivity, scratch, 0.0)); /* 1 where the sensitivity is positive */
    LR_TRY(lr_vector_fill(scratch, value));
    return lr_vector_multiply(sensitivity, scratch);
}

lr_status lr_start_from(const lr_vector *initial, lr_vector *image, const lr_log *log)
{
    lr_vector there;
    LR_TRY(lr_vector_bring(initial, &(lr_vector_params){.place = image->place, .name = "the initial image", .log = log},
                           &there));
    const lr_status status = lr_vector_multiply(image, &there);
    lr_vector_destroy(&there);
    return status;
}

bool lr_additive_is_listed(const lr_recon_params *params)
{
    const lr_vector *additive = params->additive;
    return additive != NULL && params->data_lors != NULL && additive->count == params->data->count &&
           additive->count != lr_operator_get_info(params->op)->lors->count;
}

/* index: LORs of the values; NULL = all */
static lr_status check_lor_values(const lr_recon_params *params, const lr_vector *values, const int64_t *index,
                                  const char *name)
{
    const lr_lors *lors = lr_operator_get_info(params->op)->lors;
    if (values->count < 0 || (values->count > 0 && values->values == NULL && values->storage == NULL))
        return lr_error(params->log, LR_USAGE, "the %s has no values", name);
    if (index == NULL && values->count != lors->count) {
        return lr_error(params->log, LR_USAGE,
                        "the %s has %lld values, the operator %lld LORs: make both from the same "
                        "scanner, or name the LORs of sparse data",
                        name, (long long)values->count, (long long)lors->count);
    }
    if (index != NULL) LR_TRY(lr_lor_index_check(index, values->count, lors, name, params->log));
    int64_t at;
    double value;
    LR_TRY(lr_find_invalid(values, &at, &value));
    return at < 0 ? LR_OK : lr_lor_report_value(lors, index != NULL ? index[at] : at, value, name, params->log);
}

lr_status lr_recon_check_vectors(const lr_recon_params *params)
{
    const int64_t num_voxels = lr_operator_get_info(params->op)->num_voxels;
    const bool is_listed = lr_additive_is_listed(params);
    LR_TRY(check_lor_values(params, params->data, params->data_lors, "data"));
    if (is_listed && !(params->additive_sum > 0.0)) {
        return lr_error(params->log, LR_USAGE,
                        "the additive term has values of the LORs with data alone: give its sum over all LORs, too");
    }
    if (params->additive != NULL)
        LR_TRY(check_lor_values(params, params->additive, is_listed ? params->data_lors : NULL, "additive term"));
    if (params->initial == NULL) return LR_OK;
    if (params->initial->count != num_voxels) {
        return lr_error(params->log, LR_USAGE, "the initial image has %lld voxels where the operator has %lld",
                        (long long)params->initial->count, (long long)num_voxels);
    }
    int64_t at;
    double value;
    LR_TRY(lr_find_invalid(params->initial, &at, &value));
    return at < 0 ? LR_OK
                  : lr_error(params->log, LR_BAD_INPUT,
                             "voxel %lld of the initial image is %g: values must be finite and at least 0",
                             (long long)at, value);
}

/* Number of LORs whose values a source gives in one call, when the values of all LORs are added up. */
enum { CHUNK = 1 << 20 };

static const char *const what = "the subsets";

/* --- pairs of modules --- */

static struct lr_subset *subset_at(const struct lr_subsets *subsets, int group, int part)
{
    return &subsets->list[group * subsets->interleave + part];
}

void lr_osem_visits(int count, int32_t *order)
{
    const double golden = 0.38196601125010515;
    int step = 1;
    for (int k = 1; k < count; k++) {
        int divisor = count; /* becomes the greatest common divisor of count and k */
        for (int rest = k; rest != 0;) {
            const int next = divisor % rest;
            divisor = rest;
            rest = next;
        }
        const bool is_nearer = fabs(k - golden * count) < fabs(step - golden * count);
        step = is_nearer && divisor == 1 ? k : step;
    }
    for (int n = 0; n < count; n++) order[n] = (int32_t)((int64_t)n * step % count);
}

/* --- sparse data: LORs with counts --- */

/* Counts the LORs with counts in each subset. If `takes` is true, also copies their numbers and values into the lists
 * of the subset. values: measured counts and the additive term (or NULL), on the host. */
static void visit_counts(const struct lr_subsets *subsets, const int32_t *group_of, const float *const values[2],
                         bool takes)
{
    const lr_recon_params *params = subsets->params;
    const bool is_listed = lr_additive_is_listed(params);
    int64_t pair = 0;
    for (int64_t k = 0; k < params->data->count; k++) {
        const int64_t lor = params->data_lors[k];
        while (lor >= subsets->lors->offsets[pair + 1]) pair++;
        if (!(values[MEASURED][k] > 0.0f)) continue;
        const int part = subsets->interleave > 1 ? lr_lors_turn(subsets->lors, lor, subsets->interleave) : 0;
        struct lr_subset *subset = subset_at(subsets, group_of[pair], part);
        const int64_t next = subset->num_values++;
        if (!takes) continue;
        subset->lor_list[next] = lor;
        subset->measured[next] = values[MEASURED][k];
        if (values[ADDITIVE] != NULL) subset->additive[next] = values[ADDITIVE][is_listed ? k : lor];
    }
}

/* Lists the LORs with counts of each subset, and their values. */
static lr_status cut_sparse(struct lr_subsets *subsets, const int32_t *group_of)
{
    const lr_recon_params *params = subsets->params;
    const lr_log *log = params->log;
    const bool has_additive = params->additive != NULL || params->additive_source.get != NULL;
    lr_vector host[2] = {{0}, {0}};
    lr_status status = LR_OK;
    for (int which = 0; which < 2 && status == LR_OK; which++) {
        const lr_vector_params there = {.name = names[which], .log = log};
        const lr_vector *from = given(params, which);
        status = from != NULL ? lr_vector_bring(from, &there, &host[which]) : LR_OK;
    }
    const float *const values[2] = {host[MEASURED].values, host[ADDITIVE].values};
    if (status == LR_OK) visit_counts(subsets, group_of, values, false);
    for (int k = 0; k < subsets->count && status == LR_OK; k++) {
        struct lr_subset *subset = &subsets->list[k];
        const int64_t count = subset->num_values;
        subset->lor_list = lr_alloc(count, sizeof(int64_t), what, log);
        subset->measured = lr_alloc(count, sizeof(float), what, log);
        subset->additive = has_additive ? lr_alloc(count, sizeof(float), what, log) : NULL;
        if (subset->lor_list == NULL || subset->measured == NULL || (subset->additive == NULL && has_additive))
            status = LR_FAILED;
        subset->projected = (lr_selection){.lors = subset->lor_list, .num_lors = count};
        subset->num_values = 0; /* values are counted again as they are copied */
    }
    if (status == LR_OK) visit_counts(subsets, group_of, values, true);
    for (int which = 0; which < 2; which++) lr_vector_destroy(&host[which]);
    return status;
}

/* --- the additive term of sparse data and interleaved subsets --- */

/* Gets values from the source of the additive term. Negative values are errors, because elsewhere a negative value
 * marks a LOR that is left out. */
static lr_status get_additive(const struct lr_subsets *subsets, const lr_lor_span *span, float *values)
{
    const lr_lor_source *source = &subsets->params->additive_source;
    LR_TRY(source->get(source->user, span, values));
    for (int64_t k = 0; k < span->count; k++) {
        if (!(values[k] >= 0.0f && values[k] <= FLT_MAX)) {
            return lr_lor_report_value(subsets->lors, lr_span_lor(span, k), values[k], "additive term",
                                       subsets->params->log);
        }
    }
    return LR_OK;
}

static lr_status add_additive(struct lr_subsets *subsets)
{
    const lr_recon_params *params = subsets->params;
    if (params->additive == NULL && params->additive_source.get == NULL) return LR_OK;
    for (int k = 0; subsets->is_sparse && params->additive == NULL && k < subsets->count; k++) {
        struct lr_subset *subset = &subsets->list[k];
        const lr_lor_span span = {.numbers = subset->lor_list, .count = subset->num_values};
        LR_TRY(get_additive(subsets, &span, subset->additive));
    }
    subsets->additive_counts = params->additive_sum;
    if (params->additive_sum > 0.0) return LR_OK;
    if (params->additive != NULL) {
        lr_vector_sums sums;
        LR_TRY(lr_vector_add_up(params->additive, NULL, &sums));
        subsets->additive_counts = sums.sum;
        return LR_OK;
    }

    /* The caller gave no sum, so the values of all LORs are added up. */
    float *values = lr_alloc(CHUNK, sizeof(*values), "the additive term", params->log);
    lr_status status = values != NULL ? LR_OK : LR_FAILED;
    for (int64_t first = 0; status == LR_OK && first < subsets->lors->count; first += CHUNK) {
        const int64_t left = subsets->lors->count - first;
        const lr_lor_span span = {.first = first, .count = left < CHUNK ? left : CHUNK};
        status = get_additive(subsets, &span, values);
        for (int64_t k = 0; status == LR_OK && k < span.count; k++) subsets->additive_counts += values[k];
    }
    free(values);
    return status;
}

/* --- subsets --- */

static lr_status cut(struct lr_subsets *subsets, int32_t *group_of)
{
    const lr_recon_params *params = subsets->params;
    const int num_groups = subsets->count / subsets->interleave;
    const int64_t num_pairs = subsets->lors->num_pairs;
    if (params->subset_of != NULL) {
        /* A group is a subset, or several interleaved subsets. */
        memcpy(group_of, params->subset_of, (size_t)num_pairs * sizeof(*group_of));
        for (int64_t pair = 0; pair < num_pairs; pair++) {
            if (group_of[pair] < 0 || group_of[pair] >= num_groups) {
                return lr_error(params->log, LR_USAGE, "pair %lld belongs to subset %d: give 0 to %d", (long long)pair,
                                (int)group_of[pair], num_groups - 1);
            }
        }
    } else {
        LR_TRY(lr_osem_subsets(subsets->lors, num_groups, group_of, params->log));
    }

    /* The module pairs of each group, in ascending order. */
    for (int64_t pair = 0; pair < num_pairs; pair++) subset_at(subsets, group_of[pair], 0)->pairs.num_pairs++;
    for (int k = 0; k < subsets->count; k += subsets->interleave) {
        struct lr_subset *subset = &subsets->list[k];
        subset->pair_list = lr_alloc(subset->pairs.num_pairs, sizeof(*subset->pair_list), what, params->log);
        if (subset->pair_list == NULL) return LR_FAILED;
        subset->pairs.num_pairs = 0;
    }
    for (int64_t pair = 0; pair < num_pairs; pair++) {
        struct lr_subset *subset = subset_at(subsets, group_of[pair], 0);
        subset->pair_list[subset->pairs.num_pairs++] = (int32_t)pair;
    }
    for (int k = 0; k < subsets->count; k++) {
        const int part = k % subsets->interleave;
        const struct lr_subset *first = &subsets->list[k - part];
        if (params->subset_of != NULL && first->pairs.num_pairs == 0 && lr_comm_get_info(params->comm).size == 1)
            return lr_error(params->log, LR_USAGE, "no pair belongs to subset %d of %d: leave it out", k,
                            subsets->count);
        subsets->list[k].pairs = (lr_selection){.pairs = first->pair_list,
                                                .num_pairs = first->pairs.num_pairs,
                                                .interleave = subsets->interleave,
                                                .interleave_turn = part};
    }
    lr_osem_visits(subsets->count, subsets->order);
    for (int k = 0; params->subset_of != NULL && params->interleave == 0 && k < subsets->count; k++)
        subsets->order[k] = k;
    if (subsets->is_sparse) LR_TRY(cut_sparse(subsets, group_of));
    if (subsets->is_sparse || subsets->interleave > 1) LR_TRY(add_additive(subsets));
    for (int k = 0; k < subsets->count; k++) {
        struct lr_subset *subset = &subsets->list[k];
        if (!subsets->is_sparse) {
            /* The values of a subset of dense data are those of all LORs of its pairs. Consecutive pairs make one
             * run. */
            const lr_selection *pairs = &subset->pairs;
            struct lr_lor_run *run = NULL;
            subset->projected = *pairs;
            subset->runs = lr_alloc(pairs->num_pairs, sizeof(*subset->runs), what, params->log);
            if (subset->runs == NULL) return LR_FAILED;
            for (int64_t n = 0; n < pairs->num_pairs; n++) {
                const int64_t *ends = &subsets->lors->offsets[pairs->pairs[n]];
                if (run == NULL || run->first + run->count != ends[0]) {
                    run = &subset->runs[subset->num_runs++];
                    *run = (struct lr_lor_run){ends[0], subset->num_values, 0};
                }
                run->count += ends[1] - ends[0];
                subset->num_values += ends[1] - ends[0];
            }
        }
        subsets->most_values = subset->num_values > subsets->most_values ? subset->num_values : subsets->most_values;
    }

    /* A single subset has all LORs and needs no lists. */
    if (subsets->count == 1) {
        struct lr_subset *subset = &subsets->list[0];
        subset->pairs = (lr_selection){0};
        if (!subsets->is_sparse) {
            subset->projected = (lr_selection){0};
            free(subset->runs);
            subset->runs = NULL;
        }
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
                                   .is_sparse = params->data_lors != NULL,
                                   .additive_counts = info->of_events ? params->additive_sum : 0.0};
    subsets->list = lr_alloc(subsets->count, sizeof(*subsets->list), what, log);
    subsets->order = lr_alloc(subsets->count, sizeof(*subsets->order), what, log);
    if (subsets->list == NULL || subsets->order == NULL) return LR_FAILED;
    subsets->interleave = params->interleave > 0 ? params->interleave : 1;
    if (params->subset_of == NULL && params->interleave == 0)
        LR_TRY(lr_osem_interleave(info->lors, subsets->count, &subsets->interleave, log));
    int32_t *group_of = lr_alloc(info->lors->num_pairs, sizeof(*group_of), what, log);
    const lr_status status = group_of != NULL ? cut(subsets, group_of) : LR_FAILED;
    free(group_of);
    LR_TRY(status);

    /* Sums over all ranks: the number of values of each subset, and the additive term unless the caller has given its
     * sum. */
    double sums[2] = {params->additive_sum > 0.0 ? 0.0 : subsets->additive_counts, 0.0};
    for (int k = 0; k < subsets->count; k++) {
        struct lr_subset *subset = &subsets->list[k];
        subset->share = (double)subset->num_values;
        sums[1] += subset->share;
        LR_TRY(lr_comm_sum_numbers(params->comm, &subset->share, 1));
    }
    LR_TRY(lr_comm_sum_numbers(params->comm, sums, 2));
    if (!(params->additive_sum > 0.0)) subsets->additive_counts = sums[0];
    for (int k = 0; k < subsets->count; k++) subsets->list[k].share /= sums[1] > 0.0 ? sums[1] : 1.0;
    return LR_OK;
}

void lr_subsets_finish(struct lr_subsets *subsets)
{
    for (int k = 0; subsets->list != NULL && k < subsets->count; k++) {
        struct lr_subset *subset = &subsets->list[k];
        lr_free_all(subset->measured, subset->additive, subset->runs, subset->pair_list, subset->lor_list);
    }
    lr_free_all(subsets->list, subsets->order);
    *subsets = (struct lr_subsets){0};
}

/* --- data that estimates are compared with --- */

/* VALUES_AT_ONCE: number of values that a thread takes at once. MANY_VALUES: from this number on, threads are used. */
enum { VALUES_AT_ONCE = 1 << 14, MANY_VALUES = 1 << 20 };

/* Returns true if a subset's values (of dense data) are one range in the vector of all values, so that no copy is
 * needed. which: MEASURED or ADDITIVE. */
static bool is_part(const struct lr_subsets *subsets, const struct lr_subset *subset, int which)
{
    return (subset->runs == NULL || subset->num_runs == 1) && !(which == MEASURED && subsets->interleave > 1);
}

/* Finds a subset's values if no copy of them is needed. Returns false if a copy is needed. */
static bool find_part(const struct lr_compared *compared, const struct lr_subset *subset, int which, lr_vector *part)
{
    const struct lr_subsets *subsets = compared->subsets;
    if (subsets->is_sparse) {
        *part = lr_vector_of_floats(which == MEASURED ? subset->measured : subset->additive, subset->num_values);
        return true;
    }
    if (given(subsets->params, which) == NULL || !is_part(subsets, subset, which)) return false;
    *part =
        lr_vector_part(&compared->from[which], subset->runs != NULL ? subset->runs[0].first : 0, subset->num_values);
    return true;
}

double lr_compared_count(const struct lr_subsets *subsets, const lr_place *place)
{
    const lr_recon_params *params = subsets->params;
    double numbers = 0.0;
    for (int which = 0; which < 2; which++) {
        const lr_vector *all = given(params, which);
        if (all == NULL && (which == MEASURED || params->additive_source.get == NULL)) continue;
        const bool is_there = all != NULL && is_at_device(all);
        if (is_there && (all->place != place || all->precision != LR_FLOAT32)) numbers += (double)all->count;
        for (int k = 0; k < subsets->count; k++) {
            const struct lr_subset *subset = &subsets->list[k];
            numbers += is_there && is_part(subsets, subset, which) ? 0.0 : (double)subset->num_values;
        }
    }
    return numbers;
}

/* --- values that are gathered --- */

struct uniform {
    const float *values;
    atomic_bool is_broken;
};

static void look_at_share(void *user, int64_t begin, int64_t end)
{
    struct uniform *uniform = user;
    const float *values = uniform->values, first = values[0];
    int any = 0;
    if (atomic_load(&uniform->is_broken)) return;
    for (int64_t k = begin; k < end; k++) any |= values[k] != first;
    if (any) atomic_store(&uniform->is_broken, true);
}

/* Copies values from the host to a device. If all are equal, the device fills the vector without a copy. */
static lr_status send(const struct lr_compared *compared, const lr_vector *host, lr_vector *to)
{
    const float *values = host->values;
    const int threads = lr_operator_get_info(compared->subsets->params->op)->threads;
    const int64_t count = host->count;
    struct uniform uniform = {.values = values};
    atomic_init(&uniform.is_broken, false);
    if (count > 0) lr_parallel_for(count > MANY_VALUES ? threads : 1, count, VALUES_AT_ONCE, look_at_share, &uniform);
    return count > 0 && !atomic_load(&uniform.is_broken) ? lr_vector_fill(to, values[0]) : lr_vector_copy(host, to);
}

static lr_status gather_on_host(const struct lr_compared *compared, const struct lr_subset *subset, int which,
                                float *to)
{
    const struct lr_subsets *subsets = compared->subsets;
    const float *from = compared->from[which].values;
    const struct lr_lor_run all = {0, 0, subset->num_values};
    const struct lr_lor_run *runs = subset->runs != NULL ? subset->runs : &all;
    const int64_t num_runs = subset->runs != NULL ? subset->num_runs : 1;
    for (int64_t n = 0; n < num_runs; n++) {
        const lr_lor_span span = {.first = runs[n].first, .count = runs[n].count};
        float *values = to + runs[n].begin;
        if (given(subsets->params, which) != NULL)
            memcpy(values, from + span.first, (size_t)span.count * sizeof(*values));
        else
            LR_TRY(get_additive(subsets, &span, values));
    }
    if (which == ADDITIVE) return LR_OK;
    /* Some values may belong to LORs of other interleaved subsets. The counts of such LORs are set to 0. */
    lr_vector measured = lr_vector_of_floats(to, subset->num_values);
    return lr_project_blank(subsets->params->op, &subset->pairs, &measured);
}

/* Makes a vector that has room for the values of any subset, unless it exists. */
static lr_status open_values(const struct lr_compared *compared, int which, lr_place *place, lr_vector *vector)
{
    return vector->storage != NULL ? LR_OK
                                   : lr_vector_create(&(lr_vector_params){.place = place,
                                                                          .count = compared->subsets->most_values,
                                                                          .name = names[which],
                                                                          .log = compared->subsets->params->log},
                                                      vector);
}

static lr_status gather(struct lr_compared *compared, const struct lr_subset *subset, int which, lr_vector *to)
{
    lr_vector part;
    if (compared->place == NULL) return gather_on_host(compared, subset, which, to->values);
    if (find_part(compared, subset, which, &part)) return send(compared, &part, to);
    if (!is_at_device(&compared->from[which])) {
        LR_TRY(open_values(compared, which, NULL, &compared->staged));
        const lr_vector host = lr_vector_part(&compared->staged, 0, subset->num_values);
        LR_TRY(gather_on_host(compared, subset, which, host.values));
        return send(compared, &host, to);
    }

    /* The values are already at compared->place. The device is held until all runs are copied. */
    LR_TRY(lr_place_hold(compared->place));
    lr_status status = LR_OK;
    for (int64_t n = 0; status == LR_OK && n < subset->num_runs; n++) {
        const struct lr_lor_run *run = &subset->runs[n];
        const lr_vector from = lr_vector_part(&compared->from[which], run->first, run->count);
        lr_vector values = lr_vector_part(to, run->begin, run->count);
        status = lr_vector_copy(&from, &values);
    }
    if (status == LR_OK && which == MEASURED)
        status = lr_project_blank(compared->subsets->params->op, &subset->pairs, to);
    lr_place_release(compared->place);
    return status;
}

/* --- values that are held --- */

static lr_status get(struct lr_compared *compared, int k, int which, lr_vector *vector)
{
    const struct lr_subset *subset = &compared->subsets->list[k];
    *vector = compared->held[which][k];
    if (vector->values != NULL || vector->storage != NULL) return LR_OK;
    LR_TRY(open_values(compared, which, compared->place, &compared->scratch[which]));
    *vector = lr_vector_part(&compared->scratch[which], 0, subset->num_values);
    return gather(compared, subset, which, vector);
}

lr_status lr_compared_init(struct lr_compared *compared, struct lr_subsets *subsets, lr_place *place, bool is_kept)
{
    const lr_osem_params *params = subsets->params;
    *compared = (struct lr_compared){.subsets = subsets, .place = place, .is_kept = is_kept && place != NULL};
    compared->has_additive = params->additive != NULL || params->additive_source.get != NULL;
    for (int which = 0; which < 2; which++) {
        compared->held[which] = lr_alloc(subsets->count, sizeof(lr_vector), names[which], params->log);
        if (compared->held[which] == NULL) return LR_FAILED;
    }
    for (int which = 0; which < 1 + compared->has_additive; which++) {
        const lr_vector *all = given(params, which);
        if (all != NULL && !subsets->is_sparse) {
            const lr_vector_params like = {
                .place = is_at_device(all) ? place : NULL, .name = names[which], .log = params->log};
            LR_TRY(lr_vector_bring(all, &like, &compared->from[which]));
        }
        bool is_needed = !compared->is_kept;
        for (int k = 0; k < subsets->count; k++) {
            /* If the subset's values are one range of the vector of all values, this range is used without a copy.
             * Otherwise the values are gathered, either now or at each use. */
            const struct lr_subset *subset = &subsets->list[k];
            lr_vector part, *held = &compared->held[which][k];
            if (find_part(compared, subset, which, &part) && is_at_device(&part) == (place != NULL)) {
                *held = part;
            } else if (compared->is_kept) {
                const lr_vector_params values = {
                    .place = place, .count = subset->num_values, .name = names[which], .log = params->log};
                LR_TRY(lr_vector_create(&values, held));
                LR_TRY(gather(compared, subset, which, held));
            }
            is_needed |= is_part(subsets, subset, which);
        }
        if (!is_needed) lr_vector_destroy(&compared->from[which]); /* all values have been gathered from this copy */
    }
    if (compared->is_kept) lr_vector_destroy(&compared->staged);

    /* The counts of each subset are summed over all ranks. */
    for (int k = 0; k < subsets->count; k++) {
        lr_vector measured;
        lr_vector_sums sums;
        LR_TRY(get(compared, k, MEASURED, &measured));
        LR_TRY(lr_vector_add_up(&measured, NULL, &sums));
        subsets->own_counts += sums.sum;
        subsets->list[k].counts = sums.sum;
        LR_TRY(lr_comm_sum_numbers(params->comm, &subsets->list[k].counts, 1));
    }
    subsets->counts = subsets->own_counts;
    return lr_comm_sum_numbers(params->comm, &subsets->counts, 1);
}

void lr_compared_finish(struct lr_compared *compared)
{
    for (int which = 0; which < 2; which++) {
        lr_vector *held = compared->held[which];
        for (int k = 0; held != NULL && k < compared->subsets->count; k++) lr_vector_destroy(&held[k]);
        free(held);
        lr_vector_destroy(&compared->scratch[which]);
        lr_vector_destroy(&compared->from[which]);
    }
    lr_vector_destroy(&compared->staged);
    *compared = (struct lr_compared){0};
}

lr_status lr_compared_get(struct lr_compared *compared, int k, struct lr_compared_values *values)
{
    *values = (struct lr_compared_values){0};
    LR_TRY(get(compared, k, MEASURED, &values->measured));
    return compared->has_additive ? get(compared, k, ADDITIVE, &values->additive) : LR_OK;
}
