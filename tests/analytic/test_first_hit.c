/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A line counts for the module it meets first: a module planted before another takes, or stops,
 * what it covers. And modules of any tilt and size: exact against sampled. */
#include "analytic.h"

static double corner_term(double x, double y, double z)
{
    return atan(x * y / (z * sqrt(x * x + y * y + z * z)));
}

/* Solid angle of [x0, x1] x [z0, z1] in the plane at distance d, eye at the origin. */
static double rectangle(double x0, double x1, double z0, double z1, double d)
{
    if (x0 >= x1 || z0 >= z1) {
        return 0;
    }
    return corner_term(x1, z1, d) - corner_term(x0, z1, d) - corner_term(x1, z0, d) +
           corner_term(x0, z0, d);
}

static lr_module level_module(double x, double y, double z, const int crystals[2], double pitch,
                              double face)
{
    return make_module((double[3]){x, y, z}, (double[3]){1, 0, 0}, (double[3]){0, 0, 1}, crystals,
                       pitch, face);
}

static double pair_sum(const struct setup *setup, const double *row, int i, int j)
{
    const int pair = setup->lors->pair_of[i * setup->scanner->num_modules + j];
    assert_true(pair >= 0);
    double sum = 0;
    for (int64_t lor = setup->lors->offsets[pair]; lor < setup->lors->offsets[pair + 1]; lor++) {
        sum += row[lor];
    }
    return sum;
}

/* Seen from the origin: module 0 is the primary at y = 100; module 1 at y = -60 fills its view;
 * module 2 at y = -40 stands before module 1 where its own image lies,
 * x in -(8 +- 10) * 100 / 40, z in -(-4 +- 10) * 100 / 40. */
enum { PRIMARY, COVERED, BLOCKER, NUM_MODULES };

static lr_scanner *planted(double blocker_face)
{
    const lr_module modules[NUM_MODULES] = {
        level_module(0, 100, 0, (int[2]){20, 20}, 5, 5),
        level_module(0, -60, 0, (int[2]){8, 8}, 10, 10),
        level_module(8, -40, -4, (int[2]){4, 4}, 5, blocker_face),
    };
    return scanner_of(modules, NUM_MODULES);
}

static void test_planted_module(void **state)
{
    (void)state;
    const double origin[1][3] = {{0, 0, 0}};
    const double whole = rectangle(-50, 50, -50, 50, 100);
    const double hidden = rectangle(-45, 5, -15, 35, 100);
    for (int k = 0; k < 2; k++) {
        struct setup setup;
        setup_init(&setup, planted(k == 0 ? 5 : 3), &(struct setup_options){.mode = LR_MODE_EXACT});
        double *row = point_matrix(&setup, origin, 1);
        const double covered = 2 * TEST_PI * pair_sum(&setup, row, PRIMARY, COVERED);
        const double blocker = 2 * TEST_PI * pair_sum(&setup, row, PRIMARY, BLOCKER);
        /* The gaps of the blocker stop lines as its faces do. */
        assert_close(covered, whole - hidden, 1e-11);
        assert_true(k == 0 ? fabs(blocker / hidden - 1) < 1e-11 : blocker < 0.5 * hidden);
        free(row);
        setup_finish(&setup);
    }
}

/* Crystals of the covered module whose image lies within the blocker's have no element. */
static void test_blocked_crystals_vanish(void **state)
{
    (void)state;
    const double origin[1][3] = {{0, 0, 0}};
    for (int mode = 0; mode < 2; mode++) {
        struct setup setup;
        setup_init(&setup, planted(3), &(struct setup_options){.mode = (lr_mode)mode});
        double *row = point_matrix(&setup, origin, 1);
        int num_blocked = 0, num_seen = 0;
        for (int s = 0; s < 8; s++) {
            for (int r = 0; r < 8; r++) {
                /* On the blocker's plane, 40 / 60 as large. */
                const double x0 = (10 * r - 40) * 2 / 3.0, z0 = (10 * s - 40) * 2 / 3.0;
                const bool inside =
                    x0 >= -2 && x0 + 20 / 3.0 <= 18 && z0 >= -14 && z0 + 20 / 3.0 <= 6;
                double sum = 0;
                for (int a = 0; a < 400; a++) {
                    sum += row[lr_lors_number(setup.lors, a, 400 + s * 8 + r)];
                }
                assert_true(inside ? sum == 0 : sum >= 0);
                num_blocked += inside;
                num_seen += sum > 0;
            }
        }
        /* 6 x 6 crystals lie in the primary's view. */
        assert_int_equal(num_blocked, 4);
        assert_int_equal(num_seen, 36 - 4);
        free(row);
        setup_finish(&setup);
    }
}

/* Relative L2 distance between sampled and exact rows of the same scanner. */
static double distance(lr_scanner *(*make)(uint64_t *seed), uint64_t seed,
                       const double (*points)[3], int num_points, int rays)
{
    double *matrices[2];
    int64_t count = 0;
    for (int mode = 0; mode < 2; mode++) {
        uint64_t same = seed;
        struct setup setup;
        setup_init(&setup, make(&same),
                   &(struct setup_options){.mode = (lr_mode)mode, .rays = rays});
        matrices[mode] = point_matrix(&setup, points, num_points);
        count = setup.lors->count * num_points;
        setup_finish(&setup);
    }
    double difference2 = 0, exact2 = 0;
    for (int64_t k = 0; k < count; k++) {
        const double d = matrices[0][k] - matrices[1][k];
        difference2 += d * d;
        exact2 += matrices[1][k] * matrices[1][k];
    }
    free(matrices[0]);
    free(matrices[1]);
    return exact2 > 0 ? sqrt(difference2 / exact2) : 0;
}

