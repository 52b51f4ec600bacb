/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Memory that a test need not free. */
#ifndef LR_TEST_ALLOC_H
#define LR_TEST_ALLOC_H

#include "test.h"

struct test_block {
    struct test_block *next;
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

/* A test's teardown; tests of many large cases call it after each. */
static inline int test_free_all(void **unused)
{
    (void)unused;
    for (struct test_block *block = test_blocks, *next; block != NULL; block = next) {
        next = block->next;
        free(block);
    }
    test_blocks = NULL;
    return 0;
}

/* Runs tests, each with this state; `only` (or NULL) names those to run. */
static inline int test_run(const char *only, const char *group, struct CMUnitTest *tests, size_t count, void *state)
{
    if (only != NULL) cmocka_set_test_filter(only);
    for (size_t k = 0; k < count; k++) {
        tests[k].teardown_func = test_free_all;
        tests[k].initial_state = state;
    }
    return _cmocka_run_group_tests(group, tests, count, NULL, NULL);
}

#endif
