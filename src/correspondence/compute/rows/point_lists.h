/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Matrix rows from passes that list the elements of sample points, in any order, in a buffer on the device. */
#ifndef LR_CORRESPONDENCE_COMPUTE_ROWS_POINT_LISTS_H
#define LR_CORRESPONDENCE_COMPUTE_ROWS_POINT_LISTS_H

#include "correspondence/compute/rows/merge.h"
#include "operator/backend.h"

/* Buffers that a pass reads and appends to. */
struct lr_point_list {
    const struct gl_buffer *points; /* of the batch */
    const struct gl_buffer *list;   /* a head of 16 bytes, its first word the number of elements, then
                                       elements of 16: point, LOR, bits of the weight, unused */
    int64_t capacity;               /* elements; further ones are counted, but not stored */
    int first_point, end_point;     /* points to be listed; these are their numbers */
};

struct lr_point_lister {
    struct gl_context *ctx;
    const struct lr_backend_params *params;
    struct lr_merge_programs *merge; /* the caller's, for all its calls */
    int64_t max_window;              /* floats that a buffer may hold */
    int64_t point_bytes;
    void (*place)(void *user, const double point_mm[3], void *point);
    bool repeats; /* a LOR of a point may be listed more than once; its sum is below 4 */
    lr_status (*run)(void *user, const struct lr_point_list *list);
    void *user;
};

/* Every element of the rows, in order, to the sink; the context is current. */
lr_status lr_point_lists_read_rows(const struct lr_point_lister *lister, const struct lr_rows *rows,
                                   const lr_row_sink *sink);

#endif
