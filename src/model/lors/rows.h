/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Rows of the system matrix: the choice of rows to compute, and blocks of many rows. Devices compute blocks for sinks
 * that use several threads. */
#ifndef LR_MODEL_ROWS_H
#define LR_MODEL_ROWS_H

#include <lr/grid.h>
#include <lr/operator.h>

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

/* A sink that also takes blocks, which lr_operator_rows detects by lr_row_entry_of. */
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

/* The rows to compute: voxels of a grid, each the mean over its sample points, or single points. Exactly one of grid
 * and points_mm is set. */
struct lr_rows {
    const lr_grid *grid;
    int samples[3];
    const double (*points_mm)[3]; /* [end] */
    int64_t begin, end;
    /* [num_pairs] module pairs, ascending. Elements of other pairs are not needed; NULL = all are needed. A backend may
     * ignore this (operator/backend.h). */
    const int32_t *pairs;
    int64_t num_pairs;
    const struct lr_row_block_sink *blocks; /* sink for blocks of whole rows; NULL = none. A backend may ignore this. */
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

#endif
