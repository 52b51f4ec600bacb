/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "recon/subsets.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "model/lors/lor_check.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { SHARES = 64 };

struct noting {
    const float *values;
    bool *voxels;
    int64_t grain; /* voxels of a thread's share */
    double sums[SHARES];
};

static void note_share(void *user, int64_t begin, int64_t end, int worker)
{
    struct noting *noting = user;
    double sum = 0.0;
    (void)worker;
    for (int64_t v = begin; v < end; v++) {
        noting->voxels[v] |= noting->values[v] > 0.0f;
        sum += noting->values[v];
    }
    noting->sums[begin / noting->grain] = sum;
}

double lr_seen_note(const lr_vector *sensitivity, bool *voxels, int threads)
{
    struct noting noting = {
        .values = sensitivity->values, .voxels = voxels, .grain = (sensitivity->count + SHARES - 1) / SHARES};
    double sum = 0.0;
    if (sensitivity->count > 0) lr_parallel_for(threads, sensitivity->count, noting.grain, note_share, &noting);
    for (int share = 0; share < SHARES; share++) sum += noting.sums[share];
    return sum;
}

/* LORs per call of a source whose values are summed. */
enum { CHUNK = 1 << 20 };

static const char *const what = "the subsets";

/* --- which pairs --- */

static struct lr_subset *subset_at(const struct lr_subsets *subsets, int group, int part)
{
    return &subsets->list[group * subsets->interleave + part];
}

/* Lists the module pairs of each group of subsets, in ascending order. */
static lr_status list_pairs(struct lr_subsets *subsets, const int32_t *group_of)
{
    const int64_t num_pairs = subsets->lors->num_pairs;
    for (int64_t pair = 0; pair < num_pairs; pair++) subset_at(subsets, group_of[pair], 0)->pairs.num_pairs++;
    for (int k = 0; k < subsets->count; k += subsets->interleave) {
        struct lr_subset *subset = &subsets->list[k];
        subset->pair_list = lr_alloc(subset->pairs.num_pairs, sizeof(*subset->pair_list), what, subsets->params->log);
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
        subsets->list[k].pairs = (lr_selection){.pairs = first->pair_list,
                                                .num_pairs = first->pairs.num_pairs,
                                                .interleave = subsets->interleave,
                                                .interleave_turn = part};
    }
    return LR_OK;
}

static int common_divisor(int a, int b)
{
    return b == 0 ? a : common_divisor(b, a % b);
}

void lr_osem_visits(int count, int32_t *order)
{
    const double golden = 0.38196601125010515;
    int step = 1;
    for (int k = 1; k < count; k++) {
        const bool is_nearer = fabs(k - golden * count) < fabs(step - golden * count);
        step = is_nearer && common_divisor(count, k) == 1 ? k : step;
    }
    for (int n = 0; n < count; n++) order[n] = (int32_t)((int64_t)n * step % count);
}

/* --- dense data: every LOR of the pairs --- */

/* Sums of counts by module pair, several pairs at once. */
struct pair_sums {
    const struct lr_subsets *subsets;
    const lr_selection *pairs;
    double *sums; /* [pairs->num_pairs] */
    float *room;  /* [threads][most] values of a pair, 0 for other subsets' LORs; NULL = not interleaved */
    int64_t most;
};

static void sum_pairs(void *user, int64_t begin, int64_t end, int worker)
{
    const struct pair_sums *of = user;
    const lr_lors *lors = of->subsets->lors;
    for (int64_t k = begin; k < end; k++) {
        lr_selection one = *of->pairs;
        one.pairs += k;
        one.num_pairs = 1;
        const int64_t first = lors->offsets[one.pairs[0]], count = lors->offsets[one.pairs[0] + 1] - first;
        const float *values = of->subsets->params->data->values + first;
        if (of->room != NULL) {
            float *own = of->room + worker * of->most;
            memcpy(own, values, (size_t)count * sizeof(*own));
            lr_selection_blank(lors, &one, own);
            values = own;
        }
        for (int64_t n = 0; n < count; n++) of->sums[k] += values[n];
    }
}

