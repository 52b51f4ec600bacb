/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Rows of the matrix. The device lists the elements of events chunk by chunk. */
#include "listmode/rows.h"

#include "base/log.h"
#include "base/mem.h"
#include "common/bindings.h"
#include "gl/vectors.h"
#include "listmode/compute/listmode.h"

#include <stdlib.h>

/* Limits for the elements that one pass lists: LIST_BYTES bytes, LIST_EVENTS events. */
enum { LIST_BYTES = 1 << 26, LIST_EVENTS = 1 << 12 };

struct element {
    uint32_t voxel;
    float value;
};

struct lister {
    struct lr_listmode_compute *compute;
    struct gl_buffer *buffer;
    struct element *elements; /* [windows][lines][1 + room]: lists of elements, each after its length */
    int64_t room;             /* largest number of elements of an event in a window of slices */
    int64_t most_lines;
    int windows; /* largest number of windows of slices along an axis */
    struct lr_listmode_chunk chunk;
    lr_status status; /* status of the device; after a failure, no elements are listed */
};

static int num_windows(const struct lister *lister, int axis)
{
    const int at_once = lr_listmode_slices_at_once(lister->compute, axis);
    return (lr_listmode_all_slices(lister->compute, axis) + at_once - 1) / at_once;
}

static lr_status list_chunk(struct lister *lister)
{
    struct lr_listmode_compute *compute = lister->compute;
    const struct lr_listmode_chunk *chunk = &lister->chunk;
    const bool is_exact = lr_listmode_is_exact(compute);
    const int program = lr_listmode_for(LR_LISTMODE_ELEMENTS, chunk->has_tof);
    const int windows = num_windows(lister, chunk->axis);
    const int at_once = lr_listmode_slices_at_once(compute, chunk->axis);
    const int64_t lines = chunk->end - chunk->begin, stride = lines * (1 + lister->room);
    LR_TRY(lr_listmode_prepare(compute, chunk, NULL, false));
    for (int k = 0; k < windows; k++) {
        struct lr_listmode_pass uniforms = lr_listmode_pass_of(compute, chunk->axis);
        const int end = (k + 1) * at_once;
        uniforms.size[3] = (int32_t)lines;
        uniforms.window[0] = k * at_once;
        uniforms.window[1] = end < uniforms.window[1] ? end : uniforms.window[1];
        uniforms.window[3] = (int32_t)(k * stride);
        uniforms.slab[3] = (int32_t)lister->room;
        struct gl_pass pass = {
            .groups = {gl_divide_up(lines, is_exact ? LR_EVENTS_EXACT_GROUP : LR_EVENTS_GROUP), 1, 1}};
        gl_pass_bind(&pass, {LR_BIND_LIST_LINES, compute->lines}, {LR_BIND_LIST_TABLE, compute->table},
                     {LR_BIND_LIST_ELEMENTS, lister->buffer});
        LR_TRY(lr_listmode_run(compute, program, &uniforms, &pass));
    }
    return gl_buffer_read(lister->buffer, 0, windows * stride * (int64_t)sizeof(struct element), lister->elements);
}

static void visit(const void *self, int64_t k, int axis, const struct lr_listmode_visitor *visitor)
{
    struct lister *lister = (struct lister *)(uintptr_t)self;
    const struct lr_listmode_chunk *chunk = &lister->chunk;
    if (lister->status == LR_OK && (k < chunk->begin || k >= chunk->end)) {
        /* Events are visited in ascending order, so the next chunk begins with this event. */
        const struct lr_listmode_events *events = lister->compute->params.events;
        for (int64_t r = 0; r < events->layout.num_pairs; r++) {
            const int64_t *groups = events->groups[r];
            for (int side = 0; side < 2; side++) {
                const int64_t *ends = &groups[2 * axis + side];
                if (k >= ends[0] && k < ends[1]) {
                    lister->chunk = (struct lr_listmode_chunk){.end = k, .axis = axis, .has_tof = side};
                    lr_listmode_next_chunk(lister->compute, ends[1], &lister->chunk);
                }
            }
        }
        if (lister->chunk.end - lister->chunk.begin > lister->most_lines)
            lister->chunk.end = lister->chunk.begin + lister->most_lines;
        lister->status = list_chunk(lister);
    }
    const int64_t lines = chunk->end - chunk->begin;
    for (int w = 0; lister->status == LR_OK && w < num_windows(lister, axis); w++) {
        const struct element *list = lister->elements + (w * lines + k - chunk->begin) * (1 + lister->room);
        for (uint32_t at = 1; at <= list->voxel; at++)
            visitor->take(visitor->user, list[at].voxel, (double)list[at].value);
    }
}

lr_status lr_listmode_compute_rows(struct lr_listmode_compute *compute, const struct lr_rows *request,
                                   const lr_row_sink *sink)
{
    struct lister lister = {.compute = compute};
    const struct lr_listmode_row_source source = {.events = compute->params.events,
                                                  .order = compute->events.order,
                                                  .visit = visit,
                                                  .self = &lister,
                                                  .log = compute->params.log,
                                                  .progress = compute->params.progress};
    for (int axis = 0; axis < 3; axis++) {
        const int64_t room = lr_listmode_slices_at_once(compute, axis) * lr_listmode_most_shares(compute);
        const int windows = num_windows(&lister, axis);
        lister.room = room > lister.room ? room : lister.room;
        lister.windows = windows > lister.windows ? windows : lister.windows;
    }
    const int64_t line_bytes = (1 + lister.room) * lister.windows * (int64_t)sizeof(struct element);
    const int64_t most = LIST_BYTES / line_bytes;
    lister.most_lines = most < 1 ? 1 : most < LIST_EVENTS ? most : LIST_EVENTS;
    lister.most_lines = lister.most_lines < compute->most_lines ? lister.most_lines : compute->most_lines;

    const int64_t count = lister.most_lines * lister.windows * (1 + lister.room);
    lister.elements = lr_alloc(count, sizeof(*lister.elements), "elements of events", compute->params.log);
    if (lister.elements != NULL)
        lister.buffer =
            gl_data_buffer(compute->ctx, "elements of events", count * (int64_t)sizeof(*lister.elements), NULL);
    const lr_status status = lister.buffer != NULL ? lr_listmode_rows(&source, request, sink) : LR_FAILED;
    gl_buffer_destroy(lister.buffer);
    free(lister.elements);
    return lister.status != LR_OK ? lister.status : status;
}
