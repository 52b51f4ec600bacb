/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "render/listmode/listmode.h"

#include "base/log.h"
#include "base/mem.h"
#include "common/bindings.h"
#include "listmode/tube.h"
#include "render/method.h"

#include <stdio.h>
#include <stdlib.h>

#define PI 3.14159265358979323846

/* Memory that a group shares, at most, and how much of it is not slices. */
enum { MOST_SHARED_BYTES = 48 << 10, OTHER_SHARED_BYTES = 256 };

static const struct {
    const char *shader, *label;
    bool slabs, tof, to_grid, usual, kept, bound;
} descriptions[LR_LISTMODE_NUM_PROGRAMS] = {
    [LR_LISTMODE_PREPARE] = {"listmode/prepare.comp", "lines of events", .slabs = false},
    [LR_LISTMODE_EXPONENTS] = {"listmode/exponents.comp", "sizes of values", .slabs = false},
    [LR_LISTMODE_USUAL] = {"listmode/exponents.comp", "usual size of values", .usual = true},
    [LR_LISTMODE_BOUND] = {"listmode/bound.comp", "terms of large values", .slabs = false},
    [LR_LISTMODE_BOUND_TOF] = {"listmode/bound.comp", "terms of large values with times", .tof = true},
    [LR_LISTMODE_TO_SLICES] = {"listmode/order.comp", "image to slices", .slabs = false},
    [LR_LISTMODE_TO_GRID] = {"listmode/order.comp", "sums to the image", .to_grid = true},
    [LR_LISTMODE_FORWARD] = {"listmode/forward.comp", "events forward", .slabs = false},
    [LR_LISTMODE_FORWARD_TOF] = {"listmode/forward.comp", "events with times forward", .tof = true},
    [LR_LISTMODE_FORWARD_SLABS] = {"listmode/forward.comp", "events forward by slabs", .slabs = true},
    [LR_LISTMODE_FORWARD_SLABS_TOF] = {"listmode/forward.comp", "events with times forward by slabs", .slabs = true,
                                       .tof = true},
    [LR_LISTMODE_BACK] = {"listmode/back.comp", "events back", .slabs = false},
    [LR_LISTMODE_BACK_TOF] = {"listmode/back.comp", "events with times back", .tof = true},
    [LR_LISTMODE_ELEMENTS] = {"listmode/elements.comp", "elements of events", .slabs = false},
    [LR_LISTMODE_ELEMENTS_TOF] = {"listmode/elements.comp", "elements of events with times", .tof = true},
    [LR_LISTMODE_EXACT_PREPARE] = {"listmode/exact_prepare.comp", "faces of events", .slabs = false},
    [LR_LISTMODE_EXACT_FORWARD] = {"listmode/exact_forward.comp", "exact events forward", .slabs = false},
    [LR_LISTMODE_EXACT_FORWARD_TOF] = {"listmode/exact_forward.comp", "exact events with times forward", .tof = true},
    [LR_LISTMODE_EXACT_BACK] = {"listmode/exact_back.comp", "exact events back", .slabs = false},
    [LR_LISTMODE_EXACT_BACK_TOF] = {"listmode/exact_back.comp", "exact events with times back", .tof = true},
    [LR_LISTMODE_EXACT_BOUND] = {"listmode/exact_bound.comp", "exact terms of large values", .slabs = false},
    [LR_LISTMODE_EXACT_BOUND_TOF] = {"listmode/exact_bound.comp", "exact terms of large values with times",
                                     .tof = true},
    [LR_LISTMODE_EXACT_ELEMENTS] = {"listmode/exact_elements.comp", "exact elements of events", .slabs = false},
    [LR_LISTMODE_EXACT_ELEMENTS_TOF] = {"listmode/exact_elements.comp", "exact elements of events with times",
                                        .tof = true},
    [LR_LISTMODE_KEPT_TO_SLICES] = {"listmode/order.comp", "image to all slices", .kept = true},
    [LR_LISTMODE_KEPT_TO_GRID] = {"listmode/order.comp", "all sums to the image", .kept = true, .to_grid = true},
    [LR_LISTMODE_KEPT_VALUES] = {"listmode/values.comp", "values of lines", .slabs = false},
    [LR_LISTMODE_KEPT_FORWARD] = {"listmode/forward.comp", "lines forward", .kept = true, .slabs = true},
    [LR_LISTMODE_KEPT_FORWARD_TOF] = {"listmode/forward.comp", "lines with times forward", .kept = true, .slabs = true,
                                      .tof = true},
    [LR_LISTMODE_KEPT_BACK] = {"listmode/back.comp", "lines back", .kept = true},
    [LR_LISTMODE_KEPT_BACK_TOF] = {"listmode/back.comp", "lines with times back", .kept = true, .tof = true},
    [LR_LISTMODE_KEPT_BOUND] = {"listmode/listed.comp", "terms of lines with large values", .bound = true},
    [LR_LISTMODE_KEPT_BOUND_TOF] = {"listmode/listed.comp", "terms of lines with times and large values", .tof = true,
                                    .bound = true},
    [LR_LISTMODE_KEPT_OTHERS] = {"listmode/listed.comp", "lines with unusual values", .tof = false},
    [LR_LISTMODE_KEPT_OTHERS_TOF] = {"listmode/listed.comp", "lines with times and unusual values", .tof = true},
};

