/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/keyed_text.h"

#include "base/log.h"
#include "base/mem.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* --- files --- */

bool lr_path_ends_with(const char *path, const char *ending)
{
    const size_t length = strlen(path), tail = strlen(ending);
    if (length < tail) {
        return false;
    }
    for (size_t k = 0; k < tail; k++) {
        if (tolower((unsigned char)path[length - tail + k]) != tolower((unsigned char)ending[k])) {
            return false;
        }
    }
    return true;
}

static lr_status check_file(const char *path, int64_t most, int64_t *count, const lr_log *log)
{
    struct stat facts;
    if (stat(path, &facts) != 0) {
        return lr_error(log, LR_BAD_INPUT, "%s: cannot be opened: %s", path, strerror(errno));
    }
    if (!S_ISREG(facts.st_mode)) {
        return lr_error(log, LR_BAD_INPUT, "%s: is %s: give a file", path,
                        S_ISDIR(facts.st_mode) ? "a folder" : "no regular file");
    }
    if (facts.st_size > most) {
        return lr_error(log, LR_BAD_INPUT, "%s: %lld bytes are too many: at most %lld here", path,
                        (long long)facts.st_size, (long long)most);
    }
    *count = facts.st_size;
    return LR_OK;
}

char *lr_file_bytes(const char *path, int64_t most, int64_t *count, const lr_log *log)
{
    if (check_file(path, most, count, log) != LR_OK) {
        return NULL;
    }
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        lr_error(log, LR_BAD_INPUT, "%s: cannot be opened: %s", path, strerror(errno));
        return NULL;
    }
    char *bytes = lr_alloc(*count + 1, 1, "a file", log);
    if (bytes != NULL && fread(bytes, 1, (size_t)*count, file) != (size_t)*count) {
        lr_error(log, LR_BAD_INPUT, "%s: cannot be read to its end", path);
        free(bytes);
        bytes = NULL;
    }
    fclose(file);
    return bytes;
}

/* --- lines --- */

static char *trim(char *text)
{
    text += strspn(text, " \t");
    size_t length = strlen(text);
    while (length > 0 && isspace((unsigned char)text[length - 1])) {
        text[--length] = '\0';
    }
    return text;
}

/* In place: it never gets longer. */
static char *normalise(char *key)
{
    size_t used = 0;
    for (const char *from = key; *from != '\0'; from++) {
        const bool blank = isspace((unsigned char)*from) || strchr("_!%", *from) != NULL;
        if (!blank) {
            key[used++] = (char)tolower((unsigned char)*from);
        } else if (used > 0 && key[used - 1] != ' ') {
            key[used++] = ' ';
        }
    }
    used -= used > 0 && key[used - 1] == ' ';
    key[used] = '\0';
    return key;
}

static int count_lines(const char *bytes)
{
    int count = 1;
    for (; *bytes != '\0'; bytes++) {
        count += *bytes == '\n';
    }
    return count;
}

static void split(struct lr_keyed_text *text, const struct lr_keyed_dialect *dialect)
{
    char *line = text->bytes;
    for (int number = 1; line != NULL; number++) {
        char *next = strchr(line, '\n');
        if (next != NULL) {
            *next++ = '\0';
        }
        char *comment = strchr(line, dialect->comment);
        if (comment != NULL) {
            *comment = '\0';
        }
        char *sign = strstr(line, dialect->separator);
        if (sign != NULL) {
            *sign = '\0';
            text->lines[text->count++] = (struct lr_keyed_line){
                normalise(line), trim(sign + strlen(dialect->separator)), number};
        }
        line = next;
    }
}

lr_status lr_keyed_text_read(struct lr_keyed_text *text, const char *path,
                             const struct lr_keyed_dialect *dialect, const lr_log *log)
{
    int64_t count = 0;
    *text = (struct lr_keyed_text){.path = path, .log = log};
    text->bytes = lr_file_bytes(path, LR_KEYED_TEXT_MAX_BYTES, &count, log);
    if (text->bytes == NULL) {
        return LR_BAD_INPUT;
    }
    if ((int64_t)strlen(text->bytes) != count) {
        lr_keyed_text_finish(text);
        return lr_error(log, LR_BAD_INPUT, "%s: holds zero bytes, so it is not %s", path,
                        dialect->what);
    }
    text->lines = lr_alloc(count_lines(text->bytes), sizeof(*text->lines), "a header", log);
    if (text->lines == NULL) {
        lr_keyed_text_finish(text);
        return LR_FAILED;
    }
    split(text, dialect);
    if (text->count == 0) {
        lr_keyed_text_finish(text);
        return lr_error(log, LR_BAD_INPUT, "%s: has no line 'key %s value', so it is not %s", path,
                        dialect->separator, dialect->what);
    }
    return LR_OK;
}

void lr_keyed_text_finish(struct lr_keyed_text *text)
{
    free(text->bytes);
    free(text->lines);
    text->bytes = NULL;
    text->lines = NULL;
    text->count = 0;
}

/* --- values --- */

const struct lr_keyed_line *lr_keyed_text_find(const struct lr_keyed_text *text, const char *key)
{
    for (int k = 0; k < text->count; k++) {
        if (strcmp(text->lines[k].key, key) == 0) {
            return &text->lines[k];
        }
    }
    for (int k = 0; k < text->count; k++) {
        if (strstr(text->lines[k].key, key) != NULL) {
            return &text->lines[k];
        }
    }
    return NULL;
}

lr_status lr_keyed_text_error(const struct lr_keyed_text *text, const struct lr_keyed_line *line,
                              const char *format, ...)
{
    char sentence[768];
    va_list values;
    va_start(values, format);
    vsnprintf(sentence, sizeof(sentence), format, values);
    va_end(values);
    if (line == NULL) {
        return lr_error(text->log, LR_BAD_INPUT, "%s: %s", text->path, sentence);
    }
    return lr_error(text->log, LR_BAD_INPUT, "%s:%d: %s", text->path, line->number, sentence);
}

/* Where element `index` begins; the last one when there are fewer. */
static const char *element(const char *value, int index)
{
    for (; index > 0; index--) {
        const char *comma = strchr(value, ',');
        if (comma == NULL) {
            break;
        }
        value = comma + 1;
    }
    return value + strspn(value, " \t{");
}

lr_status lr_keyed_text_number(const struct lr_keyed_text *text,
                               const struct lr_keyed_number *number, int index, double *value)
{
    const struct lr_keyed_line *line = lr_keyed_text_find(text, number->key);
    if (line == NULL || line->value[0] == '\0') {
        return !number->required ? LR_OK
                                 : lr_keyed_text_error(text, line, "'%s' is missing", number->key);
    }
    const char *from = element(line->value, index);
    char *end = NULL;
    const double found = strtod(from, &end);
    const bool is_number = end != from && (*end == '\0' || strchr(", \t.}", *end) != NULL);
    if (!is_number || !isfinite(found) || (number->whole && found != floor(found))) {
        return lr_keyed_text_error(text, line, "'%s' must be a %s, found '%.40s'", number->key,
                                   number->whole ? "whole number" : "number", from);
    }
    if (found < number->least || found > number->most) {
        return lr_keyed_text_error(text, line, "'%s' is %.10g: it must lie between %.6g and %.6g",
                                   number->key, found, number->least, number->most);
    }
    *value = found;
    return LR_OK;
}
