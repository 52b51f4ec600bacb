/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The viewer's frames: input, finished work, panels, drawing; also the list of tools. */
#include "viewer/view.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "io/files/file_kind.h"
#include "plugin/plugin.h"
#include "viewer/app.h"
#include "viewer/script/script.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const struct viewer_tool *const viewer_tools[] = {
    &study_tool,   &voxel_tool,  &lor_tool,     &maps_tool,    &live_tool,  &doctor_tool, &direct_tool, &opener_tool,
    &session_tool, &export_tool, &history_tool, &measure_tool, &panes_tool, &window_tool, NULL};
_Static_assert(sizeof(viewer_tools) / sizeof(viewer_tools[0]) <= APP_TOOLS, "each tool has a state");

/* Pauses between frames if nothing happens, during a computation, and during a computation with a software renderer.
 * The last pause is longer than the second one, because drawing by a software renderer takes processor time away from
 * the computation. */
static const double idle_seconds = 0.25, busy_seconds = 0.02, busy_software_seconds = 0.1;

/* Nominal duration of an invisible frame. Dear ImGui gets it instead of the real duration, so that two clicks of a
 * script are a double click on every machine. */
static const double unseen_frame_s = 1.0 / 60.0;

/* --- opening and closing --- */

static lr_status open_parts(struct app *app)
{
    const struct view_params *params = app->params;
    const struct window_params window = {
        .size = {params->size[0] > 0 ? params->size[0] : 1280, params->size[1] > 0 ? params->size[1] : 800},
        .title = "LORaster",
        .device = params->device,
        .log = &app->log,
    };
    app->window = params->has_no_window ? window_open_unseen(&window) : window_open(&window);
    if (app->window == NULL) return LR_NO_DEVICE;
    app->ctx = app->window->ctx;

    char layout[1024];
    const bool keeps =
        app->window->is_seen && params->script == NULL && lr_notes_place("view.ini", layout, sizeof(layout));
    app->ui = ui_create(&(struct ui_params){.window = app->window, .layout_path = keeps ? layout : NULL}, &app->log);
    app->draw = draw_create(app->ctx);
    if (app->ui == NULL || app->draw == NULL) return LR_FAILED;
    char *look = app_read_note(app, "look.txt");
    app->is_light = look != NULL && strncmp(look, "light", 5) == 0;
    free(look);
    ui_set_look(app->is_light);
    if (params->script != NULL) {
        app->script = script_read(params->script, app->tools, &app->log);
        if (app->script == NULL) return LR_BAD_INPUT;
    }

    app->study = study_create(&app->log);
    if (app->study == NULL) return LR_FAILED;
    for (int k = 0; app->tools[k] != NULL; k++) {
        const struct viewer_tool *tool = app->tools[k];
        if (tool->state_bytes > 0) {
            app->states[k] = lr_alloc(1, (int64_t)tool->state_bytes, "a tool of the viewer", &app->log);
            if (app->states[k] == NULL) return LR_FAILED;
        }
        if (app->tool == NULL && tool->name != NULL) app_choose(app, tool);
        if (tool->open != NULL) LR_TRY(tool->open(app));
    }
    const struct study_wish wish = {
        .scanner = params->scanner, .image = params->image, .mu = params->mu, .data = params->data};
    if (wish.scanner != NULL || wish.image != NULL || wish.mu != NULL || wish.data != NULL)
        LR_TRY(study_open(app->study, &wish));
    return params->session != NULL ? app_open_file(app, LR_FILE_SESSION, params->session) : LR_OK;
}

/* --- keys --- */

