/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Single passes over vectors that join sums and look at neighbours, and passes that fill, clear and change an order,
 * compared with plain loops in double on the host: lengths around the size of a group, and vectors that begin anywhere
 * in their buffers. tests/vector/test_vector.c has the other passes over vectors. */
#include "device.h"

#include <lr/vector.h>

enum { MOST = 1100 };

static const int counts[] = {0, 1, 63, 65, 257, 1000};

/* The block of shaders/vector/vector.glsl. */
struct vector_pass {
    uint32_t first[4], count, unused;
    double scalar, lowest, unused_too;
};

/* Numbers in single or double precision; the host holds them as doubles. */
struct reals {
    struct gl_buffer *buffer;
    double values[MOST];
};

/* Random numbers between low and high; every fifth number is 0. */
static struct reals *draw(bool is_double, double low, double high)
{
    static uint64_t state = 7;
    struct reals *reals = kept(1, sizeof(*reals));
    float *floats = kept_floats(MOST);
    for (int k = 0; k < MOST; k++) {
        const double value = k % 5 == 2 ? 0.0 : low + (high - low) * test_random(&state);
        floats[k] = (float)value;
        reals->values[k] = is_double ? value : (double)floats[k];
    }
    reals->buffer = device_buffer(MOST * (is_double ? 8 : 4), is_double ? (void *)reals->values : floats);
    return reals;
}

static double *read_reals(const struct gl_buffer *buffer, bool is_double)
{
    double *values = kept_doubles(MOST);
    const void *read = device_read(buffer, MOST, is_double ? 8 : 4);
    for (int k = 0; k < MOST; k++) values[k] = is_double ? ((const double *)read)[k] : (double)((const float *)read)[k];
    return values;
}

/* Numbers first .. first + count - 1 must equal the wanted ones, except for the last bit and for errors of 1e-13 in
 * terms of up to 100; all others must be unchanged. */
static void expect_reals(const struct reals *before, const double *wanted, const uint32_t range[2], bool is_double)
{
    const double *found = read_reals(before->buffer, is_double), unit = is_double ? 0x1p-52 : 0x1p-23;
    for (uint32_t k = 0; k < MOST; k++) {
        const bool is_within = k >= range[0] && k < range[0] + range[1];
        const double want = is_within ? wanted[k - range[0]] : before->values[k];
        const double error = is_within ? unit * fabs(want) + 1e-13 : 0;
        if (!(fabs(found[k] - want) <= error))
            fail_msg("number %u of %u is %.17g, not %.17g", k, range[1], found[k], want);
    }
}

/* --- sums --- */

/* Adds each sum over all groups; of the sums from index `from` on, takes the largest instead. */
static void join(const struct gl_buffer *sums, int groups, int from, double joined[LR_VECTOR_NUM_SUMS])
{
    const double *all = device_read(sums, (int64_t)groups * LR_VECTOR_NUM_SUMS, 8);
    for (int which = 0; which < LR_VECTOR_NUM_SUMS; which++) {
        joined[which] = which < from ? 0 : -INFINITY;
        for (int g = 0; g < groups; g++) {
            const double one = all[g * LR_VECTOR_NUM_SUMS + which];
            joined[which] = which < from ? joined[which] + one : fmax(joined[which], one);
        }
    }
}

static void expect_sums(const double *found, const double *wanted)
{
    for (int k = 0; k < LR_VECTOR_NUM_SUMS; k++) {
        const bool is_same = found[k] == wanted[k] || fabs(found[k] - wanted[k]) <= 1e-12 * (1 + fabs(wanted[k]));
        if (!is_same) fail_msg("sum %d is %.17g, not %.17g", k, found[k], wanted[k]);
    }
}

