/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Script steps that belong to no tool: steps of the window, the camera, the mouse and the keys, and steps that read
 * values. */
#include "base/clock.h"
#include "base/log.h"
#include "viewer/app.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- work and frames --- */

static lr_status run_wait(struct app *app, const struct command_words *words, int call, bool *is_waiting)
{
    static const char *const ways[] = {"anyway", NULL};
    double most_seconds = 600.0;
    int way = 0;
    if (call == 0) app->wait_start_s = lr_clock_seconds();
    if (words->count > 1) LR_TRY(command_real(&app->log, words, 1, &most_seconds));
    if (words->count > 2) {
        LR_TRY(command_choice(&app->log, words, 2, ways, &way));
        app->failure = LR_OK;
    }
    if (lr_clock_seconds() - app->wait_start_s > most_seconds) {
        app->waits = false;
        return lr_error(&app->log, LR_FAILED, "work still goes on after %g s", most_seconds);
    }
    *is_waiting = call < 2 || app_is_busy(app); /* requested work begins only in the next frame */
    app->waits = *is_waiting && call > 1;
    if (app->waits) window_wait(app->window, 0.01);
    return *is_waiting ? LR_OK : app->failure;
}

/* Draws frames even if they are not visible; the last of them may be written to a file. */
static lr_status run_frames(struct app *app, const struct command_words *words, int call, bool *is_waiting)
{
    const bool is_screenshot = strcmp(words->words[0], "screenshot") == 0;
    int count = 2;
    if (!is_screenshot) LR_TRY(command_integer(&app->log, words, 1, &count));
    *is_waiting = app->is_pictured = call < count;
    return is_screenshot && !*is_waiting ? app_write_picture(app, words->words[1]) : LR_OK;
}

/* --- the panels, the scene and the camera --- */

/* Chooses a tool, or changes one of its settings. */
static lr_status act_tool(struct app *app, const struct command_words *words)
{
    const char *name = words->words[1];
    const bool sets = strcmp(words->words[0], "set") == 0;
    struct known_words known = {.count = 0};
    for (int k = 0; app->tools[k] != NULL; k++) {
        const struct viewer_tool *tool = app->tools[k];
        for (int n = 0; sets && tool->settings != NULL && tool->settings[n] != NULL; n++) {
            if (strcmp(tool->settings[n], name) == 0) return tool->set(app, words, n);
            known_words_add(&known, tool->settings[n]);
        }
        if (sets || tool->word == NULL) continue;
        if (strcmp(tool->word, name) == 0) {
            app_choose(app, tool);
            return LR_OK;
        }
        known_words_add(&known, tool->word);
    }
    return command_refuse(&app->log, name, &known);
}

static lr_status act_show(struct app *app, const struct command_words *words)
{
    static const char *const names[] = {"scanner",    "volume",   "x",     "y",     "z",
                                        "help",       "messages", "lors",  "open",  "smooth",
                                        "projection", "light",    "study", "tools", NULL};
    static const char *const states[] = {"off", "on", NULL};
    int what = 0, state = 0;
    LR_TRY(command_choice(&app->log, words, 1, names, &what));
    LR_TRY(command_choice(&app->log, words, 2, states, &state));
    bool *const switches[] = {
        &app->hides_scanner,      &app->has_volume,       &app->slices.is_shown[0],  &app->slices.is_shown[1],
        &app->slices.is_shown[2], &app->shows_help,       &app->shows_messages,      &app->hides_lors,
        &app->shows_opener,       &app->slices.is_smooth, &app->slices.is_projected, &app->is_light,
        &app->folds[0],           &app->folds[1]};
    const bool is_panel = what >= 12, hides = what == 0 || what == 7 || is_panel;
    *switches[what] = state != hides;
    if (is_panel && state) app_unfold(app, what - 12);
    ui_set_look(app->is_light);
    return LR_OK;
}

