/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * One number per crystal, as NumPy writes it (format versions 1.0 to 3.0) or as text. */
#include "base/log.h"
#include "base/mem.h"
#include "io/c_locale.h"
#include "io/petsird.h"

#include <errno.h>
#include <float.h>
#include <lr/io.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_HEADER = 65536, MAX_WORD = 64 };

struct reader {
    const char *path;
    const lr_log *log;
    const lr_scanner *scanner;
    FILE *file;
    float *values;
    int64_t count; /* read so far */
    int line;      /* of text; 0 = an array */
};

/* --- values --- */

static lr_status wrong_count(const struct reader *reader, int64_t count)
{
    return lr_error(reader->log, LR_BAD_INPUT, "%s: holds %lld numbers where %s has %d crystals",
                    reader->path, (long long)count, reader->scanner->name,
                    reader->scanner->num_crystals);
}

/* Keeps one number; those beyond the last crystal are only counted. */
static lr_status keep(struct reader *reader, double value)
{
    char place[32] = "";
    if (reader->line > 0) {
        snprintf(place, sizeof(place), ":%d", reader->line);
    }
    if (!isfinite(value) || value < 0 || value > (double)FLT_MAX) {
        return lr_error(reader->log, LR_BAD_INPUT,
                        "%s%s: the number of crystal %lld is %g: it must be finite and not "
                        "negative",
                        reader->path, place, (long long)reader->count, value);
    }
    if (reader->count < reader->scanner->num_crystals) {
        reader->values[reader->count] = (float)value;
    }
    reader->count++;
    return LR_OK;
}

static lr_status truncated(const struct reader *reader)
{
    if (ferror(reader->file)) {
        return lr_error(reader->log, LR_BAD_INPUT, "%s: cannot be read: %s", reader->path,
                        strerror(errno));
    }
    return lr_error(reader->log, LR_BAD_INPUT, "%s: is truncated: copy it again", reader->path);
}

/* --- .npy --- */

/* Length of the header's text; -1 when the file ends before. */
static int64_t header_length(struct reader *reader)
{
    unsigned char bytes[6]; /* version, then two or four bytes */
    if (fread(bytes, 1, 4, reader->file) != 4) {
        return -1;
    }
    if (bytes[0] == 1) {
        return bytes[2] | bytes[3] << 8;
    }
    if (fread(bytes + 4, 1, 2, reader->file) != 2) {
        return -1;
    }
    return (int64_t)bytes[2] | (int64_t)bytes[3] << 8 | (int64_t)bytes[4] << 16 |
           (int64_t)bytes[5] << 24;
}

/* What follows a key of the header, blanks skipped; NULL when it is missing. */
static const char *value_of(const char *header, const char *key)
{
    const char *at = strstr(header, key);
    if (at == NULL) {
        return NULL;
    }
    at += strlen(key);
    return at + strspn(at, " :");
}

/* Product of "(2, 3)"; -1 for anything else. */
static int64_t product_of(const char *shape)
{
    int64_t product = 1;
    if (shape == NULL || *shape != '(') {
        return -1;
    }
    for (shape++; *shape != ')'; shape += strspn(shape, " ,")) {
        char *end = NULL;
        const long long size = strtoll(shape, &end, 10);
        if (end == shape || size < 0 || size > INT32_MAX || product > INT64_MAX / (size + 1)) {
            return -1;
        }
        product *= size;
        shape = end;
    }
    return product;
}

/* Bytes of an element: 4 or 8; 0 for other kinds. */
static int element_bytes(const char *descr)
{
    if (descr != NULL && strncmp(descr, "'<f4'", 5) == 0) {
        return 4;
    }
    return descr != NULL && strncmp(descr, "'<f8'", 5) == 0 ? 8 : 0;
}

static lr_status parse_header(const struct reader *reader, const char *header, int *bytes)
{
    const char *order = value_of(header, "'fortran_order'");
    const int64_t count = product_of(value_of(header, "'shape'"));
    *bytes = element_bytes(value_of(header, "'descr'"));
    if (*bytes == 0) {
        return lr_error(reader->log, LR_BAD_INPUT,
                        "%s: its numbers are not float32 or float64, little endian: save it with "
                        "astype('<f4')",
                        reader->path);
    }
    if (count < 0 || order == NULL) {
        return lr_error(reader->log, LR_BAD_INPUT, "%s: its header is damaged: copy it again",
                        reader->path);
    }
    if (strncmp(order, "False", 5) != 0) {
        return lr_error(reader->log, LR_BAD_INPUT,
                        "%s: is in Fortran order: save it with numpy.ascontiguousarray",
                        reader->path);
    }
    return count == reader->scanner->num_crystals ? LR_OK : wrong_count(reader, count);
}

