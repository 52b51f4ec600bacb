/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/tools/tools.h"

#include "base/log.h"
#include "io/files/file_kind.h"
#include "viewer/frame/app_input.h"
#include "viewer/frame/scene_lines.h"
#include "viewer/tools/session_tool.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* --- opening and closing --- */

lr_status tools_open(struct app *app)
{
    const struct view_params *params = app->params;
    app->study = study_create(&app->log);
    if (app->study == NULL) return LR_FAILED;
    LR_TRY(voxel_tool_open(app));
    LR_TRY(lor_tool_open(app));
    LR_TRY(maps_tool_open(app));
    LR_TRY(live_tool_open(app));
    LR_TRY(direct_tool_open(app));
    const struct study_wish wish = {
        .scanner = params->scanner, .image = params->image, .mu = params->mu, .data = params->data};
    if (wish.scanner != NULL || wish.image != NULL || wish.mu != NULL || wish.data != NULL)
        LR_TRY(study_open(app->study, &wish));
    LR_TRY(params->record != NULL ? record_tool_open(app, params->record) : LR_OK);
    return params->session != NULL ? session_tool_read(app, params->session) : LR_OK;
}

void tools_close(struct app *app)
{
    session_tool_close(app);
    record_tool_close(app);
    doctor_tool_close(app);
    direct_tool_close(app);
    live_tool_close(app);
    maps_tool_close(app);
    lor_tool_close(app);
    voxel_tool_close(app);
    study_view_release(&app->open);
    study_destroy(app->study);
}

const lr_scanner *tools_scanner(const struct app *app)
{
    return app->doctor.refused.num_modules > 0 ? &app->doctor.refused : app->open.scanner;
}

/* --- what becomes ready --- */

static double reach_of(const lr_scanner *scanner)
{
    double reach = 0.0;
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        const double u = 0.5 * module->crystals[0] * module->pitch_mm[0];
        const double v = 0.5 * module->crystals[1] * module->pitch_mm[1];
        const double *c = module->centre_mm;
        reach = fmax(reach, sqrt(c[0] * c[0] + c[1] * c[1] + c[2] * c[2]) + hypot(u, v));
    }
    return reach;
}

void tools_fit(struct app *app)
{
    if (app->open.scanner != NULL)
        camera_fit(&app->camera, reach_of(app->open.scanner), app->scene_size[0] / app->scene_size[1]);
}

/* All three slices through the middle, where none is shown yet. */
static void show_slices(struct draw_slices *slices, const lr_grid *grid)
{
    if (slices->is_shown[0] || slices->is_shown[1] || slices->is_shown[2]) return;
    for (int k = 0; k < 3; k++) {
        slices->is_shown[k] = true;
        slices->at_mm[k] = grid->origin_mm[k] + (grid->size[k] / 2) * grid->voxel_mm[k];
    }
}

void tools_show_image(struct app *app, enum draw_image which)
{
    if (draw_has_image(app->draw, which)) {
        app->slices.image = which;
        app->slices.low = app->ranges[which][0];
        app->slices.high = app->ranges[which][1];
        const lr_grid *grid = draw_get_grid(app->draw, which);
        show_slices(&app->slices, grid != NULL ? grid : &app->open.grid);
    }
}

void tools_put_image(struct app *app, enum draw_image which, const lr_image *image)
{
    if (draw_set_image(app->draw, which, image) != LR_OK) {
        draw_set_image(app->draw, which, NULL);
        app->failure = app->failure == LR_OK ? LR_FAILED : app->failure;
    }
}

/* In pieces, one a frame: the study holds it meanwhile. */
static void begin_image(struct app *app, enum draw_image which, const lr_image *image, double largest)
{
    app->ranges[which][1] = image != NULL ? fmax(largest, 1e-30) : 0.0;
    if (image == NULL) {
        draw_set_image(app->draw, which, NULL);
    } else if (draw_begin_image(app->draw, which, image, largest) != LR_OK) {
        draw_set_image(app->draw, which, NULL);
        app->failure = app->failure == LR_OK ? LR_FAILED : app->failure;
    }
}