int lr_listmode_cells(const struct lr_listmode_compute *compute)
{
    const int most = gl_context_limits(compute->ctx)->max_compute_shared_bytes;
    return ((most < MOST_SHARED_BYTES ? most : MOST_SHARED_BYTES) - OTHER_SHARED_BYTES) / 4;
}

/* The defines of a program; the number's text lives beside them. */
struct defines {
    char cells[16], threads[16];
    struct gl_define list[14];
};

/* Threads of groups that take jobs. */
static int threads_of(enum lr_listmode_program which)
{
    switch (which) {
    case LR_LISTMODE_KEPT_FORWARD:
    case LR_LISTMODE_KEPT_FORWARD_TOF: return lr_listmode_kept_threads(true);
    case LR_LISTMODE_KEPT_BACK:
    case LR_LISTMODE_KEPT_BACK_TOF: return lr_listmode_kept_threads(false);
    default: return 0;
    }
}

static void fill_defines(const struct lr_listmode_compute *compute, enum lr_listmode_program which,
                         struct defines *defines)
{
    const struct lr_listmode_model *model = compute->params.model;
    int next = 1;
    const struct {
        const char *name;
        bool is_wanted;
    } all[] = {{"LINE", model->kernel == LR_LISTMODE_LINE},
               {"TABLE", model->kernel == LR_LISTMODE_TUBE && model->tube.table != NULL},
               {"AS_PAPER", model->tube.as_paper},
               {"LEANING", compute->exact.is_leaning},
               {"TOF", descriptions[which].tof},
               {"BINS", lr_listmode_has_bins(compute)},
               {"SLABS", descriptions[which].slabs},
               {"TO_GRID", descriptions[which].to_grid},
               {"USUAL", descriptions[which].usual},
               {"KEPT", descriptions[which].kept},
               {"BOUND", descriptions[which].bound},
               {"ADD_ZEROS", lr_listmode_adds_zeros(compute)}};
    *defines = (struct defines){.list = {{"CELLS", defines->cells}}};
    snprintf(defines->cells, sizeof(defines->cells), "%d", lr_listmode_cells(compute));
    for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++)
        if (all[k].is_wanted) defines->list[next++].name = all[k].name;
    if (threads_of(which) > 0) {
        snprintf(defines->threads, sizeof(defines->threads), "%d", threads_of(which));
        defines->list[next] = (struct gl_define){"GROUP", defines->threads};
    }
}

struct gl_program *lr_listmode_program(struct lr_listmode_compute *compute, enum lr_listmode_program which)
{
    struct gl_program **program = &compute->programs[which];
    if (*program == NULL) {
        struct defines defines;
        fill_defines(compute, which, &defines);
        *program = gl_program_start(compute->ctx, &(struct gl_program_params){.compute = descriptions[which].shader,
                                                                              .defines = defines.list,
                                                                              .label = descriptions[which].label});
    }
    return *program;
}

/* --- the block --- */

