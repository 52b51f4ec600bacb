/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cases.h"

#include "base/vec.h"

#include <lr/direct.h>

static void axes_are_a_right_handed_frame(void **state)
{
    uint64_t seed = test_seed();
    for (int n = 0; n < 200; n++) {
        const lr_view view = {720 * test_random(&seed) - 360, 170 * test_random(&seed) - 85};
        double axes[3][3], cross[3];
        lr_view_axes(&view, axes);
        vec_cross(axes[0], axes[1], cross);
        for (int k = 0; k < 3; k++) {
            assert_close(vec_length(axes[k]), 1.0, 1e-14);
            assert_true(fabs(cross[k] - axes[2][k]) < 1e-14);
        }
        assert_true(axes[2][2] > 0 && axes[1][2] == 0);
        assert_true(fabs(atan2(axes[0][1], axes[0][0]) -
                         remainder(view.azimuth_deg, 360) * 3.14159265358979323846 / 180) < 1e-12 ||
                    fabs(fabs(remainder(view.azimuth_deg, 360)) - 180) < 1e-9);
    }
}

static void right_angles_are_exact(void **state)
{
    for (int quarter = -9; quarter <= 9; quarter++) {
        double axes[3][3];
        lr_view_axes(&(lr_view){90.0 * quarter, 0}, axes);
        for (int k = 0; k < 9; k++) {
            const double value = axes[k / 3][k % 3];
            assert_true(value == 0 || value == 1 || value == -1);
        }
    }
}

static void defaults_are_those_of_the_paper(void **state)
{
    lr_view_set set;
    assert_ok(lr_view_set_complete(&(lr_view_set){0}, &set, NULL));
    assert_int_equal(lr_view_set_count(&set), 120);
    const lr_view first = lr_view_set_at(&set, 0), second = lr_view_set_at(&set, 41);
    assert_true(first.azimuth_deg == 0);
    assert_close(first.tilt_deg, -20.0 / 3, 1e-14);
    assert_close(second.azimuth_deg, 4.5, 1e-14);
    assert_true(fabs(second.tilt_deg) < 1e-14);
}

/* The middle of each interval, and random points inside it, belong to the interval, in both directions of the line. */
static void directions_find_their_view(void **state)
{
    uint64_t seed = test_seed();
    lr_view_set set;
    lr_view_set_complete(&(lr_view_set){.azimuths = 7, .tilts = 4, .acceptance_deg = 12}, &set, NULL);
    for (int n = 0; n < 4000; n++) {
        const int index = n % lr_view_set_count(&set);
        lr_view view = lr_view_set_at(&set, index);
        view.azimuth_deg += 180.0 / 7 * 0.999 * (test_random(&seed) - 0.5);
        view.tilt_deg += 6 * 0.999 * (test_random(&seed) - 0.5);
        double axes[3][3];
        lr_view_axes(&view, axes);
        const double length = 0.1 + 100 * test_random(&seed);
        double direction[3];
        for (int k = 0; k < 3; k++) direction[k] = (n / 28 % 2 ? -length : length) * axes[0][k];
        assert_int_equal(lr_view_set_find(&set, direction), index);
    }
    assert_int_equal(lr_view_set_find(&set, (const double[3]){1, 0, 0.22}), -1);
    assert_int_equal(lr_view_set_find(&set, (const double[3]){0, 0, -1}), -1);
}

/* A line on a border belongs to the interval above the border, for both directions of the line and however its angle is
 * rounded. Crystals in a ring have many such lines. */
static void lines_on_a_border_belong_above(void **state)
{
    const double degree = 3.14159265358979323846 / 180;
    lr_view_set set;
    lr_view_set_complete(&(lr_view_set){.azimuths = 40, .tilts = 3, .acceptance_deg = 9}, &set, NULL);
    for (int n = 0; n < 2 * 40 * 3; n++) {
        const int azimuth = n % 40, tilt = n / 40 % 3;
        const double across = (azimuth - (n < 120 ? 0.5 : 0)) * 4.5 * degree;
        const double up = (-9 + 6 * (tilt + (n < 120 ? 0.5 : 0))) * degree;
        const double to[3] = {cos(up) * cos(across), cos(up) * sin(across), sin(up)};
        const double from[3] = {-to[0], -to[1], -to[2]};
        assert_int_equal(lr_view_set_find(&set, to), tilt * 40 + azimuth);
        assert_int_equal(lr_view_set_find(&set, from), tilt * 40 + azimuth);
    }
}

/* The order contains each view once; neighbours in the order are at least a sixth of half a turn apart. */
static void order_is_a_far_reaching_permutation(void **state)
{
    lr_view_set set;
    int order[120];
    bool seen[120] = {false};
    lr_view_set_complete(&(lr_view_set){0}, &set, NULL);
    lr_view_set_order(&set, order);
    for (int k = 0; k < 120; k++) {
        assert_in_range(order[k], 0, 119);
        assert_false(seen[order[k]]);
        seen[order[k]] = true;
        if (k > 0) {
            const int apart = abs(order[k] % 40 - order[k - 1] % 40);
            assert_true(apart >= 6 && apart <= 34);
        }
    }
}

static void impossible_sets_are_refused(void **state)
{
    static const lr_view_set bad[] = {
        {.azimuths = -1}, {.tilts = -2}, {.acceptance_deg = 90}, {.acceptance_deg = -3}, {.azimuths = 70000}};
    for (int k = 0; k < length_of(bad); k++) {
        struct test_log log = TEST_LOG(log);
        lr_view_set set;
        assert_int_equal(lr_view_set_complete(&bad[k], &set, &log.log), LR_USAGE);
        assert_true(strlen(log.error) > 0);
    }
}

test_main("direct: views", CASES(axes_are_a_right_handed_frame, right_angles_are_exact, defaults_are_those_of_the_paper,
                                 directions_find_their_view, lines_on_a_border_belong_above,
                                 order_is_a_far_reaching_permutation, impossible_sets_are_refused))
