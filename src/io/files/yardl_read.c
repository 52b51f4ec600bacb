/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Values of yardl's compact binary encoding (microsoft/yardl, docs/reference/binary.md): unsigned
 * numbers in base 128, lowest first, signed ones zig-zag before that, floats little endian, lists
 * behind their sizes, fields one after the other. */
#include "base/clean_text.h"
#include "base/log.h"
#include "base/mem.h"
#include "io/files/missing_file.h"
#include "io/files/yardl.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { BUFFER_BYTES = 1 << 16, MAGIC_BYTES = 9, MAX_SENTENCE = 600 };

struct lr_yardl_input {
    char *path;
    const lr_log *log;
    FILE *file;
    int64_t size, at; /* bytes of the file, and of those the ones that were taken */
    size_t filled, used, room;
    unsigned char *buffer; /* owned [room] */
    struct {
        unsigned char *buffer; /* owned [room]; NULL = there is no other one */
        size_t filled, used;
        int64_t at;
    } other; /* the bytes that were at hand before */
    lr_status (*settle)(void *user), (*turn)(void *user);
    void *user; /* of both */
    const char *field;
};

/* --- bytes --- */

static lr_status settle(struct lr_yardl_input *input)
{
    return input->settle != NULL ? input->settle(input->user) : LR_OK;
}

lr_status lr_yardl_error(struct lr_yardl_input *input, const char *format, ...)
{
    char sentence[MAX_SENTENCE];
    va_list list;
    va_start(list, format);
    vsnprintf(sentence, sizeof(sentence), format, list);
    va_end(list);
    LR_TRY(settle(input));
    return lr_error(input->log, LR_BAD_INPUT, "%s: at byte %lld: %s", input->path, (long long)input->at, sentence);
}

int64_t lr_yardl_left(const struct lr_yardl_input *input)
{
    return input->size - input->at;
}

static lr_status fill(struct lr_yardl_input *input)
{
    LR_TRY(settle(input));
    input->used = 0;
    input->filled = fread(input->buffer, 1, input->room, input->file);
    if (input->filled > 0) return LR_OK;
    return ferror(input->file) ? lr_yardl_error(input, "the file cannot be read: %s", strerror(errno))
                               : lr_yardl_error(input, "the file ends within a value: it is truncated, copy it "
                                                       "again");
}

static lr_status take_byte(struct lr_yardl_input *input, unsigned char *byte)
{
    if (input->used == input->filled) LR_TRY(fill(input));
    *byte = input->buffer[input->used++];
    input->at++;
    return LR_OK;
}

/* bytes NULL: they are passed over. */
static lr_status take_bytes(struct lr_yardl_input *input, void *bytes, int64_t count)
{
    unsigned char *out = bytes;
    if (count > lr_yardl_left(input)) {
        return lr_yardl_error(input,
                              "%lld bytes are to follow, and the file has %lld more: it is "
                              "truncated, copy it again",
                              (long long)count, (long long)lr_yardl_left(input));
    }
    while (count > 0) {
        if (input->used == input->filled) LR_TRY(fill(input));
        const int64_t there = (int64_t)(input->filled - input->used);
        const int64_t now = count < there ? count : there;
        if (out != NULL) {
            memcpy(out, input->buffer + input->used, (size_t)now);
            out += now;
        }
        input->used += (size_t)now;
        input->at += now;
        count -= now;
    }
    return LR_OK;
}

static lr_status take_unsigned(struct lr_yardl_input *input, uint64_t *value)
{
    unsigned char byte = 0x80;
    *value = 0;
    for (int shift = 0; byte & 0x80; shift += 7) {
        LR_TRY(take_byte(input, &byte));
        if (shift == 63 && byte > 1)
            return lr_yardl_error(input, "a number has more than 64 bits: the file is damaged");
        *value |= (uint64_t)(byte & 0x7f) << shift;
    }
    return LR_OK;
}

/* --- many bytes at once --- */

