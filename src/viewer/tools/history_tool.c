/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Undo and redo. A state holds the camera, the panes, the slices, and which parts of the scene are hidden. It does not
 * hold files, regions and settings of tools. */
#include "viewer/app.h"

#include <stddef.h>
#include <string.h>

enum { HISTORY_MOST = 100 };

struct viewed {
    struct camera camera;
    struct draw_slices slices;
    double ranges[DRAW_NUM_IMAGES][2], pane_zoom, pane_offset_mm[3];
    int32_t alone, hides_scanner, hides_lors, has_volume;
    int64_t changes[DRAW_NUM_IMAGES]; /* copy of draw->changes; a change of these alone makes no new state */
};

struct history_state {
    struct viewed states[HISTORY_MOST];
    int count, at;  /* number of states; states[at] is shown */
    bool had_input; /* a person has used mouse or keys since the last state */
};

static void look(const struct app *app, struct viewed *viewed)
{
    memset(viewed, 0, sizeof(*viewed)); /* states are compared byte by byte */
    viewed->camera = app->camera;
    memcpy(&viewed->slices, &app->slices, sizeof(viewed->slices));
    memset(&viewed->slices.region, 0, sizeof(viewed->slices.region));
    memcpy(viewed->ranges, app->ranges, sizeof(viewed->ranges));
    viewed->pane_zoom = app->pane_zoom;
    memcpy(viewed->pane_offset_mm, app->pane_offset_mm, sizeof(viewed->pane_offset_mm));
    viewed->alone = app->alone;
    viewed->hides_scanner = app->hides_scanner;
    viewed->hides_lors = app->hides_lors;
    viewed->has_volume = app->has_volume;
    memcpy(viewed->changes, app->draw->changes, sizeof(viewed->changes));
}

/* If a person made the change, the new state follows the last state. If a program made the change, the new state
 * replaces the last state. */
static lr_status update(struct app *app)
{
    struct history_state *tool = app_state(app, &history_tool);
    struct viewed now;
    look(app, &now);
    if (app->held_button >= 0 || app->holds_pane) return LR_OK; /* a drag is one change */
    if (tool->count > 0 && memcmp(&now, &tool->states[tool->at], offsetof(struct viewed, changes)) == 0) {
        tool->states[tool->at] = now;
        tool->had_input = tool->had_input && app->ui->wants_mouse;
        return LR_OK;
    }
    if (tool->count == 0 || tool->had_input) {
        tool->count = tool->count == 0 ? 1 : tool->at + 2;
        if (tool->count > HISTORY_MOST) {
            memmove(&tool->states[0], &tool->states[1], sizeof(tool->states) - sizeof(tool->states[0]));
            tool->count = HISTORY_MOST;
        }
        tool->at = tool->count - 1;
    }
    tool->had_input = false;
    tool->states[tool->at] = now;
    return LR_OK;
}

/* Undoes or redoes a change. An image that is no longer open is not shown again. An image whose values have changed in
 * the meantime keeps its current window. */
static void go(struct app *app, int by)
{
    struct history_state *tool = app_state(app, &history_tool);
    if (tool->at + by < 0 || tool->at + by >= tool->count) return;
    tool->at += by;
    const struct viewed *viewed = &tool->states[tool->at];
    const struct draw_region region = app->slices.region;
    const enum draw_image image = app->slices.image;
    memcpy(&app->slices, &viewed->slices, sizeof(app->slices));
    memcpy(&app->slices.region, &region, sizeof(region));
    app->camera = viewed->camera;
    for (int k = 0; k < DRAW_NUM_IMAGES; k++)
        if (viewed->changes[k] == app->draw->changes[k])
            memcpy(app->ranges[k], viewed->ranges[k], sizeof(app->ranges[k]));
    if (viewed->changes[DRAW_TUBE] != app->draw->changes[DRAW_TUBE] && app->slices.overlay_high > 0.0)
        app->slices.overlay_high = app->ranges[DRAW_TUBE][1];
    if (app->draw->images[app->slices.image] == NULL && app->draw->images[image] != NULL) app->slices.image = image;
    const double *range = app->ranges[app->slices.image];
    app_set_window(app, range[0], range[1]);
    app->pane_zoom = viewed->pane_zoom;
    memcpy(app->pane_offset_mm, viewed->pane_offset_mm, sizeof(app->pane_offset_mm));
    app->alone = viewed->alone;
    app->hides_scanner = viewed->hides_scanner;
    app->hides_lors = viewed->hides_lors;
    app->has_volume = viewed->has_volume;
    look(app, &tool->states[tool->at]);
}

/* States of other files are not shown again. */
static lr_status take_study(struct app *app, bool is_new)
{
    struct history_state *tool = app_state(app, &history_tool);
    if (is_new) tool->count = tool->at = 0;
    return LR_OK;
}

static bool take(struct app *app, const struct input_event *event)
{
    struct history_state *tool = app_state(app, &history_tool);
    const bool is_key = event->kind == INPUT_KEY && event->is_down && !app->ui->wants_keys;
    if (is_key && (event->modifiers & INPUT_CONTROL) != 0 && (event->key == 'Z' || event->key == 'Y')) {
        go(app, event->key == 'Z' && (event->modifiers & INPUT_SHIFT) == 0 ? -1 : 1);
        return true;
    }
    tool->had_input = tool->had_input || is_key || event->kind == INPUT_BUTTON || event->kind == INPUT_SCROLL;
    return false;
}

static bool get_value(struct app *app, const char *name, struct command_value *value)
{
    const struct history_state *tool = app_state(app, &history_tool);
    const struct command_number numbers[] = {
        {"undo", tool->at}, {"redo", tool->count > 0 ? tool->count - 1 - tool->at : 0}, {0}};
    return command_pick(numbers, (const struct command_text[]){{0}}, name, value);
}

const struct viewer_tool history_tool = {.state_bytes = sizeof(struct history_state),
                                         .take_study = take_study,
                                         .update = update,
                                         .take = take,
                                         .get_value = get_value};
