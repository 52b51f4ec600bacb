/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Steps that ask for values. */
#include "base/log.h"
#include "viewer/script/command.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double look_again_seconds = 0.02;

/* Values are those of the next frame, unless the step before has just waited for that. */
static bool waits_for_values(struct app *app, int turn)
{
    const bool waits = turn < 1 && app->asked_frame != app->num_frames;
    app->asked_frame = waits ? app->asked_frame : app->num_frames;
    return waits;
}

static void write_value(const struct command_value *value, char text[COMMAND_TEXT])
{
    if (value->text[0] != '\0')
        snprintf(text, COMMAND_TEXT, "%s", value->text);
    else if (isnan(value->number)) /* of either sign */
        snprintf(text, COMMAND_TEXT, "nan");
    else
        snprintf(text, COMMAND_TEXT, "%.17g", value->number);
}

lr_status command_run_print(struct app *app, const struct command_words *words, int turn, bool *is_waiting)
{
    char text[COMMAND_TEXT];
    struct command_value value = {0};
    *is_waiting = waits_for_values(app, turn);
    if (*is_waiting) return LR_OK;
    LR_TRY(command_value(app, words->words[1], &value));
    write_value(&value, text);
    printf("%s %s\n", words->words[1], text);
    return LR_OK;
}

lr_status command_run_expect(struct app *app, const struct command_words *words, int turn, bool *is_waiting)
{
    struct command_value value = {0};
    double wanted, tolerance = 0.0;
    *is_waiting = waits_for_values(app, turn);
    if (*is_waiting) return LR_OK;
    LR_TRY(command_value(app, words->words[1], &value));
    if (value.text[0] != '\0') {
        return strcmp(value.text, words->words[2]) == 0
                   ? LR_OK
                   : lr_error(&app->log, LR_FAILED, "%s is \"%s\", expected \"%s\"", words->words[1], value.text,
                              words->words[2]);
    }
    LR_TRY(command_real(app, words, 2, &wanted));
    if (words->count > 3) LR_TRY(command_real(app, words, 3, &tolerance));
    if (!(fabs(value.number - wanted) <= tolerance)) {
        return lr_error(&app->log, LR_FAILED, "%s is %.17g, expected %.17g within %g", words->words[1], value.number,
                        wanted, tolerance);
    }
    return LR_OK;
}

/* A person's turn: values are told of as they change. */
lr_status command_run_stay(struct app *app, const struct command_words *words, int turn, bool *is_waiting)
{
    *is_waiting = true;
    for (int k = 1; k < words->count; k++) {
        struct command_value value = {0};
        char text[COMMAND_TEXT];
        LR_TRY(command_value(app, words->words[k], &value));
        write_value(&value, text);
        if (turn == 0 || strcmp(text, app->watched[k - 1]) != 0) {
            snprintf(app->watched[k - 1], COMMAND_TEXT, "%s", text);
            printf("%s %s\n", words->words[k], text);
            fflush(stdout);
        }
    }
    window_wait(app->window, look_again_seconds);
    return LR_OK;
}