/* The keys that "?" lists. */
static const struct {
    const char *name, *what;
} key_list[] = {
    {"? or F1", "this list"},
    {"F", "fit the scanner into the window"},
    {"X", "look along x"},
    {"Y", "look along y"},
    {"Z", "look along z, the scanner's axis"},
    {"C", "hide or show the crystals"},
    {"V", "hide or show the image as a volume"},
    {"L", "hide or show the lines of LORs and the tube"},
    {"O", "open a file"},
    {"Tab", "the next tool"},
    {"Page up, down", "the next slice of the pane under the mouse, the one before"},
    {"arrows", "move the cross-hair by a voxel in the pane under the mouse"},
    {"T", "the pane under the mouse alone, or all four"},
    {"P", "save what is seen as a PNG file"},
    {"S", "save the session"},
    {"K", "copy the numbers under the mouse"},
    {"M", "hide or show what has been said"},
    {"Ctrl Z, Ctrl Y", "undo a change of the view, do it again"},
    {"Esc", "close a dialog, or stop what is being computed"},
};

static void press_key(struct app *app, int key)
{
    switch (key) {
    case '/':
    case INPUT_KEY_F1: app->shows_help = !app->shows_help; break;
    case 'F': app_fit(app); break;
    case 'X':
    case 'Y':
    case 'Z': camera_along(&app->camera, key - 'X'); break;
    case 'C': app->hides_scanner = !app->hides_scanner; break;
    case 'V': app->has_volume = !app->has_volume; break;
    case 'L': app->hides_lors = !app->hides_lors; break;
    case 'O': app->shows_opener = !app->shows_opener; break;
    case INPUT_KEY_TAB: {
        const struct viewer_tool *first = NULL, *next = NULL;
        bool is_behind = false;
        for (int k = 0; app->tools[k] != NULL; k++) {
            const struct viewer_tool *tool = app->tools[k];
            if (tool->name == NULL) continue;
            if (first == NULL) first = tool;
            if (next == NULL && is_behind) next = tool;
            is_behind = is_behind || tool == app->tool;
        }
        app_choose(app, next != NULL ? next : first);
    } break;
    case 'P': app->saves_view = true; break;
    case 'S': session_tool_write(app, app_choose_path(app, ".yaml")); break;
    case 'K': {
        /* Copies the numbers under the mouse to the clipboard: the numbers in a tool's panel, or otherwise the numbers
         * in the scene. */
        const struct pick_hit *hit = &app->probe.hit;
        char text[512] = "";
        bool is_described = false;
        for (int k = 0; app->tools[k] != NULL && !is_described; k++)
            is_described = app->tools[k]->describe != NULL && app->tools[k]->describe(app, text, sizeof(text));
        if (!is_described && hit->module >= 0) {
            snprintf(text, sizeof(text), "module %d p %d q %d; (%.6g, %.6g, %.6g) mm", hit->module, hit->crystal[0],
                     hit->crystal[1], hit->point_mm[0], hit->point_mm[1], hit->point_mm[2]);
        } else if (!is_described) {
            scene_describe_probe(app, text, sizeof(text));
        }
        if (text[0] != '\0') {
            window_copy(app->window, text);
            app_say(app, LR_LOG_INFO, "copied: %s", text);
        }
    } break;
    case 'M': app->shows_messages = !app->shows_messages; break;
    case INPUT_KEY_ESCAPE: /* closes the dialogs, or stops all opening and computing */
        if (app->shows_opener || app->shows_help || app->shows_messages) {
            app->shows_opener = app->shows_help = app->shows_messages = false;
            break;
        }
        study_cancel(app->study);
        for (int k = 0; k < app->num_runners; k++) task_runner_cancel(app->runners[k]);
        for (int k = 0; app->tools[k] != NULL; k++)
            if (app->tools[k]->cancel != NULL) app->tools[k]->cancel(app);
        break;
    default: break;
    }
}

/* --- input outside of the panels --- */

