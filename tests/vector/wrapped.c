/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Places of devices, what they refuse, vectors that wrap memory of the caller, and copies between OpenGL and CUDA.
 * Tests that require a CUDA device report "skipped" without one; with LR_TEST_FAKE_CUDA the device is the machine's
 * memory. */
#include "fixtures.h"

#include "device/place.h"
#include "device/vector.h"
#include "gl/context.h"
#include "gl/resource.h"

#ifdef LR_TEST_FAKE_CUDA
#include "fake_cuda.h"
#endif

enum { COUNT = 70001 };

static struct test_log test;
static struct gl_context *caller; /* current */
static lr_shared_context shared;
static lr_place *gl, *cuda; /* cuda: NULL if there is none */

static int open_places(void **state)
{
    test_log_init(&test);
    caller = gl_context_create(&(struct gl_context_params){.log = &test.log});
    if (caller == NULL || gl_context_make_current(caller) != LR_OK || !gl_context_share(&shared)) return -1;
#ifdef LR_TEST_FAKE_CUDA
    fake_cuda.renders = 0;
#endif
    gl = lr_place_open(&(lr_place_params){.kind = LR_PLACE_GL, .shared = &shared, .log = &test.log});
    cuda = lr_place_open(&(lr_place_params){.kind = LR_PLACE_CUDA, .log = &test.log});
    return gl != NULL ? 0 : -1;
}

static int close_places(void **state)
{
    lr_place_close(cuda);
    lr_place_close(gl);
    gl_context_release(caller);
    gl_context_destroy(caller);
    return 0;
}

static void skip_without_cuda(void)
{
    if (cuda == NULL) {
        print_message("skipped: no CUDA device\n");
        skip();
    }
}

static lr_vector make(lr_place *place, int64_t count, lr_precision precision)
{
    return kept_vector(place, count, precision);
}

static float numbers[COUNT], found[COUNT];

static void fill_numbers(void)
{
    for (int k = 0; k < COUNT; k++) {
        numbers[k] = (float)(k % 1000) - 17.25f;
        found[k] = NAN;
    }
}

static void put(lr_vector *vector)
{
    fill_numbers();
    assert_ok(lr_vector_copy(vector_of(numbers, vector->count), vector));
}

/* Checks that the vector holds the numbers from `begin` on, times `factor`. */
static void check_numbers(const lr_vector *vector, int64_t begin, float factor)
{
    assert_ok(lr_vector_copy(vector, vector_of(found, vector->count)));
    for (int64_t k = 0; k < vector->count; k++) assert_true(found[k] == numbers[begin + k] * factor);
}

/* --- places --- */

static void a_place_tells_its_memory(void **state)
{
    const lr_place_info info = lr_place_get_info(gl);
    assert_int_equal(info.memory_bytes, gl_context_limits(caller)->memory_bytes);
    assert_string_equal(info.device, gl_context_limits(caller)->renderer);
    assert_null(info.cuda_stream);
    assert_int_equal(lr_place_get_info(NULL).memory_bytes, 0);
}

static void a_place_of_cuda_opens_or_says_why_not(void **state)
{
    struct test_log *log = kept_log();
    lr_place *place = lr_place_open(&(lr_place_params){.kind = LR_PLACE_CUDA, .log = &log->log});
    if (place == NULL) {
        assert_says(log->error, "no CUDA: ");
        assert_error(log, LR_NO_DEVICE, "install");
        return;
    }
    const lr_place_info info = lr_place_get_info(place);
    assert_int_equal(info.kind, LR_PLACE_CUDA);
    assert_all(info.device[0] != '\0', info.memory_bytes > 0, info.cuda_stream != NULL);
    assert_true(info.traffic.to_device == 0 && info.traffic.to_host == 0);
    lr_place_close(place);
}

static void refuse(lr_place_params params, lr_status status, const char *sentence)
{
    test_log_init(&test);
    params.log = &test.log;
    assert_none(lr_place_open(&params), status, &test, sentence);
}

static void places_that_cannot_be(void **state)
{
    refuse((lr_place_params){.kind = LR_PLACE_CUDA, .device = -1}, LR_USAGE, "negative");
    refuse((lr_place_params){.kind = LR_PLACE_CUDA, .threads = -1}, LR_USAGE, "negative");
    refuse((lr_place_params){.kind = (lr_place_kind)3}, LR_USAGE, "kind 3");
    refuse((lr_place_params){.kind = LR_PLACE_GL, .cuda_stream = &test}, LR_USAGE, "stream");
    refuse((lr_place_params){.cuda_stream = &test}, LR_USAGE, "LR_PLACE_CUDA");
    refuse((lr_place_params){.kind = LR_PLACE_CUDA, .device = 999}, cuda != NULL ? LR_USAGE : LR_NO_DEVICE,
           cuda != NULL ? "device 999" : "no CUDA: ");
}

