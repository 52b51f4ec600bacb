/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Column projections of single LORs. Sorted LORs are much alike, and so is the work of neighbouring
 * threads. The same bits in every run. */
#include "base/log.h"
#include "base/mem.h"
#include "common/bindings.h"
#include "render/columns/columns.h"
#include "render/plan.h"
#include "render/rows/point_lists.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* `struct Entry` of shaders/columns/list.glsl. */
struct entry {
    uint32_t pair, number;
    float value;
    uint32_t unused;
};
_Static_assert(sizeof(struct entry) == 16, "the shaders' layout");

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

static lr_status upload_window(struct window *window, const float *values, int exponent)
{
    const struct lr_columns *columns = window->columns;
    const int64_t count = window->end - window->begin;
    struct entry *staging = lr_alloc(count, sizeof(*staging), "a list of LORs", columns->params.log);
    window->pairs = lr_alloc(count, sizeof(*window->pairs), "the pairs of modules of a list", columns->params.log);
    if (staging != NULL && window->pairs != NULL) {
        /* Spells the LORs out; a value is halved `exponent` times. */
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
            staging[k - window->begin] = (struct entry){.pair = (uint32_t)(window->num_pairs - 1),
                                                        .number = (uint32_t)(lor - offsets[pair]),
                                                        .value = ldexpf(values != NULL ? values[k] : empty, -exponent)};
        }

        window->entries =
            gl_buffer_create(columns->ctx, &(struct gl_buffer_params){.label = "list of LORs",
                                                                      .size_bytes = count * (int64_t)sizeof(*staging),
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
    const int64_t fitting = window->columns->max_window * (int64_t)sizeof(float) / (int64_t)sizeof(struct entry);
    const int64_t most = fitting > WINDOW_ENTRIES ? WINDOW_ENTRIES : fitting > 0 ? fitting : 1;

    window->begin = window->end;
    window->end += left < most ? left : most;
    return window->end > window->begin;
}

/* --- passes --- */

static lr_status run_entries(const struct window *window, int64_t first, int64_t count)
{
    struct lr_columns *columns = window->columns;
    struct gl_program *program = lr_columns_program(columns, window->which);
    if (program == NULL) return LR_FAILED;
    const int in_group = LR_GROUP_SIZE / LR_LIST_SHARE;
    struct lr_columns_pass uniforms = lr_columns_uniforms(columns);
    uniforms.first[0] = (int32_t)first;
    uniforms.count[0] = (int32_t)(first + count);
    struct gl_pass pass = {.label = gl_program_label(program),
                           .program = program,
                           .uniforms = &uniforms,
                           .uniform_bytes = sizeof(uniforms),
                           .groups = {gl_divide_up(count, in_group), 1, 1},
                           .barriers = GL_SHADER_STORAGE_BARRIER_BIT | GL_BUFFER_UPDATE_BARRIER_BIT};
    lr_columns_bind_scene(columns, &pass);
    pass.buffers[LR_BIND_COLUMN_PAIRS].buffer = window->pair_buffer;
    pass.buffers[LR_BIND_COLUMN_LIST].buffer = window->entries;
    pass.buffers[LR_BIND_COLUMN_IMAGE].buffer = window->image;
    return gl_pass_run(columns->ctx, &pass);
}

static lr_status run_window(const struct window *window)
{
    const bool small = gl_context_limits(window->columns->ctx)->small_batches;
    const bool forward = window->which == LR_COLUMNS_LIST_FORWARD;
    const int64_t groups = small ? PART_GROUPS_SOFTWARE : PART_GROUPS / lr_columns_work_of_thread(window->columns) + 1;
    const int64_t size = groups * LR_GROUP_SIZE / LR_LIST_SHARE;
    const int64_t count = window->end - window->begin;
    for (int64_t begin = 0; begin < count; begin += size) {
        const int64_t here = count - begin < size ? count - begin : size;
        LR_TRY(run_entries(window, begin, here));
        LR_TRY(lr_progress_report(window->columns->params.progress, forward ? "projecting forward" : "projecting back",
                                  (double)(window->begin + begin + here), (double)window->list->count));
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
    const lr_status status = gl_buffer_read(window->entries, 0, count * (int64_t)sizeof(*entries), entries);
    for (int64_t k = 0; status == LR_OK && k < count; k++) values[window->begin + k] = entries[k].value;
    free(entries);
    return status;
}

lr_status lr_columns_forward_lors(void *self, const struct lr_lor_list *list, const float *image, float *values)
{
    struct lr_columns *columns = self;
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
    return lr_columns_check_loops(columns);
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

/* Repeats until no sum overflows: they do not as long as a point's elements add up to less than 4, and a
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

lr_status lr_columns_back_lors(void *self, const struct lr_lor_list *list, const float *values, float *image)
{
    struct lr_columns *columns = self;
    struct lr_fixed sums;
    gl_stopwatch_reset(columns->watch);
    LR_TRY(fill_sums(columns, list, values, &sums));
    const lr_status status =
        image != NULL ? lr_columns_read_sums(columns, &sums, image) : lr_columns_take_sums(columns, &sums);
    lr_fixed_finish(&sums);
    return status == LR_OK ? lr_columns_check_loops(columns) : status;
}

/* --- matrix rows --- */

/* A point as the shader sees it: two coordinates across and one along, each a float and what its
 * rounding left over. */
typedef float point_parts[3][2];

/* Runs of consecutive module pairs that are asked for one by one; scattered ones are computed with
 * those between them. */
enum { MOST_RUNS = 64 };

/* State of one call. */
struct listing {
    struct lr_columns *columns;
    int runs[MOST_RUNS][2]; /* pairs begin .. end-1 */
    int num_runs;
    enum lr_columns_program which;
    struct gl_buffer *pairs;
};

static void place_point(void *user, const double point_mm[3], void *point)
{
    const struct lr_columns *columns = ((const struct listing *)user)->columns;
    const int axes[3] = {columns->across[0], columns->across[1], columns->axis};
    point_parts parts;
    for (int k = 0; k < 3; k++) lr_split_float(point_mm[axes[k]], &parts[k][0], &parts[k][1]);
    memcpy(point, parts, sizeof(parts));
}

/* Rounds of loops of a thread at a pair of columns/rows.comp, at most. */
static int64_t rounds_of_rows(const struct lr_columns *columns, int pair)
{
    const int32_t *modules = columns->params.lors->pairs[pair];
    int i[2], j[2];
    lr_columns_count_crystals(columns, modules[0], i);
    lr_columns_count_crystals(columns, modules[1], j);
    const int strips = i[0] + j[0];
    return 4 + gl_divide_up(strips, columns->strips) + gl_divide_up(strips, LR_GROUP_SIZE) +
           gl_divide_up(i[0], LR_GROUP_SIZE) * (int64_t)(1 + j[0]) +
           gl_divide_up((int64_t)strips * i[1], LR_GROUP_SIZE) * (int64_t)(1 + j[1] * columns->element_rounds);
}

/* End of the module pairs from `begin` on that one pass may visit. */
static int end_of_pairs(const struct lr_columns *columns, int begin)
{
    const int num_pairs = (int)columns->params.lors->num_pairs;
    if (columns->most_rounds == INT64_MAX) return num_pairs;
    int64_t rounds = 0;
    int end = begin;
    while (end < num_pairs && (end == begin || rounds <= columns->most_rounds))
        rounds += rounds_of_rows(columns, end++);
    return end;
}

/* Points of a list with pairs begin .. end-1. */
static lr_status run_share(const struct listing *listing, const struct lr_point_list *list, const int pairs[2])
{
    struct lr_columns *columns = listing->columns;
    struct gl_program *program = lr_columns_program(columns, listing->which);
    if (program == NULL) return LR_FAILED;
    struct lr_columns_pass uniforms = lr_columns_uniforms(columns);
    for (int k = 0; k < 3; k++) uniforms.num_points[k] = uniforms.num_samples[k] = 1;
    uniforms.first[0] = pairs[0];
    uniforms.first[1] = list->first_point;
    uniforms.count[0] = pairs[1];
    uniforms.count[1] = (int32_t)list->capacity;
    struct gl_pass pass = {.label = gl_program_label(program),
                           .program = program,
                           .uniforms = &uniforms,
                           .uniform_bytes = sizeof(uniforms),
                           .groups = {list->end_point - list->first_point, 1, 1},
                           .barriers = GL_SHADER_STORAGE_BARRIER_BIT | GL_BUFFER_UPDATE_BARRIER_BIT};
    lr_columns_bind_scene(columns, &pass);
    pass.buffers[LR_BIND_COLUMN_PAIRS].buffer = listing->pairs;
    pass.buffers[LR_BIND_COLUMN_POINTS].buffer = list->points;
    pass.buffers[LR_BIND_OUTPUT].buffer = list->list;
    return gl_pass_run(columns->ctx, &pass);
}

static lr_status run_pairs(const struct listing *listing, const struct lr_point_list *list, const int run[2])
{
    int pairs[2] = {run[0], run[0]};
    while (pairs[1] < run[1]) {
        pairs[0] = pairs[1];
        const int end = end_of_pairs(listing->columns, pairs[0]);
        pairs[1] = end < run[1] ? end : run[1];
        LR_TRY(run_share(listing, list, pairs));
    }
    return LR_OK;
}

/* Lists the elements of some points with the pairs that are wanted. */
static lr_status run_points(void *user, const struct lr_point_list *list)
{
    const struct listing *listing = user;
    for (int k = 0; k < listing->num_runs; k++) LR_TRY(run_pairs(listing, list, listing->runs[k]));
    return LR_OK;
}

static void find_runs(struct listing *listing, const struct lr_rows *rows)
{
    int(*runs)[2] = listing->runs;
    if (rows->pairs == NULL) {
        runs[0][1] = (int)listing->columns->params.lors->num_pairs;
        listing->num_runs = 1;
        return;
    }
    for (int64_t k = 0; k < rows->num_pairs; k++) {
        const int pair = rows->pairs[k], last = listing->num_runs - 1;
        if (last >= 0 && (runs[last][1] == pair || last == MOST_RUNS - 1)) {
            runs[last][1] = pair + 1;
        } else {
            runs[last + 1][0] = pair;
            runs[last + 1][1] = pair + 1;
            listing->num_runs++;
        }
    }
}

lr_status lr_columns_read_rows(void *self, const struct lr_rows *rows, const lr_row_sink *sink)
{
    struct lr_columns *columns = self;
    const struct lr_pair_list all = {0};
    struct listing listing = {.columns = columns, .which = rows->grid ? LR_COLUMNS_ROWS : LR_COLUMNS_POINT_ROWS};
    const struct lr_point_lister lister = {.ctx = columns->ctx,
                                           .params = &columns->params,
                                           .merge = &columns->merge,
                                           .max_window = columns->max_window,
                                           .point_bytes = sizeof(point_parts),
                                           .place = place_point,
                                           .run = run_points,
                                           .user = &listing};
    find_runs(&listing, rows);
    listing.pairs = lr_columns_upload_pairs(columns, &all, 0, columns->params.lors->num_pairs, NULL);
    const lr_status status = listing.pairs != NULL ? lr_point_lists_read_rows(&lister, rows, sink) : LR_FAILED;
    gl_buffer_destroy(listing.pairs);
    return status == LR_OK ? lr_columns_check_loops(columns) : status;
}
