/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/frame/legend.h"
#include "viewer/frame/panels.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double picture_width = 376.0, most_height = 300.0;

/* --- controls --- */

static bool choose_point(struct app *app)
{
    struct voxel_request *request = &app->voxel.request;
    bool changed = ui_reals("point (mm)", request->point_mm, 3);
    ui_hint("x, y, z in the scanner's frame; or click on a slice");
    changed = ui_check("all modules", &request->all_primaries) || changed;
    if (!request->all_primaries && app->open.scanner != NULL) {
        const int range[2] = {0, app->open.scanner->num_modules - 1};
        ui_beside();
        changed = ui_slide("##primary", &request->primary, range) || changed;
        ui_hint("the primary module: its window is shown");
    }
    return changed;
}

static bool choose_lines(struct app *app)
{
    static const int rays[2] = {1, 16}, samples[2] = {0, 64}, steps[2] = {0, 256};
    struct voxel_request *request = &app->voxel.request;
    bool changed = false;
    bool with_exact = request->mode != LR_MODE_SAMPLED;
    changed = ui_slide("R", &request->rays, rays) || changed;
    ui_hint("R x R lines over each crystal's face");
    changed = ui_slide("N", &request->samples, samples) || changed;
    ui_hint("points of the voxel; 0: by the crystals' pitch");
    if (ui_check("exact elements", &with_exact)) {
        request->mode = with_exact ? LR_MODE_AUTO : LR_MODE_SAMPLED;
        changed = true;
    }
    if (app->open.mu != NULL) {
        bool absorbs = !request->without_mu;
        changed = ui_slide("K", &request->mu_steps, steps) || changed;
        ui_hint("steps through the mu-map along a line; 0: of one voxel");
        if (ui_check("absorption", &absorbs)) {
            request->without_mu = !absorbs;
            changed = true;
        }
    }
    return changed;
}

static bool choose_backend(struct app *app)
{
    static const char *const names[] = {"raster: the projector's shaders", "compute",
                                        "cpu: the reference"};
    struct voxel_request *request = &app->voxel.request;
    int backend = voxel_tool_backend(app);
    const bool changed =
        ui_choose("by##backend", &backend, names, (int)(sizeof(names) / sizeof(names[0])));
    ui_hint("what draws windows and samples elements; compute has them drawn by raster");
    if (changed) {
        request->backend = voxel_backends[backend];
    }
    return changed;
}

static void choose_kind(struct app *app)
{
    int kind = app->voxel.is_side_by_side ? SHEET_NUM_KINDS : (int)app->voxel.kind;
    static const char *const names[] = {"crystals (false colours)", "weight of each line",
                                        "sampled elements",         "exact elements",
                                        "sampled - exact",          "the three side by side"};
    if (ui_choose("shown##kind", &kind, names, SHEET_NUM_KINDS + 1)) {
        app->voxel.is_side_by_side = kind == SHEET_NUM_KINDS;
        app->voxel.kind = kind < SHEET_NUM_KINDS ? (enum sheet_kind)kind : app->voxel.kind;
    }
}

/* --- the picture --- */

static void describe_nothing(const struct app *app, const struct voxel_pixel *pixel,
                             const struct ui_part *part)
{
    const struct voxel_result *result = voxel_tool_result(app);
    const struct voxel_gap gap = result->request.all_primaries
                                     ? voxel_tool_gap(app, pixel->module)
                                     : (struct voxel_gap){0}; /* told above the picture */
    if (gap.why[0] != '\0') {
        ui_tooltip(part, "%s", gap.why);
    } else {
        ui_tooltip(part,
                   "module %d, crystal p = %d, q = %d\nthe line ends in no crystal in coincidence\n"
                   "drawn by backend %s",
                   pixel->module, pixel->p, pixel->q, result->drawn_by);
    }
}

