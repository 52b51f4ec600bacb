/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_BASE_MEM_H
#define LR_BASE_MEM_H

#include <lr/log.h>
#include <stddef.h>

/* calloc(count, size) whose failure is a sentence: "no memory for WHAT (12.3 GiB)" with status
 * LR_FAILED, and NULL. A count of 0 gives a valid pointer. Free with free(). */
void *lr_alloc(int64_t count, size_t size, const char *what, const lr_log *log);

/* realloc to count * size; on failure the old block stays and NULL is returned, logged. */
void *lr_resize(void *block, int64_t count, size_t size, const char *what, const lr_log *log);

/* free() of a block of `bytes` from lr_alloc or lr_resize, for other threads' sake: while the system takes back much
 * memory at once, none of them can map any, nor begin to use what it has. NULL is allowed. */
void lr_free_in_pieces(void *block, int64_t bytes);

/* A copy of a string (NULL gives NULL), or NULL, logged. */
char *lr_copy_string(const char *string, const lr_log *log);

/* Physical memory of the machine, within its cgroup limit, in bytes. */
int64_t lr_physical_memory(void);

/* What of it can be had without ending other programs or swapping, as the system estimates it, and
 * within the limit of the process (ulimit -v); lr_physical_memory where it does not say. */
int64_t lr_available_memory(void);

#endif
