/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/tools/direct_tool.h"

#include "base/mem.h"
#include "viewer/frame/app.h"
#include "viewer/frame/legend.h"
#include "viewer/frame/scene_lines.h"
#include "viewer/tools/tools.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double usual_tof_ps = 400.0;

lr_status direct_tool_open(struct app *app)
{
    app->direct.model = direct_model_create(&app->log);
    app->direct.request.kernel.resolution.tof_ps = usual_tof_ps;
    return app->direct.model != NULL ? LR_OK : LR_FAILED;
}

void direct_tool_close(struct app *app)
{
    gl_texture_destroy(app->direct.map);
    direct_model_destroy(app->direct.model);
}

const struct direct_result *direct_tool_result(const struct app *app)
{
    return direct_model_result(app->direct.model, NULL);
}

/* --- asking --- */

static const lr_grid *grid_of(const struct app *app)
{
    const lr_histo_images *histo = direct_model_histo(app->direct.model, NULL);
    return histo != NULL ? &histo->grid : &app->open.grid;
}

const lr_direct_kernel *direct_tool_kernel(struct app *app)
{
    struct direct_tool *tool = &app->direct;
    const lr_scanner *scanner = app->open.scanner;
    if (!tool->has_tof && scanner != NULL && scanner->tof_resolution_ps > 0.0)
        tool->request.kernel.resolution.tof_ps = scanner->tof_resolution_ps;
    return &tool->request.kernel;
}

void direct_tool_ask(struct app *app)
{
    struct direct_tool *tool = &app->direct;
    (void)direct_tool_kernel(app);
    memcpy(tool->request.point_mm, app->voxel.request.point_mm, sizeof(tool->request.point_mm));
    tool->is_asked = direct_model_ask(tool->model, grid_of(app), &tool->request, &app->log) == LR_OK;
    if (tool->is_asked) tool->report.state = JOB_RUNNING;
}

void direct_tool_open_histo(struct app *app, const char *path)
{
    if (direct_model_open(app->direct.model, path, &app->log) == LR_OK) app->direct.histo_report.state = JOB_RUNNING;
}

void direct_tool_show_view(struct app *app, int view)
{
    struct direct_tool *tool = &app->direct;
    const lr_histo_images *histo = direct_model_histo(tool->model, NULL);
    if (histo == NULL || view < 0 || view >= histo->num_views) return;
    const int64_t count = lr_grid_num_voxels(&histo->grid);
    const lr_image image = {.grid = histo->grid, .values = histo->values + view * count};
    double most = 0.0;
    tool->view = view;
    tool->counts = 0.0;
    for (int64_t v = 0; v < count; v++) {
        most = fmax(most, (double)image.values[v]);
        tool->counts += image.values[v];
    }
    app->ranges[DRAW_HISTO][1] = fmax(most, 1e-30);
    tools_put_image(app, DRAW_HISTO, &image);
    tools_show_image(app, DRAW_HISTO);
    tool->request.view = histo->views[view];
    if (tool->is_asked) direct_tool_ask(app);
}

/* --- what becomes ready --- */

static lr_status paint_map(struct app *app, const lr_direct_tables *tables)
{
    struct direct_tool *tool = &app->direct;
    const lr_direct_tables_info *info = lr_direct_tables_get_info(tables);
    const int32_t *map = lr_direct_tables_map(tables);
    const int64_t count = (int64_t)info->grid.size[0] * info->grid.size[1];
    uint8_t *texels = lr_alloc(count, 4, "a LORmap to show", &app->log);
    gl_texture_destroy(tool->map);
    tool->map = gl_texture_create(app->ctx, &(struct gl_texture_params){.label = "LORmap",
                                                                        .format = GL_RGBA8,
                                                                        .width = info->grid.size[0],
                                                                        .height = info->grid.size[1]});
    for (int64_t k = 0; texels != NULL && k < count; k++) {
        const lr_colour colour = lr_colour_of(LR_COLOURS_PERCEPTUAL, (map[k] + 0.5) / info->num_kernels);
        memcpy(&texels[4 * k], (uint8_t[4]){colour.r, colour.g, colour.b, 255}, 4);
    }
    const lr_status status = tool->map != NULL && texels != NULL ? gl_texture_upload(tool->map, texels) : LR_FAILED;
    free(texels);
    return status;
}

