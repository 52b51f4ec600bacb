/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Projections: axis by axis, range by range, some events at a time. Values stay where they are: shaders
 * find them by the places of a part. */
#include "render/listmode/listmode.h"

#include "base/log.h"
#include "base/mem.h"
#include "common/bindings.h"
#include "model/lors/selection.h"
#include "render/method.h"
#include "render/values.h"

/* --- projections --- */

/* Slabs of a pass. */
enum { MOST_SLABS = 32768 };

/* --- values and images between host and device --- */

static lr_status open_values(struct lr_listmode_projection *p, const lr_vector *values)
{
    if (values == NULL) return LR_OK;
    if (values->values == NULL) {
        const struct lr_vector_range range = lr_vector_gl_range(values);
        p->values = (struct lr_listmode_values){range.buffer, range.offset, false};
        return LR_OK;
    }
    struct gl_buffer *buffer =
        lr_values_buffer(p->compute->ctx, "values of events", values->count, p->forward ? NULL : values);
    p->values = (struct lr_listmode_values){buffer, 0, true};
    return buffer != NULL ? LR_OK : LR_FAILED;
}

static lr_status ensure_image(struct lr_listmode_compute *compute)
{
    if (compute->image == NULL) {
        compute->image = gl_buffer_create(
            compute->ctx, &(struct gl_buffer_params){.label = "an image",
                                                     .size_bytes = lr_grid_num_voxels(&compute->params.model->grid) *
                                                                   (int64_t)sizeof(float)});
    }
    return compute->image != NULL ? LR_OK : LR_FAILED;
}

static lr_status reorder(struct lr_listmode_projection *p, const lr_vector *image, bool to_grid, bool is_added)
{
    struct lr_listmode_compute *compute = p->compute;
    struct lr_listmode_pass uniforms = p->uniforms;
    const struct lr_listmode_values grid = lr_listmode_image(p, image);
    const int64_t all[2] = {0, image->count};
    const int groups = gl_divide_up(image->count, LR_EVENTS_GROUP);
    struct gl_pass pass = {.groups = {groups < LR_LISTMODE_TURN_GROUPS ? groups : LR_LISTMODE_TURN_GROUPS, 1, 1}};
    int64_t first;
    pass.buffers[LR_BIND_LIST_GRID] = lr_listmode_align(p, &grid, all, &first);
    uniforms.window[2] = is_added;
    uniforms.window[3] = (int32_t)first;
    if (to_grid) {
        pass.buffers[LR_BIND_LIST_SUMS].buffer = compute->sums;
        pass.buffers[LR_BIND_LIST_SCALE].buffer = compute->scale;
    } else {
        pass.buffers[LR_BIND_LIST_SLICES].buffer = compute->slices;
    }
    return lr_listmode_run(compute, to_grid ? LR_LISTMODE_TO_GRID : LR_LISTMODE_TO_SLICES, &uniforms, &pass);
}

/* --- passes over lines --- */

static int program_of(const struct lr_listmode_chunk *chunk, int without)
{
    return without + (chunk->has_tof ? 1 : 0);
}

/* A thread has a line. */
static int groups_of_lines(const struct lr_listmode_projection *p, int lines)
{
    return gl_divide_up(lines, lr_listmode_is_exact(p->compute) ? LR_EVENTS_EXACT_GROUP : LR_EVENTS_GROUP);
}

static void bind_lines(const struct lr_listmode_projection *p, struct gl_pass *pass)
{
    pass->buffers[LR_BIND_LIST_LINES].buffer = p->compute->lines;
    pass->buffers[LR_BIND_LIST_TABLE].buffer = p->compute->table;
}

