/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The passes correspondence/columns/order.comp, stack_order.comp, pack.comp, sum.comp and take_sums.comp, each alone:
 * moved values keep their bits, and lie where the descriptions of the orders say. */
#include "alone_columns.h"

/* Two orders of the values of a window with all pairs. */
struct orders {
    struct alone *alone;
    struct lr_columns *columns;
    struct lr_stack_order order;
    struct lr_window window;
    const int64_t *places; /* index in the other order of each value of the file; -1: not there */
    const float *file;     /* [num_values] random */
    int64_t num_column;
};

static void orders_open(struct orders *orders, const struct alone_case *at)
{
    orders->alone = alone_open(at);
    orders->columns = make_columns(orders->alone);
    orders->window = begin_windows(orders->alone, orders->columns, &orders->order);
    orders->window.most_rounds = INT64_MAX;
    assert_true(lr_window_next(&orders->window));
    assert_int_equal(orders->window.part.end, orders->window.part.num_pairs);
    open_window(orders->alone, &orders->window, true);
    orders->places = window_places(orders->alone, &orders->window);
    orders->file = kept_random_floats(orders->alone->num_values, 0, 2, &orders->alone->state);
    orders->num_column = orders->window.by_column->size_bytes / (int64_t)sizeof(float);
}

static void orders_close(struct orders *orders)
{
    lr_window_close(&orders->window);
    lr_stack_order_finish(&orders->order);
    destroy_kept(NULL);
}

static bool counts(const struct orders *orders, int64_t value)
{
    const struct alone *alone = orders->alone;
    return orders->places[value] >= 0 &&
           (!alone->exact || lr_lors_in_coincidence(alone->lors, alone->window.first_value + value));
}

static void run_order(struct orders *orders, enum lr_columns_program which, bool to_lor_order)
{
    const struct lr_window *window = &orders->window;
    const int most = window->most_across * window->most_along;
    const struct column_step step = {
        .which = which,
        .groups = {gl_divide_up(most, 16 * LR_GROUP_SIZE), 1, (int)(window->part.end - window->part.begin)},
        .input = to_lor_order ? window->by_column : window->by_lor,
        .output = to_lor_order ? window->by_lor : window->by_column};
    run_step(orders->alone, window, &step);
}

/* value 0: the values of the file. */
static void check_column_order(struct orders *orders, enum lr_columns_program which, float value)
{
    struct alone *alone = orders->alone;
    const struct lr_window *window = &orders->window;
    gl_buffer_clear(window->by_column, 0x40e00000); /* 7 */
    alone_check(alone, gl_buffer_upload(window->by_lor, 0, alone->num_values * 4, orders->file) == LR_OK);
    run_order(orders, which, false);
    const float *found = device_read(window->by_column, orders->num_column, sizeof(float));
    for (int64_t k = 0; k < alone->num_values; k++) {
        if (orders->places[k] >= 0) {
            const float want = !counts(orders, k) ? 0.0f : value > 0.0f ? value : orders->file[k];
            assert_true(found[orders->places[k]] == want);
        }
    }
}

static void check_lor_order(struct orders *orders, enum lr_columns_program which)
{
    struct alone *alone = orders->alone;
    const struct lr_window *window = &orders->window;
    const float *column = kept_random_floats(orders->num_column, 0, 2, &alone->state);
    alone_check(alone, gl_buffer_upload(window->by_column, 0, window->by_column->size_bytes, column) == LR_OK);
    run_order(orders, which, true);
    const float *found = device_read(window->by_lor, alone->num_values, sizeof(float));
    for (int64_t k = 0; k < alone->num_values; k++)
        if (orders->places[k] >= 0) assert_true(found[k] == (counts(orders, k) ? column[orders->places[k]] : 0.0f));
}

/* The places of values are all different, and fill the order without gaps. */
static void check_places(const struct orders *orders)
{
    int64_t same = 0, known = 0;
    bool *taken = kept(orders->num_column, sizeof(*taken));
    for (int64_t k = 0; k < orders->alone->num_values; k++) {
        if (orders->places[k] >= 0) {
            assert_true(orders->places[k] < orders->num_column && !taken[orders->places[k]]);
            taken[orders->places[k]] = true;
            same += orders->places[k] == k;
            known++;
        }
    }
    assert_true(known > 100 && same < known / 2);
}

static void test_columns_order(void **context)
{
    static const char *const names[] = {"lying", "upside down", "unequal", "flipped"};
    for (int k = 0; k < 4; k++) {
        struct orders orders;
        orders_open(&orders, &(struct alone_case){.scanner = names[k], .rays = 1, .size = {2, 2, 3}});
        check_places(&orders);
        check_column_order(&orders, LR_COLUMNS_FROM_LOR_ORDER, 0.0f);
        check_lor_order(&orders, LR_COLUMNS_TO_LOR_ORDER);
        orders_close(&orders);
    }
}

