/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What projections and sensitivities share. */
#ifndef LR_OPERATOR_PROJECT_H
#define LR_OPERATOR_PROJECT_H

#include "operator/facade.h"
#include "operator/side.h"

/* An operator's image or data, of all LORs. */
struct lr_side lr_image_side(const struct lr_operator *op, const void *values, bool is_double);
struct lr_side lr_data_side(const struct lr_operator *op, const void *values, bool is_double);

/* image = A^T values, without factors: by the backend, or, where it has no parts, with an array of
 * all LORs that are zero outside the part. part: checked, not empty, not all. values, image: in
 * the backend's precision; values NULL: 1 for each. */
lr_status lr_project_back_part(const struct lr_operator *op, const lr_selection *part,
                               const struct lr_side *values, const struct lr_side *image);

#endif
