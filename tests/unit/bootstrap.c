/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Bootstrap replicates of list mode: their mean is the list, their spread that of Poisson numbers, and
 * everything but how often an event counts stays. */
#include "cases.h"

#include <lr/events.h>

enum { EVENTS = 400, SEEDS = 600 };

/* Every fifth is a delayed; prompts count 1 or, of a histogram, 3. */
static lr_event event_of(int k)
{
    return (lr_event){.crystals = {k, k + 1000},
                      .tof_mm = (float)k,
                      .weight = k % 5 != 0 && k % 3 == 0 ? 3.0f : 1.0f,
                      .time_ms = (uint32_t)k,
                      .is_delayed = k % 5 == 0};
}

static lr_event_list *make_list(int count)
{
    lr_event_list *list = calloc(1, sizeof(*list));
    list->events = calloc((size_t)count + 1, sizeof(*list->events));
    list->count = count;
    list->info.counts.time_marks = 7;
    for (int k = 0; k < count; k++) list->events[k] = event_of(k);
    return list;
}

/* Counts how often each event occurs; checks that the rest of it is as before, and that they are in order. */
static void count_events(const lr_event_list *list, double *times)
{
    int64_t prompts = 0, delayeds = 0;
    int last = 0;
    for (int64_t n = 0; n < list->count; n++) {
        const int k = list->events[n].crystals[0];
        const lr_event was = event_of(k);
        assert_true(k >= last);
        assert_int_equal(list->events[n].crystals[1], was.crystals[1]);
        assert_int_equal(list->events[n].time_ms, was.time_ms);
        assert_true(list->events[n].tof_mm == was.tof_mm);
        assert_int_equal(list->events[n].is_delayed, was.is_delayed);
        assert_true(list->events[n].weight >= 1);
        assert_true(!was.is_delayed || list->events[n].weight == 1);
        assert_true(was.is_delayed || n == 0 || k > last);
        times[k] += list->events[n].weight;
        *(was.is_delayed ? &delayeds : &prompts) += (int64_t)list->events[n].weight;
        last = k;
    }
    assert_int_equal(list->info.counts.prompts, prompts);
    assert_int_equal(list->info.counts.delayeds, delayeds);
    assert_int_equal(list->info.counts.time_marks, 7);
    assert_true(list->info.weight == (double)(prompts + delayeds));
}

/* Limits are five standard deviations of the mean over SEEDS replicates. */
static void test_mean_and_spread(void **state)
{
    static double sum[EVENTS], squares[EVENTS];
    double all = 0.0, all_squares = 0.0, expected = 0.0;
    for (int seed = 1; seed <= SEEDS; seed++) {
        double times[EVENTS] = {0.0}, total = 0.0;
        lr_event_list *list = make_list(EVENTS);
        assert_ok(lr_event_list_bootstrap(list, (uint64_t)seed, NULL));
        count_events(list, times);
        for (int k = 0; k < EVENTS; k++) {
            sum[k] += times[k];
            squares[k] += times[k] * times[k];
            total += times[k];
        }
        all += total;
        all_squares += total * total;
        lr_event_list_destroy(list);
    }
    for (int k = 0; k < EVENTS; k++) {
        const double weight = event_of(k).weight, mean = sum[k] / SEEDS;
        expected += weight;
        assert_true(fabs(mean - weight) < 5.0 * sqrt(weight / SEEDS));
        const double variance = squares[k] / SEEDS - mean * mean; /* its own is w + 2 w^2 */
        assert_true(fabs(variance - weight) < 5.0 * sqrt((weight + 2.0 * weight * weight) / SEEDS) + weight / SEEDS);
    }
    const double mean = all / SEEDS, variance = all_squares / SEEDS - mean * mean;
    assert_true(fabs(mean - expected) < 5.0 * sqrt(expected / SEEDS));
    assert_true(fabs(variance / expected - 1.0) < 5.0 * sqrt(2.0 / SEEDS));
}

static void test_seeds(void **state)
{
    lr_event_list *a = make_list(EVENTS), *b = make_list(EVENTS), *c = make_list(EVENTS);
    assert_ok(lr_event_list_bootstrap(a, 5, NULL));
    assert_ok(lr_event_list_bootstrap(b, 5, NULL));
    assert_ok(lr_event_list_bootstrap(c, 6, NULL));
    assert_int_equal(a->count, b->count);
    assert_memory_equal(a->events, b->events, (size_t)a->count * sizeof(*a->events));
    assert_true(a->count != c->count || memcmp(a->events, c->events, (size_t)a->count * sizeof(*a->events)) != 0);
    lr_event_list_destroy(a);
    lr_event_list_destroy(b);
    lr_event_list_destroy(c);
}

static void test_edges(void **state)
{
    struct test_log log = TEST_LOG(log);
    lr_event_list *none = make_list(0), *bad = make_list(2);
    assert_ok(lr_event_list_bootstrap(none, 1, &log.log));
    assert_int_equal(none->count, 0);
    bad->events[1].weight = -1.0f;
    assert_int_equal(lr_event_list_bootstrap(bad, 1, &log.log), LR_BAD_INPUT);
    assert_int_equal(bad->count, 2);
    assert_true(bad->events[1].weight == -1.0f);
    lr_event_list_destroy(none);
    lr_event_list_destroy(bad);
}

test_main("unit: bootstrap", cmocka_unit_test(test_mean_and_spread), cmocka_unit_test(test_seeds),
          cmocka_unit_test(test_edges))
