/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/log.h"
#include "io/images/formats.h"

#include <math.h>

/* Largest angle between a voxel axis and an axis of our frame that still counts as along it. */
static const double max_tilt = 1e-4;

/* Finds which of our axes the file's axis f runs along. */
static lr_status match_axis(const struct lr_image_place *place, int f, struct lr_image_layout *layout,
                            const lr_log *log)
{
    double length2 = 0.0;
    int main_axis = 0;
    for (int k = 0; k < 3; k++) {
        length2 += place->affine[k][f] * place->affine[k][f];
        if (fabs(place->affine[k][f]) > fabs(place->affine[main_axis][f])) main_axis = k;
    }
    const double along = place->affine[main_axis][f];
    if (!isfinite(length2) || !(along * along > 1e-24)) {
        return lr_error(log, LR_BAD_INPUT, "%s has a voxel size of %g mm along its axis %d: repair its %s", place->path,
                        sqrt(length2), f + 1, place->field);
    }
    const double across2 = length2 - along * along;
    const double tilt = atan2(sqrt(across2 > 0.0 ? across2 : 0.0), fabs(along));
    if (tilt > max_tilt) {
        return lr_error(log, LR_BAD_INPUT,
                        "%s is oblique or sheared: its axis %d is turned by %.3g degrees against "
                        "x, y and z: resample it onto a straight grid",
                        place->path, f + 1, tilt * 57.29577951308232);
    }
    layout->axis[f] = main_axis;
    layout->flipped[f] = along < 0.0;
    layout->grid.size[main_axis] = layout->size[f];
    layout->grid.voxel_mm[main_axis] = fabs(along);
    return LR_OK;
}

lr_status lr_image_layout_find(const struct lr_image_place *place, struct lr_image_layout *layout, const lr_log *log)
{
    *layout = (struct lr_image_layout){.size = {place->size[0], place->size[1], place->size[2]}};
    for (int f = 0; f < 3; f++) LR_TRY(match_axis(place, f, layout, log));
    const int *axis = layout->axis;
    if (axis[0] == axis[1] || axis[1] == axis[2] || axis[0] == axis[2]) {
        return lr_error(log, LR_BAD_INPUT, "%s has two axes along the same direction: repair its %s", place->path,
                        place->field);
    }
    for (int f = 0; f < 3; f++) {
        const int k = axis[f];
        const double back = layout->flipped[f] ? layout->size[f] - 1 : 0;
        layout->grid.origin_mm[k] = place->affine[k][3] - back * layout->grid.voxel_mm[k];
    }
    return lr_grid_check(&layout->grid, log);
}

lr_status lr_image_layout_put(const struct lr_image_layout *layout, const struct lr_image_line *line, lr_image *image,
                              const lr_log *log)
{
    const int64_t strides[3] = {1, layout->grid.size[0], (int64_t)layout->grid.size[0] * layout->grid.size[1]};
    int64_t start = 0, step = 0;
    for (int f = 0; f < 3; f++) {
        const int64_t stride = strides[layout->axis[f]];
        const int at = f == 0 ? 0 : line->at[f];
        start += stride * (layout->flipped[f] ? layout->size[f] - 1 - at : at);
        step = f == 0 ? (layout->flipped[f] ? -stride : stride) : step;
    }
    for (int n = 0; n < layout->size[0]; n++) {
        const float value = (float)line->numbers[n];
        if (!isfinite(value)) {
            return lr_error(log, LR_BAD_INPUT,
                            "%s holds %g in its voxel (%d, %d, %d), counted from 0 as stored: "
                            "replace it with a finite number",
                            line->path, line->numbers[n], n, line->at[1], line->at[2]);
        }
        image->values[start + n * step] = value;
    }
    return LR_OK;
}
