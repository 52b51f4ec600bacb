/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "gl/compile_log.h"

#include "base/log.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Number of the line that a message is about, and in *words what follows the place; 0 where the
 * message names none. The number of the source string, always 0 here, is skipped. */
static int parse(const char *text, const char **words)
{
    const char *number = strncmp(text, "ERROR: ", 7) == 0 ? text + 7 : text;
    int file, line, column, end = 0;
    if (sscanf(number, "%d:%d(%d): %n", &file, &line, &column, &end) < 3 || end == 0) {
        if (sscanf(number, "%d(%d) : %n", &file, &line, &end) < 2 || end == 0) {
            if (sscanf(number, "%d:%d: %n", &file, &line, &end) < 2 || end == 0) {
                *words = text;
                return 0;
            }
        }
    }
    *words = number + end;
    return line;
}

static bool is_error(const char *text)
{
    return strncmp(text, "error", 5) == 0 || strncmp(text, "ERROR: ", 7) == 0 || strncmp(text, "fatal", 5) == 0 ||
           strncmp(text, "preprocessor error", 18) == 0;
}

/* "shaders/common/x.glsl:12: error: ..."; the message itself where it names no place. */
static bool describe(const struct gl_shader_source *source, const char *text, char *sentence, size_t capacity)
{
    struct gl_shader_place place;
    const char *words;
    const int line = parse(text, &words);
    const bool error = is_error(text) || is_error(words);
    if (line < 1 || !gl_shader_source_place(source, line, &place)) {
        snprintf(sentence, capacity, "%s", text);
        return error;
    }
    snprintf(sentence, capacity, "%s/%s:%d: %s%s in `%s`", source->folder, source->files[place.file], place.line,
             error && !is_error(words) ? "error: " : "", words, place.text);
    return error;
}

void gl_compile_log_report(const lr_log *log, const struct gl_shader_source *source, const char *label,
                           const char *text)
{
    char first[900] = "";
    bool found = false;
    for (const char *at = text; *at != '\0';) {
        const size_t length = strcspn(at, "\n");
        char line[400], sentence[900];
        snprintf(line, sizeof(line), "%.*s", (int)length, at);
        const bool error = describe(source, line, sentence, sizeof(sentence));
        if (error && !found) {
            found = true;
            memcpy(first, sentence, sizeof(first));
        } else if (line[0] != '\0') {
            lr_info(log, "%s", sentence);
        }
        at += length + (at[length] == '\n');
    }
    lr_error(log, LR_FAILED, "%s (program %s)",
             found ? first : "the driver cannot compile a shader and does not say why", label);
}
