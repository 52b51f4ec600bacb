/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/tools/lor_tool.h"

#include "base/log.h"
#include "viewer/frame/panels.h"
#include "viewer/tools/tools.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const uint32_t lor_colour = 0xffd24dff;

const char *const lor_kernels[] = {"lor", "tube", "line", "exact", NULL};

lr_status lor_tool_open(struct app *app)
{
    app->lor.tube = tube_create(&app->log);
    return app->lor.tube != NULL ? LR_OK : LR_FAILED;
}

void lor_tool_close(struct app *app)
{
    tube_destroy(app->lor.tube);
}

static void keep_sentence(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    struct lor_tool *tool = user;
    (void)status;
    if (level == LR_LOG_ERROR) snprintf(tool->error, sizeof(tool->error), "%s", sentence);
}

/* The line between the crystals, also while the tube is not there yet. */
static lr_status show_line(struct app *app)
{
    const struct tube_request request = app->lor.request;
    double ends[2][3];
    struct draw_line line = {.colour = lor_colour};
    tube_ends(app->open.scanner, request.crystals, ends);
    for (int k = 0; k < 3; k++) {
        line.from[k] = (float)ends[0][k];
        line.to[k] = (float)ends[1][k];
    }
    LR_TRY(draw_set_crystal_values(app->draw, NULL, 0.0));
    LR_TRY(draw_set_lines(app->draw, DRAW_LORS, NULL, 0));
    LR_TRY(draw_set_lines(app->draw, DRAW_CURSOR, NULL, 0));
    return draw_set_lines(app->draw, DRAW_LOR, &line, 1);
}

void lor_tool_ask(struct app *app)
{
    struct lor_tool *tool = &app->lor;
    const lr_log log = {.write = keep_sentence, .user = tool};
    tool->error[0] = '\0';
    tool->is_asked = tube_ask(tool->tube, &app->open, &tool->request, &log) == LR_OK;
    if (tool->is_asked) {
        tool->report.state = JOB_RUNNING;
        show_line(app);
    }
}

lr_status lor_tool_set_tof(struct app *app, double tof_mm)
{
    struct tube_request *request = &app->lor.request;
    const lr_scanner *scanner = app->open.scanner;
    const bool has_tof = isfinite(tof_mm);
    const bool can_have = request->tof_ps > 0 || (scanner != NULL && scanner->tof_resolution_ps > 0);
    if (has_tof && request->kernel == TUBE_LOR)
        return lr_error(&app->log, LR_BAD_INPUT, "a LOR has no time of flight: choose a kernel of list mode");
    if (has_tof && !can_have) return lr_error(&app->log, LR_BAD_INPUT, "this scanner has no time resolution");
    request->has_tof = has_tof;
    request->tof_mm = has_tof ? tof_mm : 0;
    lor_tool_ask(app);
    return LR_OK;
}

void lor_tool_choose(struct app *app, int64_t number)
{
    if (app->open.lors == NULL || number < 0 || number >= app->open.lors->count)
        return; /* of a scanner that has been replaced */
    const lr_lor lor = lr_lors_describe(app->open.lors, number);
    app->lor.request.crystals[0] = (struct tube_crystal){lor.module_i, lor.p, lor.q};
    app->lor.request.crystals[1] = (struct tube_crystal){lor.module_j, lor.r, lor.s};
    app->tool = TOOL_LOR;
    app->wants_tool = true;
    lor_tool_ask(app);
}

void lor_tool_take_crystal(struct app *app, int module, const int crystal[2])
{
    struct lor_tool *tool = &app->lor;
    tool->request.crystals[tool->next_end] = (struct tube_crystal){module, crystal[0], crystal[1]};
    tool->next_end = 1 - tool->next_end;
    lor_tool_ask(app);
}

lr_status lor_tool_update(struct app *app)
{
    struct lor_tool *tool = &app->lor;
    int64_t serial;
    if (tube_poll(tool->tube, &tool->report) == JOB_FAILED && tool->is_asked) {
        snprintf(tool->error, sizeof(tool->error), "%s", tool->report.error);
        tool->is_asked = false;
    }
    const struct tube_result *result = tube_result(tool->tube, &serial);
    if (result == NULL || serial == tool->serial) return LR_OK;
    tool->serial = serial;
    tools_put_image(app, DRAW_TUBE, result->image);
    app->ranges[DRAW_TUBE][1] = fmax(result->largest, 1e-30);
    app->slices.overlay_high = app->ranges[DRAW_TUBE][1];
    if (app->open.image == NULL) tools_show_image(app, DRAW_TUBE);
    return LR_OK;
}

