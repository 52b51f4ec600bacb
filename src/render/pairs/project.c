/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Projections by pairs, window by window. */
#include "render/pairs/pairs.h"

#include "base/log.h"
#include "common/bindings.h"
#include "model/lors/pair_window.h"
#include "render/fixed.h"
#include "render/loop_limit.h"
#include "render/pairs/scene.h"
#include "render/values.h"

#include <limits.h>
#include <math.h>
#include <string.h>

/* Module pairs handled together, and their values. */
struct window {
    struct lr_pairs *pairs;
    const struct lr_pair_list *list;
    struct lr_pair_window part; /* of the list */
    struct gl_buffer *modules;  /* the pairs of modules */
    const struct gl_buffer *values;
    float fixed_scale;
};

/* Voxels of a group, along each axis: shaders/pairs/scene.glsl. */
enum { BLOCK = 4 };

/* A dispatch is to be short enough that a projection can be stopped and shows progress: elements
 * looked at, at about 1e-11 s each on a large device. */
static const double most_elements = 2e10;

/* Elements of a point per crystal of the farther module, about. */
enum { ELEMENTS_PER_CRYSTAL = 5 };

/* --- windows --- */

static struct window begin_windows(struct lr_pairs *pairs, const struct lr_pair_list *list)
{
    return (struct window){
        .pairs = pairs, .list = list, .part = lr_pair_window_begin(pairs->params.lors, list->pairs, list->num_pairs)};
}

static lr_status open_window(struct window *window)
{
    const int64_t range[2] = {window->part.begin, window->part.end};
    window->modules = lr_pairs_upload_list(window->pairs, window->list, range);
    return window->modules ? LR_OK : LR_FAILED;
}

static void close_window(struct window *window)
{
    gl_buffer_destroy(window->modules);
    window->modules = NULL;
}

/* --- passes --- */

/* What one dispatch does: pairs of the window, rows of the nearer modules' crystals, slabs of
 * blocks of voxels, one sample point of each voxel. */
struct step {
    int pairs[2], rows[2], slabs[2];
    int point;
};

static lr_status run_step(const struct window *window, enum lr_pairs_program which, const struct step *step)
{
    struct lr_pairs *pairs = window->pairs;
    struct gl_program *program = lr_pairs_program(pairs, which);
    if (program == NULL) return LR_FAILED;
    struct lr_pairs_pass uniforms = lr_pairs_uniforms(pairs);
    uniforms.num_voxels[3] = BLOCK * step->slabs[0];
    uniforms.num_samples[3] = step->point;
    for (int k = 0; k < 2; k++) {
        uniforms.range[k] = step->pairs[k];
        uniforms.range[2 + k] = step->rows[k];
    }
    uniforms.scale[1] = window->fixed_scale;
    struct gl_pass pass = {.label = gl_program_label(program),
                           .program = program,
                           .uniforms = &uniforms,
                           .uniform_bytes = sizeof(uniforms),
                           .groups = {gl_divide_up(uniforms.num_voxels[0], BLOCK),
                                      gl_divide_up(uniforms.num_voxels[1], BLOCK), step->slabs[1] - step->slabs[0]},
                           .barriers = GL_SHADER_STORAGE_BARRIER_BIT | GL_BUFFER_UPDATE_BARRIER_BIT};
    lr_pairs_bind_scene(pairs, &pass);
    pass.buffers[LR_BIND_PAIR_LIST].buffer = window->modules;
    pass.buffers[LR_BIND_PAIR_IMAGE].buffer = pairs->image;
    pass.buffers[LR_BIND_OUTPUT].buffer = window->values;
    return gl_pass_run(pairs->ctx, &pass);
}

