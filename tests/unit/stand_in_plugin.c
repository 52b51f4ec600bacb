/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A plugin that stands in for lr_mpi.so, with a copy of base/ like each plugin: its `eigen` runs a loop on `size`
 * threads, which all have to be there at the same time. */
#include "plugin/plugin.h"

#include "base/parallel.h"
#include "gather.h"

static lr_status run_loop(double *matrix, double *values, int size)
{
    (void)matrix;
    (void)values;
    return gather_threads(size) ? LR_OK : LR_FAILED;
}

const struct lr_mpi_plugin lr_mpi_plugin = {.plugin = {lr_plugin_build, lr_pool_use}, .eigen = run_loop};
