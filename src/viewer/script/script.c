/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/script/script.h"

#include "base/log.h"
#include "base/mem.h"
#include "io/files/keyed_text.h"
#include "io/files/regular_file.h"
#include "viewer/app.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- words and values --- */

void known_words_add(struct known_words *known, const char *word)
{
    if (known->count < (int)(sizeof(known->words) / sizeof(known->words[0]))) known->words[known->count++] = word;
}

const char *known_words_suggest(const struct known_words *known, const char *word, char text[64])
{
    const char *near = lr_nearest_word(word, known->words, (size_t)known->count);
    text[0] = '\0';
    if (near != NULL) snprintf(text, 64, "; did you mean '%s'?", near);
    return text;
}

lr_status command_refuse(const lr_log *log, const char *word, const struct known_words *known)
{
    char list[512] = "", meant[64];
    for (int k = 0; k < known->count; k++) {
        const size_t used = strlen(list);
        snprintf(list + used, sizeof(list) - used, "%s%s", k > 0 ? ", " : "", known->words[k]);
    }
    return lr_error(log, LR_BAD_INPUT, "%s is none of what can stand here (%s)%s", word, list,
                    known_words_suggest(known, word, meant));
}

lr_status command_real(const lr_log *log, const struct command_words *words, int at, double *value)
{
    char *end;
    errno = 0;
    *value = strtod(words->words[at], &end);
    if (*end != '\0' || end == words->words[at] || errno == ERANGE || !isfinite(*value))
        return lr_error(log, LR_BAD_INPUT, "%s is not a number", words->words[at]);
    return LR_OK;
}

lr_status command_integer(const lr_log *log, const struct command_words *words, int at, int *value)
{
    double real;
    LR_TRY(command_real(log, words, at, &real));
    if (real != floor(real) || fabs(real) > 1e9)
        return lr_error(log, LR_BAD_INPUT, "%s is not a whole number", words->words[at]);
    *value = (int)real;
    return LR_OK;
}

lr_status command_choice(const lr_log *log, const struct command_words *words, int at, const char *const *names,
                         int *value)
{
    struct known_words known = {.count = 0};
    for (int k = 0; names[k] != NULL; k++) {
        if (strcmp(names[k], words->words[at]) == 0) {
            *value = k;
            return LR_OK;
        }
        known_words_add(&known, names[k]);
    }
    return command_refuse(log, words->words[at], &known);
}

lr_status command_reals(const lr_log *log, const struct command_words *words, double *values)
{
    for (int k = 1; k < words->count; k++) LR_TRY(command_real(log, words, k, &values[k - 1]));
    return LR_OK;
}

bool command_pick(const struct command_number *numbers, const struct command_text *texts, const char *name,
                  struct command_value *value)
{
    for (; numbers->name != NULL; numbers++) {
        if (strcmp(numbers->name, name) == 0) {
            value->number = numbers->number;
            return true;
        }
        known_words_add(&value->known, numbers->name);
    }
    for (; texts->name != NULL; texts++) {
        if (strcmp(texts->name, name) == 0) {
            snprintf(value->text, sizeof(value->text), "%s", texts->text);
            return true;
        }
        known_words_add(&value->known, texts->name);
    }
    return false;
}

const char *command_write_place(const double mm[3], char text[COMMAND_TEXT])
{
    snprintf(text, COMMAND_TEXT, "%.6f,%.6f,%.6f", mm[0], mm[1], mm[2]);
    return text;
}

const struct command *command_find(const struct viewer_tool *const *tools, const char *name)
{
    for (; *tools != NULL; tools++) {
        const struct command *command = (*tools)->commands;
        for (; command != NULL && command->name != NULL; command++)
            if (strcmp(command->name, name) == 0) return command;
    }
    return NULL;
}

/* --- scripts --- */

enum { MOST_BYTES = 1 << 20 };

struct step {
    const struct command *command;
    struct command_words words; /* points into the script's text */
    int line;
};

struct script {
    const lr_log *log;
    char path[1024];
    char *text;
    struct step *steps;
    int num_steps, next, call;
};

