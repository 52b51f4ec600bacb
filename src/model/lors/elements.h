/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Matrix elements of one row, from collection to delivery. */
#ifndef LR_MODEL_ELEMENTS_H
#define LR_MODEL_ELEMENTS_H

#include <lr/operator.h>

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
    struct lr_element *spare; /* for sorting */
    int64_t count, capacity, spare_capacity;
};

void lr_elements_finish(struct lr_elements *elements);

/* errors of all functions below: LR_FAILED, out of memory, logged. */
lr_status lr_elements_add(struct lr_elements *elements, int64_t lor, double value, const lr_log *log);

/* Sorts by LOR, 0 <= lor < num_lors, and sums repeats in the order in which they were added. */
lr_status lr_elements_merge(struct lr_elements *elements, int64_t num_lors, const lr_log *log);

/* Index of the first element of a merged list whose LOR is at least `lor`; count if there is none. */
int64_t lr_elements_find(const struct lr_elements *elements, int64_t lor);

/* Replaces the list by `scale` times another one, without its zeros. */
lr_status lr_elements_assign(struct lr_elements *elements, const struct lr_elements *from, double scale,
                             const lr_log *log);

/* Passes rows to a sink. Set sink and log, zero the rest. */
struct lr_row_delivery {
    const lr_row_sink *sink;
    const lr_log *log;
    struct lr_owned_row row; /* the row that the sink receives */
};

/* Passes one merged row to the sink. errors: LR_FAILED, out of memory; the status of the sink. */
lr_status lr_row_deliver(struct lr_row_delivery *delivery, int64_t row, const struct lr_elements *elements);

#endif