static lr_status read_elements(struct reader *reader, int bytes)
{
    unsigned char raw[8];
    for (int k = 0; k < reader->scanner->num_crystals; k++) {
        uint64_t bits = 0;
        float single;
        double value;
        if (fread(raw, 1, (size_t)bytes, reader->file) != (size_t)bytes) {
            return truncated(reader);
        }
        for (int b = bytes - 1; b >= 0; b--) {
            bits = bits << 8 | raw[b];
        }
        const uint32_t low = (uint32_t)bits;
        memcpy(&single, &low, sizeof(single));
        memcpy(&value, &bits, sizeof(value));
        LR_TRY(keep(reader, bytes == 4 ? (double)single : value));
    }
    return LR_OK;
}

static lr_status read_array(struct reader *reader)
{
    int bytes = 0;
    const int64_t length = header_length(reader);
    if (length < 0 || length > MAX_HEADER) {
        return truncated(reader);
    }
    char *header = lr_alloc(length + 1, 1, "a header", reader->log);
    if (header == NULL) {
        return LR_FAILED;
    }
    lr_status status = LR_OK;
    if (fread(header, 1, (size_t)length, reader->file) != (size_t)length) {
        status = truncated(reader);
    } else {
        status = parse_header(reader, header, &bytes);
    }
    free(header);
    return status == LR_OK ? read_elements(reader, bytes) : status;
}

/* --- text --- */

static lr_status take_word(struct reader *reader, const char *word)
{
    char *end = NULL;
    const double value = strtod(word, &end);
    if (end == word || *end != '\0') {
        return lr_error(reader->log, LR_BAD_INPUT, "%s:%d: '%s' is not a number", reader->path,
                        reader->line, word);
    }
    return keep(reader, value);
}

/* The next character; what a '#' begins is skipped up to the line's end. */
static int next_character(FILE *file)
{
    int character = fgetc(file);
    if (character == '#') {
        while (character != '\n' && character != EOF) {
            character = fgetc(file);
        }
    }
    return character;
}

static lr_status read_text(struct reader *reader)
{
    char word[MAX_WORD];
    size_t length = 0;
    int character;
    reader->line = 1;
    do {
        character = next_character(reader->file);
        const bool ends = character == EOF || strchr(" \t\r\n,", character) != NULL;
        if (!ends) {
            word[length++] = (char)character;
        }
        if (length > 0 && (ends || length == sizeof(word) - 1)) {
            word[length] = '\0';
            length = 0;
            LR_TRY(take_word(reader, word));
        }
        reader->line += character == '\n';
    } while (character != EOF);
    if (ferror(reader->file)) {
        return truncated(reader);
    }
    return reader->count == reader->scanner->num_crystals ? LR_OK
                                                          : wrong_count(reader, reader->count);
}

/* --- both --- */

static lr_status read_file(struct reader *reader)
{
    static const char magic[] = "\x93NUMPY";
    char start[sizeof(magic) - 1];
    const size_t length = fread(start, 1, sizeof(start), reader->file);
    if (length == sizeof(start) && memcmp(start, magic, sizeof(start)) == 0) {
        return read_array(reader);
    }
    if (ferror(reader->file)) {
        return truncated(reader);
    }
    rewind(reader->file);
    return read_text(reader);
}

lr_status lr_crystal_values_read(const char *path, const lr_scanner *scanner, float *values,
                                 const lr_log *log)
{
    if (lr_events_recognise(path) == LR_EVENTS_PETSIRD) {
        return lr_petsird_values_read(path, scanner, values, log);
    }
    struct reader reader = {.path = path, .log = log, .scanner = scanner, .values = values};
    reader.file = fopen(path, "rb");
    if (reader.file == NULL) {
        return lr_error(log, LR_BAD_INPUT, "%s: cannot be opened: %s", path, strerror(errno));
    }
    const struct lr_c_locale locale = lr_c_locale_enter();
    const lr_status status = read_file(&reader);
    lr_c_locale_leave(locale);
    fclose(reader.file);
    return status;
}
