/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Projections by pairs, window by window. */
#include "correspondence/compute/pairs/pairs.h"

#include "base/log.h"
#include "base/mem.h"
#include "common/bindings.h"
#include "correspondence/compute/rows/point_lists.h"
#include "correspondence/values.h"
#include "model/lors/pair_window.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A window of module pairs, whose values are on the device together. */
struct window {
    struct lr_pairs *pairs;
    struct lr_pair_window part; /* of the list */
    struct gl_buffer *modules;  /* the pairs of modules */
    const struct gl_buffer *values;
    float fixed_scale;
};

/* A group has a cube of voxels with this edge (shaders/correspondence/pairs/scene.glsl). */
enum { BLOCK = 4 };

/* A dispatch has at most this many elements, of about 1e-11 s each on a large device, so that a projection shows
 * progress and stops soon if the user cancels it. */
static const double most_elements = 2e10;

/* A point has about this many elements per crystal of the farther module. */
enum { ELEMENTS_PER_CRYSTAL = 5 };

/* --- passes --- */

static lr_status run_window(const struct window *window, enum lr_pairs_program which, const char *what)
{
    struct lr_pairs *pairs = window->pairs;
    struct gl_program *program = lr_pairs_program(pairs, which);
    if (program == NULL) return LR_FAILED;
    struct lr_pairs_pass uniforms = lr_pairs_uniforms(pairs);
    uniforms.scale[1] = window->fixed_scale;
    const bool small = gl_context_limits(pairs->ctx)->small_batches;
    const int *size = pairs->params.grid->size, *samples = pairs->params.samples;
    const double voxels = (double)lr_grid_num_voxels(pairs->params.grid);
    const int slabs = gl_divide_up(size[2], BLOCK), points = samples[0] * samples[1] * samples[2];
    const int count = (int)(window->part.end - window->part.begin);
    gl_timer_begin(pairs->timer);
    for (int begin = 0, end; begin < count; begin = end) {
        /* A dispatch takes several pairs, or some slabs of a single pair that has too many elements. */
        double elements = 0.0, slab_elements = 0.0;
        for (end = begin; end < count && (end == begin || (!small && elements < most_elements)); end++) {
            const int64_t pair = lr_pair_window_pair(&window->part, window->part.begin + end);
            const int *crystals = pairs->params.scanner->modules[pairs->params.lors->pairs[pair][0]].crystals;
            const double num_crystals = (double)((int64_t)crystals[0] * crystals[1]);
            elements += voxels * ELEMENTS_PER_CRYSTAL * num_crystals;
            slab_elements += (double)BLOCK * size[0] * size[1] * ELEMENTS_PER_CRYSTAL * num_crystals;
        }
        const int per_step = (int)fmin(fmax(most_elements / slab_elements, 1.0), slabs);
        for (int point = 0; point < points; point++) {
            for (int slab = 0; slab < slabs; slab += per_step) {
                uniforms.num_voxels[3] = BLOCK * slab;
                uniforms.num_samples[3] = point;
                uniforms.range[0] = begin;
                uniforms.range[1] = end;
                struct gl_pass pass =
                    gl_pass_compute(program, &uniforms, sizeof(uniforms),
                                    (const int[3]){gl_divide_up(uniforms.num_voxels[0], BLOCK),
                                                   gl_divide_up(uniforms.num_voxels[1], BLOCK),
                                                   slabs - slab < per_step ? slabs - slab : per_step});
                lr_pairs_bind_scene(pairs, &pass);
                pass.buffers[LR_BIND_PAIR_LIST].buffer = window->modules;
                pass.buffers[LR_BIND_PAIR_IMAGE].buffer = pairs->image;
                pass.buffers[LR_BIND_OUTPUT].buffer = window->values;
                LR_TRY(gl_pass_run(pairs->ctx, &pass));
            }
            const double part = (point + 1.0) / points;
            const double share = (begin + part * (end - begin)) / count;
            const double done = (double)window->part.begin + share * (double)(window->part.end - window->part.begin);
            LR_TRY(lr_progress_report(pairs->params.progress, what, done / (double)window->part.num_pairs, 1.0));
        }
    }
    gl_timer_end(pairs->timer);
    return LR_OK;
}

