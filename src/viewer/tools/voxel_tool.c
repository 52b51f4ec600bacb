/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/log.h"
#include "base/mem.h"
#include "viewer/app.h"
#include "viewer/study/voxel.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct voxel_state {
    struct voxel *voxel;
    struct voxel_request request; /* settings made by a person; a change of these settings needs a new request */
    int backend;                  /* index in voxel_backends */
    bool is_asked;                /* a result has been requested for the open scanner */
    struct job_report report;     /* report of this frame; it is kept, because another poll would replace the result */
    bool seeks_primary;           /* a primary module is chosen automatically for a new scanner, until a person or a
                                     session chooses one */
    bool is_side_by_side;         /* shows sampled, exact and difference next to each other */
    enum sheet_kind kind;
    int64_t serial; /* serial of the shown result */
    enum sheet_kind shown_kind;
    bool shown_side_by_side;
    struct sheet sheets[3];
    int num_sheets;
    enum sheet_kind sheet_kinds[3];
    struct voxel_gap gap; /* why the result's single window is missing */
    int num_lines;        /* largest number of LORs drawn in the scene */
    bool has_touch;       /* a pixel was under the mouse in the last frame */
    struct voxel_pixel touched;
    char reported[1024]; /* reason why cpu draws, as last logged */
};

enum { LINES_AT_FIRST = 300 };

static lr_status open_voxel(struct app *app)
{
    struct voxel_state *tool = app_state(app, &voxel_tool);
    tool->voxel = voxel_create(&app->log);
    tool->num_lines = LINES_AT_FIRST;
    tool->request.rays = 4;
    tool->request.on_graphics = !gl_context_limits(app->ctx)->software;
    if (tool->voxel == NULL) return LR_FAILED;
    app->runners[app->num_runners++] = &tool->voxel->windows;
    app->runners[app->num_runners++] = &tool->voxel->means;
    return LR_OK;
}

static void close_voxel(struct app *app)
{
    struct voxel_state *tool = app_state(app, &voxel_tool);
    for (int k = 0; k < 3; k++) gl_texture_destroy(tool->sheets[k].texture);
    voxel_destroy(tool->voxel);
}

static void ask(struct app *app)
{
    struct voxel_state *tool = app_state(app, &voxel_tool);
    memcpy(tool->request.point_mm, app->point_mm, sizeof(tool->request.point_mm));
    tool->request.backend = voxel_backends[tool->backend];
    tool->is_asked =
        app->open.scanner != NULL && voxel_ask(tool->voxel, &app->open, &tool->request, &app->log) == LR_OK;
    if (tool->is_asked) tool->report.state = JOB_RUNNING;
}

static lr_status take_study(struct app *app, bool is_new)
{
    struct voxel_state *tool = app_state(app, &voxel_tool);
    const lr_grid *grid = &app->open.grid;
    if (!is_new || app->open.scanner == NULL) return LR_OK;
    for (int k = 0; k < 3; k++) app->point_mm[k] = grid->origin_mm[k] + (grid->size[k] / 2) * grid->voxel_mm[k];
    if (tool->request.primary >= app->open.scanner->num_modules) tool->request.primary = 0;
    tool->seeks_primary = true;
    ask(app);
    return LR_OK;
}

const struct voxel *voxel_tool_voxel(const struct app *app)
{
    const struct voxel_state *tool = app_state(app, &voxel_tool);
    return tool->voxel;
}

void voxel_tool_set_point(struct app *app, const double point_mm[3])
{
    memmove(app->point_mm, point_mm, sizeof(app->point_mm));
    ask(app);
}

/* --- the scene --- */

/* Draws the LORs of a row as lines. A crystal's colour shows the share of the row that its LORs have, relative to
 * the largest share. */
