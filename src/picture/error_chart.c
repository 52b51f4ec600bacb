/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "picture/error_chart.h"

#include "picture/font.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { text_px = 16, space = 6, marker_radius = 5, line_length = 36 };

static const lr_text_style plain = {.colour = {38, 38, 38}, .size_px = text_px};
static const lr_colour ink = {38, 38, 38}, rule = {222, 222, 222}, law_grey = {120, 120, 120};

/* What a curve shows, in colours that the colour-blind tell apart, each with a marker of its own.
 */
enum curve { CURVE_L2, CURVE_SUM, CURVE_MISSED, NUM_CURVES };
static const lr_colour curve_colours[NUM_CURVES] = {{0, 90, 160}, {204, 85, 0}, {0, 140, 105}};
static const char *const curve_names[NUM_CURVES] = {"relative L2", "|error of the sum|", "weight missed"};
static const char law_name[] = "law 0.6 / R";

/* The frame of the curves, and its axes in powers of 2 and 10. */
struct axes {
    lr_picture *picture;
    int corner[2], size[2];
    double first, last;  /* log2 of R at the left and right edge */
    int lowest, highest; /* powers of ten at the lower and upper edge */
};

static double value_of(const lr_row_error *error, enum curve curve)
{
    switch (curve) {
    case CURVE_L2: return error->relative_l2;
    case CURVE_SUM: return fabs(error->sum_error);
    default: return error->missed_weight;
    }
}

static int x_of(const struct axes *axes, double rays)
{
    const double t = (log2(rays) - axes->first) / (axes->last - axes->first);
    return axes->corner[0] + (int)lround(t * (axes->size[0] - 1));
}

static int y_of(const struct axes *axes, double value)
{
    const double t = (axes->highest - log10(value)) / (axes->highest - axes->lowest);
    return axes->corner[1] + (int)lround(t * (axes->size[1] - 1));
}

static bool is_shown(const struct axes *axes, double value)
{
    return value >= pow(10.0, axes->lowest) && value <= pow(10.0, axes->highest);
}

/* --- room for text --- */

