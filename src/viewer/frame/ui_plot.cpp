// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Pictures, curves, colour bars, and what is told of them at the mouse.
#include "viewer/frame/place.h"
#include "viewer/frame/ticks.h"
#include "viewer/frame/ui.h"
#include "viewer/frame/ui_private.h"

#include <cfloat>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <initializer_list>

static ImVec2 image_corner, image_size; // of the picture last shown

// --- colours ---

ImVec4 ui_tone_colour(enum ui_tone tone)
{
    // Told apart by the colour-blind too: Okabe and Ito 2008.
    switch (tone) {
    case UI_DIM:
        return ImVec4(0.60f, 0.62f, 0.66f, 1.0f);
    case UI_GOOD:
        return ImVec4(0.34f, 0.71f, 0.91f, 1.0f);
    case UI_WARNING:
        return ImVec4(0.94f, 0.89f, 0.26f, 1.0f);
    case UI_BAD:
        return ImVec4(0.93f, 0.47f, 0.20f, 1.0f);
    default:
        return ImGui::GetStyleColorVec4(ImGuiCol_Text);
    }
}

// --- at the mouse ---

void ui_show_tip(const struct ui_tip *tip, const char *text)
{
    const float wrap = 440.0f * ui_scale;
    const ImVec2 letters = ImGui::CalcTextSize(text, nullptr, false, wrap);
    const ImVec2 padding = ImGui::GetStyle().WindowPadding;
    const double size[2] = {(double)(letters.x + 2.0f * padding.x),
                            (double)(letters.y + 2.0f * padding.y)};
    const ImVec2 display = ImGui::GetIO().DisplaySize;
    const double screen[2] = {(double)display.x, (double)display.y};
    double at[2];
    for (const ImVec2 *kept : {tip->large, tip->small}) {
        const struct place_box box = {{(double)kept[0].x, (double)kept[0].y},
                                      {(double)kept[1].x, (double)kept[1].y}};
        if (place_beside(&box, size, screen, at)) {
            break;
        }
    }
    ImGui::SetNextWindowPos(ImVec2((float)at[0], (float)at[1]));
    ImGui::BeginTooltip();
    ImGui::PushTextWrapPos(padding.x + wrap);
    ImGui::TextUnformatted(text);
    ImGui::PopTextWrapPos();
    ImGui::EndTooltip();
}

static ImVec2 on_image(const double at[2])
{
    return ImVec2(image_corner.x + (float)at[0] * image_size.x,
                  image_corner.y + (float)at[1] * image_size.y);
}

void ui_tooltip(const struct ui_part *part, const char *format, ...)
{
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    const ImVec2 a = on_image(part->from), b = on_image(part->to);
    const struct ui_tip tip = {
        {image_corner, ImVec2(image_corner.x + image_size.x, image_corner.y + image_size.y)},
        {ImVec2(fminf(a.x, b.x), fminf(a.y, b.y)), ImVec2(fmaxf(a.x, b.x), fmaxf(a.y, b.y))}};
    ui_show_tip(&tip, text);
}

// --- pictures ---

struct ui_touch ui_image(const char *label, const struct ui_image *image)
{
    const ImVec2 corner = ImGui::GetCursorScreenPos(), size = ui_pixels(image->size);
    const float top = image->is_top_down ? 0.0f : 1.0f;
    ImGui::InvisibleButton(label,
                           ImVec2(size.x > 1.0f ? size.x : 1.0f, size.y > 1.0f ? size.y : 1.0f));
    ImGui::GetWindowDrawList()->AddImage(ui_texture(image->texture), corner,
                                         ImVec2(corner.x + size.x, corner.y + size.y),
                                         ImVec2(0.0f, top), ImVec2(1.0f, 1.0f - top));
    image_corner = corner;
    image_size = size;
    const ImGuiIO &io = ImGui::GetIO();
    struct ui_touch touch = {};
    touch.is_over = ImGui::IsItemHovered();
    touch.is_held = ImGui::IsItemActive();
    touch.is_pressed = ImGui::IsItemActivated();
    touch.at[0] = (double)((io.MousePos.x - corner.x) / size.x);
    touch.at[1] = (double)((io.MousePos.y - corner.y) / size.y);
    touch.scroll = touch.is_over ? (double)io.MouseWheel : 0.0;
    return touch;
}

