/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * shaders/correspondence/rows/: lists of elements that are drawn, points in turn or shuffled, against rows that are made of
 * them one by one; what the host makes of the same lists; and how rows come to the sink that were merged part
 * by part. */
#include "stage.h"

#include "correspondence/compute/rows/deliver.h"
#include "correspondence/compute/rows/merge.h"

/* A list: points of whole rows, or of part of one, and what each has. */
struct list_case {
    const char *name;
    int64_t num_lors;
    int per_row, num_points, first_point;
    int per_point; /* elements at most, of as many LORs */
    int one_in;    /* rows that have any; 0 = all */
    bool repeats;  /* LORs come in up to three parts */
};

struct list {
    const struct list_case *at;
    struct lr_listed *elements; /* [count] points in order */
    int64_t count;
};

/* What rows are to have. */
struct expected {
    int num_rows;
    uint32_t *starts;                 /* [num_rows + 1] */
    struct lr_packed_element *merged; /* [starts[num_rows]] */
};

/* --- lists --- */

static int row_of(const struct list_case *at, uint32_t point)
{
    return ((int)point - at->first_point) / at->per_row;
}

/* LORs of a point, spread over all: some points have the same ones. */
static void add_point(struct list *list, int point, int count, uint64_t *state)
{
    const struct list_case *at = list->at;
    const int64_t step = count > 0 ? at->num_lors / count : 1, begin = (int64_t)(3 * test_random(state));
    for (int k = 0; k < count; k++) {
        const int repeated = at->repeats && k % 10 < 3 ? k - k % 10 : k;
        list->elements[list->count++] = (struct lr_listed){
            (uint32_t)(at->first_point + point), (uint32_t)((begin + repeated * step) % at->num_lors),
            (float)(random_between(state, 0.01, 1) * pow(10, -7 * test_random(state))), 7};
    }
}

static struct list make_list(const struct list_case *at, uint64_t *state)
{
    const int64_t most = (int64_t)at->num_points * at->per_point;
    struct list list = {at, test_alloc(most + 1, sizeof(*list.elements)), 0};
    for (int point = 0; point < at->num_points; point++) {
        const bool is_empty = at->one_in > 0 && point / at->per_row % at->one_in != 1;
        add_point(&list, point, is_empty ? 0 : at->per_point - (int)(4 * test_random(state)) % (at->per_point + 1),
                  state);
    }
    return list;
}

/* As devices may list them. */
static void shuffle(struct list *list, uint64_t *state)
{
    for (int64_t k = list->count - 1; k > 0; k--) {
        const int64_t other = (int64_t)((double)(k + 1) * test_random(state));
        const struct lr_listed kept = list->elements[k];
        list->elements[k] = list->elements[other];
        list->elements[other] = kept;
    }
}

/* --- rows one by one --- */

static int compare_listed(const void *a, const void *b)
{
    const struct lr_listed *one = a, *other = b;
    return one->lor != other->lor       ? (one->lor < other->lor ? -1 : 1)
           : one->point != other->point ? (one->point < other->point ? -1 : 1)
                                        : 0;
}

static int64_t sum_row(struct lr_listed *row, int64_t count, int per_row, struct lr_packed_element *merged)
{
    int64_t num = 0;
    double sum = 0;
    qsort(row, (size_t)count, sizeof(*row), compare_listed);
    for (int64_t k = 0; k < count; k++) {
        const bool begins = k == 0 || row[k].lor != row[k - 1].lor;
        sum = (begins ? 0 : sum) + (double)row[k].weight;
        num += begins;
        merged[num - 1] = (struct lr_packed_element){row[k].lor, (float)(sum / per_row)};
    }
    return num;
}

static struct expected expect(const struct list *list)
{
    const struct list_case *at = list->at;
    struct expected expected = {.num_rows = row_of(at, (uint32_t)(at->first_point + at->num_points - 1)) + 1};
    struct lr_listed *sorted = test_alloc(list->count + 1, sizeof(*sorted));
    expected.starts = test_alloc(expected.num_rows + 1, sizeof(*expected.starts));
    expected.merged = test_alloc(list->count + 1, sizeof(*expected.merged));
    memcpy(sorted, list->elements, (size_t)list->count * sizeof(*sorted));
    int64_t begin = 0, end = 0;
    for (int row = 0; row < expected.num_rows; row++, begin = end) {
        while (end < list->count && row_of(at, sorted[end].point) == row) end++;
        expected.starts[row + 1] = expected.starts[row] + (uint32_t)sum_row(sorted + begin, end - begin, at->per_row,
                                                                            expected.merged + expected.starts[row]);
    }
    free(sorted);
    return expected;
}

