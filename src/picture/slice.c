/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "picture/slice.h"

#include "base/log.h"
#include "picture/axes.h"
#include "picture/font.h"

#include <math.h>
#include <stdio.h>

enum { usual_side = 256, strip_height = 20, space = 6 };
enum { least_bar = 60, power_room = 36 /* space for a power of ten before the unit */ };

static const lr_colour black = {0, 0, 0}, white = {255, 255, 255};

const int lr_slice_axes[3][2] = {{1, 2}, {0, 2}, {0, 1}};

lr_map_params lr_slice_map(const lr_grid *grid, const float *values, int axis, int slice)
{
    const int *size = grid->size, across = lr_slice_axes[axis][0], up = lr_slice_axes[axis][1];
    const int64_t stride[3] = {1, size[0], (int64_t)size[0] * size[1]};
    return (lr_map_params){.values = values + slice * stride[axis] + (size[across] - 1) * stride[across],
                           .size = {size[across], size[up]},
                           .stride = {-stride[across], stride[up]}};
}

/* One slice of an image, and where it is in the picture. */
struct view {
    int across, up; /* axes of the image that grow to the left and upwards */
    double pixels_per_mm;
    lr_map_params map;
};

static int drawn_pixels(double mm, double pixels_per_mm)
{
    const double pixels = floor(mm * pixels_per_mm + 0.5);
    return pixels < 1.0 ? 1 : pixels > 65536.0 ? 65536 : (int)pixels;
}

/* --- axes and bars around the slice --- */

struct layout {
    int corner[2]; /* corner of the slice */
    int size[2];   /* size of the picture */
    int strip;     /* top edge of the strip with the scale bar */
    int bar_left;  /* left edge of the colour bar */
    double length_mm;
    char length[32];
    struct lr_axes axes;
    lr_bar_params bar;
};

static struct layout arrange(const struct view *view, const lr_slice_params *params)
{
    static const lr_text_style style = {.size_px = lr_font_small};
    const int *drawn = view->map.drawn_size;
    struct layout layout = {0};
    struct lr_margins margins = {0};
    if (params->axes) {
        const lr_grid *grid = &params->image->grid;
        const struct lr_axis across = lr_grid_axis(grid, view->across);
        layout.axes = (struct lr_axes){.size = {drawn[0], drawn[1]},
                                       .across = {across.high, across.low, across.name, false},
                                       .up = lr_grid_axis(grid, view->up),
                                       .ink = black};
        margins = lr_axes_margins(&layout.axes);
    }
    layout.corner[0] = layout.axes.corner[0] = margins.left;
    layout.corner[1] = layout.axes.corner[1] = margins.top;
    layout.size[0] = margins.left + drawn[0] + margins.right;
    layout.size[1] = margins.top + drawn[1] + margins.bottom;
    if (params->colour_bar) {
        const int unit = params->unit != NULL ? lr_picture_text_width(params->unit, &style) : 0;
        const int least = lr_larger(least_bar, unit + power_room);
        layout.bar = (lr_bar_params){.size = {0, lr_larger(drawn[1], least)},
                                     .low = view->map.low,
                                     .high = view->map.high,
                                     .colours = view->map.colours,
                                     .unit = params->unit,
                                     .text = black};

        /* The bar may be higher than the slice, and must not cover the label at the slice's right edge. */
        layout.bar_left = margins.left + drawn[0] + lr_larger(space, margins.right);
        layout.size[0] = layout.bar_left + lr_picture_bar_width(&layout.bar);
        layout.size[1] = lr_larger(layout.size[1], margins.top + layout.bar.size[1] + lr_font_small);
    }
    if (params->scale_bar) {
        /* The length of the scale bar is 1, 2 or 5 times a power of ten in mm, at most two fifths of the slice. Its
         * text may be wider than the slice. */
        const double most_mm = 0.4 * drawn[0] / view->pixels_per_mm;
        const double power = pow(10.0, floor(log10(most_mm))), digit = most_mm / power;
        layout.length_mm = power * (digit >= 5.0 ? 5.0 : digit >= 2.0 ? 2.0 : 1.0);

        snprintf(layout.length, sizeof(layout.length), "%g mm", layout.length_mm);
        const int words =
            drawn_pixels(layout.length_mm, view->pixels_per_mm) + space + lr_picture_text_width(layout.length, &style);
        layout.strip = layout.size[1];
        layout.size[0] = lr_larger(layout.size[0], layout.corner[0] + words);
        layout.size[1] += strip_height;
    }

