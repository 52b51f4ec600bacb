/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Files in yardl's compact binary encoding, read by the schema that they carry: whatever its version, the wanted values
 * are found by name and the others skipped. Memory for the schema's text is twice its length, and its types take 160
 * bytes each, at most 2^14 of them; counts in the file are trusted only as far as the bytes that are left can hold. */
#ifndef LR_IO_YARDL_H
#define LR_IO_YARDL_H

#include "io/files/output.h"

#include <lr/log.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* --- the schema --- */

enum lr_yardl_kind {
    LR_YARDL_BYTE, /* bool, uint8 */
    LR_YARDL_INT8,
    LR_YARDL_UNSIGNED, /* base-128 number */
    LR_YARDL_SIGNED,   /* the same, zig-zag; also dates, times and enumerations */
    LR_YARDL_FLOAT32,
    LR_YARDL_FLOAT64,
    LR_YARDL_COMPLEX, /* 8 or 16 bytes, only skipped */
    LR_YARDL_STRING,
    LR_YARDL_RECORD, /* parts = fields */
    LR_YARDL_UNION,  /* parts = cases; a part without a type is null. Optional values too */
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
    int rank;      /* rank of a list: 1 = a vector or stream, -1 = the file holds it */
    bool is_fixed; /* the sizes of a list are `dims`; the file does not hold them */
    int num_parts;
    int64_t dims[LR_YARDL_MAX_RANK];
    struct lr_yardl_part *parts;
    const struct lr_yardl_type *item;
    int64_t least_bytes; /* least length of a value in the file */
    bool same_bytes;     /* true if all values have that length */
};

/* A protocol: its steps are the parts of a record. */
struct lr_yardl_schema;

/* Reads a schema in JSON, at most 256 KiB and 64 levels deep; the text is copied. name: the file, in messages. errors:
 * NULL, logged. */
struct lr_yardl_schema *lr_yardl_schema_parse(const char *name, const char *text, int64_t text_bytes,
                                              const lr_log *log);
void lr_yardl_schema_destroy(struct lr_yardl_schema *schema); /* NULL is allowed */

const struct lr_yardl_type *lr_yardl_schema_protocol(const struct lr_yardl_schema *schema);
/* The protocol's name and the schema's text, byte for byte, with a zero at its end. */
const char *lr_yardl_schema_name(const struct lr_yardl_schema *schema);
const char *lr_yardl_schema_text(const struct lr_yardl_schema *schema);

/* --- values --- */

/* A file being read from its begin to its end. */
struct lr_yardl_input;

/* Opens a file and reads its magic and version; its schema follows. errors: NULL, logged, for
 * anything but a regular file that begins so. */
struct lr_yardl_input *lr_yardl_open(const char *path, const lr_log *log);
void lr_yardl_close(struct lr_yardl_input *input); /* NULL is allowed */

struct lr_yardl_schema *lr_yardl_read_schema(struct lr_yardl_input *input);

/* Logs "PATH: at byte N: message"; evaluates to LR_BAD_INPUT. */
lr_status lr_yardl_error(struct lr_yardl_input *input, const char *format, ...) LR_PRINTF(2, 3);

/* Bytes that are left of the file. */
int64_t lr_yardl_left(const struct lr_yardl_input *input);

/* --- many bytes at once --- */

/* Makes the buffer hold that many bytes, or all of the file if it is shorter, and keeps the bytes before them a
 * while; a file begins with 64 KiB. errors: LR_FAILED if memory runs out, what `settle` returns. */
lr_status lr_yardl_widen(struct lr_yardl_input *input, int64_t bytes);

/* Sets callbacks. `settle` (NULL = none) is called before buffered bytes are dropped and before an error is logged,
 * so that deferred work can be done. `on_fetch` (NULL = settle) is called by lr_yardl_more, after which the bytes
 * that were buffered stay until it is called again. If a callback fails, the function below that called it returns
 * its status and logs nothing more. */
void lr_yardl_listen(struct lr_yardl_input *input, lr_status (*settle)(void *user), lr_status (*on_fetch)(void *user),
                     void *user);

