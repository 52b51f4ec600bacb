/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A matrix row that outlives the call which delivered it. */
#ifndef LR_CLI_RETAINED_ROW_H
#define LR_CLI_RETAINED_ROW_H

#include "common.h"

/* Zero is an empty row. */
struct retained_row {
    int64_t count, room;
    int64_t *lor;        /* owned [room] */
    double *probability; /* owned [room] */
};

/* Adds an element. errors: LR_FAILED if memory runs out, reported. */
lr_status retained_row_add(struct report *report, struct retained_row *row, int64_t lor, double probability);

/* The row of the voxel that is the setup's grid, by `op`. errors: reported; the row is empty then. */
lr_status retained_row_take(const struct setup *setup, lr_operator *op, struct retained_row *row);

/* The part of `whole` whose primary module, from that point, is `module`. */
lr_status retained_row_restrict(const struct setup *setup, const struct retained_row *whole, int module,
                                struct retained_row *row);

/* The primary module that carries most of a row. */
lr_status retained_row_brightest(const struct setup *setup, const struct retained_row *row, int *module);

/* The row for the library; it lives as long as this one. */
lr_row retained_row_view(const struct retained_row *row);

void retained_row_finish(struct retained_row *row);

#endif
