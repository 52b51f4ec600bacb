/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/interfile.h"

#include "base/log.h"
#include "base/mem.h"
#include "io/c_locale.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_BYTES = 8 << 20, MAX_LINE = 1 << 16, PIECE = 1 << 16 };

/* --- text --- */

/* Grows by what the file really holds, so that no size it claims matters. */
static lr_status read_text(struct lr_interfile *file, FILE *stream)
{
    size_t length = 0, room = 0;
    for (;;) {
        if (room - length < PIECE) {
            room = 2 * room + PIECE + 1;
            char *text = lr_resize(file->text, (int64_t)room, 1, "a header", file->log);
            if (text == NULL) {
                return LR_FAILED;
            }
            file->text = text;
        }
        const size_t got = fread(file->text + length, 1, PIECE, stream);
        length += got;
        if (length > MAX_BYTES) {
            return lr_error(file->log, LR_BAD_INPUT,
                            "%s: lines go on and on: this is no Interfile header", file->path);
        }
        if (got < PIECE) {
            break;
        }
    }
    if (ferror(stream)) {
        return lr_error(file->log, LR_BAD_INPUT, "%s: cannot be read: %s", file->path,
                        strerror(errno));
    }
    if (length == 0) {
        return lr_error(file->log, LR_BAD_INPUT, "%s: the header is empty: copy it again",
                        file->path);
    }
    file->text[length] = '\0';
    if (strlen(file->text) != length) {
        return lr_error(file->log, LR_BAD_INPUT,
                        "%s: is not text, so it is no Interfile header: name the header, not the "
                        "data",
                        file->path);
    }
    return LR_OK;
}

/* Brings a key into the form that is compared, in place. */
static void normalise(char *text)
{
    char *out = text;
    for (const char *in = text; *in != '\0'; in++) {
        const bool blank = isspace((unsigned char)*in) || strchr("_!%", *in) != NULL;
        if (!blank) {
            *out++ = (char)tolower((unsigned char)*in);
        } else if (out > text && out[-1] != ' ') {
            *out++ = ' ';
        }
    }
    out -= out > text && out[-1] == ' ';
    *out = '\0';
}

static char *trim(char *text)
{
    text += strspn(text, " \t\r");
    size_t length = strlen(text);
    while (length > 0 && isspace((unsigned char)text[length - 1])) {
        text[--length] = '\0';
    }
    return text;
}

/* Cuts "[i]" off the end of a key; 0 where there is none. */
static int cut_index(char *key)
{
    const size_t length = strlen(key);
    char *open = strrchr(key, '[');
    if (open == NULL || length == 0 || key[length - 1] != ']') {
        return 0;
    }
    char *end = NULL;
    const long index = strtol(open + 1, &end, 10);
    if (end == open + 1 || end[strspn(end, " ")] != ']' || index < 1 || index > 1000000) {
        return 0;
    }
    *open = '\0';
    const size_t rest = strlen(key);
    if (rest > 0 && key[rest - 1] == ' ') {
        key[rest - 1] = '\0';
    }
    return (int)index;
}

/* --- lines --- */

/* Ends the line at `text` and returns the next, NULL after the last; counts lines. */
static char *cut_line(char *text, int *line)
{
    char *end = text;
    for (;;) {
        end += strcspn(end, "\n");
        (*line)++;
        char *last = end;
        while (last > text && (last[-1] == '\r' || last[-1] == ' ')) {
            last--;
        }
        if (*end == '\0' || last == text || last[-1] != '\\') {
            break;
        }
        memset(last - 1, ' ', (size_t)(end - last) + 2); /* joined with the next */
    }
    if (*end == '\0') {
        return NULL;
    }
    *end = '\0';
    return end + 1;
}

static lr_status add_entry(struct lr_interfile *file, int *room, struct lr_interfile_entry entry)
{
    if (file->num_entries == *room) {
        *room = 2 * *room + 64;
        void *entries =
            lr_resize(file->entries, *room, sizeof(*file->entries), "a header", file->log);
        if (entries == NULL) {
            return LR_FAILED;
        }
        file->entries = entries;
    }
    file->entries[file->num_entries++] = entry;
    return LR_OK;
}

