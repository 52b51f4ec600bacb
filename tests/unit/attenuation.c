/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Attenuation factors: chords of boxes in closed form, and random maps compared with a walk over all voxel faces, which
 * is written out here. Factors are floats, so integrals are compared to 1e-6. */
#include "cases.h"

#define TOLERANCE 1e-6

static lr_image *map_of(const int size[3], const double voxel_mm[3], const double centre_mm[3])
{
    lr_grid grid = lr_grid_centred(size, voxel_mm);
    for (int k = 0; k < 3; k++) grid.origin_mm[k] += centre_mm[k];
    return keep(lr_image_create(&grid, NULL));
}

static void fill(lr_image *map, double low, double high, uint64_t *state)
{
    for (int64_t v = 0; v < lr_grid_num_voxels(&map->grid); v++)
        map->values[v] = (float)(low + (high - low) * test_random(state));
}

/* Factors of all LORs. */
static float *factors_of(const lr_lors *lors, const lr_image *map, int threads)
{
    lr_attenuation *attenuation =
        keep(lr_attenuation_create(&(lr_attenuation_params){.lors = lors, .mu = map, .threads = threads}));
    float *factors = kept_floats(lors->count);
    const lr_lor_source source = lr_attenuation_source(attenuation);
    assert_ok(source.get(source.user, &(lr_lor_span){.count = lors->count}, factors));
    return factors;
}

/* Centre of a crystal's face on the detection plane, computed from the definition. */
static void face_centre(const lr_scanner *scanner, int m, int p, int q, double out[3])
{
    const lr_module *module = &scanner->modules[m];
    for (int k = 0; k < 3; k++) {
        out[k] = module->centre_mm[k] - scanner->detection_depth_mm * module->normal[k] +
                 (p + 0.5 - module->crystals[0] / 2.0) * module->pitch_mm[0] * module->u[k] +
                 (q + 0.5 - module->crystals[1] / 2.0) * module->pitch_mm[1] * module->v[k];
    }
}

static void ends_of(const lr_lors *lors, int64_t number, double a[3], double b[3])
{
    const lr_lor lor = lr_lors_describe(lors, number);
    face_centre(lors->scanner, lor.module_i, lor.p, lor.q, a);
    face_centre(lors->scanner, lor.module_j, lor.r, lor.s, b);
}

/* --- any map --- */

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Cuts the line at each plane of voxel faces, and looks up the value at the middle of each piece. */
static double cut_line(const lr_image *map, const double a[3], const double b[3])
{
    double cuts[256] = {0.0, 1.0}, length2 = 0.0, sum = 0.0;
    int num_cuts = 2;
    for (int k = 0; k < 3; k++) {
        length2 += (b[k] - a[k]) * (b[k] - a[k]);
        for (int n = 0; n <= map->grid.size[k]; n++) {
            const double face = map->grid.origin_mm[k] + (n - 0.5) * map->grid.voxel_mm[k];
            const double t = (face - a[k]) / (b[k] - a[k]);
            if (t > 0.0 && t < 1.0) cuts[num_cuts++] = t;
        }
    }
    qsort(cuts, (size_t)num_cuts, sizeof(cuts[0]), compare_doubles);
    for (int n = 1; n < num_cuts; n++) {
        int64_t at[3];
        bool inside = true;
        for (int k = 0; k < 3; k++) {
            const double middle = a[k] + (b[k] - a[k]) * 0.5 * (cuts[n - 1] + cuts[n]);
            at[k] = (int64_t)floor((middle - map->grid.origin_mm[k]) / map->grid.voxel_mm[k] + 0.5);
            inside = inside && at[k] >= 0 && at[k] < map->grid.size[k];
        }
        if (inside) {
            const int *size = map->grid.size;
            sum += map->values[at[0] + size[0] * (at[1] + size[1] * at[2])] * (cuts[n] - cuts[n - 1]);
        }
    }
    return sqrt(length2) * sum;
}

static void compare_with_cuts(const struct fixture *fixture, const lr_image *map)
{
    float *factors = factors_of(fixture->lors, map, 2), *again = factors_of(fixture->lors, map, 1);
    int attenuated = 0;
    for (int64_t l = 0; l < fixture->lors->count; l++) {
        assert_true(factors[l] == again[l]);
        if (!lr_lors_in_coincidence(fixture->lors, l)) {
            assert_true(factors[l] == 0.0f);
            continue;
        }
        double a[3], b[3];
        ends_of(fixture->lors, l, a, b);
        const double expected = cut_line(map, a, b);
        if (!(fabs(-log(factors[l]) - expected) <= TOLERANCE)) {
            fail_msg("%s, LOR %lld: integral %.9g, expected %.9g", fixture->name, (long long)l, -log(factors[l]),
                     expected);
        }
        attenuated += expected > 0.0;
    }
    assert_true(attenuated > 20);
}

