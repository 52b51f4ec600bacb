/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A debug context for each test of this folder, with the tests' shaders instead of the built-in ones. */
#pragma once

#include "cases.h"

#include "gl/pass.h"

static struct gl_test {
    struct test_log log;
    struct gl_context *ctx;
} gl_tested, *const test = &gl_tested;

static inline int gl_test_begin(void **state)
{
    test_log_init(&test->log);
    setenv("LORASTER_SHADER_DIR", LR_GL_TEST_SHADERS, 1);
    test->ctx = gl_context_create(&(struct gl_context_params){.log = &test->log.log, .debug = true});
    return test->ctx != NULL && gl_context_make_current(test->ctx) == LR_OK ? 0 : -1;
}

static inline int gl_test_end(void **state)
{
    destroy_kept(NULL);
    gl_context_release(test->ctx);
    gl_context_destroy(test->ctx);
    return 0;
}

/* --- objects that are destroyed at the end of the test --- */

static inline void gl_test_destroy_buffer(void *buffer)
{
    gl_buffer_destroy(buffer);
}

static inline void gl_test_destroy_texture(void *texture)
{
    gl_texture_destroy(texture);
}

static inline void gl_test_destroy_target(void *target)
{
    gl_target_destroy(target);
}

static inline void gl_test_destroy_program(void *program)
{
    gl_program_destroy(program);
}

/* data NULL: filled with zeros. */
static inline struct gl_buffer *make_buffer(const char *label, int64_t bytes, const void *data)
{
    const struct gl_buffer_params params = {.label = label, .size_bytes = bytes, .data = data};
    return keep_object(gl_buffer_create(test->ctx, &params), gl_test_destroy_buffer);
}

static inline struct gl_texture *make_texture(const char *label, GLenum format, int width, int height)
{
    const struct gl_texture_params params = {.label = label, .format = format, .width = width, .height = height};
    return keep_object(gl_texture_create(test->ctx, &params), gl_test_destroy_texture);
}

static inline struct gl_target *make_target(const struct gl_target_params *params)
{
    struct gl_target *target = keep_object(gl_target_create(test->ctx, params), gl_test_destroy_target);
    gl_target_clear(target, NULL);
    return target;
}

static inline struct gl_program *make_program(const struct gl_program_params *params)
{
    return keep_object(gl_program_create(test->ctx, params), gl_test_destroy_program);
}

#define gl_test_case(function) cmocka_unit_test_setup_teardown(function, gl_test_begin, gl_test_end)