static lr_status mark_row(struct app *app, const struct voxel_result *result)
{
    struct voxel_state *tool = app_state(app, &voxel_tool);
    const struct voxel_row *row = voxel_best_row(result);
    const lr_lors *lors = result->study->lors;
    const lr_scanner *scanner = lors->scanner;

    /* A row may have more LORs than a person can distinguish as lines. At most num_lines are drawn: every n-th LOR in
     * order of falling probability, so that both strong and weak LORs are shown. */
    const int64_t most = tool->num_lines < row->count ? tool->num_lines : row->count;
    struct draw_line *lines = lr_alloc(most > 0 ? most : 1, sizeof(*lines), "lines of a row", &app->log);
    if (lines == NULL) return LR_FAILED;
    for (int64_t k = 0; k < most; k++) {
        const int64_t at = row->order[k * row->count / most];
        const lr_lor lor = lr_lors_describe(lors, row->lor[at]);
        const double share = row->probability[at] / row->probability[row->order[0]];
        const int ends[2][3] = {{lor.module_i, lor.p, lor.q}, {lor.module_j, lor.r, lor.s}};
        for (int end = 0; end < 2; end++) {
            const lr_module *module = &scanner->modules[ends[end][0]];
            double along[2];
            for (int c = 0; c < 2; c++)
                along[c] = (ends[end][1 + c] - 0.5 * (module->crystals[c] - 1)) * module->pitch_mm[c];
            for (int c = 0; c < 3; c++) {
                const double place = module->centre_mm[c] + along[0] * module->u[c] + along[1] * module->v[c];
                (end == 0 ? lines[k].from : lines[k].to)[c] = (float)place;
            }
        }
        const lr_colour colour = lr_colour_of(LR_COLOURS_PERCEPTUAL, 0.35 + 0.65 * share);
        const uint32_t alpha = (uint32_t)(40.0 + 150.0 * share);
        lines[k].colour = (uint32_t)colour.r << 24 | (uint32_t)colour.g << 16 | (uint32_t)colour.b << 8 | alpha;
    }
    const lr_status status = draw_set_lines(app->draw, DRAW_LORS, lines, (int)most);
    free(lines);
    LR_TRY(status);

    float *values = lr_alloc(scanner->num_crystals, sizeof(*values), "values of crystals", &app->log);
    float largest = 0.0f;
    if (values == NULL) return LR_FAILED;
    for (int64_t k = 0; k < row->count; k++) {
        int32_t crystals[2];
        lr_lors_crystals(lors, row->lor[k], crystals);
        for (int c = 0; c < 2; c++) values[crystals[c]] += (float)row->probability[k];
    }
    for (int c = 0; c < scanner->num_crystals; c++) largest = fmaxf(largest, values[c]);
    for (int c = 0; c < scanner->num_crystals; c++) values[c] = values[c] > 0.0f ? values[c] / largest : -1.0f;
    const lr_status coloured = draw_set_crystal_values(app->draw, values, (double)largest);
    free(values);
    return coloured;
}

/* --- pictures --- */

/* Writes "drawn by backend raster on llvmpipe; elements sampled by raster, exact by native", followed by the reason
 * if cpu has replaced a backend. */
static void describe_backends(const struct voxel_result *result, char *text, size_t size)
{
    const bool has_exact = result->exact_by != NULL;
    snprintf(text, size, "drawn by backend %s on %s; elements sampled by %s%s%s%s%s", result->drawn_by,
             result->drawn_on, result->sampled_by, has_exact ? ", exact by " : "", has_exact ? result->exact_by : "",
             result->why_not[0] != '\0' ? "; " : "", result->why_not);
}

