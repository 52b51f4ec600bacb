/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/direct/memory.h"

#include <stddef.h>
#include <string.h>

enum { ALIGNMENT = 256 };

/* Bytes from one list to the next. */
static int64_t whole(int64_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void *place_copied(struct lr_cuda_memory *memory, int64_t at, int64_t bytes, const void *data)
{
    if (memory->copied_bytes > memory->copied_room) return NULL;
    if (bytes > 0) memcpy(memory->host + at, data, (size_t)bytes);
    return memory->device + at;
}

void *lr_cuda_place(struct lr_cuda_memory *memory, int64_t bytes, const void *data)
{
    int64_t *const taken = data != NULL ? &memory->copied_bytes : &memory->filled_bytes;
    const int64_t at = *taken;
    *taken += whole(bytes);
    if (memory->device == NULL) return memory;
    if (data != NULL) return place_copied(memory, at, bytes, data);
    return *taken <= memory->filled_room ? memory->device + memory->copied_room + at : NULL;
}

int64_t lr_cuda_memory_bytes(const struct lr_cuda_memory *memory)
{
    return memory->copied_bytes + memory->filled_bytes;
}
