/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Reads text headers: lines, keys and values. Judges the keys by a table of the format. */
#include "io/files/keyed_text.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "io/files/number_type.h"
#include "io/files/regular_file.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { MAX_LINE = 1 << 16 };

/* --- files --- */

lr_status lr_file_bytes(const char *what, const char *path, int64_t most, int64_t *count, char **bytes,
                        const lr_log *log)
{
    struct stat facts;
    *bytes = NULL;
    FILE *file = lr_file_open(path, what, log);
    if (file == NULL) return errno == ENOMEM ? LR_FAILED : LR_BAD_INPUT;
    lr_status status = LR_OK;
    if (fstat(fileno(file), &facts) != 0 || facts.st_size > most) {
        status = lr_error(log, LR_BAD_INPUT, "%s: has too many bytes: at most %lld here", path, (long long)most);
    } else {
        *count = facts.st_size;
        *bytes = lr_alloc(*count + 1, 1, "a file", log);
        status = *bytes != NULL ? LR_OK : LR_FAILED;
    }
    if (status == LR_OK && fread(*bytes, 1, (size_t)*count, file) != (size_t)*count) {
        free(*bytes);
        *bytes = NULL;
        status = lr_error(log, LR_BAD_INPUT, "%s: cannot be read to its end", path);
    }
    fclose(file);
    return status;
}

/* --- lines --- */

/* Takes the key and value of a line. Returns false at the end of an Interfile header. */
static bool take_line(struct lr_keyed_text *text, const struct lr_keyed_dialect *dialect, char *line, int number)
{
    char *comment = dialect->is_interfile ? line + strspn(line, " \t") : strchr(line, dialect->comment);
    if (comment != NULL && *comment == dialect->comment) *comment = '\0';

    char *sign = strstr(line, dialect->separator);
    if (sign != NULL) *sign = '\0';
    /* The key is normalised in place, because normalising never makes a key longer. */
    size_t used = 0;
    for (const char *from = line; *from != '\0'; from++) {
        const bool blank = isspace((unsigned char)*from) || strchr("_!%", *from) != NULL;
        if (!blank)
            line[used++] = (char)tolower((unsigned char)*from);
        else if (used > 0 && line[used - 1] != ' ')
            line[used++] = ' ';
    }
    used -= used > 0 && line[used - 1] == ' ';
    line[used] = '\0';
    const char *key = line;

    text->has_start = text->has_start || (dialect->is_interfile && number == 1 && strcmp(key, "interfile") == 0);
    if (strcmp(key, "end of interfile") == 0) {
        text->has_end = true;
        if (dialect->is_interfile) return false;
    }
    if (sign == NULL) return true;

    /* The index at the end of "key [i]" is cut off. */
    int index = 0;
    char *open = dialect->is_interfile ? strrchr(line, '[') : NULL;
    if (open != NULL && line[used - 1] == ']') {
        char *end = NULL;
        const long found = strtol(open + 1, &end, 10);
        if (end != open + 1 && end[strspn(end, " ")] == ']' && found >= 1 && found <= 1000000) {
            index = (int)found;
            *open = '\0';
            if (open > line && open[-1] == ' ') open[-1] = '\0';
        }
    }
    char *value = sign + strlen(dialect->separator);
    value += strspn(value, " \t\r");
    size_t length = strlen(value);
    while (length > 0 && isspace((unsigned char)value[length - 1])) value[--length] = '\0';
    text->lines[text->count++] = (struct lr_keyed_line){key, value, number, index};
    return true;
}

