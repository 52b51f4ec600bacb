/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Exact mode compared with closed forms of the solid angle. All tolerances are 1e-10 relative; values tabulated with 12
 * digits must agree in the last digit. */
#include "analytic.h"

#include "correspondence/cpu/polygon.h"

/* Rectangle a x b, seen from a point on its axis at distance d (Khadjavi, J. Opt. Soc. Am. 58:1417, 1968). */
static double on_axis(double a, double b, double d)
{
    return 4 * atan(a * b / (2 * d * sqrt(4 * d * d + a * a + b * b)));
}

/* Rectangle around (x, y) in the plane at distance z, seen from the origin. */
static double off_axis(double x, double y, double z, double a, double b)
{
    return rectangle_angle(x - a / 2, x + a / 2, y - b / 2, y + b / 2, z);
}

/* One crystal a x b around (x, d, z), seen from the origin through a much larger and nearer crystal on the other side:
 * the sum of the row times 2 pi. */
static double rendered(double x, double d, double z, double a, double b)
{
    const double scale = fmax(a, b) / d + 2 * fabs(x) / d + 2 * fabs(z) / d + 1;
    lr_module modules[2] = {
        make_module((double[3]){x, d, z}, (double[3]){1, 0, 0}, (double[3]){0, 0, 1}, (int[2]){1, 1}, 1, 1),
        make_module((double[3]){0, -0.5 * d, 0}, (double[3]){1, 0, 0}, (double[3]){0, 0, 1}, (int[2]){1, 1}, scale * d,
                    scale * d)};
    modules[0].pitch_mm[0] = modules[0].face_mm[0] = a;
    modules[0].pitch_mm[1] = modules[0].face_mm[1] = b;
    struct setup setup = exact_setup(modules, 2);
    const double sum = point_sum(&setup, 0, 0, 0);
    return 2 * TEST_PI * sum;
}

static void test_rectangles_on_axis(void **state)
{
    static const struct {
        double a, b, d, tabulated;
    } cases[] = {{4, 4, 465, 7.39956250129e-05},
                 {20, 20, 400, 2.49843863841e-03},
                 {100, 200, 300, 0.208043883287},
                 {116.1, 258, 465, 0.132485168843},
                 {2, 2, 1, 2.09439510239}};
    for (int k = 0; k < length_of(cases); k++) {
        const double omega = rendered(0, cases[k].d, 0, cases[k].a, cases[k].b);
        assert_close(omega, on_axis(cases[k].a, cases[k].b, cases[k].d), 1e-10);
        assert_close(omega, cases[k].tabulated, 3e-12);
    }
}

static void test_rectangles_off_axis(void **state)
{
    static const double cases[][3] = {
        {10, 0, 7.394432451e-05}, {50, 0, 7.273066902e-05}, {50, 100, 6.801362520e-05}, {200, 0, 5.736361984e-05}};
    for (int k = 0; k < length_of(cases); k++) {
        const double omega = rendered(cases[k][0], 465, cases[k][1], 4, 4);
        /* The closed form loses digits by cancellation, to some 1e-11 here; the table has ten digits. */
        assert_close(omega, off_axis(cases[k][0], cases[k][1], 465, 4, 4), 1e-10);
        assert_close(omega, cases[k][2], 1e-9);
    }
    assert_close(rendered(30, 40, -25, 35, 8), off_axis(30, -25, 40, 35, 8), 1e-12);
}

/* Integral of h / r^3 over a rectangle by Gauss-Legendre quadrature with 5 x 5 nodes: exact to rounding for faces much
 * smaller than their distance. */
static long double integrated(long double x, long double y, long double h, long double a, long double b)
{
    static const long double nodes[5] = {0, 0.53846931010568309104L, -0.53846931010568309104L, 0.90617984593866399280L,
                                         -0.90617984593866399280L};
    static const long double weights[5] = {0.56888888888888888889L, 0.47862867049936646804L, 0.47862867049936646804L,
                                           0.23692688505618908751L, 0.23692688505618908751L};
    long double sum = 0;
    for (int m = 0; m < 5; m++) {
        for (int n = 0; n < 5; n++) {
            const long double px = x + nodes[m] * a / 2, py = y + nodes[n] * b / 2;
            const long double r2 = px * px + py * py + h * h;
            sum += weights[m] * weights[n] * h / (r2 * sqrtl(r2));
        }
    }
    return sum * a * b / 4;
}

