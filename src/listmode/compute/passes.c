/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Programs and passes for the events, the slices and slabs of an image, the ranges of values that passes bind, and the
 * scale of the sums of a projection. */
#include "listmode/compute/listmode.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"
#include "common/bindings.h"
#include "gl/context.h"
#include "gl/vectors.h"
#include "listmode/line.h"

#include <math.h>
#include <stdio.h>

/* MOST_SHARED_BYTES: the largest shared memory of a workgroup. OTHER_SHARED_BYTES: the part of this memory that is not
 * for slices. */
enum { MOST_SHARED_BYTES = 48 << 10, OTHER_SHARED_BYTES = 256 };

static const struct {
    const char *shader, *exact, *label; /* exact: name of the shader for exact elements; NULL = `shader` is used */
    bool slabs, to_grid, usual, cached, bound;
} descriptions[LR_LISTMODE_NUM_PROGRAMS] = {
    [LR_LISTMODE_PREPARE] = {"listmode/prepare.comp", "listmode/exact_prepare.comp", "lines of events", .slabs = false},
    [LR_LISTMODE_EXPONENTS] = {"listmode/exponents.comp", NULL, "sizes of values", .slabs = false},
    [LR_LISTMODE_USUAL] = {"listmode/exponents.comp", NULL, "usual size of values", .usual = true},
    [LR_LISTMODE_BOUND] = {"listmode/bound.comp", "listmode/exact_bound.comp", "terms of large values", .slabs = false},
    [LR_LISTMODE_TO_SLICES] = {"listmode/order.comp", NULL, "image to slices", .slabs = false},
    [LR_LISTMODE_TO_GRID] = {"listmode/order.comp", NULL, "sums to the image", .to_grid = true},
    [LR_LISTMODE_FORWARD] = {"listmode/forward.comp", "listmode/exact_forward.comp", "events forward", .slabs = false},
    [LR_LISTMODE_FORWARD_SLABS] = {"listmode/forward.comp", NULL, "events forward by slabs", .slabs = true},
    [LR_LISTMODE_BACK] = {"listmode/back.comp", "listmode/exact_back.comp", "events back", .slabs = false},
    [LR_LISTMODE_ELEMENTS] = {"listmode/elements.comp", "listmode/exact_elements.comp", "elements of events",
                              .slabs = false},
    [LR_LISTMODE_CACHED_VALUES] = {"listmode/values.comp", NULL, "values of lines", .slabs = false},
    [LR_LISTMODE_CACHED_FORWARD] = {"listmode/forward.comp", NULL, "lines forward", .cached = true, .slabs = true},
    [LR_LISTMODE_CACHED_BACK] = {"listmode/back.comp", NULL, "lines back", .cached = true},
    [LR_LISTMODE_CACHED_BOUND] = {"listmode/listed.comp", NULL, "terms of lines with large values", .bound = true},
    [LR_LISTMODE_CACHED_OTHERS] = {"listmode/listed.comp", NULL, "lines with unusual values", .slabs = false},
};

int lr_listmode_cells(const struct lr_listmode_compute *compute)
{
    const int most = gl_context_limits(compute->ctx)->max_compute_shared_bytes;
    return ((most < MOST_SHARED_BYTES ? most : MOST_SHARED_BYTES) - OTHER_SHARED_BYTES) / 4;
}

struct gl_program *lr_listmode_program(struct lr_listmode_compute *compute, int number)
{
    const enum lr_listmode_program which = number / 2;
    const bool has_tof = number % 2 != 0, is_exact = lr_listmode_is_exact(compute) && descriptions[which].exact != NULL;
    const struct lr_listmode_model *model = compute->params.model;
    struct gl_program **program = &compute->programs[number];
    char cells[16], threads[16], label[80];
    struct gl_define defines[14] = {{"CELLS", cells}};
    int next = 1;
    if (*program != NULL) return *program;
    const struct lr_listmode_settings settings = lr_listmode_settings_of(compute);
    const struct {
        const char *name;
        bool is_defined;
    } all[] = {{"LINE", model->kernel == LR_LISTMODE_LINE},
               {"TABLE", model->kernel == LR_LISTMODE_TUBE && model->tube.table != NULL},
               {"AS_PAPER", model->tube.as_paper},
               {"LEANING", compute->exact.is_leaning},
               {"TOF", has_tof},
               {"BINS", lr_listmode_has_bins(compute)},
               {"SLABS", descriptions[which].slabs},
               {"TO_GRID", descriptions[which].to_grid},
               {"USUAL", descriptions[which].usual},
               {"KEPT", descriptions[which].cached},
               {"BOUND", descriptions[which].bound},
               {"ADD_ZEROS", settings.adds_zeros}};
    snprintf(cells, sizeof(cells), "%d", lr_listmode_cells(compute));
    for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++)
        if (all[k].is_defined) defines[next++].name = all[k].name;

    /* Workgroups of passes over jobs have another number of threads. */
    if (which == LR_LISTMODE_CACHED_FORWARD || which == LR_LISTMODE_CACHED_BACK) {
        snprintf(threads, sizeof(threads), "%d",
                 which == LR_LISTMODE_CACHED_FORWARD ? settings.forward_threads : settings.back_threads);
        defines[next] = (struct gl_define){"GROUP", threads};
    }
    snprintf(label, sizeof(label), "%s%s%s", is_exact ? "exact " : "", descriptions[which].label,
             has_tof ? ", with times" : "");
    *program =
        gl_program_start(compute->ctx, &(struct gl_program_params){.compute = is_exact ? descriptions[which].exact
                                                                                       : descriptions[which].shader,
                                                                   .defines = defines,
                                                                   .label = label});
    return *program;
}

