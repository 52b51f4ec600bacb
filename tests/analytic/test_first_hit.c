/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A line counts for the module that it meets first: a module in front of another takes, or stops, the lines that it
 * covers. */
#include "analytic.h"

/* Seen from the origin: module 0 is the primary at y = 100; module 1 at y = -60 fills the primary's view; module
 * 2 at y = -40 stands in front of module 1, and its own image covers x in -(8 +- 10) * 100 / 40, z in -(-4 +-
 * 10) * 100 / 40. */
enum { PRIMARY, COVERED, BLOCKER, NUM_MODULES };

static lr_scanner *planted(double blocker_face)
{
    const lr_module modules[NUM_MODULES] = {level_module(0, 100, 0, (int[2]){20, 20}, 5, 5),
                                            level_module(0, -60, 0, (int[2]){8, 8}, 10, 10),
                                            level_module(8, -40, -4, (int[2]){4, 4}, 5, blocker_face)};
    return scanner_of(modules, NUM_MODULES);
}

static void test_planted_module(void **state)
{
    const double origin[1][3] = {{0, 0, 0}}, whole = rectangle_angle(-50, 50, -50, 50, 100);
    const double hidden = rectangle_angle(-45, 5, -15, 35, 100);
    for (int k = 0; k < 2; k++) {
        struct setup setup = setup_of(planted(k == 0 ? 5 : 3), &(struct setup_options){.mode = LR_MODE_EXACT});
        double *row = point_matrix(&setup, origin, 1);
        const double covered = 2 * TEST_PI * pair_sum(&setup, row, PRIMARY, COVERED);
        const double blocker = 2 * TEST_PI * pair_sum(&setup, row, PRIMARY, BLOCKER);
        /* The gaps of the blocker stop lines, as its faces do. */
        assert_close(covered, whole - hidden, 1e-11);
        assert_true(k == 0 ? fabs(blocker / hidden - 1) < 1e-11 : blocker < 0.5 * hidden);
    }
}

/* Crystals of the covered module whose image lies inside the blocker's image have no element. */
static void test_blocked_crystals_vanish(void **state)
{
    const double origin[1][3] = {{0, 0, 0}};
    for (int mode = LR_MODE_SAMPLED; mode <= LR_MODE_EXACT; mode++) {
        struct setup setup = setup_of(planted(3), &(struct setup_options){.mode = (lr_mode)mode});
        double *row = point_matrix(&setup, origin, 1);
        int num_blocked = 0, num_seen = 0;
        for (int s = 0; s < 8; s++) {
            for (int r = 0; r < 8; r++) {
                /* on the blocker's plane, 40 / 60 as large */
                const double x0 = (10 * r - 40) * 2 / 3.0, z0 = (10 * s - 40) * 2 / 3.0;
                const bool inside = x0 >= -2 && x0 + 20 / 3.0 <= 18 && z0 >= -14 && z0 + 20 / 3.0 <= 6;
                double sum = 0;
                for (int a = 0; a < 400; a++) sum += row[lr_lors_number(setup.lors, a, 400 + s * 8 + r)];
                assert_true(inside ? sum == 0 : sum >= 0);
                num_blocked += inside;
                num_seen += sum > 0;
            }
        }
        /* 6 x 6 crystals lie in the primary's view. */
        assert_ints(num_blocked, 4, num_seen, 36 - 4);
    }
}

/* Three modules one behind the other, one of them tilted, with gaps. */
static lr_scanner *crowded(uint64_t *seed)
{
    const lr_module modules[] = {
        level_module(0, 100, 0, (int[2]){6, 6}, 15, 14), level_module(0, -80, 0, (int[2]){5, 5}, 16, 15),
        make_module((double[3]){10, -50, 5}, (double[3]){1, 0.4, 0}, (double[3]){0, 0, 1}, (int[2]){3, 4}, 6, 5),
        make_module((double[3]){-5, -30, -3}, (double[3]){1, 0, 0.3}, (double[3]){-0.3, 0.2, 1}, (int[2]){2, 2}, 7,
                    6.5)};
    return scanner_of(modules, 4);
}

static void test_crowded(void **state)
{
    static const double points[5][3] = {{0, 0, 0}, {3, 10, -4}, {-8, -12, 6}, {1, 40, 1}, {-20, 5, 14}};
    for (int rays = 16; rays <= 64; rays *= 2) {
        const double error = mode_distance(crowded, 0, points, 5, rays);
        print_message("R = %d: %.5f\n", rays, error);
        assert_true(error > 0 && error <= 0.8 / rays);
    }
}

/* Two modules are equally far to 1e-9 of the squared distance: the one with the lower index is the primary. Lines
 * are drawn through the primary only. */
static void test_tie(void **state)
{
    static const struct {
        double y;
        int num_lines;
    } places[] = {{0, 4}, {1e-8, 4}, {0.1, 0}, {-0.1, 4}};
    const lr_module modules[2] = {level_module(0, 50, 0, (int[2]){2, 2}, 2, 1),
                                  level_module(0, -50, 0, (int[2]){1, 1}, 4, 4)};
    struct setup setup = setup_of(scanner_of(modules, 2), &(struct setup_options){.rays = 1});
    for (size_t n = 0; n < sizeof(places) / sizeof(places[0]); n++) {
        const double point[3] = {0, places[n].y, 0};
        lr_pixel pixels[4];
        assert_ok(setup.backend.fns->picture(setup.backend.self, point, 0, pixels));
        int num_lines = 0;
        for (int k = 0; k < 4; k++) num_lines += pixels[k].module == 1;
        assert_int_equal(num_lines, places[n].num_lines);
    }
}

test_main("first hit", EACH(CASE, test_planted_module, test_blocked_crystals_vanish, test_crowded, test_tie))
