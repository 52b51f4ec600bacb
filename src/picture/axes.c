/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Ticks at round values; axes with ticks; arrays drawn as maps; colour bars. */
#include "picture/axes.h"

#include "picture/font.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { most_decimals = 12 };

/* A round value beyond the end of an axis still gets a tick if it is at most this fraction of a step outside, because
 * rounding can move it there. */
static const double tolerance = 1e-9;

/* --- ticks --- */

/* Returns the smallest number that is 1, 2 or 5 times a power of ten and not below the value. */
static double round_step(double value)
{
    const double power = pow(10.0, floor(log10(value)));
    const double digit = value / power * (1.0 - tolerance);
    return power * (digit <= 1.0 ? 1.0 : digit <= 2.0 ? 2.0 : digit <= 5.0 ? 5.0 : 10.0);
}

static double count_ticks(double low, double high, double step)
{
    return floor(high / step + tolerance) - ceil(low / step - tolerance) + 1.0;
}

/* Returns the power of ten that all labels share. The power differs from 0 only if the largest label has more than five
 * digits before the point or is below 0.01. */
static int common_power(double low, double high)
{
    const double largest = fmax(fabs(low), fabs(high));
    const bool is_short = !(largest > 0.0) || (largest >= 0.00999 && largest < 99999.5);
    return is_short || !isfinite(largest) ? 0 : (int)floor(log10(largest) + tolerance);
}

/* Returns the number of decimals with which all labels differ. The label of a single tick has two digits. */
static int decimals_of(const struct lr_ticks *ticks)
{
    const double finest = ticks->step > 0.0 ? ticks->step : fabs(ticks->first) / 100.0;
    const double scaled = finest / pow(10.0, ticks->power);
    if (!(scaled > 0.0) || !isfinite(scaled)) return 0;
    const double digits = -floor(log10(scaled) + tolerance);
    return digits < 0.0 ? 0 : digits > most_decimals ? most_decimals : (int)digits;
}

struct lr_ticks lr_ticks_choose(double low, double high, int most)
{
    const double span = high - low;
    if (!(span > 0.0) || !isfinite(span) || !(span > 1e-12 * fmax(fabs(low), fabs(high)))) {
        struct lr_ticks ticks = {.first = low, .count = 1, .power = common_power(low, low)};
        ticks.decimals = decimals_of(&ticks);
        return ticks;
    }

    double step = round_step(span / (most > 1 ? most : 1));
    while (count_ticks(low, high, step) > fmax(most, 2)) step = round_step(2.0 * step);
    while (count_ticks(low, high, step) < 2.0) step = round_step(0.4 * step);
    struct lr_ticks ticks = {
        .first = step * ceil(low / step - tolerance), .step = step, .count = (int)count_ticks(low, high, step)};
    ticks.power = common_power(ticks.first, lr_tick_value(&ticks, ticks.count - 1));
    ticks.decimals = decimals_of(&ticks);
    return ticks;
}

struct lr_ticks lr_ticks_unscaled(const struct lr_ticks *ticks)
{
    struct lr_ticks plain = *ticks;
    plain.power = 0;
    plain.decimals = decimals_of(&plain);
    return plain;
}

double lr_tick_value(const struct lr_ticks *ticks, int n)
{
    const double value = ticks->first + n * ticks->step;
    return fabs(value) < 1e-6 * fabs(ticks->step) ? 0.0 : value;
}

struct lr_tick_label lr_tick_label(const struct lr_ticks *ticks, int n)
{
    struct lr_tick_label label;
    const double value = lr_tick_value(ticks, n) / pow(10.0, ticks->power);
    if (fabs(value) < 1e9)
        snprintf(label.text, sizeof(label.text), "%.*f", ticks->decimals, value);
    else
        snprintf(label.text, sizeof(label.text), "%.9g", value);
    return label;
}

/* --- units --- */

