/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The inside of a place, for backends that compute where vectors live. */
#ifndef LR_DEVICE_PLACE_H
#define LR_DEVICE_PLACE_H

#include "base/driver.h"
#include "device/vector.h"
#include <stdatomic.h>

struct gl_context;
struct lr_cuda_place;
struct lr_place_fns;
struct lr_vector_programs;

struct lr_place {
    atomic_int holders;
    lr_place_kind kind;
    const struct lr_place_fns *fns;      /* of a device */
    int threads;                         /* host */
    struct gl_context *ctx;              /* OpenGL; owned */
    struct lr_vector_programs *programs; /* OpenGL: made at first use */
    bool shares;                         /* OpenGL: it shares objects with another context */
    struct lr_cuda_place *cuda;          /* CUDA; owned */
    void *cuda_stream;                   /* CUDA: the cudaStream_t that all work is done on */
    int cuda_device;                     /* CUDA: its number */
    lr_driver_owner cuda_owner;          /* CUDA: the process that has opened the place */
    lr_traffic traffic;
    char device[160];
    int64_t memory_bytes; /* 0 = not known */
    lr_log log;           /* passes messages on to `to`, which may change */
    const lr_log *to;     /* NULL = nowhere */
};

static inline lr_place_kind lr_vector_kind(const lr_vector *vector)
{
    return vector->place != NULL ? vector->place->kind : LR_PLACE_HOST;
}

static inline bool lr_vector_is_at_device(const lr_vector *vector)
{
    return lr_vector_kind(vector) != LR_PLACE_HOST;
}

/* lr_place_open, with the status of a failure. *place is NULL then. */
lr_status lr_place_open_on(const lr_place_params *params, lr_place **place);

/* Silences a place, for an owner that lets the place outlive its log. */
void lr_place_silence(lr_place *place);

/* Threads that work on vectors of a place; NULL is the host. */
int lr_place_threads(const lr_place *place);

/* The buffer of a vector at an OpenGL place, and where the vector begins in it. */
struct lr_vector_range {
    struct gl_buffer *buffer;
    int64_t offset, bytes;
};
static inline struct lr_vector_range lr_vector_gl_range(const lr_vector *vector)
{
    const int64_t size = lr_vector_size(vector);
    return (struct lr_vector_range){vector->storage->buffer, vector->begin * size, vector->count * size};
}

#endif
