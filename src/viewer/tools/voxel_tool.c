/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/tools/voxel_tool.h"

#include "base/log.h"
#include "base/mem.h"
#include "viewer/frame/app.h"
#include "viewer/frame/scene_lines.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES_AT_FIRST = 300 };

lr_status voxel_tool_open(struct app *app)
{
    struct voxel_tool *tool = &app->voxel;
    tool->voxel = voxel_create(&app->log);
    tool->num_lines = LINES_AT_FIRST;
    tool->request.rays = 4;
    tool->request.on_graphics = !gl_context_limits(app->ctx)->software;
    return tool->voxel != NULL ? LR_OK : LR_FAILED;
}

void voxel_tool_close(struct app *app)
{
    struct voxel_tool *tool = &app->voxel;
    for (int k = 0; k < 3; k++) {
        sheet_finish(&tool->sheets[k]);
    }
    voxel_destroy(tool->voxel);
}

void voxel_tool_ask(struct app *app)
{
    struct voxel_tool *tool = &app->voxel;
    tool->is_asked = app->open.scanner != NULL &&
                     voxel_ask(tool->voxel, &app->open, &tool->request, &app->log) == LR_OK;
    if (tool->is_asked) {
        tool->report.state = JOB_RUNNING;
    }
}

void voxel_tool_take_study(struct app *app)
{
    struct voxel_tool *tool = &app->voxel;
    const lr_grid *grid = &app->open.grid;
    if (app->open.scanner == NULL) {
        return;
    }
    for (int k = 0; k < 3; k++) {
        tool->request.point_mm[k] = grid->origin_mm[k] + (grid->size[k] / 2) * grid->voxel_mm[k];
    }
    if (tool->request.primary >= app->open.scanner->num_modules) {
        tool->request.primary = 0;
    }
    tool->seeks_primary = true;
    voxel_tool_ask(app);
}

const struct voxel_result *voxel_tool_result(const struct app *app)
{
    return voxel_result(app->voxel.voxel, NULL);
}

int voxel_tool_backend(const struct app *app)
{
    const char *wanted = app->voxel.request.backend;
    for (int k = 0; wanted != NULL && voxel_backends[k] != NULL; k++) {
        if (strcmp(voxel_backends[k], wanted) == 0) {
            return k;
        }
    }
    return 0;
}

/* --- the scene --- */

static void crystal_place(const lr_scanner *scanner, const int crystal[3], float place[3])
{
    const lr_module *module = &scanner->modules[crystal[0]];
    double along[2];
    for (int k = 0; k < 2; k++) {
        along[k] = (crystal[1 + k] - 0.5 * (module->crystals[k] - 1)) * module->pitch_mm[k];
    }
    for (int k = 0; k < 3; k++) {
        place[k] =
            (float)(module->centre_mm[k] + along[0] * module->u[k] + along[1] * module->v[k]);
    }
}

static uint32_t line_colour(double share)
{
    const lr_colour colour = lr_colour_of(LR_COLOURS_PERCEPTUAL, 0.35 + 0.65 * share);
    const uint32_t alpha = (uint32_t)(40.0 + 150.0 * share);
    return (uint32_t)colour.r << 24 | (uint32_t)colour.g << 16 | (uint32_t)colour.b << 8 | alpha;
}

/* Every n-th of the LORs, strongest first, so that all parts of the row are there. */
static lr_status show_lines(struct app *app, const struct voxel_row *row)
{
    const lr_lors *lors = voxel_study(app->voxel.voxel)->lors;
    const int64_t most = app->voxel.num_lines < row->count ? app->voxel.num_lines : row->count;
    struct draw_line *lines =
        lr_alloc(most > 0 ? most : 1, sizeof(*lines), "lines of a row", &app->log);
    if (lines == NULL) {
        return LR_FAILED;
    }
    for (int64_t k = 0; k < most; k++) {
        const int64_t at = row->order[k * row->count / most];
        const lr_lor lor = lr_lors_describe(lors, row->lor[at]);
        const double share = row->probability[at] / row->probability[row->order[0]];
        crystal_place(lors->scanner, (int[3]){lor.module_i, lor.p, lor.q}, lines[k].from);
        crystal_place(lors->scanner, (int[3]){lor.module_j, lor.r, lor.s}, lines[k].to);
        lines[k].colour = line_colour(share);
    }
    const lr_status status = draw_set_lines(app->draw, DRAW_LORS, lines, (int)most);
    free(lines);
    return status;
}

