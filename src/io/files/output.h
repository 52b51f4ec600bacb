/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Output files, which appear whole or not at all. Everything in io/ that writes files uses this header. */
#pragma once

#include <lr/log.h>
#include <stddef.h>
#include <sys/types.h>

enum { lr_output_most_together = 8 };

/* A file being written. Bytes go to a temporary file in the target's folder, which replaces the target at the end. The
 * temporary file has no name, or a hidden name if the file system needs one. A target that is a device or a pipe
 * (/dev/stdout) is written directly. Only one thread at a time may use an output. */
struct lr_output {
    const lr_log *log;
    char *path;        /* the caller's path, for messages */
    char *target;      /* the file that `path` leads to, through links */
    char *temporary;   /* name of the temporary file; NULL = it has no name */
    int file;          /* open descriptor; -1 = closed */
    int error;         /* errno of the first failure, which has been logged; 0 = none */
    bool in_place;     /* `file` is the target, a device or a pipe */
    bool stays;        /* the temporary file is kept after a failure */
    bool source_stays; /* files from which this file is made are kept after a failure; the message then must not say
                          that nothing was left behind */
    unsigned char *buffer;
    size_t used; /* bytes waiting in the buffer */
};

/* Opens a file for writing. On failure nothing is open. errors, logged: LR_USAGE for an empty path; LR_FAILED if the
 * system refuses. */
lr_status lr_output_open(struct lr_output *output, const char *path, const lr_log *log);

/* Opens a file for writing. The temporary file is PATH.ENDING. After a failure the temporary file stays, so that
 * another run can continue. If the temporary file exists already, it is opened with its contents. Only one program at a
 * time may have this file open. errors: as lr_output_open; LR_USAGE if the target is a device or a pipe; LR_FAILED if
 * PATH.ENDING is open in another program, is a link, or is no regular file. */
lr_status lr_output_open_named(struct lr_output *output, const char *path, const char *ending, const lr_log *log);

/* Closes the temporary file, which stays if it has a name. */
void lr_output_leave(struct lr_output *output);

/* Appends bytes. The first failure is logged. From then on, nothing is written and every call returns LR_FAILED. */
lr_status lr_output_write(struct lr_output *output, const void *bytes, size_t count);

/* Stores and logs the reason for a failed write, once per output. Returns LR_FAILED. error: an errno. Code that writes
 * to output->file directly must call this function itself if a write fails. */
lr_status lr_output_fail(struct lr_output *output, int error);

/* Forces the file to the disk, gives it the access rights of the target, replaces the target by this file, and forces
 * the folder to the disk. After any failure, including earlier ones, does the same as lr_output_abandon and returns
 * LR_FAILED. The output is closed in any case. */
lr_status lr_output_finish(struct lr_output *output);

/* Finishes files that belong together, at most lr_output_most_together, as lr_output_finish does for one file. No file
 * is put in place before all are on the disk. If a file cannot be put in place, all targets stay as they were. The last
 * file must be the header, if there is one. The header's target is removed before the data files are replaced, so that
 * a killed program leaves no header with wrong data. */
lr_status lr_output_finish_all(struct lr_output *const *outputs, int count);

/* Closes the file, and removes the file unless output->stays. An output that could not be opened is allowed. */
void lr_output_abandon(struct lr_output *output);

/* --- files that one run leaves for the next --- */

enum lr_hold {
    LR_HELD,
    LR_HOLD_REFUSED, /* the system refused; errno has the reason */
    LR_HOLD_LINK,    /* a symbolic or hard link, which may lead to any file of the user */
    LR_HOLD_NO_FILE, /* a folder, a device or a pipe */
    LR_HOLD_BUSY     /* another program has the file open */
};

/* Opens a regular file and locks it for this program until the program closes it. mode: if not 0, a missing file is
 * created with these rights. Links are not followed. *file: -1 unless the result is LR_HELD. */
enum lr_hold lr_hold_open(const char *path, mode_t mode, int *file);

/* Logs why lr_hold_open failed. name: path of the file that was to be opened. path: the file that the user wants to
 * write. Returns LR_FAILED. */
lr_status lr_hold_complain(enum lr_hold hold, const char *name, const char *path, const lr_log *log);

/* --- the target --- */

/* Returns the access rights for a new file at the target: the rights of the existing file, or 0666 if there is none. */
mode_t lr_place_mode(const char *target);

/* Forces the names in the target's folder to the disk. Returns false, with errno, if that fails. */
bool lr_place_sync_folder(const char *target);

/* --- gzip --- */

/* Bytes to be written. */
struct lr_piece {
    const void *bytes;
    size_t count;
};

/* Writes all pieces as one gzip stream. The stream has no time stamp, so that equal pieces give equal files. All
 * processors compress, even if a command was limited to fewer threads. errors: as lr_output_write; LR_FAILED, logged,
 * if memory runs out. */
lr_status lr_output_deflate(struct lr_output *output, const struct lr_piece *pieces, int num_pieces);
