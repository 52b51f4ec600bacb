/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Where the plugin is part of the program, as in tests. */
#include "plugin/plugin.h"

const struct lr_viewer_plugin *lr_plugin_viewer(const lr_log *log)
{
    (void)log;
    return &lr_viewer_plugin;
}
