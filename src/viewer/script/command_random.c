/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The step `random`: whatever hands can do to the window, from a seed, to find out what it stands.
 * Dropped files are those of the working folder. */
#include "base/log.h"
#include "io/files/file_kind.h"
#include "viewer/script/command.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FILES = 256 };

/* --- chance --- */

/* SplitMix64, begun anew in each step: a step depends on the seed and its number alone. */
struct dice {
    uint64_t state;
};

static double throw_dice(struct dice *dice)
{
    uint64_t z = (dice->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1.0p-53;
}

static int choose(struct dice *dice, int count)
{
    return (int)(throw_dice(dice) * count);
}

/* --- what hands do --- */

/* Often on the panels, at times beside the window. */
static void choose_place(const struct app *app, struct dice *dice, double at[2])
{
    int size[2];
    window_size(app->window, size);
    const double where = throw_dice(dice);
    at[0] = floor(throw_dice(dice) * size[0]);
    at[1] = floor(throw_dice(dice) * size[1]);
    if (where < 0.4) {
        at[0] = size[0] - floor(400.0 * throw_dice(dice));
    } else if (where < 0.6) {
        at[0] = floor(290.0 * throw_dice(dice));
    } else if (where > 0.95) {
        at[0] -= 2.0 * size[0] * throw_dice(dice);
        at[1] += 3.0 * size[1] * throw_dice(dice);
    }
}

static void move(struct app *app, struct dice *dice)
{
    struct input_event event = {.kind = INPUT_MOVE};
    choose_place(app, dice, event.at);
    window_push(app->window, &event);
}

static void press(struct app *app, struct dice *dice)
{
    struct input_event event = {.kind = INPUT_BUTTON, .is_down = choose(dice, 2)};
    event.button = choose(dice, 4) > 0 ? INPUT_LEFT : choose(dice, INPUT_NUM_BUTTONS);
    choose_place(app, dice, event.at);
    window_push(app->window, &event);
}

static void click(struct app *app, struct dice *dice)
{
    struct input_event event = {.kind = INPUT_BUTTON, .is_down = true};
    choose_place(app, dice, event.at);
    window_push(app->window, &event);
    if (choose(dice, 3) == 0) /* drag */
        move(app, dice);
    event.is_down = false;
    window_push(app->window, &event);
}

static void scroll(struct app *app, struct dice *dice)
{
    struct input_event event = {.kind = INPUT_SCROLL};
    choose_place(app, dice, event.at);
    event.by[0] = 4.0 * throw_dice(dice) - 2.0;
    event.by[1] = choose(dice, 20) == 0 ? 1e6 * throw_dice(dice) : 20.0 * throw_dice(dice) - 10.0;
    window_push(app->window, &event);
}

static void press_key(struct app *app, struct dice *dice)
{
    struct input_event event = {.kind = INPUT_KEY, .is_down = true};
    event.key = choose(dice, 3) == 0 ? 32 + choose(dice, 96) : INPUT_KEY_ESCAPE + choose(dice, INPUT_NUM_KEYS - 256);
    event.modifiers = choose(dice, 4) == 0 ? (unsigned)choose(dice, 8) : 0u;
    window_push(app->window, &event);
    if (choose(dice, 20) > 0) {
        event.is_down = false;
        window_push(app->window, &event);
    }
}

static void type(struct app *app, struct dice *dice)
{
    static const char usual[] = "0123456789.-+e ";
    struct input_event event = {.kind = INPUT_TEXT};
    for (int k = choose(dice, 6); k >= 0; k--) {
        event.code =
            choose(dice, 8) > 0 ? (uint32_t)usual[choose(dice, sizeof(usual) - 1)] : (uint32_t)choose(dice, 0x11ffff);
        window_push(app->window, &event);
    }
}

static void resize(struct app *app, struct dice *dice)
{
    struct input_event event = {.kind = INPUT_SIZE, .at = {1280.0, 800.0}};
    const int how = choose(dice, 6);
    for (int k = 0; k < 2 && how < 4; k++) event.at[k] = how == 0 ? 1.0 : 1.0 + choose(dice, how == 1 ? 40 : 1400);
    window_push(app->window, &event);
}

static void change_tool(struct app *app, struct dice *dice)
{
    app->tool = (enum app_tool)choose(dice, NUM_TOOLS);
    app->wants_tool = true;
}

/* --- files --- */

static void drop(struct app *app, struct dice *dice)
{
    static char names[MOST_FILES][LR_FILE_NAME];
    struct input_event event = {.kind = INPUT_DROP, .path = "./no such file.yaml"};
    const int count = lr_file_names(".", names, MOST_FILES);
    if (count > 0 && choose(dice, 10) > 0) snprintf(event.path, sizeof(event.path), "./%s", names[choose(dice, count)]);
    window_push(app->window, &event);
}

/* --- the step --- */

static const struct {
    void (*run)(struct app *app, struct dice *dice);
    int share;
} deeds[] = {{move, 16}, {click, 30}, {press, 12}, {scroll, 8},     {press_key, 12},
             {type, 6},  {resize, 6}, {drop, 7},   {change_tool, 3}};

static void do_something(struct app *app, struct dice *dice)
{
    int at = choose(dice, 100);
    for (size_t k = 0; k < sizeof(deeds) / sizeof(deeds[0]); k++) {
        at -= deeds[k].share;
        if (at < 0) {
            deeds[k].run(app, dice);
            return;
        }
    }
}

lr_status command_run_random(struct app *app, const struct command_words *words, int turn, bool *is_waiting)
{
    int count, seed;
    LR_TRY(command_integer(app, words, 1, &count));
    LR_TRY(command_integer(app, words, 2, &seed));
    if (turn == 0) {
        printf("random %d steps from seed %d\n", count, seed);
        fflush(stdout);
    }
    struct dice dice = {(uint64_t)seed << 32 ^ (uint64_t)turn};
    *is_waiting = app->is_pictured = turn < count;
    if (*is_waiting)
        do_something(app, &dice);
    else
        app->failure = LR_OK; /* files that cannot be read are part of it */
    return LR_OK;
}
