/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Text headers with lines "key : value" (CASToR) or "key := value" (Interfile). */
#pragma once

#include "io/files/number_type.h"

#include <lr/log.h>
#include <stddef.h>

/* Larger files are refused. Headers have a few KiB. */
#define LR_KEYED_TEXT_MAX_BYTES (8 << 20)

struct lr_keyed_line {
    const char *key;   /* lower case; runs of blanks, '_', '!' and '%' are one blank */
    const char *value; /* without blanks at its ends */
    int number;        /* line number from 1; 0 = no line */
    int index;         /* index of an Interfile "key [i]"; 0 = none */
};

/* A header in memory. */
struct lr_keyed_text {
    const char *path; /* owned by the caller */
    const lr_log *log;
    char *bytes;
    struct lr_keyed_line *lines; /* [count] */
    int count;
    bool has_start; /* true: the first line is INTERFILE */
    bool has_end;   /* true: the line END OF INTERFILE was found */
};

struct lr_keyed_dialect {
    const char *separator; /* ":" or ":=" */
    char comment;          /* begins a comment, which ends with the line: '#' or ';' */
    const char *what;      /* name for messages: "a CASToR scanner file" */
    bool is_interfile;     /* Interfile's rules: comments are whole lines, '\\' at a line's end joins the next line,
                              keys have indices, text after "end of interfile" is ignored, and a header may have no
                              values */
};

/* Reads a header; warns if its last line has no end. Memory: at most 32 times the file's size.
 * errors: LR_BAD_INPUT if the file is not regular, is too large, or has a line above 64 KiB or no header line. *text
 * then holds nothing. */
lr_status lr_keyed_text_read(struct lr_keyed_text *text, const char *path, const struct lr_keyed_dialect *dialect,
                             const lr_log *log);
void lr_keyed_text_finish(struct lr_keyed_text *text);

/* Returns the line of a key. If no line has this key, returns the first line whose key contains `key`, or NULL. */
const struct lr_keyed_line *lr_keyed_text_find(const struct lr_keyed_text *text, const char *key);

/* A number to be read, and the range that is accepted. */
struct lr_keyed_number {
    const char *key;
    double least, most;
    bool required; /* false: *value is unchanged if the key or its value is missing */
    bool whole;
};

/* Reads element `index` of a comma-separated value. If there are fewer elements, the last one is taken. errors:
 * LR_BAD_INPUT, with file and line. */
lr_status lr_keyed_text_number(const struct lr_keyed_text *text, const struct lr_keyed_number *number, int index,
                               double *value);

/* Checks that an Interfile header has its end line. errors: LR_BAD_INPUT, logged. */
lr_status lr_keyed_text_need_end(const struct lr_keyed_text *text);

/* The use that a reader makes of a key. */
enum lr_key_outcome {
    LR_KEY_READ,    /* the value is read, or compared with another value */
    LR_KEY_IDLE,    /* the value does not matter for the measurement */
    LR_KEY_WARNED,  /* a value other than the usual ones causes a warning */
    LR_KEY_REFUSED, /* a value other than the usual ones is refused */
};

/* Keys, and what the reader does with them. '|' separates alternative keys, and alternative usual values. */
struct lr_known_key {
    enum lr_key_outcome outcome;
    const char *keys;    /* normalised as in lr_keyed_line; '*' at the end of a key matches any text */
    const char *usual;   /* words or numbers that have no effect; each element of a list must be usual */
    const char *meaning; /* end of the message about any other value */
};

/* All keys that a reader knows; docs/formats/keys.md is printed from these tables. */
struct lr_known_keys {
    const char *format; /* name of the format in messages: "CASToR's .geom files" */
    const struct lr_known_key *rows;
    int count;
    bool finds_parts;                   /* a line matches a key that its text contains, as in CASToR */
    const struct lr_known_keys *beside; /* keys that another reader of the same file checks */
};

