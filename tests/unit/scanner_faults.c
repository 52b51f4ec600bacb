/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Scanners that are refused, and in which words. */
#include "scanners.h"

#include "model/scanner/scanner.h"

/* A valid pair of modules, to be spoilt. */
struct pair {
    lr_module modules[2];
    lr_scanner_params params;
    struct test_log log;
};

static void init_pair(struct pair *pair)
{
    *pair = (struct pair){.modules = {tilted_module(100, 0, 0, 0, 0, 4, 4), tilted_module(-100, 0, 0, 180, 0, 4, 4)}};
    test_log_init(&pair->log);
    pair->params =
        (lr_scanner_params){.name = "pair", .modules = pair->modules, .num_modules = 2, .log = &pair->log.log};
}

/* The scanner is refused as bad input, in a sentence that contains these words. */
static void assert_refused(struct pair *pair, const char *words)
{
    assert_null(lr_scanner_create(&pair->params));
    assert_error(&pair->log, LR_BAD_INPUT, words, "pair: ");
    init_pair(pair);
}

static void unspoilt_pair_is_accepted(void **state)
{
    struct pair pair;
    init_pair(&pair);
    keep(lr_scanner_create(&pair.params));
}

static void sizes_are_checked(void **state)
{
    struct pair pair;
    init_pair(&pair);
    pair.modules[1].crystals[0] = 0;
    assert_refused(&pair, "module 1 has 0 crystals along u");
    pair.modules[0].pitch_mm[1] = -4.0;
    assert_refused(&pair, "module 0 has a pitch of -4 mm along v");
    pair.modules[0].face_mm[0] = 0.0;
    assert_refused(&pair, "module 0 has a crystal face of 0 mm along u");
    pair.modules[0].face_mm[0] = NAN;
    assert_refused(&pair, "module 0 has a crystal face of nan mm along u");
    pair.modules[0].face_mm[1] = 5.25;
    assert_refused(&pair, "crystal faces of 5.25 mm along v, 0.25 mm more than the pitch of 5 mm");
    pair.modules[0].depth_mm = INFINITY;
    assert_refused(&pair, "module 0 has crystals of depth inf mm");
    pair.modules[0].crystals[0] = pair.modules[0].crystals[1] = 100000;
    assert_refused(&pair, "crystals");
}

static void axes_are_checked(void **state)
{
    struct pair pair;
    init_pair(&pair);
    pair.modules[1].u[1] *= 1.001;
    assert_refused(&pair, "axis u of module 1 has the length 1.001");
    pair.modules[0].v[1] = 0.001;
    assert_refused(&pair, "module 0 have the scalar product 0.001");
    pair.modules[0].centre_mm[2] = NAN;
    assert_refused(&pair, "module 0 has a number in its centre or axes that is not finite");
}

static void scanner_numbers_are_checked(void **state)
{
    struct pair pair;
    init_pair(&pair);
    pair.params.num_modules = 1;
    assert_refused(&pair, "1 modules: a coincidence needs at least two");
    pair.params.detection_depth_mm = 12.0;
    assert_refused(&pair, "the detection plane lies 12 mm behind the front face");
    pair.params.detection_depth_mm = -1.0;
    assert_refused(&pair, "the detection depth is -1 mm");
    pair.params.tof_resolution_ps = NAN;
    assert_refused(&pair, "the time-of-flight resolution is nan ps");
    pair.params.crystal_mu_per_mm = -0.08;
    assert_refused(&pair, "the crystals attenuate with -0.08/mm");
    pair.params.crystal_mu_per_mm = INFINITY;
    assert_refused(&pair, "the crystals attenuate with inf/mm");
}

static void rules_are_checked(void **state)
{
    struct pair pair;
    init_pair(&pair);
    pair.params.coincidence.field_of_view_mm = -5.0;
    assert_refused(&pair, "the field of view is -5 mm");
    pair.params.coincidence.min_module_difference = 1;
    assert_refused(&pair, "remove min_module_difference or describe the scanner as a ring");
    pair.params.coincidence.limits_ring_difference = true;
    assert_refused(&pair, "remove max_ring_difference or describe the scanner as a ring");
    pair.params.num_positions = 2;
    pair.params.coincidence.min_module_difference = 2;
    assert_refused(&pair, "min_module_difference is 2: with 2 modules around the ring");
    pair.params.num_positions = 2;
    pair.params.coincidence.limits_ring_difference = true;
    pair.params.coincidence.max_ring_difference = -1;
    assert_refused(&pair, "max_ring_difference is -1");
    pair.params.num_positions = 2;
    pair.modules[1].position = 2;
    assert_refused(&pair, "module 1 stands at position 2 around the ring: positions run from 0 to 1");
}

/* Two modules side by side, 16 mm wide each: 1.2 mm too near, touching, just within tolerance. */
static void overlap_is_measured(void **state)
{
    struct pair pair;
    init_pair(&pair);
    pair.modules[1] = tilted_module(100, 14.8, 0, 0, 0, 4, 4);
    assert_refused(&pair, "modules 0 and 1 overlap by 1.2 mm: reduce the pitch");
    pair.modules[1] = tilted_module(100, 16.0 - 1.1e-6, 0, 0, 0, 4, 4);
    assert_refused(&pair, "modules 0 and 1 overlap by 1.1e-06 mm");
    const double fits[] = {16.0 - 0.9e-6, 16.0, 16.5};
    for (int k = 0; k < 3; k++) {
        pair.modules[1] = tilted_module(100, fits[k], 0, 0, 0, 4, 4);
        keep(lr_scanner_create(&pair.params));
    }
}

