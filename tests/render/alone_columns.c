/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The passes correspondence/columns/forward.comp, back.comp, forward_exact.comp and back_exact.comp, each alone.
 * Forward: every element, voxel by voxel. Back: the elements of some LORs one by one, and all elements in sums. */
#include "alone_columns.h"

/* Cases for which the programs of exact passes are compiled. */
struct variants {
    int mirrored, turned, packed, near, masks, plain;
};

/* LORs whose elements are read one by one. */
enum { NUM_VALUES = 24 };

/* --- forward --- */

/* The row of one voxel is the projection of an image of this voxel. Exact passes do not remove LORs out of coincidence;
 * correspondence/columns/stack_order.comp does. */
static void forward_voxel(struct alone *alone, const struct lr_window *window, const int64_t *places, int64_t voxel,
                          double *found)
{
    put_image(alone, window->columns, alone_one_voxel(alone, voxel));
    const struct lr_columns *columns = window->columns;
    const bool exact = columns->params.mode == LR_MODE_EXACT;
    const int along = !exact                 ? window->most_along
                      : columns->is_mirrored ? (window->most_stacked + 1) / 2
                                             : window->most_stacked;
    const struct column_step step =
        filled(struct column_step, .which = exact ? LR_COLUMNS_FORWARD_EXACT : LR_COLUMNS_FORWARD,
               .groups = {window->most_across, gl_divide_up(along, columns->forward_group),
                          exact ? window->stacks.num_pairs : (int)(window->part.end - window->part.begin)},
               .input = columns->packed, .output = window->by_column);
    run_step(alone, window, &step);
    const float *values = device_read(window->by_column, window->by_column->size_bytes / 4, sizeof(float));
    for (int64_t k = 0; k < alone->num_values; k++) {
        const int64_t lor = alone->window.first_value + k;
        if (places[k] >= 0 && (!alone->exact || lr_lors_in_coincidence(alone->lors, lor)))
            found[voxel * alone->num_values + k] = (double)values[places[k]];
    }
}

static void check_forward(struct alone *alone, struct lr_columns *columns, void *unused)
{
    struct lr_stack_order order;
    double *found = alone_found(alone);
    struct lr_window window = begin_windows(alone, columns, &order);
    while (lr_window_next(&window)) {
        int64_t *places = window_places(alone, &window);
        open_window(alone, &window, false);
        for (int64_t voxel = 0; voxel < alone->num_voxels; voxel++) forward_voxel(alone, &window, places, voxel, found);
        lr_window_close(&window);
    }
    alone_compare(alone, "forward", found);
    lr_stack_order_finish(&order);
}

/* --- back --- */

static enum lr_columns_program back_program(const struct lr_window *window, bool ones)
{
    const bool exact = window->columns->params.mode == LR_MODE_EXACT;
    return !exact                         ? (ones ? LR_COLUMNS_ONES : LR_COLUMNS_BACK)
           : window->stacks.has_half_turn ? LR_COLUMNS_BACK_HALF_TURN
                                          : LR_COLUMNS_BACK_EXACT;
}

/* Adds to the image. values: [num_values]; NULL: 1 for each. Returns whether columns were drawn together with their
 * images after half a turn. */
static bool back_window(struct alone *alone, struct lr_window *window, const float *values)
{
    open_window(alone, window, false);
    int64_t *places = window_places(alone, window);
    float *column = kept(window->by_column->size_bytes, 1);
    for (int64_t k = 0; values != NULL && k < alone->num_values; k++)
        if (places[k] >= 0 && lr_lors_in_coincidence(alone->lors, alone->window.first_value + k))
            column[places[k]] = values[k];
    alone_check(alone, gl_buffer_upload(window->by_column, 0, window->by_column->size_bytes, column) == LR_OK);
    const bool turned = window->stacks.has_half_turn;
    const struct lr_columns *columns = window->columns;
    const int *size = alone->grid.size, *samples = alone->params.samples;
    const int points = (columns->is_mirrored ? 4 : alone->exact ? 2 : 1) * columns->back_group;
    struct column_step step = {.which = back_program(window, values == NULL), .output = window->by_column};
    const int rows = size[columns->across[1]];
    step.groups[0] = gl_divide_up(size[columns->across[0]], columns->back_columns);
    step.groups[1] = step.which == LR_COLUMNS_BACK_HALF_TURN ? (rows + 1) / 2 : rows;
    step.groups[2] = columns->shares * gl_divide_up(size[columns->axis], points / samples[columns->axis]);
    const int num_across = samples[columns->across[0]] * samples[columns->across[1]];
    for (step.first_point = 0; step.first_point < num_across; step.first_point++) {
        step.end_point = step.first_point + 1;
        run_step(alone, window, &step);
    }
    lr_window_close(window);
    return turned;
}

