/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "recon/compared.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "model/lors/lor_check.h"
#include "recon/lor_cursor.h"

#include <float.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MEASURED = 0, ADDITIVE };

/* Values that a thread looks at in one go, and how many are worth threads. */
enum { VALUES_AT_ONCE = 1 << 14, MANY_VALUES = 1 << 20 };

static const char *const names[2] = {"the measured counts", "the additive term"};

/* --- values of a subset, gathered on the host --- */

static void gather(const struct lr_subset *subset, const lr_lor_data *data, float *to)
{
    const struct lr_lor_run all = {0, 0, subset->num_values};
    const struct lr_lor_run *runs = subset->runs != NULL ? subset->runs : &all;
    const int64_t num_runs = subset->runs != NULL ? subset->num_runs : 1;
    for (int64_t n = 0; n < num_runs; n++) {
        float *values = to + runs[n].begin;
        if (data->index == NULL) {
            memcpy(values, data->values + runs[n].first, (size_t)runs[n].count * sizeof(*values));
            continue;
        }
        struct lr_lor_cursor cursor = lr_lor_cursor_at(data, runs[n].first);
        for (int64_t k = 0; k < runs[n].count; k++) values[k] = (float)lr_lor_cursor_read(&cursor, runs[n].first + k);
    }
}

/* Negative values would turn into missing LORs. */
static lr_status read_source(const struct lr_compared *compared, const struct lr_subset *subset, float *to)
{
    const lr_osem_params *params = compared->subsets->params;
    const struct lr_lor_run all = {0, 0, subset->num_values};
    const struct lr_lor_run *runs = subset->runs != NULL ? subset->runs : &all;
    const int64_t num_runs = subset->runs != NULL ? subset->num_runs : 1;
    for (int64_t n = 0; n < num_runs; n++) {
        const lr_lor_span span = {.first = runs[n].first, .count = runs[n].count};
        float *values = to + runs[n].begin;
        LR_TRY(params->additive_source.get(params->additive_source.user, &span, values));
        for (int64_t k = 0; k < span.count; k++) {
            if (!(values[k] >= 0.0f && values[k] <= FLT_MAX)) {
                return lr_lor_report_value(compared->subsets->lors, span.first + k, values[k], "additive term",
                                           params->log);
            }
        }
    }
    return LR_OK;
}

static lr_status gather_values(const struct lr_compared *compared, const struct lr_subset *subset, int which, float *to)
{
    const lr_osem_params *params = compared->subsets->params;
    const lr_lor_data *data = which == MEASURED ? params->data : params->additive;
    if (compared->subsets->is_sparse) {
        const float *from = which == MEASURED ? subset->measured : subset->additive;
        memcpy(to, from, (size_t)subset->num_values * sizeof(*to));
        return LR_OK;
    }
    LR_TRY(data == NULL ? read_source(compared, subset, to) : LR_OK);
    if (data != NULL) gather(subset, data, to);
    if (which == MEASURED) /* LORs between those of the subset explain nothing and add nothing */
        lr_selection_blank(compared->subsets->lors, &subset->pairs, to);
    return LR_OK;
}

/* --- values that are held --- */

/* An array that is there already, in the subset's order, on the host; or NULL. */
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

/* As counts of list mode are, each of which is 1: a device has these without their crossing to it. */
static bool is_uniform(const float *values, int64_t count, int threads)
{
    struct uniform uniform = {.values = values};
    atomic_init(&uniform.is_broken, false);
    if (count > 0) lr_parallel_for(count > MANY_VALUES ? threads : 1, count, VALUES_AT_ONCE, look_at_share, &uniform);
    return count > 0 && !atomic_load(&uniform.is_broken);
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
    return is_uniform(values, host.count, threads) ? lr_vector_fill(held, values[0]) : lr_vector_copy(&host, held);
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

static bool is_held(const lr_vector *vector)
{
    return vector->values != NULL || vector->storage != NULL;
}

static lr_status get(struct lr_compared *compared, int k, int which, lr_vector *vector)
{
    const struct lr_subset *subset = &compared->subsets->list[k];
    *vector = which == MEASURED ? compared->measured[k] : compared->additive[k];
    if (is_held(vector)) return LR_OK;
    *vector = lr_vector_part(&compared->scratch[which], 0, subset->num_values);
    return gather_values(compared, subset, which, vector->values);
}

lr_status lr_compared_get(struct lr_compared *compared, int k, struct lr_compared_values *values)
{
    *values = (struct lr_compared_values){0};
    LR_TRY(get(compared, k, MEASURED, &values->measured));
    return compared->has_additive ? get(compared, k, ADDITIVE, &values->additive) : LR_OK;
}