lr_status lr_pairs_check_finished(const struct lr_pairs *pairs)
{
    uint32_t unfinished = 0;
    /* Only renderers in software end loops early, so the host does not wait for other devices. */
    if (!gl_context_limits(pairs->ctx)->software) return LR_OK;
    LR_TRY(gl_buffer_read(pairs->state, 0, sizeof(unfinished), &unfinished));
    if (unfinished != 0) {
        gl_buffer_clear(pairs->state, 0);
        return lr_error(pairs->params.log, LR_USAGE,
                        "modules have too many crystals, or are too near to the voxels, for the software renderer, "
                        "which ends a shader's loops after 65,535 rounds: use backend cpu, or a graphics processor");
    }
    return LR_OK;
}

/* --- projections --- */

/* Projects forward to the values of a window. Deterministic sums are in fixed point, and `exponent` is their scale;
 * they are repeated with larger exponents until none overflows. */
static lr_status forward_window(struct window *window, int exponent, lr_vector *values)
{
    struct lr_pairs *pairs = window->pairs;
    if (!pairs->params.deterministic) {
        struct gl_buffer *buffer = lr_values_buffer(pairs->ctx, "LOR values", window->part.num_values, NULL);
        window->values = buffer;
        lr_status status = LR_FAILED;
        if (buffer != NULL) status = run_window(window, LR_PAIRS_FORWARD, "projecting forward");
        if (status == LR_OK) status = lr_values_get(buffer, 0, values);
        gl_buffer_destroy(buffer);
        return status;
    }
    struct lr_fixed sums = {.overflowed = true};
    for (; sums.overflowed; exponent += LR_FIXED_STEP) {
        LR_TRY(lr_fixed_init(&sums, pairs->ctx, window->part.num_values, exponent));
        window->values = sums.buffer;
        window->fixed_scale = ldexpf(1.0f, -sums.exponent);
        lr_status status = run_window(window, LR_PAIRS_FORWARD, "projecting forward");
        if (status == LR_OK) status = lr_fixed_overflowed(&sums, &sums.overflowed);
        if (status == LR_OK && !sums.overflowed) status = lr_fixed_read(&sums, values->values);
        lr_fixed_finish(&sums);
        LR_TRY(status);
    }
    return LR_OK;
}

lr_status lr_pairs_forward(void *self, const struct lr_pair_list *list, const float *image, lr_vector *data)
{
    struct lr_pairs *pairs = self;
    struct window window = {.pairs = pairs,
                            .part = lr_pair_window_begin(pairs->params.lors, list->pairs, list->num_pairs)};
    const bool fixed = pairs->params.deterministic;
    const int64_t most = fixed ? lr_fixed_most(pairs->max_window) : pairs->max_window;
    const int64_t bytes = lr_grid_num_voxels(pairs->params.grid) * (int64_t)sizeof(*image);
    const int exponent = fixed ? lr_fixed_sum_exponent(&pairs->params, image) : 0;
    pairs->device_seconds = 0.0;
    LR_TRY(image != NULL ? gl_buffer_upload(pairs->image, 0, bytes, image) : LR_OK);
    while (lr_pair_window_next(&window.part, most)) {
        const int64_t range[2] = {window.part.begin, window.part.end};
        lr_vector values = lr_vector_part(data, window.part.first_value, window.part.num_values);
        window.modules = lr_pairs_upload_list(pairs, list, range);
        const lr_status status = window.modules ? forward_window(&window, exponent, &values) : LR_FAILED;
        gl_buffer_destroy(window.modules);
        LR_TRY(status);
        pairs->device_seconds += gl_timer_seconds(pairs->timer);
    }
    return lr_pairs_check_finished(pairs);
}