static lr_status run_exact_forward(struct lr_listmode_projection *p, const struct lr_listmode_chunk *chunk,
                                   struct lr_listmode_pass *uniforms)
{
    struct gl_pass pass = {.groups = {groups_of_lines(p, uniforms->size[3]), 1, 1}};
    bind_lines(p, &pass);
    pass.buffers[LR_BIND_LIST_SLICES].buffer = p->compute->slices;
    pass.buffers[LR_BIND_LIST_VALUES] = p->selected.values;
    uniforms->window[3] = (int32_t)p->selected.values_first;
    return lr_listmode_run(p->compute, program_of(chunk, LR_LISTMODE_EXACT_FORWARD), uniforms, &pass);
}

static lr_status run_forward(struct lr_listmode_projection *p, const struct lr_listmode_chunk *chunk,
                             struct lr_listmode_pass *uniforms)
{
    if (lr_listmode_is_exact(p->compute)) return run_exact_forward(p, chunk, uniforms);
    const int plane = uniforms->size[1] * uniforms->size[2];
    const int cells = lr_listmode_cells(p->compute);
    const bool by_slabs = plane <= cells;
    const int group = by_slabs ? LR_EVENTS_SLAB_GROUP : LR_EVENTS_GROUP;
    struct gl_pass pass = {
        .groups = {gl_divide_up(uniforms->size[3], group), 1, 1},
    };
    uniforms->slab[0] = by_slabs ? cells / plane : 1;
    bind_lines(p, &pass);
    pass.buffers[LR_BIND_LIST_SLICES].buffer = p->compute->slices;
    pass.buffers[LR_BIND_LIST_VALUES] = p->selected.values;
    uniforms->window[3] = (int32_t)p->selected.values_first;
    return lr_listmode_run(p->compute, program_of(chunk, by_slabs ? LR_LISTMODE_FORWARD_SLABS : LR_LISTMODE_FORWARD),
                           uniforms, &pass);
}

static lr_status run_exact_back(struct lr_listmode_projection *p, const struct lr_listmode_chunk *chunk,
                                struct lr_listmode_pass *uniforms)
{
    struct gl_pass pass = {.groups = {groups_of_lines(p, uniforms->size[3]), 1, 1}};
    bind_lines(p, &pass);
    pass.buffers[LR_BIND_LIST_SUMS].buffer = p->compute->sums;
    pass.buffers[LR_BIND_LIST_SCALE].buffer = p->compute->scale;
    return lr_listmode_run(p->compute, program_of(chunk, LR_LISTMODE_EXACT_BACK), uniforms, &pass);
}

static lr_status run_back(struct lr_listmode_projection *p, const struct lr_listmode_chunk *chunk,
                          struct lr_listmode_pass *uniforms)
{
    if (lr_listmode_is_exact(p->compute)) return run_exact_back(p, chunk, uniforms);
    lr_listmode_cut_slabs(p->compute, uniforms);
    /* The largest sum of a group's values for which a word holds their terms' sum. */
    const double most = p->compute->largest_elements[2 * chunk->axis + (chunk->has_tof ? 1 : 0)];
    uniforms->unit[3] = (float)(LR_EVENTS_CELL_MOST / most);

    const int slices = uniforms->window[1] - uniforms->window[0];
    const int slabs = (slices + uniforms->slab[0] - 1) / uniforms->slab[0] * uniforms->slab[2];
    struct gl_pass pass = {.groups = {gl_divide_up(uniforms->size[3], uniforms->slab[3]), slabs, 1}};
    bind_lines(p, &pass);
    pass.buffers[LR_BIND_LIST_SUMS].buffer = p->compute->sums;
    pass.buffers[LR_BIND_LIST_SCALE].buffer = p->compute->scale;
    return lr_listmode_run(p->compute, program_of(chunk, LR_LISTMODE_BACK), uniforms, &pass);
}

