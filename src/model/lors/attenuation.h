/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Exact integrals of an attenuation map along lines: mu is constant in each voxel and 0 outside. */
#pragma once

#include <lr/grid.h>

/* A map ready for integrals. A zeroed struct is valid, and lr_mu_lines_finish then does nothing. */
struct lr_mu_lines {
    float *values; /* owned; the box around the voxels that are not zero, with a border of one voxel of zeros */
    int64_t stride[3];
    double size[3];   /* size of the box without its border; coordinates are 0 at its lowest corner */
    double corner[3]; /* lowest corner of the box, in voxels from the corner of the grid */
    double voxel_mm[3], origin_mm[3];
};

/* Copies the values. errors: LR_BAD_INPUT for a bad grid, a negative value or a value that is not finite. */
lr_status lr_mu_lines_init(struct lr_mu_lines *self, const lr_image *mu, const lr_log *log);
void lr_mu_lines_finish(struct lr_mu_lines *self);

/* Converts a point to the box's coordinates. */
void lr_mu_lines_place(const struct lr_mu_lines *self, const double point_mm[3], double place[3]);

/* The integral between two points in box coordinates: mu in 1/mm times mm. */
double lr_mu_lines_integral(const struct lr_mu_lines *self, const double from[3], const double to[3]);
