/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/script/command.h"

#include "base/clock.h"
#include "base/log.h"
#include "viewer/frame/app_input.h"
#include "viewer/tools/session_tool.h"
#include "viewer/tools/tools.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- words --- */

lr_status command_real(const struct app *app, const struct command_words *words, int at, double *value)
{
    char *end;
    errno = 0;
    *value = strtod(words->words[at], &end);
    if (*end != '\0' || end == words->words[at] || errno == ERANGE || !isfinite(*value))
        return lr_error(&app->log, LR_BAD_INPUT, "%s is not a number", words->words[at]);
    return LR_OK;
}

lr_status command_integer(const struct app *app, const struct command_words *words, int at, int *value)
{
    double real;
    LR_TRY(command_real(app, words, at, &real));
    if (real != floor(real) || fabs(real) > 1e9)
        return lr_error(&app->log, LR_BAD_INPUT, "%s is not a whole number", words->words[at]);
    *value = (int)real;
    return LR_OK;
}

lr_status command_choice(const struct app *app, const struct command_words *words, int at, const char *const *names,
                         int *value)
{
    for (int k = 0; names[k] != NULL; k++) {
        if (strcmp(names[k], words->words[at]) == 0) {
            *value = k;
            return LR_OK;
        }
    }
    return lr_error(&app->log, LR_BAD_INPUT, "%s is none of what can stand here, such as %s", words->words[at],
                    names[0]);
}

static lr_status reals(const struct app *app, const struct command_words *words, double *values)
{
    for (int k = 1; k < words->count; k++) LR_TRY(command_real(app, words, k, &values[k - 1]));
    return LR_OK;
}

/* --- opening --- */

static lr_status act_open(struct app *app, const struct command_words *words)
{
    static const char *const kinds[] = {"scanner", "image", "mu", "data", "session", "histo", "record", "file", NULL};
    const char *path = words->words[2];
    int kind = 0;
    LR_TRY(command_choice(app, words, 1, kinds, &kind));
    switch (kind) {
    case 0: return study_open(app->study, &(struct study_wish){.scanner = path});
    case 1: return study_open(app->study, &(struct study_wish){.image = path});
    case 2: return study_open(app->study, &(struct study_wish){.mu = path});
    case 3: return study_open(app->study, &(struct study_wish){.data = path});
    case 4: return session_tool_read(app, path);
    case 5: direct_tool_open_histo(app, path); return LR_OK;
    case 6: return record_tool_open(app, path);
    default: tools_drop(app, path); return LR_OK;
    }
}

static lr_status run_wait(struct app *app, const struct command_words *words, int turn, bool *is_waiting)
{
    static const char *const ways[] = {"anyway", NULL};
    double most_seconds = 600.0;
    int way = 0;
    if (turn == 0) app->wait_start_s = lr_clock_seconds();
    if (words->count > 1) LR_TRY(command_real(app, words, 1, &most_seconds));
    if (words->count > 2) {
        LR_TRY(command_choice(app, words, 2, ways, &way));
        app->failure = LR_OK;
    }
    if (lr_clock_seconds() - app->wait_start_s > most_seconds) {
        app->waits = false;
        return lr_error(&app->log, LR_FAILED, "work still goes on after %g s", most_seconds);
    }
    *is_waiting = turn < 2 || app_is_busy(app); /* what was asked for begins in the next frame */
    app->waits = *is_waiting && turn > 1;
    if (app->waits) window_wait(app->window, 0.01);
    return *is_waiting ? LR_OK : app->failure;
}

static lr_status run_frames(struct app *app, const struct command_words *words, int turn, bool *is_waiting)
{
    int count = 0;
    LR_TRY(command_integer(app, words, 1, &count));
    *is_waiting = app->is_pictured = turn < count;
    return LR_OK;
}

/* --- what is seen --- */