struct lr_tick_unit lr_tick_unit(const struct lr_ticks *ticks, const char *unit)
{
    static const char *const raised[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
    struct lr_tick_unit all = {""};
    const size_t size = sizeof(all.text);
    size_t used = 0;
    if (ticks->power != 0) {
        char digits[16];
        snprintf(digits, sizeof(digits), "%d", ticks->power < 0 ? -ticks->power : ticks->power);
        used = (size_t)snprintf(all.text, size, ticks->power < 0 ? "10⁻" : "10");
        for (const char *digit = digits; *digit != '\0'; digit++)
            used += (size_t)snprintf(all.text + used, size - used, "%s", raised[*digit - '0']);
    }
    if (unit != NULL && unit[0] != '\0') snprintf(all.text + used, size - used, "%s%s", used > 0 ? " " : "", unit);
    return all;
}

/* --- axes --- */

enum { tick_length = 4, space = 3, between_labels = 8 };

static int widest_label(const struct lr_ticks *ticks, const lr_text_style *style)
{
    int widest = 0;
    for (int n = 0; n < ticks->count; n++) {
        const struct lr_tick_label label = lr_tick_label(ticks, n);
        widest = lr_larger(widest, lr_picture_text_width(label.text, style));
    }
    return widest;
}

/* The ticks of an axis, from its left or lower end. */
static struct lr_ticks choose_ticks(const struct lr_axis *axis, int most)
{
    const double low = fmin(axis->low, axis->high), high = fmax(axis->low, axis->high);
    const struct lr_ticks scaled = lr_ticks_choose(low, high, most);
    const double first = ceil(low), last = floor(high);
    struct lr_ticks ticks = lr_ticks_unscaled(&scaled);
    if (axis->counts && ticks.step < 1.0 && first <= last)
        ticks = (struct lr_ticks){.first = first, .step = 1.0, .count = (int)(last - first) + 1};
    if (axis->low > axis->high) {
        ticks.first = lr_tick_value(&ticks, ticks.count - 1);
        ticks.step = -ticks.step;
    }
    return ticks;
}

/* The ticks of the horizontal axis, so few that their labels do not overlap. */
static struct lr_ticks ticks_across(const struct lr_axes *axes, const lr_text_style *style)
{
    const struct lr_axis *axis = &axes->across;
    if (axes->no_ticks_across) return (struct lr_ticks){0};
    int most = lr_larger(axes->size[0] / (3 * style->size_px), 2);
    struct lr_ticks ticks = choose_ticks(axis, most);
    while (most > 2 && ticks.count > 2 &&
           ticks.step / (axis->high - axis->low) * axes->size[0] < widest_label(&ticks, style) + between_labels)
        ticks = choose_ticks(axis, --most);
    return ticks;
}

/* The ticks of the vertical axis. If the labels of two ticks would overlap, there is one tick in the middle. */
static struct lr_ticks ticks_up(const struct lr_axes *axes, int line)
{
    const struct lr_axis *axis = &axes->up;
    if (axes->size[1] >= 2 * line) return choose_ticks(axis, axes->size[1] / (2 * line));
    const double middle = 0.5 * (axis->low + axis->high);
    const double at = fabs(middle) < 1e-9 * fabs(axis->high - axis->low) ? 0.0 : middle;
    const struct lr_ticks scaled = lr_ticks_choose(at, at, 1);
    return lr_ticks_unscaled(&scaled);
}

/* The number of pixels from the low end of an axis to a value; `size` is the length of the axis in pixels. */
static int pixels_to(const struct lr_axis *axis, int size, double value)
{
    const double span = axis->high - axis->low;
    return (int)lround((span != 0.0 ? (value - axis->low) / span : 0.5) * size);
}

int lr_axes_x(const struct lr_axes *axes, double value)
{
    return axes->corner[0] + pixels_to(&axes->across, axes->size[0], value);
}

int lr_axes_y(const struct lr_axes *axes, double value)
{
    return axes->corner[1] + axes->size[1] - pixels_to(&axes->up, axes->size[1], value);
}

struct lr_axis lr_grid_axis(const lr_grid *grid, int axis)
{
    static const char *const names[] = {"x (mm)", "y (mm)", "z (mm)"};
    const double first = grid->origin_mm[axis] - 0.5 * grid->voxel_mm[axis];
    return (struct lr_axis){first, first + grid->size[axis] * grid->voxel_mm[axis], names[axis], false};
}

struct lr_axis lr_face_axis(const lr_module *module, int axis)
{
    static const char *const names[] = {"u (mm)", "v (mm)"};
    const double half_mm = 0.5 * module->crystals[axis] * module->pitch_mm[axis];
    return (struct lr_axis){-half_mm, half_mm, names[axis], false};
}

static lr_text_style style_of(const struct lr_axes *axes)
{
    return (lr_text_style){.colour = axes->ink, .size_px = axes->text_px > 0 ? axes->text_px : lr_font_small};
}

struct lr_margins lr_axes_margins(const struct lr_axes *axes)
{
    const lr_text_style style = style_of(axes);
    const int line = lr_picture_text_height(&style);
    const struct lr_ticks across = ticks_across(axes, &style), up = ticks_up(axes, line);
    const int half = widest_label(&across, &style) / 2 + 1;
    struct lr_margins margins = {
        .left = 1 + tick_length + space + widest_label(&up, &style) + space,
        .bottom = 1 + tick_length + line,
    };
    margins.left = lr_larger(margins.left + (axes->up.name != NULL ? line : 0), half);
    margins.bottom += axes->across.name != NULL ? line : 0;
    /* A name may be longer than its axis, and then needs wider margins. */
    const int lacks[2] = {
        lr_font_width_within(axes->across.name, &style, INT32_MAX) - axes->size[0] - margins.left,
        lr_font_width_within(axes->up.name, &style, INT32_MAX) - axes->size[1] - margins.bottom,
    };
    margins.right = lr_larger(half + 1, lacks[0]);
    margins.top = lr_larger(line / 2 + 1, lacks[1]);
    return margins;
}

/* Returns the pixel where a name begins. The name is centred on its axis, but stays within the margins. */
static int begin_name(int corner, int size, int width, const int margins[2])
{
    const int middle = corner + (size - width) / 2;
    const int last = corner + size + margins[1] - width;
    return lr_larger(middle < last ? middle : last, corner - margins[0]);
}

void lr_axes_draw(lr_picture *picture, const struct lr_axes *axes)
{
    lr_picture_frame(picture, (int[2]){axes->corner[0] - 1, axes->corner[1] - 1},
                     (int[2]){axes->size[0] + 2, axes->size[1] + 2}, axes->ink);
    lr_text_style style = style_of(axes);
    const int line = lr_picture_text_height(&style);
    const struct lr_ticks ticks = ticks_across(axes, &style);
    const int bottom = axes->corner[1] + axes->size[1];
    int free_from = INT32_MIN;
    for (int n = 0; n < ticks.count; n++) {
        const int x = lr_axes_x(axes, lr_tick_value(&ticks, n));
        lr_picture_fill(picture, (int[2]){x, bottom}, (int[2]){1, 1 + tick_length}, axes->ink);
        const struct lr_tick_label label = lr_tick_label(&ticks, n);
        const int width = lr_picture_text_width(label.text, &style);
        if (x - width / 2 >= free_from) {
            lr_picture_text(picture, (int[2]){x - width / 2, bottom + 1 + tick_length}, label.text, &style);
            free_from = x + width / 2 + space;
        }
    }

    const struct lr_ticks up = ticks_up(axes, line);
    const int right = axes->corner[0] - 1 - tick_length;
    free_from = INT32_MAX;
    for (int n = 0; n < up.count; n++) {
        const int y = lr_axes_y(axes, lr_tick_value(&up, n)) - 1;
        lr_picture_fill(picture, (int[2]){right, y}, (int[2]){1 + tick_length, 1}, axes->ink);
        const struct lr_tick_label label = lr_tick_label(&up, n);
        const int width = lr_picture_text_width(label.text, &style);
        if (y + line / 2 <= free_from) {
            lr_picture_text(picture, (int[2]){right - space - width, y - line / 2}, label.text, &style);
            free_from = y - line / 2;
        }
    }

    const struct lr_margins margins = lr_axes_margins(axes);
    if (axes->across.name != NULL) {
        const int width = lr_picture_text_width(axes->across.name, &style);
        const int first =
            begin_name(axes->corner[0], axes->size[0], width, (const int[2]){margins.left, margins.right});
        lr_picture_text(picture, (int[2]){first, bottom + 1 + tick_length + line}, axes->across.name, &style);
    }
    if (axes->up.name != NULL) {
        const int width = lr_picture_text_width(axes->up.name, &style);
        const int first =
            begin_name(axes->corner[1], axes->size[1], width, (const int[2]){margins.top, margins.bottom});
        style.upwards = true;
        lr_picture_text(picture, (int[2]){axes->corner[0] - margins.left, first}, axes->up.name, &style);
    }
}

/* --- arrays as maps --- */

enum { num_colours = 256, usual_width = 12, usual_height = 100, most_ticks = 9 };

static double value_at(const lr_map_params *params, int column, int row)
{
    return (double)params->values[column * params->stride[0] + row * params->stride[1]];
}

void lr_picture_map(lr_picture *picture, const int corner[2], const lr_map_params *params)
{
    if (params->size[0] <= 0 || params->size[1] <= 0) return;
    lr_map_params full = *params;
    for (int k = 0; k < 2; k++)
        full.drawn_size[k] = params->drawn_size[k] > 0 ? params->drawn_size[k] : params->size[k];
    full.stride[0] = params->stride[0] != 0 ? params->stride[0] : 1;
    full.stride[1] = params->stride[1] != 0 ? params->stride[1] : params->size[0];
    if (params->low == 0.0 && params->high == 0.0) {
        /* The colours show the range from the smallest to the largest finite value, or from 0 to 1 if no value is
         * finite. */
        double low = INFINITY, high = -INFINITY;
        for (int row = 0; row < full.size[1]; row++) {
            for (int column = 0; column < full.size[0]; column++) {
                const double value = value_at(&full, column, row);
                if (isfinite(value)) {
                    low = fmin(low, value);
                    high = fmax(high, value);
                }
            }
        }
        full.low = low <= high ? low : 0.0;
        full.high = low <= high ? high : 1.0;
    }

    lr_colour colours[num_colours];
    for (int n = 0; n < num_colours; n++) colours[n] = lr_colour_of(params->colours, n / (num_colours - 1.0));
    const double per_value = full.high != full.low ? (num_colours - 1.0) / (full.high - full.low) : 0.0;
    const int *size = full.size, *drawn = full.drawn_size;
    for (int y = 0; y < drawn[1]; y++) {
        const int from_top = (int)((int64_t)y * size[1] / drawn[1]);
        const int row = params->first_row_on_top ? from_top : size[1] - 1 - from_top;
        for (int x = 0; x < drawn[0]; x++) {
            const int column = (int)((int64_t)x * size[0] / drawn[0]);
            const double value = value_at(&full, column, row);
            const double place = (value - full.low) * per_value;
            const double within = !(place > 0.0) ? 0.0 : fmin(place, num_colours - 1.0);
            const lr_colour colour = isnan(value) ? full.not_a_number : colours[(int)(within + 0.5)];
            lr_picture_fill(picture, (int[2]){corner[0] + x, corner[1] + y}, (int[2]){1, 1}, colour);
        }
    }
}

/* --- colour bars --- */

/* The sizes and ticks of a colour bar, with defaults filled in. */
struct bar {
    int size[2], line, unit_left; /* line: height of a label; unit_left: distance of the unit from the bar's left
                                     edge */
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
    bar.unit_left = bar.size[0] + tick_length + space + widest_label(&bar.ticks, &bar.style) + space;

