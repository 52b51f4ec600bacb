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

/* The share of 4 pi sr that the front faces of the crystals take up, seen from a point in mm: the solid angle of each
 * rectangle in closed form. Faces that look away from the point, and layers behind the first, are left out; modules
 * that hide each other count as if they did not. */
LR_API double lr_scanner_coverage(const lr_scanner *scanner, const double point_mm[3]);

/* What a scanner has of crystals. */
typedef struct lr_scanner_figures {
    int num_layers;            /* most layers of a block; 1 = none has layers */
    double inner_radius_mm;    /* distance from the z axis to the nearest point of a front face */
    double axial_mm;           /* length along z of all front faces together */
    double crystal_volume_mm3; /* faces times depths */
    /* share of the photons that meet the front of a crystal, go straight through all layers there, and are stopped;
     * NaN if the attenuation of a crystal is not known */
    double stopped;
} lr_scanner_figures;

LR_API lr_scanner_figures lr_scanner_measure(const lr_scanner *scanner);

/* Means of an image of sensitivities over voxels at equal distance: profile[z], of the voxels within one and a half
 * voxels of the scanner's axis (x = y = 0); profile[n], of the slice nearest to z = 0, between n and n + 1 voxel edges
 * (along x) from the axis. NaN where there is no voxel. profile: [size along z]; [count]. */
LR_API void lr_image_axial_profile(const lr_image *image, double *profile);
LR_API void lr_image_radial_profile(const lr_image *image, double *profile, int count);

/* The image of a small source. Zero fields are defaults. */
typedef struct lr_point_image_params {
    lr_operator *op;       /* required: family correspondence; the model of the measurement, on any grid */
    double at_mm[3];       /* place of the source */
    double source_fwhm_mm; /* FWHM of the source, a Gaussian in three dimensions; 0 = a point */
    int iterations;        /* 0 = 8 */
    int threads;           /* 0 = all processors */
    const lr_log *log;
    const lr_progress *progress;
} lr_point_image_params;

/* FWHM of the image of a source along x, y and z, in mm. The row of the source, without noise, is reconstructed by
 * ML-EM on a small grid around it, from thin lines between the places where crystals read hits
 * (lr_scanner_hit_centre), whose sensitivity is taken to be uniform there: the crystals' width and, with penetration,
 * the depth of interaction are in the measurement and not in the reconstruction. The source moves over the width of a
 * crystal, and its lines back again, so that the image does not depend on where it lies between two crystals. As in
 * NEMA NU 2 and NU 4, profiles are sums within a FWHM on either side, the maximum is that of a parabola, and half of
 * it is found by linear interpolation. Voxels are a quarter of the smallest pitch, larger where the image is wider
 * than the grid of 33 voxels. fwhm_mm: NaN along an axis where it is wider still, and if no LOR sees the source.
 * errors: LR_USAGE for another family; LR_FAILED; LR_CANCELLED. */
LR_SIZED(lr_point_image_params, lr_status, lr_point_image_fwhm,
         (const lr_point_image_params *params, double fwhm_mm[3]), (params, fwhm_mm));

#ifdef __cplusplus
}
#endif

#endif
