/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * shaders/correspondence/rows/: random lists of elements, with points in order or shuffled, are merged by the device
 * and by the host, and compared with rows that the test merges one by one. Also tested: delivery to the sink of rows
 * that were merged in parts. */
#include "subject.h"

#include "correspondence/compute/rows/merge.h"
#include "gl/context_private.h"

/* A list of elements: of the points of whole rows or of part of one row, and how many elements each has. */
struct list_case {
    const char *name;
    int64_t num_lors;
    int per_row, num_points, first_point;
    int per_point; /* at most; each has another LOR */
    int one_in;    /* one of so many rows has elements; 0 = all rows */
    bool repeats;  /* a LOR has up to three elements of a point */
};

struct list {
    const struct list_case *at;
    struct lr_listed *elements; /* [count] ordered by point */
    int64_t count;
};

/* The expected rows. */
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

/* The LORs of a point are spread over all LORs, so that some points share LORs. */
static struct list make_list(const struct list_case *at, uint64_t *state)
{
    struct list list = {at, kept((int64_t)at->num_points * at->per_point, sizeof(*list.elements)), 0};
    for (int point = 0; point < at->num_points; point++) {
        const bool is_empty = at->one_in > 0 && point / at->per_row % at->one_in != 1;
        const int count = is_empty ? 0 : at->per_point - (int)(4 * test_random(state)) % (at->per_point + 1);
        const int64_t step = count > 0 ? at->num_lors / count : 1, begin = (int64_t)(3 * test_random(state));
        for (int k = 0; k < count; k++) {
            const int repeated = at->repeats && k % 10 < 3 ? k - k % 10 : k;
            list.elements[list.count++] = (struct lr_listed){
                (uint32_t)(at->first_point + point), (uint32_t)((begin + repeated * step) % at->num_lors),
                (float)(random_between(state, 0.01, 1) * pow(10, -7 * test_random(state))), 7};
        }
    }
    return list;
}

/* --- rows one by one --- */

static int compare_listed(const void *a, const void *b)
{
    const struct lr_listed *one = a, *other = b;
    return one->lor != other->lor       ? (one->lor < other->lor ? -1 : 1)
           : one->point != other->point ? (one->point < other->point ? -1 : 1)
                                        : 0;
}

static struct expected expect(const struct list *list)
{
    const struct list_case *at = list->at;
    struct expected expected = {.num_rows = row_of(at, (uint32_t)(at->first_point + at->num_points - 1)) + 1,
                                .merged = kept(list->count, sizeof(*expected.merged))};
    struct lr_listed *sorted = kept(list->count, sizeof(*sorted));
    int64_t begin = 0, end = 0;
    uint32_t num = 0;
    expected.starts = kept(expected.num_rows + 1, sizeof(*expected.starts));
    memcpy(sorted, list->elements, (size_t)list->count * sizeof(*sorted));
    for (int row = 0; row < expected.num_rows; row++, begin = end) {
        double sum = 0;
        while (end < list->count && row_of(at, sorted[end].point) == row) end++;
        qsort(sorted + begin, (size_t)(end - begin), sizeof(*sorted), compare_listed);
        for (int64_t k = begin; k < end; k++) {
            const bool begins = k == begin || sorted[k].lor != sorted[k - 1].lor;
            sum = (begins ? 0 : sum) + (double)sorted[k].weight;
            num += begins;
            expected.merged[num - 1] = (struct lr_packed_element){sorted[k].lor, (float)(sum / at->per_row)};
        }
        expected.starts[row + 1] = num;
    }
    return expected;
}

/* --- rows of the device and the host --- */

static struct lr_merge open_merge(struct gl_context *ctx, struct lr_merge_programs *programs, const struct list *list,
                                  int64_t slots, int64_t capacity)
{
    struct lr_merge merge =
        filled(struct lr_merge, .ctx = ctx, .log = gl_context_log(ctx), .programs = programs,
               .repeats = list->at->repeats, .num_lors = list->at->num_lors, .per_row = list->at->per_row,
               .max_points = list->at->num_points, .slots = slots, .capacity = capacity);
    assert_ok(lr_merge_open(&merge), lr_merge_grow_list(&merge, list->count + 1));
    return merge;
}

static struct lr_merge_part describe(const struct list *list)
{
    return (struct lr_merge_part){list->at->num_points, list->at->first_point};
}

