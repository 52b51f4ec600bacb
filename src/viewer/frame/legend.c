/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/frame/legend.h"

#include "viewer/frame/app.h"

#include <math.h>
#include <stdio.h>

static const double bar_width = 300.0, scene_bar_width = 230.0, margin = 14.0;

const char *const legend_element_unit = "detections per emission";

static const struct {
    const char *name, *unit;
} images[DRAW_NUM_IMAGES] = {
    [DRAW_IMAGE] = {"image", "in the unit of its file"},
    [DRAW_MU] = {"mu-map", "1/mm"},
    [DRAW_TUBE] = {"tube of response", "detections per emission"},
    [DRAW_SENSITIVITY] = {"sensitivity", "detections per emission"},
    [DRAW_LIVE] = {"reconstruction", "emissions per voxel"},
    [DRAW_KERNEL] = {"DIRECT kernel", "share of the voxel's counts"},
    [DRAW_HISTO] = {"histo-image", "counts per voxel"},
};

const char *legend_image_name(enum draw_image which)
{
    return images[which].name;
}

/* Of an event's elements: chords, their shares of the Gaussian of time of flight, or solid angles. */
static const char *event_unit(const struct tube_request *request)
{
    if (request->kernel == TUBE_EXACT) return request->has_tof ? "detections per emission and mm" : legend_element_unit;
    return request->has_tof ? "share of the line" : "mm";
}

const char *legend_image_unit(const struct app *app, enum draw_image which)
{
    const struct tube_result *tube = which == DRAW_TUBE ? tube_result(app->lor.tube, NULL) : NULL;
    if (tube != NULL && tube->request.kernel != TUBE_LOR) return event_unit(&tube->request);
    const struct live_request *live = &app->live.request;
    const bool has_own_scale = live->family == LIVE_LISTMODE && live->elements != LR_LISTMODE_EXACT;
    return which == DRAW_LIVE && has_own_scale ? "of its own scale" : images[which].unit;
}

const char *legend_sheet_title(enum sheet_kind kind)
{
    static const char *const titles[SHEET_NUM_KINDS] = {
        [SHEET_CRYSTALS] = "crystals",
        [SHEET_WEIGHTS] = "weight of each line (share of emissions)",
        [SHEET_SAMPLED] = "sampled element (detections per emission)",
        [SHEET_EXACT] = "exact element (detections per emission)",
        [SHEET_DIFFERENCE] = "sampled - exact (detections per emission)",
    };
    return titles[kind];
}

struct ui_bar legend_bar(lr_colour_map colours, const double range[2], const char *title)
{
    struct ui_bar bar = {.low = range[0], .high = range[1], .width = bar_width};
    snprintf(bar.title, sizeof(bar.title), "%s", title);
    for (int k = 0; k < UI_BAR_COLOURS; k++) {
        const lr_colour colour = lr_colour_of(colours, k / (UI_BAR_COLOURS - 1.0));
        bar.colours[k] = (uint32_t)colour.r << 24 | (uint32_t)colour.g << 16 | (uint32_t)colour.b << 8 | 0xff;
    }
    return bar;
}

/* --- in the scene --- */

static struct ui_bar image_bar(const struct app *app, enum draw_image which, lr_colour_map colours,
                               const double range[2])
{
    char title[96];
    snprintf(title, sizeof(title), "%s (%s)", images[which].name, legend_image_unit(app, which));
    return legend_bar(colours, range, title);
}

static bool shows_slices(const struct draw_slices *slices)
{
    return slices->is_shown[0] || slices->is_shown[1] || slices->is_shown[2];
}

/* Slices have a map that a person chooses, volumes and what is laid over slices one of their own. */
static int find_bars(const struct app *app, struct ui_bar bars[4])
{
    const struct draw_slices *slices = &app->slices;
    const bool has_image = draw_get_image(app->draw, slices->image) != NULL;
    const bool has_slices = has_image && shows_slices(slices);
    const double range[2] = {slices->low, slices->high};
    int count = 0;
    const double crystals = draw_get_crystals_largest(app->draw);
    if (crystals > 0.0 && !app->hides_scanner) {
        bars[count++] =
            legend_bar(LR_COLOURS_PERCEPTUAL, (double[2]){0.0, crystals}, "crystals (detections per emission)");
    }
    if (has_slices && slices->overlay_high > 0.0 && slices->image != DRAW_TUBE &&
        draw_get_image(app->draw, DRAW_TUBE) != NULL)
        bars[count++] = image_bar(app, DRAW_TUBE, LR_COLOURS_PERCEPTUAL, (double[2]){0.0, slices->overlay_high});
    if (has_image && app->has_volume) {
        bars[count] = image_bar(app, slices->image, LR_COLOURS_PERCEPTUAL, (double[2]){0.0, slices->high});
        count += !has_slices || slices->colours != LR_COLOURS_PERCEPTUAL || slices->low != 0.0;
    }
    if (has_slices) bars[count++] = image_bar(app, slices->image, slices->colours, range);
    return count;
}

void legend_show(struct app *app)
{
    struct ui_bar bars[4];
    const double scale = window_scale(app->window);
    const double width = app->scene_size[0] / scale - 2.0 * margin;
    const int count = find_bars(app, bars);
    double at[2] = {app->scene_at[0] / scale + margin, (app->scene_at[1] + app->scene_size[1]) / scale};
    for (int k = count - 1; k >= 0 && width > 60.0; k--) {
        bars[k].width = fmin(scene_bar_width, width);
        at[1] -= ui_bar_height(&bars[k]) + 8.0;
        if (at[1] > 0.0) ui_bar_at(&bars[k], at);
    }
}
