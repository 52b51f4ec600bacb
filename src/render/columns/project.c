/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Projections by columns, window by window. */
#include "render/columns/columns.h"

#include "base/log.h"
#include "base/mem.h"
#include "common/bindings.h"
#include "model/lors/place.h"
#include "render/values.h"

#include <stdlib.h>
#include <string.h>

enum { GROUP = LR_GROUP_SIZE }; /* threads that reorder */

/* A dispatch is to be large enough to fill a device, and short enough that a projection can be
 * stopped and shows progress. */
enum { GROUPS_OF_A_PART = 1 << 17, PARTS_SOFTWARE = 64 };

/* Sample points of a voxel across that a thread visits in one dispatch. */
enum { POINTS_OF_A_PART = 4 };

static const char lor_label[] = "LOR values in LOR order";

/* --- windows --- */

static int modules_like(const struct lr_columns *columns, int module)
{
    const int stack = columns->stacks->stack_of[module];
    return stack < 0 ? 1 : columns->stacks->count[stack];
}

/* True if pair k goes into the window: what is in it may not grow too large, and pairs of the same
 * stacks stay together. */
static bool goes_in(const struct lr_window *window, int64_t k)
{
    if (k == window->part.begin) return true;
    if (window->sources != NULL && lr_columns_same_stacks(window->columns, lr_pair_window_pair(&window->part, k - 1),
                                                          lr_pair_window_pair(&window->part, k)))
        return true;
    return window->part.num_values + lr_pair_window_size(&window->part, k) <= window->columns->max_window &&
           2 * window->rounds <= window->most_rounds;
}

bool lr_window_next(struct lr_window *window)
{
    lr_pair_window_leave(&window->part);
    window->most_across = window->most_along = window->most_stacked = 0;
    window->rounds = 0;
    while (window->part.end < window->part.num_pairs && goes_in(window, window->part.end)) {
        const int32_t *pair = window->columns->params.lors->pairs[lr_pair_window_pair(&window->part, window->part.end)];
        int i[2], j[2];
        lr_columns_count_crystals(window->columns, pair[0], i);
        lr_columns_count_crystals(window->columns, pair[1], j);
        window->most_across = i[0] * j[0] > window->most_across ? i[0] * j[0] : window->most_across;
        window->most_along = i[1] * j[1] > window->most_along ? i[1] * j[1] : window->most_along;
        i[1] *= modules_like(window->columns, pair[0]);
        j[1] *= modules_like(window->columns, pair[1]);
        window->most_stacked = i[1] * j[1] > window->most_stacked ? i[1] * j[1] : window->most_stacked;
        const int64_t strip_rounds = 4 + 3 * (int64_t)(i[1] + j[1]) * window->columns->element_rounds;
        window->rounds +=
            50 + (i[0] + j[0]) * strip_rounds +
            (window->columns->params.mode == LR_MODE_SAMPLED
                 ? 2 * window->columns->params.rays * (int64_t)(i[0] + j[0]) * i[1] * (window->columns->params.rays + 3)
                 : 0);

        lr_pair_window_take(&window->part);
    }
    return window->part.end > window->part.begin;
}

struct lr_window lr_window_begin(struct lr_columns *columns, const struct lr_pair_list *list,
                                 const struct lr_stack_order *order)
{
    const struct lr_pair_list *taken = order != NULL ? &order->list : list;
    return (struct lr_window){.columns = columns,
                              .list = taken,
                              .part = lr_pair_window_begin(columns->params.lors, taken->pairs, taken->num_pairs),
                              .sources = order != NULL ? order->sources : NULL,
                              .num_sources = order != NULL ? order->num_sources : 0,
                              .most_rounds = INT64_MAX};
}

static struct gl_buffer *make_values(const struct lr_window *window, const char *label, int64_t count,
                                     const lr_vector *data)
{
    return lr_values_buffer(window->columns->ctx, label, count, data);
}