void ui_mark_line(const double from[2], const double to[2], uint32_t colour)
{
    ImGui::GetWindowDrawList()->AddLine(on_image(from), on_image(to), ui_packed(colour));
}

void ui_mark_box(const double from[2], const double to[2], uint32_t colour)
{
    ImGui::GetWindowDrawList()->AddRect(on_image(from), on_image(to), ui_packed(colour));
}

void ui_label(const double at[2], uint32_t colour, const char *text)
{
    ImDrawList *list = ImGui::GetBackgroundDrawList();
    const ImVec2 place = ui_pixels(at);
    list->AddText(ImVec2(place.x + 1.0f, place.y + 1.0f), IM_COL32(0, 0, 0, 200), text);
    list->AddText(place, ui_packed(colour), text);
}

// --- axes ---

namespace
{

// Where values lie along an axis of the screen.
struct axis {
    double range[2]; // values
    float ends[2];   // pixels they lie at
    struct ticks ticks;
};

float place_on(const struct axis *axis, double value)
{
    const double share = (value - axis->range[0]) / (axis->range[1] - axis->range[0]);
    return axis->ends[0] + (float)share * (axis->ends[1] - axis->ends[0]);
}

float write_width(const char *text)
{
    return ImGui::CalcTextSize(text).x;
}

// The widest of the numbers that stand along the axis.
float widest(const struct ticks *ticks)
{
    char text[TICKS_TEXT];
    float most = 0.0f;
    for (int k = 0; k < ticks->count; k++) {
        ticks_write(ticks, k, text);
        most = fmaxf(most, write_width(text));
    }
    return most;
}

ImU32 dim_colour(void)
{
    return ImGui::GetColorU32(ui_tone_colour(UI_DIM));
}

// Numbers under a horizontal axis as far as they have room between `left` and `right`.
void write_numbers(ImDrawList *list, const struct axis *axis, float top, const float room[2])
{
    char text[TICKS_TEXT];
    float free_from = room[0];
    for (int k = 0; k < axis->ticks.count; k++) {
        ticks_write(&axis->ticks, k, text);
        const float x = place_on(axis, axis->ticks.values[k]), width = write_width(text);
        list->AddLine(ImVec2(x, top), ImVec2(x, top + 3.0f * ui_scale), dim_colour());
        const float left = fminf(fmaxf(x - 0.5f * width, room[0]), room[1] - width);
        if (left >= free_from) {
            list->AddText(ImVec2(left, top + 3.0f * ui_scale), dim_colour(), text);
            free_from = left + width + 6.0f * ui_scale;
        }
    }
}

} // namespace

// --- colours ---

static float title_height(const struct ui_bar *bar)
{
    return ImGui::CalcTextSize(bar->title, nullptr, false, (float)bar->width * ui_scale).y;
}

static void draw_bar(ImDrawList *list, const struct ui_bar *bar, ImVec2 corner)
{
    const float width = (float)bar->width * ui_scale;
    const float top = corner.y + title_height(bar) + 2.0f * ui_scale;
    const float bottom = top + 10.0f * ui_scale;
    struct axis axis = {{bar->low, bar->high}, {corner.x, corner.x + width}, {}};
    axis.ticks = ticks_make(axis.range, 5, false);
    list->AddText(nullptr, 0.0f, corner, ImGui::GetColorU32(ImGuiCol_Text), bar->title, nullptr,
                  width);
    for (int k = 0; k + 1 < UI_BAR_COLOURS; k++) {
        const float from = corner.x + width * (float)k / (UI_BAR_COLOURS - 1);
        const float to = corner.x + width * (float)(k + 1) / (UI_BAR_COLOURS - 1);
        const ImU32 left = ui_packed(bar->colours[k]), right = ui_packed(bar->colours[k + 1]);
        list->AddRectFilledMultiColor(ImVec2(from, top), ImVec2(to, bottom), left, right, right,
                                      left);
    }
    list->AddRect(ImVec2(corner.x, top), ImVec2(corner.x + width, bottom), dim_colour());
    const float room[2] = {corner.x, corner.x + width};
    write_numbers(list, &axis, bottom, room);
}

