/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Projections by the columns method, window by window, and rows of the matrix. Single LORs are sorted before they are
 * projected, so that neighbouring threads have similar work. Results have the same bits in every run. */
#include "correspondence/compute/columns/columns.h"

#include "base/log.h"
#include "base/mem.h"
#include "common/bindings.h"
#include "correspondence/plan.h"
#include "gl/vectors.h"
#include "model/lors/place.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP = LR_GROUP_SIZE }; /* number of threads of a workgroup that reorders values */

/* The sizes of dispatches. A dispatch is large enough to fill a device, but so short that progress is shown and the
 * user can stop a projection soon. */
enum { GROUPS_OF_A_PART = 1 << 17, PARTS_SOFTWARE = 64 };

/* The number of sample points of a voxel, across the columns, that a thread visits in one dispatch. */
enum { POINTS_OF_A_PART = 4 };

static const char lor_label[] = "LOR values in LOR order";

/* --- windows --- */

/* Adds pairs until the window is full. Pairs of the same two stacks stay in one window. */
bool lr_window_next(struct lr_window *window)
{
    const struct lr_columns *columns = window->columns;
    struct lr_pair_window *part = &window->part;
    const int64_t rays = columns->params.mode == LR_MODE_SAMPLED ? columns->params.rays : 0;
    lr_pair_window_leave(part);
    window->most_across = window->most_along = window->most_stacked = 0;
    window->rounds = 0;
    while (part->end < part->num_pairs) {
        const int64_t number = lr_pair_window_pair(part, part->end);
        const bool goes_in = part->end == part->begin ||
                             (window->sources != NULL &&
                              lr_columns_same_stacks(columns, lr_pair_window_pair(part, part->end - 1), number)) ||
                             (part->num_values + lr_pair_window_size(part, part->end) <= columns->max_window &&
                              2 * window->rounds <= window->most_rounds);
        if (!goes_in) break;

        const int32_t *pair = columns->params.lors->pairs[number];
        int i[2], j[2];
        lr_columns_count_crystals(columns, pair[0], i);
        lr_columns_count_crystals(columns, pair[1], j);
        window->most_across = i[0] * j[0] > window->most_across ? i[0] * j[0] : window->most_across;
        window->most_along = i[1] * j[1] > window->most_along ? i[1] * j[1] : window->most_along;
        const int stack_i = columns->stacks->stack_of[pair[0]], stack_j = columns->stacks->stack_of[pair[1]];
        if (stack_i >= 0) i[1] *= columns->stacks->count[stack_i];
        if (stack_j >= 0) j[1] *= columns->stacks->count[stack_j];
        window->most_stacked = i[1] * j[1] > window->most_stacked ? i[1] * j[1] : window->most_stacked;
        const int64_t strip_rounds = 4 + 3 * (int64_t)(i[1] + j[1]) * columns->element_rounds;
        window->rounds += 50 + (i[0] + j[0]) * strip_rounds + 2 * rays * (int64_t)(i[0] + j[0]) * i[1] * (rays + 3);

        lr_pair_window_take(part);
    }
    return part->end > part->begin;
}

lr_status lr_window_begin(struct lr_window *window, struct lr_columns *columns, const lr_selection *list,
                          struct lr_stack_order *order)
{
    const bool exact = columns->params.mode == LR_MODE_EXACT;
    *order = (struct lr_stack_order){0};
    if (exact) LR_TRY(lr_columns_order_by_stacks(columns, list, order));
    const lr_selection *taken = exact ? &order->list : list;
    *window = (struct lr_window){.columns = columns,
                                 .list = taken,
                                 .part = lr_pair_window_begin(columns->params.lors, taken->pairs, taken->num_pairs),
                                 .sources = order->sources,
                                 .num_sources = order->num_sources,
                                 .most_rounds = INT64_MAX};
    return LR_OK;
}

void lr_window_close(struct lr_window *window)
{
    gl_buffers_destroy(window->by_column, window->by_lor, window->pairs, window->stacks.pairs, window->stacks.members);
    window->stacks = (struct lr_stack_buffers){0};
    window->by_column = window->by_lor = window->pairs = NULL;
    window->lor_order = (struct gl_range){0};
}