/* Maps inside the scanner, maps that extend beyond it, so that lines begin inside, and maps to one side of it. */
static void random_maps(void **unused)
{
    static const int sizes[3][3] = {{13, 11, 9}, {25, 27, 31}, {7, 40, 3}};
    static const double voxels[3][3] = {{3.1, 2.7, 1.9}, {5.3, 4.9, 3.7}, {1.3, 1.1, 9.7}};
    static const double centres[3][3] = {{0.13, -0.21, 0.07}, {1.7, 2.9, -0.4}, {-11, 3.71, 4.1}};
    uint64_t state = test_seed();
    for (int kind = 0; kind < FIXTURE_COUNT; kind++) {
        struct fixture fixture = kept_fixture((enum fixture_kind)kind);
        for (int k = 0; k < 3; k++) {
            lr_image *map = map_of(sizes[k], voxels[k], centres[k]);
            fill(map, 0.0, 0.02, &state);
            compare_with_cuts(&fixture, map);
        }
    }
}

/* --- boxes --- */

/* Chord of a box centred at `centre`, from its three slabs. */
static double chord(const double half[3], const double a[3], const double b[3])
{
    double low = 0.0, high = 1.0, length2 = 0.0;
    for (int k = 0; k < 3; k++) {
        const double d = b[k] - a[k];
        length2 += d * d;
        if (fabs(d) < 1e-12) {
            high = fabs(a[k]) < half[k] ? high : -1.0;
            continue;
        }
        low = fmax(low, fmin((-half[k] - a[k]) / d, (half[k] - a[k]) / d));
        high = fmin(high, fmax((-half[k] - a[k]) / d, (half[k] - a[k]) / d));
    }
    return high > low ? (high - low) * sqrt(length2) : 0.0;
}

/* A box of water in an empty map of twice its size: only the box contributes, and its faces are in the right places.
 * Half sizes keep the faces away from lines along the axes. */
static void box_of_water(void **unused)
{
    static const double voxel[3] = {1.7, 2.3, 1.1};
    const double mu = 0.0096f;
    struct fixture fixture = kept_fixture(FIXTURE_RING);
    lr_image *map = map_of((int[3]){20, 16, 12}, voxel, (double[3]){0, 0, 0});
    for (int z = 3; z < 9; z++) {
        for (int y = 4; y < 12; y++)
            for (int x = 5; x < 15; x++) map->values[x + 20 * (y + 16 * z)] = (float)mu;
    }
    const double half[3] = {5 * voxel[0], 4 * voxel[1], 3 * voxel[2]};
    float *factors = factors_of(fixture.lors, map, 0);
    int inside = 0;
    for (int64_t l = 0; l < fixture.lors->count; l++) {
        if (!lr_lors_in_coincidence(fixture.lors, l)) continue;
        double a[3], b[3];
        ends_of(fixture.lors, l, a, b);
        const double expected = mu * chord(half, a, b);
        assert_true(fabs(-log(factors[l]) - expected) <= TOLERANCE);
        inside += expected > 0.0;
    }
    assert_true(inside > 1000);
}

/* Two opposed modules of 3 x 3 crystals with a pitch of 4 mm: lines along y at x, z = -4, 0, 4, where voxels of 2 and 4
 * mm have faces. */
static lr_lors *straight_lors(void)
{
    const lr_module modules[2] = {{{0, 50, 0}, {-1, 0, 0}, {0, 0, 1}, .crystals = {3, 3}, {4, 4}, {3.5, 3.5}, 10},
                                  {{0, -50, 0}, {1, 0, 0}, {0, 0, 1}, .crystals = {3, 3}, {4, 4}, {3.5, 3.5}, 10}};
    return keep(
        lr_lors_create(keep(lr_scanner_create(&(lr_scanner_params){.modules = modules, .num_modules = 2})), NULL));
}

static float factor_at(const lr_lors *lors, const float *factors, double x, double z)
{
    for (int64_t l = 0; l < lors->count; l++) {
        double a[3], b[3];
        ends_of(lors, l, a, b);
        if (fabs(a[0] - x) + fabs(b[0] - x) + fabs(a[2] - z) + fabs(b[2] - z) < 1e-9) return factors[l];
    }
    fail_msg("no LOR along y at %g, %g", x, z);
    return 0.0f;
}

/* A line in a face gets the mean of the voxels on both sides, and a line in an edge the mean of four voxels; at the
 * map's outer faces half of the value. */