static lr_status update(struct app *app)
{
    static const enum sheet_kind three[3] = {SHEET_SAMPLED, SHEET_EXACT, SHEET_DIFFERENCE};
    struct voxel_state *tool = app_state(app, &voxel_tool);
    int64_t serial;
    if (voxel_poll(tool->voxel, &tool->report) == JOB_FAILED && tool->is_asked) {
        app_take_failure(app, &tool->report, false);
        tool->is_asked = false;
    }
    if (app->tool != &voxel_tool) tool->has_touch = false; /* only the panel looks for the pixel under the mouse */
    const struct voxel_result *result = voxel_result(tool->voxel, &serial);
    if (result == NULL) return LR_OK;
    const bool is_new = serial != tool->serial;
    if (is_new) {
        const lr_lors *lors = result->study->lors;
        const struct voxel_row *row = voxel_best_row(result);
        const struct voxel_window *window = &result->windows[0];
        const bool is_one = !result->request.all_primaries;
        char text[1400];
        tool->serial = serial;
        if (result->why_not[0] != '\0' && strcmp(tool->reported, result->why_not) != 0) {
            describe_backends(result, text, sizeof(text));
            app_say(app, LR_LOG_WARNING, "correspondence images are %s", text);
        }
        snprintf(tool->reported, sizeof(tool->reported), "%s", result->why_not);

        /* If the shown window has no LOR, and neither a person nor a session has chosen its module, the primary module
         * of the strongest LOR is shown instead. */
        bool is_empty = is_one && row->count > 0 && lors == app->open.lors;
        for (int64_t k = 0; k < (int64_t)window->size[0] * window->size[1] && is_empty; k++)
            is_empty = window->lors[k] < 0;
        if (is_empty && tool->seeks_primary) {
            tool->request.primary = lr_lors_primary(lors, row->lor[row->order[0]], result->request.point_mm);
            ask(app);
        }
        tool->seeks_primary = false;

        tool->gap = is_one ? voxel_gap_find(result, window) : (struct voxel_gap){.better = -1};
        if (lors->scanner == app->open.scanner && app->tool == &voxel_tool) {
            LR_TRY(draw_set_lines(app->draw, DRAW_LOR, NULL, 0));
            LR_TRY(mark_row(app, result));
            LR_TRY(draw_set_cross(app->draw, DRAW_CURSOR, result->request.point_mm, 0.04 * app->camera.reach_mm));
        }
    }
    if (!is_new && tool->kind == tool->shown_kind && tool->is_side_by_side == tool->shown_side_by_side) return LR_OK;

    tool->num_sheets = tool->is_side_by_side ? 3 : 1;
    for (int k = 0; k < tool->num_sheets; k++) {
        tool->sheet_kinds[k] = tool->is_side_by_side ? three[k] : tool->kind;
        LR_TRY(sheet_draw(&tool->sheets[k], app->ctx, result, tool->sheet_kinds[k]));
    }
    tool->shown_kind = tool->kind;
    tool->shown_side_by_side = tool->is_side_by_side;
    return LR_OK;
}

static const double picture_width = 376.0, most_height = 300.0;

/* --- the panel --- */

static void show_sheet(struct app *app, int k)
{
    struct voxel_state *tool = app_state(app, &voxel_tool);
    const struct sheet *sheet = &tool->sheets[k];
    const struct voxel_result *result = voxel_result(tool->voxel, NULL);
    const int rays = result->request.rays;
    const double scale = fmin(picture_width / sheet->size[0], most_height / sheet->size[1]);
    const struct ui_image image = {.texture = sheet->texture, .size = {scale * sheet->size[0], scale * sheet->size[1]}};
    char label[32];
    snprintf(label, sizeof(label), "##sheet %d", k);
    const struct ui_touch touch = ui_image(label, &image);

    /* Lines separate the crystals of a single window, if the lines do not cover too much of the window. */
    for (int axis = 0; axis < 2 && sheet->num_windows == 1 && rays * scale >= 5.0; axis++) {
        for (int n = 0; n <= sheet->tile[axis]; n += rays) {
            double from[2] = {0.0, 0.0}, to[2] = {sheet->tile[0], sheet->tile[1]}, a[2], b[2];
            from[axis] = to[axis] = n;
            sheet_corners(sheet, 0, from, a);
            sheet_corners(sheet, 0, to, b);
            ui_mark(a, b, false, 0xffffff50);
        }
    }

    /* Finds the pixel under the mouse. The pixel's corners are in the coordinates of ui_touch.at. */
    int w, place[2];
    struct voxel_pixel pixel;
    struct ui_part part;
    if (!touch.is_over || !sheet_pixel(sheet, touch.at, &w, place) || place[0] >= result->windows[w].size[0] ||
        place[1] >= result->windows[w].size[1])
        return;
    sheet_corners(sheet, w, (double[2]){place[0], place[1]}, part.from);
    sheet_corners(sheet, w, (double[2]){place[0] + 1.0, place[1] + 1.0}, part.to);
    if (voxel_at(tool->voxel, result->windows[w].module, place, &pixel) != LR_OK) return;
    tool->has_touch = true;
    tool->touched = pixel;
    char means[128] = "of the voxel: not there yet";
    if (pixel.lor < 0) {
        /* The reason for an empty single window is written above its picture. */
        const bool is_one = !result->request.all_primaries;
        const struct voxel_gap gap = is_one ? (struct voxel_gap){0} : voxel_gap_find(result, &result->windows[w]);
        if (gap.why[0] != '\0') {
            ui_tooltip(&part, "%s", gap.why);
        } else {
            ui_tooltip(&part,
                       "module %d, crystal p = %d, q = %d\nthe line ends in no crystal in coincidence\n"
                       "drawn by backend %s",
                       pixel.module, pixel.p, pixel.q, result->drawn_by);
        }
        return;
    }
    if (!isnan(pixel.voxel_sampled)) {
        snprintf(means, sizeof(means), "of the voxel: sampled %.7g, exact %.7g", pixel.voxel_sampled,
                 pixel.voxel_exact);
    }
    ui_tooltip(&part,
               "module %d, p = %d, q = %d\nmodule %d, r = %d, s = %d\nLOR %lld\n"
               "weight of this line %.6g\nsolid angle of its part of the face %.6g sr\n"
               "distance between the hits %.3f mm\nelement at the point: sampled %.7g, exact %.7g\n"
               "%s\nline by backend %s, elements sampled by %s%s%s",
               pixel.module, pixel.p, pixel.q, pixel.other, pixel.r, pixel.s, (long long)pixel.lor, pixel.weight,
               pixel.solid_angle_sr, pixel.distance_mm, pixel.point_sampled, pixel.point_exact, means, result->drawn_by,
               result->sampled_by, result->exact_by != NULL ? ", exact by " : "",
               result->exact_by != NULL ? result->exact_by : "");

    if (touch.is_pressed) lor_tool_choose(app, pixel.lor);
}