/* Three modules before one another, one of them tilted, with gaps. */
static lr_scanner *crowded(uint64_t *seed)
{
    (void)seed;
    const lr_module modules[] = {
        level_module(0, 100, 0, (int[2]){6, 6}, 15, 14),
        level_module(0, -80, 0, (int[2]){5, 5}, 16, 15),
        make_module((double[3]){10, -50, 5}, (double[3]){1, 0.4, 0}, (double[3]){0, 0, 1},
                    (int[2]){3, 4}, 6, 5),
        make_module((double[3]){-5, -30, -3}, (double[3]){1, 0, 0.3}, (double[3]){-0.3, 0.2, 1},
                    (int[2]){2, 2}, 7, 6.5),
    };
    return scanner_of(modules, 4);
}

static void test_crowded(void **state)
{
    (void)state;
    static const double points[5][3] = {{0, 0, 0}, {3, 10, -4}, {-8, -12, 6}, {1, 40, 1},
                                        {-20, 5, 14}};
    for (int rays = 16; rays <= 64; rays *= 2) {
        const double error = distance(crowded, 0, points, 5, rays);
        print_message("R = %d: %.5f\n", rays, error);
        assert_true(error > 0 && error <= 0.8 / rays);
    }
}

/* Seven modules around the origin, each of its own size, tilted by up to some 50 degrees. */
static lr_scanner *tilted(uint64_t *seed)
{
    lr_module modules[7];
    for (int m = 0; m < 7; m++) {
        const double angle = (m + 0.3 * test_random(seed)) * 2 * TEST_PI / 7;
        const double radius = 60 + 30 * test_random(seed), z = 30 * (test_random(seed) - 0.5);
        const double lean = 2.4 * (test_random(seed) - 0.5);
        const double nod = 2.4 * (test_random(seed) - 0.5);
        const double out[3] = {cos(angle), sin(angle), 0}, side[3] = {-sin(angle), cos(angle), 0};
        double u[3], v[3];
        for (int k = 0; k < 3; k++) {
            u[k] = side[k] + lean * out[k];
        }
        /* v = a side + b out + z, orthogonal to u. */
        for (int k = 0; k < 3; k++) {
            v[k] = nod * (out[k] - lean * side[k]) + (k == 2);
        }
        const int size[2] = {2 + (int)(4 * test_random(seed)), 2 + (int)(4 * test_random(seed))};
        const double pitch = 5 + 4 * test_random(seed);
        modules[m] = make_module((double[3]){radius * out[0], radius * out[1], z}, u, v, size,
                                 pitch, pitch * (0.8 + 0.2 * test_random(seed)));
        modules[m].pitch_mm[1] *= 1.3;
    }
    return scanner_of(modules, 7);
}

/* Points anywhere between the modules, so that many planes cut through what the eye sees. */
static void test_tilted(void **state)
{
    (void)state;
    enum { NUM_POINTS = 30, RAYS = 32 };
    uint64_t seed = test_seed();
    for (int trial = 0; trial < 6; trial++) {
        double points[NUM_POINTS][3];
        for (int n = 0; n < NUM_POINTS; n++) {
            for (int k = 0; k < 3; k++) {
                points[n][k] = (k == 2 ? 60 : 100) * (test_random(&seed) - 0.5);
            }
        }
        const double error =
            distance(tilted, seed, (const double(*)[3])points, NUM_POINTS, RAYS);
        print_message("scanner %d: %.5f\n", trial, error);
        assert_true(error > 0 && error <= 0.8 / RAYS);
        seed += 1000003;
    }
}

/* Of two modules equally far, to 1e-9 of the squared distance, the one with the lower index is the
 * primary. Lines are drawn through the primary only. */
static void test_tie(void **state)
{
    (void)state;
    static const struct {
        double y;
        int num_lines;
    } places[] = {{0, 4}, {1e-8, 4}, {0.1, 0}, {-0.1, 4}};
    const lr_module modules[2] = {level_module(0, 50, 0, (int[2]){2, 2}, 2, 1),
                                  level_module(0, -50, 0, (int[2]){1, 1}, 4, 4)};
    struct setup setup;
    setup_init(&setup, scanner_of(modules, 2), &(struct setup_options){.rays = 1});
    for (size_t n = 0; n < sizeof(places) / sizeof(places[0]); n++) {
        const double point[3] = {0, places[n].y, 0};
        lr_pixel pixels[4];
        assert_int_equal(setup.backend.fns->picture(setup.backend.self, point, 0, pixels), LR_OK);
        int num_lines = 0;
        for (int k = 0; k < 4; k++) {
            num_lines += pixels[k].module == 1;
        }
        assert_int_equal(num_lines, places[n].num_lines);
    }
    setup_finish(&setup);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_planted_module),
        cmocka_unit_test(test_blocked_crystals_vanish),
        cmocka_unit_test(test_crowded),
        cmocka_unit_test(test_tilted),
        cmocka_unit_test(test_tie),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