double ui_bar_height(const struct ui_bar *bar)
{
    return (double)((ImGui::GetTextLineHeight() + title_height(bar)) / ui_scale) + 17.0;
}

void ui_bar(const struct ui_bar *bar)
{
    draw_bar(ImGui::GetWindowDrawList(), bar, ImGui::GetCursorScreenPos());
    ImGui::Dummy(ImVec2((float)bar->width * ui_scale, (float)ui_bar_height(bar) * ui_scale));
}

void ui_bar_at(const struct ui_bar *bar, const double at[2])
{
    const ImVec2 corner = ui_pixels(at), margin(6.0f * ui_scale, 4.0f * ui_scale);
    const float width = (float)bar->width * ui_scale;
    ImDrawList *list = ImGui::GetBackgroundDrawList();
    list->AddRectFilled(
        ImVec2(corner.x - margin.x, corner.y - margin.y),
        ImVec2(corner.x + width + margin.x, corner.y + (float)ui_bar_height(bar) * ui_scale),
        IM_COL32(14, 15, 19, 200), 3.0f * ui_scale);
    draw_bar(list, bar, corner);
}

void ui_square(const uint32_t colours[4], double size)
{
    const ImVec2 corner = ImGui::GetCursorScreenPos();
    const float side = (float)size * ui_scale;
    ImGui::GetWindowDrawList()->AddRectFilledMultiColor(
        corner, ImVec2(corner.x + side, corner.y + side), ui_packed(colours[2]),
        ui_packed(colours[3]), ui_packed(colours[1]), ui_packed(colours[0]));
    ImGui::Dummy(ImVec2(side, side));
}

// --- curves ---

