/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Text headers of "key : value" or "key := value" lines, as CASToR and Interfile have them. */
#ifndef LR_IO_KEYED_TEXT_H
#define LR_IO_KEYED_TEXT_H

#include "io/files/number_type.h"

#include <lr/log.h>
#include <stddef.h>

/* Headers are a few KiB; larger files are refused. */
#define LR_KEYED_TEXT_MAX_BYTES (8 << 20)

struct lr_keyed_line {
    const char *key;   /* lower case; runs of blanks, '_', '!' and '%' are one blank */
    const char *value; /* trimmed */
    int number;        /* line number from 1; 0 = no line */
    int index;         /* index of an Interfile "key [i]"; 0 = none */
};

/* A loaded header; keeps path and log. */
struct lr_keyed_text {
    const char *path;
    const lr_log *log;
    char *bytes;
    struct lr_keyed_line *lines; /* [count] */
    int count;
    bool has_start; /* Interfile: begins with INTERFILE */
    bool has_end;   /* Interfile: ends with END OF INTERFILE */
};

struct lr_keyed_dialect {
    const char *separator; /* ":" or ":=" */
    char comment;          /* from here to the end of the line; '#' or ';' */
    const char *what;      /* in messages: "a CASToR scanner file" */
    bool is_interfile;     /* comments are whole lines, a '\\' at a line's end joins the next, keys have
                          indices, what follows "end of interfile" is not read, and a header may be
                          without values */
};

/* Reads a header; warns if its last line has no end. Memory: at most 32 times the file's size.
 * errors: LR_BAD_INPUT if the file is not regular, is too large, or has a line above 64 KiB or no header line. *text
 * then holds nothing. */
lr_status lr_keyed_text_read(struct lr_keyed_text *text, const char *path, const struct lr_keyed_dialect *dialect,
                             const lr_log *log);
void lr_keyed_text_finish(struct lr_keyed_text *text);

/* The line of that key, or else the first whose key contains it; NULL when there is none. */
const struct lr_keyed_line *lr_keyed_text_find(const struct lr_keyed_text *text, const char *key);

/* A number, with the range it must lie in. */
struct lr_keyed_number {
    const char *key;
    double least, most;
    bool required; /* if false, *value is unchanged if the key or its value is missing */
    bool whole;
};

/* Element `index` of a comma-separated value; a single element stands for all.
 * errors: LR_BAD_INPUT, with file and line. */
lr_status lr_keyed_text_number(const struct lr_keyed_text *text, const struct lr_keyed_number *number, int index,
                               double *value);

/* Checks that a header of Interfile is whole: LR_BAD_INPUT, logged, if its end is missing. */
lr_status lr_keyed_text_need_end(const struct lr_keyed_text *text);
/* Warns if a header that has no end line lacks the key that should be its last. */
void lr_keyed_text_miss(const struct lr_keyed_text *text, const char *last_key);

/* Outcome for a key of a format's own documentation. */
enum lr_key_outcome {
    LR_KEY_READ,    /* read, or compared with what is read */
    LR_KEY_IDLE,    /* changes neither the measurement nor its places */
    LR_KEY_WARNED,  /* a value other than the usual ones is a warning */
    LR_KEY_REFUSED, /* a value other than the usual ones is an error */
};

/* Keys, or values, are separated by '|'. */
struct lr_known_key {
    enum lr_key_outcome outcome;
    const char *keys;    /* as lr_keyed_line has them; a '*' at the end stands for any end */
    const char *usual;   /* words or numbers that change nothing; of lists each element is one */
    const char *meaning; /* end of the message about any other value */
};

/* All keys that a reader knows; docs/formats/keys.md is printed from these tables. */
struct lr_known_keys {
    const char *format; /* "CASToR's .geom files" */
    const struct lr_known_key *rows;
    int count;
    bool finds_parts;                   /* a line matches a key that its text contains, as in CASToR */
    const struct lr_known_keys *beside; /* keys that another reader of the same file judges */
};

/* Logs what the table says of the lines that have values, and once the keys that it does not have. errors:
 * LR_BAD_INPUT, with file, line and key, for a refused value. */
lr_status lr_keyed_text_judge(const struct lr_keyed_text *text, const struct lr_known_keys *known);

/* Logs "file:line: message"; line NULL = the file. Evaluates to LR_BAD_INPUT. */
lr_status lr_keyed_text_error(const struct lr_keyed_text *text, const struct lr_keyed_line *line, const char *format,
                              ...) LR_PRINTF(3, 4);

/* Returns the contents of a regular file, followed by a zero byte. NULL, logged, for other files and for more than
 * `most` bytes. */
char *lr_file_bytes(const char *path, int64_t most, int64_t *count, const lr_log *log);

/* Interfile text: lines "key := value". STIR, CASToR and Siemens write dialects of it. Keys are
 * compared without case, and runs of blanks, '_', '!' and '%' count as one blank; "key [i]" has the
 * index i; ';' begins a comment line; a '\' at a line's end joins the next; what follows
 * "END OF INTERFILE" is not read. A key given twice has its last value. */

/* A header in memory. Texts live as long as it. */
struct lr_interfile {
    char *path; /* owned */
    const lr_log *log;
    struct lr_keyed_text text;
};

/* Reads a whole header; at most 8 MiB and 64 KiB a line, in memory of at most 32 times
 * its size.
 * errors: LR_BAD_INPUT, a message with the path; nothing to finish then. */
lr_status lr_interfile_read(struct lr_interfile *file, const char *path, const lr_log *log);

/* *file may be zero. */
void lr_interfile_finish(struct lr_interfile *file);

/* A key's value, or NULL. `key` in lower case; index 0: without one. */
const char *lr_interfile_text(const struct lr_interfile *file, const char *key, int index);

/* True if a value is this word, in lower case, except for case and runs of blanks. */
bool lr_interfile_is(const char *value, const char *word);

/* Line of a key; 0 without it. */
int lr_interfile_line(const struct lr_interfile *file, const char *key, int index);

/* Numbers; *number stays as it is if the key is missing or has no value.
 * errors: LR_BAD_INPUT, with the line, for a value that is not a number. */
lr_status lr_interfile_integer(const struct lr_interfile *file, const char *key, int index, int64_t *number);
lr_status lr_interfile_number(const struct lr_interfile *file, const char *key, int index, double *number);

/* A list "{a, b, c}", or one number without braces. Returns in *count how many there are and in
 * *numbers an array to be freed; NULL and 0 if the key is missing. */
lr_status lr_interfile_integers(const struct lr_interfile *file, const char *key, int index, int64_t **numbers,
                                int64_t *count);

/* Gives the type of numbers in the data file, by "number format", "number of bytes per pixel" and "imagedata byte
 * order" (without it big endian, as Interfile 3.3 says), and how many bytes come before. */
lr_status lr_interfile_number_type(const struct lr_interfile *file, struct lr_number_type *type, int64_t *offset_bytes);

/* Path of the data file, in the header's folder unless absolute; owned by the caller. NULL, logged,
 * without one. */
char *lr_interfile_data_path(const struct lr_interfile *file);

#endif
