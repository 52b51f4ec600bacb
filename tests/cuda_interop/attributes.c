/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The description of a CUDA kernel (registers, memory, occupancy), with a stand-in for the driver that the test
 * controls. */
#include "test.h"

#include "base/log.h"
#include "cuda_interop/direct/passes.h"
#include "cuda_interop/lend.h"

#include <cuda_runtime_api.h>

static const int a_kernel;
static int fails_at, calls; /* number of the call that fails, counted from 1; 0: none */

static cudaError_t answer(void)
{
    return ++calls == fails_at ? cudaErrorMemoryAllocation : cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *function)
{
    assert_ptr_equal(function, &a_kernel);
    *attributes =
        (struct cudaFuncAttributes){.sharedSizeBytes = 64, .constSizeBytes = 36, .localSizeBytes = 8, .numRegs = 42};
    return answer();
}

cudaError_t cudaGetDevice(int *device)
{
    *device = 3;
    return answer();
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    assert_true(attribute == cudaDevAttrMaxThreadsPerMultiProcessor && device == 3);
    *value = 1024;
    return answer();
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int threads,
                                                          size_t shared_bytes)
{
    assert_ptr_equal(function, &a_kernel);
    assert_ints(threads, 100, shared_bytes, 4096);
    *blocks = 3;
    return answer();
}

lr_status lr_cuda_check(int error, const char *what, const lr_log *log)
{
    return error == 0 ? LR_OK : lr_error(log, LR_FAILED, "%s: CUDA says %d", what, error);
}

static void the_last_kernel_is_described(void **state)
{
    lr_direct_attributes found;
    assert_int_equal(lr_cuda_find_attributes(&found, NULL), LR_USAGE); /* no kernel has run yet */
    lr_cuda_note_kernel(&found, 512, 0);
    lr_cuda_note_kernel(&a_kernel, 100, 4096);
    assert_ok(lr_cuda_find_attributes(&found, NULL));
    assert_ints(found.registers, 42, found.threads, 100, found.constant_bytes, 36, found.local_bytes, 8);
    assert_ints(found.shared_bytes, 64 + 4096, found.blocks, 3);
    assert_true(fabs(found.occupancy - 12.0 / 32.0) < 1e-12); /* 100 threads are four warps */
}

static void every_question_may_fail(void **state)
{
    lr_direct_attributes found;
    lr_cuda_note_kernel(&a_kernel, 100, 4096);
    for (fails_at = 1; fails_at <= 4; fails_at++) {
        calls = 0;
        assert_int_equal(lr_cuda_find_attributes(&found, NULL), LR_FAILED);
    }
    fails_at = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_last_kernel_is_described),
                                       cmocka_unit_test(every_question_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
