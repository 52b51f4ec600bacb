/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * YAML 1.2 documents. Errors name file, line and column, and show the line. Values are read strictly by the core
 * schema: "no" is not false, and aliases, tags and sexagesimal numbers are refused. */
#pragma once

#include "io/files/output.h"

#include <libfyaml.h>
#include <lr/log.h>

/* A document and its text. Only one thread may use it. Other source files use only the members `log`, `document`
 * and `below`. */
struct lr_yaml {
    char *name; /* owned */
    char *text; /* owned, zero terminated */
    int64_t text_bytes;
    struct fy_diag *diag;         /* owned */
    struct fy_parser *parser;     /* owned */
    struct fy_document *document; /* owned */
    /* keys of the format, each with the key below which it stands, for errors about unknown keys; the last is NULL. Set
     * by the reader of a format; NULL = none */
    const char *const (*below)[2];
    const lr_log *log;
};

/* Largest file that is read. */
#define LR_YAML_MAX_BYTES (INT64_C(64) << 20)

/* Loads a file with one document. The document keeps `log`. errors: NULL, logged with the place: LR_BAD_INPUT for a
 * fault of the file, LR_FAILED if memory runs out. */
struct lr_yaml *lr_yaml_read(const char *path, const lr_log *log);

/* Loads a document from a text, which is copied. Errors show `name` where lr_yaml_read shows a path. */
struct lr_yaml *lr_yaml_parse(const char *name, const char *text, int64_t text_bytes, const lr_log *log);

/* NULL is allowed. */
void lr_yaml_destroy(struct lr_yaml *yaml);

/* A value of the file with its key. */
struct lr_yaml_entry {
    struct fy_node *key, *value;
};

/* Logs "file:line:column: message", then the line and a caret below the node. Returns LR_BAD_INPUT. */
lr_status lr_yaml_error(const struct lr_yaml *yaml, struct fy_node *at, const char *format, ...) LR_PRINTF(3, 4);

/* Logs a message of any level with its place in the file. The line is shown only for errors. */
void lr_yaml_say(const struct lr_yaml *yaml, struct fy_node *at, lr_log_level level, lr_status status,
                 const char *sentence);

/* Returns the line of a node, from 1; 0 = unknown. */
int lr_yaml_line(struct fy_node *node);

/* Room for a line and the marks below it. */
enum { LR_YAML_EXCERPT = 256 };

/* Finds a node's line and column, from 1 (0 = unknown), and writes "\n    the line\n    ^~~~" as errors show it. */
void lr_yaml_show(const struct lr_yaml *yaml, struct fy_node *node, int place[2], char excerpt[LR_YAML_EXCERPT]);

/* --- values --- */

enum lr_yaml_kind {                        /* the type that `value` of a field points to */
                    LR_YAML_NODE,          /* struct fy_node *: any node */
                    LR_YAML_TEXT,          /* char *: owned by the caller; the previous text is freed */
                    LR_YAML_NUMBER,        /* double, finite */
                    LR_YAML_POSITIVE,      /* double > 0 */
                    LR_YAML_NOT_NEGATIVE,  /* double >= 0 */
                    LR_YAML_COUNT,         /* int >= 1 */
                    LR_YAML_INDEX,         /* int >= 0 */
                    LR_YAML_COUNT_PAIR,    /* int[2], each >= 1 */
                    LR_YAML_POSITIVE_PAIR, /* double[2], each > 0 */
                    LR_YAML_WIDTH_PAIR,    /* double[2], each >= 0 */
                    LR_YAML_NUMBER_PAIR,   /* double[2], finite */
                    LR_YAML_VECTOR         /* double[3], finite */
};

struct lr_yaml_field {
    const char *key;
    const char *other_key; /* another spelling, or NULL */
    enum lr_yaml_kind kind;
    bool required;
    void *value;         /* unchanged if the key is missing */
    struct fy_node **at; /* set to the key's node; NULL = not wanted */
};

struct lr_yaml_mapping {
    struct fy_node *node;
    struct fy_node *at; /* the key of the mapping itself, where errors about missing keys point */
    const char *what;   /* the mapping in words: "a ring" */
};

/* Reads the fields of a mapping. errors: LR_BAD_INPUT if the node is no mapping, and for unknown, repeated and missing
 * keys and wrong types and sizes. */
lr_status lr_yaml_read_fields(const struct lr_yaml *yaml, const struct lr_yaml_mapping *mapping,
                              const struct lr_yaml_field *fields, int num_fields);

/* Reads one value of the field's kind into field->value. at: node to show in errors if the value is empty and has no
 * place. */
lr_status lr_yaml_read_value(const struct lr_yaml *yaml, const struct lr_yaml_field *field, struct fy_node *node,
                             struct fy_node *at);

/* --- writing: lr_output_finish reports failures, and the thread's locale must have a decimal point --- */

/* Writes at most 511 bytes. */
void lr_yaml_put(struct lr_output *output, const char *format, ...) LR_PRINTF(2, 3);

/* Puts the shortest decimal that gives the same number into `text`, and returns `text`. Zero has no sign. */
const char *lr_yaml_number(char text[32], double value);

/* Writes "key: [1, 2.5]". */
void lr_yaml_put_numbers(struct lr_output *output, const char *key, const double *values, int count);

/* Writes a double-quoted scalar and a line end. */
void lr_yaml_put_text(struct lr_output *output, const char *text, size_t length);
