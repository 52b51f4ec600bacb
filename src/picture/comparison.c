/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A page that compares sampled and exact elements, and a chart with logarithmic axes that shows the errors of sampled
 * rows against R. */
#include <lr/picture.h>

#include "base/log.h"
#include "base/mem.h"
#include "picture/axes.h"
#include "picture/font.h"
#include "picture/pixel_lor.h"

#include <lr/operator.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- a chart of errors over R --- */

/* The relative error of an element computed with R x R samples: about 0.6 / R, and at most 0.8 / R. */
#define SAMPLING_LAW 0.6

struct error_chart {
    int size[2]; /* size including axes and legend */
    const int *rays;
    const lr_row_error *errors; /* [count] */
    int count;
};

enum { chart_text_px = 16, space = 6, marker_radius = 5, line_length = 36 };

static const lr_text_style chart_style = {.colour = {38, 38, 38}, .size_px = chart_text_px};
static const lr_colour chart_ink = {38, 38, 38}, rule = {222, 222, 222}, law_grey = {120, 120, 120};

/* The chart's curves. Each has a marker of its own, and a colour that colour-blind readers can distinguish. */
enum curve { CURVE_L2, CURVE_SUM, CURVE_MISSED, NUM_CURVES };
static const lr_colour curve_colours[NUM_CURVES] = {{0, 90, 160}, {204, 85, 0}, {0, 140, 105}};
static const char *const curve_names[NUM_CURVES] = {"relative L2", "|error of the sum|", "weight missed"};
static const char law_name[] = "law 0.6 / R";