static void describe_pixel(const struct app *app, const struct voxel_pixel *pixel,
                           const struct ui_part *part)
{
    const struct voxel_result *result = voxel_tool_result(app);
    char voxel[128] = "of the voxel: not there yet";
    if (pixel->lor < 0) {
        describe_nothing(app, pixel, part);
        return;
    }
    if (!isnan(pixel->voxel_sampled)) {
        snprintf(voxel, sizeof(voxel), "of the voxel: sampled %.7g, exact %.7g",
                 pixel->voxel_sampled, pixel->voxel_exact);
    }
    ui_tooltip(part,
               "module %d, p = %d, q = %d\nmodule %d, r = %d, s = %d\nLOR %lld\n"
               "weight of this line %.6g\nsolid angle of its part of the face %.6g sr\n"
               "distance between the hits %.3f mm\nelement at the point: sampled %.7g, exact %.7g\n"
               "%s\nline by backend %s, elements sampled by %s%s%s",
               pixel->module, pixel->p, pixel->q, pixel->other, pixel->r, pixel->s,
               (long long)pixel->lor, pixel->weight, pixel->solid_angle_sr, pixel->distance_mm,
               pixel->point_sampled, pixel->point_exact, voxel, result->drawn_by,
               result->sampled_by, result->exact_by != NULL ? ", exact by " : "",
               result->exact_by != NULL ? result->exact_by : "");
}

static void show_grid(const struct sheet *sheet, int rays, double pixels_per_texel)
{
    if (sheet->num_windows != 1 || rays * pixels_per_texel < 5.0) {
        return;
    }
    for (int axis = 0; axis < 2; axis++) {
        for (int k = 0; k <= sheet->tile[axis]; k += rays) {
            double from[2] = {0.0, 0.0}, to[2], a[2], b[2];
            to[0] = sheet->tile[0];
            to[1] = sheet->tile[1];
            from[axis] = to[axis] = k;
            sheet_corners(sheet, 0, from, a);
            sheet_corners(sheet, 0, to, b);
            ui_mark_line(a, b, 0xffffff50);
        }
    }
}

static void show_sheet(struct app *app, int k, double width)
{
    struct voxel_tool *tool = &app->voxel;
    const struct sheet *sheet = &tool->sheets[k];
    const double scale = fmin(width / sheet->size[0], most_height / sheet->size[1]);
    const struct ui_image image = {.texture = sheet->texture,
                                   .size = {scale * sheet->size[0], scale * sheet->size[1]}};
    char label[32];
    snprintf(label, sizeof(label), "##sheet %d", k);
    const struct ui_touch touch = ui_image(label, &image);
    show_grid(sheet, voxel_tool_result(app)->request.rays, scale);
    struct voxel_touch found;
    if (touch.is_over && voxel_tool_at(app, k, touch.at, &found)) {
        tool->has_touch = true;
        tool->touched = found.pixel;
        describe_pixel(app, &found.pixel, &found.part);
        if (touch.is_pressed && found.pixel.lor >= 0) {
            lor_tool_choose(app, found.pixel.lor);
        }
    }
}

/* "sampled by raster" */
static void name_sheet(const struct voxel_result *result, enum sheet_kind kind, char *text,
                       size_t size)
{
    const char *exact = result->exact_by != NULL ? result->exact_by : "none";
    const char *first = kind == SHEET_EXACT                                 ? exact
                        : kind == SHEET_SAMPLED || kind == SHEET_DIFFERENCE ? result->sampled_by
                                                                            : result->drawn_by;
    const bool has_two = kind == SHEET_DIFFERENCE && strcmp(first, exact) != 0;
    snprintf(text, size, "%s by %s%s%s", sheet_names[kind], first, has_two ? " and " : "",
             has_two ? exact : "");
}

/* What the false colours of a window say. */
static void show_crystal_legend(const struct app *app, const struct voxel_window *window)
{
    const lr_scanner *scanner = voxel_study(app->voxel.voxel)->scanner;
    const lr_module *module = &scanner->modules[window->module];
    const uint32_t corners[4] = {0x000000ff, 0xff0000ff, 0x00ff00ff, 0xffff00ff};
    if (!ui_table("legend", 2)) {
        return;
    }
    ui_cell();
    ui_square(corners, 54.0);
    ui_cell();
    ui_text("colour: crystal (r, s) that the line ends in,\n"
            "red grows with r along u, 0 to %d,\ngreen grows with s along v, 0 to %d",
            module->crystals[0] - 1, module->crystals[1] - 1);
    ui_toned(UI_DIM, "grey: in no crystal in coincidence");
    ui_table_end();
}