static void take_event(struct app *app, const struct input_event *event)
{
    bool is_used = false;
    for (int k = 0; app->tools[k] != NULL && !is_used; k++)
        is_used = app->tools[k]->take != NULL && app->tools[k]->take(app, event);
    if (event->kind == INPUT_MOVE || event->kind == INPUT_BUTTON) {
        if (app->held_button >= 0 && !is_used) {
            const double right = (event->at[0] - app->mouse[0]) / app->scene_size[1];
            const double down = (event->at[1] - app->mouse[1]) / app->scene_size[1];
            app->has_moved = app->has_moved || fabs(right) + fabs(down) > 0.0;
            if (app->held_button == INPUT_LEFT)
                camera_orbit(&app->camera, right, down);
            else if (app->held_button == INPUT_RIGHT || app->held_button == INPUT_MIDDLE)
                camera_pan(&app->camera, right, down);
        }

        app->mouse[0] = event->at[0];
        app->mouse[1] = event->at[1];
    }
    if (is_used) return;
    if (event->kind == INPUT_BUTTON) {
        if (event->is_down && !app->ui->wants_mouse && app->held_button < 0) {
            app->held_button = event->button;
            app->has_moved = false;
        } else if (!event->is_down && event->button == app->held_button) {
            app->held_button = -1;
            if (!app->has_moved && event->button == INPUT_LEFT) app_click(app);
        }
    } else if (event->kind == INPUT_SCROLL && !app->ui->wants_mouse)
        camera_zoom(&app->camera, event->by[1]);
    else if (event->kind == INPUT_KEY && event->is_down && !app->ui->wants_keys &&
             (event->modifiers & INPUT_CONTROL) == 0)
        press_key(app, event->key);
    else if (event->kind == INPUT_DROP)
        app_drop(app, event->path);
    else if (event->kind == INPUT_CLOSE)
        app->wants_quit = true;
}

/* --- panels --- */

static const double widths[2] = {290.0, 400.0}, folded_width = 26.0, bar_height = 30.0, bar_margin = 16.0;
static const double narrow_width = 1000.0; /* screen units; narrower windows show one panel at a time */

static double panel_width(const struct app *app, int side)
{
    const double room = app->window->size[0] / app->window->scale - folded_width; /* beside the other panel's strip */
    return app->folds[side] ? folded_width : fmax(fmin(widths[side], room), folded_width);
}

/* Shows a panel beside the scene, or a strip that unfolds it. Returns true if the caller adds the panel's widgets. */
static bool show_side(struct app *app, int side, double height)
{
    static const char *const names[] = {"Study", "Tools"}, *const strips[] = {"Study##strip", "Tools##strip"};
    double screen[2];
    ui_screen(screen);
    const double width = panel_width(app, side);
    const struct ui_place place = {
        {side == 0 ? 0.0 : screen[0] - width, 0.0}, {width, height}, true, app->folds[side], app->has_room};
    bool stays = true;
    if (!app->folds[side]) {
        const bool is_open = ui_panel(names[side], &place, &stays);
        app->folds[side] = !stays;
        return is_open;
    }
    if (ui_panel(strips[side], &place, NULL)) {
        if (ui_strip(names[side])) app_unfold(app, side);
        ui_hint(side == 0 ? "Study: what is open, and what of it is shown" : "Tools: a tab for each");
    }
    return false;
}

static enum ui_tone tone_of(const struct app_message *message, enum ui_tone usual)
{
    return message->level == LR_LOG_ERROR ? UI_BAD : message->level == LR_LOG_WARNING ? UI_WARNING : usual;
}