static lr_status act_tool(struct app *app, const struct command_words *words)
{
    static const char *const names[] = {"voxel", "lor", "maps", "live", "doctor", "direct", NULL};
    int tool = 0;
    LR_TRY(command_choice(app, words, 1, names, &tool));
    app->tool = (enum app_tool)tool;
    app->wants_tool = true;
    return LR_OK;
}

static lr_status act_show(struct app *app, const struct command_words *words)
{
    static const char *const names[] = {"scanner", "volume", "x", "y", "z", "help", "messages", "lors", "open", NULL};
    static const char *const states[] = {"off", "on", NULL};
    int what = 0, state = 0;
    LR_TRY(command_choice(app, words, 1, names, &what));
    LR_TRY(command_choice(app, words, 2, states, &state));
    bool unused; /* those two hide */
    bool *const switches[] = {&unused,
                              &app->has_volume,
                              &app->slices.is_shown[0],
                              &app->slices.is_shown[1],
                              &app->slices.is_shown[2],
                              &app->shows_help,
                              &app->shows_messages,
                              &unused,
                              &app->opener.is_shown};
    *switches[what] = state;
    app->hides_lors = what == 7 ? !state : app->hides_lors;
    app->hides_scanner = what == 0 ? !state : app->hides_scanner;
    return LR_OK;
}

static lr_status act_slice(struct app *app, const struct command_words *words)
{
    static const char *const axes[] = {"x", "y", "z", NULL};
    int axis = 0;
    LR_TRY(command_choice(app, words, 1, axes, &axis));
    return command_real(app, words, 2, &app->slices.at_mm[axis]);
}

static lr_status act_colours(struct app *app, const struct command_words *words)
{
    static const char *const names[] = {"grey", "inverse", "perceptual", "diverging", NULL};
    double *const range = app->ranges[app->slices.image];
    double ends[2] = {app->slices.low, app->slices.high};
    int map = 0;
    LR_TRY(command_choice(app, words, 1, names, &map));
    for (int k = 2; k < words->count; k++) LR_TRY(command_real(app, words, k, &ends[k - 2]));
    if (words->count == 3 || (words->count == 4 && !(ends[0] < ends[1])))
        return lr_error(&app->log, LR_BAD_INPUT, "colours go from a number to a larger one");
    app->slices.colours = (lr_colour_map)map;
    app->slices.low = range[0] = ends[0];
    app->slices.high = range[1] = ends[1];
    return LR_OK;
}

static lr_status act_camera(struct app *app, const struct command_words *words)
{
    double values[6] = {0};
    LR_TRY(reals(app, words, values));
    app->camera.turn_deg = values[0];
    app->camera.height_deg = fmin(fmax(values[1], -89.9), 89.9);
    app->camera.distance_mm = words->count > 3 ? fmax(values[2], 1.0) : app->camera.distance_mm;
    for (int k = 0; k < 3 && words->count > 4 + k; k++) app->camera.at_mm[k] = values[3 + k];
    return LR_OK;
}

static lr_status act_along(struct app *app, const struct command_words *words)
{
    static const char *const axes[] = {"x", "y", "z", NULL};
    int axis = 0;
    LR_TRY(command_choice(app, words, 1, axes, &axis));
    camera_along(&app->camera, axis);
    return LR_OK;
}

static lr_status act_fit(struct app *app, const struct command_words *words)
{
    (void)words;
    tools_fit(app);
    return LR_OK;
}

static lr_status run_size(struct app *app, const struct command_words *words, int turn, bool *is_waiting)
{
    struct input_event event = {.kind = INPUT_SIZE};
    LR_TRY(reals(app, words, event.at));
    if (event.at[0] < 1.0 || event.at[1] < 1.0 || event.at[0] > 16384.0 || event.at[1] > 16384.0)
        return lr_error(&app->log, LR_BAD_INPUT, "windows have 1 to 16384 pixels a side");
    if (turn == 0) window_push(app->window, &event);
    *is_waiting = turn < 1;
    return LR_OK;
}

/* --- voxel mode --- */

