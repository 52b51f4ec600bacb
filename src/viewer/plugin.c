/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "plugin/plugin.h"

#include "base/parallel.h"
#include "viewer/view.h"

const struct lr_viewer_plugin lr_viewer_plugin = {.plugin = {lr_plugin_build, lr_pool_use, lr_errors_use},
                                                  .run = view_run};
