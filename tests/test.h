/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Macros and functions for all tests, on top of cmocka. Include this file first. */
#pragma once

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "projections.h"

/* The two doubles agree, relatively or absolutely; the message has both values. */
#define assert_close(a, b, tolerance)                                                                                  \
    do {                                                                                                               \
        const double close_a_ = (a), close_b_ = (b);                                                                   \
        if (!(fabs(close_a_ - close_b_) <= (tolerance)*fmax(fabs(close_a_), fabs(close_b_)))) {                        \
            fail_msg("%s = %.15g, %s = %.15g: differ by %.3g of the larger, allowed %.3g", #a, close_a_, #b, close_b_, \
                     fabs(close_a_ - close_b_) / fmax(fabs(close_a_), fabs(close_b_)), (double)(tolerance));           \
        }                                                                                                              \
    } while (0)

/* EACH(macro, a, b, ...) is macro(a), macro(b), ... for up to 16 arguments; EACH_PAIR(macro, a, b, c, d, ...) is
 * macro(a, b), macro(c, d), ... for up to 6 pairs. */
#define EACH_1(macro, a) macro(a)
#define EACH_2(macro, a, ...) macro(a), EACH_1(macro, __VA_ARGS__)
#define EACH_3(macro, a, ...) macro(a), EACH_2(macro, __VA_ARGS__)
#define EACH_4(macro, a, ...) macro(a), EACH_3(macro, __VA_ARGS__)
#define EACH_5(macro, a, ...) macro(a), EACH_4(macro, __VA_ARGS__)
#define EACH_6(macro, a, ...) macro(a), EACH_5(macro, __VA_ARGS__)
#define EACH_7(macro, a, ...) macro(a), EACH_6(macro, __VA_ARGS__)
#define EACH_8(macro, a, ...) macro(a), EACH_7(macro, __VA_ARGS__)
#define EACH_9(macro, a, ...) macro(a), EACH_8(macro, __VA_ARGS__)
#define EACH_10(macro, a, ...) macro(a), EACH_9(macro, __VA_ARGS__)
#define EACH_11(macro, a, ...) macro(a), EACH_10(macro, __VA_ARGS__)
#define EACH_12(macro, a, ...) macro(a), EACH_11(macro, __VA_ARGS__)
#define EACH_13(macro, a, ...) macro(a), EACH_12(macro, __VA_ARGS__)
#define EACH_14(macro, a, ...) macro(a), EACH_13(macro, __VA_ARGS__)
#define EACH_15(macro, a, ...) macro(a), EACH_14(macro, __VA_ARGS__)
#define EACH_16(macro, a, ...) macro(a), EACH_15(macro, __VA_ARGS__)
#define PAIR_2(macro, a, b) macro(a, b)
#define PAIR_4(macro, a, b, ...) macro(a, b), PAIR_2(macro, __VA_ARGS__)
#define PAIR_6(macro, a, b, ...) macro(a, b), PAIR_4(macro, __VA_ARGS__)
#define PAIR_8(macro, a, b, ...) macro(a, b), PAIR_6(macro, __VA_ARGS__)
#define PAIR_10(macro, a, b, ...) macro(a, b), PAIR_8(macro, __VA_ARGS__)
#define PAIR_12(macro, a, b, ...) macro(a, b), PAIR_10(macro, __VA_ARGS__)
#define EACH_JOINED(name, count) name##count
#define EACH_NAMED(name, count) EACH_JOINED(name, count)
#define EACH_NUMBER(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, number, ...) number
#define EACH_COUNT(...) EACH_NUMBER(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define EACH(macro, ...) EACH_NAMED(EACH_, EACH_COUNT(__VA_ARGS__))(macro, __VA_ARGS__)
#define EACH_PAIR(macro, ...) EACH_NAMED(PAIR_, EACH_COUNT(__VA_ARGS__))(macro, __VA_ARGS__)

/* All of the conditions must be true. */
#define assert_all(...) (EACH(assert_true, __VA_ARGS__))

/* Pairs of integers: found, wanted, found, wanted ... */
#define assert_ints(...) (EACH_PAIR(assert_int_equal, __VA_ARGS__))

/* Each of the calls must succeed. */
#define assert_ok(...) (EACH(assert_succeeds, __VA_ARGS__))
#define assert_succeeds(status) assert_int_equal(status, LR_OK)

/* The number of elements of an array. */
#define length_of(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* A struct with the given fields: filled(lr_grid, .size = {1, 1, 1}). */
#define filled(type, ...) ((type){__VA_ARGS__})

