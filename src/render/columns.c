/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "render/columns.h"

#include "base/log.h"
#include "base/mem.h"
#include "common/bindings.h"
#include "model/arrangement.h"
#include "render/columns_scene.h"
#include "render/correspondence.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Module pairs handled together, and their values in both orders. */
struct window {
    struct lr_columns *columns;
    const struct lr_pair_list *list;
    int64_t begin, end; /* in the list */
    int64_t first_value, num_values;
    int most_across, most_along;             /* crystal pairs of a module pair */
    struct gl_buffer *pairs, *file, *column; /* values in the files' and the column order */
};

/* Threads of a group. */
enum { GROUP = 64 };

/* Dispatches of a projection: enough to be stopped and to show progress between them. */
enum { PARTS = 8, PARTS_SOFTWARE = 64 };

/* --- programs --- */

static const struct {
    const char *shader, *define, *label;
} descriptions[LR_NUM_COLUMNS_PROGRAMS] = {
    [LR_COLUMNS_FORWARD] = {"columns_forward.comp", NULL, "forward by columns"},
    [LR_COLUMNS_BACK] = {"columns_back.comp", NULL, "back by columns"},
    [LR_COLUMNS_ONES] = {"columns_back.comp", "ONES", "sensitivity by columns"},
    [LR_COLUMNS_TO_FILE] = {"columns_order.comp", "TO_FILE", "values to file order"},
    [LR_COLUMNS_FROM_FILE] = {"columns_order.comp", NULL, "values to column order"},
};

static struct gl_program *get_program(struct lr_columns *columns, enum lr_columns_program which)
{
    char rays[16], group[16];
    struct gl_define defines[5] = {{"RAYS", rays}, {"COLUMN_GROUP", group}};
    int next = 2;
    if (columns->programs[which] != NULL) {
        return columns->programs[which];
    }
    snprintf(rays, sizeof(rays), "%d", columns->params.rays);
    snprintf(group, sizeof(group), "%d", GROUP);
    if (columns->params.mode == LR_MODE_EXACT) {
        defines[next++].name = "EXACT";
    }
    defines[next].name = descriptions[which].define;
    columns->programs[which] = gl_program_create(
        columns->ctx, &(struct gl_program_params){.compute = descriptions[which].shader,
                                                  .defines = defines,
                                                  .label = descriptions[which].label});
    return columns->programs[which];
}

/* --- windows --- */

static int64_t list_length(const struct window *window)
{
    return window->list->pairs ? window->list->num_pairs : window->columns->params.lors->num_pairs;
}

static int64_t pair_at(const struct window *window, int64_t k)
{
    return window->list->pairs ? window->list->pairs[k] : k;
}

static int64_t values_of(const struct window *window, int64_t k)
{
    const int64_t *offsets = window->columns->params.lors->offsets;
    const int64_t pair = pair_at(window, k);
    return offsets[pair + 1] - offsets[pair];
}

static void measure_pair(struct window *window, int64_t k)
{
    const lr_lors *lors = window->columns->params.lors;
    const int32_t *pair = lors->pairs[pair_at(window, k)];
    const lr_module *i = &lors->scanner->modules[pair[0]], *j = &lors->scanner->modules[pair[1]];
    const int u = i->crystals[0] * j->crystals[0], v = i->crystals[1] * j->crystals[1];
    const int axis = window->columns->axis;
    const bool along_v = fabs(i->v[axis]) > fabs(i->u[axis]);
    const int across = along_v ? u : v, along = along_v ? v : u;
    window->most_across = across > window->most_across ? across : window->most_across;
    window->most_along = along > window->most_along ? along : window->most_along;
}

/* The next pairs whose values fit a buffer; false when none is left. */
static bool next_window(struct window *window, int64_t max_values)
{
    window->begin = window->end;
    window->first_value += window->num_values;
    window->num_values = 0;
    window->most_across = window->most_along = 0;
    while (window->end < list_length(window) &&
           (window->end == window->begin ||
            window->num_values + values_of(window, window->end) <= max_values)) {
        window->num_values += values_of(window, window->end);
        measure_pair(window, window->end++);
    }
    return window->end > window->begin;
}