/* --- rows of the device and the host --- */

static struct lr_merge open_merge(struct gl_context *ctx, struct lr_merge_programs *programs, const struct list *list)
{
    struct lr_merge merge = {.ctx = ctx,
                             .log = gl_context_log(ctx),
                             .programs = programs,
                             .repeats = list->at->repeats,
                             .num_lors = list->at->num_lors,
                             .per_row = list->at->per_row,
                             .max_points = list->at->num_points,
                             .slots = LR_MERGE_LEAST_SLOTS,
                             .capacity = 1};
    assert_int_equal(lr_merge_open(&merge), LR_OK);
    assert_int_equal(lr_merge_grow_list(&merge, list->count + 1), LR_OK);
    return merge;
}

static struct lr_merge_part describe(const struct list *list)
{
    return (struct lr_merge_part){list->at->num_points, list->at->first_point};
}

static void upload(const struct lr_merge *merge, const struct list *list)
{
    const uint32_t head[4] = {(uint32_t)list->count, 0, 0, 0};
    assert_int_equal(gl_buffer_upload(merge->list, 0, sizeof(head), head), LR_OK);
    assert_int_equal(
        gl_buffer_upload(merge->list, LR_LIST_HEAD_BYTES, list->count * LR_LIST_ELEMENT_BYTES, list->elements), LR_OK);
}

static struct lr_received receive(struct lr_receiver *receiver, const struct lr_merge *merge, const struct list *list)
{
    const struct lr_merge_part part = describe(list);
    struct lr_received received;
    upload(merge, list);
    assert_int_equal(lr_receiver_start(receiver, merge, &part), LR_OK);
    assert_int_equal(lr_receiver_finish(receiver, merge, &part, &received), LR_OK);
    assert_int_equal(received.tally->listed, list->count);
    return received;
}

/* As if there had been fewer points, but for all: tables of the size that merging has come to want. */
static void reopen(struct lr_merge *merge)
{
    const struct lr_merge before = *merge;
    lr_merge_finish(merge);
    *merge = (struct lr_merge){.ctx = before.ctx,
                               .log = before.log,
                               .programs = before.programs,
                               .repeats = before.repeats,
                               .num_lors = before.num_lors,
                               .per_row = before.per_row,
                               .max_points = before.max_points,
                               .slots = before.slots,
                               .capacity = before.capacity};
    assert_int_equal(lr_merge_open(merge), LR_OK);
}

/* In tables that are too small at first; `misfits` counts how often. */
static struct lr_received run_device(struct lr_receiver *receiver, struct lr_merge *merge, const struct list *list,
                                     int *misfits)
{
    struct lr_received received = receive(receiver, merge, list);
    while (received.tally->misfits > 0) {
        bool fits = false;
        ++*misfits;
        assert_int_equal(lr_merge_grow_tables(merge, list->at->num_points, &fits), LR_OK);
        if (!fits) reopen(merge);
        received = receive(receiver, merge, list);
    }
    return received;
}

/* What points of an unfinished row give is merged with those that follow: here there are none. */
static void check_host(const struct lr_merge *merge, const struct list *list, const struct expected *expected)
{
    const struct lr_merge_part part = describe(list);
    struct lr_host_merge host = {.threads = 2, .log = merge->log};
    uint32_t listed = 0;
    upload(merge, list);
    assert_int_equal(lr_host_merge_run(&host, merge, &part, &listed), LR_OK);
    assert_int_equal(listed, list->count);
    for (int row = 0; row < expected->num_rows; row++) {
        struct lr_elements *elements = &host.rows[row];
        const struct lr_packed_element *merged = expected->merged + expected->starts[row];
        if (part.num_points < merge->per_row) {
            assert_int_equal(elements->count, list->count);
            assert_int_equal(lr_elements_merge(elements, merge->num_lors, merge->log), LR_OK);
        }
        assert_int_equal(elements->count, expected->starts[row + 1] - expected->starts[row]);
        for (int64_t k = 0; k < elements->count; k++) {
            assert_int_equal(elements->list[k].lor, merged[k].lor);
            assert_close(elements->list[k].value, (double)merged[k].value, 0x1p-24);
        }
    }
    lr_host_merge_finish(&host);
}