static void lines_in_faces_and_edges(void **unused)
{
    lr_lors *straight = straight_lors();
    lr_image *map = map_of((int[3]){2, 1, 2}, (double[3]){4, 10, 4}, (double[3]){0, 0, 0});
    memcpy(map->values, (float[4]){0.01f, 0.03f, 0.06f, 0.11f}, 4 * sizeof(float)); /* x fastest */
    float *factors = factors_of(straight, map, 1);
    static const double cases[5][3] = {{0, 0, (0.01 + 0.03 + 0.06 + 0.11) / 4}, /* x, z, mu */
                                       {-4, 0, (0.01 + 0.06) / 4},
                                       {4, 0, (0.03 + 0.11) / 4},
                                       {0, 4, (0.06 + 0.11) / 4},
                                       {4, -4, 0.03 / 4}};
    for (int k = 0; k < 5; k++)
        assert_true(fabs(-log(factor_at(straight, factors, cases[k][0], cases[k][1])) - 10 * cases[k][2]) <= TOLERANCE);
}

/* Mirrored maps give mirrored factors, also for lines through edges and corners of voxels, of which there are many if
 * sizes of scanner and grid are round numbers. */
static void mirrored_maps(void **unused)
{
    uint64_t state = test_seed();
    lr_lors *straight = straight_lors();
    for (int axis = 0; axis < 3; axis++) {
        const int size[3] = {6, 10, 6};
        lr_image *map = map_of(size, (double[3]){2, 10, 2}, (double[3]){0, 0, 0});
        lr_image *mirrored = map_of(size, (double[3]){2, 10, 2}, (double[3]){0, 0, 0});
        fill(map, 0.0, 0.05, &state);
        for (int64_t v = 0; v < 360; v++) {
            int at[3] = {(int)(v % 6), (int)(v / 6 % 10), (int)(v / 60)};
            at[axis] = size[axis] - 1 - at[axis];
            mirrored->values[at[0] + 6 * (at[1] + 10 * at[2])] = map->values[v];
        }
        float *factors = factors_of(straight, map, 1), *others = factors_of(straight, mirrored, 1);
        for (int64_t l = 0; l < straight->count; l++) {
            const lr_lor lor = lr_lors_describe(straight, l);
            const int a[2] = {lor.p, lor.q}, b[2] = {lor.r, lor.s};
            const int *at[2] = {axis == 1 ? b : a, axis == 1 ? a : b}; /* along y the ends are exchanged */
            int64_t image = 0;
            for (int end = 0; end < 2; end++) { /* u of the two modules point in opposite directions */
                const int p = axis == 2 ? at[end][0] : 2 - at[end][0], q = axis == 2 ? 2 - at[end][1] : at[end][1];
                image = image * 9 + q * 3 + p;
            }
            assert_true(fabs(log(factors[l]) - log(others[image])) <= TOLERANCE);
        }
    }
}

/* --- ends --- */

static void empty_map_lets_all_pass(void **unused)
{
    lr_lors *straight = straight_lors();
    lr_image *map = map_of((int[3]){4, 4, 4}, (double[3]){5, 5, 5}, (double[3]){0, 0, 0});
    float *factors = factors_of(straight, map, 1);
    for (int64_t l = 0; l < straight->count; l++) assert_true(factors[l] == 1.0f);
}

static void bad_maps_are_refused(void **unused)
{
    struct test_log log = TEST_LOG(log);
    lr_lors *straight = straight_lors();
    lr_image *map = map_of((int[3]){4, 3, 2}, (double[3]){5, 5, 5}, (double[3]){0, 0, 0});
    map->values[1 + 4 * (2 + 3 * 1)] = -0.01f;
    lr_attenuation_params params = {.lors = straight, .mu = map, .log = &log.log};
    assert_null(lr_attenuation_create(&params));
    assert_error(&log, LR_BAD_INPUT, "voxel (1, 2, 1) of the mu-map is -0.01 per mm");
    map->values[1 + 4 * (2 + 3 * 1)] = NAN;
    assert_null(lr_attenuation_create(&params));
    map->grid.voxel_mm[1] = 0;
    assert_null(lr_attenuation_create(&params));
    params.mu = NULL;
    assert_none(lr_attenuation_create(&params), LR_USAGE, &log, "");
    lr_attenuation_destroy(NULL);
}

test_main("unit: attenuation", CASE(random_maps), CASE(box_of_water), CASE(lines_in_faces_and_edges),
          CASE(mirrored_maps), CASE(empty_map_lets_all_pass), CASE(bad_maps_are_refused))
