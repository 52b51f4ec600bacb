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

/* Warns, once in a process, if some text was not written for lack of memory. Every public function that makes a whole
 * picture calls lr_font_tell last. */
void lr_font_tell(const lr_log *log);

/* Width of a text in pixels, at most `most`; 0 for NULL. */
int lr_font_width_within(const char *text, const lr_text_style *style, int most);

/* A line of clean UTF-8, without control characters. */
struct lr_font_text {
    char text[1024];
};

/* Writes a clean text (NULL: nothing) in lines of at most style->most_px pixels, broken at blanks if possible. The
 * first line is at `corner`, and each line is line_px below the line before. Returns the number of lines. picture
 * NULL: only counts them. */
int lr_font_lines(lr_picture *picture, const int corner[2], const char *text, const lr_text_style *style, int line_px);

#endif
