/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What projections and sensitivities share. */
#ifndef LR_OPERATOR_PROJECT_H
#define LR_OPERATOR_PROJECT_H

#include "operator/facade.h"
#include "operator/numbers.h"

static inline lr_precision lr_precision_of(const struct lr_operator *op)
{
    return op->backend.fns->computes_in_double ? LR_FLOAT64 : LR_FLOAT32;
}

/* Zeros on the host, in the backend's precision. errors: LR_FAILED, logged. */
lr_status lr_make_numbers(const struct lr_operator *op, const char *name, int64_t count, lr_vector *vector);

/* image = A^T values, without factors: by the backend, or, where it has no parts, with an array of
 * all LORs that are zero outside the part. part: checked, not empty, not all. values, image: such
 * as the backend takes, on the host; values NULL: 1 for each. */
lr_status lr_project_back_part(struct lr_operator *op, const lr_selection *part, const lr_vector *values,
                               lr_vector *image);

/* Bytes that a projection works with, beside the caller's arrays. */
double lr_project_bytes(const struct lr_operator *op);

/* errors: LR_FAILED, logged, where a large grid needs more memory than is free: the system would end
 * the program amid the work. */
lr_status lr_project_check_room(const struct lr_operator *op);

#endif
