/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * CUDA places on a device that is the machine's memory. Every call of CUDA may fail; nothing is left behind, and the
 * caller's stream, current device and memory stay unchanged. */
#include "test.h"

#include "base/log.h"
#include "device/kinds.h"
#include "device/vector.h"
#include "fake_cuda.h"

#include <cuda_runtime_api.h>

enum { COUNT = 3000 };

static struct test_log test;
static lr_place *gl;

static int open_gl(void **state)
{
    test_log_init(&test);
    gl = lr_place_open(&(lr_place_params){.kind = LR_PLACE_GL, .log = &test.log});
    return gl != NULL ? 0 : -1;
}

static int close_gl(void **state)
{
    lr_place_close(gl);
    return 0;
}

static int reset(void **state)
{
    test_log_init(&test);
    fake_cuda = (struct fake_cuda){.renders = 0};
    fake_current = FAKE_CURRENT;
    return 0;
}

/* Checks after any test that everything has been given back. */
static int check_left(void **state)
{
    assert_ints(fake_cuda.held, 0, fake_current, FAKE_CURRENT);
    return 0;
}

static lr_place *open_cuda(void)
{
    return lr_place_open(&(lr_place_params){.kind = LR_PLACE_CUDA, .log = &test.log});
}

/* --- each call fails once --- */

static lr_status create(lr_place *place, lr_precision precision, lr_vector *vector)
{
    return lr_vector_create(
        &(lr_vector_params){.place = place, .count = COUNT, .precision = precision, .log = &test.log}, vector);
}

/* Two delayed results: one is sent before it is waited for, the other is not. */
static lr_status work_later(const lr_vector *x, lr_vector *y)
{
    struct lr_later fit = {.slot = 0}, sums = {.slot = LR_LATER_SLOTS};
    LR_TRY(lr_vector_divide_counts_later(&(lr_poisson_ratio){x, NULL, y}, &fit));
    LR_TRY(lr_later_send(y->place, 0));
    LR_TRY(lr_vector_add_up_later(x, NULL, &sums));
    LR_TRY(lr_later_finish(&fit));
    LR_TRY(lr_later_finish(&sums));
    assert_true(fit.fit.measured_counts == 2.0 * COUNT && sums.sums.sum == 2.0 * COUNT);
    return lr_vector_fill(y, 1.0);
}

/* All operations, with vectors at a CUDA place, one of them in double, and with one vector of OpenGL. */
static lr_status work(lr_vector *x, lr_vector *y, lr_vector *wide, lr_vector *drawn)
{
    float numbers[COUNT];
    lr_vector_sums sums;
    lr_poisson_fit fit;
    for (int k = 0; k < COUNT; k++) numbers[k] = 1.0f;
    lr_vector host = lr_vector_of_floats(numbers, COUNT);
    LR_TRY(lr_vector_copy(&host, x));
    LR_TRY(lr_vector_fill(y, 2.0));
    LR_TRY(lr_vector_multiply(y, x));
    LR_TRY(lr_vector_copy(y, wide));
    LR_TRY(lr_vector_copy(drawn, x));
    LR_TRY(lr_vector_copy(y, drawn));
    LR_TRY(lr_vector_copy(wide, drawn));
    LR_TRY(lr_vector_copy(drawn, wide));
    LR_TRY(lr_vector_copy(y, x));
    LR_TRY(lr_vector_divide_counts(&(lr_poisson_ratio){x, NULL, y}, &fit));
    LR_TRY(lr_vector_add_up(wide, NULL, &sums));
    LR_TRY(work_later(x, y));
    LR_TRY(lr_vector_copy(y, &host));
    assert_true(sums.sum == 2.0 * COUNT && fit.measured_counts == 2.0 * COUNT);
    assert_true(numbers[0] == 1.0f && numbers[COUNT - 1] == 1.0f);
    return LR_OK;
}

static lr_status run_all(void)
{
    lr_vector x = {0}, y = {0}, wide = {0}, drawn = {0}, wrapped = {0};
    lr_place *place = open_cuda();
    if (place == NULL) return test.status;
    lr_status status = create(place, LR_FLOAT32, &x);
    status = status == LR_OK ? create(place, LR_FLOAT32, &y) : status;
    status = status == LR_OK ? create(place, LR_FLOAT64, &wide) : status;
    status = status == LR_OK ? create(gl, LR_FLOAT32, &drawn) : status;
    const lr_vector_params params = {.place = place, .count = COUNT, .log = &test.log};
    status = status == LR_OK ? lr_vector_wrap_cuda(&params, x.storage->block, &wrapped) : status;
    lr_vector_destroy(&wrapped);
    status = status == LR_OK ? work(&x, &y, &wide, &drawn) : status;
    lr_vector_destroy(&drawn);
    lr_vector_destroy(&wide);
    lr_vector_destroy(&y);
    lr_vector_destroy(&x);
    lr_place_close(place);
    return status;
}

/* Number of calls that may fail without an effect on the results. Five vectors are destroyed (two of them are made by
 * copies between precisions), and the place is closed; each time, the calls that select the device and that wait may
 * fail. What cannot be given back then is lost. */
enum { ENDS = 3 * (5 + 1) };

