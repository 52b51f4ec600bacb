/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_IO_REGULAR_FILE_H
#define LR_IO_REGULAR_FILE_H

#include <lr/log.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Opens a file to be read. Pipes, terminals and devices are refused: they have no end or wait for another program.
 * what: "" or, with a blank at its end, the file's role: "the image ".
 * errors: NULL, logged as LR_BAD_INPUT: missing, a folder, no regular file. */
FILE *lr_file_open(const char *path, const char *what, const lr_log *log);

/* lr_file_open for a text of at most `most` bytes. */
FILE *lr_file_open_text(const char *path, const char *what, int64_t most, const lr_log *log);

/* A log for what is read of a file that another one names. If the file lies outside the header's folder, errors say
 * only that it is invalid and show no contents: the author of the header may lack the right to read it. Pass .log;
 * lives as long as its arguments. */
struct lr_discreet_log {
    lr_log log;
    const lr_log *to;
    const char *path, *header;
};
void lr_log_discreet(struct lr_discreet_log *discreet, const char *path, const char *header, const lr_log *to);

/* Fills `text` with the system's words for an errno, and returns it. */
const char *lr_error_text(int error, char text[128]);

enum { LR_OPEN_FAILURE = 800 };

/* Words before the name of another file in such a text. */
#define LR_OPEN_HINT "; did you mean"

/* Why `path` cannot be opened, for a message that has named it. error: errno. If nothing has that name, the text says
 * which folder was looked at and the nearest name in it: "No such file in scans; did you mean scans/head.petsird?".
 * Returns `text`. */
const char *lr_open_failure(const char *path, int error, char text[LR_OPEN_FAILURE]);

/* Beginning of a file, by which its format is recognised. */

enum { LR_FILE_HEAD_BYTES = 4096 };

struct lr_file_head {
    const char *path;
    char bytes[LR_FILE_HEAD_BYTES + 1]; /* a zero follows the last */
    size_t count;
};

/* Reads the head. A byte order mark is skipped; a file that cannot be read, or is no regular file, has an empty
 * head. */
void lr_file_head_read(const char *path, struct lr_file_head *head);

/* True if the file begins with these bytes. */
bool lr_head_begins(const struct lr_file_head *head, const char *start, size_t count);

/* True if the file begins as HDF5 does. */
bool lr_head_is_hdf5(const struct lr_file_head *head);

/* True if these bytes stand anywhere in the head. */
bool lr_head_holds(const struct lr_file_head *head, const char *part, size_t count);

/* Each folder recognises its own formats, by the name's ending or by how the file begins, as its readers do. */
bool lr_image_recognises(const struct lr_file_head *head);
bool lr_scanner_recognises(const struct lr_file_head *head);

/* The one of `words` that a person who wrote `word` most likely meant, or NULL when none is near:
 * a word that contains it, or else the one with the fewest letters to change, units (_mm, _deg,
 * _ps) left aside, as long as that is at most half of its letters. Capitals do not matter. Pure. */
const char *lr_nearest_word(const char *word, const char *const *words, size_t num_words);

#endif
