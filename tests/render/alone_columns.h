/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Places of values and voxels in the orders of the column passes, computed here from the descriptions in
 * shaders/correspondence/columns/scene.glsl and stacks.glsl. */
#pragma once

#include "alone.h"

#include "common/bindings.h"
#include "correspondence/compute/columns/columns.h"

/* --- places --- */

/* A crystal's number across the columns and its number along them, as the scanner counts, and the numbers of crystals
 * in both directions. `upwards`: true if numbers rise along the column. */
struct column_crystal {
    int across, along, num_across, num_along;
    bool upwards;
};

static inline struct column_crystal column_crystal_of(const struct lr_columns *columns, int module, int crystal)
{
    const lr_module *m = &columns->params.scanner->modules[module];
    const int place[2] = {crystal % m->crystals[0], crystal / m->crystals[0]};
    const int along = fabs(m->v[columns->axis]) > 0.5 ? 1 : 0;
    const double *axial = along == 1 ? m->v : m->u;
    return filled(struct column_crystal, .across = place[1 - along], .along = place[along],
                  .num_across = m->crystals[1 - along], .num_along = m->crystals[along],
                  .upwards = axial[columns->axis] > 0);
}

/* ((p nr + r) nq + q) ns + s */
static inline int64_t column_place(const struct column_crystal *i, const struct column_crystal *j)
{
    return (((int64_t)i->across * j->num_across + j->across) * i->num_along + i->along) * j->num_along + j->along;
}

/* A crystal's number along its stack, counted upwards. */
static inline int stack_cell(const struct lr_columns *columns, int module, const struct column_crystal *at)
{
    return columns->stacks->place_of[module] * at->num_along +
           (at->upwards ? at->along : at->num_along - 1 - at->along);
}

/* ((p nr + r) nQ + Q) nS + S of stacks a <= b */
static inline int64_t stack_place(const struct lr_columns *columns, const int32_t modules[2],
                                  const struct column_crystal on[2])
{
    const int *stack_of = columns->stacks->stack_of, *count = columns->stacks->count;
    const int a = stack_of[modules[0]] <= stack_of[modules[1]] ? 0 : 1, b = 1 - a;
    const int64_t num_a = (int64_t)count[stack_of[modules[a]]] * on[a].num_along;
    const int64_t num_b = (int64_t)count[stack_of[modules[b]]] * on[b].num_along;
    return (((int64_t)on[a].across * on[b].num_across + on[b].across) * num_a +
            stack_cell(columns, modules[a], &on[a])) *
               num_b +
           stack_cell(columns, modules[b], &on[b]);
}

static inline int64_t stack_pair_values(const struct lr_columns *columns, const int32_t modules[2])
{
    int64_t values = 1;
    for (int k = 0; k < 2; k++) {
        const int *crystals = columns->params.scanner->modules[modules[k]].crystals;
        values *= (int64_t)crystals[0] * crystals[1] * columns->stacks->count[columns->stacks->stack_of[modules[k]]];
    }
    return values;
}

/* Places of the window's values in the order of the window: [num_values], -1 for values of other pairs. */
static inline int64_t *window_places(const struct alone *alone, const struct lr_window *window)
{
    const struct lr_columns *columns = window->columns;
    const lr_lors *lors = alone->lors;
    const bool exact = alone->exact;
    int64_t *places = kept(alone->num_values, sizeof(*places)), first = 0, next = 0;
    memset(places, -1, (size_t)alone->num_values * sizeof(*places));
    for (int64_t k = window->part.begin; k < window->part.end; k++) {
        const int64_t pair = window->list->pairs[k];
        const int32_t *modules = lors->pairs[pair];
        const int *crystals = alone->scanner->modules[modules[1]].crystals, num_b = crystals[0] * crystals[1];
        if (!exact || k == window->part.begin || !lr_columns_same_stacks(columns, window->list->pairs[k - 1], pair)) {
            first = next;
            next += exact ? stack_pair_values(columns, modules) : lors->offsets[pair + 1] - lors->offsets[pair];
        }
        for (int64_t lor = lors->offsets[pair]; lor < lors->offsets[pair + 1]; lor++) {
            const int number = (int)(lor - lors->offsets[pair]);
            const struct column_crystal on[2] = {column_crystal_of(columns, modules[0], number / num_b),
                                                 column_crystal_of(columns, modules[1], number % num_b)};
            places[lor - alone->window.first_value] =
                first + (exact ? stack_place(columns, modules, on) : column_place(&on[0], &on[1]));
        }
    }
    return places;
}

static inline int64_t column_voxel(const struct lr_columns *columns, const int at[3])
{
    const int *size = columns->params.grid->size;
    const int a = columns->across[0], b = columns->across[1], c = columns->axis;
    return ((int64_t)at[b] * size[a] + at[a]) * size[c] + at[c];
}

/* Indices of voxel v along the three axes of the grid. */
static inline void voxel_at(const lr_grid *grid, int64_t v, int at[3])
{
    at[0] = (int)(v % grid->size[0]);
    at[1] = (int)(v / grid->size[0] % grid->size[1]);
    at[2] = (int)(v / grid->size[0] / grid->size[1]);
}