/* Judges, by the table, all lines that have values. Unusual values are logged, and unknown keys in one warning. errors:
 * LR_BAD_INPUT, with file, line and key, for a refused value. */
#define LR_KNOWN_ROWS(list) .rows = list, .count = sizeof(list) / sizeof(list[0])
lr_status lr_keyed_text_judge(const struct lr_keyed_text *text, const struct lr_known_keys *known);

/* Logs "file:line: message", or "file: message" if line is NULL. Returns LR_BAD_INPUT. */
lr_status lr_keyed_text_error(const struct lr_keyed_text *text, const struct lr_keyed_line *line, const char *format,
                              ...) LR_PRINTF(3, 4);

/* Reads a regular file. *bytes: its contents, followed by a zero byte; the caller frees them. what: "" or "the header
 * ", for messages. errors, logged with the path: LR_BAD_INPUT for a file that is not regular or has more than `most`
 * bytes; LR_FAILED. On failure *bytes is NULL. */
lr_status lr_file_bytes(const char *what, const char *path, int64_t most, int64_t *count, char **bytes,
                        const lr_log *log);

/* --- Interfile: lines "key := value"; STIR, CASToR and Siemens each write a dialect --- */

/* Keys are the same in upper and lower case. A run of blanks, '_', '!' and '%' counts as one blank. "key [i]" has the
 * index i. ';' begins a comment line. A line that ends with '\' continues in the next line. Text after "END OF
 * INTERFILE" is not read. If a key is given twice, the last value counts. */

/* Keys that concern the patient, the tracer and the energy windows. No reader of Interfile headers needs them. */
#define LR_INTERFILE_IDLE_KEYS                                                                                         \
    "sms-mi version number|study date*|study time*|patient name|patient id|data description|data set*|"                \
    "scan data type description|isotope name|isotope gamma halflife (sec)|isotope branching factor|"                   \
    "number of radionuclides|radionuclide name|radionuclide halflife (sec)|radionuclide branching factor|"             \
    "image relative start time (sec)|image duration (sec)|number of energy windows|energy window lower level*|"        \
    "energy window upper level*|energy window pair|comment"

/* The meaning of a patient's orientation, for lr_known_key. */
#define LR_PATIENT_AXES                                                                                                \
    "the axes of images are those of a patient who lies head first on the back: turn the image if they are to be "     \
    "the patient's own"

/* The dialect of these headers, for lr_keyed_text_read. */
extern const struct lr_keyed_dialect lr_interfile_dialect;

/* Returns the line of a key, or NULL. key: in lower case. index: 0 = the key has no index. */
const struct lr_keyed_line *lr_interfile_find(const struct lr_keyed_text *file, const char *key, int index);

/* Returns the value of a key, or NULL. */
const char *lr_interfile_text(const struct lr_keyed_text *file, const char *key, int index);

/* Each function reads a number. *number is unchanged if the key is missing or has no value. errors: LR_BAD_INPUT, with
 * the line, for a value that is not a number. */
lr_status lr_interfile_integer(const struct lr_keyed_text *file, const char *key, int index, int64_t *number);
lr_status lr_interfile_number(const struct lr_keyed_text *file, const char *key, int index, double *number);

/* Reads a list "{a, b, c}", or one number without braces. *numbers: owned by the caller; NULL if the key is missing.
 * *count: length of the list. */
lr_status lr_interfile_integers(const struct lr_keyed_text *file, const char *key, int index, int64_t **numbers,
                                int64_t *count);

/* Finds the type of the numbers in the data file and the offset of the first number. Without the key "imagedata byte
 * order", numbers are big endian (Interfile 3.3). */
lr_status lr_interfile_number_type(const struct lr_keyed_text *file, struct lr_number_type *type,
                                   int64_t *offset_bytes);

/* Returns the path of the data file, owned by the caller. A relative path starts at the header's folder. NULL, logged,
 * if the header names no data file. */
char *lr_interfile_data_path(const struct lr_keyed_text *file);
