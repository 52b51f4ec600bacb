/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Sizes of workgroups and dispatches. They are in a separate file, so that test programs can link other values
 * (tests/listmode/settings.h). */
#include "common/bindings.h"
#include "listmode/compute/listmode.h"

struct lr_listmode_settings lr_listmode_settings_of(const struct lr_listmode_compute *compute)
{
    return (struct lr_listmode_settings){.forward_threads = LR_EVENTS_SLAB_GROUP,
                                         .back_threads = LR_EVENTS_GROUP,
                                         .adds_zeros = !gl_context_limits(compute->ctx)->software};
}
