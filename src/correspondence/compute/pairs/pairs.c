/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The pairs method: the scanner and the image as its programs read them, projections window by window, and the
 * functions of struct lr_method. */
#include "correspondence/compute/pairs/pairs.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "common/bindings.h"
#include "correspondence/values.h"
#include "gl/vectors.h"
#include "model/lors/pair_window.h"
#include "model/scanner/coincidence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *shader, *label;
} descriptions[LR_NUM_PAIRS_PROGRAMS] = {
    [LR_PAIRS_FORWARD] = {"correspondence/pairs/forward.comp", "forward by pairs"},
    [LR_PAIRS_BACK] = {"correspondence/pairs/back.comp", "back by pairs"},
    [LR_PAIRS_ROWS] = {"correspondence/pairs/rows.comp", "matrix elements by pairs"},
    [LR_PAIRS_POINT_ROWS] = {"correspondence/pairs/rows.comp", "matrix elements of points by pairs"},
};

struct gl_program *lr_pairs_program(struct lr_pairs *pairs, enum lr_pairs_program which)
{
    const bool anywhere = which == LR_PAIRS_POINT_ROWS;
    struct gl_define defines[6] = {{0}};
    int next = 0;
    if (pairs->programs[which] != NULL) return pairs->programs[which];
    if (pairs->may_be_near || anywhere) defines[next++].name = "NEAR";
    if (pairs->meets_horizon || anywhere) defines[next++].name = "HORIZON";
    if (pairs->masks.any) defines[next++].name = "MASKS";
    if (gl_context_limits(pairs->ctx)->software) defines[next++].name = "LIMITED_LOOPS";
    if (which == LR_PAIRS_FORWARD && pairs->params.deterministic) defines[next].name = "FIXED";
    pairs->programs[which] = gl_program_start(
        pairs->ctx, &(struct gl_program_params){
                        .compute = descriptions[which].shader, .defines = defines, .label = descriptions[which].label});
    return pairs->programs[which];
}

/* `struct PairModule`. */
struct pair_module {
    double centre[4], u[4], v[4], normal[4], cells[4];
    int32_t crystals[4], unused[4];
};
_Static_assert(sizeof(struct pair_module) == 192, "the shaders' layout");

/* `struct ModulePair`. */
struct module_pair {
    uint32_t i, j, first, mask;
};

/* The largest angle, in radian, at which a point may see a crystal. Larger crystals are divided by
 * shaders/correspondence/pairs/pairs.glsl. */
static const double largest_part = 0.03;

/* A program is built with HORIZON if some part of a module may be less than this above a point of the grid, mm. Heights
 * are measured from the plane of the other module. */
static const double least_rise_mm = 1e-3;

/* Finds the smallest and the largest height of the grid's box over a module's plane, mm. */
static void grid_heights(const struct lr_pairs *pairs, int module, double heights[2])
{
    const lr_grid *grid = pairs->params.grid;
    const double *normal = pairs->params.scanner->modules[module].normal;
    double centre[3];
    lr_scanner_detection_centre(pairs->params.scanner, module, centre);
    heights[0] = heights[1] = 0.0;
    for (int k = 0; k < 3; k++) {
        const double low = grid->origin_mm[k] - 0.5 * grid->voxel_mm[k] - centre[k];
        const double high = low + grid->size[k] * grid->voxel_mm[k];
        heights[0] += normal[k] * (normal[k] > 0.0 ? low : high);
        heights[1] += normal[k] * (normal[k] > 0.0 ? high : low);
    }
}

static bool meets_horizon(const struct lr_pairs *pairs, int module, int other)
{
    double heights[2];
    grid_heights(pairs, module, heights);

    /* Compares the smallest height of the other module with the largest height of the grid, both over the plane of
     * `module`. */
    const lr_scanner *scanner = pairs->params.scanner;
    const double *normal = scanner->modules[module].normal;
    const lr_module *box = &scanner->modules[other];
    double from[3], centre[3], offset[3];
    lr_scanner_detection_centre(scanner, module, from);
    lr_scanner_detection_centre(scanner, other, centre);
    vec_sub(centre, from, offset);
    return (vec_dot(normal, offset) - fabs(vec_dot(normal, box->u)) * 0.5 * box->crystals[0] * box->pitch_mm[0] -
            fabs(vec_dot(normal, box->v)) * 0.5 * box->crystals[1] * box->pitch_mm[1]) -
               heights[1] <
           least_rise_mm;
}