/* --- the uniform block --- */

struct lr_listmode_pass lr_listmode_pass_of(const struct lr_listmode_compute *compute, int axis)
{
    const struct lr_listmode_model *model = compute->params.model;
    const int *size = model->grid.size;
    const int axes[3] = {axis, axis == 0 ? 1 : 0, axis == 2 ? 1 : 2};
    const int32_t strides[3] = {1, size[0], size[0] * size[1]};
    struct lr_listmode_pass uniforms = {.window = {0, lr_listmode_all_slices(compute, axis), 0, 0}};
    for (int k = 0; k < 3; k++) {
        uniforms.size[k] = size[axes[k]];
        uniforms.strides[k] = strides[axes[k]];
        uniforms.voxel_mm[k] = (float)model->grid.voxel_mm[axes[k]];
    }
    uniforms.strides[3] = (int32_t)lr_grid_num_voxels(&model->grid);
    if (model->kernel == LR_LISTMODE_TUBE) {
        const lr_listmode_tube *tube = &compute->params.model->tube;
        const double rim = lr_listmode_rim(tube), half = 0.5 * tube->width_mm;
        const double of_gaussian = 4.0 / (tube->fwhm_mm * tube->fwhm_mm); /* the Gaussian at distance d is
                                                                             2^-(of_gaussian d^2) */
        const double last = tube->table_count - 1, of_table = last * last / (half * half);
        const double scale = tube->table != NULL ? of_table : of_gaussian;
        uniforms.tube[0] = (float)sqrt(rim);
        uniforms.tube[1] = (float)((1.0 + LR_LISTMODE_RIM) / (LR_LISTMODE_RIM * rim * scale));
        uniforms.tube[2] = (float)(rim * scale);
        uniforms.tube[3] = (float)scale;
        uniforms.unit[2] = (float)(tube->table != NULL ? last : half * half * scale);
    } else if (model->kernel == LR_LISTMODE_EXACT) {
        const int *samples = model->samples;
        uniforms.tube[0] = (float)(0.5 / (LR_PI * samples[0] * samples[1] * samples[2]));
        for (int k = 0; k < 3; k++) {
            uniforms.slab[k] = samples[axes[k]];
            uniforms.tube[1 + k] = (float)(1.0 / samples[axes[k]]);
        }
    }
    return uniforms;
}

lr_status lr_listmode_run_program(struct lr_listmode_compute *compute, int number, const void *uniforms, int64_t bytes,
                                  struct gl_pass *pass)
{
    pass->program = lr_listmode_program(compute, number);
    if (pass->program == NULL) return LR_FAILED;
    pass->label = gl_program_get_info(pass->program)->label;
    pass->uniforms = uniforms;
    pass->uniform_bytes = bytes;
    return gl_pass_run(compute->ctx, pass);
}

lr_status lr_listmode_run(struct lr_listmode_compute *compute, int number, const struct lr_listmode_pass *uniforms,
                          struct gl_pass *pass)
{
    pass->barriers = GL_SHADER_STORAGE_BARRIER_BIT | GL_BUFFER_UPDATE_BARRIER_BIT;
    return lr_listmode_run_program(compute, number, uniforms, sizeof(*uniforms), pass);
}

/* --- limits of a thread's work --- */

int64_t lr_listmode_most_shares(const struct lr_listmode_compute *compute)
{
    const struct lr_listmode_model *model = compute->params.model;
    if (model->kernel == LR_LISTMODE_EXACT) return compute->exact.plane_points;
    if (model->kernel == LR_LISTMODE_LINE) return 4;
    int64_t most = 0;
    const double reach_mm = sqrt(2.0 * lr_listmode_rim(&model->tube));
    for (int axis = 0; axis < 3; axis++) {
        int64_t shares = 1;
        for (int k = 0; k < 3; k++) {
            const double width = 2.0 * reach_mm / model->grid.voxel_mm[k];
            shares *= k != axis ? (int64_t)width + 2 : 1;
        }
        most = shares > most ? shares : most;
    }
    return most;
}