static lr_status run_bound(struct lr_listmode_projection *p, const struct lr_listmode_chunk *chunk,
                           struct lr_listmode_pass *uniforms)
{
    const bool is_exact = lr_listmode_is_exact(p->compute);
    struct gl_pass pass = {.groups = {groups_of_lines(p, uniforms->size[3]), 1, 1}};
    bind_lines(p, &pass);
    pass.buffers[LR_BIND_LIST_SCALE].buffer = p->compute->scale;
    return lr_listmode_run(p->compute, program_of(chunk, is_exact ? LR_LISTMODE_EXACT_BOUND : LR_LISTMODE_BOUND),
                           uniforms, &pass);
}

/* Slices that one pass may go through. */
static int slices_at_once(const struct lr_listmode_projection *p, int axis)
{
    struct lr_listmode_pass uniforms = p->uniforms;
    if (p->forward || p->only_large || lr_listmode_is_exact(p->compute))
        return lr_listmode_slices_at_once(p->compute, axis);
    lr_listmode_cut_slabs(p->compute, &uniforms);
    const int64_t most = (int64_t)MOST_SLABS / uniforms.slab[2] * uniforms.slab[0];
    return most < uniforms.size[0] ? (int)most : uniforms.size[0];
}

/* --- events --- */

static lr_status take_group(struct lr_listmode_projection *p, int64_t r, int group)
{
    const struct lr_listmode_backend_params *params = &p->compute->params;
    const int64_t *ends = &params->events->groups[r][group];
    struct lr_listmode_chunk chunk = {
        .end = ends[0], .axis = lr_listmode_group_axis(group), .has_tof = lr_listmode_group_has_tof(group)};
    while (lr_listmode_next_chunk(p->compute, ends[1], &chunk)) {
        const double share = p->selected.window[1] > p->places.count - 1 ? p->places.share : 0.0;
        LR_TRY(p->only_large ? LR_OK : lr_progress_report(params->progress, p->what, p->done, p->total));
        struct lr_listmode_pass uniforms = p->uniforms;
        const int slices = lr_listmode_all_slices(p->compute, chunk.axis);
        const int most = slices_at_once(p, chunk.axis);
        lr_status status = lr_listmode_prepare(p->compute, &chunk, &p->selected);
        uniforms.size[3] = (int32_t)(chunk.end - chunk.begin);
        for (int first = 0; status == LR_OK && first < slices; first += most) {
            uniforms.window[0] = first;
            uniforms.window[1] = first + most < slices ? first + most : slices;
            uniforms.window[2] = first > 0;
            status = p->forward      ? run_forward(p, &chunk, &uniforms)
                     : p->only_large ? run_bound(p, &chunk, &uniforms)
                                     : run_back(p, &chunk, &uniforms);
        }
        LR_TRY(status);

        p->done += p->only_large ? 0.0 : share * (double)(chunk.end - chunk.begin);
    }
    return LR_OK;
}

static lr_status take_axis(struct lr_listmode_projection *p, int64_t r)
{
    for (int side = 0; side < 2; side++) LR_TRY(take_group(p, r, 2 * p->axis + side));
    return LR_OK;
}

static lr_status take_ranges(struct lr_listmode_projection *p)
{
    const struct lr_listmode_backend_params *params = &p->compute->params;
    lr_status status = LR_OK;
    for (int64_t r = 0; status == LR_OK && r < params->events->layout.num_pairs; r++) {
        const int64_t *groups = params->events->groups[r];
        if (groups[2 * p->axis] < groups[2 * p->axis + 2]) {
            status = lr_listmode_places_find(&p->places, params->events, p->part, r, params->log);
            status = status == LR_OK && p->places.count > 0 ? lr_listmode_take_range(p, r, take_axis) : status;
        }
    }
    return status;
}

static bool has_events(const struct lr_listmode_projection *p, int axis)
{
    const struct lr_listmode_events *events = p->compute->params.events;
    bool has = false;
    for (int64_t r = 0; r < events->layout.num_pairs; r++)
        has = has || events->groups[r][2 * axis] < events->groups[r][2 * axis + 2];
    return has;
}

