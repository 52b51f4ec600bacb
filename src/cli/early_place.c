/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "early_place.h"

#include <lr/vector.h>
#include <strings.h>

static bool may_be_cuda(const char *backend)
{
    return backend == NULL || strcasecmp(backend, "auto") == 0 || strcasecmp(backend, "cuda") == 0;
}

/* CUDA keeps what it has set up when the place is closed again. */
static void wake(void *user)
{
    const struct early_place *early = user;
    lr_place_close(
        lr_place_open(&(lr_place_params){.kind = LR_PLACE_CUDA, .device = early->device}));
}

void early_place_begin(struct early_place *early, const lr_operator_params *params)
{
    if (!early->waking.is_running && may_be_cuda(params->backend)) {
        early->device = params->device;
        lr_background_start(&early->waking, wake, early);
    }
}

void early_place_end(struct early_place *early)
{
    lr_background_wait(&early->waking);
}
