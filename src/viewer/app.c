/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/app.h"

#include "base/log.h"
#include "base/mem.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* --- tools --- */

void *app_state(const struct app *app, const struct viewer_tool *tool)
{
    for (int k = 0; app->tools[k] != NULL; k++)
        if (app->tools[k] == tool) return app->states[k];
    return NULL;
}

void app_choose(struct app *app, const struct viewer_tool *tool)
{
    app->tool = tool;
    app->wants_tool = true;
}

void app_add_runner(struct app *app, struct task_runner *runner)
{
    app->runners[app->num_runners++] = runner;
}

bool app_is_busy(const struct app *app)
{
    bool is_busy = draw_is_busy(app->draw);
    for (int k = 0; k < app->num_runners; k++) is_busy = is_busy || app->runners[k]->report.state == JOB_RUNNING;
    for (int k = 0; app->tools[k] != NULL; k++)
        is_busy = is_busy || (app->tools[k]->is_busy != NULL && app->tools[k]->is_busy(app));
    return is_busy;
}

void app_cancel(struct app *app)
{
    for (int k = 0; k < app->num_runners; k++) task_runner_cancel(app->runners[k]);
    for (int k = 0; app->tools[k] != NULL; k++)
        if (app->tools[k]->cancel != NULL) app->tools[k]->cancel(app);
}

static const struct viewer_tool *find_reader(const struct app *app, enum lr_file_kind kind)
{
    for (int k = 0; app->tools[k] != NULL; k++)
        if (app->tools[k]->open_file != NULL && app->tools[k]->opens == kind) return app->tools[k];
    return NULL;
}

lr_status app_open_file(struct app *app, enum lr_file_kind kind, const char *path)
{
    const struct viewer_tool *reader = find_reader(app, kind);
    return reader != NULL ? reader->open_file(app, path) : study_open_file(app->study, path);
}

void app_drop(struct app *app, const char *path)
{
    const enum lr_file_kind kind = lr_file_kind_of(path);
    const struct viewer_tool *reader = find_reader(app, kind);
    (void)app_open_file(app, kind, path);
    if (reader != NULL && reader->panel != NULL) app_choose(app, reader);
}

/* --- messages --- */

void app_keep_message(void *user, lr_log_level level, lr_status status, const char *sentence)
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

void app_keep_error(void *user, lr_log_level level, lr_status status, const char *message)
{
    (void)status;
    if (level == LR_LOG_ERROR) snprintf(user, JOB_SENTENCE, "%s", message);
}

void app_say(struct app *app, lr_log_level level, const char *format, ...)
{
    char sentence[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(sentence, sizeof(sentence), format, list);
    va_end(list);
    app_keep_message(app, level, level == LR_LOG_ERROR ? LR_FAILED : LR_OK, sentence);
}

void app_take_failure(struct app *app, const struct job_report *report, bool is_expected)
{
    app_keep_message(app, LR_LOG_ERROR, report->status, report->error);
    if (!is_expected && app->failure == LR_OK) app->failure = report->status;
}

void app_take_reading(struct app *app, struct ui_reading reading)
{
    if (reading.index >= 0) app->reading = reading;
}

/* --- the scene --- */

void app_fit(struct app *app)
{
    const lr_scanner *scanner = app->open.scanner;
    double reach = 0.0;
    if (scanner == NULL) return;
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        const double u = 0.5 * module->crystals[0] * module->pitch_mm[0];
        const double v = 0.5 * module->crystals[1] * module->pitch_mm[1];
        const double *c = module->centre_mm;
        reach = fmax(reach, sqrt(c[0] * c[0] + c[1] * c[1] + c[2] * c[2]) + hypot(u, v));
    }
    camera_fit(&app->camera, reach, app->scene_size[0] / app->scene_size[1]);
}

void app_put_image(struct app *app, enum draw_image which, const lr_image *image)
{
    if (draw_set_image(app->draw, which, image) != LR_OK) {
        draw_set_image(app->draw, which, NULL);
        app->failure = app->failure == LR_OK ? LR_FAILED : app->failure;
    }
}

void app_show_image(struct app *app, enum draw_image which)
{
    struct draw_slices *slices = &app->slices;
    if (!draw_has_image(app->draw, which)) return;
    slices->image = which;
    slices->low = app->ranges[which][0];
    slices->high = app->ranges[which][1];
    if (slices->is_shown[0] || slices->is_shown[1] || slices->is_shown[2]) return;
    const lr_grid *own = draw_get_grid(app->draw, which), *grid = own != NULL ? own : &app->open.grid;
    for (int k = 0; k < 3; k++) { /* all three, through the middle */
        slices->is_shown[k] = true;
        slices->at_mm[k] = grid->origin_mm[k] + (grid->size[k] / 2) * grid->voxel_mm[k];
    }
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