/* rounding 0: to the bit. */
static void check(const struct expected *expected, const struct lr_received *received, double rounding)
{
    const struct lr_packed_element *merged = received->elements;
    assert_memory_equal(received->tally->starts, expected->starts,
                        ((size_t)expected->num_rows + 1) * sizeof(*expected->starts));
    for (uint32_t k = 0; k < expected->starts[expected->num_rows]; k++) {
        assert_int_equal(merged[k].lor, expected->merged[k].lor);
        assert_close((double)merged[k].value, (double)expected->merged[k].value, rounding);
    }
}

/* Several times, since what is gathered stands in another order each time: with the turn of both readbacks,
 * and where far fewer elements were expected. */
static int check_list(struct gl_context *ctx, struct lr_merge_programs *programs, const struct list_case *at,
                      uint64_t *state)
{
    struct list list = make_list(at, state);
    const struct expected expected = expect(&list);
    const double rounding = at->repeats ? 1.2e-7 : 0; /* the last bit: parts are added in any order */
    struct lr_merge merge = open_merge(ctx, programs, &list);
    struct lr_receiver receiver = {.ctx = ctx};
    struct lr_packed_element *first = test_alloc(list.count + 1, sizeof(*first));
    const size_t bytes = expected.starts[expected.num_rows] * sizeof(*first);
    int misfits = 0;
    for (int k = 0; k < 3; k++) {
        check_host(&merge, &list, &expected);
        receiver.current = 1 - receiver.current;
        const struct lr_received received = run_device(&receiver, &merge, &list, &misfits);
        check(&expected, &received, rounding);
        assert_true(k == 0 || memcmp(first, received.elements, bytes) == 0);
        memcpy(first, received.elements, bytes);
        receiver.elements_of_point = k == 0 ? 1e-9 : 0;
        shuffle(&list, state);
    }
    print_message("%s: %lld elements, %u sums, tables too small %d times\n", at->name, (long long)list.count,
                  expected.starts[expected.num_rows], misfits);
    lr_receiver_close(&receiver);
    lr_merge_finish(&merge);
    free(first);
    free(expected.merged);
    free(expected.starts);
    free(list.elements);
    return misfits;
}

static void check_lists(struct gl_context *ctx, bool repeats)
{
    const struct list_case cases[] = {
        {"rows of a point", 7000000, 1, 90, 0, 600, 0, repeats},
        {"most LORs, points that are numbered from others on", 4294967294, 8, 160, 1000, 90, 0, repeats},
        {"many points a row", 3000, 27, 27 * 12, 27, 60, 0, repeats},
        {"rows that are empty", 500000, 2, 600, 0, 40, 7, repeats},
        {"no elements", 100, 3, 9, 0, 0, 0, repeats},
        {"a long row", 400000, 64, 64, 0, 1500, 0, repeats},
        {"a point with many", 4000000, 1, 1, 5, 20000, 0, repeats},
        {"part of a row", 400000, 1000, 300, 40, 30, 0, repeats},
        {"one LOR in all rows", 1, 500, 2000, 0, 1, 0, repeats},
        {"a point each of many rows", 65536, 1, 4096, 0, 3, 3, repeats},
    };
    uint64_t state = test_seed();
    struct lr_merge_programs programs = {0};
    int misfits = 0;
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++)
        misfits += check_list(ctx, &programs, &cases[k], &state);
    assert_true(misfits > 2);
    lr_merge_programs_finish(&programs);
    assert_false(gl_context_saw_error(ctx));
}

static void test_merge(void **context)
{
    check_lists(*context, false);
}

static void test_merge_repeats(void **context)
{
    check_lists(*context, true);
}

