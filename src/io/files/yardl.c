/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Values of yardl's compact binary encoding (microsoft/yardl, docs/reference/binary.md). Unsigned numbers are in base
 * 128, the lowest digit first. Signed numbers become unsigned by zig-zag. Floats are little endian. A list begins with
 * its sizes. The fields of a record follow each other. */
#include "io/files/yardl.h"

#include "base/clean_text.h"
#include "base/log.h"
#include "base/mem.h"
#include "io/files/number_type.h"
#include "io/files/regular_file.h"
#include "io/files/yaml.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { BUFFER_BYTES = 1 << 16, MAGIC_BYTES = 9, MAX_SENTENCE = 600 };

/* --- bytes --- */

lr_status lr_yardl_error(struct lr_yardl_input *input, const char *format, ...)
{
    char sentence[MAX_SENTENCE];
    va_list list;
    va_start(list, format);
    vsnprintf(sentence, sizeof(sentence), format, list);
    va_end(list);
    if (input->settle != NULL) LR_TRY(input->settle(input->user));
    return lr_error(input->log, LR_BAD_INPUT, "%s: at byte %lld: %s", input->path, (long long)input->now.at, sentence);
}

int64_t lr_yardl_left(const struct lr_yardl_input *input)
{
    return input->size - input->now.at;
}

static lr_status fill(struct lr_yardl_input *input)
{
    if (input->settle != NULL) LR_TRY(input->settle(input->user));
    input->now.used = 0;
    input->now.filled = fread(input->now.buffer, 1, input->room, input->file);
    if (input->now.filled > 0) return LR_OK;
    return ferror(input->file) ? lr_yardl_error(input, "the file cannot be read: %s", strerror(errno))
                               : lr_yardl_error(input, "the file ends within a value: it is truncated, copy it again");
}

static lr_status take_byte(struct lr_yardl_input *input, unsigned char *byte)
{
    if (input->now.used == input->now.filled) LR_TRY(fill(input));
    *byte = input->now.buffer[input->now.used++];
    input->now.at++;
    return LR_OK;
}