static void show_result(struct app *app, const struct voxel_result *result)
{
    struct voxel_state *tool = app_state(app, &voxel_tool);
    const struct voxel_gap *gap = &tool->gap;
    char label[48];
    if (gap->why[0] != '\0') {
        ui_toned(UI_WARNING, "%s", gap->why);
        snprintf(label, sizeof(label), "show module %d##better", gap->better);
        if (gap->better >= 0 && gap->better != tool->request.primary) {
            if (ui_button(label, true)) {
                tool->request.primary = gap->better;
                tool->request.all_primaries = false;
                ask(app);
            }
            ui_hint("a module that has a window of this point");
        }
    }

    static const char *const sheet_titles[SHEET_NUM_KINDS] = {
        [SHEET_CRYSTALS] = "crystals",
        [SHEET_WEIGHTS] = "weight of each line (share of emissions)",
        [SHEET_SAMPLED] = "sampled element (detections per emission)",
        [SHEET_EXACT] = "exact element (detections per emission)",
        [SHEET_DIFFERENCE] = "sampled - exact (detections per emission)",
    };
    const uint32_t corners[4] = {0x000000ff, 0xff0000ff, 0x00ff00ff, 0xffff00ff};
    tool->has_touch = false;
    for (int k = 0; k < tool->num_sheets; k++) {
        const enum sheet_kind kind = tool->sheet_kinds[k];
        if (tool->num_sheets > 1 || tool->kind != SHEET_CRYSTALS) { /* "sampled by raster" */
            const char *exact = result->exact_by != NULL ? result->exact_by : "none";
            const char *first = kind == SHEET_EXACT                                 ? exact
                                : kind == SHEET_SAMPLED || kind == SHEET_DIFFERENCE ? result->sampled_by
                                                                                    : result->drawn_by;
            const bool has_two = kind == SHEET_DIFFERENCE && strcmp(first, exact) != 0;
            ui_toned(UI_DIM, "%s by %s%s%s", sheet_names[kind], first, has_two ? " and " : "", has_two ? exact : "");
        }
        show_sheet(app, k);

        if (tool->gap.why[0] != '\0') continue;
        if (kind != SHEET_CRYSTALS) {
            const bool is_difference = kind == SHEET_DIFFERENCE;
            const double high = tool->sheets[k].high;
            const struct ui_bar bar = scene_bar(is_difference ? LR_COLOURS_DIVERGING : LR_COLOURS_PERCEPTUAL,
                                                (double[2]){is_difference ? -high : 0.0, high}, sheet_titles[kind]);
            ui_bar(&bar, NULL);
        } else if (ui_table("legend", 2)) {
            const lr_module *module = &result->study->scanner->modules[result->windows[0].module];
            ui_cell();
            ui_square(corners, 54.0);
            ui_cell();
            ui_text("colour: crystal (r, s) that the line ends in,\n"
                    "red grows with r along u, 0 to %d,\ngreen grows with s along v, 0 to %d",
                    module->crystals[0] - 1, module->crystals[1] - 1);
            ui_toned(UI_DIM, "grey: in no crystal in coincidence");
            ui_table_end();
        }
    }
    char text[1400];
    describe_backends(result, text, sizeof(text));
    ui_toned(result->why_not[0] != '\0' ? UI_WARNING : UI_DIM, "%s", text);

    if (ui_table("rows", 3)) {
        ui_field("", "sampled");
        ui_cell();
        ui_text("exact");
        const bool has_means = result->has_means && !(result->is_part && result->num_pairs == 0);
        for (int k = 0; k < (has_means ? 2 : 1); k++) {
            const struct voxel_row *sampled = k == 0 ? &result->point_sampled : &result->voxel_sampled;
            const struct voxel_row *exact = k == 0 ? &result->point_exact : &result->voxel_exact;
            ui_field(k == 0            ? "point"
                     : result->is_part ? "part"
                                       : "voxel",
                     "%lld LORs,\nsum %.6g", (long long)sampled->count, sampled->sum);
            ui_cell();
            if (exact->count > 0) ui_text("%lld LORs,\nsum %.6g", (long long)exact->count, exact->sum);
        }
        ui_table_end();
    }

    /* If only some of the voxel's LORs were computed, a button requests all LORs. */
    if (result->has_means && result->is_part) {
        const double all = (double)voxel_best_row(result)->count * result->request.samples;
        if (result->num_pairs > 0) {
            ui_toned(UI_DIM,
                     "part: of the voxel, the LORs of the %lld pair%s of modules in the window; all "
                     "would be up to %.2g",
                     (long long)result->num_pairs, result->num_pairs == 1 ? "" : "s", all);
        } else {
            ui_toned(UI_DIM, "no LOR is shown, and of the voxel none computed: all would be up to %.2g", all);
        }
        if (ui_button("all LORs of the voxel", tool->report.state != JOB_RUNNING)) {
            struct voxel_request *request = &tool->request;
            const bool always = request->wants_whole;
            request->wants_whole = true;
            ask(app);
            request->wants_whole = always;
        }
        ui_hint("takes minutes where they are many; Esc stops it");
    }

    ui_toned(UI_DIM, "%d lines a crystal and axis, %d x %d x %d points a voxel, %d steps in the mu-map%s",
             result->request.rays, result->samples[0], result->samples[1], result->samples[2], result->request.mu_steps,
             result->voxel_row < 0 ? "; the point lies beside the grid" : "");
}

