/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The `compute` backend of events: its functions, limits, memory, creation and destruction. */
#include "listmode/compute/listmode.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/parallel.h"
#include "base/units.h"
#include "base/vec.h"
#include "common/bindings.h"
#include "gl/context.h"
#include "gl/vectors.h"
#include "listmode/hull.h"
#include "listmode/line.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* --- upper bounds for the exact kernel: of an element, and of the number of elements --- */

/* The number of events that a thread takes at a time. */
enum { GRAIN = 1 << 16 };

struct shortest {
    const struct lr_listmode_events *events;
    double *squares; /* squared length of each thread's shortest line */
};

static void find_shortest(void *user, int64_t begin, int64_t end, int worker)
{
    struct shortest *shortest = user;
    const struct lr_listmode_events *events = shortest->events;
    double least = shortest->squares[worker];
    for (int64_t k = begin; k < end; k++) {
        double along[3];
        vec_sub(events->hits[events->crystals[0][k]], events->hits[events->crystals[1][k]], along);
        const double square = vec_dot(along, along);
        least = square < least ? square : least;
    }
    shortest->squares[worker] = least;
}

/* Returns an upper bound of the distance in mm, along axes[1], from a line to the points between its two faces. The
 * line's predominant axis is axes[0]. The bound is a quarter larger than the faces require, because exact_prepare.comp
 * can find a distance that is too large by a quarter. */
static double reach_mm(const lr_scanner *scanner, const int axes[2])
{
    double most = 0;
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        const double u = hypot(module->u[axes[0]], module->u[axes[1]]) * module->face_mm[0];
        const double v = hypot(module->v[axes[0]], module->v[axes[1]]) * module->face_mm[1];
        most = fmax(most, 1.25 * sqrt(0.5) * (u + v));
    }
    return most;
}

/* Fills compute->exact. */
static void exact_init(struct lr_listmode_compute *compute)
{
    const struct lr_listmode_backend_params *params = &compute->params;
    const struct lr_listmode_events *events = params->events;
    const struct lr_listmode_model *model = params->model;
    struct lr_listmode_exact *exact = &compute->exact;
    const int *samples = model->samples;
    exact->is_leaning = lr_listmode_shared_axis(model->scanner) < 0;
    exact->point_bits = (int)log2((double)samples[0] * samples[1] * samples[2]);
    exact->plane_points = 0;
    for (int axis = 0; axis < 3; axis++) {
        int64_t points = 1;
        for (int k = 0; k < 3; k++) {
            const int axes[2] = {axis, k};
            const double spacing = model->grid.voxel_mm[k] / model->samples[k];
            const double all = (double)model->grid.size[k] * model->samples[k];
            const double width = 2.0 * reach_mm(model->scanner, axes) / spacing + 1.01;
            points *= k != axis ? (int64_t)fmin(width, all) : 1;
        }
        exact->plane_points = points > exact->plane_points ? points : exact->plane_points;
    }

    /* Finds the length of the shortest line. If memory runs out, the length is taken as 0; the bounds below are then
     * still valid. */
    struct shortest shortest = {events, lr_alloc(params->threads, sizeof(double), "lengths of lines", params->log)};
    double least = shortest.squares != NULL ? INFINITY : 0;
    for (int k = 0; shortest.squares != NULL && k < params->threads; k++) shortest.squares[k] = INFINITY;
    if (shortest.squares != NULL)
        lr_parallel_workers(params->threads, events->layout.count, GRAIN, find_shortest, &shortest);
    for (int k = 0; shortest.squares != NULL && k < params->threads; k++) least = fmin(least, shortest.squares[k]);
    free(shortest.squares);
    const double shortest_mm = sqrt(least);

    /* Finds the largest face, and the largest number of pieces into which exact_prepare.comp divides a face. The faces
     * of the shortest line have the most pieces. */
    double area = 0, edges = 0;
    exact->pieces = 1;
    for (int m = 0; m < model->scanner->num_modules; m++) {
        const double *face = model->scanner->modules[m].face_mm;
        int64_t pieces = 1;
        for (int k = 0; k < 2; k++) {
            const double part = 0.5 * face[k] / (0.5 * shortest_mm);
            pieces *= (int64_t)fmin(ceil(part / LR_EVENTS_EXACT_HALF + 1e-9), LR_EVENTS_EXACT_PIECES);
        }
        exact->pieces = pieces > exact->pieces ? pieces : exact->pieces;
        area = fmax(area, face[0] * face[1]);
        edges = fmax(edges, face[0] + face[1]);
    }

    /* Every point is at least half of the line's length, minus the width of the faces, away from one of the two faces.
     * The solid angle is at most that of a half-space. */
    const double distance = fmax(0.5 * shortest_mm - edges, 0.0);
    const double angle = fmin(area / (2.0 * LR_PI * fmax(distance * distance, 1e-30)), 1.0);

    /* The largest time-of-flight factor, per mm. Events without time of flight have the factor 1. */
    const double *edge = model->grid.voxel_mm;
    const double narrow = 1.0 / fmin(edge[0], fmin(edge[1], edge[2]));
    const double density = fmin(narrow / LR_LISTMODE_HELD, lr_listmode_largest_density(events));
    bool has_all_times = true;
    for (int k = 0; k < events->num_kinds * events->num_kinds; k++)
        has_all_times = has_all_times && events->sigma_mm[k] > 0;
    frexp(1.01 * angle * (has_all_times ? density : fmax(density, 1.0)), &exact->exponent);
}