/* Index of voxel v in the packed image, where each voxel has four values: of itself (`which` 0), of its mirror image
 * along the column (1), of its image after half a turn about the column (2), and of its image after both (3). */
static inline int64_t packed_place(const struct lr_columns *columns, int64_t v, int which)
{
    const lr_grid *grid = columns->params.grid;
    int at[3];
    voxel_at(grid, v, at);
    for (int k = 0; k < 3; k++)
        if (k == columns->axis ? which % 2 == 1 : which >= 2) at[k] = grid->size[k] - 1 - at[k];
    return 4 * column_voxel(columns, at) + which;
}

/* Puts an image, [num_voxels] in the grid's order, to the place from which forward passes read it. */
static inline void put_image(struct alone *alone, struct lr_columns *columns, const float *image)
{
    const int64_t count = alone->num_voxels;
    float *ordered = kept(5 * count, sizeof(*ordered)), *packed = ordered + count;
    for (int64_t v = 0; v < count; v++) {
        int at[3];
        voxel_at(&alone->grid, v, at);
        ordered[column_voxel(columns, at)] = image[v];
        for (int which = 0; which < 4; which++) packed[packed_place(columns, v, which)] = image[v];
    }
    alone_check(alone, gl_buffer_upload(columns->image, 0, count * 4, ordered) == LR_OK);
    if (columns->packed != NULL) alone_check(alone, gl_buffer_upload(columns->packed, 0, count * 16, packed) == LR_OK);
}

/* Reads the image that back passes wrote, adds up its shares, and returns [num_voxels] in the grid's order. */
static inline void take_image(struct alone *alone, const struct lr_columns *columns, double *image)
{
    const int64_t count = alone->num_voxels;
    const float *shares = device_read(columns->image, columns->shares * count, sizeof(float));
    for (int64_t v = 0; v < count; v++) {
        int at[3];
        voxel_at(&alone->grid, v, at);
        image[v] = 0;
        for (int share = 0; share < columns->shares; share++)
            image[v] += (double)shares[share * count + column_voxel(columns, at)];
    }
}

static inline void end_columns(void *columns)
{
    lr_columns_destroy(columns);
}

static inline struct lr_columns *make_columns(struct alone *alone)
{
    struct lr_method_params params = alone_method(alone);
    params.may_hide = false; /* a pass alone is compared with elements without hiding */
    assert_true(lr_columns_method.serves(&params, LR_METHOD_PROJECTIONS));
    struct lr_columns *columns = lr_columns_create(&params);
    alone_check(alone, columns != NULL);
    return keep_object(columns, end_columns);
}

/* One dispatch of a pass over a window. input and output: buffers of LR_BIND_SUMS and LR_BIND_OUTPUT. */
struct column_step {
    enum lr_columns_program which;
    int groups[3];
    int first_point, end_point; /* back: across the column, in a voxel */
    const struct gl_buffer *input, *output;
};

static inline void run_step(struct alone *alone, const struct lr_window *window, const struct column_step *step)
{
    struct lr_columns *columns = window->columns;
    struct lr_columns_pass uniforms = lr_columns_uniforms(columns);
    uniforms.first[2] = step->first_point;
    uniforms.count[0] =
        window->stacks.pairs != NULL ? window->stacks.num_pairs : (int32_t)(window->part.end - window->part.begin);
    uniforms.count[1] = step->end_point;
    uniforms.count[2] = columns->shares;
    uniforms.count[3] = (int32_t)alone->num_voxels;
    struct gl_pass pass =
        alone_pass(alone, lr_columns_program(columns, step->which), &uniforms, sizeof(uniforms), step->groups);
    lr_columns_bind_scene(columns, &pass);
    bind_buffers(&pass, LR_BIND_COLUMN_PAIRS, window->pairs, LR_BIND_COLUMN_IMAGE, columns->image,
                 LR_BIND_COLUMN_STACKS, window->stacks.pairs, LR_BIND_COLUMN_LIST, window->stacks.members, LR_BIND_SUMS,
                 step->input, LR_BIND_OUTPUT, step->output);
    alone_check(alone, gl_pass_run(alone->ctx, &pass) == LR_OK);
}

/* Begins the windows of the pairs in the same way as the projections; `order` must outlive them. */
static inline struct lr_window begin_windows(struct alone *alone, struct lr_columns *columns,
                                             struct lr_stack_order *order)
{
    struct lr_window window;
    alone_check(alone, lr_window_begin(&window, columns, &alone->list, order) == LR_OK);
    window.most_rounds = columns->most_rounds;
    return window;
}

static inline void open_window(struct alone *alone, struct lr_window *window, bool with_file)
{
    float nothing = 0.0f; /* of the host: only the count matters */
    alone_check(alone,
                lr_window_open(window, with_file || !alone->exact ? vector_of(&nothing, alone->num_values) : NULL,
                               true) == LR_OK);
}
