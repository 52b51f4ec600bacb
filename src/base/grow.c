/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/grow.h"

#include "base/log.h"
#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

lr_status lr_grow_larger(void *array, int64_t *room, int64_t needed, const struct lr_items *items)
{
    enum { LEAST = 16 };
    void *block;
    /* The pointer may have any type, so its bytes are copied. */
    memcpy(&block, array, sizeof(block));
    const int64_t larger = needed + needed / 2 + LEAST;
    block = lr_resize(block, larger, items->size, items->what, items->log);
    if (block == NULL) return LR_FAILED;
    memcpy(array, &block, sizeof(block));
    *room = larger;
    return LR_OK;
}

/* Makes room for `more` bytes and the zero byte. */
static lr_status grow_text(struct lr_text *text, size_t more)
{
    const struct lr_items items = {1, text->what, text->log};
    const int64_t needed = text->length + (int64_t)more + 1;
    text->failed = text->failed || lr_grow(&text->chars, &text->room, needed, &items) != LR_OK;
    return text->failed ? LR_FAILED : LR_OK;
}

lr_status lr_text_add(struct lr_text *text, const char *bytes, size_t length)
{
    LR_TRY(grow_text(text, length));
    memcpy(text->chars + text->length, bytes, length);
    text->length += (int64_t)length;
    text->chars[text->length] = '\0';
    return LR_OK;
}

lr_status lr_text_print(struct lr_text *text, const char *format, ...)
{
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    const int length = vsnprintf(NULL, 0, format, list);
    const lr_status status = grow_text(text, length > 0 ? (size_t)length : 0);
    if (status == LR_OK) {
        vsnprintf(text->chars + text->length, (size_t)(text->room - text->length), format, again);
        text->length += length > 0 ? length : 0;
    }
    va_end(again);
    va_end(list);
    return status;
}
