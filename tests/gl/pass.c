/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "gl_test.h"

#include "base/clock.h"
#include "gl/context_private.h"
#include "gl/timer.h"

/* Same values as in shaders/common/numbers.h and block.glsl. */
enum { POINTS_BINDING = 1, SOURCE_UNIT = 2 };

struct block {
    float colour[4];
    uint32_t number[4];
};

static struct gl_program *make_cover(const char *define, const char *value)
{
    const struct gl_define defines[] = {{define, value}, {NULL, NULL}};
    return make_program(&filled(struct gl_program_params, .vertex = "cover.vert", .fragment = "colour.frag",
                                .defines = define != NULL ? defines : NULL, .label = "colour.frag"));
}

static struct gl_target *make_square(int side, bool depth)
{
    return make_target(&(struct gl_target_params){
        .label = "image", .width = side, .height = side, .colour_formats = {GL_R32F, GL_R32UI}, .depth = depth});
}

/* A triangle over the whole target. */
static struct gl_pass cover(const char *label, struct gl_program *program, struct gl_target *target,
                            const struct block *block)
{
    return filled(struct gl_pass, .label = label, .program = program, .uniforms = block,
                  .uniform_bytes = block != NULL ? sizeof(*block) : 0, .target = target, .primitive = GL_TRIANGLES,
                  .vertices = 3, .instances = 1);
}

static void assert_quiet(void)
{
    assert_string_equal(test->log.error, "");
    assert_string_equal(test->log.warning, "");
    assert_false(test->ctx->saw_error);
}

static GLint integer(GLenum what)
{
    GLint value = 0;
    glGetIntegerv(what, &value);
    return value;
}

static void assert_baseline(void)
{
    GLint value = 0;
    assert_ints(integer(GL_CURRENT_PROGRAM), 0, integer(GL_VERTEX_ARRAY_BINDING), 0);
    assert_ints(integer(GL_DRAW_FRAMEBUFFER_BINDING), 0, integer(GL_CLIP_DEPTH_MODE), GL_NEGATIVE_ONE_TO_ONE);
    assert_all(!glIsEnabled(GL_BLEND), !glIsEnabled(GL_DEPTH_TEST), !glIsEnabled(GL_SCISSOR_TEST));
    assert_false(glIsEnabled(GL_CLIP_DISTANCE0));
    const GLenum indexed[] = {GL_SHADER_STORAGE_BUFFER_BINDING, GL_TEXTURE_BINDING_2D, GL_IMAGE_BINDING_NAME};
    for (GLuint k = 0; k < 12; k++) {
        glGetIntegeri_v(indexed[k / 4], k % 4, &value);
        assert_int_equal(value, 0);
    }
    glGetIntegeri_v(GL_UNIFORM_BUFFER_BINDING, 0, &value);
    assert_int_equal(value, 0);
    assert_quiet();
}

static void a_draw_covers_its_viewport_with_its_uniforms(void **state)
{
    struct gl_target *target = make_square(8, false);
    struct gl_pass pass = cover("cover", make_cover("FACTOR", "2.0"), target, &(struct block){{0.75f}, {42}});
    memcpy(pass.viewport, (const int[4]){2, 1, 3, 4}, sizeof(pass.viewport));
    float values[64];
    uint32_t numbers[64];
    assert_ok(gl_pass_run(test->ctx, &pass), gl_texture_read(target->colours[0], NULL, values));
    assert_ok(gl_texture_read(target->colours[1], NULL, numbers));
    for (int k = 0; k < 64; k++) {
        const int x = k % 8, y = k / 8;
        const bool inside = x >= 2 && x < 5 && y >= 1 && y < 5;
        assert_true(values[k] == (inside ? 1.5f : 0.0f) && numbers[k] == (inside ? 42u : 0u));
    }
    assert_baseline();
}

