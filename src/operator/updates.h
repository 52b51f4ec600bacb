/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Whole updates of a reconstruction by an operator's backend (struct lr_backend_updates). */
#ifndef LR_OPERATOR_UPDATES_H
#define LR_OPERATOR_UPDATES_H

#include "operator/backend.h"

/* Opens the operator's backend for whole updates. *backend = NULL: the backend has no whole updates or no room for the
 * data, or the operator has a resolution in image space. plan: all members but has_factors, which the operator sets.
 * The caller closes *backend. */
lr_status lr_updates_open(lr_operator *op, const struct lr_update_plan *plan, const struct lr_backend **backend);

/* Loads a subset with the operator's factors. data->factors is not read.
 * errors: LR_BAD_INPUT for factors that are negative or not finite; LR_FAILED. */
lr_status lr_updates_load(lr_operator *op, int subset, const struct lr_update_data *data);

/* A projection in a loop, of all LORs (part NULL) or of some. is_finite: the input is known to be finite. Otherwise it
 * is checked first, for which the host waits for the device. */
struct lr_projection {
    lr_operator *op;
    const lr_selection *part;
    bool is_finite;
};

/* The projections of lr_operator_forward and lr_operator_back. */
lr_status lr_project_forward(const struct lr_projection *projection, const lr_vector *image, lr_vector *values);
lr_status lr_project_back(const struct lr_projection *projection, const lr_vector *values, lr_vector *image);

/* Sets the values of LORs that are interleaved with those of the part, and not in it, to 0. Values are in the part's
 * order and in single precision, on the host or at the operator's place, where they stay. */
lr_status lr_project_blank(lr_operator *op, const lr_selection *part, lr_vector *values);

/* Seconds that the device has spent on projections since the operator was made, by the device's clock. The call waits
 * for projections in progress. false: the backend knows only the time of its last projection
 * (lr_operator_device_seconds). */
bool lr_updates_device_clock(const lr_operator *op, double *seconds);

#endif
