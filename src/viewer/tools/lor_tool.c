/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/log.h"
#include "viewer/app.h"
#include "viewer/study/tube.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct lor_state {
    struct task_runner tubes;
    struct tube_request request;
    int next_end; /* the crystal that the next click in the scene sets */
    bool is_asked;
    char error[JOB_SENTENCE]; /* reason why there is no tube; "" = there is one */
};

static const uint32_t lor_colour = 0xffd24dff;

/* Names in scripts, in the order of enum tube_kernel. */
static const char *const kernel_names[] = {"lor", "tube", "line", "exact", NULL};

static lr_status open_lor(struct app *app)
{
    struct lor_state *tool = app_state(app, &lor_tool);
    task_runner_init(&tool->tubes, &tube_kind);
    app->runners[app->num_runners++] = &tool->tubes;
    return LR_OK;
}

static void close_lor(struct app *app)
{
    struct lor_state *tool = app_state(app, &lor_tool);
    task_runner_finish(&tool->tubes);
}

static void ask(struct app *app)
{
    struct lor_state *tool = app_state(app, &lor_tool);
    struct lr_kept_error last;
    lr_log_keep_error(&last, tool->error, sizeof(tool->error));
    tool->error[0] = '\0';
    tool->is_asked = tube_ask(&tool->tubes, &app->open, &tool->request, &last.log) == LR_OK;
    if (!tool->is_asked) return;

    /* The scene shows the line between the crystals before the tube is ready. The lines of the voxel tool disappear. */
    struct draw_line line = {.colour = lor_colour};
    double ends[2][3];
    tube_ends(app->open.scanner, tool->request.crystals, ends);
    for (int k = 0; k < 3; k++) {
        line.from[k] = (float)ends[0][k];
        line.to[k] = (float)ends[1][k];
    }
    if (draw_set_crystal_values(app->draw, NULL, 0.0) == LR_OK &&
        draw_set_lines(app->draw, DRAW_LORS, NULL, 0) == LR_OK &&
        draw_set_lines(app->draw, DRAW_CURSOR, NULL, 0) == LR_OK)
        (void)draw_set_lines(app->draw, DRAW_LOR, &line, 1);
}

void lor_tool_choose(struct app *app, int64_t number)
{
    struct lor_state *tool = app_state(app, &lor_tool);
    if (app->open.lors == NULL || number < 0 || number >= app->open.lors->count)
        return; /* the LOR belongs to a scanner that is no longer open */
    const lr_lor lor = lr_lors_describe(app->open.lors, number);
    tool->request.crystals[0] = (struct tube_crystal){lor.module_i, lor.p, lor.q};
    tool->request.crystals[1] = (struct tube_crystal){lor.module_j, lor.r, lor.s};
    app_choose(app, &lor_tool);
    ask(app);
}

static lr_status update(struct app *app)
{
    struct lor_state *tool = app_state(app, &lor_tool);
    if (task_runner_take_failure(&tool->tubes) && tool->is_asked) {
        snprintf(tool->error, sizeof(tool->error), "%s", tool->tubes.report.error);
        tool->is_asked = false;
    }
    if (!task_runner_take(&tool->tubes)) return LR_OK;
    const struct tube_result *result = tool->tubes.result;
    app_put_image(app, DRAW_TUBE, result->image, result->largest);
    /* The unit of an event's elements depends on its kernel. Exact elements are probabilities; with time of flight
     * they are probabilities per mm. Other elements are chord lengths in mm; with time of flight they are fractions
     * of the line. */
    const enum tube_kernel kernel = result->request.kernel;
    const bool has_tof = result->request.has_tof;
    app->units[DRAW_TUBE] = kernel == TUBE_LOR     ? NULL
                            : kernel == TUBE_EXACT ? (has_tof ? "detections per emission and mm" : NULL)
                            : has_tof              ? "share of the line"
                                                   : "mm";
    app->slices.overlay_high = app->ranges[DRAW_TUBE][1];
    if (app->open.image == NULL) app_show_image(app, DRAW_TUBE);
    return LR_OK;
}

/* --- the panel --- */

