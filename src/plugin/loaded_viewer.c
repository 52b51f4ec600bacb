/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "plugin/load.h"
#include "plugin/plugin.h"

const struct lr_viewer_plugin *lr_plugin_viewer(const lr_log *log)
{
    static const struct lr_plugin_name name = {
        .file = "lr_viewer.so",
        .symbol = "lr_viewer_plugin",
        .what = "viewer",
        .packages = "libglfw3, libglew2.2, libegl1 and libopengl0",
    };
    return lr_plugin_load(&name, log);
}
