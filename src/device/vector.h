/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The table of functions of a kind of place for vectors. The facade has checked that counts agree and, unless
 * something else is said, that all vectors are at that place and of one precision. */
#ifndef LR_DEVICE_VECTOR_H
#define LR_DEVICE_VECTOR_H

#include <lr/vector.h>

#include "kernels/vector.glsl"

enum { LR_VECTOR_INPUTS = 3 };

struct lr_vector_task {
    int op; /* LR_VECTOR_CONVERT and others of kernels/vector.glsl */
    lr_vector y;
    const lr_vector *in[LR_VECTOR_INPUTS]; /* NULL = the operation has none */
    double scalar;
    double floor; /* of BSREM */
};

struct gl_buffer;

/* Memory of a vector: allocated by the library, or the caller's. */
struct lr_storage {
    void *block; /* memory of the host or, at a CUDA place, of its device */
    struct gl_buffer *buffer;
    bool is_wrapped; /* `block` belongs to the caller; a gl_buffer records this itself */
};

struct lr_vector_terms;

struct lr_vector_fns {
    /* Allocates and frees `bytes` of zeros for vector->storage, or vector->values. */
    lr_status (*create)(const lr_vector_params *params, int64_t bytes, lr_vector *vector);
    void (*destroy)(lr_vector *vector);

    /* Copies between a vector and as many numbers of its precision on the host. */
    lr_status (*write)(lr_vector *vector, const void *numbers);
    lr_status (*read)(const lr_vector *vector, void *numbers);
    /* Copies a vector of the same precision; the two do not overlap. */
    lr_status (*copy)(const lr_vector *from, lr_vector *to);

    lr_status (*fill)(lr_vector *vector, double value);
    lr_status (*apply)(const struct lr_vector_task *task);
    lr_status (*add_up)(const lr_vector *x, const lr_vector *y, lr_vector_sums *sums);
    /* fit may be NULL on a device: nothing waits then, and the fit is lost. */
    lr_status (*divide_counts)(const lr_poisson_ratio *ratio, lr_poisson_fit *fit);
    /* Functions of devices alone, for sums that nothing waits for (later.h), which are sent at the end of a turn.
     * `finish_later` gives the sums of a slot, [LR_VECTOR_NUM_SUMS]. */
    lr_status (*begin_fit)(const lr_poisson_ratio *ratio, int slot);
    lr_status (*begin_sums)(const lr_vector *x, const lr_vector *y, int slot);
    lr_status (*send_later)(lr_place *place, int turn);
    lr_status (*finish_later)(lr_place *place, int slot, double *sums);
    lr_status (*relative_differences)(const lr_relative_differences *differences);
    lr_status (*convolve)(const lr_convolution *convolution);
    lr_status (*add_terms)(const struct lr_vector_terms *terms); /* see kinds.h; NULL = the place has no such
                                                                  * function */
};

extern const struct lr_vector_fns lr_vector_host_fns;

static inline int64_t lr_vector_size(const lr_vector *vector)
{
    return vector->precision == LR_FLOAT64 ? (int64_t)sizeof(double) : (int64_t)sizeof(float);
}

static inline bool lr_vector_is_on_host(const lr_vector *vector)
{
    return vector->values != NULL;
}

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

#endif
