/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Rows of an operator's matrix, for the files of this folder. */
#ifndef LR_OPERATOR_ROWS_H
#define LR_OPERATOR_ROWS_H

#include "operator/facade.h"

/* All voxels begin <= row < end, with the operator's sample points. */
struct lr_rows lr_rows_of_voxels(const struct lr_operator *op, int64_t begin, int64_t end);

/* errors: LR_USAGE, logged, for a sink that takes nothing. */
lr_status lr_rows_check_sink(const struct lr_operator *op, const lr_row_sink *sink);

/* errors: LR_USAGE, logged, for lists that are not ascending or leave the range. */
lr_status lr_rows_check_choice(const struct lr_operator *op, const lr_row_choice *choice);

/* How rows of LORs with so many elements in all are made within the memory there is. */
struct lr_lor_rows_plan {
    double passes; /* over all voxels */
    double memory_bytes;
};
struct lr_lor_rows_plan lr_lor_rows_forecast(const struct lr_operator *op, double lors, double elements);

/* Hands the rows to the sink, elements of the part only (NULL: all LORs), factors applied. Reports
 * no progress. rows: checked, not empty, without pairs; part: checked. */
lr_status lr_rows_run(struct lr_operator *op, const struct lr_rows *rows, const lr_selection *part,
                      const lr_row_sink *sink);

#endif
