/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/tools/live_tool.h"

#include "base/log.h"
#include "viewer/frame/panels.h"
#include "viewer/tools/tools.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *const live_algorithms[] = {"osem", "ramla", NULL};
const char *const live_families[] = {"correspondence", "direct", "listmode", NULL};
const char *const live_kernels[] = {"tube", "line", "exact", NULL};

lr_status live_tool_open(struct app *app)
{
    struct live_tool *tool = &app->live;
    tool->live = live_create(&app->log);
    tool->request.subsets = 4;
    tool->request.iterations = 10;
    tool->request.counts = 1e6;
    tool->request.seed = 1;
    tool->request.local_iterations = 2;
    (void)lr_view_set_complete(&(lr_view_set){0}, &tool->request.views, &app->log);
    snprintf(tool->backend, sizeof(tool->backend), "none");
    tool->on_device = !gl_context_limits(app->ctx)->software;
    return tool->live != NULL ? LR_OK : LR_FAILED;
}

void live_tool_close(struct app *app)
{
    live_destroy(app->live.live);
    guesses_tool_close(app);
    if (app->draw != NULL && draw_get_image(app->draw, DRAW_LIVE) != NULL) draw_set_image(app->draw, DRAW_LIVE, NULL);
    handover_destroy(app->live.handover);
    lr_image_destroy(app->live.image);
}

static void keep_sentence(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    struct live_tool *tool = user;
    (void)status;
    if (level == LR_LOG_ERROR) snprintf(tool->error, sizeof(tool->error), "%s", sentence);
}

/* Histo-images, where the family goes by them. */
static const lr_histo_images *find_histo(const struct app *app)
{
    return app->live.request.family == LIVE_DIRECT ? direct_model_histo(app->direct.model, NULL) : NULL;
}

/* What the next start asks for, from what is open. */
static void settle_request(struct app *app)
{
    struct live_request *request = &app->live.request;
    request->simulates = false;
    request->histo = find_histo(app);
    request->kernel = *direct_tool_kernel(app);
    const bool is_measured = live_is_measured(&app->open, request);
    request->simulates = !is_measured;
    request->reference = is_measured && app->live.compares ? app->open.image : NULL;
}

static struct handover *make_handover(struct app *app)
{
    const lr_grid grid = live_grid_for(&app->open, &app->live.request);
    const bool is_wanted = app->live.on_device && grid.size[0] > 0;
    return is_wanted ? handover_create(app->ctx, &grid) : NULL;
}

void live_tool_start(struct app *app)
{
    struct live_tool *tool = &app->live;
    const lr_log log = {.write = keep_sentence, .user = tool};
    tool->error[0] = '\0';
    tool->num_iterations = 0;
    settle_request(app);
    struct handover *before = tool->handover;
    tool->handover = make_handover(app);
    tool->request.handover = tool->handover;
    if (live_start(tool->live, &app->open, &tool->request, &log) != LR_OK) {
        handover_destroy(tool->handover);
        tool->handover = before; /* which the one that runs may use */
        return;
    }
    snprintf(tool->scanner, sizeof(tool->scanner), "%s", app->open.scanner != NULL ? app->open.scanner->name : "");
    guesses_tool_start(app);
    if (before != NULL) {
        draw_set_image(app->draw, DRAW_LIVE, NULL);
        handover_destroy(before);
    }
}

lr_status live_tool_relax(struct app *app, double relaxation, double fall)
{
    if (!(relaxation >= 0.0) || !(fall >= 0.0)) {
        return lr_error(&app->log, LR_BAD_INPUT,
                        "relaxation %g, fall %g: the relaxation must be above 0, or 0 for the "
                        "default, its fall 0 or more",
                        relaxation, fall);
    }
    app->live.request.relaxation = relaxation;
    app->live.request.relaxation_fall = fall;
    return LR_OK;
}