static void show_panel(struct app *app)
{
    static const char *const kernels[] = {"the LOR", "an event: tube", "an event: thin line", "an event: exact"};
    struct lor_state *tool = app_state(app, &lor_tool);
    struct tube_request *request = &tool->request;
    const struct job_report *report = &tool->tubes.report;
    const struct tube_result *result = tool->tubes.result;
    if (app->open.scanner == NULL) {
        ui_toned(UI_DIM, "open a scanner first");
        return;
    }
    ui_toned(UI_DIM, "click on two crystals, type them, or press on the voxel's picture");
    bool changed = false;
    for (int end = 0; end < 2; end++) {
        struct tube_crystal *crystal = &request->crystals[end];
        int numbers[3];
        memcpy(numbers, crystal, sizeof(numbers));
        ui_radio(end == 0 ? "##first" : "##second", &tool->next_end, end);
        ui_hint("the next click on a crystal sets this end");
        ui_beside();
        changed = ui_integers(end == 0 ? "module, p, q" : "module, r, s", numbers, 3) || changed;
        ui_hint("the crystal of the LOR's %s end: its module, and its place along u and v",
                end == 0 ? "first" : "second");
        memcpy(crystal, numbers, sizeof(numbers));
    }
    int kernel = (int)request->kernel;
    changed = ui_choose("elements of", &kernel, kernels, TUBE_NUM_KERNELS) || changed;
    ui_hint("the LOR's are probabilities; an event's those of list mode, by its kernels, with its time of flight");
    request->kernel = (enum tube_kernel)kernel;
    const bool can_have_tof = app->open.scanner->tof_resolution_ps > 0;
    if (kernel != TUBE_LOR && !can_have_tof) {
        request->has_tof = false;
        ui_toned(UI_DIM, "this scanner has no time of flight");
    } else if (kernel != TUBE_LOR) {
        changed = ui_check("time of flight", &request->has_tof) || changed;
        ui_hint("the event has a time of flight, which says where along the line it was");
        if (request->has_tof && result != NULL) {
            const double range[2] = {-0.5 * result->length_mm, 0.5 * result->length_mm};
            changed = ui_slide_real("offset (mm)", &request->tof_mm, range) || changed;
            ui_hint("where the time of flight puts the event, from the middle towards the second crystal");
        }
    }
    if (changed) ask(app);
    if (tool->error[0] != '\0') ui_toned(UI_BAD, "%s", tool->error);
    if (report->state == JOB_RUNNING) ui_progress(report->share, report->doing);
    if (result == NULL || tool->error[0] != '\0') return;
    if (ui_table("tube", 2)) {
        ui_field("LOR", "%lld", (long long)result->lor);
        ui_field("length", "%.3f mm", result->length_mm);
        ui_field("voxels", "%lld", (long long)result->num_voxels);
        ui_field("sum of elements", "%.7g", result->sum);
        ui_field("largest", "%.7g", result->largest);
        if (result->sigma_mm > 0.0)
            ui_field("time of flight", "sigma %.2f mm", result->sigma_mm);
        else
            ui_field("time of flight", "none");
        ui_table_end();
    }
    const bool is_lor = kernel == TUBE_LOR;
    const struct tube_profile *profile = &result->profile;
    struct ui_curve curve = {
        .values = profile->weight,
        .count = profile->count,
        .x = {profile->first_mm, profile->first_mm + (profile->count - 1) * profile->step_mm},
        .height = 154.0,
        .title =
            is_lor ? "sum of elements in planes (detections per emission)" : "sum of the event's elements in planes",
        .x_label = "along the line, from its middle (mm)",
    };
    app_take_reading(app, ui_curve("##profile", &curve));
    if (profile->kernel != NULL) {
        curve.values = profile->kernel;
        curve.height = 124.0;
        curve.title = is_lor ? "time-of-flight kernel about the middle (1/mm)" : "time-of-flight kernel (1/mm)";
        app_take_reading(app, ui_curve("##kernel", &curve));
    }
    if (ui_button("show the tube alone", true)) app_show_image(app, DRAW_TUBE);
    ui_hint("on the slices, in place of the image");
    ui_beside();
    bool is_laid_over = app->slices.overlay_high > 0.0;
    if (ui_check("over the image", &is_laid_over))
        app->slices.overlay_high = is_laid_over ? app->ranges[DRAW_TUBE][1] : 0.0;
    ui_hint("the tube in magenta, the more opaque the larger its elements are");
}

static bool click(struct app *app, const struct probe *probe)
{
    struct lor_state *tool = app_state(app, &lor_tool);
    const struct pick_hit *hit = &probe->hit;
    if (app->tool != &lor_tool || hit->module < 0 || hit->crystal[0] < 0 || hit->crystal[1] < 0) return false;
    tool->request.crystals[tool->next_end] = (struct tube_crystal){hit->module, hit->crystal[0], hit->crystal[1]};
    tool->next_end = 1 - tool->next_end;
    ask(app);
    return true;
}

