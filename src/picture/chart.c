/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Curves, or bars in groups, with axes and a legend. */
#include <lr/picture.h>

#include "base/log.h"
#include "picture/axes.h"
#include "picture/font.h"

#include <math.h>
#include <stdio.h>

enum { WIDE = 300, HIGH = 240, SPACE = 6, SWATCH = 22 };

static const lr_colour black = {0, 0, 0}, white = {255, 255, 255};

/* Colours that colour-blind people can distinguish, from dark to light (after Okabe and Ito, Color universal design, 2008). */
static lr_colour curve_colour(int k)
{
    static const lr_colour colours[] = {{0, 90, 160},    {204, 85, 0},  {0, 140, 105}, {150, 60, 140},
                                        {110, 110, 110}, {190, 150, 0}, {70, 170, 220}};
    return colours[k % (int)(sizeof(colours) / sizeof(colours[0]))];
}

static void draw_curve(lr_picture *picture, const struct lr_axes *axes, const lr_curve *curve, lr_colour colour)
{
    int before[2] = {0};
    bool joined = false;
    for (int n = 0; n < curve->count; n++) {
        const bool is_there =
            isfinite(curve->y[n]) && curve->x[n] >= axes->across.low && curve->x[n] <= axes->across.high;
        if (is_there) {
            const int at[2] = {lr_axes_x(axes, curve->x[n]), lr_axes_y(axes, curve->y[n])};
            if (joined) {
                lr_picture_line(picture, before, at, colour);
                lr_picture_line(picture, (int[2]){before[0], before[1] + 1}, (int[2]){at[0], at[1] + 1}, colour);
            }
            lr_picture_fill(picture, (int[2]){at[0] - 1, at[1] - 1}, (int[2]){4, 4}, colour);
            before[0] = at[0];
            before[1] = at[1];
        }
        joined = is_there;
    }
}

static void draw_bars(lr_picture *picture, const struct lr_axes *axes, const lr_chart_params *params)
{
    const lr_text_style style = {.colour = black, .size_px = lr_font_small};
    const int foot = axes->corner[1] + axes->size[1];
    const double group_px = (double)axes->size[0] / params->num_groups;
    const double bar_px = 0.8 * group_px / params->num_curves;
    for (int g = 0; g < params->num_groups; g++) {
        const double left = axes->corner[0] + g * group_px;
        const int width = lr_picture_text_width(params->groups[g], &style);
        lr_picture_text(picture, (int[2]){(int)(left + 0.5 * (group_px - width)), foot + SPACE}, params->groups[g],
                        &style);
        for (int k = 0; k < params->num_curves; k++) {
            const double y = g < params->curves[k].count ? params->curves[k].y[g] : NAN;
            if (!isfinite(y)) continue;
            const int top = lr_axes_y(axes, y), x = (int)(left + 0.1 * group_px + k * bar_px);
            lr_picture_fill(picture, (int[2]){x, top}, (int[2]){lr_larger((int)bar_px - 1, 1), foot - top},
                            curve_colour(k));
        }
    }
}

lr_picture *lr_picture_chart_sized(size_t given_bytes, const lr_chart_params *given)
{
    LR_TAKE(lr_chart_params, params, given, given_bytes);
    const bool has_bars = params->num_groups > 0;
    double low = INFINITY, high = -INFINITY, most = 0.0;
    for (int k = 0; k < params->num_curves; k++) {
        const lr_curve *curve = &params->curves[k];
        for (int n = 0; n < curve->count; n++) {
            if (isfinite(curve->y[n])) most = fmax(most, curve->y[n]);
            if (!has_bars) low = fmin(low, curve->x[n]);
            if (!has_bars) high = fmax(high, curve->x[n]);
        }
    }
    if (has_bars || !(high >= low)) {
        low = 0.0;
        high = has_bars ? params->num_groups : 1.0;
    } else if (high == low) { /* one point, in the middle */
        low -= high != 0.0 ? 0.5 * fabs(high) : 0.5;
        high += high - low;
    }
    struct lr_axes axes = {.size = {WIDE, HIGH},
                           .across = {low, high, params->across, false},
                           .up = {0.0, most > 0.0 ? 1.08 * most : 1.0, params->up, false},
                           .ink = black,
                           .no_ticks_across = has_bars};
    const struct lr_margins margins = lr_axes_margins(&axes);
    const lr_text_style style = {.colour = black, .size_px = lr_font_small, .most_px = WIDE - SWATCH - SPACE};
    const int line = lr_picture_text_height(&style) + 3;
    axes.corner[0] = margins.left;
    axes.corner[1] = margins.top + lr_font_small;
    const int legend = axes.corner[1] + HIGH + margins.bottom + SPACE;
    const int size[2] = {margins.left + WIDE + lr_larger(margins.right, SPACE), legend + params->num_curves * line};
    lr_picture *picture = lr_picture_create(size, params->log);
    if (picture == NULL) return NULL;
    lr_picture_fill(picture, (int[2]){0, 0}, size, white);
    lr_axes_draw(picture, &axes);
    if (has_bars) draw_bars(picture, &axes, params);
    for (int k = 0; k < params->num_curves; k++) {
        const int y = legend + k * line;
        if (!has_bars) draw_curve(picture, &axes, &params->curves[k], curve_colour(k));
        lr_picture_fill(picture, (int[2]){margins.left, y + line / 2 - 2}, (int[2]){SWATCH - SPACE, 4},
                        curve_colour(k));
        lr_picture_text(picture, (int[2]){margins.left + SWATCH, y}, params->curves[k].name, &style);
    }
    lr_font_tell(params->log);
    return picture;
}
