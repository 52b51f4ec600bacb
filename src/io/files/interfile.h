/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Interfile text: lines "key := value". STIR, CASToR and Siemens write dialects of it. Keys are
 * compared without case, and runs of blanks, '_', '!' and '%' count as one blank; "key [i]" has the
 * index i; ';' begins a comment line; a '\' at a line's end joins the next; what follows
 * "END OF INTERFILE" is not read. A key given twice has its last value. */
#ifndef LR_IO_INTERFILE_H
#define LR_IO_INTERFILE_H

#include "io/files/keyed_text.h"
#include "io/files/number_type.h"

#include <lr/log.h>

/* A header in memory. Texts live as long as it. */
struct lr_interfile {
    char *path; /* owned */
    const lr_log *log;
    struct lr_keyed_text text;
};

/* Reads a whole header; at most 8 MiB and 64 KiB a line, in memory of at most 32 times
 * its size.
 * errors: LR_BAD_INPUT, a sentence with the path; nothing to finish then. */
lr_status lr_interfile_read(struct lr_interfile *file, const char *path, const lr_log *log);

/* Zero is allowed. */
void lr_interfile_finish(struct lr_interfile *file);

/* A key's value, or NULL. `key` in lower case; index 0: without one. */
const char *lr_interfile_text(const struct lr_interfile *file, const char *key, int index);

/* True where a value is this word, in lower case, but for case and runs of blanks. */
bool lr_interfile_is(const char *value, const char *word);

/* Line of a key; 0 without it. */
int lr_interfile_line(const struct lr_interfile *file, const char *key, int index);

/* Numbers; *number stays where the key is missing or has no value.
 * errors: LR_BAD_INPUT for a value that is none, with the line. */
lr_status lr_interfile_integer(const struct lr_interfile *file, const char *key, int index, int64_t *number);
lr_status lr_interfile_number(const struct lr_interfile *file, const char *key, int index, double *number);

/* A list "{a, b, c}", or one number without braces. Returns in *count how many there are and in
 * *numbers an array to be freed; NULL and 0 where the key is missing. */
lr_status lr_interfile_integers(const struct lr_interfile *file, const char *key, int index, int64_t **numbers,
                                int64_t *count);

/* What the data file holds, by "number format", "number of bytes per pixel" and "imagedata byte
 * order" (without it big endian, as Interfile 3.3 says), and how many bytes come before. */
lr_status lr_interfile_number_type(const struct lr_interfile *file, struct lr_number_type *type, int64_t *offset_bytes);

/* Path of the data file, beside the header unless absolute; owned by the caller. NULL, logged,
 * without one. */
char *lr_interfile_data_path(const struct lr_interfile *file);

#endif
