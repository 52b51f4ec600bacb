/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Projections of single LORs, and matrix rows, by the columns method. LORs are sorted, so that neighbouring threads
 * have similar work. Results have the same bits in every run. */
#include "base/log.h"
#include "base/mem.h"
#include "common/bindings.h"
#include "correspondence/compute/columns/columns.h"
#include "correspondence/compute/rows/point_lists.h"
#include "correspondence/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* `struct Entry` of shaders/correspondence/columns/list.glsl. */
struct entry {
    uint32_t pair, number;
    float value;
    uint32_t unused;
};
_Static_assert(sizeof(struct entry) == 16, "the shaders' layout");

/* A window has at most WINDOW_ENTRIES entries, a dispatch at most PART_GROUPS workgroups. */
enum { WINDOW_ENTRIES = 1 << 20, PART_GROUPS = 8192, PART_GROUPS_SOFTWARE = 256 };

/* A window, which is entries `begin` to end - 1 of the list. */
struct window {
    struct lr_columns *columns;
    const struct lr_lor_list *list;
    enum lr_columns_program which;
    int64_t begin, end;
    int32_t *pairs; /* [end - begin]: module pairs that occur, num_pairs of them */
    int64_t num_pairs;
    struct gl_buffer *entries, *pair_buffer;
    const struct gl_buffer *image; /* read by forward; back adds to it */
};

static lr_status upload_window(struct window *window, const float *values, int exponent)
{
    const struct lr_columns *columns = window->columns;
    const int64_t count = window->end - window->begin;
    struct entry *staging = lr_alloc(count, sizeof(*staging), "a list of LORs", columns->params.log);
    window->pairs = lr_alloc(count, sizeof(*window->pairs), "the pairs of modules of a list", columns->params.log);
    if (staging != NULL && window->pairs != NULL) {
        /* Each entry has the LOR's pair, its number within the pair, and its value times 2^-exponent. */
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

        window->entries = lr_data_buffer(columns->ctx, "list of LORs", count * (int64_t)sizeof(*staging), staging);
        const struct lr_pair_list pairs = {.pairs = window->pairs, .num_pairs = window->num_pairs};
        window->pair_buffer = lr_columns_upload_pairs(columns, &pairs, 0, window->num_pairs, NULL);
    }
    free(staging);
    return window->entries != NULL && window->pair_buffer != NULL ? LR_OK : LR_FAILED;
}

/* Runs a window in several passes. Each is short enough that a projection can be stopped. */
static lr_status run_window(const struct window *window)
{
    struct lr_columns *columns = window->columns;
    const bool small = gl_context_limits(columns->ctx)->small_batches;
    const bool forward = window->which == LR_COLUMNS_LIST_FORWARD;
    const int in_group = LR_GROUP_SIZE / LR_LIST_SHARE;
    const int64_t groups = small ? PART_GROUPS_SOFTWARE : PART_GROUPS / lr_columns_work_of_thread(columns) + 1;
    const int64_t size = groups * in_group, count = window->end - window->begin;
    struct gl_program *program = lr_columns_program(columns, window->which);
    if (program == NULL) return LR_FAILED;
    struct lr_columns_pass uniforms = lr_columns_uniforms(columns);
    struct gl_pass pass = gl_pass_compute(program, &uniforms, sizeof(uniforms), (const int[3]){1, 1, 1});
    lr_columns_bind_scene(columns, &pass);
    pass.buffers[LR_BIND_COLUMN_PAIRS].buffer = window->pair_buffer;
    pass.buffers[LR_BIND_COLUMN_LIST].buffer = window->entries;
    pass.buffers[LR_BIND_COLUMN_IMAGE].buffer = window->image;

    lr_status status = LR_OK;
    gl_stopwatch_begin(columns->watch);
    for (int64_t begin = 0; begin < count && status == LR_OK; begin += size) {
        const int64_t end = count - begin < size ? count : begin + size;
        uniforms.first[0] = (int32_t)begin;
        uniforms.count[0] = (int32_t)end;
        pass.groups[0] = gl_divide_up(end - begin, in_group);

        status = gl_pass_run(columns->ctx, &pass);
        if (status == LR_OK)
            status = lr_progress_report(columns->params.progress, forward ? "projecting forward" : "projecting back",
                                        (double)(window->begin + end), (double)window->list->count);
    }
    gl_stopwatch_end(columns->watch);
    return status;
}