/* --- buffers of OpenGL --- */

static GLuint make_buffer(int64_t bytes, const void *data)
{
    GLuint buffer;
    glCreateBuffers(1, &buffer);
    glNamedBufferStorage(buffer, (GLsizeiptr)bytes, data, GL_DYNAMIC_STORAGE_BIT);
    return buffer;
}

static void *fence(void)
{
    void *sync = glFenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
    glFlush();
    return sync;
}

static lr_vector wrap_buffer(GLuint buffer, int64_t count)
{
    lr_vector vector;
    lr_vector_gl_buffer handed = {.buffer = buffer, .after = fence()};
    assert_ok(lr_vector_wrap_gl(&(lr_vector_params){.place = gl, .count = count, .log = &test.log}, &handed, &vector));
    assert_null(handed.after);
    return vector;
}

/* Numbers in a buffer of the caller's context are changed in place, and the caller reads them. */
static void a_buffer_of_another_context(void **state)
{
    fill_numbers();
    const GLuint buffer = make_buffer(sizeof(numbers), numbers);
    lr_vector vector = wrap_buffer(buffer, COUNT - 1);
    const lr_traffic before = lr_place_get_info(gl).traffic;
    lr_vector part = lr_vector_part(&vector, 5, COUNT - 6), other = make(gl, COUNT - 6, LR_FLOAT32);
    void *done;
    assert_ok(lr_vector_fill(&other, 2.0), lr_vector_multiply(&part, &other), lr_place_fence(gl, &done));
    assert_non_null(done);
    const lr_traffic after = lr_place_get_info(gl).traffic;
    assert_memory_equal(&before, &after, sizeof(before));
    lr_vector_destroy(&vector);
    assert_int_equal(glClientWaitSync(done, 0, UINT64_C(1) << 40) == GL_WAIT_FAILED, 0);
    glDeleteSync(done);
    assert_true(glIsBuffer(buffer)); /* the buffer still exists */
    glGetNamedBufferSubData(buffer, 0, sizeof(found), found);
    for (int k = 0; k < COUNT; k++) assert_true(found[k] == numbers[k] * (k >= 5 && k < COUNT - 1 ? 2.0f : 1.0f));
    glDeleteBuffers(1, &buffer);
    assert_int_equal(glGetError(), GL_NO_ERROR);
}

static void refuse_buffer(lr_vector_params params, lr_vector_gl_buffer *buffer, const char *sentence)
{
    lr_vector vector;
    void *const after = buffer->after;
    test_log_init(&test);
    params.log = &test.log;
    assert_fails(lr_vector_wrap_gl(&params, buffer, &vector), LR_USAGE, &test, sentence);
    assert_true(vector.storage == NULL && vector.place == NULL);
    assert_ptr_equal(buffer->after, after); /* still the caller's */
}

static void buffers_that_cannot_be_vectors(void **state)
{
    lr_place *alone = keep(lr_place_open(&(lr_place_params){.kind = LR_PLACE_GL, .log = &test.log}));
    const GLuint buffer = make_buffer(100, NULL);
    lr_vector_gl_buffer handed = {.buffer = buffer, .after = fence()}, none = {.buffer = 4711};
    refuse_buffer((lr_vector_params){.place = gl, .count = 26}, &handed, "100 bytes");
    refuse_buffer((lr_vector_params){.place = gl, .count = 13, .precision = LR_FLOAT64}, &handed, "104 are needed");
    refuse_buffer((lr_vector_params){.place = gl, .count = -1}, &handed, "-1 numbers");
    refuse_buffer((lr_vector_params){.place = gl, .count = 1}, &none, "4711 names no buffer");
    refuse_buffer((lr_vector_params){.place = alone, .count = 1}, &handed, "shared");
    refuse_buffer((lr_vector_params){.count = 1}, &handed, "shared");
    void *done = &test;
    assert_int_equal(lr_place_fence(NULL, &done), LR_USAGE);
    assert_null(done);
    assert_int_equal(glGetError(), GL_NO_ERROR);
    glDeleteSync(handed.after);
    glDeleteBuffers(1, &buffer);
}

/* --- memory of CUDA --- */

