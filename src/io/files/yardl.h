/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Files in yardl's compact binary encoding. Each file contains its own schema, in which values are found by name.
 * Unknown values are skipped. A schema takes twice the length of its text in memory, and 160 bytes for each of at most
 * 2^14 types. A count in the file is an error if the rest of the file is too short for this number of items. */
#pragma once

#include "io/files/number_type.h"
#include "io/files/output.h"

#include <lr/log.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* --- the schema --- */

enum lr_yardl_kind {
    LR_YARDL_BYTE, /* bool, uint8 */
    LR_YARDL_INT8,
    LR_YARDL_UNSIGNED, /* base-128 number */
    LR_YARDL_SIGNED,   /* base-128 number after zig-zag; also dates, times and enumerations */
    LR_YARDL_FLOAT32,
    LR_YARDL_FLOAT64,
    LR_YARDL_COMPLEX, /* 8 or 16 bytes, only skipped */
    LR_YARDL_STRING,
    LR_YARDL_RECORD, /* parts = fields */
    LR_YARDL_UNION,  /* parts = cases; the case null has no type; an optional value is a union with the case null */
    LR_YARDL_LIST,   /* vector, array or stream of `item` */
    LR_YARDL_MAP     /* parts = key and value */
};

enum { LR_YARDL_MAX_RANK = 8, LR_YARDL_LONGEST = 10 /* bytes of a base-128 number */ };

struct lr_yardl_part {
    const char *name; /* name of a field, or a case's tag */
    const struct lr_yardl_type *type;
};

struct lr_yardl_type {
    enum lr_yardl_kind kind;
    bool is_stream;
    int rank;      /* rank of a list: 1 = a vector or stream, -1 = the rank is in the file */
    bool is_fixed; /* the sizes of a list are `dims`; the file does not hold them */
    int num_parts;
    int64_t dims[LR_YARDL_MAX_RANK];
    struct lr_yardl_part *parts;
    const struct lr_yardl_type *item;
    int64_t least_bytes; /* least length of a value in the file */
    bool same_bytes;     /* true if all values have the length least_bytes */
};

struct lr_yardl_schema {
    const char *name;               /* name of the protocol */
    char *text;                     /* the schema byte for byte, with a zero at its end */
    struct lr_yardl_type *protocol; /* a record, whose parts are the steps of the protocol */
    /* Fields that only yardl.c uses. */
    const char *path;
    const lr_log *log;
    struct lr_yaml *yaml;
    struct lr_yardl_named *names; /* owned [num_names] */
    int num_names, num_types;
    struct lr_yardl_type **types; /* owned [num_types], each owned */
    int64_t room;                 /* capacity of `types` */
};

/* Reads a schema in JSON, at most 256 KiB and 64 levels deep; the text is copied. name: name of the file, for messages.
 * errors: NULL, logged. */
struct lr_yardl_schema *lr_yardl_schema_parse(const char *name, const char *text, int64_t text_bytes,
                                              const lr_log *log);
void lr_yardl_schema_destroy(struct lr_yardl_schema *schema); /* NULL is allowed */

/* --- values --- */

/* A buffer with bytes of a file, and the current position in the buffer. */
struct lr_yardl_stretch {
    unsigned char *buffer; /* owned [room of the input] */
    size_t filled, used;
    int64_t at; /* bytes taken from the file so far */
};

/* A file being read from beginning to end. */
struct lr_yardl_input {
    char *path;
    const lr_log *log;
    FILE *file;
    int64_t size; /* bytes of the file */
    size_t room;
    struct lr_yardl_stretch now, other; /* other: for lr_yardl_swap; its buffer is NULL before lr_yardl_widen */
    lr_status (*settle)(void *user), (*on_fetch)(void *user);
    void *user;        /* argument of both callbacks */
    const char *field; /* name of the field that lr_yardl_record passes to `take` */
};

/* Opens a file and reads its magic, version and schema. The first value comes next in the file. *schema: owned by the
 * caller, who frees it with lr_yardl_schema_destroy; not to be used after an error. errors: NULL, logged, if the file
 * is not a regular file in yardl's encoding. */
struct lr_yardl_input *lr_yardl_open(const char *path, struct lr_yardl_schema **schema, const lr_log *log);
void lr_yardl_close(struct lr_yardl_input *input); /* NULL is allowed */

/* Logs "PATH: at byte N: message"; evaluates to LR_BAD_INPUT. */
lr_status lr_yardl_error(struct lr_yardl_input *input, const char *format, ...) LR_PRINTF(2, 3);

/* Number of bytes of the file that are left to read. */
int64_t lr_yardl_left(const struct lr_yardl_input *input);

/* --- many bytes at once --- */