/* --- the backend --- */

/* Limits of the number of lines that one pass works on. */
enum {
    LEAST_LINES = 1 << 10,
    MOST_LINES = 1 << 20,
    MOST_NEXT_TO_CACHE = 1 << 16, /* if lines are cached; only rows of the matrix then need uncached lines, and rows
                                     need few */
    MOST_EXACT_LINES = 1 << 19,   /* exact elements; these lines take 120 MiB */
    SMALL_LINES = 1 << 14         /* software renderers */
};

/* The largest number of sample points along an axis. Single precision can still distinguish their numbers. */
enum { MOST_PLANES = 1 << 21 };

/* VOXEL_BYTES: bytes of a voxel in slices, sums and the grid's order together. SCALE_WORDS: number of words of the
 * buffer in shaders/listmode/scale.glsl. */
enum { VOXEL_BYTES = 16, SCALE_WORDS = 261 };

/* --- projections --- */

static lr_status enter(struct lr_listmode_compute *compute)
{
    LR_TRY(gl_context_make_current(compute->ctx));
    gl_stopwatch_reset(compute->watch);
    gl_stopwatch_begin(compute->watch);
    return LR_OK;
}

static lr_status leave(struct lr_listmode_compute *compute, lr_status status)
{
    gl_stopwatch_end(compute->watch);
    return gl_context_leave(compute->ctx, status);
}

static lr_status project(void *self, bool is_forward, const lr_selection *part, const lr_vector *in, lr_vector *out)
{
    struct lr_listmode_compute *compute = self;
    LR_TRY(enter(compute));
    return leave(compute, lr_listmode_project(compute, is_forward, part, in, out));
}

static lr_status rows(void *self, const struct lr_rows *request, const lr_row_sink *sink)
{
    struct lr_listmode_compute *compute = self;
    LR_TRY(enter(compute));
    return leave(compute, lr_listmode_compute_rows(compute, request, sink));
}

static double device_seconds(void *self)
{
    struct lr_listmode_compute *compute = self;
    if (gl_context_make_current(compute->ctx) != LR_OK) return 0.0;
    const double seconds = gl_stopwatch_seconds(compute->watch);
    gl_context_release(compute->ctx);
    return seconds;
}

static double device_clock(void *self)
{
    struct lr_listmode_compute *compute = self;
    if (gl_context_make_current(compute->ctx) != LR_OK) return 0.0;
    const double seconds = gl_stopwatch_total(compute->watch);
    gl_context_release(compute->ctx);
    return seconds;
}