/* Joins sums of groups, with and without earlier sums, and with and without maxima. */
static void test_join_sums(void **context)
{
    struct gl_program *program = device_program("vector/join_sums.comp", NULL);
    for (int n = 0; n < 4 * length_of(counts); n++) {
        const int groups = counts[n / 4] / LR_VECTOR_NUM_SUMS,
                  from = n % 2 != 0 ? LR_VECTOR_LARGEST : LR_VECTOR_NUM_SUMS;
        const bool is_added = n / 2 % 2 != 0;
        const struct vector_pass uniforms = {.first = {0, is_added, from == LR_VECTOR_LARGEST},
                                             .count = (uint32_t)groups};
        const double before[LR_VECTOR_NUM_SUMS] = {1, -2, 3, -4, -5, -0.5};
        struct gl_pass pass = device_pass(program, &uniforms, sizeof(uniforms), 1);
        struct reals *sums = draw(true, -3, -1);
        double wanted[LR_VECTOR_NUM_SUMS], found[LR_VECTOR_NUM_SUMS];
        join(sums->buffer, groups, from, wanted);
        for (int k = 0; is_added && k < LR_VECTOR_NUM_SUMS; k++)
            wanted[k] = k < from ? wanted[k] + before[k] : fmax(wanted[k], before[k]);
        device_run_on(&pass, LR_BIND_VECTOR_Y, sums->buffer, LR_BIND_VECTOR_SUMS,
                      device_buffer(sizeof(before), before));
        join(pass.buffers[LR_BIND_VECTOR_SUMS].buffer, 1, LR_VECTOR_NUM_SUMS, found);
        expect_sums(found, wanted);
    }
}

/* --- neighbours --- */

/* A grid and the layers that a pass computes; its x begins one layer earlier if such a layer exists. */
struct layers {
    int size[3], first, count;
};
static const struct layers layered[] = {{{1, 1, 1}, 0, 1}, {{5, 3, 7}, 0, 7}, {{5, 3, 7}, 2, 3}, {{9, 7, 3}, 1, 2}};

static int voxel_at(const struct layers *layers, const int at[3])
{
    for (int k = 0; k < 3; k++)
        if (at[k] < 0 || at[k] >= layers->size[k]) return -1;
    return at[0] + layers->size[0] * (at[1] + layers->size[1] * at[2]);
}

static void test_convolve(void **context)
{
    struct {
        double weights[LR_CONVOLUTION_REACH];
        uint32_t first[4], size[4];
        int32_t along[4];
    } uniforms = {.weights = {0.5, 0.3, -0.2, 0.15, 0.1, 0.05, 0.02}};
    for (int is_double = 0; is_double < 2; is_double++) {
        struct gl_program *program = device_program("vector/convolve.comp", is_double ? "REAL=double" : NULL);
        for (int n = 0; n < 9 * length_of(layered); n++) {
            const struct layers *layers = &layered[n / 9];
            const int plane = layers->size[0] * layers->size[1], axis = n % 3,
                      reach = (const int[3]){0, 1, 6}[n / 3 % 3];
            /* Along z a convolution reads all layers. */
            const int from = axis == 2 ? 0 : layers->first;
            uniforms.first[0] = 2;
            uniforms.first[1] = 3;
            uniforms.first[2] = (uint32_t)layers->first;
            uniforms.first[3] = (uint32_t)layers->count;
            for (int k = 0; k < 3; k++) uniforms.size[k] = (uint32_t)layers->size[k];
            uniforms.size[3] = (uint32_t)from;
            uniforms.along[0] = axis;
            uniforms.along[1] = reach;
            struct reals *x = draw(is_double, -1, 2), *y = draw(is_double, -1, 2);
            double *wanted = kept_doubles(MOST);
            for (int v = 0; v < plane * layers->count; v++) {
                for (int k = -reach; k <= reach; k++) {
                    int at[3] = {v % layers->size[0], v / layers->size[0] % layers->size[1], v / plane + layers->first};
                    at[axis] += k;
                    const int place = voxel_at(layers, at);
                    wanted[v] += place >= 0 ? uniforms.weights[abs(k)] * x->values[3 + place - from * plane] : 0;
                }
            }
            struct gl_pass pass = device_pass(program, &uniforms, sizeof(uniforms), 1);
            device_run_on(&pass, LR_BIND_VECTOR_Y, y->buffer, LR_BIND_VECTOR_IN, x->buffer);
            expect_reals(y, wanted, (const uint32_t[2]){2, (uint32_t)(plane * layers->count)}, is_double);
        }
    }
}