static lr_status act_point(struct app *app, const struct command_words *words)
{
    LR_TRY(reals(app, words, app->voxel.request.point_mm));
    voxel_tool_ask(app);
    return LR_OK;
}

static lr_status set_algorithm(struct app *app, const struct command_words *words)
{
    int value = 0;
    LR_TRY(command_choice(app, words, 2, live_algorithms, &value));
    app->live.request.algorithm = (lr_recon_algorithm)value;
    return LR_OK;
}

static lr_status set_relaxation(struct app *app, const struct command_words *words, bool is_fall)
{
    const struct live_request *request = &app->live.request;
    double value;
    LR_TRY(command_real(app, words, 2, &value));
    return live_tool_relax(app, is_fall ? request->relaxation : value, is_fall ? value : request->relaxation_fall);
}

static lr_status set_family(struct app *app, const struct command_words *words)
{
    int value = 0;
    LR_TRY(command_choice(app, words, 2, live_families, &value));
    app->live.request.family = (enum live_family)value;
    return LR_OK;
}

static lr_status set_views(struct app *app, const struct command_words *words, bool are_tilts)
{
    const lr_view_set *views = &app->live.request.views;
    int value;
    LR_TRY(command_integer(app, words, 2, &value));
    return live_tool_set_views(app, are_tilts ? views->azimuths : value, are_tilts ? value : views->tilts);
}

static lr_status set_counts(struct app *app, const struct command_words *words)
{
    double counts;
    LR_TRY(command_real(app, words, 2, &counts));
    if (!(counts >= 1)) return lr_error(&app->log, LR_BAD_INPUT, "%s counts: give 1 or more", words->words[2]);
    app->live.request.counts = counts;
    return LR_OK;
}

static lr_status set_kernel(struct app *app, const struct command_words *words)
{
    int value = 0;
    LR_TRY(command_choice(app, words, 2, lor_kernels, &value));
    app->lor.request.kernel = (enum tube_kernel)value;
    app->lor.request.has_tof = app->lor.request.has_tof && value != TUBE_LOR;
    lor_tool_ask(app);
    return LR_OK;
}

static lr_status set_tof(struct app *app, const struct command_words *words)
{
    double value = NAN;
    if (strcmp(words->words[2], "off") != 0) LR_TRY(command_real(app, words, 2, &value));
    return lor_tool_set_tof(app, value);
}

static lr_status set_frame(struct app *app, const struct command_words *words)
{
    int number = 0;
    LR_TRY(command_integer(app, words, 2, &number));
    return frames_tool_show(app, number);
}

static lr_status set_elements(struct app *app, const struct command_words *words)
{
    int value = 0;
    LR_TRY(command_choice(app, words, 2, live_kernels, &value));
    app->live.request.elements = (lr_listmode_kernel)value;
    return LR_OK;
}

enum set_what {
    SET_BACKEND = 6,
    SET_ALGORITHM,
    SET_RELAXATION,
    SET_FALL,
    SET_FAMILY,
    SET_AZIMUTHS,
    SET_TILTS,
    SET_ELEMENTS,
    SET_COUNTS,
    SET_KERNEL,
    SET_TOF,
    SET_FRAME,
    SET_WHOLE,
    SET_GUESSES,
    SET_LOCAL
};

static lr_status set_whole(struct app *app, const struct command_words *words)
{
    int value = 0;
    LR_TRY(command_integer(app, words, 2, &value));
    app->voxel.request.wants_whole = value != 0;
    voxel_tool_ask(app);
    return LR_OK;
}

/* How many guesses the next reconstruction composes, or iterations of each before they are composed. */
static lr_status set_guesses(struct app *app, const struct command_words *words, bool is_local)
{
    struct live_request *request = &app->live.request;
    int value = 0;
    LR_TRY(command_integer(app, words, 2, &value));
    return is_local ? guesses_tool_set(app, request->guesses, value)
                    : guesses_tool_set(app, value, request->local_iterations);
}