static lr_status check_limits(const struct lr_listmode_compute *compute)
{
    const struct lr_listmode_model *model = compute->params.model;
    const struct gl_limits *limits = gl_context_limits(compute->ctx);
    const int64_t voxels = lr_grid_num_voxels(&model->grid);
    if (voxels > limits->max_storage_bytes / 8 || voxels > INT32_MAX / 2) {
        return lr_error(compute->params.log, LR_FAILED,
                        "sums of %lld voxels do not fit into a buffer of %s, which has at most %lld "
                        "MiB: take larger voxels, or backend native",
                        (long long)voxels, limits->renderer, (long long)(limits->max_storage_bytes >> 20));
    }
    const int longest = lr_listmode_cells(compute);
    for (int axis = 0; axis < 3; axis++) {
        if (model->grid.size[axis] > longest) {
            return lr_error(compute->params.log, LR_FAILED,
                            "backend compute has rows of up to %d voxels, and the grid has %d: take backend native",
                            longest, model->grid.size[axis]);
        }
        if (model->grid.size[axis] > MOST_PLANES / model->samples[axis]) {
            return lr_error(compute->params.log, LR_FAILED,
                            "backend compute has exact elements of at most %d sample points along an "
                            "axis, and %d voxels have %d each: take backend native, or fewer samples",
                            MOST_PLANES, model->grid.size[axis], model->samples[axis]);
        }
        if (lr_listmode_slices_at_once(compute, axis) < 1) {
            return lr_error(compute->params.log, LR_FAILED,
                            lr_listmode_is_exact(compute)
                                ? "a line sees more sample points of a plane than %s can go through: "
                                  "take backend native, or fewer samples"
                                : "a tube of response holds more voxels of a slice than %s can go "
                                  "through: take backend native, or a narrower tube",
                            limits->renderer);
        }
    }
    return LR_OK;
}

/* --- creating --- */

static lr_status init(struct lr_listmode_compute *compute)
{
    const struct lr_listmode_backend_params *params = &compute->params;
    const struct gl_limits *limits = gl_context_limits(compute->ctx);
    const bool is_exact = lr_listmode_is_exact(compute);
    if (is_exact) exact_init(compute);
    for (int g = 0; !is_exact && g < LR_LISTMODE_GROUPS; g++) {
        if (lr_listmode_has_group(params->events, g)) {
            compute->largest_elements[g] = lr_listmode_largest_element(
                params->model, params->events, lr_listmode_group_axis(g), lr_listmode_group_has_tof(g));
        }
    }

    LR_TRY(check_limits(compute));
    const int64_t voxels = lr_grid_num_voxels(&params->model->grid);
    const int64_t budget = lr_place_budget(compute->place, params->max_memory_bytes, 2);
    compute->caches_lines = lr_listmode_may_cache(compute, budget);
    const int64_t frames = compute->caches_lines ? LR_LISTMODE_GROUPS / 2 : 1;

    /* Lines take at most a quarter of the memory, but there is always memory for LEAST_LINES lines. */
    int64_t most = limits->small_batches ? SMALL_LINES : is_exact ? MOST_EXACT_LINES : MOST_LINES;
    most = lr_smaller(most, budget / 4 / lr_listmode_line_bytes(compute));
    most = compute->caches_lines ? lr_smaller(most, MOST_NEXT_TO_CACHE) : most;
    most = most > LEAST_LINES ? most : LEAST_LINES;
    most = lr_smaller(most, limits->max_storage_bytes / lr_listmode_line_bytes(compute));
    compute->most_lines = lr_smaller(most, params->events->layout.count);

    const int64_t line_bytes = compute->most_lines * lr_listmode_line_bytes(compute);
    compute->watch = gl_stopwatch_create(compute->ctx, "list mode");
    compute->lines = gl_data_buffer(compute->ctx, "lines", line_bytes, NULL);
    compute->slices = gl_data_buffer(compute->ctx, "an image in slices", frames * voxels * 4, NULL);
    compute->sums = gl_data_buffer(compute->ctx, "sums of an image", frames * voxels * 8, NULL);
    compute->scale = gl_data_buffer(compute->ctx, "sizes of values", SCALE_WORDS * 4, NULL);
    const bool is_made = compute->watch && compute->lines && compute->slices && compute->sums && compute->scale;
    LR_TRY(is_made ? LR_OK : LR_FAILED);

    const lr_listmode_tube *tube = &params->model->tube;
    if (tube->table != NULL) {
        float *table = lr_listmode_tube_table(tube, params->log);
        if (table != NULL)
            compute->table = gl_data_buffer(compute->ctx, "the tube's table",
                                            (tube->table_count + INT64_C(1)) * (int64_t)sizeof(*table), table);
        free(table);
        LR_TRY(compute->table != NULL ? LR_OK : LR_FAILED);
    }
    LR_TRY(lr_listmode_device_events_init(compute, budget - line_bytes - VOXEL_BYTES * voxels));
    compute->caches_lines = compute->caches_lines && !compute->events.is_streamed;
    LR_TRY(compute->caches_lines ? lr_listmode_cache_init(compute) : LR_OK);
    lr_listmode_pieces_finish(&compute->events.pieces);
    return LR_OK;
}