static void show_panel(struct app *app)
{
    struct voxel_state *tool = app_state(app, &voxel_tool);
    static const char *const backends[] = {"raster: the projector's shaders", "compute", "cpu: the reference"};
    const struct job_report *report = &tool->report;
    struct voxel_request *request = &tool->request;
    bool changed = ui_reals("point (mm)", app->point_mm, 3);
    ui_hint("x, y, z in the scanner's frame; or click on a slice");
    changed = ui_check("all modules", &request->all_primaries) || changed;
    ui_hint("the windows of all modules side by side");
    if (!request->all_primaries && app->open.scanner != NULL) {
        const int range[2] = {0, app->open.scanner->num_modules - 1};
        ui_beside();
        changed = ui_slide("##primary", &request->primary, range) || changed;
        ui_hint("the primary module: its window is shown");
    }

    static const int rays[2] = {1, 16}, samples[2] = {0, 64}, steps[2] = {0, 256};
    bool with_exact = request->mode != LR_MODE_SAMPLED;
    changed = ui_slide("lines a crystal", &request->rays, rays) || changed;
    ui_hint("R: R x R lines over each crystal's face");
    changed = ui_slide("points a voxel", &request->samples, samples) || changed;
    ui_hint("N: points of the voxel that its elements are averaged over; 0: by the crystals' pitch");
    if (ui_check("exact elements", &with_exact)) {
        request->mode = with_exact ? LR_MODE_AUTO : LR_MODE_SAMPLED;
        changed = true;
    }
    ui_hint("solid angles beside the sampled elements; they take longer");
    if (app->open.mu != NULL) {
        bool absorbs = !request->without_mu;
        changed = ui_slide("steps in the mu-map", &request->mu_steps, steps) || changed;
        ui_hint("K: steps through the mu-map along a line; 0: of one voxel");
        if (ui_check("absorption", &absorbs)) {
            request->without_mu = !absorbs;
            changed = true;
        }
        ui_hint("elements are lower by what the mu-map absorbs");
    }

    changed =
        ui_choose("computed by##backend", &tool->backend, backends, (int)(sizeof(backends) / sizeof(backends[0]))) ||
        changed;
    ui_hint("what draws windows and samples elements; compute has them drawn by raster");
    int kind = tool->is_side_by_side ? SHEET_NUM_KINDS : (int)tool->kind;
    static const char *const names[] = {"crystals (false colours)", "weight of each line", "sampled elements",
                                        "exact elements",           "sampled - exact",     "the three side by side"};
    if (ui_choose("shown##kind", &kind, names, SHEET_NUM_KINDS + 1)) {
        tool->is_side_by_side = kind == SHEET_NUM_KINDS;
        tool->kind = kind < SHEET_NUM_KINDS ? (enum sheet_kind)kind : tool->kind;
    }
    ui_hint("what the picture shows of each line");

    if (changed) ask(app);
    const struct voxel_result *result = voxel_result(tool->voxel, NULL);
    if (report->state == JOB_RUNNING) ui_progress(report->share, report->doing);
    if (result != NULL) show_result(app, result);
}

