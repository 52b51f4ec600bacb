/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Whether histo-images are those of an operator. */
#include "base/log.h"

#include <lr/direct.h>
#include <math.h>

static lr_status check_grid(const lr_grid *a, const lr_grid *b, const lr_log *log)
{
    for (int k = 0; k < 3; k++) {
        const double slack_mm = 1e-3 * b->voxel_mm[k];
        if (a->size[k] != b->size[k] || fabs(a->voxel_mm[k] - b->voxel_mm[k]) * a->size[k] > slack_mm ||
            fabs(a->origin_mm[k] - b->origin_mm[k]) > slack_mm) {
            return lr_error(log, LR_BAD_INPUT,
                            "the histo-images have %d voxels of %g mm from %g mm along %c, and %d "
                            "of %g mm from %g mm are asked for: take the same grid for both",
                            a->size[k], a->voxel_mm[k], a->origin_mm[k], "xyz"[k], b -> size[k], b -> voxel_mm[k],
                            b -> origin_mm[k]);
        }
    }
    return LR_OK;
}

lr_status lr_histo_images_check(const lr_histo_images *histo, const lr_operator *op, const lr_log *log)
{
    const lr_direct_info *info = lr_direct_get_info(op);
    if (info == NULL) return lr_error(log, LR_USAGE, "histo-images belong to an operator of the family direct");
    LR_TRY(check_grid(&histo->grid, &info->grid, log));
    if (histo->num_views != info->num_views)
        return lr_error(log, LR_BAD_INPUT, "there are %d histo-images and %d views", histo->num_views, info->num_views);
    for (int k = 0; k < histo->num_views; k++) {
        const lr_view a = histo->views[k], b = info->views[k];
        if (fabs(a.azimuth_deg - b.azimuth_deg) > 1e-6 || fabs(a.tilt_deg - b.tilt_deg) > 1e-6) {
            return lr_error(log, LR_BAD_INPUT,
                            "histo-image %d is of azimuth %g and tilt %g degrees, and view %d of "
                            "%g and %g",
                            k, a.azimuth_deg, a.tilt_deg, k, b.azimuth_deg, b.tilt_deg);
        }
    }
    return LR_OK;
}
