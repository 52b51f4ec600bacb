/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A debug context for each test of this folder, and its shaders instead of the built-in ones unless the environment
 * names others (tests/render/test_mutants.py). */
#ifndef LR_GL_TEST_H
#define LR_GL_TEST_H

#include "test.h"

#include "gl/pass.h"

struct gl_test {
    struct test_log log;
    struct gl_context *ctx;
};

static inline int gl_test_begin(void **state)
{
    struct gl_test *test = calloc(1, sizeof(*test));
    test_log_init(&test->log);
    setenv("LORASTER_SHADER_DIR", LR_GL_TEST_SHADERS, 0);
    const struct gl_context_params params = {.log = &test->log.log, .debug = true};
    test->ctx = gl_context_create(&params);
    *state = test;
    return test->ctx != NULL && gl_context_make_current(test->ctx) == LR_OK ? 0 : -1;
}

static inline int gl_test_end(void **state)
{
    struct gl_test *test = *state;
    gl_context_release(test->ctx);
    gl_context_destroy(test->ctx);
    free(test);
    return 0;
}

#define gl_test_case(function) cmocka_unit_test_setup_teardown(function, gl_test_begin, gl_test_end)

#endif
