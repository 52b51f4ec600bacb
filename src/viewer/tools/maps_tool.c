/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/tools/maps_tool.h"

#include "base/mem.h"
#include "viewer/frame/app.h"
#include "viewer/frame/legend.h"
#include "viewer/tools/tools.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

lr_status maps_tool_open(struct app *app)
{
    app->maps.sensitivity = sensitivity_create(&app->log);
    app->maps.modules[1] = 1;
    return app->maps.sensitivity != NULL ? LR_OK : LR_FAILED;
}

void maps_tool_close(struct app *app)
{
    pair_image_finish(&app->maps.pair);
    gl_texture_destroy(app->maps.texture);
    sensitivity_destroy(app->maps.sensitivity);
}

void maps_tool_ask(struct app *app)
{
    struct maps_tool *tool = &app->maps;
    tool->is_asked = sensitivity_ask(tool->sensitivity, &app->open, &tool->request, &app->log) == LR_OK;
    if (tool->is_asked) tool->report.state = JOB_RUNNING;
}

/* --- a pair's LORs --- */

static void keep_sentence(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    struct maps_tool *tool = user;
    (void)status;
    if (level == LR_LOG_ERROR) snprintf(tool->error, sizeof(tool->error), "%s", sentence);
}

static lr_status paint_pair(struct app *app)
{
    struct maps_tool *tool = &app->maps;
    const struct pair_image *pair = &tool->pair;
    const int64_t count = (int64_t)pair->size[0] * pair->size[1];
    uint8_t *texels = lr_alloc(count, 4, "LORs to show", &app->log);
    gl_texture_destroy(tool->texture);
    tool->texture = gl_texture_create(
        app->ctx, &(struct gl_texture_params){
                      .label = "LORs", .format = GL_RGBA8, .width = pair->size[0], .height = pair->size[1]});
    for (int64_t k = 0; texels != NULL && k < count; k++) {
        const double share = (double)pair->values[k] / fmax(pair->largest, 1e-30);
        const lr_colour colour = lr_colour_of(LR_COLOURS_PERCEPTUAL, share);
        memcpy(&texels[4 * k], (uint8_t[4]){colour.r, colour.g, colour.b, 255}, 4);
    }
    const lr_status status =
        tool->texture != NULL && texels != NULL ? gl_texture_upload(tool->texture, texels) : LR_FAILED;
    free(texels);
    return status;
}

/* Whether the voxel's row has the pair's LORs. */
static bool has_pair(const struct app *app, const struct voxel_result *result)
{
    const int *modules = app->maps.modules;
    const lr_lors *lors = voxel_study(app->voxel.voxel)->lors;
    const int most = lors->scanner->num_modules;
    if (!result->is_part || modules[0] < 0 || modules[1] < 0 || modules[0] >= most || modules[1] >= most ||
        modules[0] == modules[1])
        return true; /* what is wrong with the numbers is told elsewhere */
    const int64_t pair = lr_lors_pair(lors, modules[0], modules[1]);
    bool is_there = pair < 0;
    for (int64_t k = 0; k < result->num_pairs; k++) is_there = is_there || result->pairs[k] == pair;
    return is_there;
}

void maps_tool_show_pair(struct app *app)
{
    struct maps_tool *tool = &app->maps;
    const lr_log log = {.write = keep_sentence, .user = tool};
    const struct voxel_result *result = voxel_tool_result(app);
    lr_status status = LR_USAGE;
    tool->error[0] = '\0';
    if (app->open.data != NULL) {
        status = pair_image_of_data(&app->open, tool->modules, app->open.data, &tool->pair, &log);
    } else if (result != NULL && !has_pair(app, result)) {
        snprintf(tool->error, sizeof(tool->error),
                 "of the voxel, only the LORs that its windows show are computed, and none of "
                 "modules %d and %d: choose one of them as the voxel's module, or compute all its "
                 "LORs there",
                 tool->modules[0], tool->modules[1]);
    } else if (result != NULL) {
        const struct voxel_row *from = result->has_exact ? &result->voxel_exact : &result->voxel_sampled;
        const lr_row row = {.count = from->count, .lor = from->lor, .probability = from->probability};
        status = pair_image_of_row(&app->open, tool->modules, &row, &tool->pair, &log);
    } else {
        snprintf(tool->error, sizeof(tool->error), "there are no data, and no voxel is chosen");
    }
    if (status == LR_OK) paint_pair(app);
}

