/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A plugin in place of lr_mpi.so, with a copy of base/ like each plugin. Its `eigen` runs a loop on `size` threads,
 * which must all be there at the same time; with a negative size, another thread of the loop fails. */
#include "plugin/plugin.h"

#include "base/parallel.h"
#include "gather.h"

#include <sched.h>

static void fail(void *user, int64_t begin, int64_t end, int worker)
{
    (void)end;
    while (worker == 0 && !atomic_load((atomic_bool *)user)) sched_yield(); /* the other thread takes a share, too */
    if (worker > 0) lr_error(NULL, LR_BAD_INPUT, "share %d of the plugin", (int)begin);
    if (worker > 0) atomic_store((atomic_bool *)user, true);
}

static lr_status run_loop(double *matrix, double *values, int size)
{
    (void)matrix;
    (void)values;
    atomic_bool has_failed;
    atomic_init(&has_failed, false);
    if (size < 0) lr_parallel_workers(2, -size, 1, fail, &has_failed);
    return gather_threads(size) ? LR_OK : LR_FAILED;
}

const struct lr_mpi_plugin lr_mpi_plugin = {.plugin = {lr_plugin_build, lr_pool_use, lr_errors_use}, .eigen = run_loop};