int lr_listmode_all_slices(const struct lr_listmode_compute *compute, int axis)
{
    const struct lr_listmode_model *model = compute->params.model;
    return model->grid.size[axis] * model->samples[axis];
}

int lr_listmode_slices_at_once(const struct lr_listmode_compute *compute, int axis)
{
    /* The number of loop rounds for a piece of a face. ROUNDS_OF_CUTS: for a polygon that is cut four times, where each
     * cut can add a corner. ROUNDS_OF_STRIP: for a strip. */
    enum { ROUNDS_OF_CUTS = 1 + 4 + 4 + 5 + 6 + 7 + 6, ROUNDS_OF_STRIP = 2 };
    const struct lr_listmode_exact *exact = &compute->exact;
    const int size = lr_listmode_all_slices(compute, axis);
    if (!gl_context_limits(compute->ctx)->small_batches) return size;

    /* The loops of exact elements run over points, over rows of points, and over the pieces of a face. For other
     * elements, loops over slabs have half of the allowed rounds. Loops over shares and over rows of shares run twice,
     * with the other half. */
    const int64_t of_piece = exact->is_leaning ? ROUNDS_OF_CUTS : ROUNDS_OF_STRIP;
    const int64_t slices = lr_listmode_is_exact(compute)
                               ? GL_MOST_ROUNDS_SOFTWARE / (exact->plane_points * (1 + of_piece * exact->pieces) + 2)
                               : GL_MOST_ROUNDS_SOFTWARE / 2 / (4 * lr_listmode_most_shares(compute) + 4);
    return slices < size ? (int)slices : size;
}

void lr_listmode_cut_slabs(const struct lr_listmode_compute *compute, struct lr_listmode_pass *uniforms)
{
    const int cells = lr_listmode_cells(compute), plane = uniforms->size[1] * uniforms->size[2];
    const int rows = plane <= cells ? uniforms->size[2] : cells / uniforms->size[1];
    int lines = LR_LISTMODE_LINES_OF_THREAD, slices = plane <= cells ? cells / plane : 1;
    if (gl_context_limits(compute->ctx)->small_batches) {
        const int64_t rounds = 4 * lr_listmode_most_shares(compute) + 4;
        const int64_t most = GL_MOST_ROUNDS_SOFTWARE / 2 / rounds;
        slices = slices < most ? slices : (int)most;
        lines = most / slices < lines ? (int)(most / slices) : lines;
    }
    uniforms->slab[0] = slices;
    uniforms->slab[1] = rows;
    uniforms->slab[2] = (uniforms->size[2] + rows - 1) / rows;
    uniforms->slab[3] = lines * LR_EVENTS_GROUP;
}

/* A sum has 64 bits: a sign bit, a reserve bit and SUM_BITS. The largest term has TERM_BITS bits, or fewer if there are
 * so many terms that their sum would not fit. */
enum { SUM_BITS = 62, TERM_BITS = 44 };

/* EXPONENT_OF_1: the exponent bits of the float 1. LARGE_SHARE: about one value in LARGE_SHARE may be larger than the
 * usual size. */
enum { EXPONENT_OF_1 = 127, LARGE_SHARE = 32 };

/* --- images and values --- */

struct gl_range lr_listmode_align(const lr_vector *vector, const int64_t floats[2], int64_t *first)
{
    const struct lr_vector_range range = lr_vector_gl_range(vector);
    const int64_t size = (int64_t)sizeof(float);
    const int64_t ends[2] = {range.offset + floats[0] * size, range.offset + floats[1] * size};
    return gl_range_of(range.buffer, ends, size, first);
}

/* The largest number of values that one pass can bind. */
static int64_t most_values(const struct lr_listmode_projection *p)
{
    const struct gl_limits *limits = gl_context_limits(p->compute->ctx);
    const int64_t bytes = limits->max_storage_bytes - limits->storage_alignment;
    const int64_t most = bytes / (int64_t)sizeof(float);
    return most < INT32_MAX / 2 ? most : INT32_MAX / 2;
}

/* --- ranges --- */

