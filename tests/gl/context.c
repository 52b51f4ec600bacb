/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "gl_test.h"

#include "gl/context_private.h"

#include <pthread.h>

static void every_listed_way_opens_or_says_why(void **state)
{
    struct test_log log = TEST_LOG(log);
    lr_device devices[EGL_WAY_MAX];
    const int count = lr_device_list(devices, EGL_WAY_MAX, &log.log);
    int usable = 0;
    assert_in_range(count, 2, EGL_WAY_MAX);
    for (int k = 0; k < count; k++) {
        print_message("%s: %s%s (%s)\n", devices[k].way, devices[k].renderer, devices[k].reason, devices[k].version);
        assert_true(devices[k].way[0] != '\0');
        assert_true(devices[k].usable ? devices[k].reason[0] == '\0' : devices[k].reason[0] != '\0');
        assert_true(devices[k].usable == (devices[k].renderer[0] != '\0'));
        if (devices[k].usable) {
            usable++;
            assert_all(devices[k].max_texture_size >= 16384, devices[k].max_storage_bytes >= (int64_t)1 << 27);
        }
    }
    assert_true(usable > 0);
    assert_int_equal(lr_device_list(devices, 1, NULL), count);
}

static void software_devices_come_after_hardware(void **state)
{
    struct egl_way ways[EGL_WAY_MAX];
    const int count = egl_ways_find(ways);
    for (int k = 1; k < count; k++) {
        assert_true(ways[k].kind >= ways[k - 1].kind);
        assert_true(ways[k].kind != ways[k - 1].kind || ways[k].software >= ways[k - 1].software);
    }
    assert_ints(ways[count - 2].kind, EGL_WAY_SURFACELESS, ways[count - 1].kind, EGL_WAY_PBUFFER);
}

static void each_way_draws(void **state)
{
    struct test_log log = TEST_LOG(log);
    const struct gl_context_params params = {.log = &log.log, .debug = true};
    struct egl_way ways[EGL_WAY_MAX];
    const int count = egl_ways_find(ways);
    for (int k = 0; k < count; k++) {
        lr_device found;
        struct gl_context *ctx;
        if (gl_context_try(&ways[k], &params, &found, &ctx) != LR_OK) continue;
        assert_ok(gl_context_make_current(ctx));
        struct gl_target *target = non_null(gl_target_create(
            ctx, &(struct gl_target_params){.label = "tiny", .width = 3, .height = 2, .colour_formats = {GL_R32F}}));
        gl_target_clear(target, &(struct gl_clear){.colours[0].f = {0.25f}});
        float pixels[6];
        assert_ok(gl_texture_read(target->colours[0], NULL, pixels));
        assert_true(pixels[0] == 0.25f && pixels[5] == 0.25f);
        gl_target_destroy(target);
        assert_false(ctx->saw_error);
        gl_context_release(ctx);
        gl_context_destroy(ctx);
    }
    assert_string_equal(log.error, "");
}

static void limits_are_at_least_what_the_standard_promises(void **state)
{
    const struct gl_limits *limits = gl_context_limits(test->ctx);
    assert_all(limits->max_texture_size >= 16384, limits->max_3d_texture_size >= 2048);
    assert_all(limits->max_array_layers >= 2048, limits->max_storage_bytes >= (int64_t)1 << 27);
    assert_true(limits->max_storage_bindings >= 8 && limits->max_compute_storage_blocks >= 8);
    assert_in_range(limits->storage_alignment, 1, 256);
    assert_true(limits->max_clip_distances >= 8 && limits->max_colour_attachments >= 8);
    assert_true(limits->max_compute_groups[2] >= 65535);
    assert_true(strstr(limits->version, "4.") != NULL && limits->vendor[0] != '\0');
    assert_int_equal(limits->software, strstr(limits->renderer, "llvmpipe") != NULL);
}

static void a_device_out_of_range_lists_what_exists(void **state)
{
    const int wrong[] = {77, -1};
    for (int k = 0; k < 2; k++) {
        struct test_log log = TEST_LOG(log);
        assert_null(gl_context_create(&(struct gl_context_params){.device = wrong[k], .log = &log.log}));
        assert_int_equal(log.status, LR_USAGE);
        char wanted[32];
        snprintf(wanted, sizeof(wanted), "device %d does not exist", wrong[k]);
        assert_says(log.error, wanted);
        assert_says(log.error, "choose one of 0 = ");
    }
}

static void the_last_usable_device_has_its_number(void **state)
{
    lr_device devices[EGL_WAY_MAX];
    const int count = lr_device_list(devices, EGL_WAY_MAX, NULL);
    int usable = 0;
    for (int k = 0; k < count; k++) usable += devices[k].usable;
    const struct gl_context_params last = {.device = usable - 1}, beyond = {.device = usable};
    struct gl_context *ctx = non_null(gl_context_create(&last));
    gl_context_destroy(ctx);
    assert_null(gl_context_create(&beyond));
}

/* Writes and reads a number with the context that is current on this thread. */
static void assert_works(struct gl_context *ctx, uint32_t number)
{
    uint32_t back = 0;
    struct gl_buffer *buffer = non_null(
        gl_buffer_create(ctx, &(struct gl_buffer_params){.label = "number", .size_bytes = 4, .data = &number}));
    assert_ok(gl_buffer_read(buffer, 0, 4, &back));
    assert_int_equal(back, number);
    gl_buffer_destroy(buffer);
}