static struct gl_buffer *make_values(const struct window *window, const char *label,
                                     const float *data)
{
    return gl_buffer_create(
        window->columns->ctx,
        &(struct gl_buffer_params){.label = label,
                                   .size_bytes = window->num_values * (int64_t)sizeof(float),
                                   .data = data});
}

static void close_window(struct window *window)
{
    gl_buffer_destroy(window->column);
    gl_buffer_destroy(window->file);
    gl_buffer_destroy(window->pairs);
    window->column = window->file = window->pairs = NULL;
}

static lr_status open_window(struct window *window, const float *data, bool has_values)
{
    window->pairs =
        lr_columns_upload_pairs(window->columns, window->list, window->begin, window->end);
    if (has_values) {
        window->file = make_values(window, "LOR values in file order",
                                   data ? data + window->first_value : NULL);
        window->column = make_values(window, "LOR values in column order", NULL);
    }
    const bool complete = window->pairs && (!has_values || (window->file && window->column));
    return complete ? LR_OK : LR_FAILED;
}

/* --- passes --- */

static void bind_scene(const struct window *window, struct gl_pass *pass)
{
    const struct lr_columns *columns = window->columns;
    pass->buffers[LR_BIND_COLUMN_MODULES].buffer = columns->modules;
    pass->buffers[LR_BIND_COLUMN_PAIRS].buffer = window->pairs;
    pass->buffers[LR_BIND_COLUMN_POINTS].buffer = columns->points;
    pass->buffers[LR_BIND_MASK_ENTRIES].buffer = columns->mask_entries;
    pass->buffers[LR_BIND_MASK_WORDS].buffer = columns->mask_words;
    pass->buffers[LR_BIND_COLUMN_IMAGE].buffer = columns->image;
    pass->buffers[LR_BIND_OUTPUT].buffer = window->column;
}

/* groups: how many; first: what their numbers begin with. */
static lr_status run_pass(const struct window *window, enum lr_columns_program which,
                          const int groups[3], const int first[2])
{
    struct gl_program *program = get_program(window->columns, which);
    if (program == NULL) {
        return LR_FAILED;
    }
    struct lr_columns_pass uniforms = lr_columns_uniforms(window->columns);
    uniforms.first[0] = first[0];
    uniforms.first[1] = first[1];
    uniforms.count[0] = (int32_t)(window->end - window->begin);
    struct gl_pass pass = {.label = gl_program_label(program),
                           .program = program,
                           .uniforms = &uniforms,
                           .uniform_bytes = sizeof(uniforms),
                           .groups = {groups[0], groups[1], groups[2]},
                           .barriers =
                               GL_SHADER_STORAGE_BARRIER_BIT | GL_BUFFER_UPDATE_BARRIER_BIT};
    bind_scene(window, &pass);
    if (which == LR_COLUMNS_TO_FILE || which == LR_COLUMNS_FROM_FILE) {
        const bool to_file = which == LR_COLUMNS_TO_FILE;
        pass.buffers[LR_BIND_SUMS].buffer = to_file ? window->column : window->file;
        pass.buffers[LR_BIND_OUTPUT].buffer = to_file ? window->file : window->column;
    }
    return gl_pass_run(window->columns->ctx, &pass);
}

static int divide_up(int64_t count, int64_t size)
{
    return (int)((count + size - 1) / size);
}

static lr_status reorder(const struct window *window, enum lr_columns_program which)
{
    const int most = window->most_across * window->most_along;
    const int pairs = (int)(window->end - window->begin);
    const int groups[3] = {divide_up(most, 16 * GROUP), 1, pairs};
    return run_pass(window, which, groups, (const int[2]){0, 0});
}

/* Runs a pass in parts of its last dimension, `count` long. per_group: groups of one. */
struct parts {
    enum lr_columns_program which;
    const char *what; /* for the progress */
    int groups[3];    /* the divided one is replaced */
    int divided;      /* dimension: 1 or 2 */
    int first;        /* which of the pass's `first` counts it */
    int count;
};

