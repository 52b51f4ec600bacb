/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The system response across and along a line (docs/method/direct.md, "Widths"). */
#ifndef LR_DIRECT_RESOLUTION_H
#define LR_DIRECT_RESOLUTION_H

#include <lr/direct.h>

/* Replaces every default. errors: LR_USAGE for widths that are not positive, LR_BAD_INPUT for
 * measured profiles that make no kernel. */
lr_status lr_resolution_complete(const lr_resolution *resolution, lr_resolution *complete, const lr_log *log);

/* Standard deviation of a Gaussian of that FWHM. */
double lr_sigma_of(double fwhm);

/* The functions below take a complete resolution. */

/* The profile across the line, without norm, at that distance from the axis; outward_mm > 0 leads
 * away from the axis. */
double lr_resolution_profile(const lr_resolution *resolution, double distance_mm, double outward_mm);

/* True if the profile looks the same in both directions everywhere. */
bool lr_resolution_is_symmetric(const lr_resolution *resolution);

/* Standard deviation that stands for the widest profile up to that distance: k of it enclose the
 * profile to the k-th standard deviation of each of its Gaussians, or all of a measured one. */
double lr_resolution_widest_sigma(const lr_resolution *resolution, double most_distance_mm, double k);

/* Value of a measured profile, by linear interpolation; 0 beyond its offsets. */
double lr_radial_profiles_at(const lr_radial_profiles *profiles, double distance_mm, double outward_mm);

#endif