/* Uploads modules and masks, which are the same for all windows, and finds the defines of the programs. */
static lr_status upload_scene(struct lr_pairs *pairs)
{
    const lr_scanner *scanner = pairs->params.scanner;
    const lr_lors *lors = pairs->params.lors;
    const lr_log *log = pairs->params.log;
    for (int64_t k = 0; k < lors->num_pairs; k++) {
        const int i = lors->pairs[k][0], j = lors->pairs[k][1];
        if (!pairs->may_be_near) {
            /* Crystals of the farther module must look small. The distance to this module is at least the larger of the
               grid's smallest heights over the planes of the two modules. */
            const double *face_i = scanner->modules[i].face_mm, *face_j = scanner->modules[j].face_mm;
            double on_i[2], on_j[2];
            grid_heights(pairs, i, on_i);
            grid_heights(pairs, j, on_j);
            const double nearest = fmax(fmax(on_i[0], on_j[0]), 0.0);
            const double largest = fmax(fmax(face_i[0], face_i[1]), fmax(face_j[0], face_j[1]));
            pairs->may_be_near = largest > largest_part * nearest;
        }
        pairs->meets_horizon = pairs->meets_horizon || meets_horizon(pairs, i, j) || meets_horizon(pairs, j, i);
    }

    const int count = scanner->num_modules;
    struct pair_module *modules = lr_alloc(count, sizeof(*modules), "the scanner's modules", log);
    if (modules == NULL) return LR_FAILED;
    for (int m = 0; m < count; m++) {
        const lr_module *module = &scanner->modules[m];
        modules[m] = (struct pair_module){
            .cells = {module->pitch_mm[0], module->pitch_mm[1], module->face_mm[0], module->face_mm[1]},
            .crystals = {module->crystals[0], module->crystals[1], module->crystals[0] * module->crystals[1], 0},
        };
        lr_scanner_detection_centre(scanner, m, modules[m].centre);
        memcpy(modules[m].u, module->u, sizeof(module->u));
        memcpy(modules[m].v, module->v, sizeof(module->v));
        memcpy(modules[m].normal, module->normal, sizeof(module->normal));
    }
    pairs->modules = gl_data_buffer(pairs->ctx, "modules of pairs", count * (int64_t)sizeof(*modules), modules);
    free(modules);
    if (pairs->modules == NULL) return LR_FAILED;

    return lr_scene_masks_init(&pairs->masks, pairs->ctx, lors);
}

struct gl_buffer *lr_pairs_upload_list(const struct lr_pairs *pairs, const lr_selection *list, const int64_t range[2])
{
    const lr_lors *lors = pairs->params.lors;
    const int64_t count = range[1] - range[0];
    struct module_pair *out = lr_alloc(count, sizeof(*out), "pairs of modules", pairs->params.log);
    if (out == NULL) return NULL;
    int64_t first = 0;
    for (int64_t k = 0; k < count; k++) {
        const int64_t pair = list->pairs != NULL ? list->pairs[range[0] + k] : range[0] + k;
        const bool is_masked = lors->masks->pairs[pair].kind != LR_MASK_ALL;
        out[k] = (struct module_pair){.i = (uint32_t)lors->pairs[pair][0],
                                      .j = (uint32_t)lors->pairs[pair][1],
                                      .first = (uint32_t)first,
                                      .mask = is_masked ? (uint32_t)pair : LR_NONE};
        first += lors->offsets[pair + 1] - lors->offsets[pair];
    }
    struct gl_buffer *buffer = gl_data_buffer(pairs->ctx, "pairs of modules", count * (int64_t)sizeof(*out), out);
    free(out);
    return buffer;
}