namespace
{

struct plot {
    const struct ui_curve *curve;
    ImVec2 corners[2]; // of all of it
    struct axis x, y;
};

void widen(const float *values, int count, double range[2])
{
    for (int k = 0; k < count; k++) {
        const double value = (double)values[k];
        if (std::isfinite(value)) {
            range[0] = fmin(range[0], value);
            range[1] = fmax(range[1], value);
        }
    }
}

void find_range(const struct ui_curve *curve, double range[2])
{
    range[0] = HUGE_VAL;
    range[1] = -HUGE_VAL;
    widen(curve->values, curve->count, range);
    for (int k = 0; k < curve->num_beside; k++) {
        widen(curve->beside[k].values, curve->count, range);
    }
    if (!(range[0] < range[1])) { // one value, or none
        const double middle = range[0] == range[1] ? range[0] : 0.0;
        const double half = middle != 0.0 ? 0.01 * fabs(middle) : 1.0;
        range[0] = middle - half;
        range[1] = middle + half;
    }
}

// The numbers along y stand to the left of the curve, as wide as they need.
struct plot lay_out(const struct ui_curve *curve, ImVec2 corner, ImVec2 size)
{
    const float line = ImGui::GetTextLineHeight();
    struct plot plot = {curve, {corner, ImVec2(corner.x + size.x, corner.y + size.y)}, {}, {}};
    find_range(curve, plot.y.range);
    plot.y.ticks = ticks_make(plot.y.range, size.y > 6.0f * line ? 5 : 3, false);
    plot.x.range[0] = curve->x[0];
    plot.x.range[1] = curve->x[1] > curve->x[0] ? curve->x[1] : curve->x[0] + 1.0;
    plot.x.ticks = ticks_make(plot.x.range, 7, curve->is_counted);
    plot.x.ends[0] = corner.x + fminf(widest(&plot.y.ticks) + 6.0f * ui_scale, 0.5f * size.x);
    plot.x.ends[1] = corner.x + size.x - 4.0f * ui_scale;
    plot.y.ends[0] = corner.y + size.y - 2.0f * line - 4.0f * ui_scale;
    plot.y.ends[1] = corner.y + line + 6.0f * ui_scale;
    return plot;
}

double place_of(const struct ui_curve *curve, int k)
{
    return curve->count > 1 ? curve->x[0] + k * (curve->x[1] - curve->x[0]) / (curve->count - 1)
                            : curve->x[0];
}

void draw_axes(ImDrawList *list, const struct plot *plot, ImVec2 corner, float right)
{
    const float line = ImGui::GetTextLineHeight(), *x = plot->x.ends, *y = plot->y.ends;
    const ImU32 faint = IM_COL32(255, 255, 255, 24);
    char text[TICKS_TEXT];
    list->AddRectFilled(ImVec2(x[0], y[1]), ImVec2(x[1], y[0]),
                        ImGui::GetColorU32(ImGuiCol_FrameBg));
    list->AddText(corner, ImGui::GetColorU32(ImGuiCol_Text), plot->curve->title);
    for (int k = 0; k < plot->y.ticks.count; k++) {
        const float at = place_on(&plot->y, plot->y.ticks.values[k]);
        ticks_write(&plot->y.ticks, k, text);
        list->AddLine(ImVec2(x[0], at), ImVec2(x[1], at), faint);
        list->AddText(ImVec2(x[0] - 4.0f * ui_scale - write_width(text), at - 0.5f * line),
                      dim_colour(), text);
    }
    const float room[2] = {corner.x, right};
    write_numbers(list, &plot->x, y[0], room);
    const float label = 0.5f * (x[0] + x[1] - write_width(plot->curve->x_label));
    list->AddText(ImVec2(label, y[0] + line + 3.0f * ui_scale), dim_colour(), plot->curve->x_label);
}

ImVec2 point_of(const struct plot *plot, const float *values, int k)
{
    return ImVec2(place_on(&plot->x, place_of(plot->curve, k)),
                  place_on(&plot->y, (double)values[k]));
}

void draw_values(ImDrawList *list, const struct plot *plot, const float *values, ImU32 colour)
{
    for (int k = 0; k < plot->curve->count; k++) {
        if (!std::isfinite(values[k])) {
            continue;
        }
        const ImVec2 here = point_of(plot, values, k);
        if (k > 0 && std::isfinite(values[k - 1])) {
            list->AddLine(point_of(plot, values, k - 1), here, colour);
        }
        if (plot->curve->is_counted && plot->curve->count < 50) {
            list->AddCircleFilled(here, 2.0f * ui_scale, colour);
        }
    }
}

ImU32 own_colour(const struct ui_curve *curve)
{
    return curve->colour != 0 ? ui_packed(curve->colour) : ImGui::GetColorU32(ImGuiCol_PlotLines);
}

// Names at the right of the title, from the right to the left.
void draw_legend(ImDrawList *list, const struct plot *plot)
{
    const struct ui_curve *curve = plot->curve;
    float right = plot->corners[1].x - 4.0f * ui_scale;
    const float left = plot->corners[0].x + write_width(curve->title) + 12.0f * ui_scale;
    for (int k = -1; k < curve->num_beside && curve->num_beside > 0; k++) {
        const char *name = k < 0 ? curve->name : curve->beside[k].name;
        const ImU32 colour = k < 0 ? own_colour(curve) : ui_packed(curve->beside[k].colour);
        if (name != nullptr && right - write_width(name) > left) {
            right -= write_width(name);
            list->AddText(ImVec2(right, plot->corners[0].y), colour, name);
            right -= 10.0f * ui_scale;
        }
    }
}

void draw_series(ImDrawList *list, const struct plot *plot)
{
    const struct ui_curve *curve = plot->curve;
    for (int k = 0; k < curve->num_beside; k++) {
        draw_values(list, plot, curve->beside[k].values, ui_packed(curve->beside[k].colour));
    }
    draw_values(list, plot, curve->values, own_colour(curve));
    draw_legend(list, plot);
}

// The value nearest to the mouse along x.
int find_touched(const struct plot *plot)
{
    const float *x = plot->x.ends;
    const float share = (ImGui::GetIO().MousePos.x - x[0]) / fmaxf(x[1] - x[0], 1.0f);
    const int last = plot->curve->count - 1;
    const int k = (int)floorf(share * (float)last + 0.5f);
    return k < 0 ? 0 : k > last ? last : k;
}

void tell_touched(ImDrawList *list, const struct plot *plot, int k)
{
    const struct ui_curve *curve = plot->curve;
    const ImVec2 at = point_of(plot, curve->values, k);
    const float *y = plot->y.ends;
    char text[1024];
    list->AddLine(ImVec2(at.x, y[1]), ImVec2(at.x, y[0]), dim_colour());
    const char *name = curve->num_beside > 0 ? curve->name : curve->title;
    int length = snprintf(text, sizeof(text), "%s: %.6g\n%s: %.9g", curve->x_label,
                          place_of(curve, k), name, (double)curve->values[k]);
    int number = 1;
    for (int n = 0; n < curve->num_beside && length < (int)sizeof(text); n++) {
        const struct ui_series *series = &curve->beside[n];
        number = series->name != nullptr ? 1 : number + 1;
        name = series->name != nullptr ? series->name : name;
        const bool is_one = series->name != nullptr &&
                            (n + 1 == curve->num_beside || curve->beside[n + 1].name != nullptr);
        length += is_one ? snprintf(text + length, sizeof(text) - (size_t)length, "\n%s: %.9g",
                                    name, (double)series->values[k])
                         : snprintf(text + length, sizeof(text) - (size_t)length, "\n%s %d: %.9g",
                                    name, number, (double)series->values[k]);
    }
    const struct ui_tip tip = {{plot->corners[0], plot->corners[1]},
                               {ImVec2(at.x, y[1]), ImVec2(at.x, y[0])}};
    ui_show_tip(&tip, text);
}

} // namespace