/* What the row gives to the LORs of each crystal, as a share of the most. */
static lr_status show_crystals(struct app *app, const struct voxel_row *row)
{
    const lr_lors *lors = voxel_study(app->voxel.voxel)->lors;
    const lr_scanner *scanner = lors->scanner;
    float *values =
        lr_alloc(scanner->num_crystals, sizeof(*values), "values of crystals", &app->log);
    float most = 0.0f;
    if (values == NULL) {
        return LR_FAILED;
    }
    for (int64_t k = 0; k < row->count; k++) {
        const lr_lor lor = lr_lors_describe(lors, row->lor[k]);
        const int nu[2] = {scanner->modules[lor.module_i].crystals[0],
                           scanner->modules[lor.module_j].crystals[0]};
        values[scanner->first_crystal[lor.module_i] + lor.q * nu[0] + lor.p] +=
            (float)row->probability[k];
        values[scanner->first_crystal[lor.module_j] + lor.s * nu[1] + lor.r] +=
            (float)row->probability[k];
    }
    for (int c = 0; c < scanner->num_crystals; c++) {
        most = fmaxf(most, values[c]);
    }
    for (int c = 0; c < scanner->num_crystals; c++) {
        values[c] = values[c] > 0.0f ? values[c] / most : -1.0f;
    }
    const lr_status status = draw_set_crystal_values(app->draw, values, (double)most);
    free(values);
    return status;
}

static const struct voxel_row *best_row(const struct voxel_result *result)
{
    return result->has_exact ? &result->point_exact : &result->point_sampled;
}

static lr_status show_scene(struct app *app, const struct voxel_result *result)
{
    const struct voxel_row *row = best_row(result);
    LR_TRY(draw_set_lines(app->draw, DRAW_LOR, NULL, 0));
    LR_TRY(show_lines(app, row));
    LR_TRY(show_crystals(app, row));
    return scene_lines_cursor(app->draw, result->request.point_mm, 0.04 * app->camera.reach_mm);
}

/* --- pictures --- */

static lr_status draw_sheets(struct app *app, const struct voxel_result *result)
{
    static const enum sheet_kind three[3] = {SHEET_SAMPLED, SHEET_EXACT, SHEET_DIFFERENCE};
    struct voxel_tool *tool = &app->voxel;
    tool->num_sheets = tool->is_side_by_side ? 3 : 1;
    for (int k = 0; k < tool->num_sheets; k++) {
        tool->sheet_kinds[k] = tool->is_side_by_side ? three[k] : tool->kind;
        LR_TRY(sheet_draw(&tool->sheets[k], app->ctx, result, voxel_study(tool->voxel)->scanner,
                          tool->sheet_kinds[k]));
    }
    tool->shown_kind = tool->kind;
    tool->shown_side_by_side = tool->is_side_by_side;
    return LR_OK;
}

/* The first module may be primary for none of the point's LORs: the strongest one's is shown then. */
static void seek_primary(struct app *app, const struct voxel_result *result)
{
    struct voxel_tool *tool = &app->voxel;
    const struct voxel_window *window = &result->windows[0];
    const struct voxel_row *row = best_row(result);
    const lr_lors *lors = voxel_study(tool->voxel)->lors;
    bool is_empty = !result->request.all_primaries && row->count > 0 && lors == app->open.lors;
    for (int64_t k = 0; k < (int64_t)window->size[0] * window->size[1] && is_empty; k++) {
        is_empty = window->lors[k] < 0;
    }
    if (is_empty && tool->seeks_primary) {
        tool->request.primary =
            lr_lors_primary(lors, row->lor[row->order[0]], result->request.point_mm);
        voxel_tool_ask(app);
    }
    tool->seeks_primary = false;
}

