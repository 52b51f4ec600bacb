/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Projections over lines that the device keeps. The work is divided into jobs of about the same size, which workgroups
 * take. The longest jobs come first, so that no workgroup works alone at the end. */
#include "base/log.h"
#include "base/mem.h"
#include "common/bindings.h"
#include "gl/vectors.h"
#include "listmode/compute/listmode.h"

#include <stdlib.h>
#include <string.h>

enum {
    LEAST_WORK = 1 << 12, /* least work of a job, in slices that its lines cross; in smaller jobs, adding the sums to
                             memory would take most of the time */
    MOST_JOBS = 2048,     /* approximate number of jobs of a range for events without time of flight, and the same
                             number for events with it */
    LINE_WORK = 1         /* work of beginning a line in a slab, in slices */
};

struct job_builder {
    const struct lr_listmode_compute *compute;
    struct lr_listmode_job *list; /* owned */
    int64_t count, room;
};

static lr_status add_job(struct job_builder *builder, const struct lr_listmode_job *job)
{
    const struct lr_items items = {sizeof(*builder->list), "jobs", builder->compute->params.log};
    LR_TRY(lr_grow(&builder->list, &builder->room, builder->count + 1, &items));
    builder->list[builder->count++] = *job;
    return LR_OK;
}

static int compare_jobs(const void *a, const void *b)
{
    const struct lr_listmode_job *left = a, *right = b;
    for (int k = 3; k >= 0; k -= 3) /* compares the work of two jobs, then their first lines */
        if (left->lines[k] != right->lines[k]) return (left->lines[k] < right->lines[k] ? -1 : 1) * (k == 3 ? -1 : 1);
    return left->slices[0] - right->slices[0];
}

/* Adds the back-projection's jobs of one side of a range, for the groups of all axes. side: 0 = events without time of
 * flight, 1 = events with it. A job is one slab of a portion of lines. All jobs have about the same work. */
static lr_status add_back_jobs(struct job_builder *builder, int64_t r, int side)
{
    const struct lr_listmode_pieces *pieces = &builder->compute->events.pieces;
    const int64_t *groups = builder->compute->params.events->groups[r], *first = &pieces->first[r * LR_LISTMODE_GROUPS];
    struct lr_listmode_cut cut = {.each = pieces->each, .line_work = LINE_WORK};
    const int64_t begin = builder->count;
    int64_t total = 0;
    for (int g = side; g < LR_LISTMODE_GROUPS; g += 2) {
        const struct lr_listmode_portion all = {.events = {groups[g], groups[g + 1]},
                                                .pieces = pieces->list + first[g]};
        total += lr_listmode_work(&cut, &all, lr_listmode_all);
    }
    const struct lr_listmode_settings settings = lr_listmode_settings_of(builder->compute);
    const int64_t each = total / (settings.most_jobs > 0 ? settings.most_jobs : MOST_JOBS) + 1;
    cut.job_work = each > LEAST_WORK ? each : LEAST_WORK;

    for (int axis = 0; axis < 3; axis++) {
        /* The shader's memory for sums limits the slices and lines of a job. */
        struct lr_listmode_pass uniforms = lr_listmode_pass_of(builder->compute, axis);
        lr_listmode_cut_slabs(builder->compute, &uniforms);
        const int lines = uniforms.slab[3] / LR_EVENTS_GROUP * settings.back_threads;
        const int limit = LR_EVENTS_GROUP * LR_LISTMODE_LINES_OF_THREAD;
        cut.slab = uniforms.slab[0];
        cut.most_events = (lines < limit ? lines : limit) - cut.each + 1;
        const int64_t *ends = &groups[2 * axis + side];
        for (int64_t next = ends[0]; next < ends[1];) {
            const struct lr_listmode_extent *from = pieces->list + first[2 * axis + side] + (next - ends[0]) / cut.each;
            const struct lr_listmode_portion portion =
                lr_listmode_next_portion(&cut, from, (const int64_t[2]){next, ends[1]});
            const int32_t slices = portion.slices[1] - portion.slices[0];
            const int32_t slabs = slices > 0 ? lr_listmode_slabs(&cut, slices) : 0;
            for (int32_t k = 0; k < slabs; k++) {
                struct lr_listmode_job job = {.lines = {(int32_t)next, (int32_t)(portion.events[1] - next), axis}};
                lr_listmode_slab(&portion, slabs, k, job.slices);
                job.lines[3] = (int32_t)lr_listmode_work(&cut, &portion, job.slices); /* used only for sorting, not by
                                                                                         shaders */
                LR_TRY(add_job(builder, &job));
            }
            next = portion.events[1];
        }
    }
    if (builder->count > begin)
        qsort(builder->list + begin, (size_t)(builder->count - begin), sizeof(*builder->list), compare_jobs);
    return LR_OK;
}