/* --- its panel --- */

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

static bool choose_tof(struct app *app)
{
    struct tube_request *request = &app->lor.request;
    const struct tube_result *result = tube_result(app->lor.tube, NULL);
    if (!(app->open.scanner->tof_resolution_ps > 0)) {
        request->has_tof = false;
        ui_toned(UI_DIM, "this scanner has no time of flight");
        return false;
    }
    const bool changed = ui_check("time of flight", &request->has_tof);
    if (!request->has_tof || result == NULL) return changed;
    const double range[2] = {-0.5 * result->length_mm, 0.5 * result->length_mm};
    const bool moved = ui_slide_real("offset (mm)", &request->tof_mm, range);
    ui_hint("where the time of flight puts the event, from the middle towards the second crystal");
    return changed || moved;
}

static bool choose_kernel(struct app *app)
{
    static const char *const names[] = {"the LOR", "an event: tube", "an event: thin line", "an event: exact"};
    struct tube_request *request = &app->lor.request;
    int kernel = (int)request->kernel;
    bool changed = ui_choose("elements of", &kernel, names, TUBE_NUM_KERNELS);
    ui_hint("the LOR's are probabilities; an event's those of list mode, by its kernels, with its "
            "time of flight");
    request->kernel = (enum tube_kernel)kernel;
    return request->kernel != TUBE_LOR ? choose_tof(app) || changed : changed;
}

static void show_numbers(const struct tube_result *result)
{
    if (!ui_table("tube", 2)) return;
    ui_field("LOR", "%lld", (long long)result->lor);
    ui_field("length", "%.3f mm", result->length_mm);
    ui_field("voxels", "%lld", (long long)result->num_voxels);
    ui_field("sum of elements", "%.7g", result->sum);
    ui_field("largest", "%.7g", result->largest);
    if (result->sigma_mm > 0.0)
        ui_field("time of flight", "sigma %.2f mm", result->sigma_mm);
    else
        ui_field("time of flight", "none");
    ui_table_end();
}

static void show_profile(struct app *app, const struct tube_profile *profile)
{
    const bool is_lor = app->lor.request.kernel == TUBE_LOR;
    struct ui_curve curve = {
        .values = profile->weight,
        .count = profile->count,
        .x = {profile->first_mm, profile->first_mm + (profile->count - 1) * profile->step_mm},
        .height = 154.0,
        .title =
            is_lor ? "sum of elements in planes (detections per emission)" : "sum of the event's elements in planes",
        .x_label = "along the line, from its middle (mm)",
    };
    panels_take_reading(app, ui_curve("##profile", &curve));
    if (profile->kernel != NULL) {
        curve.values = profile->kernel;
        curve.height = 124.0;
        curve.title = is_lor ? "time-of-flight kernel about the middle (1/mm)" : "time-of-flight kernel (1/mm)";
        panels_take_reading(app, ui_curve("##kernel", &curve));
    }
}

void lor_tool_panel(struct app *app)
{
    const struct job_report *report = &app->lor.report;
    if (app->open.scanner == NULL) {
        ui_toned(UI_DIM, "open a scanner first");
        return;
    }
    ui_toned(UI_DIM, "click on two crystals, type them, or press on the voxel's picture");
    bool changed = choose_crystal(app, 0);
    changed = choose_crystal(app, 1) || changed;
    changed = choose_kernel(app) || changed;
    if (changed) lor_tool_ask(app);
    if (app->lor.error[0] != '\0') ui_toned(UI_BAD, "%s", app->lor.error);
    if (report->state == JOB_RUNNING) ui_progress(report->share, report->doing);
    const struct tube_result *result = tube_result(app->lor.tube, NULL);
    if (result == NULL || app->lor.error[0] != '\0') return;
    show_numbers(result);
    show_profile(app, &result->profile);
    if (ui_button("show it alone", true)) tools_show_image(app, DRAW_TUBE);
    ui_beside();
    bool is_laid_over = app->slices.overlay_high > 0.0;
    if (ui_check("over the image", &is_laid_over))
        app->slices.overlay_high = is_laid_over ? app->ranges[DRAW_TUBE][1] : 0.0;
}
