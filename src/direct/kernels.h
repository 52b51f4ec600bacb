/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What the kernels of a view differ in, for devices that make mSRval. */
#ifndef LR_DIRECT_KERNELS_H
#define LR_DIRECT_KERNELS_H

#include "direct/tables.h"

/* Rows of mSRval: one where all kernels are the same, else one a kernel. */
int lr_direct_count_rows(const struct lr_direct_shape *shape);

/* Standard deviation of a kernel in mm, and its side: 1, or -1 where it is mirrored. */
void lr_direct_describe_kernel(const struct lr_direct_shape *shape, int kernel, double described[2]);

/* Values of a measured profile; 0: kernels are Gaussians. */
int lr_direct_count_samples(const struct lr_direct_shape *shape);

/* The measured profile at the distance of each kernel, at the measured offsets: [rows][samples]. */
void lr_direct_list_samples(const struct lr_direct_shape *shape, float *samples);

#endif
