/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Running a group of tests, and memory that they need not free. */
#ifndef LR_TEST_CASES_H
#define LR_TEST_CASES_H

#include "test.h"

/* cmocka gives every test a state, which few look at. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

struct test_block {
    struct test_block *next;
    void (*destroy)(void *object); /* or NULL */
    void *object;
    max_align_t data[];
};
static struct test_block *test_blocks;

/* Allocates zeroed memory until the test ends, or fails the test. */
static inline void *test_alloc(int64_t count, size_t size)
{
    struct test_block *block = calloc(1, sizeof(*block) + (size_t)count * size);
    assert_non_null(block);
    block->next = test_blocks;
    test_blocks = block;
    return block->data;
}

/* Keeps an object until the test ends, which fails at once where there is none. */
static inline void *test_keep(void *object, void (*destroy)(void *object))
{
    assert_non_null(object);
    test_alloc(0, 1);
    test_blocks->destroy = destroy;
    test_blocks->object = object;
    return object;
}

/* A test's teardown, the newest first; tests of many large cases call it after each. */
static inline int test_free_all(void **unused)
{
    while (test_blocks != NULL) {
        struct test_block *block = test_blocks;
        test_blocks = block->next;
        if (block->destroy != NULL) block->destroy(block->object);
        free(block);
    }
    return 0;
}

/* Runs tests, each with this state unless it has its own; `only` (or NULL) names those to run. */
static inline int test_run(const char *only, const char *group, struct CMUnitTest *tests, size_t count, void *state)
{
    if (only != NULL) cmocka_set_test_filter(only);
    for (size_t k = 0; k < count; k++) {
        if (tests[k].teardown_func == NULL) tests[k].teardown_func = test_free_all;
        if (tests[k].initial_state == NULL) tests[k].initial_state = state;
    }
    return _cmocka_run_group_tests(group, tests, count, NULL, NULL);
}

/* Fails the test unless an error has come with that status, whose sentence has all of these words. */
static inline void test_has_error(const struct test_log *log, lr_status status, const char *const *words)
{
    assert_int_equal(log->status, status);
    for (; *words != NULL; words++)
        if (strstr(log->error, *words) == NULL) fail_msg("'%s' does not say '%s'", log->error, *words);
}

#define assert_error(log, status, ...) test_has_error(log, status, (const char *const[]){__VA_ARGS__, NULL})

/* main of tests without a state. */
#define test_main(group, ...)                                                                                          \
    int main(int argc, char **argv)                                                                                    \
    {                                                                                                                  \
        struct CMUnitTest tests[] = {__VA_ARGS__};                                                                     \
        return test_run(argc > 1 ? argv[1] : NULL, group, tests, sizeof(tests) / sizeof(tests[0]), NULL);              \
    }

#endif