/* --- clicks --- */

static bool click(struct app *app, const struct probe *probe)
{
    if (probe->axis >= 0) voxel_tool_set_point(app, probe->point_mm);
    return probe->axis >= 0;
}

static bool describe(const struct app *app, char *text, size_t length)
{
    struct voxel_state *tool = app_state(app, &voxel_tool);
    const struct voxel_pixel *pixel = &tool->touched;
    if (!tool->has_touch) return false;
    snprintf(text, length,
             "module %d p %d q %d; module %d r %d s %d; LOR %lld; weight %.9g; solid angle %.9g sr; distance %.6g mm; "
             "element at the point: sampled %.9g, exact %.9g; of the voxel: sampled %.9g, exact %.9g",
             pixel->module, pixel->p, pixel->q, pixel->other, pixel->r, pixel->s, (long long)pixel->lor, pixel->weight,
             pixel->solid_angle_sr, pixel->distance_mm, pixel->point_sampled, pixel->point_exact, pixel->voxel_sampled,
             pixel->voxel_exact);
    return true;
}

/* --- sessions --- */

static void write_session(const struct app *app, struct lr_view_session *session)
{
    struct voxel_state *tool = app_state(app, &voxel_tool);
    const struct voxel_request *request = &tool->request;
    session->has_voxel = true;
    memcpy(session->point_mm, app->point_mm, sizeof(session->point_mm));
    session->all_primaries = request->all_primaries;
    session->primary = request->primary;
    session->matrix_mode = request->mode;
    session->rays = request->rays;
    session->samples = request->samples;
    session->mu_steps = request->mu_steps;
    session->without_mu = request->without_mu;
    session->backend = tool->backend;
}

static void read_session(struct app *app, const struct lr_view_session *session)
{
    struct voxel_state *tool = app_state(app, &voxel_tool);
    struct voxel_request *request = &tool->request;
    if (!session->has_voxel) return;
    memcpy(app->point_mm, session->point_mm, sizeof(app->point_mm));
    request->all_primaries = session->all_primaries;
    request->primary = session->primary;
    tool->seeks_primary = false;
    request->mode = session->matrix_mode;
    request->rays = session->rays > 0 ? session->rays : request->rays;
    request->samples = session->samples;
    request->mu_steps = session->mu_steps;
    request->without_mu = session->without_mu;
    tool->backend = session->backend;
    ask(app);
}

/* --- scripts --- */

static lr_status act(struct app *app, const struct command_words *words)
{
    struct voxel_state *tool = app_state(app, &voxel_tool);
    static const char *const names[] = {"crystals", "weight", "sampled", "exact", "difference", "all", NULL};
    double point_mm[3];
    int kind = 0;
    if (strcmp(words->words[0], "point") == 0) {
        LR_TRY(command_reals(&app->log, words, point_mm));
        voxel_tool_set_point(app, point_mm);
        return LR_OK;
    }
    LR_TRY(command_choice(&app->log, words, 1, names, &kind));
    tool->is_side_by_side = kind == SHEET_NUM_KINDS;
    tool->kind = kind < SHEET_NUM_KINDS ? (enum sheet_kind)kind : tool->kind;
    return LR_OK;
}