lr_status lr_pairs_back(void *self, const struct lr_pair_list *list, const lr_vector *data, float *image)
{
    struct lr_pairs *pairs = self;
    struct window window = {.pairs = pairs,
                            .part = lr_pair_window_begin(pairs->params.lors, list->pairs, list->num_pairs)};
    const int64_t bytes = lr_grid_num_voxels(pairs->params.grid) * (int64_t)sizeof(*image);
    pairs->device_seconds = 0.0;
    gl_buffer_clear(pairs->image, 0);
    while (lr_pair_window_next(&window.part, pairs->max_window)) {
        static const float one = 1.0f;
        const int64_t range[2] = {window.part.begin, window.part.end};
        lr_vector values;
        if (data != NULL) values = lr_vector_part(data, window.part.first_value, window.part.num_values);
        struct gl_buffer *buffer =
            lr_values_buffer(pairs->ctx, "LOR values", window.part.num_values, data != NULL ? &values : NULL);
        window.modules = lr_pairs_upload_list(pairs, list, range);
        lr_status status = buffer != NULL && window.modules != NULL ? LR_OK : LR_FAILED;
        if (status == LR_OK && data == NULL) {
            uint32_t bits;
            memcpy(&bits, &one, sizeof(bits));
            gl_buffer_clear(buffer, bits);
        }
        window.values = buffer;
        if (status == LR_OK) status = run_window(&window, LR_PAIRS_BACK, "projecting back");
        gl_buffer_destroy(buffer);
        gl_buffer_destroy(window.modules);
        LR_TRY(status);
        pairs->device_seconds += gl_timer_seconds(pairs->timer);
    }
    LR_TRY(lr_pairs_check_finished(pairs));
    return image != NULL ? gl_buffer_read(pairs->image, 0, bytes, image) : LR_OK;
}

/* --- single LORs --- */

/* Projects the module pairs to which the LORs of a list belong: forward to the list's values `out`, or back from its
 * values `in`, which are 1 if `in` is NULL. */
static lr_status project_lors(struct lr_pairs *pairs, const struct lr_lor_list *list, float *image, const float *in,
                              float *out)
{
    const lr_lors *lors = pairs->params.lors;
    const int64_t *offsets = lors->offsets, most = list->count < lors->num_pairs ? list->count : lors->num_pairs;
    const lr_log *log = pairs->params.log;
    int32_t *numbers = lr_alloc(most, sizeof(*numbers), "module pairs of a list", log);
    if (numbers == NULL) return LR_FAILED;
    int64_t num_pairs = 0, num_values = 0, pair = 0;
    for (int64_t k = 0; k < list->count; k++) {
        while (offsets[pair + 1] <= list->lors[k]) pair++;
        if (num_pairs == 0 || numbers[num_pairs - 1] != pair) {
            numbers[num_pairs++] = (int32_t)pair;
            num_values += offsets[pair + 1] - offsets[pair];
        }
    }
    float *values = lr_alloc(num_values, sizeof(*values), "LOR values", log);
    lr_status status = values != NULL ? LR_OK : LR_FAILED;
    const struct lr_pair_list all = {.pairs = numbers, .num_pairs = num_pairs};
    lr_vector data = lr_vector_of_floats(values, num_values);
    if (status == LR_OK && out != NULL) status = lr_pairs_forward(pairs, &all, image, &data);

    /* Values of the list are copied from the values of the pairs, or to them. */
    int64_t k = 0, begin = 0;
    for (int64_t n = 0; status == LR_OK && n < num_pairs; n++) {
        const int64_t first = offsets[numbers[n]], end = offsets[numbers[n] + 1];
        for (; k < list->count && list->lors[k] < end; k++) {
            float *value = &values[begin + list->lors[k] - first];
            if (out != NULL)
                out[k] = *value;
            else
                *value = in != NULL ? in[k] : 1.0f;
        }
        begin += end - first;
    }
    if (status == LR_OK && out == NULL) status = lr_pairs_back(pairs, &all, &data, image);
    free(numbers);
    free(values);
    return status;
}

