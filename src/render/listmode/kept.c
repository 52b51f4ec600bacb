/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Projections through lines that are found once, at creation: a pass has those of all axes, and values of
 * unusual sizes are for passes of their own. */
#include "base/log.h"
#include "base/mem.h"
#include "common/bindings.h"
#include "render/listmode/project.h"

#include <stdlib.h>
#include <string.h>

enum {
    AXES = 3,
    KEPT_BYTES = 8,         /* of an event, beside its line: its value and its place in lists */
    KEPT_VOXEL_BYTES = 24,  /* of a voxel: slices and sums across two more axes */
    MOST_GROUPS = 1 << 15,  /* along an axis */
    GROUPS_OF_LISTED = 256, /* whose lanes take lines in turn */
    JOBS_AT_ONCE = 32,      /* where work is to come in small pieces */
    MOST_AT_ONCE = 1 << 30
};

static const GLbitfield usual_barriers = GL_SHADER_STORAGE_BARRIER_BIT | GL_BUFFER_UPDATE_BARRIER_BIT;

/* The block of shaders/listmode/pass.glsl. */
struct frame {
    int32_t size[4], strides[4], slab[4];
    float voxel_mm[4], unit[4];
};
struct kept_pass {
    struct frame frames[AXES];
    float tube[4];
    int32_t range[4], part[4], values_at[4];
};
_Static_assert(sizeof(struct kept_pass) == 304, "the shaders' layout");

/* --- creation --- */

/* Slabs of whole slices, that no thread takes too long for. */
static bool has_slabs(const struct lr_listmode_compute *compute, int axis)
{
    const struct lr_listmode_pass uniforms = lr_listmode_pass_of(compute, axis);
    return (int64_t)uniforms.size[1] * uniforms.size[2] <= lr_listmode_cells(compute) &&
           uniforms.size[0] <= LR_LISTMODE_KEY_SLICES && lr_listmode_slices_at_once(compute, axis) == uniforms.size[0];
}

bool lr_listmode_may_keep(const struct lr_listmode_compute *compute, int64_t bytes)
{
    const struct lr_listmode_backend_params *params = &compute->params;
    const int64_t most = gl_context_limits(compute->ctx)->max_storage_bytes;
    const int64_t events = params->events->layout.count;
    const int64_t voxels = lr_grid_num_voxels(&params->model->grid);
    bool may = params->stands_for == NULL && !lr_listmode_is_exact(compute) && !lr_listmode_finds_lines();
    for (int axis = 0; axis < AXES; axis++) may = may && has_slabs(compute, axis);
    const int64_t line_bytes = lr_listmode_line_bytes(compute);
    return may && events <= most / line_bytes && events < INT32_MAX / 4 && voxels <= most / (8 * AXES) &&
           events * (line_bytes + KEPT_BYTES + LR_LISTMODE_EVENT_BYTES) + voxels * KEPT_VOXEL_BYTES <= bytes / 2;
}

static struct gl_buffer *make_buffer(const struct lr_listmode_compute *compute, const char *label, int64_t bytes)
{
    return gl_buffer_create(compute->ctx,
                            &(struct gl_buffer_params){.label = label, .size_bytes = bytes, .is_undefined = true});
}

/* Before the first projection: who only asks whether a backend works compiles nothing. */
static lr_status find_lines(struct lr_listmode_compute *compute)
{
    const struct lr_listmode_events *events = compute->params.events;
    for (int64_t k = 0; k < events->layout.num_pairs * LR_LISTMODE_GROUPS; k++) {
        const int group = (int)(k % LR_LISTMODE_GROUPS);
        const int64_t *ends = &events->groups[k / LR_LISTMODE_GROUPS][group];
        struct lr_listmode_chunk chunk = {
            .end = ends[0], .axis = lr_listmode_group_axis(group), .has_tof = lr_listmode_group_has_tof(group)};
        while (lr_listmode_next_chunk(compute, ends[1], &chunk)) LR_TRY(lr_listmode_prepare_kept(compute, &chunk));
    }
    compute->kept.are_found = true;
    return LR_OK;
}

static lr_status need_lines(struct lr_listmode_compute *compute)
{
    return compute->kept.are_found ? LR_OK : find_lines(compute);
}

static void count_lines(struct lr_listmode_compute *compute)
{
    const struct lr_listmode_events *events = compute->params.events;
    struct lr_listmode_kept *kept = &compute->kept;
    for (int64_t k = 0; k < events->layout.num_pairs * LR_LISTMODE_GROUPS; k++) {
        const int group = (int)(k % LR_LISTMODE_GROUPS);
        const int64_t *ends = &events->groups[k / LR_LISTMODE_GROUPS][group];
        const int64_t count = ends[1] - ends[0];
        kept->has_lines[lr_listmode_group_axis(group)] |= count > 0;
        kept->num_untimed += lr_listmode_group_has_tof(group) ? 0 : count;
    }
}

