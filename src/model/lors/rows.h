/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Rows of the system matrix: elements of one row, blocks of many rows, and the choice of rows to compute. Devices
 * compute blocks for sinks that use several threads. */
#pragma once

#include <lr/grid.h>
#include <lr/operator.h>

/* --- one row, from collection to delivery --- */

/* A matrix row that owns its elements: a row under construction, or a copy that stays valid. A zeroed struct is an
 * empty row. */
struct lr_owned_row {
    int64_t count, room;
    int64_t *lor;        /* owned [room] */
    double *probability; /* owned [room] */
};

/* Reserves memory for `room` elements and keeps the present ones. errors: LR_FAILED, out of memory, logged. */
lr_status lr_owned_row_reserve(struct lr_owned_row *row, int64_t room, const lr_log *log);

/* Adds an element. There must be room for it. */
static inline void lr_owned_row_put(struct lr_owned_row *row, int64_t lor, double probability)
{
    row->lor[row->count] = lor;
    row->probability[row->count++] = probability;
}

/* Replaces the row by a copy of another row's elements. errors: LR_FAILED, out of memory, logged. */
lr_status lr_owned_row_copy(struct lr_owned_row *row, const lr_row *from, const lr_log *log);

/* The row as an lr_row for sinks, with this number; valid until the row changes. */
static inline lr_row lr_owned_row_view(const struct lr_owned_row *row, int64_t number)
{
    return (lr_row){number, row->count, row->lor, row->probability};
}

/* Frees the memory and leaves an empty row. */
void lr_owned_row_finish(struct lr_owned_row *row);

/* A matrix element of a row. */
struct lr_element {
    int64_t lor;
    double value;
};

/* A growing list. A zeroed struct is an empty list. */
struct lr_elements {
    struct lr_element *list;
    struct lr_element *spare; /* memory for sorting */
    int64_t count, capacity, spare_capacity;
};

void lr_elements_finish(struct lr_elements *elements);

/* errors of the functions of a list: LR_FAILED, out of memory, logged. */
lr_status lr_elements_add(struct lr_elements *elements, int64_t lor, double value, const lr_log *log);

/* Sorts by LOR, 0 <= lor < num_lors. Values of equal LORs are summed in the order in which they were added. */
lr_status lr_elements_merge(struct lr_elements *elements, int64_t num_lors, const lr_log *log);

/* Index of the first element of a merged list whose LOR is at least `lor`; count if there is none. */
int64_t lr_elements_find(const struct lr_elements *elements, int64_t lor);

/* Replaces the list by a copy of another list, times `scale` and without zeros. */
lr_status lr_elements_assign(struct lr_elements *elements, const struct lr_elements *from, double scale,
                             const lr_log *log);

/* Passes rows to a sink. The caller sets sink and log, and zeroes the rest. */
struct lr_row_delivery {
    const lr_row_sink *sink;
    const lr_log *log;
    struct lr_owned_row row; /* the row that the sink receives */
};

/* Passes one merged row to the sink. errors: LR_FAILED, out of memory; the status of the sink. */
lr_status lr_row_deliver(struct lr_row_delivery *delivery, int64_t row, const struct lr_elements *elements);

/* --- blocks of rows, and the rows to compute --- */

struct lr_packed_element {
    uint32_t lor;
    float value;
};
#if !defined(__cplusplus)
_Static_assert(sizeof(struct lr_packed_element) == 8, "uvec2");
#endif

struct lr_row_extent {
    int64_t row, count;
};

/* A block of whole rows, ascending. Its memory is valid during the call of the sink only. */
struct lr_row_block {
    const struct lr_row_extent *rows; /* [num_rows] */
    int64_t num_rows, num_elements;
    const struct lr_packed_element *elements; /* elements of one row after the other, each row sorted by LOR */
    int threads;                              /* threads that the sink may use */
};

/* A sink of blocks of rows, used together with a sink of single rows. Row numbers ascend over all calls, and each call
 * may go to either sink. */
struct lr_row_block_sink {
    lr_status (*take)(void *user, const struct lr_row_block *block);
    void *user;
};

/* A sink that also takes blocks. lr_operator_rows recognises such a sink by lr_row_entry_of. */
struct lr_row_entry {
    lr_row_sink rows;
    struct lr_row_block_sink blocks;
};

/* The entry as a sink. The entry must not move while the sink is used. */
lr_row_sink lr_row_entry_sink(struct lr_row_entry *entry);

/* The sink of blocks that belongs to a sink; NULL = none. */
const struct lr_row_block_sink *lr_row_entry_of(const lr_row_sink *sink);

/* Passes a block to a sink row by row. errors: LR_FAILED, out of memory, logged; the status of the sink. */
lr_status lr_row_block_unpack(const struct lr_row_block *block, const lr_row_sink *sink, const lr_log *log);

/* The rows to compute. A row belongs to a voxel of a grid, as the mean over the voxel's sample points, or to a single
 * point. Exactly one of grid and points_mm is set. */
struct lr_rows {
    const lr_grid *grid;
    int samples[3];
    const double (*points_mm)[3]; /* [end] */
    int64_t begin, end;
    /* [num_pairs] module pairs, ascending. Elements of other pairs are not needed; NULL = all are needed. A backend may
     * ignore this list (operator/backend.h). */
    const int32_t *pairs;
    int64_t num_pairs;
    const struct lr_row_block_sink *blocks; /* sink for blocks of whole rows, which a backend may ignore; NULL = none */
};

/* Sample points per row. */
static inline int lr_rows_per_row(const struct lr_rows *rows)
{
    return rows->grid ? rows->samples[0] * rows->samples[1] * rows->samples[2] : 1;
}

static inline void lr_rows_point(const struct lr_rows *rows, int64_t row, int index, double point_mm[3])
{
    if (rows->grid) {
        const int *num = rows->samples;
        const lr_sample sample = {row, {num[0], num[1], num[2]}, index};
        lr_grid_sample_point(rows->grid, &sample, point_mm);
    } else {
        for (int k = 0; k < 3; k++) point_mm[k] = rows->points_mm[row][k];
    }
}
