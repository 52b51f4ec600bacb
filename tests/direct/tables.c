/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * LORmap, mSR and mSRval, compared with their definitions (paper 1 of lr/direct.h, section 4.1). */
#include "direct/cases.h"

#include "base/vec.h"

static void identifiers_are_intervals_of_the_distance(void **state)
{
    const lr_grid grid = case_grid();
    for (int v = 0; v < NUM_ANGLES; v++) {
        for (int model = 0; model < NUM_MODELS; model++) {
            const lr_direct_kernel kernel = {.resolution = case_resolution(model)};
            lr_direct_tables *tables = kept_tables(&grid, case_views[v], &kernel);
            const lr_direct_tables_info *info = lr_direct_tables_get_info(tables);
            double axes[3][3];
            int most = 0;
            lr_view_axes(&case_views[v], axes);
            for (int row = 0; row < 24 * 22; row++) {
                double at[3];
                lr_grid_voxel_centre(&grid, row, at);
                const double radial_mm = at[0] * axes[1][0] + at[1] * axes[1][1];
                const int a = lr_direct_tables_map(tables)[row], identifier = a % info->num_identifiers;
                assert_all(info->epsilon_mm == 2.0, 2.0 * identifier <= fabs(radial_mm) + 1e-6);
                assert_true(fabs(radial_mm) < 2.0 * (identifier + 1));
                if (a >= info->num_identifiers)
                    assert_true(model >= 5 && radial_mm < 0);
                else
                    assert_true(model < 5 || radial_mm > -1e-6);
                most = a > most ? a : most;
            }
            assert_true(most < info->num_kernels);
        }
    }
}

/* Offsets compared with brute force over the whole grid; reversing their order gives the mirror image. */
static void offsets_fill_the_ellipsoid(void **state)
{
    const lr_grid grid = case_grid();
    for (int v = 0; v < NUM_ANGLES; v++) {
        const lr_direct_kernel kernel = {.resolution = case_resolution(2), .support = 8.7};
        lr_direct_tables *tables = kept_tables(&grid, case_views[v], &kernel);
        const lr_direct_tables_info *info = lr_direct_tables_get_info(tables);
        const int32_t(*offsets)[3] = lr_direct_tables_offsets(tables);
        double axes[3][3];
        int64_t next = 0;
        lr_view_axes(&case_views[v], axes);
        for (int k = 0; k < 23 * 23 * 23; k++) {
            const int x = k / 23 % 23 - 11, y = k / 529 - 11, z = k % 23 - 11;
            const double d[3] = {4.0 * x, 4.0 * y, 4.0 * z};
            double sum = 0;
            for (int i = 0; i < 3; i++) {
                const double sigma = info->sigma_mm[i];
                sum += vec_dot(d, axes[i]) * vec_dot(d, axes[i]) / sigma / sigma;
            }
            if (sum <= 8.7) {
                assert_true(next < info->num_offsets);
                assert_ints(offsets[next][0], x, offsets[next][1], y, offsets[next][2], z);
                assert_int_equal(offsets[info->num_offsets - 1 - next][0], -x);
                assert_int_equal(offsets[info->num_offsets - 1 - next][1], -y);
                assert_int_equal(offsets[info->num_offsets - 1 - next][2], -z);
                next++;
            }
        }
        assert_int_equal(next, info->num_offsets);
    }
}

/* Counts the offsets inside the ellipsoid by brute force. Each one must be the next in the list. */
static int64_t count_within(const lr_direct_tables *tables)
{
    const lr_direct_tables_info *info = lr_direct_tables_get_info(tables);
    const int *half = info->half;
    int64_t next = 0;
    double axes[3][3];
    lr_view_axes(&info->view, axes);
    for (int y = -half[1] - 1; y <= half[1] + 1; y++) {
        for (int x = -half[0] - 1; x <= half[0] + 1; x++) {
            for (int z = -half[2] - 1; z <= half[2] + 1; z++) {
                const double *mm = info->grid.voxel_mm, d[3] = {x * mm[0], y * mm[1], z * mm[2]};
                double sum = 0;
                for (int i = 0; i < 3; i++) {
                    const double part = vec_dot(d, axes[i]) / info->sigma_mm[i];
                    sum += part * part;
                }
                const bool is_within = sum <= info->support * (1 + 1e-9);
                if (is_within && next < info->num_offsets) {
                    const int32_t *offset = lr_direct_tables_offsets(tables)[next];
                    assert_true(offset[0] == x && offset[1] == y && offset[2] == z);
                }
                next += is_within;
            }
        }
    }
    return next;
}

