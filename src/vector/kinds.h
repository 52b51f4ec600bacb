/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Tables of the functions of a device for places and vectors of its kind: vector_gl/ and cuda_interop/ fill in one
 * each, which is in a plugin. */
#ifndef LR_VECTOR_KINDS_H
#define LR_VECTOR_KINDS_H

#include "vector/place.h"
#include "vector/vector.h"

/* --- exchanges of processes out of a place's memory, for dist/: cuda_interop/ makes them by NCCL --- */

/* Bytes to or from another rank; of each pair of ranks there is one message at a time. */
struct lr_message {
    int peer;
    void *bytes;
    int64_t count; /* below 2^31 */
};

struct lr_messages {
    struct lr_message *sent, *received;
    int num_sent, num_received;
};

enum { LR_LINK_KEY_BYTES = 128 };

/* The library of a link, and the place's device by a name that no other device of the machine has. */
struct lr_link_facts {
    char library[48]; /* "NCCL 2.21.5" */
    char device[48];  /* "0000:3b:00.0" */
};

struct lr_link_params {
    const char *key; /* [LR_LINK_KEY_BYTES] that one rank has made */
    int rank, size;
    const lr_log *log;
};

struct lr_link;

struct lr_link_fns {
    /* Checks that a link is possible here. errors: LR_NO_DEVICE, logged: which library is missing, or what of it.
     * The device alone is known without a library. */
    lr_status (*find)(lr_place *place, struct lr_link_facts *facts, const lr_log *log);
    lr_status (*make_key)(char key[LR_LINK_KEY_BYTES], const lr_log *log);

    /* Begins to connect to the other ranks, each of which has a device of its own, and returns; `look` shows when
     * all are connected. *link is NULL where that fails. */
    lr_status (*begin)(lr_place *place, const struct lr_link_params *params, struct lr_link **link);
    lr_status (*look)(struct lr_link *link, bool *is_ready);

    /* Memory of the place's device, in the order of its work: nothing has arrived when it returns. All
     * ranks call it. The place may be another than at the beginning, of the same device. */
    lr_status (*transfer)(struct lr_link *link, lr_place *place, const struct lr_messages *messages);

    /* Seconds that completed transfers took by the device's clock, with the waits for later ranks. */
    double (*seconds)(struct lr_link *link);

    /* is_whole: all ranks come here; else pending transfers are given up, so that no rank waits for them. */
    void (*close)(struct lr_link *link, bool is_whole);

    /* Functions for exchanges by other means: `draws` checks whether an OpenGL place is on the same device; waits
     * for the place's work; has the device reach memory of the host directly, which is then faster to copy. */
    bool (*draws)(const lr_place *place, const lr_place *gl);
    lr_status (*wait)(lr_place *place);
    bool (*pin)(lr_place *place, void *memory, int64_t bytes);
    void (*unpin)(lr_place *place, void *memory);
};

/* Sums of what ranks have: y becomes the sum of `num` terms in their order, taken in double and rounded
 * once. Term `own` is y itself; term r is where pieces begin + r stride. At the host or a CUDA place. */
struct lr_vector_terms {
    lr_vector *y;
    const lr_vector *pieces;
    int64_t stride;
    int own, num;
};
lr_status lr_vector_add_terms(const struct lr_vector_terms *terms);

/* --- the table --- */

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
