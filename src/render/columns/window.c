/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "render/columns/window.h"

#include "base/log.h"
#include "base/mem.h"
#include "render/columns/scene.h"
#include "render/values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void lr_columns_count_crystals(const struct lr_columns *columns, int module, int counts[2])
{
    const lr_module *m = &columns->params.scanner->modules[module];
    const int along = fabs(m->v[columns->axis]) > fabs(m->u[columns->axis]) ? 1 : 0;
    counts[0] = m->crystals[1 - along];
    counts[1] = m->crystals[along];
}

static int modules_like(const struct lr_columns *columns, int module)
{
    const int stack = columns->stacks->stack_of[module];
    return stack < 0 ? 1 : columns->stacks->count[stack];
}

static void measure_pair(struct lr_window *window, int64_t k)
{
    const int32_t *pair =
        window->columns->params.lors->pairs[lr_pair_window_pair(&window->part, k)];
    int i[2], j[2];
    lr_columns_count_crystals(window->columns, pair[0], i);
    lr_columns_count_crystals(window->columns, pair[1], j);
    window->most_across = i[0] * j[0] > window->most_across ? i[0] * j[0] : window->most_across;
    window->most_along = i[1] * j[1] > window->most_along ? i[1] * j[1] : window->most_along;
    i[1] *= modules_like(window->columns, pair[0]);
    j[1] *= modules_like(window->columns, pair[1]);
    window->most_stacked = i[1] * j[1] > window->most_stacked ? i[1] * j[1] : window->most_stacked;
    window->turns += 50 + (int64_t)(i[0] + j[0]) * (4 + 3 * (i[1] + j[1])) +
                     (window->columns->params.mode == LR_MODE_SAMPLED
                          ? 2 * window->columns->params.rays * (int64_t)(i[0] + j[0]) * i[1] *
                                (window->columns->params.rays + 3)
                          : 0);
}

/* Whether pair k goes into the window: what is in it may not grow too large, and pairs of the same
 * stacks stay together. */
static bool goes_in(const struct lr_window *window, int64_t k)
{
    if (k == window->part.begin) {
        return true;
    }
    if (window->sources != NULL &&
        lr_columns_same_stacks(window->columns, lr_pair_window_pair(&window->part, k - 1),
                               lr_pair_window_pair(&window->part, k))) {
        return true;
    }
    return window->part.num_values + lr_pair_window_size(&window->part, k) <=
               window->columns->max_window &&
           2 * window->turns <= window->most_turns;
}

bool lr_window_next(struct lr_window *window)
{
    lr_pair_window_leave(&window->part);
    window->most_across = window->most_along = window->most_stacked = 0;
    window->turns = 0;
    while (window->part.end < window->part.num_pairs && goes_in(window, window->part.end)) {
        measure_pair(window, window->part.end);
        lr_pair_window_take(&window->part);
    }
    return window->part.end > window->part.begin;
}

struct lr_window lr_window_begin(struct lr_columns *columns, const struct lr_pair_list *list,
                                 const struct lr_stack_order *order)
{
    const struct lr_pair_list *taken = order != NULL ? &order->list : list;
    return (struct lr_window){
        .columns = columns,
        .list = taken,
        .part = lr_pair_window_begin(columns->params.lors, taken->pairs, taken->num_pairs),
        .sources = order != NULL ? order->sources : NULL,
        .num_sources = order != NULL ? order->num_sources : 0,
        .most_turns = INT64_MAX};
}

static struct gl_buffer *make_values(const struct lr_window *window, const char *label,
                                     int64_t count, const lr_vector *data)
{
    return lr_values_buffer(window->columns->ctx, label, count, data);
}

void lr_window_close(struct lr_window *window)
{
    gl_buffer_destroy(window->column);
    gl_buffer_destroy(window->file);
    gl_buffer_destroy(window->pairs);
    gl_buffer_destroy(window->stacks.pairs);
    gl_buffer_destroy(window->stacks.members);
    window->stacks = (struct lr_stack_buffers){0};
    window->column = window->file = window->pairs = NULL;
}

/* Where pair k of the list has its values. */
static lr_vector values_at(const struct lr_window *window, const lr_vector *data, int64_t k)
{
    return lr_vector_part(data, window->sources[k], lr_pair_window_size(&window->part, k));
}

