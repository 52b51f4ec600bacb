/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What CUDA does for places and vectors, with no CUDA in it: cuda_interop/vectors.c fills in the
 * table, or stub_vectors.c where LORaster is built without CUDA. */
#ifndef LR_VECTOR_CUDA_H
#define LR_VECTOR_CUDA_H

#include "vector/place.h"
#include "vector/vector.h"

struct lr_vector_cuda {
    /* Sets place->cuda, cuda_stream, device and memory_bytes; place->log is ready. errors: as
     * lr_place_open has them. Without CUDA it fails, so that nothing else is ever called. */
    lr_status (*open)(const lr_place_params *params, lr_place *place);
    void (*close)(lr_place *place);

    struct lr_vector_fns vectors;

    /* vector->storage for the caller's memory. errors: LR_USAGE for memory that is not of the
     * place's device; LR_FAILED. */
    lr_status (*wrap)(const lr_vector_params *params, void *memory, lr_vector *vector);

    /* A copy between an OpenGL and a CUDA place, in one precision. *is_done false, with LR_OK: OpenGL
     * draws on another device, and nothing was copied. */
    lr_status (*exchange)(const lr_vector *from, lr_vector *to, bool *is_done);
};
extern const struct lr_vector_cuda lr_vector_cuda;

#endif
