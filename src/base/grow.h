/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Arrays and texts that grow. */
#ifndef LR_BASE_GROW_H
#define LR_BASE_GROW_H

#include <lr/log.h>
#include <stddef.h>

/* The items of an array. */
struct lr_items {
    size_t size;      /* bytes of one element */
    const char *what; /* for the message if memory is short: "events" */
    const lr_log *log;
};

/* Reserves memory for a total of `needed` items, and for half as many more, so that an array that grows item by item is
 * seldom copied. Present items stay.
 * array: the address of the pointer to the items, which may be NULL. The caller frees the items with free().
 * room: capacity in items; 0 for NULL.
 * errors: LR_FAILED if memory runs out, logged. array and room are then unchanged. */
static inline lr_status lr_grow(void *array, int64_t *room, int64_t needed, const struct lr_items *items);

/* The part of lr_grow that allocates a larger array. */
lr_status lr_grow_larger(void *array, int64_t *room, int64_t needed, const struct lr_items *items);

/* A text that grows. The caller sets `what` and `log`, zeroes all other fields, and frees `chars` with free(). */
struct lr_text {
    char *chars; /* owned, with a zero at the end; NULL before the first text is added */
    int64_t length, room;
    bool failed;      /* memory ran out: later additions are dropped */
    const char *what; /* as in lr_items */
    const lr_log *log;
};

/* Adds `length` bytes. errors: LR_FAILED; only the first failure is logged. */
lr_status lr_text_add(struct lr_text *text, const char *bytes, size_t length);

/* Adds what printf would print. errors: as lr_text_add. */
lr_status lr_text_print(struct lr_text *text, const char *format, ...) LR_PRINTF(2, 3);

static inline lr_status lr_grow(void *array, int64_t *room, int64_t needed, const struct lr_items *items)
{
    return needed <= *room ? LR_OK : lr_grow_larger(array, room, needed, items);
}

#endif
