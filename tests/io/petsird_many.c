/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * PETSIRD files with more events than are read at a time. Any number of threads must give the same events, also where
 * blocks of the file end, and up to a damage. */
#define FILE_NAME "petsird_many_test.petsird"

#include "io/petsird_file.h"

/* PLACE: a byte among long lists of events. */
enum { COUNT = 2400000, PLACE = 1 << 23 };

struct many {
    struct test_log log;
    lr_lors *lors;
    lr_event *events; /* in the order of writing */
    lr_event_list *whole;
    unsigned char *bytes;
    size_t size;
};

static lr_events_source source_of(const struct many *many, int threads)
{
    return (lr_events_source){
        .path = FILE_NAME, .scanner = many->lors->scanner, .threads = threads, .log = &many->log.log};
}

static int set_up_many(void **state)
{
    static struct many many;
    test_log_init(&many.log);
    many.lors = lors_of(lopsided());
    many.events = random_events(many.lors->scanner, COUNT, true);
    for (int k = COUNT / 4; k < COUNT; k++) /* a few long lists after many short ones */
        many.events[k].time_ms = many.events[COUNT / 4].time_ms + (uint32_t)(k / 500000);
    lr_events_info info = {
        .tof_edges_mm = (float *)even_edges, .num_tof_bins = 5, .has_tof = true, .tof_resolution_ps = 300};
    write_list(&(lr_events_writer_params){.path = FILE_NAME, .lors = many.lors, .info = &info, .petsird_minor = 9},
               many.events, COUNT);
    many.bytes = bytes_read(FILE_NAME, &many.size);
    const lr_events_source source = source_of(&many, 1);
    many.whole = keep(lr_event_list_read(&source));
    assert_true(many.size > (size_t)PLACE + (1 << 20));
    *state = &many;
    return 0;
}

static int tear_down_many(void **state)
{
    remove(FILE_NAME);
    return destroy_kept(state);
}

/* A checksum of events that does not depend on their order. */
static uint64_t sum_of(const lr_event *events, int64_t count)
{
    uint64_t sum = 0;
    for (int64_t k = 0; k < count; k++) {
        uint64_t x = ((uint64_t)events[k].crystals[0] << 32) + (uint64_t)events[k].crystals[1];
        x = (x ^ (uint64_t)(int64_t)(8 * events[k].tof_mm)) * UINT64_C(0x9e3779b97f4a7c15);
        x = (x ^ events[k].time_ms ^ (uint64_t)events[k].is_delayed << 40) * UINT64_C(0xbf58476d1ce4e5b9);
        sum += x ^ x >> 31;
    }
    return sum;
}

static void lists_are_equal(const lr_event_list *a, const lr_event_list *b)
{
    assert_int_equal(a->count, b->count);
    check_prefix(a, b);
    assert_memory_equal(&a->info.counts, &b->info.counts, sizeof(a->info.counts));
    assert_true(a->info.weight == b->info.weight && a->info.duration_s == b->info.duration_s);
}

static void all_events_are_read(void **state)
{
    struct many *many = *state;
    bytes_write(FILE_NAME, many->bytes, many->size);
    assert_int_equal(many->whole->count, COUNT);
    assert_true(sum_of(many->whole->events, COUNT) == sum_of(many->events, COUNT));
    assert_int_equal(many->whole->info.counts.prompts + many->whole->info.counts.delayeds, COUNT);
    assert_true(many->whole->info.weight == COUNT);
    for (int threads = 2; threads < 10; threads += 3) {
        const lr_events_source source = source_of(many, threads);
        lr_event_list *list = non_null(lr_event_list_read(&source));
        lists_are_equal(list, many->whole);
        lr_event_list_destroy(list);
    }
}

/* Reads a damaged file up to the damage; the warning or error goes to `said`. */
static lr_event_list *read_damaged(const struct many *many, int threads, char said[1024])
{
    struct test_log log = TEST_LOG(log);
    lr_events_source source = source_of(many, threads);
    source.until_damage = true;
    source.log = &log.log;
    lr_event_list *list = lr_event_list_read(&source);
    snprintf(said, 1024, "%s", list != NULL ? log.warning : log.error);
    return list;
}

