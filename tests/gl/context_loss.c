/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A context that its driver resets. No software renderer loses its context, so the test replaces the driver's answer:
 * GLEW's entry points are variables. A lost context ignores all commands; the tests need not imitate that. */
#include "gl_test.h"

#include "gl/context_private.h"

/* Same values as in shaders/common/numbers.h. */
enum { POINTS_BINDING = 1, SOURCE_UNIT = 2 };

/* At file scope, because an entry point has no other state: number of queries left before the reset. */
static int queries_left;

static GLenum GLAPIENTRY answer_reset(void)
{
    return queries_left-- > 0 ? GL_NO_ERROR : GL_UNKNOWN_CONTEXT_RESET;
}

static PFNGLGETGRAPHICSRESETSTATUSPROC own;

/* The reset is reported after this many queries. */
static void lose_after(int queries)
{
    own = glGetGraphicsResetStatus;
    queries_left = queries;
    glGetGraphicsResetStatus = answer_reset;
}

static void expect_loss(lr_status status, const char *what)
{
    assert_int_equal(status, LR_NO_DEVICE);
    assert_int_equal(test->log.status, LR_NO_DEVICE); /* only this error was logged, so it is still the last one */
    assert_says(test->log.error, what);
    assert_says(test->log.error, gl_context_limits(test->ctx)->renderer);
    assert_says(test->log.error, "run again");
    assert_true(test->ctx->saw_error);
}

static void the_context_tells_of_resets(void **state)
{
    GLint strategy = 0;
    glGetIntegerv(GL_RESET_NOTIFICATION_STRATEGY, &strategy);
    if (strategy != GL_LOSE_CONTEXT_ON_RESET) {
        print_message("skipped: this driver does not tell of resets\n");
        skip();
    }
    assert_int_equal(glGetGraphicsResetStatus(), GL_NO_ERROR);
}

static void reading_a_buffer_finds_the_loss(void **state)
{
    const float numbers[4] = {1, 2, 3, 4};
    float back[4] = {0};
    struct gl_buffer *buffer = make_buffer("the numbers", 64, NULL);
    assert_ok(gl_buffer_upload(buffer, 0, sizeof(numbers), numbers));
    assert_ok(gl_buffer_read(buffer, 0, sizeof(back), back));
    assert_memory_equal(numbers, back, sizeof(numbers));
    assert_false(test->ctx->saw_error);
    lose_after(0);
    expect_loss(gl_buffer_read(buffer, 0, sizeof(back), back), "the numbers");
    expect_loss(gl_buffer_read(buffer, 0, sizeof(back), back), "the numbers"); /* a loss is permanent */
    glGetGraphicsResetStatus = own;
}

static void reading_a_texture_finds_the_loss(void **state)
{
    struct gl_texture *texture = make_texture("the strip", GL_R32UI, 16, 1);
    uint32_t texels[16];
    lose_after(1);
    assert_ok(gl_context_check(test->ctx, "before"));
    expect_loss(gl_texture_read(texture, NULL, texels), "the strip");
    glGetGraphicsResetStatus = own;
}

/* A debug context asks for errors after each pass. */
static void a_pass_finds_the_loss(void **state)
{
    struct gl_program *program = make_program(&(struct gl_program_params){.compute = "scale.comp", .label = "scale"});
    struct gl_buffer *buffer = make_buffer("the numbers", 64, NULL);
    struct gl_texture *source = make_texture("the strip", GL_R32UI, 16, 1),
                      *image = make_texture("the strip", GL_R32UI, 16, 1);
    const struct gl_pass pass =
        filled(struct gl_pass, .label = "scaling", .program = program, .buffers[POINTS_BINDING] = {.buffer = buffer},
               .textures[SOURCE_UNIT] = source, .images[0] = {.texture = image}, .groups = {2, 1, 1});
    assert_ok(gl_pass_run(test->ctx, &pass));
    lose_after(0);
    expect_loss(gl_pass_run(test->ctx, &pass), "scaling");
    glGetGraphicsResetStatus = own;
}

test_main("gl_context_loss", gl_test_case(the_context_tells_of_resets), gl_test_case(reading_a_buffer_finds_the_loss),
          gl_test_case(reading_a_texture_finds_the_loss), gl_test_case(a_pass_finds_the_loss))