/* The buffered bytes from the current place in the file; they stay until `settle` or `on_fetch` is called. */
const unsigned char *lr_yardl_buffered(const struct lr_yardl_input *input, int64_t *count);

/* Fetches the bytes that follow the buffered ones; any: set if there were more (reading one byte at a time gives the
 * reason otherwise). errors: what `on_fetch` returns. */
lr_status lr_yardl_more(struct lr_yardl_input *input, bool *any);

/* Identifies the buffer in use; lr_yardl_swap makes the other one current, as it was left, until it is called again,
 * with no bytes fetched in between. */
const void *lr_yardl_buffer(const struct lr_yardl_input *input);
void lr_yardl_swap(struct lr_yardl_input *input);

/* A float from 4 buffered bytes. */
static inline double lr_yardl_float(const unsigned char *bytes)
{
    const uint32_t bits =
        (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
    float single;
    memcpy(&single, &bits, sizeof(single));
    return single;
}

/* Moves forward in the buffered bytes, or back if that is negative. */
void lr_yardl_move(struct lr_yardl_input *input, int64_t bytes);

/* --- single values --- */

/* One value of that type each; LR_BAD_INPUT, logged, when the file ends within it or the schema has
 * another kind of type there. */
lr_status lr_yardl_skip(struct lr_yardl_input *input, const struct lr_yardl_type *type);
lr_status lr_yardl_number(struct lr_yardl_input *input, const struct lr_yardl_type *type, double *value);
lr_status lr_yardl_integer(struct lr_yardl_input *input, const struct lr_yardl_type *type, int64_t *value);
/* Cut to `room` bytes with the zero at its end, and cleaned (base/clean_text.h). */
lr_status lr_yardl_text(struct lr_yardl_input *input, const struct lr_yardl_type *type, char *text, size_t room);

/* A list's sizes; its `count` items follow. With an optional list that is null, count = 0 and rank
 * = 0. A stream's items come in blocks: ask again until count is 0. */
struct lr_yardl_list {
    const struct lr_yardl_type *item;
    int64_t count;
    int rank;
    int64_t dims[LR_YARDL_MAX_RANK];
};
lr_status lr_yardl_list(struct lr_yardl_input *input, const struct lr_yardl_type *type, struct lr_yardl_list *list);

/* Gives the case of a union that follows: its part, or one of type NULL for null. A type that is no union is its own
 * only case, with the name "". */
lr_status lr_yardl_case(struct lr_yardl_input *input, const struct lr_yardl_type *type, struct lr_yardl_part *chosen);

/* A wanted field; take reads all of its value. */
struct lr_yardl_field {
    const char *name;
    bool required;
    lr_status (*take)(void *user, struct lr_yardl_input *input, const struct lr_yardl_type *type);
    const struct lr_yardl_field *fields; /* instead of take: the wanted fields of a record, with the same user */
};

/* Reads a record in the file's order: calls `take` for each field listed in `fields` and skips the others. `fields`
 * ends with an entry without a name; if that entry has a `take`, it gets the unlisted fields. An optional record
 * that is null has no fields. errors: LR_BAD_INPUT if the schema lacks a required field; errors of `take` are passed
 * on. */
lr_status lr_yardl_record(struct lr_yardl_input *input, const struct lr_yardl_type *type,
                          const struct lr_yardl_field *fields, void *user);

/* The field whose `take` is being called. */
const char *lr_yardl_field_name(const struct lr_yardl_input *input);

/* Values appended to an output, which keeps failures and logs them when it is finished. */

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
    const float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, 4);
    const unsigned char bytes[4] = {(unsigned char)bits, (unsigned char)(bits >> 8), (unsigned char)(bits >> 16),
                                    (unsigned char)(bits >> 24)};
    (void)lr_output_write(output, bytes, 4);
}

static inline void lr_yardl_put_text(struct lr_output *output, const char *text)
{
    lr_yardl_put_unsigned(output, strlen(text));
    (void)lr_output_write(output, text, strlen(text));
}

#endif