/* Adds the forward projection's jobs of one side of a range. Each job has `lines` lines, and all slices that the pieces
 * with these lines cross. */
static lr_status add_forward_jobs(struct job_builder *builder, int64_t r, int side, int lines)
{
    const struct lr_listmode_pieces *pieces = &builder->compute->events.pieces;
    for (int axis = 0; axis < 3; axis++) {
        const int group = 2 * axis + side;
        const int64_t *ends = &builder->compute->params.events->groups[r][group];
        const struct lr_listmode_extent *list = pieces->list + pieces->first[r * LR_LISTMODE_GROUPS + group];
        for (int64_t first = ends[0]; first < ends[1]; first += lines) {
            const int64_t last = first + lines < ends[1] ? first + lines : ends[1];
            struct lr_listmode_job job = {.lines = {(int32_t)first, (int32_t)(last - first), axis},
                                          .slices = {LR_LISTMODE_KEY_SLICES, 0}};
            for (int64_t k = (first - ends[0]) / pieces->each; k * pieces->each < last - ends[0]; k++) {
                job.slices[0] = list[k].slices[0] < job.slices[0] ? list[k].slices[0] : job.slices[0];
                job.slices[1] = list[k].slices[1] > job.slices[1] ? list[k].slices[1] : job.slices[1];
            }
            job.slices[0] = job.slices[0] < job.slices[1] ? job.slices[0] : job.slices[1];
            LR_TRY(add_job(builder, &job));
        }
    }
    return LR_OK;
}

/* Makes the jobs of forward projections, with `lines` lines each. If `lines` is 0, makes the jobs of back-projections
 * instead. errors: LR_FAILED. */
static lr_status make_jobs(const struct lr_listmode_compute *compute, int lines, struct lr_listmode_jobs *jobs)
{
    const int64_t sides = 2 * compute->params.events->layout.num_pairs;
    struct job_builder builder = {.compute = compute};
    jobs->first = lr_alloc(sides + 1, sizeof(*jobs->first), "jobs", compute->params.log);
    lr_status status = jobs->first != NULL ? LR_OK : LR_FAILED;
    for (int64_t k = 0; status == LR_OK && k < sides; k++) {
        jobs->first[k] = builder.count;
        status = lines > 0 ? add_forward_jobs(&builder, k / 2, (int)(k % 2), lines)
                           : add_back_jobs(&builder, k / 2, (int)(k % 2));
    }
    if (status == LR_OK) {
        jobs->first[sides] = builder.count;
        jobs->buffer =
            gl_data_buffer(compute->ctx, "jobs", builder.count * (int64_t)sizeof(*builder.list), builder.list);
        status = jobs->buffer != NULL ? LR_OK : LR_FAILED;
    }
    free(builder.list);
    return status;
}

/* --- projections --- */

enum {
    AXES = 3,
    CACHED_BYTES = 8,        /* bytes of an event besides its line: its value, and its number in the list of unusual
                                values */
    CACHED_VOXEL_BYTES = 24, /* bytes of a voxel for the slices and sums across the two other axes */
    MOST_GROUPS = 1 << 15,   /* largest number of workgroups along an axis */
    GROUPS_OF_LISTED = 256,  /* workgroups for listed lines */
    JOBS_AT_ONCE = 32,       /* jobs of a pass on devices with small batches */
    MOST_AT_ONCE = 1 << 30
};

static const GLbitfield usual_barriers = GL_SHADER_STORAGE_BARRIER_BIT | GL_BUFFER_UPDATE_BARRIER_BIT;

/* The uniform block of shaders/listmode/pass.glsl for cached lines. A frame is the part of the block for one axis. */
struct frame {
    int32_t size[4], strides[4], slab[4];
    float voxel_mm[4], unit[4];
};
struct cached_pass {
    struct frame frames[AXES];
    float tube[4];
    int32_t range[4], part[4], values_at[4];
};
_Static_assert(sizeof(struct cached_pass) == 304, "the shaders' layout");

/* --- creation --- */

