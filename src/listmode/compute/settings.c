/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Sizes of workgroups and dispatches. They are in a separate file, so that test programs can link other values
 * (tests/listmode/settings.h). */
#include "common/bindings.h"
#include "listmode/compute/listmode.h"

int lr_listmode_job_threads(bool forward)
{
    return forward ? LR_EVENTS_SLAB_GROUP : LR_EVENTS_GROUP;
}

int lr_listmode_most_jobs(int most)
{
    return most;
}

/* If the device is the processor, an addition takes longer than a branch. */
bool lr_listmode_adds_zeros(const struct lr_listmode_compute *compute)
{
    return !gl_context_limits(compute->ctx)->software;
}

bool lr_listmode_finds_lines(void)
{
    return false;
}
