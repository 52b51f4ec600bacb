/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The layout of a grid's images in CUDA's memory, including margins. */
#pragma once

#include "../cases.h"
#include "direct/cases.h"

#include "cuda_interop/direct/plans.h"
#include "on_cpu.h"

enum { FLOATS = 4 };

/* Margins that are wide enough for all views; there must be at least one view. */
static inline lr_cuda_layout layout_of(const lr_direct_tables_params *params, const lr_view *views, int num_views)
{
    const int *size = params->grid->size;
    lr_cuda_layout layout = {.size = {size[0], size[1], size[2]}, .quads = (size[2] + 3) / 4};
    for (int view = 0; view < num_views; view++) {
        lr_direct_tables_params of_view = *params;
        struct lr_direct_shape shape;
        int margin[3];
        of_view.view = views[view];
        assert_ok(lr_direct_shape_init(&shape, &of_view));
        lr_cuda_column_margins(&shape, margin);
        for (int k = 0; k < 3; k++) layout.margin[k] = margin[k] > layout.margin[k] ? margin[k] : layout.margin[k];
        lr_direct_shape_finish(&shape);
    }
    for (int k = 0; k < 3; k++) layout.extent[k] = (k == 0 ? layout.quads : size[k - 1]) + 2 * layout.margin[k];
    return layout;
}

static inline int64_t column_of(const lr_cuda_layout *layout, int64_t x, int64_t y)
{
    return x + layout->margin[1] + layout->extent[1] * (y + layout->margin[2]);
}

/* Copy an image from the grid's order to the order of texels, and back. */
static inline void reorder(const lr_cuda_layout *layout, double *image, float *texels, bool to_texels)
{
    const int *size = layout->size;
    for (int64_t k = 0; k < (int64_t)size[0] * size[1] * size[2]; k++) {
        const int64_t column = column_of(layout, k % size[0], k / size[0] % size[1]), z = k / size[0] / size[1];
        float *texel = texels + FLOATS * (layout->extent[0] * column + layout->margin[0]) + z;
        if (to_texels)
            *texel = (float)image[k];
        else
            image[k] = (double)*texel;
    }
}
