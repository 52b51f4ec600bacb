/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/files/interfile.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "io/files/c_locale.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct lr_keyed_dialect dialect = {":=", ';', "an Interfile header", true};

lr_status lr_interfile_read(struct lr_interfile *file, const char *path, const lr_log *log)
{
    *file = (struct lr_interfile){.log = log, .path = lr_copy_string(path, log)};
    lr_status status = file->path != NULL ? lr_keyed_text_read(&file->text, file->path, &dialect, log) : LR_FAILED;
    if (status != LR_OK) lr_interfile_finish(file);
    return status;
}

void lr_interfile_finish(struct lr_interfile *file)
{
    lr_keyed_text_finish(&file->text);
    free(file->path);
    *file = (struct lr_interfile){0};
}

/* --- values --- */

static const struct lr_keyed_line *find(const struct lr_interfile *file, const char *key, int index)
{
    for (int k = file->text.count - 1; k >= 0; k--)
        if (file->text.lines[k].index == index && strcmp(file->text.lines[k].key, key) == 0)
            return &file->text.lines[k];
    return NULL;
}

const char *lr_interfile_text(const struct lr_interfile *file, const char *key, int index)
{
    const struct lr_keyed_line *entry = find(file, key, index);
    return entry != NULL ? entry->value : NULL;
}

bool lr_interfile_is(const char *value, const char *word)
{
    for (;; value++, word++) {
        while (isblank((unsigned char)value[0]) && (isblank((unsigned char)value[1]) || value[1] == '\0')) value++;
        const int letter = isblank((unsigned char)*value) ? ' ' : tolower((unsigned char)*value);
        if (letter != tolower((unsigned char)*word) || *word == '\0') return letter == *word;
    }
}

int lr_interfile_line(const struct lr_interfile *file, const char *key, int index)
{
    const struct lr_keyed_line *entry = find(file, key, index);
    return entry != NULL ? entry->number : 0;
}

static lr_status not_a_number(const struct lr_interfile *file, const struct lr_keyed_line *entry, const char *what)
{
    return lr_error(file->log, LR_BAD_INPUT, "%s:%d: '%s' must be %s, found '%.64s'", file->path, entry->number,
                    entry->key, what, entry->value);
}

lr_status lr_interfile_integer(const struct lr_interfile *file, const char *key, int index, int64_t *number)
{
    const struct lr_keyed_line *entry = find(file, key, index);
    if (entry == NULL || *entry->value == '\0') return LR_OK;
    char *end = NULL;
    errno = 0;
    const long long found = strtoll(entry->value, &end, 10);
    if (*end != '\0' || errno != 0) return not_a_number(file, entry, "a whole number");
    *number = found;
    return LR_OK;
}

lr_status lr_interfile_number(const struct lr_interfile *file, const char *key, int index, double *number)
{
    const struct lr_keyed_line *entry = find(file, key, index);
    if (entry == NULL || *entry->value == '\0') return LR_OK;
    char *end = NULL;
    const struct lr_c_locale locale = lr_c_locale_enter();
    const double found = strtod(entry->value, &end);
    lr_c_locale_leave(locale);
    if (*end != '\0' || !isfinite(found)) return not_a_number(file, entry, "a number");
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
        if (end == text || errno != 0) return -1;
        if (numbers != NULL) numbers[count] = found;
        text = end + strspn(end, " \t,");
    }
    return braces == (*text == '}') ? count : -1;
}

lr_status lr_interfile_integers(const struct lr_interfile *file, const char *key, int index, int64_t **numbers,
                                int64_t *count)
{
    const struct lr_keyed_line *entry = find(file, key, index);
    *numbers = NULL;
    *count = 0;
    if (entry == NULL) return LR_OK;
    const int64_t found = scan_list(entry->value, NULL);
    if (found < 0) return not_a_number(file, entry, "a list {a, b, ...} of whole numbers");
    *numbers = lr_alloc(found, sizeof(**numbers), "a list of a header", file->log);
    if (*numbers == NULL) return LR_FAILED;
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
    for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++)
        if (strcasecmp(format, known[k].name) == 0) return known[k].kind;
    return LR_KIND_NONE;
}

/* "data offset in bytes", with index 1 or without, else blocks of 2048 bytes. */
static lr_status read_offset(const struct lr_interfile *file, int64_t *offset_bytes)
{
    int64_t blocks = 0;
    *offset_bytes = 0;
    LR_TRY(lr_interfile_integer(file, "data starting block", 0, &blocks));
    if (blocks > 0 && blocks < INT32_MAX) *offset_bytes = 2048 * blocks;
    LR_TRY(lr_interfile_integer(file, "data offset in bytes", 0, offset_bytes));
    LR_TRY(lr_interfile_integer(file, "data offset in bytes", 1, offset_bytes));
    return *offset_bytes >= 0 && blocks >= 0 ? LR_OK
                                             : lr_error(file->log, LR_BAD_INPUT, "%s: its data begins at byte %lld",
                                                        file->path, (long long)*offset_bytes);
}

lr_status lr_interfile_number_type(const struct lr_interfile *file, struct lr_number_type *type, int64_t *offset_bytes)
{
    const char *format = lr_interfile_text(file, "number format", 0);
    const char *order = lr_interfile_text(file, "imagedata byte order", 0);
    int64_t bytes = -1;
    if (order == NULL) order = lr_interfile_text(file, "image data byte order", 0); /* as Siemens spells it */
    LR_TRY(lr_interfile_integer(file, "number of bytes per pixel", 0, &bytes));
    if (bytes < 0 && format != NULL && strcasecmp(format, "short float") == 0)
        bytes = 4;
    else if (bytes < 0 && format != NULL && strcasecmp(format, "long float") == 0)
        bytes = 8;
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
        return lr_error(file->log, LR_BAD_INPUT, "%s: the byte order '%s' is neither LITTLEENDIAN nor BIGENDIAN",
                        file->path, order);
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
    return lr_path_beside(file->path, name, file->log);
}
