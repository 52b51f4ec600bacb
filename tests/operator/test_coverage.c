/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Grids inside, across and beyond the detectors. */
#include "fixtures.h"

#include "operator/coverage.h"

static const int one_sample[3] = {1, 1, 1};

static lr_status check(const struct fixture *fixture, const lr_grid *grid, struct test_log *log)
{
    test_log_init(log);
    return lr_coverage_check(grid, one_sample, fixture->scanner, &log->log);
}

static void test_inside_is_silent(void **state)
{
    (void)state;
    for (int kind = 0; kind < FIXTURE_COUNT; kind++) {
        struct fixture fixture;
        struct test_log log;
        fixture_init(&fixture, kind);
        lr_grid grid = lr_grid_centred((const int[3]){3, 3, 3}, (const double[3]){1, 1, 1});
        if (kind == FIXTURE_OBLIQUE) {
            grid = fixture.grid; /* the axis is not between these two */
        }
        assert_int_equal(check(&fixture, &grid, &log), LR_OK);
        assert_int_equal(log.num_warnings, 0);
        fixture_finish(&fixture);
    }
}

/* Beyond the octagon of eight panels at 32 mm, or beyond their length of 17.2 mm. */
static bool is_outside_octagon(const double p[3])
{
    for (int k = 0; k < 8; k++) {
        const double angle = k * 3.14159265358979323846 / 4.0;
        if (p[0] * cos(angle) + p[1] * sin(angle) > 32.0) {
            return true;
        }
    }
    return fabs(p[2]) > 8.6;
}

static void test_ring_counts_voxels_outside_its_octagon(void **state)
{
    (void)state;
    struct fixture fixture;
    struct test_log log;
    fixture_init(&fixture, FIXTURE_RING);
    const lr_grid grid =
        lr_grid_centred((const int[3]){40, 38, 9}, (const double[3]){2.03, 2.11, 3.07});
    int64_t outside = 0;
    for (int64_t row = 0; row < lr_grid_num_voxels(&grid); row++) {
        double centre[3];
        lr_grid_voxel_centre(&grid, row, centre);
        outside += is_outside_octagon(centre);
    }
    assert_int_equal(check(&fixture, &grid, &log), LR_OK);
    assert_int_equal(log.num_warnings, 1);
    char number[32];
    snprintf(number, sizeof(number), "%lld of", (long long)outside);
    assert_true(strncmp(log.warning, number, strlen(number)) == 0);
    fixture_finish(&fixture);
}

/* A voxel counts as beyond only when all its sample points are. */
static void test_sample_points_decide(void **state)
{
    (void)state;
    struct fixture fixture;
    struct test_log log;
    fixture_init(&fixture, FIXTURE_OPPOSED); /* between z = -8.6 and 8.6 */
    lr_grid grid = lr_grid_centred((const int[3]){1, 1, 2}, (const double[3]){2, 2, 20});
    assert_int_equal(check(&fixture, &grid, &log), LR_BAD_INPUT); /* centres at +-10 */
    const int samples[3] = {1, 1, 2};                             /* points at +-5 and +-15 */
    test_log_init(&log);
    assert_int_equal(lr_coverage_check(&grid, samples, fixture.scanner, &log.log), LR_OK);
    assert_int_equal(log.num_warnings, 0);
    fixture_finish(&fixture);
}

static void test_miss_on_every_side_is_an_error(void **state)
{
    (void)state;
    for (int kind = 0; kind < FIXTURE_COUNT; kind++) {
        struct fixture fixture;
        fixture_init(&fixture, kind);
        for (int side = 0; side < 6; side++) {
            struct test_log log;
            lr_grid grid = fixture.grid;
            grid.origin_mm[side / 2] += side % 2 ? 200.0 : -200.0;
            assert_int_equal(check(&fixture, &grid, &log), LR_BAD_INPUT);
            assert_int_equal(log.status, LR_BAD_INPUT);
            assert_non_null(strstr(log.error, "misses the scanner"));
        }
        fixture_finish(&fixture);
    }
}

/* In front of both planes, but beside the modules: no line between them comes here. */
static void test_beside_the_modules_is_an_error(void **state)
{
    (void)state;
    struct fixture fixture;
    struct test_log log;
    fixture_init(&fixture, FIXTURE_OPPOSED);
    lr_grid grid = lr_grid_centred((const int[3]){2, 2, 2}, (const double[3]){1, 1, 1});
    grid.origin_mm[0] = 10.76; /* the modules end at 10.75 */
    assert_int_equal(check(&fixture, &grid, &log), LR_BAD_INPUT);
    grid.origin_mm[0] = 10.74;
    assert_int_equal(check(&fixture, &grid, &log), LR_OK);
    assert_int_equal(log.num_warnings, 1);
    fixture_finish(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inside_is_silent),
        cmocka_unit_test(test_ring_counts_voxels_outside_its_octagon),
        cmocka_unit_test(test_sample_points_decide),
        cmocka_unit_test(test_miss_on_every_side_is_an_error),
        cmocka_unit_test(test_beside_the_modules_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
