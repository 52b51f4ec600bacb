/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "gl_test.h"

#include "gl/program.h"

static struct gl_program *make(const char *vertex, const char *fragment)
{
    return gl_program_create(
        test->ctx, &(struct gl_program_params){.vertex = vertex, .fragment = fragment, .label = "under test"});
}

static void a_program_links_and_has_its_label(void **state)
{
    struct gl_program *program = keep_object(make("cover.vert", "colour.frag"), gl_test_destroy_program);
    char label[64] = "";
    glGetObjectLabel(GL_PROGRAM, gl_program_get_info(program)->name, sizeof(label), NULL, label);
    assert_string_equal(label, "under test");
    assert_int_equal(gl_program_get_info(program)->group_size[0], 0);
    destroy_kept(NULL);
    assert_string_equal(test->log.error, "");
}

static void a_compute_program_knows_its_group_size(void **state)
{
    struct gl_program *program = make_program(&(struct gl_program_params){.compute = "scale.comp", .label = "scale"});
    const int *const size = gl_program_get_info(program)->group_size;
    assert_ints(size[0], 8, size[1], 1);
}

static void compile_errors_name_file_line_and_text(void **state)
{
    assert_null(make("cover.vert", "broken.frag"));
    print_message("%s\n", test->log.error);
    assert_error(&test->log, LR_FAILED, "/shaders/broken.frag:9: error", "nonsense", "`value = nonsense; // line 9`",
                 "under test");
}

static void compile_errors_name_the_include(void **state)
{
    assert_null(make("cover.vert", "broken_include.frag"));
    assert_error(&test->log, test->log.status, "/shaders/common/broken.glsl:5: error",
                 "`return 0.5 * missing_number; // line 5`");
}

static void defines_do_not_move_lines(void **state)
{
    const struct gl_define defines[] = {{"FIRST", "1"}, {"SECOND", NULL}, {NULL, NULL}};
    const struct gl_program_params params = {
        .vertex = "cover.vert", .fragment = "broken.frag", .defines = defines, .label = "defined"};
    assert_null(gl_program_create(test->ctx, &params));
    assert_says(test->log.error, "/shaders/broken.frag:9: error");
}

static void defines_reach_the_shader(void **state)
{
    const struct gl_define defines[] = {{"nonsense", "0.5"}, {NULL, NULL}};
    make_program(&(struct gl_program_params){
        .vertex = "cover.vert", .fragment = "broken.frag", .defines = defines, .label = "mended"});
}

static void a_lost_include_names_the_line_that_asks(void **state)
{
    assert_null(make("cover.vert", "lost_include.frag"));
    assert_error(&test->log, LR_BAD_INPUT, "/shaders/lost_include.frag:4: ", "common/not_there.glsl");
}

static void a_shader_that_is_nowhere_is_named(void **state)
{
    assert_null(make("cover.vert", "nowhere.frag"));
    assert_error(&test->log, test->log.status, "nowhere.frag", "LORASTER_SHADER_DIR");
    unsetenv("LORASTER_SHADER_DIR");
    assert_null(make("nowhere.vert", "nowhere.frag"));
    assert_error(&test->log, LR_USAGE, "nowhere.vert");
}

static void stages_that_do_not_fit_are_one_sentence(void **state)
{
    assert_all(make("points.vert", "mismatch.frag") == NULL, strchr(test->log.error, '\n') == NULL);
    assert_error(&test->log, LR_FAILED, "program under test");
}

static void stages_must_make_sense(void **state)
{
    assert_null(make("points.vert", NULL));
    assert_int_equal(test->log.status, LR_USAGE);
    const struct gl_program_params both = {.vertex = "points.vert", .compute = "scale.comp", .label = "both"};
    assert_null(gl_program_create(test->ctx, &both));
}

/* ---- the store of shaders: no context ---- */

/* The line with this text must be attributed to this file and line. */
static void assert_place(const struct gl_shader_source *source, const char *text, int file, int line)
{
    const char *found = non_null(strstr(source->text, text));
    int flat_line = 1;
    for (const char *at = source->text; at < found; at++) flat_line += *at == '\n';
    struct gl_shader_place place;
    assert_true(gl_shader_source_place(source, flat_line, &place));
    assert_string_equal(place.text, text);
    assert_ints(place.file, file, place.line, line);
}