lr_status lr_listmode_take_range(struct lr_listmode_projection *p, int64_t r, lr_listmode_range_fn *take)
{
    const struct gl_limits *limits = gl_context_limits(p->compute->ctx);
    const int64_t *offsets = p->compute->params.events->offsets;
    const int64_t bytes = (offsets[r + 1] - offsets[r]) * (int64_t)sizeof(int32_t);
    gl_buffer_destroy(p->map);
    p->map = NULL;
    if (p->places.map != NULL && bytes > limits->max_storage_bytes) {
        return lr_error(p->compute->params.log, LR_FAILED,
                        "range %lld has %lld events, of which %s cannot pick single ones: make "
                        "more ranges, or take backend native",
                        (long long)r, (long long)(offsets[r + 1] - offsets[r]), limits->renderer);
    }
    if (p->places.map != NULL) {
        p->map = gl_data_buffer(p->compute->ctx, "places of a part", bytes, p->places.map);
        if (p->map == NULL) return LR_FAILED;
    }
    for (int64_t begin = 0; begin < p->places.count; begin += most_values(p)) {
        const int64_t most = most_values(p), left = p->places.count - begin;
        const int64_t end = begin + (left < most ? left : most);
        const int64_t floats[2] = {p->places.position + begin, p->places.position + end};
        p->selected = (struct lr_listmode_selected){
            .places = &p->places, .map = p->map, .window = {begin, end}, .only_large = p->only_large};
        if (p->values != NULL) p->selected.values = lr_listmode_align(p->values, floats, &p->selected.values_first);
        LR_TRY(take(p, r));
    }
    return LR_OK;
}

lr_status lr_listmode_each_range(struct lr_listmode_projection *p, lr_listmode_range_fn *take)
{
    const struct lr_listmode_backend_params *params = &p->compute->params;
    lr_status status = LR_OK;
    for (int64_t r = 0; status == LR_OK && r < params->events->layout.num_pairs; r++) {
        status = lr_listmode_places_find(&p->places, params->events, p->part, r, params->log);
        status = status == LR_OK && p->places.count > 0 ? lr_listmode_take_range(p, r, take) : status;
    }
    return status;
}

/* --- scale of sums --- */

/* Finds the unit of the sums. A sum must have room for a term of every event. 2^element_exponent exceeds the largest
 * element by at least a quarter. */
void lr_listmode_find_unit(const struct lr_listmode_projection *p, struct lr_listmode_pass *uniforms)
{
    int events_exponent, element_exponent = p->compute->exact.exponent;
    frexp(p->total, &events_exponent);
    if (!lr_listmode_is_exact(p->compute)) {
        double largest = 0;
        for (int g = 0; g < LR_LISTMODE_GROUPS; g++) largest = fmax(largest, p->compute->largest_elements[g]);
        frexp(1.25 * largest, &element_exponent);
    }
    const int most = SUM_BITS - events_exponent;
    const int near_bits = lr_listmode_is_exact(p->compute) ? LR_EVENTS_EXACT_NEAR : 0;
    const int usual = TERM_BITS + p->compute->exact.point_bits + near_bits;
    uniforms->unit[0] = (float)(most < usual ? most : usual);
    uniforms->unit[1] = (float)element_exponent;
}

lr_status lr_listmode_find_usual(struct lr_listmode_projection *p, const lr_vector *values)
{
    const uint32_t ones[3] = {0, EXPONENT_OF_1, EXPONENT_OF_1};
    gl_buffer_clear(p->compute->scale, 0);
    if (values == NULL) return gl_buffer_upload(p->compute->scale, 0, sizeof(ones), ones);

    /* Counts the values by exponent. */
    const int64_t most = most_values(p), count = values->count;
    for (int64_t at = 0; at < count; at += most) {
        const int64_t floats[2] = {at, at + most < count ? at + most : count};
        const int groups = gl_divide_up(floats[1] - floats[0], LR_EVENTS_GROUP);
        struct lr_listmode_pass sizes = {.size = {0, 0, 0, (int32_t)(floats[1] - floats[0])}};
        struct gl_pass counting = {
            .groups = {groups < LR_LISTMODE_MOST_GROUPS ? groups : LR_LISTMODE_MOST_GROUPS, 1, 1}};
        int64_t first;
        counting.buffers[LR_BIND_LIST_VALUES] = lr_listmode_align(values, floats, &first);
        counting.buffers[LR_BIND_LIST_SCALE].buffer = p->compute->scale;
        sizes.window[3] = (int32_t)first;
        LR_TRY(lr_listmode_run(p->compute, lr_listmode_for(LR_LISTMODE_EXPONENTS, false), &sizes, &counting));
    }

    const struct lr_listmode_pass uniforms = {.size = {0, 0, 0, (int32_t)(1 + values->count / LARGE_SHARE)},
                                              .window = {lr_listmode_is_exact(p->compute) ? LR_EVENTS_EXACT_NEAR : 0}};
    struct gl_pass pass = {.groups = {1, 1, 1}};
    pass.buffers[LR_BIND_LIST_SCALE].buffer = p->compute->scale;
    return lr_listmode_run(p->compute, lr_listmode_for(LR_LISTMODE_USUAL, false), &uniforms, &pass);
}
