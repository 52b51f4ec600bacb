/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/log.h"
#include "base/mem.h"
#include "viewer/app.h"
#include "viewer/study/maps.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAPS_HIGHEST = 12 };

struct maps_state {
    struct task_runner sensitivities;
    bool is_asked;
    int modules[2];
    struct pair_image pair; /* LORs between the two `modules` */
    struct gl_texture *texture;
    char error[JOB_SENTENCE];
    struct lor_value highest[MAPS_HIGHEST];
    int num_highest;
};

static lr_status open_maps(struct app *app)
{
    struct maps_state *tool = app_state(app, &maps_tool);
    task_runner_init(&tool->sensitivities, &sensitivity_kind);
    app->runners[app->num_runners++] = &tool->sensitivities;
    tool->modules[1] = 1;
    return LR_OK;
}

static void close_maps(struct app *app)
{
    struct maps_state *tool = app_state(app, &maps_tool);
    pair_image_finish(&tool->pair);
    gl_texture_destroy(tool->texture);
    task_runner_finish(&tool->sensitivities);
}

static const struct sensitivity_request usual = {0};

/* --- a pair's LORs --- */

static void take_pair(struct app *app)
{
    struct maps_state *tool = app_state(app, &maps_tool);
    struct pair_image *pair = &tool->pair;
    const int *modules = tool->modules;
    struct lr_kept_error last;
    lr_log_keep_error(&last, tool->error, sizeof(tool->error));
    const struct voxel_result *result = voxel_result(voxel_tool_voxel(app), NULL);
    lr_status status = LR_USAGE;
    tool->error[0] = '\0';

    /* The voxel's rows may contain only some pairs of modules. pair_image_make refuses invalid pairs. */
    bool is_there = true;
    if (result != NULL && result->is_part) {
        const lr_lors *lors = result->study->lors;
        const int most = lors->scanner->num_modules;
        const bool are_two =
            modules[0] >= 0 && modules[1] >= 0 && modules[0] < most && modules[1] < most && modules[0] != modules[1];
        const int64_t number = are_two ? lr_lors_pair(lors, modules[0], modules[1]) : -1;
        is_there = number < 0;
        for (int64_t k = 0; k < result->num_pairs; k++) is_there = is_there || result->pairs[k] == number;
    }
    if (app->open.data != NULL) {
        status = pair_image_make(&app->open, modules, app->open.data, NULL, pair, &last.log);
    } else if (!is_there) {
        snprintf(tool->error, sizeof(tool->error),
                 "of the voxel, only the LORs that its windows show are computed, and none of modules %d and %d: "
                 "choose one of them as the voxel's module, or compute all its LORs there",
                 modules[0], modules[1]);
    } else if (result != NULL) {
        const struct voxel_row *from = result->has_exact ? &result->voxel_exact : &result->voxel_sampled;
        const lr_row row = {.count = from->count, .lor = from->lor, .probability = from->probability};
        status = pair_image_make(&app->open, modules, NULL, &row, pair, &last.log);
    } else {
        snprintf(tool->error, sizeof(tool->error), "there are no data, and no voxel is chosen");
    }
    if (status == LR_OK) {
        const int64_t count = (int64_t)pair->size[0] * pair->size[1];
        uint8_t *texels = lr_alloc(count, 4, "LORs to show", &app->log);
        for (int64_t k = 0; texels != NULL && k < count; k++) {
            const double share = (double)pair->values[k] / fmax(pair->largest, 1e-30);
            const lr_colour colour = lr_colour_of(LR_COLOURS_PERCEPTUAL, share);
            memcpy(&texels[4 * k], (uint8_t[4]){colour.r, colour.g, colour.b, 255}, 4);
        }
        if (texels != NULL) (void)draw_set_picture(&tool->texture, app->ctx, "LORs", pair->size, texels);
        free(texels);
    }
}

/* Forgets the shown pair, which may belong to another scanner. */
static lr_status take_study(struct app *app, bool is_new)
{
    struct maps_state *tool = app_state(app, &maps_tool);
    if (!is_new) return LR_OK;
    pair_image_finish(&tool->pair);
    gl_texture_destroy(tool->texture);
    tool->texture = NULL;
    tool->error[0] = '\0';
    tool->num_highest = app->open.data != NULL ? highest_of_data(app->open.data, tool->highest, MAPS_HIGHEST) : 0;
    return LR_OK;
}

static lr_status update(struct app *app)
{
    struct maps_state *tool = app_state(app, &maps_tool);
    if (task_runner_take_failure(&tool->sensitivities) && tool->is_asked) {
        app_take_failure(app, &tool->sensitivities.report, false);
        tool->is_asked = false;
    }
    if (!task_runner_take(&tool->sensitivities)) return LR_OK;
    const struct sensitivity_result *result = tool->sensitivities.result;
    app_put_image(app, DRAW_SENSITIVITY, result->image, result->largest);
    app_show_image(app, DRAW_SENSITIVITY);
    return LR_OK;
}

/* --- the panel --- */

static const double picture_width = 370.0, most_height = 300.0;

