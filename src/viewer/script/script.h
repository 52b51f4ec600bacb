/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Scripts of the viewer, from a file with one step a line: which commands there are is in the tables of the tools.
 * docs/guide/viewer-scripts.md lists them. Words are separated by blanks; "..." holds blanks; the rest of a line
 * after # is not read. */
#ifndef LR_VIEWER_SCRIPT_H
#define LR_VIEWER_SCRIPT_H

#include <lr/log.h>
#include <stdbool.h>

struct app;
struct script;
struct viewer_tool;

enum { COMMAND_WORDS = 16, COMMAND_TEXT = 256 };

struct command_words {
    const char *words[COMMAND_WORDS]; /* the command's name first */
    int count;
};

struct command {
    const char *name, *words; /* what follows the name, for people: "X Y Z" */
    int least, most;          /* how many words follow */
    /* One of the two. Most steps are done at once. */
    lr_status (*act)(struct app *app, const struct command_words *words);
    /* *is_waiting: set where the step is not done yet; it is called again before the next frame. call: counts calls
     * from 0. */
    lr_status (*run)(struct app *app, const struct command_words *words, int call, bool *is_waiting);
};

/* A word that can follow the command `set`. */
struct command_setting {
    const char *name;
    lr_status (*set)(struct app *app, const struct command_words *words); /* "set", name, value */
};

/* A value for `print` and `expect`. */
struct command_value {
    double number;
    char text[COMMAND_TEXT]; /* "" = a number */
};

/* Tables of values, which end with a name of NULL. Sets the one of that name; false: there is none. */
struct command_number {
    const char *name;
    double number;
};
struct command_text {
    const char *name, *text;
};
bool command_pick(const struct command_number *numbers, const struct command_text *texts, const char *name,
                  struct command_value *value);

/* "1.000000,2.000000,3.000000" */
const char *command_write_place(const double mm[3], char text[COMMAND_TEXT]);

/* Numbers and choices of words; errors: LR_BAD_INPUT, logged. A choice is the word's place among names,
 * which end with NULL. */
lr_status command_real(const lr_log *log, const struct command_words *words, int at, double *value);
lr_status command_reals(const lr_log *log, const struct command_words *words, double *values); /* all that follow */
lr_status command_integer(const lr_log *log, const struct command_words *words, int at, int *value);
lr_status command_choice(const lr_log *log, const struct command_words *words, int at, const char *const *names,
                         int *value);

/* The command of that name; NULL: no tool has one. */
const struct command *command_find(const struct viewer_tool *const *tools, const char *name);

/* Reads the steps.
 * errors: NULL; LR_BAD_INPUT with the file and line of a step that does not exist or has other words than it
 * takes. */
struct script *script_read(const char *path, const struct viewer_tool *const *tools, const lr_log *log);
void script_destroy(struct script *script); /* NULL is allowed */

/* Does the steps that are due before a frame. A step that waits is asked again before the next frame. After the last
 * one, and after a step that failed, the viewer ends. */
lr_status script_run(struct script *script, struct app *app);

#endif
