/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Tables of functions for places on a device and their vectors. A place is where vectors are stored (lr/vector.h). The
 * plugins of gl/ and cuda_interop/ have one table each. */
#pragma once

#include "device/place.h"
#include "device/vector.h"

/* --- exchanges between processes for dist/, directly from a place's memory. cuda_interop/ uses NCCL for them --- */

/* A message to or from another rank. Two ranks exchange one message at a time. */
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

/* Names for messages: the library that connects the ranks, and the place's device, which is unique on the machine. */
struct lr_link_facts {
    char library[48]; /* "NCCL 2.21.5" */
    char device[48];  /* "0000:3b:00.0" */
};

struct lr_link_params {
    const char *key; /* [LR_LINK_KEY_BYTES], made by one rank and equal for all */
    int rank, size;
    const lr_log *log;
};

struct lr_link;

struct lr_link_fns {
    /* Checks if a link is possible on this machine. The device's name is always set. errors: LR_NO_DEVICE, logged, with
     * the name of the missing library or function. */
    lr_status (*find)(lr_place *place, struct lr_link_facts *facts, const lr_log *log);
    lr_status (*make_key)(char key[LR_LINK_KEY_BYTES], const lr_log *log);

    /* Begins to connect to the other ranks, without waiting. Each rank needs a device that no other rank uses. `look`
     * tells if all ranks are connected. *link is NULL after an error. */
    lr_status (*begin)(lr_place *place, const struct lr_link_params *params, struct lr_link **link);
    lr_status (*look)(struct lr_link *link, bool *is_ready);

    /* Queues a transfer on the place's device, behind earlier work of the place, and does not wait for its end. All
     * ranks call this function. The place may differ from the one given to `begin`, but must be on the same device. */
    lr_status (*transfer)(struct lr_link *link, lr_place *place, const struct lr_messages *messages);

    /* The device time of completed transfers, s. It includes the waits for slower ranks. */
    double (*seconds)(struct lr_link *link);

    /* is_whole: true if all ranks call this function. If it is false, unfinished transfers are given up, so that no
     * rank waits for the others. */
    void (*close)(struct lr_link *link, bool is_whole);

    /* Functions for exchanges without a link. `draws` returns true if an OpenGL place is on the same device. `wait`
     * waits for all work of the place. `pin` lets the device access memory of the host directly, so that copies are
     * faster. */
    bool (*draws)(const lr_place *place, const lr_place *gl);
    lr_status (*wait)(lr_place *place);
    bool (*pin)(lr_place *place, void *memory, int64_t bytes);
    void (*unpin)(lr_place *place, void *memory);
};

/* A sum over ranks. y becomes the sum of `num` terms in their order, computed in double and rounded once. Term `own` is
 * the old y. Each term r except `own` begins at number r * stride of `pieces`. The place is the host or CUDA. */
struct lr_vector_terms {
    lr_vector *y;
    const lr_vector *pieces;
    int64_t stride;
    int own, num;
};
lr_status lr_vector_add_terms(const struct lr_vector_terms *terms);

/* --- the table --- */

struct lr_place_fns {
    /* Opens the device. Sets `device`, `memory_bytes` and the members of the place for this kind. `open` can use
     * place->log. errors: as for lr_place_open. */
    lr_status (*open)(const lr_place_params *params, lr_place *place);
    void (*close)(lr_place *place);

    /* OpenGL: makes the context current in the calling thread until `release`, so that the calls in between need not
     * make it current. NULL = this kind needs no hold. */
    lr_status (*hold)(lr_place *place);
    void (*release)(lr_place *place);

    struct lr_vector_fns vectors;

    /* Sets vector->storage to the caller's memory: an address of CUDA, or an lr_vector_gl_buffer. errors: LR_USAGE for
     * memory of another device; LR_FAILED. */
    lr_status (*wrap)(const lr_vector_params *params, void *memory, lr_vector *vector);

    /* CUDA: copies between two CUDA places, or between CUDA and OpenGL, in one precision. If OpenGL draws on another
     * device, nothing is copied, *is_done is false, and the result is LR_OK. */
    lr_status (*exchange)(const lr_vector *from, lr_vector *to, bool *is_done);

    /* OpenGL: lr_vector_show for an image that has been checked, and lr_place_fence. */
    lr_status (*show)(const lr_vector *image, lr_vector_texture *copy);
    lr_status (*fence)(lr_place *place, void **done);

    /* CUDA: exchanges between processes directly from the memory of the device. NULL = exchanges pass through the
     * host's memory. */
    const struct lr_link_fns *link;
};
extern const struct lr_place_fns lr_place_gl_fns, lr_place_cuda_fns;