static void upload(const struct lr_merge *merge, const struct list *list)
{
    const uint32_t head[4] = {(uint32_t)list->count, 0, 0, 0};
    assert_ok(gl_buffer_upload(merge->list, 0, sizeof(head), head));
    assert_ok(gl_buffer_upload(merge->list, LR_LIST_HEAD_BYTES, list->count * LR_LIST_ELEMENT_BYTES, list->elements));
}

static struct lr_received receive(struct lr_receiver *receiver, const struct lr_merge *merge, const struct list *list)
{
    const struct lr_merge_part part = describe(list);
    struct lr_received received;
    upload(merge, list);
    assert_ok(lr_receiver_start(receiver, merge, &part), lr_receiver_finish(receiver, merge, &part, &received));
    assert_int_equal(received.tally->listed, list->count);
    return received;
}

/* Merges in tables that are too small at first; `misfits` counts the failed attempts. */
static struct lr_received run_device(struct lr_receiver *receiver, struct lr_merge *merge, const struct list *list,
                                     int *misfits)
{
    struct lr_received received = receive(receiver, merge, list);
    while (received.tally->misfits > 0) {
        bool fits = false;
        ++*misfits;
        assert_ok(lr_merge_grow_tables(merge, list->at->num_points, &fits));
        if (!fits) { /* starts again with tables of the size that merging now needs */
            const int64_t slots = merge->slots, capacity = merge->capacity;
            lr_merge_finish(merge);
            *merge = open_merge(merge->ctx, merge->programs, list, slots, capacity);
        }
        received = receive(receiver, merge, list);
    }
    return received;
}

/* The host keeps the elements of an unfinished row, to merge them with those of later points; here there are no later
 * points. */
static void check_host(const struct lr_merge *merge, const struct list *list, const struct expected *expected)
{
    const struct lr_merge_part part = describe(list);
    struct lr_host_merge host = {.threads = 2, .log = merge->log};
    uint32_t listed = 0;
    upload(merge, list);
    assert_ok(lr_host_merge_run(&host, merge, &part, &listed));
    assert_int_equal(listed, list->count);
    for (int row = 0; row < expected->num_rows; row++) {
        struct lr_elements *elements = &host.rows[row];
        const struct lr_packed_element *merged = expected->merged + expected->starts[row];
        if (part.num_points < merge->per_row) {
            assert_int_equal(elements->count, list->count);
            assert_ok(lr_elements_merge(elements, merge->num_lors, merge->log));
        }
        assert_int_equal(elements->count, expected->starts[row + 1] - expected->starts[row]);
        for (int64_t k = 0; k < elements->count; k++) {
            assert_int_equal(elements->list[k].lor, merged[k].lor);
            assert_close(elements->list[k].value, (double)merged[k].value, 0x1p-24);
        }
    }
    lr_host_merge_finish(&host);
}

/* Merges several times, because the collected elements have another order each time: with the two readbacks in turn,
 * and with far fewer elements expected than there are. */