static void describe_samples(const struct lr_listmode_compute *compute, const int axes[3],
                             struct lr_listmode_pass *uniforms)
{
    const int *samples = compute->params.model->samples;
    uniforms->tube[0] = (float)(0.5 / (PI * samples[0] * samples[1] * samples[2]));
    for (int k = 0; k < 3; k++) {
        uniforms->slab[k] = samples[axes[k]];
        uniforms->tube[1 + k] = (float)(1.0 / samples[axes[k]]);
    }
}

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
        const double of_gaussian = 4.0 / (tube->fwhm_mm * tube->fwhm_mm); /* 2 to its power */
        const double last = tube->table_count - 1, of_table = last * last / (half * half);
        const double scale = tube->table != NULL ? of_table : of_gaussian;
        uniforms.tube[0] = (float)sqrt(rim);
        uniforms.tube[1] = (float)((1.0 + LR_LISTMODE_RIM) / (LR_LISTMODE_RIM * rim * scale));
        uniforms.tube[2] = (float)(rim * scale);
        uniforms.tube[3] = (float)scale;
        uniforms.unit[2] = (float)(tube->table != NULL ? last : half * half * scale);
    }

    else if (model->kernel == LR_LISTMODE_EXACT)
        describe_samples(compute, axes, &uniforms);
    return uniforms;
}

lr_status lr_listmode_run_program(struct lr_listmode_compute *compute, enum lr_listmode_program which,
                                  struct gl_pass *pass)
{
    pass->program = lr_listmode_program(compute, which);
    if (pass->program == NULL) return LR_FAILED;
    pass->label = gl_program_label(pass->program);
    return gl_pass_run(compute->ctx, pass);
}

lr_status lr_listmode_run(struct lr_listmode_compute *compute, enum lr_listmode_program which,
                          const struct lr_listmode_pass *uniforms, struct gl_pass *pass)
{
    pass->uniforms = uniforms;
    pass->uniform_bytes = sizeof(*uniforms);
    pass->barriers = GL_SHADER_STORAGE_BARRIER_BIT | GL_BUFFER_UPDATE_BARRIER_BIT;
    return lr_listmode_run_program(compute, which, pass);
}

/* --- how much a thread may do --- */

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
    const int size = lr_listmode_all_slices(compute, axis);
    if (lr_listmode_is_exact(compute)) return lr_listmode_planes_at_once(compute, axis);
    if (!gl_context_limits(compute->ctx)->small_batches) return size;
    /* Shares are gone through twice, and rows of them, too; the rest is for slabs. */
    const int64_t rounds = 4 * lr_listmode_most_shares(compute) + 4;
    const int64_t slices = LR_MOST_ROUNDS_SOFTWARE / 2 / rounds;
    return slices < size ? (int)slices : size;
}

/* Lines that a thread adds one after the other. */
enum { LINES_OF_THREAD = 32 };

void lr_listmode_cut_slabs(const struct lr_listmode_compute *compute, struct lr_listmode_pass *uniforms)
{
    const int cells = lr_listmode_cells(compute), plane = uniforms->size[1] * uniforms->size[2];
    const int rows = plane <= cells ? uniforms->size[2] : cells / uniforms->size[1];
    int lines = LINES_OF_THREAD, slices = plane <= cells ? cells / plane : 1;
    if (gl_context_limits(compute->ctx)->small_batches) {
        const int64_t rounds = 4 * lr_listmode_most_shares(compute) + 4;
        const int64_t most = LR_MOST_ROUNDS_SOFTWARE / 2 / rounds;
        slices = slices < most ? slices : (int)most;
        lines = most / slices < lines ? (int)(most / slices) : lines;
    }
    uniforms->slab[0] = slices;
    uniforms->slab[1] = rows;
    uniforms->slab[2] = (uniforms->size[2] + rows - 1) / rows;
    uniforms->slab[3] = lines * LR_EVENTS_GROUP;
}

void lr_listmode_most_of_group(const struct lr_listmode_compute *compute, int axis, int most[2])
{
    struct lr_listmode_pass uniforms = lr_listmode_pass_of(compute, axis);
    lr_listmode_cut_slabs(compute, &uniforms);
    most[0] = uniforms.slab[0];
    most[1] = uniforms.slab[3] / LR_EVENTS_GROUP * lr_listmode_kept_threads(false);
    most[1] = most[1] < LR_EVENTS_GROUP * LINES_OF_THREAD ? most[1] : LR_EVENTS_GROUP * LINES_OF_THREAD;
}

/* --- the backend --- */

/* Lines that are worked on at once, at least and at most; the latter also where work is to come in small
 * pieces. */
enum {
    LEAST_LINES = 1 << 10,
    MOST_LINES = 1 << 20,
    MOST_BESIDE_KEPT = 1 << 16, /* rows take few at a time */
    MOST_EXACT_LINES = 1 << 19, /* 120 MiB */
    SMALL_LINES = 1 << 14
};

/* Points along an axis, of which voxels are found in single precision. */
enum { MOST_PLANES = 1 << 21 };

