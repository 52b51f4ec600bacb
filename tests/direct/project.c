/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Laws of projections, for the backend in argv[1]. */
#include "direct/cases.h"

#include "base/vec.h"

static lr_operator *make(const lr_grid *grid, const lr_view *view, const lr_direct_kernel *kernel, const char *name)
{
    return kept_direct((lr_direct_params){
        .grid = grid, .views = view, .num_views = 1, .kernel = *kernel, .backend = name, .log = &kept_log()->log});
}

typedef void case_fn(const lr_grid *grid, const lr_view *view, const lr_direct_kernel *kernel);

/* --- laws --- */

static void spread(const lr_direct_tables *tables, const double *image, double *histo)
{
    const lr_direct_tables_info *info = lr_direct_tables_get_info(tables);
    const int *size = info->grid.size;
    const int32_t(*offsets)[3] = lr_direct_tables_offsets(tables);
    for (int k = 0; k < size[0] * size[1] * size[2]; k++) {
        const int x = k % size[0], y = k / size[0] % size[1], z = k / size[0] / size[1];
        const double *values = lr_direct_tables_values(tables, lr_direct_tables_map(tables)[y * size[0] + x]);
        for (int64_t i = 0; i < info->num_offsets; i++) {
            const int to[3] = {x + offsets[i][0], y + offsets[i][1], z + offsets[i][2]};
            if (to[0] >= 0 && to[0] < size[0] && to[1] >= 0 && to[1] < size[1] && to[2] >= 0 && to[2] < size[2])
                histo[to[0] + size[0] * (to[1] + size[1] * to[2])] += values[i] * image[k];
        }
    }
}

static double tolerance(void)
{
    /* double: rounding of 5,808 terms; float: the issue demands 1e-6, of which rounding of sums is a tenth */
    return test_backend_is("cpu") ? 1e-13 : 1e-6;
}

/* Checks three laws: the forward projection equals K_v of the tables, voxel by voxel; <F x, y> = <x, F^T y>; the
 * back-projection equals that of the reference. */
static void check_projections(const lr_grid *grid, const lr_view *view, const lr_direct_kernel *kernel)
{
    uint64_t seed = 3;
    const int64_t count = lr_grid_num_voxels(grid);
    lr_operator *direct = make(grid, view, kernel, test_backend), *reference = make(grid, view, kernel, "cpu");
    double *x = kept_random_singles(count, 0, 1, &seed), *y = kept_random_singles(count, 0, 1, &seed),
           *expected = kept_doubles(count);
    double *fx = kept_random_singles(count, 0, 1, &seed), *fty = kept_random_singles(count, 0, 1, &seed);
    assert_ok(view_doubles(direct, true, 0, x, fx), view_doubles(direct, false, 0, y, fty));
    const double left = dot_product(fx, y, count), right = dot_product(x, fty, count);
    assert_true(fabs(left - right) < tolerance() * left); /* false if one of them is NaN */
    spread(kept_tables(grid, *view, kernel), x, expected);
    assert_true(l2_apart(fx, expected, count) < tolerance());
    assert_ok(view_doubles(reference, false, 0, y, expected));
    assert_true(l2_apart(fty, expected, count) < 1e-6); /* the issue demands 1e-5 */
}

static void projections_are_those_of_the_tables(void **state)
{
    const lr_grid grids[2] = {case_grid(), case_odd_grid()};
    for (int v = 0; v < NUM_ANGLES; v++) {
        for (int model = 0; model < NUM_MODELS; model++) {
            check_projections(&grids[(v + model) % 2], &case_views[v],
                              &(lr_direct_kernel){.resolution = case_resolution(model)});
            destroy_kept_since(0);
        }
    }
}

static void elements_of_both_are_the_same_numbers(void **state)
{
    const lr_grid grid = case_grid();
    for (int model = 0; model < NUM_MODELS; model++) {
        const lr_direct_kernel kernel = {.resolution = case_resolution(model)};
        /* Checks the transpose element by element, also at the borders: columns of F and F^T for corner and inner
         * voxels. */
        const int64_t count = lr_grid_num_voxels(&grid);
        static const int places[3][3] = {{0, 0, 0}, {23, 2, 10}, {9, 12, 5}};
        lr_operator *direct = make(&grid, &case_views[(model + 1) % NUM_ANGLES], &kernel, test_backend);
        double *unit = kept_doubles(count), *column = kept_doubles(count), *row = kept_doubles(count);
        for (int p = 0; p < 3; p++) {
            const int64_t v = places[p][0] + 24 * (places[p][1] + 22 * (int64_t)places[p][2]);
            memset(unit, 0, (size_t)count * sizeof(*unit));
            unit[v] = 1;
            assert_ok(view_doubles(direct, true, 0, unit, column));
            for (int64_t k = v % 3; k < count; k += 997) {
                memset(unit, 0, (size_t)count * sizeof(*unit));
                unit[k] = 1;
                assert_ok(view_doubles(direct, false, 0, unit, row));
                assert_true(row[v] == column[k]);
            }
        }
        destroy_kept_since(0);
    }
}

