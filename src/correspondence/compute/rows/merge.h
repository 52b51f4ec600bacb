/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Merging of lists of elements to rows, on the device. Each row has a table of LORs with a value for each of its
 * points. Values are added up over the points, in their order, and sorted by LOR. Rows have the same bits in every
 * run. */
#ifndef LR_CORRESPONDENCE_COMPUTE_ROWS_MERGE_H
#define LR_CORRESPONDENCE_COMPUTE_ROWS_MERGE_H

#include "gl/pass.h"
#include "gl/transfer.h"
#include "model/lors/elements.h"
#include "model/lors/rows.h"

enum lr_merge_program {
    LR_MERGE_COLLECT = 0,
    LR_MERGE_COUNT,
    LR_MERGE_GATHER,
    LR_MERGE_SUM,
    LR_MERGE_PLACE,
    LR_MERGE_DIGITS,
    LR_MERGE_SCATTER,
    LR_NUM_MERGE_PROGRAMS
};

/* Programs are built at first use. Zero-initialise it. */
struct lr_merge_programs {
    struct gl_program *list[LR_NUM_MERGE_PROGRAMS];
};
void lr_merge_programs_finish(struct lr_merge_programs *programs);

/* A list begins with a head, whose first word is the number of elements. The four words of an element are its point,
 * its LOR, the bits of its weight, and an unused word. */
enum { LR_LIST_HEAD_BYTES = 16, LR_LIST_ELEMENT_BYTES = 16 };

/* The table of a row has at least this many slots. */
enum { LR_MERGE_LEAST_SLOTS = 1024 };

struct lr_merge {
    struct gl_context *ctx;
    const lr_log *log;
    struct lr_merge_programs *programs; /* not owned; shared by merges with the same `repeats` */
    bool list_only;                     /* the host merges */
    bool repeats;                       /* a LOR of a point may be listed more than once; its sum is below 4 */
    int64_t num_lors;
    int per_row;      /* points of a row */
    int max_points;   /* most points of a part */
    int64_t slots;    /* slots of a row's table, a power of two; fewer if the tables lack room */
    int64_t capacity; /* elements that the list can hold */
    int64_t all_slots, all_values;
    struct gl_buffer *list, *keys, *values, *places, *sums, *tally;
};

/* Starts the programs and makes the buffers. The caller sets the members before all_slots, zeroes the rest, and calls
 * lr_merge_finish even after an error. errors, here and below: LR_FAILED, logged. */
lr_status lr_merge_open(struct lr_merge *merge);
void lr_merge_finish(struct lr_merge *merge);

/* The bytes on the device that each point needs. repeats, per_row and slots are set. */
int64_t lr_merge_point_bytes(const struct lr_merge *merge, int64_t elements_of_point);

/* Makes the list larger; its elements are lost. */
lr_status lr_merge_grow_list(struct lr_merge *merge, int64_t capacity);

/* Makes the tables of rows larger. *fits is set to false if the part must have fewer points. A single row fits as long
 * as the device's buffers have room for its table. Merging a row in parts changes the last bits of its sums; this rule
 * keeps the choice independent of the order of the row's elements. */
lr_status lr_merge_grow_tables(struct lr_merge *merge, int num_points, bool *fits);

/* The points of a list: those of whole rows, or some points of one row. */
struct lr_merge_part {
    int num_points;
    int first_point; /* number of the first point */
};

/* The outcome of merging. Elements are missing if `listed` exceeds the list's capacity, or if there are misfits. */
struct lr_merge_tally {
    uint32_t listed;   /* elements */
    uint32_t misfits;  /* elements for which tables had no room */
    uint32_t starts[]; /* [rows + 1] number of each row's first element, and the end of the last row */
};

/* The number of rows to which the points of a part belong. */
int lr_merge_num_rows(const struct lr_merge *merge, int num_points);

int64_t lr_merge_tally_bytes(int num_rows);

/* Queues the passes over the list. merge->tally is a struct lr_merge_tally afterwards. */
lr_status lr_merge_run(const struct lr_merge *merge, const struct lr_merge_part *part);

/* Range of the buffer that holds the elements of all rows, one row after the other. An element is the mean over the
 * points of its row. The range is valid until the list changes. */
struct gl_range lr_merge_rows(const struct lr_merge *merge);

/* --- by the host --- */

/* If the device is the processor, the host merges, since shaders would take several times as long. */

