/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "plugin/plugin.h"

#include "base/parallel.h"
#include "device/kinds.h"
#include "direct/backend.h"
#include "gl/context.h"
#include "listmode/backend.h"
#include "operator/backend.h"

const struct lr_gl_plugin lr_gl_plugin = {
    .plugin = {lr_plugin_build, lr_pool_use, lr_errors_use},
    .places = &lr_place_gl_fns,
    .raster = lr_raster_backend_create,
    .compute = lr_compute_backend_create,
    .direct = lr_direct_compute_create,
    .deposit = lr_deposit_compute_create,
    .listmode = lr_listmode_compute_create,
    .list_devices = gl_device_list,
};
