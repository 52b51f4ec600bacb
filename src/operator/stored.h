/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A backend that keeps the matrix of another one and projects from memory. */
#ifndef LR_OPERATOR_STORED_H
#define LR_OPERATOR_STORED_H

#include "operator/backend.h"
#include "operator/filters.h"

struct lr_stored_size {
    bool stored;
    int64_t num_elements, memory_bytes;
};

struct lr_stored_wish {
    bool required;                              /* a matrix that does not fit is an error */
    double projections;                         /* forward or back, of all LORs, that are to come; 0 = not known, or no
                             matter; and: */
    double anew_s;                              /* what they take without the matrix; 0 = not known, or no matter */
    struct lr_progress_filter *progress_filter; /* what params->progress belongs to */
};

/* More cannot be numbered, and what an element of the matrix takes. */
#define LR_STORED_MOST_LORS ((int64_t)1 << 32)
#define LR_STORED_ELEMENT_BYTES 8.0

/* Whether a matrix may pay at all: making it takes longer than projecting once, and so do both of
 * less than two projections. Few events are projected alone, and need all LORs for the sensitivity
 * only. */
bool lr_stored_may_pay(const struct lr_stored_wish *wish);

/* Generates the matrix of *backend from its rows and puts a backend in its place that owns it and
 * projects from the matrix: elements in float, arrays in the precision of the backend wrapped, sums
 * in double, the same bits whatever params->threads is. Voxel rows come from memory; point rows and
 * pictures still come from the backend wrapped.
 *
 * Before, the size is estimated from a few dozen rows. A matrix that is estimated, or turns out,
 * to exceed params->max_memory_bytes (0: half of the machine's memory) is LR_FAILED when
 * required; otherwise *backend stays as it was, size->stored is false, and the log gives the
 * estimate as information. The same goes for 2^32 LORs and more, which this storage cannot number,
 * and, where anew_s is known, for a matrix that takes more time than it saves, as soon as the pace
 * of its rows says so.
 *
 * params: must live as long as the backend. */
lr_status lr_stored_wrap(struct lr_backend *backend, const struct lr_backend_params *params,
                         const struct lr_stored_wish *wish, struct lr_stored_size *size);

/* What a projection from a matrix of that size takes. */
double lr_stored_seconds(int64_t bytes, int threads);

#endif