void voxel_tool_describe(const struct voxel_result *result, char *text, size_t size)
{
    const bool has_exact = result->exact_by != NULL;
    snprintf(text, size, "drawn by backend %s on %s; elements sampled by %s%s%s%s%s",
             result->drawn_by, result->drawn_on, result->sampled_by, has_exact ? ", exact by " : "",
             has_exact ? result->exact_by : "", result->why_not[0] != '\0' ? "; " : "",
             result->why_not);
}

static void say_stand_in(struct app *app, const struct voxel_result *result)
{
    struct voxel_tool *tool = &app->voxel;
    char text[1400];
    if (result->why_not[0] != '\0' && strcmp(tool->said, result->why_not) != 0) {
        voxel_tool_describe(result, text, sizeof(text));
        app_say(app, LR_LOG_WARNING, "correspondence images are %s", text);
    }
    snprintf(tool->said, sizeof(tool->said), "%s", result->why_not);
}

lr_status voxel_tool_update(struct app *app)
{
    struct voxel_tool *tool = &app->voxel;
    int64_t serial;
    const enum job_state state = voxel_poll(tool->voxel, &tool->report);
    if (state == JOB_FAILED && tool->is_asked) {
        app_take_failure(app, &tool->report, false);
        tool->is_asked = false;
    }
    const struct voxel_result *result = voxel_result(tool->voxel, &serial);
    if (result == NULL) {
        return LR_OK;
    }
    if (serial != tool->serial) {
        tool->serial = serial;
        say_stand_in(app, result);
        seek_primary(app, result);
        tool->gap = result->request.all_primaries ? (struct voxel_gap){.better = -1}
                                                  : voxel_tool_gap(app, result->windows[0].module);
        if (voxel_study(tool->voxel)->scanner == app->open.scanner && app->tool == TOOL_VOXEL) {
            LR_TRY(show_scene(app, result));
        }
        return draw_sheets(app, result);
    }
    return tool->kind != tool->shown_kind || tool->is_side_by_side != tool->shown_side_by_side
               ? draw_sheets(app, result)
               : LR_OK;
}

bool voxel_tool_at(struct app *app, int sheet, const double at[2], struct voxel_touch *touch)
{
    struct voxel_tool *tool = &app->voxel;
    const struct sheet *shown = &tool->sheets[sheet];
    const struct voxel_result *result = voxel_tool_result(app);
    int window, place[2];
    if (result == NULL || !sheet_pixel(shown, at, &window, place) ||
        place[0] >= result->windows[window].size[0] ||
        place[1] >= result->windows[window].size[1]) {
        return false;
    }
    sheet_corners(shown, window, (double[2]){place[0], place[1]}, touch->part.from);
    sheet_corners(shown, window, (double[2]){place[0] + 1.0, place[1] + 1.0}, touch->part.to);
    return voxel_at(tool->voxel, result->windows[window].module, place, &touch->pixel) == LR_OK;
}

struct voxel_gap voxel_tool_gap(const struct app *app, int module)
{
    const struct voxel_result *result = voxel_tool_result(app);
    const struct study_view *study = voxel_study(app->voxel.voxel);
    for (int w = 0; result != NULL && w < result->num_windows; w++) {
        if (result->windows[w].module == module) {
            return voxel_gap_find(result, study->lors, &result->windows[w]);
        }
    }
    return (struct voxel_gap){.better = -1};
}

void voxel_tool_show_module(struct app *app, int module)
{
    app->voxel.request.primary = module;
    app->voxel.request.all_primaries = false;
    voxel_tool_ask(app);
}