/* Forward, LORs that are left out keep a 0. */
static struct gl_buffer *make_by_column(const struct lr_window *window, const char *label, int64_t count,
                                        bool is_forward)
{
    struct gl_buffer *values = make_values(window, label, count, NULL);
    if (values != NULL && is_forward && window->list->interleave > 1) gl_buffer_clear(values, 0);
    return values;
}

void lr_window_close(struct lr_window *window)
{
    gl_buffer_destroy(window->by_column);
    gl_buffer_destroy(window->by_lor);
    gl_buffer_destroy(window->pairs);
    gl_buffer_destroy(window->stacks.pairs);
    gl_buffer_destroy(window->stacks.members);
    window->stacks = (struct lr_stack_buffers){0};
    window->by_column = window->by_lor = window->pairs = NULL;
    window->lor_order = (struct gl_range){0};
}

/* The values of pair k of the list. */
static lr_vector values_at(const struct lr_window *window, const lr_vector *data, int64_t k)
{
    return lr_vector_part(data, window->sources[k], lr_pair_window_size(&window->part, k));
}

/* The values of the window's pairs, one pair after the other. */
static struct gl_buffer *collect_on_device(const struct lr_window *window, const lr_vector *data)
{
    struct gl_buffer *by_lor = make_values(window, lor_label, window->part.num_values, NULL);
    int64_t at = 0;
    for (int64_t k = window->part.begin; by_lor != NULL && k < window->part.end; k++) {
        const lr_vector values = values_at(window, data, k);
        if (lr_values_put(&values, by_lor, at * (int64_t)sizeof(float)) != LR_OK) {
            gl_buffer_destroy(by_lor);
            by_lor = NULL;
        }
        at += values.count;
    }
    return by_lor;
}

static struct gl_buffer *collect_values(const struct lr_window *window, const lr_vector *data)
{
    if (data->values == NULL) return collect_on_device(window, data);
    float *values =
        lr_alloc(window->part.num_values, sizeof(*values), "a window of LOR values", window->columns->params.log);
    float *next = values;
    for (int64_t k = window->part.begin; values != NULL && k < window->part.end; k++) {
        const lr_vector from = values_at(window, data, k);
        memcpy(next, from.values, (size_t)from.count * sizeof(*values));
        next += from.count;
    }
    const lr_vector collected = lr_vector_of_floats(values, window->part.num_values);
    struct gl_buffer *by_lor =
        values == NULL ? NULL : make_values(window, lor_label, window->part.num_values, &collected);
    free(values);
    return by_lor;
}

/* The window's part of the data. */
static lr_vector own_values(const struct lr_window *window, const lr_vector *data)
{
    return lr_vector_part(data, window->part.first_value, window->part.num_values);
}

/* The values where they are, at the backend's place. */
static bool find_in_place(const struct lr_window *window, const lr_vector *values, struct gl_range *found)
{
    if (values->values != NULL) return false;
    const struct lr_vector_range range = lr_vector_gl_range(values);
    *found = (struct gl_range){range.buffer, range.offset, range.bytes};
    return range.bytes > 0 && range.offset % gl_context_limits(window->columns->ctx)->storage_alignment == 0;
}

/* `values` are those of the window, one after the other, or NULL where it has them from several places. */
static lr_status open_lor_order(struct lr_window *window, const struct lr_window_data *data, const lr_vector *values)
{
    if (values != NULL && find_in_place(window, values, &window->lor_order)) return LR_OK;
    const int64_t count = values != NULL ? values->count : window->part.num_values;
    window->by_lor = data->is_written ? make_values(window, lor_label, count, NULL)
                     : values != NULL ? make_values(window, lor_label, count, values)
                                      : collect_values(window, data->values);
    window->lor_order = (struct gl_range){.buffer = window->by_lor};
    return window->by_lor != NULL ? LR_OK : LR_FAILED;
}

