/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/frame/panels.h"

#include "viewer/frame/app_input.h"
#include "viewer/frame/legend.h"
#include "viewer/tools/study_tool.h"
#include "viewer/tools/tools.h"

#include <math.h>
#include <stdio.h>

static const double left_width = 290.0, right_width = 400.0, bar_height = 30.0, bar_margin = 16.0;

/* Both panels stand one above the other at the right where there is no room for them side by side. */
static bool is_narrow(double width)
{
    return width < left_width + right_width;
}

void panels_leave(struct app *app)
{
    const double scale = window_scale(app->window);
    int size[2];
    window_size(app->window, size);
    app->scene_at[0] = is_narrow(size[0] / scale) ? 0.0 : fmin(floor(left_width * scale), size[0] - 1.0);
    app->scene_at[1] = 0.0;
    app->scene_size[0] = fmax(size[0] - app->scene_at[0] - floor(right_width * scale), 1.0);
    app->scene_size[1] = fmax(size[1] - floor(bar_height * scale), 1.0);
    app->has_room = size[0] >= (left_width + right_width) * scale && size[1] >= bar_height * scale;
}

/* --- over the scene --- */

static void label_axes(struct app *app)
{
    static const char *const names[3] = {"x", "y", "z (bed)"};
    static const uint32_t colours[3] = {0xe0643cff, 0x22b384ff, 0x4f9be8ff};
    for (int k = 0; k < 3; k++) {
        double end[3] = {0.0, 0.0, 0.0}, place[2];
        end[k] = 0.52 * app->camera.reach_mm;
        if (camera_project(&app->seen, end, place) && fmin(place[0], place[1]) >= 0.0 &&
            fmax(place[0], place[1]) <= 1.0) {
            const double scale = window_scale(app->window);
            ui_label((double[2]){(app->scene_at[0] + place[0] * app->scene_size[0]) / scale + 3.0,
                                 (app->scene_at[1] + place[1] * app->scene_size[1]) / scale - 7.0},
                     colours[k], names[k]);
        }
    }
}

/* As high as what was said last needs, up to a third of the window. */
static double find_bar_height(const struct app *app, const char *hover)
{
    double screen[2];
    ui_screen(screen);
    if (hover[0] != '\0' || app->num_messages == 0) return bar_height;
    const struct app_message *last = &app->messages[(app->num_messages - 1) % APP_MESSAGES];
    const double wanted = ui_text_height(last->text, screen[0] - bar_margin) + bar_margin;
    return fmin(fmax(wanted, bar_height), fmax(screen[1] / 3.0, bar_height));
}

static void show_bar(struct app *app, const char *hover, double height)
{
    double screen[2];
    ui_screen(screen);
    const struct ui_place place = {
        {0.0, screen[1] - height}, {screen[0], height}, true, true, app->has_room && height <= bar_height};
    if (ui_panel("bar", &place, NULL)) {
        if (hover[0] != '\0') {
            ui_text("%s", hover);
        } else if (app->num_messages > 0) {
            const struct app_message *last = &app->messages[(app->num_messages - 1) % APP_MESSAGES];
            ui_toned(last->level == LR_LOG_ERROR     ? UI_BAD
                     : last->level == LR_LOG_WARNING ? UI_WARNING
                                                     : UI_DIM,
                     "%s", last->text);
        } else {
            ui_toned(UI_DIM, "drop a scanner, an image or data here, or press O; press ? for the keys");
        }
    }
    ui_panel_end();
}

/* --- help and messages --- */

static void show_help(struct app *app)
{
    const struct ui_place place = {.at = {380.0, 120.0}, .size = {430.0, 470.0}};
    if (ui_panel("Keys and mouse", &place, &app->shows_help)) {
        if (ui_table("keys", 2)) {
            for (const struct app_key *key = app_keys; key->key != 0; key++) {
                if (key->name != NULL) {
                    ui_cell();
                    ui_text("%s", key->name);
                    ui_cell();
                    ui_text("%s", key->what);
                }
            }
            ui_table_end();
        }
        ui_line();
        ui_text("drag: turn; right or middle button: move; wheel: nearer");
        ui_text("click on a slice: that voxel; on a crystal: that crystal");
    }
    ui_panel_end();
}

