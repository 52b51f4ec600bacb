/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/tools/session_tool.h"

#include "base/log.h"
#include "io/sessions/session.h"
#include "viewer/frame/app.h"
#include "viewer/tools/tools.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PIXELS = 16384 };

static const double degree = 0.017453292519943295;

/* --- writing --- */

static void write_camera(const struct app *app, struct lr_view_session *session)
{
    session->has_camera = true;
    session->view_angle_deg = 30.0;
    for (int k = 0; k < 3; k++) {
        session->target_mm[k] = app->camera.at_mm[k];
        session->eye_mm[k] = (double)app->seen.eye_mm[k];
    }
    session->up[2] = 1.0;
}

static void write_voxel(const struct app *app, struct lr_view_session *session)
{
    const struct voxel_request *request = &app->voxel.request;
    session->has_voxel = true;
    memcpy(session->point_mm, request->point_mm, sizeof(session->point_mm));
    session->all_primaries = request->all_primaries;
    session->primary = request->primary;
    session->matrix_mode = request->mode;
    session->rays = request->rays;
    session->samples = request->samples;
    session->mu_steps = request->mu_steps;
    session->without_mu = request->without_mu;
    session->backend = voxel_tool_backend(app);
}

static void write_lor(const struct app *app, struct lr_view_session *session)
{
    const struct tube_request *request = &app->lor.request;
    session->has_lor = app->lor.is_asked;
    for (int end = 0; end < 2; end++) {
        const struct tube_crystal *crystal = &request->crystals[end];
        session->lor[3 * end] = crystal->module;
        session->lor[3 * end + 1] = crystal->p;
        session->lor[3 * end + 2] = crystal->q;
    }
    session->lor_kernel = (int)request->kernel;
    session->has_tof = request->has_tof;
    session->tof_mm = request->tof_mm;
}

static void write_recon(const struct app *app, struct lr_view_session *session)
{
    const struct live_request *request = &app->live.request;
    session->has_recon = true;
    session->recon_family = (int)request->family;
    session->recon_algorithm = (int)request->algorithm;
    session->recon_elements = (int)request->elements;
    session->recon_subsets = request->subsets;
}

static void write_range(const struct app *app, struct lr_view_session *session)
{
    if (app->slices.image <= DRAW_MU && app->slices.low < app->slices.high) {
        struct lr_session_range *range = &session->ranges[session->num_ranges++];
        snprintf(range->name, sizeof(range->name), "image");
        range->low = app->slices.low;
        range->high = app->slices.high;
    }
}

/* Names of those that come back with the files. */
static const char *const image_names[] = {[DRAW_IMAGE] = "image", [DRAW_MU] = "mu"};
enum { NUM_NAMES = sizeof(image_names) / sizeof(image_names[0]) };

static void write_shown(const struct app *app, struct lr_view_session *session)
{
    const struct draw_slices *slices = &app->slices;
    session->has_shown = true;
    if ((int)slices->image < NUM_NAMES && draw_get_image(app->draw, slices->image) != NULL)
        snprintf(session->shown_image, sizeof(session->shown_image), "%s", image_names[slices->image]);
    for (int k = 0; k < 3; k++) {
        session->slices[k] = slices->is_shown[k];
        session->slices_mm[k] = slices->at_mm[k];
    }
    session->has_volume = app->has_volume;
    session->hides_crystals = app->hides_scanner;
    session->hides_lors = app->hides_lors;
}

lr_status session_tool_write(struct app *app, const char *path)
{
    static const enum lr_session_mode modes[NUM_TOOLS] = {LR_SESSION_VOXEL, LR_SESSION_LOR,   LR_SESSION_SENSITIVITY,
                                                          LR_SESSION_RECON, LR_SESSION_SCENE, LR_SESSION_DIRECT};
    const struct study_wish files = study_awaited(app->study);
    /* The texts are the study's: this session is not finished. */
    struct lr_view_session session = {.scanner = (char *)files.scanner,
                                      .image = (char *)files.image,
                                      .mu = (char *)files.mu,
                                      .data = (char *)files.data,
                                      .grid = app->open.grid,
                                      .mode = modes[app->tool]};
    write_camera(app, &session);
    write_voxel(app, &session);
    write_lor(app, &session);
    write_recon(app, &session);
    write_range(app, &session);
    write_shown(app, &session);
    window_size(app->window, session.window);
    LR_TRY(lr_view_session_write(path, &session, &app->log));
    app_say(app, LR_LOG_INFO, "the session is in %s", path);
    return LR_OK;
}

/* --- reading --- */

static void read_window(struct app *app, const struct lr_view_session *session)
{
    const int *size = session->window;
    if (size[0] > 0 && size[0] <= MOST_PIXELS && size[1] <= MOST_PIXELS)
        window_push(app->window, &(struct input_event){.kind = INPUT_SIZE, .at = {(double)size[0], (double)size[1]}});
}

