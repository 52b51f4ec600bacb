/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "operator/scaling.h"

#include "base/log.h"
#include "base/mem.h"
#include "model/lors/lor_check.h"
#include "model/lors/selection.h"
#include "operator/numbers.h"

#include <math.h>
#include <stdlib.h>

/* Factors asked for at a time. */
#define SPAN_LORS ((int64_t)1 << 19)

static lr_status report_factor(const struct lr_operator *op, int64_t number, double factor)
{
    char text[160];
    return lr_error(op->params.log, LR_BAD_INPUT,
                    "the factor of %s is %g: efficiencies and attenuation factors are finite and at "
                    "least 0",
                    lr_lor_name(op->params.lors, number, text), factor);
}

lr_status lr_scaling_get(const struct lr_operator *op, const lr_lor_span *span, float *values)
{
    LR_TRY(op->factors.get(op->factors.user, span, values));
    int wrong = 0;
    for (int64_t k = 0; k < span->count; k++) wrong |= !(values[k] >= 0.0f && values[k] < HUGE_VALF);
    for (int64_t k = 0; wrong && k < span->count; k++) {
        if (!(values[k] >= 0.0f && values[k] < HUGE_VALF)) {
            const int64_t lor = span->numbers != NULL ? span->numbers[k] : span->first + k;
            return report_factor(op, lor, (double)values[k]);
        }
    }
    return LR_OK;
}

static lr_status apply_on_host(const struct lr_operator *op, const lr_selection *selection, lr_vector *values)
{
    const int64_t longest = values->count < SPAN_LORS ? values->count : SPAN_LORS;
    struct lr_selection_walk walk = {.lors = op->params.lors, .selection = selection, .longest = longest};
    float *factors = lr_alloc(longest, sizeof(*factors), "factors of LORs", op->params.log);
    lr_status status = factors != NULL ? LR_OK : LR_FAILED;
    while (status == LR_OK && lr_selection_next(&walk)) {
        status = lr_scaling_get(op, &walk.span, factors);
        for (int64_t k = 0; status == LR_OK && k < walk.span.count; k++) {
            const int64_t at = walk.position + k;
            lr_number_put(values, at, (double)factors[k] * lr_number_get(values, at));
        }
    }
    free(factors);
    return status;
}

/* The factors of a selection in its order, at the values' place and in their precision. */
static lr_status make_factors(const struct lr_operator *op, const lr_selection *selection, const lr_vector *values,
                              lr_vector *factors)
{
    lr_vector host;
    lr_vector_params params = {
        .count = values->count, .precision = values->precision, .name = "factors of LORs", .log = op->params.log};
    LR_TRY(lr_vector_create(&params, &host));
    lr_status status = lr_vector_fill(&host, 1.0);
    status = status == LR_OK ? apply_on_host(op, selection, &host) : status;
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

/* *factors: those of the store, which are made first where there is room; NULL = there is none. */
static lr_status find_factors(struct lr_operator *op, const lr_selection *selection, const lr_vector *values,
                              const lr_vector **factors)
{
    struct lr_factor_store *store = &op->factor_store;
    *factors = lr_factor_store_find(store, selection, values);
    if (*factors != NULL || !lr_factor_store_has_room(store, values, op->params.max_memory_bytes)) return LR_OK;
    lr_vector made = {0};
    LR_TRY(make_factors(op, selection, values, &made));
    const lr_status status = lr_factor_store_add(store, selection, &made, op->params.log);
    if (status != LR_OK) {
        lr_vector_destroy(&made);
        return status;
    }
    *factors = lr_factor_store_find(store, selection, values);
    return LR_OK;
}

lr_status lr_scaling_apply(struct lr_operator *op, const lr_selection *selection, lr_vector *values)
{
    const lr_vector *factors = NULL;
    if (!lr_has_factors(op) || values->count == 0) return LR_OK;
    LR_TRY(find_factors(op, selection, values, &factors));
    return factors != NULL ? lr_vector_multiply(values, factors) : lr_scaling_apply_once(op, selection, values);
}

lr_status lr_scaling_apply_once(const struct lr_operator *op, const lr_selection *selection, lr_vector *values)
{
    if (!lr_has_factors(op) || values->count == 0) return LR_OK;
    if (values->values != NULL) return apply_on_host(op, selection, values);
    lr_vector factors = {0};
    lr_status status = make_factors(op, selection, values, &factors);
    status = status == LR_OK ? lr_vector_multiply(values, &factors) : status;
    lr_vector_destroy(&factors);
    return status;
}