/* Projects a list window by window. values: input of back, multiplied by 2^-exponent; NULL = ones. found: output of
 * forward; NULL in back. */
static lr_status run_windows(struct window *window, const float *values, int exponent, float *found)
{
    struct lr_columns *columns = window->columns;
    const int64_t fitting = columns->max_window * (int64_t)sizeof(float) / (int64_t)sizeof(struct entry);
    const int64_t most = fitting > WINDOW_ENTRIES ? WINDOW_ENTRIES : fitting > 0 ? fitting : 1;
    lr_status status = LR_OK;
    for (int64_t begin = 0; begin < window->list->count && status == LR_OK; begin += most) {
        const int64_t left = window->list->count - begin, count = left < most ? left : most;
        window->begin = begin;
        window->end = begin + count;
        status = upload_window(window, values, exponent);
        if (status == LR_OK) status = run_window(window);
        if (status == LR_OK && found != NULL) {
            struct entry *entries =
                lr_alloc(count, sizeof(*entries), "the values of a list of LORs", columns->params.log);
            status = entries == NULL ? LR_FAILED
                                     : gl_buffer_read(window->entries, 0, count * (int64_t)sizeof(*entries), entries);
            for (int64_t k = 0; status == LR_OK && k < count; k++) found[begin + k] = entries[k].value;
            free(entries);
        }
        gl_buffer_destroy(window->pair_buffer);
        gl_buffer_destroy(window->entries);
        free(window->pairs);
        window->pair_buffer = window->entries = NULL;
        window->pairs = NULL;
    }
    return status;
}

/* --- forward --- */

lr_status lr_columns_forward_lors(void *self, const struct lr_lor_list *list, const float *image, float *values)
{
    struct lr_columns *columns = self;
    struct window window = {
        .columns = columns, .list = list, .which = LR_COLUMNS_LIST_FORWARD, .image = columns->image};
    gl_stopwatch_reset(columns->watch);
    LR_TRY(image != NULL ? lr_columns_upload_image(columns, image) : LR_OK);
    LR_TRY(run_windows(&window, NULL, 0, values));

    return lr_columns_check_loops(columns);
}

/* --- back --- */

/* Repeats the projection, with larger exponents, until no sum overflows. The first exponent is enough if the
 * elements of each point add up to less than 4. Probabilities add up to at most 1, but elements of sampled lines may
 * add up to more if the point is within one crystal's width of a face. */
lr_status lr_columns_back_lors(void *self, const struct lr_lor_list *list, const float *values, float *image)
{
    struct lr_columns *columns = self;
    struct lr_fixed sums;
    int exponent = values != NULL ? lr_fixed_exponent(values, list->count) : 0;
    gl_stopwatch_reset(columns->watch);
    do {
        LR_TRY(lr_fixed_init(&sums, columns->ctx, lr_grid_num_voxels(columns->params.grid), exponent));
        struct window window = {.columns = columns, .list = list, .which = LR_COLUMNS_LIST_BACK, .image = sums.buffer};
        lr_status status = run_windows(&window, values, sums.exponent, NULL);
        status = status == LR_OK ? lr_fixed_overflowed(&sums, &sums.overflowed) : status;
        if (status != LR_OK || sums.overflowed) lr_fixed_finish(&sums);
        LR_TRY(status);
        exponent += LR_FIXED_STEP;
    } while (sums.overflowed);
    const lr_status status =
        image != NULL ? lr_columns_read_image(columns, &sums, image) : lr_columns_take_sums(columns, &sums);
    lr_fixed_finish(&sums);
    return status == LR_OK ? lr_columns_check_loops(columns) : status;
}

/* --- matrix rows --- */

