/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Projections of list mode: axis by axis, range by range, and in chunks of events. Values are not copied: shaders find
 * an event's value by its index in the selected part. */
#include "listmode/compute/listmode.h"

#include "base/log.h"
#include "base/mem.h"
#include "common/bindings.h"
#include "gl/context.h"
#include "gl/vectors.h"
#include "model/lors/selection.h"

/* A pass has at most this many slabs. */
enum { MOST_SLABS = 32768 };

/* Runs a pass over the lines of a chunk. The pass projects forward or back, or finds a bound for the terms of large
 * values. */
static lr_status run_lines(struct lr_listmode_projection *p, const struct lr_listmode_chunk *chunk,
                           struct lr_listmode_pass *uniforms)
{
    struct lr_listmode_compute *compute = p->compute;
    const bool is_exact = lr_listmode_is_exact(compute);
    const int lines = uniforms->size[3];
    struct gl_pass pass = {.groups = {gl_divide_up(lines, is_exact ? LR_EVENTS_EXACT_GROUP : LR_EVENTS_GROUP), 1, 1}};
    enum lr_listmode_program program = p->only_large ? LR_LISTMODE_BOUND : LR_LISTMODE_BACK;
    gl_pass_bind(&pass, {LR_BIND_LIST_LINES, compute->lines}, {LR_BIND_LIST_TABLE, compute->table});
    if (p->forward) {
        const int plane = uniforms->size[1] * uniforms->size[2], cells = lr_listmode_cells(compute);
        const bool by_slabs = !is_exact && plane <= cells;
        program = by_slabs ? LR_LISTMODE_FORWARD_SLABS : LR_LISTMODE_FORWARD;
        if (by_slabs) pass.groups[0] = gl_divide_up(lines, LR_EVENTS_SLAB_GROUP);
        if (!is_exact) uniforms->slab[0] = by_slabs ? cells / plane : 1;
        pass.buffers[LR_BIND_LIST_SLICES].buffer = compute->slices;
        pass.buffers[LR_BIND_LIST_VALUES] = p->selected.values;
        uniforms->window[3] = (int32_t)p->selected.values_first;
    } else {
        pass.buffers[LR_BIND_LIST_SCALE].buffer = compute->scale;
    }
    if (!p->forward && !p->only_large) {
        pass.buffers[LR_BIND_LIST_SUMS].buffer = compute->sums;
        if (!is_exact) {
            lr_listmode_cut_slabs(compute, uniforms);
            /* If the values of a workgroup add up to at most this limit, one 32-bit word can hold the sum of their
             * terms. */
            const double most = compute->largest_elements[2 * chunk->axis + (chunk->has_tof ? 1 : 0)];
            uniforms->unit[3] = (float)(LR_EVENTS_CELL_MOST / most);
            const int slices = uniforms->window[1] - uniforms->window[0];
            pass.groups[0] = gl_divide_up(lines, uniforms->slab[3]);
            pass.groups[1] = (slices + uniforms->slab[0] - 1) / uniforms->slab[0] * uniforms->slab[2];
        }
    }
    return lr_listmode_run(compute, lr_listmode_for(program, chunk->has_tof), uniforms, &pass);
}

/* Projects the events of a range along the current axis: first events without time of flight, then events with time
 * of flight. */
