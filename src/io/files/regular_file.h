/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#pragma once

#include <lr/log.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Opens a file for reading. Pipes, terminals and devices are refused, because they have no end or wait for another
 * program. what: the file's role with a blank at its end, such as "the image ", or "". errors: NULL, logged as
 * LR_BAD_INPUT, if the file is missing, is a folder, or is no regular file. */
FILE *lr_file_open(const char *path, const char *what, const lr_log *log);

/* Opens a text of at most `most` bytes, as lr_file_open does. */
FILE *lr_file_open_text(const char *path, const char *what, int64_t most, const lr_log *log);

/* lr_file_check_read checks that no earlier read of the file has failed. lr_file_truncated is for a file that has ended
 * too early. errors: LR_BAD_INPUT, logged with the path. */
lr_status lr_file_check_read(FILE *file, const char *path, const lr_log *log);
lr_status lr_file_truncated(FILE *file, const char *path, const lr_log *log);

/* A log for reading a file that a header names. If the file is outside the header's folder, errors do not show its
 * contents, because the header's author may not have the right to read the file. Readers get &discreet.log. The
 * arguments of lr_log_discreet must outlive this log. */
struct lr_discreet_log {
    lr_log log;
    const lr_log *to;
    const char *path, *header;
};
void lr_log_discreet(struct lr_discreet_log *discreet, const char *path, const char *header, const lr_log *to);

/* Writes the system's message for an errno into `text`, and returns `text`. */
const char *lr_error_text(int error, char text[128]);

enum { LR_OPEN_FAILURE = 800 };

/* Beginning of the hint in a text of lr_open_failure. The path of a similar file follows. */
#define LR_OPEN_HINT "; did you mean"

/* Writes into `text` why `path` cannot be opened, and returns `text`. error: errno. If there is no such file, the text
 * names the folder and the nearest name in it: "No such file in scans; did you mean scans/head.petsird?". */
const char *lr_open_failure(const char *path, int error, char text[LR_OPEN_FAILURE]);

/* --- the beginning of a file, by which its format is recognised --- */

enum { LR_FILE_HEAD_BYTES = 4096 };

struct lr_file_head {
    const char *path;
    char bytes[LR_FILE_HEAD_BYTES + 1]; /* `count` bytes, then a zero */
    size_t count;
};

/* Reads the head. A byte order mark is skipped; a file that cannot be read, or is no regular file, has an empty
 * head. */
void lr_file_head_read(const char *path, struct lr_file_head *head);

/* True if the file begins with these bytes. */
bool lr_head_begins(const struct lr_file_head *head, const char *start, size_t count);

/* True if the file begins like an HDF5 file. */
bool lr_head_is_hdf5(const struct lr_file_head *head);

/* True if the head contains these bytes anywhere. */
bool lr_head_holds(const struct lr_file_head *head, const char *part, size_t count);

/* True if a file has a format of images, or of scanners, by the ending of its name or by its first bytes. */
bool lr_image_recognises(const struct lr_file_head *head);
bool lr_scanner_recognises(const struct lr_file_head *head);

/* Returns the word of `words` that a person who wrote `word` most likely meant: one that contains `word`, or one with
 * the fewest letters to change. NULL if more than half of the letters would change. Units at the end (_mm, _deg, _ps)
 * and capitals do not count. */
const char *lr_nearest_word(const char *word, const char *const *words, size_t num_words);