/* Bytes of a voxel in slices, sums and the grid's order; words of shaders/listmode/scale.glsl. */
enum { VOXEL_BYTES = 16, SCALE_WORDS = 261 };

/* --- projections --- */

/* An image or values that are on the host pass between it and the device. */
static void count_traffic(struct lr_listmode_compute *compute, const lr_vector *in, const lr_vector *out)
{
    lr_traffic *traffic = &compute->place->traffic;
    const int64_t size = (int64_t)sizeof(float);
    traffic->to_device += in != NULL && in->values != NULL ? in->count * size : 0;
    traffic->to_host += out->values != NULL ? out->count * size : 0;
}

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
    gl_context_release(compute->ctx);
    return gl_context_status(compute->ctx, status);
}

static lr_status forward(void *self, const lr_selection *part, const lr_vector *image, lr_vector *values)
{
    struct lr_listmode_compute *compute = self;
    LR_TRY(enter(compute));
    count_traffic(compute, image, values);
    return leave(compute, lr_listmode_compute_forward(compute, part, image, values));
}

static lr_status back(void *self, const lr_selection *part, const lr_vector *values, lr_vector *image)
{
    struct lr_listmode_compute *compute = self;
    LR_TRY(enter(compute));
    count_traffic(compute, values, image);
    return leave(compute, lr_listmode_compute_back(compute, part, values, image));
}

