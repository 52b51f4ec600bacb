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
 * Voxel (ix, iy, iz) has row ix + nx * (iy + ny * iz). */
typedef struct lr_grid {
    int size[3]; /* nx, ny, nz */
    double voxel_mm[3];
    double origin_mm[3]; /* centre of voxel (0, 0, 0) */
} lr_grid;

/* An image on a grid: float32, x fastest. `values` belongs to the image. */
typedef struct lr_image {
    lr_grid grid;
    float *values; /* [nz][ny][nx] */
} lr_image;

/* A grid of that size centred on the scanner. */
LR_API lr_grid lr_grid_centred(const int size[3], const double voxel_mm[3]);

/* Whether sizes are positive, finite and at most 2^31 voxels; logs what is wrong. */
LR_API lr_status lr_grid_check(const lr_grid *grid, const lr_log *log);

LR_API int64_t lr_grid_num_voxels(const lr_grid *grid);

/* Centre of the voxel of that row. */
LR_API void lr_grid_voxel_centre(const lr_grid *grid, int64_t row, double centre_mm[3]);

/* Sample point `index` of a voxel, 0 <= index < samples[0] * samples[1] * samples[2]: the voxel is
 * cut into samples[0] x samples[1] x samples[2] equal boxes and each gives its centre;
 * index = a + samples[0] * (b + samples[1] * c). */
LR_API void lr_grid_sample_point(const lr_grid *grid, int64_t row, const int samples[3], int index,
                                 double point_mm[3]);

/* Splits `count` points among the axes so that the largest spacing is least; on a tie the larger
 * count goes to the later axis. count = 8 on cubic voxels gives 2 x 2 x 2. */
LR_API void lr_grid_split_samples(const lr_grid *grid, int count, int samples[3]);

/* A zero image on that grid, or NULL. Destroying NULL is allowed. */
LR_API lr_image *lr_image_create(const lr_grid *grid, const lr_log *log);
LR_API void lr_image_destroy(lr_image *image);

#ifdef __cplusplus
}
#endif

#endif
