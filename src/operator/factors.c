/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "operator/facade.h"

#include "base/log.h"
#include "base/mem.h"
#include "model/lors/place.h"
#include "model/lors/selection.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct lr_stored_factors {
    bool is_all;
    lr_selection selection; /* its lists are owned */
    lr_vector factors;
};

static const char *const what = "factors of LORs";

/* --- selections --- */

static bool is_same_list(const void *one, const void *other, int64_t count, size_t size)
{
    return (one == NULL) == (other == NULL) && (one == NULL || memcmp(one, other, (size_t)count * size) == 0);
}

static void *copy_list(const void *list, int64_t count, size_t size, const lr_log *log)
{
    void *copy = lr_alloc(count, size, what, log);
    if (copy != NULL) memcpy(copy, list, (size_t)count * size);
    return copy;
}

static void free_lists(lr_selection *selection)
{
    lr_free_all((void *)(uintptr_t)selection->lors, (void *)(uintptr_t)selection->pairs);
}

/* --- the store --- */

void lr_factor_store_finish(struct lr_factor_store *store)
{
    for (int k = 0; k < store->count; k++) {
        free_lists(&store->list[k].selection);
        lr_vector_destroy(&store->list[k].factors);
    }
    free(store->list);
    *store = (struct lr_factor_store){0};
}

/* --- scaling --- */

/* The largest number of factors that the source gives in one call. */
#define SPAN_LORS ((int64_t)1 << 19)

lr_status lr_scaling_get(const struct lr_operator *op, const lr_lor_span *span, float *values)
{
    LR_TRY(op->factors.get(op->factors.user, span, values));
    int wrong = 0;
    for (int64_t k = 0; k < span->count; k++) wrong |= !(values[k] >= 0.0f && values[k] < HUGE_VALF);
    for (int64_t k = 0; wrong && k < span->count; k++) {
        if (!(values[k] >= 0.0f && values[k] < HUGE_VALF)) {
            char text[160];
            return lr_error(op->params.log, LR_BAD_INPUT,
                            "the factor of %s is %g: efficiencies and attenuation factors are finite and at least 0",
                            lr_lor_name(op->params.lors, lr_span_lor(span, k), text), (double)values[k]);
        }
    }
    return LR_OK;
}

static lr_status apply_on_host(const struct lr_operator *op, const lr_selection *selection, const lr_vector *values,
                               lr_vector *scaled)
{
    const int64_t longest = values->count < SPAN_LORS ? values->count : SPAN_LORS;
    struct lr_selection_walk walk = {.lors = op->params.lors, .selection = selection, .longest = longest};
    float *factors = lr_alloc(longest, sizeof(*factors), "factors of LORs", op->params.log);
    lr_status status = factors != NULL ? LR_OK : LR_FAILED;
    while (status == LR_OK && lr_selection_next(&walk)) {
        status = lr_scaling_get(op, &walk.span, factors);
        for (int64_t k = 0; status == LR_OK && k < walk.span.count; k++) {
            const int64_t at = walk.position + k;
            lr_number_put(scaled, at, (double)factors[k] * lr_number_get(values, at));
        }
    }
    free(factors);
    return status;
}

/* Makes the factors of a selection in its order, at the place of the values and in their precision. */
static lr_status make_factors(const struct lr_operator *op, const lr_selection *selection, const lr_vector *values,
                              lr_vector *factors)
{
    lr_vector host;
    lr_vector_params params = {
        .count = values->count, .precision = values->precision, .name = "factors of LORs", .log = op->params.log};
    LR_TRY(lr_vector_create(&params, &host));
    lr_status status = lr_vector_fill(&host, 1.0);
    status = status == LR_OK ? apply_on_host(op, selection, &host, &host) : status;
    if (status == LR_OK && values->values != NULL) {
        *factors = host;
        return LR_OK;
    }
    params.place = values->place;
    status = status == LR_OK ? lr_vector_create(&params, factors) : status;
    status = status == LR_OK ? lr_vector_copy(&host, factors) : status;
    lr_vector_destroy(&host);
    return status;
}