static lr_status make_buffers(struct lr_listmode_compute *compute)
{
    struct lr_listmode_kept *kept = &compute->kept;
    const int64_t count = compute->params.events->layout.count;
    kept->lines = make_buffer(compute, "lines that are kept", count * lr_listmode_line_bytes(compute));
    kept->values = make_buffer(compute, "values of lines", count * (int64_t)sizeof(float));
    kept->others = make_buffer(compute, "unusual lines", count * (int64_t)sizeof(uint32_t));
    kept->are_taken = lr_alloc(compute->params.events->layout.num_pairs, sizeof(*kept->are_taken), "ranges of events",
                               compute->params.log);
    return kept->lines && kept->values && kept->others && kept->are_taken ? LR_OK : LR_FAILED;
}

lr_status lr_listmode_keep(struct lr_listmode_compute *compute)
{
    struct lr_listmode_kept *kept = &compute->kept;
    kept->are_sums_clear = true;
    count_lines(compute);
    LR_TRY(make_buffers(compute));
    LR_TRY(lr_listmode_deal_back(compute, &kept->back));
    return lr_listmode_deal_forward(compute, lr_listmode_kept_threads(true), &kept->forward);
}

static void finish_jobs(struct lr_listmode_jobs *jobs)
{
    gl_buffer_destroy(jobs->buffer);
    free(jobs->first);
}

void lr_listmode_kept_finish(struct lr_listmode_kept *kept)
{
    finish_jobs(&kept->forward);
    finish_jobs(&kept->back);
    gl_buffer_destroy(kept->lines);
    gl_buffer_destroy(kept->values);
    gl_buffer_destroy(kept->others);
    free(kept->are_taken);
    *kept = (struct lr_listmode_kept){0};
}

/* --- what passes are told --- */

static struct frame frame_of(const struct lr_listmode_projection *p, int axis, int side)
{
    const struct lr_listmode_compute *compute = p->compute;
    const struct lr_listmode_events *events = compute->params.events;
    struct lr_listmode_pass uniforms = lr_listmode_pass_of(compute, axis);
    const double most = compute->largest_elements[2 * axis + side];
    struct frame frame = {.slab = {lr_listmode_cells(compute) / (uniforms.size[1] * uniforms.size[2]), 0, 0,
                                   compute->kept.has_lines[axis]}};
    lr_listmode_find_unit(p, &uniforms);
    uniforms.size[3] = (int32_t)events->layout.count;
    uniforms.unit[3] = most > 0 ? (float)(LR_EVENTS_CELL_MOST / most) : 0.0f;
    memcpy(frame.size, uniforms.size, sizeof(frame.size));
    memcpy(frame.strides, uniforms.strides, sizeof(frame.strides));
    memcpy(frame.voxel_mm, uniforms.voxel_mm, sizeof(frame.voxel_mm));
    memcpy(frame.unit, uniforms.unit, sizeof(frame.unit));
    return frame;
}

static struct kept_pass describe(const struct lr_listmode_projection *p, int side)
{
    const struct lr_listmode_pass any = lr_listmode_pass_of(p->compute, 0);
    const struct lr_listmode_selected *selected = &p->selected;
    struct kept_pass uniforms = {.range = {0, 0, side, (int32_t)p->compute->kept.num_untimed}};
    for (int axis = 0; axis < AXES; axis++) uniforms.frames[axis] = frame_of(p, axis, side);
    memcpy(uniforms.tube, any.tube, sizeof(uniforms.tube));
    if (selected->places != NULL) {
        const int32_t part[4] = {(int32_t)selected->places->first, (int32_t)selected->places->count,
                                 selected->map != NULL, selected->values.buffer != NULL};
        const int32_t window[4] = {(int32_t)selected->window[0], (int32_t)(selected->window[1] - selected->window[0]),
                                   (int32_t)selected->values_first, selected->window[0] > 0};
        memcpy(uniforms.part, part, sizeof(part));
        memcpy(uniforms.values_at, window, sizeof(window));
    }
    return uniforms;
}

static lr_status run(struct lr_listmode_compute *compute, enum lr_listmode_program which,
                     const struct kept_pass *uniforms, struct gl_pass *pass)
{
    pass->uniforms = uniforms;
    pass->uniform_bytes = sizeof(*uniforms);
    return lr_listmode_run_program(compute, which, pass);
}

