/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "operator/facade.h"

#include "base/log.h"
#include "base/units.h"

#include <math.h>
#include <stdlib.h>

/* The Gaussian is cut at this number of standard deviations. A fraction of 6e-5 lies beyond the cut. */
static const double cut = 4.0;

/* Share of a voxel that its neighbour gets, below which the image stays as it is. */
static const double negligible = 1e-3;

/* --- the kernel --- */

/* Sets the kernel for images on a grid. Warns of a Gaussian that changes nothing. errors: LR_USAGE; psf is then
 * unchanged. */
static lr_status set_kernel(struct lr_psf *psf, const lr_grid *grid, const double fwhm_mm[3], const lr_log *log)
{
    for (int axis = 0; axis < 3; axis++) {
        const double extent_mm = grid->size[axis] * grid->voxel_mm[axis];
        const double reach = cut * fwhm_mm[axis] / LR_FWHM_PER_SIGMA / grid->voxel_mm[axis];
        if (!isfinite(fwhm_mm[axis]) || fwhm_mm[axis] < 0.0) {
            return lr_error(log, LR_USAGE,
                            "a resolution of %g mm along %c: give the FWHM of the Gaussian in mm, or 0 for none",
                            fwhm_mm[axis], "xyz"[axis]);
        }
        /* A single slice may be thinner than the resolution along its normal. */
        if (grid->size[axis] > 1 && fwhm_mm[axis] > extent_mm) {
            return lr_error(log, LR_USAGE,
                            "a resolution of %g mm along %c is wider than the image, which is %g mm there: is it in "
                            "mm?",
                            fwhm_mm[axis], "xyz"[axis], extent_mm);
        }
        if (reach >= LR_CONVOLUTION_REACH - 1) {
            return lr_error(log, LR_USAGE,
                            "a resolution of %g mm along %c reaches over more than %d voxels of %g mm: is it in mm?",
                            fwhm_mm[axis], "xyz"[axis], LR_CONVOLUTION_REACH - 1, grid->voxel_mm[axis]);
        }
    }
    lr_psf_finish(psf);
    psf->log = log;
    double share = 0.0;
    for (int axis = 0; axis < 3; axis++) {
        const double sigma = fwhm_mm[axis] / LR_FWHM_PER_SIGMA;
        psf->size[axis] = grid->size[axis];
        if (sigma > 0.0) {
            /* Integral of the Gaussian over each voxel. The integrals sum to 1. */
            const double sigma_voxels = sigma / grid->voxel_mm[axis];
            double *weights = psf->weights[axis], sum = 0.0;
            const double scale = 1.0 / (sigma_voxels * sqrt(2.0));
            const int reach = psf->reach[axis] = (int)ceil(cut * sigma_voxels);
            for (int k = 0; k <= reach; k++) {
                weights[k] = erf((k + 0.5) * scale) - erf((k - 0.5) * scale);
                sum += k > 0 ? 2.0 * weights[k] : weights[k];
            }
            for (int k = 0; k <= reach; k++) weights[k] /= sum;
            psf->is_on = true;
            share = fmax(share, weights[1]);
        }
    }
    if (psf->is_on && share < negligible) {
        const double *voxel_mm = grid->voxel_mm;
        lr_warn(log, "a resolution of %g x %g x %g mm changes nothing on voxels of %g x %g x %g mm: is it in mm?",
                fwhm_mm[0], fwhm_mm[1], fwhm_mm[2], voxel_mm[0], voxel_mm[1], voxel_mm[2]);
    }
    return LR_OK;
}

/* Warns of a resolution that is much wider than crystals. */
static void warn_of_width(const lr_operator *op, const double fwhm_mm[3])
{
    static const double many = 3; /* widths of a crystal; known scanners resolve half of one to one and a half */
    const lr_lors *lors = op->listmode != NULL ? op->listmode->lors : op->info.lors;
    const lr_scanner *scanner = lors != NULL ? lors->scanner : NULL;
    const double widest_mm = fmax(fwhm_mm[0], fmax(fwhm_mm[1], fwhm_mm[2]));
    double pitch_mm = 0;
    for (int m = 0; scanner != NULL && m < scanner->num_modules; m++)
        pitch_mm = fmax(pitch_mm, fmax(scanner->modules[m].pitch_mm[0], scanner->modules[m].pitch_mm[1]));
    if (pitch_mm > 0 && widest_mm > many * pitch_mm) {
        lr_warn(op->params.log,
                "the point spread function: a resolution of %g mm is much wider than the crystals of %g mm: is it the "
                "FWHM in mm? What it spreads beyond the image's edge is not counted, so that the image's sum grows",
                widest_mm, pitch_mm);
    }
}

lr_status lr_operator_set_psf(lr_operator *op, const double fwhm_mm[3])
{
    if (op->info.num_voxels != lr_grid_num_voxels(&op->grid)) {
        return lr_error(op->params.log, LR_USAGE,
                        "a resolution in image space is of voxels, and this image is of blobs");
    }
    LR_TRY(set_kernel(&op->psf, &op->grid, fwhm_mm, op->params.log));
    warn_of_width(op, fwhm_mm);
    return LR_OK;
}

lr_status lr_image_smooth(lr_image *image, const double fwhm_mm[3], const lr_log *log)
{
    struct lr_psf psf = {.log = log};
    lr_vector values = lr_image_vector(image);
    lr_status status = lr_grid_check(&image->grid, log);
    status = status == LR_OK ? set_kernel(&psf, &image->grid, fwhm_mm, log) : status;
    status = status == LR_OK ? lr_psf_apply(&psf, &values) : status;
    lr_psf_finish(&psf);
    return status;
}

void lr_psf_finish(struct lr_psf *psf)
{
    lr_vector_destroy(&psf->scratch[0]);
    lr_vector_destroy(&psf->scratch[1]);
    *psf = (struct lr_psf){0};
}

/* --- at work --- */

lr_status lr_psf_blur(struct lr_psf *psf, const lr_vector *image, const lr_vector **blurred)
{
    *blurred = image;
    if (!psf->is_on) return LR_OK;
    /* Scratch images are at the image's place and in its precision. */
    for (int k = 0; k < 2; k++) {
        lr_vector *scratch = &psf->scratch[k];
        const bool is_there =
            scratch->storage != NULL && scratch->place == image->place && scratch->precision == image->precision;
        if (is_there) continue;
        lr_vector_destroy(scratch);
        LR_TRY(lr_vector_create(&(lr_vector_params){.place = image->place,
                                                    .count = image->count,
                                                    .precision = image->precision,
                                                    .name = "a blurred image",
                                                    .log = psf->log},
                                scratch));
    }

    for (int axis = 0; axis < 3; axis++) {
        if (psf->reach[axis] == 0) continue;
        lr_vector *to = &psf->scratch[*blurred == &psf->scratch[0] ? 1 : 0];
        const int *size = psf->size;
        LR_TRY(lr_vector_convolve(&(lr_convolution){.size = {size[0], size[1], size[2]},
                                                    .axis = axis,
                                                    .reach = psf->reach[axis],
                                                    .weights = psf->weights[axis],
                                                    .x = *blurred,
                                                    .y = to}));
        *blurred = to;
    }
    return LR_OK;
}

lr_status lr_psf_apply(struct lr_psf *psf, lr_vector *image)
{
    const lr_vector *blurred;
    LR_TRY(lr_psf_blur(psf, image, &blurred));
    return blurred != image ? lr_vector_copy(blurred, image) : LR_OK;
}
