/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Memory of the device that lists of several views lie in, one behind the other: in front those that the
 * host has made, so that one copy brings all of them, and behind those that the device fills. Two walks
 * go through the same lists: one counts their bytes, one places them. No CUDA in it. */
#ifndef LR_CUDA_DIRECT_MEMORY_H
#define LR_CUDA_DIRECT_MEMORY_H

#include <stdint.h>

/* Zero: bytes are counted. */
struct lr_cuda_memory {
    char *device;        /* borrowed, [copied_room + filled_room]; aligned as lists are */
    char *host;          /* borrowed, [copied_room]: what is copied to the device */
    int64_t copied_room; /* as an earlier walk has counted them, here and below: whole lists */
    int64_t filled_room;
    int64_t copied_bytes; /* of lists so far */
    int64_t filled_bytes;
};

/* The address that a list has on the device; data: what it is to hold, NULL = the device fills it.
 * While bytes are counted it is not to be used, but for comparisons with NULL. NULL: the lists are
 * others than those that were counted. */
void *lr_cuda_place(struct lr_cuda_memory *memory, int64_t bytes, const void *data);

/* Of all lists so far. */
int64_t lr_cuda_memory_bytes(const struct lr_cuda_memory *memory);

#endif
