/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Column projections of single LORs. Sorted LORs are much alike, and so is the work of neighbouring
 * threads. The same bits in every run. */
#include "render/columns/columns.h"

#include "base/log.h"
#include "base/mem.h"
#include "common/bindings.h"
#include "render/columns/image.h"
#include "render/columns/programs.h"
#include "render/columns/scene.h"
#include "render/columns/turns.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* `struct Entry` of shaders/columns/list.glsl, and what stands before the first one. */
struct entry {
    uint32_t pair, number;
    float value;
    uint32_t unused;
};
_Static_assert(sizeof(struct entry) == 16, "the shaders' layout");

struct head {
    uint32_t most_places, unused[3];
};
_Static_assert(sizeof(struct head) == 16, "the shaders' layout");

/* Entries of a window; groups of a dispatch, few enough that a projection can be stopped. */
enum { WINDOW_ENTRIES = 1 << 20, PART_GROUPS = 8192, PART_GROUPS_SOFTWARE = 256 };

/* Some entries of the list. */
struct window {
    struct lr_columns *columns;
    const struct lr_lor_list *list;
    enum lr_columns_program which;
    int64_t begin, end;
    int32_t *pairs; /* [end - begin], module pairs that occur */
    int64_t num_pairs;
    struct gl_buffer *entries, *pair_buffer;
    const struct gl_buffer *image; /* read or added to */
};

/* --- windows --- */

static int64_t window_size(const struct lr_columns *columns)
{
    const int64_t fitting =
        (columns->max_window * (int64_t)sizeof(float) - (int64_t)sizeof(struct head)) / (int64_t)sizeof(struct entry);
    return fitting > WINDOW_ENTRIES ? WINDOW_ENTRIES : fitting > 0 ? fitting : 1;
}

/* Spells the LORs out; a value is halved `exponent` times. */
static void fill_entries(struct window *window, const float *values, int exponent, struct entry *entries)
{
    const int64_t *offsets = window->columns->params.lors->offsets;
    const float empty = window->which == LR_COLUMNS_LIST_BACK ? 1.0f : 0.0f;
    int64_t pair = 0;
    window->num_pairs = 0;
    for (int64_t k = window->begin; k < window->end; k++) {
        const int64_t lor = window->list->lors[k];
        if (window->num_pairs == 0 || lor >= offsets[pair + 1]) {
            while (lor >= offsets[pair + 1]) pair++;
            window->pairs[window->num_pairs++] = (int32_t)pair;
        }
        entries[k - window->begin] = (struct entry){.pair = (uint32_t)(window->num_pairs - 1),
                                                    .number = (uint32_t)(lor - offsets[pair]),
                                                    .value = ldexpf(values != NULL ? values[k] : empty, -exponent)};
    }
}

static lr_status upload_window(struct window *window, const float *values, int exponent)
{
    const struct lr_columns *columns = window->columns;
    const int64_t count = window->end - window->begin;
    struct head *staging = lr_alloc(count + 1, sizeof(struct entry), "a list of LORs", columns->params.log);
    window->pairs = lr_alloc(count, sizeof(*window->pairs), "the pairs of modules of a list", columns->params.log);
    if (staging != NULL && window->pairs != NULL) {
        fill_entries(window, values, exponent, (struct entry *)(void *)(staging + 1));
        window->entries = gl_buffer_create(
            columns->ctx, &(struct gl_buffer_params){.label = "list of LORs",
                                                     .size_bytes = (count + 1) * (int64_t)sizeof(struct entry),
                                                     .data = staging});
        const struct lr_pair_list pairs = {.pairs = window->pairs, .num_pairs = window->num_pairs};
        window->pair_buffer = lr_columns_upload_pairs(columns, &pairs, 0, window->num_pairs, NULL);
    }
    free(staging);
    return window->entries != NULL && window->pair_buffer != NULL ? LR_OK : LR_FAILED;
}

static void close_window(struct window *window)
{
    gl_buffer_destroy(window->pair_buffer);
    gl_buffer_destroy(window->entries);
    free(window->pairs);
    window->pair_buffer = window->entries = NULL;
    window->pairs = NULL;
}

