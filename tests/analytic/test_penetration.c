/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Crystal penetration: limits, closed forms of single lines, sum rules, symmetry, adjointness. Comparison with photons:
 * test_penetration_photons.c. */
#include "backend_arrays.h"
#include "crystals.h"

/* A row consists of one line, whose elements have closed forms, for one ray and a primary of one crystal seen from a
 * point in front of its face. The primary is 1 mm wide, at (0, 100, 0). */
static lr_module single_primary(void)
{
    return deep(level_module(0, 100, 0, (int[2]){1, 1}, 1, 1), 20);
}

#define SINGLE_WEIGHT(mu) ((1 - exp(-20 * (mu))) / (100.0 * 100.0) / (2 * TEST_PI))

static const double origin[1][3] = {{0, 0, 0}};

/* The row sum is the solid angle on the detection plane if crystals stop everything at their surface and faces fill the
 * pitch. Lines cover it to about 0.5 / R; no line is lost. */
static void check_opaque(lr_scanner *opaque, const double (*points)[3], int num_points)
{
    struct setup setup = setup_of(opaque, &(struct setup_options){.rays = 12, .penetration = true});
    double *rows = point_matrix(&setup, points, num_points);
    const lr_scanner_params copy = {
        .modules = opaque->modules, .num_modules = opaque->num_modules, .num_positions = opaque->num_positions};
    struct setup plane = setup_of(lr_scanner_create(&copy), &(struct setup_options){.mode = LR_MODE_EXACT});
    double *expected = point_matrix(&plane, points, num_points), totals[2] = {0, 0};
    const int64_t count = num_points * setup.lors->count;
    const double l2 = l2_apart(rows, expected, count);
    for (int64_t k = 0; k < count; k++) {
        totals[0] += rows[k];
        totals[1] += expected[k];
    }
    print_message("relative L2 %.4f, sum %.5f\n", l2, totals[0] / totals[1]);
    assert_true(l2 < 0.5 / 12);
    assert_close(totals[0], totals[1], 3e-3);
}

static void test_opaque_crystals(void **state)
{
    static const double points[3][3] = {{0.1, 0.2, -0.3}, {1.7, -2.1, 0.9}, {-2.6, 1.3, 2.2}};
    const lr_module modules[2] = {deep(level_module(0, 20, 0, (int[2]){4, 4}, 2, 2), 10),
                                  deep(level_module(0.5, -24, 0, (int[2]){5, 5}, 1.7, 1.7), 10)};
    check_opaque(stopping_scanner(modules, 2, 1e7), points, 3);
    /* Modules that touch at their front edges: in any direction a line meets a front first. */
    const int crystals[2] = {4, 3};
    const double pitch = 2 * 15 * tan(TEST_PI / 6) / 4 - 1e-9;
    const lr_ring ring = plain_ring(15, 6, crystals, pitch, pitch, 10);
    check_opaque(stopping_ring(&ring, 1e7, 0), points, 3);
}

/* A line across a module with gaps, at 45 degrees: each crystal in turn takes 1 - exp(-mu L) of the remaining photons,
 * and all together 1 - exp(-mu * sum of L). */
static void check_line(lr_scanner *scanner)
{
    const double mu = scanner->crystal_mu_per_mm, down[3] = {0, -1, 0};
    struct setup setup = setup_of(scanner, &(struct setup_options){.rays = 1, .penetration = true});
    double *row = point_matrix(&setup, origin, 1), left = 1, length = 0, found = 0, listed = 0;
    struct crystal_box *boxes = crystal_boxes(scanner);
    struct chord *chords = kept(scanner->num_crystals, sizeof(*chords));
    const int count = find_chords(scanner, boxes, origin[0], down, chords);
    for (int k = 0; k < count; k++) {
        const double chord = chords[k].end - chords[k].begin;
        const double expected = SINGLE_WEIGHT(mu) * left * (1 - exp(-mu * chord));
        const int64_t lor = lr_lors_number(setup.lors, 0, chords[k].crystal);
        assert_close(row[lor], expected, 1e-11);
        listed += row[lor];
        left *= exp(-mu * chord);
        length += chord;
    }
    for (int64_t lor = 0; lor < setup.lors->count; lor++) found += row[lor];
    assert_true(count >= 3);
    assert_close(found, listed, 1e-12);
    assert_close(found, SINGLE_WEIGHT(mu) * (1 - exp(-mu * length)), 1e-11);
}

