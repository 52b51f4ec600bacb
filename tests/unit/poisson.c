/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Poisson counts: mean, variance, distribution; a draw depends only on seed and index. Bootstrap replicates of list
 * mode: their mean is the list, and their spread that of Poisson numbers. */
#include "cases.h"

#include <lr/events.h>

enum { DRAWS = 200000 };

static float *draw(double mean, uint64_t seed, int64_t count)
{
    float *values = kept_floats(count);
    for (int64_t k = 0; k < count; k++) values[k] = (float)mean;
    assert_ok(lr_poisson(values, count, seed, NULL));
    return values;
}

/* Sample mean and variance agree within 5 standard errors: sqrt(m / n) and sqrt((m + 2 m^2) / n), since the fourth
 * central moment of a Poisson distribution is m + 3 m^2. */
static void check_moments(const float *values, double mean)
{
    double sum = 0.0, squares = 0.0;
    for (int k = 0; k < DRAWS; k++) {
        assert_true(values[k] >= 0.0f && values[k] == floorf(values[k]));
        sum += values[k] - mean;
        squares += (values[k] - mean) * (values[k] - mean);
    }
    const double off_mean = (sum / DRAWS) / sqrt(mean / DRAWS);
    const double off_variance = (squares / DRAWS - mean) / sqrt((mean + 2 * mean * mean) / DRAWS);
    if (fabs(off_mean) > 5 || fabs(off_variance) > 5)
        fail_msg("mean %g: sample mean off by %.2f, variance by %.2f standard errors", mean, off_mean, off_variance);
}

/* Pearson's chi-square over cells with at least 50 expected draws each. For f degrees of freedom its mean is f and its
 * variance 2 f; it must be within 5 standard deviations. */
static void check_distribution(const float *values, double mean)
{
    const int top = (int)(mean + 12 * sqrt(mean) + 30);
    double *seen = kept_doubles(top + 1);
    for (int k = 0; k < DRAWS; k++) {
        assert_true(values[k] <= top);
        seen[(int)values[k]]++;
    }
    double chi_square = 0.0, cell_seen = 0.0, cell_expected = 0.0, left = DRAWS;
    int cells = 0;
    for (int k = 0; k <= top; k++) {
        const double expected = DRAWS * exp(k * log(mean) - mean - lgamma(k + 1.0));
        cell_seen += seen[k];
        cell_expected += expected;
        left -= expected;
        if ((cell_expected >= 50 && left >= 50) || k == top) {
            chi_square += (cell_seen - cell_expected) * (cell_seen - cell_expected) / cell_expected;
            cells++;
            cell_seen = cell_expected = 0.0;
        }
    }
    const double freedom = cells - 1;
    print_message("mean %g: chi-square %.1f over %.0f degrees of freedom\n", mean, chi_square, freedom);
    assert_all(freedom >= 1, fabs(chi_square - freedom) <= 5 * sqrt(2 * freedom) + 5);
}

static void counts_are_poisson(void **state)
{
    const uint64_t seed = test_seed();
    const double means[] = {0.01, 1.0, 9.9, 10.1, 100.0, 1e5};
    for (int k = 0; k < 6; k++) {
        float *values = draw(means[k], seed, DRAWS);
        const double mean = (double)(float)means[k];
        check_moments(values, mean);
        check_distribution(values, mean);
    }
}

/* Element i of a long array and of a short one has the same count, whatever the other expectations are. */
static void draws_depend_on_seed_and_index(void **state)
{
    float *all = draw(25.0, 7, 20000), *again = draw(25.0, 7, 20000);
    float *other = draw(25.0, 8, 20000), *high = draw(25.0, 7 + ((uint64_t)1 << 40), 20000);
    assert_memory_equal(all, again, 20000 * sizeof(*all));
    int equal = 0, equal_high = 0, repeats = 0;
    for (int k = 0; k < 20000; k++) {
        equal += all[k] == other[k];
        equal_high += all[k] == high[k];
        repeats += k > 0 && all[k] == all[k - 1];
    }
    /* Two independent counts with mean m are equal with probability 1 / (2 sqrt(pi m)) = 0.0564. */
    const int counts[] = {equal, equal_high, repeats};
    for (int k = 0; k < 3; k++) assert_in_range(counts[k], 901, 1359);
    for (int k = 0; k < 20000; k += 2) {
        again[k] = 3.0f;
        again[k + 1] = 25.0f;
    }
    assert_ok(lr_poisson(again, 19999, 7, NULL));
    for (int k = 1; k < 19999; k += 2) assert_true(again[k] == all[k]);
}

/* Counts of neighbouring elements are independent: the covariance of n pairs has the standard error
 * m / sqrt(n). */
static void neighbours_are_independent(void **state)
{
    const double means[] = {4.0, 40.0};
    for (int m = 0; m < 2; m++) {
        float *values = draw(means[m], 11, DRAWS);
        double covariance = 0.0;
        for (int k = 1; k < DRAWS; k++) covariance += (values[k] - means[m]) * (values[k - 1] - means[m]) / (DRAWS - 1);
        assert_true(fabs(covariance) < 5 * means[m] / sqrt(DRAWS));
    }
}

static void extremes(void **state)
{
    float *zeros = draw(0.0, 1, 1000), *large = draw(1e12, 1, 1000);
    for (int k = 0; k < 1000; k++) {
        assert_true(zeros[k] == 0.0f);
        assert_true(fabs(large[k] - 1e12) < 1e7); /* 10 standard deviations */
    }
    draw(1e38, 1, 10);
}