static void every_call_may_fail(void **state)
{
    int told = 0, unheard = 0;
    assert_ok(run_all());
    const int calls = fake_cuda.calls;
    assert_true(calls > 60);
    for (int n = 1; n <= calls; n++) {
        reset(state);
        fake_cuda.fails_in = n;
        const lr_status status = run_all();
        const bool is_heard = test.error[0] != '\0';
        told += status != LR_OK;
        unheard += !is_heard;
        assert_true(status == LR_OK || (is_heard && test.status == status));
        assert_int_equal(fake_current, FAKE_CURRENT);
        assert_true(fake_cuda.held == 0 || status == LR_OK);
        fake_forget();
    }
    print_message("%d calls, %d of which end the work where they fail\n", calls, told);
    assert_ints(unheard, 0, told, calls - ENDS);
}

/* --- what is refused --- */

static void no_device(void **state)
{
    fake_cuda.is_absent = true;
    assert_null(open_cuda());
    assert_says(test.error, "no CUDA: there is no device");
    assert_error(&test, LR_NO_DEVICE, "install");
}

static void a_device_that_is_not_there(void **state)
{
    assert_null(lr_place_open(&(lr_place_params){.kind = LR_PLACE_CUDA, .device = FAKE_DEVICES, .log = &test.log}));
    assert_says(test.error, "no CUDA device 2");
    assert_error(&test, LR_USAGE, "there are 2");
}

static void memory_of_another_device(void **state)
{
    lr_place *place = open_cuda();
    lr_vector vector;
    void *memory;
    assert_int_equal(cudaMalloc(&memory, 64), cudaSuccess); /* memory of FAKE_CURRENT */
    const lr_vector_params params = {.place = place, .count = 4, .log = &test.log};
    assert_fails(lr_vector_wrap_cuda(&params, memory, &vector), LR_USAGE, &test, "another device");
    cudaFree(memory);
    lr_place_close(place);
}

static void no_memory_says_how_much(void **state)
{
    lr_place *place = open_cuda();
    lr_vector vector;
    const lr_vector_params params = {.place = place, .count = INT64_C(1) << 32, .name = "the image", .log = &test.log};
    assert_fails(lr_vector_create(&params, &vector), LR_FAILED, &test,
                 "the image: no memory for 1.638e+04 MiB on fake device 0");
    assert_null(vector.storage);
    lr_place_close(place);
}

/* --- what is the caller's --- */

static void the_callers_stream(void **state)
{
    cudaStream_t stream;
    lr_vector x;
    lr_vector_sums sums;
    assert_int_equal(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    lr_place *place =
        non_null(lr_place_open(&(lr_place_params){.kind = LR_PLACE_CUDA, .device = 1, .cuda_stream = stream}));
    assert_ptr_equal(lr_place_get_info(place).cuda_stream, stream);
    assert_string_equal(lr_place_get_info(place).device, "fake device 1");
    assert_int_equal(lr_place_get_info(place).memory_bytes, INT64_C(1) << 33);
    assert_ok(create(place, LR_FLOAT32, &x), lr_vector_fill(&x, 3.0));
    float *first = x.storage->block;
    assert_false(*first == 3.0f); /* no call has waited for the stream */
    assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
    assert_true(*first == 3.0f);
    assert_ok(lr_vector_add_up(&x, NULL, &sums));
    assert_true(sums.sum == 3.0 * COUNT);
    lr_vector_destroy(&x);
    lr_place_close(place);
    assert_ints(fake_cuda.destroyed, 0, cudaStreamDestroy(stream), cudaSuccess);
}

/* Destroying a vector does not wait, and passes that were queued before still run. */
static void wrapped_memory_is_left_alone(void **state)
{
    void *block;
    lr_place *place = open_cuda();
    lr_vector wrapped;
    fake_current = 0;
    assert_int_equal(cudaMalloc(&block, COUNT * sizeof(float)), cudaSuccess);
    fake_current = FAKE_CURRENT;
    const lr_vector_params params = {.place = place, .count = COUNT, .log = &test.log};
    assert_ok(lr_vector_wrap_cuda(&params, block, &wrapped), lr_vector_fill(&wrapped, 4.0));
    lr_vector_destroy(&wrapped);
    assert_false(((float *)block)[0] == 4.0f);
    assert_int_equal(cudaStreamSynchronize(lr_place_get_info(place).cuda_stream), cudaSuccess);
    assert_true(((float *)block)[COUNT - 1] == 4.0f);
    lr_place_close(place);
    fake_current = 0;
    cudaFree(block);
    fake_current = FAKE_CURRENT;
}

/* A copy between OpenGL and CUDA lends the buffer once, and copies no number through the host. */
static void a_direct_copy_waits_for_nobody(void **state)
{
    lr_vector x, drawn;
    lr_place *place = open_cuda();
    assert_ok(create(place, LR_FLOAT32, &x), create(gl, LR_FLOAT32, &drawn), lr_vector_fill(&drawn, 5.0));
    assert_ok(lr_vector_copy(&drawn, &x));
    assert_ints(fake_cuda.lent, 1, fake_cuda.launches, 0);
    lr_vector_sums sums;
    assert_ok(lr_vector_add_up(&x, NULL, &sums));
    assert_true(sums.sum == 5.0 * COUNT);
    assert_int_equal(lr_place_get_info(place).traffic.to_device, 0);
    lr_vector_destroy(&drawn);
    lr_vector_destroy(&x);
    lr_place_close(place);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, reset, check_left)

int main(void)
{
    const struct CMUnitTest tests[] = {EACH(TEST, every_call_may_fail, no_device, a_device_that_is_not_there,
                                            memory_of_another_device, no_memory_says_how_much, the_callers_stream,
                                            wrapped_memory_is_left_alone, a_direct_copy_waits_for_nobody)};
    return cmocka_run_group_tests(tests, open_gl, close_gl);
}
