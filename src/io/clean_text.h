/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_IO_CLEAN_TEXT_H
#define LR_IO_CLEAN_TEXT_H

#include <stddef.h>

/* How many bytes the UTF-8 character at `text` has; 0 where there is none. */
static inline size_t lr_character_bytes(const unsigned char *text)
{
    const size_t count = text[0] < 0x80                       ? 1
                         : text[0] >= 0xc2 && text[0] < 0xe0  ? 2
                         : (text[0] & 0xf0) == 0xe0           ? 3
                         : text[0] >= 0xf0 && text[0] <= 0xf4 ? 4
                                                              : 0;
    for (size_t k = 1; k < count; k++) {
        if ((text[k] & 0xc0) != 0x80) { /* also the zero at the end */
            return 0;
        }
    }
    return count;
}

/* Names from files go to logs and JSON: control characters become blanks, and bytes that are no
 * UTF-8, as of a character that was cut, '?'. In place. */
static inline void lr_clean_text(char *text)
{
    unsigned char *at = (unsigned char *)text;
    while (*at != '\0') {
        const size_t count = lr_character_bytes(at);
        if (count == 0) {
            *at = '?';
        } else if (*at < 0x20 || *at == 0x7f) {
            *at = ' ';
        }
        at += count > 0 ? count : 1;
    }
}

#endif
