/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A backend that stores the matrix of another backend and projects from memory. */
#ifndef LR_OPERATOR_STORED_H
#define LR_OPERATOR_STORED_H

#include "operator/backend.h"
#include "operator/facade.h"

struct lr_stored_size {
    bool stored;
    int64_t num_elements, memory_bytes;
};

struct lr_stored_wish {
    bool required;                              /* a matrix that does not fit is an error */
    struct lr_progress_filter *progress_filter; /* the filter that params->progress points into */
};

/* The most LORs that can be numbered, and the bytes of an element. */
#define LR_STORED_MOST_LORS ((int64_t)1 << 32)
#define LR_STORED_ELEMENT_BYTES 8.0

/* Returns the rows of the voxels begin <= row < end, with the operator's sample points. */
static inline struct lr_rows lr_rows_of_voxels(const struct lr_backend_params *params, int64_t begin, int64_t end)
{
    return (struct lr_rows){.grid = params->grid,
                            .samples = {params->samples[0], params->samples[1], params->samples[2]},
                            .begin = begin,
                            .end = end};
}

/* Returns the bytes that a matrix may take: params->max_memory_bytes, or half of the machine's memory. */
int64_t lr_stored_memory_limit(const struct lr_backend_params *params);

/* Returns true if LR_STORE_AUTO stores the matrix, provided that it fits into memory. projections: number of times
 * that all LORs will be projected; 0 = not known, or to be ignored.
 * - A graphics processor never stores it. The matrix would be on the host, and the device projects anew faster than
 * the host reads it. On an H200 eight iterations of eXplore Vista took 0.6 s without the matrix and 46 s with it
 * (docs/performance.md). A backend with is_never_kept does not store it either.
 * - If the number of projections is not known, it is always stored.
 * - A renderer in software never stores it: its rows take as long as some 50 projections or more.
 * - On processors it depends on the number of projections. A backend that computes every row in a projection (cpu)
 * stores it from 2 projections on, because making the matrix takes longer than projecting once. Others (native)
 * store it from 8 projections on, which is an ML-EM of four iterations: making the matrix of eXplore Vista took as
 * long as 7 projections.
 * Nothing is timed, so that the same call computes the same numbers in every run. */
bool lr_stored_pays(const struct lr_backend *backend, double projections);

/* Generates the matrix of *backend from its rows, and replaces *backend by one that owns it and projects from the
 * matrix. Elements are in float, arrays in the precision of the wrapped backend, and sums in double. Results have
 * the same bits for any params->threads. Voxel rows come from memory. Point rows and pictures still come from the
 * wrapped backend.
 *
 * The size is first estimated from a few dozen rows. If the matrix exceeds params->max_memory_bytes (0: half of the
 * machine's memory), by the estimate or when made, the result is LR_FAILED if it is required. Otherwise *backend
 * stays as it was, size->stored is false, and the log gives the estimate as information. The same applies to 2^32
 * LORs or more, which this storage cannot number.
 *
 * params: must live as long as the backend. */
lr_status lr_stored_wrap(struct lr_backend *backend, const struct lr_backend_params *params,
                         const struct lr_stored_wish *wish, struct lr_stored_size *size);

#endif
