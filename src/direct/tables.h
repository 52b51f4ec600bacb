/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The inside of look-up tables, for the backends of the family. */
#ifndef LR_DIRECT_TABLES_H
#define LR_DIRECT_TABLES_H

#include <lr/direct.h>

/* A distance this share of epsilon below a border between identifiers counts as on it, and an
 * offset whose sum of squares is this share above k^2 as within: rounding of sines must not decide
 * where voxels and borders coincide. */
#define LR_DIRECT_TIE 1e-9

/* All that is known of a kernel before its values: the frame, LORmap's numbers and mSR. */
struct lr_direct_shape {
    lr_direct_tables_info info;
    lr_resolution resolution; /* complete */
    double axes[3][3];        /* tof, radial, axial */
    int32_t (*offsets)[3];    /* owned [num_offsets] */
};

/* errors: as lr_direct_tables_create. */
lr_status lr_direct_shape_init(struct lr_direct_shape *shape, const lr_direct_tables_params *params);
void lr_direct_shape_finish(struct lr_direct_shape *shape);

/* The distance from the axis that kernel's values are those of: its interval's middle. */
double lr_direct_kernel_distance_mm(const struct lr_direct_shape *shape, int kernel);

/* True if the kernel is one of those of voxels on the negative radial side. */
bool lr_direct_kernel_is_mirrored(const struct lr_direct_shape *shape, int kernel);

/* --- kernels of a view, for devices that make mSRval --- */

/* Rows of mSRval: one where all kernels are the same, else one a kernel. */
int lr_direct_count_rows(const struct lr_direct_shape *shape);

/* Standard deviation of a kernel in mm, and its side: 1, or -1 where it is mirrored. */
void lr_direct_describe_kernel(const struct lr_direct_shape *shape, int kernel, double described[2]);

/* Values of a measured profile; 0: kernels are Gaussians. */
int lr_direct_count_samples(const struct lr_direct_shape *shape);

/* The measured profile at the distance of each kernel, at the measured offsets: [rows][samples]. */
void lr_direct_list_samples(const struct lr_direct_shape *shape, float *samples);

#endif
