/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A matrix row that outlives the call which delivered it. */
#ifndef LR_CLI_HELD_ROW_H
#define LR_CLI_HELD_ROW_H

#include "common.h"

/* Zero is an empty row. */
struct held_row {
    int64_t count, room;
    int64_t *lor;        /* owned [room] */
    double *probability; /* owned [room] */
};

/* Adds an element. errors: LR_FAILED without memory, reported. */
lr_status held_row_add(struct report *report, struct held_row *row, int64_t lor, double probability);

/* The row of the voxel that is the setup's grid, by `op`. errors: reported; the row is empty then. */
lr_status held_row_take(const struct setup *setup, lr_operator *op, struct held_row *row);

/* The part of `whole` whose primary module, from that point, is `module`. */
lr_status held_row_restrict(const struct setup *setup, const struct held_row *whole, int module, struct held_row *row);

/* The primary module that carries most of a row. */
lr_status held_row_brightest(const struct setup *setup, const struct held_row *row, int *module);

/* For the library; lives as long as the row. */
lr_row held_row_view(const struct held_row *row);

void held_row_finish(struct held_row *row);

#endif
