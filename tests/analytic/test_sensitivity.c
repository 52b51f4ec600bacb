/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The sum of a row is the probability that a pair is detected at all. At the centre of a polygonal ring with an even
 * number of modules it is S = n Omega(module) / 4 pi, or the sum over crystals if faces leave gaps. Off the axis it is
 * compared with a Monte Carlo count of isotropic lines. */
#include "analytic.h"

struct ring_case {
    const char *name;
    double radius;
    int modules, crystals[2];
    double pitch[2], face[2];
    double solid, faces; /* tabulated with 9 digits: without gaps, and with these faces */
};

static const struct ring_case cases[] = {
    {"Penn", 465, 24, {27, 60}, {4.3, 4.3}, {4, 4}, 0.253028034, 0.218953979},
    {"Discovery MI without unit gaps", 372.05, 34, {16, 36}, {4.03125, 5.31556}, {3.95, 5.3}, 0.232798026, 0.227438407},
    {"Vista DR as one ring of 26 rows", 59, 18, {13, 26}, {1.55, 1.55}, {1.45, 1.45}, 0.311856807, 0.272920295}};

static double central_sum(const struct ring_case *ring, const double face[2])
{
    lr_ring shape = plain_ring(ring->radius, ring->modules, ring->crystals, 0, 0, 10);
    memcpy(shape.pitch_mm, ring->pitch, sizeof(shape.pitch_mm));
    memcpy(shape.face_mm, face, sizeof(shape.face_mm));
    struct setup setup = setup_of(lr_scanner_create_ring(&(lr_scanner_params){.name = ring->name}, &shape),
                                  &(struct setup_options){.mode = LR_MODE_EXACT});
    return point_sum(&setup, 0, 0, 0);
}

/* At the centre, crystals are paired with their mirror images, edge on edge. */
static void test_ring_centres(void **state)
{
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        const struct ring_case *ring = &cases[k];
        const double a = ring->crystals[0] * ring->pitch[0], b = ring->crystals[1] * ring->pitch[1];
        const double d = ring->radius, omega = 4 * atan(a * b / (2 * d * sqrt(4 * d * d + a * a + b * b)));
        const double solid = central_sum(ring, ring->pitch);
        assert_close(solid, ring->modules * omega / (4 * TEST_PI), 1e-10);
        assert_close(solid, ring->solid, 3e-9);
        assert_close(central_sum(ring, ring->face), ring->faces, 3e-9);
    }
}

/* Two rings of modules with a gap between them. */
static lr_scanner *two_rings(void)
{
    return scanner_from("ring: {radius_mm: 59, modules: 18, rings: 2, ring_pitch_mm: 27.85}\nmodule: {crystals: [13, "
                        "13], pitch_mm: [1.55, 1.55], face_mm: [1.45, 1.45], depth_mm: 15}");
}

/* True if a photon from `point` along `way` hits a crystal face. Seen from inside, modules of a ring do not hide each
 * other. */
static bool detected(const lr_scanner *scanner, const double point[3], const double way[3])
{
    bool on_face;
    for (int m = 0; m < scanner->num_modules; m++)
        if (meet_module(&scanner->modules[m], point, way, &on_face) < INFINITY) return on_face;
    return false;
}

/* Tolerance: five standard deviations of the count. */
static void test_monte_carlo(void **state)
{
    enum { NUM_LINES = 150000 };
    static const double points[4][3] = {{0, 0, 0}, {20, 0, 0}, {-11, 17, 9}, {4, -30, -15}};
    uint64_t seed = test_seed();
    struct setup setup = setup_of(two_rings(), &(struct setup_options){.mode = LR_MODE_EXACT});
    double sums[4];
    point_sums(&setup, points, 4, sums);
    for (int n = 0; n < 4; n++) {
        int num_detected = 0;
        for (int line = 0; line < NUM_LINES; line++) {
            double ways[2][3];
            random_ways(&seed, ways);
            num_detected += detected(setup.scanner, points[n], ways[0]) && detected(setup.scanner, points[n], ways[1]);
        }
        const double count = (double)num_detected / NUM_LINES;
        const double deviation = sqrt(sums[n] * (1 - sums[n]) / NUM_LINES);
        print_message("(%g, %g, %g): exact %.6f, counted %.6f +- %.6f\n", points[n][0], points[n][1], points[n][2],
                      sums[n], count, deviation);
        assert_true(fabs(count - sums[n]) <= 5 * deviation);
    }
}

/* Activity outside the scanner is not detected: beyond its ends and beyond its modules. */
static void test_outside(void **state)
{
    static const double points[6][3] = {{0, 0, 40}, {10, 5, -60}, {70, 0, 0}, {0, -90, 3}, {60, 60, 20}, {1000, 0, 0}};
    for (int mode = LR_MODE_SAMPLED; mode <= LR_MODE_EXACT; mode++) {
        struct setup setup = setup_of(two_rings(), &(struct setup_options){.mode = (lr_mode)mode});
        double sums[6];
        point_sums(&setup, points, 6, sums);
        for (int n = 0; n < 6; n++) assert_true(sums[n] == 0);
    }
}

test_main("sensitivity", CASE(test_ring_centres), CASE(test_monte_carlo), CASE(test_outside))