/* Powers of two are exact as vertices, so that only the formula is tested. */
static void test_small_polygons(void **state)
{
    for (int power = 0; power >= -24; power -= 4) {
        const double size = ldexp(1, power);
        const struct lr_cpu_polygon square = {4, {{96, 32}, {96 + size, 32}, {96 + size, 32 + size}, {96, 32 + size}}};
        const double omega = lr_cpu_polygon_solid_angle(&square, 464);
        const long double want = integrated(96 + size / 2.0L, 32 + size / 2.0L, 464, size, size);
        assert_close(omega, (double)want, 1e-14);
        struct lr_cpu_polygon turned = square;
        lr_cpu_polygon_reverse(&turned);
        assert_close(lr_cpu_polygon_solid_angle(&turned, 464), omega, 1e-14);
    }
}

/* A polygon around the foot of the perpendicular from the eye, which fills almost half of the directions. */
static void test_wide_polygon(void **state)
{
    const struct lr_cpu_polygon square = {4, {{-1e4, -1e4}, {1e4, -1e4}, {1e4, 1e4}, {-1e4, 1e4}}};
    assert_close(lr_cpu_polygon_solid_angle(&square, 1), on_axis(2e4, 2e4, 1), 1e-13);
}

/* Two opposed modules of 9 x 9 crystals of 4.3 mm without gaps, planes at +-465 mm. */
static struct setup opposed(void)
{
    const int size[2] = {9, 9};
    const lr_module modules[2] = {upright_module(465, 90, 0, size, 4.3, 4.3),
                                  upright_module(465, -90, 0, size, 4.3, 4.3)};
    return exact_setup(modules, 2);
}

static void test_sums(void **state)
{
    struct setup setup = opposed();
    const double side = 9 * 4.3;
    assert_close(point_sum(&setup, 0, 0, 0), on_axis(side, side, 465) / (2 * TEST_PI), 1e-12);
    assert_close(point_sum(&setup, 0, 0, 0), 1.100487169734e-03, 1e-12);
    /* The farther module limits the solid angle if the point is closer to one module. */
    assert_close(point_sum(&setup, 0, 100, 0), on_axis(side, side, 565) / (2 * TEST_PI), 1e-12);
    assert_close(point_sum(&setup, 0, 100, 0), 7.458236919850e-04, 1e-12);
    assert_close(point_sum(&setup, 0, -100, 0), 7.458236919850e-04, 1e-12);
    assert_close(point_sum(&setup, 5, 40, -7), 5.291405234939e-04, 1e-12);
}

/* In the plane of the primary, at distance 505, the image of the nearer module is its rectangle scaled by 505 / 425
 * around the foot of the perpendicular from the point. The intersection of image and primary is one rectangle. */
static void test_sum_off_axis_is_one_rectangle(void **state)
{
    struct setup setup = opposed();
    const double half = 9 * 4.3 / 2, blow = 505.0 / 425.0;
    /* Relative to the foot (5, -7): primary -5 +- half, 7 +- half; image blow * (5 +- half), ... */
    const double x0 = fmax(-5 - half, blow * (5 - half)), x1 = fmin(-5 + half, blow * (5 + half));
    const double z0 = fmax(7 - half, blow * (-7 - half)), z1 = fmin(7 + half, blow * (-7 + half));
    const double omega = off_axis((x0 + x1) / 2, (z0 + z1) / 2, 505, x1 - x0, z1 - z0);
    assert_close(point_sum(&setup, 5, 40, -7), omega / (2 * TEST_PI), 1e-11);
}

/* At the centre, a crystal is paired only with its mirror image. */
static void test_mirror_pair(void **state)
{
    const int size[2] = {27, 60};
    const lr_module modules[2] = {upright_module(465, 90, 0, size, 4.3, 4.0),
                                  upright_module(465, -90, 0, size, 4.3, 4.0)};
    struct setup setup = exact_setup(modules, 2);
    const double centre[1][3] = {{0, 0, 0}};
    double *row = point_matrix(&setup, centre, 1);
    const int first = setup.scanner->first_crystal[1], a = 30 * 27 + 13;
    assert_close(row[lr_lors_number(setup.lors, a, first + 29 * 27 + 13)], 1.177639186527e-05, 1e-12);
    assert_true(row[lr_lors_number(setup.lors, a, first + 30 * 27 + 13)] == 0);
    int num_elements = 0;
    for (int64_t lor = 0; lor < setup.lors->count; lor++) num_elements += row[lor] > 0;
    assert_int_equal(num_elements, 27 * 60);
}

/* --- the sum of a row is the probability that a pair is detected at all ---
 *
 * At the centre of a polygonal ring with an even number of modules it is S = n Omega(module) / 4 pi, or the sum over
 * crystals if faces leave gaps. Off the axis it is compared with a Monte Carlo count of isotropic lines. */

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
    for (int k = 0; k < length_of(cases); k++) {
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

test_main("solid angle", CASES(test_rectangles_on_axis, test_rectangles_off_axis, test_small_polygons,
                               test_wide_polygon, test_sums, test_sum_off_axis_is_one_rectangle, test_mirror_pair,
                               test_ring_centres, test_monte_carlo, test_outside))