struct percent {
    char text[32];
};
static struct percent percent_of(int power)
{
    struct percent percent;
    snprintf(percent.text, sizeof(percent.text), "%g %%", pow(10.0, power + 2));
    return percent;
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

static int left_room(const struct axes *axes)
{
    int widest = 0;
    for (int power = axes->lowest; power <= axes->highest; power++) {
        const struct percent percent = percent_of(power);
        widest = larger(widest, lr_picture_text_width(percent.text, &plain));
    }
    return lr_picture_text_height(&plain) + widest + 2 * space;
}

static int legend_room(void)
{
    int widest = lr_picture_text_width(law_name, &plain);
    for (int n = 0; n < NUM_CURVES; n++) widest = larger(widest, lr_picture_text_width(curve_names[n], &plain));
    return 3 * space + line_length + widest;
}

/* From the decade of the least error, at most five below 100 %, to the decade above the largest. */
static struct axes make_axes(lr_picture *picture, const int corner[2], const struct lr_error_chart *chart)
{
    double least = 0.1, most = 1.0;
    for (int n = 0; n < chart->count; n++) {
        for (int curve = 0; curve < NUM_CURVES; curve++) {
            const double value = value_of(&chart->errors[n], (enum curve)curve);
            least = value > 0.0 ? fmin(least, value) : least;
            most = isfinite(value) ? fmax(most, value) : most;
        }
    }
    struct axes axes = {
        .picture = picture,
        .corner = {corner[0], corner[1] + lr_picture_text_height(&plain) / 2},
        .first = log2(chart->rays[0]) - 0.25,
        .last = log2(chart->rays[chart->count - 1]) + 0.25,
        .lowest = (int)floor(log10(fmax(least, 1e-5))),
        .highest = (int)ceil(log10(most)),
    };
    const int left = left_room(&axes), line = lr_picture_text_height(&plain);
    axes.corner[0] += left;
    axes.size[0] = chart->size[0] - left - legend_room();
    axes.size[1] = chart->size[1] - line / 2 - 2 * (line + space);
    return axes;
}

static void draw_decades(const struct axes *axes)
{
    const int right = axes->corner[0] + axes->size[0] - 1;
    for (int power = axes->lowest; power <= axes->highest; power++) {
        const int y = y_of(axes, pow(10.0, power));
        lr_picture_line(axes->picture, (int[2]){axes->corner[0], y}, (int[2]){right, y}, rule);
        const struct percent percent = percent_of(power);
        const int width = lr_picture_text_width(percent.text, &plain);
        const int above = y - lr_picture_text_height(&plain) / 2;
        lr_picture_text(axes->picture, (int[2]){axes->corner[0] - width - space, above}, percent.text, &plain);
    }
}

static void draw_rays(const struct axes *axes, const struct lr_error_chart *chart)
{
    const int bottom = axes->corner[1] + axes->size[1] - 1;
    int free_from = 0;
    for (int n = 0; n < chart->count; n++) {
        const int x = x_of(axes, chart->rays[n]);
        lr_picture_line(axes->picture, (int[2]){x, axes->corner[1]}, (int[2]){x, bottom}, rule);
        char text[16];
        snprintf(text, sizeof(text), "%d", chart->rays[n]);
        const int width = lr_picture_text_width(text, &plain);
        if (x - width / 2 >= free_from) {
            lr_picture_text(axes->picture, (int[2]){x - width / 2, bottom + space}, text, &plain);
            free_from = x + width / 2 + 2 * space;
        }
    }
}

static void write_names(const struct axes *axes)
{
    static const char across[] = "R, samples along each side of a crystal", up[] = "error";
    lr_text_style style = plain;
    const int line = lr_picture_text_height(&style), below = axes->corner[1] + axes->size[1];
    const int width = lr_picture_text_width(across, &style);
    const int height = lr_picture_text_width(up, &style);
    lr_picture_text(axes->picture, (int[2]){axes->corner[0] + (axes->size[0] - width) / 2, below + space + line},
                    across, &style);
    style.upwards = true;
    lr_picture_text(axes->picture,
                    (int[2]){axes->corner[0] - left_room(axes), axes->corner[1] + (axes->size[1] - height) / 2}, up,
                    &style);
}

static void draw_thick(lr_picture *picture, const int from[2], const int to[2], lr_colour colour)
{
    for (int n = 0; n < 4; n++) {
        const int dx = n & 1, dy = n >> 1;
        lr_picture_line(picture, (int[2]){from[0] + dx, from[1] + dy}, (int[2]){to[0] + dx, to[1] + dy}, colour);
    }
}

static void draw_dashes(lr_picture *picture, const int from[2], const int to[2])
{
    const double length = hypot(to[0] - from[0], to[1] - from[1]);
    for (double at = 0.0; at < length; at += 14.0) {
        const double ends[2] = {at / length, fmin(at + 8.0, length) / length};
        int dash[2][2];
        for (int e = 0; e < 2; e++)
            for (int k = 0; k < 2; k++) dash[e][k] = from[k] + (int)lround(ends[e] * (to[k] - from[k]));
        draw_thick(picture, dash[0], dash[1], law_grey);
    }
}

/* Square, diamond, or a square with a hole. */
static void draw_marker(lr_picture *picture, const int centre[2], enum curve curve)
{
    for (int dy = -marker_radius; dy <= marker_radius; dy++) {
        for (int dx = -marker_radius; dx <= marker_radius; dx++) {
            const int reach = abs(dx) > abs(dy) ? abs(dx) : abs(dy);
            const bool inside = curve == CURVE_L2    ? reach < marker_radius
                                : curve == CURVE_SUM ? abs(dx) + abs(dy) <= marker_radius
                                                     : reach < marker_radius && reach > 1;
            if (inside) {
                lr_picture_fill(picture, (int[2]){centre[0] + dx, centre[1] + dy}, (int[2]){1, 1},
                                curve_colours[curve]);
            }
        }
    }
}

static void draw_law(const struct axes *axes, const struct lr_error_chart *chart)
{
    double rays[2] = {chart->rays[0], chart->rays[chart->count - 1]};
    rays[1] = fmin(rays[1], LR_SAMPLING_LAW / pow(10.0, axes->lowest));
    if (rays[1] > rays[0]) {
        int ends[2][2];
        for (int e = 0; e < 2; e++) {
            ends[e][0] = x_of(axes, rays[e]);
            ends[e][1] = y_of(axes, LR_SAMPLING_LAW / rays[e]);
        }
        draw_dashes(axes->picture, ends[0], ends[1]);
    }
}

static void draw_curve(const struct axes *axes, const struct lr_error_chart *chart, enum curve curve)
{
    int before[2] = {0};
    bool joined = false;
    for (int n = 0; n < chart->count; n++) {
        const double value = value_of(&chart->errors[n], curve);
        const bool shown = is_shown(axes, value);
        if (shown) {
            const int at[2] = {x_of(axes, chart->rays[n]), y_of(axes, value)};
            if (joined) draw_thick(axes->picture, before, at, curve_colours[curve]);
            draw_marker(axes->picture, at, curve);
            before[0] = at[0];
            before[1] = at[1];
        }
        joined = shown;
    }
}

static void draw_legend(const struct axes *axes)
{
    const int x = axes->corner[0] + axes->size[0] + 2 * space;
    const int line = lr_picture_text_height(&plain);
    int y = axes->corner[1] + line / 2;
    for (int n = 0; n <= NUM_CURVES; n++) {
        const int from[2] = {x, y}, to[2] = {x + line_length - space, y};
        if (n < NUM_CURVES) {
            draw_thick(axes->picture, from, to, curve_colours[n]);
            draw_marker(axes->picture, (int[2]){(from[0] + to[0]) / 2, y}, (enum curve)n);
        } else {
            draw_dashes(axes->picture, from, to);
        }
        lr_picture_text(axes->picture, (int[2]){x + line_length, y - line / 2},
                        n < NUM_CURVES ? curve_names[n] : law_name, &plain);
        y += line + space;
    }
}

void lr_draw_error_chart(lr_picture *picture, const int corner[2], const struct lr_error_chart *chart)
{
    const struct axes axes = make_axes(picture, corner, chart);
    draw_decades(&axes);
    draw_rays(&axes, chart);
    write_names(&axes);
    lr_picture_frame(picture, axes.corner, axes.size, ink);
    draw_law(&axes, chart);
    for (int curve = NUM_CURVES - 1; curve >= 0; curve--) draw_curve(&axes, chart, (enum curve)curve);
    draw_legend(&axes);
}