lr_status live_tool_set_views(struct app *app, int azimuths, int tilts)
{
    const lr_view_set wished = {azimuths, tilts, app->live.request.views.acceptance_deg};
    if (azimuths < 1 || tilts < 1)
        return lr_error(&app->log, LR_BAD_INPUT, "%d azimuths, %d tilts: give 1 of each or more", azimuths, tilts);
    return lr_view_set_complete(&wished, &app->live.request.views, &app->log);
}

/* is_first: it comes into the scene for the first time. */
static void show_image(struct app *app, double largest, bool is_first)
{
    app->ranges[DRAW_LIVE][1] = fmax(largest, 1e-30);
    if (is_first || app->slices.image == DRAW_LIVE) tools_show_image(app, DRAW_LIVE);
}

static void take_from_device(struct app *app)
{
    struct handover *handover = app->live.handover;
    lr_grid grid;
    double largest;
    if (handover_take(handover)) {
        const bool is_first = draw_get_image(app->draw, DRAW_LIVE) == NULL;
        struct gl_texture *texture = handover_shown(handover, &grid, &largest);
        draw_lend_image(app->draw, DRAW_LIVE, texture, &grid, largest);
        show_image(app, largest, is_first);
    }
}

static lr_status take_from_host(struct app *app)
{
    struct live_tool *tool = &app->live;
    const lr_grid grid = live_grid(tool->live);
    if (grid.size[0] == 0) return LR_OK;
    if (tool->image == NULL || memcmp(&tool->image->grid, &grid, sizeof(grid)) != 0) {
        lr_image_destroy(tool->image);
        tool->image = lr_image_create(&grid, &app->log);
    }
    if (tool->image == NULL) return LR_FAILED;
    const int64_t before = tool->serial;
    if (!live_copy_image(tool->live, &tool->serial, tool->image->values)) return LR_OK;
    double most = 0.0;
    for (int64_t v = 0; v < lr_grid_num_voxels(&grid); v++) most = fmax(most, (double)tool->image->values[v]);
    tools_put_image(app, DRAW_LIVE, tool->image);
    show_image(app, most, before == 0);
    return LR_OK;
}

static void take_history(struct live_tool *tool)
{
    struct live_iteration next;
    while (live_copy_history(tool->live, tool->num_iterations, &next, 1) > tool->num_iterations) {
        if (tool->num_iterations < LIVE_HISTORY) {
            tool->likelihood[tool->num_iterations] = (float)next.log_likelihood;
            tool->difference[tool->num_iterations] = (float)next.difference;
        }
        tool->last = next;
        tool->num_iterations++;
    }
}

lr_status live_tool_update(struct app *app)
{
    struct live_tool *tool = &app->live;
    struct job_report report;
    const enum live_state before = tool->state;
    tool->state = live_poll(tool->live, &report);
    if (tool->state == LIVE_FAILED && before != LIVE_FAILED)
        snprintf(tool->error, sizeof(tool->error), "%s", report.error);
    take_history(tool);
    live_backend(tool->live, tool->backend);
    tool->is_on_device = live_is_on_device(tool->live, tool->why);
    if (tool->is_on_device) {
        take_from_device(app);
        return LR_OK;
    }
    LR_TRY(take_from_host(app));
    return guesses_tool_update(app);
}

/* --- its panel --- */

static void choose_relaxation(struct app *app)
{
    const struct live_request *request = &app->live.request;
    double values[2] = {request->relaxation, request->relaxation_fall};
    if (ui_reals("relaxation, fall", values, 2)) (void)live_tool_relax(app, values[0], values[1]);
    ui_hint("L and F: iteration n = 0, 1, ... goes L / (1 + F n) of the way that keeps every voxel "
            "positive; L = 0 is 10 / (9 + subsets)");
}

static void choose_elements(struct live_request *request)
{
    static const char *const names[] = {"tubes of response", "thin lines", "exact"};
    int kernel = (int)request->elements;
    if (ui_choose("elements", &kernel, names, 3)) request->elements = (lr_listmode_kernel)kernel;
    ui_hint("of events: shares of a tube around the line, of a thin ray, or solid angles, which take "
            "long");
}