/* What is of the next reconstruction. */
static lr_status set_live(struct app *app, const struct command_words *words, int what)
{
    switch (what) {
    case SET_ALGORITHM: return set_algorithm(app, words);
    case SET_FAMILY: return set_family(app, words);
    case SET_ELEMENTS: return set_elements(app, words);
    case SET_COUNTS: return set_counts(app, words);
    case SET_AZIMUTHS:
    case SET_TILTS: return set_views(app, words, what == SET_TILTS);
    default: return set_relaxation(app, words, what == SET_FALL);
    }
}

/* What is neither of the voxel's picture nor of all reconstructions. */
static lr_status set_other(struct app *app, const struct command_words *words, int what)
{
    switch (what) {
    case SET_KERNEL: return set_kernel(app, words);
    case SET_TOF: return set_tof(app, words);
    case SET_FRAME: return set_frame(app, words);
    case SET_WHOLE: return set_whole(app, words);
    default: return set_guesses(app, words, what == SET_LOCAL);
    }
}

static lr_status act_set(struct app *app, const struct command_words *words)
{
    static const char *const names[] = {"module",  "rays",      "samples",    "steps",  "exact",  "absorption",
                                        "backend", "algorithm", "relaxation", "fall",   "family", "azimuths",
                                        "tilts",   "elements",  "counts",     "kernel", "tof",    "frame",
                                        "whole",   "guesses",   "local",      NULL};
    struct voxel_request *request = &app->voxel.request;
    int what = 0, value = 0;
    LR_TRY(command_choice(app, words, 1, names, &what));
    if (what >= SET_KERNEL) return set_other(app, words, what);
    if (what >= SET_ALGORITHM) return set_live(app, words, what);
    LR_TRY(what == SET_BACKEND ? command_choice(app, words, 2, voxel_backends, &value)
                               : command_integer(app, words, 2, &value));
    int *const numbers[] = {&request->primary, &request->rays, &request->samples, &request->mu_steps};
    if (what < 4) *numbers[what] = what == 0 && value < 0 ? 0 : value;
    app->voxel.seeks_primary = app->voxel.seeks_primary && what != 0;
    request->all_primaries = what == 0 ? value < 0 : request->all_primaries;
    request->mode = what == 4 ? (value ? LR_MODE_AUTO : LR_MODE_SAMPLED) : request->mode;
    request->without_mu = what == 5 ? !value : request->without_mu;
    request->backend = what == SET_BACKEND ? voxel_backends[value] : request->backend;
    voxel_tool_ask(app);
    return app->voxel.is_asked ? LR_OK : LR_USAGE;
}

static lr_status act_picture(struct app *app, const struct command_words *words)
{
    static const char *const names[] = {"crystals", "weight", "sampled", "exact", "difference", "all", NULL};
    int kind = 0;
    LR_TRY(command_choice(app, words, 1, names, &kind));
    app->voxel.is_side_by_side = kind == SHEET_NUM_KINDS;
    app->voxel.kind = kind < SHEET_NUM_KINDS ? (enum sheet_kind)kind : app->voxel.kind;
    return LR_OK;
}

/* --- other tools --- */

static lr_status act_lor(struct app *app, const struct command_words *words)
{
    struct tube_crystal *crystals = app->lor.request.crystals;
    int *const numbers[6] = {&crystals[0].module, &crystals[0].p, &crystals[0].q,
                             &crystals[1].module, &crystals[1].p, &crystals[1].q};
    for (int k = 0; k < 6; k++) LR_TRY(command_integer(app, words, 1 + k, numbers[k]));
    lor_tool_ask(app);
    return LR_OK;
}

static lr_status act_sensitivity(struct app *app, const struct command_words *words)
{
    (void)words;
    maps_tool_ask(app);
    return LR_OK;
}

static lr_status act_pair(struct app *app, const struct command_words *words)
{
    LR_TRY(command_integer(app, words, 1, &app->maps.modules[0]));
    LR_TRY(command_integer(app, words, 2, &app->maps.modules[1]));
    maps_tool_show_pair(app);
    return LR_OK;
}

