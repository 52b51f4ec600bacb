/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A matrix row that owns its elements: one that is being put together, or a copy that stays. */
#ifndef LR_MODEL_OWNED_ROW_H
#define LR_MODEL_OWNED_ROW_H

#include <lr/operator.h>

/* Zero is an empty row. */
struct lr_owned_row {
    int64_t count, room;
    int64_t *lor;        /* owned [room] */
    double *probability; /* owned [room] */
};

/* Makes room for `room` elements; those that are there stay. errors: LR_FAILED without memory,
 * logged. */
lr_status lr_owned_row_reserve(struct lr_owned_row *row, int64_t room, const lr_log *log);

/* Adds an element, for which there is room. */
static inline void lr_owned_row_put(struct lr_owned_row *row, int64_t lor, double probability)
{
    row->lor[row->count] = lor;
    row->probability[row->count++] = probability;
}

/* Makes the row a copy of another's elements. errors: as before. */
lr_status lr_owned_row_copy(struct lr_owned_row *row, const lr_row *from, const lr_log *log);

/* The row as sinks see it, of this number; as long as it is not changed. */
static inline lr_row lr_owned_row_view(const struct lr_owned_row *row, int64_t number)
{
    return (lr_row){number, row->count, row->lor, row->probability};
}

/* Leaves an empty row. */
void lr_owned_row_finish(struct lr_owned_row *row);

#endif