lr_status lr_yardl_widen(struct lr_yardl_input *input, int64_t bytes)
{
    const int64_t wanted = bytes < input->size ? bytes : input->size;
    LR_TRY(settle(input));
    if (wanted > (int64_t)input->room) {
        unsigned char *wider = lr_resize(input->buffer, wanted, 1, "a file's buffer", input->log);
        LR_TRY(wider != NULL ? LR_OK : LR_FAILED);
        input->buffer = wider;
        input->room = (size_t)wanted;
    }
    free(input->other.buffer);
    input->other.buffer = lr_alloc((int64_t)input->room, 1, "a file's buffer", input->log);
    return input->other.buffer != NULL ? LR_OK : LR_FAILED;
}

void lr_yardl_listen(struct lr_yardl_input *input, lr_status (*all)(void *user), lr_status (*turn)(void *user),
                     void *user)
{
    input->settle = all;
    input->turn = turn;
    input->user = user;
}

const void *lr_yardl_buffer(const struct lr_yardl_input *input)
{
    return input->buffer;
}

void lr_yardl_swap(struct lr_yardl_input *input)
{
    unsigned char *const buffer = input->buffer;
    const size_t filled = input->filled, used = input->used;
    const int64_t at = input->at;
    input->buffer = input->other.buffer;
    input->filled = input->other.filled;
    input->used = input->other.used;
    input->at = input->other.at;
    input->other.buffer = buffer;
    input->other.filled = filled;
    input->other.used = used;
    input->other.at = at;
}

const unsigned char *lr_yardl_at_hand(const struct lr_yardl_input *input, int64_t *count)
{
    *count = (int64_t)(input->filled - input->used);
    return input->buffer + input->used;
}

/* What is left of the bytes at hand goes to the beginning of the other buffer, which comes to hand. */
static void turn_over(struct lr_yardl_input *input)
{
    const size_t there = input->filled - input->used;
    memcpy(input->other.buffer, input->buffer + input->used, there);
    input->other.filled = there;
    input->other.used = 0;
    input->other.at = input->at;
    lr_yardl_swap(input);
}

lr_status lr_yardl_more(struct lr_yardl_input *input, bool *any)
{
    LR_TRY(input->turn != NULL ? input->turn(input->user) : settle(input));
    const size_t there = input->filled - input->used;
    if (input->other.buffer != NULL) {
        turn_over(input);
    } else {
        memmove(input->buffer, input->buffer + input->used, there);
        input->used = 0;
    }
    input->filled = there + fread(input->buffer + there, 1, input->room - there, input->file);
    *any = input->filled > there;
    return LR_OK;
}

void lr_yardl_move(struct lr_yardl_input *input, int64_t bytes)
{
    input->used = (size_t)((int64_t)input->used + bytes);
    input->at += bytes;
}

static uint64_t little_endian(const unsigned char *bytes, int count)
{
    uint64_t value = 0;
    for (int k = count - 1; k >= 0; k--) value = value << 8 | bytes[k];
    return value;
}

/* --- the file --- */

static lr_status check_file(const char *path, int64_t *bytes, const lr_log *log)
{
    struct stat facts;
    if (stat(path, &facts) != 0) {
        char text[LR_OPEN_FAILURE];
        return lr_error(log, LR_BAD_INPUT, "%s: cannot be opened: %s", path, lr_open_failure(path, errno, text));
    }
    if (!S_ISREG(facts.st_mode)) {
        return lr_error(log, LR_BAD_INPUT, "%s: is %s: give a PETSIRD file", path,
                        S_ISDIR(facts.st_mode) ? "a folder" : "no regular file");
    }
    *bytes = (int64_t)facts.st_size;
    return LR_OK;
}

static lr_status read_magic(struct lr_yardl_input *input)
{
    unsigned char magic[MAGIC_BYTES] = {0};
    const int64_t there = input->size < MAGIC_BYTES ? input->size : MAGIC_BYTES;
    if (there > 0) LR_TRY(take_bytes(input, magic, there));
    if (there < MAGIC_BYTES || memcmp(magic, "yardl", 5) != 0) {
        return lr_error(input->log, LR_BAD_INPUT,
                        "%s: does not begin with 'yardl' and a version, so it is no PETSIRD file "
                        "in binary encoding%s",
                        input->path, input->size == 0 ? ": it is empty" : "");
    }
    const uint64_t version = little_endian(magic + 5, 4);
    return version == 1 ? LR_OK
                        : lr_yardl_error(input,
                                         "version %llu of yardl's binary encoding: only version 1 "
                                         "is known",
                                         (unsigned long long)version);
}

