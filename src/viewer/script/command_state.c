/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Values of the window, the camera and what is open, for `print` and `expect`. */
#include "viewer/frame/panels.h"
#include "viewer/script/command.h"

#include <stdio.h>

static void write_place(const double mm[3], struct command_value *value)
{
    snprintf(value->text, sizeof(value->text), "%.6f,%.6f,%.6f", mm[0], mm[1], mm[2]);
}

static void get_camera_at(struct app *app, struct command_value *value)
{
    write_place(app->camera.at_mm, value);
}

static void get_height(struct app *app, struct command_value *value)
{
    value->number = app->camera.height_deg;
}

static void get_voxel_point(struct app *app, struct command_value *value)
{
    write_place(app->voxel.request.point_mm, value);
}

static void get_voxel_rays(struct app *app, struct command_value *value)
{
    value->number = app->voxel.request.rays;
}

static void get_slices(struct app *app, struct command_value *value)
{
    write_place(app->slices.at_mm, value);
}

static void get_tool(struct app *app, struct command_value *value)
{
    snprintf(value->text, sizeof(value->text), "%s", app_tool_names[app->tool]);
}

static void get_window(struct app *app, struct command_value *value)
{
    int size[2];
    window_size(app->window, size);
    snprintf(value->text, sizeof(value->text), "%dx%d", size[0], size[1]);
}

static void get_mouse(struct app *app, struct command_value *value)
{
    snprintf(value->text, sizeof(value->text), "%.10g,%.10g", app->mouse[0], app->mouse[1]);
}

static void get_image(struct app *app, struct command_value *value)
{
    const char *path = app->open.image_path;
    snprintf(value->text, sizeof(value->text), "%s", path != NULL ? path : "none");
}

static void get_help(struct app *app, struct command_value *value)
{
    value->number = app->shows_help;
}

static void get_refused(struct app *app, struct command_value *value)
{
    value->number = app->doctor.refused.num_modules;
}

static void get_frames(struct app *app, struct command_value *value)
{
    value->number = (double)app->num_frames;
}

/* --- under the mouse in the scene --- */

static void get_slice(struct app *app, struct command_value *value)
{
    static const char *const names[] = {"none", "x", "y", "z"};
    snprintf(value->text, sizeof(value->text), "%s", names[app->probe.axis + 1]);
}

static void get_slice_value(struct app *app, struct command_value *value)
{
    value->number = app->probe.value;
}

static void get_slice_tube(struct app *app, struct command_value *value)
{
    value->number = app->probe.tube;
}

static void get_slice_voxel(struct app *app, struct command_value *value)
{
    const int *voxel = app->probe.voxel;
    snprintf(value->text, sizeof(value->text), "%d,%d,%d", voxel[0], voxel[1], voxel[2]);
}

static void get_slice_place(struct app *app, struct command_value *value)
{
    write_place(app->probe.point_mm, value);
}

static void get_bar(struct app *app, struct command_value *value)
{
    char text[COMMAND_TEXT];
    probe_describe(app, text, sizeof(text));
    snprintf(value->text, sizeof(value->text), "%s", text[0] != '\0' ? text : "none");
}

/* --- panels --- */

static void get_curve(struct app *app, struct command_value *value)
{
    const struct ui_reading *reading = &app->reading;
    snprintf(value->text, sizeof(value->text), "none");
    if (reading->index >= 0) snprintf(value->text, sizeof(value->text), "%.9g,%.9g", reading->x, reading->value);
}

static void get_opener(struct app *app, struct command_value *value)
{
    snprintf(value->text, sizeof(value->text), "%.255s", app->opener.is_shown ? app->opener.folder : "none");
}

static void get_opener_error(struct app *app, struct command_value *value)
{
    const char *error = app->opener.error;
    snprintf(value->text, sizeof(value->text), "%.255s", error[0] != '\0' ? error : "none");
}

static void get_start(struct app *app, struct command_value *value)
{
    value->number = start_tool_is_shown(app);
}

static void get_lors(struct app *app, struct command_value *value)
{
    value->number = !app->hides_lors;
}

const struct command_source command_state_values[] = {
    {"camera.at_mm", get_camera_at},
    {"camera.height_deg", get_height},
    {"voxel.point_mm", get_voxel_point},
    {"voxel.rays", get_voxel_rays},
    {"slices.at_mm", get_slices},
    {"tool", get_tool},
    {"window.size", get_window},
    {"mouse", get_mouse},
    {"image.path", get_image},
    {"help", get_help},
    {"doctor.refused", get_refused},
    {"frames", get_frames},
    {"hover.slice", get_slice},
    {"hover.value", get_slice_value},
    {"hover.voxel", get_slice_voxel},
    {"hover.mm", get_slice_place},
    {"hover.tube", get_slice_tube},
    {"hover.text", get_bar},
    {"curve", get_curve},
    {"open.folder", get_opener},
    {"open.error", get_opener_error},
    {"start", get_start},
    {"lors", get_lors},
};
const int command_num_state_values = (int)(sizeof(command_state_values) / sizeof(command_state_values[0]));
