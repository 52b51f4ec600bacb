/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Geometry of scanners: rings, panels of blocks, normals, size; scanners that are refused, and the messages. */
#include "cases.h"

#include "model/scanner/scanner.h"
#include "scanners.h"

#include <lr/design.h>

static void assert_point(const double point[3], double x, double y, double z)
{
    const double expected[3] = {x, y, z};
    for (int k = 0; k < 3; k++)
        if (fabs(point[k] - expected[k]) > 1e-9)
            fail_msg("coordinate %d is %.12g, not %.12g", k, point[k], expected[k]);
}

static double dot(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* Checks module k of ring j: radius, angle, z; u towards larger angles, v along z, normal inwards. */
static void ring_places_modules(void **state)
{
    const int crystals[2] = {13, 12};
    lr_ring ring = plain_ring(59.0, 18, crystals, 1.55, 1.45, 15.0);
    ring.rings = 3;
    ring.ring_pitch_mm = 27.85;
    ring.first_angle_deg = 10.0;
    lr_scanner *scanner = keep(lr_scanner_create_ring(&(lr_scanner_params){0}, &ring));
    assert_ints(scanner->num_modules, 54, scanner->num_positions, 18, scanner->num_crystals, 54 * 13 * 12);
    for (int m = 0; m < 54; m++) {
        const lr_module *module = &scanner->modules[m];
        const double angle = (10.0 + 20.0 * (m % 18)) * acos(-1.0) / 180.0, c = cos(angle), s = sin(angle);
        assert_point(module->centre_mm, 59.0 * c, 59.0 * s, (m / 18 - 1) * 27.85);
        assert_point(module->u, -s, c, 0.0);
        assert_point(module->v, 0.0, 0.0, 1.0);
        assert_point(module->normal, -c, -s, 0.0);
        assert_ints(module->position, m % 18, module->ring, m / 18, module->first_crystal_ring, m / 18 * 12);
        assert_int_equal(scanner->first_crystal[m], m * 156);
    }
    assert_int_equal(scanner->first_crystal[54], scanner->num_crystals);
    assert_string_equal(scanner->name, "unnamed scanner");
}

/* The published crystal centres of the prototype's panels, 6.5 mm behind the face. */
static void panel_of_blocks_has_gaps(void **state)
{
    static const int along_u[2] = {7, 8}, along_v[2] = {8, 8};
    const lr_ring ring = filled(lr_ring, .radius_mm = 64.0, .modules = 12, .first_angle_deg = 90.0, .blocks = {2, 2},
                                .block_crystals = {along_u, along_v}, .block_gap_mm = {0.5, 0.5},
                                .pitch_mm = {2.2, 2.2}, .face_mm = {2.12, 2.12}, .depth_mm = 13.0);
    lr_scanner *scanner = keep(lr_scanner_create_ring(&(lr_scanner_params){.name = "SAFIR"}, &ring));
    assert_ints(scanner->num_modules, 48, scanner->num_crystals, 2880);
    for (int m = 0; m < 4; m++) { /* block_v * 2 + block_u of the panel at 90 degrees: u = -x */
        const lr_module *block = &scanner->modules[m];
        assert_ints(block->crystals[0], m % 2 == 0 ? 7 : 8, block->position, 0, block->first_crystal_ring, m / 2 * 8);
        const double first_u = m % 2 == 0 ? -15.65 : 0.25, first_z = m / 2 == 0 ? -16.75 : 1.35;
        double centre[3];
        lr_module_crystal_centre(block, 0, 0, centre);
        assert_point(centre, -first_u, 70.5, first_z);
        lr_module_crystal_centre(block, block->crystals[0] - 1, 7, centre);
        assert_point(centre, m % 2 == 0 ? 2.45 : -15.65, 70.5, first_z + 7 * 2.2);
    }
    assert_int_equal(scanner->modules[4].position, 1);
}

/* Crystal numbers give modules, and modules give crystal numbers, with modules of different sizes. */
static void crystals_find_their_module(void **state)
{
    const lr_module modules[3] = {tilted_module(100, 0, 0, 0, 0, 3, 2), tilted_module(-100, 0, 0, 180, 0, 1, 1),
                                  tilted_module(0, 100, 0, 90, 0, 5, 7)};
    lr_scanner *scanner = keep(lr_scanner_create(&(lr_scanner_params){.modules = modules, .num_modules = 3}));
    for (int m = 0; m < 3; m++)
        for (int c = scanner->first_crystal[m]; c < scanner->first_crystal[m + 1]; c++)
            assert_int_equal(lr_scanner_module_of(scanner, c), m);
    assert_int_equal(scanner->num_crystals, 6 + 1 + 35);
}

/* Inward normals as in docs/method/common.md, "Frame and scanner", whether u, v and the normal are right-handed or
 * left-handed. */
static void normals_point_inwards(void **state)
{
    lr_module modules[6] = {
        tilted_module(100, 0, 0, 0, 0, 2, 2),                       /* u x v points outwards */
        tilted_module(-100, 0, 0, 180, 0, 2, 2),                    /* the same; v is reversed below */
        tilted_module(0, 100, 20, 90, 30, 2, 2),                    /* tilted */
        {.centre_mm = {0, 0, 150}, .u = {1, 0, 0}, .v = {0, 1, 0}}, /* end caps: across the axis */
        {.centre_mm = {0, 0, -150}, .u = {1, 0, 0}, .v = {0, 1, 0}},
        {.centre_mm = {0, 0, 0}, .u = {0, 1, 0}, .v = {1, 0, 0}}, /* at the origin: n = u x v */
    };
    for (int k = 0; k < 3; k++) modules[1].v[k] = -modules[1].v[k];
    for (int m = 3; m < 6; m++) {
        for (int k = 0; k < 2; k++) {
            modules[m].crystals[k] = 2;
            modules[m].pitch_mm[k] = modules[m].face_mm[k] = 4.0;
        }
        modules[m].depth_mm = 10.0;
    }
    lr_scanner *scanner = keep(lr_scanner_create(&(lr_scanner_params){.modules = modules, .num_modules = 6}));
    assert_point(scanner->modules[0].normal, -1, 0, 0);
    assert_point(scanner->modules[1].normal, 1, 0, 0);
    const double *n = scanner->modules[2].normal;
    assert_all(n[1] < 0.0, fabs(dot(n, scanner->modules[2].u)) < 1e-15, fabs(dot(n, scanner->modules[2].v)) < 1e-15);
    assert_point(n, 0, -cos(acos(-1.0) / 6), 0.5);
    assert_point(scanner->modules[3].normal, 0, 0, -1);
    assert_point(scanner->modules[4].normal, 0, 0, 1);
    assert_point(scanner->modules[5].normal, 0, 0, -1);
}

/* The axis decides the direction of the normal if axis and origin are on different sides of a tilted module. */
static void axis_decides_before_origin(void **state)
{
    const lr_module modules[2] = {tilted_module(100, 0, 200, 0, 60, 2, 2), tilted_module(-100, 0, 0, 180, 0, 2, 2)};
    lr_scanner *scanner = keep(lr_scanner_create(&(lr_scanner_params){.modules = modules, .num_modules = 2}));
    const lr_module *module = &scanner->modules[0];
    assert_point(module->normal, -0.5, 0, sqrt(0.75));
    assert_true(dot(module->normal, module->centre_mm) > 0.0); /* away from the origin */
}

/* Axes given with seven digits become orthonormal to rounding. */
static void axes_are_orthonormal(void **state)
{
    lr_module modules[2] = {tilted_module(80, 60, 0, 33, 17, 2, 2), tilted_module(-100, 0, 0, 180, 0, 2, 2)};
    for (int k = 0; k < 3; k++) {
        modules[0].u[k] = round(modules[0].u[k] * 1e6) / 1e6 * (1.0 + 5e-7);
        modules[0].v[k] = round(modules[0].v[k] * 1e6) / 1e6;
    }
    lr_scanner *scanner = keep(lr_scanner_create(&(lr_scanner_params){.modules = modules, .num_modules = 2}));
    assert_true(fabs(dot(modules[0].u, modules[0].v)) > 1e-8); /* the given axes were not orthogonal */
    const lr_module *m = &scanner->modules[0];
    const double *const axes[3] = {m->u, m->v, m->normal};
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 3; b++) assert_true(fabs(dot(axes[a], axes[b]) - (a == b)) < 4e-16);
}