/* --- effect of kernels on a point (paper 1, figures 6 and 7) --- */

/* Mean and spread, in mm, of an image around a point along the radial axis. */
struct moments {
    double sum, mean_mm, third;
};

static struct moments radial_moments(const lr_grid *grid, const lr_view *view, const double *image, int64_t point)
{
    double axes[3][3], centre[3], square = 0;
    struct moments moments = {0};
    lr_view_axes(view, axes);
    lr_grid_voxel_centre(grid, point, centre);
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t k = 0; k < lr_grid_num_voxels(grid); k++) {
            double at[3];
            lr_grid_voxel_centre(grid, k, at);
            vec_sub(at, centre, at);
            const double u = vec_dot(at, axes[1]);
            if (pass == 0) {
                moments.sum += image[k];
                moments.mean_mm += image[k] * u;
            } else {
                square += image[k] * (u - moments.mean_mm) * (u - moments.mean_mm);
                moments.third += image[k] * pow(u - moments.mean_mm, 3);
            }
        }
        moments.mean_mm /= pass == 0 ? moments.sum : 1;
    }
    moments.third /= pow(square / moments.sum, 1.5) * moments.sum;
    return moments;
}

/* Projects a point on the positive radial side, far from the borders. */
static void project_point(const lr_view *view, const lr_direct_kernel *kernel, struct moments *forward,
                          struct moments *back)
{
    const lr_grid grid = lr_grid_centred((const int[3]){49, 49, 11}, (const double[3]){4, 4, 4});
    const int64_t count = lr_grid_num_voxels(&grid);
    double axes[3][3];
    lr_view_axes(view, axes);
    const int x = 24 + (int)nearbyint(11 * axes[1][0]), y = 24 + (int)nearbyint(11 * axes[1][1]);
    const int64_t point = x + 49 * (y + 49 * 5);
    lr_operator *direct = make(&grid, view, kernel, test_backend);
    double *image = kept_doubles(count), *out = kept_doubles(count);
    image[point] = 1;
    assert_ok(view_doubles(direct, true, 0, image, out));
    *forward = radial_moments(&grid, view, out, point);
    assert_ok(view_doubles(direct, false, 0, image, out));
    *back = radial_moments(&grid, view, out, point);
}

static void variant_kernels_spread_evenly_and_collect_unevenly(void **state)
{
    for (int v = 0; v < 4; v++) {
        const lr_direct_kernel kernel = {.resolution = filled(lr_resolution, .tof_ps = 150, .model = LR_RADIAL_LINEAR,
                                                              .radial_mm = 6, .radial_edge_mm = 30, .edge_mm = 98,
                                                              .axial_mm = 5)};
        struct moments forward, back;
        project_point(&case_views[v], &kernel, &forward, &back);
        assert_close(forward.sum, 1.0, 1e-6);
        assert_true(fabs(forward.mean_mm) < 1e-5 && fabs(forward.third) < 1e-5);
        assert_true(back.mean_mm > 0.5 && back.third > 0.05); /* kernels become wider towards the edge */
    }
}

static void asymmetric_kernels_point_inwards_and_outwards(void **state)
{
    for (int v = 0; v < 4; v++) {
        const lr_direct_kernel kernel = {
            .resolution = {.tof_ps = 150, .radial_mm = 12, .axial_mm = 5, .asymmetric = true}};
        struct moments forward, back;
        project_point(&case_views[v], &kernel, &forward, &back);
        assert_close(forward.sum, 1.0, 1e-6);
        assert_all(back.mean_mm > 1 && back.third > 0.1, forward.mean_mm < -1 && forward.third < -0.1);
    }
}

/* --- calls --- */

static void bad_calls_are_refused(void **state)
{
    const lr_grid grid = case_grid();
    const int64_t count = lr_grid_num_voxels(&grid);
    struct test_log *log = kept_log();
    lr_direct_params params =
        filled(lr_direct_params, .grid = &grid, .views = case_views, .num_views = 2,
               .kernel = {.resolution = case_resolution(0)}, .backend = test_backend, .log = &log->log);
    lr_operator *direct = keep(lr_direct_create(&params));
    float *image = kept_floats(count), *out = kept_floats(count);
    assert_int_equal(view_floats(direct, true, 2, image, out), LR_USAGE);
    assert_int_equal(view_floats(direct, false, -1, image, out), LR_USAGE);
    image[77] = NAN;
    assert_fails(view_floats(direct, false, 1, image, out), LR_BAD_INPUT, log, "voxel 77");
    params.backend = "quantum";
    assert_none(lr_direct_create(&params), LR_USAGE, log, "");
    params.backend = test_backend;
    params.kernel.resolution.tof_ps = 0;
    assert_null(lr_direct_create(&params));
    lr_operator_destroy(NULL);
}

usable_main(case_is_usable(argc, argv),
            CASES(projections_are_those_of_the_tables, elements_of_both_are_the_same_numbers,
                  variant_kernels_spread_evenly_and_collect_unevenly, asymmetric_kernels_point_inwards_and_outwards,
                  bad_calls_are_refused))