static void choose_family(struct app *app)
{
    static const char *const names[] = {"correspondence", "DIRECT", "list mode"};
    struct live_request *request = &app->live.request;
    int family = (int)request->family;
    if (ui_choose("family", &family, names, 3)) request->family = (enum live_family)family;
    ui_hint("DIRECT reconstructs histo-images, with the kernel of its tool; list mode events one by "
            "one, with their times of flight");
    if (request->family == LIVE_LISTMODE) choose_elements(request);
    if (request->family != LIVE_DIRECT || find_histo(app) != NULL) return;
    static const int azimuths[2] = {1, 120}, tilts[2] = {1, 16};
    int views[2] = {request->views.azimuths, request->views.tilts};
    const bool has_azimuths = ui_slide("azimuths", &views[0], azimuths);
    const bool has_tilts = ui_slide("tilts", &views[1], tilts);
    if (has_azimuths || has_tilts) (void)live_tool_set_views(app, views[0], views[1]);
}

static void choose_algorithm(struct app *app)
{
    static const char *const names[] = {"OSEM", "block RAMLA"};
    struct live_request *request = &app->live.request;
    int algorithm = (int)request->algorithm;
    static const int subsets[2] = {1, 32};
    static const int iterations[2] = {0, 200}, samples[2] = {0, 64};
    if (ui_choose("algorithm", &algorithm, names, 2)) request->algorithm = (lr_recon_algorithm)algorithm;
    if (request->algorithm == LR_ALGORITHM_RAMLA) choose_relaxation(app);
    ui_slide("subsets", &request->subsets, subsets);
    ui_hint("OSEM with one subset is ML-EM");
    ui_slide("iterations", &request->iterations, iterations);
    ui_hint("0: until stopped");
    if (request->family == LIVE_CORRESPONDENCE) {
        ui_slide("N", &request->samples, samples);
        ui_hint("points of each voxel that its elements are averaged over; 0: by the crystals' "
                "pitch");
    }
    guesses_tool_choose(app);
}

static void choose_place(struct live_tool *tool)
{
    ui_check("image stays on the device", &tool->on_device);
    ui_hint("it changes there and is shown from there, by backend compute, of DIRECT by cuda where "
            "that "
            "is; else the backend that auto takes computes, and the image passes through the host");
}

static void tell_place(const struct live_tool *tool)
{
    const lr_traffic *traffic = &tool->last.traffic;
    if (tool->num_iterations > 0 && traffic->to_device + traffic->to_host == 0 && !tool->is_on_device &&
        tool->why[0] == '\0') {
        ui_toned(UI_DIM, "backend %s, on the host, where the image is", tool->backend);
    } else if (tool->num_iterations > 0) {
        ui_toned(UI_DIM, "backend %s; %lld bytes to the device and %lld back in iteration %d", tool->backend,
                 (long long)traffic->to_device, (long long)traffic->to_host, tool->last.number);
        ui_toned(UI_DIM, "%s",
                 tool->is_on_device     ? "the image is on the device"
                 : tool->why[0] != '\0' ? tool->why
                                        : "the image passes through the host");
    }
}

static bool tell_measured(const struct app *app)
{
    const lr_histo_images *histo = find_histo(app);
    if (histo != NULL) {
        ui_toned(UI_DIM, "measured counts: the %d histo-images that are open", histo->num_views);
        return true;
    }
    const enum live_family family = app->live.request.family;
    if (family == LIVE_DIRECT || app->open.data == NULL || (family == LIVE_LISTMODE && !app->open.data_are_events))
        return false;
    ui_toned(UI_DIM, family == LIVE_LISTMODE ? "measured events: %s" : "measured data: %s", app->open.data_path);
    return true;
}

