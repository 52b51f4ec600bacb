/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "plugin/load.h"
#include "plugin/plugin.h"

#include <string.h>

lr_view_run *lr_plugin_viewer(const lr_log *log)
{
    static const struct lr_plugin_name name = {
        .file = "lr_viewer.so",
        .symbol = "view_run",
        .what = "viewer",
        .packages = "libglfw3, libglew2.2, libegl1 and libopengl0",
    };
    void *found = lr_plugin_load(&name, log);
    lr_view_run *run = NULL;
    memcpy(&run, &found, sizeof(run)); /* C has no cast from an object to a function */
    return run;
}
