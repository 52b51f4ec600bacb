/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/tools/study_tool.h"

#include "viewer/frame/legend.h"
#include "viewer/tools/tools.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const map_names[] = {"grey", "inverse grey", "perceptual", "diverging"};
static const char *const slice_names[] = {"x (mm)", "y (mm)", "z (mm)"};
static const char *const plane_names[] = {"sagittal", "coronal", "transaxial"};

/* --- what is open --- */

static void show_opening(struct app *app)
{
    const struct job_report *report = &app->opening;
    if (report->state == JOB_RUNNING) {
        ui_progress(report->share, report->doing);
        if (ui_button("stop##opening", true)) study_cancel(app->study);
    } else if (report->state == JOB_FAILED) {
        ui_toned(UI_BAD, "%s", report->error);
    }
}

static void show_scanner(struct app *app)
{
    const lr_scanner *scanner = app->open.scanner;
    if (scanner == NULL) {
        ui_toned(UI_DIM, "no scanner is open: choose one, or drop its file on the window");
        return;
    }
    ui_text("%s", scanner->name);
    if (ui_table("scanner", 2)) {
        ui_field("modules", "%d", scanner->num_modules);
        ui_field("crystals", "%d", scanner->num_crystals);
        ui_field("LORs", "%.4g", app->open.lors != NULL ? (double)app->open.lors->count : 0.0);
        if (scanner->tof_resolution_ps > 0.0)
            ui_field("time of flight", "%.0f ps", scanner->tof_resolution_ps);
        else
            ui_field("time of flight", "none");
        ui_table_end();
    }
}

enum { MOST_PRESETS = 64 };

static void choose_scanner(struct app *app)
{
    const char *const *presets = lr_scanner_presets();
    const char *path = app->open.scanner_path, *names[MOST_PRESETS + 1];
    int count = 0, chosen = -1;
    while (presets[count] != NULL && count < MOST_PRESETS) {
        chosen = path != NULL && strcmp(path, presets[count]) == 0 ? count : chosen;
        names[count] = presets[count];
        count++;
    }
    if (path != NULL && chosen < 0) { /* a file, by its name */
        const char *slash = strrchr(path, '/');
        names[count] = slash != NULL ? slash + 1 : path;
        chosen = count++;
    }
    if (ui_choose("##preset", &chosen, names, count) && presets[chosen] != NULL)
        study_open(app->study, &(struct study_wish){.scanner = names[chosen]});
    ui_hint("scanners that LORaster knows");
}

static void show_grid(const struct app *app)
{
    const lr_grid *grid = &app->open.grid;
    if (grid->size[0] > 0) {
        ui_toned(UI_PLAIN, "grid %d x %d x %d of %.4g x %.4g x %.4g mm", grid->size[0], grid->size[1], grid->size[2],
                 grid->voxel_mm[0], grid->voxel_mm[1], grid->voxel_mm[2]);
    }
}

/* --- what is shown --- */

static void show_view(struct app *app)
{
    bool shows = !app->hides_scanner;
    ui_check("crystals", &shows);
    app->hides_scanner = !shows;
    ui_beside();
    ui_check("volume", &app->has_volume);
    ui_beside();
    bool has_lors = !app->hides_lors;
    ui_check("LORs", &has_lors);
    app->hides_lors = !has_lors;
    ui_hint("lines of the voxel's LORs, spread over its row, the brightest with the largest "
            "element; or "
            "the line of the LOR tool");
    ui_beside();
    if (ui_button("fit", true)) tools_fit(app);
    ui_toned(UI_DIM, "right-handed frame, mm; z along the bed");
}

static void show_slices(struct app *app)
{
    const char *images[DRAW_NUM_IMAGES];
    struct draw_slices *slices = &app->slices;
    const lr_grid *grid = draw_get_grid(app->draw, slices->image);
    for (int k = 0; k < DRAW_NUM_IMAGES; k++) images[k] = legend_image_name((enum draw_image)k);
    int map = (int)slices->colours, image = (int)slices->image;
    frames_tool_panel(app);
    for (int k = 0; k < 3; k++) {
        const double ends[2] = {grid->origin_mm[k], grid->origin_mm[k] + (grid->size[k] - 1) * grid->voxel_mm[k]};
        char label[40];
        snprintf(label, sizeof(label), "##shown %d", k);
        ui_check(label, &slices->is_shown[k]);
        ui_beside();
        ui_slide_real(slice_names[k], &slices->at_mm[k], ends);
        ui_hint("the %s slice", plane_names[k]);
    }
    if (ui_choose("shown", &image, images, DRAW_NUM_IMAGES)) tools_show_image(app, (enum draw_image)image);
    if (ui_choose("colours", &map, map_names, 4)) slices->colours = (lr_colour_map)map;
    double ends[2] = {slices->low, slices->high};
    if (ui_reals("from, to", ends, 2) && ends[0] < ends[1]) {
        slices->low = app->ranges[slices->image][0] = ends[0];
        slices->high = app->ranges[slices->image][1] = ends[1];
    }
}

void study_tool_panel(struct app *app)
{
    choose_scanner(app);
    ui_beside();
    if (ui_button("open...", true)) app->opener.is_shown = true;
    show_opening(app);
    show_scanner(app);
    show_grid(app);
    if (ui_section("Scene", true)) show_view(app);
    if (draw_get_image(app->draw, app->slices.image) != NULL && ui_section("Slices", true)) show_slices(app);
    ui_space(6.0);
    ui_toned(UI_DIM, "%.0f frames a second", app->frame_s > 0.0 ? 1.0 / app->frame_s : 0.0);
}
