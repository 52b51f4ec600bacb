/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_DESIGN_H
#define LR_DESIGN_H

#include <lr/operator.h>
#include <lr/scanner.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Figures by which designs of scanners are compared. Any thread may call these functions. */

/* The share of the full solid angle (4 pi) that the front faces of the crystals cover, seen from a point in mm. The
 * solid angle of each rectangular face is exact. Faces that look away from the point, and layers behind the first one,
 * are left out. All other faces count in full, even if modules hide each other. */
LR_API double lr_scanner_coverage(const lr_scanner *scanner, const double point_mm[3]);

/* Figures of the crystals of a scanner. */
typedef struct lr_scanner_figures {
    int num_layers;            /* largest number of layers of a block; 1 = no block has layers */
    double inner_radius_mm;    /* distance from the z axis to the nearest point of a front face */
    double low_mm[3];          /* lower corner of the box around all front faces */
    double high_mm[3];         /* its upper corner */
    double crystal_volume_mm3; /* faces times depths */
    /* share of photons that the crystals stop, for photons on paths perpendicular to a front face and through all
     * layers behind this face; NaN if the attenuation of a crystal is not known */
    double stopped;
} lr_scanner_figures;

/* Returns the figures of a valid scanner. */
LR_API lr_scanner_figures lr_scanner_measure(const lr_scanner *scanner);

/* Warns about a grid whose shape, size or place suggests swapped axes, voxels in another unit than mm, or an origin that
 * is not the centre of the first voxel. Returns true if it has warned. Single slices give no warning, and regions of
 * interest only if they begin in the scanner's middle along x and y. lr_operator_create, lr_deposit_create,
 * lr_direct_factors_create and the sensitivity of list mode call this function themselves. */
LR_API bool lr_grid_warn_slip(const lr_grid *grid, const lr_scanner *scanner, const lr_log *log);

/* Profiles of a sensitivity image. The axial profile[z] is the mean over the voxels of slice z within one and a half
 * voxels of the scanner's axis (x = y = 0); its length is the image's size along z. The radial profile[n], n < count,
 * is the mean over the voxels of the slice nearest to z = 0 whose distance from the axis is n to n + 1 voxel edges
 * (along x). A mean over no voxels is NaN. */
LR_API void lr_image_axial_profile(const lr_image *image, double *profile);
LR_API void lr_image_radial_profile(const lr_image *image, double *profile, int count);

/* The image of a small source. Zero fields are defaults. */
typedef struct lr_point_image_params {
    lr_operator *op;       /* required; the model of the measurement: an operator of the family correspondence, on any
                              grid */
    double at_mm[3];       /* place of the source */
    double source_fwhm_mm; /* FWHM of the source, a Gaussian in three dimensions; 0 = a point */
    int iterations;        /* number of iterations; 0 = 8 */
    int threads;           /* 0 = all processors */
    const lr_log *log;
    const lr_progress *progress;
} lr_point_image_params;

/* FWHM of the image of a source along x, y and z, in mm. The measured data are the matrix row of the source, without
 * noise. ML-EM reconstructs an image from these data on a small grid around the source, with a uniform sensitivity.
 * This reconstruction uses thin lines between the hit centres of crystals (lr_scanner_hit_centre). Only the measurement
 * therefore contains the width of the crystals and, with penetration, the depth of interaction.
 *
 * The source is put at several points over the width of a crystal, and the lines of each point are moved back by the
 * same vector. The image then does not depend on the position of the source between two crystals. As in NEMA NU 2 and
 * NU 4, a profile is summed over the lines of voxels within a FWHM of the peak. A parabola gives its maximum, and
 * linear interpolation gives the positions of half the maximum. Voxels are a quarter of the smallest pitch, or larger
 * if the image is too wide for the grid of 33 voxels. fwhm_mm: NaN along an axis on which the image is too wide for the
 * largest voxels; all NaN if no LOR sees the source. errors: LR_USAGE for an operator of another
 * family; LR_FAILED; LR_CANCELLED. */
LR_SIZED(lr_point_image_params, lr_status, lr_point_image_fwhm,
         (const lr_point_image_params *params, double fwhm_mm[3]), (params, fwhm_mm));

#ifdef __cplusplus
}
#endif

#endif
