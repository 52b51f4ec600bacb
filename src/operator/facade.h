/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The inside of an operator, for the files of this folder and for tests that bring their own
 * backends. */
#ifndef LR_OPERATOR_FACADE_H
#define LR_OPERATOR_FACADE_H

#include "operator/backend.h"
#include "operator/relay.h"

/* A backend that can be asked for. "auto" takes the first of a list that has the mode wanted and
 * does not answer LR_NO_DEVICE. */
struct lr_backend_choice {
    const char *name;
    bool has_exact; /* whether it computes LR_MODE_EXACT */
    lr_status (*create)(const struct lr_backend_params *params, struct lr_backend *backend);
};

struct lr_operator {
    lr_operator_info info;
    lr_grid grid;
    struct lr_relay relay;           /* params.log points into it */
    struct lr_hush hush;             /* params.progress points into it */
    struct lr_backend_params params; /* checked, defaults replaced */
    struct lr_backend backend;
    float *sensitivity; /* [num_voxels], or NULL until it is asked for */
};

/* lr_operator_create over other backends than the built-in ones. choices: [num_choices], in the
 * order that "auto" tries; read during the call only. */
lr_operator *lr_operator_create_among(const lr_operator_params *params,
                                      const struct lr_backend_choice *choices, int num_choices);

#endif
