/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "listmode/tube.h"

#include <math.h>

#define FOUR_LN_2 2.7725887222397812

double lr_listmode_tube_value(const lr_listmode_tube *tube, double distance_mm)
{
    const double within = fmin(distance_mm / (0.5 * tube->width_mm), 1.0);
    if (tube->table == NULL) {
        const double ratio = within * 0.5 * tube->width_mm / tube->fwhm_mm;
        return exp(-FOUR_LN_2 * ratio * ratio);
    }
    const int last = tube->table_count - 1;
    const double at = within * last;
    const int k = at < last ? (int)at : last - 1;
    return tube->table[k] + (at - k) * (tube->table[k + 1] - tube->table[k]);
}

void lr_listmode_tube_halves(const struct lr_listmode_model *model,
                             const struct lr_listmode_line *line,
                             const struct lr_listmode_walk *walk, double halves[2])
{
    const double radius = sqrt(lr_listmode_rim(&model->tube)) / line->direction[line->axis];
    for (int k = 0; k < 2; k++) {
        const double other = line->direction[walk->across[1 - k]];
        halves[k] =
            radius * sqrt(fmax(1.0 - other * other, 0.0)) / model->grid.voxel_mm[walk->across[k]];
    }
}