static lr_status act_axis(struct app *app, const struct command_words *words)
{
    static const char *const axes[] = {"x", "y", "z", NULL};
    int axis = 0;
    LR_TRY(command_choice(&app->log, words, 1, axes, &axis));
    if (strcmp(words->words[0], "slice") == 0) return command_real(&app->log, words, 2, &app->slices.at_mm[axis]);
    camera_along(&app->camera, axis);
    return LR_OK;
}

static lr_status act_colours(struct app *app, const struct command_words *words)
{
    static const char *const names[] = {"grey", "inverse", "perceptual", "diverging", NULL};
    double ends[2] = {app->slices.low, app->slices.high};
    int map = 0;
    LR_TRY(command_choice(&app->log, words, 1, names, &map));
    for (int k = 2; k < words->count; k++) LR_TRY(command_real(&app->log, words, k, &ends[k - 2]));
    if (words->count == 3 || (words->count == 4 && !(ends[0] < ends[1])))
        return lr_error(&app->log, LR_BAD_INPUT, "colours go from a number to a larger one");
    app->slices.colours = (lr_colour_map)map;
    app_set_window(app, ends[0], ends[1]);
    return LR_OK;
}

static lr_status act_camera(struct app *app, const struct command_words *words)
{
    double values[6] = {0};
    LR_TRY(command_reals(&app->log, words, values));
    app->camera.turn_deg = values[0];
    app->camera.height_deg = fmin(fmax(values[1], -89.9), 89.9);
    app->camera.distance_mm = words->count > 3 ? fmax(values[2], 1.0) : app->camera.distance_mm;
    for (int k = 0; k < 3 && words->count > 4 + k; k++) app->camera.at_mm[k] = values[3 + k];
    return LR_OK;
}

static lr_status act_alone(struct app *app, const struct command_words *words)
{
    if (strcmp(words->words[0], "fit") == 0)
        app_fit(app);
    else
        app->wants_quit = true;
    return LR_OK;
}

static lr_status act_image(struct app *app, const struct command_words *words)
{
    int which = 0;
    LR_TRY(command_choice(&app->log, words, 1, scene_image_words, &which));
    if (app->draw->images[which] == NULL)
        return lr_error(&app->log, LR_FAILED, "there is no %s to show", scene_image_words[which]);
    app_show_image(app, (enum draw_image)which);
    return LR_OK;
}

static lr_status run_size(struct app *app, const struct command_words *words, int call, bool *is_waiting)
{
    struct input_event event = {.kind = INPUT_SIZE};
    LR_TRY(command_reals(&app->log, words, event.at));
    if (event.at[0] < 1.0 || event.at[1] < 1.0 || event.at[0] > 16384.0 || event.at[1] > 16384.0)
        return lr_error(&app->log, LR_BAD_INPUT, "windows have 1 to 16384 pixels a side");
    if (call == 0) window_push(app->window, &event);
    *is_waiting = call < 1;
    return LR_OK;
}

/* --- mouse and keys --- */

/* Steps that move the mouse or press a key. Each event is handled in a separate frame. The word after the numbers of
 * a drag or of the wheel is a button, or a key that is held down. */
