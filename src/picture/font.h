/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Letters of 5 x 7 dots for printable ASCII. */
#ifndef LR_PICTURE_FONT_H
#define LR_PICTURE_FONT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { lr_font_width = 5, lr_font_height = 7, lr_font_first = ' ', lr_font_last = '~' };

/* Whether dot (x, y) of a letter is set, from its top left corner. Letters that the font lacks
 * are an empty box. */
bool lr_font_dot(char letter, int x, int y);

/* The first line of a text that is broken into lines of at most `most` letters, at blanks where it
 * can be; *text moves on to the next one, "" at the end. */
struct lr_font_text {
    char text[256];
};
void lr_font_next_line(const char **text, size_t most, struct lr_font_text *line);

#endif
