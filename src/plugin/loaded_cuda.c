/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "plugin/load.h"
#include "plugin/plugin.h"

const struct lr_cuda_plugin *lr_plugin_cuda(const lr_log *log)
{
    static const struct lr_plugin_name name = {
        .file = "lr_cuda.so",
        .symbol = "lr_cuda_plugin",
        .what = "CUDA",
        .packages = "libglew2.2, libegl1 and libopengl0, through which CUDA works here, and "
                    "NVIDIA's driver",
    };
    return lr_plugin_load(&name, log);
}
