/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What a device does for places and vectors of its kind: vector_gl/ and cuda_interop/ fill in a table
 * each, which is in a plugin. */
#ifndef LR_VECTOR_KINDS_H
#define LR_VECTOR_KINDS_H

#include "vector/link.h"
#include "vector/place.h"
#include "vector/vector.h"

struct lr_place_fns {
    /* Sets what the place has of the device, device and memory_bytes; place->log is ready. errors: as
     * lr_place_open has them. */
    lr_status (*open)(const lr_place_params *params, lr_place *place);
    void (*close)(lr_place *place);

    /* OpenGL: while it is held, the context is current in the calling thread, and what it is made current for
     * costs nothing; NULL = there is nothing to hold. */
    lr_status (*hold)(lr_place *place);
    void (*release)(lr_place *place);

    struct lr_vector_fns vectors;

    /* vector->storage for the caller's memory: an address of CUDA's, a lr_vector_gl_buffer of OpenGL's.
     * errors: LR_USAGE for memory that is not of the place's device; LR_FAILED. */
    lr_status (*wrap)(const lr_vector_params *params, void *memory, lr_vector *vector);

    /* CUDA: a copy between an OpenGL and a CUDA place, in one precision. *is_done false, with LR_OK:
     * OpenGL draws on another device, and nothing was copied. */
    lr_status (*exchange)(const lr_vector *from, lr_vector *to, bool *is_done);

    /* OpenGL: lr_vector_show of an image that is checked, and lr_place_fence. */
    lr_status (*show)(const lr_vector *image, lr_vector_texture *copy);
    lr_status (*fence)(lr_place *place, void **done);

    /* CUDA: what processes exchange out of its memory; NULL = nothing, it goes through the host. */
    const struct lr_link_fns *link;
};
extern const struct lr_place_fns lr_place_gl_fns, lr_place_cuda_fns;

#endif
