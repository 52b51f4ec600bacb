// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The rows of a batch: struct lr_plan_row of src/correspondence/plan.h.
#include "common/bindings.h"

struct Row {
    uint first_image, end_image; // range of images in the batch
    uint voxel;                  // row in the grid
    float factor;                // 1 / number of sample points
};
layout(std430, binding = LR_BIND_ROWS) readonly buffer Rows
{
    Row rows[];
};
