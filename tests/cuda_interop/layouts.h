/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * How images of a grid lie for CUDA, margins included. */
#ifndef LR_TEST_CUDA_LAYOUTS_H
#define LR_TEST_CUDA_LAYOUTS_H

#include "cuda_interop/direct/plans.h"

static inline lr_cuda_layout layout_of(const struct lr_direct_shape *shape)
{
    const int *size = shape->info.grid.size;
    lr_cuda_layout layout = {.size = {size[0], size[1], size[2]}, .quads = (size[2] + 3) / 4};
    int margin[3];
    lr_cuda_column_margins(shape, margin);
    for (int k = 0; k < 3; k++) {
        layout.margin[k] = margin[k];
        layout.extent[k] = (k == 0 ? layout.quads : size[k - 1]) + 2 * margin[k];
    }
    return layout;
}

#endif
