/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The inside of an lr_direct, for the files of this folder. */
#ifndef LR_OPERATOR_DIRECT_FACADE_H
#define LR_OPERATOR_DIRECT_FACADE_H

#include "operator/direct_host.h"

/* What backend cuda logs to: while it is being made, a missing device is no error, for compute takes
 * its place. */
struct lr_direct_cuda_log {
    lr_log log;
    const lr_log *to;
    bool is_made;
    bool is_named;    /* and not the first that is tried: the caller is warned */
    char reason[600]; /* why there is none; "" = there is */
};

struct lr_direct {
    lr_direct_info info;
    lr_view *views; /* [num_views] */
    lr_direct_kernel kernel;
    struct lr_direct_backend backend;
    struct lr_direct_cuda_log cuda_log;
    const lr_log *log;
    struct lr_direct_host host; /* of backends without updates of their own */
    float *max_factors;         /* [num_views]; -1 = no data loaded */
    bool has_image;
};

/* Whether that device is there and no software renderer, which is slower than the processor's own
 * loops. */
bool lr_direct_on_hardware(int device);

#endif