enum { CHECK_ROUNDS = 8 };

struct lr_pairs_pass lr_pairs_uniforms(const struct lr_pairs *pairs)
{
    const lr_grid *grid = pairs->params.grid;
    const int *samples = pairs->params.samples;
    struct lr_pairs_pass pass = {.scale = {(float)(1.0 / ((double)samples[0] * samples[1] * samples[2]))}};
    pass.list[3] = CHECK_ROUNDS;
    for (int k = 0; k < 3; k++) {
        pass.num_voxels[k] = grid->size[k];
        pass.num_samples[k] = samples[k];
        pass.first_voxel[k] = grid->origin_mm[k];
        pass.voxel[k] = grid->voxel_mm[k];
    }
    return pass;
}

void lr_pairs_bind_scene(const struct lr_pairs *pairs, struct gl_pass *pass)
{
    gl_pass_bind(pass, {LR_BIND_PAIR_MODULES, pairs->modules}, {LR_BIND_MASK_ENTRIES, pairs->masks.entries},
                 {LR_BIND_MASK_WORDS, pairs->masks.words}, {LR_BIND_PAIR_STATE, pairs->state});
}

/* A window: module pairs whose values are on the device at the same time. */
struct window {
    struct lr_pairs *pairs;
    struct lr_pair_window part; /* the window's range in the list of pairs */
    struct gl_buffer *modules;  /* the module pairs on the device */
    const struct gl_buffer *values;
    float fixed_scale;
};

/* The length of the edge of the cube of voxels that a workgroup computes (shaders/correspondence/pairs/scene.glsl). */
enum { BLOCK = 4 };

/* The largest number of elements of a dispatch. A large device needs about 1e-11 s for an element. With this limit, a
 * projection shows progress, and the user can stop it soon. */
static const double most_elements = 2e10;

/* The approximate number of elements that a sample point has per crystal of the farther module. */
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
    lr_status status = LR_OK;
    gl_stopwatch_begin(pairs->watch);
    for (int begin = 0, end; status == LR_OK && begin < count; begin = end) {
        /* A dispatch has several pairs. If a single pair has too many elements, a dispatch has some slabs of this
         * pair. */
        double elements = 0.0, slab_elements = 0.0;
        for (end = begin; end < count && (end == begin || (!small && elements < most_elements)); end++) {
            const int64_t pair = lr_pair_window_pair(&window->part, window->part.begin + end);
            const int *crystals = pairs->params.scanner->modules[pairs->params.lors->pairs[pair][0]].crystals;
            const double num_crystals = (double)((int64_t)crystals[0] * crystals[1]);
            elements += voxels * ELEMENTS_PER_CRYSTAL * num_crystals;
            slab_elements += (double)BLOCK * size[0] * size[1] * ELEMENTS_PER_CRYSTAL * num_crystals;
        }
        const int per_step = (int)fmin(fmax(most_elements / slab_elements, 1.0), slabs);
        for (int point = 0; status == LR_OK && point < points; point++) {
            for (int slab = 0; status == LR_OK && slab < slabs; slab += per_step) {
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
                gl_pass_bind(&pass, {LR_BIND_PAIR_LIST, window->modules}, {LR_BIND_PAIR_IMAGE, pairs->image},
                             {LR_BIND_OUTPUT, window->values});
                status = gl_pass_run(pairs->ctx, &pass);
            }
            const double part = (point + 1.0) / points;
            const double share = (begin + part * (end - begin)) / count;
            const double done = (double)window->part.begin + share * (double)(window->part.end - window->part.begin);
            if (status == LR_OK)
                status = lr_progress_report(pairs->params.progress, what, done / (double)window->part.num_pairs, 1.0);
        }
    }
    gl_stopwatch_end(pairs->watch);
    return status;
}