struct lr_yardl_input *lr_yardl_open(const char *path, const lr_log *log)
{
    int64_t size = 0;
    if (check_file(path, &size, log) != LR_OK) return NULL;
    struct lr_yardl_input *input = lr_alloc(1, sizeof(*input), "a file's buffer", log);
    if (input == NULL) return NULL;
    input->log = log;
    input->size = size;
    input->room = BUFFER_BYTES;
    input->buffer = lr_alloc(BUFFER_BYTES, 1, "a file's buffer", log);
    input->path = input->buffer != NULL ? lr_copy_string(path, log) : NULL;
    input->file = input->path != NULL ? fopen(path, "rb") : NULL;
    if (input->path != NULL && input->file == NULL) {
        char text[LR_OPEN_FAILURE];
        lr_error(log, LR_BAD_INPUT, "%s: cannot be opened: %s", path, lr_open_failure(path, errno, text));
    }
    if (input->file == NULL || read_magic(input) != LR_OK) {
        lr_yardl_close(input);
        return NULL;
    }
    return input;
}

void lr_yardl_close(struct lr_yardl_input *input)
{
    if (input == NULL) return;
    if (input->file != NULL) fclose(input->file);
    free(input->buffer);
    free(input->other.buffer);
    free(input->path);
    free(input);
}

struct lr_yardl_schema *lr_yardl_read_schema(struct lr_yardl_input *input)
{
    uint64_t length;
    struct lr_yardl_schema *schema = NULL;
    if (take_unsigned(input, &length) != LR_OK) return NULL;
    if (length > (uint64_t)lr_yardl_left(input)) {
        (void)lr_yardl_error(input,
                             "a schema of %llu bytes is to follow, and the file has %lld "
                             "more: it is truncated, copy it again",
                             (unsigned long long)length, (long long)lr_yardl_left(input));
        return NULL;
    }
    char *text = lr_alloc((int64_t)length, 1, "a schema", input->log);
    if (text != NULL && take_bytes(input, text, (int64_t)length) == LR_OK)
        schema = lr_yardl_schema_parse(input->path, text, (int64_t)length, input->log);
    free(text);
    return schema;
}

/* --- single values --- */

static lr_status wrong_kind(struct lr_yardl_input *input, const char *wanted)
{
    return lr_yardl_error(input,
                          "the schema has another type of value where %s is expected: this version "
                          "of the format is not understood",
                          wanted);
}

static lr_status take_float(struct lr_yardl_input *input, int bytes, double *value)
{
    unsigned char raw[8];
    LR_TRY(take_bytes(input, raw, bytes));
    if (bytes == 4) {
        *value = lr_yardl_float(raw);
    } else {
        const uint64_t bits = little_endian(raw, 8);
        memcpy(value, &bits, 8);
    }
    return LR_OK;
}

static lr_status unwrap(struct lr_yardl_input *input, const struct lr_yardl_type **type)
{
    while (*type != NULL && (*type)->kind == LR_YARDL_UNION) {
        struct lr_yardl_part chosen;
        LR_TRY(lr_yardl_case(input, *type, &chosen));
        *type = chosen.type;
    }
    return LR_OK;
}

lr_status lr_yardl_integer(struct lr_yardl_input *input, const struct lr_yardl_type *type, int64_t *value)
{
    uint64_t number = 0;
    unsigned char byte = 0;
    *value = 0;
    LR_TRY(unwrap(input, &type));
    if (type == NULL) return LR_OK;
    switch (type->kind) {
    case LR_YARDL_BYTE:
    case LR_YARDL_INT8:
        LR_TRY(take_byte(input, &byte));
        *value = type->kind == LR_YARDL_INT8 && byte > 127 ? (int64_t)byte - 256 : byte;
        return LR_OK;
    case LR_YARDL_UNSIGNED:
        LR_TRY(take_unsigned(input, &number));
        *value = number > INT64_MAX ? INT64_MAX : (int64_t)number;
        return LR_OK;
    case LR_YARDL_SIGNED:
        LR_TRY(take_unsigned(input, &number));
        *value = number & 1 ? -(int64_t)(number >> 1) - 1 : (int64_t)(number >> 1);
        return LR_OK;
    default: return wrong_kind(input, "a whole number");
    }
}