/* A list that had no room for all says how many there were, on the device and on the host. */
static void test_long_list(void **context)
{
    const struct list_case at = {"too long", 70000, 4, 40, 0, 500, 0, false};
    uint64_t state = test_seed();
    struct lr_merge_programs programs = {0};
    struct lr_receiver receiver = {.ctx = *context};
    uint32_t listed = 0;
    struct list list = make_list(&at, &state);
    const int64_t count = list.count;
    struct lr_merge merge = open_merge(*context, &programs, &list);
    list.count = 7000;
    assert_int_equal(lr_merge_grow_list(&merge, list.count), LR_OK);
    upload(&merge, &list);
    const uint32_t head = (uint32_t)count;
    const struct lr_merge_part part = describe(&list);
    struct lr_host_merge host = {.threads = 1, .log = merge.log};
    struct lr_received received;
    assert_int_equal(gl_buffer_upload(merge.list, 0, sizeof(head), &head), LR_OK);
    assert_int_equal(lr_host_merge_run(&host, &merge, &part, &listed), LR_OK);
    assert_int_equal(listed, count);
    assert_int_equal(lr_receiver_start(&receiver, &merge, &part), LR_OK);
    assert_int_equal(lr_receiver_finish(&receiver, &merge, &part, &received), LR_OK);
    assert_int_equal(received.tally->listed, count);
    lr_host_merge_finish(&host);
    lr_receiver_close(&receiver);
    lr_merge_finish(&merge);
    lr_merge_programs_finish(&programs);
    free(list.elements);
}

/* --- to the sink --- */

/* Rows 5 to 8 of num_taken elements each. */
struct taken {
    int64_t next_row;
    int64_t count[9];
    int64_t lor[9][8];
    double probability[9][8];
    int64_t stop_before;
};

static lr_status take(void *user, const lr_row *row)
{
    struct taken *taken = user;
    assert_int_equal(row->row, taken->next_row);
    taken->next_row++;
    taken->count[row->row] = row->count;
    assert_true(row->count <= 8);
    for (int64_t k = 0; k < row->count; k++) {
        taken->lor[row->row][k] = row->lor[k];
        taken->probability[row->row][k] = row->probability[k];
    }
    return taken->next_row == taken->stop_before ? LR_CANCELLED : LR_OK;
}

static void add(struct lr_deliverer *deliverer, const struct lr_row_part *part,
                const struct lr_packed_element *elements)
{
    assert_int_equal(lr_deliverer_reserve(deliverer, part->count), LR_OK);
    for (int64_t k = 0; k < part->count; k++) deliverer->elements[deliverer->num_elements++] = elements[k];
    assert_int_equal(lr_deliverer_add(deliverer, part), LR_OK);
}

static lr_status take_block(void *user, const struct lr_row_block *block)
{
    const lr_row_sink sink = {take, user};
    return lr_row_block_unpack(block, &sink, NULL);
}

/* A whole row, a row in three parts over three batches, one that is empty, one in two parts. */
static void check_deliver(bool by_blocks)
{
    static const struct lr_packed_element a[] = {{3, 0.5f}, {9, 0.25f}}, b[] = {{1, 1.0f}, {9, 0.125f}};
    struct test_log log;
    struct taken taken = {.next_row = 5};
    test_log_init(&log);
    const lr_row_sink sink = {take, &taken};
    const struct lr_row_block_sink blocks = {take_block, &taken};
    struct lr_deliverer deliverer = {.num_lors = 10,
                                     .threads = 2,
                                     .log = &log.log,
                                     .blocks = by_blocks ? &blocks : NULL,
                                     .delivery = {.sink = &sink, .log = &log.log}};
    add(&deliverer, &(struct lr_row_part){5, 2, true, true}, a);
    add(&deliverer, &(struct lr_row_part){6, 2, true, false}, a);
    assert_int_equal(lr_deliverer_deliver(&deliverer), LR_OK);
    add(&deliverer, &(struct lr_row_part){6, 2, false, false}, b);
    assert_int_equal(lr_deliverer_deliver(&deliverer), LR_OK);
    assert_int_equal(taken.next_row, 6);
    add(&deliverer, &(struct lr_row_part){6, 1, false, true}, a);
    add(&deliverer, &(struct lr_row_part){7, 0, true, true}, NULL);
    add(&deliverer, &(struct lr_row_part){8, 1, true, false}, b);
    add(&deliverer, &(struct lr_row_part){8, 1, false, true}, b + 1);
    taken.stop_before = 9;
    assert_int_equal(lr_deliverer_deliver(&deliverer), LR_CANCELLED);
    static const int64_t counts[] = {2, 3, 0, 2}, lors[] = {1, 3, 9};
    static const double sums[] = {1.0, 1.0, 0.375};
    assert_memory_equal(taken.count + 5, counts, sizeof(counts));
    assert_memory_equal(taken.lor[6], lors, sizeof(lors));
    assert_memory_equal(taken.probability[6], sums, sizeof(sums));
    assert_true(taken.lor[5][1] == 9 && taken.probability[5][1] == 0.25);
    assert_true(taken.lor[8][0] == 1 && taken.probability[8][1] == 0.125);
    lr_deliverer_finish(&deliverer);
}