static void detection_plane_lies_behind_the_face(void **state)
{
    const lr_module modules[2] = {tilted_module(100, 0, 5, 0, 0, 2, 2), tilted_module(-100, 0, 5, 180, 0, 2, 2)};
    lr_scanner *scanner =
        keep(lr_scanner_create(&(lr_scanner_params){.modules = modules, .num_modules = 2, .detection_depth_mm = 3.0}));
    double centre[3];
    lr_scanner_detection_centre(scanner, 0, centre);
    assert_point(centre, 103, 0, 5);
    lr_module_crystal_centre(&scanner->modules[0], 1, 0, centre);
    assert_point(centre, 105, 2, 2.5);
    lr_scanner_destroy(NULL);
}

/* --- what is refused --- */

/* A valid pair of modules, which the tests make invalid. */
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

/* Checks that the scanner is refused as bad input, with a message that contains these words. */
static void assert_refused(struct pair *pair, const char *words)
{
    assert_null(lr_scanner_create(&pair->params));
    assert_error(&pair->log, LR_BAD_INPUT, words, "pair: ");
    init_pair(pair);
}

static void spoilt_pairs_are_refused(void **state)
{
    struct pair pair;
    init_pair(&pair);
    keep(lr_scanner_create(&pair.params)); /* still valid */
    spoilt(pair.modules[1].crystals[0] = 0, assert_refused(&pair, "module 1 has 0 crystals along u"));
    spoilt(pair.modules[0].pitch_mm[1] = -4.0, assert_refused(&pair, "module 0 has a pitch of -4 mm along v"));
    spoilt(pair.modules[0].face_mm[0] = 0.0, assert_refused(&pair, "module 0 has a crystal face of 0 mm along u"));
    spoilt(pair.modules[0].face_mm[0] = NAN, assert_refused(&pair, "module 0 has a crystal face of nan mm along u"));
    pair.modules[0].face_mm[1] = 5.25;
    assert_refused(&pair, "crystal faces of 5.25 mm along v, 0.25 mm more than the pitch of 5 mm");
    spoilt(pair.modules[0].depth_mm = INFINITY, assert_refused(&pair, "module 0 has crystals of depth inf mm"));
    spoilt(pair.modules[0].crystals[0] = pair.modules[0].crystals[1] = 100000, assert_refused(&pair, "crystals"));
    spoilt(pair.modules[1].u[1] *= 1.001, assert_refused(&pair, "axis u of module 1 has the length 1.001"));
    spoilt(pair.modules[0].v[1] = 0.001, assert_refused(&pair, "module 0 have the scalar product 0.001"));
    pair.modules[0].centre_mm[2] = NAN;
    assert_refused(&pair, "module 0 has a number in its centre or axes that is not finite");
    spoilt(pair.params.num_modules = 1, assert_refused(&pair, "1 modules: a coincidence needs at least two"));
    pair.params.detection_depth_mm = 12.0;
    assert_refused(&pair, "the detection plane lies 12 mm behind the front face");
    spoilt(pair.params.detection_depth_mm = -1.0, assert_refused(&pair, "the detection depth is -1 mm"));
    spoilt(pair.params.tof_resolution_ps = NAN, assert_refused(&pair, "the time-of-flight resolution is nan ps"));
    spoilt(pair.params.crystal_mu_per_mm = -0.08, assert_refused(&pair, "the crystals attenuate with -0.08/mm"));
    spoilt(pair.params.crystal_mu_per_mm = INFINITY, assert_refused(&pair, "the crystals attenuate with inf/mm"));
    spoilt(pair.params.coincidence.field_of_view_mm = -5.0, assert_refused(&pair, "the field of view is -5 mm"));
    pair.params.coincidence.min_module_difference = 1;
    assert_refused(&pair, "remove min_module_difference or describe the scanner as a ring");
    pair.params.coincidence.limits_ring_difference = true;
    assert_refused(&pair, "remove max_ring_difference or describe the scanner as a ring");
    pair.params.num_positions = 2;
    pair.params.coincidence.min_module_difference = 2;
    assert_refused(&pair, "min_module_difference is 2: with 2 modules around the ring");
    pair.params.num_positions = 2;
    pair.params.coincidence.limits_ring_difference = true;
    spoilt(pair.params.coincidence.max_ring_difference = -1, assert_refused(&pair, "max_ring_difference is -1"));
    pair.params.num_positions = 2;
    pair.modules[1].position = 2;
    assert_refused(&pair, "module 1 stands at position 2 around the ring: positions run from 0 to 1");
}