static void memory_of_cuda_as_a_vector(void **state)
{
    skip_without_cuda();
    lr_vector owner = make(cuda, COUNT, LR_FLOAT32), wrapped;
    put(&owner);
    char *memory = (char *)owner.storage->block + 3 * sizeof(float);
    const lr_vector_params params = {.place = cuda, .count = COUNT - 4, .log = &test.log};
    assert_ok(lr_vector_wrap_cuda(&params, owner.storage->block, &wrapped));
    check_numbers(&wrapped, 0, 1);
    lr_vector_destroy(&wrapped);
    assert_null(wrapped.storage);
    check_numbers(&owner, 0, 1); /* nothing was freed */
    assert_ok(lr_vector_wrap_cuda(&params, owner.storage->block, &wrapped));
    lr_vector part = lr_vector_part(&wrapped, 3, COUNT - 7), same = lr_vector_part(&owner, 3, COUNT - 7);
    assert_ok(lr_vector_add_scaled(&part, 1.0, &same)); /* twice the same memory */
    check_numbers(&same, 3, 2);
    assert_ptr_equal(memory, (char *)wrapped.storage->block + part.begin * (int64_t)sizeof(float));
    lr_vector_destroy(&wrapped);
}

static void refuse_memory(lr_vector_params params, void *memory, const char *sentence)
{
    lr_vector vector;
    test_log_init(&test);
    params.log = &test.log;
    assert_fails(lr_vector_wrap_cuda(&params, memory, &vector), LR_USAGE, &test, sentence);
    assert_null(vector.storage);
}

static void memory_without_a_place_of_cuda(void **state)
{
    refuse_memory((lr_vector_params){.count = 4}, numbers, "LR_PLACE_CUDA");
    refuse_memory((lr_vector_params){.place = gl, .count = 4}, numbers, "LR_PLACE_CUDA");
    refuse_memory((lr_vector_params){.place = gl, .count = -4}, numbers, "-4 numbers");
}

static void memory_that_is_not_of_the_device(void **state)
{
    skip_without_cuda();
    lr_vector owner = make(cuda, 8, LR_FLOAT64);
    char *memory = owner.storage->block;
    refuse_memory((lr_vector_params){.place = cuda, .count = 4}, numbers, "the host");
    refuse_memory((lr_vector_params){.place = cuda, .count = 4}, NULL, "the host");
    refuse_memory((lr_vector_params){.place = cuda, .count = 4, .precision = LR_FLOAT64}, memory + 4,
                  "multiple of their size");
    void *done;
    assert_int_equal(lr_place_fence(cuda, &done), LR_USAGE);
}

/* --- between OpenGL and CUDA --- */

/* True if numbers stay on the device, so that no bytes are counted. */
static void check_traffic(const lr_place *place, const lr_traffic *before, int64_t bytes)
{
    const lr_traffic now = lr_place_get_info(place).traffic;
    assert_int_equal(now.to_host + now.to_device - before->to_host - before->to_device, bytes);
}

/* Copies part of an OpenGL vector to CUDA, doubles it there and copies it back. Checks the numbers, and how many bytes
 * went through the host: none if is_direct. */
static void go_around(lr_precision at_gl, lr_precision at_cuda, bool is_direct)
{
    const int64_t count = COUNT - 9, bytes = is_direct ? 0 : count;
    lr_vector from = make(gl, COUNT, at_gl), to = make(gl, COUNT, at_gl), there = make(cuda, COUNT, at_cuda);
    put(&from);
    const lr_traffic before[2] = {lr_place_get_info(gl).traffic, lr_place_get_info(cuda).traffic};
    const lr_vector source = lr_vector_part(&from, 5, count);
    lr_vector between = lr_vector_part(&there, 3, count), target = lr_vector_part(&to, 1, count);
    assert_ok(lr_vector_copy(&source, &between), lr_vector_add_scaled(&between, 1.0, &between));
    assert_ok(lr_vector_copy(&between, &target));
    check_traffic(gl, &before[0], 2 * bytes * lr_vector_size(&from));
    check_traffic(cuda, &before[1], 2 * bytes * lr_vector_size(&there));
    check_numbers(&target, 5, 2);
    const lr_vector first = lr_vector_part(&to, 0, 1), last = lr_vector_part(&to, count + 1, 8);
    lr_vector_sums sums[2];
    assert_ok(lr_vector_add_up(&first, NULL, &sums[0]), lr_vector_add_up(&last, NULL, &sums[1]));
    assert_true(sums[0].product == 0.0 && sums[1].product == 0.0); /* the numbers around the part are 0 */
}