static void show_legend(const struct app *app, int k)
{
    const struct voxel_tool *tool = &app->voxel;
    const enum sheet_kind kind = tool->sheet_kinds[k];
    const bool is_difference = kind == SHEET_DIFFERENCE;
    if (kind == SHEET_CRYSTALS) {
        show_crystal_legend(app, &voxel_tool_result(app)->windows[0]);
        return;
    }
    const double high = tool->sheets[k].high;
    const struct ui_bar bar =
        legend_bar(is_difference ? LR_COLOURS_DIVERGING : LR_COLOURS_PERCEPTUAL,
                   (double[2]){is_difference ? -high : 0.0, high}, legend_sheet_title(kind));
    ui_bar(&bar);
}

static void show_gap(struct app *app)
{
    const struct voxel_gap *gap = &app->voxel.gap;
    char label[48];
    if (gap->why[0] == '\0') {
        return;
    }
    ui_toned(UI_WARNING, "%s", gap->why);
    snprintf(label, sizeof(label), "show module %d##better", gap->better);
    if (gap->better >= 0 && gap->better != app->voxel.request.primary && ui_button(label, true)) {
        voxel_tool_show_module(app, gap->better);
    }
}

static void show_sheets(struct app *app)
{
    struct voxel_tool *tool = &app->voxel;
    char name[96];
    tool->has_touch = false;
    for (int k = 0; k < tool->num_sheets; k++) {
        if (tool->num_sheets > 1 || tool->kind != SHEET_CRYSTALS) {
            name_sheet(voxel_tool_result(app), tool->sheet_kinds[k], name, sizeof(name));
            ui_toned(UI_DIM, "%s", name);
        }
        show_sheet(app, k, picture_width);
        if (tool->gap.why[0] == '\0') {
            show_legend(app, k);
        }
    }
}

/* --- the row --- */

static void show_row(const char *what, const struct voxel_row *sampled,
                     const struct voxel_row *exact)
{
    ui_field(what, "%lld LORs, sum %.6g", (long long)sampled->count, sampled->sum);
    ui_cell();
    if (exact->count > 0) {
        ui_text("%lld LORs, sum %.6g", (long long)exact->count, exact->sum);
    }
}

static void show_backend(const struct voxel_result *result)
{
    char text[1400];
    voxel_tool_describe(result, text, sizeof(text));
    ui_toned(result->why_not[0] != '\0' ? UI_WARNING : UI_DIM, "%s", text);
}

static void show_result(struct app *app, const struct voxel_result *result)
{
    show_gap(app);
    show_sheets(app);
    show_backend(result);
    if (ui_table("rows", 3)) {
        ui_field("", "sampled");
        ui_cell();
        ui_text("exact");
        show_row("point", &result->point_sampled, &result->point_exact);
        if (result->has_means) {
            show_row("voxel", &result->voxel_sampled, &result->voxel_exact);
        }
        ui_table_end();
    }
    ui_toned(UI_DIM, "R = %d, N = %d x %d x %d, K = %d%s", result->request.rays, result->samples[0],
             result->samples[1], result->samples[2], result->request.mu_steps,
             result->voxel_row < 0 ? "; the point lies beside the grid" : "");
}

void panel_voxel(struct app *app)
{
    const struct job_report *report = &app->voxel.report;
    bool changed = choose_point(app);
    changed = choose_lines(app) || changed;
    changed = choose_backend(app) || changed;
    choose_kind(app);
    if (changed) {
        voxel_tool_ask(app);
    }
    const struct voxel_result *result = voxel_tool_result(app);
    if (report->state == JOB_RUNNING) {
        ui_progress(report->share, report->doing);
    }
    if (result != NULL) {
        show_result(app, result);
    }
}
