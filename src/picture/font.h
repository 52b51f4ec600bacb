/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Letters of DejaVu Sans, whose files are part of the library. */
#pragma once

#include <lr/picture.h>
#include <stddef.h>

/* Sizes of letters in pixels: inside pictures, usual text, and titles of panels. */
enum { lr_font_small = 12, lr_font_usual = 13, lr_font_title = 19 };

/* A TrueType file. Its names include its licence. */
struct lr_font_file {
    const unsigned char *bytes;
    int count;
};

/* DejaVu Sans, and DejaVu Sans Bold. */
extern const struct lr_font_file lr_font_files[2];

/* Warns, once in a process, if some text could not be written because memory ran out. Every public function that makes
 * a whole picture calls this at its end. */
void lr_font_tell(const lr_log *log);

/* Width of a text in pixels, cut to `most`; 0 for NULL. */
int lr_font_width_within(const char *text, const lr_text_style *style, int most);

/* A line of text in clean UTF-8, without control characters. */
struct lr_font_text {
    char text[1024];
};

/* Writes a clean text in lines of at most style->most_px pixels, broken at blanks if possible; NULL = no text. The
 * first line is at `corner`; each further line is line_px pixels below. Returns the number of lines. picture NULL: only
 * counts lines. */
int lr_font_lines(lr_picture *picture, const int corner[2], const char *text, const lr_text_style *style, int line_px);