static int check_list(struct gl_context *ctx, struct lr_merge_programs *programs, const struct list_case *at,
                      uint64_t *state)
{
    struct list list = make_list(at, state);
    const struct expected expected = expect(&list);
    const double rounding = at->repeats ? 1.2e-7 : 0; /* the last bit: parts are added in any order */
    struct lr_merge merge = open_merge(ctx, programs, &list, LR_MERGE_LEAST_SLOTS, 1);
    struct lr_receiver receiver = {.ctx = ctx};
    struct lr_packed_element *first = kept(list.count + 1, sizeof(*first));
    const size_t bytes = expected.starts[expected.num_rows] * sizeof(*first);
    int misfits = 0;
    for (int k = 0; k < 3; k++) {
        check_host(&merge, &list, &expected);
        receiver.current = 1 - receiver.current;
        const struct lr_received received = run_device(&receiver, &merge, &list, &misfits);
        /* A rounding of 0 asks for the same bits. */
        const struct lr_packed_element *merged = received.elements;
        assert_memory_equal(received.tally->starts, expected.starts,
                            ((size_t)expected.num_rows + 1) * sizeof(*expected.starts));
        for (uint32_t n = 0; n < expected.starts[expected.num_rows]; n++) {
            assert_int_equal(merged[n].lor, expected.merged[n].lor);
            assert_close((double)merged[n].value, (double)expected.merged[n].value, rounding);
        }
        assert_true(k == 0 || memcmp(first, received.elements, bytes) == 0);
        memcpy(first, received.elements, bytes);
        receiver.elements_of_point = k == 0 ? 1e-9 : 0;
        /* Changes the order, since devices list elements in any order. */
        for (int64_t n = list.count - 1; n > 0; n--) {
            const int64_t other = (int64_t)((double)(n + 1) * test_random(state));
            const struct lr_listed kept = list.elements[n];
            list.elements[n] = list.elements[other];
            list.elements[other] = kept;
        }
    }
    print_message("%s: %lld elements, %u sums, tables too small %d times\n", at->name, (long long)list.count,
                  expected.starts[expected.num_rows], misfits);
    lr_receiver_close(&receiver);
    lr_merge_finish(&merge);
    destroy_kept(NULL);
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
        {"a point each of many rows", 65536, 1, 4096, 0, 3, 3, repeats}};
    uint64_t state = test_seed();
    struct lr_merge_programs programs = {0};
    int misfits = 0;
    for (int k = 0; k < length_of(cases); k++) misfits += check_list(ctx, &programs, &cases[k], &state);
    assert_true(misfits > 2);
    lr_merge_programs_finish(&programs);
    assert_false(ctx->saw_error);
}

static void test_merge(void **context)
{
    check_lists(*context, false);
}

static void test_merge_repeats(void **context)
{
    check_lists(*context, true);
}

/* A list that is too short for all elements still counts them all, on the device and on the host. */
static void test_long_list(void **context)
{
    const struct list_case at = {"too long", 70000, 4, 40, 0, 500, 0, false};
    uint64_t state = test_seed();
    struct lr_merge_programs programs = {0};
    struct lr_receiver receiver = {.ctx = *context};
    uint32_t listed = 0;
    struct list list = make_list(&at, &state);
    const int64_t count = list.count;
    struct lr_merge merge = open_merge(*context, &programs, &list, LR_MERGE_LEAST_SLOTS, 1);
    list.count = 7000;
    assert_ok(lr_merge_grow_list(&merge, list.count));
    upload(&merge, &list);
    const uint32_t head = (uint32_t)count;
    const struct lr_merge_part part = describe(&list);
    struct lr_host_merge host = {.threads = 1, .log = merge.log};
    struct lr_received received;
    assert_ok(gl_buffer_upload(merge.list, 0, sizeof(head), &head));
    assert_ok(lr_host_merge_run(&host, &merge, &part, &listed));
    assert_int_equal(listed, count);
    assert_ok(lr_receiver_start(&receiver, &merge, &part));
    assert_ok(lr_receiver_finish(&receiver, &merge, &part, &received));
    assert_int_equal(received.tally->listed, count);
    lr_host_merge_finish(&host);
    lr_receiver_close(&receiver);
    lr_merge_finish(&merge);
    lr_merge_programs_finish(&programs);
}

/* --- delivery to the sink --- */

/* Rows received; they must come in ascending order. */
struct taken {
    int64_t next_row, stop_before, num_elements;
    struct row rows[9]; /* copies of the rows */
};

static lr_status take(void *user, const lr_row *row)
{
    struct taken *taken = user;
    assert_int_equal(row->row, taken->next_row++);
    take_row(taken->rows, row);
    return taken->next_row == taken->stop_before ? LR_CANCELLED : LR_OK;
}

/* The LOR and the value of each element give its position. */
static lr_status take_many(void *user, const lr_row *row)
{
    struct taken *taken = user;
    assert_int_equal(row->row, taken->next_row++);
    for (int64_t k = 0; k < row->count; k++) {
        assert_true(row->lor[k] == taken->num_elements);
        assert_true(row->probability[k] == (double)(taken->num_elements++ % 1000));
    }
    return LR_OK;
}

static lr_status refuse(void *user, const lr_row *row)
{
    return LR_FAILED;
}

/* user: passed on to the sink of rows. */
static lr_status take_block(void *user, const struct lr_row_block *block)
{
    return lr_row_block_unpack(block, user, NULL);
}

