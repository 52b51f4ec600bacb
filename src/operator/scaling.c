/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "operator/scaling.h"

#include "base/log.h"
#include "base/mem.h"
#include "model/lor_check.h"
#include "model/selection.h"

#include <math.h>
#include <stdlib.h>

/* Factors asked for at a time. */
#define SPAN_LORS ((int64_t)1 << 19)

static lr_status report_factor(const struct lr_operator *op, int64_t number, double factor)
{
    char text[160];
    return lr_error(
        op->params.log, LR_BAD_INPUT,
        "the factor of %s is %g: efficiencies and attenuation factors are finite and at "
        "least 0",
        lr_lor_name(op->params.lors, number, text), factor);
}

lr_status lr_scaling_get(const struct lr_operator *op, const lr_lor_span *span, float *values)
{
    LR_TRY(op->factors.get(op->factors.user, span, values));
    int wrong = 0;
    for (int64_t k = 0; k < span->count; k++) {
        wrong |= !(values[k] >= 0.0f && values[k] < HUGE_VALF);
    }
    for (int64_t k = 0; wrong && k < span->count; k++) {
        if (!(values[k] >= 0.0f && values[k] < HUGE_VALF)) {
            const int64_t lor = span->numbers != NULL ? span->numbers[k] : span->first + k;
            return report_factor(op, lor, (double)values[k]);
        }
    }
    return LR_OK;
}

lr_status lr_scaling_apply(const struct lr_operator *op, const lr_selection *selection,
                           const struct lr_side *values)
{
    if (!lr_has_factors(op) || values->count == 0) {
        return LR_OK;
    }
    const int64_t longest = values->count < SPAN_LORS ? values->count : SPAN_LORS;
    struct lr_selection_walk walk = {
        .lors = op->params.lors, .selection = selection, .longest = longest};
    float *factors = lr_alloc(longest, sizeof(*factors), "factors of LORs", op->params.log);
    lr_status status = factors != NULL ? LR_OK : LR_FAILED;
    while (status == LR_OK && lr_selection_next(&walk)) {
        status = lr_scaling_get(op, &walk.span, factors);
        for (int64_t k = 0; status == LR_OK && k < walk.span.count; k++) {
            const int64_t at = walk.position + k;
            lr_side_put(values, at, (double)factors[k] * lr_side_get(values, at));
        }
    }
    free(factors);
    return status;
}