lr_status session_tool_read(struct app *app, const char *path)
{
    struct lr_view_session session;
    LR_TRY(lr_view_session_read(path, &session, &app->log));
    session_tool_close(app);
    app->session = session;
    app->has_session = true;
    read_window(app, &session);
    const struct study_wish wish = {.scanner = session.scanner,
                                    .image = session.image,
                                    .mu = session.mu,
                                    .data = session.data,
                                    .grid = session.grid.size[0] > 0 ? &session.grid : NULL};
    return study_open(app->study, &wish);
}

static void read_camera(struct app *app, const struct lr_view_session *session)
{
    double way[3], away = 0.0;
    for (int k = 0; k < 3; k++) {
        way[k] = session->eye_mm[k] - session->target_mm[k];
        away += way[k] * way[k];
        app->camera.at_mm[k] = session->target_mm[k];
    }
    away = sqrt(away);
    if (away > 0.0) {
        app->camera.distance_mm = away;
        app->camera.height_deg = fmin(fmax(asin(way[2] / away) / degree, -89.9), 89.9);
        app->camera.turn_deg = atan2(way[1], way[0]) / degree;
    }
}

static void read_voxel(struct app *app, const struct lr_view_session *session)
{
    struct voxel_request *request = &app->voxel.request;
    memcpy(request->point_mm, session->point_mm, sizeof(request->point_mm));
    request->all_primaries = session->all_primaries;
    request->primary = session->primary;
    app->voxel.seeks_primary = false;
    request->mode = session->matrix_mode;
    request->rays = session->rays > 0 ? session->rays : request->rays;
    request->samples = session->samples;
    request->mu_steps = session->mu_steps;
    request->without_mu = session->without_mu;
    request->backend = voxel_backends[session->backend];
}

static void read_lor(struct app *app, const struct lr_view_session *session)
{
    struct tube_request *request = &app->lor.request;
    for (int end = 0; end < 2; end++) {
        const int *numbers = session->lor + 3 * end;
        request->crystals[end] = (struct tube_crystal){numbers[0], numbers[1], numbers[2]};
    }
    request->kernel = (enum tube_kernel)session->lor_kernel;
    request->has_tof = session->has_tof;
    request->tof_mm = session->tof_mm;
}

static void read_recon(struct app *app, const struct lr_view_session *session)
{
    struct live_request *request = &app->live.request;
    request->family = (enum live_family)session->recon_family;
    request->algorithm = (lr_recon_algorithm)session->recon_algorithm;
    request->elements = (lr_listmode_kernel)session->recon_elements;
    request->subsets = session->recon_subsets > 0 ? session->recon_subsets : request->subsets;
}

static void read_shown(struct app *app, const struct lr_view_session *session)
{
    struct draw_slices *slices = &app->slices;
    for (int k = 0; k < NUM_NAMES; k++)
        if (strcmp(image_names[k], session->shown_image) == 0) tools_show_image(app, (enum draw_image)k);
    for (int k = 0; k < 3; k++) {
        slices->is_shown[k] = session->slices[k];
        slices->at_mm[k] = session->slices_mm[k];
    }
    app->has_volume = session->has_volume;
    app->hides_scanner = session->hides_crystals;
    app->hides_lors = session->hides_lors;
}

void session_tool_take_study(struct app *app)
{
    static const enum app_tool tools[] = {
        [LR_SESSION_SCENE] = TOOL_DOCTOR,     [LR_SESSION_VOXEL] = TOOL_VOXEL, [LR_SESSION_LOR] = TOOL_LOR,
        [LR_SESSION_SENSITIVITY] = TOOL_MAPS, [LR_SESSION_RECON] = TOOL_LIVE,  [LR_SESSION_DIRECT] = TOOL_DIRECT,
    };
    const struct lr_view_session *session = &app->session;
    if (!app->has_session) return;
    app->tool = tools[session->mode];
    app->wants_tool = true;
    if (session->has_camera) read_camera(app, session);
    if (session->has_voxel) {
        read_voxel(app, session);
        voxel_tool_ask(app);
    }
    if (session->has_lor) {
        read_lor(app, session);
        lor_tool_ask(app);
    }
    if (session->has_recon) read_recon(app, session);
    if (session->has_shown) read_shown(app, session);
    for (int k = 0; k < session->num_ranges; k++) {
        if (strcmp(session->ranges[k].name, "image") == 0) {
            app->slices.low = session->ranges[k].low;
            app->slices.high = session->ranges[k].high;
        }
    }
    session_tool_close(app);
}

void session_tool_close(struct app *app)
{
    if (app->has_session) {
        lr_view_session_finish(&app->session);
        app->has_session = false;
    }
}
