/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A line counts for the module that it meets first: a module in front of another takes, or stops, the lines that it
 * covers. Modules of any tilt and size, and a module seen along its own plane, compared with a closed form. */
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
    for (int n = 0; n < length_of(places); n++) {
        const double point[3] = {0, places[n].y, 0};
        lr_pixel pixels[4];
        assert_ok(setup.backend.fns->picture(setup.backend.self, point, 0, pixels));
        int num_lines = 0;
        for (int k = 0; k < 4; k++) num_lines += pixels[k].module == 1;
        assert_int_equal(num_lines, places[n].num_lines);
    }
}

/* --- tilted modules: exact elements compared with sampled ones, and both compared with counted lines --- */

enum { NUM_TILTED = 8 };

/* Eight modules around the origin, each with its own size, tilted by up to some 50 degrees. */
static lr_scanner *tilted(uint64_t *seed)
{
    lr_module modules[NUM_TILTED];
    for (int m = 0; m < NUM_TILTED; m++) {
        const double angle = (m + 0.15 * test_random(seed)) * 2 * TEST_PI / NUM_TILTED;
        const double radius = 85 + 25 * test_random(seed), z = 30 * (test_random(seed) - 0.5);
        const double lean = 2.4 * (test_random(seed) - 0.5), nod = 2.4 * (test_random(seed) - 0.5);
        const double out[3] = {cos(angle), sin(angle), 0}, side[3] = {-sin(angle), cos(angle), 0};
        double u[3], v[3];
        for (int k = 0; k < 3; k++) u[k] = side[k] + lean * out[k];
        /* v = a side + b out + z, orthogonal to u. */
        for (int k = 0; k < 3; k++) v[k] = nod * (out[k] - lean * side[k]) + (k == 2);
        const int size[2] = {3 + (int)(3 * test_random(seed)), 3 + (int)(3 * test_random(seed))};
        const double pitch = 7 + 2 * test_random(seed);
        modules[m] = make_module((double[3]){radius * out[0], radius * out[1], z}, u, v, size, pitch,
                                 pitch * (0.8 + 0.2 * test_random(seed)));
        modules[m].pitch_mm[1] *= 1.3;
    }
    return scanner_of(modules, NUM_TILTED);
}

/* Points anywhere between the modules, so that planes of many modules cut the view. */
static void test_tilted(void **state)
{
    enum { NUM_POINTS = 30, RAYS = 32 };
    uint64_t seed = test_seed();
    for (int trial = 0; trial < 6; trial++) {
        double points[NUM_POINTS][3];
        for (int n = 0; n < NUM_POINTS; n++)
            for (int k = 0; k < 3; k++) points[n][k] = (k == 2 ? 60 : 100) * (test_random(&seed) - 0.5);
        const double error = mode_distance(tilted, seed, (const double(*)[3])points, NUM_POINTS, RAYS);
        print_message("scanner %d: %.5f\n", trial, error);
        assert_true(error > 0 && error <= 0.8 / RAYS);
        seed += 1000003;
    }
}

static double distance2(const double a[3], const double b[3])
{
    return pow(a[0] - b[0], 2) + pow(a[1] - b[1], 2) + pow(a[2] - b[2], 2);
}

/* Adds the module pairs that detect a line with one photon along `way`: counts[primary][other]. */
static void count_line(const lr_scanner *scanner, const double point[3], const double way[3], const double back[3],
                       int counts[NUM_TILTED][NUM_TILTED])
{
    for (int i = 0; i < NUM_TILTED; i++) {
        bool here = false, there = false, first_there = false;
        if (meet_module(&scanner->modules[i], point, way, &here) == INFINITY || !here) continue;
        double nearest = INFINITY;
        int other = -1;
        for (int j = 0; j < NUM_TILTED; j++) {
            if (j == i ||
                distance2(scanner->modules[j].centre_mm, point) > distance2(scanner->modules[i].centre_mm, point))
                continue;
            const double t = meet_module(&scanner->modules[j], point, back, &there);
            if (t < nearest) {
                nearest = t;
                other = j;
                first_there = there;
            }
        }
        if (other >= 0 && first_there) counts[i][other]++;
    }
}

/* Tolerance: five standard deviations, and as much again if few lines are expected. */
static void test_counted_lines(void **state)
{
    enum { NUM_POINTS = 8, NUM_LINES = 30000 };
    uint64_t seed = test_seed();
    int total = 0;
    for (int trial = 0; trial < 4; trial++) {
        struct setup setup = setup_of(tilted(&seed), &(struct setup_options){.mode = LR_MODE_EXACT});
        int counts[NUM_TILTED][NUM_TILTED] = {{0}};
        double points[NUM_POINTS][3], expected[NUM_TILTED][NUM_TILTED] = {{0}};
        for (int n = 0; n < NUM_POINTS; n++) {
            for (int k = 0; k < 3; k++) points[n][k] = (k == 2 ? 30 : 60) * (test_random(&seed) - 0.5);
            for (int line = 0; line < NUM_LINES; line++) {
                double ways[2][3];
                random_ways(&seed, ways);
                count_line(setup.scanner, points[n], ways[0], ways[1], counts);
                count_line(setup.scanner, points[n], ways[1], ways[0], counts);
            }
        }
        double *rows = point_matrix(&setup, (const double(*)[3])points, NUM_POINTS);
        for (int i = 0; i < NUM_TILTED; i++) {
            for (int j = i + 1; j < NUM_TILTED; j++) {
                for (int n = 0; n < NUM_POINTS; n++)
                    expected[i][j] += NUM_LINES * pair_sum(&setup, rows + n * setup.lors->count, i, j);
                const int count = counts[i][j] + counts[j][i];
                total += count;
                if (fabs(count - expected[i][j]) > 5 * sqrt(expected[i][j] + 1))
                    fail_msg("modules %d and %d: %d lines counted, %.2f expected", i, j, count, expected[i][j]);
            }
        }
    }
    print_message("%d lines detected\n", total);
    assert_true(total > 1000);
}

/* The eye is 1 mm above the plane of the secondary, which extends over x = -5 ... -55, z = -10 ... 10 and covers a
 * wedge of the primary's view. The primary's faces extend behind that plane. The secondary's column from x =
 * -b to x = -a appears on the primary's plane x = 100 from y = 100 / b to 100 / a, and for y >= 2 over all of the
 * primary's z = -20 ... 20. */
static void test_along_the_plane(void **state)
{
    const double origin[1][3] = {{0, 0, 0}};
    for (int size = 1; size <= 3; size++) {
        const lr_module modules[2] = {make_module((double[3]){100, 0, 0}, (double[3]){0, 1, 0}, (double[3]){0, 0, 1},
                                                  (int[2]){size, size}, 40.0 / size, 40.0 / size),
                                      level_module(-30, -1, 0, (int[2]){10, 4}, 5, 5)};
        struct setup setup = exact_setup(modules, 2);
        double *row = point_matrix(&setup, origin, 1);
        for (int r = 1; r < 10; r++) { /* r counts from x = -55 */
            double sum = 0;
            for (int a = 0; a < size * size; a++)
                for (int s = 0; s < 4; s++) sum += row[lr_lors_number(setup.lors, a, size * size + 10 * s + r)];
            const double far = 55 - 5 * r, near = far - 5;
            const double omega = rectangle_angle(100 / far, fmin(20, 100 / near), -20, 20, 100);
            assert_close(2 * TEST_PI * sum, omega, 1e-11);
        }
    }
}

test_main("hits", CASES(test_planted_module, test_blocked_crystals_vanish, test_crowded, test_tie, test_tilted,
                        test_counted_lines, test_along_the_plane))