/* True if no bytes pass through the host. */
static bool is_direct_to(lr_place *place)
{
    lr_vector from = make(gl, 16, LR_FLOAT32), to = make(place, 16, LR_FLOAT32);
    const lr_traffic before = lr_place_get_info(place).traffic;
    assert_ok(lr_vector_copy(&from, &to));
    const bool is_direct = lr_place_get_info(place).traffic.to_device == before.to_device;
    return is_direct;
}

/* CUDA has the device on which OpenGL draws if the device has this name. */
static void one_device_of_cuda_is_that_of_opengl(void **state)
{
    skip_without_cuda();
    bool is_named = false, is_direct = false;
    lr_place *place;
    for (int k = 0; (place = lr_place_open(&(lr_place_params){.kind = LR_PLACE_CUDA, .device = k})) != NULL; k++) {
        is_named |= strstr(gl_context_limits(caller)->renderer, lr_place_get_info(place).device) != NULL;
        is_direct |= is_direct_to(place);
        lr_place_close(place);
    }
    print_message("OpenGL draws on %s, %s\n", gl_context_limits(caller)->renderer,
                  is_direct ? "a CUDA device" : "which is no CUDA device");
    assert_true(is_direct || !is_named);
}

static void from_opengl_to_cuda_and_back(void **state)
{
    skip_without_cuda();
    const bool is_direct = is_direct_to(cuda);
    for (int k = 0; k < 4; k++) go_around((lr_precision)(k / 2), (lr_precision)(k % 2), is_direct);
#ifdef LR_TEST_FAKE_CUDA
    const int lent = fake_cuda.lent;
    assert_true(is_direct && lent > 0);
    fake_cuda.renders = 1;
    for (int k = 0; k < 4; k++) go_around((lr_precision)(k / 2), (lr_precision)(k % 2), false);
    assert_int_equal(fake_cuda.lent, lent);
    fake_cuda.renders = 0;
#endif
}

/* More numbers than change their precision in one piece. */
static void from_opengl_to_cuda_in_pieces(void **state)
{
    enum { LONG = (1 << 24) + 5 };
    skip_without_cuda();
    lr_vector from = make(gl, LONG, LR_FLOAT32), to = make(cuda, LONG, LR_FLOAT64);
    lr_vector last = lr_vector_part(&from, LONG - 1, 1);
    lr_vector_sums sums;
    assert_ok(lr_vector_fill(&from, 2.0), lr_vector_fill(&last, 8.0), lr_vector_copy(&from, &to));
    assert_ok(lr_vector_add_up(&to, NULL, &sums));
    assert_true(sums.sum == 2.0 * LONG + 6.0 && sums.largest == 8.0);
    assert_ok(lr_vector_fill(&from, 0.0), lr_vector_copy(&to, &from), lr_vector_add_up(&last, NULL, &sums));
    assert_true(sums.sum == 8.0);
    assert_ok(lr_vector_add_up(&from, NULL, &sums));
    assert_true(sums.sum == 2.0 * LONG + 6.0);
}

/* A vector that wraps the caller's buffer of OpenGL, and CUDA. */
static void a_wrapped_buffer_and_cuda(void **state)
{
    skip_without_cuda();
    fill_numbers();
    const GLuint buffer = make_buffer(sizeof(numbers), numbers);
    lr_vector wrapped = wrap_buffer(buffer, COUNT), there = make(cuda, COUNT, LR_FLOAT32);
    assert_ok(lr_vector_copy(&wrapped, &there));
    check_numbers(&there, 0, 1);
    assert_ok(lr_vector_fill(&there, -3.5), lr_vector_copy(&there, &wrapped));
    void *done;
    assert_ok(lr_place_fence(gl, &done));
    lr_vector_destroy(&wrapped);
    assert_int_equal(glClientWaitSync(done, 0, UINT64_C(1) << 40) == GL_WAIT_FAILED, 0);
    glDeleteSync(done);
    glGetNamedBufferSubData(buffer, 0, sizeof(found), found);
    for (int k = 0; k < COUNT; k++) assert_true(found[k] == -3.5f);
    glDeleteBuffers(1, &buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASES(a_place_tells_its_memory, a_place_of_cuda_opens_or_says_why_not, places_that_cannot_be,
              a_buffer_of_another_context, buffers_that_cannot_be_vectors, memory_of_cuda_as_a_vector,
              memory_without_a_place_of_cuda, memory_that_is_not_of_the_device, one_device_of_cuda_is_that_of_opengl,
              from_opengl_to_cuda_and_back, from_opengl_to_cuda_in_pieces, a_wrapped_buffer_and_cuda)};
    return cmocka_run_group_tests(tests, open_places, close_places);
}
