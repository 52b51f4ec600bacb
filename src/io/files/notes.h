/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Numbers that are kept from one run to the next, in the file speeds.txt of $LORASTER_CACHE, or
 * $XDG_CACHE_HOME/loraster, or $HOME/.cache/loraster. With LORASTER_CACHE=off, or without any of
 * these, nothing is kept. A file that cannot be read or written costs only what is kept: the log
 * hears of it as debugging, never as an error. */
#ifndef LR_IO_NOTES_H
#define LR_IO_NOTES_H

#include <lr/log.h>
#include <stddef.h>

/* key: one line of text, at most LR_NOTE_CHARS bytes, other control characters than spaces count
 * as spaces; "" stands for nothing. value: positive, less than
 * LR_NOTE_LARGEST. */
struct lr_note {
    const char *key;
    double value;
    bool is_known;
};

enum { LR_NOTE_CHARS = 900 };
#define LR_NOTE_LARGEST 1e300 /* what is not less is no measured number */

/* Fills in value and is_known of the notes that the file has; leaves the others alone. */
void lr_notes_find(struct lr_note *notes, int count, const lr_log *log);

/* Puts the known notes into the file, in place of those of the same keys. Makes the folder. Other
 * programs that do so at the same time may undo it, never spoil the file. */
void lr_notes_keep(const struct lr_note *notes, int count, const lr_log *log);

/* The path of another file in that folder, which is made; false where nothing is to be kept. */
bool lr_notes_place(const char *name, char *path, size_t size);

#endif