/* The chosen voxel, without the lines that another tool drew. */
static void show_scene(struct app *app, const struct direct_result *result)
{
    if (app->tool == TOOL_DIRECT) {
        (void)draw_set_lines(app->draw, DRAW_LORS, NULL, 0);
        (void)draw_set_lines(app->draw, DRAW_LOR, NULL, 0);
        (void)draw_set_crystal_values(app->draw, NULL, 0.0);
        (void)scene_lines_cursor(app->draw, result->request.point_mm, 0.04 * app->camera.reach_mm);
    }
}

static void take_tables(struct app *app)
{
    struct direct_tool *tool = &app->direct;
    int64_t serial;
    const struct direct_result *result = direct_model_result(tool->model, &serial);
    if (result == NULL || serial == tool->serial) return;
    const bool is_first = tool->serial == 0;
    tool->serial = serial;
    paint_map(app, result->tables);
    show_scene(app, result);
    app->ranges[DRAW_KERNEL][1] = fmax(result->largest, 1e-30);
    tools_put_image(app, DRAW_KERNEL, result->is_inside ? result->cloud : NULL);
    if (is_first || app->slices.image == DRAW_KERNEL) tools_show_image(app, DRAW_KERNEL);
}

static void take_histo(struct app *app)
{
    struct direct_tool *tool = &app->direct;
    int64_t serial;
    const lr_histo_images *histo = direct_model_histo(tool->model, &serial);
    if (histo != NULL && serial != tool->histo_serial) {
        tool->histo_serial = serial;
        direct_tool_show_view(app, 0);
    }
}

/* A new voxel has a kernel of its own. */
static bool follows(const struct app *app)
{
    return app->direct.is_asked &&
           memcmp(app->direct.request.point_mm, app->voxel.request.point_mm, sizeof(app->direct.request.point_mm)) != 0;
}

lr_status direct_tool_update(struct app *app)
{
    struct direct_tool *tool = &app->direct;
    const bool was_busy = tool->report.state == JOB_RUNNING;
    const bool was_reading = tool->histo_report.state == JOB_RUNNING;
    if (direct_model_poll(tool->model, &tool->report) == JOB_FAILED && was_busy) {
        app_take_failure(app, &tool->report, false);
        tool->is_asked = false;
    }
    if (direct_model_poll_histo(tool->model, &tool->histo_report) == JOB_FAILED && was_reading)
        app_take_failure(app, &tool->histo_report, false);
    take_histo(app);
    take_tables(app);
    if (follows(app)) direct_tool_ask(app);
    return LR_OK;
}

/* --- its panel --- */

static const double picture_width = 370.0, most_height = 260.0;

/* --- histo-images --- */

static void show_histo(struct app *app)
{
    struct direct_tool *tool = &app->direct;
    const lr_histo_images *histo = direct_model_histo(tool->model, NULL);
    ui_write("##histo path", tool->path, sizeof(tool->path));
    ui_beside();
    if (ui_button("open##histo", tool->path[0] != '\0')) direct_tool_open_histo(app, tool->path);
    ui_hint("histo-images (HDF5), as loraster direct deposit writes them");
    if (tool->histo_report.state == JOB_RUNNING) ui_progress(tool->histo_report.share, tool->histo_report.doing);
    if (histo == NULL) return;
    int view = tool->view;
    if (ui_slide("view", &view, (const int[2]){0, histo->num_views - 1}) && view != tool->view)
        direct_tool_show_view(app, view);
    ui_text("azimuth %.4g, tilt %.4g degrees: %.6g counts", histo->views[tool->view].azimuth_deg,
            histo->views[tool->view].tilt_deg, tool->counts);
    if (ui_button("show##histo", true)) tools_show_image(app, DRAW_HISTO);
}

/* --- tables --- */

static void choose_tables(struct app *app)
{
    static const char *const models[] = {"invariant", "variant1", "variant2", "variant3"};
    struct direct_tool *tool = &app->direct;
    lr_resolution *resolution = &tool->request.kernel.resolution;
    double angles[2] = {tool->request.view.azimuth_deg, tool->request.view.tilt_deg};
    int model = (int)resolution->model;
    bool has_changed = false;
    if (ui_reals("azimuth, tilt (deg)", angles, 2)) {
        tool->request.view = (lr_view){angles[0], angles[1]};
        has_changed = true;
    }
    if (ui_reals("time resolution (ps)", &resolution->tof_ps, 1)) has_changed = tool->has_tof = true;
    if (ui_choose("width across", &model, models, 4)) {
        resolution->model = (lr_radial_model)model;
        has_changed = true;
    }
    has_changed |= ui_check("asymmetric", &resolution->asymmetric);
    if (!tool->is_asked && ui_button("compute##direct", app->open.grid.size[0] > 0))
        has_changed = tool->is_asked = true;
    if (has_changed && tool->is_asked) direct_tool_ask(app);
    if (tool->report.state == JOB_RUNNING) ui_progress(tool->report.share, tool->report.doing);
}

