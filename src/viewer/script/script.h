/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Scripts of the viewer: files with one step on each line. The tables of the tools define the commands;
 * docs/guide/viewer-scripts.md lists them. Words are separated by blanks. "..." makes a word that contains blanks.
 * The rest of a line after # is ignored. */
#pragma once

#include <lr/log.h>
#include <stdbool.h>

struct app;
struct script;
struct viewer_tool;

enum { COMMAND_WORDS = 16, COMMAND_TEXT = 256 };

struct command_words {
    const char *words[COMMAND_WORDS]; /* the first word is the command's name */
    int count;
};

struct command {
    const char *name, *words; /* words: the command's arguments, as shown to people: "X Y Z" */
    int least, most;          /* smallest and largest number of arguments */
    /* Exactly one of `act` and `run` is set. Most steps have `act`, which completes at once. */
    lr_status (*act)(struct app *app, const struct command_words *words);
    /* Sets *is_waiting if the step is not complete. The step is then called again before the next frame. call:
     * number of earlier calls. */
    lr_status (*run)(struct app *app, const struct command_words *words, int call, bool *is_waiting);
    bool looks; /* the step reads what is shown, so it waits for a frame if an earlier step may have changed
                   something */
};

/* Words from which the nearest one is suggested to a person who wrote an unknown word. Words beyond the array's end are
 * not suggested. */
struct known_words {
    const char *words[192];
    int count;
};
void known_words_add(struct known_words *known, const char *word);

/* Writes "; did you mean 'wait'?", or "" if no known word is near. */
const char *known_words_suggest(const struct known_words *known, const char *word, char text[64]);

/* A value for `print` and `expect`. */
struct command_value {
    double number;
    char text[COMMAND_TEXT];  /* "" = the value is a number */
    struct known_words known; /* names of values that were compared with the name, and differ from it */
};

/* Tables of values; each table ends with a NULL name. command_pick sets the value that belongs to the given name. The
 * function returns false, and adds the tables' names to the known ones, if no table contains this name. */
struct command_number {
    const char *name;
    double number;
};
struct command_text {
    const char *name, *text;
};
bool command_pick(const struct command_number *numbers, const struct command_text *texts, const char *name,
                  struct command_value *value);

/* Writes a vector: "1.000000,2.000000,3.000000" */
const char *command_write_place(const double mm[3], char text[COMMAND_TEXT]);

/* Logs that the word is none of the known ones, which are listed. Returns LR_BAD_INPUT. */
lr_status command_refuse(const lr_log *log, const char *word, const struct known_words *known);

/* These functions parse numbers and choices. A choice is the word's index in names, which end with NULL. errors:
 * LR_BAD_INPUT, logged. */
lr_status command_real(const lr_log *log, const struct command_words *words, int at, double *value);
lr_status command_reals(const lr_log *log, const struct command_words *words, double *values); /* all later words */
lr_status command_integer(const lr_log *log, const struct command_words *words, int at, int *value);
lr_status command_choice(const lr_log *log, const struct command_words *words, int at, const char *const *names,
                         int *value);

/* The command with that name; NULL if no tool has one. */
const struct command *command_find(const struct viewer_tool *const *tools, const char *name);

/* Reads the steps. errors: NULL, LR_BAD_INPUT if a step does not exist or has wrong arguments. The message gives
 * file and line. */
struct script *script_read(const char *path, const struct viewer_tool *const *tools, const lr_log *log);
void script_destroy(struct script *script); /* NULL is allowed */

/* Runs the steps that come before the next frame. A waiting step is called again before each frame. The viewer ends
 * after the last step, or after a step that failed. */
lr_status script_run(struct script *script, struct app *app);
