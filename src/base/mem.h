/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Allocation that logs failures; memory and processors that the system grants. */
#ifndef LR_BASE_MEM_H
#define LR_BASE_MEM_H

#include <lr/log.h>
#include <stdbool.h>
#include <stddef.h>

/* calloc(count, size) whose failure is logged: "no memory for WHAT (12.3 GiB)" with status
 * LR_FAILED, and NULL. A count of 0 gives a valid pointer. Free with free(). */
void *lr_alloc(int64_t count, size_t size, const char *what, const lr_log *log);

/* realloc to count * size; on failure the old block stays and NULL is returned, logged. */
void *lr_resize(void *block, int64_t count, size_t size, const char *what, const lr_log *log);

/* Frees a block of `bytes` from lr_alloc or lr_resize (or NULL) piece by piece: while the system takes back much memory
 * at once, no other thread can map any, nor touch new memory for the first time. */
void lr_free_in_pieces(void *block, int64_t bytes);

/* A copy of a string (NULL gives NULL), or NULL, logged. */
char *lr_copy_string(const char *string, const lr_log *log);

/* Physical memory of the machine, within its cgroup limit, in bytes. */
int64_t lr_physical_memory(void);

/* The system's estimate of what this process can have without swapping or ending other programs, within its limit
 * (ulimit -v), in bytes; lr_physical_memory if the system does not say. */
int64_t lr_available_memory(void);

/* Calls visit with the folder of each Linux control group that bounds this process: its own group
 * and all above it, in the unified hierarchy (v2) and in the one of that controller ("memory",
 * "cpu"; v1). Calls nothing if there are no control groups. A folder may not exist. */
void lr_cgroup_visit(const char *controller, void (*visit)(void *user, const char *folder), void *user);

/* The first `num_values` numbers in folder/file; false when there are fewer ("max", or no file). */
bool lr_cgroup_read(const char *folder, const char *file, int num_values, double *values);

#endif