/* Sums of multiples of 1/8 below 2^20 are exact in single precision, in any order. */
static void blended_points_add_exactly(void **state)
{
    enum { NUM_POINTS = 5000 };
    uint64_t seed = test_seed();
    static float points[NUM_POINTS][4];
    float wanted[256] = {0};
    for (int k = 0; k < NUM_POINTS; k++) {
        const int x = (int)(test_random(&seed) * 16), y = (int)(test_random(&seed) * 16);
        points[k][0] = (float)x;
        points[k][1] = (float)y;
        points[k][2] = floorf((float)(test_random(&seed) * 1000)) / 8;
        wanted[x + 16 * y] += points[k][2];
    }
    struct gl_program *program =
        make_program(&(struct gl_program_params){.vertex = "points.vert", .fragment = "add.frag", .label = "add.frag"});
    struct gl_target *target =
        make_target(&(struct gl_target_params){.label = "sum", .width = 16, .height = 16, .colour_formats = {GL_R32F}});
    struct gl_buffer *buffer = make_buffer("points", sizeof(points), points);
    const struct gl_pass pass = filled(struct gl_pass, .label = "add points", .program = program, .target = target,
                                       .buffers[POINTS_BINDING] = {.buffer = buffer}, .blending = GL_BLENDING_ADD,
                                       .vertices = NUM_POINTS, .instances = 1);
    float values[256];
    assert_ok(gl_pass_run(test->ctx, &pass), gl_texture_read(target->colours[0], NULL, values));
    assert_memory_equal(values, wanted, sizeof(wanted));
    assert_ok(gl_pass_run(test->ctx, &pass), gl_texture_read(target->colours[0], NULL, values));
    for (int k = 0; k < 256; k++) assert_true(values[k] == 2 * wanted[k]);
    assert_baseline();
}

static float first_value(const struct gl_texture *texture)
{
    float value = NAN;
    assert_ok(gl_texture_read(texture, &(struct gl_box){0, 0, 0, 1, 1, 1}, &value));
    return value;
}

/* Instances are half a unit apart in z, starting at -1/4. */
static void the_nearer_wins_with_a_depth_test(void **state)
{
    struct gl_target *target = make_square(4, true);
    struct block block = {{1}, {1}};
    struct gl_pass pass = cover("near", make_cover(NULL, NULL), target, &block);
    pass.depth_test = true;
    assert_ok(gl_pass_run(test->ctx, &pass));
    assert_true(first_value(target->depth) == 0.375f);
    block.colour[0] = 2;
    assert_ok(gl_pass_run(test->ctx, &pass));
    assert_true(first_value(target->colours[0]) == 1.0f);
    pass.depth_test = false;
    assert_ok(gl_pass_run(test->ctx, &pass));
    assert_true(first_value(target->colours[0]) == 2.0f);
    gl_target_clear(target, NULL);
    pass.depth_test = pass.depth_zero_to_one = true;
    pass.instances = 2; /* the first instance is now in front of the near plane */
    assert_ok(gl_pass_run(test->ctx, &pass));
    assert_true(first_value(target->depth) == 0.25f);
    assert_baseline();
}

static void clip_distances_cut(void **state)
{
    struct gl_target *target = make_square(8, false);
    struct gl_pass pass = cover("cut", make_cover("HALF", NULL), target, &(struct block){{1}, {1}});
    pass.clip_distances = 1;
    float values[64];
    assert_ok(gl_pass_run(test->ctx, &pass), gl_texture_read(target->colours[0], NULL, values));
    for (int k = 0; k < 64; k++) assert_true(values[k] == (k % 8 >= 4 ? 1.0f : 0.0f));
    assert_baseline();
}

static void compute_reads_textures_and_writes_buffers_and_images(void **state)
{
    struct gl_program *program = make_program(&(struct gl_program_params){.compute = "scale.comp", .label = "scale"});
    struct gl_texture *source = make_texture("strip", GL_R32UI, 16, 1), *image = make_texture("strip", GL_R32UI, 16, 1);
    const int64_t offset = gl_context_limits(test->ctx)->storage_alignment;
    struct gl_buffer *buffer = make_buffer("numbers", offset + 64, NULL);
    uint32_t sent[16], numbers[16], stored[16];
    for (uint32_t k = 0; k < 16; k++) sent[k] = k * k;
    assert_ok(gl_texture_upload(source, NULL, sent));
    const struct gl_pass pass =
        filled(struct gl_pass, .label = "scale", .program = program, .buffers[POINTS_BINDING] = {buffer, offset, 64},
               .textures[SOURCE_UNIT] = source, .images[0] = {.texture = image}, .groups = {2, 1, 1},
               .barriers = GL_SHADER_STORAGE_BARRIER_BIT);
    assert_ok(gl_pass_run(test->ctx, &pass), gl_pass_run(test->ctx, &pass));
    assert_ok(gl_buffer_read(buffer, offset, 64, numbers), gl_texture_read(image, NULL, stored));
    for (uint32_t k = 0; k < 16; k++) assert_ints(numbers[k], 4 * k * k, stored[k], 4 * k * k + 1);
    assert_baseline();
}