bool lr_listmode_may_cache(const struct lr_listmode_compute *compute, int64_t bytes)
{
    const struct lr_listmode_backend_params *params = &compute->params;
    const int64_t most = gl_context_limits(compute->ctx)->max_storage_bytes;
    const int64_t events = params->events->layout.count;
    const int64_t voxels = lr_grid_num_voxels(&params->model->grid);
    bool may =
        params->stands_for == NULL && !lr_listmode_is_exact(compute) && !lr_listmode_settings_of(compute).finds_lines;
    for (int axis = 0; may && axis < AXES; axis++) {
        /* Cached lines need slabs of whole slices, and a thread must not take too long for a slab. */
        const struct lr_listmode_pass uniforms = lr_listmode_pass_of(compute, axis);
        may = (int64_t)uniforms.size[1] * uniforms.size[2] <= lr_listmode_cells(compute) &&
              uniforms.size[0] <= LR_LISTMODE_KEY_SLICES &&
              lr_listmode_slices_at_once(compute, axis) == uniforms.size[0];
    }
    const int64_t line_bytes = lr_listmode_line_bytes(compute);
    return may && events <= most / line_bytes && events < INT32_MAX / 4 && voxels <= most / (8 * AXES) &&
           events * (line_bytes + CACHED_BYTES + lr_listmode_event_bytes(params->events)) +
                   voxels * CACHED_VOXEL_BYTES <=
               bytes / 2;
}

static struct gl_buffer *make_buffer(const struct lr_listmode_compute *compute, const char *label, int64_t bytes)
{
    return gl_buffer_create(compute->ctx,
                            &(struct gl_buffer_params){.label = label, .size_bytes = bytes, .is_undefined = true});
}

lr_status lr_listmode_cache_init(struct lr_listmode_compute *compute)
{
    const struct lr_listmode_events *events = compute->params.events;
    struct lr_listmode_line_cache *cache = &compute->cache;
    for (int64_t k = 0; k < events->layout.num_pairs * LR_LISTMODE_GROUPS; k++) {
        const int group = (int)(k % LR_LISTMODE_GROUPS);
        const int64_t *ends = &events->groups[k / LR_LISTMODE_GROUPS][group];
        cache->has_lines[lr_listmode_group_axis(group)] |= ends[1] > ends[0];
        cache->num_untimed += lr_listmode_group_has_tof(group) ? 0 : ends[1] - ends[0];
    }
    const int64_t count = events->layout.count;
    cache->lines = make_buffer(compute, "lines that are kept", count * lr_listmode_line_bytes(compute));
    cache->values = make_buffer(compute, "values of lines", count * (int64_t)sizeof(float));
    cache->others = make_buffer(compute, "unusual lines", count * (int64_t)sizeof(uint32_t));
    cache->are_taken =
        lr_alloc(events->layout.num_pairs, sizeof(*cache->are_taken), "ranges of events", compute->params.log);
    LR_TRY(cache->lines && cache->values && cache->others && cache->are_taken ? LR_OK : LR_FAILED);
    LR_TRY(make_jobs(compute, 0, &cache->back));
    return make_jobs(compute, lr_listmode_settings_of(compute).forward_threads, &cache->forward);
}

/* --- uniforms of passes --- */