static lr_status parse(struct lr_interfile *file)
{
    int line = 0, room = 0;
    char *next = file->text;
    while (next != NULL) {
        char *text = next;
        const int number = line + 1;
        next = cut_line(text, &line);
        if (strlen(text) > MAX_LINE) {
            return lr_error(file->log, LR_BAD_INPUT,
                            "%s:%d: lines go on and on: this is no Interfile header", file->path,
                            number);
        }
        char *sign = strstr(text, ":=");
        if (*text == ';') {
            continue;
        }
        if (sign != NULL) {
            *sign = '\0';
        }
        normalise(text);
        file->has_start = file->has_start || (number == 1 && strcmp(text, "interfile") == 0);
        if (strcmp(text, "end of interfile") == 0) {
            break;
        }
        if (sign != NULL) {
            const int index = cut_index(text);
            LR_TRY(add_entry(file, &room,
                             (struct lr_interfile_entry){text, trim(sign + 2), index, number}));
        }
    }
    return LR_OK;
}

lr_status lr_interfile_read(struct lr_interfile *file, const char *path, const lr_log *log)
{
    *file = (struct lr_interfile){.log = log};
    FILE *stream = fopen(path, "rb");
    if (stream == NULL) {
        return lr_error(log, LR_BAD_INPUT, "%s: the header cannot be opened: %s", path,
                        strerror(errno));
    }
    lr_status status = LR_FAILED;
    file->path = lr_copy_string(path, log);
    if (file->path != NULL) {
        errno = 0;
        status = read_text(file, stream);
    }
    if (status == LR_OK) {
        status = parse(file);
    }
    fclose(stream);
    if (status != LR_OK) {
        lr_interfile_finish(file);
    }
    return status;
}

void lr_interfile_finish(struct lr_interfile *file)
{
    free(file->path);
    free(file->text);
    free(file->entries);
    *file = (struct lr_interfile){0};
}

/* --- values --- */

static const struct lr_interfile_entry *find(const struct lr_interfile *file, const char *key,
                                             int index)
{
    for (int k = file->num_entries - 1; k >= 0; k--) {
        if (file->entries[k].index == index && strcmp(file->entries[k].key, key) == 0) {
            return &file->entries[k];
        }
    }
    return NULL;
}

const char *lr_interfile_text(const struct lr_interfile *file, const char *key, int index)
{
    const struct lr_interfile_entry *entry = find(file, key, index);
    return entry != NULL ? entry->value : NULL;
}

int lr_interfile_line(const struct lr_interfile *file, const char *key, int index)
{
    const struct lr_interfile_entry *entry = find(file, key, index);
    return entry != NULL ? entry->line : 0;
}

bool lr_interfile_says(const struct lr_interfile *file, const char *key, const char *word)
{
    const char *value = lr_interfile_text(file, key, 0);
    return value != NULL && strcasecmp(value, word) == 0;
}

static lr_status not_a_number(const struct lr_interfile *file,
                              const struct lr_interfile_entry *entry, const char *what)
{
    return lr_error(file->log, LR_BAD_INPUT, "%s:%d: '%s' must be %s, found '%.64s'", file->path,
                    entry->line, entry->key, what, entry->value);
}

lr_status lr_interfile_integer(const struct lr_interfile *file, const char *key, int index,
                               int64_t *number)
{
    const struct lr_interfile_entry *entry = find(file, key, index);
    if (entry == NULL || *entry->value == '\0') {
        return LR_OK;
    }
    char *end = NULL;
    errno = 0;
    const long long found = strtoll(entry->value, &end, 10);
    if (*end != '\0' || errno != 0) {
        return not_a_number(file, entry, "a whole number");
    }
    *number = found;
    return LR_OK;
}

lr_status lr_interfile_number(const struct lr_interfile *file, const char *key, int index,
                              double *number)
{
    const struct lr_interfile_entry *entry = find(file, key, index);
    if (entry == NULL || *entry->value == '\0') {
        return LR_OK;
    }
    char *end = NULL;
    const struct lr_c_locale locale = lr_c_locale_enter();
    const double found = strtod(entry->value, &end);
    lr_c_locale_leave(locale);
    if (*end != '\0' || !isfinite(found)) {
        return not_a_number(file, entry, "a number");
    }
    *number = found;
    return LR_OK;
}

/* Fills numbers[] (NULL: only counts); -1 for a list that is damaged. */
static int64_t scan_list(const char *text, int64_t *numbers)
{
    const bool braces = *text == '{';
    int64_t count = 0;
    text += braces;
    for (text += strspn(text, " \t"); *text != '\0' && *text != '}'; count++) {
        char *end = NULL;
        errno = 0;
        const long long found = strtoll(text, &end, 10);
        if (end == text || errno != 0) {
            return -1;
        }
        if (numbers != NULL) {
            numbers[count] = found;
        }
        text = end + strspn(end, " \t,");
    }
    return braces == (*text == '}') ? count : -1;
}