static lr_status cut_dense(struct lr_subsets *subsets, struct lr_subset *subset)
{
    const lr_lors *lors = subsets->lors;
    const lr_log *log = subsets->params->log;
    const int threads = lr_operator_get_info(subsets->params->op)->threads;
    struct pair_sums of = {.subsets = subsets, .pairs = &subset->pairs};
    const int64_t num_pairs = of.pairs->num_pairs;
    subset->projected = subset->pairs;
    subset->runs = lr_alloc(num_pairs, sizeof(*subset->runs), what, log);
    if (subset->runs == NULL) return LR_FAILED;
    struct lr_lor_run *run = NULL; /* run of consecutive pairs */
    for (int64_t k = 0; k < num_pairs; k++) {
        const int32_t pair = of.pairs->pairs[k];
        const int64_t first = lors->offsets[pair], count = lors->offsets[pair + 1] - first;
        if (run == NULL || run->first + run->count != first) {
            run = &subset->runs[subset->num_runs++];
            *run = (struct lr_lor_run){first, subset->num_values, 0};
        }
        run->count += count;
        subset->num_values += count;
        of.most = count > of.most ? count : of.most;
    }

    of.sums = lr_alloc(num_pairs, sizeof(*of.sums), what, log);
    of.room = subsets->interleave > 1 ? lr_alloc(threads * of.most, sizeof(*of.room), what, log) : NULL;
    const bool is_there = of.sums != NULL && (of.room != NULL || subsets->interleave <= 1);
    if (is_there && num_pairs > 0) lr_parallel_for(threads, num_pairs, 1, sum_pairs, &of);
    for (int64_t k = 0; is_there && k < num_pairs; k++) subset->counts += of.sums[k];
    free(of.room);
    free(of.sums);
    return is_there ? LR_OK : LR_FAILED;
}

/* --- sparse data: LORs with counts --- */

/* Counts the entries with counts for each subset, or copies them once the subsets' lists are allocated (takes). */
static void visit_counts(const struct lr_subsets *subsets, const int32_t *group_of, bool takes)
{
    const lr_lor_data *data = subsets->params->data;
    int64_t pair = 0;
    for (int64_t k = 0; k < data->count; k++) {
        const int64_t lor = data->index[k];
        while (lor >= subsets->lors->offsets[pair + 1]) pair++;
        if (!(data->values[k] > 0.0f)) continue;
        const int part = subsets->interleave > 1 ? lr_lors_angle(subsets->lors, lor) % subsets->interleave : 0;
        struct lr_subset *subset = subset_at(subsets, group_of[pair], part);
        if (takes) {
            subset->lor_list[subset->num_values] = lor;
            subset->measured[subset->num_values] = data->values[k];
        } else {
            subset->counts += data->values[k];
        }
        subset->num_values++;
    }
}

/* --- additive term of LORs that are not all compared --- */

static lr_status check_values(const struct lr_subsets *subsets, const lr_lor_span *span, const float *values)
{
    for (int64_t k = 0; k < span->count; k++) {
        if (!(values[k] >= 0.0f && values[k] <= FLT_MAX)) {
            const int64_t lor = span->numbers != NULL ? span->numbers[k] : span->first + k;
            return lr_lor_report_value(subsets->lors, lor, values[k], "additive term", subsets->params->log);
        }
    }
    return LR_OK;
}

static lr_status add_additive(struct lr_subsets *subsets)
{
    const lr_recon_params *params = subsets->params;
    if (params->additive == NULL && params->additive_source.get == NULL) return LR_OK;
    const lr_lor_source *source = &params->additive_source;
    for (int k = 0; subsets->is_sparse && k < subsets->count; k++) {
        struct lr_subset *subset = &subsets->list[k];
        const lr_lor_span span = {.numbers = subset->lor_list, .count = subset->num_values};
        subset->additive = lr_alloc(span.count, sizeof(*subset->additive), what, params->log);
        if (subset->additive == NULL) return LR_FAILED;
        if (params->additive == NULL) {
            LR_TRY(source->get(source->user, &span, subset->additive));
            LR_TRY(check_values(subsets, &span, subset->additive));
            continue;
        }
        struct lr_lor_cursor cursor = lr_lor_cursor_at(params->additive, 0);
        for (int64_t n = 0; n < span.count; n++)
            subset->additive[n] = (float)lr_lor_cursor_read(&cursor, span.numbers[n]);
    }
    for (int64_t k = 0; params->additive != NULL && k < params->additive->count; k++)
        subsets->additive_counts += params->additive->values[k];
    if (params->additive != NULL) return LR_OK;
    subsets->additive_counts = params->additive_sum;
    if (params->additive_sum > 0.0) return LR_OK;

    /* The sum over all LORs reads the whole source. */
    float *values = lr_alloc(CHUNK, sizeof(*values), "the additive term", params->log);
    lr_status status = values != NULL ? LR_OK : LR_FAILED;
    for (int64_t first = 0; status == LR_OK && first < subsets->lors->count; first += CHUNK) {
        const int64_t left = subsets->lors->count - first;
        const lr_lor_span span = {.first = first, .count = left < CHUNK ? left : CHUNK};
        status = source->get(source->user, &span, values);
        if (status == LR_OK) status = check_values(subsets, &span, values);
        for (int64_t k = 0; status == LR_OK && k < span.count; k++) subsets->additive_counts += values[k];
    }
    free(values);
    return status;
}