/* Enlarges the buffer from 64 KiB to `bytes`, but not beyond the length of the file. Also makes the second buffer of
 * lr_yardl_swap, and sets two callbacks. This function must be called once, before any function below except for
 * lr_yardl_buffered and lr_yardl_move. settle: called before buffered bytes are dropped and before an error is logged,
 * so that the caller can first finish work on these bytes. on_fetch: called by lr_yardl_more; the bytes that were
 * buffered at that time stay until the next call of `on_fetch`. If a callback fails, the function that called it logs
 * nothing and returns the callback's status. errors: LR_FAILED if memory runs out. */
lr_status lr_yardl_widen(struct lr_yardl_input *input, int64_t bytes, lr_status (*settle)(void *user),
                         lr_status (*on_fetch)(void *user), void *user);

/* Returns the buffered bytes from the current position in the file. The bytes stay until `settle` or `on_fetch` is
 * called. */
const unsigned char *lr_yardl_buffered(const struct lr_yardl_input *input, int64_t *count);

/* Fetches the bytes that follow the buffered bytes. *any: false at the end of the file or if reading failed; the next
 * attempt to read a value logs the reason. errors: the status of `on_fetch`. */
lr_status lr_yardl_more(struct lr_yardl_input *input, bool *any);

/* Makes the other buffer current, at the position where its reading stopped. The next call of lr_yardl_swap undoes the
 * swap. No bytes may be fetched between the two calls. */
void lr_yardl_swap(struct lr_yardl_input *input);

/* Moves the position forward in the buffered bytes, or back if `bytes` is negative. */
void lr_yardl_move(struct lr_yardl_input *input, int64_t bytes);

/* --- single values --- */

/* Each function reads one value. errors: LR_BAD_INPUT, logged, if the file ends within the value, or if the schema has
 * another kind of type there. */
lr_status lr_yardl_skip(struct lr_yardl_input *input, const struct lr_yardl_type *type);
lr_status lr_yardl_number(struct lr_yardl_input *input, const struct lr_yardl_type *type, double *value);
lr_status lr_yardl_integer(struct lr_yardl_input *input, const struct lr_yardl_type *type, int64_t *value);
/* Reads a text, which is cut to `room` bytes, zero included, and cleaned (base/clean_text.h). */
lr_status lr_yardl_text(struct lr_yardl_input *input, const struct lr_yardl_type *type, char *text, size_t room);

/* Sizes of a list. Its `count` items follow in the file. count and rank are 0 for an optional list that is null. A
 * stream consists of several lists; the last one has count 0. */
struct lr_yardl_list {
    const struct lr_yardl_type *item;
    int64_t count;
    int rank;
    int64_t dims[LR_YARDL_MAX_RANK];
};
lr_status lr_yardl_list(struct lr_yardl_input *input, const struct lr_yardl_type *type, struct lr_yardl_list *list);

/* Reads which case of a union comes next in the file. *chosen: the part of the union; its type is NULL for null. If
 * `type` is no union, *chosen is `type` with the name "". */
lr_status lr_yardl_case(struct lr_yardl_input *input, const struct lr_yardl_type *type, struct lr_yardl_part *chosen);

/* A field that the caller wants. */
struct lr_yardl_field {
    const char *name;
    bool required;
    /* Reads the field's whole value. */
    lr_status (*take)(void *user, struct lr_yardl_input *input, const struct lr_yardl_type *type);
    const struct lr_yardl_field *fields; /* used if take is NULL: the wanted fields of a record */
};

/* Reads a record in the file's order. Calls `take` for each field listed in `fields`. The last entry of `fields` has no
 * name; its `take` is called for all other fields. If this `take` is NULL, other fields are skipped. An optional record
 * that is null has no fields. errors: LR_BAD_INPUT if the schema lacks a required field; errors of `take` are passed
 * on. */
lr_status lr_yardl_record(struct lr_yardl_input *input, const struct lr_yardl_type *type,
                          const struct lr_yardl_field *fields, void *user);

/* --- writing --- */

/* The functions below append a value to an output. lr_output_finish reports failures. */

static inline void lr_yardl_put_unsigned(struct lr_output *output, uint64_t value)
{
    unsigned char bytes[10];
    size_t count = 0;
    do {
        bytes[count++] = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value > 0);
    (void)lr_output_write(output, bytes, count);
}

static inline void lr_yardl_put_signed(struct lr_output *output, int64_t value)
{
    lr_yardl_put_unsigned(output, value < 0 ? ~((uint64_t)value << 1) : (uint64_t)value << 1);
}

static inline void lr_yardl_put_float(struct lr_output *output, double value)
{
    unsigned char bytes[4];
    (void)lr_put_float(bytes, (float)value);
    (void)lr_output_write(output, bytes, sizeof(bytes));
}

static inline void lr_yardl_put_text(struct lr_output *output, const char *text)
{
    lr_yardl_put_unsigned(output, strlen(text));
    (void)lr_output_write(output, text, strlen(text));
}