static struct lr_listmode_projection begin(struct lr_listmode_compute *compute, const lr_selection *part, bool forward)
{
    return (struct lr_listmode_projection){.compute = compute,
                                           .part = part,
                                           .what = forward ? "projecting" : "back-projecting",
                                           .forward = forward,
                                           .total = (double)lr_selection_count(&compute->params.events->layout, part)};
}

static lr_status end(struct lr_listmode_projection *p, lr_status status)
{
    gl_buffer_destroy(p->map);
    lr_listmode_places_finish(&p->places);
    if (p->values.is_ours) gl_buffer_destroy(p->values.buffer);

    return status == LR_OK ? gl_context_check(p->compute->ctx, p->what) : status;
}

/* --- forward --- */

static lr_status forward_axes(struct lr_listmode_projection *p, const lr_vector *image)
{
    for (int axis = 0; axis < 3; axis++) {
        if (has_events(p, axis)) {
            p->axis = axis;
            p->uniforms = lr_listmode_pass_of(p->compute, axis);
            LR_TRY(reorder(p, image, false, false));
            LR_TRY(take_ranges(p));
        }
    }
    return LR_OK;
}

static lr_status put_image(struct lr_listmode_compute *compute, const lr_vector *image)
{
    if (image->values == NULL) return LR_OK;
    LR_TRY(ensure_image(compute));
    return lr_values_put(image, compute->image, 0);
}

lr_status lr_listmode_compute_forward(struct lr_listmode_compute *compute, const lr_selection *part,
                                      const lr_vector *image, lr_vector *values)
{
    struct lr_listmode_projection p = begin(compute, part, true);
    lr_status status = put_image(compute, image);
    status = status == LR_OK ? open_values(&p, values) : status;
    if (status == LR_OK) status = compute->keeps_lines ? lr_listmode_kept_forward(&p, image) : forward_axes(&p, image);
    if (status == LR_OK && p.values.is_ours) status = lr_values_get(p.values.buffer, 0, values);
    return end(&p, status);
}

/* --- back --- */

/* image NULL: only what scales it is looked for. */
static lr_status back_axes(struct lr_listmode_projection *p, lr_vector *image)
{
    bool is_added = false;
    for (int axis = 0; axis < 3; axis++) {
        if (has_events(p, axis)) {
            p->axis = axis;
            p->uniforms = lr_listmode_pass_of(p->compute, axis);
            lr_listmode_find_unit(p, &p->uniforms);
            LR_TRY(take_ranges(p));
            LR_TRY(image != NULL ? reorder(p, image, true, is_added) : LR_OK);
            is_added = true;
        }
    }
    return LR_OK;
}

/* Line by line, as they are found. */
static lr_status back_found(struct lr_listmode_projection *p, const lr_vector *values, lr_vector *image)
{
    gl_buffer_clear(p->compute->sums, 0); /* of a call that failed */
    /* A bound of most values, and the terms of the others. */
    LR_TRY(lr_listmode_find_usual(p, values));
    p->only_large = values != NULL;
    const lr_status status = p->only_large ? back_axes(p, NULL) : LR_OK;
    p->only_large = false;
    LR_TRY(status);

    return back_axes(p, image);
}

static lr_status back_values(struct lr_listmode_projection *p, const lr_vector *values, lr_vector *image)
{
    LR_TRY(image->values != NULL ? ensure_image(p->compute) : LR_OK);
    LR_TRY(open_values(p, values));
    LR_TRY(p->compute->keeps_lines ? lr_listmode_kept_back(p, values, image) : back_found(p, values, image));
    return image->values != NULL ? lr_values_get(p->compute->image, 0, image) : LR_OK;
}

lr_status lr_listmode_compute_back(struct lr_listmode_compute *compute, const lr_selection *part,
                                   const lr_vector *values, lr_vector *image)
{
    struct lr_listmode_projection p = begin(compute, part, false);
    return end(&p, back_values(&p, values, image));
}