    return bar;
}

int lr_picture_bar_width(const lr_bar_params *params)
{
    const struct bar bar = make_bar(params);
    return bar.unit_left + (bar.unit.text[0] != '\0' ? bar.line : 0);
}

void lr_picture_bar(lr_picture *picture, const int corner[2], const lr_bar_params *params)
{
    const struct bar bar = make_bar(params);
    for (int y = 0; y < bar.size[1]; y++) {
        const double t = bar.size[1] > 1 ? 1.0 - y / (bar.size[1] - 1.0) : 1.0;
        lr_picture_fill(picture, (int[2]){corner[0], corner[1] + y}, (int[2]){bar.size[0], 1},
                        lr_colour_of(params->colours, t));
    }
    lr_picture_frame(picture, corner, bar.size, bar.style.colour);

    /* Labels are beside their ticks, but are moved up or down to stay within the picture. */
    const double span = params->high - params->low;
    const int right = corner[0] + bar.size[0], last = picture->size[1] - bar.line;
    for (int n = 0; n < bar.ticks.count; n++) {
        const double share = span > 0.0 ? (lr_tick_value(&bar.ticks, n) - params->low) / span : 0.5;
        const int y = corner[1] + (int)lround((1.0 - share) * (bar.size[1] - 1)), above = y - bar.line / 2;
        const int top = above < 0 ? 0 : above > last ? last : above;
        const struct lr_tick_label label = lr_tick_label(&bar.ticks, n);
        lr_picture_fill(picture, (int[2]){right, y}, (int[2]){tick_length, 1}, bar.style.colour);
        lr_picture_text(picture, (int[2]){right + tick_length + space, top}, label.text, &bar.style);
    }

    lr_text_style style = bar.style;
    const int width = lr_picture_text_width(bar.unit.text, &style);
    const int middle = corner[1] + (bar.size[1] - width) / 2;
    style.upwards = true;
    lr_picture_text(picture, (int[2]){corner[0] + bar.unit_left, middle > 0 ? middle : 0}, bar.unit.text, &style);
}