static lr_status act_recon(struct app *app, const struct command_words *words)
{
    static const char *const names[] = {"start", "pause", "resume", "step", "stop", "device", "host", NULL};
    struct live *live = app->live.live;
    int what = 0;
    LR_TRY(command_choice(app, words, 1, names, &what));
    struct live_request *request = &app->live.request;
    for (int k = 2; k < words->count; k++) {
        int *const numbers[] = {&request->subsets, &request->iterations, &request->samples};
        LR_TRY(command_integer(app, words, k, numbers[k - 2]));
    }
    if (request->samples < 0) {
        request->samples = 0;
        return lr_error(&app->log, LR_BAD_INPUT, "a voxel has 1 point or more; 0 chooses by the crystals' pitch");
    }
    switch (what) {
    case 0: live_tool_start(app); break;
    case 1: live_pause(live); break;
    case 2: live_resume(live); break;
    case 3: live_step(live); break;
    case 4: live_stop(live); break;
    default: app->live.on_device = what == 5; break;
    }
    return LR_OK;
}

/* A frame of the record of a run, whose numbers begin with 1. */
static lr_status act_record(struct app *app, const struct command_words *words)
{
    int number = 0;
    LR_TRY(command_integer(app, words, 1, &number));
    return record_tool_show(app, number);
}

static lr_status act_direct(struct app *app, const struct command_words *words)
{
    static const char *const models[] = {"invariant", "variant1", "variant2", "variant3", NULL};
    struct direct_request *request = &app->direct.request;
    int model = (int)request->kernel.resolution.model;
    LR_TRY(command_real(app, words, 1, &request->view.azimuth_deg));
    LR_TRY(command_real(app, words, 2, &request->view.tilt_deg));
    if (words->count > 3) {
        LR_TRY(command_real(app, words, 3, &request->kernel.resolution.tof_ps));
        app->direct.has_tof = true;
    }
    if (words->count > 4) {
        LR_TRY(command_choice(app, words, 4, models, &model));
        request->kernel.resolution.model = (lr_radial_model)model;
    }
    direct_tool_ask(app);
    return app->direct.is_asked ? LR_OK : LR_USAGE;
}

static lr_status act_histo(struct app *app, const struct command_words *words)
{
    const lr_histo_images *histo = direct_model_histo(app->direct.model, NULL);
    int view = 0;
    LR_TRY(command_integer(app, words, 1, &view));
    if (histo == NULL || view < 0 || view >= histo->num_views) {
        return lr_error(&app->log, LR_USAGE, "there is no histo-image %d: %d are open", view,
                        histo != NULL ? histo->num_views : 0);
    }
    direct_tool_show_view(app, view);
    return LR_OK;
}

static lr_status act_offset(struct app *app, const struct command_words *words)
{
    for (int k = 0; k < 3; k++) LR_TRY(command_integer(app, words, 1 + k, &app->direct.offset[k]));
    return LR_OK;
}

static lr_status act_image(struct app *app, const struct command_words *words)
{
    static const char *const names[] = {"image", "mu", "tube", "sensitivity", "live", "kernel", "histo", NULL};
    int which = 0;
    LR_TRY(command_choice(app, words, 1, names, &which));
    if (draw_get_image(app->draw, (enum draw_image)which) == NULL)
        return lr_error(&app->log, LR_FAILED, "there is no %s to show", names[which]);
    tools_show_image(app, (enum draw_image)which);
    return LR_OK;
}

/* --- mouse and keys --- */

/* Events of a step one at a time, with a frame between. */
static lr_status push_in_turn(struct app *app, const struct input_event *events, int count, int turn)
{
    if (turn < count) window_push(app->window, &events[turn]);
    return LR_OK;
}