/* Thin and thick ellipsoids in many directions, some with voxels exactly on the surface: along axes of the grid, with
 * sigmas of whole voxels and of thirds of voxels. */
static void offsets_fill_any_ellipsoid(void **state)
{
    static const double right_deg[4] = {0, 45, 90, 180}, fwhm_per_sigma = 2.3548200450309493;
    static const double light_mm_per_ps = 0.299792458;
    uint64_t seed = 17;
    for (int k = 0; k < 400; k++) {
        const bool is_whole = k % 4 == 0;
        const double mm[3] = {is_whole ? 3 : 2 + 3 * test_random(&seed), is_whole ? 3 : 2 + 3 * test_random(&seed), 3};
        const double sigma_mm[3] = {is_whole ? 1 + k / 4 % 9 : 1 + 8 * test_random(&seed),
                                    is_whole ? 1 + k / 4 % 4 : 0.2 + 4 * test_random(&seed),
                                    is_whole ? 1 + k / 4 % 3 : 0.2 + 4 * test_random(&seed)};
        const lr_grid grid = lr_grid_centred((const int[3]){60, 60, 60}, mm);
        const lr_view view = {is_whole ? right_deg[k / 4 % 4] : 360 * test_random(&seed),
                              k % 2 == 0 ? 0 : 60 * test_random(&seed) - 30};
        const lr_direct_kernel kernel = {.resolution = {.tof_ps = 2 * sigma_mm[0] * fwhm_per_sigma / light_mm_per_ps,
                                                        .radial_mm = sigma_mm[1] * fwhm_per_sigma,
                                                        .axial_mm = sigma_mm[2] * fwhm_per_sigma}};
        lr_direct_tables *tables = kept_tables(&grid, view, &kernel);
        assert_int_equal(count_within(tables), lr_direct_tables_get_info(tables)->num_offsets);
    }
}

/* The kernel of the clinical case has 265 offsets at 30 degrees, and 249 to 279 at other angles, by an independent
 * count. Paper 2 states at most 29 x 5 x 3. */
static void sizes_are_those_of_the_papers(void **state)
{
    const lr_grid grid = lr_grid_centred((const int[3]){144, 144, 48}, (const double[3]){4, 4, 4});
    lr_direct_kernel kernel = {.resolution = {.tof_ps = 400}};
    lr_direct_tables *tables = kept_tables(&grid, (lr_view){30, 0}, &kernel);
    assert_int_equal(lr_direct_tables_get_info(tables)->num_offsets, 265);
    tables = kept_tables(&grid, (lr_view){0, 0}, &kernel);
    assert_int_equal(lr_direct_tables_get_info(tables)->num_offsets, 271);
    kernel.resolution =
        (lr_resolution){.tof_ps = 300, .model = LR_RADIAL_LINEAR, .radial_mm = 5, .radial_edge_mm = 6, .axial_mm = 5};
    tables = kept_tables(&grid, (lr_view){0, 0}, &kernel);
    const lr_direct_tables_info *info = lr_direct_tables_get_info(tables);
    assert_int_equal(info->half[0], 14);
    assert_true(info->half[1] <= 2);
    assert_int_equal(info->half[2], 1);
}

