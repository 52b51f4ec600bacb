/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What a step of a script does, and what it can ask for. */
#ifndef LR_VIEWER_COMMAND_H
#define LR_VIEWER_COMMAND_H

#include "viewer/frame/app.h"

enum { COMMAND_WORDS = 16 };

struct command_words {
    const char *words[COMMAND_WORDS]; /* the command's name first */
    int count;
};

struct command {
    const char *name, *words; /* what follows the name, for people: "X Y Z" */
    int least, most;          /* how many words follow */
    /* One of the two. Most steps are done at once. */
    lr_status (*act)(struct app *app, const struct command_words *words);
    /* *is_waiting: set where the step is not done yet; it is called again before the next frame.
     * turn: how often it has been called before. */
    lr_status (*run)(struct app *app, const struct command_words *words, int turn, bool *is_waiting);
};

/* NULL: there is none of that name. */
const struct command *command_find(const char *name);

/* Numbers and choices of words; says what is wrong. */
lr_status command_real(const struct app *app, const struct command_words *words, int at, double *value);
lr_status command_integer(const struct app *app, const struct command_words *words, int at, int *value);
/* The word's place among names, which end with NULL. */
lr_status command_choice(const struct app *app, const struct command_words *words, int at, const char *const *names,
                         int *value);

/* Steps in files of their own, as struct command has them. */
lr_status command_run_random(struct app *app, const struct command_words *words, int turn, bool *is_waiting);
lr_status command_run_print(struct app *app, const struct command_words *words, int turn, bool *is_waiting);
lr_status command_run_expect(struct app *app, const struct command_words *words, int turn, bool *is_waiting);
lr_status command_run_stay(struct app *app, const struct command_words *words, int turn, bool *is_waiting);

/* What can be asked for by `print` and `expect`: "voxel.weight". A number, or text where *text is
 * set. errors: LR_BAD_INPUT, with the names there are. */
struct command_value {
    double number;
    char text[COMMAND_TEXT]; /* "" = a number */
};
lr_status command_value(struct app *app, const char *name, struct command_value *value);

struct command_source {
    const char *name;
    void (*get)(struct app *app, struct command_value *value);
};
extern const struct command_source command_state_values[]; /* the window, the camera, files */
extern const int command_num_state_values;

#endif