static lr_status run_input(struct app *app, const struct command_words *words, int call, bool *is_waiting)
{
    const char *name = words->words[0];
    const bool is_key = strcmp(name, "key") == 0, is_drag = strcmp(name, "drag") == 0;
    double at[4] = {0};
    static const char *const ways[] = {"left", "right", "middle", "shift", "control", NULL};
    const int numbers = is_drag ? 4 : is_key || strcmp(name, "scroll") == 0 ? 1 : 2;
    int count = 0, way = 0;
    for (int k = 0; k < numbers && !is_key; k++) LR_TRY(command_real(&app->log, words, 1 + k, &at[k]));
    if (words->count > 1 + numbers) LR_TRY(command_choice(&app->log, words, 1 + numbers, ways, &way));
    const struct input_event there = {.at = {at[0], at[1]},
                                      .button = way < INPUT_NUM_BUTTONS ? way : INPUT_LEFT,
                                      .modifiers = way == 3   ? INPUT_SHIFT
                                                   : way == 4 ? INPUT_CONTROL
                                                              : 0};
    struct input_event events[5] = {there, there, there, there, there};
    if (is_key) {
        static const struct {
            const char *name;
            int key;
        } keys[] = {{"escape", INPUT_KEY_ESCAPE},  {"enter", INPUT_KEY_ENTER},
                    {"tab", INPUT_KEY_TAB},        {"backspace", INPUT_KEY_BACKSPACE},
                    {"left", INPUT_KEY_LEFT},      {"right", INPUT_KEY_RIGHT},
                    {"up", INPUT_KEY_UP},          {"down", INPUT_KEY_DOWN},
                    {"pageup", INPUT_KEY_PAGE_UP}, {"pagedown", INPUT_KEY_PAGE_DOWN},
                    {"f1", INPUT_KEY_F1}};
        const char *word = words->words[1];
        const char letter = word[0] >= 'a' && word[0] <= 'z' ? (char)(word[0] - 32) : word[0];
        int key = word[1] == '\0' && letter >= 32 ? letter : 0;
        for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
            if (strcmp(keys[k].name, word) == 0) key = keys[k].key;
        if (strcmp(word, "?") == 0) key = '/'; /* "?" is on the key of "/" */
        events[0].key = events[1].key = key;
        if (key == 0) return lr_error(&app->log, LR_BAD_INPUT, "there is no key %s", words->words[1]);
        events[0].is_down = true;
        events[0].kind = events[1].kind = INPUT_KEY;
        count = 2;
    } else if (strcmp(name, "scroll") == 0) {
        events[count++] = (struct input_event){.kind = INPUT_SCROLL,
                                               .at = {app->mouse[0], app->mouse[1]},
                                               .by = {0.0, at[0]},
                                               .modifiers = there.modifiers};
    } else {
        events[count++].kind = INPUT_MOVE;
    }
    if (is_drag || strcmp(name, "click") == 0) {
        events[count].is_down = true;
        events[count++].kind = INPUT_BUTTON;
        for (int k = 1; k <= 2 && is_drag; k++) { /* first to the middle, then to the end */
            events[count] = (struct input_event){.kind = INPUT_MOVE};
            for (int a = 0; a < 2; a++) events[count].at[a] = k == 1 ? 0.5 * (at[a] + at[2 + a]) : at[2 + a];
            count++;
        }
        if (is_drag) memcpy(events[count].at, &at[2], sizeof(events[count].at));
        events[count++].kind = INPUT_BUTTON;
    }
    if (call < count) window_push(app->window, &events[call]);
    *is_waiting = call <= count;
    return LR_OK;
}

static lr_status run_type(struct app *app, const struct command_words *words, int call, bool *is_waiting)
{
    const char *text = words->words[1];
    if (call < (int)strlen(text))
        window_push(app->window, &(struct input_event){.kind = INPUT_TEXT, .code = (unsigned char)text[call]});
    *is_waiting = call <= (int)strlen(text);
    return LR_OK;
}

/* --- values --- */

static const double look_again_seconds = 0.02;

/* Asks all tools for a value, and writes it as text. errors: LR_BAD_INPUT, logged, if no tool has the value. */
static lr_status find_value(struct app *app, const char *name, struct command_value *value, char text[COMMAND_TEXT])
{
    bool is_there = false;
    for (int k = 0; app->tools[k] != NULL && !is_there; k++)
        is_there = app->tools[k]->get_value != NULL && app->tools[k]->get_value(app, name, value);
    if (!is_there) {
        char meant[64];
        return lr_error(&app->log, LR_BAD_INPUT, "there is no value %s (docs/guide/viewer-scripts.md lists them)%s",
                        name, known_words_suggest(&value->known, name, meant));
    }
    if (value->text[0] != '\0')
        snprintf(text, COMMAND_TEXT, "%s", value->text);
    else if (isnan(value->number)) /* a NaN is printed without its sign */
        snprintf(text, COMMAND_TEXT, "nan");
    else
        snprintf(text, COMMAND_TEXT, "%.17g", value->number);
    return LR_OK;
}