static lr_status run_click(struct app *app, const struct command_words *words, int turn, bool *is_waiting)
{
    double at[2];
    LR_TRY(reals(app, words, at));
    const struct input_event events[] = {
        {.kind = INPUT_MOVE, .at = {at[0], at[1]}},
        {.kind = INPUT_BUTTON, .at = {at[0], at[1]}, .is_down = true},
        {.kind = INPUT_BUTTON, .at = {at[0], at[1]}},
    };
    *is_waiting = turn < 4;
    return push_in_turn(app, events, 3, turn);
}

static lr_status run_move(struct app *app, const struct command_words *words, int turn, bool *is_waiting)
{
    struct input_event event = {.kind = INPUT_MOVE};
    LR_TRY(reals(app, words, event.at));
    *is_waiting = turn < 2;
    return push_in_turn(app, &event, 1, turn);
}

static lr_status run_drag(struct app *app, const struct command_words *words, int turn, bool *is_waiting)
{
    double at[4];
    LR_TRY(reals(app, words, at));
    const struct input_event events[] = {
        {.kind = INPUT_MOVE, .at = {at[0], at[1]}},
        {.kind = INPUT_BUTTON, .at = {at[0], at[1]}, .is_down = true},
        {.kind = INPUT_MOVE, .at = {0.5 * (at[0] + at[2]), 0.5 * (at[1] + at[3])}},
        {.kind = INPUT_MOVE, .at = {at[2], at[3]}},
        {.kind = INPUT_BUTTON, .at = {at[2], at[3]}},
    };
    *is_waiting = turn < 6;
    return push_in_turn(app, events, 5, turn);
}

static lr_status run_scroll(struct app *app, const struct command_words *words, int turn, bool *is_waiting)
{
    struct input_event event = {.kind = INPUT_SCROLL, .at = {app->mouse[0], app->mouse[1]}};
    LR_TRY(command_real(app, words, 1, &event.by[1]));
    *is_waiting = turn < 2;
    return push_in_turn(app, &event, 1, turn);
}

static int key_of(const char *name)
{
    static const struct {
        const char *name;
        int key;
    } keys[] = {{"escape", INPUT_KEY_ESCAPE},  {"enter", INPUT_KEY_ENTER},
                {"tab", INPUT_KEY_TAB},        {"backspace", INPUT_KEY_BACKSPACE},
                {"left", INPUT_KEY_LEFT},      {"right", INPUT_KEY_RIGHT},
                {"up", INPUT_KEY_UP},          {"down", INPUT_KEY_DOWN},
                {"pageup", INPUT_KEY_PAGE_UP}, {"pagedown", INPUT_KEY_PAGE_DOWN},
                {"f1", INPUT_KEY_F1}};
    for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
        if (strcmp(keys[k].name, name) == 0) return keys[k].key;
    if (strcmp(name, "?") == 0) return '/'; /* where it is on a keyboard */
    const char letter = name[0] >= 'a' && name[0] <= 'z' ? (char)(name[0] - 32) : name[0];
    return name[1] == '\0' && letter >= 32 ? letter : 0;
}

static lr_status run_key(struct app *app, const struct command_words *words, int turn, bool *is_waiting)
{
    const int key = key_of(words->words[1]);
    if (key == 0) return lr_error(&app->log, LR_BAD_INPUT, "there is no key %s", words->words[1]);
    const struct input_event events[] = {{.kind = INPUT_KEY, .key = key, .is_down = true},
                                         {.kind = INPUT_KEY, .key = key}};
    *is_waiting = turn < 3;
    return push_in_turn(app, events, 2, turn);
}

static lr_status run_type(struct app *app, const struct command_words *words, int turn, bool *is_waiting)
{
    const char *text = words->words[1];
    if (turn < (int)strlen(text))
        window_push(app->window, &(struct input_event){.kind = INPUT_TEXT, .code = (unsigned char)text[turn]});
    *is_waiting = turn <= (int)strlen(text);
    return LR_OK;
}

/* --- results --- */

static lr_status run_screenshot(struct app *app, const struct command_words *words, int turn, bool *is_waiting)
{
    *is_waiting = app->is_pictured = turn < 2;
    return turn < 2 ? LR_OK : app_write_picture(app, words->words[1]);
}