/* --- all of it --- */

static lr_status cut(struct lr_subsets *subsets, int32_t *group_of)
{
    const lr_recon_params *params = subsets->params;
    if (params->subset_of != NULL) {
        /* Groups are the caller's subsets, or its groups of interleaved subsets. */
        const int num_groups = subsets->count / subsets->interleave;
        memcpy(group_of, params->subset_of, (size_t)subsets->lors->num_pairs * sizeof(*group_of));
        for (int64_t pair = 0; pair < subsets->lors->num_pairs; pair++) {
            if (group_of[pair] < 0 || group_of[pair] >= num_groups) {
                return lr_error(params->log, LR_USAGE, "pair %lld belongs to subset %d: give 0 to %d", (long long)pair,
                                (int)group_of[pair], num_groups - 1);
            }
        }
        LR_TRY(list_pairs(subsets, group_of));
        for (int k = 0; k < subsets->count; k++) {
            if (subsets->list[k].pairs.num_pairs == 0 && lr_comm_get_info(params->comm).size == 1) {
                return lr_error(params->log, LR_USAGE, "no pair belongs to subset %d of %d: leave it out", k,
                                subsets->count);
            }
        }
    } else {
        LR_TRY(lr_osem_subsets(subsets->lors, subsets->count / subsets->interleave, group_of, params->log));
        LR_TRY(list_pairs(subsets, group_of));
    }
    lr_osem_visits(subsets->count, subsets->order);
    for (int k = 0; params->subset_of != NULL && params->interleave == 0 && k < subsets->count; k++)
        subsets->order[k] = k;
    if (subsets->is_sparse) {
        const lr_log *log = subsets->params->log;
        visit_counts(subsets, group_of, false);
        for (int k = 0; k < subsets->count; k++) {
            struct lr_subset *subset = &subsets->list[k];
            subset->lor_list = lr_alloc(subset->num_values, sizeof(int64_t), what, log);
            subset->measured = lr_alloc(subset->num_values, sizeof(float), what, log);
            if (subset->lor_list == NULL || subset->measured == NULL) return LR_FAILED;
            subset->projected = (lr_selection){.lors = subset->lor_list, .num_lors = subset->num_values};
            subset->num_values = 0; /* counted again while entries are copied */
        }
        visit_counts(subsets, group_of, true);
    }

    if (subsets->is_sparse || subsets->interleave > 1) LR_TRY(add_additive(subsets));
    for (int k = 0; k < subsets->count; k++) {
        struct lr_subset *subset = &subsets->list[k];
        if (!subsets->is_sparse) LR_TRY(cut_dense(subsets, subset));
        subsets->counts += subset->counts;
        subsets->most_values = subset->num_values > subsets->most_values ? subset->num_values : subsets->most_values;
    }

    /* The only subset has all LORs: operators and fits know these without lists. */
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
                                   .is_sparse = params->data->index != NULL,
                                   .additive_counts = info->of_events ? params->additive_sum : 0.0};
    subsets->list = lr_alloc(subsets->count, sizeof(*subsets->list), what, log);
    subsets->order = lr_alloc(subsets->count, sizeof(*subsets->order), what, log);
    if (subsets->list == NULL || subsets->order == NULL) return LR_FAILED;
    subsets->interleave = params->interleave > 0 ? params->interleave : 1;
    if (params->subset_of == NULL) LR_TRY(lr_osem_interleave(info->lors, subsets->count, &subsets->interleave, log));
    int32_t *group_of = lr_alloc(info->lors->num_pairs, sizeof(*group_of), what, log);
    const lr_status status = group_of != NULL ? cut(subsets, group_of) : LR_FAILED;
    free(group_of);
    LR_TRY(status);

    /* Counts and shares are summed over all ranks. An additive sum given by the caller is that of all ranks already. */
    const bool is_given = params->additive_sum > 0.0;
    subsets->own_counts = subsets->counts;
    double sums[3] = {subsets->counts, is_given ? 0.0 : subsets->additive_counts, 0.0};
    for (int k = 0; k < subsets->count; k++) {
        struct lr_subset *subset = &subsets->list[k];
        double of_all[2] = {(double)subset->num_values, subset->counts};
        sums[2] += of_all[0];
        LR_TRY(lr_comm_sum_numbers(params->comm, of_all, 2));
        subset->share = of_all[0];
        subset->counts = of_all[1];
    }
    LR_TRY(lr_comm_sum_numbers(params->comm, sums, 3));
    subsets->counts = sums[0];
    subsets->additive_counts = is_given ? subsets->additive_counts : sums[1];
    for (int k = 0; k < subsets->count; k++) subsets->list[k].share /= sums[2] > 0.0 ? sums[2] : 1.0;
    return LR_OK;
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

