/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include <lr/picture.h>

#include "base/log.h"
#include "picture/font.h"

#include <math.h>
#include <stdio.h>

enum { usual_side = 256, strip_height = 20, bar_room = 72, bar_width = 10, space = 6 };

static const lr_colour black = {0, 0, 0}, white = {255, 255, 255};

/* One slice of an image: which axes it shows and how large. */
struct view {
    int across, up, normal; /* axes of the image */
    int slice;
    int64_t stride[3]; /* elements to the next voxel along each axis */
    double pixels_per_mm;
    lr_map_params map;
};

static void choose_axes(struct view *view, lr_plane plane)
{
    view->across = plane == LR_PLANE_SAGITTAL ? 1 : 0;
    view->up = plane == LR_PLANE_TRANSAXIAL ? 1 : 2;
    view->normal = 3 - view->across - view->up;
}

static int nearest_slice(const lr_grid *grid, int axis, double position_mm)
{
    const double place = floor((position_mm - grid->origin_mm[axis]) / grid->voxel_mm[axis] + 0.5);
    return place < 1.0 ? 0 : place >= grid->size[axis] ? grid->size[axis] - 1 : (int)place;
}

/* About 256 pixels for the longer side, and whole pixels per voxel where there are several. */
static double usual_scale(const struct view *view, const lr_grid *grid)
{
    const double across = grid->size[view->across] * grid->voxel_mm[view->across];
    const double up = grid->size[view->up] * grid->voxel_mm[view->up];
    const double scale = usual_side / fmax(across, up);
    const double smaller = fmin(grid->voxel_mm[view->across], grid->voxel_mm[view->up]);
    const double per_voxel = scale * smaller;
    return per_voxel >= 1.0 ? floor(per_voxel) / smaller : scale;
}

static int drawn_pixels(double mm, double pixels_per_mm)
{
    const double pixels = floor(mm * pixels_per_mm + 0.5);
    return pixels < 1.0 ? 1 : pixels > 65536.0 ? 65536 : (int)pixels;
}

/* From 0, or the least if negative, to the largest. */
static void choose_range(lr_map_params *map)
{
    double low = 0.0, high = -INFINITY;
    for (int row = 0; row < map->size[1]; row++) {
        for (int column = 0; column < map->size[0]; column++) {
            const double value = map->values[column * map->stride[0] + row * map->stride[1]];
            low = value < low ? value : low;
            high = value > high ? value : high;
        }
    }
    map->low = low;
    map->high = high > low ? high : low + 1.0;
}

static struct view make_view(const lr_slice_params *params)
{
    const lr_grid *grid = &params->image->grid;
    struct view view = {.stride = {1, grid->size[0], (int64_t)grid->size[0] * grid->size[1]}};
    choose_axes(&view, params->plane);
    view.slice = nearest_slice(grid, view.normal, params->position_mm);
    view.pixels_per_mm =
        params->pixels_per_mm > 0.0 ? params->pixels_per_mm : usual_scale(&view, grid);
    const int axes[2] = {view.across, view.up};
    view.map.values = params->image->values + view.slice * view.stride[view.normal];
    view.map.colours = params->colours;
    view.map.low = params->low;
    view.map.high = params->high;
    for (int k = 0; k < 2; k++) {
        view.map.size[k] = grid->size[axes[k]];
        view.map.stride[k] = view.stride[axes[k]];
        view.map.drawn_size[k] =
            drawn_pixels(grid->size[axes[k]] * grid->voxel_mm[axes[k]], view.pixels_per_mm);
    }
    if (params->low == 0.0 && params->high == 0.0) {
        choose_range(&view.map);
    }
    return view;
}

/* The largest 1, 2 or 5 times a power of ten that is at most `mm`. */
static double round_length(double mm)
{
    const double power = pow(10.0, floor(log10(mm)));
    const double digit = mm / power;
    return power * (digit >= 5.0 ? 5.0 : digit >= 2.0 ? 2.0 : 1.0);
}

static void draw_scale_bar(lr_picture *picture, const struct view *view)
{
    const int *drawn = view->map.drawn_size;
    const double length_mm = round_length(0.4 * drawn[0] / view->pixels_per_mm);
    const int length = drawn_pixels(length_mm, view->pixels_per_mm);
    const int y = drawn[1] + strip_height / 2;
    lr_picture_fill(picture, (int[2]){0, y - 1}, (int[2]){length, 3}, black);
    char text[32];
    snprintf(text, sizeof(text), "%g mm", length_mm);
    lr_picture_text(picture, (int[2]){length + space, y - lr_font_height / 2}, text,
                    &(lr_text_style){.colour = black});
}

static void draw_colour_bar(lr_picture *picture, const struct view *view, const char *unit)
{
    const int *drawn = view->map.drawn_size;
    lr_picture_bar(picture, (int[2]){drawn[0] + space, 0},
                   &(lr_bar_params){.size = {bar_width, drawn[1]},
                                    .low = view->map.low,
                                    .high = view->map.high,
                                    .colours = view->map.colours,
                                    .unit = unit,
                                    .text = black});
}

lr_picture *lr_picture_slice(const lr_slice_params *params)
{
    if (params->image == NULL || lr_grid_check(&params->image->grid, params->log) != LR_OK) {
        return NULL;
    }
    const struct view view = make_view(params);
    const int *drawn = view.map.drawn_size;
    const int size[2] = {drawn[0] + (params->colour_bar ? bar_room : 0),
                         drawn[1] + (params->scale_bar ? strip_height : 0)};
    lr_picture *picture = lr_picture_create(size, params->log);
    if (picture == NULL) {
        return NULL;
    }
    const int origin[2] = {0, 0};
    lr_picture_fill(picture, origin, size, white);
    lr_picture_map(picture, origin, &view.map);
    if (params->scale_bar) {
        draw_scale_bar(picture, &view);
    }
    if (params->colour_bar) {
        draw_colour_bar(picture, &view, params->unit);
    }
    return picture;
}