static int64_t crystals_of(const struct lr_pairs *pairs, int module)
{
    const int *crystals = pairs->params.scanner->modules[module].crystals;
    return (int64_t)crystals[0] * crystals[1];
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

/* Rows of one pair that a thread may visit: all, or few enough that its loops are not ended. Each
 * crystal of a row covers at most all crystals of the other module. */
static int rows_of_step(const struct lr_pairs *pairs, const int32_t modules[2])
{
    const lr_module *i = &pairs->params.scanner->modules[modules[0]];
    const lr_module *j = &pairs->params.scanner->modules[modules[1]];
    const int rows = larger(i->crystals[1], j->crystals[1]);
    const int64_t crystals = larger((int)crystals_of(pairs, modules[0]), (int)crystals_of(pairs, modules[1]));
    const int parts = lr_pairs_most_parts(pairs, modules[0], modules[1]);
    const int64_t turns = larger(i->crystals[0], j->crystals[0]) * (crystals * parts * parts + 1);
    const int64_t most = LR_MOST_TURNS_SOFTWARE / turns;
    const struct gl_limits *limits = gl_context_limits(pairs->ctx);
    const bool has_all = (!limits->software && !limits->small_batches) || most > rows;
    return has_all ? rows : most > 1 ? (int)most : 1;
}

static int height_of(const struct lr_pairs *pairs, const int32_t modules[2])
{
    const lr_module *all = pairs->params.scanner->modules;
    return larger(all[modules[0]].crystals[1], all[modules[1]].crystals[1]);
}

int lr_pairs_rows_at_once(const struct lr_pairs *pairs, int *height)
{
    const lr_lors *lors = pairs->params.lors;
    int rows = INT_MAX;
    *height = 1;
    for (int64_t k = 0; k < lors->num_pairs; k++) {
        const int here = rows_of_step(pairs, lors->pairs[k]), high = height_of(pairs, lors->pairs[k]);
        if (here < high) rows = here < rows ? here : rows;
        *height = larger(*height, high);
    }
    return rows < *height ? rows : *height;
}

/* Pairs from `begin` on that one dispatch visits. */
static int end_of_pairs(const struct window *window, int begin)
{
    const struct lr_pairs *pairs = window->pairs;
    const int count = (int)(window->part.end - window->part.begin);
    const double voxels = (double)lr_grid_num_voxels(pairs->params.grid);
    double elements = 0.0;
    int end = begin;
    if (gl_context_limits(pairs->ctx)->small_batches) return begin + 1;
    while (end < count && (end == begin || elements < most_elements)) {
        const int64_t pair = lr_pair_window_pair(&window->part, window->part.begin + end++);
        elements += voxels * ELEMENTS_PER_CRYSTAL * (double)crystals_of(pairs, pairs->params.lors->pairs[pair][0]);
    }
    return end;
}

/* Slabs of a dispatch, where one pair is too much for it already. */
static int slabs_of_step(const struct window *window, const int range[2])
{
    const struct lr_pairs *pairs = window->pairs;
    const int *size = pairs->params.grid->size;
    double elements = 0.0;
    for (int k = range[0]; k < range[1]; k++) {
        const int64_t pair = lr_pair_window_pair(&window->part, window->part.begin + k);
        elements += (double)BLOCK * size[0] * size[1] * ELEMENTS_PER_CRYSTAL *
                    (double)crystals_of(pairs, pairs->params.lors->pairs[pair][0]);
    }
    return (int)fmin(fmax(most_elements / elements, 1.0), gl_divide_up(size[2], BLOCK));
}

static lr_status report(const struct window *window, const char *what, double share)
{
    const double done = (double)window->part.begin + share * (double)(window->part.end - window->part.begin);
    return lr_progress_report(window->pairs->params.progress, what, done / (double)window->part.num_pairs, 1.0);
}

/* All rows and slabs of some pairs, for one point of every voxel. */
static lr_status run_pairs(const struct window *window, enum lr_pairs_program which, struct step *step)
{
    const struct lr_pairs *pairs = window->pairs;
    const int slabs = gl_divide_up(pairs->params.grid->size[2], BLOCK);
    const int per_step = slabs_of_step(window, step->pairs);
    int rows = 1, height = 1; /* a step of several pairs has all rows of each */
    for (int k = step->pairs[0]; k < step->pairs[1]; k++) {
        const int32_t *modules = pairs->params.lors->pairs[lr_pair_window_pair(&window->part, window->part.begin + k)];
        rows = larger(rows, rows_of_step(pairs, modules));
        height = larger(height, height_of(pairs, modules));
    }
    for (int slab = 0; slab < slabs; slab += per_step) {
        step->slabs[0] = slab;
        step->slabs[1] = slab + per_step < slabs ? slab + per_step : slabs;
        for (int row = 0; row < height; row += rows) {
            step->rows[0] = row;
            step->rows[1] = row + rows;
            LR_TRY(run_step(window, which, step));
        }
    }
    return LR_OK;
}

static lr_status run_window(const struct window *window, enum lr_pairs_program which, const char *what)
{
    const int *samples = window->pairs->params.samples;
    const int count = (int)(window->part.end - window->part.begin);
    const int points = samples[0] * samples[1] * samples[2];
    gl_timer_begin(window->pairs->timer);
    for (int begin = 0, end; begin < count; begin = end) {
        end = end_of_pairs(window, begin);
        for (int point = 0; point < points; point++) {
            struct step step = {.pairs = {begin, end}, .point = point};
            LR_TRY(run_pairs(window, which, &step));
            const double part = (point + 1.0) / points;
            LR_TRY(report(window, what, (begin + part * (end - begin)) / count));
        }
    }
    gl_timer_end(window->pairs->timer);
    return LR_OK;
}

lr_status lr_pairs_check_finished(const struct lr_pairs *pairs)
{
    uint32_t unfinished = 0;
    /* Others end none, and need not be waited for. */
    if (!gl_context_limits(pairs->ctx)->software) return LR_OK;
    LR_TRY(gl_buffer_read(pairs->state, 0, sizeof(unfinished), &unfinished));
    if (unfinished != 0) {
        return lr_error(pairs->params.log, LR_FAILED,
                        "the device ended a projection's loops before they were done, at modules "
                        "of very many crystals, or near to them: use backend cpu");
    }
    return LR_OK;
}

/* --- projections --- */

/* What the window has of the data. */
static lr_vector own_values(const struct window *window, const lr_vector *data)
{
    return lr_vector_part(data, window->part.first_value, window->part.num_values);
}

static struct gl_buffer *make_values(const struct window *window, const lr_vector *values)
{
    return lr_values_buffer(window->pairs->ctx, "LOR values", window->part.num_values, values);
}

static lr_status forward_floats(struct window *window, lr_vector *values)
{
    struct gl_buffer *buffer = make_values(window, NULL);
    window->values = buffer;
    lr_status status = LR_FAILED;
    if (buffer != NULL) status = run_window(window, LR_PAIRS_FORWARD, "projecting forward");
    if (status == LR_OK) status = lr_values_get(buffer, 0, values);
    gl_buffer_destroy(buffer);
    return status;
}

/* One attempt at values that do not depend on the order of additions. */
static lr_status try_fixed(struct window *window, struct lr_fixed *sums, float *values)
{
    window->values = sums->buffer;
    window->fixed_scale = ldexpf(1.0f, -sums->exponent);
    LR_TRY(run_window(window, LR_PAIRS_FORWARD, "projecting forward"));
    LR_TRY(lr_fixed_overflowed(sums, &sums->overflowed));
    return sums->overflowed ? LR_OK : lr_fixed_read(sums, values);
}

static lr_status forward_fixed(struct window *window, int exponent, float *values)
{
    struct lr_fixed sums = {.overflowed = true};
    for (; sums.overflowed; exponent += LR_FIXED_STEP) {
        LR_TRY(lr_fixed_init(&sums, window->pairs->ctx, window->part.num_values, exponent));
        const lr_status status = try_fixed(window, &sums, values);
        lr_fixed_finish(&sums);
        LR_TRY(status);
    }
    return LR_OK;
}

lr_status lr_pairs_forward(void *self, const struct lr_pair_list *list, const float *image, lr_vector *data)
{
    struct lr_pairs *pairs = self;
    struct window window = begin_windows(pairs, list);
    const bool fixed = pairs->params.deterministic;
    const int64_t most = fixed ? lr_fixed_most(pairs->max_window) : pairs->max_window;
    const int64_t bytes = lr_grid_num_voxels(pairs->params.grid) * (int64_t)sizeof(*image);
    const int exponent = fixed ? lr_fixed_sum_exponent(&pairs->params, image) : 0;
    pairs->device_seconds = 0.0;
    LR_TRY(image != NULL ? gl_buffer_upload(pairs->image, 0, bytes, image) : LR_OK);
    while (lr_pair_window_next(&window.part, most)) {
        lr_status status = open_window(&window);
        if (status == LR_OK) {
            lr_vector values = own_values(&window, data);
            status = fixed ? forward_fixed(&window, exponent, values.values) : forward_floats(&window, &values);
        }
        close_window(&window);
        LR_TRY(status);
        pairs->device_seconds += gl_timer_seconds(pairs->timer);
    }
    return lr_pairs_check_finished(pairs);
}

static lr_status back_window(struct window *window, const lr_vector *data)
{
    static const float one = 1.0f;
    const lr_vector values = data != NULL ? own_values(window, data) : (lr_vector){0};
    struct gl_buffer *buffer = make_values(window, data != NULL ? &values : NULL);
    lr_status status = buffer != NULL ? open_window(window) : LR_FAILED;
    if (status == LR_OK && data == NULL) {
        uint32_t bits;
        memcpy(&bits, &one, sizeof(bits));
        gl_buffer_clear(buffer, bits);
    }
    window->values = buffer;
    if (status == LR_OK) status = run_window(window, LR_PAIRS_BACK, "projecting back");
    gl_buffer_destroy(buffer);
    return status;
}

lr_status lr_pairs_back(void *self, const struct lr_pair_list *list, const lr_vector *data, float *image)
{
    struct lr_pairs *pairs = self;
    struct window window = begin_windows(pairs, list);
    const int64_t bytes = lr_grid_num_voxels(pairs->params.grid) * (int64_t)sizeof(*image);
    pairs->device_seconds = 0.0;
    gl_buffer_clear(pairs->image, 0);
    while (lr_pair_window_next(&window.part, pairs->max_window)) {
        const lr_status status = back_window(&window, data);
        close_window(&window);
        LR_TRY(status);
        pairs->device_seconds += gl_timer_seconds(pairs->timer);
    }
    LR_TRY(lr_pairs_check_finished(pairs));
    return image != NULL ? gl_buffer_read(pairs->image, 0, bytes, image) : LR_OK;
}