static void values_are_a_normalised_gaussian(void **state)
{
    const lr_grid grid = case_grid();
    for (int v = 0; v < NUM_ANGLES; v++) {
        for (int model = 0; model < 5; model++) {
            const lr_direct_kernel kernel = {.resolution = case_resolution(model)};
            lr_direct_tables *tables = kept_tables(&grid, case_views[v], &kernel);
            const lr_direct_tables_info *info = lr_direct_tables_get_info(tables);
            const int32_t(*offsets)[3] = lr_direct_tables_offsets(tables);
            double axes[3][3];
            lr_view_axes(&case_views[v], axes);
            for (int a = 0; a < info->num_kernels; a++) {
                const double *values = lr_direct_tables_values(tables, a);
                const double fwhm[3] = {150 * 0.299792458 / 2, lr_resolution_radial_mm(&kernel.resolution, 2.0 * a + 1),
                                        5};
                double sum = 0;
                for (int64_t i = 0; i < info->num_offsets; i++) {
                    double exponent = 0;
                    for (int k = 0; k < 3; k++) {
                        const double d[3] = {4.0 * offsets[i][0], 4.0 * offsets[i][1], 4.0 * offsets[i][2]};
                        const double t = vec_dot(d, axes[k]) / fwhm[k];
                        exponent += t * t; /* at half its width, a Gaussian has half its height */
                    }
                    assert_close(values[i] / values[info->num_offsets / 2], exp2(-4 * exponent), 1e-9);
                    sum += values[i];
                }
                assert_close(sum, 1.0, 1e-12);
            }
        }
    }
}

/* Widths as in the issue and in paper 1, section 6.1. */
static void models_have_the_widths_of_the_paper(void **state)
{
    static const struct {
        lr_resolution resolution;
        double distance_mm, width_mm;
    } cases[] = {{{0}, 200, 5.8},
                 {{.model = LR_RADIAL_VARIANT1}, 0, 4.8},
                 {{.model = LR_RADIAL_VARIANT1}, 75, 5.8},
                 {{.model = LR_RADIAL_VARIANT1}, 288, 10},
                 {{.model = LR_RADIAL_VARIANT1}, (75 + 288) / 2.0, 7.9},
                 {{.model = LR_RADIAL_VARIANT2}, 0, 5.8},
                 {{.model = LR_RADIAL_VARIANT2}, 144, 8.9},
                 {{.model = LR_RADIAL_VARIANT2}, 288, 12},
                 {{.model = LR_RADIAL_VARIANT2}, 400, 12},
                 {{.model = LR_RADIAL_VARIANT3}, 0, 5.8},
                 {{.model = LR_RADIAL_VARIANT3}, 288, 11.17},
                 {{.model = LR_RADIAL_VARIANT2, .edge_mm = 100}, 50, 8.9}};
    for (int k = 0; k < length_of(cases); k++) {
        print_message("model %d at %g mm\n", (int)cases[k].resolution.model, cases[k].distance_mm);
        assert_close(lr_resolution_radial_mm(&cases[k].resolution, cases[k].distance_mm), cases[k].width_mm, 1e-14);
    }
    assert_true(lr_resolution_radial_mm(&(lr_resolution){.model = LR_RADIAL_VARIANT3}, 144) < (5.8 + 11.17) / 2);
    assert_close(lr_tof_mm(400), 59.9584916, 1e-12);
}

/* The ellipsoid of k = 3 contains 97.07 % of the Gaussian, so that a kernel's peak is 3 % higher; the ellipsoid of k^2
 * = 27 contains all but 6e-6. Voxels are small compared with the widths: 0.45 sigma. */
static void supports_hold_what_they_should(void **state)
{
    const lr_grid grid = lr_grid_centred((const int[3]){33, 33, 33}, (const double[3]){1.5, 1.5, 1.5});
    const double width_mm = 150 * 0.299792458 / 2 / 2.8, sigma_mm = width_mm / 2.3548200450309493;
    const double pi = 3.14159265358979323846, peak = pow(1.5 / (sqrt(2 * pi) * sigma_mm), 3);
    const double held[2] = {0.9707, 0.99999};
    for (int k = 0; k < 2; k++) {
        const lr_direct_kernel kernel = {
            .support = k == 0 ? 9 : 27,
            .resolution = {.tof_ps = 150 / 2.8, .radial_mm = width_mm, .axial_mm = width_mm}};
        lr_direct_tables *tables = kept_tables(&grid, (lr_view){30, 10}, &kernel);
        const int64_t middle = lr_direct_tables_get_info(tables)->num_offsets / 2;
        const double raised = lr_direct_tables_values(tables, 0)[middle] / peak;
        print_message("k^2 = %g: the peak is %.4f of the Gaussian's\n", kernel.support, raised);
        assert_true(fabs(raised - 1 / held[k]) < (k == 0 ? 0.004 : 2e-5));
    }
}