static lr_status report(const struct window *window, const char *what, double share)
{
    const int64_t all = list_length(window);
    const double done = (double)window->begin + share * (double)(window->end - window->begin);
    return lr_progress_report(window->columns->params.progress, what, done / (double)all, 1.0);
}

static lr_status run_parts(const struct window *window, const struct parts *parts)
{
    const bool software = gl_context_limits(window->columns->ctx)->software;
    const int size = divide_up(parts->count, software ? PARTS_SOFTWARE : PARTS);
    for (int begin = 0; begin < parts->count; begin += size) {
        int groups[3] = {parts->groups[0], parts->groups[1], parts->groups[2]}, first[2] = {0, 0};
        groups[parts->divided] = parts->count - begin < size ? parts->count - begin : size;
        first[parts->first] = begin;
        LR_TRY(run_pass(window, parts->which, groups, first));
        LR_TRY(
            report(window, parts->what, (double)(begin + groups[parts->divided]) / parts->count));
    }
    return LR_OK;
}

static lr_status forward_pass(const struct window *window)
{
    const struct parts parts = {
        .which = LR_COLUMNS_FORWARD,
        .what = "projecting forward",
        .groups = {window->most_across, divide_up(window->most_along, GROUP), 1},
        .divided = 2,
        .first = 0,
        .count = (int)(window->end - window->begin)};
    return run_parts(window, &parts);
}

static lr_status back_pass(const struct window *window, bool ones)
{
    const struct lr_columns *columns = window->columns;
    const int *size = columns->params.grid->size;
    const int voxels = GROUP / columns->params.samples[columns->axis];
    const struct parts parts = {
        .which = ones ? LR_COLUMNS_ONES : LR_COLUMNS_BACK,
        .what = "projecting back",
        .groups = {size[columns->across[0]], 1, divide_up(size[columns->axis], voxels)},
        .divided = 1,
        .first = 1,
        .count = size[columns->across[1]]};
    return run_parts(window, &parts);
}

/* --- images --- */

/* Copies between the grid's order and the columns' one. */
static void reorder_image(const struct lr_columns *columns, float *grid_order, float *column_order,
                          bool to_columns)
{
    const int *size = columns->params.grid->size;
    const int64_t strides[3] = {1, size[0], (int64_t)size[0] * size[1]};
    const int a = columns->across[0], b = columns->across[1], c = columns->axis;
    float *next = column_order;
    for (int y = 0; y < size[b]; y++) {
        for (int x = 0; x < size[a]; x++) {
            float *voxel = grid_order + x * strides[a] + y * strides[b];
            for (int z = 0; z < size[c]; z++, next++, voxel += strides[c]) {
                if (to_columns) {
                    *next = *voxel;
                } else {
                    *voxel = *next;
                }
            }
        }
    }
}

static float *make_staging(const struct lr_columns *columns)
{
    return lr_alloc(lr_grid_num_voxels(columns->params.grid), sizeof(float), "an image in columns",
                    columns->params.log);
}

static int64_t image_bytes(const struct lr_columns *columns)
{
    return lr_grid_num_voxels(columns->params.grid) * (int64_t)sizeof(float);
}

static lr_status upload_image(struct lr_columns *columns, const float *image)
{
    float *staging = make_staging(columns);
    if (staging == NULL) {
        return LR_FAILED;
    }
    reorder_image(columns, (float *)(uintptr_t)image, staging, true);
    const lr_status status = gl_buffer_upload(columns->image, 0, image_bytes(columns), staging);
    free(staging);
    return status;
}

static lr_status read_image(const struct lr_columns *columns, float *image)
{
    float *staging = make_staging(columns);
    if (staging == NULL) {
        return LR_FAILED;
    }
    const lr_status status = gl_buffer_read(columns->image, 0, image_bytes(columns), staging);
    if (status == LR_OK) {
        reorder_image(columns, image, staging, false);
    }
    free(staging);
    return status;
}