/* Prints a value, or compares it with the expected one. */
static lr_status act_value(struct app *app, const struct command_words *words)
{
    char text[COMMAND_TEXT];
    struct command_value value = {0};
    double wanted, tolerance = 0.0;
    LR_TRY(find_value(app, words->words[1], &value, text));
    if (strcmp(words->words[0], "print") == 0) {
        printf("%s %s\n", words->words[1], text);
        return LR_OK;
    }

    if (value.text[0] != '\0') {
        return strcmp(value.text, words->words[2]) == 0
                   ? LR_OK
                   : lr_error(&app->log, LR_FAILED, "%s is \"%s\", expected \"%s\"", words->words[1], value.text,
                              words->words[2]);
    }
    LR_TRY(command_real(&app->log, words, 2, &wanted));
    if (words->count > 3) LR_TRY(command_real(&app->log, words, 3, &tolerance));
    if (!(fabs(value.number - wanted) <= tolerance)) {
        return lr_error(&app->log, LR_FAILED, "%s is %.17g, expected %.17g within %g", words->words[1], value.number,
                        wanted, tolerance);
    }
    return LR_OK;
}

/* Lets a person use the window, and prints the values whenever they change. */
static lr_status run_stay(struct app *app, const struct command_words *words, int call, bool *is_waiting)
{
    *is_waiting = true;
    for (int k = 1; k < words->count; k++) {
        struct command_value value = {0};
        char text[COMMAND_TEXT];
        LR_TRY(find_value(app, words->words[k], &value, text));
        if (call == 0 || strcmp(text, app->watched[k - 1]) != 0) {
            snprintf(app->watched[k - 1], COMMAND_TEXT, "%s", text);
            printf("%s %s\n", words->words[k], text);
            fflush(stdout);
        }
    }
    window_wait(app->window, look_again_seconds);
    return LR_OK;
}

/* --- values of the window, the camera and the scene --- */

static bool get_value(struct app *app, const char *name, struct command_value *value)
{
    static const char *const axes[] = {"none", "x", "y", "z"};
    const struct probe *probe = &app->probe;
    const struct pick_hit *hit = &probe->hit;
    const struct ui_reading *reading = &app->reading;
    const struct command_number numbers[] = {
        {"camera.turn_deg", app->camera.turn_deg},
        {"camera.height_deg", app->camera.height_deg},
        {"camera.distance_mm", app->camera.distance_mm},
        {"help", app->shows_help},
        {"lors", !app->hides_lors},
        {"light", app->is_light},
        {"folded.study", app->folds[0]},
        {"folded.tools", app->folds[1]},
        {"frames", (double)app->num_frames},
        {"frames_per_second", app->frame_s > 0.0 ? 1.0 / app->frame_s : 0.0},
        {"longest_frame_s", app->longest_frame_s},
        {"hover.module", hit->module},
        {"hover.value", probe->value},
        {"hover.tube", probe->tube},
        {"hover.second", probe->second},
        {0},
    };
    char at[COMMAND_TEXT], slices[COMMAND_TEXT], window[64], mouse[64], crystal[64], voxel[64], point[COMMAND_TEXT];
    char bar[COMMAND_TEXT], curve[64] = "none";
    snprintf(window, sizeof(window), "%dx%d", app->window->size[0], app->window->size[1]);
    snprintf(mouse, sizeof(mouse), "%.10g,%.10g", app->mouse[0], app->mouse[1]);
    snprintf(crystal, sizeof(crystal), "%d,%d", hit->module >= 0 ? hit->crystal[0] : -1,
             hit->module >= 0 ? hit->crystal[1] : -1);
    snprintf(voxel, sizeof(voxel), "%d,%d,%d", probe->voxel[0], probe->voxel[1], probe->voxel[2]);
    scene_describe_probe(app, bar, sizeof(bar));
    if (reading->index >= 0) snprintf(curve, sizeof(curve), "%.9g,%.9g", reading->x, reading->value);
    const struct command_text texts[] = {
        {"camera.at_mm", command_write_place(app->camera.at_mm, at)},
        {"slices.at_mm", command_write_place(app->slices.at_mm, slices)},
        {"tool", app->tool->name},
        {"window.size", window},
        {"mouse", mouse},
        {"message", app->num_messages > 0 ? app->messages[(app->num_messages - 1) % APP_MESSAGES].text : "none"},
        {"hover.crystal", crystal},
        {"hover.slice", axes[probe->axis + 1]},
        {"hover.voxel", voxel},
        {"hover.mm", command_write_place(probe->point_mm, point)},
        {"hover.text", bar[0] != '\0' ? bar : "none"},
        {"curve", curve},
        {0},
    };
    const bool is_there = command_pick(numbers, texts, name, value);
    if (strcmp(name, "longest_frame_s") == 0) app->longest_frame_s = 0.0; /* longest since the last reading */
    return is_there;
}