static void show_panels(struct app *app)
{
    double screen[2];
    char hover[256];
    ui_screen(screen);
    app->reading.index = -1;
    scene_describe_probe(app, hover, sizeof(hover));

    /* The bar at the bottom is as high as the last message needs, but at most a third of the window. */
    double bar = bar_height;
    const struct app_message *last = &app->messages[(app->num_messages + APP_MESSAGES - 1) % APP_MESSAGES];
    if (hover[0] == '\0' && app->num_messages > 0) {
        double needed[2];
        ui_text_size(last->text, fmax(screen[0] - bar_margin, 1.0), needed);
        bar = fmin(fmax(needed[1] + bar_margin, bar_height), fmax(screen[1] / 3.0, bar_height));
    }
    const double height = screen[1] - bar;

    scene_show_labels(app);
    for (int k = 0; app->tools[k] != NULL; k++)
        if (app->tools[k]->mark != NULL) app->tools[k]->mark(app);
    if (show_side(app, 0, height)) study_tool_panel(app);
    ui_panel_end();
    if (show_side(app, 1, height)) {
        const struct viewer_tool *tabs[APP_TOOLS];
        const char *names[APP_TOOLS];
        int count = 0, wanted = -1;
        for (int k = 0; app->tools[k] != NULL; k++) {
            if (app->tools[k]->name == NULL) continue;
            if (app->wants_tool && app->tools[k] == app->tool) wanted = count;
            names[count] = app->tools[k]->name;
            tabs[count++] = app->tools[k];
        }
        const int front = ui_tabs("tools", names, count, wanted);
        if (front >= 0 && !app->wants_tool) app->tool = tabs[front];
        app->wants_tool = false; /* a panel may choose a tool, whose tab comes to the front in the next frame */
        if (front >= 0) tabs[front]->panel(app);
    }
    ui_panel_end();

    const struct ui_place below = {{0.0, height}, {screen[0], bar}, true, true, app->has_room && bar <= bar_height};
    if (ui_panel("bar", &below, NULL)) {
        if (hover[0] != '\0')
            ui_text("%s", hover);
        else if (app->num_messages > 0)
            ui_toned(tone_of(last, UI_DIM), "%s", last->text);
        else
            ui_toned(UI_DIM, "drop a scanner, an image or data here, or press O; press ? for the keys");
    }
    ui_panel_end();

    opener_tool_panels(app);
    if (app->shows_help) {
        const double size[2] = {fmin(500.0, screen[0]), fmin(520.0, height)};
        const struct ui_place help = {.at = {0.5 * (screen[0] - size[0]), 0.3 * (height - size[1])},
                                      .size = {size[0], size[1]}};
        if (ui_panel("Keys and mouse", &help, &app->shows_help)) {
            if (ui_table("keys", 2)) {
                for (size_t k = 0; k < sizeof(key_list) / sizeof(key_list[0]); k++) {
                    ui_cell();
                    ui_text("%s", key_list[k].name);
                    ui_cell();
                    ui_text("%s", key_list[k].what);
                }
                ui_table_end();
            }
            ui_line();
            ui_text("scene: drag turns; right or middle button moves; wheel comes nearer");
            ui_text("panes: drag moves the cross-hair; wheel goes through slices;");
            ui_text("right or Shift drag: window, level; middle: move; Ctrl wheel: zoom");
            ui_text("click on a slice: that voxel; on a crystal: that crystal");
        }
        ui_panel_end();
    }
    if (app->shows_messages) {
        const struct ui_place place = {.at = {fmax(fmin(310.0, screen[0] - 560.0), 0.0), fmax(height - 210.0, 0.0)},
                                       .size = {560.0, 190.0}};
        if (ui_panel("Messages", &place, &app->shows_messages)) {
            const int first = app->num_messages > APP_MESSAGES ? app->num_messages - APP_MESSAGES : 0;
            for (int k = first; k < app->num_messages; k++) {
                const struct app_message *message = &app->messages[k % APP_MESSAGES];
                ui_toned(tone_of(message, UI_PLAIN), "%s", message->text);
            }
        }
        ui_panel_end();
    }
}

/* --- frames --- */

