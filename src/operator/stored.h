/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A backend that keeps the matrix of another one and projects from memory. */
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

/* Rows of the voxels begin <= row < end, with the operator's sample points. */
static inline struct lr_rows lr_rows_of_voxels(const struct lr_backend_params *params, int64_t begin, int64_t end)
{
    return (struct lr_rows){.grid = params->grid,
                            .samples = {params->samples[0], params->samples[1], params->samples[2]},
                            .begin = begin,
                            .end = end};
}

/* Bytes that a matrix may take: params->max_memory_bytes, or half of the machine's memory. */
int64_t lr_stored_memory_limit(const struct lr_backend_params *params);

/* True if LR_STORE_AUTO stores the matrix, as long as it fits into memory. projections: how often all LORs are going
 * to be projected, 0 = not known, or to be left out of account.
 *
 * - On a graphics processor never: the matrix is the host's, and the device has projected anew before the
 *   host has read it. On an H200 eight iterations of eXplore Vista took 0.6 s so, and 46 s with the matrix
 *   (docs/performance.md). Nor of a backend that is_never_kept.
 * - Where the number of projections is not known, always.
 * - On a renderer in software never: its rows take as long as some 50 projections or more.
 * - On processors from 2 projections on where a projection computes every row (cpu), for making the matrix
 *   takes longer than projecting once; else (native) from 8, an ML-EM of four iterations: making the matrix
 *   of eXplore Vista took as long as 7 projections.
 *
 * Nothing is timed, so that the same call computes the same numbers in every run. */
bool lr_stored_pays(const struct lr_backend *backend, double projections);

/* Generates the matrix of *backend from its rows and puts a backend in its place that owns it and
 * projects from the matrix: elements in float, arrays in the precision of the backend wrapped, sums
 * in double, the same bits whatever params->threads is. Voxel rows come from memory; point rows and
 * pictures still come from the backend wrapped.
 *
 * Before, the size is estimated from a few dozen rows. A matrix that is estimated, or turns out,
 * to exceed params->max_memory_bytes (0: half of the machine's memory) is LR_FAILED when
 * required; otherwise *backend stays as it was, size->stored is false, and the log gives the
 * estimate as information. The same goes for 2^32 LORs and more, which this storage cannot number.
 *
 * params: must live as long as the backend. */
lr_status lr_stored_wrap(struct lr_backend *backend, const struct lr_backend_params *params,
                         const struct lr_stored_wish *wish, struct lr_stored_size *size);

#endif