lr_status lr_pairs_check_finished(const struct lr_pairs *pairs)
{
    uint32_t unfinished = 0;
    /* Only software renderers end loops too early, so the host does not wait for other devices. */
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

/* Projects forward to the values of a window. In deterministic mode, sums are in fixed point with the scale `exponent`,
 * and are repeated with larger exponents until no sum overflows. */
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

/* values NULL = all values are 1. */
static lr_status back_window(struct window *window, const lr_vector *values)
{
    static const float one = 1.0f;
    struct lr_pairs *pairs = window->pairs;
    struct gl_buffer *buffer = lr_values_buffer(pairs->ctx, "LOR values", window->part.num_values, values);
    if (buffer == NULL) return LR_FAILED;
    if (values == NULL) {
        uint32_t bits;
        memcpy(&bits, &one, sizeof(bits));
        gl_buffer_clear(buffer, bits);
    }
    window->values = buffer;
    const lr_status status = run_window(window, LR_PAIRS_BACK, "projecting back");
    gl_buffer_destroy(buffer);
    return status;
}

/* In deterministic mode, the image is on the host. */
static lr_status project(void *self, bool is_forward, const lr_selection *list, lr_vector *image, lr_vector *data)
{
    struct lr_pairs *pairs = self;
    struct window window = {.pairs = pairs,
                            .part = lr_pair_window_begin(pairs->params.lors, list->pairs, list->num_pairs)};
    const bool fixed = is_forward && pairs->params.deterministic;
    const int64_t most = fixed ? lr_fixed_most(pairs->max_window) : pairs->max_window;
    const int exponent = fixed ? lr_fixed_sum_exponent(&pairs->params, image->values) : 0;
    gl_stopwatch_reset(pairs->watch);
    if (is_forward)
        LR_TRY(lr_values_put(image, pairs->image, 0));
    else
        gl_buffer_clear(pairs->image, 0);
    while (lr_pair_window_next(&window.part, most)) {
        const int64_t range[2] = {window.part.begin, window.part.end};
        lr_vector values = {0};
        if (data != NULL) values = lr_vector_part(data, window.part.first_value, window.part.num_values);
        window.modules = lr_pairs_upload_list(pairs, list, range);
        lr_status status = window.modules != NULL ? LR_OK : LR_FAILED;
        if (status == LR_OK)
            status = is_forward ? forward_window(&window, exponent, &values)
                                : back_window(&window, data != NULL ? &values : NULL);
        gl_buffer_destroy(window.modules);
        LR_TRY(status);
        (void)gl_stopwatch_total(pairs->watch); /* waits, so that only one window has buffers in memory */
    }
    LR_TRY(lr_pairs_check_finished(pairs));
    return is_forward ? LR_OK : lr_values_get(pairs->image, 0, image);
}

/* --- single LORs --- */

/* Projects the module pairs of a list's LORs, and copies the values between the list's LORs and the pairs. */
static lr_status project_lors(void *self, bool is_forward, const lr_selection *list, lr_vector *image, float *listed)
{
    struct lr_pairs *pairs = self;
    const lr_lors *lors = pairs->params.lors;
    const int64_t count = list->num_lors, *offsets = lors->offsets;
    const lr_log *log = pairs->params.log;
    int32_t *numbers =
        lr_alloc(count < lors->num_pairs ? count : lors->num_pairs, sizeof(*numbers), "module pairs of a list", log);
    if (numbers == NULL) return LR_FAILED;
    int64_t num_pairs = 0, num_values = 0, pair = 0;
    for (int64_t k = 0; k < count; k++) {
        while (offsets[pair + 1] <= list->lors[k]) pair++;
        if (num_pairs == 0 || numbers[num_pairs - 1] != pair) {
            numbers[num_pairs++] = (int32_t)pair;
            num_values += offsets[pair + 1] - offsets[pair];
        }
    }
    float *values = lr_alloc(num_values, sizeof(*values), "LOR values", log);
    lr_status status = values != NULL ? LR_OK : LR_FAILED;
    const lr_selection all = {.pairs = numbers, .num_pairs = num_pairs};
    lr_vector data = lr_vector_of_floats(values, num_values);
    if (status == LR_OK && is_forward) status = project(pairs, true, &all, image, &data);
    int64_t k = 0, begin = 0;
    for (int64_t n = 0; status == LR_OK && n < num_pairs; n++) {
        const int64_t first = offsets[numbers[n]], end = offsets[numbers[n] + 1];
        for (; k < count && list->lors[k] < end; k++) {
            float *value = &values[begin + list->lors[k] - first];
            if (is_forward)
                listed[k] = *value;
            else
                *value = listed != NULL ? listed[k] : 1.0f;
        }
        begin += end - first;
    }
    if (status == LR_OK && !is_forward) status = project(pairs, false, &all, image, &data);
    lr_free_all(numbers, values);
    return status;
}

/* --- matrix rows --- */

/* A point in the form of the shader's dvec4. */
typedef double point_place[4];

/* The largest number of pairs of a dispatch. Every device allows this many workgroups along a dimension. */
enum { MOST_PAIRS = 1 << 15 };

/* The state of a call of read_rows. */
struct listing {
    struct lr_pairs *pairs;
    enum lr_pairs_program which;
    struct gl_buffer *modules; /* all module pairs on the device */
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
        gl_pass_bind(&pass, {LR_BIND_PAIR_LIST, listing->modules}, {LR_BIND_PAIR_POINTS, list->points},
                     {LR_BIND_OUTPUT, list->list});
        LR_TRY(gl_pass_run(pairs->ctx, &pass));
    }
    return LR_OK;
}