/* The values of the window's pairs, one pair after the other. */
static struct gl_buffer *collect_on_device(const struct lr_window *window, const lr_vector *data)
{
    struct gl_buffer *file =
        make_values(window, "LOR values in file order", window->part.num_values, NULL);
    int64_t at = 0;
    for (int64_t k = window->part.begin; file != NULL && k < window->part.end; k++) {
        const lr_vector values = values_at(window, data, k);
        if (lr_values_put(&values, file, at * (int64_t)sizeof(float)) != LR_OK) {
            gl_buffer_destroy(file);
            file = NULL;
        }
        at += values.count;
    }
    return file;
}

static struct gl_buffer *collect_values(const struct lr_window *window, const lr_vector *data)
{
    if (data->values == NULL) {
        return collect_on_device(window, data);
    }
    float *values = lr_alloc(window->part.num_values, sizeof(*values), "a window of LOR values",
                             window->columns->params.log);
    float *next = values;
    for (int64_t k = window->part.begin; values != NULL && k < window->part.end; k++) {
        const lr_vector from = values_at(window, data, k);
        memcpy(next, from.values, (size_t)from.count * sizeof(*values));
        next += from.count;
    }
    const lr_vector collected = lr_vector_of_floats(values, window->part.num_values);
    struct gl_buffer *file = values == NULL ? NULL
                                            : make_values(window, "LOR values in file order",
                                                          window->part.num_values, &collected);
    free(values);
    return file;
}

/* What the window in turn has of the data. */
static lr_vector own_values(const struct lr_window *window, const lr_vector *data)
{
    return lr_vector_part(data, window->part.first_value, window->part.num_values);
}

lr_status lr_window_open(struct lr_window *window, const lr_vector *data)
{
    const lr_vector values = data != NULL ? own_values(window, data) : (lr_vector){0};
    window->pairs = lr_columns_upload_pairs(window->columns, window->list, window->part.begin,
                                            window->part.end, NULL);
    window->file = make_values(window, "LOR values in file order", window->part.num_values,
                               data != NULL ? &values : NULL);
    window->column =
        make_values(window, "LOR values in column order", window->part.num_values, NULL);
    return window->pairs && window->file && window->column ? LR_OK : LR_FAILED;
}

/* Whether the window has all pairs and its values fit as they stand in the data. */
static bool is_whole(const struct lr_window *window)
{
    return window->part.begin == 0 && window->part.end == window->part.num_pairs &&
           window->num_sources <= window->columns->max_window;
}

static struct gl_buffer *make_file(const struct lr_window *window, const lr_vector *data)
{
    const char *label = "LOR values in file order";
    if (is_whole(window)) {
        return make_values(window, label, window->num_sources, data);
    }
    return data != NULL ? collect_values(window, data)
                        : make_values(window, label, window->part.num_values, NULL);
}

lr_status lr_window_open_stacks(struct lr_window *window, const lr_vector *data, bool writes)
{
    const struct lr_columns *columns = window->columns;
    const int64_t range[2] = {window->part.begin, window->part.end};
    const bool has_file = data != NULL || writes;
    window->pairs =
        lr_columns_upload_pairs(columns, window->list, window->part.begin, window->part.end,
                                is_whole(window) ? window->sources : NULL);
    window->file = has_file ? make_file(window, data) : NULL;
    LR_TRY(lr_columns_upload_stacks(columns, window->list, range, &window->stacks));
    window->column =
        make_values(window, "LOR values in stack order", window->stacks.num_values, NULL);
    const bool complete = window->pairs && window->column && (window->file || !has_file);
    return complete ? LR_OK : LR_FAILED;
}

lr_status lr_window_read(const struct lr_window *window, const lr_vector *data)
{
    if (window->sources == NULL || is_whole(window)) {
        lr_vector values = window->sources != NULL ? lr_vector_part(data, 0, window->num_sources)
                                                   : own_values(window, data);
        return lr_values_get(window->file, 0, &values);
    }
    int64_t at = 0;
    for (int64_t k = window->part.begin; k < window->part.end; k++) {
        lr_vector values = values_at(window, data, k);
        LR_TRY(lr_values_get(window->file, at * (int64_t)sizeof(float), &values));
        at += values.count;
    }
    return LR_OK;
}