lr_status lr_window_open(struct lr_window *window, const struct lr_window_data *data)
{
    window->pairs = lr_columns_upload_pairs(window->columns, window->list, window->part.begin, window->part.end, NULL);
    window->by_column = make_by_column(window, "LOR values in column order", window->part.num_values, data->is_written);
    if (data->values != NULL) {
        const lr_vector values = own_values(window, data->values);
        LR_TRY(open_lor_order(window, data, &values));
    }
    return window->pairs && window->by_column ? LR_OK : LR_FAILED;
}

/* True if the window has all pairs and its values fit as they stand in the data. */
static bool is_whole(const struct lr_window *window)
{
    return window->part.begin == 0 && window->part.end == window->part.num_pairs &&
           window->num_sources <= window->columns->max_window;
}

static lr_status open_file(struct lr_window *window, const struct lr_window_data *data)
{
    if (!is_whole(window)) return open_lor_order(window, data, NULL);
    const lr_vector values = lr_vector_part(data->values, 0, window->num_sources);
    return open_lor_order(window, data, &values);
}

lr_status lr_window_open_stacks(struct lr_window *window, const struct lr_window_data *data)
{
    const struct lr_columns *columns = window->columns;
    const int64_t range[2] = {window->part.begin, window->part.end};
    window->pairs = lr_columns_upload_pairs(columns, window->list, window->part.begin, window->part.end,
                                            is_whole(window) ? window->sources : NULL);
    LR_TRY(data->values != NULL ? open_file(window, data) : LR_OK);
    LR_TRY(lr_columns_upload_stacks(columns, window->list, range, &window->stacks));
    window->by_column =
        make_by_column(window, "LOR values in stack order", window->stacks.num_values, data->is_written);
    return window->pairs && window->by_column ? LR_OK : LR_FAILED;
}

/* Copies the values in LOR order to where they belong. */
static lr_status window_read(const struct lr_window *window, const lr_vector *data)
{
    if (window->by_lor == NULL) /* they were written where they belong */
        return LR_OK;
    if (window->sources == NULL || is_whole(window)) {
        lr_vector values =
            window->sources != NULL ? lr_vector_part(data, 0, window->num_sources) : own_values(window, data);
        return lr_values_get(window->by_lor, 0, &values);
    }
    int64_t at = 0;
    for (int64_t k = window->part.begin; k < window->part.end; k++) {
        lr_vector values = values_at(window, data, k);
        LR_TRY(lr_values_get(window->by_lor, at * (int64_t)sizeof(float), &values));
        at += values.count;
    }
    return LR_OK;
}

/* --- passes --- */

/* One dispatch: its groups, where their numbers begin, and back the points across of each
 * voxel. */
struct step {
    int groups[3], first[2];
    int first_point, end_point;
};