/* --- data that estimates are compared with --- */

enum { MEASURED = 0, ADDITIVE };

/* VALUES_AT_ONCE: values of a thread's share. MANY_VALUES: number of values above which threads are used. */
enum { VALUES_AT_ONCE = 1 << 14, MANY_VALUES = 1 << 20 };

static const char *const names[2] = {"the measured counts", "the additive term"};

/* --- values of a subset, gathered on the host --- */

static lr_status gather_values(const struct lr_compared *compared, const struct lr_subset *subset, int which, float *to)
{
    const struct lr_subsets *subsets = compared->subsets;
    const lr_osem_params *params = subsets->params;
    const lr_lor_data *data = which == MEASURED ? params->data : params->additive;
    if (subsets->is_sparse) {
        const float *from = which == MEASURED ? subset->measured : subset->additive;
        memcpy(to, from, (size_t)subset->num_values * sizeof(*to));
        return LR_OK;
    }

    const struct lr_lor_run all = {0, 0, subset->num_values};
    const struct lr_lor_run *runs = subset->runs != NULL ? subset->runs : &all;
    const int64_t num_runs = subset->runs != NULL ? subset->num_runs : 1;
    for (int64_t n = 0; n < num_runs; n++) {
        const lr_lor_span span = {.first = runs[n].first, .count = runs[n].count};
        float *values = to + runs[n].begin;
        if (data == NULL) {
            /* Negative values of the source would turn into missing LORs. */
            LR_TRY(params->additive_source.get(params->additive_source.user, &span, values));
            LR_TRY(check_values(subsets, &span, values));
        } else if (data->index == NULL) {
            memcpy(values, data->values + span.first, (size_t)span.count * sizeof(*values));
        } else {
            struct lr_lor_cursor cursor = lr_lor_cursor_at(data, span.first);
            for (int64_t k = 0; k < span.count; k++) values[k] = (float)lr_lor_cursor_read(&cursor, span.first + k);
        }
    }
    if (which == MEASURED) /* interleaved LORs of other subsets explain nothing and add nothing */
        lr_selection_blank(subsets->lors, &subset->pairs, to);
    return LR_OK;
}

/* --- values that are held --- */

/* Returns an array on the host that already has the values in the subset's order, or NULL. */
static const float *find_array(const struct lr_compared *compared, const struct lr_subset *subset, int which)
{
    const lr_osem_params *params = compared->subsets->params;
    const lr_lor_data *data = which == MEASURED ? params->data : params->additive;
    if (compared->subsets->is_sparse) return which == MEASURED ? subset->measured : subset->additive;
    if (data == NULL || data->index != NULL || (subset->runs != NULL && subset->num_runs != 1) ||
        (which == MEASURED && compared->subsets->interleave > 1))
        return NULL;
    return data->values + (subset->runs != NULL ? subset->runs[0].first : 0);
}

struct uniform {
    const float *values;
    atomic_bool is_broken;
};

static void look_at_share(void *user, int64_t begin, int64_t end, int worker)
{
    struct uniform *uniform = user;
    const float *values = uniform->values, first = values[0];
    int any = 0;
    (void)worker;
    if (atomic_load(&uniform->is_broken)) return;
    for (int64_t k = begin; k < end; k++) any |= values[k] != first;
    if (any) atomic_store(&uniform->is_broken, true);
}

