/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * YAML 1.2 documents whose errors name file, line and column and show the line. The core schema is
 * typed here, strictly: no "no" for false, no sexagesimals, no aliases, no tags. */
#ifndef LR_IO_YAML_H
#define LR_IO_YAML_H

#include "io/files/output.h"

#include <libfyaml.h>
#include <lr/log.h>

/* One loaded document with its text. Not shared between threads. */
struct lr_yaml;

/* Largest file that is read. */
#define LR_YAML_MAX_BYTES (INT64_C(64) << 20)

/* Loads the one document of a file. NULL: the log says what is wrong and where (LR_BAD_INPUT for
 * everything about the file, LR_FAILED when memory is short). Keeps `log`. */
struct lr_yaml *lr_yaml_read(const char *path, const lr_log *log);

/* Loads the document from text; errors show `name` instead of a path. Copies both. */
struct lr_yaml *lr_yaml_parse(const char *name, const char *text, int64_t text_bytes, const lr_log *log);

/* NULL is allowed. */
void lr_yaml_destroy(struct lr_yaml *yaml);

/* Takes a whole document. */
struct lr_yaml_taker {
    lr_status (*take)(const struct lr_yaml *yaml, void *user);
    void *user;
    const lr_log *log;
};

/* Loads text, or if that is NULL the file of that name, has it taken and destroys it, all in the C locale.
 * errors: as lr_yaml_read, when nothing is taken, and those of `take`. */
lr_status lr_yaml_take(const char *name, const char *text, int64_t text_bytes, const struct lr_yaml_taker *taker);

struct fy_node *lr_yaml_root(const struct lr_yaml *yaml);

/* Logs "file:line:column: message", then the line and a caret below the node, in one message.
 * Evaluates to LR_BAD_INPUT. */
lr_status lr_yaml_error(const struct lr_yaml *yaml, struct fy_node *at, const char *format, ...) LR_PRINTF(3, 4);

/* Does the same at any level and with any status; the line is shown for errors only. */
void lr_yaml_say(const struct lr_yaml *yaml, struct fy_node *at, lr_log_level level, lr_status status,
                 const char *sentence);

/* Line of a node, from 1; 0 when unknown. */
int lr_yaml_line(struct fy_node *node);

const lr_log *lr_yaml_log(const struct lr_yaml *yaml);

/* --- values --- */

enum lr_yaml_kind {                        /* what `value` of a field points to */
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
    void *value;         /* untouched when the key is absent */
    struct fy_node **at; /* set to the key's node; or NULL */
};

struct lr_yaml_mapping {
    struct fy_node *node;
    struct fy_node *at; /* the mapping's own key, at which missing keys are reported */
    const char *what;   /* the mapping in words: "a ring" */
};

/* Reads a mapping by its fields.
 * errors: LR_BAD_INPUT for anything but a mapping, unknown keys (with the nearest known one),
 *         repeated and missing keys, wrong types and sizes. */
lr_status lr_yaml_read_fields(const struct lr_yaml *yaml, const struct lr_yaml_mapping *mapping,
                              const struct lr_yaml_field *fields, int num_fields);

/* Reads one value of the field's kind into field->value. at: node to show in errors if the value is empty and has no
 * place. */
lr_status lr_yaml_read_value(const struct lr_yaml *yaml, const struct lr_yaml_field *field, struct fy_node *node,
                             struct fy_node *at);

/* Pieces of YAML on their way to a file. Failures stay in the output until it is finished. The
 * calling thread's locale must use a decimal point. */

/* Writes at most 511 bytes. */
void lr_yaml_put(struct lr_output *output, const char *format, ...) LR_PRINTF(2, 3);

/* The shortest decimal that is read back as the same number; zero has no sign. */
const char *lr_yaml_number(char text[32], double value);

/* "key: [1, 2.5]" */
void lr_yaml_put_numbers(struct lr_output *output, const char *key, const double *values, int count);

/* A double-quoted scalar, and the end of its line. */
void lr_yaml_put_text(struct lr_output *output, const char *text, size_t length);

#endif
