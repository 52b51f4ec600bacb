/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A chart of a sampled row's errors over R, both axes logarithmic. */
#ifndef LR_PICTURE_ERROR_CHART_H
#define LR_PICTURE_ERROR_CHART_H

#include <lr/compare.h>
#include <lr/picture.h>

/* Relative error per element that R x R samples leave: 0.6 / R, within 0.8 / R. */
#define LR_SAMPLING_LAW 0.6

struct lr_error_chart {
    int size[2]; /* with its axes and legend */
    const int *rays;
    const lr_row_error *errors; /* [count] */
    int count;
};

void lr_draw_error_chart(lr_picture *picture, const int corner[2], const struct lr_error_chart *chart);

#endif
