/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Output files that appear whole or not at all. Every writer of this folder goes through here. */
#ifndef LR_IO_OUTPUT_H
#define LR_IO_OUTPUT_H

#include <lr/log.h>
#include <stddef.h>

/* A file being written. Bytes go to a hidden file in the target's folder, which takes the target's
 * place at the end. A target that is a device or a pipe (/dev/stdout) is written in place.
 * One thread at a time per output. */
struct lr_output {
    const lr_log *log;
    char *path;      /* as the caller named it, for sentences */
    char *target;    /* the same with links followed */
    char *temporary; /* NULL = the target is written in place */
    int file;        /* open descriptor; -1 = closed */
    int error;       /* errno of the first failure, which has been logged; 0 = none */
    unsigned char *buffer;
    size_t used; /* bytes waiting in the buffer */
};

/* Opens a file for writing; on failure the reason is logged and there is nothing to give up.
 * errors: LR_USAGE for an empty path, LR_FAILED for everything the system refuses. */
lr_status lr_output_open(struct lr_output *output, const char *path, const lr_log *log);

/* The same with a file beside the target of the caller's naming, PATH.ENDING, which another run may
 * go on with: when it is there it is taken as it is. One program at a time may have it open.
 * errors: as lr_output_open; LR_USAGE for a device or a pipe, LR_FAILED while another program has
 * it. */
lr_status lr_output_open_named(struct lr_output *output, const char *path, const char *ending,
                               const lr_log *log);

/* Closes the file and leaves it where it is, under that name. */
void lr_output_leave(struct lr_output *output);

/* Appends bytes. The first failure is logged; from then on nothing is written any more and every
 * call returns LR_FAILED. */
lr_status lr_output_write(struct lr_output *output, const void *bytes, size_t count);

/* Logs why a write failed (an errno) and remembers it, once per output; always LR_FAILED. For
 * libraries that write to the descriptor themselves. */
lr_status lr_output_fail(struct lr_output *output, int error);

/* Completes the file, forces it to the disk and puts it in place; after any failure so far it
 * removes what was written and returns LR_FAILED. Either way the output is closed. */
lr_status lr_output_finish(struct lr_output *output);

/* The same for files that belong together: none is put in place before all are on the disk. A
 * header goes last. */
lr_status lr_output_finish_all(struct lr_output *const *outputs, int count);

/* Gives up: closes the file and removes what was written. Allowed after a failed open. */
void lr_output_abandon(struct lr_output *output);

/* What an errno means, in the words of the system; `text` is filled and returned. */
const char *lr_error_text(int error, char text[128]);

#endif
