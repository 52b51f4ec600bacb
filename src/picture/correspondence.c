/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Correspondence images in the false colours of Toth, Magdics, Szirmay-Kalos, "Fast System Matrix
 * Generation on a GPU Cluster", figures 8 and 9: indices counted from 1 as red and green. */
#include <lr/picture.h>

#include "base/log.h"

#include <math.h>

enum { usual_side = 256, least_grid = 4 };

static lr_status check_params(const lr_correspondence_params *params)
{
    if (params->pixels == NULL || params->scanner == NULL || params->module < 0 ||
        params->module >= params->scanner->num_modules || params->rays <= 0) {
        return lr_error(params->log, LR_USAGE,
                        "no correspondence image of module %d with %d rays can be drawn",
                        params->module, params->rays);
    }
    return LR_OK;
}

static int zoom_of(const lr_correspondence_params *params, const int size[2])
{
    if (params->zoom > 0) {
        return params->zoom;
    }
    const int zoom = usual_side / (size[0] > size[1] ? size[0] : size[1]);
    return zoom > 1 ? zoom : 1;
}

/* An index counted from 0 among `count`, as a channel. */
static uint8_t channel(float index, int count)
{
    const double value = 255.0 * ((double)index + 1.0) / count;
    return !(value > 0.0) ? 0 : value >= 255.0 ? 255 : (uint8_t)lround(value);
}

static lr_colour crystal_colour(const lr_scanner *scanner, const lr_pixel *pixel)
{
    const int module = (int)pixel->module;
    if (!(pixel->module >= 0.0f) || module >= scanner->num_modules || pixel->r < 0.0f) {
        return (lr_colour){0, 0, 0};
    }
    const int *crystals = scanner->modules[module].crystals;
    return (lr_colour){channel(pixel->r, crystals[0]), channel(pixel->s, crystals[1]), 0};
}

static double largest_weight(const lr_pixel *pixels, int64_t count)
{
    double high = 0.0;
    for (int64_t n = 0; n < count; n++) {
        high = fmax(high, (double)pixels[n].weight);
    }
    return high > 0.0 ? high : 1.0;
}

static lr_colour weight_colour(const lr_pixel *pixel, double high)
{
    return pixel->weight > 0.0f ? lr_colour_of(LR_COLOURS_PERCEPTUAL, (double)pixel->weight / high)
                                : (lr_colour){0, 0, 0};
}

static void draw_pixels(lr_picture *picture, const lr_correspondence_params *params,
                        const int size[2], int zoom)
{
    const double high = params->high > 0.0
                            ? params->high
                            : largest_weight(params->pixels, (int64_t)size[0] * size[1]);
    for (int row = 0; row < size[1]; row++) {
        for (int column = 0; column < size[0]; column++) {
            const lr_pixel *pixel = &params->pixels[(int64_t)row * size[0] + column];
            const lr_colour colour = params->view == LR_VIEW_WEIGHTS
                                         ? weight_colour(pixel, high)
                                         : crystal_colour(params->scanner, pixel);
            lr_picture_fill(picture, (int[2]){column * zoom, (size[1] - 1 - row) * zoom},
                            (int[2]){zoom, zoom}, colour);
        }
    }
}

static void draw_grid(lr_picture *picture, const int crystals[2], int step)
{
    const lr_colour grey = {96, 96, 96};
    for (int p = 1; p < crystals[0]; p++) {
        lr_picture_fill(picture, (int[2]){p * step, 0}, (int[2]){1, picture->size[1]}, grey);
    }
    for (int q = 1; q < crystals[1]; q++) {
        lr_picture_fill(picture, (int[2]){0, q * step}, (int[2]){picture->size[0], 1}, grey);
    }
}

lr_picture *lr_picture_correspondence(const lr_correspondence_params *params)
{
    if (check_params(params) != LR_OK) {
        return NULL;
    }
    const int *crystals = params->scanner->modules[params->module].crystals;
    const int size[2] = {params->rays * crystals[0], params->rays * crystals[1]};
    const int zoom = zoom_of(params, size);
    lr_picture *picture = lr_picture_create((int[2]){size[0] * zoom, size[1] * zoom}, params->log);
    if (picture == NULL) {
        return NULL;
    }
    draw_pixels(picture, params, size, zoom);
    if (params->crystal_grid && params->rays * zoom >= least_grid) {
        draw_grid(picture, crystals, params->rays * zoom);
    }
    return picture;
}