static void test_deliver(void **context)
{
    (void)context;
    check_deliver(false);
    check_deliver(true);
}

static lr_status refuse(void *user, const lr_row *row)
{
    (void)user;
    (void)row;
    return LR_FAILED;
}

/* Rows whose elements tell their place, and what of them came. */
struct many {
    int64_t next_row, num_elements;
};

static lr_status take_many(void *user, const lr_row *row)
{
    struct many *many = user;
    assert_int_equal(row->row, many->next_row++);
    for (int64_t k = 0; k < row->count; k++) {
        assert_true(row->lor[k] == many->num_elements);
        assert_true(row->probability[k] == (double)(many->num_elements++ % 1000));
    }
    return LR_OK;
}

static lr_status take_many_blocks(void *user, const struct lr_row_block *block)
{
    const lr_row_sink sink = {take_many, user};
    return lr_row_block_unpack(block, &sink, NULL);
}

/* More than are converted at once, and by more than one thread; by blocks also more than one has. */
static void check_deliver_many(bool by_blocks)
{
    static const int64_t counts[] = {700000, 300000, 200000, 1300000, 5, 2900000, 1};
    struct test_log log;
    struct many many = {0};
    test_log_init(&log);
    const lr_row_sink sink = {by_blocks ? refuse : take_many, &many};
    const struct lr_row_block_sink blocks = {take_many_blocks, &many};
    struct lr_deliverer deliverer = {.num_lors = 1 << 24,
                                     .threads = 3,
                                     .log = &log.log,
                                     .blocks = by_blocks ? &blocks : NULL,
                                     .delivery = {.sink = &sink, .log = &log.log}};
    for (int row = 0; row < 7; row++) {
        assert_int_equal(lr_deliverer_reserve(&deliverer, counts[row]), LR_OK);
        for (int64_t k = 0; k < counts[row]; k++) {
            const int64_t n = deliverer.num_elements++;
            deliverer.elements[n] = (struct lr_packed_element){(uint32_t)n, (float)(n % 1000)};
        }
        assert_int_equal(lr_deliverer_add(&deliverer, &(struct lr_row_part){row, counts[row], true, true}), LR_OK);
    }
    assert_int_equal(lr_deliverer_deliver(&deliverer), LR_OK);
    assert_int_equal(many.num_elements, 5400006);
    assert_int_equal(many.next_row, 7);
    lr_deliverer_finish(&deliverer);
}

static void test_deliver_many(void **context)
{
    (void)context;
    check_deliver_many(false);
    check_deliver_many(true);
}

int main(int argc, char **argv)
{
    struct gl_context *ctx = stage_context();
    if (ctx == NULL) return 77;
    stage_choose_tests(argc, argv);
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(test_merge, ctx),
                                       cmocka_unit_test_prestate(test_merge_repeats, ctx),
                                       cmocka_unit_test_prestate(test_long_list, ctx), cmocka_unit_test(test_deliver),
                                       cmocka_unit_test(test_deliver_many)};
    const int failed = cmocka_run_group_tests_name("render_alone_merge", tests, NULL, NULL);
    stage_leave(ctx);
    return failed;
}
