/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Ways to OpenGL, or the one reason why there are none. */
#include "plugin/plugin.h"

#include <stdio.h>

static void keep_reason(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    lr_device *device = user;
    (void)status;
    if (level == LR_LOG_ERROR) snprintf(device->reason, sizeof(device->reason), "%s", sentence);
}

int lr_device_list(lr_device *devices, int capacity, const lr_log *log)
{
    lr_device none = {.way = "OpenGL"};
    const struct lr_gl_plugin *gl = lr_plugin_gl(&(lr_log){keep_reason, &none});
    if (gl != NULL) return gl->list_devices(devices, capacity, log);
    if (capacity > 0) devices[0] = none;
    return 1;
}
