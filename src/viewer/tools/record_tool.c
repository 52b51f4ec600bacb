/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/tools/record_tool.h"

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
    if (status != LR_OK) {
        return status;
    }
    lr_run_record_finish(&tool->record);
    tool->record = record;
    snprintf(tool->path, sizeof(tool->path), "%s", path);
    for (int curve = 0; curve < LR_RUN_CURVES; curve++) {
        lr_run_record_by_seconds(&record, (enum lr_run_curve)curve, RECORD_PLACES,
                                 tool->timed[curve]);
    }
    app->tool = TOOL_LIVE;
    app->wants_tool = true;
    return LR_OK;
}

void record_tool_close(struct app *app)
{
    lr_run_record_finish(&app->record.record);
    app->record.path[0] = '\0';
}

/* --- its panel --- */

static void show_curve(struct app *app, enum lr_run_curve which)
{
    static const char *const titles[] = {[LR_RUN_LIKELIHOOD] = "log-likelihood",
                                         [LR_RUN_ERROR] = "distance to the truth over its norm"};
    static const char *const labels[] = {
        [LR_RUN_LIKELIHOOD] = "##record likelihood", [LR_RUN_ERROR] = "##record error"};
    const struct record_tool *tool = &app->record;
    const struct lr_run_record *record = &tool->record;
    const int last = record->count - 1;
    /* The first image is so unlikely that it would hide the rest. */
    const int begin =
        which == LR_RUN_LIKELIHOOD ? panels_find_first(record->values[which], record->count) : 0;
    struct ui_curve curve = {.values = record->values[which] + begin,
                             .count = record->count - begin,
                             .x = {record->first + begin, record->first + last},
                             .is_counted = true,
                             .title = titles[which],
                             .x_label = "iteration"};
    if (tool->by_seconds) {
        curve.values = tool->timed[which];
        curve.count = RECORD_PLACES;
        curve.x[0] = (double)record->seconds[0];
        curve.x[1] = (double)record->seconds[last];
        curve.is_counted = false;
        curve.x_label = "seconds since iterations began";
    }
    panels_take_reading(app, ui_curve(labels[which], &curve));
}

static void show_head(const struct record_tool *tool)
{
    const struct lr_run_record *record = &tool->record;
    const char *slash = strrchr(tool->path, '/');
    ui_text("%s: %s, %d iteration%s in %.4g s", slash != NULL ? slash + 1 : tool->path,
            record->name, record->count, record->count == 1 ? "" : "s",
            (double)record->seconds[record->count - 1]);
    if (record->frames > 0) {
        ui_toned(UI_DIM, "of the first of %d frames", record->frames);
    }
}

void record_tool_panel(struct app *app)
{
    struct record_tool *tool = &app->record;
    if (tool->record.count == 0 || !ui_section("Record of a run", true)) {
        return;
    }
    show_head(tool);
    if (tool->record.seconds[tool->record.count - 1] > tool->record.seconds[0]) {
        ui_check("by seconds", &tool->by_seconds);
        ui_hint("on straight lines between iterations, with the first image too");
    } else {
        tool->by_seconds = false;
    }
    for (int curve = 0; curve < LR_RUN_CURVES; curve++) {
        if (tool->record.has[curve]) {
            show_curve(app, (enum lr_run_curve)curve);
        }
    }
    if (ui_button("close##record", true)) {
        record_tool_close(app);
    }
}