lr_status lr_keyed_text_read(struct lr_keyed_text *text, const char *path, const struct lr_keyed_dialect *dialect,
                             const lr_log *log)
{
    int64_t count = 0;
    *text = (struct lr_keyed_text){.path = path, .log = log};
    LR_TRY(lr_file_bytes("the header ", path, LR_KEYED_TEXT_MAX_BYTES, &count, &text->bytes, log));
    lr_status status = LR_OK;
    if (count == 0) {
        status = lr_error(log, LR_BAD_INPUT, "%s: the header is empty: copy it again", path);
    } else if ((int64_t)strlen(text->bytes) != count) {
        status = lr_error(log, LR_BAD_INPUT, "%s: is not text, so it is not %s: name the header, not the data", path,
                          dialect->what);
    }
    if (status != LR_OK) goto done;
    if (strcmp(dialect->separator, ":") == 0 && text->bytes[count - 1] != '\n')
        lr_warn(log, "%s: its last line has no end: if it was cut off, copy it again", path);

    int num_lines = 1;
    for (int64_t k = 0; k < count; k++) num_lines += text->bytes[k] == '\n';
    text->lines = lr_alloc(num_lines, sizeof(*text->lines), "a header", log);
    status = text->lines != NULL ? LR_OK : LR_FAILED;
    /* Some editors write a byte order mark. */
    char *next = text->bytes + (strncmp(text->bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0);
    int line = 0;
    for (bool goes_on = true; status == LR_OK && next != NULL && goes_on;) {
        char *const begin = next, *end = begin;
        const int number = line + 1;
        for (;;) {
            end += strcspn(end, "\n");
            line++;
            char *last = end;
            while (last > begin && (last[-1] == '\r' || last[-1] == ' ')) last--;
            if (!dialect->is_interfile || *end == '\0' || last == begin || last[-1] != '\\') break;
            memset(last - 1, ' ', (size_t)(end - last) + 2); /* the next line continues this one */
        }
        next = *end != '\0' ? end + 1 : NULL;
        *end = '\0';
        if (end - begin > MAX_LINE) {
            status =
                lr_error(log, LR_BAD_INPUT, "%s:%d: lines go on and on: this is not %s", path, number, dialect->what);
        } else {
            goes_on = take_line(text, dialect, begin, number);
        }
    }
    if (status == LR_OK && text->count == 0 && !dialect->is_interfile) {
        status = lr_error(log, LR_BAD_INPUT, "%s: has no line 'key %s value', so it is not %s", path,
                          dialect->separator, dialect->what);
    }
done:
    if (status != LR_OK) lr_keyed_text_finish(text);
    return status;
}

void lr_keyed_text_finish(struct lr_keyed_text *text)
{
    lr_free_all(text->bytes, text->lines);
    text->bytes = NULL;
    text->lines = NULL;
    text->count = 0;
}

/* --- values --- */

const struct lr_keyed_line *lr_keyed_text_find(const struct lr_keyed_text *text, const char *key)
{
    for (int k = 0; k < text->count; k++)
        if (strcmp(text->lines[k].key, key) == 0) return &text->lines[k];
    for (int k = 0; k < text->count; k++)
        if (strstr(text->lines[k].key, key) != NULL) return &text->lines[k];
    return NULL;
}

lr_status lr_keyed_text_need_end(const struct lr_keyed_text *text)
{
    return text->has_end ? LR_OK
                         : lr_error(text->log, LR_BAD_INPUT,
                                    "%s: the header has no '!END OF INTERFILE :=', so it was cut off: copy "
                                    "it again, or add that line if all of it is there",
                                    text->path);
}

lr_status lr_keyed_text_error(const struct lr_keyed_text *text, const struct lr_keyed_line *line, const char *format,
                              ...)
{
    char sentence[768];
    va_list values;
    va_start(values, format);
    vsnprintf(sentence, sizeof(sentence), format, values);
    va_end(values);
    if (line == NULL) return lr_error(text->log, LR_BAD_INPUT, "%s: %s", text->path, sentence);
    return lr_error(text->log, LR_BAD_INPUT, "%s:%d: %s", text->path, line->number, sentence);
}

/* --- keys of a format --- */

/* Returns the row of a key. If no row has the key and known->finds_parts is set, returns the row with the longest key
 * that occurs as a part of `key`. NULL = none. */
static const struct lr_known_key *find_known(const struct lr_known_keys *known, const char *key)
{
    const struct lr_known_key *found = NULL;
    size_t longest = 0;
    for (int k = 0; k < known->count; k++) {
        for (const char *own = known->rows[k].keys, *next; own != NULL; own = next) {
            const char *bar = strchr(own, '|');
            size_t length = bar != NULL ? (size_t)(bar - own) : strlen(own);
            const int first = tolower((unsigned char)*own);
            const bool any_end = own[length - 1] == '*';
            length -= any_end;
            next = bar != NULL ? bar + 1 : NULL;
            for (const char *at = key; *at != '\0' && (at == key || known->finds_parts); at++) {
                if (tolower((unsigned char)*at) != first || strncasecmp(at, own, length) != 0) continue;
                if (at == key && (any_end || key[length] == '\0')) return &known->rows[k];
                if (known->finds_parts && length > longest) {
                    found = &known->rows[k];
                    longest = length;
                }
            }
        }
    }
    return found;
}

static bool is_usual(const char *value, const char *usual)
{
    for (value += strspn(value, " \t{,"); *value != '\0' && *value != '}';) {
        const size_t length = strcspn(value, ",}");
        char *end = NULL;
        const double number = strtod(value, &end);
        const bool is_number = end != value && end + strspn(end, " \t") == value + length;
        bool found = false;
        for (const char *word = usual; word != NULL && !found; word = strchr(word, '|')) {
            word += *word == '|';
            const size_t letters = strcspn(word, "|");
            found = is_number
                        ? isdigit((unsigned char)word[letters - 1]) && strtod(word, NULL) == number
                        : strncasecmp(value, word, letters) == 0 && strspn(value + letters, " \t") + letters == length;
        }
        if (!found) return false;
        value += length;
        value += strspn(value, " \t,");
    }
    return true;
}

lr_status lr_keyed_text_judge(const struct lr_keyed_text *text, const struct lr_known_keys *known)
{
    enum { MOST_NAMED = 6 };
    char names[512] = "";
    int unknown = 0;
    lr_status status = LR_OK;
    const struct lr_c_locale locale = lr_c_locale_enter();
    for (int n = 0; n < text->count && status == LR_OK; n++) {
        const struct lr_keyed_line *line = &text->lines[n];
        const struct lr_known_key *found = line->value[0] != '\0' ? find_known(known, line->key) : NULL;
        if (found == NULL) {
            if (line->value[0] != '\0' && (known->beside == NULL || find_known(known->beside, line->key) == NULL) &&
                unknown++ < MOST_NAMED) {
                const size_t used = strlen(names);
                snprintf(names + used, sizeof(names) - used, line->number > 0 ? "%s'%.60s' (line %d)" : "%s'%.60s'",
                         used > 0 ? ", " : "", line->key, line->number);
            }
        } else if (found->outcome >= LR_KEY_WARNED && !is_usual(line->value, found->usual)) {
            if (found->outcome == LR_KEY_REFUSED) {
                status = lr_keyed_text_error(text, line, "'%s' is %.40s: %s", line->key, line->value, found->meaning);
            } else {
                char place[16] = "";
                snprintf(place, line->number > 0 ? sizeof(place) : 1, ":%d", line->number);
                lr_warn(text->log, "%s%s: '%s' is %.40s: %s", text->path, place, line->key, line->value,
                        found->meaning);
            }
        }
    }
    lr_c_locale_leave(locale);
    if (unknown > 0 && status == LR_OK) {
        char more[48] = "";
        snprintf(more, unknown > MOST_NAMED ? sizeof(more) : 1, " and %d more", unknown - MOST_NAMED);
        lr_warn(text->log, "%s: keys that %s do not have are passed over: %s%s; check their spelling", text->path,
                known->format, names, more);
    }
    return status;
}

/* --- numbers --- */

lr_status lr_keyed_text_number(const struct lr_keyed_text *text, const struct lr_keyed_number *number, int index,
                               double *value)
{
    const struct lr_keyed_line *line = lr_keyed_text_find(text, number->key);
    if (line == NULL || line->value[0] == '\0')
        return !number->required ? LR_OK : lr_keyed_text_error(text, line, "'%s' is missing", number->key);
    const char *from = line->value;
    for (int k = 0; k < index; k++) {
        const char *comma = strchr(from, ',');
        if (comma == NULL) break; /* the last number holds for all further elements */
        from = comma + 1;
    }
    from += strspn(from, " \t{");
    char *end = NULL;
    const double found = strtod(from, &end);
    const bool is_number = end != from && (*end == '\0' || strchr(", \t.}", *end) != NULL);
    if (!is_number || !isfinite(found) || (number->whole && found != floor(found))) {
        return lr_keyed_text_error(text, line, "'%s' must be a %s, found '%.40s'", number->key,
                                   number->whole ? "whole number" : "number", from);
    }
    if (found < number->least || found > number->most) {
        return lr_keyed_text_error(text, line, "'%s' is %.10g: it must lie between %.6g and %.6g", number->key, found,
                                   number->least, number->most);
    }
    *value = found;
    return LR_OK;
}

/* --- Interfile --- */

const struct lr_keyed_dialect lr_interfile_dialect = {":=", ';', "an Interfile header", true};

const struct lr_keyed_line *lr_interfile_find(const struct lr_keyed_text *file, const char *key, int index)
{
    for (int k = file->count - 1; k >= 0; k--)
        if (file->lines[k].index == index && strcmp(file->lines[k].key, key) == 0) return &file->lines[k];
    return NULL;
}

const char *lr_interfile_text(const struct lr_keyed_text *file, const char *key, int index)
{
    const struct lr_keyed_line *entry = lr_interfile_find(file, key, index);
    return entry != NULL ? entry->value : NULL;
}

lr_status lr_interfile_integer(const struct lr_keyed_text *file, const char *key, int index, int64_t *number)
{
    const struct lr_keyed_line *entry = lr_interfile_find(file, key, index);
    if (entry == NULL || *entry->value == '\0') return LR_OK;
    char *end = NULL;
    errno = 0;
    const long long found = strtoll(entry->value, &end, 10);
    if (*end != '\0' || errno != 0)
        return lr_keyed_text_error(file, entry, "'%s' must be a whole number, found '%.64s'", entry->key, entry->value);
    *number = found;
    return LR_OK;
}

lr_status lr_interfile_number(const struct lr_keyed_text *file, const char *key, int index, double *number)
{
    const struct lr_keyed_line *entry = lr_interfile_find(file, key, index);
    if (entry == NULL || *entry->value == '\0') return LR_OK;
    char *end = NULL;
    const struct lr_c_locale locale = lr_c_locale_enter();
    const double found = strtod(entry->value, &end);
    lr_c_locale_leave(locale);
    if (*end != '\0' || !isfinite(found))
        return lr_keyed_text_error(file, entry, "'%s' must be a number, found '%.64s'", entry->key, entry->value);
    *number = found;
    return LR_OK;
}

/* Reads a list and returns its length; -1 if it is damaged. numbers: NULL = the list is only counted. */
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

lr_status lr_interfile_integers(const struct lr_keyed_text *file, const char *key, int index, int64_t **numbers,
                                int64_t *count)
{
    const struct lr_keyed_line *entry = lr_interfile_find(file, key, index);
    *numbers = NULL;
    *count = 0;
    if (entry == NULL) return LR_OK;
    const int64_t found = scan_list(entry->value, NULL);
    if (found < 0)
        return lr_keyed_text_error(file, entry, "'%s' must be a list {a, b, ...} of whole numbers, found '%.64s'",
                                   entry->key, entry->value);
    *numbers = lr_alloc(found, sizeof(**numbers), "a list of a header", file->log);
    if (*numbers == NULL) return LR_FAILED;
    *count = scan_list(entry->value, *numbers);
    return LR_OK;
}

/* --- the data file --- */

lr_status lr_interfile_number_type(const struct lr_keyed_text *file, struct lr_number_type *type, int64_t *offset_bytes)
{
    const char *format = lr_interfile_text(file, "number format", 0);
    const char *order = lr_interfile_text(file, "imagedata byte order", 0);
    int64_t bytes = -1;
    if (order == NULL) order = lr_interfile_text(file, "image data byte order", 0); /* Siemens' name of the key */
    LR_TRY(lr_interfile_integer(file, "number of bytes per pixel", 0, &bytes));
    if (bytes < 0 && format != NULL && strcasecmp(format, "short float") == 0)
        bytes = 4;
    else if (bytes < 0 && format != NULL && strcasecmp(format, "long float") == 0)
        bytes = 8;
    format = format != NULL ? format : "unsigned integer";
    static const struct {
        const char *name;
        enum lr_number_kind kind;
    } known[] = {{"float", LR_KIND_FLOAT},
                 {"short float", LR_KIND_FLOAT},
                 {"long float", LR_KIND_FLOAT},
                 {"signed integer", LR_KIND_SIGNED},
                 {"unsigned integer", LR_KIND_UNSIGNED}};
    *type = (struct lr_number_type){LR_KIND_NONE, bytes > 0 && bytes <= 8 ? (int)bytes : 0,
                                    order == NULL || strcasecmp(order, "littleendian") != 0};
    for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++)
        if (strcasecmp(format, known[k].name) == 0) type->kind = known[k].kind;
    if (!lr_number_type_is_valid(type)) {
        return lr_keyed_text_error(file, NULL,
                                   "its numbers are of the format '%s' with %lld bytes: float of 4 or 8 "
                                   "and integers of 1, 2, 4 or 8 bytes can be read",
                                   format, (long long)bytes);
    }
    if (order != NULL && type->big_endian && strcasecmp(order, "bigendian") != 0)
        return lr_keyed_text_error(file, NULL, "the byte order '%s' is neither LITTLEENDIAN nor BIGENDIAN", order);
    /* The offset is in bytes, or in blocks of 2048 bytes. "data offset in bytes" may have the index 1. */
    int64_t blocks = 0;
    *offset_bytes = 0;
    LR_TRY(lr_interfile_integer(file, "data starting block", 0, &blocks));
    if (blocks > 0 && blocks < INT32_MAX) *offset_bytes = 2048 * blocks;
    LR_TRY(lr_interfile_integer(file, "data offset in bytes", 0, offset_bytes));
    LR_TRY(lr_interfile_integer(file, "data offset in bytes", 1, offset_bytes));
    return *offset_bytes >= 0 && blocks >= 0
               ? LR_OK
               : lr_keyed_text_error(file, NULL, "its data begins at byte %lld", (long long)*offset_bytes);
}

char *lr_interfile_data_path(const struct lr_keyed_text *file)
{
    const char *name = lr_interfile_text(file, "name of data file", 0);
    if (name == NULL || *name == '\0') {
        (void)lr_keyed_text_error(file, NULL, "does not name its data file");
        return NULL;
    }
    return lr_path_beside(file->path, name, file->log);
}
