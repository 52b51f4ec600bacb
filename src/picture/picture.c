/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Pictures: pixels and shapes, and colour maps.
 *
 * The perceptual colour map is a path through Oklab (B. Ottosson, "A perceptual color space for image processing",
 * 2020). Its lightness rises in equal steps, while the hue turns from violet through blue and green to yellow. In the
 * diverging map, lightness falls from the middle to both ends. */
#include <lr/picture.h>

#include "base/log.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { max_side = 65536 };

lr_picture *lr_picture_create(const int size[2], const lr_log *log)
{
    if (size[0] <= 0 || size[1] <= 0 || size[0] > max_side || size[1] > max_side) {
        (void)lr_error(log, LR_USAGE, "a picture of %d x %d pixels is not between 1 and %d a side", size[0], size[1],
                       max_side);
        return NULL;
    }
    lr_picture *picture = lr_alloc(1, sizeof(*picture), "a picture", log);
    if (picture == NULL) return NULL;
    picture->size[0] = size[0];
    picture->size[1] = size[1];
    picture->rgb = lr_alloc((int64_t)size[0] * size[1], 3, "a picture", log);
    if (picture->rgb == NULL) {
        free(picture);
        return NULL;
    }
    return picture;
}

void lr_picture_destroy(lr_picture *picture)
{
    if (picture != NULL) lr_free_all(picture->rgb, picture);
}

static void set_pixel(lr_picture *picture, int64_t x, int64_t y, lr_colour colour)
{
    if (x >= 0 && y >= 0 && x < picture->size[0] && y < picture->size[1]) {
        uint8_t *pixel = picture->rgb + 3 * (y * picture->size[0] + x);
        pixel[0] = colour.r;
        pixel[1] = colour.g;
        pixel[2] = colour.b;
    }
}

/* Computes which part of corner .. corner + size - 1 is within 0 .. limit - 1. */
static void cut(int corner, int size, int limit, int range[2])
{
    const int64_t end = (int64_t)corner + size;
    range[0] = corner > 0 ? corner : 0;
    range[1] = end < limit ? (int)(end > 0 ? end : 0) : limit;
}

void lr_picture_fill(lr_picture *picture, const int corner[2], const int size[2], lr_colour colour)
{
    int x[2], y[2];
    cut(corner[0], size[0], picture->size[0], x);
    cut(corner[1], size[1], picture->size[1], y);
    for (int row = y[0]; row < y[1]; row++)
        for (int column = x[0]; column < x[1]; column++) set_pixel(picture, column, row, colour);
}

void lr_picture_frame(lr_picture *picture, const int corner[2], const int size[2], lr_colour colour)
{
    if (size[0] <= 0 || size[1] <= 0) return;
    const int far[2] = {corner[0] + size[0] - 1, corner[1] + size[1] - 1};
    const int across[2] = {size[0], 1}, down[2] = {1, size[1]};
    lr_picture_fill(picture, corner, across, colour);
    lr_picture_fill(picture, corner, down, colour);
    lr_picture_fill(picture, (int[2]){corner[0], far[1]}, across, colour);
    lr_picture_fill(picture, (int[2]){far[0], corner[1]}, down, colour);
}

void lr_picture_line(lr_picture *picture, const int from[2], const int to[2], lr_colour colour)
{
    const int64_t dx = (int64_t)to[0] - from[0], dy = (int64_t)to[1] - from[1];
    const int64_t steps = llabs(dx) > llabs(dy) ? llabs(dx) : llabs(dy);
    for (int64_t n = 0; n <= steps; n++) {
        const double t = steps == 0 ? 0.0 : (double)n / (double)steps;
        const double x = from[0] + t * (double)dx, y = from[1] + t * (double)dy;
        set_pixel(picture, (int64_t)(x + (x < 0.0 ? -0.5 : 0.5)), (int64_t)(y + (y < 0.0 ? -0.5 : 0.5)), colour);
    }
}

void lr_picture_paste(lr_picture *picture, const int corner[2], const lr_picture *source)
{
    int x[2], y[2];
    cut(corner[0], source->size[0], picture->size[0], x);
    cut(corner[1], source->size[1], picture->size[1], y);
    for (int row = y[0]; row < y[1] && x[0] < x[1]; row++) {
        const size_t from = (size_t)(row - corner[1]) * (size_t)source->size[0] + (size_t)(x[0] - corner[0]);
        const size_t to = (size_t)row * (size_t)picture->size[0] + (size_t)x[0];
        memcpy(picture->rgb + 3 * to, source->rgb + 3 * from, 3 * (size_t)(x[1] - x[0]));
    }
}

/* --- colour maps --- */

/* Encodes a linear value as 8 bits of sRGB (IEC 61966-2-1). */
static uint8_t encode(double linear)
{
    if (!(linear > 0.0)) return 0;
    const double value = linear <= 0.0031308 ? 12.92 * linear : 1.055 * pow(linear, 1.0 / 2.4) - 0.055;
    return value >= 1.0 ? 255 : (uint8_t)lround(255.0 * value);
}

static lr_colour from_oklab(double lightness, double a, double b)
{
    const double l = pow(lightness + 0.3963377774 * a + 0.2158037573 * b, 3.0);
    const double m = pow(lightness - 0.1055613458 * a - 0.0638541728 * b, 3.0);
    const double s = pow(lightness - 0.0894841775 * a - 1.2914855480 * b, 3.0);
    return (lr_colour){
        encode(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
        encode(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
        encode(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s),
    };
}

lr_colour lr_colour_of(lr_colour_map map, double t)
{
    if (isnan(t)) return (lr_colour){0, 0, 0};
    const double within = t < 0.0 ? 0.0 : t > 1.0 ? 1.0 : t;
    const uint8_t grey = (uint8_t)lround(255.0 * within);
    if (map == LR_COLOURS_INVERSE_GREY)
        return (lr_colour){(uint8_t)(255 - grey), (uint8_t)(255 - grey), (uint8_t)(255 - grey)};
    if (map == LR_COLOURS_PERCEPTUAL) {
        /* Lightness and chroma are limited so that all colours are within sRGB. */
        const double lightness = 0.22 + 0.70 * within;
        const double hue = 5.40 - 3.50 * within;
        const double chroma = 0.103 - 0.11 * within + 0.195 * within * within;
        return from_oklab(lightness, chroma * cos(hue), chroma * sin(hue));
    }
    if (map == LR_COLOURS_DIVERGING) {
        /* The map runs from blue through a colour near white to red-brown. Colours at the same distance from the middle
         * have the same lightness. All colours are within sRGB. */
        const double away = fabs(2.0 * within - 1.0);
        const double hue = within < 0.5 ? 4.45 : 0.785;
        const double chroma = 0.3 * away - 0.175 * away * away;
        return from_oklab(0.98 - 0.53 * away, chroma * cos(hue), chroma * sin(hue));
    }
    return (lr_colour){grey, grey, grey};
}
