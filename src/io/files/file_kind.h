/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What a file that someone hands us may be. */
#ifndef LR_IO_FILE_KIND_H
#define LR_IO_FILE_KIND_H

enum lr_file_kind {
    LR_FILE_UNKNOWN = 0,
    LR_FILE_SCANNER, /* lr_scanner_read */
    LR_FILE_IMAGE,   /* lr_image_read: an activity or a mu-map */
    LR_FILE_DATA,    /* lr_lor_data_read */
    LR_FILE_EVENTS,  /* lr_events_read */
    LR_FILE_PETSIRD, /* a scanner, and mostly events with it */
    LR_FILE_HISTO,   /* lr_histo_images_read */
    LR_FILE_SESSION  /* lr_view_session_read */
};

enum { LR_FILE_NAME = 256 };

/* Names of what is in a folder, in the order of their bytes; at most `most`. Returns how many; 0
 * for a folder that cannot be read. */
int lr_file_names(const char *folder, char names[][LR_FILE_NAME], int most);

/* By the name's ending and how the file begins. A guess: errors are left to the readers. */
enum lr_file_kind lr_file_kind_of(const char *path);

#endif