lr_status lr_pairs_forward_lors(void *self, const struct lr_lor_list *list, const float *image, float *values)
{
    return project_lors(self, list, (float *)(uintptr_t)image, NULL, values);
}

lr_status lr_pairs_back_lors(void *self, const struct lr_lor_list *list, const float *values, float *image)
{
    return project_lors(self, list, image, values, NULL);
}

/* --- matrix rows --- */

/* A point, as dvec4 of the shader. */
typedef double point_place[4];

/* A dispatch takes at most this many pairs. Every device allows as many groups along a dimension. */
enum { MOST_PAIRS = 1 << 15 };

/* The state of a call of lr_pairs_read_rows. */
struct listing {
    struct lr_pairs *pairs;
    enum lr_pairs_program which;
    struct gl_buffer *modules; /* all pairs of modules */
};

static void place_point(void *user, const double point_mm[3], void *point)
{
    (void)user;
    memcpy(point, (point_place){point_mm[0], point_mm[1], point_mm[2], 0.0}, sizeof(point_place));
}

static lr_status run_points(void *user, const struct lr_point_list *list)
{
    const struct listing *listing = user;
    struct lr_pairs *pairs = listing->pairs;
    const int num_pairs = (int)pairs->params.lors->num_pairs, points = list->end_point - list->first_point;
    struct gl_program *program = lr_pairs_program(pairs, listing->which);
    if (program == NULL) return LR_FAILED;
    struct lr_pairs_pass uniforms = lr_pairs_uniforms(pairs);
    uniforms.list[0] = list->first_point;
    uniforms.list[1] = list->end_point;
    uniforms.list[2] = (int32_t)list->capacity;
    for (int begin = 0; begin < num_pairs; begin += MOST_PAIRS) {
        const int end = begin + MOST_PAIRS < num_pairs ? begin + MOST_PAIRS : num_pairs;
        uniforms.range[0] = begin;
        uniforms.range[1] = end;
        struct gl_pass pass = gl_pass_compute(program, &uniforms, sizeof(uniforms),
                                              (const int[3]){gl_divide_up(points, LR_GROUP_SIZE), end - begin, 1});
        lr_pairs_bind_scene(pairs, &pass);
        pass.buffers[LR_BIND_PAIR_LIST].buffer = listing->modules;
        pass.buffers[LR_BIND_PAIR_POINTS].buffer = list->points;
        pass.buffers[LR_BIND_OUTPUT].buffer = list->list;
        LR_TRY(gl_pass_run(pairs->ctx, &pass));
    }
    return LR_OK;
}

lr_status lr_pairs_read_rows(void *self, const struct lr_rows *rows, const lr_row_sink *sink)
{
    struct lr_pairs *pairs = self;
    const struct lr_pair_list all = {0};
    const int64_t range[2] = {0, pairs->params.lors->num_pairs};
    struct listing listing = {.pairs = pairs, .which = rows->grid ? LR_PAIRS_ROWS : LR_PAIRS_POINT_ROWS};
    const struct lr_point_lister lister = {.ctx = pairs->ctx,
                                           .params = &pairs->params,
                                           .merge = &pairs->merge,
                                           .max_window = pairs->max_window,
                                           .point_bytes = sizeof(point_place),
                                           .repeats = true,
                                           .place = place_point,
                                           .run = run_points,
                                           .user = &listing};
    listing.modules = lr_pairs_upload_list(pairs, &all, range);
    lr_status status = listing.modules != NULL ? lr_point_lists_read_rows(&lister, rows, sink) : LR_FAILED;
    gl_buffer_destroy(listing.modules);
    return status == LR_OK ? lr_pairs_check_finished(pairs) : status;
}
