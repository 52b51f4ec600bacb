/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Files of measured profiles, and the kernels made from them. */
#include "direct/cases.h"

#include <unistd.h>

static const char *write_file(char path[64], const char *text)
{
    snprintf(path, 64, "profiles-%d.yaml", (int)getpid());
    FILE *file = fopen(path, "w");
    assert_all(file != NULL, fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    return path;
}

static void files_are_read(void **state)
{
    char path[64];
    lr_radial_profiles profiles;
    write_file(path, "distance_mm: [0, 100]\nfirst_offset_mm: -2\noffset_step_mm: 2\n"
                     "profiles:\n  - [0, 1, 0]\n  - [0.5, 1, 0.25]\n");
    assert_ok(lr_radial_profiles_read(path, &profiles, NULL));
    assert_ints(profiles.num_distances, 2, profiles.num_offsets, 3);
    assert_all(profiles.distance_mm[1] == 100 && profiles.first_offset_mm == -2, profiles.offset_step_mm == 2);
    assert_true(profiles.values[1] == 1 && profiles.values[3] == 0.5 && profiles.values[5] == 0.25);
    lr_radial_profiles_finish(&profiles);
    unlink(path);
}

static void refuse_file(const char *text, const char *words)
{
    char path[64];
    struct test_log log = TEST_LOG(log);
    lr_radial_profiles profiles;
    write_file(path, text);
    assert_int_equal(lr_radial_profiles_read(path, &profiles, &log.log), LR_BAD_INPUT);
    assert_null(profiles.values);
    unlink(path);
    assert_says(log.error, words);
}

static void bad_files_are_refused(void **state)
{
    struct test_log log = TEST_LOG(log);
    lr_radial_profiles profiles;
    assert_int_equal(lr_radial_profiles_read("no-such.yaml", &profiles, &log.log), LR_BAD_INPUT);
    refuse_file("distance_mm: [0]\n", "first_offset_mm");
    refuse_file("distance_mm: 3\nfirst_offset_mm: -2\noffset_step_mm: 2\nprofiles: [[1, 1]]\n", "list");
    refuse_file("distance_mm: [0, 1]\nfirst_offset_mm: -2\noffset_step_mm: 2\n"
                "profiles: [[0, 1, 0]]\n",
                "2 distances");
    refuse_file("distance_mm: [0, 1]\nfirst_offset_mm: -2\noffset_step_mm: 2\n"
                "profiles: [[0, 1, 0], [0, 1]]\n",
                "2 values and the first one 3");
    refuse_file("distance_mm: [0]\nfirst_offset_mm: -2\noffset_step_mm: 2\n"
                "profiles: [[0, x, 0]]\n",
                "number");
}

static void refuse_kernel(lr_radial_profiles profiles, const char *words)
{
    const lr_grid grid = case_grid();
    struct test_log log = TEST_LOG(log);
    const lr_resolution resolution = {.tof_ps = 150, .model = LR_RADIAL_MEASURED, .axial_mm = 5, .measured = &profiles};
    assert_null(lr_direct_tables_create(
        &(lr_direct_tables_params){.grid = &grid, .kernel = {.resolution = resolution}, .log = &log.log}));
    assert_says(log.error, words);
}

static void profiles_without_a_kernel_are_refused(void **state)
{
    static double distance_mm[2] = {10, 0}, values[6] = {0, 1, 0, 0, 0, 0}, negative[3] = {1, -1, 1};
    static double narrow[4] = {0, 0, 0, 1}; /* positive only between voxels */
    refuse_kernel((lr_radial_profiles){2, 3, distance_mm, -4, 4, values}, "ascend");
    refuse_kernel((lr_radial_profiles){1, 3, distance_mm, 1, 4, values}, "around 0");
    refuse_kernel((lr_radial_profiles){1, 3, distance_mm, -4, 4, negative}, "not negative");
    refuse_kernel((lr_radial_profiles){1, 3, distance_mm, -4, 4, values + 3}, "zero everywhere");
    refuse_kernel((lr_radial_profiles){1, 4, distance_mm, -1.5, 1.1, narrow}, "narrower than a voxel");
}

/* Finely sampled profiles of a Gaussian give the kernels of the Gaussian. */
static void a_measured_gaussian_is_a_gaussian(void **state)
{
    enum { NUM = 401 };
    const lr_grid grid = case_grid();
    static double values[2 * NUM];
    double distance_mm[2] = {0, 48};
    const double sigma_mm = 6 / 2.3548200450309493, step_mm = 6 * sigma_mm / (NUM - 1);
    const lr_radial_profiles profiles =
        filled(lr_radial_profiles, .num_distances = 2, .num_offsets = NUM, .distance_mm = distance_mm,
               .first_offset_mm = -3 * sigma_mm, .offset_step_mm = step_mm, .values = values);
    for (int k = 0; k < NUM; k++) {
        const double t = (k * step_mm - 3 * sigma_mm) / sigma_mm;
        values[k] = exp(-0.5 * t * t);
        values[NUM + k] = 3 * values[k]; /* scaling the values has no effect */
    }
    for (int v = 0; v < NUM_ANGLES; v++) {
        lr_direct_kernel kernel = {.resolution = {.tof_ps = 150, .radial_mm = 6, .axial_mm = 5}};
        lr_direct_tables_params params = {.grid = &grid, .view = case_views[v], .kernel = kernel};
        lr_direct_tables *closed = kept_tables(&grid, case_views[v], &params.kernel);
        params.kernel.resolution.model = LR_RADIAL_MEASURED;
        params.kernel.resolution.measured = &profiles;
        lr_direct_tables *measured = kept_tables(&grid, case_views[v], &params.kernel);
        const lr_direct_tables_info *info = lr_direct_tables_get_info(measured);
        assert_int_equal(info->num_offsets, lr_direct_tables_get_info(closed)->num_offsets);
        for (int kernel_number = 0; kernel_number < info->num_kernels; kernel_number++) {
            for (int64_t i = 0; i < info->num_offsets; i++) {
                const double a = lr_direct_tables_values(measured, kernel_number)[i];
                const double b = lr_direct_tables_values(closed, 0)[i];
                assert_true(fabs(a - b) < 2e-5 * lr_direct_tables_values(closed, 0)[info->num_offsets / 2]);
            }
        }
    }
}

test_main("direct: profiles", CASES(files_are_read, bad_files_are_refused, profiles_without_a_kernel_are_refused,
                                    a_measured_gaussian_is_a_gaussian))
