/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/frame/app_input.h"

#include "viewer/tools/tools.h"

#include <math.h>
#include <stdlib.h>

/* --- keys --- */

static void fit(struct app *app)
{
    tools_fit(app);
}

static void along_x(struct app *app)
{
    camera_along(&app->camera, 0);
}

static void along_y(struct app *app)
{
    camera_along(&app->camera, 1);
}

static void along_z(struct app *app)
{
    camera_along(&app->camera, 2);
}

static void show_help(struct app *app)
{
    app->shows_help = !app->shows_help;
}

static void toggle_scanner(struct app *app)
{
    app->hides_scanner = !app->hides_scanner;
}

static void toggle_volume(struct app *app)
{
    app->has_volume = !app->has_volume;
}

static void next_tool(struct app *app)
{
    app->tool = (app->tool + 1) % NUM_TOOLS;
    app->wants_tool = true;
}

static void save_view(struct app *app)
{
    app->saves_view = true;
}

static void save_session(struct app *app)
{
    tools_save_session(app);
}

static void slice_up(struct app *app)
{
    tools_move_slice(app, 1);
}

static void slice_down(struct app *app)
{
    tools_move_slice(app, -1);
}

static void stop_work(struct app *app)
{
    tools_cancel(app);
}

static void copy_values(struct app *app)
{
    tools_copy(app);
}

static void toggle_lors(struct app *app)
{
    app->hides_lors = !app->hides_lors;
}

static void toggle_opener(struct app *app)
{
    app->opener.is_shown = !app->opener.is_shown;
}

static void toggle_messages(struct app *app)
{
    app->shows_messages = !app->shows_messages;
}

const struct app_key app_keys[] = {
    {'/', "? or F1", "this list", show_help},
    {INPUT_KEY_F1, NULL, NULL, show_help},
    {'F', "F", "fit the scanner into the window", fit},
    {'X', "X", "look along x", along_x},
    {'Y', "Y", "look along y", along_y},
    {'Z', "Z", "look along z, the scanner's axis", along_z},
    {'C', "C", "hide or show the crystals", toggle_scanner},
    {'V', "V", "hide or show the image as a volume", toggle_volume},
    {'L', "L", "hide or show the lines of LORs", toggle_lors},
    {'O', "O", "open a file", toggle_opener},
    {INPUT_KEY_TAB, "Tab", "the next tool", next_tool},
    {INPUT_KEY_PAGE_UP, "Page up", "the next transaxial slice", slice_up},
    {INPUT_KEY_PAGE_DOWN, "Page down", "the one before", slice_down},
    {'P', "P", "save what is seen as a PNG file", save_view},
    {'S', "S", "save the session", save_session},
    {'K', "K", "copy the numbers under the mouse", copy_values},
    {'M', "M", "hide or show what has been said", toggle_messages},
    {INPUT_KEY_ESCAPE, "Esc", "stop what is being computed", stop_work},
    {0},
};

static void take_key(struct app *app, const struct input_event *event)
{
    if (!event->is_down || ui_wants_keys(app->ui) || event->modifiers & INPUT_CONTROL) return;
    for (const struct app_key *key = app_keys; key->key != 0; key++) {
        if (key->key == event->key) {
            key->run(app);
            return;
        }
    }
}

/* --- mouse --- */

struct pick_ray app_input_ray(const struct app *app)
{
    struct pick_ray ray;
    double place[2];
    for (int k = 0; k < 2; k++) place[k] = (app->mouse[k] + 0.5 - app->scene_at[k]) / app->scene_size[k];
    camera_ray(&app->seen, place, ray.way);
    for (int k = 0; k < 3; k++) ray.from_mm[k] = (double)app->seen.eye_mm[k];
    return ray;
}

static void drag(struct app *app, const double to[2])
{
    const double right = (to[0] - app->mouse[0]) / app->scene_size[1];
    const double down = (to[1] - app->mouse[1]) / app->scene_size[1];
    app->has_moved = app->has_moved || fabs(right) + fabs(down) > 0.0;
    if (app->held_button == INPUT_LEFT)
        camera_orbit(&app->camera, right, down);
    else if (app->held_button == INPUT_RIGHT || app->held_button == INPUT_MIDDLE)
        camera_pan(&app->camera, right, down);
}

static void take_button(struct app *app, const struct input_event *event)
{
    if (event->is_down && !ui_wants_mouse(app->ui) && app->held_button < 0) {
        app->held_button = event->button;
        app->has_moved = false;
    } else if (!event->is_down && event->button == app->held_button) {
        app->held_button = -1;
        if (!app->has_moved && event->button == INPUT_LEFT) tools_click(app);
    }
}

static void take(struct app *app, const struct input_event *event)
{
    if (event->kind == INPUT_MOVE || event->kind == INPUT_BUTTON) {
        if (app->held_button >= 0) drag(app, event->at);
        app->mouse[0] = event->at[0];
        app->mouse[1] = event->at[1];
    }
    if (event->kind == INPUT_BUTTON)
        take_button(app, event);
    else if (event->kind == INPUT_SCROLL && !ui_wants_mouse(app->ui))
        camera_zoom(&app->camera, event->by[1]);
    else if (event->kind == INPUT_KEY)
        take_key(app, event);
    else if (event->kind == INPUT_DROP)
        tools_drop(app, event->path);
    else if (event->kind == INPUT_CLOSE)
        app->wants_quit = true;
}

void app_input_take(struct app *app)
{
    struct input_event event;
    while (window_next(app->window, &event)) {
        ui_take(app->ui, &event);
        take(app, &event);
        if (event.kind == INPUT_MOVE || event.kind == INPUT_BUTTON || event.kind == INPUT_KEY ||
            event.kind == INPUT_TEXT)
            break; /* panels say in the next frame whether the mouse is on them */
    }
}
