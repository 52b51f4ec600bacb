/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "plugin/plugin.h"

#include "viewer/view.h"

const struct lr_viewer_plugin lr_viewer_plugin = {.build = lr_plugin_build, .run = view_run};