/* Its numbers may be those of another scanner. */
static void forget_pair(struct maps_tool *tool)
{
    pair_image_finish(&tool->pair);
    gl_texture_destroy(tool->texture);
    tool->texture = NULL;
    tool->error[0] = '\0';
}

lr_status maps_tool_update(struct app *app)
{
    struct maps_tool *tool = &app->maps;
    int64_t serial;
    if (sensitivity_poll(tool->sensitivity, &tool->report) == JOB_FAILED && tool->is_asked) {
        app_take_failure(app, &tool->report, false);
        tool->is_asked = false;
    }
    if (app->open.serial != tool->study_serial) {
        tool->study_serial = app->open.serial;
        forget_pair(tool);
        tool->num_highest = app->open.data != NULL ? highest_of_data(app->open.data, tool->highest, MAPS_HIGHEST) : 0;
    }
    const struct sensitivity_result *result = sensitivity_result(tool->sensitivity, &serial);
    if (result == NULL || serial == tool->serial) return LR_OK;
    tool->serial = serial;
    app->ranges[DRAW_SENSITIVITY][1] = fmax(result->largest, 1e-30);
    tools_put_image(app, DRAW_SENSITIVITY, result->image);
    tools_show_image(app, DRAW_SENSITIVITY);
    return LR_OK;
}

/* --- its panel --- */

static const double picture_width = 370.0, most_height = 300.0;

static void show_sensitivity(struct app *app)
{
    struct maps_tool *tool = &app->maps;
    ui_text("sensitivity: the chance that an emission is detected");
    if (tool->report.state == JOB_RUNNING) {
        ui_progress(tool->report.share, tool->report.doing);
        if (ui_button("stop##sensitivity", true)) sensitivity_cancel(tool->sensitivity);
    } else if (ui_button("compute", app->open.scanner != NULL)) {
        maps_tool_ask(app);
    }
    const struct sensitivity_result *result = sensitivity_result(tool->sensitivity, NULL);
    if (result != NULL && draw_get_image(app->draw, DRAW_SENSITIVITY) != NULL) {
        ui_text("largest %.5g, mean %.5g, in %.2f s", result->largest, result->mean, result->seconds);
        if (ui_button("show##sensitivity", true)) tools_show_image(app, DRAW_SENSITIVITY);
    }
}

static void show_pair(struct app *app)
{
    struct maps_tool *tool = &app->maps;
    const struct pair_image *pair = &tool->pair;
    const char *unit = app->open.data != NULL ? "counts" : "element (detections per emission)";
    ui_text("LORs of two modules, from %s", app->open.data != NULL ? "the data" : "the chosen voxel's row");
    if (ui_integers("modules", tool->modules, 2)) maps_tool_show_pair(app);
    if (ui_button("show##pair", app->open.scanner != NULL)) maps_tool_show_pair(app);
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
        const struct ui_bar bar = legend_bar(LR_COLOURS_PERCEPTUAL, (double[2]){0.0, fmax(pair->largest, 1e-30)}, unit);
        ui_bar(&bar);
        ui_toned(UI_DIM, "rows: crystals of module %d, columns: of module %d; sum %.6g, largest %.6g", pair->modules[0],
                 pair->modules[1], pair->sum, pair->largest);
    }
}

static void show_highest(struct app *app)
{
    const struct maps_tool *tool = &app->maps;
    for (int k = 0; k < tool->num_highest; k++) {
        char label[96];
        const lr_lor lor = lr_lors_describe(app->open.lors, tool->highest[k].lor);
        snprintf(label, sizeof(label), "%g in LOR %lld (modules %d and %d)##%d", tool->highest[k].value,
                 (long long)tool->highest[k].lor, lor.module_i, lor.module_j, k);
        if (ui_item(label, false)) {
            lor_tool_choose(app, tool->highest[k].lor);
            break;
        }
    }
}

void maps_tool_panel(struct app *app)
{
    show_sensitivity(app);
    ui_line();
    show_pair(app);
    if (app->maps.num_highest > 0 && ui_section("LORs with the most counts", false)) show_highest(app);
}
