/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "listmode/rows.h"

#include "native/listmode/project.h"

struct source {
    const struct lr_native_listmode *native;
    struct lr_native_frame frames[3];
};

static void visit(const void *self, int64_t k, int axis, const struct lr_listmode_visitor *visitor)
{
    const struct source *source = self;
    const struct lr_native_listmode *native = source->native;
    const struct lr_native_listmode_job job = {.model = native->params.model,
                                               .events = native->params.events,
                                               .frame = &source->frames[axis],
                                               .tube = &native->tube};
    native->kernels->list(&job, k, visitor, lr_native_listmode_memory(native, 0));
}

lr_status lr_native_listmode_rows(const struct lr_native_listmode *native, const struct lr_rows *wanted,
                                  const lr_row_sink *sink)
{
    struct source source = {.native = native};
    for (int axis = 0; axis < 3; axis++) lr_native_frame_init(&source.frames[axis], native->params.model, axis);
    const struct lr_listmode_row_source rows = {.events = native->params.events,
                                                .visit = visit,
                                                .self = &source,
                                                .log = native->params.log,
                                                .progress = native->params.progress};
    return lr_listmode_rows(&rows, wanted, sink);
}