/* The rectangle of the curves. Its axes show powers of 2 and of 10. */
struct chart_axes {
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

static int x_of(const struct chart_axes *axes, double rays)
{
    const double t = (log2(rays) - axes->first) / (axes->last - axes->first);
    return axes->corner[0] + (int)lround(t * (axes->size[0] - 1));
}

static int y_of(const struct chart_axes *axes, double value)
{
    const double t = (axes->highest - log10(value)) / (axes->highest - axes->lowest);
    return axes->corner[1] + (int)lround(t * (axes->size[1] - 1));
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

/* Draws a square, a diamond, or a square with a hole, so that curves differ in more than colour. */
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

static void draw_curve(const struct chart_axes *axes, const struct error_chart *chart, enum curve curve)
{
    int before[2] = {0};
    bool joined = false;
    for (int n = 0; n < chart->count; n++) {
        const double value = value_of(&chart->errors[n], curve);
        const bool shown = value >= pow(10.0, axes->lowest) && value <= pow(10.0, axes->highest);
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

static void draw_error_chart(lr_picture *picture, const int corner[2], const struct error_chart *chart)
{
    /* The vertical axis ends at a power of ten above the largest error. It begins at a power of ten below the smallest
     * error, but at most five decades below 100 %. */
    double least = 0.1, most = 1.0;
    for (int n = 0; n < chart->count; n++) {
        for (int curve = 0; curve < NUM_CURVES; curve++) {
            const double value = value_of(&chart->errors[n], (enum curve)curve);
            least = value > 0.0 ? fmin(least, value) : least;
            most = isfinite(value) ? fmax(most, value) : most;
        }
    }
    struct chart_axes axes = {
        .picture = picture,
        .corner = {corner[0], corner[1] + lr_picture_text_height(&chart_style) / 2},
        .first = log2(chart->rays[0]) - 0.25,
        .last = log2(chart->rays[chart->count - 1]) + 0.25,
        .lowest = (int)floor(log10(fmax(least, 1e-5))),
        .highest = (int)ceil(log10(most)),
    };
    char text[32];
    int widest_percent = 0, widest_name = lr_picture_text_width(law_name, &chart_style);
    for (int power = axes.lowest; power <= axes.highest; power++) {
        snprintf(text, sizeof(text), "%g %%", pow(10.0, power + 2));
        widest_percent = lr_larger(widest_percent, lr_picture_text_width(text, &chart_style));
    }
    for (int n = 0; n < NUM_CURVES; n++)
        widest_name = lr_larger(widest_name, lr_picture_text_width(curve_names[n], &chart_style));
    const int line = lr_picture_text_height(&chart_style), left_room = line + widest_percent + 2 * space;
    axes.corner[0] += left_room;
    axes.size[0] = chart->size[0] - left_room - (3 * space + line_length + widest_name);
    axes.size[1] = chart->size[1] - line / 2 - 2 * (line + space);

    /* Lines are drawn at powers of ten and at each R, then labels and the names of the axes. */
    const int left = axes.corner[0], top = axes.corner[1];
    const int right = left + axes.size[0] - 1, bottom = top + axes.size[1] - 1;
    for (int power = axes.lowest; power <= axes.highest; power++) {
        const int y = y_of(&axes, pow(10.0, power));
        lr_picture_line(picture, (int[2]){left, y}, (int[2]){right, y}, rule);
        snprintf(text, sizeof(text), "%g %%", pow(10.0, power + 2));
        const int width = lr_picture_text_width(text, &chart_style);
        lr_picture_text(picture, (int[2]){left - width - space, y - line / 2}, text, &chart_style);
    }
    int free_from = 0;
    for (int n = 0; n < chart->count; n++) {
        const int x = x_of(&axes, chart->rays[n]);
        lr_picture_line(picture, (int[2]){x, top}, (int[2]){x, bottom}, rule);
        snprintf(text, sizeof(text), "%d", chart->rays[n]);
        const int width = lr_picture_text_width(text, &chart_style);
        if (x - width / 2 >= free_from) {
            lr_picture_text(picture, (int[2]){x - width / 2, bottom + space}, text, &chart_style);
            free_from = x + width / 2 + 2 * space;
        }
    }
    static const char across[] = "R, samples along each side of a crystal", up[] = "error";
    const int width = lr_picture_text_width(across, &chart_style), height = lr_picture_text_width(up, &chart_style);
    lr_text_style upwards = chart_style;
    upwards.upwards = true;
    lr_picture_text(picture, (int[2]){left + (axes.size[0] - width) / 2, bottom + 1 + space + line}, across,
                    &chart_style);
    lr_picture_text(picture, (int[2]){left - left_room, top + (axes.size[1] - height) / 2}, up, &upwards);

    lr_picture_frame(picture, axes.corner, axes.size, chart_ink);
    double rays[2] = {chart->rays[0], chart->rays[chart->count - 1]};
    rays[1] = fmin(rays[1], SAMPLING_LAW / pow(10.0, axes.lowest));
    if (rays[1] > rays[0]) {
        int ends[2][2];
        for (int e = 0; e < 2; e++) {
            ends[e][0] = x_of(&axes, rays[e]);
            ends[e][1] = y_of(&axes, SAMPLING_LAW / rays[e]);
        }
        draw_dashes(picture, ends[0], ends[1]);
    }
    for (int curve = NUM_CURVES - 1; curve >= 0; curve--) draw_curve(&axes, chart, (enum curve)curve);

    int y = top + line / 2;
    for (int n = 0; n <= NUM_CURVES; n++) { /* the legend */
        const int from[2] = {left + axes.size[0] + 2 * space, y}, to[2] = {from[0] + line_length - space, y};
        if (n < NUM_CURVES) {
            draw_thick(picture, from, to, curve_colours[n]);
            draw_marker(picture, (int[2]){(from[0] + to[0]) / 2, y}, (enum curve)n);
        } else {
            draw_dashes(picture, from, to);
        }
        lr_picture_text(picture, (int[2]){from[0] + line_length, y - line / 2},
                        n < NUM_CURVES ? curve_names[n] : law_name, &chart_style);
        y += line + space;
    }
}

/* --- the page --- */

enum {
    margin = 24,
    gap = 16,
    text_px = 16,
    title_px = 26,
    line_height = 24,
    title_height = 40,
    card_lines = 6,
    num_notes = 3,
    card_height = title_height + card_lines * line_height,
    bar_width = 18,
    chart_height = 340,
    widest_chart = 1100,
    widest_line = 1400, /* largest width in pixels to which the page is widened for its title and subtitle */
    most_sampled = 64,
    most_pixels = 256 /* per crystal and axis */
};

static const lr_colour white = {255, 255, 255}, ink = {38, 38, 38};
static const lr_text_style plain = {.colour = {38, 38, 38}, .size_px = text_px},
                           soft = {.colour = {90, 90, 90}, .size_px = text_px},
                           large = {.colour = {38, 38, 38}, .size_px = title_px, .bold = true};

enum column { COLUMN_SAMPLED, COLUMN_EXACT, COLUMN_DIFFERENCE, NUM_COLUMNS };
static const char *const headings[NUM_COLUMNS][2] = {
    {"sampled", "on the scale of the exact one"},
    {"exact", "probability per pair"},
    {"sampled less exact", "in percent of the largest exact one"},
};
static const char *const notes[num_notes] = {
    "The faces of the primary module, u to the right and v up. Each crystal is cut",
    "into the pieces that lie on different LORs as seen through the point, each in",
    "the colour of its element. Dark violet is zero; grey is no LOR in coincidence.",
};

/* The page while it is drawn. */
struct page {
    const lr_comparison_params *params;
    lr_picture *picture;
    lr_row_error *errors; /* [num_sampled] */
    int64_t num_pixels;
    int64_t *lors;       /* [num_pixels] LOR of each pixel of a panel; -1 = none */
    float *values;       /* [num_pixels] values of a panel */
    double high;         /* weight that has the last colour */
    int panel[2];        /* size of a panel */
    struct lr_axes axes; /* axes around a panel */
    struct lr_margins margins;
    int card_width;
    int row_height; /* height of a row of panels */
    int header, footer;
    int x[NUM_COLUMNS], size[2];
};

/* --- numbers --- */

static double largest_of(const lr_row *row)
{
    double largest = 0.0;
    for (int64_t n = 0; n < row->count; n++) largest = fmax(largest, row->probability[n]);
    return largest;
}

/* Rounds up to a number with at most two digits; returns 1 for 0. */
static double round_up(double value)
{
    static const double steps[] = {1.0, 1.2, 1.6, 2.0, 2.4, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0};
    if (!(value > 0.0) || !isfinite(value)) return 1.0;
    const double power = pow(10.0, floor(log10(value)));
    int n = 0;
    while (steps[n] < value / power * (1.0 - 1e-12) && steps[n] < 10.0) n++;
    return steps[n] * power;
}

/* --- text --- */

static void write_text(const struct page *page, const int corner[2], const char *text, const lr_text_style *style)
{
    lr_text_style within = *style;
    within.most_px = page->size[0] - margin - corner[0];
    lr_picture_text(page->picture, corner, text, &within);
}

/* Writes one line of a card: the name of a value on the left, the value on the right. */
static void write_figure(const struct page *page, int *y, const char *what, const char *value)
{
    const int width = lr_picture_text_width(value, &plain);
    write_text(page, (int[2]){margin, *y}, what, &soft);
    write_text(page, (int[2]){margin + page->card_width - width, *y}, value, &plain);
    *y += line_height;
}

static void write_percent(const struct page *page, int *y, const char *what, double ratio)
{
    char text[32];
    const double percent = 100.0 * ratio;
    snprintf(text, sizeof(text), fabs(percent) < 0.01 && percent != 0.0 ? "%.1e %%" : "%.2f %%", percent);
    write_figure(page, y, what, text);
}

static lr_bar_params bar_of(const struct page *page, enum column column, double high)
{
    const bool is_difference = column == COLUMN_DIFFERENCE;
    return (lr_bar_params){.size = {bar_width, page->panel[1]},
                           .low = is_difference ? -high : 0.0,
                           .high = high,
                           .colours = is_difference ? LR_COLOURS_DIVERGING : LR_COLOURS_PERCEPTUAL,
                           .unit = is_difference ? "%" : "per pair",
                           .text = ink,
                           .text_px = text_px};
}

/* --- the page --- */

static void arrange(struct page *page)
{
    const lr_comparison_params *params = page->params;
    const lr_module *module = &params->lors->scanner->modules[params->module];
    for (int k = 0; k < 2; k++) page->panel[k] = module->crystals[k] * params->pixel_rays;
    page->num_pixels = (int64_t)page->panel[0] * page->panel[1];
    page->axes = (struct lr_axes){.size = {page->panel[0], page->panel[1]},
                                  .across = lr_face_axis(module, 0),
                                  .up = lr_face_axis(module, 1),
                                  .ink = ink,
                                  .text_px = text_px};
    page->margins = lr_axes_margins(&page->axes);
    page->card_width =
        lr_picture_text_width("largest error", &soft) + gap + lr_picture_text_width("10000 of 10000", &plain);

    int x = margin + page->card_width + 2 * gap;
    for (int c = 0; c < NUM_COLUMNS; c++) {
        page->x[c] = x + page->margins.left;
        x = page->x[c] + page->panel[0] + gap + gap;
        if (c != COLUMN_SAMPLED) {
            /* The scale of the bar is not known yet, so room is left for the widest labels. */
            const lr_bar_params widest = bar_of(page, (enum column)c, c == COLUMN_EXACT ? 1e-4 : 1.2);
            x += lr_picture_bar_width(&widest) + gap;
        }

        for (int line = 0; line < 2; line++) {
            const int text = lr_picture_text_width(headings[c][line], &plain);
            x = lr_larger(x, page->x[c] + text + 2 * gap);
        }
    }
    page->size[0] = x + margin;
    for (int n = 0; n < num_notes; n++)
        page->size[0] = lr_larger(page->size[0], lr_picture_text_width(notes[n], &soft) + 2 * margin);

    page->size[0] = lr_larger(page->size[0], lr_font_width_within(params->title, &large, widest_line) + 2 * margin);
    page->size[0] = lr_larger(page->size[0], lr_font_width_within(params->subtitle, &soft, widest_line) + 2 * margin);
    const int panel = page->panel[1] + page->margins.bottom;
    page->row_height = lr_larger(panel, card_height) + 2 * gap;
    lr_text_style subtitle = soft;
    subtitle.most_px = page->size[0] - 2 * margin;
    page->header = margin + (params->title != NULL ? title_height : 0) +
                   lr_font_lines(NULL, NULL, params->subtitle, &subtitle, line_height) * line_height + gap +
                   2 * line_height + page->margins.top;
    page->footer = gap + num_notes * line_height + margin;
    const int chart = params->num_sampled > 1 ? gap + chart_height + gap : 0;
    page->size[1] = page->header + params->num_sampled * page->row_height + chart + page->footer;
}

/* Draws a row of panels for one sampled row of the matrix: a card with its errors, and a panel for each column of the
 * page. */
static void draw_row(const struct page *page, int k, int top)
{
    const lr_comparison_params *params = page->params;
    const lr_row_error *error = &page->errors[k];
    char text[64];
    int y = top + title_height;
    snprintf(text, sizeof(text), "R = %d", params->rays[k]);
    write_text(page, (int[2]){margin, top}, text, &large);
    write_percent(page, &y, "relative L2", error->relative_l2);
    write_percent(page, &y, "law 0.6 / R", SAMPLING_LAW / params->rays[k]);
    write_percent(page, &y, "error of sum", error->sum_error);
    write_percent(page, &y, "largest error", error->largest_error);
    snprintf(text, sizeof(text), "%lld of %lld", (long long)error->num_missed, (long long)error->num_elements);
    write_figure(page, &y, "missed", text);
    write_percent(page, &y, "their weight", error->missed_weight);

    const double percent = error->largest > 0.0 ? 100.0 / error->largest : 0.0;
    const double most = round_up(100.0 * error->largest_error);
    const int *size = page->panel, step = params->pixel_rays;
    for (int c = 0; c < NUM_COLUMNS; c++) {
        const lr_row *row = c == COLUMN_EXACT ? params->exact : &params->sampled[k];
        const bool is_difference = c == COLUMN_DIFFERENCE;
        for (int64_t n = 0; n < page->num_pixels; n++) {
            const int64_t lor = page->lors[n];
            const double weight = lor >= 0 ? lr_row_element(row, lor) : 0.0;
            page->values[n] = lor < 0         ? NAN
                              : is_difference ? (float)(percent * (weight - lr_row_element(params->exact, lor)))
                                              : (float)weight;
        }
        const int corner[2] = {page->x[c], top};
        const lr_bar_params bar = bar_of(page, (enum column)c, is_difference ? most : page->high);
        lr_picture_map(page->picture, corner,
                       &(lr_map_params){.values = page->values,
                                        .size = {size[0], size[1]},
                                        .low = bar.low,
                                        .high = bar.high,
                                        .colours = bar.colours,
                                        .not_a_number = lr_pixel_none});
        /* White lines separate the crystals of the primary module. */
        for (int x = step; x < size[0] && step >= 6; x += step)
            lr_picture_fill(page->picture, (int[2]){corner[0] + x, top}, (int[2]){1, size[1]}, white);
        for (int down = step; down < size[1] && step >= 6; down += step)
            lr_picture_fill(page->picture, (int[2]){corner[0], top + down}, (int[2]){size[0], 1}, white);

        struct lr_axes axes = page->axes;
        axes.corner[0] = corner[0];
        axes.corner[1] = top;
        lr_axes_draw(page->picture, &axes);
        if (c != COLUMN_SAMPLED) lr_picture_bar(page->picture, (int[2]){corner[0] + size[0] + gap, top}, &bar);
    }
}

static lr_status check_params(const lr_comparison_params *params)
{
    const lr_log *log = params->log;
    if (params->pixels == NULL || params->lors == NULL || params->exact == NULL || params->sampled == NULL ||
        params->rays == NULL || params->num_sampled <= 0)
        return lr_error(log, LR_USAGE, "a comparison needs pixels, LORs, an exact row and a sampled one");
    if (params->num_sampled > most_sampled) {
        return lr_error(log, LR_USAGE, "%d rows are too many to compare: at most %d", params->num_sampled,
                        most_sampled);
    }
    if (params->module < 0 || params->module >= params->lors->scanner->num_modules || params->pixel_rays <= 0 ||
        params->pixel_rays > most_pixels) {
        return lr_error(log, LR_USAGE, "no comparison of module %d with %d pixels a crystal can be drawn",
                        params->module, params->pixel_rays);
    }
    for (int k = 0; k < params->num_sampled; k++) {
        if (params->rays[k] <= (k > 0 ? params->rays[k - 1] : 0)) {
            return lr_error(log, LR_USAGE, "R = %d cannot be compared: the numbers of rays must be positive and ascend",
                            params->rays[k]);
        }
    }
    return LR_OK;
}

lr_picture *lr_picture_comparison_sized(size_t given_bytes, const lr_comparison_params *given)
{
    LR_TAKE(lr_comparison_params, params, given, given_bytes);
    if (check_params(params) != LR_OK) return NULL;
    const lr_log *log = params->log;
    struct page page = {.params = params};
    arrange(&page);
    lr_picture *picture = page.picture = lr_picture_create(page.size, log);
    if (picture == NULL) return NULL;
    page.lors = lr_alloc(page.num_pixels, sizeof(*page.lors), "a comparison", log);
    page.values = lr_alloc(page.num_pixels, sizeof(*page.values), "a comparison", log);
    page.errors = lr_alloc(params->num_sampled, sizeof(*page.errors), "a comparison", log);
    if (page.lors == NULL || page.values == NULL || page.errors == NULL) {
        lr_picture_destroy(picture);
        picture = NULL;
        goto finish;
    }
    const struct lr_pixel_window window = {params->lors, params->module, params->pixel_rays, params->pixels};
    for (int64_t n = 0; n < page.num_pixels; n++)
        page.lors[n] = lr_pixel_lor(&window, (int)(n % page.panel[0]), (int)(n / page.panel[0]));
    double largest = largest_of(params->exact);
    for (int k = 0; k < params->num_sampled; k++) {
        page.errors[k] = lr_row_compare(&params->sampled[k], params->exact);
        largest = fmax(largest, largest_of(&params->sampled[k]));
    }
    page.high = round_up(largest);

    lr_picture_fill(picture, (int[2]){0, 0}, page.size, white);
    int y = margin;
    if (params->title != NULL) {
        write_text(&page, (int[2]){margin, y}, params->title, &large);
        y += title_height;
    }
    lr_text_style subtitle = soft;
    subtitle.most_px = page.size[0] - 2 * margin;
    lr_font_lines(picture, (int[2]){margin, y}, params->subtitle, &subtitle, line_height);
    for (int c = 0; c < NUM_COLUMNS; c++) {
        const int above = page.header - page.margins.top - 2 * line_height;
        write_text(&page, (int[2]){page.x[c], above}, headings[c][0], &plain);
        write_text(&page, (int[2]){page.x[c], above + line_height}, headings[c][1], &soft);
    }
    for (int k = 0; k < params->num_sampled; k++) draw_row(&page, k, page.header + k * page.row_height);
    if (params->num_sampled > 1) {
        const int width = page.size[0] - 2 * margin;
        const struct error_chart chart = {
            .size = {width < widest_chart ? width : widest_chart, chart_height},
            .rays = params->rays,
            .errors = page.errors,
            .count = params->num_sampled,
        };
        const int below = page.header + params->num_sampled * page.row_height;
        draw_error_chart(picture, (int[2]){margin, below + gap}, &chart);
    }
    for (int n = 0; n < num_notes; n++) {
        const int below = page.size[1] - margin - (num_notes - n) * line_height;
        write_text(&page, (int[2]){margin, below}, notes[n], &soft);
    }
    lr_font_tell(log);

finish:
    lr_free_all(page.lors, page.values, page.errors);
    return picture;
}
