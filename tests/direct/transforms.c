/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Convolutions by the libraries that `loraster bench direct` measures. They are right for each volume of a batch. With
 * an invariant symmetric kernel they equal projections by the backend cpu. */
#include "direct/cases.h"

#include "fft/fft.h"

#include <strings.h>

enum { NX = 7, NY = 6, NZ = 5, COUNT = NX * NY * NZ };

static const struct fft_library *library;

static void fill(float *values, int64_t count, uint64_t seed)
{
    for (int64_t k = 0; k < count; k++) values[k] = (float)test_random(&seed);
}

static double convolved(const float *image, const float *kernel, int x, int y, int z)
{
    double sum = 0;
    for (int k = 0; k < COUNT; k++) {
        const int i = (x - k % NX + NX) % NX, j = (y - k / NX % NY + NY) % NY;
        sum += (double)image[k] * (double)kernel[i + NX * (j + NY * ((z - k / NX / NY + NZ) % NZ))];
    }
    return sum;
}

/* A row of odd length, which the inverse transform must know, and a kernel without any symmetry. */
static void convolves_cyclically(void **state)
{
    static float kernel[COUNT], image[COUNT], out[COUNT];
    struct test_log log = TEST_LOG(log);
    struct fft_timing timing = {0};
    char name[160] = "";
    fill(kernel, COUNT, 1);
    fill(image, COUNT, 2);
    for (int volumes = 1; volumes <= 3; volumes += 2) {
        const struct fft_job job = filled(struct fft_job, .size = {NX, NY, NZ}, .volumes = volumes, .kernel = kernel,
                                          .image = image, .threads = 2, .repeat = 3, .seconds = 1, .log = &log.log);
        memset(out, 0, sizeof(out));
        if (library->convolve(&job, out, &timing, name) != LR_OK) fail_msg("%s", log.error);
        for (int k = 0; k < COUNT; k++)
            assert_close(out[k], convolved(image, kernel, k % NX, k / NX % NY, k / NX / NY), 1e-6);
        assert_true(timing.wall_s > 0);
        assert_int_equal(timing.device_s > 0, library->has_device != NULL);
    }
    print_message("%s: %s\n", library->name, name);
}

/* Compares fft_compare with cpu's projection of a tilted view. */
static lr_status compare(const lr_resolution *resolution, bool is_padded, struct fft_result *found,
                         struct test_log *log)
{
    const lr_grid grid = case_grid();
    const lr_direct_kernel kernel = {.resolution = *resolution};
    test_log_init(log);
    lr_direct_tables *tables = kept_tables(&grid, case_views[5], &kernel);
    lr_operator *direct = kept_direct(
        (lr_direct_params){.grid = &grid, .views = &case_views[5], .num_views = 1, .kernel = kernel, .backend = "cpu"});
    const int64_t count = lr_operator_get_info(direct)->num_voxels;
    float *image = kept_floats(count), *projected = kept_floats(count);
    fill(image, count, 3);
    assert_ok(view_floats(direct, true, 0, image, projected));
    const lr_status status =
        fft_compare(library,
                    &filled(struct fft_case, .tables = tables, .image = image, .projected = projected, .volumes = 3,
                            .threads = 2, .repeat = 1, .seconds = 1, .log = &log->log),
                    is_padded, found);
    return status;
}

static void is_the_projection_where_ends_do_not_meet(void **state)
{
    const lr_resolution resolution = case_resolution(0);
    struct test_log log;
    for (int is_padded = 0; is_padded < 2; is_padded++) {
        struct fft_result found;
        if (compare(&resolution, is_padded != 0, &found, &log) != LR_OK) fail_msg("%s", log.error);
        print_message("%s zeros around: relative L2 %.2e\n", is_padded ? "with" : "without", found.error);
        assert_true(is_padded ? found.error < 1e-6 : found.error > 1e-3);
        assert_int_equal(found.volumes, 3);
        assert_true(found.batch.wall_s > 0);
    }
}

static void kernels_that_vary_are_refused(void **state)
{
    const lr_resolution resolution = case_resolution(2);
    struct fft_result found;
    struct test_log log;
    assert_fails(compare(&resolution, true, &found, &log), LR_USAGE, &log, "no convolution");
}

int main(int argc, char **argv)
{
    for (library = fft_libraries; argc > 1 && library->name != NULL; library++)
        if (strcasecmp(library->name, argv[1]) == 0) break;
    if (argc < 2 || library->name == NULL) {
        fprintf(stderr, "usage: %s LIBRARY\n", argv[0]);
        return 2;
    }
    if (fft_missing(library) != NULL) {
        printf("skipped: %s\n", fft_missing(library));
        return 77;
    }
    const struct CMUnitTest tests[] = {
        CASES(convolves_cyclically, is_the_projection_where_ends_do_not_meet, kernels_that_vary_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
