/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The OpenGL devices of this machine. This is a file of its own, so that a test program can replace it
 * (tests/direct/choose.c). */
#include "base/log.h"
#include "operator/facade.h"

#include <lr/device.h>

#include <string.h>

int lr_device_list(lr_device *devices, int capacity, const lr_log *log)
{
    lr_device none = {.way = "OpenGL"};
    struct lr_kept_error kept;
    lr_log_keep_error(&kept, none.reason, sizeof(none.reason));
    const struct lr_gl_plugin *gl = lr_plugin_gl(&kept.log);
    if (gl != NULL) return gl->list_devices(devices, capacity, log);
    if (capacity > 0) devices[0] = none;
    return 1;
}

bool lr_gl_is_hardware(int device, const lr_log *log)
{
    lr_device devices[16];
    int usable = 0;
    const lr_device *refused = NULL;
    const int count = lr_device_list(devices, 16, NULL);
    for (int k = 0; k < count && k < 16; k++) {
        if (devices[k].usable && usable++ == device && !devices[k].software) return true;
        /* EGL has found hardware only if `way` begins with "egl device". */
        const bool is_refused_hardware =
            !devices[k].usable && !devices[k].software && strncmp(devices[k].way, "egl device ", 11) == 0;
        refused = refused == NULL && is_refused_hardware ? &devices[k] : refused;
    }
    if (refused != NULL) lr_info(log, "no graphics processor is used: %s: %s", refused->way, refused->reason);
    return false;
}