static void test_one_line(void **state)
{
    const lr_module modules[2] = {single_primary(), deep(make_module((double[3]){0.3, -40, 0.2}, (double[3]){1, 1, 0},
                                                                     (double[3]){0, 0, 1}, (int[2]){9, 9}, 2, 1.7),
                                                         10)};
    check_line(stopping_scanner(modules, 2, 0.08));
    const lr_module layers[4] = {single_primary(), deep(level_module(0, -51, 0, (int[2]){3, 3}, 2, 2), 12),
                                 deep(level_module(0.4, -40, 0, (int[2]){2, 2}, 3, 2.5), 5),
                                 deep(make_module((double[3]){0, -80, 0}, (double[3]){1, 0.6, 0.2},
                                                  (double[3]){-0.2, 0, 1}, (int[2]){7, 7}, 2, 1.9),
                                      9)};
    check_line(stopping_scanner(layers, 4, 0.05));
}

/* A module in front of the primary takes its share: the line enters in the middle of its front at 45 degrees, and
 * leaves through its side, 3 mm away. */
static void test_module_before(void **state)
{
    const double mu = 0.09;
    const lr_module modules[3] = {
        single_primary(), deep(level_module(0, -55, 0, (int[2]){1, 1}, 8, 8), 30),
        deep(make_module((double[3]){0, 60, 0}, (double[3]){1, 1, 0}, (double[3]){0, 0, 1}, (int[2]){1, 1}, 6, 6), 20)};
    struct setup setup = stopping_setup(modules, 3, mu, 1);
    double *row = point_matrix(&setup, origin, 1);
    assert_close(row[lr_lors_number(setup.lors, 0, 1)],
                 SINGLE_WEIGHT(mu) * exp(-mu * 3 * sqrt(2)) * (1 - exp(-mu * 30)), 1e-11);
    assert_true(row[lr_lors_number(setup.lors, 1, 2)] > 0);
    assert_int_equal(lr_lors_number(setup.lors, 0, 0), -1);
}

/* Oblique lines spread over the crystals on their way. Photons on a path of length W are stopped after 1 / mu - W
 * exp(-mu W) / (1 - exp(-mu W)) on average. In a module of many thin crystals without gaps, the mean position of the
 * crystals that stop them agrees with this to half a pitch. */
static void test_parallax(void **state)
{
    static const struct {
        double mu, depth, mean; /* at normal incidence */
    } known[] = {{0.083, 25, 8.46}, {0.083, 20, 7.35}, {0.047, 30, 11.6}};
    for (int n = 0; n < 3; n++) {
        const double mu = known[n].mu, depth = known[n].depth;
        assert_close(1 / mu - depth * exp(-mu * depth) / (1 - exp(-mu * depth)), known[n].mean, 5e-3);
        for (int slope = 0; slope <= 2; slope++) {
            const double tangent = 0.4 * slope, cosine = 1 / sqrt(1 + tangent * tangent);
            const double way = depth / cosine, pitch = 0.02;
            const lr_module modules[2] = {single_primary(),
                                          deep(make_module((double[3]){0, -50, 0}, (double[3]){1, tangent, 0},
                                                           (double[3]){0, 0, 1}, (int[2]){2501, 1}, pitch, pitch),
                                               depth)};
            struct setup setup = stopping_setup(modules, 2, mu, 1);
            double *row = point_matrix(&setup, origin, 1), sum = 0, moment = 0;
            for (int crystal = 0; crystal < 2501; crystal++) {
                const double value = row[lr_lors_number(setup.lors, 0, 1 + crystal)];
                sum += value;
                moment += value * abs(crystal - 1250) * pitch;
            }
            const double mean = 1 / mu - way * exp(-mu * way) / (1 - exp(-mu * way));
            /* along the line; the part across the module has a factor of the sine */
            assert_true(fabs(moment / sum - mean * cosine * tangent) <= 0.5 * pitch);
        }
    }
}

/* A row's sum, compared with that for opaque crystals. Upper bound, for lines that lie wholly in the modules: that sum
 * times the share that the longest chord stops, at both ends. Lower bound: 0.3 of the upper bound. */