/* Two modules of 16 mm width side by side: 1.2 mm too close, touching, and just within the tolerance. */
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

/* Closed forms: cubes with edge 2, one of them rotated by 45 degrees about the common axis z, in one plane; and two
 * crossed edges, which only the axis perpendicular to both edges separates. */
static void overlap_of_turned_boxes(void **state)
{
    const double h = sqrt(0.5);
    lr_module a = filled(lr_module, .centre_mm = {0, 0, 1}, .u = {1, 0, 0}, .v = {0, 1, 0}, .normal = {0, 0, 1},
                         .crystals = {1, 1}, .pitch_mm = {2, 2}, .depth_mm = 2);
    lr_module b = a;
    b.u[0] = b.u[1] = b.v[1] = h;
    b.v[0] = -h;
    b.centre_mm[0] = 1.0 + sqrt(2.0) - 0.25;
    assert_close(lr_module_overlap_mm(&a, &b), 0.25, 1e-12);
    b.centre_mm[0] = 1.0 + sqrt(2.0) + 0.25;
    assert_true(lr_module_overlap_mm(&a, &b) < 0.0);
    /* a lies on its edge along x, with the opposite edge at z = sqrt(2); b is above it, with its edge along y at z = d.
     * Near the crossing of these edges only the axis z = x cross y separates a and b. */
    lr_module ridge = filled(lr_module, .centre_mm = {0, h, h}, .u = {1, 0, 0}, .v = {0, h, -h}, .normal = {0, h, h},
                             .crystals = {1, 1}, .pitch_mm = {20, 2}, .depth_mm = 2);
    lr_module hanging = filled(lr_module, .centre_mm = {h, 0, 0}, .u = {0, 1, 0}, .v = {h, 0, -h}, .normal = {h, 0, h},
                               .crystals = {1, 1}, .pitch_mm = {20, 2}, .depth_mm = 2);
    hanging.centre_mm[2] = 2.0 * sqrt(2.0) - 0.125 + h;
    assert_close(lr_module_overlap_mm(&ridge, &hanging), 0.125, 1e-12);
    hanging.centre_mm[2] += 0.25;
    assert_true(lr_module_overlap_mm(&ridge, &hanging) < 0.0);
}

