/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Letters of DejaVu Sans, whose files are part of the library. */
#ifndef LR_PICTURE_FONT_H
#define LR_PICTURE_FONT_H

#include <lr/picture.h>
#include <stddef.h>

/* Sizes of letters in pixels: within a picture, usual text, and a panel's title. */
enum { lr_font_small = 12, lr_font_usual = 13, lr_font_title = 19 };

/* A TrueType file, byte for byte; its licence is among its names. */
struct lr_font_file {
    const unsigned char *bytes;
    int count;
};

/* DejaVu Sans, and its bold face. */
extern const struct lr_font_file lr_font_files[2];

/* Warns, once in a process, if some text was not written for lack of memory. Every function that makes a whole picture
 * calls this last. */
void lr_font_tell(const lr_log *log);

/* Width of a text in pixels, at most `most`; 0 for NULL. */
int lr_font_width_within(const char *text, const lr_text_style *style, int most);

/* A line of clean UTF-8: no control characters, nothing that is not UTF-8. */
struct lr_font_text {
    char text[1024];
};

/* Takes the first line of a clean text that is broken into lines of at most width_px pixels, at blanks if possible.
 * *text moves on to the next line, "" at the end. A line has at least one character. */
void lr_font_next_line(const char **text, int width_px, const lr_text_style *style, struct lr_font_text *line);

#endif