static void show_panel(struct app *app)
{
    struct maps_state *tool = app_state(app, &maps_tool);
    ui_text("sensitivity: the chance that an emission is detected");
    const struct job_report *report = &tool->sensitivities.report;
    if (report->state == JOB_RUNNING) {
        ui_progress(report->share, report->doing);
        if (ui_button("stop computing##sensitivity", true)) task_runner_cancel(&tool->sensitivities);
        ui_hint("as Esc does");
    } else {
        if (ui_button("compute the sensitivity", app->open.scanner != NULL))
            tool->is_asked = sensitivity_ask(&tool->sensitivities, &app->open, &usual, &app->log) == LR_OK;
        ui_hint("sums of all columns of the matrix, on the grid");
    }
    const struct sensitivity_result *result = tool->sensitivities.result;
    if (result != NULL && app->draw->images[DRAW_SENSITIVITY] != NULL) {
        ui_text("largest %.5g, mean %.5g, in %.2f s", result->largest, result->mean, result->seconds);
        if (ui_button("show the sensitivity", true)) app_show_image(app, DRAW_SENSITIVITY);
        ui_hint("on the slices and in the panes");
    }

    ui_line();
    const struct pair_image *pair = &tool->pair;
    const char *unit = app->open.data != NULL ? "counts" : "element (detections per emission)";
    ui_text("LORs of two modules, from %s", app->open.data != NULL ? "the data" : "the chosen voxel's row");
    if (ui_integers("modules", tool->modules, 2)) take_pair(app);
    ui_hint("numbers of the two modules");
    if (ui_button("show the LORs of the pair", app->open.scanner != NULL)) take_pair(app);
    ui_hint("a picture: a row for each crystal of one, a column for each of the other");
    if (tool->error[0] != '\0') {
        ui_toned(UI_BAD, "%s", tool->error);
    } else if (tool->texture != NULL) {
        const double scale = fmin(picture_width / pair->size[0], most_height / pair->size[1]);
        const struct ui_image image = {
            .texture = tool->texture, .size = {scale * pair->size[0], scale * pair->size[1]}, .is_top_down = true};
        const struct ui_touch touch = ui_image("##pair image", &image);
        const int column = (int)floor(touch.at[0] * pair->size[0]);
        const int row = (int)floor(touch.at[1] * pair->size[1]);
        const int64_t lor = touch.is_over ? pair_image_lor(&app->open, pair, column, row) : -1;
        if (lor >= 0) {
            const lr_lor place = lr_lors_describe(app->open.lors, lor);
            const struct ui_part part = {{(double)column / pair->size[0], (double)row / pair->size[1]},
                                         {(column + 1.0) / pair->size[0], (row + 1.0) / pair->size[1]}};
            const double value = (double)pair->values[(int64_t)row * pair->size[0] + column];
            ui_tooltip(&part, "LOR %lld\np = %d, q = %d; r = %d, s = %d\n%s: %.6g", (long long)lor, place.p, place.q,
                       place.r, place.s, unit, value);
        }
        if (touch.is_pressed && lor >= 0) lor_tool_choose(app, lor);
        const struct ui_bar bar = scene_bar(LR_COLOURS_PERCEPTUAL, (double[2]){0.0, fmax(pair->largest, 1e-30)}, unit);
        ui_bar(&bar, NULL);
        ui_toned(UI_DIM, "rows: crystals of module %d, columns: of module %d; sum %.6g, largest %.6g", pair->modules[0],
                 pair->modules[1], pair->sum, pair->largest);
    }

    if (tool->num_highest > 0 && ui_section("LORs with the most counts", false)) {
        for (int k = 0; k < tool->num_highest; k++) {
            char label[96];
            const lr_lor lor = lr_lors_describe(app->open.lors, tool->highest[k].lor);
            snprintf(label, sizeof(label), "%g in LOR %lld (modules %d and %d)##%d", tool->highest[k].value,
                     (long long)tool->highest[k].lor, lor.module_i, lor.module_j, k);
            const bool is_chosen = ui_item(label, false);
            ui_hint("turns to this LOR");
            if (!is_chosen) continue;
            lor_tool_choose(app, tool->highest[k].lor);
            break;
        }
    }
}

/* --- scripts --- */

static lr_status act(struct app *app, const struct command_words *words)
{
    struct maps_state *tool = app_state(app, &maps_tool);
    if (strcmp(words->words[0], "sensitivity") == 0) {
        tool->is_asked = sensitivity_ask(&tool->sensitivities, &app->open, &usual, &app->log) == LR_OK;
        return LR_OK;
    }
    LR_TRY(command_integer(&app->log, words, 1, &tool->modules[0]));
    LR_TRY(command_integer(&app->log, words, 2, &tool->modules[1]));
    take_pair(app);
    return LR_OK;
}

static bool get_value(struct app *app, const char *name, struct command_value *value)
{
    struct maps_state *tool = app_state(app, &maps_tool);
    const struct sensitivity_result *result = tool->sensitivities.result;
    const struct command_number numbers[] = {{"sensitivity.largest", result != NULL ? result->largest : 0.0}, {0}};
    return command_pick(numbers, &(struct command_text){0}, name, value);
}

static const struct command commands[] = {
    {"sensitivity", "", 0, 0, .act = act},
    {"pair", "MODULE MODULE", 2, 2, .act = act},
    {0},
};

const struct viewer_tool maps_tool = {.name = "Sensitivity",
                                      .word = "maps",
                                      .mode = LR_SESSION_SENSITIVITY,
                                      .state_bytes = sizeof(struct maps_state),
                                      .open = open_maps,
                                      .close = close_maps,
                                      .take_study = take_study,
                                      .update = update,
                                      .panel = show_panel,
                                      .commands = commands,
                                      .get_value = get_value};
