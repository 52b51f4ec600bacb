/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A context that its driver resets. No software renderer loses one, so the driver's answer is
 * replaced: GLEW's entry points are variables, and what a lost context does with commands, nothing,
 * the tests have no need of. */
#include "gl_test.h"

/* As in shaders/common/numbers.h. */
enum { POINTS_BINDING = 1, SOURCE_UNIT = 2 };

/* File scope, because an entry point has no other state: queries left before the reset. */
static int queries_left;

static GLenum GLAPIENTRY answer_reset(void)
{
    return queries_left-- > 0 ? GL_NO_ERROR : GL_UNKNOWN_CONTEXT_RESET;
}

/* Lets that many queries pass; returns the driver's own entry point. */
static PFNGLGETGRAPHICSRESETSTATUSPROC lose_after(int queries)
{
    const PFNGLGETGRAPHICSRESETSTATUSPROC before = glGetGraphicsResetStatus;
    queries_left = queries;
    glGetGraphicsResetStatus = answer_reset;
    return before;
}

static void expect_loss(struct gl_test *test, lr_status status, const char *what)
{
    assert_int_equal(status, LR_NO_DEVICE);
    assert_int_equal(test->log.status, LR_NO_DEVICE);
    assert_non_null(strstr(test->log.error, what));
    assert_non_null(strstr(test->log.error, gl_context_limits(test->ctx)->renderer));
    assert_non_null(strstr(test->log.error, "run again"));
    assert_true(gl_context_saw_error(test->ctx));
}

static struct gl_buffer *make_numbers(struct gl_test *test)
{
    const struct gl_buffer_params params = {.label = "the numbers", .size_bytes = 64};
    struct gl_buffer *buffer = gl_buffer_create(test->ctx, &params);
    assert_non_null(buffer);
    return buffer;
}

static struct gl_texture *make_strip(struct gl_test *test)
{
    const struct gl_texture_params params = {.label = "the strip", .format = GL_R32UI, .width = 16, .height = 1};
    struct gl_texture *texture = gl_texture_create(test->ctx, &params);
    assert_non_null(texture);
    return texture;
}

static void the_context_tells_of_resets(void **state)
{
    struct gl_test *test = *state;
    GLint strategy = 0;
    (void)test;
    glGetIntegerv(GL_RESET_NOTIFICATION_STRATEGY, &strategy);
    if (strategy != GL_LOSE_CONTEXT_ON_RESET) {
        print_message("skipped: this driver does not tell of resets\n");
        skip();
    }
    assert_int_equal(glGetGraphicsResetStatus(), GL_NO_ERROR);
}

static void reading_a_buffer_finds_the_loss(void **state)
{
    struct gl_test *test = *state;
    const float numbers[4] = {1, 2, 3, 4};
    float back[4] = {0};
    struct gl_buffer *buffer = make_numbers(test);
    assert_int_equal(gl_buffer_upload(buffer, 0, sizeof(numbers), numbers), LR_OK);
    assert_int_equal(gl_buffer_read(buffer, 0, sizeof(back), back), LR_OK);
    assert_memory_equal(numbers, back, sizeof(numbers));
    assert_false(gl_context_saw_error(test->ctx));
    const PFNGLGETGRAPHICSRESETSTATUSPROC own = lose_after(0);
    expect_loss(test, gl_buffer_read(buffer, 0, sizeof(back), back), "the numbers");
    expect_loss(test, gl_buffer_read(buffer, 0, sizeof(back), back), "the numbers"); /* for ever */
    glGetGraphicsResetStatus = own;
    gl_buffer_destroy(buffer);
}

static void reading_a_texture_finds_the_loss(void **state)
{
    struct gl_test *test = *state;
    struct gl_texture *texture = make_strip(test);
    uint32_t texels[16];
    const PFNGLGETGRAPHICSRESETSTATUSPROC own = lose_after(1);
    assert_int_equal(gl_context_check(test->ctx, "before"), LR_OK);
    expect_loss(test, gl_texture_read(texture, NULL, texels), "the strip");
    glGetGraphicsResetStatus = own;
    gl_texture_destroy(texture);
}

/* A debugging context asks after each pass. */
static void a_pass_finds_the_loss(void **state)
{
    struct gl_test *test = *state;
    const struct gl_program_params params = {.compute = "scale.comp", .label = "scale"};
    struct gl_program *program = gl_program_create(test->ctx, &params);
    struct gl_buffer *buffer = make_numbers(test);
    struct gl_texture *source = make_strip(test), *image = make_strip(test);
    assert_non_null(program);
    const struct gl_pass pass = {.label = "scaling",
                                 .program = program,
                                 .buffers[POINTS_BINDING] = {.buffer = buffer},
                                 .textures[SOURCE_UNIT] = source,
                                 .images[0] = {.texture = image},
                                 .groups = {2, 1, 1}};
    assert_int_equal(gl_pass_run(test->ctx, &pass), LR_OK);
    const PFNGLGETGRAPHICSRESETSTATUSPROC own = lose_after(0);
    expect_loss(test, gl_pass_run(test->ctx, &pass), "scaling");
    glGetGraphicsResetStatus = own;
    gl_texture_destroy(image);
    gl_texture_destroy(source);
    gl_buffer_destroy(buffer);
    gl_program_destroy(program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        gl_test_case(the_context_tells_of_resets),
        gl_test_case(reading_a_buffer_finds_the_loss),
        gl_test_case(reading_a_texture_finds_the_loss),
        gl_test_case(a_pass_finds_the_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