static lr_status multiply(const lr_vector *values, const lr_vector *factors, lr_vector *scaled)
{
    return lr_vector_apply(&(struct lr_vector_task){.op = LR_VECTOR_MULTIPLY, .y = *scaled, .in = {values, factors}});
}

lr_status lr_scaling_apply(struct lr_operator *op, const lr_selection *selection, const lr_vector *values,
                           lr_vector *scaled)
{
    struct lr_factor_store *store = &op->factor_store;
    const lr_log *log = op->params.log;
    if (!lr_has_factors(op) || values->count == 0) return LR_OK;

    /* Stored factors can be used again if they have the same selection, place and precision. */
    for (int k = 0; k < store->count; k++) {
        const lr_vector *factors = &store->list[k].factors;
        const bool is_host = factors->values != NULL, is_for_host = values->values != NULL;
        if (is_host != is_for_host || factors->precision != values->precision) continue;
        if (!is_host && factors->place != values->place) continue;
        const lr_selection *own = &store->list[k].selection;
        const bool is_all = store->list[k].is_all;
        const bool is_same = selection == NULL || is_all
                                 ? selection == NULL && is_all
                                 : own->num_lors == selection->num_lors && own->num_pairs == selection->num_pairs &&
                                       is_same_list(own->lors, selection->lors, own->num_lors, sizeof(*own->lors)) &&
                                       is_same_list(own->pairs, selection->pairs, own->num_pairs, sizeof(*own->pairs));
        if (is_same) return multiply(values, factors, scaled);
    }

    /* Stored factors may take a quarter of the host's free memory, or an eighth of a device's memory. */
    const int64_t device = values->values == NULL ? lr_place_get_info(values->place).memory_bytes : 0;
    const double most = device > 0 ? (double)device / 8.0 : ((double)lr_available_memory() + store->bytes) / 4.0;
    const int64_t limit_bytes = op->params.max_memory_bytes;
    const double limit = limit_bytes > 0 ? fmin(most, (double)limit_bytes) : most;
    const double bytes = (double)values->count * (double)lr_vector_size(values);
    if (store->bytes + bytes > limit) return lr_scaling_apply_once(op, selection, values, scaled);

    struct lr_stored_factors added = {.is_all = selection == NULL};
    LR_TRY(make_factors(op, selection, values, &added.factors));
    struct lr_stored_factors *list = lr_resize(store->list, store->count + 1, sizeof(*list), what, log);
    store->list = list != NULL ? list : store->list;
    bool has_all = list != NULL;
    if (has_all && selection != NULL) {
        const lr_selection *from = selection;
        lr_selection *to = &added.selection;
        *to = (lr_selection){.num_lors = from->num_lors, .num_pairs = from->num_pairs};
        to->lors = from->lors ? copy_list(from->lors, from->num_lors, sizeof(*from->lors), log) : NULL;
        to->pairs = from->pairs ? copy_list(from->pairs, from->num_pairs, sizeof(*from->pairs), log) : NULL;
        has_all = (from->lors != NULL) == (to->lors != NULL) && (from->pairs != NULL) == (to->pairs != NULL);
    }
    if (!has_all) {
        free_lists(&added.selection);
        lr_vector_destroy(&added.factors);
        return LR_FAILED;
    }
    list[store->count] = added;
    store->bytes += bytes + (double)added.selection.num_lors * sizeof(int64_t);
    return multiply(values, &list[store->count++].factors, scaled);
}

lr_status lr_scaling_apply_once(const struct lr_operator *op, const lr_selection *selection, const lr_vector *values,
                                lr_vector *scaled)
{
    if (!lr_has_factors(op) || values->count == 0) return LR_OK;
    if (values->values != NULL) return apply_on_host(op, selection, values, scaled);
    lr_vector factors = {0};
    lr_status status = make_factors(op, selection, values, &factors);
    status = status == LR_OK ? multiply(values, &factors, scaled) : status;
    lr_vector_destroy(&factors);
    return status;
}