/* Takes `count` bytes; bytes = NULL skips them. */
static lr_status take_bytes(struct lr_yardl_input *input, void *bytes, int64_t count)
{
    unsigned char *out = bytes;
    if (count > lr_yardl_left(input)) {
        return lr_yardl_error(input,
                              "%lld bytes are to follow, and the file has %lld more: it is truncated, copy it again",
                              (long long)count, (long long)lr_yardl_left(input));
    }
    while (count > 0) {
        if (input->now.used == input->now.filled) LR_TRY(fill(input));
        const int64_t there = (int64_t)(input->now.filled - input->now.used);
        const int64_t now = count < there ? count : there;
        if (out != NULL) {
            memcpy(out, input->now.buffer + input->now.used, (size_t)now);
            out += now;
        }
        input->now.used += (size_t)now;
        input->now.at += now;
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

lr_status lr_yardl_widen(struct lr_yardl_input *input, int64_t bytes, lr_status (*all)(void *user),
                         lr_status (*on_fetch)(void *user), void *user)
{
    const int64_t wanted = bytes < input->size ? bytes : input->size;
    input->settle = all;
    input->on_fetch = on_fetch;
    input->user = user;
    if (wanted > (int64_t)input->room) {
        unsigned char *wider = lr_resize(input->now.buffer, wanted, 1, "a file's buffer", input->log);
        LR_TRY(wider != NULL ? LR_OK : LR_FAILED);
        input->now.buffer = wider;
        input->room = (size_t)wanted;
    }
    input->other.buffer = lr_alloc((int64_t)input->room, 1, "a file's buffer", input->log);
    return input->other.buffer != NULL ? LR_OK : LR_FAILED;
}

void lr_yardl_swap(struct lr_yardl_input *input)
{
    const struct lr_yardl_stretch now = input->now;
    input->now = input->other;
    input->other = now;
}

const unsigned char *lr_yardl_buffered(const struct lr_yardl_input *input, int64_t *count)
{
    *count = (int64_t)(input->now.filled - input->now.used);
    return input->now.buffer + input->now.used;
}

lr_status lr_yardl_more(struct lr_yardl_input *input, bool *any)
{
    LR_TRY(input->on_fetch(input->user));
    /* The bytes not yet taken go to the beginning of the other buffer. */
    const size_t there = input->now.filled - input->now.used;
    memcpy(input->other.buffer, input->now.buffer + input->now.used, there);
    input->other.used = 0;
    input->other.at = input->now.at;
    lr_yardl_swap(input);
    input->now.filled = there + fread(input->now.buffer + there, 1, input->room - there, input->file);
    *any = input->now.filled > there;
    return LR_OK;
}

void lr_yardl_move(struct lr_yardl_input *input, int64_t bytes)
{
    input->now.used = (size_t)((int64_t)input->now.used + bytes);
    input->now.at += bytes;
}

/* --- the file --- */

struct lr_yardl_input *lr_yardl_open(const char *path, struct lr_yardl_schema **schema, const lr_log *log)
{
    struct stat facts;
    FILE *file = lr_file_open(path, "", log);
    if (file == NULL) return NULL;
    struct lr_yardl_input *input = lr_alloc(1, sizeof(*input), "a file's buffer", log);
    if (input == NULL) {
        fclose(file);
        return NULL;
    }
    input->log = log;
    input->file = file;
    input->size = fstat(fileno(file), &facts) == 0 ? (int64_t)facts.st_size : 0;
    input->room = BUFFER_BYTES;
    input->now.buffer = lr_alloc(BUFFER_BYTES, 1, "a file's buffer", log);
    input->path = input->now.buffer != NULL ? lr_copy_string(path, log) : NULL;
    if (input->path == NULL) goto failed;

    unsigned char magic[MAGIC_BYTES] = {0};
    const int64_t there = input->size < MAGIC_BYTES ? input->size : MAGIC_BYTES;
    if (there > 0 && take_bytes(input, magic, there) != LR_OK) goto failed;
    if (there < MAGIC_BYTES || memcmp(magic, "yardl", 5) != 0) {
        lr_error(log, LR_BAD_INPUT,
                 "%s: does not begin with 'yardl' and a version, so it is no PETSIRD file in binary encoding%s", path,
                 input->size == 0 ? ": it is empty: copy it again, or ask for it again" : "");
        goto failed;
    }
    const uint64_t version = lr_whole_at(magic + 5, 4);
    if (version != 1) {
        (void)lr_yardl_error(input, "version %llu of yardl's binary encoding: only version 1 is known",
                             (unsigned long long)version);
        goto failed;
    }
    uint64_t length;
    if (take_unsigned(input, &length) != LR_OK) goto failed;
    if (length > (uint64_t)lr_yardl_left(input)) {
        (void)lr_yardl_error(input,
                             "a schema of %llu bytes is to follow, and the file has %lld "
                             "more: it is truncated, copy it again",
                             (unsigned long long)length, (long long)lr_yardl_left(input));
        goto failed;
    }
    char *text = lr_alloc((int64_t)length, 1, "a schema", log);
    *schema = text != NULL && take_bytes(input, text, (int64_t)length) == LR_OK
                  ? lr_yardl_schema_parse(path, text, (int64_t)length, log)
                  : NULL;
    free(text);
    if (*schema != NULL) return input;

failed:
    lr_yardl_close(input);
    return NULL;
}

void lr_yardl_close(struct lr_yardl_input *input)
{
    if (input == NULL) return;
    if (input->file != NULL) fclose(input->file);
    lr_free_all(input->now.buffer, input->other.buffer, input->path, input);
}

/* --- single values --- */

static lr_status wrong_kind(struct lr_yardl_input *input, const char *wanted)
{
    return lr_yardl_error(input,
                          "the schema has another type of value where %s is expected: this version "
                          "of the format is not understood",
                          wanted);
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
    unsigned char raw[8];
    if (type->kind == LR_YARDL_FLOAT32) {
        LR_TRY(take_bytes(input, raw, 4));
        *value = lr_float_at(raw);
    } else if (type->kind == LR_YARDL_FLOAT64) {
        LR_TRY(take_bytes(input, raw, 8));
        const uint64_t bits = lr_whole_at(raw, 8);
        memcpy(value, &bits, 8);
    } else {
        int64_t whole;
        LR_TRY(lr_yardl_integer(input, type, &whole));
        *value = (double)whole;
    }
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

/* Checks that the rest of the file can hold `count` items. Items of zero bytes are refused, because nested lists of
 * such items could be read without end. */
static lr_status check_count(struct lr_yardl_input *input, const struct lr_yardl_type *item, int64_t count)
{
    const int64_t left = lr_yardl_left(input);
    const int64_t most = item->least_bytes > 0 ? left / item->least_bytes : 0;
    return count <= most ? LR_OK
                         : lr_yardl_error(input,
                                          "%lld items are to follow, which the %lld bytes that the "
                                          "file has left cannot hold: it is truncated or damaged: copy it again",
                                          (long long)count, (long long)left);
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
        /* The file gives the sizes. */
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

lr_status lr_yardl_record(struct lr_yardl_input *input, const struct lr_yardl_type *type,
                          const struct lr_yardl_field *fields, void *user)
{
    LR_TRY(unwrap(input, &type));
    if (type == NULL) return LR_OK;
    if (type->kind != LR_YARDL_RECORD) return wrong_kind(input, "a record");
    for (const struct lr_yardl_field *field = fields; field->name != NULL; field++) {
        bool there = !field->required;
        for (int k = 0; k < type->num_parts && !there; k++) there = strcmp(type->parts[k].name, field->name) == 0;
        if (!there) {
            return lr_yardl_error(input,
                                  "the schema has no '%s' where it is needed: this version of the "
                                  "format is not understood",
                                  field->name);
        }
    }
    for (int k = 0; k < type->num_parts; k++) {
        const struct lr_yardl_part *part = &type->parts[k];
        const struct lr_yardl_field *field = fields;
        while (field->name != NULL && strcmp(field->name, part->name) != 0) field++;
        input->field = part->name;
        if (field->fields != NULL)
            LR_TRY(lr_yardl_record(input, part->type, field->fields, user));
        else
            LR_TRY(field->take != NULL ? field->take(user, input, part->type) : lr_yardl_skip(input, part->type));
    }
    return LR_OK;
}

/* --- skipping values --- */

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
    case LR_YARDL_LIST: {
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

    case LR_YARDL_MAP: {
        uint64_t count;
        LR_TRY(take_unsigned(input, &count));
        LR_TRY(check_count(input, type->parts[0].type, count > INT32_MAX ? INT64_MAX : (int64_t)count));
        for (uint64_t k = 0; k < count; k++) {
            LR_TRY(lr_yardl_skip(input, type->parts[0].type));
            LR_TRY(lr_yardl_skip(input, type->parts[1].type));
        }
        return LR_OK;
    }

    default: return take_unsigned(input, &number);
    }
}

/* --- the schema: a tree of types, in which every named or generic type is replaced by its definition --- */

enum { MAX_TYPES = 1 << 14, MAX_DEPTH = 64, MAX_TEXT = 1 << 18, MAX_DIGITS = 18 };

static const int64_t most_bytes = INT64_C(1) << 60;

/* A type of the schema that has a name. */
struct lr_yardl_named {
    const char *name;
    struct fy_node *node;
};

/* Arguments of a generic type, such as the T of "vector of T". */
struct arguments {
    struct fy_node *parameters, *values; /* sequences of equal length; NULL = none */
    const struct arguments *outer;       /* arguments of the surrounding type, which define names in `values` */
};

/* --- nodes --- */

static lr_status bad(const struct lr_yardl_schema *schema, const char *what, const char *name)
{
    return lr_error(schema->log, LR_BAD_INPUT,
                    "%s: its schema %s '%.60s': the file is damaged, or newer than this program", schema->path, what,
                    name != NULL ? name : "");
}

static const char *text_of(struct fy_node *node)
{
    return node != NULL && fy_node_is_scalar(node) ? fy_node_get_scalar0(node) : NULL;
}

static struct fy_node *child(struct fy_node *node, const char *key)
{
    return node != NULL && fy_node_is_mapping(node) ? fy_node_mapping_lookup_by_string(node, key, (size_t)-1) : NULL;
}

static int count_of(struct fy_node *node)
{
    return node != NULL && fy_node_is_sequence(node) ? fy_node_sequence_item_count(node) : 0;
}

static bool whole(struct fy_node *node, int64_t *value)
{
    const char *text = text_of(node);
    char *end = NULL;
    if (text == NULL || text[0] < '0' || text[0] > '9' || strlen(text) > MAX_DIGITS) return false;
    *value = strtoll(text, &end, 10);
    return *end == '\0';
}

/* --- types --- */

static struct lr_yardl_type *new_type(struct lr_yardl_schema *schema, enum lr_yardl_kind kind, int num_parts)
{
    if (schema->num_types == MAX_TYPES || num_parts > MAX_TYPES) {
        (void)bad(schema, "has more than 16384 types, in", schema->name);
        return NULL;
    }
    const struct lr_items items = {sizeof(*schema->types), "a schema", schema->log};
    if (lr_grow(&schema->types, &schema->room, schema->num_types + 1, &items) != LR_OK) return NULL;
    struct lr_yardl_type *type = lr_alloc(1, sizeof(*type), "a schema", schema->log);
    if (type == NULL) return NULL;
    schema->types[schema->num_types++] = type;
    type->kind = kind;
    type->num_parts = num_parts;
    type->parts = num_parts > 0 ? lr_alloc(num_parts, sizeof(*type->parts), "a schema", schema->log) : NULL;
    return num_parts == 0 || type->parts != NULL ? type : NULL;
}

static int64_t times_bytes(int64_t count, int64_t bytes)
{
    return bytes > 0 && count > most_bytes / bytes ? most_bytes : count * bytes;
}

static const struct primitive {
    const char *name;
    enum lr_yardl_kind kind;
    int bytes; /* least number of bytes */
    bool same; /* true: every value has `bytes` bytes */
} primitives[] = {
    {"bool", LR_YARDL_BYTE, 1, true},
    {"uint8", LR_YARDL_BYTE, 1, true},
    {"int8", LR_YARDL_INT8, 1, true},
    {"uint16", LR_YARDL_UNSIGNED, 1, false},
    {"uint32", LR_YARDL_UNSIGNED, 1, false},
    {"uint64", LR_YARDL_UNSIGNED, 1, false},
    {"size", LR_YARDL_UNSIGNED, 1, false},
    {"int16", LR_YARDL_SIGNED, 1, false},
    {"int32", LR_YARDL_SIGNED, 1, false},
    {"int64", LR_YARDL_SIGNED, 1, false},
    {"date", LR_YARDL_SIGNED, 1, false},
    {"time", LR_YARDL_SIGNED, 1, false},
    {"datetime", LR_YARDL_SIGNED, 1, false},
    {"float32", LR_YARDL_FLOAT32, 4, true},
    {"float64", LR_YARDL_FLOAT64, 8, true},
    {"complexfloat32", LR_YARDL_COMPLEX, 8, true},
    {"complexfloat64", LR_YARDL_COMPLEX, 16, true},
    {"string", LR_YARDL_STRING, 1, false},
};

static struct lr_yardl_type *resolve(struct lr_yardl_schema *schema, struct fy_node *node,
                                     const struct arguments *arguments, int depth);

static struct lr_yardl_type *resolve_primitive(struct lr_yardl_schema *schema, const char *name, bool *found)
{
    *found = false;
    for (size_t k = 0; k < sizeof(primitives) / sizeof(primitives[0]); k++) {
        if (strcmp(primitives[k].name, name) == 0) {
            *found = true;
            struct lr_yardl_type *type = new_type(schema, primitives[k].kind, 0);
            if (type != NULL) {
                type->least_bytes = primitives[k].bytes;
                type->same_bytes = primitives[k].same;
            }
            return type;
        }
    }
    return NULL;
}

/* Sets the number of bytes of a list. The type of its items is known. */
static void measure_list(struct lr_yardl_type *type)
{
    if (!type->is_fixed) {
        type->least_bytes = type->rank > 1 ? type->rank : 1;
        return;
    }
    int64_t count = 1;
    for (int k = 0; k < type->rank; k++) count = times_bytes(type->dims[k], count);
    type->least_bytes = times_bytes(count, type->item->least_bytes);
    type->same_bytes = type->item->same_bytes;
}

static struct lr_yardl_type *resolve_vector(struct lr_yardl_schema *schema, struct fy_node *node,
                                            const struct arguments *arguments, int depth)
{
    struct lr_yardl_type *type = new_type(schema, LR_YARDL_LIST, 0);
    struct fy_node *length = child(node, "length");
    if (type == NULL) return NULL;
    type->rank = 1;
    type->is_fixed = length != NULL;
    if (length != NULL && !whole(length, &type->dims[0])) {
        (void)bad(schema, "has a vector of length", text_of(length));
        return NULL;
    }
    type->item = resolve(schema, child(node, "items"), arguments, depth);
    if (type->item == NULL) return NULL;
    measure_list(type);
    return type;
}

static struct lr_yardl_type *resolve_record(struct lr_yardl_schema *schema, struct fy_node *fields,
                                            const struct arguments *arguments, int depth)
{
    struct lr_yardl_type *type = new_type(schema, LR_YARDL_RECORD, count_of(fields));
    if (type == NULL) return NULL;
    type->same_bytes = true;
    for (int k = 0; k < type->num_parts; k++) {
        struct fy_node *field = fy_node_sequence_get_by_index(fields, k);
        const char *name = text_of(child(field, "name"));
        const struct lr_yardl_type *part =
            name != NULL ? resolve(schema, child(field, "type"), arguments, depth) : NULL;
        if (part == NULL) {
            (void)(name == NULL ? bad(schema, "has a field without name in", schema->name) : LR_OK);
            return NULL;
        }
        type->parts[k] = (struct lr_yardl_part){name, part};
        type->least_bytes =
            type->least_bytes > most_bytes - part->least_bytes ? most_bytes : type->least_bytes + part->least_bytes;
        type->same_bytes = type->same_bytes && part->same_bytes;
    }
    return type;
}

static struct lr_yardl_type *resolve_named(struct lr_yardl_schema *schema, const char *name,
                                           const struct arguments *arguments, int depth)
{
    const char *dot = strrchr(name, '.');
    const char *own = dot != NULL ? dot + 1 : name;
    struct fy_node *node = NULL;
    for (int k = 0; k < schema->num_names && node == NULL; k++)
        node = strcmp(schema->names[k].name, own) == 0 ? schema->names[k].node : NULL;
    if (node == NULL) {
        (void)bad(schema, "lacks the type", name);
        return NULL;
    }
    struct arguments inner = {child(node, "typeParameters"), NULL, NULL};
    if (arguments != NULL) {
        inner.values = arguments->values;
        inner.outer = arguments->outer;
    }
    if (count_of(inner.parameters) != count_of(inner.values)) {
        (void)bad(schema, "gives another number of arguments to", name);
        return NULL;
    }
    if (child(node, "fields") != NULL) return resolve_record(schema, child(node, "fields"), &inner, depth);
    if (child(node, "values") != NULL) { /* an enumeration, or flags */
        const char *base = text_of(child(node, "base"));
        bool found;
        return resolve_primitive(schema, base != NULL ? base : "int32", &found);
    }
    return resolve(schema, child(node, "type"), &inner, depth);
}

/* Makes the type that a node of the schema describes. depth: number of types around the node. errors: NULL, logged. */
static struct lr_yardl_type *resolve(struct lr_yardl_schema *schema, struct fy_node *node,
                                     const struct arguments *arguments, int depth)
{
    if (depth > MAX_DEPTH) {
        (void)bad(schema, "nests types more than 64 deep, in", schema->name);
        return NULL;
    }

    /* A name means a simple type, a parameter of the surrounding generic type, or a type of the schema. */
    const char *name = text_of(node);
    if (name != NULL) {
        bool found;
        struct lr_yardl_type *simple = resolve_primitive(schema, name, &found);
        if (found) return simple;
        for (int k = 0; arguments != NULL && k < count_of(arguments->parameters); k++) {
            const char *parameter = text_of(fy_node_sequence_get_by_index(arguments->parameters, k));
            if (parameter != NULL && strcmp(parameter, name) == 0) {
                return resolve(schema, fy_node_sequence_get_by_index(arguments->values, k), arguments->outer,
                               depth + 1);
            }
        }
        return resolve_named(schema, name, NULL, depth + 1);
    }

    if (node != NULL && fy_node_is_mapping(node)) {
        struct fy_node *inner;
        if ((inner = child(node, "vector")) != NULL) return resolve_vector(schema, inner, arguments, depth + 1);
        if ((inner = child(node, "array")) != NULL) {
            struct lr_yardl_type *type = new_type(schema, LR_YARDL_LIST, 0);
            if (type == NULL) return NULL;
            struct fy_node *dims = child(inner, "dimensions");
            const bool are_listed = dims != NULL && fy_node_is_sequence(dims);
            int64_t rank = dims == NULL ? -1 : count_of(dims);
            int known = 0; /* number of dimensions of fixed length */
            bool understood =
                dims == NULL || ((are_listed || whole(dims, &rank)) && rank >= 1 && rank <= LR_YARDL_MAX_RANK);
            for (int k = 0; understood && are_listed && k < rank; k++)
                known += whole(child(fy_node_sequence_get_by_index(dims, k), "length"), &type->dims[k]);
            understood = understood && (known == 0 || known == rank);
            if (!understood) {
                (void)bad(schema, "has an array of dimensions that are not understood, in", schema->name);
                return NULL;
            }
            type->rank = (int)rank;
            type->is_fixed = known > 0;
            type->item = resolve(schema, child(inner, "items"), arguments, depth + 1);
            if (type->item == NULL) return NULL;
            measure_list(type);
            return type;
        }

        if ((inner = child(node, "stream")) != NULL) {
            struct lr_yardl_type *type = resolve_vector(schema, inner, arguments, depth + 1);
            if (type != NULL) type->is_stream = true;
            return type;
        }
        if ((inner = child(node, "map")) != NULL) {
            struct lr_yardl_type *type = new_type(schema, LR_YARDL_MAP, 2);
            if (type == NULL) return NULL;
            type->least_bytes = 1;
            type->parts[0].type = resolve(schema, child(inner, "keys"), arguments, depth + 1);
            type->parts[1].type =
                type->parts[0].type ? resolve(schema, child(inner, "values"), arguments, depth + 1) : NULL;
            return type->parts[1].type != NULL ? type : NULL;
        }

        name = text_of(child(node, "name"));
        if (name == NULL) {
            (void)bad(schema, "has a type that is not understood, in", schema->name);
            return NULL;
        }
        const struct arguments given = {NULL, child(node, "typeArguments"), arguments};
        return resolve_named(schema, name, &given, depth + 1);
    }
    if (node == NULL || !fy_node_is_sequence(node)) {
        (void)bad(schema, "lacks a type, in", schema->name);
        return NULL;
    }

    /* A union: [null, T], or cases {"tag": ..., "type": ...}. */
    struct lr_yardl_type *type = new_type(schema, LR_YARDL_UNION, count_of(node));
    if (type == NULL) return NULL;
    type->least_bytes = 1;
    for (int k = 0; k < type->num_parts; k++) {
        struct fy_node *item = fy_node_sequence_get_by_index(node, k);
        struct fy_node *inner = child(item, "type");
        const char *tag = text_of(child(item, "tag"));
        type->parts[k].name = tag != NULL ? tag : "";
        struct fy_node *stated = inner != NULL ? inner : item;
        const char *stated_text = text_of(stated);
        if (stated == NULL || (stated_text != NULL && strcmp(stated_text, "null") == 0)) {
            type->parts[k].name = "null";
            continue;
        }
        type->parts[k].type = resolve(schema, stated, arguments, depth + 1);
        if (type->parts[k].type == NULL) return NULL;
    }
    return type;
}

/* --- parsing --- */

struct lr_yardl_schema *lr_yardl_schema_parse(const char *name, const char *text, int64_t text_bytes, const lr_log *log)
{
    if (text_bytes > MAX_TEXT) {
        lr_error(log, LR_BAD_INPUT, "%s: its schema has %lld bytes, more than 256 KiB: it is damaged", name,
                 (long long)text_bytes);
        return NULL;
    }

    /* Only JSON of limited depth is accepted, because libfyaml would read any YAML and deep nesting would overflow the
     * stack. */
    int depth = 0;
    bool quoted = false;
    for (int64_t k = 0; k < text_bytes; k++) {
        const char c = text[k];
        if (quoted) {
            k += c == '\\' ? 1 : 0;
            quoted = c != '"';
            continue;
        }
        quoted = c == '"';
        depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        const bool plain =
            (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c != '\0' && strchr("{}[]:,\"+-.E \t\r\n", c) != NULL);
        if (!plain || depth < 0 || depth > MAX_DEPTH) {
            lr_error(log, LR_BAD_INPUT,
                     "%s: its schema is no JSON of at most %d levels (byte %lld of it): the file is damaged", name,
                     MAX_DEPTH, (long long)k);
            return NULL;
        }
    }

    struct lr_yardl_schema *schema = lr_alloc(1, sizeof(*schema), "a schema", log);
    if (schema == NULL) return NULL;
    schema->log = log;
    schema->path = name;
    schema->text = lr_alloc(text_bytes + 1, 1, "a schema", log);
    if (schema->text != NULL && text_bytes == 0) {
        (void)bad(schema, "has no protocol", "");
    } else if (schema->text != NULL) {
        memcpy(schema->text, text, (size_t)text_bytes);
        schema->yaml = lr_yaml_parse(name, text, text_bytes, log);
    }
    if (schema->yaml == NULL) goto failed;

    struct fy_node *root = fy_document_root(schema->yaml->document);
    struct fy_node *protocol = child(root, "protocol"), *steps = child(protocol, "sequence");
    schema->name = text_of(child(protocol, "name"));
    if (schema->name == NULL || count_of(steps) == 0) {
        (void)bad(schema, "has no protocol", "");
        goto failed;
    }
    struct fy_node *types = child(root, "types"), *node;
    const int count = count_of(types);
    schema->names = lr_alloc(count, sizeof(*schema->names), "a schema", log);
    if (schema->names == NULL) goto failed;
    void *iterator = NULL;
    while (count > 0 && schema->num_names < count && (node = fy_node_sequence_iterate(types, &iterator)) != NULL) {
        const char *own = text_of(child(node, "name"));
        if (own == NULL) {
            (void)bad(schema, "has a type without name in", schema->name);
            goto failed;
        }
        schema->names[schema->num_names++] = (struct lr_yardl_named){own, node};
    }

    schema->protocol = resolve_record(schema, steps, NULL, 0);
    if (schema->protocol == NULL) goto failed;
    schema->path = ""; /* the caller may free `name` */
    return schema;

failed:
    lr_yardl_schema_destroy(schema);
    return NULL;
}

void lr_yardl_schema_destroy(struct lr_yardl_schema *schema)
{
    if (schema == NULL) return;
    for (int k = 0; k < schema->num_types; k++) lr_free_all(schema->types[k]->parts, schema->types[k]);
    lr_free_all(schema->types, schema->names);
    lr_yaml_destroy(schema->yaml);
    lr_free_all(schema->text, schema);
}
