/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "plugin/load.h"
#include "plugin/plugin.h"

const struct lr_mpi_plugin *lr_plugin_mpi(const lr_log *log)
{
    static const struct lr_plugin_name name = {
        .file = "lr_mpi.so",
        .symbol = "lr_mpi_plugin",
        .what = "MPI",
        .packages = "libopenmpi-dev, openmpi-bin and liblapacke-dev",
    };
    return lr_plugin_load(&name, log);
}