/* Closed forms: cubes of edge 2, one of them turned by 45 degrees about the common axis z, in the
 * plane; and two crossed edges, which only the axis across both edges separates. */
static void overlap_of_turned_boxes(void **state)
{
    const double h = sqrt(0.5);
    lr_module a = {.centre_mm = {0, 0, 1},
                   .u = {1, 0, 0},
                   .v = {0, 1, 0},
                   .normal = {0, 0, 1},
                   .crystals = {1, 1},
                   .pitch_mm = {2, 2},
                   .depth_mm = 2};
    lr_module b = a;
    b.u[0] = b.u[1] = b.v[1] = h;
    b.v[0] = -h;
    b.centre_mm[0] = 1.0 + sqrt(2.0) - 0.25;
    assert_close(lr_module_overlap_mm(&a, &b), 0.25, 1e-12);
    b.centre_mm[0] = 1.0 + sqrt(2.0) + 0.25;
    assert_true(lr_module_overlap_mm(&a, &b) < 0.0);
    /* a lies on its edge along x with its ridge at z = sqrt(2), b hangs above with its edge along y
     * at z = d. Near the ridges' crossing only z = x cross y tells them apart. */
    lr_module ridge = {.centre_mm = {0, h, h},
                       .u = {1, 0, 0},
                       .v = {0, h, -h},
                       .normal = {0, h, h},
                       .crystals = {1, 1},
                       .pitch_mm = {20, 2},
                       .depth_mm = 2};
    lr_module hanging = {.centre_mm = {h, 0, 0},
                         .u = {0, 1, 0},
                         .v = {h, 0, -h},
                         .normal = {h, 0, h},
                         .crystals = {1, 1},
                         .pitch_mm = {20, 2},
                         .depth_mm = 2};
    hanging.centre_mm[2] = 2.0 * sqrt(2.0) - 0.125 + h;
    assert_close(lr_module_overlap_mm(&ridge, &hanging), 0.125, 1e-12);
    hanging.centre_mm[2] += 0.25;
    assert_true(lr_module_overlap_mm(&ridge, &hanging) < 0.0);
}

/* Modules in a regular polygon fit as long as their width is at most the side 2 r tan(pi / n). */
static void ring_overlap_starts_at_the_polygon_side(void **state)
{
    const int crystals[2] = {10, 4};
    const double side = 2.0 * 100.0 * tan(acos(-1.0) / 12);
    struct test_log log = TEST_LOG(log);
    const lr_scanner_params params = {.name = "ring", .log = &log.log};
    lr_ring ring = plain_ring(100.0, 12, crystals, side / 10, 4.0, 20.0);
    lr_scanner *scanner = lr_scanner_create_ring(&params, &ring);
    assert_non_null(scanner);
    lr_scanner_destroy(scanner);
    ring.pitch_mm[0] = (side + 0.01) / 10;
    assert_null(lr_scanner_create_ring(&params, &ring));
    assert_says(log.error, "modules 0 and 1 overlap by 0.00");
    ring = plain_ring(100.0, 12, crystals, 5.0, 4.0, 20.0);
    ring.rings = 2;
    ring.ring_pitch_mm = 18.5;
    assert_null(lr_scanner_create_ring(&params, &ring));
    assert_string_equal(log.error, "ring: modules 0 and 12 overlap by 1.5 mm: reduce the pitch or "
                                   "the number of modules, or move them apart");
}

static void assert_ring_refused(const lr_ring *ring, const char *words)
{
    struct test_log log = TEST_LOG(log);
    assert_null(lr_scanner_create_ring(&(lr_scanner_params){.name = "r", .log = &log.log}, ring));
    assert_error(&log, LR_BAD_INPUT, words);
}

static void rings_are_checked(void **state)
{
    const int crystals[2] = {4, 4}, empty[2] = {4, 0};
    const lr_ring good = plain_ring(100.0, 12, crystals, 5.0, 4.0, 20.0);
    lr_ring ring = good;
    ring.radius_mm = 0.0;
    assert_ring_refused(&ring, "the ring's radius is 0 mm");
    ring = good;
    ring.modules = 1;
    assert_ring_refused(&ring, "1 modules around the ring");
    ring = good;
    ring.rings = 2;
    assert_ring_refused(&ring, "2 rings without a ring pitch");
    ring = good;
    ring.first_angle_deg = NAN;
    assert_ring_refused(&ring, "first angle");
    ring = good;
    ring.block_gap_mm[1] = -1.0;
    assert_ring_refused(&ring, "the gap between blocks along v is -1 mm");
    ring = good;
    ring.blocks[1] = 2;
    ring.block_crystals[1] = empty;
    assert_ring_refused(&ring, "block 1 along v has 0 crystals");
    ring = good;
    ring.block_crystals[0] = NULL;
    assert_ring_refused(&ring, "no blocks along u");
    ring = good;
    ring.modules = 100000;
    assert_ring_refused(&ring, "100000 modules");
    ring = good;
    ring.depth_mm = 0.0;
    assert_ring_refused(&ring, "module 0 has crystals of depth 0 mm");
}

test_main("unit: scanner faults", cmocka_unit_test(unspoilt_pair_is_accepted), cmocka_unit_test(sizes_are_checked),
          cmocka_unit_test(axes_are_checked), cmocka_unit_test(scanner_numbers_are_checked),
          cmocka_unit_test(rules_are_checked), cmocka_unit_test(overlap_is_measured),
          cmocka_unit_test(overlap_of_turned_boxes), cmocka_unit_test(ring_overlap_starts_at_the_polygon_side),
          cmocka_unit_test(rings_are_checked))
