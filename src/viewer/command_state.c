/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Values of the window, the camera and what is open, for `print` and `expect`. */
#include "viewer/command.h"

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

const struct command_source command_state_values[] = {
    {"camera.at_mm", get_camera_at},     {"camera.height_deg", get_height},
    {"voxel.point_mm", get_voxel_point}, {"voxel.rays", get_voxel_rays},
    {"slices.at_mm", get_slices},        {"tool", get_tool},
    {"window.size", get_window},         {"mouse", get_mouse},
    {"image.path", get_image},           {"help", get_help},
    {"doctor.refused", get_refused},     {"frames", get_frames},
};
const int command_num_state_values =
    (int)(sizeof(command_state_values) / sizeof(command_state_values[0]));