/* --- passes --- */

static lr_status reorder(struct lr_listmode_projection *p, const lr_vector *image, bool to_grid)
{
    struct lr_listmode_compute *compute = p->compute;
    const struct lr_listmode_values grid = lr_listmode_image(p, image);
    const int64_t all[2] = {0, image->count};
    const int groups = gl_divide_up(image->count, LR_EVENTS_GROUP);
    struct kept_pass uniforms = describe(p, 0);
    struct gl_pass pass = {
        .groups = {groups < LR_LISTMODE_TURN_GROUPS ? groups : LR_LISTMODE_TURN_GROUPS, to_grid ? 1 : AXES, 1},
        .barriers = usual_barriers};
    int64_t first;
    pass.buffers[LR_BIND_LIST_GRID] = lr_listmode_align(p, &grid, all, &first);
    uniforms.values_at[2] = (int32_t)first;
    if (to_grid) {
        pass.buffers[LR_BIND_LIST_SUMS].buffer = compute->sums;
        pass.buffers[LR_BIND_LIST_SCALE].buffer = compute->scale;
    } else {
        pass.buffers[LR_BIND_LIST_SLICES].buffer = compute->slices;
    }
    return run(compute, to_grid ? LR_LISTMODE_KEPT_TO_GRID : LR_LISTMODE_KEPT_TO_SLICES, &uniforms, &pass);
}

static void bind_lines(const struct lr_listmode_projection *p, struct gl_pass *pass)
{
    const struct lr_listmode_compute *compute = p->compute;
    pass->buffers[LR_BIND_LIST_LINES].buffer = compute->kept.lines;
    pass->buffers[LR_BIND_LIST_TABLE].buffer = compute->table;
}

static void bind_values(const struct lr_listmode_projection *p, struct gl_pass *pass)
{
    const struct lr_listmode_selected *selected = &p->selected;
    pass->buffers[LR_BIND_LIST_PLACES].buffer = selected->map != NULL ? selected->map : p->compute->events.kinds;
    pass->buffers[LR_BIND_LIST_VALUES] =
        selected->values.buffer != NULL ? selected->values : (struct gl_range){.buffer = p->compute->kept.others};
}

static void bind_sums(const struct lr_listmode_projection *p, struct gl_pass *pass)
{
    const struct lr_listmode_compute *compute = p->compute;
    pass->buffers[LR_BIND_LIST_SUMS].buffer = compute->sums;
    pass->buffers[LR_BIND_LIST_SCALE].buffer = compute->scale;
    pass->buffers[LR_BIND_LIST_LINE_VALUES].buffer = compute->kept.values;
}

/* Jobs first .. last - 1 of a table, so many at a time that a stop is heard. */
static lr_status run_jobs(struct lr_listmode_projection *p, enum lr_listmode_program which, const int64_t ends[2],
                          const struct gl_pass *what)
{
    struct lr_listmode_compute *compute = p->compute;
    const bool is_timed = which == LR_LISTMODE_KEPT_FORWARD_TOF || which == LR_LISTMODE_KEPT_BACK_TOF;
    const int64_t most = gl_context_limits(compute->ctx)->small_batches ? JOBS_AT_ONCE : MOST_AT_ONCE;
    struct kept_pass uniforms = describe(p, is_timed);
    for (int64_t at = ends[0]; at < ends[1]; at += most) {
        struct gl_pass pass = *what;
        const int64_t count = ends[1] - at < most ? ends[1] - at : most;
        uniforms.range[0] = (int32_t)at;
        uniforms.range[1] = (int32_t)(at + count);
        pass.groups[0] = count < MOST_GROUPS ? (int)count : MOST_GROUPS;
        pass.groups[1] = gl_divide_up(count, MOST_GROUPS);
        pass.groups[2] = 1;
        LR_TRY(lr_progress_report(compute->params.progress, p->what, p->done, p->total));
        LR_TRY(run(compute, which, &uniforms, &pass));
    }
    return LR_OK;
}

/* --- forward --- */

static lr_status forward_range(struct lr_listmode_projection *p, int64_t r)
{
    const struct lr_listmode_jobs *jobs = &p->compute->kept.forward;
    struct gl_pass pass = {.barriers = usual_barriers};
    bind_lines(p, &pass);
    bind_values(p, &pass);
    pass.buffers[LR_BIND_LIST_SLICES].buffer = p->compute->slices;
    pass.buffers[LR_BIND_LIST_JOBS].buffer = jobs->buffer;
    for (int side = 0; side < 2; side++)
        LR_TRY(run_jobs(p, LR_LISTMODE_KEPT_FORWARD + side, &jobs->first[2 * r + side], &pass));
    p->done += (double)(p->selected.window[1] - p->selected.window[0]);
    return LR_OK;
}

