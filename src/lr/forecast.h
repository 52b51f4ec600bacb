/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_FORECAST_H
#define LR_FORECAST_H

#include <lr/operator.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Forecast of the size of work with an operator, accurate to about a tenth if rows are similar. Numbers that do not
 * apply are zero. */
typedef struct lr_forecast {
    double rows;          /* number of rows expected */
    double elements;      /* elements of all rows */
    double kept_elements; /* elements that are at least `threshold` times the largest of their row */
    double memory_bytes;  /* memory the call uses, in addition to the caller's arrays */
} lr_forecast;

/* The rows to compute: the rows of `choice` as in lr_operator_rows_part; with by_lor, the LORs of choice.part as in
 * lr_operator_lor_rows. */
typedef struct lr_rows_work {
    lr_row_choice choice;
    bool by_lor;
    double threshold; /* 0 .. 1, as lr_matrix_writer_params.threshold; unused if by_lor */
} lr_rows_work;

/* Computes a sample of rows spread over the work. It takes 0.5 s if that gives enough rows, else up to about 2 s; a
 * few slow rows may take longer.
 * errors: as lr_operator_rows_part; LR_CANCELLED. */
LR_API lr_status lr_operator_forecast_rows(lr_operator *op, const lr_rows_work *work, lr_forecast *forecast);

/* Forecast for projections of all LORs, forward or back. projections: 1 for a sensitivity, 2 for an iteration of
 * ML-EM with dense data. `store`: the setting of the operator that will do the work. `op` need not keep a matrix to
 * forecast the memory of an operator that does, from a sample of rows.
 * errors: LR_CANCELLED; LR_FAILED for a grid whose projections need more memory than is free (the projections would
 * fail, too); LR_USAGE for an operator of the family direct. */
LR_API lr_status lr_operator_forecast_projections(lr_operator *op, double projections, lr_store store,
                                                  lr_forecast *forecast);

/* Cuts 0 .. num - 1 into part[1] ranges with costs as equal as possible, each of at least one number, and returns the
 * part[0]-th range, 1 <= part[0] <= part[1] <= num: range[0] <= n < range[1]. costs: [num], at least 0. The same costs
 * give the same ranges on every machine. */
LR_API void lr_share_range(const double *costs, int64_t num, const int64_t part[2], int64_t range[2]);

/* One of several parts of the rows, for independent runs on other machines or at other times. */
typedef struct lr_rows_share {
    lr_rows_work work;     /* which rows; choice.part NULL = all LORs */
    int64_t number, parts; /* part `number` of `parts`, 1 <= number <= parts */
    const lr_log *log;
} lr_rows_share;

/* The range of a part; range[1] is not in it. For voxels, the range counts the rows of the choice from 0. For LORs,
 * it counts entries in the selection's list of LORs or module pairs, or in the list of all pairs if it has no list.
 * Each part has at least one row, follows the part before it, and takes about the same work. The work of a voxel's row
 * is estimated from the number of LORs through a few points of the grid, and the work of a LOR's row from the length of
 * its line in the grid. Nothing is timed, so that the parts are the same in every run and for every backend.
 * errors: LR_USAGE for a number out of range, and more parts than rows, LORs or pairs; LR_FAILED,
 * no memory. */
LR_API lr_status lr_rows_share_range(const lr_lors *lors, const lr_grid *grid, const lr_rows_share *share,
                                     int64_t range[2]);

#ifdef __cplusplus
}
#endif

#endif