static bool next_window(struct window *window)
{
    const int64_t left = window->list->count - window->end;
    const int64_t most = window_size(window->columns);
    window->begin = window->end;
    window->end += left < most ? left : most;
    return window->end > window->begin;
}

/* --- passes --- */

/* Entries first .. and, of each, places first_place .. end_place - 1. */
struct step {
    int64_t first, count;
    int first_place, end_place;
};

static lr_status run_step(const struct window *window, const struct step *step)
{
    struct lr_columns *columns = window->columns;
    struct gl_program *program = lr_columns_program(columns, window->which);
    if (program == NULL) return LR_FAILED;
    const int in_group = LR_GROUP_SIZE / LR_LIST_SHARE;
    struct lr_columns_pass uniforms = lr_columns_uniforms(columns);
    uniforms.first[0] = (int32_t)step->first;
    uniforms.first[1] = step->first_place;
    uniforms.count[0] = (int32_t)(step->first + step->count);
    uniforms.count[1] = step->end_place;
    struct gl_pass pass = {.label = gl_program_label(program),
                           .program = program,
                           .uniforms = &uniforms,
                           .uniform_bytes = sizeof(uniforms),
                           .groups = {gl_divide_up(step->count, in_group), 1, 1},
                           .barriers = GL_SHADER_STORAGE_BARRIER_BIT | GL_BUFFER_UPDATE_BARRIER_BIT};
    lr_columns_bind_scene(columns, &pass);
    pass.buffers[LR_BIND_COLUMN_PAIRS].buffer = window->pair_buffer;
    pass.buffers[LR_BIND_COLUMN_LIST].buffer = window->entries;
    pass.buffers[LR_BIND_COLUMN_IMAGE].buffer = window->image;
    return gl_pass_run(columns->ctx, &pass);
}

/* Columns of a tube that one dispatch tries. */
static int places_of_step(const struct lr_columns *columns)
{
    if (!lr_columns_ends_loops(columns)) return INT_MAX;
    const int lines = columns->params.mode == LR_MODE_EXACT ? 1 : 2 * columns->params.rays;
    const int64_t turns = 1 + lines * (1 + columns->column_turns);
    const int64_t most = lr_columns_most_turns(columns) / turns;
    return (most > 1 ? (int)most : 1) * LR_LIST_SHARE;
}

/* Goes on until the entry with most columns is done. */
static lr_status run_entries(const struct window *window, struct step *step)
{
    const int places = places_of_step(window->columns);
    struct head head = {0};
    step->first_place = 0;
    step->end_place = places;
    LR_TRY(run_step(window, step));
    if (places == INT_MAX) return LR_OK;
    LR_TRY(gl_buffer_read(window->entries, 0, sizeof(head), &head));
    while (head.most_places > (uint32_t)step->end_place) {
        step->first_place = step->end_place;
        step->end_place += places;
        LR_TRY(run_step(window, step));
    }
    return LR_OK;
}

static lr_status run_window(const struct window *window)
{
    const bool small = gl_context_limits(window->columns->ctx)->small_batches;
    const bool forward = window->which == LR_COLUMNS_LIST_FORWARD;
    const int64_t groups = small ? PART_GROUPS_SOFTWARE : PART_GROUPS / lr_columns_work_of_thread(window->columns) + 1;
    const int64_t size = groups * LR_GROUP_SIZE / LR_LIST_SHARE;
    const int64_t count = window->end - window->begin;
    for (int64_t begin = 0; begin < count; begin += size) {
        struct step step = {.first = begin, .count = count - begin < size ? count - begin : size};
        LR_TRY(run_entries(window, &step));
        LR_TRY(lr_progress_report(window->columns->params.progress, forward ? "projecting forward" : "projecting back",
                                  (double)(window->begin + begin + step.count), (double)window->list->count));
    }
    return LR_OK;
}

static lr_status time_window(const struct window *window)
{
    gl_stopwatch_begin(window->columns->watch);
    const lr_status status = run_window(window);
    gl_stopwatch_end(window->columns->watch);
    return status;
}

/* --- forward --- */