/* The mean radial offset of a kernel; positive is outwards. */
static double radial_mean_mm(const lr_direct_tables *tables, int kernel)
{
    const lr_direct_tables_info *info = lr_direct_tables_get_info(tables);
    const int32_t(*offsets)[3] = lr_direct_tables_offsets(tables);
    double axes[3][3], mean = 0;
    lr_view_axes(&info->view, axes);
    for (int64_t i = 0; i < info->num_offsets; i++) {
        const double d[3] = {4.0 * offsets[i][0], 4.0 * offsets[i][1], 4.0 * offsets[i][2]};
        mean += lr_direct_tables_values(tables, kernel)[i] * vec_dot(d, axes[1]);
    }
    return mean;
}

/* The second Gaussian, of equal area, is shifted inwards by one sigma: the mean is shifted by half a sigma. */
static void asymmetric_kernels_lean_towards_the_axis(void **state)
{
    const lr_grid grid = lr_grid_centred((const int[3]){48, 48, 11}, (const double[3]){4, 4, 4});
    for (int v = 0; v < NUM_ANGLES; v++) {
        const lr_direct_kernel kernel = {
            .support = 20, .resolution = {.tof_ps = 150, .radial_mm = 14, .axial_mm = 5, .asymmetric = true}};
        lr_direct_tables *tables = kept_tables(&grid, case_views[v], &kernel);
        const lr_direct_tables_info *info = lr_direct_tables_get_info(tables);
        assert_int_equal(info->num_kernels, 2 * info->num_identifiers);
        const double outer = radial_mean_mm(tables, 5), inner = radial_mean_mm(tables, info->num_identifiers + 5);
        assert_true(fabs(outer + inner) < 1e-9);
        assert_close(outer, -0.5 * 14 / 2.3548200450309493, 0.03);
    }
}

/* --- what is refused --- */

static void refuse(const lr_direct_kernel *kernel, lr_view view, const char *words)
{
    const lr_grid grid = case_grid();
    struct test_log log = TEST_LOG(log);
    assert_null(lr_direct_tables_create(
        &(lr_direct_tables_params){.grid = &grid, .view = view, .kernel = *kernel, .log = &log.log}));
    assert_says(log.error, words);
}

static void nonsense_is_refused(void **state)
{
    static const lr_direct_kernel good = {.resolution = {.tof_ps = 150}};
    static const struct {
        lr_direct_kernel kernel;
        const char *words;
    } cases[] = {{{.resolution = {.tof_ps = 0}}, "time resolution"},
                 {{.resolution = {.tof_ps = NAN}}, "time resolution"},
                 {{.resolution = {.tof_ps = 150, .radial_mm = -1}}, "radial width"},
                 {{.resolution = {.tof_ps = 150, .axial_mm = -1}}, "axial width"},
                 {{.resolution = {.tof_ps = 150, .model = LR_RADIAL_LINEAR}}, "at the edge"},
                 {{.resolution = {.tof_ps = 150, .model = LR_RADIAL_MEASURED}}, "measured"},
                 {{.resolution = {.tof_ps = 150}, .support = -9}, "support"},
                 {{.resolution = {.tof_ps = 150}, .epsilon_mm = 1e-4}, "epsilon"},
                 {{.resolution = {.tof_ps = 600}}, "voxels long along x and the grid has 24"},
                 {{.resolution = {.tof_ps = 150, .axial_mm = 30}}, "along z and the grid has 11"}};
    for (int k = 0; k < length_of(cases); k++) refuse(&cases[k].kernel, (lr_view){0, 0}, cases[k].words);
    refuse(&good, (lr_view){0, 90}, "tilt of 90");
    refuse(&good, (lr_view){NAN, 0}, "azimuth");
}

test_main("direct: tables",
          CASES(identifiers_are_intervals_of_the_distance, offsets_fill_the_ellipsoid, offsets_fill_any_ellipsoid,
                sizes_are_those_of_the_papers, values_are_a_normalised_gaussian, models_have_the_widths_of_the_paper,
                supports_hold_what_they_should, asymmetric_kernels_lean_towards_the_axis, nonsense_is_refused))
