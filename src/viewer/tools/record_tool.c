/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/tools/record_tool.h"

#include "base/log.h"
#include "viewer/frame/app.h"
#include "viewer/frame/panels.h"
#include "viewer/tools/tools.h"

#include <stdio.h>
#include <string.h>

lr_status record_tool_open(struct app *app, const char *path)
{
    struct record_tool *tool = &app->record;
    struct lr_run_record record;
    const lr_status status = lr_run_record_read(path, &record, &app->log);
    if (status != LR_OK) return status;
    lr_run_record_finish(&tool->record);
    tool->record = record;
    snprintf(tool->path, sizeof(tool->path), "%s", path);
    app->tool = TOOL_LIVE;
    app->wants_tool = true;
    return record_tool_show(app, 1);
}

lr_status record_tool_show(struct app *app, int number)
{
    struct record_tool *tool = &app->record;
    if (number < 1 || number > tool->record.num_images) {
        return lr_error(&app->log, LR_USAGE, "there is no frame %d of a run: %d are there", number,
                        tool->record.num_images);
    }
    tool->shown = number - 1;
    const struct lr_run_image *image = &tool->record.images[tool->shown];
    for (int curve = 0; curve < LR_RUN_CURVES && image->count > 0; curve++)
        lr_run_image_by_seconds(image, (enum lr_run_curve)curve, RECORD_PLACES, tool->timed[curve]);
    return LR_OK;
}

void record_tool_close(struct app *app)
{
    lr_run_record_finish(&app->record.record);
    app->record.path[0] = '\0';
}

/* --- its panel --- */

static bool takes_time(const struct lr_run_image *image)
{
    return image->count > 0 && image->seconds[image->count - 1] > image->seconds[0];
}

static void show_curve(struct app *app, enum lr_run_curve which)
{
    static const char *const titles[] = {
        [LR_RUN_LIKELIHOOD] = "log-likelihood", [LR_RUN_ERROR] = "distance to the truth over its norm"};
    static const char *const labels[] = {
        [LR_RUN_LIKELIHOOD] = "##record likelihood", [LR_RUN_ERROR] = "##record error"};
    const struct record_tool *tool = &app->record;
    const struct lr_run_image *image = &tool->record.images[tool->shown];
    const int last = image->count - 1;
    /* The first image is so unlikely that it would hide the rest. */
    const int begin = which == LR_RUN_LIKELIHOOD ? panels_find_first(image->values[which], image->count) : 0;
    struct ui_curve curve = {.values = image->values[which] + begin,
                             .count = image->count - begin,
                             .x = {image->first + begin, image->first + last},
                             .is_counted = true,
                             .title = titles[which],
                             .x_label = "iteration"};
    if (tool->by_seconds && takes_time(image)) {
        curve.values = tool->timed[which];
        curve.count = RECORD_PLACES;
        curve.x[0] = (double)image->seconds[0];
        curve.x[1] = (double)image->seconds[last];
        curve.is_counted = false;
        curve.x_label = "seconds since iterations began";
    }
    panels_take_reading(app, ui_curve(labels[which], &curve));
}

static void show_head(struct app *app)
{
    struct record_tool *tool = &app->record;
    const struct lr_run_record *record = &tool->record;
    const struct lr_run_image *image = &record->images[tool->shown];
    const char *slash = strrchr(tool->path, '/');
    ui_text("%s: %s, %d iteration%s in %.4g s", slash != NULL ? slash + 1 : tool->path, record->name, image->count,
            image->count == 1 ? "" : "s", image->count > 0 ? (double)image->seconds[image->count - 1] : 0.0);
    if (record->num_images > 1) {
        const int range[2] = {1, record->num_images};
        int number = tool->shown + 1;
        if (ui_slide("frame##record", &number, range)) (void)record_tool_show(app, number);
    }
}

void record_tool_panel(struct app *app)
{
    struct record_tool *tool = &app->record;
    if (tool->record.num_images == 0 || !ui_section("Record of a run", true)) return;
    show_head(app);
    if (takes_time(&tool->record.images[tool->shown])) {
        ui_check("by seconds", &tool->by_seconds);
        ui_hint("on straight lines between iterations, with the first image too");
    }
    for (int curve = 0; curve < LR_RUN_CURVES; curve++)
        if (tool->record.images[tool->shown].has[curve]) show_curve(app, (enum lr_run_curve)curve);
    if (ui_button("close##record", true)) record_tool_close(app);
}