static lr_vector values_at(const struct lr_window *window, const lr_vector *data, int64_t k)
{
    return lr_vector_part(data, window->sources[k], lr_pair_window_size(&window->part, k));
}

/* Copies the values of the window's pairs to a buffer, pair by pair. */
static struct gl_buffer *collect_values(const struct lr_window *window, const lr_vector *data)
{
    const int64_t count = window->part.num_values;
    struct gl_buffer *by_lor = NULL;
    if (data->values != NULL) {
        float *values = lr_alloc(count, sizeof(*values), "a window of LOR values", window->columns->params.log);
        float *next = values;
        for (int64_t k = window->part.begin; values != NULL && k < window->part.end; k++) {
            const lr_vector from = values_at(window, data, k);
            memcpy(next, from.values, (size_t)from.count * sizeof(*values));
            next += from.count;
        }
        const lr_vector collected = lr_vector_of_floats(values, count);
        if (values != NULL) by_lor = lr_values_buffer(window->columns->ctx, lor_label, count, &collected);
        free(values);
        return by_lor;
    }

    by_lor = lr_values_buffer(window->columns->ctx, lor_label, count, NULL);
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

/* Returns true if one window has all pairs, and all values of the data fit into one buffer. */
static bool is_whole(const struct lr_window *window)
{
    return window->part.begin == 0 && window->part.end == window->part.num_pairs &&
           window->num_sources <= window->columns->max_window;
}

/* If the values of the window's pairs are contiguous in the data, sets *values to them and returns true. The values are
 * contiguous in sampled mode, and in exact mode if one window has all pairs (is_whole). */
static bool find_values(const struct lr_window *window, const lr_vector *data, lr_vector *values)
{
    if (window->sources == NULL) {
        *values = lr_vector_part(data, window->part.first_value, window->part.num_values);
        return true;
    }
    if (!is_whole(window)) return false;
    *values = lr_vector_part(data, 0, window->num_sources);
    return true;
}

lr_status lr_window_open(struct lr_window *window, const lr_vector *data, bool is_written)
{
    struct lr_columns *columns = window->columns;
    const bool exact = columns->params.mode == LR_MODE_EXACT;
    const int64_t range[2] = {window->part.begin, window->part.end};
    lr_vector values = {0};
    window->pairs = lr_columns_upload_pairs(columns, window->list, range[0], range[1],
                                            exact && is_whole(window) ? window->sources : NULL);

    /* Values in a buffer of the same device are bound without a copy, provided that the driver accepts their offset. */
    const bool follow = data != NULL && find_values(window, data, &values);
    if (follow && values.values == NULL) {
        const struct lr_vector_range found = lr_vector_gl_range(&values);
        if (found.bytes > 0 && found.offset % gl_context_limits(columns->ctx)->storage_alignment == 0)
            window->lor_order = (struct gl_range){found.buffer, found.offset, found.bytes};
    }
    if (data != NULL && window->lor_order.buffer == NULL) {
        const int64_t count = follow ? values.count : window->part.num_values;
        window->by_lor = is_written ? lr_values_buffer(columns->ctx, lor_label, count, NULL)
                         : follow   ? lr_values_buffer(columns->ctx, lor_label, count, &values)
                                    : collect_values(window, data);
        window->lor_order = (struct gl_range){.buffer = window->by_lor};
        if (window->by_lor == NULL) return LR_FAILED;
    }

    /* The pairs can also contain LORs of other parts. A forward projection leaves the values of those LORs 0. */
    if (exact) LR_TRY(lr_columns_upload_stacks(columns, window->list, range, &window->stacks));
    window->by_column =
        lr_values_buffer(columns->ctx, exact ? "LOR values in stack order" : "LOR values in column order",
                         exact ? window->stacks.num_values : window->part.num_values, NULL);
    if (window->by_column != NULL && is_written && window->list->interleave > 1) gl_buffer_clear(window->by_column, 0);
    return window->pairs && window->by_column ? LR_OK : LR_FAILED;
}

/* --- passes --- */

/* One dispatch: how many workgroups it has along each axis, and the index of the first one along the first two axes. A
 * back-projection visits only the sample points first_point .. end_point - 1 of each voxel, counted across the
 * columns. */
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
        uniforms.angles[1] = window->list->interleave_turn;
        uniforms.angles[2] = window->columns->params.lors->angles->count;
        uniforms.angles[3] = lr_turn_shift(window->columns->params.lors, window->list->interleave);
    }
    struct gl_pass pass = gl_pass_compute(program, &uniforms, sizeof(uniforms),
                                          (const int[3]){step->groups[0], step->groups[1], step->groups[2]});
    lr_columns_bind_scene(window->columns, &pass);
    gl_pass_bind(&pass, {LR_BIND_COLUMN_PAIRS, window->pairs}, {LR_BIND_COLUMN_IMAGE, window->columns->image},
                 {LR_BIND_COLUMN_STACKS, window->stacks.pairs}, {LR_BIND_COLUMN_LIST, window->stacks.members});

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

