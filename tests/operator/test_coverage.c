/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Grids inside the detectors, across their border and beyond them. */
#include "fixtures.h"

#include "operator/facade.h"

static const int one_sample[3] = {1, 1, 1};
static const double pi = 3.14159265358979323846;

static lr_status check(const struct fixture *fixture, const lr_grid *grid, struct test_log *log)
{
    test_log_init(log);
    return lr_coverage_check(grid, one_sample, fixture->scanner, NULL, &log->log);
}

static void test_inside_is_silent(void **state)
{
    for (int kind = 0; kind < FIXTURE_COUNT; kind++) {
        struct fixture fixture = kept_fixture(kind);
        struct test_log log;
        lr_grid grid = lr_grid_centred((const int[3]){3, 3, 3}, (const double[3]){1, 1, 1});
        if (kind == FIXTURE_OBLIQUE) grid = fixture.grid; /* the axis is not between these two modules */
        assert_ok(check(&fixture, &grid, &log));
        assert_int_equal(log.num_warnings, 0);
    }
}

/* True if the point lies outside a regular polygon around the axis, or beyond the panels' ends at 17.2 mm / 2. */
static bool is_outside(const double p[3], int num_sides, double first_angle, double radius_mm)
{
    for (int k = 0; k < num_sides; k++) {
        const double angle = first_angle + k * 2.0 * pi / num_sides;
        if (p[0] * cos(angle) + p[1] * sin(angle) > radius_mm) return true;
    }
    return fabs(p[2]) > 8.6;
}

/* Every voxel behind a panel must be counted, and no voxel inside the panels' convex hull, whose other sides join the
 * edges of neighbouring panels. */
static void check_ring(int num_panels)
{
    struct test_log log = TEST_LOG(log);
    lr_scanner *scanner = keep(scanner_from("ring: {radius_mm: 32, modules: %d}\nmodule: {crystals: [5, 4], pitch_mm: "
                                            "[4.3, 4.3], face_mm: [4, 4], depth_mm: 20}",
                                            num_panels));
    const lr_grid grid = lr_grid_centred((const int[3]){40, 38, 9}, (const double[3]){2.03, 2.11, 3.07});
    const double half_angle = pi / num_panels, joint_mm = 32.0 * cos(half_angle) + 10.75 * sin(half_angle);
    int64_t behind = 0, outside_hull = 0;
    for (int64_t row = 0; row < lr_grid_num_voxels(&grid); row++) {
        double centre[3];
        lr_grid_voxel_centre(&grid, row, centre);
        const bool is_behind = is_outside(centre, num_panels, 0.0, 32.0);
        behind += is_behind;
        outside_hull += is_behind || is_outside(centre, num_panels, half_angle, joint_mm);
    }
    assert_ok(lr_coverage_check(&grid, one_sample, scanner, NULL, &log.log));
    assert_int_equal(log.num_warnings, 1);
    const long long counted = atoll(log.warning);
    if (counted < behind || counted > outside_hull) {
        fail_msg("%d panels: %lld voxels counted; %lld are behind a panel, %lld outside the hull", num_panels, counted,
                 (long long)behind, (long long)outside_hull);
    }
}

/* With 8 panels, the axes along a panel are normals of other panels. With 7 panels they are not. */
static void test_rings_count_voxels_outside_their_polygon(void **state)
{
    check_ring(8);
    check_ring(7);
}

/* A voxel counts as outside only if all its sample points are outside. */
static void test_sample_points_decide(void **state)
{
    struct fixture fixture = kept_fixture(FIXTURE_OPPOSED);
    struct test_log log = TEST_LOG(log);
    /* between z = -8.6 and 8.6 */
    lr_grid grid = lr_grid_centred((const int[3]){1, 1, 2}, (const double[3]){2, 2, 20});
    assert_int_equal(check(&fixture, &grid, &log), LR_BAD_INPUT); /* centres at +-10 */
    const int samples[3] = {1, 1, 2};                             /* points at +-5 and +-15 */
    assert_ok(lr_coverage_check(&grid, samples, fixture.scanner, NULL, &log.log));
    assert_int_equal(log.num_warnings, 0);
}

static void test_miss_on_every_side_is_an_error(void **state)
{
    for (int kind = 0; kind < FIXTURE_COUNT; kind++) {
        struct fixture fixture = kept_fixture(kind);
        for (int side = 0; side < 6; side++) {
            struct test_log log;
            lr_grid grid = fixture.grid;
            grid.origin_mm[side / 2] += side % 2 ? 200.0 : -200.0;
            assert_ints(check(&fixture, &grid, &log), LR_BAD_INPUT, log.status, LR_BAD_INPUT);
            assert_says(log.error, "misses the scanner");
        }
    }
}