static const struct command commands[] = {
    {"wait", "[SECONDS [anyway]]", 0, 2, .run = run_wait},
    {"frames", "COUNT", 1, 1, .run = run_frames},
    {"tool", "voxel|lor|maps|live|doctor|direct|measure", 1, 1, .act = act_tool},
    {"show", "scanner|volume|x|y|z|help|messages|lors|open|smooth|projection|light|study|tools on|off", 2, 2,
     .act = act_show},
    {"slice", "x|y|z MM", 2, 2, .act = act_axis},
    {"colours", "grey|inverse|perceptual|diverging [LOW HIGH]", 1, 3, .act = act_colours},
    {"camera", "TURN_DEG HEIGHT_DEG [DISTANCE_MM [X Y Z]]", 2, 6, .act = act_camera},
    {"along", "x|y|z", 1, 1, .act = act_axis},
    {"fit", "", 0, 0, .act = act_alone},
    {"set",
     "module|rays|samples|steps|exact|absorption|relaxation|fall|azimuths|tilts|counts|tof|frame|whole|guesses|local "
     "NUMBER, or backend|algorithm|family|elements|kernel NAME",
     2, 2, .act = act_tool},
    {"image", "image|mu|tube|sensitivity|live|kernel|histo|second", 1, 1, .act = act_image},
    {"size", "WIDTH HEIGHT", 2, 2, .run = run_size},
    {"click", "X Y [right|middle|shift|control]", 2, 3, .run = run_input},
    {"move", "X Y", 2, 2, .run = run_input},
    {"drag", "X Y TO_X TO_Y [right|middle|shift|control]", 4, 5, .run = run_input},
    {"scroll", "LINES [control]", 1, 2, .run = run_input},
    {"key", "NAME [shift|control]", 1, 2, .run = run_input},
    {"type", "TEXT", 1, 1, .run = run_type},
    {"screenshot", "FILE.png", 1, 1, .run = run_frames},
    {"print", "VALUE", 1, 1, .act = act_value, .looks = true},
    {"expect", "VALUE NUMBER|TEXT [TOLERANCE]", 2, 3, .act = act_value, .looks = true},
    {"stay", "[VALUE...]", 0, COMMAND_WORDS - 1, .run = run_stay},
    {"quit", "", 0, 0, .act = act_alone},
    {0},
};

const struct viewer_tool window_tool = {.commands = commands, .get_value = get_value};