/* A point as the shader reads it: two coordinates across the columns and one along them. Each is a float and its
 * rounding error. */
typedef float point_parts[3][2];

/* There are at most this many runs of consecutive module pairs. If more are needed, the last run also covers the
 * unwanted pairs in between. */
enum { MOST_RUNS = 64 };

/* State of one call of lr_columns_read_rows. */
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

/* Lists the elements of some points with the pairs of all runs. A pass takes as many pairs as most_rounds allows. */
static lr_status run_points(void *user, const struct lr_point_list *list)
{
    const struct listing *listing = user;
    struct lr_columns *columns = listing->columns;
    struct gl_program *program = lr_columns_program(columns, listing->which);
    if (program == NULL) return LR_FAILED;
    for (int k = 0; k < listing->num_runs; k++) {
        const int *run = listing->runs[k];
        for (int pairs[2] = {run[0], run[0]}; pairs[0] < run[1]; pairs[0] = pairs[1]) {
            /* `rounds` bounds the loop rounds of a thread of correspondence/columns/rows.comp. */
            int64_t rounds = 0;
            if (columns->most_rounds == INT64_MAX) pairs[1] = run[1];
            while (pairs[1] < run[1] && (pairs[1] == pairs[0] || rounds <= columns->most_rounds)) {
                const int32_t *modules = columns->params.lors->pairs[pairs[1]++];
                int i[2], j[2];
                lr_columns_count_crystals(columns, modules[0], i);
                lr_columns_count_crystals(columns, modules[1], j);
                const int strips = i[0] + j[0];
                rounds +=
                    4 + gl_divide_up(strips, columns->strips) + gl_divide_up(strips, LR_GROUP_SIZE) +
                    gl_divide_up(i[0], LR_GROUP_SIZE) * (int64_t)(1 + j[0]) +
                    gl_divide_up((int64_t)strips * i[1], LR_GROUP_SIZE) * (int64_t)(1 + j[1] * columns->element_rounds);
            }

            struct lr_columns_pass uniforms = lr_columns_uniforms(columns);
            for (int axis = 0; axis < 3; axis++) uniforms.num_points[axis] = uniforms.num_samples[axis] = 1;
            uniforms.first[0] = pairs[0];
            uniforms.first[1] = list->first_point;
            uniforms.count[0] = pairs[1];
            uniforms.count[1] = (int32_t)list->capacity;
            struct gl_pass pass = gl_pass_compute(program, &uniforms, sizeof(uniforms),
                                                  (const int[3]){list->end_point - list->first_point, 1, 1});
            lr_columns_bind_scene(columns, &pass);
            pass.buffers[LR_BIND_COLUMN_PAIRS].buffer = listing->pairs;
            pass.buffers[LR_BIND_COLUMN_POINTS].buffer = list->points;
            pass.buffers[LR_BIND_OUTPUT].buffer = list->list;
            LR_TRY(gl_pass_run(columns->ctx, &pass));
        }
    }
    return LR_OK;
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

    int(*runs)[2] = listing.runs;
    if (rows->pairs == NULL) {
        runs[0][1] = (int)columns->params.lors->num_pairs;
        listing.num_runs = 1;
    }
    for (int64_t k = 0; rows->pairs != NULL && k < rows->num_pairs; k++) {
        const int pair = rows->pairs[k], last = listing.num_runs - 1;
        if (last >= 0 && (runs[last][1] == pair || last == MOST_RUNS - 1)) {
            runs[last][1] = pair + 1;
        } else {
            runs[last + 1][0] = pair;
            runs[last + 1][1] = pair + 1;
            listing.num_runs++;
        }
    }

    listing.pairs = lr_columns_upload_pairs(columns, &all, 0, columns->params.lors->num_pairs, NULL);
    const lr_status status = listing.pairs != NULL ? lr_point_lists_read_rows(&lister, rows, sink) : LR_FAILED;
    gl_buffer_destroy(listing.pairs);
    return status == LR_OK ? lr_columns_check_loops(columns) : status;
}