/* The grid lies between the planes of two modules but beside the modules, where no line between them passes. */
static void test_beside_the_modules_is_an_error(void **state)
{
    struct fixture fixture = kept_fixture(FIXTURE_OPPOSED);
    struct test_log log;

    lr_grid grid = lr_grid_centred((const int[3]){2, 2, 2}, (const double[3]){1, 1, 1});
    grid.origin_mm[0] = 10.76; /* the modules end at 10.75 */
    assert_int_equal(check(&fixture, &grid, &log), LR_BAD_INPUT);
    grid.origin_mm[0] = 10.74;
    assert_ok(check(&fixture, &grid, &log));
    assert_int_equal(log.num_warnings, 1);
}

/* Points near a detection plane are reported only if they lie over the module's rectangle, in front of it or behind. */
static void test_points_on_planes_are_named(void **state)
{
    struct fixture fixture = kept_fixture(FIXTURE_OPPOSED);
    struct test_log log;

    const lr_scanner *scanner = fixture.scanner;
    double plane[3];
    lr_scanner_detection_centre(scanner, 1, plane);
    const double *normal = scanner->modules[1].normal, *u = scanner->modules[1].u;
    static const struct {
        double before_mm, beside_mm;
        bool is_near;
    } cases[] = {{1e-6, 0, true}, {-1e-3, 4, true}, {0.2, 0, true}, {0.5, 0, false}, {0, 40, false}};
    for (int k = 0; k < length_of(cases); k++) {
        double point[1][3];
        for (int axis = 0; axis < 3; axis++)
            point[0][axis] = plane[axis] + cases[k].before_mm * normal[axis] + cases[k].beside_mm * u[axis];
        test_log_init(&log);
        lr_coverage_warn_near_points((const double(*)[3])point, 1, scanner, &log.log);
        assert_int_equal(log.num_warnings, cases[k].is_near);
        assert_true(!cases[k].is_near || strstr(log.warning, "of module 1:") != NULL);
        /* The second of two points in a voxel of 2 mm. */
        lr_grid grid = lr_grid_centred((const int[3]){1, 1, 1}, (const double[3]){2, 2, 2});
        for (int axis = 0; axis < 3; axis++) grid.origin_mm[axis] = point[0][axis] - 0.5 * (axis == 0);
        test_log_init(&log);
        lr_coverage_warn_near(&grid, (const int[3]){2, 1, 1}, scanner, &log.log);
        assert_int_equal(log.num_warnings, cases[k].is_near);
    }
}

/* Slips of a person who gives a grid for a scanner whose detectors span 656 x 656 x 256 mm, and sensible grids. */
static void test_odd_fields_are_explained(void **state)
{
    static const struct {
        int size[3];
        double voxel_mm[3];
        const char *words; /* NULL = no warning */
    } cases[] = {{{140, 140, 64}, {4, 4, 4}, "beyond the detectors"},
                 {{110, 110, 64}, {4, 4, 4}, NULL},
                 {{140, 140, 64}, {0.4, 0.4, 0.4}, "given in cm"},
                 {{140, 140, 64}, {0.004, 0.004, 0.004}, "given in cm or m"},
                 {{60, 60, 20}, {40, 40, 40}, "10 times too large"},
                 {{140, 140, 64}, {4, 4, 40}, "10 times too large"},
                 {{64, 140, 140}, {4, 4, 4}, "axes swapped"},
                 {{140, 64, 140}, {4, 4, 4}, "axes swapped"},
                 {{64, 64, 140}, {4, 4, 4}, "axes swapped"},
                 {{40, 80, 80}, {4, 4, 4}, "axes swapped"},
                 {{1, 1, 1}, {0.1, 0.1, 0.1}, NULL},   /* a point */
                 {{16, 16, 16}, {2, 2, 2}, NULL},      /* regions of interest */
                 {{200, 200, 1}, {0.5, 0.5, 4}, NULL}, /* a slice */
                 {{110, 110, 1}, {4, 4, 0.1}, NULL},   /* a thin one */
                 {{30, 30, 64}, {4, 4, 4}, NULL},      /* a mouse */
                 {{60, 140, 80}, {4, 4, 4}, "beyond the detectors"}};
    lr_scanner *scanner =
        keep(scanner_from("ring: {radius_mm: %d, modules: 56}\nmodule: {crystals: [8, 64], pitch_mm: [4, 4], face_mm: "
                          "[4, 4], depth_mm: 20}",
                          328));
    for (int k = 0; k < length_of(cases); k++) {
        struct test_log log = TEST_LOG(log);
        const lr_grid grid = lr_grid_centred(cases[k].size, cases[k].voxel_mm);
        assert_ok(lr_coverage_check(&grid, one_sample, scanner, NULL, &log.log));
        assert_int_equal(log.num_warnings, cases[k].words != NULL);
        if (cases[k].words != NULL) assert_says(log.warning, cases[k].words);
    }
}

test_main("operator_test_coverage",
          CASES(test_inside_is_silent, test_odd_fields_are_explained, test_rings_count_voxels_outside_their_polygon,
                test_sample_points_decide, test_miss_on_every_side_is_an_error, test_points_on_planes_are_named,
                test_beside_the_modules_is_an_error))