static lr_status act_save(struct app *app, const struct command_words *words)
{
    return session_tool_write(app, words->words[1]);
}

static lr_status act_quit(struct app *app, const struct command_words *words)
{
    (void)words;
    app->wants_quit = true;
    return LR_OK;
}

static const struct command commands[] = {
    {"open", "scanner|image|mu|data|session|histo|record|file PATH", 2, 2, .act = act_open},
    {"wait", "[SECONDS [anyway]]", 0, 2, .run = run_wait},
    {"frames", "COUNT", 1, 1, .run = run_frames},
    {"tool", "voxel|lor|maps|live|doctor|direct", 1, 1, .act = act_tool},
    {"show", "scanner|volume|x|y|z|help|messages|lors|open on|off", 2, 2, .act = act_show},
    {"slice", "x|y|z MM", 2, 2, .act = act_slice},
    {"colours", "grey|inverse|perceptual|diverging [LOW HIGH]", 1, 3, .act = act_colours},
    {"camera", "TURN_DEG HEIGHT_DEG [DISTANCE_MM [X Y Z]]", 2, 6, .act = act_camera},
    {"along", "x|y|z", 1, 1, .act = act_along},
    {"fit", "", 0, 0, .act = act_fit},
    {"point", "X Y Z", 3, 3, .act = act_point},
    {"set",
     "module|rays|samples|steps|exact|absorption|relaxation|fall|azimuths|tilts|counts|tof|frame|"
     "whole|guesses|local NUMBER, "
     "or backend|algorithm|family|elements|kernel NAME",
     2, 2, .act = act_set},
    {"lor", "MODULE P Q MODULE R S", 6, 6, .act = act_lor},
    {"sensitivity", "", 0, 0, .act = act_sensitivity},
    {"pair", "MODULE MODULE", 2, 2, .act = act_pair},
    {"recon", "start|pause|resume|step|stop|device|host [SUBSETS [ITERATIONS [N]]]", 1, 4, .act = act_recon},
    {"record", "FRAME", 1, 1, .act = act_record},
    {"image", "image|mu|tube|sensitivity|live|kernel|histo", 1, 1, .act = act_image},
    {"direct", "AZIMUTH_DEG TILT_DEG [TOF_PS [MODEL]]", 2, 4, .act = act_direct},
    {"histo", "VIEW", 1, 1, .act = act_histo},
    {"offset", "DX DY DZ", 3, 3, .act = act_offset},
    {"picture", "crystals|weight|sampled|exact|difference|all", 1, 1, .act = act_picture},
    {"size", "WIDTH HEIGHT", 2, 2, .run = run_size},
    {"click", "X Y", 2, 2, .run = run_click},
    {"move", "X Y", 2, 2, .run = run_move},
    {"drag", "X Y TO_X TO_Y", 4, 4, .run = run_drag},
    {"scroll", "LINES", 1, 1, .run = run_scroll},
    {"key", "NAME", 1, 1, .run = run_key},
    {"type", "TEXT", 1, 1, .run = run_type},
    {"random", "COUNT SEED", 2, 2, .run = command_run_random},
    {"screenshot", "FILE.png", 1, 1, .run = run_screenshot},
    {"save", "SESSION.yaml", 1, 1, .act = act_save},
    {"print", "VALUE", 1, 1, .run = command_run_print},
    {"expect", "VALUE NUMBER|TEXT [TOLERANCE]", 2, 3, .run = command_run_expect},
    {"stay", "[VALUE...]", 0, COMMAND_WATCHED, .run = command_run_stay},
    {"quit", "", 0, 0, .act = act_quit},
};

const struct command *command_find(const char *name)
{
    for (size_t k = 0; k < sizeof(commands) / sizeof(commands[0]); k++)
        if (strcmp(commands[k].name, name) == 0) return &commands[k];
    return NULL;
}
