/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/frame/legend.h"
#include "viewer/frame/panels.h"
#include "viewer/tools/tools.h"

#include <math.h>
#include <stdio.h>

static const double picture_width = 370.0, most_height = 260.0;

/* --- histo-images --- */

static void show_histo(struct app *app)
{
    struct direct_tool *tool = &app->direct;
    const lr_histo_images *histo = direct_model_histo(tool->model, NULL);
    ui_write("##histo path", tool->path, sizeof(tool->path));
    ui_beside();
    if (ui_button("open##histo", tool->path[0] != '\0')) {
        direct_tool_open_histo(app, tool->path);
    }
    ui_hint("histo-images (HDF5), as loraster direct deposit writes them");
    if (tool->histo_report.state == JOB_RUNNING) {
        ui_progress(tool->histo_report.share, tool->histo_report.doing);
    }
    if (histo == NULL) {
        return;
    }
    int view = tool->view;
    if (ui_slide("view", &view, (const int[2]){0, histo->num_views - 1}) && view != tool->view) {
        direct_tool_show_view(app, view);
    }
    ui_text("azimuth %.4g, tilt %.4g degrees: %.6g counts", histo->views[tool->view].azimuth_deg,
            histo->views[tool->view].tilt_deg, tool->counts);
    if (ui_button("show##histo", true)) {
        tools_show_image(app, DRAW_HISTO);
    }
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
    if (ui_reals("time resolution (ps)", &resolution->tof_ps, 1)) {
        has_changed = tool->has_tof = true;
    }
    if (ui_choose("width across", &model, models, 4)) {
        resolution->model = (lr_radial_model)model;
        has_changed = true;
    }
    has_changed |= ui_check("asymmetric", &resolution->asymmetric);
    if (!tool->is_asked && ui_button("compute##direct", app->open.grid.size[0] > 0)) {
        has_changed = tool->is_asked = true;
    }
    if (has_changed && tool->is_asked) {
        direct_tool_ask(app);
    }
    if (tool->report.state == JOB_RUNNING) {
        ui_progress(tool->report.share, tool->report.doing);
    }
}

/* Chooses the voxel under the mouse, in the slice of the one before. */
static void touch_map(struct app *app, const struct direct_result *result,
                      const struct ui_touch *touch)
{
    const lr_direct_tables_info *info = lr_direct_tables_get_info(result->tables);
    const lr_grid *grid = &info->grid;
    const int x = (int)fmin(fmax(touch->at[0] * grid->size[0], 0.0), grid->size[0] - 1.0);
    const int y = (int)fmin(fmax((1.0 - touch->at[1]) * grid->size[1], 0.0), grid->size[1] - 1.0);
    const int kernel = lr_direct_tables_map(result->tables)[y * grid->size[0] + x];
    const int identifier = kernel % info->num_identifiers;
    const struct ui_part part = {{(double)x / grid->size[0], 1.0 - (y + 1.0) / grid->size[1]},
                                 {(x + 1.0) / grid->size[0], 1.0 - (double)y / grid->size[1]}};
    ui_tooltip(&part, "voxel (%d, %d) at (%.2f, %.2f) mm: kernel %d\n%.4g to %.4g mm from the axis",
               x, y, grid->origin_mm[0] + x * grid->voxel_mm[0],
               grid->origin_mm[1] + y * grid->voxel_mm[1], kernel, identifier * info->epsilon_mm,
               (identifier + 1) * info->epsilon_mm);
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
    const struct ui_image image = {.texture = app->direct.map,
                                   .size = {scale * grid->size[0], scale * grid->size[1]}};
    const struct ui_touch touch = ui_image("##LORmap", &image);
    if (touch.is_over) {
        touch_map(app, result, &touch);
    }
    const struct ui_bar bar =
        legend_bar(LR_COLOURS_PERCEPTUAL,
                   (double[2]){0.0, lr_direct_tables_get_info(result->tables)->num_kernels},
                   "LORmap: number of the voxel's kernel");
    if (result->is_inside) {
        const double at[2] = {(result->voxel[0] + 0.5) / grid->size[0],
                              1.0 - (result->voxel[1] + 0.5) / grid->size[1]};
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
    ui_text("%d identifiers of %.4g mm; %lld offsets in mSR", info->num_identifiers,
            info->epsilon_mm, (long long)info->num_offsets);
    ui_toned(UI_DIM, "sigma %.4g mm along the line, up to %.4g across, %.4g axially",
             info->sigma_mm[0], info->sigma_mm[1], info->sigma_mm[2]);
    if (!result->is_inside) {
        ui_toned(UI_DIM, "the chosen point is outside the grid");
        return;
    }
    ui_text("voxel (%d, %d, %d), %.4g mm from the axis: kernel %d", result->voxel[0],
            result->voxel[1], result->voxel[2], result->radial_mm, result->kernel);
    ui_integers("offset", tool->offset, 3);
    ui_hint("in voxels along x, y and z");
    ui_text("value %.8g, the largest is %.8g", direct_model_value(result, tool->offset),
            result->largest);
    if (ui_button("show##kernel", true)) {
        tools_show_image(app, DRAW_KERNEL);
    }
}

void panel_direct(struct app *app)
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
