/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Output files that appear whole or not at all. Every writer of this folder goes through here. */
#ifndef LR_IO_OUTPUT_H
#define LR_IO_OUTPUT_H

#include <lr/log.h>
#include <stddef.h>
#include <sys/types.h>

enum { lr_output_most_together = 8 };

/* A file being written. Bytes go to a file without a name in the target's folder, or to a hidden one if the file
 * system has none without, which takes the target's place at the end. A target that is a device or a pipe
 * (/dev/stdout) is written in place. One thread at a time per output. */
struct lr_output {
    const lr_log *log;
    char *path;        /* as the caller named it, for messages */
    char *target;      /* path with links followed */
    char *temporary;   /* the file's name until it is renamed; NULL = it has no name */
    int file;          /* open descriptor; -1 = closed */
    int error;         /* errno of the first failure, which has been logged; 0 = none */
    bool in_place;     /* the target itself is open: a device or a pipe */
    bool stays;        /* the written file is kept after a failure, under its name */
    bool source_stays; /* so does what the file is made of: a failure does not say that nothing was
                          left behind */
    unsigned char *buffer;
    size_t used; /* bytes waiting in the buffer */
};

/* Opens a file for writing; on failure the reason is logged and there is nothing to give up.
 * errors: LR_USAGE for an empty path, LR_FAILED for everything the system refuses. */
lr_status lr_output_open(struct lr_output *output, const char *path, const lr_log *log);

/* The same with a file in the target's folder that the caller names, PATH.ENDING, which another run may go on with:
 * when it is there it is taken as it is, and it stays whatever fails (`stays`). One program at a time may have it
 * open; links are not followed.
 * errors: as lr_output_open; LR_USAGE for a device or a pipe, LR_FAILED while another program has it, or if that
 * name belongs to a link or is not a regular file. */
lr_status lr_output_open_named(struct lr_output *output, const char *path, const char *ending, const lr_log *log);

/* Closes the file and leaves it where it is, under its name, if it has one. */
void lr_output_leave(struct lr_output *output);

/* Appends bytes. The first failure is logged; from then on nothing is written any more and every
 * call returns LR_FAILED. */
lr_status lr_output_write(struct lr_output *output, const void *bytes, size_t count);

/* Logs why a write failed (an errno) and remembers it, once per output; always LR_FAILED. For
 * libraries that write to the descriptor themselves. */
lr_status lr_output_fail(struct lr_output *output, int error);

/* Completes the file, forces it and its folder to the disk and puts it in place; after any failure so far it removes
 * what was written, unless that stays, and returns LR_FAILED. Either way the output is closed. The new file gets the
 * access rights of the replaced one. */
lr_status lr_output_finish(struct lr_output *output);

/* The same for files that belong together, at most lr_output_most_together: none is
 * put in place before all are on the
 * disk, and if one cannot be, what there was before is put back. A header goes last; while
 * others are replaced it is away, so that a kill leaves no header rather than one of other data. */
lr_status lr_output_finish_all(struct lr_output *const *outputs, int count);

/* Gives up: closes the file and removes what was written, unless it stays. Allowed after a failed
 * open. */
void lr_output_abandon(struct lr_output *output);

/* The place of an output while it is written, and its way into the final one: for output.c, and for files that runs
 * leave for each other. */

/* --- files that runs leave for each other --- */

enum lr_hold {
    LR_HELD,
    LR_HOLD_REFUSED, /* the system refused; see errno */
    LR_HOLD_LINK,    /* a link, symbolic or hard, which may lead to anything of the user's */
    LR_HOLD_NO_FILE, /* a folder, a device or a pipe */
    LR_HOLD_BUSY     /* another program has it */
};

/* Opens, or with `mode` other than 0 makes, the regular file of exactly that name, which this program
 * alone may hold until it closes it. *file is -1 unless it is held. */
enum lr_hold lr_hold_open(const char *path, mode_t mode, int *file);

/* Says why it is not held; `path` is what the user wanted to write. Always LR_FAILED. */
lr_status lr_hold_complain(enum lr_hold hold, const char *name, const char *path, const lr_log *log);

/* --- aside, and into place --- */

/* Rights for a new file at the target: of what it replaces, or 0666, less the user's mask. */
mode_t lr_place_mode(const char *target);

/* Forces names in the target's folder to the disk, if that can be done; false leaves errno. */
bool lr_place_sync_folder(const char *target);

/* gzip output. */

/* Bytes to be written. */
struct lr_piece {
    const void *bytes;
    size_t count;
};

/* Writes the pieces one after the other as one gzip stream without a time stamp, so that equal
 * pieces give equal files. All processors compress, whatever threads a command has otherwise.
 * errors: as lr_output_write; LR_FAILED, logged, if memory runs out. */
lr_status lr_output_deflate(struct lr_output *output, const struct lr_piece *pieces, int num_pieces);

#endif
