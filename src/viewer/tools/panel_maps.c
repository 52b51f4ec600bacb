/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/frame/legend.h"
#include "viewer/frame/panels.h"
#include "viewer/tools/tools.h"

#include <math.h>
#include <stdio.h>

static const double picture_width = 370.0, most_height = 300.0;

static void show_sensitivity(struct app *app)
{
    struct maps_tool *tool = &app->maps;
    ui_text("sensitivity: the chance that an emission is detected");
    if (tool->report.state == JOB_RUNNING) {
        ui_progress(tool->report.share, tool->report.doing);
        if (ui_button("stop##sensitivity", true)) {
            sensitivity_cancel(tool->sensitivity);
        }
    } else if (ui_button("compute", app->open.scanner != NULL)) {
        maps_tool_ask(app);
    }
    const struct sensitivity_result *result = sensitivity_result(tool->sensitivity, NULL);
    if (result != NULL) {
        ui_text("largest %.5g, mean %.5g, in %.2f s", result->largest, result->mean,
                result->seconds);
        if (ui_button("show##sensitivity", true)) {
            tools_show_image(app, DRAW_SENSITIVITY);
        }
    }
}

static void show_pair(struct app *app)
{
    struct maps_tool *tool = &app->maps;
    const struct pair_image *pair = &tool->pair;
    const char *unit = app->open.data != NULL ? "counts" : "element (detections per emission)";
    ui_text("LORs of two modules, from %s",
            app->open.data != NULL ? "the data" : "the chosen voxel's row");
    if (ui_integers("modules", tool->modules, 2)) {
        maps_tool_show_pair(app);
    }
    if (ui_button("show##pair", app->open.scanner != NULL)) {
        maps_tool_show_pair(app);
    }
    if (tool->error[0] != '\0') {
        ui_toned(UI_BAD, "%s", tool->error);
    } else if (tool->texture != NULL) {
        const double scale = fmin(picture_width / pair->size[0], most_height / pair->size[1]);
        const struct ui_image image = {.texture = tool->texture,
                                       .size = {scale * pair->size[0], scale * pair->size[1]},
                                       .is_top_down = true};
        const struct ui_touch touch = ui_image("##pair image", &image);
        const int column = (int)floor(touch.at[0] * pair->size[0]);
        const int row = (int)floor(touch.at[1] * pair->size[1]);
        const int64_t lor = touch.is_over ? pair_image_lor(&app->open, pair, column, row) : -1;
        if (lor >= 0) {
            const lr_lor place = lr_lors_describe(app->open.lors, lor);
            const struct ui_part part = {
                {(double)column / pair->size[0], (double)row / pair->size[1]},
                {(column + 1.0) / pair->size[0], (row + 1.0) / pair->size[1]}};
            const double value = (double)pair->values[(int64_t)row * pair->size[0] + column];
            ui_tooltip(&part, "LOR %lld\np = %d, q = %d; r = %d, s = %d\n%s: %.6g", (long long)lor,
                       place.p, place.q, place.r, place.s, unit, value);
        }
        if (touch.is_pressed && lor >= 0) {
            lor_tool_choose(app, lor);
        }
        const struct ui_bar bar =
            legend_bar(LR_COLOURS_PERCEPTUAL, (double[2]){0.0, fmax(pair->largest, 1e-30)}, unit);
        ui_bar(&bar);
        ui_toned(UI_DIM,
                 "rows: crystals of module %d, columns: of module %d; sum %.6g, largest %.6g",
                 pair->modules[0], pair->modules[1], pair->sum, pair->largest);
    }
}

static void show_highest(struct app *app)
{
    const struct maps_tool *tool = &app->maps;
    for (int k = 0; k < tool->num_highest; k++) {
        char label[96];
        const lr_lor lor = lr_lors_describe(app->open.lors, tool->highest[k].lor);
        snprintf(label, sizeof(label), "%g in LOR %lld (modules %d and %d)##%d",
                 tool->highest[k].value, (long long)tool->highest[k].lor, lor.module_i,
                 lor.module_j, k);
        if (ui_item(label, false)) {
            lor_tool_choose(app, tool->highest[k].lor);
            break;
        }
    }
}

void panel_maps(struct app *app)
{
    show_sensitivity(app);
    ui_line();
    show_pair(app);
    if (app->maps.num_highest > 0 && ui_section("LORs with the most counts", false)) {
        show_highest(app);
    }
}