static void bad_expectations_are_named(void **state)
{
    const float bad[] = {-1.0f, NAN, INFINITY};
    for (int k = 0; k < 3; k++) {
        struct test_log log = TEST_LOG(log);
        float values[3] = {1.0f, 2.0f, bad[k]};
        assert_fails(lr_poisson(values, 3, 1, &log.log), LR_BAD_INPUT, &log, "expectation 2 is");
        assert_true(values[0] == 1.0f && values[1] == 2.0f); /* nothing drawn */
    }
}

/* Counts of one seed for different purposes are uncorrelated: 5 standard errors of the coefficient. */
static void purposes_are_independent(void **state)
{
    enum { COUNT = 20000 };
    static float counts[LR_NUM_RANDOM_STREAMS][COUNT];
    for (int p = 0; p < LR_NUM_RANDOM_STREAMS; p++) {
        for (int k = 0; k < COUNT; k++) counts[p][k] = 4.0f;
        const lr_poisson_stream stream = {.seed = 7, .purpose = (lr_random_stream)p};
        assert_ok(lr_poisson_part(counts[p], COUNT, &stream, NULL));
        for (int q = 0; q < p; q++) {
            double sum = 0.0;
            for (int k = 0; k < COUNT; k++) sum += (counts[p][k] - 4.0) * (counts[q][k] - 4.0) / 4.0;
            assert_true(fabs(sum / COUNT) < 5.0 / sqrt(COUNT));
        }
    }
}

/* Parts of any length have the same counts as the whole. */
static void parts_are_those_of_the_whole(void **state)
{
    enum { COUNT = 5000 };
    float *whole = draw(3.5, 11, COUNT);
    for (int64_t first = 0, length = 1; first < COUNT; first += length, length = 2 * length + 1) {
        const int64_t count = first + length < COUNT ? length : COUNT - first;
        float *part = kept_floats(count);
        for (int64_t k = 0; k < count; k++) part[k] = 3.5f;
        assert_ok(lr_poisson_part(part, count, &(lr_poisson_stream){.seed = 11, .first = first}, NULL));
        assert_memory_equal(part, whole + first, (size_t)count * sizeof(*part));
    }
}

/* --- bootstrap --- */

enum { EVENTS = 400, SEEDS = 600 };

/* Every fifth event is a delayed; a prompt counts 1, or 3 in a histogram. */
static lr_event event_of(int k)
{
    return filled(lr_event, .crystals = {k, k + 1000}, .tof_mm = (float)k,
                  .weight = k % 5 != 0 && k % 3 == 0 ? 3.0f : 1.0f, .time_ms = (uint32_t)k, .is_delayed = k % 5 == 0);
}

static lr_event_list *make_list(int count)
{
    lr_event_list *list = keep((lr_event_list *)calloc(1, sizeof(*list)));
    list->events = calloc((size_t)count + 1, sizeof(*list->events));
    list->count = count;
    list->info.counts.time_marks = 7;
    for (int k = 0; k < count; k++) list->events[k] = event_of(k);
    return list;
}

/* Counts how often each event occurs; checks that its other fields are unchanged, and that events are in order. */
static void count_events(const lr_event_list *list, double *times)
{
    int64_t prompts = 0, delayeds = 0;
    int last = 0;
    for (int64_t n = 0; n < list->count; n++) {
        const int k = list->events[n].crystals[0];
        const lr_event was = event_of(k);
        assert_true(k >= last);
        assert_ints(list->events[n].crystals[1], was.crystals[1], list->events[n].time_ms, was.time_ms);
        assert_true(list->events[n].tof_mm == was.tof_mm);
        assert_int_equal(list->events[n].is_delayed, was.is_delayed);
        assert_all(list->events[n].weight >= 1, !was.is_delayed || list->events[n].weight == 1);
        assert_true(was.is_delayed || n == 0 || k > last);
        times[k] += list->events[n].weight;
        *(was.is_delayed ? &delayeds : &prompts) += (int64_t)list->events[n].weight;
        last = k;
    }
    assert_ints(list->info.counts.prompts, prompts, list->info.counts.delayeds, delayeds);
    assert_int_equal(list->info.counts.time_marks, 7);
    assert_true(list->info.weight == (double)(prompts + delayeds));
}

/* Tolerances are five standard deviations of the mean over SEEDS replicates. */
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
    assert_ok(lr_event_list_bootstrap(a, 5, NULL), lr_event_list_bootstrap(b, 5, NULL));
    assert_ints(lr_event_list_bootstrap(c, 6, NULL), LR_OK, a->count, b->count);
    assert_memory_equal(a->events, b->events, (size_t)a->count * sizeof(*a->events));
    assert_true(a->count != c->count || memcmp(a->events, c->events, (size_t)a->count * sizeof(*a->events)) != 0);
}

static void test_edges(void **state)
{
    struct test_log log = TEST_LOG(log);
    lr_event_list *none = make_list(0), *bad = make_list(2);
    assert_ints(lr_event_list_bootstrap(none, 1, &log.log), LR_OK, none->count, 0);
    bad->events[1].weight = -1.0f;
    assert_ints(lr_event_list_bootstrap(bad, 1, &log.log), LR_BAD_INPUT, bad->count, 2);
    assert_true(bad->events[1].weight == -1.0f);
}

test_main("unit: poisson", EACH(CASE, counts_are_poisson, draws_depend_on_seed_and_index, neighbours_are_independent,
                                purposes_are_independent, parts_are_those_of_the_whole, extremes,
                                bad_expectations_are_named, test_mean_and_spread, test_seeds, test_edges))