lr_status lr_listmode_kept_forward(struct lr_listmode_projection *p, const lr_vector *image)
{
    LR_TRY(need_lines(p->compute));
    LR_TRY(reorder(p, image, false));
    return lr_listmode_each_range(p, forward_range);
}

/* --- back --- */

/* Values of a range in the order of its lines, and a list of unusual ones. */
static lr_status bring_values(struct lr_listmode_projection *p, int64_t r)
{
    struct lr_listmode_compute *compute = p->compute;
    const int64_t *groups = compute->params.events->groups[r];
    struct kept_pass uniforms = describe(p, 0);
    struct gl_pass pass = {.groups = {gl_divide_up(groups[LR_LISTMODE_GROUPS] - groups[0], LR_EVENTS_GROUP), 1, 1},
                           .barriers = usual_barriers};
    uniforms.range[0] = (int32_t)groups[0];
    uniforms.range[1] = (int32_t)groups[LR_LISTMODE_GROUPS];
    bind_values(p, &pass);
    pass.buffers[LR_BIND_LIST_LINES].buffer = compute->kept.lines;
    pass.buffers[LR_BIND_LIST_SCALE].buffer = compute->scale;
    pass.buffers[LR_BIND_LIST_LINE_VALUES].buffer = compute->kept.values;
    pass.buffers[LR_BIND_LIST_OTHERS].buffer = compute->kept.others;
    compute->kept.are_taken[r] = true;
    return run(compute, LR_LISTMODE_KEPT_VALUES, &uniforms, &pass);
}

/* Lines of unusual values, or with `which` that bounds them what their terms are. */
static lr_status take_listed(struct lr_listmode_projection *p, enum lr_listmode_program which)
{
    const int64_t untimed = p->compute->kept.num_untimed;
    const bool has_side[2] = {untimed > 0, untimed < p->compute->params.events->layout.count};
    struct gl_pass pass = {.groups = {GROUPS_OF_LISTED, 1, 1}, .barriers = usual_barriers};
    bind_lines(p, &pass);
    bind_sums(p, &pass);
    pass.buffers[LR_BIND_LIST_OTHERS].buffer = p->compute->kept.others;
    for (int side = 0; side < 2; side++) {
        const struct kept_pass uniforms = describe(p, side);
        LR_TRY(has_side[side] ? run(p->compute, which + side, &uniforms, &pass) : LR_OK);
    }
    return LR_OK;
}

/* Those of usual values. Passes add to the same sums, so that none waits for another one. */
static lr_status take_jobs(struct lr_listmode_projection *p)
{
    const struct lr_listmode_jobs *jobs = &p->compute->kept.back;
    const struct lr_listmode_events *events = p->compute->params.events;
    struct gl_pass pass = {.barriers = 0};
    bind_lines(p, &pass);
    bind_sums(p, &pass);
    pass.buffers[LR_BIND_LIST_JOBS].buffer = jobs->buffer;
    for (int64_t r = 0; r < events->layout.num_pairs; r++)
        for (int side = 0; side < 2 && p->compute->kept.are_taken[r]; side++)
            LR_TRY(run_jobs(p, LR_LISTMODE_KEPT_BACK + side, &jobs->first[2 * r + side], &pass));
    return LR_OK;
}

lr_status lr_listmode_kept_back(struct lr_listmode_projection *p, const lr_vector *values, const lr_vector *image)
{
    struct lr_listmode_kept *kept = &p->compute->kept;
    const int64_t ranges = p->compute->params.events->layout.num_pairs;
    LR_TRY(need_lines(p->compute));
    if (!kept->are_sums_clear) gl_buffer_clear(p->compute->sums, 0);
    memset(kept->are_taken, 0, (size_t)ranges * sizeof(*kept->are_taken));
    LR_TRY(lr_listmode_find_usual(p, values));
    LR_TRY(lr_listmode_each_range(p, bring_values));
    LR_TRY(values != NULL ? take_listed(p, LR_LISTMODE_KEPT_BOUND) : LR_OK);
    kept->are_sums_clear = false;
    LR_TRY(take_jobs(p));
    LR_TRY(take_listed(p, LR_LISTMODE_KEPT_OTHERS));
    LR_TRY(reorder(p, image, true));
    kept->are_sums_clear = true;
    return LR_OK;
}