static lr_status read_rows(void *self, const struct lr_rows *rows, const lr_row_sink *sink)
{
    struct lr_pairs *pairs = self;
    const lr_selection all = {0};
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

static bool serves(const struct lr_method_params *params, enum lr_method_work work)
{
    const struct lr_backend_params *backend = params->backend;
    (void)work;
    return !params->may_hide && backend->mode == LR_MODE_EXACT && backend->mu == NULL && !backend->penetration;
}

void *lr_pairs_create(const struct lr_method_params *params)
{
    const int64_t bytes = lr_grid_num_voxels(params->backend->grid) * (int64_t)sizeof(float);
    struct lr_pairs *pairs = lr_alloc(1, sizeof(*pairs), "projections by pairs", params->backend->log);
    if (pairs == NULL) return NULL;
    pairs->params = *params->backend;
    pairs->ctx = params->ctx;
    pairs->max_window = params->max_window;
    pairs->image = gl_data_buffer(pairs->ctx, "image", bytes, NULL);
    pairs->state = gl_data_buffer(pairs->ctx, "state of pairs", 16, NULL);
    pairs->watch = params->watch;
    if (!pairs->image || !pairs->state || upload_scene(pairs) != LR_OK) {
        lr_pairs_destroy(pairs);
        return NULL;
    }
    return pairs;
}

void lr_pairs_destroy(void *self)
{
    struct lr_pairs *pairs = self;
    if (pairs == NULL) return;
    for (int k = 0; k < LR_NUM_PAIRS_PROGRAMS; k++) gl_program_destroy(pairs->programs[k]);
    lr_merge_programs_finish(&pairs->merge);
    gl_buffers_destroy(pairs->state, pairs->image, pairs->masks.words, pairs->masks.entries, pairs->modules);
    free(pairs);
}

/* --- the method --- */

static lr_status prepare(void *self, bool lists)
{
    (void)lists;
    const bool both = lr_pairs_program(self, LR_PAIRS_BACK) != NULL && lr_pairs_program(self, LR_PAIRS_FORWARD) != NULL;
    return both ? LR_OK : LR_FAILED;
}

const struct lr_method lr_pairs_method = {
    .serves = serves,
    .create = lr_pairs_create,
    .destroy = lr_pairs_destroy,
    .prepare = prepare,
    .project = project,
    .project_lors = project_lors,
    .rows = read_rows,
    .watch = "passes by pairs",
};