/* The pointer, which must not be NULL. */
#define non_null(pointer) test_non_null(pointer, #pointer, __FILE__, __LINE__)
static inline void *test_non_null(const void *pointer, const char *text, const char *file, int line)
{
    _assert_true(pointer != NULL, text, file, line);
    return (void *)pointer;
}

/* A change and the check that it is found: spoilt(grid.size[1] = 0, assert_refused(&grid)). */
#define spoilt(change, check) ((void)(change), check)

/* The text must contain the words. */
#define assert_says(text, words)                                                                                       \
    do {                                                                                                               \
        const char *const text_ = (text), *const words_ = (words);                                                     \
        if (strstr(text_, words_) == NULL) fail_msg("\"%s\" does not say \"%s\"", text_, words_);                      \
    } while (0)

/* The call must fail with this status, and the log must have an error that contains all of these words. */
#define assert_fails(call, wanted, heard, ...)                                                                         \
    do {                                                                                                               \
        assert_int_equal(call, wanted);                                                                                \
        assert_error(heard, wanted, __VA_ARGS__);                                                                      \
    } while (0)

/* The object must be NULL, and the log must contain the reason. */
#define assert_none(object, wanted, heard, ...)                                                                        \
    do {                                                                                                               \
        assert_null(object);                                                                                           \
        assert_error(heard, wanted, __VA_ARGS__);                                                                      \
    } while (0)

/* A log that keeps the last error and warning, for tests of their sentences. */
struct test_log {
    lr_log log; /* pass &test.log */
    lr_status status;
    char error[1024], warning[1024];
    int num_warnings;
};

static inline void test_log_write(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    struct test_log *test = user;
    if (level == LR_LOG_ERROR) {
        test->status = status;
        snprintf(test->error, sizeof(test->error), "%s", sentence);
    } else if (level == LR_LOG_WARNING) {
        test->num_warnings++;
        snprintf(test->warning, sizeof(test->warning), "%s", sentence);
    }
    if (getenv("LORASTER_TEST_VERBOSE") != NULL) fprintf(stderr, "[%d] %s\n", (int)level, sentence);
}

static inline void test_log_init(struct test_log *test)
{
    *test = (struct test_log){0};
    test->log.write = test_log_write;
    test->log.user = test;
}

/* The log must have an error with this status, whose sentence has all of these words; then the error is forgotten. */
#define assert_error(log, status, ...) test_take_error(log, status, (const char *const[]){__VA_ARGS__, NULL})
static inline void test_take_error(struct test_log *log, lr_status status, const char *const *words)
{
    for (; *words != NULL; words++) assert_says(log->error, *words);
    assert_int_equal(log->status, status);
    log->error[0] = '\0';
    log->status = LR_OK;
}

/* An initialiser instead of a call: struct test_log log = TEST_LOG(log). */
#define TEST_LOG(name)                                                                                                 \
    {                                                                                                                  \
        .log = {.write = test_log_write, .user = &(name) }                                                             \
    }

/* Path of a file in the folder of real inputs, or NULL when that folder is absent:
 * $LORASTER_DATA, else ../shared/data beside the source tree. */
static inline const char *test_data(char path[1024], const char *name)
{
    const char *folder = getenv("LORASTER_DATA");
    snprintf(path, 1024, "%s/%s", folder ? folder : LR_TEST_DATA, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        print_message("skipped: no %s; set LORASTER_DATA to the folder of real inputs\n", path);
        return NULL;
    }
    fclose(file);
    return path;
}

/* Returns true if all cases are to be tested (LORASTER_FULL); otherwise tests take a selection of their cases. */
static inline bool test_is_full(void)
{
    const char *text = getenv("LORASTER_FULL");
    return text != NULL && text[0] != '\0';
}

/* Prints what is left out; for tests that take only a selection of their cases. */
static inline bool test_takes_all(const char *left_out)
{
    if (!test_is_full()) print_message("left out without LORASTER_FULL: %s\n", left_out);
    return test_is_full();
}

/* The seed of random cases: $LORASTER_TEST_SEED, else 1. Printed, so that a failure repeats. */
static inline uint64_t test_seed(void)
{
    const char *text = getenv("LORASTER_TEST_SEED");
    const uint64_t seed = text ? strtoull(text, NULL, 10) : 1;
    print_message("seed %llu\n", (unsigned long long)seed);
    return seed;
}

/* SplitMix64: uniform in [0, 1). */
static inline double test_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1.0p-53;
}

static inline double random_between(uint64_t *state, double low, double high)
{
    return low + (high - low) * test_random(state);
}