static void test_differences(void **context)
{
    struct {
        double weights[8], gamma, epsilon, scale;
        uint32_t layer, layers, first[4], size[4];
    } uniforms = {.weights = {9, 1, 0.7, 0.5, 0.4, 0.3, 0.2, 0.1}, .gamma = 2, .scale = -0.7, .first = {2, 3, 5}};
    for (int variant = 0; variant < 12; variant++) {
        const int what = variant % 3;
        const bool is_double = variant / 3 % 2 == 1, has_kappa = variant >= 6;
        char defines[64];
        snprintf(defines, sizeof(defines), "WHAT=%d REAL=%s%s", what, is_double ? "double" : "float",
                 has_kappa ? " HAS_KAPPA" : "");
        struct gl_program *program = device_program("vector/differences.comp", defines);
        for (int n = 0; n < 2 * length_of(layered); n++) {
            const struct layers *layers = &layered[n / 2];
            const int plane = layers->size[0] * layers->size[1], from = layers->first > 0 ? layers->first - 1 : 0;
            uniforms.epsilon = n % 2 == 0 ? 0 : 0.03; /* 0: a pair of zeros has no term */
            uniforms.layer = (uint32_t)layers->first;
            uniforms.layers = (uint32_t)layers->count;
            for (int k = 0; k < 3; k++) uniforms.size[k] = (uint32_t)layers->size[k];
            uniforms.size[3] = (uint32_t)from;
            struct reals *x = draw(is_double, 0, 2), *kappa = draw(is_double, 0, 2), *y = draw(is_double, -1, 2);
            double *wanted = kept_doubles(MOST);
            for (int v = 0; v < plane * layers->count; v++) {
                const int at[3] = {v % layers->size[0], v / layers->size[0] % layers->size[1],
                                   v / plane + layers->first};
                const int own = voxel_at(layers, at) - from * plane;
                double sum = 0;
                for (int k = 0; k < 27; k++) {
                    const int step[3] = {k % 3 - 1, k / 3 % 3 - 1, k / 9 - 1};
                    const int to = voxel_at(layers, (const int[3]){at[0] + step[0], at[1] + step[1], at[2] + step[2]});
                    if (k == 13 || to < 0) continue;
                    const double a = x->values[3 + own], b = x->values[3 + to - from * plane], d = a - b;
                    const double below = a + b + uniforms.gamma * fabs(d) + uniforms.epsilon;
                    const double kappas = has_kappa ? kappa->values[5 + own] * kappa->values[5 + to - from * plane] : 1;
                    const double weight = kappas * uniforms.weights[abs(step[0]) + 2 * abs(step[1]) + 4 * abs(step[2])];
                    const double value = below > 0 ? 0.5 * d * d / below : 0;
                    const double slope = uniforms.gamma * fabs(d) + a + 3 * b + 2 * uniforms.epsilon;
                    const double gradient = below > 0 ? d * slope / (below * below) : 0;
                    sum += weight * (what == LR_DIFFERENCES_VALUE      ? value
                                     : what == LR_DIFFERENCES_GRADIENT ? gradient
                                                                       : 1);
                }
                wanted[v] = what == LR_DIFFERENCES_GRADIENT ? y->values[2 + v] + uniforms.scale * sum : sum;
            }
            struct gl_pass pass = device_pass(program, &uniforms, sizeof(uniforms), 1);
            device_run_on(&pass, LR_BIND_VECTOR_Y, y->buffer, LR_BIND_VECTOR_IN, x->buffer, LR_BIND_VECTOR_IN + 1,
                          kappa->buffer);
            expect_reals(y, wanted, (const uint32_t[2]){2, (uint32_t)(plane * layers->count)}, is_double);
        }
    }
}

/* --- words --- */

static void test_fill(void **context)
{
    struct gl_program *program = device_program("common/fill.comp", NULL);
    for (int n = 0; n < 2 * length_of(counts); n++) {
        const uint32_t range[4] = {n % 2 == 0 ? 0 : 7, (uint32_t)counts[n / 2]}, pair[2] = {0xdeadbeef, 17};
        uint32_t uniforms[8] = {range[0], range[1], 0, 0, pair[0], pair[1]};
        struct gl_pass pass = device_pass(program, uniforms, sizeof(uniforms), 2);
        device_run_on(&pass, 0, device_buffer(MOST * 4, NULL));
        const uint32_t *words = device_read(pass.buffers[0].buffer, MOST, 4);
        for (uint32_t k = 0; k < MOST; k++) {
            const uint32_t at = k - range[0];
            assert_int_equal(words[k], k >= range[0] && at < range[1] ? pair[at % 2] : 0);
        }
    }
}

/* Modules with both directions and both axes. The sum of two crystals' places and the kinds of their rows decide
 * whether a value is kept. */