/* Returns the number of windows in which columns were drawn together with their images after half a turn. */
static int back_alone(struct alone *alone, struct lr_columns *columns, const float *values, double *image)
{
    struct lr_stack_order order;
    int turned = 0;
    struct lr_window window = begin_windows(alone, columns, &order);
    gl_buffer_clear(columns->image, 0);
    while (lr_window_next(&window)) turned += back_window(alone, &window, values);
    take_image(alone, columns, image);
    lr_stack_order_finish(&order);
    return turned;
}

static void back_of_values(struct alone *alone, void *device, const float *values, double *image)
{
    (void)back_alone(alone, device, values, image);
}

static void check_back(struct alone *alone, struct lr_columns *columns, void *user)
{
    struct variants *variants = user;
    double *image = kept(alone->num_voxels, sizeof(*image));
    float *values = kept_random_floats(alone->num_values, 0, 2, &alone->state);
    const int turned = back_alone(alone, columns, values, image);
    alone_compare_sums(alone, "back", values, image);
    alone_check_back_values(alone, columns, back_of_values, NUM_VALUES);
    if (!alone->exact) {
        for (int64_t k = 0; k < alone->num_values; k++) values[k] = 1;
        back_alone(alone, columns, NULL, image);
        alone_compare_sums(alone, "back of ones", values, image);
    }
    variants->turned += turned > 0;
    variants->mirrored += columns->is_mirrored;
    variants->packed += columns->packed != NULL;
    variants->near += columns->may_be_near;
    variants->masks += columns->masks.any;
    variants->plain += !columns->is_mirrored && !columns->may_be_near;
}

/* --- cases --- */

static const struct alone_case sampled_cases[] = {
    {.scanner = "lying", .rays = 2, .samples = {1, 2, 2}},
    {.scanner = "upside down", .rays = 2, .samples = {1, 2, 2}},
    {.scanner = "unequal", .rays = 2, .samples = {2, 1, 3}, .off_centre = true},
    {.scanner = "ruled ring", .rays = 2, .off_centre = true, .pairs = 30},
    {.scanner = "ge-explore-vista-dr", .rays = 2, .off_centre = true, .size = {2, 2, 3}, .pairs = 3}};

static const struct alone_case exact_cases[] = {{.scanner = "lying", .samples = {1, 2, 2}},
                                                {.scanner = "upside down", .samples = {1, 2, 2}},
                                                {.scanner = "wide rings", .size = {3, 3, 5}},
                                                {.scanner = "wide rings", .samples = {2, 1, 2}, .size = {2, 2, 4}},
                                                {.scanner = "wide rings", .off_centre = true},
                                                {.scanner = "flipped", .near = true},
                                                {.scanner = "ring of 8", .off_centre = true, .size = {2, 2, 3}},
                                                {.scanner = "ruled ring", .pairs = 20},
                                                {.scanner = "ge-explore-vista-dr", .size = {2, 2, 3}, .pairs = 3}};

typedef void check_columns(struct alone *alone, struct lr_columns *columns, void *user);

static void each_case(const struct alone_case *cases, int num_cases, check_columns *check, void *user)
{
    for (int k = 0; k < num_cases; k++) {
        struct alone *alone = alone_open(&cases[k]);
        check(alone, make_columns(alone), user);
        destroy_kept(NULL);
    }
}

enum { NUM_SAMPLED = length_of(sampled_cases), NUM_EXACT = length_of(exact_cases) };

static void test_forward_sampled(void **context)
{
    each_case(sampled_cases, NUM_SAMPLED, check_forward, NULL);
}

static void test_back_sampled(void **context)
{
    struct variants variants = {0};
    each_case(sampled_cases, NUM_SAMPLED, check_back, &variants);
    assert_true(variants.masks > 0);
}

static void test_forward_exact(void **context)
{
    each_case(exact_cases, NUM_EXACT, check_forward, NULL);
}

static void test_back_exact(void **context)
{
    struct variants variants = {0};
    each_case(exact_cases, NUM_EXACT, check_back, &variants);
    print_message("%d mirrored, %d turned, %d packed, %d near, %d with masks, %d plain\n", variants.mirrored,
                  variants.turned, variants.packed, variants.near, variants.masks, variants.plain);
    assert_true(variants.mirrored > 0 && variants.turned > 0 && variants.packed > 0);
    assert_true(variants.near > 0 && variants.masks > 0 && variants.plain > 0);
}

stage_main("render_alone_columns", CASES(test_forward_sampled, test_back_sampled, test_forward_exact, test_back_exact))