static void each_file_is_included_once_with_its_lines(void **state)
{
    setenv("LORASTER_SHADER_DIR", LR_GL_TEST_SHADERS, 1);
    struct gl_shader_source source;
    assert_ok(gl_shader_source_init(&source, "colour.frag", NULL));
    assert_string_equal(source.files[0], "colour.frag");
    assert_string_equal(source.files[1], "common/numbers.h");
    assert_string_equal(source.files[2], "common/block.glsl");
    assert_null(source.files[3]);
    const char *first = strstr(source.text, "#define BLOCK_BINDING");
    assert_all(first != NULL, strstr(first + 1, "#define BLOCK_BINDING") == NULL);
    assert_place(&source, "uvec4 number;", 2, 6);
    assert_place(&source, "count = number;", 0, 17);
    assert_place(&source, "#define BLOCK_BINDING 0", 1, 5);
    struct gl_shader_place place;
    assert_false(gl_shader_source_place(&source, 999, &place));
    int next_line = 0;
    const size_t head = gl_shader_source_after_version(&source, &next_line);
    assert_int_equal(next_line, 4);
    assert_memory_equal(source.text + head, "// variants", 11);
    gl_shader_source_finish(&source);
}

/* A shader flattened at run time equals the one that the build embeds. */
extern const struct gl_embedded_shader gl_embedded_test_shaders[];

static void embedded_shaders_equal_those_of_the_folder(void **state)
{
    setenv("LORASTER_SHADER_DIR", LR_GL_TEST_SHADERS, 1);
    int count = 0;
    for (const struct gl_embedded_shader *shader = gl_embedded_test_shaders; shader->name != NULL; shader++, count++) {
        struct gl_shader_source source;
        assert_ok(gl_shader_source_init(&source, shader->name, NULL));
        assert_string_equal(source.text, shader->text);
        for (int k = 0; source.files[k] != NULL || shader->files[k] != NULL; k++)
            assert_string_equal(source.files[k], shader->files[k]);
        gl_shader_source_finish(&source);
    }
    assert_int_equal(count, 5);
}

/* The ways in which drivers write file and line in messages; a test run meets only its own driver's. */
static void every_driver_form_is_understood(void **state)
{
    static const char *const forms[] = {
        "0:%d(18): error: `x' undeclared\n",
        "0(1) : warning C7022: nothing\n0(%d) : error C1503: undefined variable \"x\"\n",
        "ERROR: 0:%d: 'x' : undeclared identifier\nERROR: 1 compilation errors.\n",
        "0:%d(1): preprocessor error: #error x\n"};
    setenv("LORASTER_SHADER_DIR", LR_GL_TEST_SHADERS, 1);
    struct gl_shader_source source;
    assert_ok(gl_shader_source_init(&source, "broken_include.frag", NULL));
    int flat_line = 1;
    for (const char *at = source.text; at < strstr(source.text, "return 0.5"); at++) flat_line += *at == '\n';
    for (int k = 0; k < 4; k++) {
        struct test_log log;
        char text[200];
        test_log_init(&log);
        snprintf(text, sizeof(text), forms[k], flat_line);
        gl_compile_log_report(&log.log, &source, "forms", text);
        assert_int_equal(log.status, LR_FAILED);
        assert_non_null(
            strstr(log.error, k < 3 ? "/common/broken.glsl:5: error" : "/common/broken.glsl:5: preprocessor error"));
        assert_says(log.error, "x");
        assert_non_null(strstr(log.error, "`return 0.5 * missing_number; // line 5`"));
    }
    gl_shader_source_finish(&source);
}

test_main("gl_program",
          EACH(gl_test_case, a_program_links_and_has_its_label, a_compute_program_knows_its_group_size,
               compile_errors_name_file_line_and_text, compile_errors_name_the_include, defines_do_not_move_lines,
               defines_reach_the_shader, a_lost_include_names_the_line_that_asks, a_shader_that_is_nowhere_is_named,
               stages_that_do_not_fit_are_one_sentence, stages_must_make_sense),
          CASES(each_file_is_included_once_with_its_lines, embedded_shaders_equal_those_of_the_folder,
                every_driver_form_is_understood))
