/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_BLOBS_H
#define LR_BLOBS_H

#include <lr/grid.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Images as sums of blobs: round functions that overlap, on a body-centred cubic lattice, which is two
 * cubic grids of which the second is half a spacing farther along each axis. A blob is the window of
 * Kaiser and Bessel of order 2, after Lewitt (J. Opt. Soc. Am. A 7:1834, 1990), with w = sqrt(1 - (r/a)^2):
 *
 *     b(r) = scale w^2 I_2(alpha w) / I_2(alpha)
 *
 * where `scale` makes blobs with coefficients of 1 add up to 1 in the mean. docs/method/listmode.md,
 * "Blobs". Zero fields are defaults. */
typedef struct lr_blobs {
    double radius_mm;  /* a; 0 = 10 */
    double alpha;      /* 0 = 8.37; at most 50 */
    double spacing_mm; /* of either grid; 0 = where a constant image has the least ripple, 8.15 mm by
                          default */
} lr_blobs;

/* Fills in defaults. errors: LR_USAGE, logged, for numbers that are not positive and finite. */
LR_API lr_status lr_blobs_complete(lr_blobs *blobs, const lr_log *log);

/* b(r) of a complete lr_blobs, and its integral in mm along a line at that distance from its centre. */
LR_API double lr_blobs_value(const lr_blobs *blobs, double distance_mm);
LR_API double lr_blobs_footprint(const lr_blobs *blobs, double distance_mm);

/* The two grids of a complete lr_blobs, alike in size, that hold each blob which reaches the centre of a
 * voxel. Coefficients are those of the first, then those of the second, each in the order of voxels. */
LR_API void lr_blobs_grids(const lr_blobs *blobs, const lr_grid *voxels, lr_grid grids[2]);

/* The image at the centres of voxels. coefficients: [voxels of both grids of image->grid].
 * errors: LR_FAILED without memory, logged. */
LR_API lr_status lr_blobs_evaluate(const lr_blobs *blobs, const float *coefficients, lr_image *image,
                                   const lr_log *log);

#ifdef __cplusplus
}
#endif

#endif
