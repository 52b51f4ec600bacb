/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Functions that clean texts from files before these texts go to logs, terminals and JSON. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Adds a name to the list "a, b, c" in `list`, which has room for `size` bytes. */
static inline void lr_names_add(char *list, size_t size, const char *name)
{
    const size_t used = strlen(list);
    snprintf(list + used, size - used, "%s%s", used > 0 ? ", " : "", name);
}

/* Returns the number of bytes of the UTF-8 character at `text`, or 0 if there is no valid one (RFC 3629, section 4). */
static inline size_t lr_character_bytes(const unsigned char *text)
{
    const size_t count = text[0] < 0x80                       ? 1
                         : text[0] >= 0xc2 && text[0] < 0xe0  ? 2
                         : (text[0] & 0xf0) == 0xe0           ? 3
                         : text[0] >= 0xf0 && text[0] <= 0xf4 ? 4
                                                              : 0;
    for (size_t k = 1; k < count; k++)
        if ((text[k] & 0xc0) != 0x80) /* also true for the zero at the end of the text */
            return 0;
    const bool too_long = (text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xf0 && text[1] < 0x90);
    const bool no_character = (text[0] == 0xed && text[1] > 0x9f) || (text[0] == 0xf4 && text[1] > 0x8f);
    return too_long || no_character ? 0 : count;
}

/* Replaces control characters by blanks, and bytes that are not UTF-8 by '?'. A text that was cut within a character
 * ends with such bytes. kept: control characters that stay, such as "\n". */
static inline void lr_clean_text_but(char *text, const char *kept)
{
    unsigned char *at = (unsigned char *)text;
    while (*at != '\0') {
        const size_t count = lr_character_bytes(at);
        /* Terminals obey the characters U+0000 to U+001F and U+007F to U+009F. */
        const bool is_control = at[0] < 0x20 || at[0] == 0x7f || (at[0] == 0xc2 && at[1] < 0xa0);
        if (count == 0) {
            *at = '?';
        } else if (is_control) {
            bool stays = false;
            for (const char *k = kept; *k != '\0'; k++) stays = stays || *at == (unsigned char)*k;
            for (size_t k = 0; k < count && !stays; k++) at[k] = ' ';
        }
        at += count > 0 ? count : 1;
    }
}

static inline void lr_clean_text(char *text)
{
    lr_clean_text_but(text, "");
}