static void show_messages(struct app *app)
{
    const struct ui_place place = {.at = {310.0, 560.0}, .size = {560.0, 190.0}};
    if (ui_panel("Messages", &place, &app->shows_messages)) {
        const int first = app->num_messages > APP_MESSAGES ? app->num_messages - APP_MESSAGES : 0;
        for (int k = first; k < app->num_messages; k++) {
            const struct app_message *message = &app->messages[k % APP_MESSAGES];
            ui_toned(message->level == LR_LOG_ERROR     ? UI_BAD
                     : message->level == LR_LOG_WARNING ? UI_WARNING
                                                        : UI_PLAIN,
                     "%s", message->text);
        }
    }
    ui_panel_end();
}

/* --- tools --- */

void panels_take_reading(struct app *app, struct ui_reading reading)
{
    if (reading.index >= 0) app->reading = reading;
}

/* Where the panels stand above a bar: Study, Tools. */
static void place_panels(const struct app *app, double height, struct ui_place places[2])
{
    static const double share = 0.38; /* of Study, where it stands above Tools */
    double screen[2];
    ui_screen(screen);
    const bool narrow = is_narrow(screen[0]);
    const double above = narrow ? floor(share * height) : 0.0;
    places[0] = (struct ui_place){{narrow ? screen[0] - right_width : 0.0, 0.0},
                                  {narrow ? right_width : left_width, narrow ? above : height},
                                  true,
                                  false,
                                  app->has_room};
    places[1] =
        (struct ui_place){{screen[0] - right_width, above}, {right_width, height - above}, true, false, app->has_room};
}

static void show_tools(struct app *app, const struct ui_place *place)
{
    static void (*const panels[NUM_TOOLS])(struct app * app) = {voxel_tool_panel, lor_tool_panel,    maps_tool_panel,
                                                                live_tool_panel,  doctor_tool_panel, direct_tool_panel};
    if (ui_panel("Tools", place, NULL) && ui_tabs("tools")) {
        const enum app_tool wanted = app->tool;
        for (int k = 0; k < NUM_TOOLS; k++) {
            if (ui_tab(app_tool_names[k], app->wants_tool && (int)wanted == k)) {
                if (!app->wants_tool) app->tool = (enum app_tool)k;
                if (panels[k] != NULL) panels[k](app);
                ui_tab_end();
            }
        }
        app->wants_tool = false;
        ui_tabs_end();
    }
    ui_panel_end();
}

void panels_show(struct app *app)
{
    double screen[2];
    char hover[256];
    ui_screen(screen);
    app->reading.index = -1;
    probe_describe(app, hover, sizeof(hover));
    const double bar = find_bar_height(app, hover), height = screen[1] - bar;
    struct ui_place places[2];
    place_panels(app, height, places);
    if (tools_scanner(app) != NULL) label_axes(app);
    legend_show(app);
    if (ui_panel("Study", &places[0], NULL)) study_tool_panel(app);
    ui_panel_end();
    show_tools(app, &places[1]);
    show_bar(app, hover, bar);
    if (start_tool_is_shown(app)) start_tool_panel(app);
    if (app->opener.is_shown) opener_tool_panel(app);
    if (app->shows_help) show_help(app);
    if (app->shows_messages) show_messages(app);
}

/* The first image is all the same, and may be so unlikely that nothing is seen of what follows. */
int panels_find_first(const float *likelihood, int count)
{
    enum { FEW = 5 };
    static const double most = 20.0;
    float highest = -HUGE_VALF;
    for (int k = 1; k < count; k++) highest = fmaxf(highest, likelihood[k]);
    const double rise = count > FEW ? (double)highest - likelihood[1] : 0.0;
    return rise > 0.0 && (double)likelihood[1] - likelihood[0] > most * rise ? 1 : 0;
}