/* --- reading --- */

/* Cuts off the next word of a line, and so changes the line. Returns NULL if there are no more words. */
static char *cut_word(char **rest)
{
    char *at = *rest + strspn(*rest, " \t\r");
    if (*at == '\0' || *at == '#') return NULL;
    const bool is_quoted = *at == '"';
    char *word = at + is_quoted;
    char *end = word + strcspn(word, is_quoted ? "\"" : " \t\r");
    *rest = *end != '\0' ? end + 1 : end;
    *end = '\0';
    return word;
}

struct script *script_read(const char *path, const struct viewer_tool *const *tools, const lr_log *log)
{
    struct script *script = lr_alloc(1, sizeof(*script), "a script", log);
    if (script == NULL) return NULL;
    int64_t count, num_lines = 1;
    script->log = log;
    snprintf(script->path, sizeof(script->path), "%s", path);
    (void)lr_file_bytes("", path, MOST_BYTES, &count, &script->text, log);
    if (script->text == NULL) goto failed;
    for (const char *at = script->text; *at != '\0'; at++) num_lines += *at == '\n';
    script->steps = lr_alloc(num_lines, sizeof(*script->steps), "the steps of a script", log);
    if (script->steps == NULL) goto failed;

    char *next = script->text;
    for (int number = 1; next != NULL; number++) {
        struct step step = {.line = number};
        char *line = next, *end = strchr(line, '\n');
        if (end != NULL) *end = '\0';
        next = end != NULL ? end + 1 : NULL;
        for (char *word = cut_word(&line); word != NULL; word = cut_word(&line)) {
            if (step.words.count == COMMAND_WORDS) {
                lr_error(log, LR_BAD_INPUT, "%s:%d: more than %d words", path, number, COMMAND_WORDS);
                goto failed;
            }
            step.words.words[step.words.count++] = word;
        }
        if (step.words.count == 0) continue;

        const char *name = step.words.words[0];
        step.command = command_find(tools, name);
        if (step.command == NULL) {
            struct known_words known = {.count = 0};
            char meant[64];
            for (const struct viewer_tool *const *tool = tools; *tool != NULL; tool++)
                for (const struct command *at = (*tool)->commands; at != NULL && at->name != NULL; at++)
                    known_words_add(&known, at->name);
            lr_error(log, LR_BAD_INPUT, "%s:%d: there is no step %s (docs/guide/viewer-scripts.md lists them)%s", path,
                     number, name, known_words_suggest(&known, name, meant));
            goto failed;
        }
        const int given = step.words.count - 1;
        if (given < step.command->least || given > step.command->most) {
            lr_error(log, LR_BAD_INPUT, "%s:%d: it is %s %s, and here are %d words", path, number, name,
                     step.command->words, given);
            goto failed;
        }
        script->steps[script->num_steps++] = step;
    }
    return script;

failed:
    script_destroy(script);
    return NULL;
}

void script_destroy(struct script *script)
{
    if (script != NULL) lr_free_all(script->text, script->steps, script);
}

/* --- running --- */

lr_status script_run(struct script *script, struct app *app)
{
    while (script->next < script->num_steps && !app->wants_quit) {
        const struct step *step = &script->steps[script->next];
        bool is_waiting = false;
        if (step->command->looks && script->call == 0 && app->asked_frame != app->num_frames) {
            script->call++; /* the next frame shows what earlier steps have changed */
            return LR_OK;
        }
        const lr_status status = step->command->act != NULL
                                     ? step->command->act(app, &step->words)
                                     : step->command->run(app, &step->words, script->call++, &is_waiting);
        if (status != LR_OK) {
            return lr_error(script->log, status, "%s:%d: %s ended the script", script->path, step->line,
                            step->words.words[0]);
        }
        if (is_waiting) return LR_OK;
        app->asked_frame = step->command->looks ? app->num_frames : -1;
        script->next++;
        script->call = 0;
    }
    app->wants_quit = true;
    return LR_OK;
}
