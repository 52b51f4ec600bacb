/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A context for all tests of an executable, and what a single pass requires: a program, and buffers that the test fills
 * and reads. */
#pragma once

#include "fixtures.h"

#include "common/bindings.h"
#include "gl/pass.h"

static struct gl_context *stage_ctx;
static struct test_log stage_log;

/* Runs all tests, or only the tests that the program's argument names. The state of a test is the context, unless the
 * test has a state of its own. Returns 77 if there is no device. */
static inline int stage_run(int argc, char **argv, const char *group, struct CMUnitTest *tests, size_t count)
{
    test_log_init(&stage_log);
    stage_ctx = gl_context_create(&(struct gl_context_params){.log = &stage_log.log, .debug = true});
    if (stage_ctx == NULL || gl_context_make_current(stage_ctx) != LR_OK) {
        print_message("skipped: %s\n", stage_log.error);
        gl_context_destroy(stage_ctx);
        return 77;
    }
    print_message("device: %s\n", gl_context_limits(stage_ctx)->renderer);
    const int failed = test_run(argc > 1 ? argv[1] : NULL, group, tests, count, stage_ctx);
    gl_context_release(stage_ctx);
    gl_context_destroy(stage_ctx);
    return failed;
}

#define stage_main(group, ...)                                                                                         \
    int main(int argc, char **argv)                                                                                    \
    {                                                                                                                  \
        struct CMUnitTest tests[] = {__VA_ARGS__};                                                                     \
        return stage_run(argc, argv, group, tests, length_of(tests));                                                  \
    }

/* Fails the test with the last message in the context's log. */
#define device_check(condition)                                                                                        \
    do {                                                                                                               \
        if (!(condition)) fail_msg("%s: %s", #condition, stage_log.error);                                             \
    } while (0)

/* --- objects that live until destroy_kept --- */

static inline void device_end_buffer(void *buffer)
{
    gl_buffer_destroy(buffer);
}

static inline void device_end_texture(void *texture)
{
    gl_texture_destroy(texture);
}

/* The programs of a test; each is made when it is first used. */
static struct device_made {
    char key[192];
    struct gl_program *program;
} device_made[32];
static struct device_made *const device_made_end = device_made + length_of(device_made);

static inline void device_end_program(void *object)
{
    struct device_made *made = object;
    gl_program_destroy(made->program);
    *made = (struct device_made){0};
}

/* data NULL: zeros. */
static inline struct gl_buffer *device_buffer(int64_t bytes, const void *data)
{
    struct gl_buffer *buffer = gl_buffer_create(
        stage_ctx, &(struct gl_buffer_params){.label = "of a test", .size_bytes = bytes, .data = data});
    device_check(buffer != NULL);
    return keep_object(buffer, device_end_buffer);
}

/* [depth][height][width] */
static inline struct gl_texture *device_texture(GLenum target, GLenum format, const int size[3], const void *texels)
{
    const struct gl_texture_params params =
        filled(struct gl_texture_params, .label = "of a test", .target = target, .format = format, .width = size[0],
               .height = size[1], .depth = size[2]);
    struct gl_texture *texture = gl_texture_create(stage_ctx, &params);
    device_check(texture != NULL && (texels == NULL || gl_texture_upload(texture, NULL, texels) == LR_OK));
    return keep_object(texture, device_end_texture);
}

static inline void *device_read(const struct gl_buffer *buffer, int64_t count, size_t size)
{
    void *values = kept(count, size);
    device_check(gl_buffer_read(buffer, 0, count * (int64_t)size, values) == LR_OK);
    return values;
}

/* defines: as in the lines `variants` of shaders, for example "OP=1 REAL=double"; NULL or "" = none. */
static inline struct gl_program *device_program(const char *shader, const char *defines)
{
    struct gl_define list[8] = {{0}};
    char text[128], key[192];
    int count = 0;
    device_check(snprintf(text, sizeof(text), "%s", defines != NULL ? defines : "") < (int)sizeof(text));
    snprintf(key, sizeof(key), "%s %s", shader, text);
    struct device_made *made = device_made;
    while (made < device_made_end && made->program != NULL && strcmp(made->key, key) != 0) made++;
    device_check(made < device_made_end);
    if (made->program != NULL) return made->program;
    for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " ")) {
        device_check(count < 7);
        char *value = strchr(word, '=');
        if (value != NULL) *value++ = '\0';
        list[count++] = (struct gl_define){word, value};
    }
    made->program =
        gl_program_create(stage_ctx, &(struct gl_program_params){.compute = shader, .defines = list, .label = shader});
    device_check(made->program != NULL);
    memcpy(made->key, key, sizeof(key));
    keep_object(made, device_end_program);
    return made->program;
}

/* `groups` along x. */
static inline struct gl_pass device_pass(struct gl_program *program, const void *uniforms, size_t bytes, int groups)
{
    struct gl_pass pass = gl_pass_compute(program, uniforms, bytes, (const int[3]){groups, 1, 1});
    pass.barriers = GL_ALL_BARRIER_BITS;
    return pass;
}

static inline void device_run(const struct gl_pass *pass)
{
    device_check(gl_pass_run(stage_ctx, pass) == LR_OK);
}

struct device_binding {
    int at;
    const struct gl_buffer *buffer;
};

static inline void device_bind(struct gl_pass *pass, const struct device_binding *bound, int count)
{
    for (int k = 0; k < count; k++) pass->buffers[bound[k].at].buffer = bound[k].buffer;
}

/* Binds buffers: place, buffer, place, buffer ... */
#define bind_buffers(pass, ...)                                                                                        \
    device_bind(pass, (const struct device_binding[]){EACH_PAIR(BOUND, __VA_ARGS__)}, EACH_COUNT(__VA_ARGS__) / 2)
#define BOUND(at, buffer)                                                                                              \
    {                                                                                                                  \
        at, buffer                                                                                                     \
    }
#define device_run_on(pass, ...) (bind_buffers(pass, __VA_ARGS__), device_run(pass))
