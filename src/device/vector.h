/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The table of vector functions of one kind of place. The facade has checked that counts are equal, and, unless a
 * function says otherwise, that all vectors are at this place and have one precision. */
#pragma once

#include <lr/vector.h>

#include "common/bindings.h"
#include "kernels/vector.glsl"

enum { LR_VECTOR_INPUTS = 3 };

struct lr_vector_task {
    int op; /* LR_VECTOR_CONVERT, or another operation of kernels/vector.glsl */
    lr_vector y;
    const lr_vector *in[LR_VECTOR_INPUTS]; /* NULL = the operation has no such input */
    double scalar;
    double floor; /* BSREM only */
};

struct gl_buffer;

/* The memory of a vector. The library has allocated it, or it belongs to the caller. */
struct lr_storage {
    void *block; /* memory of the host, or of the device at a CUDA place */
    struct gl_buffer *buffer;
    bool is_wrapped; /* true if `block` belongs to the caller; a gl_buffer has its own flag for this */
};

/* Does an operation on vectors, which must have one place and precision. errors: LR_USAGE, LR_NO_DEVICE, LR_FAILED. */
lr_status lr_vector_apply(const struct lr_vector_task *task);

struct lr_vector_terms;

struct lr_vector_fns {
    /* `create` allocates `bytes` of zeros for vector->storage or vector->values, and `destroy` frees them. */
    lr_status (*create)(const lr_vector_params *params, int64_t bytes, lr_vector *vector);
    void (*destroy)(lr_vector *vector);

    /* Only for devices: `write` and `read` copy a vector's numbers from and to the host, in the vector's precision.
     * numbers: [vector->count]. */
    lr_status (*write)(lr_vector *vector, const void *numbers);
    lr_status (*read)(const lr_vector *vector, void *numbers);
    /* Copies a vector to another vector of the same precision that does not overlap with the first. */
    lr_status (*copy)(const lr_vector *from, lr_vector *to);

    lr_status (*fill)(lr_vector *vector, double value);
    lr_status (*apply)(const struct lr_vector_task *task);
    /* Only for the host. */
    lr_status (*add_up)(const lr_vector *x, const lr_vector *y, lr_vector_sums *sums);
    lr_status (*divide_counts)(const lr_poisson_ratio *ratio, lr_poisson_fit *fit);
    /* Only for devices: functions that begin a sum in a slot and do not wait (see "work without a wait" below). The
     * sums are sent to the host at the end of a turn. `finish_later` waits for the sums of a slot, which it writes to
     * sums[LR_VECTOR_NUM_SUMS]. */
    lr_status (*begin_fit)(const lr_poisson_ratio *ratio, int slot);
    lr_status (*begin_sums)(const lr_vector *x, const lr_vector *y, int slot);
    lr_status (*send_later)(lr_place *place, int turn);
    lr_status (*finish_later)(lr_place *place, int slot, double *sums);
    lr_status (*relative_differences)(const lr_relative_differences *differences);
    lr_status (*convolve)(const lr_convolution *convolution);
    lr_status (*add_terms)(const struct lr_vector_terms *terms); /* see struct lr_vector_terms in kinds.h; NULL = the
                                                                    place cannot add terms */
};

extern const struct lr_vector_fns lr_vector_host_fns;

static inline int64_t lr_vector_size(const lr_vector *vector)
{
    return vector->precision == LR_FLOAT64 ? (int64_t)sizeof(double) : (int64_t)sizeof(float);
}

/* --- work at another place --- */

/* Work that computes one vector from another, for instance a projection. in: may be NULL. */
struct lr_vector_work {
    lr_vector_params at; /* place and precision of the vectors that `run` gets; count is not read */
    lr_status (*run)(void *self, const lr_vector *in, lr_vector *out);
    void *self;
};

/* Does the work with `in` and `out`, or with copies of them if they have another place or precision. errors: those of
 * lr_vector_bring and of the work. */
lr_status lr_vector_work_at(const struct lr_vector_work *work, const lr_vector *in, lr_vector *out);

/* --- numbers of vectors on the host, in either precision --- */

static inline double lr_number_get(const lr_vector *vector, int64_t at)
{
    return vector->precision == LR_FLOAT64 ? ((const double *)vector->values)[at]
                                           : (double)((const float *)vector->values)[at];
}

static inline void lr_number_put(const lr_vector *vector, int64_t at, double value)
{
    if (vector->precision == LR_FLOAT64)
        ((double *)vector->values)[at] = value;
    else
        ((float *)vector->values)[at] = (float)value;
}

/* --- work without a wait for each piece --- */

/* The host queues work, and the device does it later in the same order. Each sum that the device has not finished has a
 * slot, which the caller chooses. The slots are in two groups of LR_LATER_SLOTS, called turns. The host waits once for
 * all sums of a turn, while the device already does work that was queued after the turn. */

enum { LR_LATER_TURNS = 2, LR_LATER_SLOTS = 3, LR_NUM_LATER = LR_LATER_TURNS * LR_LATER_SLOTS };

/* A slot for callers that wait for their sums at once. This slot has a separate turn, whose end is never marked. */
enum { LR_SLOT_NOW = LR_NUM_LATER, LR_NUM_SLOTS, LR_NUM_TURNS = LR_LATER_TURNS + 1 };

/* Sums of vectors, or the fit of divided counts. The results are known once `place` is NULL. */
struct lr_later {
    int slot; /* below LR_NUM_LATER, or LR_SLOT_NOW */
    bool is_fit;
    lr_vector_sums sums;
    lr_poisson_fit fit;
    lr_place *place;
};

/* Do the same as lr_vector_divide_counts and lr_vector_add_up, but do not wait for a device. The caller sets
 * later->slot. */
lr_status lr_vector_divide_counts_later(const lr_poisson_ratio *ratio, struct lr_later *later);
lr_status lr_vector_add_up_later(const lr_vector *x, const lr_vector *y, struct lr_later *later);
lr_status lr_later_finish(struct lr_later *later);

/* Submits all queued work to a device and marks the end of a turn. Without the mark, the wait for a slot of this turn
 * would also wait for work that was queued later. Does nothing on the host, or if place is NULL. */
lr_status lr_later_send(lr_place *place, int turn);

/* --- sums of a device by their names --- */

static inline lr_vector_sums lr_vector_name_sums(const double sums[LR_VECTOR_NUM_SUMS])
{
    return (lr_vector_sums){.sum = sums[0],
                            .product = sums[1],
                            .difference = sums[2],
                            .largest = sums[LR_VECTOR_LARGEST],
                            .smallest = -sums[LR_VECTOR_LARGEST + 1],
                            .not_finite = (int64_t)sums[3]};
}

static inline lr_poisson_fit lr_vector_name_fit(const double sums[LR_VECTOR_NUM_SUMS])
{
    return (lr_poisson_fit){.log_likelihood = sums[0],
                            .measured_counts = sums[1],
                            .estimated_counts = sums[2],
                            .left_out_lors = (int64_t)sums[3],
                            .left_out_counts = sums[4]};
}
