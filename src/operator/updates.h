/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Whole updates of a reconstruction, computed by an operator's backend (struct lr_backend_updates). */
#pragma once

#include "operator/backend.h"

/* Opens the operator's backend for whole updates. The caller closes *backend. *backend is NULL if the operator's
 * backend cannot do whole updates or has no room for the data, or if the operator has a resolution in image space.
 * plan: the caller sets all members except has_factors. */
lr_status lr_updates_open(lr_operator *op, const struct lr_update_plan *plan, const struct lr_backend **backend);

/* Loads a subset with the operator's factors. data->factors is not read.
 * errors: LR_BAD_INPUT for factors that are negative or not finite; LR_FAILED. */
lr_status lr_updates_load(lr_operator *op, int subset, const struct lr_update_data *data);

/* Computes lr_operator_sensitivity, but 0 in voxels that tubes reach and no line between detectors meets: nothing
 * measured determines the emissions there, which would grow. The paper's tubes, blobs, and lines without a scanner keep
 * their whole width. */
lr_status lr_updates_sensitivity(lr_operator *op, const lr_selection *part, lr_vector *image);

/* A projection of a reconstruction, with the LORs of a part; part NULL = all LORs. is_finite: true if all numbers of
 * the input are known to be finite; if false, the numbers are checked first, and the host waits for the device. */
struct lr_projection {
    lr_operator *op;
    const lr_selection *part;
    bool is_finite;
};

/* Project as lr_operator_forward and lr_operator_back do. */
lr_status lr_project_forward(const struct lr_projection *projection, const lr_vector *image, lr_vector *values);
lr_status lr_project_back(const struct lr_projection *projection, const lr_vector *values, lr_vector *image);

/* Sets values to 0 if their LORs are interleaved with the part's LORs but not in the part. Values are in the part's
 * order and in single precision, and stay on the host or at the operator's place. */
lr_status lr_project_blank(lr_operator *op, const lr_selection *part, lr_vector *values);

/* Sets *seconds to the total device time of projections since the operator was made. Waits for projections that are not
 * finished. Returns false if the backend knows only the time of its last projection (lr_operator_device_seconds). */
bool lr_updates_device_clock(const lr_operator *op, double *seconds);