static lr_status read_values(const struct window *window, float *values)
{
    const int64_t count = window->end - window->begin;
    struct entry *entries =
        lr_alloc(count, sizeof(*entries), "the values of a list of LORs", window->columns->params.log);
    if (entries == NULL) return LR_FAILED;
    const lr_status status =
        gl_buffer_read(window->entries, sizeof(struct head), count * (int64_t)sizeof(*entries), entries);
    for (int64_t k = 0; status == LR_OK && k < count; k++) values[window->begin + k] = entries[k].value;
    free(entries);
    return status;
}

static struct lr_columns_task task_of(const struct lr_lor_list *list, int work)
{
    return (struct lr_columns_task){list->lors, list->count * (int64_t)sizeof(*list->lors), work};
}

static lr_status forward_once(struct lr_columns *columns, const struct lr_lor_list *list, const float *image,
                              float *values)
{
    struct window window = {
        .columns = columns, .list = list, .which = LR_COLUMNS_LIST_FORWARD, .image = columns->image};
    gl_stopwatch_reset(columns->watch);
    LR_TRY(image != NULL ? lr_columns_upload_image(columns, image) : LR_OK);
    while (next_window(&window)) {
        lr_status status = upload_window(&window, NULL, 0);
        status = status == LR_OK ? time_window(&window) : status;
        status = status == LR_OK ? read_values(&window, values) : status;
        close_window(&window);
        LR_TRY(status);
    }
    return LR_OK;
}

lr_status lr_columns_forward_lors(void *self, const struct lr_lor_list *list, const float *image, float *values)
{
    const struct lr_columns_task task = task_of(list, LR_COLUMNS_LIST_FORWARD);
    lr_status status;
    do {
        status = forward_once(self, list, image, values);
    } while (lr_columns_go_again(self, &task, &status));
    return status;
}

/* --- back --- */

static lr_status add_windows(struct lr_columns *columns, const struct lr_lor_list *list, const float *values,
                             const struct lr_fixed *sums)
{
    struct window window = {.columns = columns, .list = list, .which = LR_COLUMNS_LIST_BACK, .image = sums->buffer};
    while (next_window(&window)) {
        lr_status status = upload_window(&window, values, sums->exponent);
        status = status == LR_OK ? time_window(&window) : status;
        close_window(&window);
        LR_TRY(status);
    }
    return LR_OK;
}

/* Until no sum overflows: they do not as long as a point's elements add up to less than 4, and a
 * probability does to 1. Sampled lines may exceed it for points within a crystal of a face. */
static lr_status fill_sums(struct lr_columns *columns, const struct lr_lor_list *list, const float *values,
                           struct lr_fixed *sums)
{
    int exponent = values != NULL ? lr_fixed_exponent(values, list->count) : 0;
    do {
        LR_TRY(lr_fixed_init(sums, columns->ctx, lr_grid_num_voxels(columns->params.grid), exponent));
        lr_status status = add_windows(columns, list, values, sums);
        status = status == LR_OK ? lr_fixed_overflowed(sums, &sums->overflowed) : status;
        if (status != LR_OK || sums->overflowed) lr_fixed_finish(sums);
        LR_TRY(status);
        exponent += LR_FIXED_STEP;
    } while (sums->overflowed);
    return LR_OK;
}

static lr_status back_once(struct lr_columns *columns, const struct lr_lor_list *list, const float *values,
                           float *image)
{
    struct lr_fixed sums;
    gl_stopwatch_reset(columns->watch);
    LR_TRY(fill_sums(columns, list, values, &sums));
    const lr_status status =
        image != NULL ? lr_columns_read_sums(columns, &sums, image) : lr_columns_take_sums(columns, &sums);
    lr_fixed_finish(&sums);
    return status;
}

lr_status lr_columns_back_lors(void *self, const struct lr_lor_list *list, const float *values, float *image)
{
    const struct lr_columns_task task = task_of(list, LR_COLUMNS_LIST_BACK);
    lr_status status;
    do {
        status = back_once(self, list, values, image);
    } while (lr_columns_go_again(self, &task, &status));
    return status;
}