lr_status lr_interfile_integers(const struct lr_interfile *file, const char *key, int index,
                                int64_t **numbers, int64_t *count)
{
    const struct lr_interfile_entry *entry = find(file, key, index);
    *numbers = NULL;
    *count = 0;
    if (entry == NULL) {
        return LR_OK;
    }
    const int64_t found = scan_list(entry->value, NULL);
    if (found < 0) {
        return not_a_number(file, entry, "a list {a, b, ...} of whole numbers");
    }
    *numbers = lr_alloc(found, sizeof(**numbers), "a list of a header", file->log);
    if (*numbers == NULL) {
        return LR_FAILED;
    }
    *count = scan_list(entry->value, *numbers);
    return LR_OK;
}

/* --- the data file --- */

static enum lr_number_kind kind_of(const char *format)
{
    static const struct {
        const char *name;
        enum lr_number_kind kind;
    } known[] = {{"float", LR_KIND_FLOAT},
                 {"short float", LR_KIND_FLOAT},
                 {"long float", LR_KIND_FLOAT},
                 {"signed integer", LR_KIND_SIGNED},
                 {"unsigned integer", LR_KIND_UNSIGNED}};
    for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++) {
        if (strcasecmp(format, known[k].name) == 0) {
            return known[k].kind;
        }
    }
    return LR_KIND_NONE;
}

/* "data offset in bytes", with index 1 or without, else blocks of 2048 bytes. */
static lr_status read_offset(const struct lr_interfile *file, int64_t *offset_bytes)
{
    int64_t blocks = 0;
    *offset_bytes = 0;
    LR_TRY(lr_interfile_integer(file, "data starting block", 0, &blocks));
    if (blocks > 0 && blocks < INT32_MAX) {
        *offset_bytes = 2048 * blocks;
    }
    LR_TRY(lr_interfile_integer(file, "data offset in bytes", 0, offset_bytes));
    LR_TRY(lr_interfile_integer(file, "data offset in bytes", 1, offset_bytes));
    return *offset_bytes >= 0 && blocks >= 0
               ? LR_OK
               : lr_error(file->log, LR_BAD_INPUT, "%s: its data begins at byte %lld", file->path,
                          (long long)*offset_bytes);
}

lr_status lr_interfile_number_type(const struct lr_interfile *file, struct lr_number_type *type,
                                   int64_t *offset_bytes)
{
    const char *format = lr_interfile_text(file, "number format", 0);
    const char *order = lr_interfile_text(file, "imagedata byte order", 0);
    int64_t bytes = -1;
    if (order == NULL) {
        order = lr_interfile_text(file, "image data byte order", 0); /* as Siemens spells it */
    }
    LR_TRY(lr_interfile_integer(file, "number of bytes per pixel", 0, &bytes));
    if (bytes < 0 && format != NULL && strcasecmp(format, "short float") == 0) {
        bytes = 4;
    } else if (bytes < 0 && format != NULL && strcasecmp(format, "long float") == 0) {
        bytes = 8;
    }
    format = format != NULL ? format : "unsigned integer";
    *type = (struct lr_number_type){kind_of(format), bytes > 0 && bytes <= 8 ? (int)bytes : 0,
                                    order == NULL || strcasecmp(order, "littleendian") != 0};
    if (!lr_number_type_is_valid(type)) {
        return lr_error(file->log, LR_BAD_INPUT,
                        "%s: its numbers are of the format '%s' with %lld bytes: float of 4 or 8 "
                        "and integers of 1, 2, 4 or 8 bytes can be read",
                        file->path, format, (long long)bytes);
    }
    if (order != NULL && type->big_endian && strcasecmp(order, "bigendian") != 0) {
        return lr_error(file->log, LR_BAD_INPUT,
                        "%s: the byte order '%s' is neither LITTLEENDIAN nor BIGENDIAN", file->path,
                        order);
    }
    return read_offset(file, offset_bytes);
}

char *lr_interfile_data_path(const struct lr_interfile *file)
{
    const char *name = lr_interfile_text(file, "name of data file", 0);
    if (name == NULL || *name == '\0') {
        (void)lr_error(file->log, LR_BAD_INPUT, "%s: does not name its data file", file->path);
        return NULL;
    }
    const char *slash = strrchr(file->path, '/');
    const size_t folder = *name == '/' || slash == NULL ? 0 : (size_t)(slash - file->path) + 1;
    const size_t bytes = folder + strlen(name) + 1;
    char *path = lr_alloc((int64_t)bytes, 1, "a path", file->log);
    if (path != NULL) {
        snprintf(path, bytes, "%.*s%s", (int)folder, file->path, name);
    }
    return path;
}