static lr_status take_range(struct lr_listmode_projection *p, int64_t r)
{
    struct lr_listmode_compute *compute = p->compute;
    const int slices = lr_listmode_all_slices(compute, p->axis);
    const double share = p->selected.window[1] > p->places.count - 1 ? p->places.share : 0.0;
    int most = lr_listmode_slices_at_once(compute, p->axis); /* number of slices of a pass */
    if (!p->forward && !p->only_large && !lr_listmode_is_exact(compute)) {
        struct lr_listmode_pass cut = p->uniforms;
        lr_listmode_cut_slabs(compute, &cut);
        const int64_t fitting = (int64_t)MOST_SLABS / cut.slab[2] * cut.slab[0];
        most = fitting < cut.size[0] ? (int)fitting : cut.size[0];
    }
    for (int side = 0; side < 2; side++) {
        const int group = 2 * p->axis + side;
        const int64_t *ends = &compute->params.events->groups[r][group];
        struct lr_listmode_chunk chunk = {.end = ends[0], .axis = p->axis, .has_tof = lr_listmode_group_has_tof(group)};
        while (lr_listmode_next_chunk(compute, ends[1], &chunk)) {
            if (!p->only_large) LR_TRY(lr_progress_report(compute->params.progress, p->what, p->done, p->total));
            struct lr_listmode_pass uniforms = p->uniforms;
            uniforms.size[3] = (int32_t)(chunk.end - chunk.begin);
            LR_TRY(lr_listmode_prepare(compute, &chunk, &p->selected, false));
            for (int first = 0; first < slices; first += most) {
                uniforms.window[0] = first;
                uniforms.window[1] = first + most < slices ? first + most : slices;
                uniforms.window[2] = first > 0;
                LR_TRY(run_lines(p, &chunk, &uniforms));
            }
            p->done += p->only_large ? 0.0 : share * (double)(chunk.end - chunk.begin);
        }
    }
    return LR_OK;
}

/* Projects axis by axis, and computes the lines anew. image: NULL = only a bound for the terms of large values is
 * found. */
static lr_status take_axes(struct lr_listmode_projection *p, const lr_vector *image)
{
    const struct lr_listmode_backend_params *params = &p->compute->params;
    const struct lr_listmode_events *events = params->events;
    bool is_added = false;
    for (int axis = 0; axis < 3; axis++) {
        if (!lr_listmode_has_axis(events, axis)) continue;
        p->axis = axis;
        p->uniforms = lr_listmode_pass_of(p->compute, axis);
        if (p->forward)
            LR_TRY(lr_listmode_reorder(p, image, false, false));
        else
            lr_listmode_find_unit(p, &p->uniforms);
        for (int64_t r = 0; r < events->layout.num_pairs; r++) {
            const int64_t *groups = events->groups[r];
            if (groups[2 * axis] >= groups[2 * axis + 2]) continue;
            LR_TRY(lr_listmode_places_find(&p->places, events, p->part, r, params->log));
            if (p->places.count > 0) LR_TRY(lr_listmode_take_range(p, r, take_range));
        }
        if (!p->forward && image != NULL) LR_TRY(lr_listmode_reorder(p, image, true, is_added));
        is_added = true;
    }
    return LR_OK;
}

/* Projects with vectors at the place of the backend. values: NULL = all values are 1. The sums of a back-projection are
 * added to the image, and then cleared. */
static lr_status project(void *self, const lr_vector *in, lr_vector *out)
{
    struct lr_listmode_projection *p = self;
    struct lr_listmode_compute *compute = p->compute;
    const lr_vector *image = p->forward ? in : out, *values = p->forward ? out : in;
    p->values = values;
    if (!p->forward) {
        if (compute->has_sums) gl_buffer_clear(compute->sums, 0);
        compute->has_sums = true;
    }
    lr_status status = LR_OK;
    if (compute->caches_lines) {
        status = lr_listmode_cached_project(p, image, values);
    } else {
        if (!p->forward) {
            /* The scale of the sums depends on the size of usual values, and on the largest term of the others. */
            status = lr_listmode_find_usual(p, values);
            p->only_large = true;
            if (status == LR_OK && values != NULL) status = take_axes(p, NULL);
            p->only_large = false;
        }
        if (status == LR_OK) status = take_axes(p, image);
    }
    if (!p->forward) compute->has_sums = status != LR_OK;
    return status;
}

lr_status lr_listmode_project(struct lr_listmode_compute *compute, bool is_forward, const lr_selection *part,
                              const lr_vector *in, lr_vector *out)
{
    struct lr_listmode_projection p = {.compute = compute,
                                       .part = part,
                                       .what = is_forward ? "projecting" : "back-projecting",
                                       .forward = is_forward,
                                       .total = (double)lr_selection_count(&compute->params.events->layout, part)};
    const struct lr_vector_work work = {
        {.place = compute->place, .name = "numbers of the host", .log = compute->params.log}, project, &p};
    const lr_status status = lr_vector_work_at(&work, in, out);
    gl_buffer_destroy(p.map);
    lr_listmode_places_finish(&p.places);
    return status == LR_OK ? gl_context_check(compute->ctx, p.what) : status;
}
