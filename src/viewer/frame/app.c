/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/frame/app.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "io/files/notes.h"
#include "viewer/frame/app_input.h"
#include "viewer/frame/panels.h"
#include "viewer/script/script.h"
#include "viewer/tools/tools.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

const char *const app_tool_names[NUM_TOOLS] = {"Voxel", "LOR", "Sensitivity", "Recon", "Doctor", "DIRECT"};

/* Frames are drawn this seldom while nothing goes on, and while something is computed: more often
 * where that does not take processors from it. */
static const double idle_seconds = 0.25, busy_seconds = 0.02, busy_software_seconds = 0.1;

/* What a frame that nobody sees stands for, however long it takes: two clicks of a script are a
 * double click on every machine. */
static const double unseen_frame_s = 1.0 / 60.0;

/* --- talk --- */

static void keep_message(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    struct app *app = user;
    if (level != LR_LOG_DEBUG) {
        struct app_message *message = &app->messages[app->num_messages++ % APP_MESSAGES];
        message->level = level;
        snprintf(message->text, sizeof(message->text), "%s", sentence);
    }
    if (app->params->log != NULL && app->params->log->write != NULL)
        app->params->log->write(app->params->log->user, level, status, sentence);
}

void app_say(struct app *app, lr_log_level level, const char *format, ...)
{
    char sentence[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(sentence, sizeof(sentence), format, list);
    va_end(list);
    keep_message(app, level, level == LR_LOG_ERROR ? LR_FAILED : LR_OK, sentence);
}

void app_take_failure(struct app *app, const struct job_report *report, bool is_expected)
{
    keep_message(app, LR_LOG_ERROR, report->status, report->error);
    if (!is_expected && app->failure == LR_OK) app->failure = report->status;
}

/* --- opening --- */

static lr_status open_window(struct app *app)
{
    const struct view_params *params = app->params;
    const struct window_params window = {
        .size = {params->size[0] > 0 ? params->size[0] : 1280, params->size[1] > 0 ? params->size[1] : 800},
        .title = "LORaster",
        .device = params->device,
        .log = &app->log,
    };
    app->window = params->has_no_window ? window_open_unseen(&window) : window_open(&window);
    if (app->window == NULL) return LR_NO_DEVICE;
    app->ctx = window_context(app->window);
    return LR_OK;
}

static lr_status open_parts(struct app *app)
{
    LR_TRY(open_window(app));
    char layout[1024];
    const bool keeps = window_is_seen(app->window) && app->params->script == NULL &&
                       lr_notes_place("view.ini", layout, sizeof(layout));
    app->ui = ui_create(&(struct ui_params){.window = app->window, .layout_path = keeps ? layout : NULL}, &app->log);
    app->draw = draw_create(app->ctx);
    if (app->ui == NULL || app->draw == NULL) return LR_FAILED;
    if (app->params->script != NULL) {
        app->script = script_read(app->params->script, &app->log);
        if (app->script == NULL) return LR_BAD_INPUT;
    }
    return tools_open(app);
}

struct app *app_open(const struct view_params *params, lr_status *status)
{
    struct app *app = lr_alloc(1, sizeof(*app), "the viewer", params->log);
    if (app == NULL) {
        *status = LR_FAILED;
        return NULL;
    }
    app->params = params;
    app->log = (lr_log){.write = keep_message, .user = app};
    app->held_button = app->probe.hit.module = app->probe.axis = app->reading.index = -1;
    app->wants_tool = true;
    app->now_s = app->start_s = lr_clock_seconds();
    app->slices.colours = LR_COLOURS_PERCEPTUAL;
    app->scene_size[0] = app->scene_size[1] = 1.0;
    camera_fit(&app->camera, 100.0, 1.0);
    *status = open_parts(app);
    if (*status != LR_OK) {
        app_close(app);
        return NULL;
    }
    return app;
}

void app_close(struct app *app)
{
    if (app == NULL) return;
    tools_close(app);
    opener_tool_finish(&app->opener);
    script_destroy(app->script);
    if (app->window != NULL) {
        gl_target_destroy(app->target);
        draw_destroy(app->draw);
        ui_destroy(app->ui);
    }
    window_close(app->window);
    free(app);
}

/* --- frames --- */

static lr_status ensure_target(struct app *app)
{
    int size[2];
    window_size(app->window, size);
    if (app->target != NULL && app->target->size[0] == size[0] && app->target->size[1] == size[1]) return LR_OK;
    gl_target_destroy(app->target);
    app->target = gl_target_create(
        app->ctx,
        &(struct gl_target_params){
            .label = "window", .width = size[0], .height = size[1], .colour_formats = {GL_RGBA8}, .depth = true});
    return app->target != NULL ? LR_OK : LR_FAILED;
}

static void measure_time(struct app *app)
{
    const double now = lr_clock_seconds(), seconds = now - app->now_s;
    app->now_s = now;
    app->frame_s = app->num_frames < 2 ? seconds : 0.9 * app->frame_s + 0.1 * seconds;
    app->longest_frame_s = fmax(app->longest_frame_s, app->num_frames > 1 ? seconds : 0.0);
    app->num_frames++;
}

/* Whether somebody is to see what is drawn: the window itself, or a picture of it; or a script asks for frames.
 * The first one is drawn in any case, so that there is a picture of what was seen last. */
static bool is_looked_at(const struct app *app)
{
    return window_is_seen(app->window) || app->params->bench_frames > 0 || app->num_frames < 2 || app->is_pictured ||
           app->saves_view;
}

static lr_status draw_frame(struct app *app)
{
    camera_view(&app->camera, app->scene_size[0] / app->scene_size[1], &app->seen);
    probe_update(app);
    const struct draw_params params = {
        .view = &app->seen,
        .viewport = {(int)app->scene_at[0], app->target->size[1] - (int)(app->scene_at[1] + app->scene_size[1]),
                     (int)app->scene_size[0], (int)app->scene_size[1]},
        .hides_scanner = app->hides_scanner,
        .hides_lors = app->hides_lors,
        .hovered_module = app->probe.hit.module,
        .slices = app->slices,
        .has_volume = app->has_volume,
        .volume_high = app->slices.high,
    };
    const bool is_seen = is_looked_at(app);
    LR_TRY(is_seen ? draw_scene(app->draw, app->target, &params) : LR_OK);
    ui_begin(app->ui, window_is_seen(app->window) ? app->frame_s : unseen_frame_s);
    panels_show(app);
    LR_TRY(ui_end(app->ui, is_seen ? app->target : NULL));
    if (is_seen && app->saves_view) {
        app->saves_view = false;
        tools_save_view(app);
    }
    return LR_OK;
}

lr_status app_frame(struct app *app)
{
    int size[2];
    measure_time(app);
    if (app->script != NULL) LR_TRY(script_run(app->script, app));
    window_size(app->window, size);
    panels_leave(app);
    app_input_take(app);
    LR_TRY(tools_update(app));
    if (app->waits && !window_is_seen(app->window)) /* a picture that nobody sees */
        return LR_OK;
    window_size(app->window, size);
    if (size[0] < 1 || size[1] < 1) { /* an icon */
        window_wait(app->window, idle_seconds);
        return LR_OK;
    }
    LR_TRY(ensure_target(app));
    LR_TRY(draw_frame(app));
    window_show(app->window, app->target);
    if (app->first_frame_s <= 0.0) {
        glFinish();
        app->first_frame_s = lr_clock_seconds() - app->start_s;
    }
    return gl_context_check(app->ctx, "the window");
}

bool app_is_busy(const struct app *app)
{
    return tools_are_busy(app);
}

lr_status app_write_picture(struct app *app, const char *path)
{
    if (app->target == NULL) return lr_error(&app->log, LR_USAGE, "nothing has been drawn yet that could be saved");
    const int *size = app->target->size;
    lr_picture *picture = lr_picture_create(size, &app->log);
    uint8_t *texels = lr_alloc((int64_t)size[0] * size[1], 4, "a picture", &app->log);
    lr_status status = picture != NULL && texels != NULL ? LR_OK : LR_FAILED;
    if (status == LR_OK) status = gl_texture_read(app->target->colours[0], NULL, texels);
    for (int64_t k = 0; status == LR_OK && k < (int64_t)size[0] * size[1]; k++) {
        const int64_t from = (size[1] - 1 - k / size[0]) * size[0] + k % size[0];
        for (int c = 0; c < 3; c++) picture->rgb[3 * k + c] = texels[4 * from + c];
    }
    if (status == LR_OK) status = lr_png_write(path, picture->rgb, size, &app->log);
    free(texels);
    lr_picture_destroy(picture);
    return status;
}

/* --- running --- */

/* A signal ends the program. */
static lr_status check_stop(const struct app *app)
{
    return lr_progress_report(app->params->progress, "viewer", 0.0, 0.0);
}

static lr_status bench(struct app *app, int frames)
{
    const double start = lr_clock_seconds();
    const clock_t processor_start = clock();
    for (int k = 0; k < frames && !app->wants_quit; k++) {
        LR_TRY(check_stop(app));
        LR_TRY(app_frame(app));
        camera_orbit(&app->camera, 0.002, 0.0);
    }
    glFinish();
    const double seconds = lr_clock_seconds() - start;
    *app->params->speed = (struct view_speed){
        .first_frame_s = app->first_frame_s,
        .opened_s = start - app->start_s,
        .frames_per_second = frames / seconds,
        .frame_ms = 1e3 * seconds / frames,
        .processor_ms = 1e3 * (double)(clock() - processor_start) / CLOCKS_PER_SEC / frames,
        .size = {app->target->size[0], app->target->size[1]},
    };
    return LR_OK;
}

/* Frames as fast as they go would keep a software renderer from the jobs that are waited for: their contexts
 * take turns at its threads, and none is sure of the next one. */
static double pause_seconds(const struct app *app)
{
    const double busy = gl_context_limits(app->ctx)->software ? busy_software_seconds : busy_seconds;
    return app_is_busy(app) || app->params->bench_frames > 0 ? busy : idle_seconds;
}

static lr_status run(struct app *app)
{
    while (!app->wants_quit) {
        LR_TRY(check_stop(app));
        LR_TRY(app_frame(app));
        if (app->params->bench_frames > 0 && !app_is_busy(app) && app->num_frames > 3)
            return app->failure != LR_OK ? app->failure : bench(app, app->params->bench_frames);
        if (app->script == NULL) window_wait(app->window, pause_seconds(app));
    }
    return LR_OK;
}

lr_status view_run(const struct view_params *params)
{
    lr_status status;
    struct app *app = app_open(params, &status);
    if (app == NULL) return status;
    status = run(app);
    const bool is_ended_bench = params->bench_frames > 0 && (status == LR_CANCELLED || status == app->failure);
    if (status != LR_OK && app->script == NULL && !is_ended_bench) {
        /* the context is lost, not what was looked at */
        tools_save_session(app);
    }
    if (status == LR_OK && app->script != NULL) status = app->failure;
    app_close(app);
    return status;
}