static void test_blank(void **context)
{
    enum { MODULES = 4, PLACES = 64 };
    static const int32_t modules[MODULES][4] = {
        {5, 3, 0, 4 * 0 + 1}, {3, 5, 20, 4 * 1 + 2 + 1}, {2, 2, 30, 4 * 3 + 0}, {1, 7, 9, 4 * 2 + 2}};
    static const uint32_t pairs[5][4] = {{2, 0, 1}, {240, 2, 1}, {320, 3, 2}, {360, 0, 3}, {500, 1, 1}};
    uint64_t state = test_seed();
    uint32_t keeps[PLACES];
    for (int k = 0; k < PLACES; k++) keeps[k] = (uint32_t)(16 * test_random(&state));
    struct gl_program *program = device_program("correspondence/blank.comp", NULL);
    for (uint32_t num_pairs = 0; num_pairs <= 5; num_pairs++) {
        struct reals *values = draw(false, 1, 2);
        double *wanted = kept_doubles(MOST);
        memcpy(wanted, values->values, sizeof(values->values));
        for (uint32_t n = 0; n < num_pairs; n++) {
            const int32_t *sides[2] = {modules[pairs[n][1]], modules[pairs[n][2]]};
            const int all[2] = {sides[0][0] * sides[0][1], sides[1][0] * sides[1][1]};
            for (int lor = 0; lor < all[0] * all[1]; lor++) {
                int places = 0, rows[2];
                for (int side = 0; side < 2; side++) {
                    const int32_t *module = sides[side];
                    const int crystal = side == 0 ? lor / all[1] : lor % all[1];
                    const int u = crystal % module[0], v = crystal / module[0];
                    const bool is_along_v = (module[3] & 2) != 0, is_upward = (module[3] & 1) != 0;
                    const int around = is_along_v ? v : u;
                    places += module[2] + (is_upward ? around : -around);
                    rows[side] = module[3] / 4 + (is_along_v ? u : v);
                }
                const bool stays = (keeps[places] >> (rows[0] + 2 * rows[1]) % 4 & 1) != 0;
                const uint32_t at = pairs[n][0] + (uint32_t)lor;
                wanted[at] = stays ? wanted[at] : 0;
            }
        }
        const uint32_t uniforms[4] = {num_pairs};
        struct gl_pass pass = device_pass(program, uniforms, sizeof(uniforms), 2);
        device_run_on(&pass, LR_BIND_MODULES, device_buffer(sizeof(modules), modules), LR_BIND_PAIRS,
                      device_buffer(sizeof(pairs), pairs), LR_BIND_ROWS, device_buffer(sizeof(keeps), keeps),
                      LR_BIND_OUTPUT, values->buffer);
        const double *found = read_reals(values->buffer, false);
        for (int k = 0; k < MOST; k++) assert_true(found[k] == wanted[k]);
    }
}

/* Images in the order of x, as grids have them, and in the order of z, as projectors have them. */
static void test_image_order(void **context)
{
    static const uint32_t sizes[][3] = {{1, 1, 1}, {7, 3, 5}, {13, 9, 8}};
    for (int n = 0; n < 6; n++) {
        const bool to_grid = n % 2 == 1;
        const uint32_t *size = sizes[n / 2], all = size[0] * size[1] * size[2], first = 5;
        const uint32_t uniforms[8] = {size[0], size[1], size[2], all, size[2] * size[1], size[2], 1, first};
        struct reals *grid = draw(false, 1, 2), *projector = draw(false, 3, 4);
        struct gl_pass pass =
            device_pass(device_program("correspondence/columns/image_order.comp", to_grid ? "TO_GRID" : NULL), uniforms,
                        sizeof(uniforms), 3);
        device_run_on(&pass, LR_BIND_ORDER_GRID, grid->buffer, LR_BIND_ORDER_PROJECTOR, projector->buffer);
        struct reals *to = to_grid ? grid : projector;
        double *wanted = kept_doubles(MOST);
        memcpy(wanted, to->values, sizeof(to->values));
        for (uint32_t v = 0; v < all; v++) {
            const uint32_t x = v % size[0], y = v / size[0] % size[1], z = v / size[0] / size[1];
            const uint32_t there = z + size[2] * (y + size[1] * x);
            wanted[to_grid ? first + v : there] = to_grid ? projector->values[there] : grid->values[first + v];
        }
        const double *found = read_reals(to->buffer, false);
        for (int k = 0; k < MOST; k++) assert_true(found[k] == wanted[k]);
    }
}

stage_main("render_alone_vector",
           CASES(test_join_sums, test_convolve, test_differences, test_fill, test_blank, test_image_order))
