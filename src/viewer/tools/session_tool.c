/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/log.h"
#include "base/units.h"
#include "viewer/app.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_PIXELS = 16384 };

struct session_state {
    struct lr_view_session session; /* the session that was read, kept until its files are open */
    bool is_read;
};

/* --- writing --- */

lr_status session_tool_write(struct app *app, const char *path)
{
    const struct study_wish files = study_awaited(app->study);
    /* The study owns the strings, so lr_view_session_finish must not free them. */
    struct lr_view_session session = {.scanner = (char *)files.scanner,
                                      .image = (char *)files.image,
                                      .mu = (char *)files.mu,
                                      .second = (char *)files.second,
                                      .data = (char *)files.data,
                                      .grid = app->open.grid,
                                      .mode = app->tool->mode};
    session.has_camera = true;
    session.view_angle_deg = 30.0;
    session.up[2] = 1.0;
    for (int k = 0; k < 3; k++) {
        session.target_mm[k] = app->camera.at_mm[k];
        session.eye_mm[k] = (double)app->seen.eye_mm[k];
    }
    for (int k = 0; app->tools[k] != NULL; k++)
        if (app->tools[k]->write_session != NULL) app->tools[k]->write_session(app, &session);
    const struct draw_slices *slices = &app->slices;
    if (slices->image <= DRAW_MU && slices->low < slices->high) {
        struct lr_session_range *range = &session.ranges[session.num_ranges++];
        snprintf(range->name, sizeof(range->name), "image");
        range->low = slices->low;
        range->high = slices->high;
    }
    session.has_shown = true;
    if (slices->image <= DRAW_MU && app->draw->images[slices->image] != NULL)
        snprintf(session.shown_image, sizeof(session.shown_image), "%s", scene_image_words[slices->image]);
    for (int k = 0; k < 3; k++) {
        session.slices[k] = slices->is_shown[k];
        session.slices_mm[k] = slices->at_mm[k];
    }
    session.has_volume = app->has_volume;
    session.hides_crystals = app->hides_scanner;
    session.hides_lors = app->hides_lors;
    session.panes = app->alone == PANE_FOUR ? 0 : 1 + app->alone;
    if (slices->second == DRAW_SECOND && files.second != NULL) session.mix = (int)slices->mix;
    session.opacity = slices->opacity;
    memcpy(session.window, app->window->size, sizeof(session.window));
    LR_TRY(app_check_output(app, path));
    LR_TRY(lr_view_session_write(path, &session, &app->log));
    app_say(app, LR_LOG_INFO, "the session is in %s", path);
    return LR_OK;
}

/* --- reading --- */

static void forget(struct app *app)
{
    struct session_state *tool = app_state(app, &session_tool);
    if (tool->is_read) lr_view_session_finish(&tool->session);
    tool->is_read = false;
}

/* Begins to open the session's files. take_study applies the other settings after the files have been opened. */
static lr_status read_file(struct app *app, const char *path)
{
    struct session_state *tool = app_state(app, &session_tool);
    struct lr_view_session session;
    LR_TRY(lr_view_session_read(path, &session, &app->log));
    forget(app);
    tool->session = session;
    tool->is_read = true;
    const int *size = session.window;
    if (size[0] > 0 && size[0] <= MOST_PIXELS && size[1] <= MOST_PIXELS)
        window_push(app->window, &(struct input_event){.kind = INPUT_SIZE, .at = {(double)size[0], (double)size[1]}});

    const struct study_wish wish = {.scanner = session.scanner,
                                    .image = session.image,
                                    .mu = session.mu,
                                    .second = session.second,
                                    .data = session.data,
                                    .grid = session.grid.size[0] > 0 ? &session.grid : NULL};
    return study_open(app->study, &wish);
}

/* Restores tab, camera, tools and ranges once the new study is open. */
static lr_status take_study(struct app *app, bool is_new)
{
    struct session_state *tool = app_state(app, &session_tool);
    const struct lr_view_session *session = &tool->session;
    if (!is_new || !tool->is_read) return LR_OK;
    for (int k = 0; app->tools[k] != NULL; k++)
        if (app->tools[k]->name != NULL && app->tools[k]->mode == session->mode) app_choose(app, app->tools[k]);
    if (session->has_camera) {
        double to_eye[3], away = 0.0;
        for (int k = 0; k < 3; k++) {
            to_eye[k] = session->eye_mm[k] - session->target_mm[k];
            away += to_eye[k] * to_eye[k];
            app->camera.at_mm[k] = session->target_mm[k];
        }
        away = sqrt(away);
        if (away > 0.0) {
            app->camera.distance_mm = away;
            app->camera.height_deg = fmin(fmax(asin(to_eye[2] / away) / LR_DEGREE, -89.9), 89.9);
            app->camera.turn_deg = atan2(to_eye[1], to_eye[0]) / LR_DEGREE;
        }
    }

    for (int k = 0; app->tools[k] != NULL; k++)
        if (app->tools[k]->read_session != NULL) app->tools[k]->read_session(app, session);
    if (session->has_shown) {
        for (int k = DRAW_IMAGE; k <= DRAW_MU; k++)
            if (strcmp(scene_image_words[k], session->shown_image) == 0) app_show_image(app, (enum draw_image)k);
        for (int k = 0; k < 3; k++) {
            app->slices.is_shown[k] = session->slices[k];
            app->slices.at_mm[k] = session->slices_mm[k];
        }
        app->has_volume = session->has_volume;
        app->hides_scanner = session->hides_crystals;
        app->hides_lors = session->hides_lors;
        app->alone = session->panes == 0 ? PANE_FOUR : session->panes - 1;
        app->slices.opacity = session->opacity;
        if (app->open.second != NULL) {
            app->slices.mix = (enum draw_mix)session->mix;
            app->slices.second = DRAW_SECOND;
        }
    }
    for (int k = 0; k < session->num_ranges; k++)
        if (strcmp(session->ranges[k].name, "image") == 0)
            app_set_window(app, session->ranges[k].low, session->ranges[k].high);
    forget(app);
    return LR_OK;
}

/* --- scripts --- */

static lr_status act_save(struct app *app, const struct command_words *words)
{
    return session_tool_write(app, words->words[1]);
}

static const struct command commands[] = {{"save", "SESSION.yaml", 1, 1, .act = act_save}, {0}};

const struct viewer_tool session_tool = {.state_bytes = sizeof(struct session_state),
                                         .opens = LR_FILE_SESSION,
                                         .open_file = read_file,
                                         .close = forget,
                                         .take_study = take_study,
                                         .commands = commands};