static void choose_data(struct app *app)
{
    struct live_request *request = &app->live.request;
    int seed = (int)request->seed;
    if (tell_measured(app)) {
        if (app->open.image != NULL) {
            ui_check("compare with the open image", &app->live.compares);
            ui_hint("the distance to it is told after each iteration; it must lie on the same grid");
        }
        return;
    }
    static const char *const missing[] = {"data are", "histo-images are", "list mode is"};
    ui_toned(UI_DIM, "no %s open: counts are drawn from the image", missing[request->family]);
    if (request->family == LIVE_LISTMODE && ui_button("open events...", true)) {
        app->opener.kind = OPENER_DATA;
        app->opener.is_shown = true;
    }
    ui_reals("counts", &request->counts, 1);
    if (ui_integers("seed", &seed, 1) && seed >= 0) request->seed = (uint64_t)seed;
    bool has_noise = !request->without_noise;
    ui_check("Poisson noise", &has_noise);
    request->without_noise = !has_noise;
}

static void show_buttons(struct app *app)
{
    struct live_tool *tool = &app->live;
    const bool runs = tool->state == LIVE_RUNNING || tool->state == LIVE_PREPARING;
    const bool is_paused = tool->state == LIVE_PAUSED;
    const bool has_scanner = app->open.scanner != NULL || tool->request.family == LIVE_DIRECT;
    if (ui_button("start", !runs && !is_paused && has_scanner)) live_tool_start(app);
    ui_beside();
    if (is_paused) {
        if (ui_button("go on", true)) live_resume(tool->live);
    } else if (ui_button("pause", runs)) {
        live_pause(tool->live);
    }
    ui_beside();
    if (ui_button("step", runs || is_paused)) live_step(tool->live);
    ui_beside();
    if (ui_button("stop##live", runs || is_paused)) live_stop(tool->live);
}

static void show_curves(struct app *app)
{
    const struct live_tool *tool = &app->live;
    const int count = tool->num_iterations < LIVE_HISTORY ? tool->num_iterations : LIVE_HISTORY;
    if (count == 0) return;
    const struct live_iteration *last = &tool->last;
    const int first = panels_find_first(tool->likelihood, count);
    struct ui_curve curve = {.values = tool->likelihood + first,
                             .count = count - first,
                             .x = {1.0 + first, count},
                             .is_counted = true,
                             .height = 144.0,
                             .title = first > 0 ? "log-likelihood, from the second on" : "log-likelihood",
                             .x_label = tool->guesses.count > 0 ? "composition" : "iteration"};
    ui_text("iteration %d, %.2f s, log-likelihood %.9g", last->number, last->seconds, last->log_likelihood);
    panels_take_reading(app, ui_curve("##likelihood", &curve));
    if (isfinite(last->difference)) {
        curve.values = tool->difference;
        curve.count = count;
        curve.x[0] = 1.0;
        curve.height = 124.0;
        curve.title = "distance to the reference over its norm";
        panels_take_reading(app, ui_curve("##difference", &curve));
    }
    ui_text("measured %.6g, estimated %.6g counts", last->measured_counts, last->estimated_counts);
}

static void tell_scanner(const struct app *app)
{
    const char *own = app->live.scanner;
    const char *open = app->open.scanner != NULL ? app->open.scanner->name : "";
    if (app->live.state != LIVE_IDLE && own[0] != '\0' && strncmp(own, open, 127) != 0)
        ui_toned(UI_WARNING, "all below is of %s, which is not open any more", own);
}

void live_tool_panel(struct app *app)
{
    static const char *const states[] = {"ready", "preparing", "running", "paused", "done", "failed"};
    struct job_report report;
    struct live_tool *tool = &app->live;
    choose_family(app);
    choose_algorithm(app);
    choose_place(tool);
    choose_data(app);
    show_buttons(app);
    live_poll(tool->live, &report);
    if (tool->state == LIVE_PREPARING || tool->state == LIVE_RUNNING)
        ui_progress(report.share, report.doing);
    else
        ui_toned(UI_DIM, "%s", states[tool->state]);
    if (tool->error[0] != '\0') ui_toned(UI_BAD, "%s", tool->error);
    tell_scanner(app);
    guesses_tool_panel(app);
    show_curves(app);
    tell_place(tool);
    record_tool_panel(app);
    if (draw_get_image(app->draw, DRAW_LIVE) != NULL && ui_button("show the image", true))
        tools_show_image(app, DRAW_LIVE);
}