static lr_status hold(struct lr_compared *compared, const struct lr_subset *subset, int which, lr_vector *held)
{
    const float *array = find_array(compared, subset, which);
    lr_vector host = lr_vector_of_floats(array, subset->num_values);
    if (compared->place == NULL) {
        *held = array != NULL ? host : (lr_vector){0};
        return LR_OK;
    }
    if (array == NULL) {
        host = lr_vector_part(&compared->scratch[which], 0, subset->num_values);
        LR_TRY(gather_values(compared, subset, which, host.values));
    }
    LR_TRY(lr_vector_create(&(lr_vector_params){.place = compared->place,
                                                .count = subset->num_values,
                                                .name = names[which],
                                                .log = compared->subsets->params->log},
                            held));
    const float *values = host.values;
    const int threads = lr_operator_get_info(compared->subsets->params->op)->threads;
    /* List-mode counts are all 1, and a device can fill such values itself. */
    const int64_t count = host.count;
    struct uniform uniform = {.values = values};
    atomic_init(&uniform.is_broken, false);
    if (count > 0) lr_parallel_for(count > MANY_VALUES ? threads : 1, count, VALUES_AT_ONCE, look_at_share, &uniform);

    return (count > 0 && !atomic_load(&uniform.is_broken)) ? lr_vector_fill(held, values[0])
                                                           : lr_vector_copy(&host, held);
}

static lr_status make_scratch(struct lr_compared *compared, int which)
{
    const struct lr_subsets *subsets = compared->subsets;
    bool is_needed = false;
    for (int k = 0; k < subsets->count; k++)
        is_needed = is_needed || find_array(compared, &subsets->list[k], which) == NULL;
    if (!is_needed) return LR_OK;
    return lr_vector_create(
        &(lr_vector_params){.count = subsets->most_values, .name = names[which], .log = subsets->params->log},
        &compared->scratch[which]);
}

lr_status lr_compared_init(struct lr_compared *compared, const struct lr_subsets *subsets, lr_place *place)
{
    const lr_osem_params *params = subsets->params;
    *compared = (struct lr_compared){.subsets = subsets, .place = place};
    compared->has_additive = params->additive != NULL || params->additive_source.get != NULL;
    compared->measured = lr_alloc(subsets->count, sizeof(lr_vector), names[0], params->log);
    compared->additive = lr_alloc(subsets->count, sizeof(lr_vector), names[1], params->log);
    if (compared->measured == NULL || compared->additive == NULL) return LR_FAILED;
    LR_TRY(make_scratch(compared, MEASURED));
    LR_TRY(compared->has_additive ? make_scratch(compared, ADDITIVE) : LR_OK);
    for (int k = 0; k < subsets->count; k++) {
        const struct lr_subset *subset = &subsets->list[k];
        LR_TRY(hold(compared, subset, MEASURED, &compared->measured[k]));
        LR_TRY(compared->has_additive ? hold(compared, subset, ADDITIVE, &compared->additive[k]) : LR_OK);
    }
    if (place != NULL) {
        lr_vector_destroy(&compared->scratch[MEASURED]);
        lr_vector_destroy(&compared->scratch[ADDITIVE]);
    }
    return LR_OK;
}

void lr_compared_finish(struct lr_compared *compared)
{
    for (int which = 0; which < 2; which++) {
        lr_vector *held = which == MEASURED ? compared->measured : compared->additive;
        for (int k = 0; held != NULL && k < compared->subsets->count; k++) lr_vector_destroy(&held[k]);
        free(held);
        lr_vector_destroy(&compared->scratch[which]);
    }
    *compared = (struct lr_compared){0};
}

static lr_status get(struct lr_compared *compared, int k, int which, lr_vector *vector)
{
    const struct lr_subset *subset = &compared->subsets->list[k];
    *vector = which == MEASURED ? compared->measured[k] : compared->additive[k];
    if (vector->values != NULL || vector->storage != NULL) return LR_OK;
    *vector = lr_vector_part(&compared->scratch[which], 0, subset->num_values);
    return gather_values(compared, subset, which, vector->values);
}

lr_status lr_compared_get(struct lr_compared *compared, int k, struct lr_compared_values *values)
{
    *values = (struct lr_compared_values){0};
    LR_TRY(get(compared, k, MEASURED, &values->measured));
    return compared->has_additive ? get(compared, k, ADDITIVE, &values->additive) : LR_OK;
}
