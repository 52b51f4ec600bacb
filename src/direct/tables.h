/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The look-up tables of a view, as the backends of the family direct use them. */
#ifndef LR_DIRECT_TABLES_H
#define LR_DIRECT_TABLES_H

#include <lr/direct.h>

/* Share by which borders are moved, so that rounding does not decide on which side a voxel on a border is. A distance
 * that is below a border between identifiers by this share of epsilon counts as on the border. An offset whose sum of
 * squares exceeds k^2 by this share counts as within the ellipsoid. */
#define LR_DIRECT_TIE 1e-9

/* The parts of a kernel that are known before its values: the frame, LORmap's numbers and mSR. */
struct lr_direct_shape {
    lr_direct_tables_info info;
    lr_resolution resolution; /* complete */
    double axes[3][3];        /* tof, radial, axial */
    int32_t (*offsets)[3];    /* owned [num_offsets] */
};

/* errors: as lr_direct_tables_create. */
lr_status lr_direct_shape_init(struct lr_direct_shape *shape, const lr_direct_tables_params *params);
void lr_direct_shape_finish(struct lr_direct_shape *shape);

/* The distance from the axis at which the kernel's values are computed: the middle of its interval. */
double lr_direct_kernel_distance_mm(const struct lr_direct_shape *shape, int kernel);

/* True if the kernel is of voxels on the negative radial side. */
bool lr_direct_kernel_is_mirrored(const struct lr_direct_shape *shape, int kernel);

/* --- kernels of a view, for devices that make mSRval --- */

/* Number of rows of mSRval: one if all kernels are the same, else one per kernel. */
int lr_direct_count_rows(const struct lr_direct_shape *shape);

/* Standard deviation of a kernel in mm, and its side: 1, or -1 if it is mirrored. */
void lr_direct_describe_kernel(const struct lr_direct_shape *shape, int kernel, double described[2]);

/* Number of values of a measured profile; 0 if kernels are Gaussians. */
int lr_direct_count_samples(const struct lr_direct_shape *shape);

/* The measured profile at the distance of each kernel, at the measured offsets: [rows][samples]. */
void lr_direct_list_samples(const struct lr_direct_shape *shape, float *samples);

/* --- the system response across and along a line: docs/method/direct.md, "Widths" --- */

/* Replaces every default.
 * errors: LR_USAGE for widths that are not positive, LR_BAD_INPUT for measured profiles that make no kernel. */
lr_status lr_resolution_complete(const lr_resolution *resolution, lr_resolution *complete, const lr_log *log);

/* Standard deviation of a Gaussian with this FWHM. */
double lr_sigma_of(double fwhm);

/* The functions below take a complete resolution. */

/* The profile across the line, up to a factor, for a line at this distance from the axis. outward_mm > 0 is farther
 * from the axis. */
double lr_resolution_profile(const lr_resolution *resolution, double distance_mm, double outward_mm);

/* True if every profile is symmetric: it does not change if it is mirrored. */
bool lr_resolution_is_symmetric(const lr_resolution *resolution);

/* A standard deviation for the widest profile up to this distance from the axis. k times the result reaches to the k-th
 * standard deviation of every Gaussian of the profile, or to the end of a measured profile. */
double lr_resolution_widest_sigma(const lr_resolution *resolution, double most_distance_mm, double k);

/* Value of a measured profile, by linear interpolation; 0 beyond its offsets. */
double lr_radial_profiles_at(const lr_radial_profiles *profiles, double distance_mm, double outward_mm);

#endif
