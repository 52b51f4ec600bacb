/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What an operator of the family `direct` has beside others, for the files of this folder. */
#ifndef LR_OPERATOR_DIRECT_FACADE_H
#define LR_OPERATOR_DIRECT_FACADE_H

#include "direct/backend.h"

/* What backend cuda logs to: while it is being made, a missing device is no error, for compute takes
 * its place. */
struct lr_direct_cuda_log {
    lr_log log;
    const lr_log *to;
    bool is_made;
    bool is_named;    /* and not the first that is tried: the caller is warned */
    char reason[600]; /* why there is none; "" = there is */
};

/* What an operator of the family has beside others. */
struct lr_direct_family {
    lr_direct_info info;
    lr_view *views;   /* [num_views] */
    int64_t *offsets; /* [num_views + 1] of the layout */
    lr_lors layout;   /* without scanner: a view for each pair of modules */
    lr_direct_kernel kernel;
    struct lr_direct_backend backend; /* whose `common` is the operator's */
    struct lr_direct_cuda_log cuda_log;
    lr_vector timed; /* what lr_direct_time projects; zero = nothing yet */
};

/* After the backend; NULL is allowed. */
void lr_direct_family_destroy(struct lr_direct_family *family);

/* Whether that device is there and no software renderer, which is slower than the processor's own
 * loops. Where it is not, and one that EGL lists as hardware cannot be used, log hears why. */
bool lr_direct_on_hardware(int device, const lr_log *log);

#endif
