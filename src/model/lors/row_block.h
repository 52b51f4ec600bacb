/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Many matrix rows at once, as a device has made them: for sinks that take them by several threads. */
#ifndef LR_MODEL_ROW_BLOCK_H
#define LR_MODEL_ROW_BLOCK_H

#include <lr/operator.h>

struct lr_packed_element {
    uint32_t lor;
    float value;
};
_Static_assert(sizeof(struct lr_packed_element) == 8, "uvec2");

struct lr_row_extent {
    int64_t row, count;
};

/* Whole rows, ascending. Everything lives during the call that it is handed to. */
struct lr_row_block {
    const struct lr_row_extent *rows; /* [num_rows] */
    int64_t num_rows, num_elements;
    const struct lr_packed_element *elements; /* of the rows, one after the other, each sorted by LOR */
    int threads;                              /* that the sink may use */
};

/* What takes rows by blocks, beside a sink that takes them one by one. Both get rows in ascending order,
 * now this and now that one. */
struct lr_row_block_sink {
    lr_status (*take)(void *user, const struct lr_row_block *block);
    void *user;
};

/* A sink that takes blocks, too: lr_operator_rows finds out by lr_row_entry_of. */
struct lr_row_entry {
    lr_row_sink rows;
    struct lr_row_block_sink blocks;
};

/* The entry as a sink, as long as it does not move. */
lr_row_sink lr_row_entry_sink(struct lr_row_entry *entry);

/* What takes blocks for a sink, or NULL. */
const struct lr_row_block_sink *lr_row_entry_of(const lr_row_sink *sink);

/* Hands a block to a sink row by row. errors: LR_FAILED without memory, logged, or what the sink says. */
lr_status lr_row_block_unpack(const struct lr_row_block *block, const lr_row_sink *sink, const lr_log *log);

#endif
