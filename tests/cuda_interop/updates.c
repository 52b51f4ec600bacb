/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The arithmetic of CUDA's updates, thread by thread on the processor (on_cpu.h), against what
 * lr/direct.h says in double. */
#include "../cases.h"

#include "common/bindings.h"
#include "on_cpu.h"

enum { NX = 7, NY = 9, NZ = 10, QUADS = 3, VOXELS = NX * NY * NZ, FLOATS = 4 };

static const lr_cuda_layout layout = {
    .size = {NX, NY, NZ}, .quads = QUADS, .margin = {1, 2, 3}, .extent = {QUADS + 2, NX + 4, NY + 6}};

/* An image of random values, with or without margins. */
struct image {
    lr_cuda_image cuda;
    float *texels; /* [num_texels][4] */
    int64_t num_texels;
};

static int64_t place_of(const struct image *image, int voxel)
{
    const lr_cuda_image *cuda = &image->cuda;
    const int x = voxel % NX, y = voxel / NX % NY, z = voxel / NX / NY;
    const int64_t column = x + cuda->margin[1] + (int64_t)cuda->extent[1] * (y + cuda->margin[2]);
    return FLOATS * ((int64_t)cuda->extent[0] * column + cuda->margin[0]) + z;
}

/* Some values are zero and some are nearly zero, chosen so that no sum lies close to the limit of 1e-30. */
static float random_value(uint64_t *seed, bool is_signed)
{
    const double kind = test_random(seed), value = test_random(seed);
    return (float)(kind < 0.1 ? 0 : kind < 0.15 ? 3e-31 : is_signed ? 4 * value - 2 : 2 * value);
}

static struct image make(bool has_margins, bool is_signed, uint64_t seed)
{
    struct image image = {.cuda = {.extent = {QUADS, NX}}};
    int rows = NY;
    if (has_margins) {
        memcpy(image.cuda.margin, layout.margin, sizeof(layout.margin));
        memcpy(image.cuda.extent, layout.extent, sizeof(image.cuda.extent));
        rows = layout.extent[2];
    }
    image.num_texels = (int64_t)image.cuda.extent[0] * image.cuda.extent[1] * rows;
    image.texels = kept_floats(FLOATS * image.num_texels);
    image.cuda.texels = (float4 *)(void *)image.texels;
    for (int voxel = 0; voxel < VOXELS; voxel++) image.texels[place_of(&image, voxel)] = random_value(&seed, is_signed);
    return image;
}

static double value_of(const struct image *image, int voxel, double otherwise)
{
    return image->texels != NULL ? (double)image->texels[place_of(image, voxel)] : otherwise;
}

/* Compares the voxels of the grid; all texels in the margins must be zero. */
static void check(const struct image *image, const double *expected)
{
    double inside = 0, all = 0, greatest = 0;
    for (int voxel = 0; voxel < VOXELS; voxel++) {
        const double found = value_of(image, voxel, 0);
        /* rounding of a few operations in single precision */
        assert_true(fabs(found - expected[voxel]) <= 1e-6 * fmax(1, fabs(expected[voxel])));
        inside += fabs(found);
        greatest = fmax(greatest, fabs(expected[voxel]));
    }
    for (int64_t k = 0; k < FLOATS * image->num_texels; k++) all += fabs((double)image->texels[k]);
    assert_all(greatest > 0, fabs(all - inside) <= 1e-12 * inside);
}

/* --- back-projection of a view --- */

static double discrepancy(int what, double estimate, const double data[3])
{
    const double y = data[0], b = data[1], n = data[2], expected = n * estimate + b;
    if (what == LR_DIRECT_DO_SENSITIVITY) return n;
    if (expected <= 1e-30) return 0;
    return n * (what == LR_DIRECT_DO_RAMLA ? y / expected - 1 : y / expected);
}

static void discrepancies_are_those_of_the_header(void **state)
{
    static const int whats[] = {LR_DIRECT_DO_RAMLA, LR_DIRECT_DO_EM, LR_DIRECT_DO_SENSITIVITY};
    for (int k = 0; k < 3; k++)
        for (int which = 0; which < 4; which++) {
            struct image histo = make(true, false, 1), counts = make(false, false, 2), additive = {0}, factors = {0};
            double expected[VOXELS];
            if ((which & 1) != 0) additive = make(false, false, 3);
            if ((which & 2) != 0) factors = make(false, false, 4);
            for (int voxel = 0; voxel < VOXELS; voxel++) {
                const double data[3] = {value_of(&counts, voxel, 0), value_of(&additive, voxel, 0),
                                        value_of(&factors, voxel, 1)};
                expected[voxel] = discrepancy(whats[k], value_of(&histo, voxel, 0), data);
            }
            on_cpu_discrepancy(
                (lr_cuda_discrepancy){layout, whats[k], histo.cuda, counts.cuda, additive.cuda, factors.cuda});
            check(&histo, expected);
        }
}

/* --- how an image is changed --- */

static double change(int what, double x, double c, double s)
{
    switch (what) {
    case LR_DIRECT_DO_RAMLA: return fmax(x * (1 + 0.75 * c), 0);
    case LR_DIRECT_DO_EM: return s > 1e-30 ? x * c / s : x;
    default: return x + c;
    }
}

static void images_change_as_the_header_says(void **state)
{
    static const int whats[] = {LR_DIRECT_DO_RAMLA, LR_DIRECT_DO_EM, LR_DIRECT_DO_ADD};
    for (int k = 0; k < 3; k++) {
        const bool is_em = whats[k] == LR_DIRECT_DO_EM;
        struct image image = make(true, false, 5), by = make(true, !is_em, 6), sensitivity = {0};
        double expected[VOXELS];
        if (is_em) sensitivity = make(true, false, 7);
        for (int voxel = 0; voxel < VOXELS; voxel++) {
            expected[voxel] =
                change(whats[k], value_of(&image, voxel, 0), value_of(&by, voxel, 0), value_of(&sensitivity, voxel, 0));
        }
        on_cpu_change((lr_cuda_change){layout, whats[k], 0.75f, image.cuda, by.cuda, sensitivity.cuda});
        check(&image, expected);
    }
}

test_main("updates", CASE(discrepancies_are_those_of_the_header), CASE(images_change_as_the_header_says))
