/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The members of a place, for backends that compute where their vectors are. */
#pragma once

#include "base/driver.h"
#include "base/mem.h"
#include "device/vector.h"
#include <stdatomic.h>

struct gl_context;
struct lr_cuda_place;
struct lr_place_fns;
struct lr_vector_programs;

struct lr_place {
    atomic_int holders;
    lr_place_kind kind;
    const struct lr_place_fns *fns;      /* functions of a device; not used for the host */
    int threads;                         /* host */
    struct gl_context *ctx;              /* OpenGL; owned */
    struct lr_vector_programs *programs; /* OpenGL: made at first use */
    bool shares;                         /* OpenGL: true if the place shares objects with another context */
    struct lr_cuda_place *cuda;          /* CUDA; owned */
    void *cuda_stream;                   /* CUDA: the cudaStream_t for all work of the place */
    int cuda_device;                     /* CUDA: number of the device */
    lr_driver_owner cuda_owner;          /* CUDA: the process that opened the place */
    lr_traffic traffic;
    char device[160];
    int64_t memory_bytes; /* 0 = not known */
    lr_log log;           /* passes messages on to the current log `to` */
    const lr_log *to;     /* the caller's log; NULL = messages are dropped */
};

static inline lr_place_kind lr_vector_kind(const lr_vector *vector)
{
    return vector->place != NULL ? vector->place->kind : LR_PLACE_HOST;
}

static inline bool lr_vector_is_at_device(const lr_vector *vector)
{
    return lr_vector_kind(vector) != LR_PLACE_HOST;
}

/* Opens a place like lr_place_open, but returns the status. *place is NULL after an error. */
lr_status lr_place_open_on(const lr_place_params *params, lr_place **place);

/* Stops the messages of a place. The owner of the place's log calls this function if the log ends before the place. */
void lr_place_silence(lr_place *place);

/* Returns how many bytes work at a place may use: `asked` bytes if positive, otherwise the memory of the device divided
 * by `parts`. If the device's memory is not known, the machine's memory is used. */
static inline int64_t lr_place_budget(const lr_place *place, int64_t asked, int parts)
{
    return asked > 0 ? asked : (place->memory_bytes > 0 ? place->memory_bytes : lr_physical_memory()) / parts;
}

/* Returns the number of threads that work on vectors of a place. place: NULL = the host. */
int lr_place_threads(const lr_place *place);

/* The buffer of a vector at an OpenGL place, and the vector's offset in it. */
struct lr_vector_range {
    struct gl_buffer *buffer;
    int64_t offset, bytes;
};
static inline struct lr_vector_range lr_vector_gl_range(const lr_vector *vector)
{
    const int64_t size = lr_vector_size(vector);
    return (struct lr_vector_range){vector->storage->buffer, vector->begin * size, vector->count * size};
}
