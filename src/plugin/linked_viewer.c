/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Where the plugin is part of the program, as in tests. */
#include "plugin/plugin.h"

lr_status view_run(const struct view_params *params);

lr_view_run *lr_plugin_viewer(const lr_log *log)
{
    (void)log;
    return view_run;
}