static void test_sum_rule(void **state)
{
    const double mu = 0.05, depth = 20;
    static const double points[2][3] = {{0, 0, 0}, {2, 3, -1}};
    const lr_module modules[2] = {deep(level_module(0, 30, 0, (int[2]){4, 4}, 4, 4), depth),
                                  deep(level_module(0, -30, 0, (int[2]){40, 40}, 4, 4), depth)};
    double sums[2][2];
    for (int k = 0; k < 2; k++) {
        struct setup setup = stopping_setup(modules, 2, k == 0 ? mu : 1e7, 16);
        point_sums(&setup, points, 2, sums[k]);
    }
    for (int k = 0; k < 2; k++) {
        /* Lines through the small module's front: |tangent| <= 10 / 27 along each axis. */
        const double longest = depth * sqrt(1 + 2 * pow(10 / 27.0, 2)), most = 1 - exp(-mu * longest);
        assert_all(sums[0][k] > 0.3 * sums[1][k] * most * most, sums[0][k] < sums[1][k] * most * most);
    }
}

/* The row of a mirrored point and mirrored crystals is the mirrored row, up to the differences from sampling with lines
 * in other places. */
static void test_mirror(void **state)
{
    static const double points[2][3] = {{1.3, 0.7, -0.9}, {-1.3, 0.7, -0.9}};
    const lr_module modules[2] = {deep(level_module(0, 12, 0, (int[2]){5, 4}, 2, 1.8), 10),
                                  deep(level_module(0, -14, 0, (int[2]){4, 6}, 2, 1.8), 12)};
    struct setup setup = stopping_setup(modules, 2, 0.087, 16);
    double *rows = point_matrix(&setup, points, 2), off2 = 0, norm2 = 0;
    int num_elements = 0;
    for (int64_t lor = 0; lor < setup.lors->count; lor++) {
        const lr_lor at = lr_lors_describe(setup.lors, lor);
        const int64_t mirrored = lr_lors_number(setup.lors, at.q * 5 + 4 - at.p, 20 + at.s * 4 + 3 - at.r);
        off2 += pow(rows[lor] - rows[setup.lors->count + mirrored], 2);
        norm2 += pow(rows[lor], 2);
        num_elements += rows[lor] > 0;
    }
    print_message("%d elements, relative L2 %.4f\n", num_elements, sqrt(off2 / norm2));
    assert_all(num_elements > 50, off2 < pow(0.8 / 16, 2) * norm2);
}

/* A coincidence rule removes LORs and leaves the others unchanged: excluded crystals still stop photons. */
static void test_rules(void **state)
{
    static const double points[1][3] = {{5.2, -4.0, 0.4}};
    enum { NU = 3, NV = 2 };
    static const int crystals[2] = {NU, NV};
    const lr_ring ring = plain_ring(9, 6, crystals, 3, 2.8, 12);
    const struct setup_options options = {.rays = 3, .penetration = true};
    struct setup free_setup = setup_of(stopping_ring(&ring, 0.08, 0), &options);
    struct setup ruled = setup_of(stopping_ring(&ring, 0.08, 3), &options);
    double *all = point_matrix(&free_setup, points, 1), *some = point_matrix(&ruled, points, 1);
    int num_kept = 0, num_gone = 0;
    for (int64_t lor = 0; lor < free_setup.lors->count; lor++) {
        const lr_lor at = lr_lors_describe(free_setup.lors, lor);
        const int64_t same =
            lr_lors_number(ruled.lors, (at.module_i * NV + at.q) * NU + at.p, (at.module_j * NV + at.s) * NU + at.r);
        if (same >= 0) {
            assert_close(some[same], all[lor], 1e-12);
            num_kept += all[lor] > 0;
        } else {
            num_gone += all[lor] > 0;
        }
    }
    print_message("%d kept, %d gone\n", num_kept, num_gone);
    assert_true(num_kept > 10 && num_gone > 10);
}

/* More rays approximate the integral better. Path lengths vary steeply where a line almost runs along a crystal, so the
 * error falls only as about 1 / R. */