/* A pass that is divided into several dispatches. Along the dimension `divided`, each dispatch has some of the `count`
 * workgroups. */
struct parts {
    enum lr_columns_program which;
    const char *what; /* text for the progress report */
    int groups[3];    /* number of workgroups; 1 in the divided dimension */
    int divided;      /* the divided dimension, 1 or 2 */
    int first;        /* index in step.first where the number of the first workgroup is stored */
    int count;
    int points;  /* back-projection: number of sample points of a voxel across the columns; forward projection: 1 */
    int at_once; /* number of sample points that one dispatch visits */
};

static lr_status run_parts(const struct lr_window *window, const struct parts *parts)
{
    const bool small = gl_context_limits(window->columns->ctx)->small_batches;
    const int64_t groups =
        (int64_t)parts->groups[0] * parts->groups[1] * parts->groups[2] * lr_columns_work_of_thread(window->columns);
    const int size =
        small ? gl_divide_up(parts->count, PARTS_SOFTWARE) : gl_divide_up(GROUPS_OF_A_PART, groups > 0 ? groups : 1);
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

/* --- projections --- */

static lr_status forward_window(struct lr_window *window, const lr_vector *data)
{
    struct lr_columns *columns = window->columns;
    const bool exact = columns->params.mode == LR_MODE_EXACT;
    LR_TRY(lr_columns_start_projection(columns, true, false, false));
    LR_TRY(lr_window_open(window, data, true));
    if (exact && columns->packed != NULL) { /* a thread of the next pass reads a voxel and its mirror images together */
        const int64_t voxels = lr_grid_num_voxels(columns->params.grid);
        const struct step pack = {.groups = {gl_groups_in_turn(voxels, GROUP), 1, 1}};
        LR_TRY(run_pass(window, LR_COLUMNS_PACK, &pack));
    }

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
    LR_TRY(run_parts(window, &parts));
    LR_TRY(reorder(window, exact ? LR_COLUMNS_STACKS_TO_LOR_ORDER : LR_COLUMNS_TO_LOR_ORDER));

    /* If the pass wrote to a buffer of the window, the values are copied to `data`. */
    lr_vector values;
    if (window->by_lor == NULL) return LR_OK;
    if (find_values(window, data, &values)) return lr_values_get(window->by_lor, 0, &values);
    int64_t at = 0;
    for (int64_t k = window->part.begin; k < window->part.end; k++) {
        values = values_at(window, data, k);
        LR_TRY(lr_values_get(window->by_lor, at * (int64_t)sizeof(float), &values));
        at += values.count;
    }
    return LR_OK;
}

static lr_status back_window(struct lr_window *window, const lr_vector *data)
{
    struct lr_columns *columns = window->columns;
    const int *size = columns->params.grid->size, *samples = columns->params.samples;
    const bool exact = columns->params.mode == LR_MODE_EXACT, ones = data == NULL;
    if (!exact) LR_TRY(lr_columns_start_projection(columns, false, ones, false));
    LR_TRY(lr_window_open(window, data, false));
    const bool has_images = window->stacks.has_half_turn;
    if (exact) LR_TRY(lr_columns_start_projection(columns, false, ones, has_images));
    if (exact)
        LR_TRY(reorder(window, ones ? LR_COLUMNS_ONES_TO_STACKS : LR_COLUMNS_TO_STACKS));
    else if (!ones)
        LR_TRY(reorder(window, LR_COLUMNS_FROM_LOR_ORDER));

    const int points = (columns->is_mirrored ? 4 : exact ? 2 : 1) * columns->back_group;
    const int voxels = points / samples[columns->axis], rows = size[columns->across[1]];
    const struct parts parts = {.which = has_images ? LR_COLUMNS_BACK_HALF_TURN
                                         : exact    ? LR_COLUMNS_BACK_EXACT
                                         : ones     ? LR_COLUMNS_ONES
                                                    : LR_COLUMNS_BACK,
                                .what = "projecting back",
                                .groups = {gl_divide_up(size[columns->across[0]], columns->back_columns), 1,
                                           columns->shares * gl_divide_up(size[columns->axis], voxels)},
                                .divided = 1,
                                .first = 1,
                                .count = has_images ? (rows + 1) / 2 : rows,
                                .points = samples[columns->across[0]] * samples[columns->across[1]],
                                .at_once = lr_columns_ends_loops(columns) ? 1 : POINTS_OF_A_PART};
    LR_TRY(run_parts(window, &parts));

    /* After this pass, the first share has the sum, and the other shares are 0. */
    const struct step sum = {.groups = {gl_groups_in_turn(lr_grid_num_voxels(columns->params.grid), GROUP), 1, 1}};
    return columns->shares > 1 ? run_pass(window, LR_COLUMNS_SUM, &sum) : LR_OK;
}

lr_status lr_columns_project(void *self, bool is_forward, const lr_selection *list, lr_vector *image, lr_vector *data)
{
    struct lr_columns *columns = self;
    struct lr_stack_order order;
    struct lr_window window;
    lr_status status = LR_OK;
    gl_stopwatch_reset(columns->watch);
    if (is_forward) {
        LR_TRY(lr_columns_copy_image(columns, image, NULL, true));
    } else {
        gl_buffer_clear(columns->image, 0);
        /* The program that writes the image to the caller's vector is started together with the others. */
        if (image->values == NULL)
            LR_TRY(lr_columns_program(columns, LR_COLUMNS_GIVE_IMAGE) != NULL ? LR_OK : LR_FAILED);
    }
    LR_TRY(lr_window_begin(&window, columns, list, &order));
    /* A thread of a back-projection visits all pairs of the window, so the number of its loop rounds must be
     * limited. */
    if (!is_forward) window.most_rounds = columns->most_rounds;
    while (status == LR_OK && lr_window_next(&window)) {
        status = is_forward ? forward_window(&window, data) : back_window(&window, data);
        lr_window_close(&window);
    }
    lr_stack_order_finish(&order);
    LR_TRY(status);
    if (!is_forward)
        LR_TRY(lr_columns_copy_image(columns, image, NULL, false));
    else if (columns->params.mode == LR_MODE_EXACT)
        LR_TRY(lr_columns_clear_left_out(columns, list, data));
    return lr_columns_check_pairs(columns, list, !is_forward);
}

/* ---- lists of LORs ---- */

/* `struct Entry` of shaders/correspondence/columns/list.glsl. */
struct entry {
    uint32_t pair, number;
    float value;
    uint32_t unused;
};
_Static_assert(sizeof(struct entry) == 16, "the shaders' layout");

/* The largest number of LORs of a window, and of workgroups of a dispatch. */
enum { WINDOW_ENTRIES = 1 << 20, PART_GROUPS = 8192, PART_GROUPS_SOFTWARE = 256 };

/* The arguments of run_lors: a projection of the LORs of a list, window by window. */
struct lors {
    const lr_selection *list;
    bool is_forward;
    float *values;                 /* NULL = the values are 1, for a back-projection */
    const struct gl_buffer *image; /* read by a forward projection; a back-projection adds to it */
    int exponent;                  /* values are multiplied by 2^-exponent */
};

static lr_status run_lors(struct lr_columns *columns, const struct lors *lors)
{
    const int64_t *offsets = columns->params.lors->offsets;
    const lr_log *log = columns->params.log;
    const int64_t num_lors = lors->list->num_lors;
    const int64_t fitting = columns->max_window * (int64_t)sizeof(float) / (int64_t)sizeof(struct entry);
    const int64_t most = fitting > WINDOW_ENTRIES ? WINDOW_ENTRIES : fitting > 0 ? fitting : 1;
    lr_status status = LR_OK;
    for (int64_t begin = 0; begin < num_lors && status == LR_OK; begin += most) {
        /* An entry has the LOR's pair, the LOR's number in the pair, and its value times 2^-exponent. */
        const int64_t count = num_lors - begin < most ? num_lors - begin : most;
        struct entry *entries = lr_alloc(count, sizeof(*entries), "a list of LORs", log);
        int32_t *numbers = lr_alloc(count, sizeof(*numbers), "the pairs of modules of a list", log);
        lr_selection pairs = {.pairs = numbers};
        struct gl_buffer *list = NULL, *pair_buffer = NULL;
        int64_t pair = 0;
        for (int64_t k = 0; entries != NULL && numbers != NULL && k < count; k++) {
            const int64_t lor = lors->list->lors[begin + k];
            if (pairs.num_pairs == 0 || lor >= offsets[pair + 1]) {
                while (lor >= offsets[pair + 1]) pair++;
                numbers[pairs.num_pairs++] = (int32_t)pair;
            }
            const float value = lors->is_forward ? 0.0f : lors->values != NULL ? lors->values[begin + k] : 1.0f;
            entries[k] = (struct entry){.pair = (uint32_t)(pairs.num_pairs - 1),
                                        .number = (uint32_t)(lor - offsets[pair]),
                                        .value = ldexpf(value, -lors->exponent)};
        }
        const int64_t bytes = count * (int64_t)sizeof(*entries);
        if (entries != NULL && numbers != NULL) {
            list = gl_data_buffer(columns->ctx, "list of LORs", bytes, entries);
            pair_buffer = lr_columns_upload_pairs(columns, &pairs, 0, pairs.num_pairs, NULL);
        }
        struct gl_program *program =
            lr_columns_program(columns, lors->is_forward ? LR_COLUMNS_LIST_FORWARD : LR_COLUMNS_LIST_BACK);
        status = list != NULL && pair_buffer != NULL && program != NULL ? LR_OK : LR_FAILED;

        /* There are several passes, each so short that the user can stop the projection. */
        const bool small = gl_context_limits(columns->ctx)->small_batches;
        const int in_group = LR_GROUP_SIZE / LR_LIST_SHARE;
        const int64_t groups = small ? PART_GROUPS_SOFTWARE : PART_GROUPS / lr_columns_work_of_thread(columns) + 1;
        const char *what = lors->is_forward ? "projecting forward" : "projecting back";
        gl_stopwatch_begin(columns->watch);
        for (int64_t first = 0, end = 0; first < count && status == LR_OK; first = end) {
            end = count - first < groups * in_group ? count : first + groups * in_group;
            struct lr_columns_pass uniforms = lr_columns_uniforms(columns);
            uniforms.first[0] = (int32_t)first;
            uniforms.count[0] = (int32_t)end;
            struct gl_pass pass = gl_pass_compute(program, &uniforms, sizeof(uniforms),
                                                  (const int[3]){gl_divide_up(end - first, in_group), 1, 1});
            lr_columns_bind_scene(columns, &pass);
            gl_pass_bind(&pass, {LR_BIND_COLUMN_PAIRS, pair_buffer}, {LR_BIND_COLUMN_LIST, list},
                         {LR_BIND_COLUMN_IMAGE, lors->image});
            status = gl_pass_run(columns->ctx, &pass);
            if (status == LR_OK)
                status = lr_progress_report(columns->params.progress, what, (double)(begin + end), (double)num_lors);
        }
        gl_stopwatch_end(columns->watch);
        if (status == LR_OK && lors->is_forward) status = gl_buffer_read(list, 0, bytes, entries);
        for (int64_t k = 0; status == LR_OK && lors->is_forward && k < count; k++)
            lors->values[begin + k] = entries[k].value;
        gl_buffers_destroy(pair_buffer, list);
        lr_free_all(numbers, entries);
    }
    return status;
}

/* A back-projection is repeated with a larger exponent of its fixed-point sums until no sum overflows. The first
 * exponent is large enough if the elements of each point sum to less than 4. In exact mode, the sum is at most 1. In
 * sampled mode, it may be more if the point is nearer to a face than the width of a crystal. */
lr_status lr_columns_project_lors(void *self, bool is_forward, const lr_selection *list, lr_vector *image,
                                  float *values)
{
    struct lr_columns *columns = self;
    struct lors lors = {.list = list, .is_forward = is_forward, .values = values, .image = columns->image};
    gl_stopwatch_reset(columns->watch);
    if (is_forward) {
        LR_TRY(lr_columns_copy_image(columns, image, NULL, true));
        LR_TRY(run_lors(columns, &lors));
        return lr_columns_check_loops(columns);
    }
    struct lr_fixed sums;
    int exponent = values != NULL ? lr_fixed_exponent(values, list->num_lors) : 0;
    do {
        LR_TRY(lr_fixed_init(&sums, columns->ctx, lr_grid_num_voxels(columns->params.grid), exponent));
        lors.image = sums.buffer;
        lors.exponent = sums.exponent;
        lr_status status = run_lors(columns, &lors);
        status = status == LR_OK ? lr_fixed_overflowed(&sums, &sums.overflowed) : status;
        if (status != LR_OK || sums.overflowed) lr_fixed_finish(&sums);
        LR_TRY(status);
        exponent += LR_FIXED_STEP;
    } while (sums.overflowed);
    const lr_status status = lr_columns_copy_image(columns, image, &sums, false);
    lr_fixed_finish(&sums);
    return status == LR_OK ? lr_columns_check_loops(columns) : status;
}

/* --- matrix rows --- */

/* A point in the form that the shader reads: two coordinates across the columns and one along them. Each coordinate is
 * a float and the rest after rounding. */
typedef float point_parts[3][2];

/* The largest number of runs of consecutive module pairs that are listed. If a request has more runs, the last one also
 * contains pairs that are not wanted. */
enum { MOST_RUNS = 64 };

/* State of a call of lr_columns_read_rows. */
struct listing {
    struct lr_columns *columns;
    int runs[MOST_RUNS][2]; /* pairs begin .. end - 1 */
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

/* Lists the elements of some points for the pairs of all runs. A pass has as many pairs as most_rounds allows. */
static lr_status run_points(void *user, const struct lr_point_list *list)
{
    const struct listing *listing = user;
    struct lr_columns *columns = listing->columns;
    struct gl_program *program = lr_columns_program(columns, listing->which);
    if (program == NULL) return LR_FAILED;
    for (int k = 0; k < listing->num_runs; k++) {
        const int *run = listing->runs[k];
        for (int pairs[2] = {run[0], run[0]}; pairs[0] < run[1]; pairs[0] = pairs[1]) {
            /* `rounds` is an upper bound of the loop rounds of a thread of correspondence/columns/rows.comp. */
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
            gl_pass_bind(&pass, {LR_BIND_COLUMN_PAIRS, listing->pairs}, {LR_BIND_COLUMN_POINTS, list->points},
                         {LR_BIND_OUTPUT, list->list});
            LR_TRY(gl_pass_run(columns->ctx, &pass));
        }
    }
    return LR_OK;
}

lr_status lr_columns_read_rows(void *self, const struct lr_rows *rows, const lr_row_sink *sink)
{
    struct lr_columns *columns = self;
    const lr_selection all = {0};
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
