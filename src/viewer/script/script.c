/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/script/script.h"

#include "base/log.h"
#include "base/mem.h"
#include "io/files/keyed_text.h"
#include "viewer/script/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 20 };

struct step {
    const struct command *command;
    struct command_words words; /* in the script's text */
    int line;
};

struct script {
    const lr_log *log;
    char path[1024];
    char *text;
    struct step *steps;
    int num_steps, next, turn;
};

/* --- reading --- */

/* Cuts the next word off; the text is changed. NULL: the line has no more. */
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

static lr_status read_words(struct script *script, char *line, struct step *step)
{
    struct command_words *words = &step->words;
    for (char *word = cut_word(&line); word != NULL; word = cut_word(&line)) {
        if (words->count == COMMAND_WORDS) {
            return lr_error(script->log, LR_BAD_INPUT, "%s:%d: more than %d words", script->path, step->line,
                            COMMAND_WORDS);
        }
        words->words[words->count++] = word;
    }
    return LR_OK;
}

static lr_status read_step(struct script *script, char *line, int number)
{
    struct step step = {.line = number};
    LR_TRY(read_words(script, line, &step));
    if (step.words.count == 0) return LR_OK;
    const char *name = step.words.words[0];
    step.command = command_find(name);
    if (step.command == NULL) {
        return lr_error(script->log, LR_BAD_INPUT,
                        "%s:%d: there is no step %s: docs/guide/viewer-scripts.md lists them", script->path, number,
                        name);
    }
    const int given = step.words.count - 1;
    if (given < step.command->least || given > step.command->most) {
        return lr_error(script->log, LR_BAD_INPUT, "%s:%d: it is %s %s, and here are %d words", script->path, number,
                        name, step.command->words, given);
    }
    script->steps[script->num_steps++] = step;
    return LR_OK;
}

static int count_lines(const char *text)
{
    int count = 1;
    for (; *text != '\0'; text++) count += *text == '\n';
    return count;
}

static lr_status read_steps(struct script *script)
{
    script->steps = lr_alloc(count_lines(script->text), sizeof(*script->steps), "the steps of a script", script->log);
    if (script->steps == NULL) return LR_FAILED;
    int number = 1;
    for (char *line = script->text; line != NULL; number++) {
        char *end = strchr(line, '\n');
        if (end != NULL) *end = '\0';
        LR_TRY(read_step(script, line, number));
        line = end != NULL ? end + 1 : NULL;
    }
    return LR_OK;
}

struct script *script_read(const char *path, const lr_log *log)
{
    struct script *script = lr_alloc(1, sizeof(*script), "a script", log);
    if (script == NULL) return NULL;
    int64_t count;
    script->log = log;
    snprintf(script->path, sizeof(script->path), "%s", path);
    script->text = lr_file_bytes(path, MOST_BYTES, &count, log);
    if (script->text == NULL || read_steps(script) != LR_OK) {
        script_destroy(script);
        return NULL;
    }
    return script;
}

void script_destroy(struct script *script)
{
    if (script != NULL) {
        free(script->text);
        free(script->steps);
        free(script);
    }
}

/* --- running --- */

lr_status script_run(struct script *script, struct app *app)
{
    while (script->next < script->num_steps && !app->wants_quit) {
        const struct step *step = &script->steps[script->next];
        bool is_waiting = false;
        const lr_status status = step->command->act != NULL
                                     ? step->command->act(app, &step->words)
                                     : step->command->run(app, &step->words, script->turn++, &is_waiting);
        if (status != LR_OK) {
            return lr_error(script->log, status, "%s:%d: %s ended the script", script->path, step->line,
                            step->words.words[0]);
        }
        if (is_waiting) return LR_OK;
        script->next++;
        script->turn = 0;
    }
    app->wants_quit = true;
    return LR_OK;
}