lr_status lr_yardl_number(struct lr_yardl_input *input, const struct lr_yardl_type *type, double *value)
{
    *value = NAN;
    LR_TRY(unwrap(input, &type));
    if (type == NULL) return LR_OK;
    if (type->kind == LR_YARDL_FLOAT32 || type->kind == LR_YARDL_FLOAT64)
        return take_float(input, type->kind == LR_YARDL_FLOAT32 ? 4 : 8, value);
    int64_t whole;
    LR_TRY(lr_yardl_integer(input, type, &whole));
    *value = (double)whole;
    return LR_OK;
}

lr_status lr_yardl_text(struct lr_yardl_input *input, const struct lr_yardl_type *type, char *text, size_t room)
{
    uint64_t length;
    text[0] = '\0';
    LR_TRY(unwrap(input, &type));
    if (type == NULL) return LR_OK;
    if (type->kind != LR_YARDL_STRING) return wrong_kind(input, "a text");
    LR_TRY(take_unsigned(input, &length));
    const int64_t bytes = length > INT64_MAX ? INT64_MAX : (int64_t)length;
    const int64_t kept = bytes < (int64_t)room - 1 ? bytes : (int64_t)room - 1;
    LR_TRY(take_bytes(input, text, kept));
    text[kept] = '\0';
    for (int64_t k = 0; k < kept; k++) text[k] = text[k] == '\0' ? ' ' : text[k];
    lr_clean_text(text);
    return take_bytes(input, NULL, bytes - kept);
}

/* --- lists, unions, records --- */

/* Whether the file can hold so many items. None of no bytes: lists of them, within each other, would
 * be walked through for ever. */
static lr_status check_count(struct lr_yardl_input *input, const struct lr_yardl_type *item, int64_t count)
{
    const int64_t left = lr_yardl_left(input);
    const int64_t most = item->least_bytes > 0 ? left / item->least_bytes : 0;
    return count <= most ? LR_OK
                         : lr_yardl_error(input,
                                          "%lld items are to follow, which the %lld bytes that the "
                                          "file has left cannot hold: it is truncated or damaged",
                                          (long long)count, (long long)left);
}

/* Sizes that stand in the file. */
static lr_status take_dims(struct lr_yardl_input *input, const struct lr_yardl_type *type, struct lr_yardl_list *list)
{
    uint64_t number = (uint64_t)type->rank;
    if (type->rank < 0) {
        LR_TRY(take_unsigned(input, &number));
        if (number > LR_YARDL_MAX_RANK) {
            return lr_yardl_error(input, "an array has %llu dimensions: at most %d are read",
                                  (unsigned long long)number, LR_YARDL_MAX_RANK);
        }
    }
    list->rank = (int)number;
    for (int k = 0; k < list->rank; k++) {
        LR_TRY(take_unsigned(input, &number));
        list->dims[k] = number > INT32_MAX ? INT64_C(1) << 40 : (int64_t)number;
    }
    return LR_OK;
}

lr_status lr_yardl_list(struct lr_yardl_input *input, const struct lr_yardl_type *type, struct lr_yardl_list *list)
{
    *list = (struct lr_yardl_list){0};
    LR_TRY(unwrap(input, &type));
    if (type == NULL) return LR_OK;
    if (type->kind != LR_YARDL_LIST) return wrong_kind(input, "a list");
    list->item = type->item;
    if (type->is_fixed) {
        list->rank = type->rank;
        memcpy(list->dims, type->dims, sizeof(list->dims));
    } else {
        LR_TRY(take_dims(input, type, list));
    }
    list->count = 1;
    for (int k = 0; k < list->rank; k++) {
        const int64_t dim = list->dims[k];
        list->count = dim > 0 && list->count > (INT64_C(1) << 60) / dim ? INT64_C(1) << 60 : list->count * dim;
    }
    return check_count(input, type->item, list->count);
}

