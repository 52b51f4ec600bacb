/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Events on the device, and the lines that are computed from them. */
#include "listmode/events.h"
#include "base/log.h"
#include "base/mem.h"
#include "common/bindings.h"
#include "gl/vectors.h"
#include "listmode/compute/listmode.h"
#include "listmode/hull.h"
#include "listmode/line.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The number of events that one upload copies. */
enum { PIECE = 1 << 16 };

/* An event in the layout of shaders/listmode/prepare.comp. */
struct device_event {
    int32_t a, b;
    float tof_mm;
    int32_t number;
};
_Static_assert(sizeof(struct device_event) == LR_LISTMODE_EVENT_BYTES, "the shader's layout");

struct prepare_pass {
    double origin_mm[4], edge_mm[4];
    int32_t size[4], axes[4], first[4], part[4], window[4], samples[4], kept[4];
};
_Static_assert(sizeof(struct prepare_pass) == 176, "the shader's layout");

/* --- events --- */

/* Copies events begin to end - 1 to the beginning of a segment. If lines are given by their ends, the ends are
 * copied too. */
static lr_status upload(const struct lr_listmode_compute *compute, const struct lr_listmode_segment *segment,
                        int64_t begin, int64_t end)
{
    const struct lr_listmode_events *events = compute->params.events;
    const uint32_t *order = compute->events.order;
    const int64_t room = end - begin < PIECE ? end - begin : PIECE;
    const bool has_ends = segment->ends != NULL, has_kinds = segment->kinds != NULL;
    struct device_event *piece = lr_alloc(room, sizeof(*piece), "events on their way", compute->params.log);
    double(*ends)[4] = lr_alloc(has_ends ? 2 * room : 1, sizeof(*ends), "ends of lines", compute->params.log);
    int32_t(*kinds)[2] = lr_alloc(has_kinds ? room : 1, sizeof(*kinds), "kinds of lines", compute->params.log);
    lr_status status = piece != NULL && ends != NULL && kinds != NULL ? LR_OK : LR_FAILED;
    for (int64_t first = begin; status == LR_OK && first < end; first += PIECE) {
        const int64_t count = end - first < PIECE ? end - first : PIECE;
        for (int64_t k = 0; k < count; k++) {
            const int64_t at = order != NULL ? (int64_t)order[first + k] : first + k;
            const int32_t crystals[2] = {events->crystals[0][at], events->crystals[1][at]};
            piece[k] = (struct device_event){crystals[0], crystals[1], events->tof_mm[at], events->number[at]};
            if (has_ends) {
                piece[k].a = (int32_t)(2 * (first - begin + k));
                piece[k].b = piece[k].a + 1;
                for (int n = 0; n < 2; n++) memcpy(ends[2 * k + n], events->hits[crystals[n]], sizeof(events->hits[0]));
            }
            for (int n = 0; has_kinds && n < 2; n++) kinds[k][n] = events->kind_of[crystals[n]];
        }
        status = gl_buffer_upload(segment->events, (first - begin) * LR_LISTMODE_EVENT_BYTES,
                                  count * LR_LISTMODE_EVENT_BYTES, piece);
        if (status == LR_OK && has_ends) {
            status = gl_buffer_upload(segment->ends, (first - begin) * LR_LISTMODE_ENDS_BYTES,
                                      count * LR_LISTMODE_ENDS_BYTES, ends);
        }
        if (status == LR_OK && has_kinds) {
            const int64_t bytes = (int64_t)sizeof(*kinds);
            status = gl_buffer_upload(segment->kinds, (first - begin) * bytes, count * bytes, kinds);
        }
    }
    lr_free_all(piece, ends, kinds);
    return status;
}

int64_t lr_listmode_event_bytes(const struct lr_listmode_events *events)
{
    const int64_t kinds = events->kind_of != NULL ? 2 * (int64_t)sizeof(int32_t) : 0;
    return LR_LISTMODE_EVENT_BYTES + (events->are_lines ? LR_LISTMODE_ENDS_BYTES + kinds : 0);
}