/* There are more passes than the uniform ring has blocks: each pass must still read its own block. */
static void uniforms_survive_the_ring(void **state)
{
    enum { NUM_PASSES = 5000, SIDE = 8 };
    struct gl_program *program = make_cover(NULL, NULL);
    struct gl_target *target = make_target(
        &(struct gl_target_params){.label = "sum", .width = SIDE, .height = SIDE, .colour_formats = {GL_R32F}});
    double sum[SIDE] = {0};
    for (int k = 0; k < NUM_PASSES; k++) {
        struct gl_pass pass = cover("ring", program, target, &(struct block){{(float)(k % 97)}, {0}});
        memcpy(pass.viewport, (const int[4]){k % SIDE, 0, 1, 1}, sizeof(pass.viewport));
        pass.blending = GL_BLENDING_ADD;
        assert_ok(gl_pass_run(test->ctx, &pass));
        sum[k % SIDE] += k % 97;
    }
    float values[SIDE * SIDE];
    assert_ok(gl_texture_read(target->colours[0], NULL, values));
    for (int k = 0; k < SIDE; k++) assert_true(values[k] == (float)sum[k] && sum[k] > 0);
    assert_quiet();
}

static void nothing_to_draw_draws_nothing(void **state)
{
    struct gl_target *target = make_square(4, false);
    struct gl_pass pass = cover("nothing", make_cover(NULL, NULL), target, &(struct block){{1}, {1}});
    pass.instances = 0;
    assert_ok(gl_pass_run(test->ctx, &pass));
    pass.vertices = 0;
    pass.instances = 1;
    assert_ok(gl_pass_run(test->ctx, &pass));
    assert_true(first_value(target->colours[0]) == 0.0f);
}

static void passes_that_make_no_sense_are_refused(void **state)
{
    struct gl_target *target = make_square(4, false);
    struct gl_buffer *buffer = make_buffer("short", 16, NULL);
    const struct gl_pass good = cover("good", make_cover(NULL, NULL), target, NULL);
    struct gl_pass bad[] = {good, good, good, good, good, good, good};
    bad[0].target = NULL;
    bad[1].viewport[2] = 5;
    bad[1].viewport[3] = 1;
    bad[2].clip_distances = 99;
    bad[3].depth_test = true;
    bad[4].buffers[0] = (struct gl_range){buffer, 0, 17};
    bad[5].buffers[0] = (struct gl_range){buffer, 3, 4};
    bad[6].textures[0] = target->colours[0];
    for (int k = 0; k < length_of(bad); k++) {
        test->log.error[0] = '\0';
        assert_int_equal(gl_pass_run(test->ctx, &bad[k]), LR_USAGE);
        assert_memory_equal(test->log.error, "good: ", 6);
    }
    assert_false(test->ctx->saw_error);
}

static void timers_time(void **state)
{
    struct gl_stopwatch *timer = gl_stopwatch_create(test->ctx, "clearing");
    struct gl_target *target = make_square(512, false);
    assert_true(gl_stopwatch_seconds(timer) == 0.0);
    const double start = lr_clock_seconds();
    gl_stopwatch_begin(timer);
    for (int k = 0; k < 20; k++) gl_target_clear(target, NULL);
    gl_stopwatch_end(timer);
    const double seconds = gl_stopwatch_seconds(timer);
    assert_true(seconds > 0 && seconds <= lr_clock_seconds() - start);
    gl_stopwatch_destroy(timer);
    assert_quiet();
}