/* Modules in a regular polygon fit if their width is at most the side 2 r tan(pi / n). */
static void ring_overlap_starts_at_the_polygon_side(void **state)
{
    const int crystals[2] = {10, 4};
    const double side = 2.0 * 100.0 * tan(acos(-1.0) / 12);
    struct test_log log = TEST_LOG(log);
    const lr_scanner_params params = {.name = "ring", .log = &log.log};
    lr_ring ring = plain_ring(100.0, 12, crystals, side / 10, 4.0, 20.0);
    keep(lr_scanner_create_ring(&params, &ring));
    ring.pitch_mm[0] = (side + 0.01) / 10;
    assert_null(lr_scanner_create_ring(&params, &ring));
    assert_says(log.error, "modules 0 and 1 overlap by 0.00");
    ring = plain_ring(100.0, 12, crystals, 5.0, 4.0, 20.0);
    ring.rings = 2;
    ring.ring_pitch_mm = 2.5;
    assert_null(lr_scanner_create_ring(&params, &ring));
    assert_string_equal(
        log.error, "ring: modules 0 and 12 overlap by 17.5 mm along the axis, as with a distance in cm (25 mm): their "
                   "centres lie 2.5 mm apart, and a module is 20 mm long: give a larger distance from ring to ring "
                   "(ring_pitch_mm)");
}

/* Checks that the ring is refused, and then makes it valid again. */
static void assert_ring_refused(lr_ring *ring, const lr_ring *good, const char *words)
{
    struct test_log log = TEST_LOG(log);
    assert_null(lr_scanner_create_ring(&(lr_scanner_params){.name = "r", .log = &log.log}, ring));
    assert_error(&log, LR_BAD_INPUT, words);
    *ring = *good;
}

static void rings_are_checked(void **state)
{
    const int crystals[2] = {4, 4}, empty[2] = {4, 0};
    const lr_ring good = plain_ring(100.0, 12, crystals, 5.0, 4.0, 20.0);
    lr_ring ring = good;
    spoilt(ring.radius_mm = 0.0, assert_ring_refused(&ring, &good, "the ring's radius is 0 mm"));
    spoilt(ring.modules = 1, assert_ring_refused(&ring, &good, "1 modules around the ring"));
    spoilt(ring.rings = 2, assert_ring_refused(&ring, &good, "2 rings without a ring pitch"));
    spoilt(ring.first_angle_deg = NAN, assert_ring_refused(&ring, &good, "first angle"));
    spoilt(ring.block_gap_mm[1] = -1.0, assert_ring_refused(&ring, &good, "the gap between blocks along v is -1 mm"));
    ring.blocks[1] = 2;
    spoilt(ring.block_crystals[1] = empty, assert_ring_refused(&ring, &good, "block 1 along v has 0 crystals"));
    spoilt(ring.block_crystals[0] = NULL, assert_ring_refused(&ring, &good, "no blocks along u"));
    spoilt(ring.modules = 100000, assert_ring_refused(&ring, &good, "100000 modules"));
    spoilt(ring.depth_mm = 0.0, assert_ring_refused(&ring, &good, "module 0 has crystals of depth 0 mm"));
}