static lr_status run_frame(struct app *app)
{
    const double now = lr_clock_seconds(), seconds = now - app->now_s;
    app->now_s = now;
    app->frame_s = app->num_frames < 2 ? seconds : 0.9 * app->frame_s + 0.1 * seconds;
    app->longest_frame_s = fmax(app->longest_frame_s, app->num_frames > 1 ? seconds : 0.0);
    app->num_frames++;

    if (app->script != NULL) LR_TRY(script_run(app->script, app));
    const double scale = app->window->scale;
    const int *window = app->window->size;
    const bool is_narrow = window[0] / scale < narrow_width;
    if (is_narrow != app->is_narrow) { /* the scene and the panes need this space more than the panel Study */
        app->folds[0] = is_narrow;
        app->folds[1] = app->folds[1] && is_narrow;
    }
    app->is_narrow = is_narrow;
    const double left = floor(panel_width(app, 0) * scale), right = floor(panel_width(app, 1) * scale);
    app->area_at[0] = fmin(left, window[0] - 1.0);
    app->area_at[1] = 0.0;
    app->area_size[0] = fmax(window[0] - app->area_at[0] - right, 1.0);
    app->area_size[1] = fmax(window[1] - floor(bar_height * scale), 1.0);
    panes_arrange(app);
    app->has_room = window[0] >= left + right && window[1] >= bar_height * scale;

    /* Panels can notice only one press or release per frame. A frame therefore handles events only up to the next move,
     * press, release or character. */
    struct input_event event;
    while (window_next(app->window, &event)) {
        ui_take(app->ui, &event);
        take_event(app, &event);
        if (event.kind == INPUT_MOVE || event.kind == INPUT_BUTTON || event.kind == INPUT_KEY ||
            event.kind == INPUT_TEXT)
            break; /* wants_mouse is up to date only after the panels' next frame */
    }

    for (int k = 0; k < app->num_runners; k++) (void)task_runner_poll(app->runners[k]);
    for (int k = 0; app->tools[k] != NULL; k++)
        if (app->tools[k]->update != NULL) LR_TRY(app->tools[k]->update(app));

    if (app->waits && !app->window->is_seen) /* an invisible window draws nothing while a step waits */
        return LR_OK;
    const int *size = app->window->size;
    if (size[0] < 1 || size[1] < 1) { /* the window is iconified */
        window_wait(app->window, idle_seconds);
        return LR_OK;
    }
    if (app->target == NULL || app->target->size[0] != size[0] || app->target->size[1] != size[1]) {
        gl_target_destroy(app->target);
        app->target = gl_target_create(
            app->ctx,
            &(struct gl_target_params){
                .label = "window", .width = size[0], .height = size[1], .colour_formats = {GL_RGBA8}, .depth = true});
        if (app->target == NULL) return LR_FAILED;
    }

    camera_view(&app->camera, app->scene_size[0] / app->scene_size[1], &app->seen);
    app->probe = scene_no_probe;
    if (app->held_button < 0 && !app->ui->wants_mouse) app->probe = scene_probe(app);
    /* A frame is drawn if it is visible, is measured by a benchmark, goes into a picture, or is requested by a script.
     * The first two frames are always drawn, so that there is a picture. */
    const bool is_seen = app->window->is_seen || app->params->bench_frames > 0 || app->num_frames < 2 ||
                         app->is_pictured || app->saves_view;
    const float *ground = ui_ground();
    const struct gl_clear clear = {.colours = {{.f = {ground[0], ground[1], ground[2], 1.0f}}}, .depth = 1.0f};
    if (is_seen) gl_target_clear(app->target, &clear);
    for (int k = 0; k < NUM_PANES && is_seen; k++) {
        const struct app_pane *pane = &app->panes[k];
        const struct flat_view flat = panes_flat(app, k == PANE_SCENE ? 0 : k);
        struct camera_view view;
        flat_camera(&flat, &view);
        struct draw_params params = scene_draw_params(app);
        params.view = k == PANE_SCENE ? &app->seen : &view;
        params.viewport[0] = (int)pane->at[0];
        params.viewport[1] = app->target->size[1] - (int)(pane->at[1] + pane->size[1]);
        params.viewport[2] = (int)pane->size[0];
        params.viewport[3] = (int)pane->size[1];
        if (pane->size[0] < 1.0) continue;
        LR_TRY(k == PANE_SCENE ? draw_scene(app->draw, app->target, &params)
                               : draw_pane(app->draw, app->target, &params, k));
    }
    ui_begin(app->ui, app->window->is_seen ? app->frame_s : unseen_frame_s);
    show_panels(app);
    LR_TRY(ui_end(app->ui, is_seen ? app->target : NULL));
    if (is_seen && app->saves_view) {
        app->saves_view = false;
        if (app_write_picture(app, app_choose_path(app, ".png")) == LR_OK)
            app_say(app, LR_LOG_INFO, "what is seen is in %s", app->saved_path);
    }
    window_show(app->window, app->target);
    if (app->first_frame_s <= 0.0) {
        glFinish();
        app->first_frame_s = lr_clock_seconds() - app->start_s;
    }
    return gl_context_check(app->ctx, "the window");
}

