/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Tables of functions for places and vectors on a device. gl/ and cuda_interop/ each fill in one, which is in a
 * plugin. */
#ifndef LR_DEVICE_KINDS_H
#define LR_DEVICE_KINDS_H

#include "device/place.h"
#include "device/vector.h"

/* --- exchanges of processes out of a place's memory, for dist/: cuda_interop/ makes them by NCCL --- */

/* Bytes to or from another rank. A pair of ranks has at most one message in flight. */
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

/* The library of a link, and the name of the place's device, which no other device of the machine has. */
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
    /* Checks that a link is possible here. The device is known even without a library. errors: LR_NO_DEVICE, logged
     * with the library, or the part of it, that is missing. */
    lr_status (*find)(lr_place *place, struct lr_link_facts *facts, const lr_log *log);
    lr_status (*make_key)(char key[LR_LINK_KEY_BYTES], const lr_log *log);

    /* Begins to connect to the other ranks, each of which has a device of its own, and returns; `look` shows when
     * all are connected. *link is NULL if that fails. */
    lr_status (*begin)(lr_place *place, const struct lr_link_params *params, struct lr_link **link);
    lr_status (*look)(struct lr_link *link, bool *is_ready);

    /* Transfers memory of the place's device, in the order of its work: nothing has arrived when it returns. All
     * ranks call it. The place may be another than at the beginning, of the same device. */
    lr_status (*transfer)(struct lr_link *link, lr_place *place, const struct lr_messages *messages);

    /* Seconds that completed transfers took by the device's clock, including the waits for later ranks. */
    double (*seconds)(struct lr_link *link);

    /* is_whole: all ranks call it; else pending transfers are given up, so that no rank waits for them. */
    void (*close)(struct lr_link *link, bool is_whole);

    /* Functions for exchanges by other means. `draws` checks if an OpenGL place is on the same device; `wait` waits
     * for the place's work; `pin` lets the device access memory of the host directly, which makes copies faster. */
    bool (*draws)(const lr_place *place, const lr_place *gl);
    lr_status (*wait)(lr_place *place);
    bool (*pin)(lr_place *place, void *memory, int64_t bytes);
    void (*unpin)(lr_place *place, void *memory);
};

/* Sums over ranks: y becomes the sum of `num` terms in their order, computed in double and rounded once. Term `own`
 * is y itself; term r begins at number r stride of `pieces`. The place is the host or CUDA. */
struct lr_vector_terms {
    lr_vector *y;
    const lr_vector *pieces;
    int64_t stride;
    int own, num;
};
lr_status lr_vector_add_terms(const struct lr_vector_terms *terms);

/* --- the table --- */

struct lr_place_fns {
    /* Sets the device's part of the place, `device` and `memory_bytes`; place->log is ready. errors: as for
     * lr_place_open. */
    lr_status (*open)(const lr_place_params *params, lr_place *place);
    void (*close)(lr_place *place);

    /* OpenGL: while a place is held, its context stays current in the calling thread, so that calls need not make it
     * current. NULL: there is nothing to hold. */
    lr_status (*hold)(lr_place *place);
    void (*release)(lr_place *place);

    struct lr_vector_fns vectors;

    /* Sets vector->storage to the caller's memory: an address of CUDA, or a lr_vector_gl_buffer. errors: LR_USAGE
     * for memory of another device; LR_FAILED. */
    lr_status (*wrap)(const lr_vector_params *params, void *memory, lr_vector *vector);

    /* CUDA: copies between two of its places, or one of them and one of OpenGL, in one precision. *is_done is false,
     * with LR_OK, if OpenGL draws on another device; nothing is copied then. */
    lr_status (*exchange)(const lr_vector *from, lr_vector *to, bool *is_done);

    /* OpenGL: lr_vector_show of a checked image, and lr_place_fence. */
    lr_status (*show)(const lr_vector *image, lr_vector_texture *copy);
    lr_status (*fence)(lr_place *place, void **done);

    /* CUDA: exchanges between processes out of its memory; NULL = exchanges use memory of the host. */
    const struct lr_link_fns *link;
};
extern const struct lr_place_fns lr_place_gl_fns, lr_place_cuda_fns;

#endif
