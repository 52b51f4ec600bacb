/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Help for the tests of images: an image without symmetry, files of numbered voxels, and images that are refused. */
#pragma once

#include "io/files.h"

enum { nx = 5, ny = 4, nz = 3, num_voxels = nx * ny * nz };

/* All orders of the axes; each order has eight combinations of directions. */
static const int axis_orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

/* All voxels differ, no axis is symmetric, and some sizes are even, others odd. */
static inline lr_image *make_image(void)
{
    lr_image *image = keep(lr_image_create(&(lr_grid){{nx, ny, nz}, {0.45, 1.1, 2.2}, {-20.3, 1.7, -33.033}}, NULL));
    for (int n = 0; n < num_voxels; n++) image->values[n] = (float)n * 0.3f - 4.0f;
    return image;
}

/* Compares field by field, since padding may differ. */
static inline void assert_same_grid(const lr_grid *a, const lr_grid *b, double tolerance)
{
    for (int k = 0; k < 3; k++) {
        assert_int_equal(a->size[k], b->size[k]);
        assert_pairs(tolerance, {a->voxel_mm[k], b->voxel_mm[k]}, {a->origin_mm[k], b->origin_mm[k]});
    }
}

static inline void assert_same(const lr_image *a, const lr_image *b, double tolerance)
{
    assert_same_grid(&a->grid, &b->grid, tolerance);
    assert_memory_equal(a->values, b->values, num_voxels * sizeof(float));
}

static inline lr_image *read_good(const char *path)
{
    struct test_log log = TEST_LOG(log);
    lr_image *image = keep(lr_image_read(path, &log.log));
    assert_int_equal(log.num_warnings, 0);
    return image;
}

static inline void assert_refused(const char *path, const char *words)
{
    struct test_log log = TEST_LOG(log);
    lr_image *image = lr_image_read(path, &log.log);
    const bool is_named = strstr(log.error, path) != NULL;
    if (image != NULL || strstr(log.error, words) == NULL || !is_named || log.status != LR_BAD_INPUT)
        fail_msg("expected \"%s\" about %s, got \"%s\" (%d)", words, path, log.error, log.status);
}
