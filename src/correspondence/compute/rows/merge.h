/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Merging of lists of elements into rows, on the device. Each row has a table of LORs, with one value per LOR and point
 * of the row. The values of a LOR are added up in the order of the points, and LORs are then sorted. Rows have the same
 * bits in every run. */
#pragma once

#include "gl/pass.h"
#include "gl/transfer.h"
#include "model/lors/rows.h"
#include "operator/backend.h"

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

/* Each program is built at its first use. The caller sets the struct to zero before. */
struct lr_merge_programs {
    struct gl_program *list[LR_NUM_MERGE_PROGRAMS];
};
void lr_merge_programs_finish(struct lr_merge_programs *programs);

/* A list begins with a head, whose first word is the number of elements. An element has four words: its point, its LOR,
 * the bits of its weight, and an unused word. */
enum { LR_LIST_HEAD_BYTES = 16, LR_LIST_ELEMENT_BYTES = 16 };

/* The smallest number of slots in the table of a row. */
enum { LR_MERGE_LEAST_SLOTS = 1024 };

struct lr_merge {
    struct gl_context *ctx;
    const lr_log *log;
    struct lr_merge_programs *programs; /* not owned; shared by merges with the same `repeats` */
    bool list_only;                     /* the host merges */
    bool repeats;                       /* true if a LOR may be listed several times for one point; the caller ensures
                                           that its weights for this point then sum to less than 4 */
    int64_t num_lors;
    int per_row;      /* points of a row */
    int max_points;   /* largest number of points of a part */
    int64_t slots;    /* number of slots of a row's table, a power of two; the tables have fewer slots if the device has
                         too little memory */
    int64_t capacity; /* room of the list, in elements */
    int64_t all_slots, all_values;
    struct gl_buffer *list, *keys, *values, *places, *sums, *tally;
};

/* Starts the programs and makes the buffers. The caller sets the members before all_slots, and the others to zero. The
 * caller must call lr_merge_finish even after an error. errors of this function and those below: LR_FAILED, logged. */
lr_status lr_merge_open(struct lr_merge *merge);
void lr_merge_finish(struct lr_merge *merge);

/* Returns how many bytes each point needs on the device. The caller sets repeats, per_row and slots before. */
int64_t lr_merge_point_bytes(const struct lr_merge *merge, int64_t elements_of_point);

/* Makes the list larger. Its elements are lost. */
lr_status lr_merge_grow_list(struct lr_merge *merge, int64_t capacity);

/* Makes the tables of rows larger. *fits becomes false if the part must have fewer points. A row whose table fits into
 * the device's buffers is never split, because merging it in parts would change the last bits of its sums. */
lr_status lr_merge_grow_tables(struct lr_merge *merge, int num_points, bool *fits);

/* The points of a list: the points of some whole rows, or some points of one row. */
struct lr_merge_part {
    int num_points;
    int first_point; /* number of the first point */
};

/* The result of a merge. If `listed` exceeds the room of the list, or if there are misfits, elements are missing. */
struct lr_merge_tally {
    uint32_t listed;   /* number of listed elements */
    uint32_t misfits;  /* number of elements for which tables had no room */
    uint32_t starts[]; /* [rows + 1] number of each row's first element; at the end, the number of elements */
};

/* Returns the number of rows of a part's points. */
int lr_merge_num_rows(const struct lr_merge *merge, int num_points);

int64_t lr_merge_tally_bytes(int num_rows);

/* Queues the passes over the list. They write a struct lr_merge_tally to merge->tally, and the elements of the rows to
 * the list. The value of an element is the mean over the points of its row. */
lr_status lr_merge_run(const struct lr_merge *merge, const struct lr_merge_part *part);

/* --- by the host --- */

/* Merging on the host. It is used if the device is the processor itself, where shaders would take several times as
 * long. */

/* An element of a list. */
struct lr_listed {
    uint32_t point, lor;
    float weight;
    uint32_t unused;
};
_Static_assert(sizeof(struct lr_listed) == LR_LIST_ELEMENT_BYTES, "uvec4");

/* The caller sets threads and log, and the other members to zero. */
struct lr_host_merge {
    int threads;
    const lr_log *log;
    struct lr_listed *listed, *sorted; /* owned: elements in the order of the list, and sorted by point */
    int64_t max_listed, max_sorted;
    int64_t *begin; /* owned [points + 1] */
    int64_t max_points;
    struct lr_elements *rows; /* owned */
    int64_t max_rows;
};
void lr_host_merge_finish(struct lr_host_merge *merge);

/* Waits for list->list, and merges it into merge->rows. If the part has only some points of one row, its elements are
 * sorted by point, but not merged. If the list had too little room for all elements, no rows are made; *listed is then
 * larger than the list's capacity. errors: LR_FAILED, logged. */
