/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Matrix rows from passes that list the elements of sample points. The passes append the elements in any order to a
 * buffer on the device. */
#ifndef LR_CORRESPONDENCE_COMPUTE_ROWS_POINT_LISTS_H
#define LR_CORRESPONDENCE_COMPUTE_ROWS_POINT_LISTS_H

#include "correspondence/compute/rows/merge.h"
#include "operator/backend.h"

/* Buffers that a pass reads and appends to. */
struct lr_point_list {
    const struct gl_buffer *points; /* of the batch */
    const struct gl_buffer *list;   /* a head of 16 bytes, whose first word is the number of elements, and elements
                                     * of 16 bytes: point, LOR, bits of the weight, unused word */
    int64_t capacity;               /* room for elements; further elements are counted, but not stored */
    int first_point, end_point;     /* points first_point .. end_point - 1 are listed */
};

struct lr_point_lister {
    struct gl_context *ctx;
    const struct lr_backend_params *params;
    struct lr_merge_programs *merge; /* owned by the caller, for all its calls */
    int64_t max_window;              /* floats that a buffer may hold */
    int64_t point_bytes;
    void (*place)(void *user, const double point_mm[3], void *point);
    bool repeats; /* a LOR may be listed several times for a point; its weights then sum to less than 4 */
    lr_status (*run)(void *user, const struct lr_point_list *list);
    void *user;
};

/* Passes every element of the rows to the sink, in order. The context is current. */
lr_status lr_point_lists_read_rows(const struct lr_point_lister *lister, const struct lr_rows *rows,
                                   const lr_row_sink *sink);

#endif