static void two_contexts_on_one_display_outlive_each_other(void **state)
{
    struct gl_context *second = non_null(gl_context_create(&(struct gl_context_params){.log = &test->log.log}));
    assert_works(test->ctx, 1); /* the first context is still current after the second was made */
    assert_ok(gl_context_make_current(second));
    assert_works(second, 2);
    gl_context_release(second);
    assert_works(test->ctx, 3);
    gl_context_destroy(second);
    assert_works(test->ctx, 4);
    lr_device devices[EGL_WAY_MAX];
    lr_device_list(devices, EGL_WAY_MAX, NULL);
    assert_works(test->ctx, 5); /* and also after listing devices has opened and closed its display */
    assert_false(test->ctx->saw_error);
}

static void destroying_a_current_context_brings_the_other_back(void **state)
{
    struct gl_context *second = gl_context_create(&(struct gl_context_params){0});
    assert_ok(gl_context_make_current(second), gl_context_make_current(second));
    gl_context_destroy(second);
    assert_works(test->ctx, 6);
}

static void a_foreign_context_is_undisturbed(void **state)
{
    struct egl_context foreign;
    struct egl_way ways[EGL_WAY_MAX];
    char reason[256];
    const int count = egl_ways_find(ways);
    bool opened = false;
    for (int k = 0; k < count && !opened; k++)
        opened = egl_context_open(&foreign, &ways[k], false, reason, sizeof(reason));
    assert_true(opened);
    eglBindAPI(EGL_OPENGL_API);
    assert_true(eglMakeCurrent(foreign.display, foreign.surface, foreign.surface, foreign.context));
    eglBindAPI(EGL_OPENGL_ES_API);
    struct gl_context *ctx = gl_context_create(&(struct gl_context_params){0});
    assert_ok(gl_context_make_current(ctx));
    assert_ptr_not_equal(eglGetCurrentContext(), foreign.context);
    assert_works(ctx, 7);
    gl_context_release(ctx);
    gl_context_destroy(ctx);
    assert_int_equal(eglQueryAPI(), EGL_OPENGL_ES_API);
    eglBindAPI(EGL_OPENGL_API);
    assert_ptr_equal(eglGetCurrentContext(), foreign.context);
    assert_int_equal(glGetError(), GL_NO_ERROR);
    eglMakeCurrent(foreign.display, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
    egl_context_close(&foreign);
}

static void an_adopted_context_works_and_stays(void **state)
{
    glEnable(GL_BLEND);
    struct gl_context *adopted = non_null(gl_context_adopt(&(struct gl_context_params){.log = &test->log.log}));
    assert_ok(gl_context_make_current(adopted));
    assert_false(glIsEnabled(GL_BLEND));
    assert_works(adopted, 8);
    gl_context_release(adopted);
    gl_context_destroy(adopted);
    assert_works(test->ctx, 9);
}

static void nothing_current_cannot_be_adopted(void **state)
{
    gl_context_release(test->ctx);
    struct gl_context *adopted = gl_context_adopt(&(struct gl_context_params){.log = &test->log.log});
    assert_ok(gl_context_make_current(test->ctx));
    assert_null(adopted);
    assert_int_equal(test->log.status, LR_NO_DEVICE);
}

static void *try_elsewhere(void *user)
{
    struct gl_context *ctx = user;
    static const lr_status statuses[] = {LR_OK, LR_FAILED};
    const lr_status status = gl_context_make_current(ctx);
    if (status == LR_OK) gl_context_release(ctx);
    return (void *)&statuses[status == LR_OK ? 0 : 1];
}

static void a_context_moves_between_threads(void **state)
{
    gl_context_release(test->ctx);
    pthread_t thread;
    void *status = NULL;
    assert_int_equal(pthread_create(&thread, NULL, try_elsewhere, test->ctx), 0);
    pthread_join(thread, &status);
    assert_ok(gl_context_make_current(test->ctx), *(lr_status *)status);
    assert_works(test->ctx, 10);
}

static void driver_errors_reach_the_log_and_are_remembered(void **state)
{
    assert_false(test->ctx->saw_error);
    glBindBuffer(GL_TEXTURE_2D, 0);
    assert_true(test->ctx->saw_error);
    assert_says(test->log.error, "OpenGL error");
    assert_int_equal(gl_context_check(test->ctx, "a test"), LR_FAILED);
    assert_says(test->log.error, "a test: ");
    assert_says(test->log.error, "GL_INVALID_ENUM");
    assert_ok(gl_context_check(test->ctx, "a test"));
}

static void destroying_nothing_is_allowed(void **state)
{
    gl_context_destroy(NULL);
    gl_texture_destroy(NULL);
    gl_buffer_destroy(NULL);
    gl_target_destroy(NULL);
    gl_program_destroy(NULL);
}

/* --- a context that its driver resets ---
 *
 * No software renderer loses its context, so the tests replace the driver's answer: GLEW's entry points are variables.
 * A lost context ignores all commands; the tests need not imitate that. */

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

test_main("gl_context", CASES(every_listed_way_opens_or_says_why, software_devices_come_after_hardware, each_way_draws),
          gl_test_case(limits_are_at_least_what_the_standard_promises), CASE(a_device_out_of_range_lists_what_exists),
          CASE(the_last_usable_device_has_its_number), gl_test_case(two_contexts_on_one_display_outlive_each_other),
          gl_test_case(destroying_a_current_context_brings_the_other_back), CASE(a_foreign_context_is_undisturbed),
          EACH(gl_test_case, an_adopted_context_works_and_stays, nothing_current_cannot_be_adopted,
               a_context_moves_between_threads, driver_errors_reach_the_log_and_are_remembered),
          CASE(destroying_nothing_is_allowed),
          EACH(gl_test_case, the_context_tells_of_resets, reading_a_buffer_finds_the_loss,
               reading_a_texture_finds_the_loss, a_pass_finds_the_loss))
