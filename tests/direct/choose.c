/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Tests which backend of the family `direct` is used on machines with a graphics processor, with and without CUDA. The
 * backends of devices are replaced by the processor's backend, under the devices' names. */
#include "direct/cases.h"

#include "base/log.h"
#include "direct/backend.h"

static bool is_hardware, has_cuda;
static int cuda_asked, compute_asked;
static lr_direct_variant asked_variant;

bool __wrap_lr_gl_is_hardware(int device, const lr_log *log);
lr_status __wrap_lr_direct_cuda_create(const struct lr_direct_backend_params *params, struct lr_backend *backend);
lr_status __wrap_lr_direct_compute_create(const struct lr_direct_backend_params *params, struct lr_backend *backend);

bool __wrap_lr_gl_is_hardware(int device, const lr_log *log)
{
    (void)device, (void)log;
    return is_hardware;
}

static lr_status create_as(const char *name, const struct lr_direct_backend_params *params, struct lr_backend *backend)
{
    static struct lr_backend_fns fns[2];
    struct lr_backend_fns *own = &fns[strcmp(name, "cuda") == 0];
    const lr_status status = lr_direct_cpu_create(params, backend);
    if (status == LR_OK) {
        *own = *backend->fns;
        own->name = name;
        backend->fns = own;
    }
    return status;
}

lr_status __wrap_lr_direct_cuda_create(const struct lr_direct_backend_params *params, struct lr_backend *backend)
{
    cuda_asked++;
    asked_variant = params->variant;
    return has_cuda ? create_as("cuda", params, backend)
                    : lr_error(params->log, LR_NO_DEVICE, "no CUDA: it is away today");
}

lr_status __wrap_lr_direct_compute_create(const struct lr_direct_backend_params *params, struct lr_backend *backend)
{
    compute_asked++;
    return create_as("compute", params, backend);
}

/* --- messages --- */

static char warnings[600];

static void hear(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    if (level >= LR_LOG_INFO) snprintf(warnings, sizeof(warnings), "%s", sentence);
}

static lr_direct_params asked(const char *backend)
{
    static const lr_log log = {hear, NULL};
    static lr_grid grid;
    grid = lr_grid_centred((const int[3]){24, 24, 12}, (const double[3]){4, 4, 4});
    return filled(lr_direct_params, .grid = &grid, .views = case_views, .num_views = 1,
                  .kernel = {.resolution = {.tof_ps = 150, .radial_mm = 5, .axial_mm = 5}}, .backend = backend,
                  .log = &log);
}

static void check(bool hardware, bool cuda, const char *wanted, const char *taken, const char *passed_over)
{
    is_hardware = hardware;
    has_cuda = cuda;
    cuda_asked = compute_asked = 0;
    warnings[0] = '\0';
    lr_operator *direct = kept_direct(asked(wanted));
    assert_string_equal(lr_operator_get_info(direct)->backend, taken);
    if (passed_over == NULL)
        assert_null(lr_operator_get_info(direct)->passed_over);
    else
        assert_string_equal(lr_operator_get_info(direct)->passed_over, passed_over);
}

static const char missing[] = "cuda cannot run here: no CUDA: it is away today";

static void auto_takes_cuda_on_a_graphics_processor(void **state)
{
    check(true, true, "auto", "cuda", NULL);
    assert_ints(asked_variant, LR_DIRECT_FASTEST, compute_asked, 0);
    assert_string_equal(warnings, "");
}

static void auto_takes_compute_in_silence_without_cuda(void **state)
{
    check(true, false, NULL, "compute", missing);
    assert_int_equal(cuda_asked, 1);
    assert_string_equal(warnings, "");
}

static void cuda_that_is_named_and_missing_is_refused(void **state)
{
    has_cuda = false;
    cuda_asked = compute_asked = 0;
    const lr_direct_params params = asked("cuda");
    assert_null(lr_direct_create(&params));
    assert_string_equal(warnings, "no CUDA: it is away today");
    assert_ints(cuda_asked, 1, compute_asked, 0);
}

static void a_list_takes_the_first_that_runs(void **state)
{
    check(true, false, "cuda,compute", "compute", missing);
    check(true, true, "cuda,compute", "cuda", NULL);
}

static void auto_takes_the_processor_elsewhere(void **state)
{
    check(false, true, "auto", "cpu", NULL);
    assert_int_equal(cuda_asked + compute_asked, 0);
}

static void compute_that_is_named_is_taken(void **state)
{
    check(true, true, "compute", "compute", NULL);
    assert_int_equal(cuda_asked, 0);
}

test_main("direct: choose", CASES(auto_takes_cuda_on_a_graphics_processor, auto_takes_compute_in_silence_without_cuda,
                                  cuda_that_is_named_and_missing_is_refused, a_list_takes_the_first_that_runs,
                                  auto_takes_the_processor_elsewhere, compute_that_is_named_is_taken))
