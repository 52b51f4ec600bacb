/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include <lr/picture.h>

#include "picture/font.h"
#include "picture/ticks.h"

#include <math.h>

enum { num_colours = 256, usual_width = 12, usual_height = 100, most_ticks = 9, tick_length = 4, space = 3 };

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
    for (int k = 0; k < 2; k++)
        full->drawn_size[k] = params->drawn_size[k] > 0 ? params->drawn_size[k] : params->size[k];
    full->stride[0] = params->stride[0] != 0 ? params->stride[0] : 1;
    full->stride[1] = params->stride[1] != 0 ? params->stride[1] : params->size[0];
    if (params->low == 0.0 && params->high == 0.0) find_range(full);
    for (int n = 0; n < num_colours; n++) map.colours[n] = lr_colour_of(params->colours, n / (num_colours - 1.0));
    map.scale = full->high != full->low ? (num_colours - 1.0) / (full->high - full->low) : 0.0;
    return map;
}

static lr_colour colour_of(const struct map *map, double value)
{
    if (isnan(value)) return map->params.not_a_number;
    const double place = (value - map->params.low) * map->scale;
    const double within = !(place > 0.0) ? 0.0 : fmin(place, num_colours - 1.0);
    return map->colours[(int)(within + 0.5)];
}

void lr_picture_map(lr_picture *picture, const int corner[2], const lr_map_params *params)
{
    if (params->size[0] <= 0 || params->size[1] <= 0) return;
    const struct map map = prepare(params);
    const int *size = params->size, *drawn = map.params.drawn_size;
    for (int y = 0; y < drawn[1]; y++) {
        const int from_top = (int)((int64_t)y * size[1] / drawn[1]);
        const int row = params->first_row_on_top ? from_top : size[1] - 1 - from_top;
        for (int x = 0; x < drawn[0]; x++) {
            const int column = (int)((int64_t)x * size[0] / drawn[0]);
            const lr_colour colour = colour_of(&map, value_at(&map.params, column, row));
            lr_picture_fill(picture, (int[2]){corner[0] + x, corner[1] + y}, (int[2]){1, 1}, colour);
        }
    }
}

/* --- colour bars --- */

/* A bar with its defaults filled in, and its ticks. */
struct bar {
    int size[2], line;
    lr_text_style style;
    struct lr_ticks ticks;
    struct lr_tick_unit unit;
};

static struct bar make_bar(const lr_bar_params *params)
{
    struct bar bar = {
        .size = {params->size[0] > 0 ? params->size[0] : usual_width,
                 params->size[1] > 0 ? params->size[1] : usual_height},
        .style = {.colour = params->text, .size_px = params->text_px > 0 ? params->text_px : lr_font_small}};
    bar.line = lr_picture_text_height(&bar.style);
    const int most = 2 * bar.size[1] / (3 * bar.line);
    bar.ticks = lr_ticks_choose(params->low, params->high, most < most_ticks ? most : most_ticks);
    bar.unit = lr_tick_unit(&bar.ticks, params->unit);
    return bar;
}

/* Where the unit begins, from the bar's left edge. */
static int find_unit(const struct bar *bar)
{
    int widest = 0;
    for (int n = 0; n < bar->ticks.count; n++) {
        const struct lr_tick_label label = lr_tick_label(&bar->ticks, n);
        const int width = lr_picture_text_width(label.text, &bar->style);
        widest = width > widest ? width : widest;
    }
    return bar->size[0] + tick_length + space + widest + space;
}

int lr_picture_bar_width(const lr_bar_params *params)
{
    const struct bar bar = make_bar(params);
    return find_unit(&bar) + (bar.unit.text[0] != '\0' ? bar.line : 0);
}

static void draw_colours(lr_picture *picture, const int corner[2], const struct bar *bar, lr_colour_map colours)
{
    for (int y = 0; y < bar->size[1]; y++) {
        const double t = bar->size[1] > 1 ? 1.0 - y / (bar->size[1] - 1.0) : 1.0;
        lr_picture_fill(picture, (int[2]){corner[0], corner[1] + y}, (int[2]){bar->size[0], 1},
                        lr_colour_of(colours, t));
    }
    lr_picture_frame(picture, corner, bar->size, bar->style.colour);
}

/* A label stands beside its tick, but within the picture. */
static void draw_ticks(lr_picture *picture, const int corner[2], const struct bar *bar, const double range[2])
{
    const double span = range[1] - range[0];
    const int right = corner[0] + bar->size[0], last = picture->size[1] - bar->line;
    for (int n = 0; n < bar->ticks.count; n++) {
        const double value = lr_tick_value(&bar->ticks, n);
        const double share = span > 0.0 ? (value - range[0]) / span : 0.5;
        const int y = corner[1] + (int)lround((1.0 - share) * (bar->size[1] - 1));
        const int above = y - bar->line / 2;
        const struct lr_tick_label label = lr_tick_label(&bar->ticks, n);
        lr_picture_fill(picture, (int[2]){right, y}, (int[2]){tick_length, 1}, bar->style.colour);
        lr_picture_text(picture,
                        (int[2]){right + tick_length + space, above < 0      ? 0
                                                              : above > last ? last
                                                                             : above},
                        label.text, &bar->style);
    }
}

static void write_unit(lr_picture *picture, const int corner[2], const struct bar *bar)
{
    lr_text_style style = bar->style;
    const int width = lr_picture_text_width(bar->unit.text, &style);
    const int middle = corner[1] + (bar->size[1] - width) / 2;
    style.upwards = true;
    lr_picture_text(picture, (int[2]){corner[0] + find_unit(bar), middle > 0 ? middle : 0}, bar->unit.text, &style);
}

void lr_picture_bar(lr_picture *picture, const int corner[2], const lr_bar_params *params)
{
    const struct bar bar = make_bar(params);
    draw_colours(picture, corner, &bar, params->colours);
    draw_ticks(picture, corner, &bar, (const double[2]){params->low, params->high});
    write_unit(picture, corner, &bar);
}