/* Chooses the voxel under the mouse, in the slice of the one before. */
static void touch_map(struct app *app, const struct direct_result *result, const struct ui_touch *touch)
{
    const lr_direct_tables_info *info = lr_direct_tables_get_info(result->tables);
    const lr_grid *grid = &info->grid;
    const int x = (int)fmin(fmax(touch->at[0] * grid->size[0], 0.0), grid->size[0] - 1.0);
    const int y = (int)fmin(fmax((1.0 - touch->at[1]) * grid->size[1], 0.0), grid->size[1] - 1.0);
    const int kernel = lr_direct_tables_map(result->tables)[y * grid->size[0] + x];
    const int identifier = kernel % info->num_identifiers;
    const struct ui_part part = {{(double)x / grid->size[0], 1.0 - (y + 1.0) / grid->size[1]},
                                 {(x + 1.0) / grid->size[0], 1.0 - (double)y / grid->size[1]}};
    ui_tooltip(&part, "voxel (%d, %d) at (%.2f, %.2f) mm: kernel %d\n%.4g to %.4g mm from the axis", x, y,
               grid->origin_mm[0] + x * grid->voxel_mm[0], grid->origin_mm[1] + y * grid->voxel_mm[1], kernel,
               identifier * info->epsilon_mm, (identifier + 1) * info->epsilon_mm);
    if (touch->is_pressed) {
        app->voxel.request.point_mm[0] = grid->origin_mm[0] + x * grid->voxel_mm[0];
        app->voxel.request.point_mm[1] = grid->origin_mm[1] + y * grid->voxel_mm[1];
        voxel_tool_ask(app);
    }
}

static void show_map(struct app *app, const struct direct_result *result)
{
    const lr_grid *grid = &lr_direct_tables_get_info(result->tables)->grid;
    const double scale = fmin(picture_width / grid->size[0], most_height / grid->size[1]);
    const struct ui_image image = {.texture = app->direct.map, .size = {scale * grid->size[0], scale * grid->size[1]}};
    const struct ui_touch touch = ui_image("##LORmap", &image);
    if (touch.is_over) touch_map(app, result, &touch);
    const struct ui_bar bar =
        legend_bar(LR_COLOURS_PERCEPTUAL, (double[2]){0.0, lr_direct_tables_get_info(result->tables)->num_kernels},
                   "LORmap: number of the voxel's kernel");
    if (result->is_inside) {
        const double at[2] = {(result->voxel[0] + 0.5) / grid->size[0], 1.0 - (result->voxel[1] + 0.5) / grid->size[1]};
        const double half[2] = {0.5 / grid->size[0], 0.5 / grid->size[1]};
        ui_mark_box((const double[2]){at[0] - half[0], at[1] - half[1]},
                    (const double[2]){at[0] + half[0], at[1] + half[1]}, 0xffffffff);
    }
    ui_bar(&bar);
}

static void show_kernel(struct app *app, const struct direct_result *result)
{
    const lr_direct_tables_info *info = lr_direct_tables_get_info(result->tables);
    struct direct_tool *tool = &app->direct;
    ui_text("%d identifiers of %.4g mm; %lld offsets in mSR", info->num_identifiers, info->epsilon_mm,
            (long long)info->num_offsets);
    ui_toned(UI_DIM, "sigma %.4g mm along the line, up to %.4g across, %.4g axially", info->sigma_mm[0],
             info->sigma_mm[1], info->sigma_mm[2]);
    if (!result->is_inside) {
        ui_toned(UI_DIM, "the chosen point is outside the grid");
        return;
    }
    ui_text("voxel (%d, %d, %d), %.4g mm from the axis: kernel %d", result->voxel[0], result->voxel[1],
            result->voxel[2], result->radial_mm, result->kernel);
    ui_integers("offset", tool->offset, 3);
    ui_hint("in voxels along x, y and z");
    ui_text("value %.8g, the largest is %.8g", direct_model_value(result, tool->offset), result->largest);
    if (ui_button("show##kernel", true)) tools_show_image(app, DRAW_KERNEL);
}

void direct_tool_panel(struct app *app)
{
    const struct direct_result *result = direct_tool_result(app);
    choose_tables(app);
    if (result != NULL && app->direct.map != NULL) {
        show_map(app, result);
        show_kernel(app, result);
    }
    ui_line();
    ui_text("histo-images");
    show_histo(app);
}