static struct cached_pass describe(const struct lr_listmode_projection *p, int side)
{
    const struct lr_listmode_compute *compute = p->compute;
    const struct lr_listmode_pass any = lr_listmode_pass_of(compute, 0);
    const struct lr_listmode_selected *selected = &p->selected;
    struct cached_pass uniforms = {.range = {0, 0, side, (int32_t)compute->cache.num_untimed}};
    for (int axis = 0; axis < AXES; axis++) {
        struct lr_listmode_pass own = lr_listmode_pass_of(compute, axis);
        struct frame *frame = &uniforms.frames[axis];
        const double most = compute->largest_elements[2 * axis + side];
        lr_listmode_find_unit(p, &own);
        own.size[3] = (int32_t)compute->params.events->layout.count;
        own.unit[3] = most > 0 ? (float)(LR_EVENTS_CELL_MOST / most) : 0.0f;
        frame->slab[0] = lr_listmode_cells(compute) / (own.size[1] * own.size[2]);
        frame->slab[3] = compute->cache.has_lines[axis];
        memcpy(frame->size, own.size, sizeof(frame->size));
        memcpy(frame->strides, own.strides, sizeof(frame->strides));
        memcpy(frame->voxel_mm, own.voxel_mm, sizeof(frame->voxel_mm));
        memcpy(frame->unit, own.unit, sizeof(frame->unit));
    }
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

/* --- passes --- */

lr_status lr_listmode_reorder(struct lr_listmode_projection *p, const lr_vector *image, bool to_grid, bool is_added)
{
    struct lr_listmode_compute *compute = p->compute;
    const int64_t all[2] = {0, image->count};
    const int groups = gl_divide_up(image->count, LR_EVENTS_GROUP);
    const bool is_one = to_grid || !compute->caches_lines;
    struct cached_pass uniforms = describe(p, 0);
    struct gl_pass pass = {
        .groups = {groups < LR_LISTMODE_MOST_GROUPS ? groups : LR_LISTMODE_MOST_GROUPS, is_one ? 1 : AXES, 1},
        .barriers = usual_barriers};
    int64_t first;
    if (!compute->caches_lines) { /* slices and sums are only for the current axis */
        uniforms.frames[0] = uniforms.frames[p->axis];
        uniforms.frames[0].slab[3] = 1;
    }
    pass.buffers[LR_BIND_LIST_GRID] = lr_listmode_align(image, all, &first);
    uniforms.values_at[2] = (int32_t)first;
    uniforms.values_at[3] = is_added;
    if (to_grid)
        gl_pass_bind(&pass, {LR_BIND_LIST_SUMS, compute->sums}, {LR_BIND_LIST_SCALE, compute->scale});
    else
        pass.buffers[LR_BIND_LIST_SLICES].buffer = compute->slices;
    const int number = lr_listmode_for(to_grid ? LR_LISTMODE_TO_GRID : LR_LISTMODE_TO_SLICES, false);
    return lr_listmode_run_program(compute, number, &uniforms, sizeof(uniforms), &pass);
}

static void bind_lines(const struct lr_listmode_projection *p, struct gl_pass *pass)
{
    const struct lr_listmode_compute *compute = p->compute;
    gl_pass_bind(pass, {LR_BIND_LIST_LINES, compute->cache.lines}, {LR_BIND_LIST_TABLE, compute->table});
}

static void bind_values(const struct lr_listmode_projection *p, struct gl_pass *pass)
{
    const struct lr_listmode_selected *selected = &p->selected;
    pass->buffers[LR_BIND_LIST_PLACES].buffer = selected->map != NULL ? selected->map : p->compute->events.kinds;
    pass->buffers[LR_BIND_LIST_VALUES] =
        selected->values.buffer != NULL ? selected->values : (struct gl_range){.buffer = p->compute->cache.others};
}

static void bind_sums(const struct lr_listmode_projection *p, struct gl_pass *pass)
{
    const struct lr_listmode_compute *compute = p->compute;
    gl_pass_bind(pass, {LR_BIND_LIST_SUMS, compute->sums}, {LR_BIND_LIST_SCALE, compute->scale},
                 {LR_BIND_LIST_LINE_VALUES, compute->cache.values});
}

/* Runs jobs ends[0] to ends[1] - 1 of a table. On software renderers, each pass is short, so that the user can cancel a
 * projection. */
static lr_status run_jobs(struct lr_listmode_projection *p, int number, const int64_t ends[2],
                          const struct gl_pass *what)
{
    struct lr_listmode_compute *compute = p->compute;
    const int64_t most = gl_context_limits(compute->ctx)->small_batches ? JOBS_AT_ONCE : MOST_AT_ONCE;
    struct cached_pass uniforms = describe(p, number % 2);
    for (int64_t at = ends[0]; at < ends[1]; at += most) {
        struct gl_pass pass = *what;
        const int64_t count = ends[1] - at < most ? ends[1] - at : most;
        uniforms.range[0] = (int32_t)at;
        uniforms.range[1] = (int32_t)(at + count);
        pass.groups[0] = count < MOST_GROUPS ? (int)count : MOST_GROUPS;
        pass.groups[1] = gl_divide_up(count, MOST_GROUPS);
        pass.groups[2] = 1;
        LR_TRY(lr_progress_report(compute->params.progress, p->what, p->done, p->total));
        LR_TRY(lr_listmode_run_program(compute, number, &uniforms, sizeof(uniforms), &pass));
    }
    return LR_OK;
}

/* --- forward --- */

static lr_status forward_range(struct lr_listmode_projection *p, int64_t r)
{
    const struct lr_listmode_jobs *jobs = &p->compute->cache.forward;
    struct gl_pass pass = {.barriers = usual_barriers};
    bind_lines(p, &pass);
    bind_values(p, &pass);
    gl_pass_bind(&pass, {LR_BIND_LIST_SLICES, p->compute->slices}, {LR_BIND_LIST_JOBS, jobs->buffer});
    for (int side = 0; side < 2; side++)
        LR_TRY(run_jobs(p, lr_listmode_for(LR_LISTMODE_CACHED_FORWARD, side), &jobs->first[2 * r + side], &pass));
    p->done += (double)(p->selected.window[1] - p->selected.window[0]);
    return LR_OK;
}

/* --- back --- */

/* Copies the values of a range to the order of its lines, and lists the lines with unusually large or small values
 * (shaders/listmode/scale.glsl). */
static lr_status bring_values(struct lr_listmode_projection *p, int64_t r)
{
    struct lr_listmode_compute *compute = p->compute;
    const int64_t *groups = compute->params.events->groups[r];
    struct cached_pass uniforms = describe(p, 0);
    struct gl_pass pass = {.groups = {gl_divide_up(groups[LR_LISTMODE_GROUPS] - groups[0], LR_EVENTS_GROUP), 1, 1},
                           .barriers = usual_barriers};
    uniforms.range[0] = (int32_t)groups[0];
    uniforms.range[1] = (int32_t)groups[LR_LISTMODE_GROUPS];
    bind_values(p, &pass);
    gl_pass_bind(&pass, {LR_BIND_LIST_LINES, compute->cache.lines}, {LR_BIND_LIST_SCALE, compute->scale},
                 {LR_BIND_LIST_LINE_VALUES, compute->cache.values}, {LR_BIND_LIST_OTHERS, compute->cache.others});
    compute->cache.are_taken[r] = true;
    return lr_listmode_run_program(compute, lr_listmode_for(LR_LISTMODE_CACHED_VALUES, false), &uniforms,
                                   sizeof(uniforms), &pass);
}

/* Runs a pass over the listed lines, whose values are unusually large or small. The pass either adds these lines to the
 * sums, or finds a bound of their terms. */
static lr_status take_listed(struct lr_listmode_projection *p, enum lr_listmode_program which)
{
    const int64_t untimed = p->compute->cache.num_untimed;
    const bool has_side[2] = {untimed > 0, untimed < p->compute->params.events->layout.count};
    struct gl_pass pass = {.groups = {GROUPS_OF_LISTED, 1, 1}, .barriers = usual_barriers};
    bind_lines(p, &pass);
    bind_sums(p, &pass);
    pass.buffers[LR_BIND_LIST_OTHERS].buffer = p->compute->cache.others;
    for (int side = 0; side < 2; side++) {
        const struct cached_pass uniforms = describe(p, side);
        if (!has_side[side]) continue;
        LR_TRY(lr_listmode_run_program(p->compute, lr_listmode_for(which, side), &uniforms, sizeof(uniforms), &pass));
    }
    return LR_OK;
}

lr_status lr_listmode_cached_project(struct lr_listmode_projection *p, const lr_vector *image, const lr_vector *values)
{
    struct lr_listmode_compute *compute = p->compute;
    struct lr_listmode_line_cache *cache = &compute->cache;
    const struct lr_listmode_events *events = compute->params.events;
    const int64_t ranges = events->layout.num_pairs;

    /* The lines are found here and not when the backend is created, so that creating a backend compiles no program. */
    for (int64_t k = 0; !cache->are_found && k < ranges * LR_LISTMODE_GROUPS; k++) {
        const int group = (int)(k % LR_LISTMODE_GROUPS);
        const int64_t *ends = &events->groups[k / LR_LISTMODE_GROUPS][group];
        struct lr_listmode_chunk chunk = {
            .end = ends[0], .axis = lr_listmode_group_axis(group), .has_tof = lr_listmode_group_has_tof(group)};
        while (lr_listmode_next_chunk(compute, ends[1], &chunk))
            LR_TRY(lr_listmode_prepare(compute, &chunk, NULL, true));
    }
    cache->are_found = true;
    if (p->forward) {
        LR_TRY(lr_listmode_reorder(p, image, false, false));
        return lr_listmode_each_range(p, forward_range);
    }

    memset(cache->are_taken, 0, (size_t)ranges * sizeof(*cache->are_taken));
    LR_TRY(lr_listmode_find_usual(p, values));
    LR_TRY(lr_listmode_each_range(p, bring_values));
    LR_TRY(values != NULL ? take_listed(p, LR_LISTMODE_CACHED_BOUND) : LR_OK);

    /* Back-projects lines with usual values. Passes need no barrier between them, because all add to the same sums by
     * atomic operations. */
    const struct lr_listmode_jobs *jobs = &cache->back;
    struct gl_pass pass = {.barriers = 0};
    bind_lines(p, &pass);
    bind_sums(p, &pass);
    pass.buffers[LR_BIND_LIST_JOBS].buffer = jobs->buffer;
    for (int64_t r = 0; r < ranges; r++)
        for (int side = 0; side < 2 && cache->are_taken[r]; side++)
            LR_TRY(run_jobs(p, lr_listmode_for(LR_LISTMODE_CACHED_BACK, side), &jobs->first[2 * r + side], &pass));

    LR_TRY(take_listed(p, LR_LISTMODE_CACHED_OTHERS));
    return lr_listmode_reorder(p, image, true, false);
}