/* Two layers that stop one half each stop three quarters, and a scanner that does not know its crystals says so. */
static void layers_stop_together(void **state)
{
    const int crystals[2] = {4, 3};
    const lr_layer layers[2] = {{.depth_mm = 7.0}, {.depth_mm = 7.0}};
    lr_ring ring = plain_ring(60.0, 12, crystals, 5.0, 4.0, 14.0);
    ring.layers = layers;
    ring.num_layers = 2;
    const lr_scanner_params params = {.crystal_mu_per_mm = log(2.0) / 7.0};
    const lr_scanner_figures figures = lr_scanner_measure(keep(lr_scanner_create_ring(&params, &ring)));
    assert_int_equal(figures.num_layers, 2);
    assert_close(figures.stopped, 0.75, 1e-9);
    assert_close(figures.high_mm[2] - figures.low_mm[2], 15.0, 1e-9);
    for (int k = 0; k < 3; k++) assert_close(figures.low_mm[k] + figures.high_mm[k], 0.0, 1e-9);
    assert_close(figures.high_mm[1], 67.0, 1e-9); /* the front face of the second layer, behind 7 mm */
    assert_close(figures.inner_radius_mm, 60.0, 1e-9);
    assert_close(figures.crystal_volume_mm3, 12 * 12 * 4.0 * 4.0 * 14.0, 1e-9);
    ring.num_layers = 0;
    const lr_scanner_figures unknown = lr_scanner_measure(keep(lr_scanner_create_ring(&(lr_scanner_params){0}, &ring)));
    assert_int_equal(unknown.num_layers, 1);
    assert_true(isnan(unknown.stopped));
}

/* An edge of a face that leans by 30 degrees is nearer to the axis than its centre. A face across the axis has no
 * distance from it. */
static void leaning_faces_are_as_near_as_their_edge(void **state)
{
    lr_module pair[2] = {tilted_module(50.0, 0.0, 0.0, 0.0, 30.0, 4, 4),
                         tilted_module(-50.0, 0.0, 0.0, 180.0, 0.0, 4, 4)};
    const double half_mm = 2.0 * pair[0].pitch_mm[1];
    lr_scanner *scanner = keep(lr_scanner_create(&(lr_scanner_params){.modules = pair, .num_modules = 2}));
    assert_close(lr_scanner_measure(scanner).inner_radius_mm, 50.0 - 0.5 * half_mm, 1e-9);
    pair[1] = filled(lr_module, .centre_mm = {0.0, 0.0, -80.0}, .u = {1.0, 0.0, 0.0}, .v = {0.0, 1.0, 0.0},
                     .crystals = {4, 4}, .pitch_mm = {2.0, 2.0}, .face_mm = {2.0, 2.0}, .depth_mm = 10.0);
    scanner = keep(lr_scanner_create(&(lr_scanner_params){.modules = pair, .num_modules = 2}));
    assert_close(lr_scanner_measure(scanner).inner_radius_mm, 0.0, 1e-9);
}

/* A NaN far from the axis is not in the means near it. */
static void profiles_skip_far_voxels(void **state)
{
    const lr_grid grid = lr_grid_centred((const int[3]){9, 9, 1}, (const double[3]){1.0, 1.0, 1.0});
    lr_image *image = lr_image_create(&grid, NULL);
    double axial[1], radial[3];
    (void)state;
    for (int k = 0; k < 81; k++) image->values[k] = 2.0f;
    image->values[0] = NAN;
    lr_image_axial_profile(image, axial);
    lr_image_radial_profile(image, radial, 3);
    assert_close(axial[0], 2.0, 1e-9);
    for (int k = 0; k < 3; k++) assert_close(radial[k], 2.0, 1e-9);
    lr_image_destroy(image);
}

test_main("unit: scanner", CASE(ring_places_modules), CASE(panel_of_blocks_has_gaps), CASE(crystals_find_their_module),
          CASE(normals_point_inwards), CASE(axis_decides_before_origin), CASE(axes_are_orthonormal),
          CASE(detection_plane_lies_behind_the_face), CASE(spoilt_pairs_are_refused), CASE(overlap_is_measured),
          CASE(overlap_of_turned_boxes), CASE(ring_overlap_starts_at_the_polygon_side), CASE(rings_are_checked),
          CASE(layers_stop_together), CASE(leaning_faces_are_as_near_as_their_edge), CASE(profiles_skip_far_voxels))