/* Another frame: in the colours and slices of the last one. */
static void show_frame(struct app *app, const struct study_view *open)
{
    const double high = app->ranges[DRAW_IMAGE][1];
    begin_image(app, DRAW_IMAGE, open->image, open->image_largest);
    app->ranges[DRAW_IMAGE][1] = high;
}

static void show_images(struct app *app, const struct study_view *open)
{
    begin_image(app, DRAW_IMAGE, open->image, open->image_largest);
    begin_image(app, DRAW_MU, open->mu, open->mu_largest);
    if (open->image != NULL || open->mu != NULL) {
        for (int k = 0; k < 3; k++) app->slices.is_shown[k] = false;
        tools_show_image(app, open->image != NULL ? DRAW_IMAGE : DRAW_MU);
    }
}

/* What was computed of the scanner that was open before. */
static lr_status forget_scanner(struct app *app)
{
    static const enum draw_image computed[] = {DRAW_TUBE, DRAW_SENSITIVITY};
    for (size_t k = 0; k < sizeof(computed) / sizeof(computed[0]); k++) {
        if (draw_get_image(app->draw, computed[k]) != NULL) draw_set_image(app->draw, computed[k], NULL);
        if (app->slices.image == computed[k]) tools_show_image(app, DRAW_IMAGE);
    }
    LR_TRY(draw_set_lines(app->draw, DRAW_LORS, NULL, 0));
    LR_TRY(draw_set_lines(app->draw, DRAW_LOR, NULL, 0));
    return draw_set_lines(app->draw, DRAW_CURSOR, NULL, 0);
}

/* Takes what is open now, and puts what is new of it into the scene. */
static lr_status take_study(struct app *app)
{
    struct study_view before = app->open;
    app->open = study_take(app->study);
    lr_status status = LR_OK;
    if (app->open.scanner != before.scanner) {
        status = draw_set_scanner(app->draw, app->open.scanner);
        status = status == LR_OK && before.scanner != NULL ? forget_scanner(app) : status;
        tools_fit(app);
        if (status == LR_OK) status = scene_lines_axes(app->draw, 0.5 * app->camera.reach_mm);
    }
    const bool is_frame = frames_tool_take_study(app);
    if (status == LR_OK && is_frame && app->open.mu == before.mu)
        show_frame(app, &app->open);
    else if (status == LR_OK && (app->open.image != before.image || app->open.mu != before.mu))
        show_images(app, &app->open);
    if (status == LR_OK) status = scene_lines_grid(app->draw, &app->open.grid);
    study_view_release(&before);
    voxel_tool_take_study(app);
    session_tool_take_study(app);
    return status == LR_OK ? doctor_tool_take_study(app) : status;
}

/* What was open may be gone with what was to be opened: the doctor's findings of a refused file. */
static lr_status end_opening(struct app *app)
{
    const struct job_report *report = &app->opening;
    for (int k = 0; k < report->num_warnings && k < JOB_WARNINGS; k++)
        app_say(app, LR_LOG_WARNING, "%s", report->warnings[k]);
    if (report->state == JOB_FAILED) app_take_failure(app, report, study_refused(app->study, NULL) != NULL);
    return doctor_tool_take_study(app);
}

lr_status tools_update(struct app *app)
{
    study_poll(app->study, &app->opening);
    if (study_endings(app->study) != app->endings) {
        app->endings = study_endings(app->study);
        LR_TRY(end_opening(app));
    }
    struct study_view now = study_take(app->study);
    const bool is_new = now.serial != app->open.serial;
    study_view_release(&now);
    if (is_new) LR_TRY(take_study(app));
    (void)draw_advance(app->draw);
    LR_TRY(voxel_tool_update(app));
    LR_TRY(lor_tool_update(app));
    LR_TRY(maps_tool_update(app));
    LR_TRY(direct_tool_update(app));
    return live_tool_update(app);
}

bool tools_are_busy(const struct app *app)
{
    return study_is_busy(app->study) || draw_is_busy(app->draw) || app->voxel.report.state == JOB_RUNNING ||
           app->lor.report.state == JOB_RUNNING || app->maps.report.state == JOB_RUNNING ||
           app->direct.report.state == JOB_RUNNING || app->direct.histo_report.state == JOB_RUNNING ||
           app->live.state == LIVE_PREPARING || app->live.state == LIVE_RUNNING;
}

