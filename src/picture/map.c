/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include <lr/picture.h>

#include "picture/font.h"

#include <math.h>
#include <stdio.h>

enum { num_colours = 256 };

/* An array to be drawn, its defaults filled in. */
struct map {
    lr_map_params params;
    lr_colour colours[num_colours];
    double scale; /* colours per unit of value */
};

static float value_at(const lr_map_params *params, int column, int row)
{
    return params->values[column * params->stride[0] + row * params->stride[1]];
}

/* Least and largest finite value; 0 and 1 when there is none. */
static void find_range(lr_map_params *params)
{
    double low = INFINITY, high = -INFINITY;
    for (int row = 0; row < params->size[1]; row++) {
        for (int column = 0; column < params->size[0]; column++) {
            const double value = value_at(params, column, row);
            if (isfinite(value)) {
                low = fmin(low, value);
                high = fmax(high, value);
            }
        }
    }
    params->low = low <= high ? low : 0.0;
    params->high = low <= high ? high : 1.0;
}

static struct map prepare(const lr_map_params *params)
{
    struct map map = {.params = *params};
    lr_map_params *full = &map.params;
    for (int k = 0; k < 2; k++) {
        full->drawn_size[k] = params->drawn_size[k] > 0 ? params->drawn_size[k] : params->size[k];
    }
    full->stride[0] = params->stride[0] != 0 ? params->stride[0] : 1;
    full->stride[1] = params->stride[1] != 0 ? params->stride[1] : params->size[0];
    if (params->low == 0.0 && params->high == 0.0) {
        find_range(full);
    }
    for (int n = 0; n < num_colours; n++) {
        map.colours[n] = lr_colour_of(params->colours, n / (num_colours - 1.0));
    }
    map.scale = full->high != full->low ? (num_colours - 1.0) / (full->high - full->low) : 0.0;
    return map;
}

static lr_colour colour_of(const struct map *map, double value)
{
    if (isnan(value)) {
        return map->params.not_a_number;
    }
    const double place = (value - map->params.low) * map->scale;
    const double within = !(place > 0.0) ? 0.0 : fmin(place, num_colours - 1.0);
    return map->colours[(int)(within + 0.5)];
}

void lr_picture_map(lr_picture *picture, const int corner[2], const lr_map_params *params)
{
    if (params->size[0] <= 0 || params->size[1] <= 0) {
        return;
    }
    const struct map map = prepare(params);
    const int *size = params->size, *drawn = map.params.drawn_size;
    for (int y = 0; y < drawn[1]; y++) {
        const int from_top = (int)((int64_t)y * size[1] / drawn[1]);
        const int row = params->first_row_on_top ? from_top : size[1] - 1 - from_top;
        for (int x = 0; x < drawn[0]; x++) {
            const int column = (int)((int64_t)x * size[0] / drawn[0]);
            const lr_colour colour = colour_of(&map, value_at(&map.params, column, row));
            lr_picture_fill(picture, (int[2]){corner[0] + x, corner[1] + y}, (int[2]){1, 1},
                            colour);
        }
    }
}

/* The values at even distances, beside the bar and no further than its ends. */
static void draw_labels(lr_picture *picture, const int corner[2], const int size[2],
                        const lr_bar_params *params)
{
    const lr_text_style style = {.colour = params->text, .scale = params->text_scale};
    const int scale = style.scale > 0 ? style.scale : 1, letter = lr_font_height * scale;
    const int last = params->num_labels > 2 ? params->num_labels - 1 : 1;
    for (int n = 0; n <= last; n++) {
        const double value = (params->low * (last - n) + params->high * n) / last;
        const char *unit = n == last ? params->unit : NULL;
        char text[64];
        snprintf(text, sizeof(text), "%.3g%s%s", value, unit != NULL ? " " : "",
                 unit != NULL ? unit : "");
        const int y = (size[1] - letter) * (last - n) / last;
        lr_picture_text(picture, (int[2]){corner[0] + size[0] + 3 * scale, corner[1] + y}, text,
                        &style);
    }
}

void lr_picture_bar(lr_picture *picture, const int corner[2], const lr_bar_params *params)
{
    const int size[2] = {params->size[0] > 0 ? params->size[0] : 10,
                         params->size[1] > 0 ? params->size[1] : 100};
    for (int y = 0; y < size[1]; y++) {
        const double t = size[1] > 1 ? 1.0 - y / (size[1] - 1.0) : 1.0;
        lr_picture_fill(picture, (int[2]){corner[0], corner[1] + y}, (int[2]){size[0], 1},
                        lr_colour_of(params->colours, t));
    }
    lr_picture_frame(picture, corner, size, params->text);
    draw_labels(picture, corner, size, params);
}