/* Reads with one thread and with several: both give the same events before the damage. It is found at byte `at`, or
 * a few bytes before or behind if only a complete event shows it. */
static int64_t check_place(const struct many *many, int64_t at)
{
    char said[2][1024];
    long long found = -1;
    lr_event_list *lists[2] = {read_damaged(many, 1, said[0]), read_damaged(many, 4, said[1])};
    assert_all(lists[0] != NULL, lists[1] != NULL);
    lists_are_equal(lists[0], lists[1]);
    check_prefix(lists[0], many->whole);
    assert_string_equal(said[0], said[1]);
    const char *byte = non_null(strstr(said[0], "at byte "));
    assert_int_equal(sscanf(byte, "at byte %lld", &found), 1);
    assert_true(llabs(found - at) < 32);
    const int64_t count = lists[0]->count;
    lr_event_list_destroy(lists[0]);
    lr_event_list_destroy(lists[1]);
    return count;
}

/* The file becomes longer event by event, around the size where blocks that are read at a time end. */
static void files_may_be_cut_where_blocks_end(void **state)
{
    const struct many *many = *state;
    int64_t before = 0;
    for (int64_t at = PLACE - 9; at < PLACE + 9; at++) {
        bytes_write(FILE_NAME, many->bytes, (size_t)at);
        char said[1024];
        lr_event_list *list = non_null(read_damaged(many, 3, said));
        check_prefix(list, many->whole);
        assert_non_null(strstr(said, "truncated"));
        assert_true(before == 0 || list->count == before || list->count == before + 1);
        before = list->count;
        lr_event_list_destroy(list);
    }
}

static void damages_are_told_where_they_are(void **state)
{
    const struct many *many = *state;
    const int64_t places[] = {PLACE - 40, PLACE - 5, PLACE, PLACE + 3, PLACE + 500000};
    unsigned char *bytes = malloc(many->size);
    int64_t before = 0;
    for (size_t k = 0; k < sizeof(places) / sizeof(places[0]); k++) {
        memcpy(bytes, many->bytes, many->size);
        memset(bytes + places[k], 0xff, 11); /* a number of more than 64 bits */
        bytes_write(FILE_NAME, bytes, many->size);
        const int64_t count = check_place(many, places[k]);
        assert_true(count >= before);
        before = count;
        memcpy(bytes, many->bytes, many->size);
        memset(bytes + places[k], 6, 3); /* existing detection bins, and a wrong bin of time of flight */
        bytes_write(FILE_NAME, bytes, many->size);
        (void)check_place(many, places[k]);
    }
    free(bytes);
}

/* --- skipping events --- */

struct skipping {
    const struct many *many;
    int64_t sizes[4096], at; /* numbers of events passed on together; index of the current one */
    int64_t first;           /* index of the next event in the whole list */
    bool skips_odd;
};

static bool skip_some(void *user)
{
    struct skipping *skipping = user;
    const int64_t k = skipping->at++;
    assert_true(k < 4096);
    if (!skipping->skips_odd || k % 2 == 0) return false;
    skipping->first += skipping->sizes[k];
    return true;
}

static lr_status take_some(void *user, const lr_event *events, int64_t count)
{
    struct skipping *skipping = user;
    const lr_event_list part = {.events = (lr_event *)events, .count = count};
    check_prefix(&part, &(lr_event_list){.events = skipping->many->whole->events + skipping->first,
                                         .count = COUNT - skipping->first});
    skipping->sizes[skipping->at - 1] += count;
    skipping->first += count;
    return LR_OK;
}