void tools_cancel(struct app *app)
{
    voxel_cancel(app->voxel.voxel);
    tube_cancel(app->lor.tube);
    sensitivity_cancel(app->maps.sensitivity);
    live_stop(app->live.live);
    direct_model_cancel(app->direct.model);
    study_cancel(app->study);
}

/* --- what a person does --- */

void tools_drop(struct app *app, const char *path)
{
    switch (lr_file_kind_of(path)) {
    case LR_FILE_SESSION: session_tool_read(app, path); break;
    case LR_FILE_RUN: (void)record_tool_open(app, path); break;
    case LR_FILE_HISTO:
        direct_tool_open_histo(app, path);
        app->tool = TOOL_DIRECT;
        app->wants_tool = true;
        break;
    default: study_open_file(app->study, path); break;
    }
}

void tools_click(struct app *app)
{
    const struct probe probe = probe_find(app);
    const struct pick_hit *hit = &probe.hit;
    if (probe.axis >= 0) {
        memcpy(app->voxel.request.point_mm, probe.point_mm, sizeof(probe.point_mm));
        voxel_tool_ask(app);
    } else if (app->tool == TOOL_LOR && hit->module >= 0 && hit->crystal[0] >= 0 && hit->crystal[1] >= 0) {
        lor_tool_take_crystal(app, hit->module, hit->crystal);
    }
}

void tools_move_slice(struct app *app, int steps)
{
    const lr_grid *shown = draw_get_grid(app->draw, app->slices.image);
    const lr_grid *grid = shown != NULL ? shown : &app->open.grid;
    if (grid->size[2] > 0) {
        const double last = grid->origin_mm[2] + (grid->size[2] - 1) * grid->voxel_mm[2];
        const double at = app->slices.at_mm[2] + steps * grid->voxel_mm[2];
        app->slices.at_mm[2] = fmin(fmax(at, grid->origin_mm[2]), last);
    }
}

void tools_copy(struct app *app)
{
    const struct voxel_pixel *pixel = &app->voxel.touched;
    const struct pick_hit *hit = &app->probe.hit;
    char text[512] = "";
    if (app->voxel.has_touch) {
        snprintf(text, sizeof(text),
                 "module %d p %d q %d; module %d r %d s %d; LOR %lld; weight %.9g; solid angle %.9g "
                 "sr; distance %.6g mm; element at the point: sampled %.9g, exact %.9g; of the "
                 "voxel: sampled %.9g, exact %.9g",
                 pixel->module, pixel->p, pixel->q, pixel->other, pixel->r, pixel->s, (long long)pixel->lor,
                 pixel->weight, pixel->solid_angle_sr, pixel->distance_mm, pixel->point_sampled, pixel->point_exact,
                 pixel->voxel_sampled, pixel->voxel_exact);
    } else if (hit->module >= 0) {
        snprintf(text, sizeof(text), "module %d p %d q %d; (%.6g, %.6g, %.6g) mm", hit->module, hit->crystal[0],
                 hit->crystal[1], hit->point_mm[0], hit->point_mm[1], hit->point_mm[2]);
    } else {
        probe_describe(app, text, sizeof(text));
    }
    if (text[0] != '\0') {
        window_copy(app->window, text);
        app_say(app, LR_LOG_INFO, "copied: %s", text);
    }
}

/* --- files --- */

/* "loraster-view-1.png", or the first number that is free. */
static void choose_path(struct app *app, const char *ending)
{
    int number = 0;
    do {
        snprintf(app->saved_path, sizeof(app->saved_path), "loraster-view-%d%s", ++number, ending);
    } while (number < 9999 && access(app->saved_path, F_OK) == 0);
}

void tools_save_view(struct app *app)
{
    choose_path(app, ".png");
    if (app_write_picture(app, app->saved_path) == LR_OK)
        app_say(app, LR_LOG_INFO, "what is seen is in %s", app->saved_path);
}

void tools_save_session(struct app *app)
{
    choose_path(app, ".yaml");
    session_tool_write(app, app->saved_path);
}