lr_status lr_listmode_device_events_init(struct lr_listmode_compute *compute, int64_t bytes)
{
    struct lr_listmode_device_events *device = &compute->events;
    const struct lr_listmode_events *events = compute->params.events;
    const lr_scanner *scanner = compute->params.model->scanner;
    const lr_log *log = compute->params.log;
    const bool is_exact = lr_listmode_is_exact(compute);

    /* Data of the crystals: positions (the ends of lines), modules and kinds. If lines are given by their ends, each
     * segment has such data for its own events instead. */
    const int64_t num_crystals = events->are_lines ? 1 : events->num_crystals;
    double(*ends)[4] = lr_alloc(num_crystals, sizeof(*ends), "ends of lines", log);
    for (int64_t k = 0; ends != NULL && k < num_crystals; k++) {
        memcpy(ends[k], events->hits[k], sizeof(events->hits[k]));
        ends[k][3] = is_exact ? lr_scanner_module_of(scanner, (int)k) : 0;
    }
    if (ends != NULL)
        device->crystals = gl_data_buffer(compute->ctx, "ends of lines", num_crystals * (int64_t)sizeof(*ends), ends);
    free(ends);

    const int64_t num_kinds = events->kind_of != NULL && !events->are_lines ? num_crystals : 0;
    int32_t *kinds = lr_alloc(num_kinds > 0 ? num_kinds : 1, sizeof(*kinds), "kinds of crystals", log);
    for (int64_t k = 0; kinds != NULL && k < num_kinds; k++) kinds[k] = events->kind_of[k];
    if (kinds != NULL)
        device->kinds = gl_data_buffer(compute->ctx, "kinds of crystals", num_kinds * (int64_t)sizeof(*kinds), kinds);
    free(kinds);

    /* The table has first the resolutions of all pairs of kinds, and then the widths of their bins. */
    const int64_t num_pairs = (int64_t)events->num_kinds * events->num_kinds;
    double *both = lr_alloc(2 * num_pairs, sizeof(*both), "resolutions", log);
    for (int64_t k = 0; both != NULL && k < num_pairs; k++) {
        both[k] = events->sigma_mm[k];
        both[num_pairs + k] = events->bin_mm != NULL ? events->bin_mm[k] : 0.0;
    }
    if (both != NULL)
        device->sigmas = gl_data_buffer(compute->ctx, "resolutions", 2 * num_pairs * (int64_t)sizeof(*both), both);
    free(both);

    LR_TRY(device->crystals && device->kinds && device->sigmas ? LR_OK : LR_FAILED);
    if (is_exact) {
        struct lr_listmode_module *modules = lr_listmode_modules(scanner, log);
        if (modules != NULL)
            device->modules =
                gl_data_buffer(compute->ctx, "modules", scanner->num_modules * (int64_t)sizeof(*modules), modules);
        free(modules);
        LR_TRY(device->modules != NULL ? LR_OK : LR_FAILED);
    }

    /* Divides the events into segments that fit into a buffer. If memory is short, there is one segment, for the
     * current events. */
    const int64_t total = events->layout.count;
    const bool are_lines = events->are_lines;
    const int64_t largest = are_lines ? LR_LISTMODE_ENDS_BYTES : LR_LISTMODE_EVENT_BYTES;
    const int64_t most = gl_context_limits(compute->ctx)->max_storage_bytes / largest;
    device->is_streamed = total > bytes / lr_listmode_event_bytes(events);
    device->segment_events = device->is_streamed ? compute->most_lines : most;
    device->num_segments = device->is_streamed ? 1 : (int)((total + most - 1) / most);
    /* The events of a sensitivity are used only once. They are not ordered, because ordering would take longer than it
     * saves. */
    if (!device->is_streamed && compute->params.stands_for == NULL && total <= UINT32_MAX) {
        device->pieces.each = LR_LISTMODE_PIECE;
        device->order = lr_alloc(total, sizeof(*device->order), "ordering events", log);
        LR_TRY(device->order != NULL ? lr_listmode_order(&compute->params, device->order, &device->pieces) : LR_FAILED);
    }
    device->segments = lr_alloc(device->num_segments, sizeof(*device->segments), "events", compute->params.log);
    if (device->segments == NULL) return LR_FAILED;
    for (int k = 0; k < device->num_segments; k++) {
        const int64_t begin = k * device->segment_events, left = total - begin;
        const int64_t count = left < device->segment_events ? left : device->segment_events;
        struct lr_listmode_segment *segment = &device->segments[k];
        segment->events = gl_data_buffer(compute->ctx, "events", count * LR_LISTMODE_EVENT_BYTES, NULL);
        if (are_lines)
            segment->ends = gl_data_buffer(compute->ctx, "ends of lines", count * LR_LISTMODE_ENDS_BYTES, NULL);
        if (segment->events == NULL || (segment->ends == NULL && are_lines)) return LR_FAILED;
        if (are_lines && events->kind_of != NULL) {
            segment->kinds = gl_data_buffer(compute->ctx, "kinds of lines", 2 * count * (int64_t)sizeof(int32_t), NULL);
            if (segment->kinds == NULL) return LR_FAILED;
        }
        if (!device->is_streamed) LR_TRY(upload(compute, segment, begin, begin + count));
    }
    return LR_OK;
}

bool lr_listmode_next_chunk(const struct lr_listmode_compute *compute, int64_t end, struct lr_listmode_chunk *chunk)
{
    const struct lr_listmode_device_events *events = &compute->events;
    if (chunk->end >= end) return false;
    chunk->begin = chunk->end;
    const int64_t in_segment =
        events->is_streamed ? compute->most_lines : events->segment_events - chunk->begin % events->segment_events;
    const int64_t room = in_segment < compute->most_lines ? in_segment : compute->most_lines;
    const int64_t left = end - chunk->begin;
    chunk->end = chunk->begin + (left < room ? left : room);
    return true;
}

