/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_GRID_H
#define LR_GRID_H

#include <lr/log.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A box of equal voxels along the scanner's axes; millimetres, the scanner's frame.
 * Voxel (ix, iy, iz) has the index ix + nx * (iy + ny * iz), which is also its row of the matrix. */
typedef struct lr_grid {
    int size[3]; /* nx, ny, nz */
    double voxel_mm[3];
    double origin_mm[3]; /* centre of voxel (0, 0, 0) */
} lr_grid;

/* An image on a grid: float32, x fastest. lr_image_destroy frees an image that the library returned, with its values. A
 * caller may also fill in a struct with the caller's own array; functions that take a const lr_image * read this array
 * without a copy. */
typedef struct lr_image {
    lr_grid grid;
    float *values; /* [nz][ny][nx] */
} lr_image;

/* A grid of this size, centred on the scanner. */
LR_API lr_grid lr_grid_centred(const int size[3], const double voxel_mm[3]);

/* Checks that sizes are positive, finite and at most 2^31 voxels. Otherwise logs an error. */
LR_API lr_status lr_grid_check(const lr_grid *grid, const lr_log *log);

/* True if two grids have the same voxels, to within a thousandth of a voxel edge. */
LR_API bool lr_grid_same(const lr_grid *a, const lr_grid *b);

/* nx * ny * nz. */
LR_API int64_t lr_grid_num_voxels(const lr_grid *grid);

/* The centre of the voxel with this row. */
LR_API void lr_grid_voxel_centre(const lr_grid *grid, int64_t row, double centre_mm[3]);

/* One sample point of a voxel. The voxel is divided into num[0] x num[1] x num[2] equal boxes, whose centres are the
 * sample points. Box (a, b, c) has index = a + num[0] * (b + num[1] * c). */
typedef struct lr_sample {
    int64_t row;
    int num[3]; /* points along each axis, positive */
    int index;  /* 0 <= index < num[0] * num[1] * num[2] */
} lr_sample;

/* The position of a sample point in mm, in the scanner's frame. */
LR_API void lr_grid_sample_point(const lr_grid *grid, const lr_sample *sample, double point_mm[3]);

/* Finds numbers of points per axis whose product is `count`, such that the largest spacing of points is as small as
 * possible. On a tie, the later axis gets more points. Example: 8 points in cubic voxels are 2 x 2 x 2. */
LR_API void lr_grid_split_samples(const lr_grid *grid, int count, int samples[3]);

/* An image of zeros on a grid. errors: NULL, logged, for a grid that lr_grid_check refuses, or if memory runs out. */
LR_API lr_image *lr_image_create(const lr_grid *grid, const lr_log *log);
/* Destroying NULL is allowed. */
LR_API void lr_image_destroy(lr_image *image);

#ifdef __cplusplus
}
#endif

#endif
