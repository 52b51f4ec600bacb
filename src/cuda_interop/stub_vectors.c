/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A stand-in for vectors in CUDA's memory, in builds without it: no such place opens. */
#include "base/log.h"
#include "device/kinds.h"

static lr_status open_place(const lr_place_params *params, lr_place *place)
{
    (void)place;
    return lr_error(params->log, LR_NO_DEVICE,
                    "no CUDA: this build of LORaster is without it: install the CUDA toolkit from "
                    "12.5 on (nvcc) and build with -DLORASTER_CUDA=ON, or open a place of kind "
                    "LR_PLACE_GL or LR_PLACE_HOST");
}

const struct lr_place_fns lr_place_cuda_fns = {.open = open_place};