/* A delivery of rows to a sink, by blocks if wanted; then rows that are not in a block go to `other`. */
struct delivery {
    struct test_log log;
    lr_row_sink sink, other;
    struct lr_row_block_sink blocks;
    struct lr_deliverer deliverer;
};

static void delivery_open(struct delivery *delivery, int64_t num_lors, int threads, bool by_blocks)
{
    delivery->blocks = (struct lr_row_block_sink){take_block, &delivery->sink};
    test_log_init(&delivery->log);
    delivery->deliverer =
        filled(struct lr_deliverer, .num_lors = num_lors, .threads = threads, .log = &delivery->log.log,
               .blocks = by_blocks ? &delivery->blocks : NULL,
               .delivery = {.sink = by_blocks ? &delivery->other : &delivery->sink, .log = &delivery->log.log});
}

static void add(struct lr_deliverer *deliverer, const struct lr_row_part *part,
                const struct lr_packed_element *elements)
{
    assert_ok(lr_deliverer_add(deliverer, part, elements));
}

/* Delivers a whole row, a row in three parts from three batches, an empty row, and a row in two parts. */
static void check_deliver(bool by_blocks)
{
    static const struct lr_packed_element a[] = {{3, 0.5f}, {9, 0.25f}}, b[] = {{1, 1.0f}, {9, 0.125f}};
    struct taken taken = {.next_row = 5};
    struct delivery delivery = {.sink = {take, &taken}, .other = {take, &taken}};
    delivery_open(&delivery, 10, 2, by_blocks);
    struct lr_deliverer *deliverer = &delivery.deliverer;
    add(deliverer, &(struct lr_row_part){5, 2, true, true}, a);
    add(deliverer, &(struct lr_row_part){6, 2, true, false}, a);
    assert_ok(lr_deliverer_deliver(deliverer));
    add(deliverer, &(struct lr_row_part){6, 2, false, false}, b);
    assert_ok(lr_deliverer_deliver(deliverer));
    assert_int_equal(taken.next_row, 6);
    add(deliverer, &(struct lr_row_part){6, 1, false, true}, a);
    add(deliverer, &(struct lr_row_part){7, 0, true, true}, NULL);
    add(deliverer, &(struct lr_row_part){8, 1, true, false}, b);
    add(deliverer, &(struct lr_row_part){8, 1, false, true}, b + 1);
    taken.stop_before = 9;
    assert_int_equal(lr_deliverer_deliver(deliverer), LR_CANCELLED);
    struct row expected[] = {{2, (int64_t[]){3, 9}, (double[]){0.5, 0.25}},
                             {3, (int64_t[]){1, 3, 9}, (double[]){1.0, 1.0, 0.375}},
                             {0, NULL, NULL},
                             {2, (int64_t[]){1, 9}, (double[]){1.0, 0.125}}};
    check_same_rows(taken.rows + 5, expected, 4, 0);
    lr_deliverer_finish(deliverer);
}

static void test_deliver(void **context)
{
    check_deliver(false);
    check_deliver(true);
}

/* Delivers more elements than are converted at once, by several threads; by blocks, also more elements than a block
 * holds. */
static void check_deliver_many(bool by_blocks)
{
    static const int64_t counts[] = {700000, 300000, 200000, 1300000, 5, 2900000, 1};
    struct taken taken = {0};
    struct delivery delivery = {.sink = {take_many, &taken}, .other = {refuse, NULL}};
    delivery_open(&delivery, 1 << 24, 3, by_blocks);
    struct lr_deliverer *deliverer = &delivery.deliverer;
    struct lr_packed_element *elements = kept(5400006, sizeof(*elements));
    for (int64_t n = 0; n < 5400006; n++) elements[n] = (struct lr_packed_element){(uint32_t)n, (float)(n % 1000)};
    for (int row = 0; row < 7; elements += counts[row++])
        add(deliverer, &(struct lr_row_part){row, counts[row], true, true}, elements);
    assert_ok(lr_deliverer_deliver(deliverer));
    assert_ints(taken.num_elements, 5400006, taken.next_row, 7);
    lr_deliverer_finish(deliverer);
}

static void test_deliver_many(void **context)
{
    check_deliver_many(false);
    check_deliver_many(true);
}

stage_main("render_alone_merge", CASES(test_merge, test_merge_repeats, test_long_list, test_deliver, test_deliver_many))