/* --- sessions --- */

_Static_assert(sizeof(struct tube_crystal[2]) == sizeof(int[6]), "sessions and scripts have module, p, q of two ends");

static void write_session(const struct app *app, struct lr_view_session *session)
{
    struct lor_state *tool = app_state(app, &lor_tool);
    const struct tube_request *request = &tool->request;
    session->has_lor = tool->is_asked;
    memcpy(session->lor, request->crystals, sizeof(session->lor));
    session->lor_kernel = (int)request->kernel;
    session->has_tof = request->has_tof;
    session->tof_mm = request->tof_mm;
}

static void read_session(struct app *app, const struct lr_view_session *session)
{
    struct lor_state *tool = app_state(app, &lor_tool);
    struct tube_request *request = &tool->request;
    if (!session->has_lor) return;
    memcpy(request->crystals, session->lor, sizeof(session->lor));
    request->kernel = (enum tube_kernel)session->lor_kernel;
    request->has_tof = session->has_tof;
    request->tof_mm = session->tof_mm;
    ask(app);
}

/* --- scripts --- */

static lr_status act_lor(struct app *app, const struct command_words *words)
{
    struct lor_state *tool = app_state(app, &lor_tool);
    int numbers[6];
    for (int k = 0; k < 6; k++) LR_TRY(command_integer(&app->log, words, 1 + k, &numbers[k]));
    memcpy(tool->request.crystals, numbers, sizeof(numbers));
    ask(app);
    return LR_OK;
}

static const char *const settings[] = {"kernel", "tof", NULL};

static lr_status set(struct app *app, const struct command_words *words, int setting)
{
    struct lor_state *tool = app_state(app, &lor_tool);
    struct tube_request *request = &tool->request;
    int kernel = 0;
    if (setting == 0) { /* kernel */
        LR_TRY(command_choice(&app->log, words, 2, kernel_names, &kernel));
        request->kernel = (enum tube_kernel)kernel;
        request->has_tof = request->has_tof && kernel != TUBE_LOR;
        ask(app);
        return LR_OK;
    }

    /* Sets the position along the line that the time of flight gives. The word "off" removes the time of flight. */
    const lr_scanner *scanner = app->open.scanner;
    const bool has_tof = strcmp(words->words[2], "off") != 0;
    double tof_mm = 0.0;
    if (has_tof) LR_TRY(command_real(&app->log, words, 2, &tof_mm));
    const bool can_have = scanner != NULL && scanner->tof_resolution_ps > 0;
    if (has_tof && request->kernel == TUBE_LOR)
        return lr_error(&app->log, LR_BAD_INPUT, "a LOR has no time of flight: choose a kernel of list mode");
    if (has_tof && !can_have) return lr_error(&app->log, LR_BAD_INPUT, "this scanner has no time resolution");
    request->has_tof = has_tof;
    request->tof_mm = tof_mm;
    ask(app);
    return LR_OK;
}

static bool get_value(struct app *app, const char *name, struct command_value *value)
{
    const struct lor_state *tool = app_state(app, &lor_tool);
    const struct tube_request *request = &tool->request;
    const struct tube_result *result = tool->tubes.result;
    char error[COMMAND_TEXT];
    snprintf(error, sizeof(error), "%.255s", tool->error[0] != '\0' ? tool->error : "none");
    const struct command_number numbers[] = {
        {"tube.sum", result != NULL ? result->sum : 0.0},
        {"tube.voxels", result != NULL ? (double)result->num_voxels : 0.0},
        {"tube.peak_mm", result != NULL ? result->peak_mm : NAN},
        {"tube.tof_mm", request->has_tof ? request->tof_mm : NAN},
        {NULL, 0.0},
    };
    const struct command_text texts[] = {
        {"tube.error", error},
        {"tube.kernel", kernel_names[request->kernel]},
        {NULL, NULL},
    };
    return command_pick(numbers, texts, name, value);
}

static const struct command commands[] = {{"lor", "MODULE P Q MODULE R S", 6, 6, .act = act_lor}, {0}};

const struct viewer_tool lor_tool = {.name = "LOR",
                                     .word = "lor",
                                     .mode = LR_SESSION_LOR,
                                     .state_bytes = sizeof(struct lor_state),
                                     .open = open_lor,
                                     .close = close_lor,
                                     .update = update,
                                     .panel = show_panel,
                                     .click = click,
                                     .write_session = write_session,
                                     .read_session = read_session,
                                     .commands = commands,
                                     .settings = settings,
                                     .set = set,
                                     .get_value = get_value};
