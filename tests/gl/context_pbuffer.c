/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The last way to get a context, which is a pbuffer on the default display. EGL is set, before its first use, to a
 * default display that needs no window system. This affects the whole process, so the test is a program of its own. */
#include "gl_test.h"

#include "gl/context_private.h"

static void a_pbuffer_context_draws(void **state)
{
    struct test_log log = TEST_LOG(log);
    const struct gl_context_params params = {.log = &log.log, .debug = true};
    struct egl_way ways[EGL_WAY_MAX];
    const int count = egl_ways_find(ways);
    lr_device found;
    struct gl_context *ctx;
    (void)gl_context_try(&ways[count - 1], &params, &found, &ctx);
    assert_string_equal(found.way, "egl pbuffer");
    if (ctx == NULL) {
        print_message("skipped: the default display cannot be used: %s\n", found.reason);
        skip();
    }
    assert_ptr_not_equal(ctx->egl.surface, EGL_NO_SURFACE);
    assert_ok(gl_context_make_current(ctx));
    const struct gl_texture_params four = {.label = "four", .format = GL_R32F, .width = 2, .height = 2};
    struct gl_texture *texture = gl_texture_create(ctx, &four);
    const float eighth = 0.125f;
    float values[4] = {0};
    gl_texture_clear(texture, &eighth);
    assert_ok(gl_texture_read(texture, NULL, values));
    assert_true(values[3] == 0.125f);
    gl_texture_destroy(texture);
    gl_context_release(ctx);
    assert_ptr_equal(eglGetCurrentContext(), EGL_NO_CONTEXT);
    gl_context_destroy(ctx);
    assert_string_equal(log.error, "");
}

int main(void)
{
    setenv("EGL_PLATFORM", "surfaceless", 1);
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_pbuffer_context_draws)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