struct ui_reading ui_curve(const char *label, const struct ui_curve *curve)
{
    const float width = fmaxf(ImGui::GetContentRegionAvail().x, 60.0f * ui_scale);
    const float height = (curve->height > 0.0 ? (float)curve->height : 124.0f) * ui_scale;
    const ImVec2 corner = ImGui::GetCursorScreenPos();
    ImGui::InvisibleButton(label, ImVec2(width, height));
    if (curve->count < 1) {
        return {-1, 0.0, 0.0};
    }
    ImDrawList *list = ImGui::GetWindowDrawList();
    const struct plot plot = lay_out(curve, corner, ImVec2(width, height));
    list->PushClipRect(corner, ImVec2(corner.x + width, corner.y + height), true);
    draw_axes(list, &plot, corner, corner.x + width);
    draw_series(list, &plot);
    struct ui_reading reading = {-1, 0.0, 0.0};
    if (ImGui::IsItemHovered()) {
        const int k = find_touched(&plot);
        reading = {k, place_of(curve, k), (double)curve->values[k]};
        tell_touched(list, &plot, k);
    }
    list->PopClipRect();
    return reading;
}

// --- bars ---

namespace
{

struct bar_chart {
    const struct ui_bars *bars;
    ImVec2 corners[2];
    struct axis y;
    float left, step; // of the first bar's room, and from one to the next
};

struct bar_chart lay_out_bars(const struct ui_bars *bars, ImVec2 corner, ImVec2 size)
{
    const float line = ImGui::GetTextLineHeight();
    struct bar_chart chart = {
        bars, {corner, ImVec2(corner.x + size.x, corner.y + size.y)}, {}, 0, 0};
    double *range = chart.y.range;
    for (int k = 0; k < bars->count; k++) {
        range[0] = fmin(range[0], bars->values[k]);
        range[1] = fmax(range[1], bars->values[k]);
    }
    if (!(range[0] < range[1])) {
        range[1] = 1.0;
    }
    chart.y.ticks = ticks_make(range, 4, false);
    // Values stand above and below the bars.
    chart.y.ends[0] =
        corner.y + size.y - 2.0f * line - 4.0f * ui_scale - (range[0] < 0.0 ? line : 0);
    chart.y.ends[1] = corner.y + 2.0f * line + 6.0f * ui_scale;
    chart.left = corner.x + fminf(widest(&chart.y.ticks) + 6.0f * ui_scale, 0.5f * size.x);
    chart.step = (chart.corners[1].x - 4.0f * ui_scale - chart.left) / (float)bars->count;
    return chart;
}

void draw_bar_axes(ImDrawList *list, const struct bar_chart *chart)
{
    const float line = ImGui::GetTextLineHeight(), right = chart->corners[1].x - 4.0f * ui_scale;
    const float bottom = chart->corners[1].y - 2.0f * line - 3.0f * ui_scale;
    char text[TICKS_TEXT];
    list->AddRectFilled(ImVec2(chart->left, chart->corners[0].y + line + 4.0f * ui_scale),
                        ImVec2(right, bottom), ImGui::GetColorU32(ImGuiCol_FrameBg));
    list->AddText(chart->corners[0], ImGui::GetColorU32(ImGuiCol_Text), chart->bars->title);
    for (int k = 0; k < chart->y.ticks.count; k++) {
        const double value = chart->y.ticks.values[k];
        const float at = place_on(&chart->y, value);
        ticks_write(&chart->y.ticks, k, text);
        list->AddLine(ImVec2(chart->left, at), ImVec2(right, at),
                      value == 0.0 ? dim_colour() : IM_COL32(255, 255, 255, 24));
        list->AddText(ImVec2(chart->left - 4.0f * ui_scale - write_width(text), at - 0.5f * line),
                      dim_colour(), text);
    }
    const float middle = 0.5f * (chart->left + right - write_width(chart->bars->x_label));
    list->AddText(ImVec2(middle, bottom + line + 1.0f * ui_scale), dim_colour(),
                  chart->bars->x_label);
}

void draw_one_bar(ImDrawList *list, const struct bar_chart *chart, int k)
{
    const double value = chart->bars->values[k];
    const float line = ImGui::GetTextLineHeight(), zero = place_on(&chart->y, 0.0);
    const float bottom = chart->corners[1].y - 2.0f * line - 3.0f * ui_scale;
    const float at = place_on(&chart->y, value), x = chart->left + chart->step * (float)k;
    const float middle = x + 0.5f * chart->step;
    const ImU32 colour = ImGui::GetColorU32(ui_tone_colour(value < 0.0 ? UI_BAD : UI_GOOD));
    char text[32];
    list->AddRectFilled(ImVec2(x + 0.15f * chart->step, fminf(at, zero)),
                        ImVec2(x + 0.85f * chart->step, fmaxf(at, zero) + 1.0f), colour);
    snprintf(text, sizeof(text), "%.3f", value);
    if (write_width(text) < chart->step - 2.0f * ui_scale) {
        list->AddText(ImVec2(middle - 0.5f * write_width(text), value < 0.0 ? at : at - line),
                      ImGui::GetColorU32(ImGuiCol_Text), text);
    }
    snprintf(text, sizeof(text), "%d", k + 1);
    if (write_width(text) < chart->step) {
        list->AddText(ImVec2(middle - 0.5f * write_width(text), bottom + 1.0f * ui_scale),
                      dim_colour(), text);
    }
}

void tell_bar(const struct bar_chart *chart, int k)
{
    char text[256];
    const float x = chart->left + chart->step * (float)k;
    snprintf(text, sizeof(text), "%s %d\n%s: %.9g", chart->bars->x_label, k + 1, chart->bars->title,
             chart->bars->values[k]);
    const struct ui_tip tip = {
        {chart->corners[0], chart->corners[1]},
        {ImVec2(x, chart->corners[0].y), ImVec2(x + chart->step, chart->corners[1].y)}};
    ui_show_tip(&tip, text);
}

} // namespace

int ui_bars(const char *label, const struct ui_bars *bars)
{
    const float width = fmaxf(ImGui::GetContentRegionAvail().x, 60.0f * ui_scale);
    const float height = (bars->height > 0.0 ? (float)bars->height : 124.0f) * ui_scale;
    const ImVec2 corner = ImGui::GetCursorScreenPos();
    ImGui::InvisibleButton(label, ImVec2(width, height));
    if (bars->count < 1) {
        return -1;
    }
    ImDrawList *list = ImGui::GetWindowDrawList();
    const struct bar_chart chart = lay_out_bars(bars, corner, ImVec2(width, height));
    list->PushClipRect(corner, ImVec2(corner.x + width, corner.y + height), true);
    draw_bar_axes(list, &chart);
    for (int k = 0; k < bars->count; k++) {
        draw_one_bar(list, &chart, k);
    }
    list->PopClipRect();
    const int touched = (int)floorf((ImGui::GetIO().MousePos.x - chart.left) / chart.step);
    if (!ImGui::IsItemHovered() || touched < 0 || touched >= bars->count) {
        return -1;
    }
    tell_bar(&chart, touched);
    return touched;
}
