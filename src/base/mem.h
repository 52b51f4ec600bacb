/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Allocation that logs failures, arrays and texts that grow, and the limits of memory and processors of a process. */
#pragma once

#include <lr/log.h>
#include <stdbool.h>
#include <stddef.h>

/* Writes an amount of memory, such as "12.3 GiB", and returns the text. */
const char *lr_bytes_text(double bytes, char text[32]);

/* Allocates count * size zero bytes, which the caller frees with free(). A count of 0 gives a valid pointer. Returns
 * NULL if memory runs out, and logs LR_FAILED: "no memory for WHAT (12.3 GiB)". */
void *lr_alloc(int64_t count, size_t size, const char *what, const lr_log *log);

/* Resizes a block to count * size bytes. If memory runs out, returns NULL and logs the failure; the block then stays as
   it is. */
void *lr_resize(void *block, int64_t count, size_t size, const char *what, const lr_log *log);

/* Frees a block of `bytes` bytes piece by piece. If a large block were freed at once, other threads that need new
 * memory would have to wait. block: from lr_alloc or lr_resize, or NULL. */
void lr_free_in_pieces(void *block, int64_t bytes);

/* Frees each of the blocks. NULL is allowed. */
void lr_free_blocks(void *const *blocks, size_t count);
#define lr_free_all(...) lr_free_blocks((void *const[]){__VA_ARGS__}, sizeof((void *[]){__VA_ARGS__}) / sizeof(void *))

/* Copies a string. NULL gives NULL. If memory runs out, the result is NULL, too, and the failure is logged. */
char *lr_copy_string(const char *string, const lr_log *log);

/* --- arrays and texts that grow --- */

/* The items of an array. */
struct lr_items {
    size_t size;      /* bytes of one element */
    const char *what; /* for the message if memory is short: "events" */
    const lr_log *log;
};

/* Reserves memory for a total of `needed` items, and for half as many more, so that an array that grows item by item is
 * seldom copied. Present items stay. array: the address of the pointer to the items; this pointer may be NULL. The
 * caller frees the items with free(). room: capacity in items; 0 for NULL. errors: LR_FAILED if memory runs out,
 * logged. array and room are then unchanged. */
lr_status lr_grow(void *array, int64_t *room, int64_t needed, const struct lr_items *items);

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

/* --- limits --- */

/* Returns the physical memory in bytes, or the limit of the control group if that is lower. */
int64_t lr_physical_memory(void);

/* Returns how many bytes this process can still allocate. This is the least of three numbers: lr_physical_memory, what
 * the system estimates to be free without swapping, and what ulimit -v leaves. A number that is not known is left
 * out. */
int64_t lr_available_memory(void);

/* Calls `visit` with the folder of each Linux control group that limits this process: its own group and all groups
 * above it. These are the groups of version 2, and of version 1's hierarchy of `controller` ("memory" or "cpu"). A
 * folder need not exist. */
void lr_cgroup_visit(const char *controller, void (*visit)(void *user, const char *folder), void *user);

/* Reads the first `num_values` numbers of folder/file. Returns false if there is no such file, or if the file has fewer
 * numbers, for instance only the word "max". */
bool lr_cgroup_read(const char *folder, const char *file, int num_values, double *values);
