/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The factors per LOR of an operator, checked: with them it is diag(n) A. */
#ifndef LR_OPERATOR_SCALING_H
#define LR_OPERATOR_SCALING_H

#include "operator/facade.h"

static inline bool lr_has_factors(const struct lr_operator *op)
{
    return op->factors.get != NULL;
}

/* The factors of some LORs. values: [span->count].
 * errors: what the source says; LR_BAD_INPUT, naming the LOR, for one that is negative or not
 * finite. */
lr_status lr_scaling_get(const struct lr_operator *op, const lr_lor_span *span, float *values);

/* Multiplies LOR values, which stand in the selection's order, by their factors; without factors
 * leaves them alone. Factors are kept for the next time where there is room (operator/factor_store.h);
 * else that takes a few MB on the host, however many there are, and on a device as much as the values. */
lr_status lr_scaling_apply(struct lr_operator *op, const lr_selection *selection, lr_vector *values);

/* The same, keeping nothing: of what is done once. */
lr_status lr_scaling_apply_once(const struct lr_operator *op, const lr_selection *selection, lr_vector *values);

#endif
