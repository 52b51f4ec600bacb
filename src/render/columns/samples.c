/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "render/columns/scene.h"

int lr_columns_num_points(const struct lr_columns *columns, int axis)
{
    return columns->params.grid->size[axis] * columns->params.samples[axis];
}

double lr_columns_coordinate(const struct lr_columns *columns, int axis, int k)
{
    const lr_grid *grid = columns->params.grid;
    const int samples = columns->params.samples[axis];
    const double offset = (k % samples + 0.5) / samples - 0.5;
    return grid->origin_mm[axis] + (k / samples + offset) * grid->voxel_mm[axis];
}

double lr_columns_middle(const struct lr_columns *columns, int axis)
{
    const int last = lr_columns_num_points(columns, axis) - 1;
    return 0.5 * (lr_columns_coordinate(columns, axis, 0) + lr_columns_coordinate(columns, axis, last));
}