/* There are more intervals (laps) than can be in flight at once: the sum contains all of them, and time between two
 * laps does not count. Time stamps of software renderers are inaccurate, so bounds are wide. */
static void stopwatches_add_laps(void **state)
{
    struct gl_stopwatch *watch = gl_stopwatch_create(test->ctx, "laps");
    struct gl_target *target = make_square(256, false);
    const double start = lr_clock_seconds();
    assert_all(watch != NULL, gl_stopwatch_seconds(watch) == 0.0);
    for (int k = 0; k < 200; k++) {
        gl_stopwatch_begin(watch);
        gl_target_clear(target, NULL);
        gl_stopwatch_end(watch);
    }
    const double seconds = gl_stopwatch_seconds(watch);
    assert_all(seconds > 0 && seconds <= lr_clock_seconds() - start, gl_stopwatch_seconds(watch) == seconds);
    gl_stopwatch_reset(watch);
    assert_true(gl_stopwatch_seconds(watch) == 0.0);
    gl_stopwatch_destroy(watch);
    assert_quiet();
}

static void no_stopwatch_measures_nothing(void **state)
{
    gl_stopwatch_reset(NULL);
    gl_stopwatch_begin(NULL);
    gl_stopwatch_end(NULL);
    assert_true(gl_stopwatch_seconds(NULL) == 0.0);
    gl_stopwatch_destroy(NULL);
}

/* The test notes what a debugger would see: names of groups that were opened, and how many were closed. */
struct groups {
    char opened[64];
    int num_opened, num_closed;
};

static void GLAPIENTRY note_group(GLenum source, GLenum type, GLuint id, GLenum severity, GLsizei length,
                                  const GLchar *text, const void *user)
{
    (void)source, (void)id, (void)severity, (void)length;
    struct groups *groups = (struct groups *)user;
    if (type == GL_DEBUG_TYPE_PUSH_GROUP) {
        snprintf(groups->opened, sizeof(groups->opened), "%s", text);
        groups->num_opened++;
    }
    groups->num_closed += type == GL_DEBUG_TYPE_POP_GROUP;
}

static void assert_labelled(GLenum kind, GLuint name, const char *begins)
{
    char label[64] = "";
    glGetObjectLabel(kind, name, sizeof(label), NULL, label);
    if (strncmp(label, begins, strlen(begins)) != 0) fail_msg("label \"%s\" does not begin with \"%s\"", label, begins);
}

static void passes_and_objects_bear_names(void **state)
{
    struct gl_target *target = make_square(8, true);
    struct gl_buffer *buffer = make_buffer("numbers", 16, NULL);
    const struct gl_pass pass = cover("cover it all", make_cover(NULL, NULL), target, &(struct block){{1.0f}, {1}});
    struct groups groups = {0};
    glDebugMessageControl(GL_DONT_CARE, GL_DONT_CARE, GL_DONT_CARE, 0, NULL, GL_TRUE);
    glDebugMessageCallback(note_group, &groups);
    assert_ok(gl_pass_run(test->ctx, &pass));
    glDebugMessageCallback(NULL, NULL);
    assert_string_equal(groups.opened, "cover it all");
    assert_ints(groups.num_opened, 1, groups.num_closed, 1);
    assert_labelled(GL_FRAMEBUFFER, target->name, "image");
    assert_labelled(GL_TEXTURE, target->colours[0]->name, "image");
    assert_labelled(GL_TEXTURE, target->depth->name, "image");
    assert_labelled(GL_BUFFER, buffer->name, "numbers");
    destroy_kept(NULL);
    assert_quiet();
}

test_main("gl_pass", EACH(gl_test_case, a_draw_covers_its_viewport_with_its_uniforms, blended_points_add_exactly,
                          the_nearer_wins_with_a_depth_test, clip_distances_cut,
                          compute_reads_textures_and_writes_buffers_and_images, uniforms_survive_the_ring,
                          nothing_to_draw_draws_nothing, passes_that_make_no_sense_are_refused, timers_time,
                          stopwatches_add_laps, no_stopwatch_measures_nothing, passes_and_objects_bear_names))