/* An element in a list. */
struct lr_listed {
    uint32_t point, lor;
    float weight;
    uint32_t unused;
};
_Static_assert(sizeof(struct lr_listed) == LR_LIST_ELEMENT_BYTES, "uvec4");

/* The caller sets threads and log, and zeroes the rest. */
struct lr_host_merge {
    int threads;
    const lr_log *log;
    struct lr_listed *listed, *sorted; /* owned: in the order of the list, and sorted by point */
    int64_t max_listed, max_sorted;
    int64_t *begin; /* owned [points + 1] */
    int64_t max_points;
    struct lr_elements *rows; /* owned */
    int64_t max_rows;
};
void lr_host_merge_finish(struct lr_host_merge *merge);

/* Waits for list->list, and merges it to merge->rows. If the part is some points of a row, its elements are only sorted
 * by point. If more elements were listed than the list has room for, no rows are made. errors: LR_FAILED, logged. */
lr_status lr_host_merge_run(struct lr_host_merge *merge, const struct lr_merge *list, const struct lr_merge_part *part,
                            uint32_t *listed);

/* --- delivery of merged rows to the sink, in order; parts of a row are joined first --- */

/* A row, or the part of a row that belongs to some of its points. */
struct lr_row_part {
    int64_t row; /* row of the grid, or of the points */
    int64_t count;
    bool begins, ends; /* the part has the first point of the row; it has the last point */
};

/* The caller sets num_lors, threads, log, blocks, and the sink and log of `delivery`. The other members are zero at
 * first. */
struct lr_deliverer {
    int64_t num_lors;
    int threads;
    const lr_log *log;
    const struct lr_row_block_sink *blocks;   /* takes whole rows; NULL = the sink takes all rows */
    const struct lr_packed_element *borrowed; /* elements of the parts, in a receiver's memory; or NULL */
    struct lr_packed_element *elements;       /* owned: elements of the parts, unless they are borrowed */
    int64_t num_elements, max_elements;
    struct lr_row_part *parts; /* owned */
    int64_t num_parts, max_parts;
    struct lr_row_extent *extents; /* owned: rows of a block */
    int64_t max_extents;
    struct lr_owned_row numbers;     /* rows of some parts, in the form that sinks take */
    struct lr_elements carried;      /* elements of a row that has not ended */
    struct lr_row_delivery delivery; /* delivery of carried rows; its sink takes all rows */
};

void lr_deliverer_finish(struct lr_deliverer *deliverer);

/* Makes room for more elements, which the caller then appends. errors, here and below: LR_FAILED if memory runs out,
 * logged. */
lr_status lr_deliverer_reserve(struct lr_deliverer *deliverer, int64_t num_elements);
lr_status lr_deliverer_add(struct lr_deliverer *deliverer, const struct lr_row_part *part);

/* Delivers another row immediately: a whole row, or the elements of some of its points, in order. */
lr_status lr_deliverer_take(struct lr_deliverer *deliverer, const struct lr_row_part *part,
                            const struct lr_elements *elements);

/* Delivers all parts, and removes them. errors: also those of the sink. */
lr_status lr_deliverer_deliver(struct lr_deliverer *deliverer);

/* --- receiving --- */

/* Copies of merged rows from the device to the host's memory, while the host works on other rows. */

/* The caller sets ctx, and zeroes the rest. */
struct lr_receiver {
    struct gl_context *ctx;
    struct gl_readback readbacks[2];
    int current;              /* the readback in use; the caller switches it to keep the previous part */
    int64_t num_sent;         /* number of elements whose copy is queued */
    double elements_of_point; /* elements per point of the last part, after merging; 0 = not known */
};
void lr_receiver_close(struct lr_receiver *receiver);

/* Queues the merging of a part and the copy of its rows, without waiting. errors, here and below: those of
 * gl_readback. */
lr_status lr_receiver_start(struct lr_receiver *receiver, const struct lr_merge *merge,
                            const struct lr_merge_part *part);

/* Rows of a part. */
struct lr_received {
    const struct lr_merge_tally *tally;
    const struct lr_packed_element *elements;
};

/* Waits for the rows of the part that was started last. The rows are invalid if the tally says that elements are
 * missing. */
lr_status lr_receiver_finish(struct lr_receiver *receiver, const struct lr_merge *merge,
                             const struct lr_merge_part *part, struct lr_received *received);

#endif
