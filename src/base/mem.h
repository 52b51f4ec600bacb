/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Allocation that logs failures, and the limits of memory and processors for this process. */
#ifndef LR_BASE_MEM_H
#define LR_BASE_MEM_H

#include <lr/log.h>
#include <stdbool.h>
#include <stddef.h>

/* Writes an amount of memory, such as "12.3 GiB", and returns the text. */
const char *lr_bytes_text(double bytes, char text[32]);

/* Allocates count * size zero bytes, which the caller frees with free(). A count of 0 gives a valid pointer. NULL if
 * memory runs out, logged as LR_FAILED: "no memory for WHAT (12.3 GiB)". */
void *lr_alloc(int64_t count, size_t size, const char *what, const lr_log *log);

/* Resizes a block to count * size bytes. NULL, logged, if memory runs out; the block then stays as it is. */
void *lr_resize(void *block, int64_t count, size_t size, const char *what, const lr_log *log);

/* Frees a block of `bytes` bytes piece by piece. If a large block were freed at once, other threads that need new
 * memory would have to wait. block: from lr_alloc or lr_resize, or NULL. */
void lr_free_in_pieces(void *block, int64_t bytes);

/* Copies a string. NULL gives NULL. If memory runs out, the result is NULL, too, and the failure is logged. */
char *lr_copy_string(const char *string, const lr_log *log);

/* Returns the physical memory in bytes, or the limit of the control group if that is lower. */
int64_t lr_physical_memory(void);

/* Returns the bytes that this process can still allocate without swapping, as the system estimates, and within ulimit
 * -v. Without an estimate, physical memory takes its place. */
int64_t lr_available_memory(void);

/* Calls `visit` with the folder of each Linux control group that limits this process: its own group and all groups
 * above it, in version 2 and in version 1's hierarchy of `controller` ("memory" or "cpu"). A folder need not exist. */
void lr_cgroup_visit(const char *controller, void (*visit)(void *user, const char *folder), void *user);

/* Reads the first `num_values` numbers of folder/file. Returns false if there are fewer, as in "max", or no file. */
bool lr_cgroup_read(const char *folder, const char *file, int num_values, double *values);

#endif