/* --- running --- */

/* Draws frames as fast as possible, after all files are open. */
static lr_status bench(struct app *app)
{
    const struct view_params *params = app->params;
    const int frames = params->bench_frames;
    const double start = lr_clock_seconds();
    const clock_t processor_start = clock();
    for (int k = 0; k < frames && !app->wants_quit; k++) {
        LR_TRY(lr_progress_report(params->progress, "viewer", 0.0, 0.0));
        LR_TRY(run_frame(app));
        camera_orbit(&app->camera, 0.002, 0.0);
    }
    glFinish();
    const double seconds = lr_clock_seconds() - start;
    *params->speed = (struct view_speed){
        .first_frame_s = app->first_frame_s,
        .opened_s = start - app->start_s,
        .frames_per_second = frames / seconds,
        .frame_ms = 1e3 * seconds / frames,
        .processor_ms = 1e3 * (double)(clock() - processor_start) / CLOCKS_PER_SEC / frames,
        .size = {app->target->size[0], app->target->size[1]},
    };
    return LR_OK;
}

lr_status view_run(const struct view_params *params)
{
    struct app *app = lr_alloc(1, sizeof(*app), "the viewer", params->log);
    if (app == NULL) return LR_FAILED;
    app->params = params;
    app->tools = viewer_tools;
    app->log = (lr_log){.write = app_keep_message, .user = app};
    app->held_button = app->reading.index = -1;
    app->probe = scene_no_probe;
    app->alone = PANE_FOUR;
    app->pane_zoom = 1.0;
    app->slices.opacity = 0.5;
    app->now_s = app->start_s = lr_clock_seconds();
    app->slices.colours = LR_COLOURS_PERCEPTUAL;
    app->scene_size[0] = app->scene_size[1] = 1.0;
    camera_fit(&app->camera, 100.0, 1.0);
    lr_status status = open_parts(app);
    const bool is_open = status == LR_OK, is_bench = params->bench_frames > 0;
    while (status == LR_OK && !app->wants_quit) {
        status = lr_progress_report(params->progress, "viewer", 0.0, 0.0); /* a signal may ask the program to end */
        if (status == LR_OK) status = run_frame(app);
        if (status != LR_OK) break;
        if (is_bench && !app_is_busy(app) && app->num_frames > 3) {
            status = app->failure != LR_OK ? app->failure : bench(app);
            break;
        }
        /* The threads of a software renderer are shared by the window and by jobs that use OpenGL. If the window drew
         * frames without a pause, it would take these threads away from the jobs. */
        const double busy = gl_context_limits(app->ctx)->software ? busy_software_seconds : busy_seconds;
        if (app->script == NULL) window_wait(app->window, app_is_busy(app) || is_bench ? busy : idle_seconds);
    }
    if (is_open) {
        const bool is_ended_bench = is_bench && (status == LR_CANCELLED || status == app->failure);
        if (status != LR_OK && app->script == NULL && !is_ended_bench)
            session_tool_write(app, app_choose_path(app, ".yaml")); /* keeps the session when an error ends the
                                                                       viewer */
        if (status == LR_OK && app->script != NULL) status = app->failure;
    }

    for (int k = APP_TOOLS - 1; k >= 0; k--) {
        if (app->states[k] != NULL && app->tools[k]->close != NULL) app->tools[k]->close(app);
        free(app->states[k]);
        app->states[k] = NULL;
    }
    study_view_release(&app->open);
    study_destroy(app->study);
    script_destroy(app->script);
    if (app->window != NULL) {
        gl_target_destroy(app->target);
        draw_destroy(app->draw);
        ui_destroy(app->ui);
    }
    window_close(app->window);
    free(app);
    return status;
}

const struct lr_viewer_plugin lr_viewer_plugin = {.plugin = {lr_plugin_build, lr_pool_use, lr_errors_use},
                                                  .run = view_run};
