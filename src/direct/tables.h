/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Look-up tables of a view, for the backends of the family direct. */
#pragma once

#include <lr/direct.h>

/* Relative tolerance at borders, so that rounding does not decide on which side of a border a voxel is. A distance on a
 * border between identifiers, or below it by at most this fraction of epsilon, counts as on the border. An offset
 * counts as inside the ellipsoid if its sum of squares is at most k^2 (1 + LR_DIRECT_TIE). */
#define LR_DIRECT_TIE 1e-9

/* The parts of a kernel that do not need its values: the frame, the numbers of LORmap, and mSR. */
struct lr_direct_shape {
    lr_direct_tables_info info;
    lr_resolution resolution; /* complete */
    double axes[3][3];        /* tof, radial, axial */
    int32_t (*offsets)[3];    /* owned [num_offsets] */
};

/* errors: as for lr_direct_tables_create. */
lr_status lr_direct_shape_init(struct lr_direct_shape *shape, const lr_direct_tables_params *params);
void lr_direct_shape_finish(struct lr_direct_shape *shape);

/* The distance from the axis for which a kernel's values are computed, mm: the middle of the kernel's interval. */
double lr_direct_kernel_distance_mm(const struct lr_direct_shape *shape, int kernel);

/* True if the kernel is for voxels on the negative radial side. */
bool lr_direct_kernel_is_mirrored(const struct lr_direct_shape *shape, int kernel);

/* The offsets of mSR with the same x and y. An ellipsoid is convex, so there is one offset for each slice from `low` to
 * `high`. The offsets are numbered from `first` on. */
struct lr_direct_column {
    int32_t first;
    int low, high; /* low > high: no offsets */
};

/* Lists mSR by columns: [2 half y + 1][2 half x + 1]. The caller frees the list. errors: NULL, logged. */
struct lr_direct_column *lr_direct_list_columns(const struct lr_direct_shape *shape, const lr_log *log);

/* Returns the column at (x, y). If x or y is beyond mSR, the returned column is empty. */
const struct lr_direct_column *lr_direct_column_at(const struct lr_direct_shape *shape,
                                                   const struct lr_direct_column *columns, int x, int y);

/* --- kernels of a view, for devices that make mSRval --- */

/* The number of rows of mSRval: 1 if all kernels are the same, else one per kernel. */
int lr_direct_count_rows(const struct lr_direct_shape *shape);

/* Sets described[0] to the standard deviation of a kernel, mm, and described[1] to its side: 1, or -1 if mirrored. */
void lr_direct_describe_kernel(const struct lr_direct_shape *shape, int kernel, double described[2]);

/* The number of values of a measured profile; 0 if kernels are Gaussian. */
int lr_direct_count_samples(const struct lr_direct_shape *shape);

/* Lists the measured profile at the distance of each kernel and at the measured offsets: samples [rows][samples]. */
void lr_direct_list_samples(const struct lr_direct_shape *shape, float *samples);

/* --- the system response across and along a line: docs/method/direct.md, "Widths" --- */

/* Replaces every default.
 * errors: LR_USAGE for invalid settings, such as a width that is not positive; LR_BAD_INPUT for measured profiles with
 * invalid distances, offsets or values. */
lr_status lr_resolution_complete(const lr_resolution *resolution, lr_resolution *complete, const lr_log *log);

/* Standard deviation of a Gaussian with this FWHM. */
double lr_sigma_of(double fwhm);

/* The functions below take a complete resolution. */

/* The profile across a line at this distance from the axis, up to a constant factor. outward_mm: offset across the
 * line, > 0 away from the axis. */
double lr_resolution_profile(const lr_resolution *resolution, double distance_mm, double outward_mm);

/* True if every profile is mirror-symmetric. */
bool lr_resolution_is_symmetric(const lr_resolution *resolution);

/* A standard deviation that is at least as large as that of the widest profile up to this distance from the axis. k
 * times the result reaches k standard deviations of every Gaussian profile, or the end of a measured profile. */
double lr_resolution_widest_sigma(const lr_resolution *resolution, double most_distance_mm, double k);

/* The value of a measured profile, linearly interpolated; 0 beyond its offsets. */
double lr_radial_profiles_at(const lr_radial_profiles *profiles, double distance_mm, double outward_mm);
