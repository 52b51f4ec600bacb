/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_IO_REGULAR_FILE_H
#define LR_IO_REGULAR_FILE_H

#include <lr/log.h>
#include <stdio.h>

/* Opens a file to be read. Pipes, terminals and devices, which have no end or wait for another
 * program, are none.
 * what: "" or, with a blank behind it, what the file is to the one who named it: "the image ".
 * errors: NULL, logged as LR_BAD_INPUT: missing, a folder, no regular file. */
FILE *lr_file_open(const char *path, const char *what, const lr_log *log);

/* The same for a text of at most `most` bytes. */
FILE *lr_file_open_text(const char *path, const char *what, int64_t most, const lr_log *log);

/* A log for what is read of a file that another one names. Where it lies outside of the folder of
 * that other one, errors say that it is not as it must be, and nothing of what it holds: whoever
 * wrote the header need not be allowed to read it. Pass .log; lives as long as its arguments. */
struct lr_discreet_log {
    lr_log log;
    const lr_log *to;
    const char *path, *header;
};
void lr_log_discreet(struct lr_discreet_log *discreet, const char *path, const char *header, const lr_log *to);

#endif
