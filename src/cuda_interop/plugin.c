/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "plugin/plugin.h"

#include "base/parallel.h"
#include "device/kinds.h"
#include "direct/backend.h"
#include "listmode/backend.h"

const struct lr_cuda_plugin lr_cuda_plugin = {
    .plugin = {lr_plugin_build, lr_pool_use, lr_errors_use},
    .places = &lr_place_cuda_fns,
    .direct = lr_direct_cuda_create,
    .listmode = lr_listmode_cuda_create,
    .arrange = lr_listmode_cuda_arrange,
};
