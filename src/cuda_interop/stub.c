/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Functions that replace the CUDA backends, and vectors in CUDA memory, in builds without CUDA. */
#include "base/log.h"
#include "device/kinds.h"
#include "direct/backend.h"
#include "listmode/backend.h"

static lr_status refuse(const lr_log *log)
{
    return lr_error(log, LR_NO_DEVICE,
                    "no CUDA: this build of LORaster is without it: install the CUDA toolkit from 12.5 on (nvcc) and "
                    "build with -DLORASTER_CUDA=ON, or leave the choice to the library: OpenGL or the processor do it");
}

lr_status lr_direct_cuda_create(const struct lr_direct_backend_params *params, struct lr_backend *backend)
{
    (void)backend;
    return refuse(params->log);
}

lr_status lr_listmode_cuda_arrange(struct lr_listmode_events *events, const struct lr_listmode_backend_params *params)
{
    (void)events;
    (void)params;
    return LR_OK;
}

lr_status lr_listmode_cuda_create(const struct lr_listmode_backend_params *params, struct lr_backend *backend)
{
    (void)backend;
    return refuse(params->log);
}

static lr_status open_place(const lr_place_params *params, lr_place *place)
{
    (void)place;
    return refuse(params->log);
}

const struct lr_place_fns lr_place_cuda_fns = {.open = open_place};
