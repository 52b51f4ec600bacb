/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/frame/panels.h"
#include "viewer/tools/tools.h"

#include <stdio.h>

static bool choose_crystal(struct app *app, int end)
{
    static const char *const labels[2] = {"module, p, q", "module, r, s"};
    struct tube_crystal *crystal = &app->lor.request.crystals[end];
    int numbers[3] = {crystal->module, crystal->p, crystal->q};
    const bool changed = ui_integers(labels[end], numbers, 3);
    *crystal = (struct tube_crystal){numbers[0], numbers[1], numbers[2]};
    ui_beside();
    ui_radio(end == 0 ? "##first" : "##second", &app->lor.next_end, end);
    ui_hint("the next click on a crystal sets this end");
    return changed;
}

static void show_numbers(const struct tube_result *result)
{
    if (!ui_table("tube", 2)) {
        return;
    }
    ui_field("LOR", "%lld", (long long)result->lor);
    ui_field("length", "%.3f mm", result->length_mm);
    ui_field("voxels", "%lld", (long long)result->num_voxels);
    ui_field("sum of elements", "%.7g", result->sum);
    ui_field("largest", "%.7g", result->largest);
    if (result->sigma_mm > 0.0) {
        ui_field("time of flight", "sigma %.2f mm", result->sigma_mm);
    } else {
        ui_field("time of flight", "none");
    }
    ui_table_end();
}

static void show_profile(struct app *app, const struct tube_profile *profile)
{
    struct ui_curve curve = {
        .values = profile->weight,
        .count = profile->count,
        .x = {profile->first_mm, profile->first_mm + (profile->count - 1) * profile->step_mm},
        .height = 154.0,
        .title = "sum of elements in planes (detections per emission)",
        .x_label = "t (mm)",
    };
    panels_take_reading(app, ui_curve("##profile", &curve));
    if (profile->kernel != NULL) {
        curve.values = profile->kernel;
        curve.height = 124.0;
        curve.title = "time-of-flight kernel about the middle (1/mm)";
        panels_take_reading(app, ui_curve("##kernel", &curve));
    }
}

void panel_lor(struct app *app)
{
    const struct job_report *report = &app->lor.report;
    if (app->open.scanner == NULL) {
        ui_toned(UI_DIM, "open a scanner first");
        return;
    }
    ui_toned(UI_DIM, "click on two crystals, type them, or press on the voxel's picture");
    bool changed = choose_crystal(app, 0);
    changed = choose_crystal(app, 1) || changed;
    if (changed) {
        lor_tool_ask(app);
    }
    if (app->lor.error[0] != '\0') {
        ui_toned(UI_BAD, "%s", app->lor.error);
    }
    if (report->state == JOB_RUNNING) {
        ui_progress(report->share, report->doing);
    }
    const struct tube_result *result = tube_result(app->lor.tube, NULL);
    if (result == NULL || app->lor.error[0] != '\0') {
        return;
    }
    show_numbers(result);
    show_profile(app, &result->profile);
    if (ui_button("show it alone", true)) {
        tools_show_image(app, DRAW_TUBE);
    }
    ui_beside();
    bool is_laid_over = app->slices.overlay_high > 0.0;
    if (ui_check("over the image", &is_laid_over)) {
        app->slices.overlay_high = is_laid_over ? app->ranges[DRAW_TUBE][1] : 0.0;
    }
}