static void events_may_be_passed_over(void **state)
{
    struct many *many = *state;
    struct skipping *skipping = calloc(1, sizeof(*skipping));
    bytes_write(FILE_NAME, many->bytes, many->size);
    lr_events_source source = source_of(many, 3);
    source.skips = skip_some;
    source.user = skipping;
    skipping->many = many;
    const lr_event_sink sink = {.take = take_some, .user = skipping};
    for (int pass = 0; pass < 2; pass++) {
        skipping->at = skipping->first = 0;
        skipping->skips_odd = pass == 1;
        assert_ints(lr_events_read(&source, &sink, NULL), LR_OK, skipping->first, COUNT);
        assert_true(skipping->at > 1);
    }
    free(skipping);
}

/* --- LORs --- */

static void lors_are_found_together(void **state)
{
    struct many *many = *state;
    enum { SOME = 30000 };
    int64_t *numbers = malloc(SOME * sizeof(*numbers));
    float *weights = malloc(SOME * sizeof(*weights));
    many->events[7].crystals[1] = many->events[7].crystals[0];
    many->events[8].crystals[1] = many->lors->scanner->num_crystals;
    const lr_event_span span = {.events = many->events, .count = SOME, .threads = 3};
    const int64_t joined = lr_events_lors(many->lors, &span, numbers);
    int64_t found = 0;
    lr_events_weights(&span, weights);
    for (int k = 0; k < SOME; k++) {
        const int32_t *crystals = many->events[k].crystals;
        const int64_t lor = lr_lors_number(many->lors, crystals[0], crystals[1]);
        const bool counts = lor >= 0 && lr_lors_in_coincidence(many->lors, lor);
        assert_int_equal(numbers[k], counts ? lor : -1);
        found += counts;
        assert_true(weights[k] == 1);
    }
    assert_ints(joined, found, lr_events_count_joined(many->lors, &span), found);
    assert_pairs(0, {numbers[7], -1}, {numbers[8], -1});
    free(numbers);
    free(weights);
}

/* Writes these events into a file; returns whether the reader finds, while reading, that all are in coincidence. */
static bool are_joined(struct many *many, const lr_event *events, int64_t count)
{
    const lr_events_source source = source_of(many, 3);
    write_list(&(lr_events_writer_params){.path = FILE_NAME, .lors = many->lors}, events, count);
    lr_event_list *list = non_null(lr_event_list_read_joined(&source, many->lors));
    assert_int_equal(list->count, count);
    const bool are = list->are_joined;
    lr_event_list_drop(list);
    assert_false(list->are_joined);
    lr_event_list_destroy(list);
    return are;
}

static void coincidences_are_found_by_the_way(void **state)
{
    struct many *many = *state;
    enum { SOME = 300000 };
    lr_event *events = calloc(SOME, sizeof(*events));
    uint64_t seed = 9;
    for (int k = 0; k < SOME; k++) {
        lr_lors_crystals(many->lors, draw_lor(many->lors, &seed), events[k].crystals);
        events[k].weight = 1;
        events[k].time_ms = (uint32_t)k / 1000;
    }
    assert_true(are_joined(many, events, SOME));
    const int32_t kept = events[SOME / 2].crystals[1];
    events[SOME / 2].crystals[1] = events[SOME / 2].crystals[0];
    assert_false(are_joined(many, events, SOME));
    events[SOME / 2].crystals[1] = kept;
    lr_events_source source = source_of(many, 3);
    lr_event_list *list = lr_event_list_read(&source); /* reading without LORs does not check it */
    assert_false(list->are_joined);
    lr_event_list_destroy(list);
    source.until_damage = true; /* up to a damage, are_joined stays false */
    list = lr_event_list_read_joined(&source, many->lors);
    assert_true(list->count == SOME && !list->are_joined);
    lr_event_list_destroy(list);
    free(events);
}

group_main("io petsird many", set_up_many, tear_down_many, cmocka_unit_test(all_events_are_read),
           cmocka_unit_test(files_may_be_cut_where_blocks_end), cmocka_unit_test(damages_are_told_where_they_are),
           cmocka_unit_test(events_may_be_passed_over), cmocka_unit_test(lors_are_found_together),
           cmocka_unit_test(coincidences_are_found_by_the_way))