static lr_status run_pass(const struct lr_window *window, enum lr_columns_program which, const struct step *step)
{
    struct gl_program *program = lr_columns_program(window->columns, which);
    if (program == NULL) return LR_FAILED;
    struct lr_columns_pass uniforms = lr_columns_uniforms(window->columns);
    uniforms.first[0] = step->first[0];
    uniforms.first[1] = step->first[1];
    uniforms.first[2] = step->first_point;
    uniforms.count[0] =
        window->stacks.pairs != NULL ? window->stacks.num_pairs : (int32_t)(window->part.end - window->part.begin);
    uniforms.count[1] = step->end_point;
    uniforms.count[2] = window->columns->shares;
    uniforms.count[3] = (int32_t)lr_grid_num_voxels(window->columns->params.grid);
    if (window->list->interleave > 1 && window->columns->has_angles) {
        uniforms.angles[0] = window->list->interleave;
        uniforms.angles[1] = window->list->turn;
        uniforms.angles[2] = window->columns->params.lors->angles->count;
    }
    struct gl_pass pass = {.label = gl_program_label(program),
                           .program = program,
                           .uniforms = &uniforms,
                           .uniform_bytes = sizeof(uniforms),
                           .groups = {step->groups[0], step->groups[1], step->groups[2]},
                           .barriers = GL_SHADER_STORAGE_BARRIER_BIT | GL_BUFFER_UPDATE_BARRIER_BIT};
    lr_columns_bind_scene(window->columns, &pass);
    pass.buffers[LR_BIND_COLUMN_PAIRS].buffer = window->pairs;
    pass.buffers[LR_BIND_COLUMN_IMAGE].buffer = window->columns->image;
    pass.buffers[LR_BIND_COLUMN_STACKS].buffer = window->stacks.pairs;
    pass.buffers[LR_BIND_COLUMN_LIST].buffer = window->stacks.members;

    const bool to_lor_order = which == LR_COLUMNS_TO_LOR_ORDER || which == LR_COLUMNS_STACKS_TO_LOR_ORDER;
    const struct gl_range by_column = {.buffer = window->by_column};
    pass.buffers[LR_BIND_SUMS] = to_lor_order ? by_column : window->lor_order;
    pass.buffers[LR_BIND_OUTPUT] = to_lor_order ? window->lor_order : by_column;
    if (which == LR_COLUMNS_PACK)
        pass.buffers[LR_BIND_OUTPUT] = (struct gl_range){.buffer = window->columns->packed};
    else if (which == LR_COLUMNS_FORWARD_EXACT && window->columns->packed != NULL)
        pass.buffers[LR_BIND_SUMS] = (struct gl_range){.buffer = window->columns->packed};
    gl_stopwatch_begin(window->columns->watch);
    const lr_status status = gl_pass_run(window->columns->ctx, &pass);
    gl_stopwatch_end(window->columns->watch);
    return status;
}

static lr_status reorder(const struct lr_window *window, enum lr_columns_program which)
{
    const int64_t most = (int64_t)window->most_across * window->most_along;
    const int pairs = (int)(window->part.end - window->part.begin);
    const struct step step = {.groups = {gl_groups_in_turn(most, 16 * GROUP), 1, pairs}};
    return run_pass(window, which, &step);
}

/* A pass in parts of one of its dimensions, `count` long. */
struct parts {
    enum lr_columns_program which;
    const char *what; /* for the progress */
    int groups[3];    /* the divided one is replaced */
    int divided;      /* dimension: 1 or 2 */
    int first;        /* which of the pass's `first` counts it */
    int count;
    int points;  /* back: across, of a voxel; forward: 1 */
    int at_once; /* of them */
};

static int part_size(const struct lr_window *window, const struct parts *parts)
{
    if (gl_context_limits(window->columns->ctx)->small_batches) return gl_divide_up(parts->count, PARTS_SOFTWARE);
    const int64_t groups =
        (int64_t)parts->groups[0] * parts->groups[1] * parts->groups[2] * lr_columns_work_of_thread(window->columns);
    return gl_divide_up(GROUPS_OF_A_PART, groups > 0 ? groups : 1);
}

static lr_status run_parts(const struct lr_window *window, const struct parts *parts)
{
    const int size = part_size(window, parts);
    for (int begin = 0; begin < parts->count; begin += size) {
        struct step step = {.groups = {parts->groups[0], parts->groups[1], parts->groups[2]}};
        step.groups[parts->divided] = parts->count - begin < size ? parts->count - begin : size;
        step.first[parts->first] = begin;
        for (int point = 0; point < parts->points; point += parts->at_once) {
            step.first_point = point;
            step.end_point = parts->points - point < parts->at_once ? parts->points : point + parts->at_once;
            LR_TRY(run_pass(window, parts->which, &step));
        }
        const double share = (double)(begin + step.groups[parts->divided]) / parts->count;
        const int64_t all = window->part.num_pairs;
        const double done = (double)window->part.begin + share * (double)(window->part.end - window->part.begin);
        LR_TRY(lr_progress_report(window->columns->params.progress, parts->what, done / (double)all, 1.0));
    }
    return LR_OK;
}