lr_status lr_host_merge_run(struct lr_host_merge *merge, const struct lr_merge *list, const struct lr_merge_part *part,
                            uint32_t *listed);

/* --- delivery of merged rows to the sink, in order; parts of a row are joined first --- */

/* A whole row, or the elements of a row from some of its points. */
struct lr_row_part {
    int64_t row; /* row of the grid, or of the points */
    int64_t count;
    bool begins, ends; /* begins: true if the part has the row's first point; ends: true if it has the row's last
                          point */
};

/* The caller sets num_lors, threads, log, blocks, and the sink and log of `delivery`, and the other members to zero. */
struct lr_deliverer {
    int64_t num_lors;
    int threads;
    const lr_log *log;
    const struct lr_row_block_sink *blocks;   /* receives whole rows in blocks; NULL = the sink of `delivery` receives
                                                 all rows */
    const struct lr_packed_element *borrowed; /* elements of the parts, in memory of a receiver; NULL = they are in
                                               * `elements` */
    struct lr_packed_element *elements;       /* owned: elements of the parts if `borrowed` is NULL */
    int64_t num_elements, max_elements;
    struct lr_row_part *parts; /* owned */
    int64_t num_parts, max_parts;
    struct lr_row_extent *extents; /* owned: rows of a block */
    int64_t max_extents;
    struct lr_owned_row numbers;     /* rows of some parts, in the form that sinks need */
    struct lr_elements carried;      /* elements of a row until its last point has arrived */
    struct lr_row_delivery delivery; /* delivers rows that arrived in several parts; its sink receives all rows */
};

void lr_deliverer_finish(struct lr_deliverer *deliverer);

/* Adds a part and copies its elements. elements: NULL = the elements are in `borrowed` and are not copied. errors of
 * this function and those below: LR_FAILED, logged, if memory runs out. */
lr_status lr_deliverer_add(struct lr_deliverer *deliverer, const struct lr_row_part *part,
                           const struct lr_packed_element *elements);

/* Delivers one part immediately: a whole row, or the elements from some of its points in the order of the points. */
lr_status lr_deliverer_take(struct lr_deliverer *deliverer, const struct lr_row_part *part,
                            const struct lr_elements *elements);

/* Delivers all parts that were added, and removes them. errors: also those of the sink. */
lr_status lr_deliverer_deliver(struct lr_deliverer *deliverer);

/* --- receiving --- */

/* Copies of merged rows from the device to the host's memory, while the host works on other rows. */

/* The caller sets ctx, and the other members to zero. */
struct lr_receiver {
    struct gl_context *ctx;
    struct gl_readback readbacks[2];
    int current;              /* index of the readback in use; the caller changes the index to keep the rows of the
                                 previous part */
    int64_t num_sent;         /* number of elements whose copy is queued */
    double elements_of_point; /* number of elements per point of the last part, after merging; 0 = not known */
};
void lr_receiver_close(struct lr_receiver *receiver);

/* Queues the merge of a part, and the copy of its rows, without waiting. errors of this function and those below: the
 * errors of gl_readback. */
lr_status lr_receiver_start(struct lr_receiver *receiver, const struct lr_merge *merge,
                            const struct lr_merge_part *part);

/* Rows of a part. */
struct lr_received {
    const struct lr_merge_tally *tally;
    const struct lr_packed_element *elements;
};

/* Waits for the rows of the part that was started last. The rows are invalid if the tally shows that elements are
 * missing. */
lr_status lr_receiver_finish(struct lr_receiver *receiver, const struct lr_merge *merge,
                             const struct lr_merge_part *part, struct lr_received *received);

/* --- matrix rows from passes that list the elements of sample points --- */

/* The passes append elements in any order to a buffer on the device. */

/* Buffers that a pass reads and appends to. */
struct lr_point_list {
    const struct gl_buffer *points; /* points of the batch */
    const struct gl_buffer *list;   /* a head of 16 bytes, whose first word is the number of elements, then elements of
                                     * 16 bytes: point, LOR, bits of the weight, unused word */
    int64_t capacity;               /* room for elements; further elements are counted, but not stored */
    int first_point, end_point;     /* points first_point .. end_point - 1 are listed */
};

struct lr_point_lister {
    struct gl_context *ctx;
    const struct lr_backend_params *params;
    struct lr_merge_programs *merge; /* owned by the caller, for all its calls */
    int64_t max_window;              /* number of floats that a buffer can hold */
    int64_t point_bytes;
    void (*place)(void *user, const double point_mm[3], void *point);
    bool repeats; /* as in struct lr_merge */
    lr_status (*run)(void *user, const struct lr_point_list *list);
    void *user;
};

/* Passes every element of the rows to the sink, in order. The context must be current. */
lr_status lr_point_lists_read_rows(const struct lr_point_lister *lister, const struct lr_rows *rows,
                                   const lr_row_sink *sink);