lr_status lr_yardl_case(struct lr_yardl_input *input, const struct lr_yardl_type *type, struct lr_yardl_part *chosen)
{
    uint64_t number;
    *chosen = (struct lr_yardl_part){"", type};
    if (type->kind != LR_YARDL_UNION) return LR_OK;
    LR_TRY(take_unsigned(input, &number));
    if (number >= (uint64_t)type->num_parts) {
        return lr_yardl_error(input, "case %llu of a union of %d: the file is damaged", (unsigned long long)number,
                              type->num_parts);
    }
    *chosen = type->parts[number];
    return LR_OK;
}

static bool has_field(const struct lr_yardl_type *type, const char *name)
{
    for (int k = 0; k < type->num_parts; k++)
        if (strcmp(type->parts[k].name, name) == 0) return true;
    return false;
}

static lr_status check_fields(struct lr_yardl_input *input, const struct lr_yardl_type *type,
                              const struct lr_yardl_field *fields)
{
    for (; fields->name != NULL; fields++) {
        if (fields->required && !has_field(type, fields->name)) {
            return lr_yardl_error(input,
                                  "the schema has no '%s' where it is needed: this version of the "
                                  "format is not understood",
                                  fields->name);
        }
    }
    return LR_OK;
}

lr_status lr_yardl_record(struct lr_yardl_input *input, const struct lr_yardl_type *type,
                          const struct lr_yardl_field *fields, void *user)
{
    LR_TRY(unwrap(input, &type));
    if (type == NULL) return LR_OK;
    if (type->kind != LR_YARDL_RECORD) return wrong_kind(input, "a record");
    LR_TRY(check_fields(input, type, fields));
    for (int k = 0; k < type->num_parts; k++) {
        const struct lr_yardl_part *part = &type->parts[k];
        const struct lr_yardl_field *field = fields;
        while (field->name != NULL && strcmp(field->name, part->name) != 0) field++;
        input->field = part->name;
        LR_TRY(field->take != NULL ? field->take(user, input, part->type) : lr_yardl_skip(input, part->type));
    }
    return LR_OK;
}

const char *lr_yardl_field_name(const struct lr_yardl_input *input)
{
    return input->field;
}

/* --- passing over --- */

static lr_status skip_list(struct lr_yardl_input *input, const struct lr_yardl_type *type)
{
    struct lr_yardl_list list;
    do {
        LR_TRY(lr_yardl_list(input, type, &list));
        if (list.item->same_bytes) {
            LR_TRY(take_bytes(input, NULL, list.count * list.item->least_bytes));
            continue;
        }
        for (int64_t k = 0; k < list.count; k++) LR_TRY(lr_yardl_skip(input, list.item));
    } while (type->is_stream && list.count > 0);
    return LR_OK;
}

static lr_status skip_map(struct lr_yardl_input *input, const struct lr_yardl_type *type)
{
    uint64_t count;
    LR_TRY(take_unsigned(input, &count));
    LR_TRY(check_count(input, type->parts[0].type, count > INT32_MAX ? INT64_MAX : (int64_t)count));
    for (uint64_t k = 0; k < count; k++) {
        LR_TRY(lr_yardl_skip(input, type->parts[0].type));
        LR_TRY(lr_yardl_skip(input, type->parts[1].type));
    }
    return LR_OK;
}

lr_status lr_yardl_skip(struct lr_yardl_input *input, const struct lr_yardl_type *type)
{
    uint64_t number;
    struct lr_yardl_part chosen;
    if (type->same_bytes) return take_bytes(input, NULL, type->least_bytes);
    switch (type->kind) {
    case LR_YARDL_STRING:
        LR_TRY(take_unsigned(input, &number));
        return take_bytes(input, NULL, number > INT64_MAX ? INT64_MAX : (int64_t)number);
    case LR_YARDL_RECORD:
        for (int k = 0; k < type->num_parts; k++) LR_TRY(lr_yardl_skip(input, type->parts[k].type));
        return LR_OK;
    case LR_YARDL_UNION:
        LR_TRY(lr_yardl_case(input, type, &chosen));
        return chosen.type != NULL ? lr_yardl_skip(input, chosen.type) : LR_OK;
    case LR_YARDL_LIST: return skip_list(input, type);
    case LR_YARDL_MAP: return skip_map(input, type);
    default: return take_unsigned(input, &number);
    }
}