static lr_status forward_pass(const struct lr_window *window)
{
    const struct lr_columns *columns = window->columns;
    const bool exact = columns->params.mode == LR_MODE_EXACT;
    const int along = !exact                 ? window->most_along
                      : columns->is_mirrored ? (window->most_stacked + 1) / 2
                                             : window->most_stacked;
    const struct parts parts = {.which = exact ? LR_COLUMNS_FORWARD_EXACT : LR_COLUMNS_FORWARD,
                                .what = "projecting forward",
                                .groups = {window->most_across, gl_divide_up(along, columns->forward_group), 1},
                                .divided = 2,
                                .first = 0,
                                .count =
                                    exact ? window->stacks.num_pairs : (int)(window->part.end - window->part.begin),
                                .points = 1,
                                .at_once = 1};
    return run_parts(window, &parts);
}

static lr_status back_pass(const struct lr_window *window, enum lr_columns_program which)
{
    const struct lr_columns *columns = window->columns;
    const int *size = columns->params.grid->size, *samples = columns->params.samples;
    const int points = columns->is_mirrored                    ? 4 * columns->back_group
                       : columns->params.mode == LR_MODE_EXACT ? 2 * columns->back_group
                                                               : columns->back_group;
    const int voxels = points / samples[columns->axis];
    const struct parts parts = {.which = which,
                                .what = "projecting back",
                                .groups = {gl_divide_up(size[columns->across[0]], columns->back_columns), 1,
                                           columns->shares * gl_divide_up(size[columns->axis], voxels)},
                                .divided = 1,
                                .first = 1,
                                .count = which == LR_COLUMNS_BACK_HALF_TURN ? (size[columns->across[1]] + 1) / 2
                                                                            : size[columns->across[1]],
                                .points = samples[columns->across[0]] * samples[columns->across[1]],
                                .at_once = lr_columns_ends_loops(columns) ? 1 : POINTS_OF_A_PART};
    return run_parts(window, &parts);
}

/* --- projections --- */

/* Each voxel together with its images, so that forward needs one read for all of them. */
static lr_status pack_image(const struct lr_window *window)
{
    const struct lr_columns *columns = window->columns;
    const int64_t voxels = lr_grid_num_voxels(columns->params.grid);
    const struct step step = {.groups = {gl_groups_in_turn(voxels, GROUP), 1, 1}};
    return columns->packed != NULL ? run_pass(window, LR_COLUMNS_PACK, &step) : LR_OK;
}

static lr_status forward_window(struct lr_window *window, const lr_vector *data)
{
    const bool exact = window->columns->params.mode == LR_MODE_EXACT;
    LR_TRY(lr_columns_start_forward(window->columns));
    const struct lr_window_data written = {data, true};
    LR_TRY(exact ? lr_window_open_stacks(window, &written) : lr_window_open(window, &written));
    LR_TRY(exact ? pack_image(window) : LR_OK);
    LR_TRY(forward_pass(window));
    LR_TRY(reorder(window, exact ? LR_COLUMNS_STACKS_TO_LOR_ORDER : LR_COLUMNS_TO_LOR_ORDER));
    return window_read(window, data);
}

static lr_status forward_windows(struct lr_window *window, const lr_vector *data)
{
    while (lr_window_next(window)) {
        const lr_status status = forward_window(window, data);
        lr_window_close(window);
        LR_TRY(status);
    }
    return LR_OK;
}

/* Exact mode handles pairs stack by stack. */
static lr_status order_pairs(const struct lr_columns *columns, const struct lr_pair_list *list,
                             struct lr_stack_order *order)
{
    const bool exact = columns->params.mode == LR_MODE_EXACT;
    return exact ? lr_columns_order_by_stacks(columns, list, order) : LR_OK;
}