    return layout;
}

lr_picture *lr_picture_slice_sized(size_t given_bytes, const lr_slice_params *given)
{
    LR_TAKE(lr_slice_params, params, given, given_bytes);
    if (params->image == NULL || lr_grid_check(&params->image->grid, params->log) != LR_OK) return NULL;
    const lr_grid *grid = &params->image->grid;
    const int normal = params->plane == LR_PLANE_TRANSAXIAL ? 2 : params->plane == LR_PLANE_CORONAL ? 1 : 0;
    const int *axes = lr_slice_axes[normal];
    struct view view = {.across = axes[0], .up = axes[1]};
    const double place = floor((params->position_mm - grid->origin_mm[normal]) / grid->voxel_mm[normal] + 0.5);
    const int slice = place < 1.0 ? 0 : place >= grid->size[normal] ? grid->size[normal] - 1 : (int)place;

    /* The longer side has about 256 pixels. If a voxel's edge has more than one pixel, the edge has a whole
     * number of pixels. */
    const double across_mm = grid->size[view.across] * grid->voxel_mm[view.across];
    const double up_mm = grid->size[view.up] * grid->voxel_mm[view.up];
    const double scale = usual_side / fmax(across_mm, up_mm);
    const double smaller_mm = fmin(grid->voxel_mm[view.across], grid->voxel_mm[view.up]);
    const double per_voxel = scale * smaller_mm;
    view.pixels_per_mm = params->pixels_per_mm > 0.0 ? params->pixels_per_mm
                         : per_voxel >= 1.0          ? floor(per_voxel) / smaller_mm
                                                     : scale;

    view.map = lr_slice_map(grid, params->image->values, normal, slice);
    view.map.colours = params->colours;
    view.map.low = params->low;
    view.map.high = params->high;
    for (int k = 0; k < 2; k++)
        view.map.drawn_size[k] = drawn_pixels(grid->size[axes[k]] * grid->voxel_mm[axes[k]], view.pixels_per_mm);
    if (params->low == 0.0 && params->high == 0.0) {
        /* Colours show the range up to the largest value. The range begins at the smallest value, or at 0 if no value
           is negative. */
        double low = 0.0, high = -INFINITY;
        for (int row = 0; row < view.map.size[1]; row++) {
            for (int column = 0; column < view.map.size[0]; column++) {
                const double value = view.map.values[column * view.map.stride[0] + row * view.map.stride[1]];
                low = value < low ? value : low;
                high = value > high ? value : high;
            }
        }
        view.map.low = low;
        view.map.high = high > low ? high : low + 1.0;
    }

    const struct layout layout = arrange(&view, params);
    lr_picture *picture = lr_picture_create(layout.size, params->log);
    if (picture == NULL) return NULL;
    lr_picture_fill(picture, (int[2]){0, 0}, layout.size, white);
    lr_picture_map(picture, layout.corner, &view.map);
    if (params->axes) lr_axes_draw(picture, &layout.axes);
    if (params->scale_bar) {
        const lr_text_style style = {.colour = black, .size_px = lr_font_small};
        const int length = drawn_pixels(layout.length_mm, view.pixels_per_mm);
        const int left = layout.corner[0], y = layout.strip + strip_height / 2;
        lr_picture_fill(picture, (int[2]){left, y - 1}, (int[2]){length, 3}, black);
        lr_picture_text(picture, (int[2]){left + length + space, y - lr_picture_text_height(&style) / 2}, layout.length,
                        &style);
    }

    if (params->colour_bar) lr_picture_bar(picture, (int[2]){layout.bar_left, layout.corner[1]}, &layout.bar);
    lr_font_tell(params->log);
    return picture;
}