static void test_stack_order(void **context)
{
    static const char *const names[] = {"lying", "upside down", "wide rings", "unequal", "ruled ring"};
    int masks = 0, stacks = 0;
    for (int k = 0; k < 5; k++) {
        struct orders orders;
        orders_open(&orders, &(struct alone_case){.scanner = names[k], .size = {2, 2, 3}});
        check_places(&orders);
        check_column_order(&orders, LR_COLUMNS_TO_STACKS, 0.0f);
        check_column_order(&orders, LR_COLUMNS_ONES_TO_STACKS, 1.0f);
        check_lor_order(&orders, LR_COLUMNS_STACKS_TO_LOR_ORDER);
        masks += orders.columns->masks.any;
        stacks += orders.columns->stacks->most_modules > 1;
        orders_close(&orders);
    }
    assert_true(masks > 0 && stacks > 1);
}

static void test_pack(void **context)
{
    const struct alone_case at = {.scanner = "wide rings", .samples = {2, 1, 2}, .size = {3, 4, 5}};
    struct orders orders;
    orders_open(&orders, &at);
    struct alone *alone = orders.alone;
    const struct lr_columns *columns = orders.columns;
    const float *image = kept_random_floats(alone->num_voxels, 0, 1, &alone->state);
    assert_non_null(columns->packed);
    put_image(alone, orders.columns, image);
    gl_buffer_clear(columns->packed, 0);
    run_step(alone, &orders.window,
             &(struct column_step){.which = LR_COLUMNS_PACK,
                                   .groups = {gl_divide_up(alone->num_voxels, LR_GROUP_SIZE), 1, 1},
                                   .output = columns->packed});
    const float *packed = device_read(columns->packed, 4 * alone->num_voxels, sizeof(float));
    for (int64_t v = 0; v < alone->num_voxels; v++)
        for (int which = 0; which < 4; which++) assert_true(packed[packed_place(columns, v, which)] == image[v]);
    orders_close(&orders);
}

static void test_sum(void **context)
{
    enum { SHARES = 5 };
    const struct alone_case at = {.scanner = "wide rings", .size = {2, 2, 3}};
    struct orders orders;
    orders_open(&orders, &at);
    struct alone *alone = orders.alone;
    const int64_t count = alone->num_voxels;
    const float *shares = kept_random_floats(SHARES * count, 1, 2, &alone->state);
    assert_non_null(lr_columns_program(orders.columns, LR_COLUMNS_SUM));
    struct lr_columns with_shares = *orders.columns;
    with_shares.shares = SHARES;
    with_shares.image = device_buffer(SHARES * count * 4, shares);
    orders.window.columns = &with_shares;
    run_step(alone, &orders.window,
             &(struct column_step){.which = LR_COLUMNS_SUM, .groups = {gl_divide_up(count, LR_GROUP_SIZE), 1, 1}});
    const float *sums = device_read(with_shares.image, SHARES * count, sizeof(float));
    for (int64_t v = 0; v < count; v++) {
        double want = 0;
        for (int share = 0; share < SHARES; share++) {
            want += (double)shares[share * count + v];
            assert_true(share == 0 || sums[share * count + v] == 0.0f);
        }
        assert_close((double)sums[v], want, 4 * 6e-8); /* four additions */
    }
    orders_close(&orders);
}

static void test_take_sums(void **context)
{
    struct alone *alone = alone_open(&(struct alone_case){.scanner = "lying", .size = {2, 2, 3}});
    struct lr_columns *columns = make_columns(alone);
    const int64_t count = alone->num_voxels;
    const double unit = ldexp(1, 3 - 61);
    int64_t *sums = kept(count + 1, sizeof(*sums)); /* the first one is the header */
    for (int64_t v = 0; v < count; v++)
        sums[v + 1] = (int64_t)ldexp(random_between(&alone->state, -1, 1), 20 + (int)(3.5 * v));
    struct gl_buffer *buffer = device_buffer((count + 1) * 8, sums);
    struct lr_columns_pass uniforms = lr_columns_uniforms(columns);
    uniforms.count[3] = (int32_t)count;
    uniforms.origin[3] = (float)unit;
    struct gl_pass pass = alone_pass(alone, lr_columns_program(columns, LR_COLUMNS_TAKE_SUMS), &uniforms,
                                     sizeof(uniforms), (const int[3]){gl_divide_up(count, LR_GROUP_SIZE), 1, 1});
    bind_buffers(&pass, LR_BIND_COLUMN_LIST, buffer, LR_BIND_COLUMN_IMAGE, columns->image);
    alone_check(alone, gl_pass_run(alone->ctx, &pass) == LR_OK);
    const float *image = device_read(columns->image, count, sizeof(float));
    /* Rounding: one float from each word, and one from their sum. For a sum slightly below 0 both words are large and
     * cancel each other. */
    for (int64_t v = 0; v < count; v++) {
        const double want = (double)sums[v + 1] * unit;
        assert_true(fabs((double)image[v] - want) <= 3 * 6e-8 * fabs(want) + 0x1p9 * unit);
    }
}

stage_main("render_alone_orders", CASES(test_columns_order, test_stack_order, test_pack, test_sum, test_take_sums))