lr_status lr_columns_forward(void *self, const struct lr_pair_list *list, const float *image, lr_vector *data)
{
    struct lr_columns *columns = self;
    struct lr_stack_order order = {0};
    const bool exact = columns->params.mode == LR_MODE_EXACT;
    gl_stopwatch_reset(columns->watch);
    LR_TRY(image != NULL ? lr_columns_upload_image(columns, image) : LR_OK);
    LR_TRY(order_pairs(columns, list, &order));
    struct lr_window window = lr_window_begin(columns, list, exact ? &order : NULL);
    const lr_status status = forward_windows(&window, data);
    lr_stack_order_finish(&order);
    LR_TRY(status);
    LR_TRY(exact ? lr_columns_clear_left_out(columns, list, data) : LR_OK);
    return lr_columns_check_pairs(columns, list, false);
}

static lr_status back_sampled(struct lr_window *window, const lr_vector *data)
{
    LR_TRY(lr_columns_start_back(window->columns, data == NULL, false));
    LR_TRY(lr_window_open(window, &(struct lr_window_data){data, false}));
    if (data != NULL) LR_TRY(reorder(window, LR_COLUMNS_FROM_LOR_ORDER));
    LR_TRY(back_pass(window, data == NULL ? LR_COLUMNS_ONES : LR_COLUMNS_BACK));
    return LR_OK;
}

static lr_status back_exact(struct lr_window *window, const lr_vector *data)
{
    LR_TRY(lr_window_open_stacks(window, &(struct lr_window_data){data, false}));
    LR_TRY(lr_columns_start_back(window->columns, data == NULL, window->stacks.has_half_turn));
    LR_TRY(reorder(window, data == NULL ? LR_COLUMNS_ONES_TO_STACKS : LR_COLUMNS_TO_STACKS));
    LR_TRY(back_pass(window, window->stacks.has_half_turn ? LR_COLUMNS_BACK_HALF_TURN : LR_COLUMNS_BACK_EXACT));
    /* The sum is then the first share, and the others begin at zero again. */
    struct lr_columns *columns = window->columns;
    const int64_t voxels = lr_grid_num_voxels(columns->params.grid);
    const struct step step = {.groups = {gl_groups_in_turn(voxels, GROUP), 1, 1}};
    return columns->shares > 1 ? run_pass(window, LR_COLUMNS_SUM, &step) : LR_OK;
}

static lr_status back_windows(struct lr_window *window, const lr_vector *data)
{
    struct lr_columns *columns = window->columns;
    const bool exact = columns->params.mode == LR_MODE_EXACT;
    window->most_rounds = columns->most_rounds; /* a thread visits all pairs of the window */
    while (lr_window_next(window)) {
        const lr_status status = exact ? back_exact(window, data) : back_sampled(window, data);
        lr_window_close(window);
        LR_TRY(status);
    }
    return LR_OK;
}

lr_status lr_columns_back(void *self, const struct lr_pair_list *list, const lr_vector *data, float *image)
{
    struct lr_columns *columns = self;
    struct lr_stack_order order = {0};
    const bool exact = columns->params.mode == LR_MODE_EXACT;
    gl_stopwatch_reset(columns->watch);
    gl_buffer_clear(columns->image, 0);
    LR_TRY(order_pairs(columns, list, &order));
    struct lr_window window = lr_window_begin(columns, list, exact ? &order : NULL);
    const lr_status status = back_windows(&window, data);
    lr_stack_order_finish(&order);
    LR_TRY(status);
    LR_TRY(image != NULL ? lr_columns_read_image(columns, image) : LR_OK);
    return lr_columns_check_pairs(columns, list, true);
}

/* It turns out later which stacks of a small window have their images with them. */
lr_status lr_columns_prepare(void *self, bool lists)
{
    struct lr_columns *columns = self;
    const bool has_images = columns->stacks->has_half_turn;
    if (!has_images || !lr_columns_ends_loops(columns)) {
        LR_TRY(lr_columns_start_back(columns, true, has_images));
        LR_TRY(lists ? LR_OK : lr_columns_start_back(columns, false, has_images));
    }
    return lists ? lr_columns_start_lists(columns) : lr_columns_start_forward(columns);
}
