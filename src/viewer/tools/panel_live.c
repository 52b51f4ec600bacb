/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/frame/panels.h"
#include "viewer/tools/tools.h"

#include <math.h>

static void choose_algorithm(struct live_request *request)
{
    static const int subsets[2] = {1, 32};
    static const int iterations[2] = {0, 200}, samples[2] = {0, 64};
    ui_slide("subsets", &request->subsets, subsets);
    ui_hint("1: ML-EM; more: OSEM");
    ui_slide("iterations", &request->iterations, iterations);
    ui_hint("0: until stopped");
    ui_slide("N", &request->samples, samples);
    ui_hint("points of each voxel that its elements are averaged over; 0: by the crystals' pitch");
}

static void choose_place(struct live_tool *tool)
{
    ui_check("image stays on the device", &tool->on_device);
    ui_hint(
        "it changes there and is shown from there, by backend compute; else the fastest backend "
        "computes, and the image passes through the host");
}

static void tell_place(const struct live_tool *tool)
{
    if (tool->num_iterations > 0) {
        ui_toned(UI_DIM, "%s",
                 tool->is_on_device     ? "the image is on the device"
                 : tool->why[0] != '\0' ? tool->why
                                        : "the image passes through the host");
    }
}

static void choose_data(struct app *app)
{
    struct live_request *request = &app->live.request;
    int seed = (int)request->seed;
    if (app->open.data != NULL) {
        ui_toned(UI_DIM, "measured data: %s", app->open.data_path);
        if (app->open.image != NULL) {
            ui_check("compare with the open image", &app->live.compares);
            ui_hint(
                "the distance to it is told after each iteration; it must lie on the same grid");
        }
        return;
    }
    ui_toned(UI_DIM, "no data are open: counts are drawn from the image");
    ui_reals("counts", &request->counts, 1);
    if (ui_integers("seed", &seed, 1) && seed >= 0) {
        request->seed = (uint64_t)seed;
    }
    bool has_noise = !request->without_noise;
    ui_check("Poisson noise", &has_noise);
    request->without_noise = !has_noise;
}

static void show_buttons(struct app *app)
{
    struct live_tool *tool = &app->live;
    const bool runs = tool->state == LIVE_RUNNING || tool->state == LIVE_PREPARING;
    const bool is_paused = tool->state == LIVE_PAUSED;
    if (ui_button("start", !runs && !is_paused && app->open.scanner != NULL)) {
        live_tool_start(app);
    }
    ui_beside();
    if (is_paused) {
        if (ui_button("go on", true)) {
            live_resume(tool->live);
        }
    } else if (ui_button("pause", runs)) {
        live_pause(tool->live);
    }
    ui_beside();
    if (ui_button("step", runs || is_paused)) {
        live_step(tool->live);
    }
    ui_beside();
    if (ui_button("stop##live", runs || is_paused)) {
        live_stop(tool->live);
    }
}

static void show_curves(struct app *app)
{
    const struct live_tool *tool = &app->live;
    const int count = tool->num_iterations < LIVE_HISTORY ? tool->num_iterations : LIVE_HISTORY;
    if (count == 0) {
        return;
    }
    const struct live_iteration *last = &tool->last;
    struct ui_curve curve = {.values = tool->likelihood,
                             .count = count,
                             .x = {1.0, count},
                             .is_counted = true,
                             .height = 144.0,
                             .title = "log-likelihood",
                             .x_label = "iteration"};
    ui_text("iteration %d, %.2f s, log-likelihood %.9g", last->number, last->seconds,
            last->log_likelihood);
    panels_take_reading(app, ui_curve("##likelihood", &curve));
    if (isfinite(last->difference)) {
        curve.values = tool->difference;
        curve.height = 124.0;
        curve.title = "distance to the reference over its norm";
        panels_take_reading(app, ui_curve("##difference", &curve));
    }
    ui_text("measured %.6g, estimated %.6g counts", last->measured_counts, last->estimated_counts);
}

void panel_live(struct app *app)
{
    static const char *const states[] = {"ready",  "preparing", "running",
                                         "paused", "done",      "failed"};
    struct job_report report;
    struct live_tool *tool = &app->live;
    choose_algorithm(&tool->request);
    choose_place(tool);
    choose_data(app);
    show_buttons(app);
    live_poll(tool->live, &report);
    if (tool->state == LIVE_PREPARING || tool->state == LIVE_RUNNING) {
        ui_progress(report.share, report.doing);
    } else {
        ui_toned(UI_DIM, "%s", states[tool->state]);
    }
    if (tool->error[0] != '\0') {
        ui_toned(UI_BAD, "%s", tool->error);
    }
    show_curves(app);
    tell_place(tool);
    if (draw_get_image(app->draw, DRAW_LIVE) != NULL && ui_button("show the image", true)) {
        tools_show_image(app, DRAW_LIVE);
    }
}
