/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/tools/live_tool.h"

#include "viewer/frame/app.h"
#include "viewer/tools/tools.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

lr_status live_tool_open(struct app *app)
{
    struct live_tool *tool = &app->live;
    tool->live = live_create(&app->log);
    tool->request.subsets = 4;
    tool->request.iterations = 10;
    tool->request.counts = 1e6;
    tool->request.seed = 1;
    tool->on_device = !gl_context_limits(app->ctx)->software;
    return tool->live != NULL ? LR_OK : LR_FAILED;
}

void live_tool_close(struct app *app)
{
    live_destroy(app->live.live);
    if (app->draw != NULL && draw_get_image(app->draw, DRAW_LIVE) != NULL) {
        draw_set_image(app->draw, DRAW_LIVE, NULL);
    }
    handover_destroy(app->live.handover);
    lr_image_destroy(app->live.image);
}

static void keep_sentence(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    struct live_tool *tool = user;
    (void)status;
    if (level == LR_LOG_ERROR) {
        snprintf(tool->error, sizeof(tool->error), "%s", sentence);
    }
}

static bool wants_handover(const struct app *app)
{
    return app->live.on_device && app->open.grid.size[0] > 0;
}

void live_tool_start(struct app *app)
{
    struct live_tool *tool = &app->live;
    const lr_log log = {.write = keep_sentence, .user = tool};
    tool->error[0] = '\0';
    tool->num_iterations = 0;
    tool->request.simulates = app->open.data == NULL;
    tool->request.reference = app->open.data != NULL && tool->compares ? app->open.image : NULL;
    struct handover *before = tool->handover;
    tool->handover = wants_handover(app) ? handover_create(app->ctx, &app->open.grid) : NULL;
    tool->request.handover = tool->handover;
    if (live_start(tool->live, &app->open, &tool->request, &log) != LR_OK) {
        handover_destroy(tool->handover);
        tool->handover = before; /* which the one that runs may use */
        return;
    }
    if (before != NULL) {
        draw_set_image(app->draw, DRAW_LIVE, NULL);
        handover_destroy(before);
    }
}

/* is_first: it comes into the scene for the first time. */
static void show_image(struct app *app, double largest, bool is_first)
{
    app->ranges[DRAW_LIVE][1] = fmax(largest, 1e-30);
    if (is_first || app->slices.image == DRAW_LIVE) {
        tools_show_image(app, DRAW_LIVE);
    }
}

static void take_from_device(struct app *app)
{
    struct handover *handover = app->live.handover;
    lr_grid grid;
    double largest;
    if (handover_take(handover)) {
        const bool is_first = draw_get_image(app->draw, DRAW_LIVE) == NULL;
        struct gl_texture *texture = handover_shown(handover, &grid, &largest);
        draw_lend_image(app->draw, DRAW_LIVE, texture, &grid, largest);
        show_image(app, largest, is_first);
    }
}

static lr_status take_from_host(struct app *app)
{
    struct live_tool *tool = &app->live;
    const lr_grid grid = live_grid(tool->live);
    if (grid.size[0] == 0) {
        return LR_OK;
    }
    if (tool->image == NULL || memcmp(&tool->image->grid, &grid, sizeof(grid)) != 0) {
        lr_image_destroy(tool->image);
        tool->image = lr_image_create(&grid, &app->log);
    }
    if (tool->image == NULL) {
        return LR_FAILED;
    }
    const int64_t before = tool->serial;
    if (!live_copy_image(tool->live, &tool->serial, tool->image->values)) {
        return LR_OK;
    }
    double most = 0.0;
    for (int64_t v = 0; v < lr_grid_num_voxels(&grid); v++) {
        most = fmax(most, (double)tool->image->values[v]);
    }
    tools_put_image(app, DRAW_LIVE, tool->image);
    show_image(app, most, before == 0);
    return LR_OK;
}

static void take_history(struct live_tool *tool)
{
    struct live_iteration next;
    while (live_copy_history(tool->live, tool->num_iterations, &next, 1) > tool->num_iterations) {
        if (tool->num_iterations < LIVE_HISTORY) {
            tool->likelihood[tool->num_iterations] = (float)next.log_likelihood;
            tool->difference[tool->num_iterations] = (float)next.difference;
        }
        tool->last = next;
        tool->num_iterations++;
    }
}

lr_status live_tool_update(struct app *app)
{
    struct live_tool *tool = &app->live;
    struct job_report report;
    const enum live_state before = tool->state;
    tool->state = live_poll(tool->live, &report);
    if (tool->state == LIVE_FAILED && before != LIVE_FAILED) {
        snprintf(tool->error, sizeof(tool->error), "%s", report.error);
    }
    take_history(tool);
    tool->is_on_device = live_is_on_device(tool->live, tool->why);
    if (tool->is_on_device) {
        take_from_device(app);
        return LR_OK;
    }
    return take_from_host(app);
}