static const char *const settings[] = {"backend",    "rays",   "samples", "steps", "exact",
                                       "absorption", "module", "whole",   NULL};

static lr_status set(struct app *app, const struct command_words *words, int setting)
{
    struct voxel_state *tool = app_state(app, &voxel_tool);
    struct voxel_request *request = &tool->request;
    int value = 0, *const numbers[] = {&tool->backend, &request->rays, &request->samples, &request->mu_steps};
    LR_TRY(setting == 0 ? command_choice(&app->log, words, 2, voxel_backends, &value)
                        : command_integer(&app->log, words, 2, &value));
    switch (setting) { /* counted in the order of the names above */
    case 4: request->mode = value ? LR_MODE_AUTO : LR_MODE_SAMPLED; break;
    case 5: request->without_mu = !value; break;
    case 6: /* -1: all modules */
        request->primary = value < 0 ? 0 : value;
        request->all_primaries = value < 0;
        tool->seeks_primary = false;
        break;
    case 7:
        request->wants_whole = value != 0;
        ask(app);
        return LR_OK;
    default: *numbers[setting] = value; break;
    }
    ask(app);
    return tool->is_asked ? LR_OK : LR_USAGE;
}

static bool get_value(struct app *app, const char *name, struct command_value *value)
{
    const struct voxel_state *tool = app_state(app, &voxel_tool);
    const struct voxel_result *result = voxel_result(tool->voxel, NULL);
    const struct voxel_pixel *pixel = &tool->touched;
    char touched[COMMAND_TEXT] = "none", point[COMMAND_TEXT];
    if (tool->has_touch) {
        snprintf(touched, sizeof(touched), "%d,%d,%d,%d,%d,%d", pixel->module, pixel->p, pixel->q, pixel->other,
                 pixel->r, pixel->s);
    }
    const struct command_number numbers[] = {
        {"touched.lor", tool->has_touch ? (double)pixel->lor : -1.0},
        {"touched.exact", tool->has_touch ? pixel->voxel_exact : NAN},
        {"touched.sampled", tool->has_touch ? pixel->voxel_sampled : NAN},
        {"touched.point_exact", tool->has_touch ? pixel->point_exact : NAN},
        {"touched.point_sampled", tool->has_touch ? pixel->point_sampled : NAN},
        {"touched.weight", tool->has_touch ? pixel->weight : NAN},
        {"voxel.row", result != NULL ? (double)result->voxel_row : -1.0},
        {"voxel.rays", tool->request.rays},
        {"voxel.sum", result == NULL    ? 0.0
                      : result->is_part ? NAN
                                        : result->voxel_exact.sum},
        {"voxel.module", tool->request.all_primaries ? -1 : tool->request.primary},
        {"voxel.better", tool->gap.better},
        {"voxel.pairs", result != NULL && result->is_part ? (double)result->num_pairs : 0.0},
        {NULL, 0.0},
    };
    const struct command_text texts[] = {
        {"touched", touched},
        {"voxel.point_mm", command_write_place(app->point_mm, point)},
        {"voxel.gap", tool->gap.why[0] != '\0' ? tool->gap.why : "none"},
        {"voxel.drawn_by", result != NULL ? result->drawn_by : "none"},
        {"voxel.sampled_by", result != NULL ? result->sampled_by : "none"},
        {"voxel.exact_by", result != NULL && result->exact_by != NULL ? result->exact_by : "none"},
        {NULL, NULL},
    };
    return command_pick(numbers, texts, name, value);
}

static const struct command commands[] = {
    {"point", "X Y Z", 3, 3, .act = act},
    {"picture", "crystals|weight|sampled|exact|difference|all", 1, 1, .act = act},
    {0},
};

const struct viewer_tool voxel_tool = {.name = "Voxel",
                                       .word = "voxel",
                                       .mode = LR_SESSION_VOXEL,
                                       .state_bytes = sizeof(struct voxel_state),
                                       .open = open_voxel,
                                       .close = close_voxel,
                                       .take_study = take_study,
                                       .update = update,
                                       .panel = show_panel,
                                       .click = click,
                                       .describe = describe,
                                       .write_session = write_session,
                                       .read_session = read_session,
                                       .commands = commands,
                                       .settings = settings,
                                       .set = set,
                                       .get_value = get_value};