static lr_status rows(void *self, const struct lr_rows *wanted, const lr_row_sink *sink)
{
    struct lr_listmode_compute *compute = self;
    LR_TRY(enter(compute));
    return leave(compute, lr_listmode_compute_rows(compute, wanted, sink));
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

/* --- memory --- */

static int64_t budget_of(const struct lr_listmode_compute *compute)
{
    const int64_t device = gl_context_limits(compute->ctx)->memory_bytes;
    return compute->params.max_memory_bytes > 0 ? compute->params.max_memory_bytes
                                                : (device > 0 ? device : lr_physical_memory()) / 2;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
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
                            "backend compute has rows of up to %d voxels, and the grid has %d: "
                            "take backend native",
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

static struct gl_buffer *make_buffer(const struct lr_listmode_compute *compute, const char *label, int64_t bytes,
                                     const void *data)
{
    return gl_buffer_create(compute->ctx,
                            &(struct gl_buffer_params){.label = label, .size_bytes = bytes, .data = data});
}

/* One entry more than there are, which linear interpolation at the last one asks for. */
static lr_status make_table(struct lr_listmode_compute *compute)
{
    const lr_listmode_tube *tube = &compute->params.model->tube;
    if (tube->table == NULL) return LR_OK;
    const int64_t count = (int64_t)tube->table_count + 1;
    float *table = lr_alloc(count, sizeof(*table), "the tube's table", compute->params.log);
    for (int64_t k = 0; table != NULL && k < count; k++)
        table[k] = (float)tube->table[k < tube->table_count ? k : tube->table_count - 1];
    if (table != NULL)
        compute->table = make_buffer(compute, "the tube's table", count * (int64_t)sizeof(*table), table);
    free(table);
    return compute->table != NULL ? LR_OK : LR_FAILED;
}

static lr_status init(struct lr_listmode_compute *compute)
{
    if (lr_listmode_is_exact(compute))
        lr_listmode_exact_init(compute);
    else {
        const struct lr_listmode_backend_params *params = &compute->params;
        for (int g = 0; g < LR_LISTMODE_GROUPS; g++) {
            bool has_events = false;
            for (int64_t r = 0; r < params->events->layout.num_pairs; r++)
                has_events = has_events || params->events->groups[r][g] < params->events->groups[r][g + 1];
            if (has_events) {
                compute->largest_elements[g] = lr_listmode_largest_element(
                    params->model, params->events, lr_listmode_group_axis(g), lr_listmode_group_has_tof(g));
            }
        }
    }

    LR_TRY(check_limits(compute));
    const int64_t voxels = lr_grid_num_voxels(&compute->params.model->grid);
    compute->keeps_lines = lr_listmode_may_keep(compute, budget_of(compute));
    const int64_t frames = compute->keeps_lines ? LR_LISTMODE_GROUPS / 2 : 1;
    /* A quarter of the memory is for lines, unless that is too little to work with. */
    const struct gl_limits *limits = gl_context_limits(compute->ctx);
    int64_t most = limits->small_batches ? SMALL_LINES : lr_listmode_is_exact(compute) ? MOST_EXACT_LINES : MOST_LINES;
    most = smaller(most, budget_of(compute) / 4 / lr_listmode_line_bytes(compute));
    most = compute->keeps_lines ? smaller(most, MOST_BESIDE_KEPT) : most;
    most = most > LEAST_LINES ? most : LEAST_LINES;
    most = smaller(most, limits->max_storage_bytes / lr_listmode_line_bytes(compute));
    compute->most_lines = smaller(most, compute->params.events->layout.count);

    const int64_t line_bytes = compute->most_lines * lr_listmode_line_bytes(compute);
    compute->watch = gl_stopwatch_create(compute->ctx, "list mode");
    compute->lines = make_buffer(compute, "lines", line_bytes, NULL);
    compute->slices = make_buffer(compute, "an image in slices", frames * voxels * 4, NULL);
    compute->sums = make_buffer(compute, "sums of an image", frames * voxels * 8, NULL);
    compute->scale = make_buffer(compute, "sizes of values", SCALE_WORDS * 4, NULL);
    const bool is_made = compute->watch && compute->lines && compute->slices && compute->sums && compute->scale;
    LR_TRY(is_made ? LR_OK : LR_FAILED);
    LR_TRY(make_table(compute));
    LR_TRY(lr_listmode_device_events_init(compute, budget_of(compute) - line_bytes - VOXEL_BYTES * voxels));
    compute->keeps_lines = compute->keeps_lines && !compute->events.is_streamed;
    LR_TRY(compute->keeps_lines ? lr_listmode_keep(compute) : LR_OK);
    free(compute->events.keys);
    compute->events.keys = NULL;
    return LR_OK;
}

/* Vectors may keep the place open, but the backend's log goes. */
static void destroy(void *self)
{
    struct lr_listmode_compute *compute = self;
    if (compute->ctx != NULL && gl_context_make_current_to_free(compute->ctx)) {
        lr_listmode_kept_finish(&compute->kept);
        lr_listmode_device_events_finish(&compute->events);
        gl_buffer_destroy(compute->image);
        gl_buffer_destroy(compute->table);
        gl_buffer_destroy(compute->scale);
        gl_buffer_destroy(compute->sums);
        gl_buffer_destroy(compute->slices);
        gl_buffer_destroy(compute->lines);
        gl_stopwatch_destroy(compute->watch);
        for (int k = 0; k < LR_LISTMODE_NUM_PROGRAMS; k++) gl_program_destroy(compute->own_programs[k]);

        gl_context_release(compute->ctx);
    }
    if (compute->owns_place && compute->place != NULL) lr_place_silence(compute->place);
    lr_place_close(compute->place);
    free(compute);
}

static lr_status open_place(struct lr_listmode_compute *compute)
{
    const struct lr_listmode_backend_params *params = &compute->params;
    if (params->place != NULL) {
        compute->place = lr_place_keep(params->place);
        return LR_OK;
    }
    compute->owns_place = true;
    return lr_place_open_on(&(lr_place_params){.kind = LR_PLACE_GL, .device = params->device, .log = params->log},
                            &compute->place);
}

static lr_status open_compute(struct lr_listmode_compute *compute)
{
    LR_TRY(open_place(compute));
    compute->ctx = compute->place->ctx;
    LR_TRY(gl_context_make_current(compute->ctx));
    const lr_status status = init(compute);
    gl_context_release(compute->ctx);
    return gl_context_status(compute->ctx, status);
}

lr_status lr_listmode_compute_create(const struct lr_listmode_backend_params *params, struct lr_backend *backend)
{
    static const struct lr_backend_fns fns = {.name = "compute",
                                              .has_parts = true,
                                              .voxel_bytes = VOXEL_BYTES,
                                              .forward = forward,
                                              .back = back,
                                              .rows = rows,
                                              .device_seconds = device_seconds,
                                              .device_clock = device_clock,
                                              .destroy = destroy};
    struct lr_listmode_compute *compute = lr_alloc(1, sizeof(*compute), "the compute backend", params->log);
    if (compute == NULL) return LR_FAILED;
    compute->params = *params;
    /* Programs for bins of time of flight are others: LORs of a sensitivity have none. */
    const struct lr_listmode_compute *other = params->stands_for != NULL ? params->stands_for->self : NULL;
    compute->programs = other != NULL && lr_listmode_has_bins(other) == lr_listmode_has_bins(compute)
                            ? other->programs
                            : compute->own_programs;
    const lr_status status = open_compute(compute);
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