static void destroy(void *self)
{
    struct lr_listmode_compute *compute = self;
    if (compute->ctx != NULL && gl_context_make_current_to_free(compute->ctx)) {
        struct lr_listmode_line_cache *cache = &compute->cache;
        gl_buffers_destroy(cache->forward.buffer, cache->back.buffer, cache->lines, cache->values, cache->others);
        lr_free_all(cache->forward.first, cache->back.first, cache->are_taken);

        struct lr_listmode_device_events *events = &compute->events;
        for (int k = 0; events->segments != NULL && k < events->num_segments; k++)
            gl_buffers_destroy(events->segments[k].events, events->segments[k].ends, events->segments[k].kinds);
        lr_free_all(events->segments, events->order);
        lr_listmode_pieces_finish(&events->pieces);
        gl_buffers_destroy(events->modules, events->sigmas, events->kinds, events->crystals);

        gl_buffers_destroy(compute->table, compute->scale, compute->sums, compute->slices, compute->lines);
        gl_stopwatch_destroy(compute->watch);
        for (int k = 0; k < 2 * LR_LISTMODE_NUM_PROGRAMS; k++) gl_program_destroy(compute->own_programs[k]);

        gl_context_release(compute->ctx);
    }
    /* Vectors can keep the place open after the backend's log is gone. */
    if (compute->owns_place) lr_place_silence(compute->place);
    lr_place_close(compute->place);
    free(compute);
}

lr_status lr_listmode_compute_create(const struct lr_listmode_backend_params *params, struct lr_backend *backend)
{
    static const struct lr_backend_fns fns = {.name = "compute",
                                              .has_parts = true,
                                              .voxel_bytes = VOXEL_BYTES,
                                              .project = project,
                                              .rows = rows,
                                              .device_seconds = device_seconds,
                                              .device_clock = device_clock,
                                              .destroy = destroy};
    struct lr_listmode_compute *compute = lr_alloc(1, sizeof(*compute), "the compute backend", params->log);
    if (compute == NULL) return LR_FAILED;
    compute->params = *params;
    /* A sensitivity shares the programs of the backend that it stands for, unless that backend has bins of time of
     * flight. The LORs of a sensitivity have no time of flight. */
    const struct lr_listmode_compute *other = params->stands_for != NULL ? params->stands_for->self : NULL;
    compute->programs = other != NULL && lr_listmode_has_bins(other) == lr_listmode_has_bins(compute)
                            ? other->programs
                            : compute->own_programs;
    lr_status status = LR_OK;
    if (params->place != NULL) {
        compute->place = lr_place_keep(params->place);
    } else {
        compute->owns_place = true;
        status = lr_place_open_on(&(lr_place_params){.kind = LR_PLACE_GL, .device = params->device, .log = params->log},
                                  &compute->place);
    }
    if (status == LR_OK) {
        compute->ctx = compute->place->ctx;
        status = gl_context_make_current(compute->ctx);
    }
    if (status == LR_OK) {
        status = init(compute);
        status = gl_context_leave(compute->ctx, status);
    }
    if (status != LR_OK) {
        destroy(compute);
        return status;
    }
    const struct gl_limits *limits = gl_context_limits(compute->ctx);
    backend->fns = &fns;
    backend->self = compute;
    backend->place = compute->place;
    snprintf(backend->device, sizeof(backend->device), "%s", limits->renderer);
    backend->is_gpu = !limits->software;
    backend->is_emulated = limits->software;
    return LR_OK;
}