static void test_convergence(void **state)
{
    static const double points[4][3] = {{0.3, 0.2, -0.4}, {3.1, -1.2, 0.9}, {-5.2, 2.2, 1.7}, {1.9, 6.3, -2.8}};
    const lr_module modules[3] = {deep(upright_module(20, 10, 0, (int[2]){6, 5}, 2, 1.8), 10),
                                  deep(upright_module(24, 170, 1, (int[2]){6, 5}, 2, 1.8), 10),
                                  deep(upright_module(22, 250, -1, (int[2]){6, 5}, 2, 1.8), 10)};
    double *rows[6];
    int64_t count = 0;
    for (int k = 0; k < 6; k++) {
        struct setup setup = stopping_setup(modules, 3, 0.087, k < 5 ? 2 << k : 128);
        rows[k] = point_matrix(&setup, points, 4);
        count = 4 * setup.lors->count;
    }
    for (int k = 0; k < 5; k++) {
        const double error = l2_apart(rows[k], rows[5], count);
        print_message("R = %d: %.4f\n", 2 << k, error);
        assert_true(error <= 0.8 / (2 << k));
    }
}

/* Forward and back-projections are transposes of each other, except for rounding. */
static void test_adjoint(void **state)
{
    uint64_t seed = test_seed();
    const lr_grid grid = lr_grid_centred((int[3]){4, 3, 2}, (double[3]){2, 2, 2});
    const lr_module modules[2] = {deep(level_module(0, 12, 0, (int[2]){4, 4}, 2, 1.8), 10),
                                  deep(level_module(1, -14, 0, (int[2]){4, 4}, 2, 1.8), 12)};
    struct setup setup =
        setup_of(stopping_scanner(modules, 2, 0.087),
                 &(struct setup_options){.rays = 2, .grid = &grid, .samples = {2, 1, 1}, .penetration = true});
    const int64_t num_lors = setup.lors->count;
    double *y = kept_random_doubles(num_lors, 0, 1, &seed), *forward = kept_doubles(num_lors);
    double *x = kept_random_doubles(24, 0, 1, &seed), back[24];
    assert_ok(backend_forward(&setup.backend, lr_vector_of_doubles(x, 24), lr_vector_of_doubles(forward, num_lors)));
    assert_ok(backend_back(&setup.backend, lr_vector_of_doubles(y, num_lors), lr_vector_of_doubles(back, 24)));
    assert_true(dot_product(forward, y, num_lors) > 0);
    assert_close(dot_product(forward, y, num_lors), dot_product(x, back, 24), 1e-13);
}

/* The attenuation image counts between the first modules on either side. */
static void test_absorption(void **state)
{
    const lr_grid grid = lr_grid_centred((int[3]){3, 21, 3}, (double[3]){20, 1, 20});
    lr_image *mu = kept_image(&grid, 0.01f);
    const lr_module modules[2] = {single_primary(), deep(level_module(0, -60, 0, (int[2]){1, 1}, 8, 8), 30)};
    struct setup setup = setup_of(stopping_scanner(modules, 2, 0.09),
                                  &(struct setup_options){.rays = 1, .mu = mu, .mu_steps = 1600, .penetration = true});
    double *row = point_matrix(&setup, origin, 1);
    /* 21 voxels of 1 mm, and half a voxel at either end in which mu falls to zero. Midpoints of 0.1 mm integrate these
     * ramps exactly except at their ends, by at most 1e-3 / 21. */
    assert_close(row[0], SINGLE_WEIGHT(0.09) * (1 - exp(-0.09 * 30)) * exp(-0.01f * 21.0), 1e-4);
}

static void test_refusals(void **state)
{
    const lr_module modules[2] = {single_primary(), deep(level_module(0, -60, 0, (int[2]){1, 1}, 8, 8), 30)};
    struct setup setup = stopping_setup(modules, 2, 0.08, 1);
    const lr_grid grid = lr_grid_centred((int[3]){1, 1, 1}, (double[3]){1, 1, 1});
    struct lr_backend backend;
    lr_pixel pixel;
    assert_fails(lr_cpu_backend_create(&filled(struct lr_backend_params, .scanner = setup.scanner, .lors = setup.lors,
                                               .grid = &grid, .mode = LR_MODE_EXACT, .rays = 1, .samples = {1, 1, 1},
                                               .threads = 1, .penetration = true, .log = &setup.log->log),
                                       &backend),
                 LR_USAGE, setup.log, "no exact mode");
    assert_fails(setup.backend.fns->picture(setup.backend.self, origin[0], 0, &pixel), LR_USAGE, setup.log,
                 "several crystals");
}

test_main("penetration", CASES(test_opaque_crystals, test_one_line, test_module_before, test_parallax, test_sum_rule,
                               test_mirror, test_rules, test_convergence, test_adjoint, test_absorption, test_refusals))