/* --- lines --- */

lr_status lr_listmode_prepare(struct lr_listmode_compute *compute, const struct lr_listmode_chunk *chunk,
                              const struct lr_listmode_selected *selected, bool are_cached)
{
    const struct lr_listmode_places all = {.count = INT32_MAX};
    const struct lr_listmode_selected every = {.places = &all, .window = {0, INT32_MAX}};
    struct lr_listmode_device_events *events = &compute->events;
    if (selected == NULL) selected = &every;

    const struct lr_listmode_events *arrays = compute->params.events;
    const struct lr_listmode_places *places = selected->places;
    struct prepare_pass uniforms = {.first = {0, arrays->kind_of != NULL ? arrays->num_kinds : 0, chunk->has_tof,
                                              compute->params.model->tube.as_paper},
                                    .part = {(int32_t)places->first, (int32_t)places->count, selected->map != NULL,
                                             selected->values.buffer != NULL},
                                    .window = {(int32_t)selected->window[0],
                                               (int32_t)(selected->window[1] - selected->window[0]),
                                               (int32_t)selected->values_first, selected->only_large}};
    const int axis = chunk->axis;
    const struct lr_listmode_model *model = compute->params.model;
    const int axes[3] = {axis, axis == 0 ? 1 : 0, axis == 2 ? 1 : 2};
    for (int k = 0; k < 3; k++) {
        const double edge = model->grid.voxel_mm[axes[k]];
        const int samples = model->samples[axes[k]];
        uniforms.axes[k] = axes[k];
        uniforms.samples[k] = samples;
        uniforms.size[k] = model->grid.size[axes[k]] * samples;
        uniforms.origin_mm[k] = model->grid.origin_mm[axes[k]] - 0.5 * (edge - edge / samples);
        uniforms.edge_mm[k] = edge / samples;
    }
    uniforms.axes[3] = model->kernel == LR_LISTMODE_LINE;
    uniforms.origin_mm[3] = model->kernel == LR_LISTMODE_EXACT  ? model->reach_mm
                            : model->kernel == LR_LISTMODE_LINE ? 1.0
                                                                : sqrt(lr_listmode_rim(&model->tube));
    uniforms.size[3] = (int32_t)(chunk->end - chunk->begin);
    uniforms.kept[1] = uniforms.size[3];
    if (are_cached) {
        uniforms.kept[0] = (int32_t)chunk->begin;
        uniforms.kept[1] = (int32_t)compute->params.events->layout.count;
        uniforms.kept[2] = 1;
    }

    /* If events are streamed, the events of this chunk replace those of the previous chunk on the device. */
    const struct lr_listmode_segment *segment = &events->segments[0];
    if (!events->is_streamed) {
        segment = &events->segments[chunk->begin / events->segment_events];
        uniforms.first[0] = (int32_t)(chunk->begin % events->segment_events);
    } else if (events->streamed_begin != chunk->begin || events->streamed_end < chunk->end) {
        events->streamed_begin = events->streamed_end = 0;
        LR_TRY(upload(compute, segment, chunk->begin, chunk->end));
        events->streamed_begin = chunk->begin;
        events->streamed_end = chunk->end;
    }

    struct gl_program *program = lr_listmode_program(compute, lr_listmode_for(LR_LISTMODE_PREPARE, false));
    if (program == NULL) return LR_FAILED;
    struct gl_pass pass = gl_pass_compute(program, &uniforms, sizeof(uniforms),
                                          (const int[3]){gl_divide_up(uniforms.size[3], LR_EVENTS_GROUP), 1, 1});
    gl_pass_bind(&pass, {LR_BIND_LIST_EVENTS, segment->events},
                 {LR_BIND_LIST_CRYSTALS, segment->ends != NULL ? segment->ends : events->crystals},
                 {LR_BIND_LIST_SIGMAS, events->sigmas},
                 {LR_BIND_LIST_KINDS, segment->kinds != NULL ? segment->kinds : events->kinds},
                 {LR_BIND_LIST_MODULES, events->modules},
                 {LR_BIND_LIST_PLACES, selected->map != NULL ? selected->map : events->kinds},
                 {LR_BIND_LIST_LINES, are_cached ? compute->cache.lines : compute->lines});
    pass.buffers[LR_BIND_LIST_VALUES] =
        selected->values.buffer != NULL ? selected->values : (struct gl_range){.buffer = compute->scale};
    pass.buffers[LR_BIND_LIST_SCALE].buffer = compute->scale;
    return gl_pass_run(compute->ctx, &pass);
}
