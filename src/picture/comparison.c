/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Sampled beside exact elements. */
#include <lr/picture.h>

#include "base/log.h"
#include "base/mem.h"
#include "picture/axes.h"
#include "picture/error_chart.h"
#include "picture/font.h"
#include "picture/pixel_lor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    widest_line = 1400, /* pixels of title and subtitle that the page is made wide enough for */
    most_sampled = 64,
    most_pixels = 256 /* a crystal and axis */
};

static const lr_colour white = {255, 255, 255}, ink = {38, 38, 38};
/* Grey, but none that letters have at their edges. */
static const lr_colour nothing = {203, 206, 210};
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

/* The page under way. */
struct page {
    const lr_comparison_params *params;
    lr_picture *picture;
    lr_row_error *errors; /* [num_sampled] */
    int64_t num_pixels;
    int64_t *lors;             /* [num_pixels], of each pixel of a panel; -1 = none */
    float *values;             /* [num_pixels], what a panel shows */
    double high;               /* weight at the end of the colours */
    int panel[2];              /* size of a panel */
    struct lr_axes axes;       /* around it */
    struct lr_margins margins; /* of the axes */
    int card_width;
    int row_height; /* of a row of panels */
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

/* The least number with few digits that is not below; 1 for 0. */
static double round_up(double value)
{
    static const double steps[] = {1.0, 1.2, 1.6, 2.0, 2.4, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0};
    if (!(value > 0.0) || !isfinite(value)) return 1.0;
    const double power = pow(10.0, floor(log10(value)));
    int n = 0;
    while (steps[n] < value / power * (1.0 - 1e-12) && steps[n] < 10.0) n++;
    return steps[n] * power;
}

static void find_lors(struct page *page)
{
    const lr_comparison_params *params = page->params;
    const struct lr_pixel_window window = {params->lors, params->module, params->pixel_rays, params->pixels};
    for (int64_t n = 0; n < page->num_pixels; n++)
        page->lors[n] = lr_pixel_lor(&window, (int)(n % page->panel[0]), (int)(n / page->panel[0]));
}

static void find_scales(struct page *page)
{
    const lr_comparison_params *params = page->params;
    double largest = largest_of(params->exact);
    for (int k = 0; k < params->num_sampled; k++) {
        page->errors[k] = lr_row_compare(&params->sampled[k], params->exact);
        largest = fmax(largest, largest_of(&params->sampled[k]));
    }
    page->high = round_up(largest);
}

/* --- text --- */

static void write_text(const struct page *page, const int corner[2], const char *text, const lr_text_style *style)
{
    lr_text_style within = *style;
    within.most_px = page->size[0] - margin - corner[0];
    lr_picture_text(page->picture, corner, text, &within);
}

/* One line of a card: what it is, and at the right its value. */
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

static void write_card(const struct page *page, int top, int k)
{
    const lr_row_error *error = &page->errors[k];
    const int rays = page->params->rays[k];
    int y = top;
    char text[64];
    snprintf(text, sizeof(text), "R = %d", rays);
    write_text(page, (int[2]){margin, y}, text, &large);
    y += title_height;
    write_percent(page, &y, "relative L2", error->relative_l2);
    write_percent(page, &y, "law 0.6 / R", LR_SAMPLING_LAW / rays);
    write_percent(page, &y, "error of sum", error->sum_error);
    write_percent(page, &y, "largest error", error->largest_error);
    snprintf(text, sizeof(text), "%lld of %lld", (long long)error->num_missed, (long long)error->num_elements);
    write_figure(page, &y, "missed", text);
    write_percent(page, &y, "their weight", error->missed_weight);
}

/* Draws the subtitle into lines from `top` on, or, without a picture, only counts them. */
static int break_subtitle(const struct page *page, const lr_picture *picture, int top)
{
    const char *text = page->params->subtitle;
    int lines = 0;
    for (; text != NULL && *text != '\0'; lines++) {
        struct lr_font_text line;
        lr_font_next_line(&text, page->size[0] - 2 * margin, &soft, &line);
        if (picture != NULL) write_text(page, (int[2]){margin, top + lines * line_height}, line.text, &soft);
    }
    return lines;
}

static void write_header(const struct page *page)
{
    const lr_comparison_params *params = page->params;
    int y = margin;
    if (params->title != NULL) {
        write_text(page, (int[2]){margin, y}, params->title, &large);
        y += title_height;
    }
    break_subtitle(page, page->picture, y);
    for (int c = 0; c < NUM_COLUMNS; c++) {
        const int above = page->header - page->margins.top - 2 * line_height;
        write_text(page, (int[2]){page->x[c], above}, headings[c][0], &plain);
        write_text(page, (int[2]){page->x[c], above + line_height}, headings[c][1], &soft);
    }
}

static void write_footer(const struct page *page)
{
    int y = page->size[1] - margin - num_notes * line_height;
    for (int n = 0; n < num_notes; n++) {
        write_text(page, (int[2]){margin, y}, notes[n], &soft);
        y += line_height;
    }
}

/* --- panels --- */

/* Lines of the page's colour between the primary's crystals. */
static void cut_crystals(const struct page *page, const int corner[2])
{
    const int step = page->params->pixel_rays;
    for (int x = step; x < page->panel[0] && step >= 6; x += step)
        lr_picture_fill(page->picture, (int[2]){corner[0] + x, corner[1]}, (int[2]){1, page->panel[1]}, white);
    for (int y = step; y < page->panel[1] && step >= 6; y += step)
        lr_picture_fill(page->picture, (int[2]){corner[0], corner[1] + y}, (int[2]){page->panel[0], 1}, white);
}

static void draw_panel(const struct page *page, const int corner[2], lr_colour_map colours, const double range[2])
{
    lr_picture_map(page->picture, corner,
                   &(lr_map_params){.values = page->values,
                                    .size = {page->panel[0], page->panel[1]},
                                    .low = range[0],
                                    .high = range[1],
                                    .colours = colours,
                                    .not_a_number = nothing});
    cut_crystals(page, corner);
    struct lr_axes axes = page->axes;
    axes.corner[0] = corner[0];
    axes.corner[1] = corner[1];
    lr_axes_draw(page->picture, &axes);
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

static void draw_bar(const struct page *page, const int corner[2], enum column column, double high)
{
    const lr_bar_params bar = bar_of(page, column, high);
    lr_picture_bar(page->picture, (int[2]){corner[0] + page->panel[0] + gap, corner[1]}, &bar);
}

static void draw_weights(const struct page *page, int top, const lr_row *row, enum column column)
{
    const int corner[2] = {page->x[column], top};
    const double range[2] = {0.0, page->high};
    for (int64_t n = 0; n < page->num_pixels; n++)
        page->values[n] = page->lors[n] >= 0 ? (float)lr_row_element(row, page->lors[n]) : NAN;
    draw_panel(page, corner, LR_COLOURS_PERCEPTUAL, range);
    if (column == COLUMN_EXACT) draw_bar(page, corner, column, page->high);
}

static double highest_difference(const struct page *page, int k)
{
    return round_up(100.0 * page->errors[k].largest_error);
}

static void draw_difference(const struct page *page, int top, int k)
{
    const lr_comparison_params *params = page->params;
    const int corner[2] = {page->x[COLUMN_DIFFERENCE], top};
    const double percent = page->errors[k].largest > 0.0 ? 100.0 / page->errors[k].largest : 0.0;
    const double most = highest_difference(page, k);
    for (int64_t n = 0; n < page->num_pixels; n++) {
        const int64_t lor = page->lors[n];
        page->values[n] =
            lor < 0
                ? NAN
                : (float)(percent * (lr_row_element(&params->sampled[k], lor) - lr_row_element(params->exact, lor)));
    }
    const double range[2] = {-most, most};
    draw_panel(page, corner, LR_COLOURS_DIVERGING, range);
    draw_bar(page, corner, COLUMN_DIFFERENCE, most);
}

/* --- the page --- */

static int larger(int a, int b)
{
    return a > b ? a : b;
}

/* Width of a text (NULL: none), but for what is above `most`. */
static int width_within(const char *text, const lr_text_style *style, int most)
{
    const int width = text != NULL ? lr_picture_text_width(text, style) : 0;
    return width < most ? width : most;
}

static void arrange_axes(struct page *page)
{
    const lr_module *module = &page->params->lors->scanner->modules[page->params->module];
    const double half_u = 0.5 * module->crystals[0] * module->pitch_mm[0];
    const double half_v = 0.5 * module->crystals[1] * module->pitch_mm[1];
    page->axes = (struct lr_axes){.size = {page->panel[0], page->panel[1]},
                                  .across = {-half_u, half_u, "u (mm)", false},
                                  .up = {-half_v, half_v, "v (mm)", false},
                                  .ink = ink,
                                  .text_px = text_px};
    page->margins = lr_axes_margins(&page->axes);
    page->card_width =
        lr_picture_text_width("largest error", &soft) + gap + lr_picture_text_width("10000 of 10000", &plain);
}

/* The widest bar of a column; scales are not known yet, but labels have few digits. */
static int room_of_bar(const struct page *page, enum column column)
{
    if (column == COLUMN_SAMPLED) return gap;
    const lr_bar_params widest = bar_of(page, column, column == COLUMN_EXACT ? 1e-4 : 1.2);
    return gap + lr_picture_bar_width(&widest) + gap;
}

static void arrange_columns(struct page *page)
{
    int x = margin + page->card_width + 2 * gap;
    for (int c = 0; c < NUM_COLUMNS; c++) {
        page->x[c] = x + page->margins.left;
        x = page->x[c] + page->panel[0] + room_of_bar(page, (enum column)c) + gap;
        for (int line = 0; line < 2; line++) {
            const int text = lr_picture_text_width(headings[c][line], &plain);
            x = larger(x, page->x[c] + text + 2 * gap);
        }
    }
    page->size[0] = x + margin;
    for (int n = 0; n < num_notes; n++)
        page->size[0] = larger(page->size[0], lr_picture_text_width(notes[n], &soft) + 2 * margin);
}

static void arrange(struct page *page)
{
    const lr_comparison_params *params = page->params;
    const int *crystals = params->lors->scanner->modules[params->module].crystals;
    for (int k = 0; k < 2; k++) page->panel[k] = crystals[k] * params->pixel_rays;
    page->num_pixels = (int64_t)page->panel[0] * page->panel[1];
    arrange_axes(page);
    arrange_columns(page);
    page->size[0] = larger(page->size[0], width_within(params->title, &large, widest_line) + 2 * margin);
    page->size[0] = larger(page->size[0], width_within(params->subtitle, &soft, widest_line) + 2 * margin);
    const int panel = page->panel[1] + page->margins.bottom;
    page->row_height = larger(panel, card_height) + 2 * gap;
    page->header = margin + (params->title != NULL ? title_height : 0) + break_subtitle(page, NULL, 0) * line_height +
                   gap + 2 * line_height + page->margins.top;
    page->footer = gap + num_notes * line_height + margin;
    const int chart = params->num_sampled > 1 ? gap + chart_height + gap : 0;
    page->size[1] = page->header + params->num_sampled * page->row_height + chart + page->footer;
}

static lr_status prepare(struct page *page)
{
    const lr_log *log = page->params->log;
    page->picture = lr_picture_create(page->size, log);
    if (page->picture == NULL) return LR_FAILED;
    page->lors = lr_alloc(page->num_pixels, sizeof(*page->lors), "a comparison", log);
    page->values = lr_alloc(page->num_pixels, sizeof(*page->values), "a comparison", log);
    page->errors = lr_alloc(page->params->num_sampled, sizeof(*page->errors), "a comparison", log);
    if (page->lors == NULL || page->values == NULL || page->errors == NULL) return LR_FAILED;
    find_lors(page);
    find_scales(page);
    return LR_OK;
}

static void draw_page(const struct page *page)
{
    const lr_comparison_params *params = page->params;
    int y = page->header;
    lr_picture_fill(page->picture, (int[2]){0, 0}, page->size, white);
    write_header(page);
    for (int k = 0; k < params->num_sampled; k++) {
        write_card(page, y, k);
        draw_weights(page, y, &params->sampled[k], COLUMN_SAMPLED);
        draw_weights(page, y, params->exact, COLUMN_EXACT);
        draw_difference(page, y, k);
        y += page->row_height;
    }
    if (params->num_sampled > 1) {
        const int width = page->size[0] - 2 * margin;
        const struct lr_error_chart chart = {
            .size = {width < widest_chart ? width : widest_chart, chart_height},
            .rays = params->rays,
            .errors = page->errors,
            .count = params->num_sampled,
        };
        lr_draw_error_chart(page->picture, (int[2]){margin, y + gap}, &chart);
    }
    write_footer(page);
    lr_font_tell(params->log);
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
            return lr_error(log, LR_USAGE,
                            "R = %d cannot be compared: the numbers of rays must be positive and "
                            "ascend",
                            params->rays[k]);
        }
    }
    return LR_OK;
}

lr_picture *lr_picture_comparison(const lr_comparison_params *params)
{
    if (check_params(params) != LR_OK) return NULL;
    struct page page = {.params = params};
    arrange(&page);
    if (prepare(&page) == LR_OK) {
        draw_page(&page);
    } else {
        lr_picture_destroy(page.picture);
        page.picture = NULL;
    }
    free(page.lors);
    free(page.values);
    free(page.errors);
    return page.picture;
}