/* --- projections --- */

static lr_status forward_window(struct window *window, float *data)
{
    LR_TRY(open_window(window, NULL, true));
    gl_timer_begin(window->columns->timer);
    LR_TRY(forward_pass(window));
    LR_TRY(reorder(window, LR_COLUMNS_TO_FILE));
    gl_timer_end(window->columns->timer);
    return gl_buffer_read(window->file, 0, window->num_values * (int64_t)sizeof(float),
                          data + window->first_value);
}

lr_status lr_columns_forward(struct lr_columns *columns, const struct lr_pair_list *list,
                             const float *image, float *data)
{
    struct window window = {.columns = columns, .list = list};
    columns->device_seconds = 0.0;
    LR_TRY(upload_image(columns, image));
    while (next_window(&window, columns->max_window)) {
        const lr_status status = forward_window(&window, data);
        close_window(&window);
        LR_TRY(status);
        columns->device_seconds += gl_timer_seconds(columns->timer);
    }
    return LR_OK;
}

static lr_status back_window(struct window *window, const float *data)
{
    LR_TRY(open_window(window, data, data != NULL));
    gl_timer_begin(window->columns->timer);
    if (data != NULL) {
        LR_TRY(reorder(window, LR_COLUMNS_FROM_FILE));
    }
    LR_TRY(back_pass(window, data == NULL));
    gl_timer_end(window->columns->timer);
    return LR_OK;
}

lr_status lr_columns_back(struct lr_columns *columns, const struct lr_pair_list *list,
                          const float *data, float *image)
{
    struct window window = {.columns = columns, .list = list};
    const int64_t most = data != NULL ? columns->max_window : INT32_MAX;
    columns->device_seconds = 0.0;
    gl_buffer_clear(columns->image, 0);
    while (next_window(&window, most)) {
        const lr_status status = back_window(&window, data);
        close_window(&window);
        LR_TRY(status);
        columns->device_seconds += gl_timer_seconds(columns->timer);
    }
    return read_image(columns, image);
}

/* --- life --- */

bool lr_columns_serve(const struct lr_backend_params *params)
{
    const int axis = lr_lors_axial_axis(params->lors);
    return axis >= 0 && params->samples[axis] <= GROUP;
}

static lr_status init(struct lr_columns *columns)
{
    columns->image = gl_buffer_create(
        columns->ctx, &(struct gl_buffer_params){.label = "image in columns",
                                                 .size_bytes = image_bytes(columns)});
    columns->timer = gl_timer_create(columns->ctx, "column passes");
    if (columns->image == NULL || columns->timer == NULL) {
        return LR_FAILED;
    }
    return lr_columns_upload_scene(columns);
}

struct lr_columns *lr_columns_create(struct gl_context *ctx, const struct lr_backend_params *params,
                                     int64_t max_window)
{
    struct lr_columns *columns =
        lr_alloc(1, sizeof(*columns), "projections by columns", params->log);
    if (columns == NULL) {
        return NULL;
    }
    columns->params = *params;
    columns->ctx = ctx;
    columns->axis = lr_lors_axial_axis(params->lors);
    columns->across[0] = columns->axis == 0 ? 1 : 0;
    columns->across[1] = columns->axis == 2 ? 1 : 2;
    columns->max_window = max_window;
    if (init(columns) != LR_OK) {
        lr_columns_destroy(columns);
        return NULL;
    }
    return columns;
}

void lr_columns_destroy(struct lr_columns *columns)
{
    if (columns == NULL) {
        return;
    }
    for (int k = 0; k < LR_NUM_COLUMNS_PROGRAMS; k++) {
        gl_program_destroy(columns->programs[k]);
    }
    gl_timer_destroy(columns->timer);
    gl_buffer_destroy(columns->image);
    gl_buffer_destroy(columns->mask_words);
    gl_buffer_destroy(columns->mask_entries);
    gl_buffer_destroy(columns->points);
    gl_buffer_destroy(columns->modules);
    free(columns);
}
