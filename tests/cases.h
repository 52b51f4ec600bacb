/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Running a group of tests. */
#ifndef LR_TEST_CASES_H
#define LR_TEST_CASES_H

#include "fixtures.h"

/* Runs tests, each with this state unless it has its own; `only` (or NULL) names those to run. */
static inline int test_run(const char *only, const char *group, struct CMUnitTest *tests, size_t count, void *state)
{
    if (only != NULL) cmocka_set_test_filter(only);
    for (size_t k = 0; k < count; k++) {
        if (tests[k].teardown_func == NULL) tests[k].teardown_func = destroy_kept;
        if (tests[k].initial_state == NULL) tests[k].initial_state = state;
    }
    return _cmocka_run_group_tests(group, tests, count, NULL, NULL);
}

/* main of tests without a state. */
#define test_main(group, ...)                                                                                          \
    int main(int argc, char **argv)                                                                                    \
    {                                                                                                                  \
        struct CMUnitTest tests[] = {__VA_ARGS__};                                                                     \
        return test_run(argc > 1 ? argv[1] : NULL, group, tests, sizeof(tests) / sizeof(tests[0]), NULL);              \
    }

#endif
